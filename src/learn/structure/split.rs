//! How much a mixture gains when one of its components is split in two.

use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::maximise::{Shape, maximise};
use super::sweep::{Assigned, sweep};
use crate::dist::{Gaussian, GaussianMixture, Mixture, leading_directions};
use crate::linalg::blocks::{BLOCK, Moments, RowBlocks, square_distances};
use crate::linalg::{Factor, lower_inverse};
use crate::special::LN_2PI;

/// Two components that may take the place of one.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// The component to split.
    pub component: usize,
    /// What the log-likelihood of all rows gains, about.
    pub gain: f64,
    /// The parts' shares of the component's weight.
    pub shares: [f64; 2],
    /// The parts.
    pub parts: [Gaussian; 2],
}

/// Rows with a smaller responsibility have no say in a split.
const LEAST_RESPONSIBILITY: f64 = 0.05;
/// Iterations with a shared covariance, and then with free ones: in many dimensions free covariances fit noise first.
const SHARED: usize = 4;
const FREE: usize = 4;

/// The rows of one component, whitened by its covariance.
struct Whitened {
    /// Weighted by the component's responsibilities.
    rows: RowBlocks,
    /// Rows of the component for each row kept.
    scale: f64,
    /// `L` and the component's mean.
    lower: Array2<f64>,
    mean: Vec<f64>,
}

/// Two components, and the log-likelihood they give to a component's rows.
struct Pair {
    mixture: GaussianMixture,
    log_likelihood: f64,
}

/// The best of a few splits of component `j`. `None` where it has too few rows to be split.
pub(super) fn best_split(
    rows: &RowBlocks,
    mixture: &GaussianMixture,
    assigned: &Assigned,
    j: usize,
    strength: f64,
    seed: u64,
) -> Option<Split> {
    let whitened = Whitened::new(rows, &mixture.components()[j], assigned, j)?;
    let shape = Shape::OwnVolume(strength + rows.dim() as f64);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let starts = whitened.starts(&mut rng);
    let mut pairs: Vec<Pair> = starts
        .into_iter()
        .map(|(start, concentric)| {
            let first = if concentric { shape } else { Shape::Shared };
            whitened.improve(start, first, SHARED)
        })
        .collect();
    // The sort is stable: of equals the earlier is kept.
    pairs.sort_by(|a, b| b.log_likelihood.total_cmp(&a.log_likelihood));
    pairs.truncate(2);
    let better = |a: Pair, b: Pair| if b.log_likelihood > a.log_likelihood { b } else { a };
    let best = pairs.into_iter().map(|pair| whitened.improve(pair.mixture, shape, FREE)).reduce(better)?;
    whitened.split(best, j)
}

impl Whitened {
    fn new(rows: &RowBlocks, component: &Gaussian, assigned: &Assigned, j: usize) -> Option<Self> {
        let dim = rows.dim();
        let mut chosen: Vec<(usize, f64)> = Vec::new();
        for block in 0..rows.blocks() {
            let here = assigned.of_block(block, j).iter().enumerate();
            chosen.extend(
                here.filter(|(_, r)| **r > LEAST_RESPONSIBILITY).map(|(i, &r)| (block * BLOCK + i, r)),
            );
        }
        let of_row = |i: usize| rows.weight(i);
        let step = chosen.len().div_ceil(most_rows(dim)).max(1);
        let kept: Vec<(usize, f64)> = chosen.iter().copied().step_by(step).collect();
        if kept.len() < 2 * LEAST_ROWS {
            return None;
        }
        let weight = |rows: &[(usize, f64)]| rows.iter().map(|&(i, r)| of_row(i) * r).sum::<f64>();
        let lower = component.covariance().lower_matrix();
        let inverse = lower_inverse(lower.view());
        let mean = component.mean().to_vec();
        let mut whitened = RowBlocks::from_fn(kept.len(), dim, |i, l| rows.value(kept[i].0, l) - mean[l]);
        whitened.multiply_lower(&inverse);
        let whitened = whitened.with_weights(|i| of_row(kept[i].0) * kept[i].1);
        Some(Whitened { rows: whitened, scale: weight(&chosen) / weight(&kept), lower, mean })
    }

