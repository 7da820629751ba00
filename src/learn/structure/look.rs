//! A look before a search: whether the rows of each component have the shape of a Gaussian, so that no split gains anything.
//!
//! Each row draws one of its components with the probabilities of its responsibilities. If the mixture is the true one, the rows
//! that draw a component are a sample of its Gaussian, however much components overlap. A component at a local optimum that
//! covers two clusters, or shares one with another component wrongly, has rows of another shape.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::directions::{Directions, mean_and_covariance};
use super::e_step::{Assigned, draw};
use super::merge::cheapest_merges;
use super::search::{AFFORDABLE, MIN_RISE};
use super::split::tail_moments;
use crate::dist::{GaussianMixture, leading_directions};
use crate::linalg::blocks::{BLOCK, RowBlocks, square_distances};
use crate::linalg::{Factor, lower_inverse};
use crate::stats::chi_squared_quantile;

/// Bins of a histogram, each with the same probability.
const BINS: usize = 20;
/// The largest sum over the bins, which a chi-squared variable with 19 degrees of freedom exceeds with probability 0.0001.
const BY_CHANCE: f64 = 50.8;
/// A component with fewer rows for each column cannot be judged.
const ROWS_PER_COLUMN: usize = 20;
/// Principal directions of a component that are looked at.
const LONGEST: usize = 2;
/// Steps of the iterations that find directions.
const STEPS: usize = 50;
/// Rows that merges are judged on, for each component.
const ROWS_OF_MERGES: usize = 600;

/// Whether the rows of each component have its shape. A component with too few rows to tell does not count as fitting.
pub(super) fn all_fit(rows: &RowBlocks, mixture: &GaussianMixture, seed: u64) -> bool {
    // In many columns, a search sees only the leading directions.
    let directions = Directions::of(rows);
    let projected =
        directions.map(|directions| (directions.project(rows), directions.project_mixture(mixture)));
    let (rows, mixture) = projected.as_ref().map_or((rows, mixture), |(rows, mixture)| (rows, mixture));
    let drawn = draw(rows, mixture, seed);
    let mut of = vec![Vec::new(); mixture.k()];
    drawn.iter().enumerate().for_each(|(row, &j)| of[j].push(row));
    // The smallest components first: they are judged soonest.
    of.sort_by_key(Vec::len);
    let bins = Bins::new(rows.dim());
    of.par_iter().all(|own| is_gaussian(rows, own, &bins))
}

/// Whether a merge may lose less than its price.
pub(super) fn has_affordable_merge(rows: &RowBlocks, mixture: &GaussianMixture, price: f64) -> bool {
    let rows = rows.thinned((rows.rows() / (ROWS_OF_MERGES * mixture.k())).max(1));
    let merges = cheapest_merges(&rows, mixture, &Assigned::new(&rows, mixture, None), 1);
    merges.iter().any(|merge| merge.loss < AFFORDABLE * price * rows.total_weight())
}

/// The bounds of bins.
struct Bins {
    /// Of the squared distance of a row from its component.
    distance: Vec<f64>,
    /// Of a standard normal variable.
    place: Vec<f64>,
}

impl Bins {
    fn new(dim: usize) -> Self {
        let bounds = 1..BINS;
        let share = |bound: usize| bound as f64 / BINS as f64;
        let normal = |bound: usize| {
            let away = (2.0 * share(bound) - 1.0).abs();
            let place = if away > 0.0 { chi_squared_quantile(1, away).sqrt() } else { 0.0 };
            if 2 * bound < BINS { -place } else { place }
        };
        Bins {
            distance: bounds.clone().map(|bound| chi_squared_quantile(dim, share(bound))).collect(),
            place: bounds.map(normal).collect(),
        }
    }
}

/// Whether the rows with these indices have the shape of a Gaussian as far as their number tells, or differ from it by too little
/// for a search to gain.
fn is_gaussian(rows: &RowBlocks, own: &[usize], bins: &Bins) -> bool {
    let dim = rows.dim();
    if own.len() < (ROWS_PER_COLUMN * dim).max(10 * BINS) {
        return false;
    }
    let (mean, covariance) = mean_and_covariance(&rows.reordered(own));
    let Ok(factor) = Factor::from_matrix(covariance.view()) else { return false };
    let inverse = lower_inverse(factor.lower_matrix().view());
    let part = |odd: usize| {
        let own: Vec<usize> = own.iter().copied().skip(odd).step_by(2).collect();
        RowBlocks::from_fn(own.len(), dim, |i, l| rows.value(own[i], l) - mean[l]).multiply(&inverse)
    };
    // The rows that are tested are not those that say where to look.
    let (seen, tested) = (part(0), part(1));
    // Histograms of a component that a search would gain from exceed this in the mean.
    let gain = MIN_RISE * rows.rows() as f64 / own.len() as f64;
    let most = BY_CHANCE + 2.0 * gain * tested.rows() as f64;
    let (mut places, mut squares) = (vec![0.0; tested.blocks() * BLOCK], [0.0; BLOCK]);
    for ((block, _), places) in tested.iter().zip(places.chunks_exact_mut(BLOCK)) {
        square_distances(&block, &vec![0.0; dim], &mut squares);
        places.copy_from_slice(&squares);
    }
    if misfit(&places[..tested.rows()], &bins.distance) > most {
        return false;
    }
    axes(&seen, &covariance, &inverse).iter().all(|axis| {
        for ((block, _), places) in tested.iter().zip(places.chunks_exact_mut(BLOCK)) {
            places.fill(0.0);
            for (column, along) in block.chunks_exact(BLOCK).zip(axis) {
                places.iter_mut().zip(column).for_each(|(place, value)| *place += along * value);
            }
        }
        misfit(&places[..tested.rows()], &bins.place) <= most
    })
}

