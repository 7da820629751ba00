//! Numbers from plain digits, with the bits of `str::parse` and several times as fast. The csv path spends most of its time
//! here, which is why this is written by hand.
//!
//! The digits make an integer `w` and an exponent `q`: `x = w·10^q = w·5^q·2^q`. With 64 bits of `5^q`, the upper half of one
//! 128-bit product is correct to its last bit, which nearly always determines how `x` rounds to 53 bits (Eisel and
//! Lemire). Otherwise, one operation on two exact doubles rounds once (Clinger). The standard library reads what neither
//! determines.

/// Powers of five up to this one, and their reciprocals, can be computed with 128-bit integers.
const MAX_EXPONENT: i64 = 27;
/// Any number of this many digits fits in 64 bits.
pub(super) const MAX_DIGITS: usize = 19;

/// A power of five, `5^q ≈ bits·2^e`.
#[derive(Clone, Copy)]
struct PowerOfFive {
    /// Truncated to 64 bits, of which the first is set.
    bits: u64,
    /// The exponent bits of the double `2^126·2^e·2^q`, less one: the least product of `bits` and another 64 bits is `2^126`.
    exponent: u64,
}

/// The exponent bits of the double `2^126`, less one.
const MIN_PRODUCT: i64 = 126 + 1023 - 1;

/// From `q = −MAX_EXPONENT` up.
const POWERS_OF_FIVE: [PowerOfFive; 2 * MAX_EXPONENT as usize + 1] = powers_of_five();

const fn powers_of_five() -> [PowerOfFive; 2 * MAX_EXPONENT as usize + 1] {
    let mut table = [PowerOfFive { bits: 0, exponent: 0 }; 2 * MAX_EXPONENT as usize + 1];
    let mut q = 0;
    while q <= MAX_EXPONENT {
        let power = 5u64.pow(q as u32);
        let zeros = power.leading_zeros();
        let up = (MAX_EXPONENT + q) as usize;
        let down = (MAX_EXPONENT - q) as usize;
        // 2^(127 − zeros)/5^q lies between 2^63 and 2^64.
        let exponent = 127 - zeros;
        table[down] = PowerOfFive {
            bits: ((1u128 << exponent) / power as u128) as u64,
            exponent: (MIN_PRODUCT - exponent as i64 - q) as u64,
        };
        table[up] = PowerOfFive { bits: power << zeros, exponent: (MIN_PRODUCT - zeros as i64 + q) as u64 };
        q += 1;
    }
    table
}

/// Powers of ten that are exact as doubles.
const EXACT_POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The number that `text` begins with, and its length in bytes, if the byte after it is `end`. `None` if this function cannot
/// read it: more than 19 digits, an exponent of more than three, or no number.
pub(super) fn any_number(text: &[u8], end: u8) -> Option<(f64, usize)> {
    let negative = *text.first()? == b'-';
    let begin = usize::from(negative);
    let (mut w, mut at) = all_digits(text, begin, 0)?;
    let mut count = at - begin;
    let mut q = 0;
    if *text.get(at)? == b'.' {
        let point = at + 1;
        (w, at) = all_digits(text, point, w)?;
        count += at - point;
        q = -((at - point) as i64);
    }
    if count == 0 || (count > MAX_DIGITS && count - leading_zeros(&text[begin..]) > MAX_DIGITS) {
        return None;
    }
    if *text.get(at)? != end {
        let (exponent, length) = written_exponent(&text[at..], end)?;
        q += exponent;
        at += length;
    }
    Some((signed(scaled(w, q)?, negative), at))
}

#[inline(always)]
pub(super) fn signed(magnitude: f64, negative: bool) -> f64 {
    f64::from_bits(magnitude.to_bits() | u64::from(negative) << 63)
}

/// Appends a run of digits of any length to `w`. Returns the result and where the digits end. The caller refuses more digits
/// than fit.
fn all_digits(text: &[u8], begin: usize, mut w: u64) -> Option<(u64, usize)> {
    let mut at = begin;
    while let Some(eight) = text.get(at..)?.first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        let count = digit_count(eight);
        if count > 0 {
            w = w.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value_of(eight, count));
            at += count;
        }
        if count < 8 {
            return Some((w, at));
        }
    }
    for digit in text[at..].iter().take_while(|byte| byte.is_ascii_digit()) {
        w = w.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    Some((w, at))
}

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// How many of eight bytes, from the lowest, are digits before one that is not.
#[inline]
fn digit_count(bytes: u64) -> usize {
    const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x7f - b'9'; 8]);
    // Carries and borrows begin at a byte that is not a digit, so they change only bytes that are not used.
    let others = (bytes.wrapping_add(ABOVE_NINE) | bytes.wrapping_sub(ZEROS)) & HIGH_BITS;
    (others.trailing_zeros() / 8) as usize
}

/// The value of the first `count` of eight bytes, which are digits; at least one.
#[inline]
fn value_of(bytes: u64, count: usize) -> u64 {
    // Replace what follows by zeros in front, then combine neighbours, pairs and groups of four.
    let digits = bytes.wrapping_sub(ZEROS) << (64 - 8 * count);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff
}

/// How many zeros are at the beginning of a number.
fn leading_zeros(number: &[u8]) -> usize {
    number.iter().take_while(|byte| matches!(byte, b'0' | b'.')).filter(|&&byte| byte == b'0').count()
}

