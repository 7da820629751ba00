//! What one cell is: a number, a number in another form, a date, a missing value or a word.

use crate::data::MAX_VALUE;
use crate::data::bad_row::BadCell;

/// The finite number in a cell, which may have blanks around it.
///
/// The standard library parses it, so every value is correctly rounded. NaN, infinities and numbers beyond ±1e150 are
/// refused.
pub(super) fn parse_number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell.trim_ascii()).ok()?;
    text.parse::<f64>().ok().filter(|value| value.abs() <= MAX_VALUE)
}

/// Why [`parse_number`] refused a cell.
pub(super) fn why_bad(cell: &[u8]) -> BadCell {
    match cell.trim_ascii() {
        cell if is_not_finite(cell) => BadCell::NotFinite,
        cell if has_thousands_commas(cell) => BadCell::Thousands,
        cell if is_date(cell) => BadCell::Date,
        _ => BadCell::NotANumber,
    }
}

/// Whether a cell is NaN, infinite or too large.
pub(super) fn is_not_finite(cell: &[u8]) -> bool {
    let value = std::str::from_utf8(cell.trim_ascii()).ok().and_then(|text| text.parse::<f64>().ok());
    value.is_some_and(|value| !(value.abs() <= MAX_VALUE))
}

/// Whether a cell means that its value is missing.
pub(super) fn is_missing(cell: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] =
        [b"", b"na", b"nan", b"?", b"-", b".", b"n/a", b"#n/a", b"null", b"none", b"-nan", b"+nan"];
    let cell = cell.trim_ascii();
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(cell))
}

/// What the commas in a number are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::data) enum Comma {
    /// One before the decimals, as in `3,14`.
    Decimal,
    /// One before every three digits, as in `1,234,567.5` and `1,234`.
    Thousands,
}

/// What the commas in a cell are, if it is a number written with commas.
pub(super) fn comma(cell: &[u8]) -> Option<Comma> {
    let cell = cell.trim_ascii();
    if has_thousands_commas(cell) {
        Some(Comma::Thousands)
    } else {
        is_decimal_comma(cell).then_some(Comma::Decimal)
    }
}

fn has_thousands_commas(cell: &[u8]) -> bool {
    let digits = cell.strip_prefix(b"-").or(cell.strip_prefix(b"+")).unwrap_or(cell);
    let whole = digits.split(|&byte| byte == b'.').next().unwrap_or_default();
    let groups: Vec<&[u8]> = whole.split(|&byte| byte == b',').collect();
    let in_threes = groups.len() > 1
        && groups.concat().iter().all(u8::is_ascii_digit)
        && (1..=3).contains(&groups[0].len())
        && groups[0] != b"0"
        && groups[1..].iter().all(|group| group.len() == 3);
    let without: Vec<u8> = cell.iter().copied().filter(|&byte| byte != b',').collect();
    in_threes && parse_number(&without).is_some()
}

/// Whether a cell is a date or a time of day, such as `2024-01-31`, `31.1.2024`, `1/31/24 10:15` or `10:15:00`.
pub(super) fn is_date(cell: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(cell.trim_ascii()) else { return false };
    let day_or_time = text.split(['T', ' ']).next().unwrap_or_default();
    ['-', '/', '.', ':'].iter().any(|&separator| {
        // Seconds may have decimals.
        let whole = if separator == ':' { day_or_time.split('.').next() } else { Some(day_or_time) };
        let parts: Vec<&str> = whole.unwrap_or_default().split(separator).collect();
        let is_part =
            |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let enough = parts.len() == 3 || separator == ':' && parts.len() == 2;
        enough && parts.iter().all(is_part)
    })
}

/// Whether a cell is a number with a sign of percent or of a currency before or after it.
pub(super) fn is_number_with_sign(cell: &[u8]) -> bool {
    const SIGNS: [&str; 4] = ["%", "$", "€", "£"];
    let cell = cell.trim_ascii();
    let without = |sign: &&str| cell.strip_suffix(sign.as_bytes()).or(cell.strip_prefix(sign.as_bytes()));
    SIGNS.iter().filter_map(without).any(|number| parse_number(number).is_some() || comma(number).is_some())
}

