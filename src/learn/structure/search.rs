//! The search for better structures: swaps, which split the component with the largest gain and merge the two others with the
//! smallest loss. If K is learned, also splits and merges alone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::covariance_prior::{PriorStrength, Strength};
use super::e_step::{Assigned, Others, sweep};
use super::em::{Em, Improved, Price};
use super::history::{Identifiers, Move};
use super::m_step::{Parts, maximise};
use super::merge::{Merge, cheapest_merges};
use super::search_state::{SearchState, merged, split_all};
use super::split::{Split, best_split, gain_by_chance};
use super::{Limits, Size};
use crate::dist::{GaussianMixture, Mixture};
use crate::hash::mix_bits;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// A search on some rows.
pub(in crate::learn) struct Search<'a> {
    pub rows: &'a RowBlocks,
    /// The covariances of the components.
    pub kind: CovarianceType,
    /// The prior of covariances.
    pub prior: PriorStrength,
    /// Added to each variance.
    pub ridge: f64,
    pub limits: Limits,
    pub size: Size,
    /// The log-density of noise, if any. Rows of a lower density belong to no component.
    pub noise: Option<f64>,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// The result of a search.
pub(in crate::learn) struct Found {
    pub mixture: GaussianMixture,
    pub moves: Vec<Move>,
    /// For each component, its index before the search; `None` if a move created it.
    pub origins: Vec<Option<usize>>,
}

/// A swap is kept if the mean log-likelihood rises by more than this.
pub(super) const MIN_RISE: f64 = 2e-4;
/// EM stops when the mean log-likelihood changes by less than this: before and after swaps and merges, and while components are
/// split, which changes the mixture again.
const TOLERANCE: f64 = 1e-4;
const GROWING: f64 = 1e-3;
/// Iterations on the changed components alone, before EM on all components.
const PART_ITERATIONS: usize = 8;
/// The largest loss of the mean log-likelihood after those iterations.
const PART_SLACK: f64 = 0.01;
/// The largest number of times that K grows and shrinks.
const CYCLES: usize = 4;
/// A split alone is tried if it gains more than this fraction of its price, because EM increases the gain.
const PROMISING: f64 = 0.7;
/// A merge alone is tried if it loses less than this many times its price, because EM reduces the loss.
pub(super) const AFFORDABLE: f64 = 3.0;

