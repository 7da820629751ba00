//! Several K of one pass: their table of scores, the elbow, and the choice of one of them.

use std::path::Path;

use super::files::{is_dash, read_model};
use super::usage;
use crate::learn::{KComparison, RatedK, TryNext};
use crate::model::Model;
use crate::stats::{Beyond, Elbow};
use crate::text::number::{NONE, decimal};
use crate::text::runs_of_k;

/// Which K of a model file to use.
#[derive(Debug, clap::Args)]
pub(super) struct OneK {
    /// Use this K of a model file that has several [default: the best]
    #[arg(long, value_name = "K")]
    pub k: Option<usize>,
}

impl OneK {
    /// Reads a model, and takes the K that is asked for.
    pub fn read(&self, path: &Path) -> anyhow::Result<Model> {
        self.of(read_model(path)?, path)
    }

    /// The model of the K that is asked for; the file is named in errors.
    pub fn of(&self, model: Model, path: &Path) -> anyhow::Result<Model> {
        let Some(k) = self.k else { return Ok(model) };
        let ks = model.ks();
        model.with_k(k).ok_or_else(|| {
            let file = if is_dash(path) { "the model".into() } else { format!("'{}'", path.display()) };
            usage(format!("{file} does not have K = {k}: it has K = {}", runs_of_k(&ks)))
        })
    }
}

/// As many decimals as the least standard error needs to be more than zero: four, as the scores have, or more.
fn decimals_of(candidates: &[RatedK]) -> usize {
    let least = candidates.iter().filter_map(|candidate| candidate.standard_error);
    let least = least.filter(|error| *error > 0.0).fold(1.0, f64::min);
    (-least.log10()).ceil().clamp(4.0, 9.0) as usize
}

/// The scores of several K, of which one was kept, and their elbow.
pub(super) fn describe_choice(choice: &KComparison, kept: usize, heading: &str) -> String {
    let candidates = &choice.candidates;
    let width = heading.chars().count();
    let decimals = decimals_of(candidates);
    let mut text = format!("   K   {heading}   difference to the best\n");
    for candidate in candidates {
        let score = candidate.score.map_or(NONE.into(), |score| decimal(score, 4));
        let error = candidate
            .standard_error
            .map_or(String::new(), |error| format!(" ± {}", decimal(error, decimals)));
        let difference = match candidate.difference {
            _ if candidate.k == kept => "← kept".into(),
            Some(difference) => decimal(difference, decimals) + &error,
            None => NONE.into(),
        };
        text += &format!("{:>4}   {score:<width$}   {difference}\n", candidate.k);
    }
    if candidates.iter().all(|candidate| candidate.standard_error.is_none()) {
        text += "no standard errors: too few rows were scored, or shards or an earlier version scored some of them\n";
    }
    text + &describe_elbow(choice, kept)
}

/// The elbow in words. Empty where there are no scores.
pub(super) fn describe_elbow(choice: &KComparison, best: usize) -> String {
    if !choice.is_scored() {
        return String::new();
    }
    let next = match choice.try_next() {
        Some(TryNext::Larger(ks)) => format!(": try larger K, such as --k {}..{}", ks.start(), ks.end()),
        Some(TryNext::Smaller(ks)) => {
            format!("; smaller K may do as well: try --k {}..{}", ks.start(), ks.end())
        }
        None => String::new(),
    };
    let Some(Elbow { k, share, beyond }) = choice.elbow else {
        return format!("no elbow: the score rises evenly up to K = {best}{next}\n");
    };
    let smallest = choice.candidates[0].k;
    let share = share.map_or(String::new(), |share| {
        format!("{} % of the gain from K = {smallest} to K = {best}", decimal(100.0 * share, 0))
    });
    let gain = match beyond {
        Beyond::Nothing => "the best: larger K gain nothing".into(),
        Beyond::WithinError => format!("within one standard error of K = {best}, the best"),
        Beyond::Little => format!("with {share}: larger K gain little"),
        Beyond::Rises => format!("with {share}; the score rises to the end of the range"),
    };
    format!("elbow at K = {k}, {gain}{next}\n")
}

