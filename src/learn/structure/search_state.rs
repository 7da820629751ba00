//! A search under way: its mixture, and what moves do to the order of the components.

use super::em::Improved;
use super::history::{Identifiers, Move};
use super::merge::Merge;
use super::search::Failed;
use super::split::Split;
use crate::dist::{Gaussian, GaussianMixture, Mixture};

/// A search under way.
pub(super) struct SearchState<'i> {
    pub now: Improved,
    pub moves: Vec<Move>,
    /// Which component each was before the search; none where a move made it.
    pub origins: Vec<Option<usize>>,
    /// The best split of each component, where it was looked for.
    pub splits: Vec<Option<Split>>,
    /// Rows that each component had when it was.
    pub counts: Vec<f64>,
    /// Moves that did not help. Forgotten whenever something changes.
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

    /// What a swap is remembered by if it fails.
    pub fn swap_key(&self, split: &Split, merge: &Merge) -> Vec<u64> {
        let [first, second] = merge.components;
        [split.component, first, second].map(|j| self.identifier(j)).to_vec()
    }

    /// Components were split, as [`split_all`] does, and EM led to `better`.
    pub fn split(&mut self, splits: &[Split], better: Improved) {
        let gain = (better.mean_log_likelihood - self.now.mean_log_likelihood) / splits.len() as f64;
        for split in splits {
            let split = Some(self.part(split.component));
            self.moves.push(Move { split, merged: None, added: None, gain });
        }
        self.settle(better);
    }

    /// Two components were joined, as [`joined`] does.
    pub fn merge(&mut self, merge: &Merge, after: Improved) {
        let merged = Some(self.unite(merge.components));
        let gain = after.mean_log_likelihood - self.now.mean_log_likelihood;
        self.moves.push(Move { split: None, merged, added: None, gain });
        self.settle(after);
    }

    /// One component was split and two others were joined: the second part has the place of the second of these.
    pub fn swap(&mut self, split: &Split, merge: &Merge, better: Improved) {
        let split = Some(self.part(split.component));
        let merged = Some(self.unite(merge.components));
        let gain = better.mean_log_likelihood - self.now.mean_log_likelihood;
        self.moves.push(Move { split, merged, added: None, gain });
        self.settle(better);
    }

    /// Two components were joined, and one was added in the place of the second.
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

/// The mixture in which components are split: the first part takes the place of the whole, the second is added.
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

/// The mixture in which two components are one: it takes the place of the first, and the last component that of the
/// second.
pub(super) fn merged(mixture: &GaussianMixture, merge: &Merge) -> GaussianMixture {
    let (mut weights, mut components) = parts_of(mixture);
    let [i, j] = merge.components;
    (weights[i], components[i]) = (merge.weight, merge.merged.clone());
    weights.swap_remove(j);
    components.swap_remove(j);
    assemble(weights, components)
}

/// The mixture in which two components are one, and `new` has the place of the second.
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
