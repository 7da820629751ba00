//! Components for groups of rows that belong to no component.
//!
//! If a search has a noise level, the density of a row is at least that level. A few outliers therefore do not occupy a
//! component that a new kind of rows needs.

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::e_step::{Assigned, Others, Sums, sweep};
use super::m_step::{gaussian_with_ridge, mean_and_scatter};
use super::merge::cheapest_merges;
use super::search::{MIN_RISE, Search};
use super::search_state::{SearchState, replaced};
use super::split::strength_of_parts;
use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::hash::mix_bits;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// The largest number of new components.
const MAX: usize = 3;
/// The smallest number of rows of a new component.
const MIN_ROWS: f64 = 20.0;
/// Rows that serve as the initial mean of a new component, in addition to the median.
const TRIES: usize = 4;
/// Iterations of EM on the new component alone.
const ITERATIONS: usize = 8;

impl Search<'_> {
    /// Creates components for rows that belong to none. For each, the two components with the smallest loss are merged.
    pub(super) fn adopt_noise(&self, state: &mut SearchState) {
        let Some(noise) = self.noise else { return };
        for _ in 0..MAX {
            let mixture = &state.now.mixture;
            let assigned = self.assigned(mixture);
            let Some((new, weight)) = self.newcomer(mixture, &assigned, noise) else { return };
            let target = state.now.level + MIN_RISE;
            let merges = cheapest_merges(self.rows, mixture, &assigned, 2);
            let better = merges.iter().find_map(|merge| {
                self.improve(&replaced(mixture, merge, weight, &new), target).map(|better| (merge, better))
            });
            let Some((merge, better)) = better else { return };
            state.replace(merge, better);
        }
    }

    /// The best Gaussian for some of the rows that belong to no component, and its weight.
    fn newcomer(
        &self,
        mixture: &GaussianMixture,
        assigned: &Assigned,
        noise: f64,
    ) -> Option<(Gaussian, f64)> {
        let free = |&i: &usize| {
            let (block, place) = (i / BLOCK, i % BLOCK);
            (0..mixture.k()).map(|j| assigned.of_block(block, j)[place]).sum::<f64>() < 0.5
        };
        let chosen: Vec<usize> = (0..self.rows.rows()).filter(free).collect();
        let rows = self.rows.reordered(&chosen);
        if rows.total_weight() < MIN_ROWS {
            return None;
        }
        let pooled = pooled_covariance(mixture);
        let mut rng = ChaCha8Rng::seed_from_u64(mix_bits(self.seed));
        let row = |i: usize| (0..rows.dim()).map(|l| rows.value(i, l)).collect::<Vec<f64>>();
        let starts: Vec<Vec<f64>> = std::iter::once(median(&rows))
            .chain((0..TRIES).map(|_| row(rng.random_range(0..rows.rows()))))
            .collect();
        let tried = starts.into_iter().map(|mean| self.settle(&rows, mean, &pooled, noise));
        let best = tried.reduce(|a, b| if b.2 > a.2 { b } else { a })?;
        (best.1 >= MIN_ROWS).then(|| (best.0, best.1 / self.rows.total_weight()))
    }

    /// EM for one component and noise. Returns the component, its rows, and the log-likelihood.
    fn settle(
        &self,
        rows: &RowBlocks,
        mean: Vec<f64>,
        pooled: &Array2<f64>,
        noise: f64,
    ) -> (Gaussian, f64, f64) {
        let log_densities = vec![noise; rows.blocks() * BLOCK];
        let log_weight = (rows.total_weight() / self.rows.total_weight()).ln();
        let others = Some(Others { log_densities: &log_densities, log_weight });
        let worth = strength_of_parts(rows.dim());
        let mut gaussian = gaussian_with_ridge(mean, pooled.clone(), self.ridge);
        let (mut count, mut log_likelihood) = (0.0, f64::NEG_INFINITY);
        for _ in 0..ITERATIONS {
            let one = Mixture::new(vec![1.0], vec![gaussian.clone()]).expect("one weight for one component");
            let Sums { log_likelihood: level, mut moments, .. } =
                sweep(rows, &one, CovarianceType::Full, others);
            let moments = moments.remove(0);
            (count, log_likelihood) = (moments.count, level);
            if count < 1.0 {
                break;
            }
            let (mean, scatter) = mean_and_scatter(moments, gaussian.mean());
            gaussian = gaussian_with_ridge(mean, (scatter + worth * pooled) / (count + worth), self.ridge);
        }
        (gaussian, count, log_likelihood)
    }
}

/// The mean covariance of the components.
fn pooled_covariance(mixture: &GaussianMixture) -> Array2<f64> {
    let mut pooled = Array2::zeros((mixture.dim(), mixture.dim()));
    for (weight, component) in mixture.weights().iter().zip(mixture.components()) {
        pooled.scaled_add(*weight, &component.covariance().matrix());
    }
    pooled
}

/// The median of each column.
fn median(rows: &RowBlocks) -> Vec<f64> {
    let of_column = |l: usize| {
        let mut values: Vec<f64> = (0..rows.rows()).map(|i| rows.value(i, l)).collect();
        let middle = values.len() / 2;
        *values.select_nth_unstable_by(middle, f64::total_cmp).1
    };
    (0..rows.dim()).map(of_column).collect()
}
