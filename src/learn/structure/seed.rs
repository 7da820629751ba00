//! Seeds of EM: k-means in the leading principal directions, which separate clusters better than the full space.

use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::covariance_prior::Strength;
use super::directions::mean_and_covariance;
use super::e_step::Sums;
use super::kmeans::{kmeans, move_on};
use super::m_step::{Parts, maximise};
use super::split::strength_of_parts;
use crate::dist::{Gaussian, GaussianMixture, Mixture, leading_directions};
use crate::linalg::blocks::{BLOCK, RowBlocks};
use crate::linalg::{CovarianceType, Factor};

/// Restarts of k-means++. Each has a few rounds on a part of the rows; the best ones get more rounds on all rows.
const RESTARTS: u64 = 20;
const ROUNDS: usize = 4;
const MORE_ROUNDS: usize = 10;
/// Rows of the restarts.
const PART: usize = 4000;

/// At most `count` mixtures of `k` components from k-means, the best first, each with the component of each row. Restarts with
/// the same result are returned once.
pub(super) fn seed_mixtures(
    rows: &RowBlocks,
    k: usize,
    seed: u64,
    count: usize,
    ridge: f64,
    kind: CovarianceType,
) -> Vec<(GaussianMixture, Vec<usize>)> {
    let projected = (rows.dim() > k).then(|| project(rows, k));
    let seen = projected.as_ref().unwrap_or(rows);
    let step = seen.rows() / PART.max(20 * k);
    let part = (step > 1).then(|| seen.thinned(step));
    let part = part.as_ref().unwrap_or(seen);
    let run = |restart: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(restart);
        kmeans(part, k, ROUNDS, &mut rng)
    };
    let mut found: Vec<(Array2<f64>, f64)> = (0..RESTARTS).into_par_iter().map(run).collect();
    // The sort is stable, so the order of equals does not depend on the number of threads.
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    found.dedup_by(|b, a| b.1 <= SAME * a.1);
    found.truncate(count.max(1));
    let finish = |(centres, _): (Array2<f64>, f64)| {
        let labels = move_on(seen, centres, MORE_ROUNDS);
        let strength = Some(Strength::given(strength_of_parts(rows.dim())));
        (first_step(rows, &labels, k, strength, ridge, kind), labels)
    };
    found.into_iter().map(finish).collect()
}

/// Restarts whose squared distances differ by less than this factor have the same result.
const SAME: f64 = 1.002;

/// Rounds of k-means, nearly always enough for convergence.
const ALL_ROUNDS: usize = 300;

/// A mixture of `k` components from one run of k-means in all columns, without a prior.
pub(in crate::learn) fn kmeans_mixture(
    rows: &RowBlocks,
    k: usize,
    seed: u64,
    ridge: f64,
    kind: CovarianceType,
) -> GaussianMixture {
    let (centres, _) = kmeans(rows, k, ALL_ROUNDS, &mut ChaCha8Rng::seed_from_u64(seed));
    first_step(rows, &move_on(rows, centres, 1), k, None, ridge, kind)
}

/// The M step with labels as responsibilities.
fn first_step(
    rows: &RowBlocks,
    labels: &[usize],
    k: usize,
    strength: Option<Strength>,
    ridge: f64,
    kind: CovarianceType,
) -> GaussianMixture {
    let (parts, old) = parts_of_labels(rows, labels, k, kind);
    maximise(parts, &old, strength, ridge)
}

/// The rows with each label, and a mixture that they are relative to.
pub(super) fn parts_of_labels(
    rows: &RowBlocks,
    labels: &[usize],
    k: usize,
    kind: CovarianceType,
) -> (Parts, GaussianMixture) {
    let unit = Factor::spherical(rows.dim(), 1.0).expect("one is positive");
    let unit = Gaussian::new(vec![0.0; rows.dim()], unit).expect("zeros are finite");
    let old = Mixture::new(vec![1.0 / k as f64; k], vec![unit; k]).expect("one weight for each component");
    (Parts::new(sums_of_labels(rows, labels, &old, kind), &old), old)
}

/// The moments, relative to zero, of the rows with each label. A label without rows gets those of all rows with a small
/// weight.
fn sums_of_labels(rows: &RowBlocks, labels: &[usize], old: &GaussianMixture, kind: CovarianceType) -> Sums {
    let (mut sums, k) = (Sums::none(old, kind, rows), old.k());
    let Sums { moments, shared, repeats, .. } = &mut sums;
    let mut all = moments[0].clone();
    for (i, labels) in labels.chunks(BLOCK).enumerate() {
        let (block, _) = rows.block(i);
        for (j, moments) in moments.iter_mut().enumerate() {
            if labels.contains(&j) {
                let mut weights = [0.0; BLOCK];
                for ((to, &label), weight) in weights.iter_mut().zip(labels).zip(rows.weights(i)) {
                    *to = if label == j { *weight } else { 0.0 };
                }
                moments.add(&block, &weights);
                if let Some(own) = rows.repeats(i) {
                    repeats[j] += weights.iter().zip(own).map(|(a, b)| a * b).sum::<f64>();
                }
            }
        }
        all.add(&block, rows.weights(i));
        if let Some((shared, _)) = shared {
            shared.add(&block, rows.weights(i));
        }
    }
    for (j, moments) in moments.iter_mut().enumerate().filter(|(_, moments)| moments.count == 0.0) {
        moments.merge(&all);
        moments.scale_by(1.0 / (k as f64 * all.count));
        if let Some(own) = repeats.get_mut(j) {
            *own = moments.count * rows.unit();
        }
    }
    sums
}

/// The rows projected on their `count` leading principal directions.
fn project(rows: &RowBlocks, count: usize) -> RowBlocks {
    rows.multiply(&leading_directions(&mean_and_covariance(rows).1, count, 50))
}
