//! Numbers from plain digits, with the bits of `str::parse` and several times as fast. The csv path spends most of its time
//! here, which is why this is written by hand.
//!
//! The digits make an integer `w` and an exponent `q`: `x = w·10^q = w·5^q·2^q`. With 64 bits of `5^q`, the upper half of one
//! 128-bit product is correct to its last bit, which nearly always determines how `x` rounds to 53 bits (Eisel and
//! Lemire). Otherwise, one operation on two exact doubles rounds once (Clinger). The standard library reads what neither
//! determines.

/// Powers of five up to this one, and their reciprocals, can be computed with 128-bit integers.
const MOST_EXPONENT: i64 = 27;
/// Any number of this many digits fits in 64 bits.
const MOST_DIGITS: usize = 19;

/// `5^q ≈ bits·2^exponent`, truncated to 64 bits.
#[derive(Clone, Copy)]
struct PowerOfFive {
    bits: u64,
    exponent: i64,
}

/// From `q = −MOST_EXPONENT` up.
const POWERS_OF_FIVE: [PowerOfFive; 2 * MOST_EXPONENT as usize + 1] = powers_of_five();

const fn powers_of_five() -> [PowerOfFive; 2 * MOST_EXPONENT as usize + 1] {
    let mut table = [PowerOfFive { bits: 0, exponent: 0 }; 2 * MOST_EXPONENT as usize + 1];
    let mut q = 0;
    while q <= MOST_EXPONENT {
        let power = 5u64.pow(q as u32);
        let zeros = power.leading_zeros();
        let up = (MOST_EXPONENT + q) as usize;
        let down = (MOST_EXPONENT - q) as usize;
        // 2^(127 − zeros)/5^q lies between 2^63 and 2^64.
        let exponent = 127 - zeros;
        table[down] =
            PowerOfFive { bits: ((1u128 << exponent) / power as u128) as u64, exponent: -(exponent as i64) };
        table[up] = PowerOfFive { bits: power << zeros, exponent: -(zeros as i64) };
        q += 1;
    }
    table
}

/// Powers of ten that are exact as doubles.
const EXACT_POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The number at the beginning of `text`, and its length in bytes; `None` if the fast path cannot read it.
///
/// The longest possible number is taken; the caller checks the byte after it. At least eight bytes must follow the last
/// digits that are read.
#[inline]
pub(super) fn leading_number(text: &[u8]) -> Option<(f64, usize)> {
    let first = eight_bytes(text, 0)?;
    let negative = first as u8 == b'-';
    let begin = usize::from(negative);
    let (mut w, count) = leading_digits(first >> (8 * begin));
    let mut end = begin + count;
    if count > 6 {
        (w, end) = all_digits(text, begin)?;
    }
    let mut count = end - begin;
    let mut q = 0;
    let mut next = *text.get(end)?;
    if next == b'.' {
        let point = end + 1;
        (w, end) = fraction(text, point, w)?;
        count += end - point;
        q = -((end - point) as i64);
        next = *text.get(end)?;
    }
    if count == 0 || (count > MOST_DIGITS && count - leading_zeros(&text[begin..]) > MOST_DIGITS) {
        return None;
    }
    if matches!(next, b'e' | b'E') {
        let (written, length) = written_exponent(&text[end + 1..])?;
        q += written;
        end += 1 + length;
    }
    let magnitude = scaled(w, q)?;
    Some((f64::from_bits(magnitude.to_bits() | u64::from(negative) << 63), end))
}

/// Appends the digits after a point to `w`. Returns the result and where the digits end.
///
/// Numbers written to the last digit have 15 to 17 digits here. Eight digits are expected, up to eight more are counted, and
/// one more is looked for. This avoids branches that the processor would mispredict.
#[inline]
fn fraction(text: &[u8], point: usize, w: u64) -> Option<(u64, usize)> {
    let (value, count) = leading_digits(eight_bytes(text, point)?);
    let w = w.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value);
    if count < 8 {
        return Some((w, point + count));
    }
    let (value, count) = leading_digits(eight_bytes(text, point + 8)?);
    let w = w.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value);
    let last = text.get(point + 16)?.wrapping_sub(b'0');
    let one_more = usize::from(last < 10) & (count >> 3);
    let w = w.wrapping_mul(POWERS_OF_TEN[one_more]).wrapping_add(u64::from(last) * one_more as u64);
    let end = point + 8 + count + one_more;
    // Only possible if there was one more. Testing that first would be an unpredictable branch.
    if text.get(end)?.is_ascii_digit() {
        let (more, end) = all_digits(text, end)?;
        // These fit if the number begins with zeros.
        let w = POWERS_OF_TEN.get(end - (point + 17)).map(|&power| w.wrapping_mul(power).wrapping_add(more));
        return Some((w?, end));
    }
    Some((w, end))
}

