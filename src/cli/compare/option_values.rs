//! Values of the options of `compare`.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::data::Units;
use crate::experiment::{Contender, Pairs, SelectRule};

/// The learners that one item of `--algos` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Learners(pub Vec<Contender>);

pub(super) fn parse_learners(text: &str) -> Result<Learners, String> {
    let name = text.trim().to_ascii_lowercase().replace('-', "_");
    let is_selected = |contender: &Contender| {
        let profile = contender.profile();
        name == "all" || name == profile.id || name == profile.family
    };
    let selected: Vec<_> = Contender::ALL.iter().copied().filter(is_selected).collect();
    if selected.is_empty() {
        return Err(format!("give a list of {}", learner_list()));
    }
    Ok(Learners(selected))
}

/// The names that `--algos` accepts, families before their members.
pub(super) fn learner_list() -> String {
    let mut names: Vec<&str> = Vec::new();
    for profile in Contender::ALL.iter().map(|contender| contender.profile()) {
        for name in [profile.family, profile.id] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.push("all");
    names.join(", ")
}

/// A single learner, by its name in `--algos` or in the tables.
pub(super) fn parse_contender(text: &str) -> Result<Contender, String> {
    let named = Contender::ALL.iter().find(|contender| contender.name().eq_ignore_ascii_case(text.trim()));
    if let Some(&contender) = named {
        return Ok(contender);
    }
    match parse_learners(text)?.0.as_slice() {
        [one] => Ok(*one),
        several => {
            let names: Vec<&str> = several.iter().map(|contender| contender.profile().id).collect();
            Err(format!("'{text}' selects several learners: name one of {}", names.join(", ")))
        }
    }
}

/// The units to show scores in, or each set's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShownUnits(pub Option<Units>);

impl ValueEnum for ShownUnits {
    fn value_variants<'a>() -> &'a [Self] {
        &[ShownUnits(Some(Units::Raw)), ShownUnits(Some(Units::Zscore)), ShownUnits(None)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            Some(Units::Raw) => PossibleValue::new("raw").help("The data's own units"),
            Some(Units::Zscore) => {
                PossibleValue::new("zscore").help("Columns scaled to standard deviation 1")
            }
            None => PossibleValue::new("paper").help("For each set the units of the paper's figures"),
        })
    }
}

impl ValueEnum for SelectRule {
    fn value_variants<'a>() -> &'a [Self] {
        &[SelectRule::Validation, SelectRule::Evidence, SelectRule::Paper]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            SelectRule::Validation => {
                ("validation", "In each fold by the score of validation rows, a part of the training rows")
            }
            SelectRule::Evidence => {
                ("evidence", "In each fold by the score of training rows just before they are learned")
            }
            SelectRule::Paper => (
                "paper",
                "As in the paper: the first K that the next one does not significantly improve on, by the test rows of all folds",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

impl ValueEnum for Pairs {
    fn value_variants<'a>() -> &'a [Self] {
        &[Pairs::Rows, Pairs::Folds]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Pairs::Rows => PossibleValue::new("rows").help("The scores of test rows"),
            Pairs::Folds => PossibleValue::new("folds").help("The mean scores of folds"),
        })
    }
}

pub(super) fn parse_folds(text: &str) -> Result<u16, String> {
    let folds = text.parse().ok().filter(|&folds| folds >= 2);
    folds
        .ok_or_else(|| "give a number from 2 on; to learn from one file and score another, use --test".into())
}

/// The value of `--dequantize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dequantize {
    Off,
    Auto,
    Both,
    Columns(Vec<String>),
}

pub(super) fn parse_dequantize(text: &str) -> Result<Dequantize, String> {
    Ok(match text {
        "off" => Dequantize::Off,
        "auto" => Dequantize::Auto,
        "both" => Dequantize::Both,
        "" => return Err("give 'auto', 'both', 'off' or names of columns".into()),
        list => Dequantize::Columns(list.split(',').map(|name| name.trim().to_string()).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_selects_one_learner_or_a_family() {
        for &contender in Contender::ALL {
            let profile = contender.profile();
            let family: Vec<_> = Contender::ALL
                .iter()
                .copied()
                .filter(|other| other.profile().family == profile.family)
                .collect();
            assert_eq!(parse_learners(profile.family).unwrap().0, family);
            assert_eq!(parse_contender(profile.id), Ok(contender));
        }
        assert_eq!(parse_learners("all").unwrap().0, Contender::ALL);
    }

    #[test]
    fn case_and_hyphens_do_not_matter() {
        assert_eq!(parse_learners("oEM"), parse_learners("oem"));
        assert_eq!(parse_contender(" obmm-discounted"), Ok(Contender::ObmmDiscounted));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list_families_first() {
        let refusal = parse_learners("kmeans").unwrap_err();
        let listed: Vec<&str> = refusal.strip_prefix("give a list of ").unwrap().split(", ").collect();
        let place = |name: &str| {
            let places: Vec<usize> = (0..listed.len()).filter(|&i| listed[i] == name).collect();
            assert_eq!(places.len(), 1, "{name} in {listed:?}");
            places[0]
        };
        for profile in Contender::ALL.iter().map(|contender| contender.profile()) {
            assert!(place(profile.family) <= place(profile.id), "{listed:?}");
        }
        assert_eq!(listed.last(), Some(&"all"));
    }

    #[test]
    fn a_single_learner_is_named_as_in_the_list_or_in_the_tables() {
        for &contender in Contender::ALL {
            assert_eq!(parse_contender(contender.name()), Ok(contender));
        }
        assert_eq!(parse_contender("oem"), Ok(Contender::Oem));
        let refusal = parse_contender("all").unwrap_err();
        assert!(refusal.contains("name one of start, oem_printed, oem_counted"), "{refusal}");
    }
}
