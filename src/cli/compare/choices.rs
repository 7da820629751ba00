//! What the options of `compare` may say.

use crate::experiment::{Contender, DEFAULT_CONTENDERS};

/// One word of `--algos`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Algos(pub Vec<Contender>);

pub(super) fn parse_algo(text: &str) -> Result<Algos, String> {
    use Contender::*;
    Ok(Algos(match text.trim().to_ascii_lowercase().replace('-', "_").as_str() {
        "start" => vec![Start],
        "oem" => vec![OemPrinted, Oem],
        "oem_printed" => vec![OemPrinted],
        "oem_counted" => vec![Oem],
        "obmm" => vec![Obmm, ObmmDiscounted],
        "obmm_exact" => vec![Obmm],
        "obmm_discounted" => vec![ObmmDiscounted],
        "obmm_paper" => vec![ObmmPaper],
        "odmm" => vec![Odmm],
        "em" => vec![Em],
        "all" => DEFAULT_CONTENDERS.into_iter().chain([ObmmPaper]).collect(),
        _ => {
            return Err(
                "give a list of start, oem, oem_printed, oem_counted, obmm, obmm_exact, obmm_discounted, \
                        obmm_paper, odmm, em"
                    .into(),
            );
        }
    }))
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
    fn words_of_the_list_of_learners_stand_for_one_or_both_forms() {
        assert_eq!(parse_algo("oEM").unwrap().0, [Contender::OemPrinted, Contender::Oem]);
        assert_eq!(parse_algo("obmm-exact").unwrap().0, [Contender::Obmm]);
        assert!(parse_algo("kmeans").is_err());
    }
}
