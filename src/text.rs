//! Formatting of counts, lists, names and [numbers](number) in messages and reports.

// Without the command, messages need only counts.
#[cfg_attr(not(feature = "cli"), allow(dead_code))]
pub(crate) mod number;

// Tables have times of every kind, the command those of the present.
#[cfg(any(feature = "cli", feature = "csv"))]
#[cfg_attr(not(feature = "parquet"), allow(dead_code))]
pub(crate) mod iso8601;

#[cfg(any(feature = "cli", feature = "csv"))]
use std::borrow::Cow;

/// A number with its noun: `1 row`, `2 rows`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// At most `most` names, and how many more there are: `a, b and 3 more`.
pub(crate) fn listed(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown = names.take(most).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The same with each name in quotes.
pub(crate) fn quoted(names: &[impl AsRef<str>], most: usize) -> String {
    listed(names.iter().map(|name| format!("'{}'", name.as_ref())), most)
}

/// Ascending values of K, with consecutive ones as ranges: `2–4, 7`.
#[cfg(feature = "cli")]
pub(crate) fn runs_of_k(ks: &[usize]) -> String {
    let run = |run: &[usize]| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}–{last}"),
        [] => String::new(),
    };
    ks.chunk_by(|a, b| a + 1 == *b).map(run).collect::<Vec<_>>().join(", ")
}

/// Text that is safe to print. Control characters, except line feeds and tabs, and characters that change the writing
/// direction are escaped, as `\u{1b}`: in a name from a file they could change what a terminal shows.
#[cfg(feature = "cli")]
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| {
        c.is_control() && c != '\n' && c != '\t'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// A cell of a CSV file: in quotes if it has a delimiter, a quote or a line end.
#[cfg(any(feature = "cli", feature = "csv"))]
pub(crate) fn csv_cell(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(all(test, feature = "cli"))]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_that_is_needed() {
        let cells = ["plain text", "a,b", "say \"x\"", "two\nlines", ""].map(csv_cell);
        assert_eq!(cells, ["plain text", "\"a,b\"", "\"say \"\"x\"\"\"", "\"two\nlines\"", ""]);
    }

    #[test]
    fn runs_of_k_are_written_as_ranges() {
        let runs = [runs_of_k(&[7]), runs_of_k(&[2, 3, 4, 7]), runs_of_k(&[2, 4, 5]), runs_of_k(&[])];
        assert_eq!(runs, ["7", "2–4, 7", "2, 4–5", ""]);
    }

    #[test]
    fn long_lists_say_how_many_more_there_are() {
        let names = || ["a", "b", "c"].into_iter().map(String::from);
        assert_eq!([listed(names(), 2), listed(names(), 3)], ["a, b and 1 more", "a, b, c"]);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("Länge\tµ\n"), "Länge\tµ\n");
        assert_eq!(printable("a\u{1b}[31mb\r\u{9b}2J\u{7f}"), "a\\u{1b}[31mb\\u{d}\\u{9b}2J\\u{7f}");
        assert_eq!(printable("a\u{202e}b"), "a\\u{202e}b");
    }
}
