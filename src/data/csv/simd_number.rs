//! The numbers of plain lines by vector instructions: all digits of a number at once, without a branch that depends on their
//! number.
//!
//! The functions here are inlined into one that is compiled for the instructions they use, and that runs only on machines that
//! have them. This makes every intrinsic sound.

use std::arch::x86_64::*;

use super::number::{MAX_DIGITS, rounded_product, scaled, signed, written_exponent};

/// Bytes in a vector.
const LANES: usize = 32;
/// Bytes before a number that are loaded with it, and bytes that are looked at in all.
const BEFORE: usize = LANES + 1;
const WINDOW: usize = BEFORE + LANES;

/// A vector loaded from here `n` bytes after the beginning has ones in its last `n` bytes.
const LAST_BYTES: [u8; 2 * LANES] = {
    let mut table = [0; 2 * LANES];
    let mut i = LANES;
    while i < 2 * LANES {
        table[i] = 0xff;
        i += 1;
    }
    table
};

/// Whether this machine has the instructions.
pub(super) fn is_available() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt")
}

/// The number that begins `at` bytes after the beginning of `text`, and its length in bytes, if the byte after it is `end`. `None`
/// if this function cannot read it.
///
/// It reads numbers of at most 19 digits, an exponent only after a point, and only with enough text before and after the first byte.
#[inline(always)]
pub(super) fn simd_number(text: &[u8], at: usize, end: u8) -> Option<(f64, usize)> {
    let begin = at.wrapping_sub(BEFORE);
    let window = text.get(begin..begin.wrapping_add(WINDOW))?.first_chunk::<WINDOW>()?;
    let negative = window[BEFORE] == b'-';
    let others = other_bytes(load(window, BEFORE)) & !u32::from(negative);
    let after_first = others & others.wrapping_sub(1);
    // If there is no such byte the place is 0, so that the number has no digits.
    let first = others.trailing_zeros() as usize % LANES;
    if window[BEFORE + first] != b'.' {
        let count = first.wrapping_sub(usize::from(negative));
        if count.wrapping_sub(1) >= MAX_DIGITS || window[BEFORE + first] != end {
            return None;
        }
        let w = value(digits(load(window, first + 1), count));
        return Some((signed(w as f64, negative), first));
    }
    let length = after_first.trailing_zeros() as usize % LANES;
    let count = length.wrapping_sub(1 + usize::from(negative));
    if count.wrapping_sub(1) >= MAX_DIGITS {
        return None;
    }
    let decimals = length - first - 1;
    // The digits end where the vector does. Those before the point move over it.
    let joined = choose(load(window, length), load(window, length + 1), load(&LAST_BYTES, decimals));
    let w = value(digits(joined, count));
    if window[BEFORE + length] != end {
        return with_exponent(&text[at + length..], end, w, decimals, negative)
            .map(|(value, more)| (value, length + more));
    }
    if w == 0 {
        return Some((signed(0.0, negative), length));
    }
    Some((signed(rounded_product(w, -(decimals as i64))?, negative), length))
}

/// The number with digits `w`, of which `decimals` are after the point, and the exponent that `text` begins with. Also the length of
/// the exponent in bytes.
#[inline(never)]
fn with_exponent(text: &[u8], end: u8, w: u64, decimals: usize, negative: bool) -> Option<(f64, usize)> {
    let (exponent, length) = written_exponent(text, end)?;
    Some((signed(scaled(w, exponent - decimals as i64)?, negative), length))
}

/// A vector from `bytes`.
#[inline(always)]
fn load<const N: usize>(bytes: &[u8; N], from: usize) -> __m256i {
    let bytes = &bytes[from..from + LANES];
    // SAFETY: the slice has as many bytes as the vector, which need not be aligned.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

/// A bit for each byte that is not a digit.
#[inline(always)]
fn other_bytes(bytes: __m256i) -> u32 {
    // SAFETY: see the module.
    unsafe {
        let values = _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8));
        let is_other = _mm256_cmpeq_epi8(_mm256_max_epu8(values, _mm256_set1_epi8(10)), values);
        _mm256_movemask_epi8(is_other) as u32
    }
}

/// Bytes of `second` where `is_second` is set, and of `first` elsewhere.
#[inline(always)]
fn choose(first: __m256i, second: __m256i, is_second: __m256i) -> __m256i {
    // SAFETY: see the module.
    unsafe { _mm256_blendv_epi8(first, second, is_second) }
}

