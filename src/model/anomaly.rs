//! How a model detects anomalies.

use ndarray::ArrayView2;

use super::Model;
use crate::dist::AnomalyScore;
use crate::learn::{ScoreRanks, ranks_by};

/// Where the share of anomalies is not known, this share of the rows that the mixture generates would be anomalies.
const USUAL: f64 = 0.01;

impl Model {
    /// The score by which anomalies are detected. `contamination` is the share of anomalies among the learned rows, if it is known.
    pub fn anomaly_score(&self, contamination: Option<f64>) -> AnomalyScore {
        let share = contamination.unwrap_or(AnomalyScore::SHARE);
        AnomalyScore::new(self.estimate(), self.posterior(), share)
    }

    /// The score below which a row is an anomaly: below it is the contamination's share of the learned rows, as far as the model
    /// keeps them. If it keeps none, it is that share of the rows which the mixture generates, and one in a hundred of these if the
    /// contamination is not known.
    pub fn anomaly_offset(&self, score: &AnomalyScore, contamination: Option<f64>) -> f64 {
        let Some(share) = contamination else { return score.level_of_generated(USUAL) };
        let by = |rows: ArrayView2<f64>| score.score_samples(rows).expect("kept rows have its columns");
        let learned = match (&self.state.pending, &self.state.kept) {
            (None, Some(kept)) => ranks_by(kept, self.columns.len(), by),
            _ => {
                let (mut waiting, weights) = (ScoreRanks::default(), self.state.pending_weights.as_deref());
                let weight = |i: usize| weights.map_or(1.0, |weights| weights[i]);
                let scores = by(self.kept_rows().view()).into_iter().enumerate();
                waiting.extend_weighted(scores.map(|(i, score)| (score, weight(i))));
                waiting
            }
        };
        learned.table().value_at(share).unwrap_or_else(|| score.level_of_generated(share))
    }
}
