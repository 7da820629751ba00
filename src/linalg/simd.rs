//! Kernels that are compiled twice, for any machine and for one with AVX2 and FMA, and chosen at run time: the
//! plain build is fast where the machine can be.
//!
//! A kernel is written once, over plain slices in loops that the compiler turns into vector instructions, with
//! [`Arithmetic::mul_add`] where a product is added.

use super::vector::{Portable, Vector4};

/// How `a·b + c` is computed, and what four numbers are computed with.
pub(crate) trait Arithmetic {
    /// Four numbers at a time.
    type Vector: Vector4;

    /// `a·b + c`.
    fn mul_add(a: f64, b: f64, c: f64) -> f64;
}

/// One rounding, one instruction: only for code compiled for FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Fused;

/// Two roundings, on any machine.
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

/// Whether this machine has AVX2 and FMA. The answer is kept, so asking costs one load.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_fma() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// What the kernels run on here, for people.
pub fn kernels() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        return "AVX2 and FMA";
    }
    "portable"
}

/// `at_run_time! { fn name(arg: Type, …) -> Type = kernel }`: a function that runs `kernel::<Fused>`, compiled for
/// AVX2 and FMA, where the machine has them, and `kernel::<Plain>` elsewhere. `kernel` must be `#[inline(always)]`, as
/// must be all that it leaves to others, closures included. With `fn name<T: Bound>(…)` it is `kernel::<_, T>`.
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
