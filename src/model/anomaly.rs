//! How a model detects anomalies.

use ndarray::{Array1, ArrayView2};

use super::Model;
use crate::data::Noise;
use crate::dist::{AnomalyScore, DistError};
use crate::learn::{RankTable, ScoreRanks, ranks_by};

/// The score by which a model detects anomalies, and the scores of the rows that it has learned.
#[derive(Debug, Clone)]
pub struct Detector {
    score: AnomalyScore,
    noise: Option<Noise>,
    learned: RankTable,
}

impl Model {
    /// What detects anomalies among rows like those that the model was learned from.
    pub fn detector(&self) -> Detector {
        let score = AnomalyScore::new(self.estimate(), self.posterior());
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
        Detector { learned: learned.table(), noise: self.noise(), score }
    }
}

impl Detector {
    /// The score of each row, as [`AnomalyScore::score_samples`] has it: the lower, the more unusual.
    ///
    /// # Errors
    /// [`DistError::Shape`] if the rows do not have the model's columns.
    pub fn score_samples(&self, rows: ArrayView2<f64>) -> Result<Array1<f64>, DistError> {
        match &self.noise {
            Some(noise) => self.score.score_samples(noise.noisy(rows, 0).view()),
            None => self.score.score_samples(rows),
        }
    }

    /// The score below which this share of the learned rows is, by those that the model keeps. If it keeps none, that of the rows which
    /// its mixture generates.
    pub fn level(&self, share: f64) -> f64 {
        self.learned.value_at(share).unwrap_or_else(|| self.score.level_of_generated(share))
    }

    /// The score below which one in a hundred of the rows is that the mixture generates.
    pub fn usual_level(&self) -> f64 {
        self.score.level_of_generated(USUAL)
    }
}

const USUAL: f64 = 0.01;
