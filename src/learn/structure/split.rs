//! Splits: the gain of log-likelihood when one component of a mixture becomes two.

use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::covariance_prior::Strength;
use super::e_step::{Assigned, sweep};
use super::log_odds::LogOdds;
use super::m_step::{Parts, gaussian_with_ridge, maximise};
use crate::dist::{Gaussian, GaussianMixture, Mixture, leading_directions};
use crate::learn::prior_strength;
use crate::linalg::blocks::{BLOCK, Moments, RowBlocks, square_distances};
use crate::linalg::special::LN_2PI;
use crate::linalg::vector::Quad;
use crate::linalg::{CovarianceType, Factor, lower_inverse};

/// A possible split of a component.
#[derive(Debug, Clone)]
pub(super) struct Split {
    /// The component to split.
    pub component: usize,
    /// The approximate gain of the log-likelihood of all rows.
    pub gain: f64,
    /// The fractions of the component's weight.
    pub shares: [f64; 2],
    /// The parts.
    pub parts: [Gaussian; 2],
}

/// Rows with a smaller responsibility are left out.
const MIN_RESPONSIBILITY: f64 = 0.05;
/// Iterations with constrained parts, which are cheap, and then with free covariances. Free covariances from the beginning
/// would fit noise in many dimensions.
const SIMPLE: usize = 8;
const FREE: usize = 4;
/// The number of pairs of rows that serve as initial means.
const PAIRS: usize = 4;

/// The rows of one component, whitened by its covariance.
struct WhitenedRows {
    /// The rows, weighted by the component's responsibilities.
    rows: RowBlocks,
    /// As many other rows, if `rows` are only a part.
    others: Option<RowBlocks>,
    /// The number of rows of the component that each row represents.
    scale: f64,
    /// `L` and the mean of the component.
    lower: Array2<f64>,
    mean: Vec<f64>,
}

/// Two components, and their gain over one.
struct Pair {
    mixture: GaussianMixture,
    gain: f64,
}

/// The best of a few splits of component `j`; `None` if it has too few rows.
pub(super) fn best_split(
    rows: &RowBlocks,
    mixture: &GaussianMixture,
    assigned: &Assigned,
    j: usize,
    (kind, seed): (CovarianceType, u64),
) -> Option<Split> {
    let whitened = WhitenedRows::new(rows, &mixture.components()[j], assigned, j)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let better = |a: Pair, b: Pair| if b.gain > a.gain { b } else { a };
    let apart =
        whitened.starts(&mut rng).into_iter().filter_map(|start| whitened.apart(start)).reduce(better);
    let simple: Vec<Pair> = apart.into_iter().chain(whitened.concentric()).collect();
    let most = simple.iter().map(|pair| pair.gain).fold(0.0, f64::max);
    let promising = simple.into_iter().filter(|pair| pair.gain >= 0.2 * most);
    let best = promising.map(|pair| whitened.free(pair.mixture, kind)).reduce(better)?;
    let gain = whitened.gain_on_all(&best, kind);
    whitened.split(best, gain, j)
}

