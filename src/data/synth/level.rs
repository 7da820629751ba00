use ndarray::Axis;

use super::Synth;
use crate::data::Block;
use crate::stats::ColumnSummary;

/// The score of the true mixture on rows drawn from it, which no model exceeds on average.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrueLevel {
    scores: ColumnSummary,
    errors: f64,
}

impl TrueLevel {
    /// Adds rows of [`Synth::test`]. The result does not depend on the number of threads.
    pub fn add(&mut self, synth: &Synth, block: &Block) {
        let layers = synth.layers();
        let (scores, of_rows) = synth.truth().scored(block.view());
        for (score, responsibilities) in scores.iter().zip(of_rows.outer_iter()) {
            let of_clusters = responsibilities.axis_chunks_iter(Axis(0), layers).map(|layers| layers.sum());
            self.errors += 1.0 - of_clusters.fold(0.0, f64::max);
            self.scores.push(*score);
        }
    }

    /// Rows added.
    pub fn rows(&self) -> u64 {
        self.scores.count
    }

    /// Mean log-likelihood of a row.
    pub fn mean_log_likelihood(&self) -> f64 {
        self.scores.mean
    }

    /// Standard error of that mean.
    pub fn standard_error(&self) -> f64 {
        self.scores.standard_error().unwrap_or(0.0)
    }

    /// The fraction of rows whose most probable cluster is not their own: the overlap of the clusters.
    pub fn bayes_error(&self) -> f64 {
        (self.errors / self.rows().max(1) as f64).max(0.0)
    }
}
