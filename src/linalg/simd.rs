//! Kernels that are compiled twice, for any machine and for AVX2 with FMA, and chosen at run time. One build is fast on every
//! machine.
//!
//! The source of a kernel is generic over [`Arithmetic`]. It uses [`Arithmetic::Vector`], or loops over slices that the
//! compiler vectorises with [`Arithmetic::mul_add`] for sums of products.

use super::vector::{Portable, Vector4};

/// The instructions that a kernel is compiled for.
pub(crate) trait Arithmetic {
    /// Four numbers.
    type Vector: Vector4;

    /// `a·b + c`.
    fn mul_add(a: f64, b: f64, c: f64) -> f64;
}

/// `a·b + c` with one rounding. Only for code compiled for AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Fused;

/// `a·b + c` with two roundings, for any machine.
pub(crate) struct Plain;

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Fused {
    type Vector = super::vector::Avx;

    #[inline(always)]
    fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a.mul_add(b, c)
    }
}

impl Arithmetic for Plain {
    type Vector = Portable;

    #[inline(always)]
    fn mul_add(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }
}

/// Whether this machine has AVX2 and FMA. The standard library caches the answer, so a call costs one load.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_fma() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// The instructions that the kernels use on this machine, for display.
///
/// ```
/// println!("kernels: {}", gmm_bmm::internals::linalg::kernels());
/// ```
pub fn kernels() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        return "AVX2 and FMA";
    }
    "portable"
}

/// `at_run_time! { fn name(arg: Type, …) -> Type = kernel }` defines a function that runs `kernel::<Fused>`, compiled for
/// AVX2 and FMA, on machines that have them, and `kernel::<Plain>` on others. `kernel` and everything that it calls,
/// closures included, must be `#[inline(always)]`: code that is not inlined is not compiled for AVX2. With
/// `fn name<T: Bound>(…)` the kernel is `kernel::<_, T>`.
macro_rules! at_run_time {
    ($(#[$attribute:meta])* $visible:vis fn $name:ident $(<$generic:ident: $bound:path>)? ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? = $kernel:ident) => {
        $(#[$attribute])*
        #[allow(unsafe_code)]
        $visible fn $name $(<$generic: $bound>)? ($($argument: $type),*) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide $(<$generic: $bound>)? ($($argument: $type),*) $(-> $result)? {
                    $kernel::<$crate::linalg::simd::Fused $(, $generic)?>($($argument),*)
                }
                if $crate::linalg::simd::has_fma() {
                    // SAFETY: the machine has the features that the function was compiled for.
                    return unsafe { wide $(::<$generic>)? ($($argument),*) };
                }
            }
            $kernel::<$crate::linalg::simd::Plain $(, $generic)?>($($argument),*)
        }
    };
}

pub(crate) use at_run_time;