impl WhitenedRows {
    fn new(rows: &RowBlocks, component: &Gaussian, assigned: &Assigned, j: usize) -> Option<Self> {
        let dim = rows.dim();
        let mut chosen: Vec<(usize, f64)> = Vec::new();
        for block in 0..rows.blocks() {
            let here = assigned.of_block(block, j).iter().enumerate();
            chosen
                .extend(here.filter(|(_, r)| **r > MIN_RESPONSIBILITY).map(|(i, &r)| (block * BLOCK + i, r)));
        }
        let of_row = |i: usize| rows.weight(i);
        let step = chosen.len().div_ceil(most_rows(dim)).max(1);
        // One of each `step` rows. Always the same one would miss clusters that alternate in the order of the rows.
        let part = |shift: usize| -> Vec<(usize, f64)> {
            let one_of = |(i, rows): (usize, &[(usize, f64)])| rows[(i + shift) % rows.len()];
            chosen.chunks(step).enumerate().map(one_of).collect()
        };
        let kept = part(0);
        if kept.len() < 2 * MIN_ROWS {
            return None;
        }
        let weight = |rows: &[(usize, f64)]| rows.iter().map(|&(i, r)| of_row(i) * r).sum::<f64>();
        let lower = component.covariance().lower_matrix();
        let inverse = lower_inverse(lower.view());
        let mean = component.mean().to_vec();
        let whitened = |kept: &[(usize, f64)]| {
            let centred = RowBlocks::from_fn(kept.len(), dim, |i, l| rows.value(kept[i].0, l) - mean[l]);
            centred.multiply(&inverse).with_weights(|i| of_row(kept[i].0) * kept[i].1)
        };
        let others = (step > 1).then(|| whitened(&part(1)));
        let scale = weight(&chosen) / weight(&kept);
        Some(WhitenedRows { rows: whitened(&kept), others, scale, lower, mean })
    }

    /// Pairs of initial means.
    fn starts(&self, rng: &mut ChaCha8Rng) -> Vec<[Array1<f64>; 2]> {
        let dim = self.rows.dim();
        let along = |axis: &Array1<f64>| [0.8 * axis, -0.8 * axis];
        let longest = {
            let covariance = self.lower.dot(&self.lower.t());
            let axis = leading_directions(&covariance, 1, 30).row(0).to_owned();
            normalised(lower_inverse(self.lower.view()).dot(&axis))
        };
        let mut starts = vec![along(&longest)];
        if dim > 1 {
            starts.push(along(&self.flattest_axis()));
        }
        let mut row = || {
            let i = rng.random_range(0..self.rows.rows());
            Array1::from_iter((0..dim).map(|l| 0.5 * self.rows.value(i, l)))
        };
        starts.extend((0..PAIRS).map(|_| [row(), row()]));
        starts
    }

    /// EM for two parts with a shared covariance. In whitened coordinates such parts differ only along the line through their
    /// means, so an iteration needs only the projections of the rows on it.
    fn apart(&self, [mut one, mut other]: [Array1<f64>; 2]) -> Option<Pair> {
        let mut share = 0.5;
        let mut gain = 0.0;
        let mut places = vec![Quad::default(); self.rows.blocks() * BLOCK / 4];
        for iteration in 1..=SIMPLE {
            let axis = &one - &other;
            let length = axis.dot(&axis).sqrt();
            if !(length > 1e-6) {
                return None;
            }
            let axis = axis / length;
            let line = Line::new(&self.rows, &axis, [axis.dot(&one), axis.dot(&other)], share, &mut places);
            if iteration == SIMPLE {
                gain = line.gain(&self.rows, &places);
            }
            line.log_odds().probabilities(&mut places);
            let sums = LineSums::new(&self.rows, Quad::flat(&places));
            share = sums.share();
            if !(0.001..0.999).contains(&share) {
                return None;
            }
            [one, other] = sums.means();
        }
        let away = &one - &other;
        let mut within = Array2::eye(self.rows.dim());
        for ((i, j), value) in within.indexed_iter_mut() {
            *value -= share * (1.0 - share) * away[i] * away[j];
        }
        let part = |mean: Array1<f64>| gaussian_with_ridge(mean.to_vec(), within.clone(), MIN_SPREAD);
        let mixture = Mixture::new(vec![share, 1.0 - share], vec![part(one), part(other)]).ok()?;
        Some(Pair { mixture, gain })
    }

