//! What every online learner does, for these covariances.

use super::{Constrained, LearnerScalars, Matrices};
use crate::dist::{GaussianMixture, Posterior};
use crate::learn::kernel::MatrixState;
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::{Health, LearnerState, OnlineLearner, Rows, ScoreSink, Surprise};
use crate::linalg::has_gaps;

impl OnlineLearner for Constrained {
    fn observe_block(&mut self, rows: Rows, score: &mut dyn ScoreSink) {
        let (values, dim) = (rows.values(), self.dim);
        for (i, (row, weight)) in rows.iter().enumerate() {
            let ahead = values[i * dim..].chunks_exact(dim).take_while(|row| !has_gaps(row));
            let Some(log_density) = self.learn_row(row, weight, ahead) else { continue };
            let own = [weight];
            let weights = (weight != 1.0).then_some(&own[..]);
            match has_gaps(row) {
                true => score.add_gapped(&[log_density], weights),
                false => score.add(&[log_density], weights),
            }
        }
    }

    fn count_below(&mut self, log_density: f64) {
        self.low = log_density;
    }

    fn low_rows(&self) -> u64 {
        self.low_rows
    }

    fn surprise(&self) -> Option<Surprise> {
        Some(self.surprise)
    }

    fn assigned_rows(&self) -> &[f64] {
        &self.assigned
    }

    fn set_half_life(&mut self, rows: Option<u64>) {
        let forgetting = rows.map(Forgetting::new);
        match &mut self.scalars {
            LearnerScalars::Bayes(bayes) => bayes.forgetting = forgetting,
            LearnerScalars::Point(point) => point.set_forgetting(forgetting, self.dim),
        }
    }

    fn estimate(&self) -> GaussianMixture {
        match &self.scalars {
            LearnerScalars::Bayes(bayes) => self.posterior(bayes).point_estimate(),
            LearnerScalars::Point(point) => self.mixture(point),
        }
    }

    fn state(&self) -> LearnerState {
        let matrix_states = match &self.matrices {
            Matrices::Columns(_) => Vec::new(),
            Matrices::Tied(tied) => vec![MatrixState::of_shared(tied.state())],
        };
        match &self.scalars {
            LearnerScalars::Bayes(bayes) => LearnerState::Bayes {
                prior: Posterior::clone(&bayes.prior),
                posterior: self.posterior(bayes),
                matrix_states,
            },
            LearnerScalars::Point(point) => LearnerState::Point {
                start: point.start.clone(),
                start_rows: point.start_rows,
                mixture: self.mixture(point),
                rows: point.rows,
                matrix_states,
            },
        }
    }

    fn health(&self) -> Health {
        self.health
    }
}
