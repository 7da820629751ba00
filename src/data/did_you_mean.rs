//! The name that a misspelt one most likely means.

use crate::text::listed;

/// The name most similar to `wanted`, if one is similar enough to be meant or begins with it. Case does not matter.
pub(super) fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let letters = wanted.chars().count();
    names
        .map(|name| (strsim::levenshtein(&wanted, &name.to_lowercase()), name))
        .filter(|(distance, name)| {
            *distance <= (letters / 3).max(1) || letters > 2 && name.to_lowercase().starts_with(&wanted)
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The column that may be meant, and the columns of the data.
pub(super) fn columns_there_are(wanted: &str, nearest: Option<&str>, columns: &[String]) -> String {
    const MAX: usize = 20;
    // In a list, a name with a comma looks like two.
    let is_part = |name: &String| name.contains(',') && name.split(',').any(|part| part.trim() == wanted);
    if let Some(place) = columns.iter().position(is_part) {
        let (name, number) = (&columns[place], place + 1);
        return format!(
            "if '{name}' is meant, choose it by its number, {number}, because its name has a comma"
        );
    }
    let columns = format!("columns are {}", listed(columns.iter().cloned(), MAX));
    match nearest {
        Some(name) => format!("did you mean '{name}'? The {columns}"),
        None => format!("the {columns}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_meant() {
        let names = || ["abalone", "airfoil"].into_iter();
        assert_eq!(did_you_mean("Abalon", names()), Some("abalone"));
        assert_eq!(did_you_mean("air", names()), Some("airfoil"));
        assert_eq!(did_you_mean("iris", names()), None);
    }
}