/// The values of the last `count` bytes, which are digits, after zeros.
#[inline(always)]
fn digits(bytes: __m256i, count: usize) -> __m256i {
    let is_digit = load(&LAST_BYTES, count);
    // SAFETY: see the module.
    unsafe { _mm256_and_si256(_mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8)), is_digit) }
}

/// The value of 32 digits, of which all but the last 19 are zero.
#[inline(always)]
fn value(digits: __m256i) -> u64 {
    // SAFETY: see the module.
    let (upper, lower) = unsafe {
        // Combine neighbours, pairs and groups of four.
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
        let fours = _mm256_packus_epi32(fours, fours);
        let eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x0001_2710));
        (_mm256_extract_epi64::<0>(eights) as u64, _mm256_extract_epi64::<2>(eights) as u64)
    };
    // Of each four groups of eight digits, the first is in the lower half of `upper`, and so on.
    (upper >> 32) * 10_000_000_000_000_000 + (lower & 0xffff_ffff) * 100_000_000 + (lower >> 32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bits and the length of the number in the middle of other text, which must not influence it.
    fn number(text: &str) -> Option<(u64, usize)> {
        if !is_available() {
            return Some((text.parse::<f64>().ok()?.to_bits(), text.len()));
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
        fn wide(text: &[u8]) -> Option<(f64, usize)> {
            simd_number(text, BEFORE, b',')
        }
        let found =
            [("7", "7"), (".", "."), ("-", "e"), (",", ","), ("\u{7f}", "\0")].map(|(before, after)| {
                let text = format!("{},{text},{}", before.repeat(BEFORE - 1), after.repeat(LANES));
                // SAFETY: the machine has the instructions that the function was compiled for.
                unsafe { wide(text.as_bytes()) }.map(|(value, length)| (value.to_bits(), length))
            });
        assert!(found.iter().all(|one| *one == found[0]), "{text}: {found:?}");
        found[0]
    }

    fn assert_same_bits(text: &str) {
        if let Some(found) = number(text) {
            assert_eq!(found, (text.parse::<f64>().unwrap().to_bits(), text.len()), "{text}");
        }
    }

    #[test]
    fn the_usual_forms_are_read() {
        let texts = "0 -0 7 0.0 -0.000 -12.5 5. .5 -.5 007 1234567890123456789 -6.190031619141795 \
                     0.041558453687665114 123456789012345678.9 .1234567890123456789 1.25E-7 -1.234567890123456789e+00";
        for text in texts.split(' ') {
            assert!(number(text).is_some(), "{text}");
            assert_same_bits(text);
        }
    }

    #[test]
    fn other_forms_are_left_to_others() {
        let texts = "|-|.|-.|+1| 1|1 |x|1x|1.5x|--1|1.2.3|1e5|1.e|12345678901234567890|\
                     -1234567890123456789012345678901234567890|nan";
        for text in texts.split('|') {
            assert!(!is_available() || number(text).is_none(), "{text}");
        }
    }

    #[test]
    fn text_that_is_too_short_is_left_to_others() {
        let text = format!("{}1.5,{}", ",".repeat(BEFORE), ",".repeat(LANES));
        let read = |from: usize, to: usize| {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt")]
            fn wide(text: &[u8], at: usize) -> Option<(f64, usize)> {
                simd_number(text, at, b',')
            }
            // SAFETY: it is called only on machines with the instructions.
            unsafe { wide(&text.as_bytes()[from..to], BEFORE - from) }
        };
        if is_available() {
            assert_eq!(read(0, WINDOW), Some((1.5, 3)));
            assert_eq!(
                [read(1, WINDOW), read(BEFORE, WINDOW), read(0, WINDOW - 1), read(0, BEFORE)],
                [None; 4]
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn digits_with_a_point_anywhere_are_read_to_the_last_bit(w in any::<u64>(), shift in 0u32..64, point in 0usize..20, sign in "-?") {
            let digits = (w >> shift).to_string();
            let (whole, decimals) = digits.split_at(point.min(digits.len()));
            let text = format!("{sign}{whole}.{decimals}");
            assert_same_bits(&text);
        }

        #[test]
        fn doubles_come_back_however_they_are_written(bits in any::<u64>(), scale in -20i32..20, places in 0usize..20) {
            let value = (bits as i64 as f64 / (1u64 << 62) as f64) * 2f64.powi(scale);
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.places$}"), format!("{value:.places$e}")] {
                assert_same_bits(&text);
            }
        }
    }
}
