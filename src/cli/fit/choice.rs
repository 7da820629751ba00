//! The numbers of components that a fit chose from, and how it tells of them.

use serde::Serialize;

use crate::cli::console::decimal;
use crate::learn::{CandidateState, FitState};
use crate::stats::BatchSums;

#[derive(Debug, Serialize)]
pub(super) struct CandidateResult {
    k: usize,
    /// Mean prequential log-likelihood, or −BIC/(2n) for batch EM.
    score: Option<f64>,
    /// What it lacks to the best score, and the paired standard error of that.
    difference: Option<f64>,
    standard_error: Option<f64>,
}

impl CandidateResult {
    /// The K of a pass.
    pub fn of_pass(state: &FitState) -> Vec<Self> {
        let score = |c: &CandidateState| (c.learned.k(), c.prequential.mean());
        let scores: Vec<_> = state.candidates.iter().map(score).collect();
        // Rows that shards scored apart, or that an earlier version scored, are in the scores but in no batch.
        let none = BatchSums::default();
        let known = state.scores.covers(state.candidates[0].prequential.rows);
        Self::beside_the_best(&scores, state.best(), if known { &state.scores } else { &none })
    }

    /// Several K with their scores, beside the best, which is given by its place.
    pub fn beside_the_best(scores: &[(usize, Option<f64>)], best: usize, batches: &BatchSums) -> Vec<Self> {
        let beside = |(place, &(k, score)): (usize, &(usize, Option<f64>))| {
            let another = place != best;
            CandidateResult {
                k,
                score,
                difference: score.zip(scores[best].1).map(|(own, top)| own - top).filter(|_| another),
                standard_error: batches.standard_error_of_difference(place, best).filter(|_| another),
            }
        };
        scores.iter().enumerate().map(beside).collect()
    }

    /// Whether what it lacks is small, however sure: 0.01 of a logarithm is 1 %.
    fn lacks_little(&self) -> bool {
        self.difference.is_some_and(|difference| -difference < 0.01)
    }

    /// Whether it may well predict as well as the best.
    fn is_near(&self) -> bool {
        self.difference.zip(self.standard_error).is_some_and(|(difference, error)| -difference <= error)
    }
}

/// As many decimals as the least standard error needs to be more than zero: four, as the scores have, or more.
fn decimals_of(candidates: &[CandidateResult]) -> usize {
    let least = candidates.iter().filter_map(|candidate| candidate.standard_error);
    let least = least.filter(|error| *error > 0.0).fold(1.0, f64::min);
    (-least.log10()).ceil().clamp(4.0, 9.0) as usize
}

/// The scores of several K, of which one was kept, and what a person should know before taking it.
pub(super) fn describe_choice(candidates: &[CandidateResult], kept: usize, heading: &str) -> String {
    let width = heading.chars().count();
    let decimals = decimals_of(candidates);
    let mut text = format!("   K   {heading}   difference to the best\n");
    for candidate in candidates {
        let score = candidate.score.map_or("–".into(), |score| decimal(score, 4));
        let error = candidate
            .standard_error
            .map_or(String::new(), |error| format!(" ± {}", decimal(error, decimals)));
        let beside = match candidate.difference {
            _ if candidate.k == kept => "← kept".into(),
            Some(difference) => decimal(difference, decimals) + &error,
            None => "–".into(),
        };
        text += &format!("{:>4}   {score:<width$}   {beside}\n", candidate.k);
    }
    if candidates.iter().all(|candidate| candidate.standard_error.is_none()) {
        text += "no standard errors: too few rows were scored, or some by shards that read parts of their own, or by an earlier version\n";
    }
    let smaller = || candidates.iter().filter(|candidate| candidate.k < kept);
    let near = smaller().find(|candidate| candidate.is_near());
    if let Some(near) = near {
        text += &format!("K = {} is smaller and within one standard error of the best\n", near.k);
    }
    let little = smaller().find(|candidate| candidate.lacks_little());
    if let Some(little) = little.filter(|little| near.is_none_or(|near| little.k < near.k)) {
        text += &format!(
            "from K = {} on little is gained: a row is less than 1 % likelier under the best\n",
            little.k
        );
    }
    if near.is_none() && little.is_none() && candidates.iter().all(|candidate| candidate.k <= kept) {
        text += &format!("the largest K is the best: try larger ones, such as --k {}..{}\n", kept, 2 * kept);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of K = 2, 3, … that lack so much to the best, with such standard errors.
    fn said(beside: &[(f64, f64)]) -> String {
        let best = beside.iter().position(|(difference, _)| *difference == 0.0).unwrap();
        let candidate = |(place, &(difference, error)): (usize, &(f64, f64))| CandidateResult {
            k: place + 2,
            score: Some(difference - 5.0),
            difference: Some(difference).filter(|_| place != best),
            standard_error: Some(error).filter(|_| place != best),
        };
        let candidates: Vec<_> = beside.iter().enumerate().map(candidate).collect();
        describe_choice(&candidates, best + 2, "prequential")
    }

    #[test]
    fn a_smaller_k_that_may_be_as_good_or_lacks_little_is_named() {
        let text = said(&[(-0.5, 0.01), (-0.02, 0.03), (0.0, 0.0), (-0.1, 0.01)]);
        assert!(text.contains("K = 3 is smaller and within one standard error") && !text.contains("little"));
        let text = said(&[(-0.5, 0.01), (-0.004, 0.001), (0.0, 0.0), (-0.1, 0.01)]);
        assert!(text.contains("from K = 3 on little is gained") && !text.contains("within one"), "{text}");
        let text = said(&[(-0.5, 0.01), (-0.2, 0.001), (0.0, 0.0), (-0.1, 0.01)]);
        assert!(!text.contains("little") && !text.contains("within") && !text.contains("largest"), "{text}");
        assert!(said(&[(-0.5, 0.01), (0.0, 0.0)]).contains("the largest K is the best"));
        assert!(!said(&[(-0.005, 0.01), (0.0, 0.0)]).contains("largest"), "a smaller one would do");
    }

    #[test]
    fn small_differences_have_the_decimals_that_show_them() {
        assert!(said(&[(-0.5, 0.01), (0.0, 0.0)]).contains("-0.5000 ± 0.0100\n"));
        assert!(said(&[(-0.000061, 0.0000234), (0.0, 0.0)]).contains("-0.00006 ± 0.00002\n"));
        assert!(said(&[(-0.5, 0.0), (0.0, 0.0)]).contains("-0.5000 ± 0.0000\n"));
    }
}
