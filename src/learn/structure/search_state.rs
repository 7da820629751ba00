//! The state of a search, and the effect of moves on the order of the components.

use super::em::Improved;
use super::history::{Identifiers, Move};
use super::merge::Merge;
use super::search::Failed;
use super::split::Split;
use crate::dist::{Gaussian, GaussianMixture, Mixture};

/// The state of a search.
pub(super) struct SearchState<'i> {
    pub now: Improved,
    pub moves: Vec<Move>,
    /// For each component, its index before the search; `None` if a move created it.
    pub origins: Vec<Option<usize>>,
    /// The best split of each component, if it was searched for.
    pub splits: Vec<Option<Split>>,
    /// The number of rows of each component at that time.
    pub counts: Vec<f64>,
    /// Moves that did not improve the mixture. Cleared by every successful move.
    pub failed: Failed,
    identifiers: &'i mut Identifiers,
}

impl<'i> SearchState<'i> {
    pub fn new(start: Improved, identifiers: &'i mut Identifiers) -> Self {
        let k = start.mixture.k();
        SearchState {
            now: start,
            moves: Vec::new(),
            origins: (0..k).map(Some).collect(),
            splits: vec![None; k],
            counts: vec![0.0; k],
            failed: Failed::new(),
            identifiers,
        }
    }

    pub fn k(&self) -> usize {
        self.now.mixture.k()
    }

    pub fn identifier(&self, j: usize) -> u64 {
        self.identifiers.all()[j]
    }

    /// The key of a swap in `failed`.
    pub fn swap_key(&self, split: &Split, merge: &Merge) -> Vec<u64> {
        let [first, second] = merge.components;
        [split.component, first, second].map(|j| self.identifier(j)).to_vec()
    }

    /// Records splits, in the order of [`split_all`], that EM improved to `better`.
    pub fn split(&mut self, splits: &[Split], better: Improved) {
        let gain = (better.mean_log_likelihood - self.now.mean_log_likelihood) / splits.len() as f64;
        for split in splits {
            let split = Some(self.part(split.component));
            self.moves.push(Move { split, merged: None, added: None, gain });
        }
        self.settle(better);
    }

    /// Records a merge, in the order of [`merged`].
    pub fn merge(&mut self, merge: &Merge, after: Improved) {
        let merged = Some(self.unite(merge.components));
        let gain = after.mean_log_likelihood - self.now.mean_log_likelihood;
        self.moves.push(Move { split: None, merged, added: None, gain });
        self.settle(after);
    }

    /// Records a split and a merge of two other components. The second part replaces the second merged component.
    pub fn swap(&mut self, split: &Split, merge: &Merge, better: Improved) {
        let split = Some(self.part(split.component));
        let merged = Some(self.unite(merge.components));
        let gain = better.mean_log_likelihood - self.now.mean_log_likelihood;
        self.moves.push(Move { split, merged, added: None, gain });
        self.settle(better);
    }

    /// Records a merge and a new component, which replaces the second merged component.
    pub fn replace(&mut self, merge: &Merge, better: Improved) {
        let added = Some(self.identifiers.add());
        self.add_place();
        let merged = Some(self.unite(merge.components));
        let gain = better.mean_log_likelihood - self.now.mean_log_likelihood;
        self.moves.push(Move { split: None, merged, added, gain });
        self.settle(better);
    }

    fn settle(&mut self, now: Improved) {
        self.failed.clear();
        self.now = now;
    }

    fn part(&mut self, j: usize) -> super::history::SplitMove {
        self.forget(j);
        self.add_place();
        self.identifiers.split(j)
    }

    fn unite(&mut self, [i, j]: [usize; 2]) -> super::history::MergeMove {
        self.forget(i);
        self.origins.swap_remove(j);
        self.splits.swap_remove(j);
        if let Some(Some(split)) = self.splits.get_mut(j) {
            split.component = j;
        }
        self.counts.swap_remove(j);
        self.identifiers.merge([i, j])
    }

    fn forget(&mut self, j: usize) {
        (self.origins[j], self.splits[j], self.counts[j]) = (None, None, 0.0);
    }

    fn add_place(&mut self) {
        self.origins.push(None);
        self.splits.push(None);
        self.counts.push(0.0);
    }
}

/// The mixture after splits. The first part replaces the component, the second is appended.
pub(super) fn split_all(mixture: &GaussianMixture, splits: &[Split]) -> GaussianMixture {
    let (mut weights, mut components) = parts_of(mixture);
    for split in splits {
        let whole = weights[split.component];
        weights[split.component] = whole * split.shares[0];
        weights.push(whole * split.shares[1]);
        components[split.component] = split.parts[0].clone();
        components.push(split.parts[1].clone());
    }
    assemble(weights, components)
}

/// The mixture after a merge. The result replaces the first component, and the last component replaces the second.
pub(super) fn merged(mixture: &GaussianMixture, merge: &Merge) -> GaussianMixture {
    let (mut weights, mut components) = parts_of(mixture);
    let [i, j] = merge.components;
    (weights[i], components[i]) = (merge.weight, merge.merged.clone());
    weights.swap_remove(j);
    components.swap_remove(j);
    assemble(weights, components)
}

/// The mixture after a merge, in which `new` replaces the second component.
pub(super) fn replaced(
    mixture: &GaussianMixture,
    merge: &Merge,
    weight: f64,
    new: &Gaussian,
) -> GaussianMixture {
    let (mut weights, mut components) = parts_of(mixture);
    let [i, j] = merge.components;
    weights[i] = merge.weight;
    components[i] = merge.merged.clone();
    weights.iter_mut().for_each(|w| *w *= 1.0 - weight);
    (weights[j], components[j]) = (weight, new.clone());
    assemble(weights, components)
}

fn parts_of(mixture: &GaussianMixture) -> (Vec<f64>, Vec<Gaussian>) {
    (mixture.weights().to_vec(), mixture.components().to_vec())
}

fn assemble(weights: Vec<f64>, components: Vec<Gaussian>) -> GaussianMixture {
    Mixture::new(weights, components).expect("one weight for each component")
}