impl Search<'_> {
    /// EM with the search's prior.
    pub fn em(&self, iterations: usize, tolerance: f64) -> Em {
        let (price, prior) = (self.size.price(self.rows, self.kind), Some(self.prior));
        Em { kind: self.kind, iterations, tolerance, prior, price, ridge: self.ridge, noise: self.noise }
    }

    /// Improves a mixture that EM has converged on.
    pub fn run(&self, start: Improved, identifiers: &mut Identifiers) -> Found {
        let mut state = SearchState::new(start, identifiers);
        self.adopt_noise(&mut state);
        match self.size {
            Size::Given(_) => self.swap_all(&mut state),
            Size::Learned { least, most, .. } => {
                for _ in 0..CYCLES {
                    let before = state.moves.len();
                    self.grow(&mut state, most);
                    self.swap_all(&mut state);
                    self.shrink(&mut state, least);
                    if state.moves.len() == before || self.is_stopped() {
                        break;
                    }
                }
            }
        }
        Found { mixture: state.now.mixture, moves: state.moves, origins: state.origins }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(super) fn assigned(&self, mixture: &GaussianMixture) -> Assigned {
        Assigned::new(self.rows, mixture, self.noise)
    }

    /// About the rise of the mean log-likelihood that justifies one more component.
    fn price(&self, now: &Improved) -> f64 {
        match self.size.price(self.rows, self.kind) {
            Price::Component(each) => each,
            Price::Evidence => ((now.mean_log_likelihood - now.level) / now.mixture.k() as f64).max(0.0),
        }
    }

    /// Splits components, several at a time, while each split gains more than its price.
    fn grow(&self, state: &mut SearchState, most: usize) {
        let all = self.rows.total_weight();
        let before = state.k();
        let mut failures = 0;
        while failures < self.limits.tries && state.k() < most && !self.is_stopped() {
            let price = self.price(&state.now);
            let assigned = self.assigned(&state.now.mixture);
            self.refresh_splits(state, &assigned);
            let promising = |split: &&Split| {
                let failed = state.failed.contains(&[state.identifier(split.component)][..]);
                split.gain > PROMISING * price * state.now.costs[split.component] * all && !failed
            };
            let mut chosen: Vec<Split> = state.splits.iter().flatten().filter(promising).cloned().collect();
            chosen.sort_by(|a, b| b.gain.total_cmp(&a.gain));
            chosen.truncate(most - state.k());
            if chosen.is_empty() {
                break;
            }
            match self.split_some(&state.now, &mut chosen) {
                Some(better) => state.split(&chosen, better),
                None => {
                    failures += 1;
                    state.failed.insert(vec![state.identifier(chosen[0].component)]);
                }
            }
        }
        if state.k() > before {
            state.now = self.em(self.limits.iterations, TOLERANCE).run(
                self.rows,
                &state.now.mixture,
                f64::NEG_INFINITY,
                self.stop,
            );
        }
    }

    /// The mixture after splits and EM, if it gains more than their price. Drops the worse half of the splits until it does.
    fn split_some(&self, now: &Improved, chosen: &mut Vec<Split>) -> Option<Improved> {
        loop {
            let better = self.improve_roughly(&split_all(&now.mixture, chosen), now.level);
            if better.is_some() || chosen.len() == 1 {
                return better;
            }
            chosen.truncate(chosen.len() / 2);
        }
    }

    /// Merges components while each merge loses less than its price.
    fn shrink(&self, state: &mut SearchState, least: usize) {
        let all = self.rows.total_weight();
        let mut failures = 0;
        while failures < self.limits.tries && state.k() > least && !self.is_stopped() {
            let price = self.price(&state.now);
            let assigned = self.assigned(&state.now.mixture);
            let merges = cheapest_merges(self.rows, &state.now.mixture, &assigned, 2 * self.limits.splits);
            let cost =
                |merge: &Merge| merge.components.iter().map(|&j| state.now.costs[j]).fold(1.0, f64::max);
            let affordable = |merge: &&Merge| {
                merge.loss < AFFORDABLE * price * cost(merge) * all
                    && !state.failed.contains(&merge.components.map(|j| state.identifier(j))[..])
            };
            let Some(merge) = merges.iter().find(affordable) else { return };
            match self.improve(&merged(&state.now.mixture, merge), state.now.level) {
                Some(after) => state.merge(merge, after),
                None => {
                    failures += 1;
                    state.failed.insert(merge.components.map(|j| state.identifier(j)).to_vec());
                }
            }
        }
    }

    /// The mixture after EM, if its level is above `target`.
    pub(super) fn improve(&self, start: &GaussianMixture, target: f64) -> Option<Improved> {
        let after = self.em(self.limits.iterations, TOLERANCE).run(self.rows, start, target, self.stop);
        (after.level > target).then_some(after)
    }

    /// [`Search::improve`], which stops sooner if the level is above `target` by then.
    fn improve_roughly(&self, start: &GaussianMixture, target: f64) -> Option<Improved> {
        let after = self.em(self.limits.iterations, GROWING).run(self.rows, start, target, self.stop);
        match after.level > target {
            true => Some(after),
            false => after.converged.then(|| self.improve(&after.mixture, target)).flatten(),
        }
    }

    /// Swaps: splits one component and merges two others, while the mean log-likelihood rises.
    fn swap_all(&self, state: &mut SearchState) {
        for _ in 0..self.limits.rounds {
            if state.k() < 3 || self.is_stopped() {
                return;
            }
            let assigned = self.assigned(&state.now.mixture);
            self.refresh_splits(state, &assigned);
            let merges = cheapest_merges(self.rows, &state.now.mixture, &assigned, 2 * self.limits.splits);
            let mut moved = None;
            for (split, merge) in self.swaps(state, &merges) {
                if self.is_stopped() {
                    return;
                }
                match self.swap(&state.now, &assigned, &split, merge) {
                    Some(better) => {
                        moved = Some((better, split, merge));
                        break;
                    }
                    None => drop(state.failed.insert(state.swap_key(&split, merge))),
                }
            }
            let Some((better, split, merge)) = moved else { return };
            state.swap(&split, merge, better);
        }
    }

    /// Finds the best split of each component whose number of rows has changed since its last search.
    fn refresh_splits(&self, state: &mut SearchState, assigned: &Assigned) {
        let rows = self.rows.total_weight();
        let mixture = &state.now.mixture;
        let changed = |j: usize| {
            let count = rows * mixture.weights()[j];
            (count - state.counts[j]).abs() > 0.05 * state.counts[j]
        };
        let stale: Vec<usize> = (0..mixture.k()).filter(|&j| changed(j)).collect();
        let round = state.moves.len() as u64;
        let find = |&j: &usize| {
            let seed = mix_bits(self.seed ^ mix_bits(round << 32 | j as u64));
            best_split(self.rows, mixture, assigned, j, (self.kind, seed))
        };
        // Each search copies the rows of a component, so one per thread at a time bounds the memory.
        for wave in stale.chunks(rayon::current_num_threads().max(1)) {
            let found: Vec<Option<Split>> = wave.par_iter().map(find).collect();
            for (&j, split) in wave.iter().zip(found) {
                state.splits[j] = split;
                state.counts[j] = rows * mixture.weights()[j];
            }
        }
    }

    /// The best splits with the cheapest merges, ordered by their total gain. A negative gain does not exclude a swap, because
    /// EM on the other components may change its sign.
    fn swaps<'j>(&self, state: &SearchState, merges: &'j [Merge]) -> Vec<(Split, &'j Merge)> {
        let chance = self.size.unit(self.rows) * gain_by_chance(self.kind, self.rows.dim());
        let is_gain = |split: &&Split| split.gain > chance * state.now.costs[split.component];
        let mut best: Vec<&Split> = state.splits.iter().flatten().filter(is_gain).collect();
        best.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let mut swaps: Vec<(&Split, &Merge)> = Vec::new();
        for split in best.into_iter().take(self.limits.splits) {
            let free = merges.iter().filter(|merge| !merge.components.contains(&split.component));
            let untried = free.filter(|merge| !state.failed.contains(&state.swap_key(split, merge)));
            swaps.extend(untried.map(|merge| (split, merge)));
        }
        swaps.sort_by(|a, b| (b.0.gain - b.1.loss).total_cmp(&(a.0.gain - a.1.loss)));
        swaps.truncate(self.limits.tries);
        swaps.into_iter().map(|(split, merge)| (split.clone(), merge)).collect()
    }

    /// The mixture after a swap and EM, if the mean log-likelihood rises enough.
    fn swap(&self, now: &Improved, assigned: &Assigned, split: &Split, merge: &Merge) -> Option<Improved> {
        let [first, second] = merge.components;
        let j = split.component;
        let touched = [j, second, first];
        let old = &now.mixture;
        let weight = old.weights()[j] + merge.weight;
        let part = Mixture::new(
            vec![
                old.weights()[j] * split.shares[0] / weight,
                old.weights()[j] * split.shares[1] / weight,
                merge.weight / weight,
            ],
            vec![split.parts[0].clone(), split.parts[1].clone(), merge.merged.clone()],
        )
        .ok()?;
        let (part, rise) = self.improve_part(part, now.strength, assigned, &touched, weight.ln());
        if !(rise > -PART_SLACK) {
            return None;
        }
        let (mut weights, mut components) = (old.weights().to_vec(), old.components().to_vec());
        for (n, &place) in touched.iter().enumerate() {
            weights[place] = weight * part.weights()[n];
            components[place] = part.components()[n].clone();
        }
        self.improve(&Mixture::new(weights, components).ok()?, now.level + MIN_RISE)
    }

    /// EM on a part of a mixture, with the other components fixed, on the rows that the `touched` components have a
    /// responsibility for. Returns the part, and the rise of the mean log-likelihood of all rows.
    fn improve_part(
        &self,
        mut part: GaussianMixture,
        strength: Option<Strength>,
        assigned: &Assigned,
        touched: &[usize],
        log_weight: f64,
    ) -> (GaussianMixture, f64) {
        let Touched { rows, others, log_likelihood } = Touched::new(self.rows, assigned, touched);
        let others = Some(Others { log_densities: &others, log_weight });
        let (all, mut before) = (self.rows.total_weight(), f64::NEG_INFINITY);
        for _ in 0..PART_ITERATIONS {
            let sums = sweep(&rows, &part, self.kind, others);
            if sums.log_likelihood - before < 1e-4 * all {
                return (part, (sums.log_likelihood - log_likelihood) / all);
            }
            before = sums.log_likelihood;
            part = maximise(Parts::new(sums, &part), &part, strength, self.ridge);
        }
        let after = sweep(&rows, &part, self.kind, others).log_likelihood;
        (part, (after - log_likelihood) / all)
    }
}

