//! The scores of a pass, its revisions and its safeguards.

use super::{FinishedPass, OnlineFit, Stage};
use crate::dist::GaussianMixture;
use crate::learn::pass::candidate::Candidate;
use crate::learn::pass::state::best_score;
use crate::learn::{CandidateState, Finished, Health, KComparison, Prequential, RevisionRecord};
use crate::stats::BatchSums;

impl OnlineFit {
    /// Each K and its prequential score so far. Empty before the start, unless [`OnlineFit::finish`] was called.
    pub fn scores(&self) -> Vec<(usize, Prequential)> {
        match (&self.stage, &self.finished_pass) {
            (Stage::Learning(learning), _) => learning.candidates.iter().map(Candidate::score).collect(),
            (_, Some(FinishedPass::Buffered(made))) => {
                made.candidates.iter().map(CandidateState::score).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The scores of all K compared.
    pub fn choice(&self) -> KComparison {
        let none = BatchSums::default();
        let batches = match (&self.stage, &self.finished_pass) {
            (Stage::Learning(learning), _) => &learning.scores,
            (_, Some(FinishedPass::Buffered(made))) => &made.scores,
            _ => &none,
        };
        KComparison::of_pass(&self.scores(), batches)
    }

    /// The revisions of the K with the best score, the oldest first. The closing one is there after
    /// [`OnlineFit::finish`].
    pub fn revisions(&self) -> impl Iterator<Item = &RevisionRecord> {
        let (history, closing): (&[RevisionRecord], _) = match &self.stage {
            Stage::Learning(learning) => {
                let best = self.best();
                let closing = self.finished(best).and_then(|finished| finished.closing.as_ref());
                (learning.candidates[best].history(), closing)
            }
            Stage::Buffering(_) => (&[], None),
        };
        history.iter().chain(closing)
    }

    /// Safeguards that triggered while the K with the best score learned its rows. Those of the end of the stream are not
    /// counted here but in [`Model::health`](crate::Model::health).
    pub(crate) fn running_health(&self) -> Health {
        match (&self.stage, &self.finished_pass) {
            (Stage::Learning(learning), _) => learning.candidates[self.best()].learner.health(),
            (_, Some(FinishedPass::Buffered(made))) => made.candidates[self.best()].health,
            _ => Health::default(),
        }
    }

    /// The index of the K with the best score.
    pub(super) fn best(&self) -> usize {
        best_score(self.scores().into_iter().map(|(_, score)| score))
    }

    /// What the end of the stream made of one K, where that changed it.
    pub(super) fn finished(&self, place: usize) -> Option<&Finished> {
        match &self.finished_pass {
            Some(FinishedPass::Learned(finished)) => finished[place].as_ref(),
            _ => None,
        }
    }

    /// The mixture of the K with the best score after the latest row, and the identifiers of its components. `None` before the start.
    #[doc(hidden)]
    pub fn present(&self) -> Option<(GaussianMixture, Vec<u64>)> {
        let Stage::Learning(learning) = &self.stage else { return None };
        let best = self.best();
        Some(match self.finished(best) {
            Some(finished) => (finished.estimate.mixture(), finished.identifiers.all().to_vec()),
            None => {
                let candidate = &learning.candidates[best];
                (candidate.learner.estimate(), candidate.identifiers().all().to_vec())
            }
        })
    }

    /// Rows that each shard has learned, where the learner of the first K has shards.
    pub fn shard_rows(&self) -> Vec<u64> {
        match &self.stage {
            Stage::Learning(learning) => learning.candidates[0].learner.shard_rows(),
            Stage::Buffering(_) => Vec::new(),
        }
    }
}
