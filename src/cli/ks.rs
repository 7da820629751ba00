//! Numbers of components and other ranges of numbers, as options give them.

use std::ops::RangeInclusive;

use crate::learn::Components;

/// The numbers of components to learn, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ks(pub Vec<usize>);

/// Parses `5`, `2..10`, which is 2 to 10 inclusive, as in the paper, or a list of such: `2,3,5..8`.
pub(super) fn parse_k(text: &str) -> Result<Ks, String> {
    let mut ks = Vec::new();
    for part in text.split(',') {
        ks.extend(parse_k_range(part)?);
    }
    ks.sort_unstable();
    ks.dedup();
    Ok(Ks(ks))
}

/// Parses what [`parse_k`] does, or `auto`, where K is learned, or `auto:2..50` with bounds.
pub(super) fn parse_components(text: &str) -> Result<Components, String> {
    let Some(bounds) = text.strip_prefix("auto") else {
        return parse_k(text).map(|ks| Components::Given(ks.0));
    };
    if bounds.is_empty() {
        return Ok(Components::learned(Components::DEFAULT_BOUNDS));
    }
    let bounds = bounds.strip_prefix(':').ok_or("write auto, or auto:2..50 with bounds")?;
    parse_k_range(bounds).map(Components::learned)
}

fn parse_k_range(text: &str) -> Result<RangeInclusive<usize>, String> {
    parse_range(text, |text| match text.parse::<usize>() {
        Ok(0) => Err("K must be at least 1".to_string()),
        Ok(k) if k > MAX_COMPONENTS => Err(format!("K must be at most {MAX_COMPONENTS}")),
        Ok(k) => Ok(k),
        Err(_) => Err("give a number, a range such as 2..10, a list such as 2,3,5, or auto".to_string()),
    })
}

/// Parses `5` or `2..10`, with both ends included; `number` parses an end.
pub(super) fn parse_range(
    text: &str,
    number: impl Fn(&str) -> Result<usize, String>,
) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| number(text.trim());
    let Some((low, high)) = text.split_once("..") else { return number(text).map(|k| k..=k) };
    let (low, high) = (number(low)?, number(high.trim_start_matches('='))?);
    if low > high {
        return Err(format!("the range ends before it begins: write {high}..{low}"));
    }
    Ok(low..=high)
}

const MAX_COMPONENTS: usize = 10_000;
