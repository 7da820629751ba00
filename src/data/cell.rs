//! One cell: is it a number, and if not, what is it?

use super::error::BadCell;

/// Numbers beyond this are refused: their squares would not be numbers any more.
const LARGEST: f64 = 1e150;

/// The finite number in a cell, blanks around it aside.
///
/// This is Rust's own parser, so every value is correctly rounded; what it reads as NaN, infinite or beyond ±1e150 is
/// refused.
pub(super) fn parse_number(cell: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(cell.trim_ascii()).ok()?;
    text.parse::<f64>().ok().filter(|value| value.abs() <= LARGEST)
}

/// Why [`parse_number`] refused a cell.
pub(super) fn why_bad(cell: &[u8]) -> BadCell {
    match cell.trim_ascii() {
        b"" => BadCell::Empty,
        cell if is_not_finite(cell) => BadCell::NotFinite,
        _ => BadCell::NotANumber,
    }
}

fn is_not_finite(cell: &[u8]) -> bool {
    let value = std::str::from_utf8(cell).ok().and_then(|text| text.parse::<f64>().ok());
    value.is_some_and(|value| !(value.abs() <= LARGEST))
}

/// Whether a cell stands for "no value here" rather than for a name or a category.
pub(super) fn is_missing(cell: &[u8]) -> bool {
    const WORDS: [&[u8]; 9] = [b"", b"?", b"-", b".", b"na", b"n/a", b"#n/a", b"null", b"none"];
    let cell = cell.trim_ascii();
    WORDS.iter().any(|word| word.eq_ignore_ascii_case(cell)) || is_not_finite(cell)
}

/// Whether a cell is a number written with one comma, as in `3,14`.
pub(super) fn is_decimal_comma(cell: &[u8]) -> bool {
    let cell = cell.trim_ascii();
    let Some(comma) = cell.iter().position(|&byte| byte == b',') else { return false };
    let digit_at = |i: usize| cell.get(i).is_some_and(u8::is_ascii_digit);
    if comma == 0 || !digit_at(comma - 1) || !digit_at(comma + 1) || cell.contains(&b'.') {
        return false;
    }
    let mut pointed = cell.to_vec();
    pointed[comma] = b'.';
    parse_number(&pointed).is_some()
}

/// A cell as text for a message: lossy, control characters escaped, cut to 40 characters.
pub(super) fn shown(cell: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&cell[..cell.len().min(8 * MOST)]);
    let escaped: Vec<char> = text
        .trim()
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    match escaped.get(..MOST) {
        Some(head) if escaped.len() > MOST => head.iter().chain(['…'].iter()).collect(),
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
        for cell in [
            "",
            " ",
            "x",
            "NaN",
            "nan",
            "inf",
            "-Infinity",
            "1e999",
            "1_000",
            "0x10",
            "1,5",
            "1 2",
            "--1",
            "\u{a0}1",
        ] {
            assert_eq!(parse_number(cell.as_bytes()), None, "{cell}");
        }
        assert_eq!(parse_number(b"\xff1"), None);
    }

    #[test]
    fn a_refused_cell_has_its_reason() {
        assert_eq!(why_bad(b"  "), BadCell::Empty);
        assert_eq!(why_bad(b"NA"), BadCell::NotANumber);
        assert_eq!(why_bad(b"\xff"), BadCell::NotANumber);
        assert_eq!(why_bad(b"1e999"), BadCell::NotFinite);
        assert_eq!(why_bad(b"-inf"), BadCell::NotFinite);
    }

    #[test]
    fn missing_value_words_are_known() {
        for cell in ["", "?", "NA", "null", "NaN", "N/A"] {
            assert!(is_missing(cell.as_bytes()), "{cell}");
        }
        assert!(!is_missing(b"x") && !is_missing(b"5"));
    }

    #[test]
    fn decimal_commas_are_known() {
        for cell in ["3,14", "-0,5", " 1,5e3 "] {
            assert!(is_decimal_comma(cell.as_bytes()), "{cell}");
        }
        for cell in ["3.14", "1,234.5", "a,b", ",5", "5,", "1,2,3", ""] {
            assert!(!is_decimal_comma(cell.as_bytes()), "{cell}");
        }
    }

    #[test]
    fn a_long_cell_is_cut_for_a_message() {
        assert_eq!(shown(b" a\nb "), "a\\nb");
        assert_eq!(shown(&[b'x'; 40]), "x".repeat(40));
        assert_eq!(shown(&[b'x'; 1000]), "x".repeat(40) + "…");
    }
}
