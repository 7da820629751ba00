//! What the trials of a comparison need of a pass.

use std::sync::atomic::AtomicBool;

use super::{OnlineFit, Progress, Stage};
use crate::dist::GaussianMixture;
use crate::learn::pass::candidate::Candidate;
use crate::learn::pass::learning::Learning;
use crate::learn::structure::{KeptRows, Limits, Schedule, Size};
use crate::learn::{
    Algorithm, CandidateState, ChangeWatch, FitSettings, Health, LearnError, Prequential, Rows, Start,
    Structure, WeightedRows,
};

impl OnlineFit {
    /// Begins a pass over the rows that follow a given start. It keeps no rows, does not revise, does not look for changes of
    /// the data, and allows gaps.
    pub(crate) fn from_start(algorithm: Algorithm, start: &Start) -> Result<Self, LearnError> {
        let k = start.mixture.k();
        let settings = FitSettings::new(algorithm, [k]).keep_rows(0).gaps(true);
        let mut pass = OnlineFit::new(start.floor.len(), settings)?;
        let learner = algorithm.learner(algorithm.begin(start), start.floor.clone(), Health::default())?;
        let kept = KeptRows::new(pass.settings.seed, 0, false);
        let changes = Some(ChangeWatch::never());
        let structure = Structure { changes, ..Structure::new(k, Schedule::never()) };
        let candidate = Candidate::new(learner, Size::Given(k), structure, &kept);
        let learning = Learning::new(start.floor.clone(), vec![candidate], None, kept);
        pass.stage = Stage::Learning(Box::new(learning));
        Ok(pass)
    }

    /// Learns rows as [`OnlineFit::advance`] does, with the score that all of them have for the first
    /// K. The pass itself scores no rows that it holds back for validation, so a copy of its learner learns all rows.
    pub(crate) fn advance_and_score(
        &mut self,
        WeightedRows { rows, weights }: WeightedRows,
    ) -> Result<(Progress, Prequential), LearnError> {
        let mut score = Prequential::default();
        let Stage::Learning(learning) = &self.stage else {
            return Ok((self.advance_weighted(rows, weights)?, score));
        };
        let (state, floor) = (learning.candidates[0].learner.state(), learning.floor.clone());
        let mut copy = self.settings.learner(&self.settings.algorithm, state, floor, Health::default())?;
        let progress = self.advance_weighted(rows, weights)?;
        let Progress::Learned(taken) = progress else { return Ok((progress, score)) };
        let rows = rows.slice_move(ndarray::s![..taken, ..]);
        let rows = rows.as_standard_layout();
        let values = rows.as_slice().expect("standard layout is contiguous");
        let weights = weights.map(|weights| &weights[..taken]);
        copy.observe_block(Rows::new(values, rows.ncols()).with_weights(weights), &mut score);
        Ok((progress, score))
    }

    /// Resets the scores: they count from the next row on.
    pub(crate) fn restart_scores(&mut self) {
        if let Stage::Learning(learning) = &mut self.stage {
            learning.restart_scores();
        }
    }

    /// The mixture of each K with its score: at the end of the stream if [`OnlineFit::finish`] was called, and otherwise as
    /// learned so far. Before the start it is provisional.
    pub(crate) fn mixtures(&self) -> Result<Vec<(usize, Prequential, GaussianMixture)>, LearnError> {
        if self.has_started() || self.finished_pass.is_some() {
            let with_mixture = |(i, (k, score))| Ok((k, score, self.mixture_of(i)?));
            return self.scores().into_iter().enumerate().map(with_mixture).collect();
        }
        let Stage::Buffering(buffer) = &self.stage else { return Ok(Vec::new()) };
        let noisy = self.with_noise(buffer).0;
        let buffer = Rows::new(&noisy, self.dim()).with_weights(buffer.weights());
        let made = self.provisional(buffer, Limits::PROVISIONAL, &AtomicBool::new(false))?;
        let of = |candidate: CandidateState| {
            let (k, score) = candidate.score();
            (k, score, candidate.mixture())
        };
        Ok(made.candidates.into_iter().map(of).collect())
    }
}
