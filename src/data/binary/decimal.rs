//! Decimals: an integer and the number of its digits after the point.

/// The double that is nearest to `value` / 10^`scale`, as if it were parsed from text.
pub(super) fn decimal(value: i128, scale: i32) -> f64 {
    // Both are exact doubles, so one division rounds once.
    if value.unsigned_abs() <= 1 << 53 && (0..=22).contains(&scale) {
        return value as f64 / 10f64.powi(scale);
    }
    // An exponent of that size overflows or vanishes.
    format!("{value}e{}", -i64::from(scale)).parse().unwrap_or(f64::INFINITY)
}

/// The decimal as text.
pub(super) fn decimal_text(value: i128, scale: i32) -> String {
    // A file may claim any scale.
    let Ok(scale @ 0..=100) = usize::try_from(scale) else {
        return format!("{value}e{}", -i64::from(scale));
    };
    let digits = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// The integer in up to 16 bytes, of which the first is the highest.
pub(super) fn integer(bytes: &[u8]) -> Option<i128> {
    if bytes.is_empty() || bytes.len() > 16 {
        return None;
    }
    let mut wide = [if bytes[0] >= 0x80 { 0xff } else { 0 }; 16];
    wide[16 - bytes.len()..].copy_from_slice(bytes);
    Some(i128::from_be_bytes(wide))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_numbers_that_their_text_means() {
        let values = [
            (110, 2),
            (-7, 1),
            (0, 5),
            (12345678901234567890, 10),
            (-99999999999999999999999999, 26),
            (5, 30),
            (3, -2),
        ];
        for (value, scale) in values {
            let text = decimal_text(value, scale);
            assert_eq!(decimal(value, scale), text.parse::<f64>().unwrap(), "{text}");
        }
        assert_eq!(decimal_text(-7, 2), "-0.07");
        assert_eq!(decimal(1, i32::MAX), 0.0);
        assert_eq!(decimal(1, i32::MIN), f64::INFINITY);
    }

    #[test]
    fn integers_keep_their_sign() {
        assert_eq!(integer(&[0xff, 0xfe]), Some(-2));
        assert_eq!(integer(&[0x00, 0xfe]), Some(254));
        assert_eq!((integer(&[]), integer(&[0; 17])), (None, None));
    }
}
