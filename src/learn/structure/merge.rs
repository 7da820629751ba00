//! Merges: the loss of log-likelihood when two components of a mixture become one.

use ndarray::Array2;
use rayon::prelude::*;

use super::e_step::{Assigned, groups};
use super::m_step::gaussian_with_ridge;
use crate::dist::{BlockScorer, Density, Gaussian, GaussianMixture, Mixture};
use crate::linalg::Factor;
use crate::linalg::blocks::{BLOCK, RowBlocks};

/// A possible merge of two components.
#[derive(Debug, Clone)]
pub(super) struct Merge {
    /// The two components, the smaller index first.
    pub components: [usize; 2],
    /// The loss of the log-likelihood of all rows.
    pub loss: f64,
    /// The weight of both together.
    pub weight: f64,
    /// The Gaussian with the moments of both together.
    pub merged: Gaussian,
}

/// With at most this many components, all pairs are considered.
const MAX_COMPONENTS_OF_ALL_PAIRS: usize = 24;
/// Pairs that are considered for each of more components.
const PAIRS_PER_COMPONENT: usize = 4;

/// The `count` merges with the smallest loss, the smallest first. Runnalls' bound, which needs no rows, selects them; then
/// their exact losses are computed.
pub(super) fn cheapest_merges(
    rows: &RowBlocks,
    mixture: &GaussianMixture,
    assigned: &Assigned,
    count: usize,
) -> Vec<Merge> {
    let k = mixture.k();
    let matrices: Vec<Array2<f64>> = mixture.components().iter().map(|c| c.covariance().matrix()).collect();
    let pairs: Vec<[usize; 2]> = if k <= MAX_COMPONENTS_OF_ALL_PAIRS {
        (0..k).flat_map(|i| (i + 1..k).map(move |j| [i, j])).collect()
    } else {
        overlapping_pairs(rows, mixture, assigned)
    };
    let bound = |pair: &[usize; 2]| {
        let bound = runnalls_bound(mixture, &matrices, *pair);
        (if bound.is_nan() { f64::INFINITY } else { bound }, *pair)
    };
    let mut bounds: Vec<(f64, [usize; 2])> = pairs.par_iter().map(bound).collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    bounds.truncate(count);
    let mut merges: Vec<Merge> =
        bounds.into_iter().map(|(_, pair)| merge(mixture, &matrices, pair)).collect();
    if merges.is_empty() {
        return merges;
    }
    let losses = exact_losses(rows, assigned, &merges);
    merges.iter_mut().zip(losses).for_each(|(merge, loss)| merge.loss = loss);
    merges.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    merges
}