/// The rows that some components have a responsibility for.
struct Touched {
    rows: RowBlocks,
    /// The log-density of each row under all other components, padded to whole blocks.
    others: Vec<f64>,
    /// The log-likelihood of these rows under all components.
    log_likelihood: f64,
}

impl Touched {
    /// The smallest total responsibility.
    const MIN: f64 = 0.01;

    fn new(rows: &RowBlocks, assigned: &Assigned, touched: &[usize]) -> Self {
        let (mut chosen, mut others, mut log_likelihood) = (Vec::new(), Vec::new(), 0.0);
        for i in 0..rows.rows() {
            let (block, place) = (i / BLOCK, i % BLOCK);
            let responsibility: f64 = touched.iter().map(|&j| assigned.of_block(block, j)[place]).sum();
            if responsibility > Self::MIN {
                chosen.push(i);
                others.push(assigned.log_densities[i] + (1.0 - responsibility).max(f64::MIN_POSITIVE).ln());
                log_likelihood += rows.weight(i) * assigned.log_densities[i];
            }
        }
        others.resize(chosen.len().div_ceil(BLOCK).max(1) * BLOCK, 0.0);
        Touched { rows: rows.reordered(&chosen), others, log_likelihood }
    }
}

/// Moves that failed, by the identifiers of their components.
pub(super) type Failed = HashSet<Vec<u64>>;
