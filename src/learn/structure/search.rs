//! Better structures with the same number of components: a component is split where that gains most, and two others are
//! joined where that costs least.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::em::{Em, Improved};
use super::history::{Identifiers, Move};
use super::join::{Join, cheapest_joins};
use super::maximise::{Shape, maximise};
use super::split::{Split, best_split};
use super::sweep::{Assigned, Others, sweep};
use crate::dist::{GaussianMixture, Mixture};
use crate::learn::fingerprint::mix_bits;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// How much work a search does.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Limits {
    /// Seeds that a start is chosen from.
    pub seeds: usize,
    /// Rounds at most.
    pub rounds: usize,
    /// Splits that are combined with twice as many joins in a round.
    pub splits: usize,
    /// Moves tried in a round.
    pub tries: usize,
    /// Iterations of EM after a move.
    pub iterations: usize,
    /// Iterations of EM before the first move.
    pub first_iterations: usize,
    /// Rows of a search, as a multiple of what it needs at least.
    pub row_factor: usize,
}

impl Limits {
    /// Hardly any work, for a mixture that nobody looks at.
    pub const PROVISIONAL: Limits = Limits {
        seeds: 1,
        rounds: 0,
        splits: 0,
        tries: 0,
        iterations: 1,
        first_iterations: 1,
        row_factor: 1,
    };
}

/// A search on some rows.
pub(in crate::learn) struct Search<'a> {
    pub rows: &'a RowBlocks,
    /// What the prior on the shape of a covariance is worth, in rows.
    pub strength: f64,
    /// Added to each variance.
    pub ridge: f64,
    pub limits: Limits,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// What a search found.
pub(in crate::learn) struct Found {
    pub mixture: GaussianMixture,
    pub moves: Vec<Move>,
}

/// A move is kept if the mean log-likelihood rises by more.
const LEAST_RISE: f64 = 2e-4;
/// Iterations on the moved components alone, before all components move.
const PART_ITERATIONS: usize = 8;
/// How far a move may lie below the present level after those iterations.
const PART_SLACK: f64 = 0.01;
/// A split is tried if it gains more than this many times the free numbers it adds. A single Gaussian gains about once
/// as much from noise alone.
const NOISE: f64 = 1.5;