    /// Where the tries begin, and whether both parts have one mean.
    fn starts(&self, rng: &mut ChaCha8Rng) -> Vec<(GaussianMixture, bool)> {
        let dim = self.rows.dim();
        let unit = |mean: Array1<f64>| gaussian(mean, 1.0);
        let along = |axis: &Array1<f64>| pair([unit(0.8 * axis), unit(-0.8 * axis)]);
        let longest = {
            let covariance = self.lower.dot(&self.lower.t());
            let axis = leading_directions(&covariance, 1, 30).row(0).to_owned();
            normalised(lower_inverse(self.lower.view()).dot(&axis))
        };
        let mut starts = vec![(along(&longest), false)];
        if dim > 1 {
            starts.push((along(&self.flattest_axis()), false));
        }
        let row = |i: usize| Array1::from_iter((0..dim).map(|l| self.rows.value(i, l)));
        for _ in 0..2 {
            let (one, other) = (rng.random_range(0..self.rows.rows()), rng.random_range(0..self.rows.rows()));
            starts.push((pair([unit(0.5 * row(one)), unit(0.5 * row(other))]), false));
        }
        let centre = Array1::zeros(dim);
        starts.push((pair([gaussian(centre.clone(), 0.5), gaussian(centre, 1.5)]), true));
        starts
    }

    /// The direction along which the rows have the lightest tails: two clusters side by side have lighter tails than a
    /// Gaussian. It is the eigenvector of the smallest eigenvalue of `E[|z|² z zᵀ]`.
    fn flattest_axis(&self) -> Array1<f64> {
        let dim = self.rows.dim();
        let mut moments = Moments::new(dim);
        let (origin, mut weights) = (vec![0.0; dim], [0.0; BLOCK]);
        for (i, (block, _)) in self.rows.iter().enumerate() {
            square_distances(block, &origin, &mut weights);
            for (weight, of_row) in weights.iter_mut().zip(self.rows.weights(i)) {
                // A few rows far out must not decide alone.
                *weight = of_row * weight.min(4.0 * dim as f64 + 20.0);
            }
            moments.add(block, &weights);
        }
        let second = |i: usize, l: usize| moments.second[i.max(l) * dim + i.min(l)];
        let trace: f64 = (0..dim).map(|i| second(i, i)).sum();
        let flipped =
            Array2::from_shape_fn(
                (dim, dim),
                |(i, l)| {
                    if i == l { trace - second(i, l) } else { -second(i, l) }
                },
            );
        leading_directions(&flipped, 1, 100).row(0).to_owned()
    }

    fn improve(&self, mut mixture: GaussianMixture, shape: Shape, iterations: usize) -> Pair {
        for _ in 0..iterations {
            mixture = maximise(&sweep(&self.rows, &mixture, None), &mixture, shape, RIDGE);
        }
        let log_likelihood = sweep(&self.rows, &mixture, None).log_likelihood;
        Pair { mixture, log_likelihood }
    }

    /// Back from whitened coordinates.
    fn split(&self, pair: Pair, component: usize) -> Option<Split> {
        let dim = self.rows.dim() as f64;
        let (origin, mut squares, mut before) = (vec![0.0; self.rows.dim()], [0.0; BLOCK], 0.0);
        for (i, (block, _)) in self.rows.iter().enumerate() {
            square_distances(block, &origin, &mut squares);
            let terms = squares.iter().zip(self.rows.weights(i));
            before -= terms.map(|(square, weight)| weight * 0.5 * (square + dim * LN_2PI)).sum::<f64>();
        }
        let back = |part: &Gaussian| {
            let mean = self.lower.dot(&Array1::from(part.mean().to_vec())) + Array1::from(self.mean.clone());
            let factor = Factor::from_lower_matrix(self.lower.dot(&part.covariance().lower_matrix()).view());
            Gaussian::new(mean.to_vec(), factor.ok()?).ok()
        };
        let [one, other] = pair.mixture.components() else { return None };
        let gain = self.scale * (pair.log_likelihood - before);
        let shares = [pair.mixture.weights()[0], pair.mixture.weights()[1]];
        let usable = gain.is_finite() && shares.iter().all(|share| *share > 1e-6);
        usable.then_some(Split { component, gain, shares, parts: [back(one)?, back(other)?] })
    }
}

/// Rows of a component that a split looks at.
fn most_rows(dim: usize) -> usize {
    (40 * dim).max(2000)
}

/// Rows that each part of a split should have.
const LEAST_ROWS: usize = 4;
/// Added to each variance in whitened coordinates.
const RIDGE: f64 = 1e-6;

fn gaussian(mean: Array1<f64>, spread: f64) -> Gaussian {
    let factor = Factor::from_standard_deviations(&vec![spread; mean.len()]).expect("spreads are positive");
    Gaussian::new(mean.to_vec(), factor).expect("rows are finite")
}

fn pair(parts: [Gaussian; 2]) -> GaussianMixture {
    Mixture::new(vec![0.5; 2], parts.to_vec()).expect("two weights for two components")
}

fn normalised(axis: Array1<f64>) -> Array1<f64> {
    let length = axis.dot(&axis).sqrt();
    if length > 0.0 { axis / length } else { axis }
}