/// Whether a comma comes before the decimals. Points may separate thousands, as in `1.234,5`.
fn is_decimal_comma(cell: &[u8]) -> bool {
    let Some(comma) = cell.iter().position(|&byte| byte == b',') else { return false };
    let digit_at = |i: usize| cell.get(i).is_some_and(u8::is_ascii_digit);
    if comma == 0 || !digit_at(comma - 1) || !digit_at(comma + 1) {
        return false;
    }
    let (whole, decimals) = cell.split_at(comma);
    let swapped: Vec<u8> = whole.iter().map(|&byte| if byte == b'.' { b',' } else { byte }).collect();
    if decimals.contains(&b'.') || swapped != whole && !has_thousands_commas(&swapped) {
        return false;
    }
    let mut pointed: Vec<u8> = whole.iter().copied().filter(|&byte| byte != b'.').collect();
    pointed.push(b'.');
    pointed.extend_from_slice(&decimals[1..]);
    parse_number(&pointed).is_some()
}

/// A cell as text for a message: lossy, control characters escaped, cut to 40 characters.
pub(super) fn shown(cell: &[u8]) -> String {
    const MAX: usize = 40;
    let text = String::from_utf8_lossy(&cell[..cell.len().min(8 * MAX)]);
    let escaped: Vec<char> = text
        .trim()
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    match escaped.get(..MAX) {
        Some(head) if escaped.len() > MAX => head.iter().chain(['…'].iter()).collect(),
        _ => escaped.iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_rust_reads_them() {
        for (cell, value) in [
            ("1", 1.0),
            (" +2.5\t", 2.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1e5", 1e5),
            ("1E-3", 1e-3),
            ("0.1", 0.1),
            ("1424696631913248572", 1424696631913248572.0),
        ] {
            assert_eq!(parse_number(cell.as_bytes()), Some(value), "{cell}");
        }
    }

    #[test]
    fn words_and_what_is_not_finite_are_refused() {
        for cell in "| |x|NaN|nan|inf|-Infinity|1e999|1_000|0x10|1,5|1 2|--1|\u{a0}1".split('|') {
            assert_eq!(parse_number(cell.as_bytes()), None, "{cell}");
        }
        assert_eq!(parse_number(b"\xff1"), None);
    }

    #[test]
    fn a_refused_cell_has_its_reason() {
        assert_eq!(why_bad(b"tall"), BadCell::NotANumber);
        assert_eq!(why_bad(b"1,234"), BadCell::Thousands);
        assert_eq!(why_bad(b"2024-01-31"), BadCell::Date);
        assert_eq!(why_bad(b"\xff"), BadCell::NotANumber);
        assert_eq!(why_bad(b"1e999"), BadCell::NotFinite);
        assert_eq!(why_bad(b"-inf"), BadCell::NotFinite);
    }

    #[test]
    fn missing_value_words_are_known() {
        for cell in ["", " ", "?", "NA", " na\t", "null", "NaN", "nan", "-NaN", "N/A"] {
            assert!(is_missing(cell.as_bytes()), "{cell}");
        }
        for cell in ["x", "5", "inf", "-Infinity", "1e999", "nano", "\u{a0}"] {
            assert!(!is_missing(cell.as_bytes()), "{cell}");
        }
    }

    #[test]
    fn numbers_with_commas_are_known() {
        for cell in ["3,14", "-0,5", " 1,5e3 ", "0,125", "1234,567", "1.234,5", "-2.015.000,27"] {
            assert_eq!(comma(cell.as_bytes()), Some(Comma::Decimal), "{cell}");
        }
        for cell in ["1,234", "1,234.5", "-12,345,678", " 999,000 "] {
            assert_eq!(comma(cell.as_bytes()), Some(Comma::Thousands), "{cell}");
        }
        for cell in ["3.14", "a,b", ",5", "5,", "1,2,3", "", "1,234,56", "1.23,5", "1,5.2"] {
            assert_eq!(comma(cell.as_bytes()), None, "{cell}");
        }
    }

    #[test]
    fn dates_and_times_are_known() {
        for cell in
            ["2024-01-31", "31.1.2024", "1/31/24 10:15", "2024-01-31T10:15:00Z", "10:15", " 10:15:00.5"]
        {
            assert!(is_date(cell.as_bytes()), "{cell}");
        }
        for cell in ["3.14", "a-b-c", "1-2", "12345-1-1", "192.168.0.1", "", "M"] {
            assert!(!is_date(cell.as_bytes()), "{cell}");
        }
    }

    #[test]
    fn a_long_cell_is_cut_for_a_message() {
        assert_eq!(shown(b" a\nb "), "a\\nb");
        assert_eq!(shown(&[b'x'; 40]), "x".repeat(40));
        assert_eq!(shown(&[b'x'; 1000]), "x".repeat(40) + "…");
    }
}
