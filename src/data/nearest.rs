//! The name that a misspelt one most likely means.

/// The name most similar to `wanted`, if one is similar enough to be meant or begins with it. Case does not matter.
pub(super) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let letters = wanted.chars().count();
    names
        .map(|name| (edit_distance(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| {
            *distance <= (letters / 3).max(1) || letters > 2 && name.to_lowercase().starts_with(&wanted)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The Levenshtein distance between two words.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_meant() {
        let names = || ["abalone", "airfoil"].into_iter();
        assert_eq!(nearest("Abalon", names()), Some("abalone"));
        assert_eq!(nearest("air", names()), Some("airfoil"));
        assert_eq!(nearest("iris", names()), None);
    }

    #[test]
    fn edit_distances_are_right() {
        for (from, to, distance) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0)]
        {
            assert_eq!(edit_distance(from, to), distance, "{from} {to}");
        }
    }
}
