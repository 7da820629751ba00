//! Values of the options of `compare`.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::cli::option_values::spell;
use crate::experiment::{Contender, Units};
use crate::learn::BlindPrior;
use crate::report::{Pairs, SelectRule};

/// The learners that one item of `--algos` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Learners(pub Vec<Contender>);

pub(super) fn parse_learners(text: &str) -> Result<Learners, String> {
    let name = text.trim().to_ascii_lowercase().replace('-', "_");
    if let Some(one) = Contender::named(&name) {
        return Ok(Learners(vec![one]));
    }
    let is_selected = |contender: &Contender| {
        name == "all" || contender.profile().is_some_and(|profile| name == group(profile.family))
    };
    let selected: Vec<_> = Contender::ALL.iter().filter(|one| is_selected(one)).cloned().collect();
    if selected.is_empty() {
        return Err(format!("give a list of {}", learner_list()));
    }
    Ok(Learners(selected))
}

/// The name that selects a family.
fn group(family: &str) -> String {
    format!("{family}_all")
}

/// The names that `--algos` accepts: learners, and then families of several.
pub(super) fn learner_list() -> String {
    let profiles = || Contender::ALL.iter().filter_map(Contender::profile);
    let mut names: Vec<String> = profiles().map(|profile| profile.id.to_string()).collect();
    for family in profiles().map(|profile| profile.family) {
        let has_several = profiles().filter(|profile| profile.family == family).count() > 1;
        if has_several && !names.contains(&group(family)) {
            names.push(group(family));
        }
    }
    names.push("all".into());
    names.join(", ")
}

/// A single learner, by its name in `--algos` or in the tables.
pub(super) fn parse_contender(text: &str) -> Result<Contender, String> {
    let named = Contender::ALL.iter().find(|contender| contender.name().eq_ignore_ascii_case(text.trim()));
    if let Some(contender) = named {
        return Ok(contender.clone());
    }
    let one_of = |learners: &[Contender]| {
        let names: Vec<&str> = learners.iter().map(Contender::id).collect();
        format!("name one of {}", names.join(", "))
    };
    match parse_learners(text) {
        Ok(Learners(learners)) if learners.len() == 1 => Ok(learners[0].clone()),
        Ok(Learners(several)) => Err(format!("'{text}' selects several learners: {}", one_of(&several))),
        Err(_) => Err(format!("there is no such learner: {}, or a --learner", one_of(Contender::ALL))),
    }
}

/// The order in which training rows are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Order {
    /// Shuffled by the seed
    #[default]
    Shuffled,
    /// As in the file
    File,
}

/// The start of oEM and oBMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum StartChoice {
    /// A mixture fitted to the first rows
    #[default]
    Fitted,
    /// Components drawn around the first few rows, instead of the online learners of --algos
    Blind,
    /// Both
    Both,
}

impl StartChoice {
    pub fn apply(self, contenders: &mut Vec<Contender>) {
        if self == StartChoice::Blind {
            contenders.retain(|contender| !contender.is_online());
        }
        if self != StartChoice::Fitted {
            contenders.extend([Contender::OemBlind, Contender::ObmmBlind]);
        }
    }
}

/// [`BlindPrior::default`] as the option has it.
pub(super) const DEFAULT_BLIND_PRIOR: &str = "0.1,0.3";

pub(super) fn parse_blind_prior(text: &str) -> Result<BlindPrior, String> {
    let positive =
        |number: &str| number.trim().parse::<f64>().ok().filter(|number| (1e-6..=1e6).contains(number));
    let (rows, spread) = text.split_once(',').unwrap_or_default();
    match (positive(rows), positive(spread)) {
        (Some(mean_rows), Some(spread)) => Ok(BlindPrior { mean_rows, spread }),
        _ => Err("give two numbers between 1e-6 and 1e6, such as 0.1,0.3".into()),
    }
}

