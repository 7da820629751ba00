//! Settings of the memory allocator.

/// Makes the allocator of glibc return large blocks to the system when they are freed, and use one pool for all threads.
/// By default it keeps freed blocks of up to 32 MB, and a pool for each thread, which makes a revision take half as much
/// memory again. Has to be called before other threads start.
pub(super) fn return_freed_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::set_limits();
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    /// Blocks of this size or more are mapped on their own.
    const LARGE: c_int = 1 << 20;
    /// Free memory at the end of the heap is returned beyond this size. Less would cost time.
    const SPARE: c_int = 2 << 20;

    #[allow(unsafe_code)]
    pub fn set_limits() {
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        const M_TRIM_THRESHOLD: c_int = -1;
        const M_MMAP_THRESHOLD: c_int = -3;
        const M_ARENA_MAX: c_int = -8;
        // SAFETY: mallopt takes two integers, and ignores parameters that it does not know.
        unsafe {
            mallopt(M_MMAP_THRESHOLD, LARGE);
            mallopt(M_TRIM_THRESHOLD, SPARE);
            mallopt(M_ARENA_MAX, 1);
        }
    }
}