/// The directions in which other shapes show: those of the lightest and the heaviest tails, of skewness, and the longest ones.
fn axes(seen: &RowBlocks, covariance: &Array2<f64>, inverse: &Array2<f64>) -> Vec<Array1<f64>> {
    let dim = seen.dim();
    let (skewness, tails) = tail_moments(seen);
    let trace: f64 = tails.diag().iter().sum();
    let flipped = Array2::from_diag_elem(dim, trace) - &tails;
    let mut axes = vec![skewness];
    axes.extend([&tails, &flipped].map(|matrix| leading_directions(matrix, 1, STEPS).row(0).to_owned()));
    let longest = leading_directions(covariance, LONGEST.min(dim), STEPS);
    axes.extend(longest.outer_iter().map(|axis| inverse.dot(&axis)));
    let length = |axis: &Array1<f64>| axis.dot(axis).sqrt();
    axes.into_iter().filter(|axis| length(axis) > 0.0).map(|axis| &axis / length(&axis)).collect()
}

/// Pearson's sum over bins of equal probability, with these bounds.
fn misfit(values: &[f64], bounds: &[f64]) -> f64 {
    let mut counts = [0.0; BINS];
    for value in values {
        counts[bounds.partition_point(|bound| bound < value)] += 1.0;
    }
    let expected = values.len() as f64 / BINS as f64;
    counts.iter().map(|count| (count - expected).powi(2) / expected).sum()
}

#[cfg(test)]
mod tests {
    use ndarray::{concatenate, s};
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::dist::{Gaussian, Mixture};

    /// Overlapping components of random shapes.
    fn truth(k: usize, dim: usize, seed: u64) -> GaussianMixture {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut component = || {
            let mean = (0..dim).map(|_| rng.random_range(-3.0..3.0)).collect();
            let half: Array2<f64> = Array2::from_shape_simple_fn((dim, dim), || rng.random_range(-1.0..1.0));
            let covariance = half.dot(&half.t()) + Array2::<f64>::eye(dim) * 0.2;
            Gaussian::new(mean, Factor::from_matrix(covariance.view()).unwrap()).unwrap()
        };
        let components = (0..k).map(|_| component()).collect();
        Mixture::new(vec![1.0 / k as f64; k], components).unwrap()
    }

    fn drawn(mixture: &GaussianMixture, rows: usize, seed: u64) -> Array2<f64> {
        mixture.sample(rows, &mut ChaCha8Rng::seed_from_u64(1000 + seed)).0
    }

    fn fits(rows: &Array2<f64>, mixture: &GaussianMixture) -> bool {
        all_fit(&RowBlocks::new(rows.view()), mixture, 1)
    }

    #[test]
    fn rows_of_the_mixture_fit() {
        let streams = (1..=20).flat_map(|seed| [(4, 2, seed), (5, 6, seed)]);
        let fitting = streams.filter(|&(k, dim, seed)| {
            let mixture = truth(k, dim, seed);
            fits(&drawn(&mixture, 20_000, seed), &mixture)
        });
        assert!(fitting.count() >= 39);
    }

    #[test]
    fn two_clusters_under_one_component_do_not_fit() {
        for (dim, seed) in [(1, 1), (2, 1), (2, 2), (6, 1), (6, 2)] {
            let mixture = truth(2, dim, seed);
            let rows = drawn(&mixture, 20_000, seed);
            let (mean, covariance) = mean_and_covariance(&RowBlocks::new(rows.view()));
            let one = Gaussian::new(mean, Factor::from_matrix(covariance.view()).unwrap()).unwrap();
            // Two equal components share both clusters.
            let both = Mixture::new(vec![0.5, 0.5], vec![one.clone(), one]).unwrap();
            assert!(!fits(&rows, &both), "{dim} {seed}");
        }
    }

    #[test]
    fn a_small_cluster_under_a_component_does_not_fit() {
        let mixture = truth(3, 4, 7);
        let rows = drawn(&mixture, 20_000, 7);
        let few = rows.slice(s![..200, ..]).mapv(|value| 0.1 * value + 5.0);
        assert!(fits(&rows, &mixture));
        assert!(!fits(&concatenate![ndarray::Axis(0), rows, few], &mixture));
    }
}