pub(super) fn parse_alpha(text: &str) -> Result<f64, String> {
    let alpha = text.parse::<f64>().ok().filter(|alpha| (0.5..=1.0).contains(alpha));
    alpha.ok_or_else(|| "give a number from 0.5 to 1".into())
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

spell! { SelectRule:
    Validation = "validation", "In each fold by the score of validation rows, a part of the training rows";
    Evidence = "evidence", "In each fold by the score of training rows just before they are learned";
    Paper = "paper", "As in the paper: the first K that the next one does not significantly improve on, by the test rows of all folds";
}

spell! { Pairs:
    Rows = "rows", "The scores of test rows";
    Folds = "folds", "The mean scores of folds";
}

pub(super) fn parse_folds(text: &str) -> Result<u16, String> {
    let folds = text.parse().ok().filter(|&folds| folds >= 2);
    folds
        .ok_or_else(|| "give a number from 2 on; to learn from one file and score another, use --test".into())
}

/// The value of `--dequantize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoiseChoice {
    Off,
    Auto,
    Both,
    Columns(Vec<String>),
}

pub(super) fn parse_dequantize(text: &str) -> Result<NoiseChoice, String> {
    Ok(match text {
        "off" => NoiseChoice::Off,
        "auto" => NoiseChoice::Auto,
        "both" => NoiseChoice::Both,
        "" => return Err("give 'auto', 'both', 'off' or names of columns".into()),
        list => NoiseChoice::Columns(list.split(',').map(|name| name.trim().to_string()).collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_selects_one_learner_or_a_family() {
        let family_of = |contender: &Contender| contender.profile().unwrap().family;
        for contender in Contender::ALL {
            let profile = contender.profile().unwrap();
            let family = Contender::ALL.iter().filter(|other| family_of(other) == profile.family);
            assert!(parse_learners(&group(profile.family)).unwrap().0.iter().eq(family));
            assert_eq!(parse_contender(profile.id).as_ref(), Ok(contender));
            assert_eq!(profile.id, profile.name.to_lowercase().replace(' ', "_"), "one name everywhere");
        }
        assert_eq!(parse_learners("obmm").unwrap().0, [Contender::Obmm]);
        assert_eq!(parse_learners("all").unwrap().0, Contender::ALL);
    }

    #[test]
    fn the_blind_prior_is_two_positive_numbers() {
        assert_eq!(parse_blind_prior(DEFAULT_BLIND_PRIOR), Ok(BlindPrior::default()));
        assert_eq!(parse_blind_prior("4, 1"), Ok(BlindPrior { mean_rows: 4.0, spread: 1.0 }));
        for text in ["", "1", "1,", "0,1", "1,-1", "nan,1", "1,inf", "1,2,3"] {
            assert!(parse_blind_prior(text).is_err(), "{text}");
        }
        assert_eq!(
            (parse_alpha("0.6").ok(), parse_alpha("0.4").ok(), parse_alpha("x").ok()),
            (Some(0.6), None, None)
        );
    }

    #[test]
    fn case_and_hyphens_do_not_matter() {
        assert_eq!(parse_learners("oEM"), parse_learners("oem"));
        assert_eq!(parse_contender(" obmm-discounted"), Ok(Contender::ObmmDiscounted));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list_of_learners_and_families() {
        let refusal = parse_learners("kmeans").unwrap_err();
        let listed: Vec<&str> = refusal.strip_prefix("give a list of ").unwrap().split(", ").collect();
        let place = |name: &str| {
            let places: Vec<usize> = (0..listed.len()).filter(|&i| listed[i] == name).collect();
            assert_eq!(places.len(), 1, "{name} in {listed:?}");
            places[0]
        };
        for contender in Contender::ALL {
            place(contender.id());
        }
        assert!(place("oem_all") < place("obmm_all"));
        assert_eq!(listed.last(), Some(&"all"));
    }

    #[test]
    fn a_single_learner_is_named_as_in_the_list_or_in_the_tables() {
        for contender in Contender::ALL {
            assert_eq!(parse_contender(contender.name()).as_ref(), Ok(contender));
        }
        for earlier in ["oem", "oem_counted", "OEM-counted"] {
            assert_eq!(parse_contender(earlier), Ok(Contender::Oem));
        }
        assert_eq!(parse_contender("obmm_exact"), Ok(Contender::Obmm));
        let refusal = parse_contender("all").unwrap_err();
        assert!(refusal.contains("name one of start, oem_blind, oem_printed, oem"), "{refusal}");
    }
}