    /// EM for a narrow and a wide part with the same mean, for heavy tails. It needs only the distances of the rows.
    fn concentric(&self) -> Option<Pair> {
        let dim = self.rows.dim();
        let (origin, mut squares) = (vec![0.0; dim], vec![Quad::default(); self.rows.blocks() * BLOCK / 4]);
        for (i, (block, _)) in self.rows.iter().enumerate() {
            let mut of_block = [0.0; BLOCK];
            square_distances(&block, &origin, &mut of_block);
            Quad::flat_mut(&mut squares)[i * BLOCK..][..BLOCK].copy_from_slice(&of_block);
        }
        let weights = || (0..self.rows.blocks()).flat_map(|i| self.rows.weights(i));
        let all: f64 = weights().sum();
        let all_squares: f64 =
            weights().zip(Quad::flat(&squares)).map(|(weight, square)| weight * square).sum();
        let d = dim as f64;
        let (mut share, mut spreads, mut gain) = (0.5_f64, [0.25_f64, 2.25], 0.0);
        let mut probabilities = squares.clone();
        for iteration in 1..=SIMPLE {
            // The log-density of each part, without the constant that both share.
            let [narrow, wide] = spreads;
            let odds = LogOdds {
                offset: (share / (1.0 - share)).ln() - 0.5 * d * (narrow / wide).ln(),
                slope: 0.5 / wide - 0.5 / narrow,
            };
            if iteration == SIMPLE {
                probabilities.copy_from_slice(&squares);
                odds.excesses(&mut probabilities);
                let excess: f64 =
                    weights().zip(Quad::flat(&probabilities)).map(|(w, excess)| w * excess).sum();
                let constant = (1.0 - share).ln() - 0.5 * d * wide.ln();
                gain = excess + all * constant + all_squares * (0.5 - 0.5 / wide);
            }
            probabilities.copy_from_slice(&squares);
            odds.probabilities(&mut probabilities);
            let (mut count, mut sum) = (0.0, 0.0);
            let rows = Quad::flat(&probabilities).iter().zip(Quad::flat(&squares)).zip(weights());
            for ((probability, square), weight) in rows {
                count += weight * probability;
                sum += weight * probability * square;
            }
            share = count / all;
            if !(0.001..0.999).contains(&share) {
                return None;
            }
            let spread = |sum: f64, count: f64| (sum / (d * count)).max(MIN_SPREAD);
            spreads = [spread(sum, count), spread(all_squares - sum, all - count)];
        }
        let part = |spread: f64| {
            let factor = Factor::from_standard_deviations(&vec![spread.sqrt(); dim]).ok()?;
            Gaussian::new(origin.clone(), factor).ok()
        };
        let mixture =
            Mixture::new(vec![share, 1.0 - share], vec![part(spreads[0])?, part(spreads[1])?]).ok()?;
        Some(Pair { mixture, gain })
    }

    /// The direction in which the rows have the lightest tails, because two separate clusters have lighter tails than a
    /// Gaussian. It is the eigenvector of the smallest eigenvalue of `E[|z|² z zᵀ]`.
    fn flattest_axis(&self) -> Array1<f64> {
        let second = tail_moments(&self.rows).1;
        let trace: f64 = second.diag().iter().sum();
        let flipped = Array2::from_shape_fn(second.dim(), |(i, l)| {
            if i == l { trace - second[(i, l)] } else { -second[(i, l)] }
        });
        leading_directions(&flipped, 1, 100).row(0).to_owned()
    }

    /// EM with free covariances, of the kind that components have.
    fn free(&self, mut mixture: GaussianMixture, kind: CovarianceType) -> Pair {
        let strength = Strength::given(strength_of_parts(self.rows.dim()));
        for _ in 0..FREE {
            let parts = Parts::new(sweep(&self.rows, &mixture, kind, None), &mixture);
            mixture = maximise(parts, &mixture, Some(strength), RIDGE);
        }
        let gain = gain_over_one(&self.rows, &mixture, kind);
        Pair { mixture, gain }
    }