/// How another K of a model file is used. Empty where there is only one K.
pub(super) fn describe_ks(choice: &KComparison, best: usize, resumable: bool) -> String {
    let ks: Vec<usize> = choice.candidates.iter().map(|candidate| candidate.k).collect();
    if ks.len() < 2 {
        return String::new();
    }
    let ks = runs_of_k(&ks);
    let resumed = if resumable { "; 'fit --resume' takes all, or one with --k" } else { "" };
    format!(
        "the file has K = {ks}: 'eval', 'predict' and 'show' use K = {best}, or another with --k{resumed}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::KComparison;
    use crate::stats::{BatchSums, ScoredK};

    /// The text about K = 2, 3, … with these differences to the best and these standard errors.
    fn described(differences: &[(f64, f64)]) -> String {
        let best = differences.iter().position(|(difference, _)| *difference == 0.0).unwrap();
        let candidate = |(place, &(difference, error)): (usize, &(f64, f64))| RatedK {
            k: place + 2,
            score: Some(difference - 5.0),
            difference: Some(difference).filter(|_| place != best),
            standard_error: Some(error).filter(|_| place != best),
        };
        let candidates: Vec<_> = differences.iter().enumerate().map(candidate).collect();
        let scored = candidates.iter().map(|rated| ScoredK {
            k: rated.k,
            score: rated.score.unwrap(),
            standard_error: rated.standard_error,
        });
        let elbow = Elbow::find(&scored.collect::<Vec<_>>());
        describe_choice(&KComparison { candidates, elbow }, best + 2, "prequential")
    }

    #[test]
    fn the_elbow_is_named_with_what_larger_k_gain() {
        let last_line =
            |differences: &[(f64, f64)]| described(differences).lines().last().unwrap().to_string();
        assert_eq!(
            last_line(&[(-0.5, 0.01), (-0.2, 0.3), (0.0, 0.0), (-0.1, 0.01)]),
            "elbow at K = 3, within one standard error of K = 4, the best"
        );
        assert_eq!(
            last_line(&[(-0.5, 0.01), (-0.004, 0.001), (0.0, 0.0), (-0.1, 0.01)]),
            "elbow at K = 3, with 99 % of the gain from K = 2 to K = 4: larger K gain little"
        );
        assert_eq!(
            last_line(&[(-0.5, 0.01), (-0.2, 0.001), (0.0, 0.0), (-0.1, 0.01)]),
            "elbow at K = 4, the best: larger K gain nothing"
        );
        assert_eq!(
            last_line(&[(-0.9, 0.01), (-0.4, 0.01), (-0.2, 0.01), (0.0, 0.0)]),
            "elbow at K = 3, with 56 % of the gain from K = 2 to K = 5; the score rises to the end of the range: \
             try larger K, such as --k 5..10"
        );
        assert_eq!(
            last_line(&[(-0.5, 0.01), (0.0, 0.0)]),
            "no elbow: the score rises evenly up to K = 3: try larger K, such as --k 3..6"
        );
        assert_eq!(
            last_line(&[(0.0, 0.0), (-0.1, 0.01)]),
            "elbow at K = 2, the best: larger K gain nothing; smaller K may do as well: try --k 1..2"
        );
    }

    #[test]
    fn without_scores_no_elbow_is_looked_for() {
        let choice = KComparison::new(&[(2, None), (3, None)], &BatchSums::default());
        assert_eq!(describe_elbow(&choice, 3), "");
    }

    #[test]
    fn small_differences_have_the_decimals_that_show_them() {
        assert!(described(&[(-0.5, 0.01), (0.0, 0.0)]).contains("-0.5000 ± 0.0100\n"));
        assert!(described(&[(-0.000061, 0.0000234), (0.0, 0.0)]).contains("-0.00006 ± 0.00002\n"));
        assert!(described(&[(-0.5, 0.0), (0.0, 0.0)]).contains("-0.5000 ± 0.0000\n"));
    }
}