/// The exponent that `text` begins with, and its length in bytes with its `e`, if the byte after it is `end`.
pub(super) fn written_exponent(text: &[u8], end: u8) -> Option<(i64, usize)> {
    if !matches!(text.first()?, b'e' | b'E') {
        return None;
    }
    let sign = *text.get(1)?;
    let begin = 1 + usize::from(matches!(sign, b'+' | b'-'));
    let digits = text[begin..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    // With more digits it is out of range or has leading zeros.
    if !(1..=3).contains(&digits) || *text.get(begin + digits)? != end {
        return None;
    }
    let value =
        text[begin..begin + digits].iter().fold(0, |value, digit| 10 * value + i64::from(digit - b'0'));
    Some((if sign == b'-' { -value } else { value }, begin + digits))
}

/// `w·10^q`, correctly rounded; `None` if the rounding is not determined here.
#[inline(always)]
pub(super) fn scaled(w: u64, q: i64) -> Option<f64> {
    if w == 0 {
        return Some(0.0);
    }
    if !(-MAX_EXPONENT..=MAX_EXPONENT).contains(&q) {
        return None;
    }
    rounded_product(w, q).or_else(|| exact_quotient(w, q))
}

/// `w·10^q`, correctly rounded, for `w` other than zero and an exponent in the table; `None` if the product does not determine it.
#[inline(always)]
pub(super) fn rounded_product(w: u64, q: i64) -> Option<f64> {
    let power = POWERS_OF_FIVE[(q + MAX_EXPONENT) as usize];
    let zeros = w.leading_zeros();
    let product = u128::from(w << zeros) * u128::from(power.bits);
    let upper = (product >> 64) as u64;
    let carry = upper >> 63;
    // 54 bits: those of a double and one for rounding. The true product is larger by less than two in the last bit of
    // `upper`. So it may be half-way between two doubles, or on the other side, only if `upper` is half-way or one less.
    // The bits below tell nearly always that it is not.
    if upper.wrapping_add(1) & 0x1ff <= 1 {
        let half = 0x200 << carry;
        if (upper & (2 * half - 1)).wrapping_sub(half - 1) <= 1 {
            return None;
        }
    }
    let mantissa = ((upper >> (9 + carry)) + 1) >> 1;
    // The leading bit of the mantissa adds one to the exponent, and so does rounding up to a power of two.
    let exponent = power.exponent + carry - u64::from(zeros);
    Some(f64::from_bits((exponent << 52) + mantissa))
}

/// One operation on two exact doubles, which rounds once.
fn exact_quotient(w: u64, q: i64) -> Option<f64> {
    let power = *EXACT_POWERS_OF_TEN.get(q.unsigned_abs() as usize)?;
    if w > 1 << 53 {
        return None;
    }
    Some(if q < 0 { w as f64 / power } else { w as f64 * power })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Option<(f64, usize)> {
        any_number(format!("{text},").as_bytes(), b',')
    }

    fn assert_same_bits(text: &str) {
        if let Some((value, length)) = number(text) {
            assert_eq!(length, text.len(), "{text}");
            assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
    }

    #[test]
    fn plain_numbers_are_read_here() {
        let texts = "0 -0 7 -12.5 0.1 5. .5 007 1e5 1.25E-7 -6.190031619141795 0.00009471058003163635 \
                     1424696631913248572 1.234567890123456789e+00 0.000 12345678 123456789012345.6";
        for text in texts.split(' ') {
            assert!(number(text).is_some(), "{text}");
            assert_same_bits(text);
        }
    }

    #[test]
    fn what_takes_a_closer_look_is_left_to_others() {
        for text in "|-|.|-.|+1| 1|x|nan|inf|1e|1e+|1e99999|e5|12345678901234567890".split('|') {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(number("1.5;2"), None, "the byte after the number");
    }

    #[test]
    fn numbers_half_way_between_two_doubles_are_right() {
        for double in [1.0f64, 1.5, 4503599627370497.0, 9007199254740992.0, 0.1, 123.456, 7e15] {
            let next = f64::from_bits(double.to_bits() + 1);
            for nearly in [double, next, (double + next) / 2.0] {
                for text in [format!("{nearly}"), format!("{nearly:.18}"), format!("{nearly:.17e}")] {
                    assert_same_bits(&text);
                }
            }
        }
        for halfway in ["9007199254740993", "9007199254740995", "4503599627370496.5", "4503599627370497.5"] {
            assert_same_bits(halfway);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn digits_are_read_to_the_last_bit(w in any::<u64>(), shift in 0u32..64, q in -30i64..30) {
            assert_same_bits(&format!("{}e{q}", w >> shift));
        }

        #[test]
        fn doubles_come_back_however_they_are_written(bits in any::<u64>(), scale in -20i32..20, places in 0usize..20) {
            let mantissa = 1.0 + (bits >> 12) as f64 / (1u64 << 52) as f64;
            let value = mantissa * 2f64.powi(scale) * if bits % 2 == 0 { 1.0 } else { -1.0 };
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.places$}"), format!("{value:.places$e}")] {
                assert_same_bits(&text);
            }
        }

        #[test]
        fn half_way_numbers_are_read_to_the_last_bit(bits in any::<u64>(), scale in 0i32..60) {
            // The half-way point of two neighbours with few bits has few enough digits to be written out.
            let double = (bits >> 11) as f64 * 2f64.powi(-scale.min(8));
            assert_same_bits(&format!("{double}"));
            assert_same_bits(&format!("{}", (bits >> 10) | 1));
        }

        #[test]
        fn hostile_text_is_read_as_the_standard_library_does(text in "[-+]?[0-9]{0,22}[.]?[0-9]{0,22}([eE][-+]?[0-9]{0,4})?") {
            match (number(&text), text.parse::<f64>()) {
                (Some((value, length)), Ok(expected)) => {
                    prop_assert_eq!(length, text.len());
                    prop_assert_eq!(value.to_bits(), expected.to_bits());
                }
                (Some(_), Err(_)) => prop_assert!(false, "{} was read", text),
                (None, _) => {}
            }
        }
    }
}