    /// The gain of a pair on all rows of the component. Its gain on the rows that it was fitted to is too large by as much as
    /// the one on other rows is too small, on average. Pairs fitted to all rows gain that once by chance.
    fn gain_on_all(&self, pair: &Pair, kind: CovarianceType) -> f64 {
        let Some(others) = &self.others else { return self.scale * pair.gain };
        let ratio = self.rows.total_weight() / others.total_weight();
        let on_others = ratio * gain_over_one(others, &pair.mixture, kind);
        0.5 * (self.scale * (pair.gain + on_others) + pair.gain - on_others)
    }

    /// Converts a part from whitened coordinates.
    fn split(&self, pair: Pair, gain: f64, component: usize) -> Option<Split> {
        let back = |part: &Gaussian| {
            let mean = self.lower.dot(&Array1::from(part.mean().to_vec())) + Array1::from(self.mean.clone());
            let factor = Factor::from_lower_matrix(self.lower.dot(&part.covariance().lower_matrix()).view());
            Gaussian::new(mean.to_vec(), factor.ok()?).ok()
        };
        let [one, other] = pair.mixture.components() else { return None };
        let shares = [pair.mixture.weights()[0], pair.mixture.weights()[1]];
        let usable = gain.is_finite() && shares.iter().all(|share| *share > 1e-6);
        usable.then_some(Split { component, gain, shares, parts: [back(one)?, back(other)?] })
    }
}

/// The gain of two parts over one standard Gaussian.
fn gain_over_one(rows: &RowBlocks, mixture: &GaussianMixture, kind: CovarianceType) -> f64 {
    let dim = rows.dim();
    let (origin, mut squares, mut before) = (vec![0.0; dim], [0.0; BLOCK], 0.0);
    for (i, (block, _)) in rows.iter().enumerate() {
        square_distances(&block, &origin, &mut squares);
        let terms = squares.iter().zip(rows.weights(i));
        before -= terms.map(|(square, weight)| weight * 0.5 * (square + dim as f64 * LN_2PI)).sum::<f64>();
    }
    sweep(rows, mixture, kind, None).log_likelihood - before
}

/// What the split of a single Gaussian gains by chance: about 1.5 times the number of free parameters that it adds.
pub(super) fn gain_by_chance(kind: CovarianceType, dim: usize) -> f64 {
    1.5 * kind.of_component(dim as f64)
}

/// The sums of `|z|² z` and `|z|² z zᵀ` over whitened rows.
pub(super) fn tail_moments(rows: &RowBlocks) -> (Array1<f64>, Array2<f64>) {
    let dim = rows.dim();
    let mut moments = Moments::new(dim);
    let (origin, mut weights) = (vec![0.0; dim], [0.0; BLOCK]);
    for (i, (block, _)) in rows.iter().enumerate() {
        square_distances(&block, &origin, &mut weights);
        for (weight, of_row) in weights.iter_mut().zip(rows.weights(i)) {
            // The limit keeps a few outliers from dominating the sum.
            *weight = of_row * weight.min(4.0 * dim as f64 + 20.0);
        }
        moments.add(&block, &weights);
    }
    let second = |(i, l): (usize, usize)| moments.second[i.max(l) * dim + i.min(l)];
    (Array1::from(moments.first.clone()), Array2::from_shape_fn((dim, dim), second))
}

/// The strength of the prior of the parts of a split, in rows.
pub(super) fn strength_of_parts(dim: usize) -> f64 {
    prior_strength(dim) + dim as f64
}

/// The number of rows of a component that a split uses.
fn most_rows(dim: usize) -> usize {
    (40 * dim).max(1500)
}

/// The smallest number of rows of each part.
const MIN_ROWS: usize = 4;
/// Added to each variance in whitened coordinates.
const RIDGE: f64 = 1e-6;

/// The smallest variance of a constrained part in whitened coordinates.
const MIN_SPREAD: f64 = 1e-4;

/// Two parts along a line, which differ only in their position on it.
struct Line {
    means: [f64; 2],
    /// The mean and variance of all rows, and the variance of each part.
    mean: f64,
    variance: f64,
    within: f64,
    share: f64,
}

