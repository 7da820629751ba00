//! Words that several modules say things with.

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
