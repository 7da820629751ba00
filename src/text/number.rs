//! How numbers are written for readers. Files and JSON hold numbers in full.

/// Shown in place of a missing number.
pub(crate) const NONE: &str = "–";

/// Numbers from here on are written with an exponent: their decimals are noise, and their digits would widen a table.
const LARGE: f64 = 1e9;

/// `12345` as `12,345`.
pub(crate) fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count that is only known roughly, to three digits: `12345` as `12,300`.
pub(crate) fn rounded(value: u64) -> String {
    let unit = 10_u64.pow(value.max(1).ilog10().saturating_sub(2));
    thousands((value + unit / 2) / unit * unit)
}

/// A number of rows on an axis, as `10,000`.
pub(crate) fn rows(value: f64) -> String {
    thousands(value.round() as u64)
}

/// A number of rows on an axis with little room, as `10k`.
pub(crate) fn short_rows(value: f64) -> String {
    if value >= 1000.0 { format!("{}k", rows(value / 1000.0)) } else { rows(value) }
}

/// A number with a fixed number of decimals, or with an exponent where it is very large, as a terminal shows it.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    if value.abs() < LARGE { format!("{value:.decimals$}") } else { format!("{value:.decimals$e}") }
}

/// The same with a sign: `+0.1234`.
pub(crate) fn signed(value: f64, decimals: usize) -> String {
    let sign = if value < 0.0 { "" } else { "+" };
    format!("{sign}{}", decimal(value, decimals))
}

/// A mean with as many decimals as three digits of its standard deviation have; both with exponents where they are long.
pub(crate) fn mean_and_spread(mean: f64, deviation: f64) -> String {
    if mean.abs() >= 1e6 || !(1e-4..1e6).contains(&deviation) {
        return format!("{mean:.3e} ± {deviation:.2e}");
    }
    let decimals = decimals_of(deviation, 3);
    format!("{mean:.decimals$} ± {deviation:.decimals$}")
}

/// The condition number of a matrix.
pub(crate) fn condition(value: f64) -> String {
    if value < 1e5 { format!("{value:.1}") } else { format!("{value:.1e}") }
}

/// A weight in percent. A small one does not look like zero.
pub(crate) fn percent(weight: f64) -> String {
    let percent = 100.0 * weight;
    if percent < 0.1 { format!("{percent:.3}") } else { format!("{percent:.1}") }
}

/// A number in a table or picture: with a fixed number of decimals, a true minus sign and no negative zero.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.to_string();
    }
    if value.abs() >= LARGE {
        return exponent(value, 2);
    }
    let text = format!("{value:.decimals$}");
    let size = text.trim_start_matches('-');
    if size.chars().all(|c| c == '0' || c == '.') { size.to_string() } else { text.replace('-', "−") }
}

/// A positive number to three significant digits.
pub(crate) fn significant(value: f64) -> String {
    match value {
        v if !v.is_finite() || v < 0.0 => NONE.to_string(),
        0.0 => "0".to_string(),
        v if v < 1e-4 => exponent(v, 0),
        v => fixed(v, decimals_of(v, 3)),
    }
}

/// A power of ten or a multiple, as `0.01` or `1000`.
pub(crate) fn power(value: f64) -> String {
    if (1e-4..1e5).contains(&value) { fixed(value, decimals_of(value, 1)) } else { exponent(value, 0) }
}

/// A ratio of two times.
pub(crate) fn ratio(value: f64) -> String {
    match value {
        v if v >= 9.95 => fixed(v, 0),
        v if v >= 0.995 => fixed(v, 1),
        v if v >= 0.01 => fixed(v, 2),
        _ => "< 0.01".to_string(),
    }
}

/// A p-value.
pub(crate) fn p_value(value: f64) -> String {
    if value < 1e-4 { "< 0.0001".to_string() } else { fixed(value, 4) }
}

/// A number with an exponent and true minus signs.
fn exponent(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$e}").replace('-', "−")
}

/// The decimals of a positive number that has this many significant digits.
fn decimals_of(value: f64, digits: i32) -> usize {
    (digits - 1 - value.log10().floor() as i32).max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators() {
        assert_eq!([thousands(7), thousands(170_000)], ["7", "170,000"]);
        assert_eq!([rounded(0), rounded(7), rounded(999), rounded(1995)], ["0", "7", "999", "2,000"]);
        assert_eq!([rows(9999.6), short_rows(999.0), short_rows(170_000.0)], ["10,000", "999", "170k"]);
    }

    #[test]
    fn numbers_are_rounded_for_tables() {
        assert_eq!(fixed(-9.654, 2), "−9.65");
        assert_eq!(fixed(-0.001, 2), "0.00");
        assert_eq!(fixed(f64::NAN, 2), NONE);
        assert_eq!([fixed(-1.234e300, 2), fixed(-123456789.5, 1)], ["−1.23e300", "−123456789.5"]);
        assert_eq!(significant(1234.5), "1234");
        assert_eq!(significant(1.2345), "1.23");
        assert_eq!(significant(0.012345), "0.0123");
        assert_eq!(significant(0.000012), "1e−5");
        assert_eq!([significant(0.0), significant(-1.0)], ["0", NONE]);
        assert_eq!([ratio(15.6), ratio(2.11), ratio(0.244), ratio(0.001)], ["16", "2.1", "0.24", "< 0.01"]);
        assert_eq!(p_value(0.0123), "0.0123");
        assert_eq!(p_value(1e-9), "< 0.0001");
        assert_eq!([power(0.001), power(0.5), power(20.0), power(1e-6)], ["0.001", "0.5", "20", "1e−6"]);
    }

    #[test]
    fn numbers_are_rounded_for_the_terminal() {
        assert_eq!([decimal(-1.23456, 4), decimal(2e9, 1)], ["-1.2346", "2.0e9"]);
        assert_eq!([signed(0.5, 1), signed(-0.5, 1)], ["+0.5", "-0.5"]);
        assert_eq!([percent(0.5), percent(0.0001)], ["50.0", "0.010"]);
        assert_eq!([condition(4.43), condition(2.3e7)], ["4.4", "2.3e7"]);
    }

    #[test]
    fn a_mean_has_the_decimals_of_its_spread() {
        for (mean, deviation, text) in [
            (1013.259, 4.3803, "1013.26 ± 4.38"),
            (70.25, 14.79, "70.2 ± 14.8"),
            (0.5, 250.0, "0 ± 250"),
            (0.0123456, 0.00123, "0.01235 ± 0.00123"),
            (2.5e7, 3.0, "2.500e7 ± 3.00e0"),
            (1.0, 1e-9, "1.000e0 ± 1.00e-9"),
        ] {
            assert_eq!(mean_and_spread(mean, deviation), text);
        }
    }
}