impl Line {
    /// Writes the position of each row on the line to `places`.
    fn new(rows: &RowBlocks, axis: &Array1<f64>, means: [f64; 2], share: f64, places: &mut [Quad]) -> Self {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        let places = Quad::flat_mut(places);
        for (i, ((block, _), places)) in rows.iter().zip(places.chunks_exact_mut(BLOCK)).enumerate() {
            places.fill(0.0);
            for (column, along) in block.chunks_exact(BLOCK).zip(axis) {
                places.iter_mut().zip(column).for_each(|(place, value)| *place += along * value);
            }
            for (place, weight) in places.iter().zip(rows.weights(i)) {
                count += weight;
                sum += weight * place;
                squares += weight * place * place;
            }
        }
        let mean = sum / count;
        let variance = (squares / count - mean * mean).max(MIN_SPREAD);
        let between = share * (1.0 - share) * (means[0] - means[1]).powi(2);
        let within = (variance - between).max(0.05 * variance);
        Line { means, mean, variance, within, share }
    }

    fn log_odds(&self) -> LogOdds {
        let [one, other] = self.means;
        LogOdds {
            offset: (self.share / (1.0 - self.share)).ln()
                + (other * other - one * one) / (2.0 * self.within),
            slope: (one - other) / self.within,
        }
    }

    /// The gain of two parts over one.
    fn gain(&self, rows: &RowBlocks, places: &[Quad]) -> f64 {
        let mut excesses = places.to_vec();
        self.log_odds().excesses(&mut excesses);
        let log =
            |place: f64, mean: f64, variance: f64| -0.5 * ((place - mean).powi(2) / variance + variance.ln());
        let constant = (1.0 - self.share).ln();
        let of_row = |(&place, &excess): (&f64, &f64)| {
            excess + constant + log(place, self.means[1], self.within) - log(place, self.mean, self.variance)
        };
        let gains = Quad::flat(places).iter().zip(Quad::flat(&excesses)).map(of_row);
        let weights = (0..rows.blocks()).flat_map(|i| rows.weights(i));
        gains.zip(weights).map(|(gain, weight)| gain * weight).sum()
    }
}

/// Sums over the rows of two parts.
struct LineSums {
    counts: [f64; 2],
    sums: [Array1<f64>; 2],
}

impl LineSums {
    /// `first` has the probability of the first part for each row.
    fn new(rows: &RowBlocks, first: &[f64]) -> Self {
        let mut sums =
            LineSums { counts: [0.0; 2], sums: [Array1::zeros(rows.dim()), Array1::zeros(rows.dim())] };
        let mut weighted = [0.0; BLOCK];
        for (i, ((block, _), first)) in rows.iter().zip(first.chunks_exact(BLOCK)).enumerate() {
            let weights = rows.weights(i);
            weighted.iter_mut().zip(first).zip(weights).for_each(|((to, r), weight)| *to = r * weight);
            let own: f64 = weighted.iter().sum();
            sums.counts[0] += own;
            sums.counts[1] += weights.iter().sum::<f64>() - own;
            for (l, column) in block.chunks_exact(BLOCK).enumerate() {
                let (mut one, mut all) = (0.0, 0.0);
                for ((value, r), weight) in column.iter().zip(&weighted).zip(weights) {
                    one += r * value;
                    all += weight * value;
                }
                sums.sums[0][l] += one;
                sums.sums[1][l] += all - one;
            }
        }
        sums
    }

    fn share(&self) -> f64 {
        self.counts[0] / (self.counts[0] + self.counts[1])
    }

    fn means(self) -> [Array1<f64>; 2] {
        let [one, other] = self.sums;
        [one / self.counts[0], other / self.counts[1]]
    }
}

fn normalised(axis: Array1<f64>) -> Array1<f64> {
    let length = axis.dot(&axis).sqrt();
    if length > 0.0 { axis / length } else { axis }
}