/// For each component, the others that share most of its rows. The bound of a pair takes the factor of a matrix, which is
/// too much for all pairs of many components.
fn overlapping_pairs(rows: &RowBlocks, mixture: &GaussianMixture, assigned: &Assigned) -> Vec<[usize; 2]> {
    const NEGLIGIBLE: f64 = 1e-6;
    let k = mixture.k();
    let (mut shared, mut here) = (vec![0.0; k * k], Vec::with_capacity(k));
    for row in 0..rows.rows() {
        let (block, place) = (row / BLOCK, row % BLOCK);
        here.clear();
        let of_row = (0..k).map(|j| (j, assigned.of_block(block, j)[place]));
        here.extend(of_row.filter(|(_, responsibility)| *responsibility > NEGLIGIBLE));
        for (n, (i, one)) in here.iter().enumerate() {
            for (j, other) in &here[n + 1..] {
                shared[i * k + j] += rows.weight(row) * one * other;
            }
        }
    }
    let overlap = |i: usize, j: usize| shared[i.min(j) * k + i.max(j)] / mixture.weights()[j];
    let nearest = |i: usize| {
        let mut others: Vec<usize> = (0..k).filter(|&j| j != i && overlap(i, j) > 0.0).collect();
        others.sort_by(|&a, &b| overlap(i, b).total_cmp(&overlap(i, a)));
        others.into_iter().take(PAIRS_PER_COMPONENT).map(move |j| [i.min(j), i.max(j)])
    };
    let mut pairs: Vec<[usize; 2]> = (0..k).flat_map(nearest).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Runnalls' bound of the loss per row: `½[(w_i+w_j) ln|S_ij| − w_i ln|S_i| − w_j ln|S_j|]`.
fn runnalls_bound(mixture: &GaussianMixture, matrices: &[Array2<f64>], [i, j]: [usize; 2]) -> f64 {
    let log_det = |c: usize| mixture.components()[c].covariance().log_det();
    let (wi, wj) = (mixture.weights()[i], mixture.weights()[j]);
    let merged = merged_covariance(mixture, matrices, [i, j]);
    let whole = Factor::from_matrix(merged.view()).map_or(f64::INFINITY, |factor| factor.log_det());
    0.5 * ((wi + wj) * whole - wi * log_det(i) - wj * log_det(j))
}

fn merged_covariance(mixture: &GaussianMixture, matrices: &[Array2<f64>], [i, j]: [usize; 2]) -> Array2<f64> {
    let share = share_of_first(mixture, [i, j]);
    let (one, other) = (mixture.components()[i].mean(), mixture.components()[j].mean());
    let mut merged = &matrices[i] * share + &matrices[j] * (1.0 - share);
    for ((r, c), value) in merged.indexed_iter_mut() {
        *value += share * (1.0 - share) * (one[r] - other[r]) * (one[c] - other[c]);
    }
    let is_diagonal = |j: usize| mixture.components()[j].covariance().kind().is_diagonal();
    if is_diagonal(i) && is_diagonal(j) { Array2::from_diag(&merged.diag()) } else { merged }
}

fn share_of_first(mixture: &GaussianMixture, [i, j]: [usize; 2]) -> f64 {
    let (wi, wj) = (mixture.weights()[i], mixture.weights()[j]);
    if wi + wj > 0.0 { wi / (wi + wj) } else { 0.5 }
}

fn merge(mixture: &GaussianMixture, matrices: &[Array2<f64>], pair: [usize; 2]) -> Merge {
    let [i, j] = pair;
    let share = share_of_first(mixture, pair);
    let (one, other) = (mixture.components()[i].mean(), mixture.components()[j].mean());
    let mean = one.iter().zip(other).map(|(a, b)| share * a + (1.0 - share) * b).collect();
    let covariance = merged_covariance(mixture, matrices, pair);
    let ridge = covariance.diag().iter().copied().fold(0.0, f64::max) * 1e-14;
    Merge {
        components: pair,
        loss: f64::INFINITY,
        weight: mixture.weights()[i] + mixture.weights()[j],
        merged: gaussian_with_ridge(mean, covariance, ridge),
    }
}

/// The loss of the log-likelihood of the rows by each merge alone.
fn exact_losses(rows: &RowBlocks, assigned: &Assigned, merges: &[Merge]) -> Vec<f64> {
    let equal = vec![1.0 / merges.len() as f64; merges.len()];
    let merged = Mixture::new(equal, merges.iter().map(|merge| merge.merged.clone()).collect())
        .expect("one weight for each component");
    let scorer = BlockScorer::new(&merged);
    let of_group = |group: std::ops::Range<usize>| {
        let mut scorer = scorer.clone();
        let mut losses = vec![0.0; merges.len()];
        for i in group {
            let (block, filled) = rows.block(i);
            for (n, (merge, loss)) in merges.iter().zip(&mut losses).enumerate() {
                let squares = scorer.square_norms(&merged, n, &block);
                let [a, b] = merge.components.map(|c| assigned.of_block(i, c));
                for r in 0..filled {
                    let log_density = merge.weight.ln() + merge.merged.log_density_at(squares[r]);
                    let gained = (log_density - assigned.log_densities[i * BLOCK + r]).exp();
                    let left = (1.0 - a[r] - b[r]).max(0.0) + gained;
                    *loss -= rows.weights(i)[r] * left.max(f64::MIN_POSITIVE).ln();
                }
            }
        }
        losses
    };
    let parts: Vec<Vec<f64>> = groups(rows).into_par_iter().map(of_group).collect();
    (0..merges.len()).map(|n| parts.iter().map(|part| part[n]).sum()).collect()
}
