//! A sweep over rows: the E step of EM. It runs in parallel over a fixed number of groups of blocks, so that the result does not
//! depend on the number of threads.

use std::ops::Range;

use rayon::prelude::*;

use super::reservoir::uniform;
use crate::dist::{BlockScorer, GaussianMixture, most_probable};
use crate::hash::mix_bits;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::{BLOCK, Moments, RowBlocks};
use crate::linalg::simd::{Arithmetic, at_run_time};

/// The number of groups of blocks.
const GROUPS: usize = 8;

/// Sums for the M step, relative to the means of the mixture of the E step.
#[derive(Clone)]
pub(in crate::learn) struct Sums {
    /// The sum of the log-densities of the rows.
    pub log_likelihood: f64,
    /// The moments of each component.
    pub moments: Vec<Moments>,
    /// The number of rows of equal weight that say as much as a weight of one.
    pub information: f64,
    /// See [`RowBlocks::unit`].
    pub unit: f64,
    /// See [`RowBlocks::repeats_of_prior`].
    pub of_prior: f64,
    /// The sum of [`RowBlocks::repeats`] over the weight of each component. Empty if rows have no weights of their own.
    pub repeats: Vec<f64>,
    /// If covariances are tied: the second moments of all rows, and what they are relative to.
    pub shared: Option<(Moments, Vec<f64>)>,
    /// The covariances that components are to have. Without full ones, moments are those of single columns.
    pub kind: CovarianceType,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.log_likelihood += other.log_likelihood;
        for (sum, other) in self.moments.iter_mut().zip(&other.moments) {
            sum.merge(other);
        }
        self.repeats.iter_mut().zip(&other.repeats).for_each(|(sum, other)| *sum += other);
        if let (Some((sums, _)), Some((others, _))) = (&mut self.shared, &other.shared) {
            sums.merge(others);
        }
    }

    /// Makes them sums over no rows.
    fn clear(&mut self) {
        self.log_likelihood = 0.0;
        self.moments.iter_mut().chain(self.shared.as_mut().map(|(all, _)| all)).for_each(Moments::clear);
    }

    /// Sums over no rows, for components around these means.
    pub fn none(mixture: &GaussianMixture, kind: CovarianceType, rows: &RowBlocks) -> Self {
        let dim = mixture.dim();
        let moments = if kind.is_full() { Moments::new(dim) } else { Moments::of_columns(dim) };
        let mut origin = vec![0.0; dim];
        for (weight, component) in mixture.weights().iter().zip(mixture.components()) {
            origin.iter_mut().zip(component.mean()).for_each(|(sum, mean)| *sum += weight * mean);
        }
        let (unit, of_prior) = (rows.unit(), rows.repeats_of_prior());
        Sums {
            log_likelihood: 0.0,
            moments: vec![moments; mixture.k()],
            information: rows.effective_rows() * (unit / (unit / of_prior).max(1.0)) / rows.total_weight(),
            unit,
            of_prior,
            repeats: rows.repeats(0).map_or(Vec::new(), |_| vec![0.0; mixture.k()]),
            shared: (kind == CovarianceType::Tied).then(|| (Moments::new(dim), origin)),
            kind,
        }
    }
}

/// The components outside a sweep over a part of a mixture.
#[derive(Clone, Copy)]
pub(in crate::learn) struct Others<'a> {
    /// The log-density of each row under them, including their weights, padded to whole blocks.
    pub log_densities: &'a [f64],
    /// The logarithm of the total weight of the components inside the sweep.
    pub log_weight: f64,
}

impl<'a> Others<'a> {
    /// Noise with these log-densities instead of components.
    pub fn noise(log_densities: &'a [f64]) -> Self {
        Others { log_densities, log_weight: 0.0 }
    }

    /// Replaces the log-densities of the rows of block `i` by those under all components, and multiplies the weights of the
    /// rows by the total responsibility of the components inside the sweep.
    fn share(&self, i: usize, log_densities: &mut [f64], weights: &mut [f64; BLOCK]) {
        let others = &self.log_densities[i * BLOCK..];
        for ((log_density, weight), other) in log_densities.iter_mut().zip(weights).zip(others) {
            let own = self.log_weight + *log_density;
            let top = own.max(*other);
            *log_density = top + ((own - top).exp() + (other - top).exp()).ln();
            *weight *= (own - *log_density).exp();
        }
    }
}

