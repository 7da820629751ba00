//! What the options of `compare` may say.

use crate::experiment::Contender;

/// One word of `--algos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Algos(pub Vec<Contender>);

pub(super) fn parse_algo(text: &str) -> Result<Algos, String> {
    let word = text.trim().to_ascii_lowercase().replace('-', "_");
    let is_meant = |contender: &Contender| {
        let profile = contender.profile();
        word == "all" || word == profile.word || word == profile.family
    };
    let meant: Vec<_> = Contender::ALL.iter().copied().filter(is_meant).collect();
    if meant.is_empty() {
        return Err(format!("give a list of {}", words()));
    }
    Ok(Algos(meant))
}

/// The words of the list, families of several before their members.
pub(super) fn words() -> String {
    let mut words: Vec<&str> = Vec::new();
    for profile in Contender::ALL.iter().map(|contender| contender.profile()) {
        for word in [profile.family, profile.word] {
            if !words.contains(&word) {
                words.push(word);
            }
        }
    }
    words.push("all");
    words.join(", ")
}

/// The one learner that a word of `--algos` stands for, or that the tables call so.
pub(super) fn parse_contender(text: &str) -> Result<Contender, String> {
    let named = Contender::ALL.iter().find(|contender| contender.name().eq_ignore_ascii_case(text.trim()));
    if let Some(&contender) = named {
        return Ok(contender);
    }
    match parse_algo(text)?.0.as_slice() {
        [one] => Ok(*one),
        several => {
            let words: Vec<&str> = several.iter().map(|contender| contender.profile().word).collect();
            Err(format!("'{text}' stands for several learners: name one of {}", words.join(", ")))
        }
    }
}

pub(super) fn parse_folds(text: &str) -> Result<u16, String> {
    let folds = text.parse().ok().filter(|&folds| folds >= 2);
    folds.ok_or_else(|| {
        "give a number from 2 on; to learn from one file and test on another, use --test".into()
    })
}

/// What to do about discrete columns.
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
    fn words_of_the_list_of_learners_stand_for_one_or_for_a_family() {
        for &contender in Contender::ALL {
            let profile = contender.profile();
            let family: Vec<_> = Contender::ALL
                .iter()
                .copied()
                .filter(|other| other.profile().family == profile.family)
                .collect();
            assert_eq!(parse_algo(profile.family).unwrap().0, family);
            assert_eq!(parse_contender(profile.word), Ok(contender));
        }
        assert_eq!(parse_algo("all").unwrap().0, Contender::ALL);
    }

    #[test]
    fn words_may_be_written_as_people_write_them() {
        assert_eq!(parse_algo("oEM"), parse_algo("oem"));
        assert_eq!(parse_contender(" obmm-discounted"), Ok(Contender::ObmmDiscounted));
    }

    #[test]
    fn a_word_that_is_not_in_the_list_is_answered_by_the_list_families_first() {
        let refusal = parse_algo("kmeans").unwrap_err();
        let listed: Vec<&str> = refusal.strip_prefix("give a list of ").unwrap().split(", ").collect();
        let place = |word: &str| {
            let places: Vec<usize> = (0..listed.len()).filter(|&i| listed[i] == word).collect();
            assert_eq!(places.len(), 1, "{word} in {listed:?}");
            places[0]
        };
        for profile in Contender::ALL.iter().map(|contender| contender.profile()) {
            assert!(place(profile.family) <= place(profile.word), "{listed:?}");
        }
        assert_eq!(listed.last(), Some(&"all"));
    }

    #[test]
    fn one_learner_is_wanted_by_its_word_or_by_its_name_in_the_tables() {
        for &contender in Contender::ALL {
            assert_eq!(parse_contender(contender.name()), Ok(contender));
        }
        assert_eq!(parse_contender("oem"), Ok(Contender::Oem));
        let refusal = parse_contender("all").unwrap_err();
        assert!(refusal.contains("name one of start, oem_printed, oem_counted"), "{refusal}");
    }
}