/// A run of digits of any length, and where it ends. The caller refuses more digits than fit.
fn all_digits(text: &[u8], begin: usize) -> Option<(u64, usize)> {
    let (mut w, mut end) = (0u64, begin);
    loop {
        let (value, count) = leading_digits(eight_bytes(text, end)?);
        w = w.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(value);
        end += count;
        if count < 8 {
            return Some((w, end));
        }
    }
}

const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Eight bytes, the first in the lowest bits.
#[inline]
fn eight_bytes(text: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(text.get(at..at + 8)?.try_into().ok()?))
}

/// The value and the count of the digits at the beginning of eight bytes, of which the first is in the lowest bits.
#[inline]
fn leading_digits(bytes: u64) -> (u64, usize) {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
    const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x7f - b'9'; 8]);
    // Carries and borrows begin at a byte that is not a digit, so they change only bytes that are not used.
    let values = bytes.wrapping_sub(ZEROS);
    let others = (bytes.wrapping_add(ABOVE_NINE) | values) & HIGH_BITS;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return (0, 0);
    }
    // Replace what follows by zeros in front, then combine neighbours, pairs and groups of four.
    let digits = values << (64 - 8 * count);
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xffff_ffff;
    (eight, count)
}

/// How many zeros are at the beginning of a number.
fn leading_zeros(number: &[u8]) -> usize {
    number.iter().take_while(|byte| matches!(byte, b'0' | b'.')).filter(|&&byte| byte == b'0').count()
}

/// The exponent after an `e`, and its length in bytes.
fn written_exponent(text: &[u8]) -> Option<(i64, usize)> {
    let signed = usize::from(matches!(text.first()?, b'+' | b'-'));
    let digits = text[signed..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    // With more digits it is out of range or has leading zeros.
    if !(1..=3).contains(&digits) {
        return None;
    }
    let value =
        text[signed..signed + digits].iter().fold(0, |value, digit| 10 * value + i64::from(digit - b'0'));
    Some((if text[0] == b'-' { -value } else { value }, signed + digits))
}

/// `w·10^q`, correctly rounded; `None` if the rounding is not determined here.
#[inline]
fn scaled(w: u64, q: i64) -> Option<f64> {
    if w == 0 {
        return Some(0.0);
    }
    if !(-MOST_EXPONENT..=MOST_EXPONENT).contains(&q) {
        return None;
    }
    rounded_product(w, q).or_else(|| exact_quotient(w, q))
}

#[inline]
fn rounded_product(w: u64, q: i64) -> Option<f64> {
    let power = POWERS_OF_FIVE[(q + MOST_EXPONENT) as usize];
    let zeros = w.leading_zeros();
    let product = u128::from(w << zeros) * u128::from(power.bits);
    let upper = (product >> 64) as u64;
    // 54 bits: those of a double and one for rounding. The true product is larger by less than one in the last bit of
    // `upper`. The bits below must show that it is not half-way and does not round to the other side.
    let below = 9 + (upper >> 63) as u32;
    let rest = upper & ((1 << below) - 1);
    if rest == 0 || rest == (1 << below) - 1 {
        return None;
    }
    let mantissa = ((upper >> below) + 1) >> 1;
    let exponent = i64::from(below) + 65 - i64::from(zeros) + power.exponent + q;
    // The leading bit of the mantissa adds one to the exponent, and so does rounding up to a power of two.
    Some(f64::from_bits((((exponent + 1074) as u64) << 52) + mantissa))
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

    /// Reads a text with enough after it to look ahead.
    fn number(text: &str) -> Option<(f64, usize)> {
        leading_number(format!("{text},.......").as_bytes())
    }

    fn assert_same_bits(text: &str) {
        if let Some((value, length)) = number(text) {
            assert_eq!(length, text.len(), "{text}");
            assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
    }

    #[test]
    fn plain_numbers_are_read_here() {
        for text in [
            "0",
            "-0",
            "7",
            "-12.5",
            "0.1",
            "5.",
            ".5",
            "007",
            "1e5",
            "1.25E-7",
            "-6.190031619141795",
            "0.00009471058003163635",
            "1424696631913248572",
            "1.234567890123456789e+00",
            "0.000",
            "12345678",
            "123456789012345.6",
        ] {
            assert!(number(text).is_some(), "{text}");
            assert_same_bits(text);
        }
    }

    #[test]
    fn what_takes_a_closer_look_is_left_to_others() {
        for text in [
            "",
            "-",
            ".",
            "-.",
            "+1",
            " 1",
            "x",
            "nan",
            "inf",
            "1e",
            "1e+",
            "1e99999",
            "e5",
            "12345678901234567890",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(leading_number(b"1.5\n"), None, "too near the end");
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
                (Some((_, length)), Err(_)) => prop_assert!(length < text.len(), "{} was read", text),
                (None, _) => {}
            }
        }
    }
}
