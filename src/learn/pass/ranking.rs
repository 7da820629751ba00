//! The distribution of the log-densities of rows, from which ranks follow.

use ndarray::{Array1, ArrayView2};

use crate::dist::GaussianMixture;
use crate::learn::monitor::ranks::NEGLIGIBLE_ROWS;
use crate::learn::monitor::today::RunScores;
use crate::learn::structure::{KeptRows, rows_of};
use crate::learn::{Prequential, ScoreRanks, ScoreSink};
use crate::stats::capped_mean_and_error;

/// The mean gain of the newest kept rows from a mixture to another one, where rows lose weight.
pub(super) fn gain_of_newest(from: &GaussianMixture, to: &GaussianMixture, kept: &KeptRows) -> f64 {
    const NEW: f64 = 0.6;
    let (Some(weights), dim) = (kept.reservoir_ages(), from.dim()) else { return 0.0 };
    let most = weights.iter().copied().fold(0.0, f64::max);
    let newest = kept.copied((0..weights.len()).filter(|&i| weights[i] >= NEW * most), dim);
    let gains = whole_scores(to, &newest) - whole_scores(from, &newest);
    capped_mean_and_error(gains).0
}

/// With fewer rows, kept rows give ranks also with a half-life.
pub(super) const MIN_RANKED: f64 = 100.0;

/// The distribution of the log-densities of all rows, as far as the kept rows represent them.
pub(super) fn ranks_of_kept(mixture: &GaussianMixture, kept: &KeptRows) -> ScoreRanks {
    ranks_by(kept, mixture.dim(), |rows| mixture.score_whole(rows))
}

/// The same by another score of rows with `dim` columns.
pub fn ranks_by(kept: &KeptRows, dim: usize, score: impl Fn(ArrayView2<f64>) -> Array1<f64>) -> ScoreRanks {
    let mut ranks = ScoreRanks::default();
    let least = if kept.has_own_weights() { 0.0 } else { NEGLIGIBLE_ROWS };
    let mut extend = |scores: Vec<f64>, weights: Option<Vec<f64>>, usual: f64| match weights {
        Some(weights) => {
            let weighted = scores.into_iter().zip(weights).filter(|(_, weight)| *weight >= least);
            ranks.extend_weighted(weighted.map(|(score, weight)| (score, usual * weight)));
        }
        None => ranks.extend(scores, usual),
    };
    let usual = kept.rows_per_kept_row(dim);
    let usual = if kept.forgetting().is_some() { 1.0 } else { usual };
    let scores = kept.reservoir_parts(dim).flat_map(|rows| score(rows_of(&rows, dim)));
    extend(scores.collect(), kept.reservoir_weights(), usual);
    extend(score(rows_of(kept.validation(), dim)).to_vec(), kept.validation_weights(), 1.0);
    ranks
}

/// The log-density of each row, where rows with gaps count as whole rows that are as rare.
pub(in crate::learn) fn whole_scores(mixture: &GaussianMixture, values: &[f64]) -> Array1<f64> {
    mixture.score_whole(rows_of(values, mixture.dim()))
}

/// Adds log-densities to the score and to the distribution, which has those of whole rows.
pub(super) struct RankedScore<'a> {
    pub total: &'a mut Prequential,
    pub ranks: &'a mut ScoreRanks,
    pub run: Option<&'a mut RunScores>,
}

impl ScoreSink for RankedScore<'_> {
    fn add(&mut self, log_densities: &[f64], weights: Option<&[f64]>) {
        self.total.add(log_densities, weights);
        let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
        let weighted = log_densities.iter().enumerate().map(|(i, &log_density)| (log_density, weight(i)));
        weighted.clone().for_each(|(log_density, weight)| self.ranks.push_weighted(log_density, weight));
        if let Some(run) = &mut self.run {
            weighted.for_each(|(log_density, weight)| run.add(log_density, weight));
        }
    }

    fn add_gapped(&mut self, log_densities: &[f64], weights: Option<&[f64]>) {
        self.total.add(log_densities, weights);
        let rows = weights.map_or(log_densities.len() as f64, |weights| weights.iter().sum());
        self.ranks.skip(rows);
    }

    fn log_likelihood(&self) -> f64 {
        self.total.log_likelihood
    }
}