/// The sums over all rows. With `others`, the mixture is a part of a larger one.
pub(in crate::learn) fn sweep(
    rows: &RowBlocks,
    mixture: &GaussianMixture,
    kind: CovarianceType,
    others: Option<Others>,
) -> Sums {
    let scorer = BlockScorer::of_ordered(mixture);
    let of_group = |(group, (scorer, sums)): (&Range<usize>, &mut (BlockScorer, Sums))| {
        scorer.restart();
        sums.clear();
        let (mut log_densities, mut weights, mut weighted) = ([0.0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
        for i in group.clone() {
            let (block, filled) = rows.block(i);
            scorer.score_block(mixture, &block, filled);
            let log_densities = &mut log_densities[..filled];
            log_densities.iter_mut().zip(scorer.log_densities()).for_each(|(to, from)| *to = *from);
            weights.copy_from_slice(rows.weights(i));
            if let Some(others) = others {
                others.share(i, log_densities, &mut weights);
            }
            sums.log_likelihood += log_densities.iter().zip(rows.weights(i)).map(|(l, w)| l * w).sum::<f64>();
            let mut total = [0.0; BLOCK];
            for (j, moments) in sums.moments.iter_mut().enumerate() {
                let most = weigh(scorer.responsibilities(j), &weights, &mut weighted);
                // Blocks far from a component are skipped.
                if most >= NEGLIGIBLE {
                    let shared = sums.shared.as_mut().map(|(all, origin)| (all, &origin[..]));
                    scorer.add_moments(mixture, j, &block, &weighted, moments, shared);
                    total.iter_mut().zip(&weighted).for_each(|(sum, weight)| *sum += weight);
                    if let Some(repeats) = rows.repeats(i) {
                        sums.repeats[j] += weighted.iter().zip(repeats).map(|(a, b)| a * b).sum::<f64>();
                    }
                }
            }
            if let Some((all, origin)) = &mut sums.shared {
                scorer.add_shared_moments(&block, &total, all, origin);
            }
        }
    };
    let mut total = Sums::none(mixture, kind, rows);
    // One group per thread at a time bounds the memory. The order of the additions is always the same.
    let (groups, threads) = (groups(rows), rayon::current_num_threads().max(1));
    let mut parts = vec![(scorer, total.clone()); threads.min(groups.len())];
    for wave in groups.chunks(threads) {
        wave.par_iter().zip(&mut parts).for_each(of_group);
        parts[..wave.len()].iter().for_each(|(_, part)| total.add(part));
    }
    total
}

at_run_time! {
    /// Multiplies responsibilities by the weights of the rows. Returns the largest product.
    fn weigh(shares: &[f64], weights: &[f64; BLOCK], out: &mut [f64; BLOCK]) -> f64 = weigh_kernel
}

#[inline(always)]
fn weigh_kernel<A: Arithmetic>(shares: &[f64], weights: &[f64; BLOCK], out: &mut [f64; BLOCK]) -> f64 {
    let mut most = [0.0; LANES];
    let lanes = shares.chunks_exact(LANES).zip(weights.chunks_exact(LANES));
    for ((shares, weights), out) in lanes.zip(out.chunks_exact_mut(LANES)) {
        for i in 0..LANES {
            out[i] = shares[i] * weights[i];
            most[i] = if out[i] > most[i] { out[i] } else { most[i] };
        }
    }
    most.into_iter().fold(0.0, f64::max)
}

/// Products that are compared together.
const LANES: usize = 16;

/// Smaller responsibilities are ignored.
const NEGLIGIBLE: f64 = 1e-12;

/// The range of blocks of each group.
pub(super) fn groups(rows: &RowBlocks) -> Vec<Range<usize>> {
    let blocks = rows.blocks();
    let size = blocks.div_ceil(GROUPS).max(1);
    (0..blocks.div_ceil(size).max(1)).map(|i| i * size..((i + 1) * size).min(blocks)).collect()
}

/// The log-densities and responsibilities of all rows.
#[derive(Debug, Clone)]
pub(super) struct Assigned {
    k: usize,
    /// By blocks, [`BLOCK`] numbers each.
    pub log_densities: Vec<f64>,
    /// By blocks, and in a block by components, [`BLOCK`] numbers each.
    responsibilities: Vec<f64>,
}

impl Assigned {
    /// `noise` is the log-density of noise, if any. Rows of a lower density belong to no component.
    pub fn new(rows: &RowBlocks, mixture: &GaussianMixture, noise: Option<f64>) -> Self {
        let (k, blocks) = (mixture.k(), rows.blocks());
        let mut log_densities = vec![0.0; blocks * BLOCK];
        let mut responsibilities = vec![0.0; blocks * BLOCK * k];
        let scorer = BlockScorer::of_ordered(mixture);
        let size = blocks.div_ceil(GROUPS).max(1);
        log_densities
            .par_chunks_mut(size * BLOCK)
            .zip(responsibilities.par_chunks_mut(size * BLOCK * k))
            .enumerate()
            .for_each(|(group, (log_densities, responsibilities))| {
                let mut scorer = scorer.clone();
                let noise = noise.map(|noise| [noise; BLOCK]);
                let noise = noise.as_ref().map(|noise| Others::noise(noise));
                let places = log_densities.chunks_mut(BLOCK).zip(responsibilities.chunks_mut(BLOCK * k));
                for (i, (log_densities, responsibilities)) in places.enumerate() {
                    let (block, filled) = rows.block(group * size + i);
                    scorer.score_block(mixture, &block, filled);
                    log_densities.iter_mut().zip(scorer.log_densities()).for_each(|(to, from)| *to = *from);
                    let mut own = [1.0; BLOCK];
                    if let Some(noise) = noise {
                        noise.share(0, &mut log_densities[..filled], &mut own);
                    }
                    for (j, to) in responsibilities.chunks_mut(BLOCK).enumerate() {
                        to.iter_mut()
                            .zip(scorer.responsibilities(j))
                            .zip(&own)
                            .for_each(|((to, r), own)| *to = r * own);
                    }
                }
            });
        Assigned { k, log_densities, responsibilities }
    }

    /// The responsibilities of component `j` for the rows of block `i`.
    pub fn of_block(&self, i: usize, j: usize) -> &[f64] {
        &self.responsibilities[(i * self.k + j) * BLOCK..][..BLOCK]
    }
}

/// The most probable component of each row, and the row's log-density.
pub(super) fn label(rows: &RowBlocks, mixture: &GaussianMixture) -> (Vec<usize>, Vec<f64>) {
    let of_row = |scorer: &BlockScorer, _: usize, r: usize| {
        let shares = (0..mixture.k()).map(|j| scorer.responsibilities(j)[r]);
        (most_probable(shares).0, scorer.log_densities()[r])
    };
    each_row(rows, mixture, of_row).into_iter().unzip()
}

/// A component for each row, drawn with the probabilities of its responsibilities.
pub(super) fn draw(rows: &RowBlocks, mixture: &GaussianMixture, seed: u64) -> Vec<usize> {
    each_row(rows, mixture, |scorer, row, r| {
        let mut left = uniform(mix_bits(seed ^ mix_bits(row as u64)));
        let is_drawn = |j: &usize| {
            left -= scorer.responsibilities(*j)[r];
            left < 0.0
        };
        (0..mixture.k()).find(is_drawn).unwrap_or(mixture.k() - 1)
    })
}

/// What `of_row` says of each row, given the scores of its block, its index, and its place in the block.
fn each_row<T: Send>(
    rows: &RowBlocks,
    mixture: &GaussianMixture,
    of_row: impl Fn(&BlockScorer, usize, usize) -> T + Sync,
) -> Vec<T> {
    let scorer = BlockScorer::of_ordered(mixture);
    let of_group = |group: Range<usize>| {
        let mut scorer = scorer.clone();
        let mut found = Vec::with_capacity(group.len() * BLOCK);
        for i in group {
            let (block, filled) = rows.block(i);
            scorer.score_block(mixture, &block, filled);
            found.extend((0..filled).map(|r| of_row(&scorer, i * BLOCK + r, r)));
        }
        found
    };
    let found: Vec<Vec<T>> = groups(rows).into_par_iter().map(of_group).collect();
    found.into_iter().flatten().collect()
}