impl Search<'_> {
    /// EM with the search's prior.
    pub fn em(&self, iterations: usize, tolerance: f64) -> Em {
        Em { iterations, tolerance, shape: Shape::OwnVolume(self.strength), ridge: self.ridge }
    }

    /// Improves a mixture that EM has converged on.
    pub fn run(&self, start: Improved, identifiers: &mut Identifiers) -> Found {
        let mut now = start;
        let mut moves = Vec::new();
        let mut failed: HashSet<(usize, [usize; 2])> = HashSet::new();
        let mut splits: Vec<Option<Split>> = vec![None; now.mixture.k()];
        let mut counts = vec![0.0; now.mixture.k()];
        for round in 0..self.limits.rounds {
            if now.mixture.k() < 3 || self.stop.load(Ordering::Relaxed) {
                break;
            }
            let assigned = Assigned::new(self.rows, &now.mixture);
            self.refresh_splits(&now.mixture, &assigned, &mut splits, &mut counts, round);
            let joins = cheapest_joins(self.rows, &now.mixture, &assigned, 2 * self.limits.splits);
            let candidates = self.candidates(&splits, &joins, &failed);
            let mut moved = None;
            for (split, join) in candidates.into_iter().take(self.limits.tries) {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                match self.attempt(&now, &assigned, split, join) {
                    Some(better) => {
                        moved = Some((better, split.component, join.components));
                        break;
                    }
                    None => drop(failed.insert((split.component, join.components))),
                }
            }
            let Some((better, split, joined)) = moved else { break };
            moves.push(identifiers.swap(split, joined, better.mean_log_likelihood - now.mean_log_likelihood));
            for touched in [split, joined[0], joined[1]] {
                splits[touched] = None;
                counts[touched] = 0.0;
            }
            failed.clear();
            now = better;
        }
        Found { mixture: now.mixture, moves }
    }

    /// Finds the best split of each component whose rows have changed since it was last looked at.
    fn refresh_splits(
        &self,
        mixture: &GaussianMixture,
        assigned: &Assigned,
        splits: &mut [Option<Split>],
        counts: &mut [f64],
        round: usize,
    ) {
        let rows = self.rows.total_weight();
        let changed = |j: usize| {
            let count = rows * mixture.weights()[j];
            (count - counts[j]).abs() > 0.05 * counts[j]
        };
        let stale: Vec<usize> = (0..mixture.k()).filter(|&j| changed(j)).collect();
        let find = |&j: &usize| {
            let seed = mix_bits(self.seed ^ mix_bits((round as u64) << 32 | j as u64));
            best_split(self.rows, mixture, assigned, j, self.strength, seed)
        };
        // Each copies the rows of a component: as many at a time as there are threads bound the memory.
        for wave in stale.chunks(rayon::current_num_threads().max(1)) {
            let found: Vec<Option<Split>> = wave.par_iter().map(find).collect();
            for (&j, split) in wave.iter().zip(found) {
                splits[j] = split;
                counts[j] = rows * mixture.weights()[j];
            }
        }
    }

    /// The best splits with the cheapest joins, ordered by what both gain together. The order alone counts: a swap that
    /// loses at first may gain when the other components have moved.
    fn candidates<'s>(
        &self,
        splits: &'s [Option<Split>],
        joins: &'s [Join],
        failed: &HashSet<(usize, [usize; 2])>,
    ) -> Vec<(&'s Split, &'s Join)> {
        let dim = self.rows.dim();
        let noise = NOISE * (dim * (dim + 3) / 2 + 1) as f64;
        let mut best: Vec<&Split> = splits.iter().flatten().filter(|split| split.gain > noise).collect();
        best.sort_by(|a, b| b.gain.total_cmp(&a.gain));
        let mut candidates: Vec<(&Split, &Join)> = Vec::new();
        for split in best.into_iter().take(self.limits.splits) {
            let free = joins.iter().filter(|join| !join.components.contains(&split.component));
            candidates.extend(
                free.filter(|join| !failed.contains(&(split.component, join.components)))
                    .map(|join| (split, join)),
            );
        }
        candidates.sort_by(|a, b| (b.0.gain - b.1.loss).total_cmp(&(a.0.gain - a.1.loss)));
        candidates
    }

    /// The mixture after a swap and EM, if it is better.
    fn attempt(&self, now: &Improved, assigned: &Assigned, split: &Split, join: &Join) -> Option<Improved> {
        let [first, second] = join.components;
        let j = split.component;
        let touched = [j, second, first];
        let old = &now.mixture;
        let weight = old.weights()[j] + join.weight;
        let part = Mixture::new(
            vec![
                old.weights()[j] * split.shares[0] / weight,
                old.weights()[j] * split.shares[1] / weight,
                join.weight / weight,
            ],
            vec![split.parts[0].clone(), split.parts[1].clone(), join.joined.clone()],
        )
        .ok()?;
        let (part, rise) = self.improve_part(part, assigned, &touched, weight.ln());
        let target = now.mean_log_likelihood + LEAST_RISE;
        if !(rise > -PART_SLACK) {
            return None;
        }
        let (mut weights, mut components) = (old.weights().to_vec(), old.components().to_vec());
        for (n, &place) in touched.iter().enumerate() {
            weights[place] = weight * part.weights()[n];
            components[place] = part.components()[n].clone();
        }
        let start = Mixture::new(weights, components).ok()?;
        let after = self.em(self.limits.iterations, 1e-4).run(self.rows, &start, target, self.stop);
        (after.mean_log_likelihood > target).then_some(after)
    }

    /// EM on a part of a mixture whose other components stay as they are, on the rows that the `touched` components are
    /// responsible for. Returns the part, and by how much the mean log-likelihood of all rows rises.
    fn improve_part(
        &self,
        mut part: GaussianMixture,
        assigned: &Assigned,
        touched: &[usize],
        log_weight: f64,
    ) -> (GaussianMixture, f64) {
        let Touched { rows, others, log_likelihood } = Touched::new(self.rows, assigned, touched);
        let others = Some(Others { log_densities: &others, log_weight });
        let (all, mut before) = (self.rows.total_weight(), f64::NEG_INFINITY);
        let shape = Shape::OwnVolume(self.strength);
        for _ in 0..PART_ITERATIONS {
            let sums = sweep(&rows, &part, others);
            if sums.log_likelihood - before < 1e-4 * all {
                return (part, (sums.log_likelihood - log_likelihood) / all);
            }
            before = sums.log_likelihood;
            part = maximise(&sums, &part, shape, self.ridge);
        }
        let after = sweep(&rows, &part, others).log_likelihood;
        (part, (after - log_likelihood) / all)
    }
}

/// Rows that some components are responsible for.
struct Touched {
    rows: RowBlocks,
    /// Log-density of each row under all other components, one for each place of each block.
    others: Vec<f64>,
    /// Of the rows under all components.
    log_likelihood: f64,
}

impl Touched {
    /// Rows of which the components have more than this belong to them.
    const LEAST: f64 = 0.01;

    fn new(rows: &RowBlocks, assigned: &Assigned, touched: &[usize]) -> Self {
        let (mut chosen, mut others, mut log_likelihood) = (Vec::new(), Vec::new(), 0.0);
        for i in 0..rows.rows() {
            let (block, place) = (i / BLOCK, i % BLOCK);
            let share: f64 = touched.iter().map(|&j| assigned.of_block(block, j)[place]).sum();
            if share > Self::LEAST {
                chosen.push(i);
                others.push(assigned.log_densities[i] + (1.0 - share).max(f64::MIN_POSITIVE).ln());
                log_likelihood += rows.weight(i) * assigned.log_densities[i];
            }
        }
        others.resize(chosen.len().div_ceil(BLOCK).max(1) * BLOCK, 0.0);
        Touched { rows: rows.reordered(&chosen), others, log_likelihood }
    }
}
