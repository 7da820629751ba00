//! The M step of EM.

use ndarray::Array2;

use super::constrained::maximise_constrained;
use super::covariance_prior::{Centres, Strength};
use super::e_step::Sums;
use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::linalg::blocks::Moments;
use crate::linalg::{CovarianceType, Factor};

/// The rows of each component.
pub(super) struct Parts {
    pub parts: Vec<Part>,
    /// The scatter matrix of all rows about the means of their components, if covariances are tied.
    pub shared: Option<Array2<f64>>,
    /// The number of rows of equal weight that say as much as a weight of one.
    pub information: f64,
    /// See [`RowBlocks::unit`](crate::linalg::blocks::RowBlocks::unit), and the same where the prior counts rows.
    pub unit: f64,
    pub prior_unit: f64,
    /// The covariances that the components are to have.
    pub kind: CovarianceType,
}

/// The rows of one component.
pub(super) struct Part {
    /// Their total weight.
    pub count: f64,
    /// How many times as much the component's prior counts as that of all components, where rows have weights: above one if its rows
    /// are heavier than others, so that they say as much as fewer rows.
    pub spread: f64,
    /// What the component costs, in units of the price of one whose rows have the weights of all rows. It never costs less.
    pub cost: f64,
    pub mean: Vec<f64>,
    /// The diagonal of the scatter matrix about their mean.
    pub squares: Vec<f64>,
    /// The scatter matrix, if the component has a full covariance of its own; otherwise empty.
    pub scatter: Array2<f64>,
}

impl Parts {
    /// `old` is the mixture of the E step.
    pub fn new(sums: Sums, old: &GaussianMixture) -> Self {
        let (unit, repeats) = (sums.unit, sums.repeats);
        let of_prior = |unit: f64| (unit / sums.of_prior).max(1.0);
        let prior = of_prior(unit);
        let spread = |j: usize, count: f64| match repeats.get(j) {
            Some(sum) if count >= EMPTY => {
                let own = (sum / count).max(1.0);
                (of_prior(own) / prior, (own / unit).max(1.0))
            }
            _ => (1.0, 1.0),
        };
        let part = |(j, (moments, old)): (usize, (Moments, &Gaussian))| {
            let (count, dim) = (moments.count, old.mean().len());
            let (spread, cost) = spread(j, count);
            let width = if sums.kind.is_full() { dim } else { 0 };
            if count < EMPTY {
                let (mean, squares) = (old.mean().to_vec(), vec![0.0; dim]);
                return Part { count, spread, cost, mean, squares, scatter: Array2::zeros((width, width)) };
            }
            if width == 0 {
                return Part::of_columns(moments, old.mean(), (spread, cost));
            }
            let (mean, scatter) = mean_and_scatter(moments, old.mean());
            Part { count, spread, cost, mean, squares: scatter.diag().to_vec(), scatter }
        };
        let moments = sums.moments.into_iter().zip(old.components());
        let parts: Vec<Part> = moments.enumerate().map(part).collect();
        let shared = sums.shared.map(|(all, origin)| pooled_scatter(&parts, all.second, &origin));
        Parts { parts, shared, information: sums.information, unit, prior_unit: prior, kind: sums.kind }
    }

    /// The components that have rows.
    pub fn filled(&self) -> impl Iterator<Item = (usize, &Part)> {
        self.parts.iter().enumerate().filter(|(_, part)| part.count >= EMPTY)
    }

    pub fn dim(&self) -> usize {
        self.parts.first().map_or(0, |part| part.mean.len())
    }

    /// The number of rows of equal weight that say as much as all rows.
    pub fn rows(&self) -> f64 {
        self.information * self.filled().map(|(_, part)| part.count).sum::<f64>()
    }

    /// The number of rows of equal weight that say as much as those of one component.
    pub fn rows_of(&self, part: &Part) -> f64 {
        part.count * self.information / part.spread
    }

    /// What each component costs: see [`Part::cost`].
    pub fn costs(&self) -> Vec<f64> {
        self.parts.iter().map(|part| part.cost).collect()
    }
}

impl Part {
    /// From moments of single columns.
    fn of_columns(moments: Moments, origin: &[f64], (spread, cost): (f64, f64)) -> Self {
        let Moments { count, first, second } = moments;
        let shift = |sum: &f64| sum / count;
        let terms = second.iter().zip(&first);
        let squares = terms.map(|(square, sum)| (square - shift(sum) * sum).max(0.0)).collect();
        let mean = origin.iter().zip(&first).map(|(origin, sum)| origin + shift(sum)).collect();
        Part { count, spread, cost, mean, squares, scatter: Array2::zeros((0, 0)) }
    }
}

/// The scatter matrix of all rows about the means of their components, from their second moments about `origin`.
fn pooled_scatter(parts: &[Part], second: Vec<f64>, origin: &[f64]) -> Array2<f64> {
    let dim = origin.len();
    let mut scatter =
        Array2::from_shape_vec((dim, dim), second).expect("second moments of each pair of columns");
    let shifts: Vec<(f64, Vec<f64>)> = parts
        .iter()
        .map(|part| (part.count, part.mean.iter().zip(origin).map(|(mean, origin)| mean - origin).collect()))
        .collect();
    for i in 0..dim {
        for l in 0..=i {
            let between: f64 = shifts.iter().map(|(count, shift)| count * shift[i] * shift[l]).sum();
            let value = scatter[(i, l)] - between;
            (scatter[(i, l)], scatter[(l, i)]) = (value, value);
        }
    }
    scatter
}

/// The mixture of the largest posterior density under the prior of covariances, or of the largest likelihood without. `old` is
/// the mixture of the E step; `ridge` is added to each variance.
pub(super) fn maximise(
    parts: Parts,
    old: &GaussianMixture,
    strength: Option<Strength>,
    ridge: f64,
) -> GaussianMixture {
    if !parts.kind.is_full() {
        return maximise_constrained(parts, old, strength, ridge);
    }
    let centres = strength.map(|strength| (strength.rows, Centres::new(&parts, strength.shared)));
    let information = parts.information;
    // An empty component keeps a tiny weight, whose logarithm is finite.
    let counts = parts.parts.iter().map(|part| part.count.max(EMPTY)).collect();
    let component = |(j, (part, old)): (usize, (Part, &Gaussian))| {
        let Part { count, spread, mean, scatter, .. } = part;
        if count < EMPTY {
            return old.clone();
        }
        let covariance = match &centres {
            None => scatter / count,
            Some((rows, centres)) => {
                let rows = rows / information * spread;
                let mut sum = centres.matrix(j) * rows;
                sum += &scatter;
                sum / (count + rows)
            }
        };
        gaussian_with_ridge(mean, covariance, ridge)
    };
    let components = parts.parts.into_iter().zip(old.components()).enumerate().map(component).collect();
    mixture_of_counts(counts, components)
}

/// A component with fewer rows than this keeps its mean and covariance.
pub(super) const EMPTY: f64 = 1e-10;

/// The mean of rows and their scatter matrix about it, from their moments relative to `origin`.
pub(super) fn mean_and_scatter(moments: Moments, origin: &[f64]) -> (Vec<f64>, Array2<f64>) {
    let Moments { count, first, second } = moments;
    let dim = origin.len();
    let shift: Vec<f64> = first.iter().map(|sum| sum / count).collect();
    let mut scatter =
        Array2::from_shape_vec((dim, dim), second).expect("second moments of each pair of columns");
    for i in 0..dim {
        for l in 0..=i {
            scatter[(i, l)] -= count * shift[i] * shift[l];
            scatter[(l, i)] = scatter[(i, l)];
        }
    }
    let mean = origin.iter().zip(&shift).map(|(mean, shift)| mean + shift).collect();
    (mean, scatter)
}

pub(super) fn mixture_of_counts(counts: Vec<f64>, components: Vec<Gaussian>) -> GaussianMixture {
    let total: f64 = counts.iter().sum();
    let weights = counts.iter().map(|count| count / total).collect();
    Mixture::new(weights, components).expect("one weight for each component")
}

/// A Gaussian whose covariance may be singular before the ridge is added. If rounding requires it, the ridge grows.
pub(super) fn gaussian_with_ridge(mean: Vec<f64>, mut covariance: Array2<f64>, ridge: f64) -> Gaussian {
    let mut add = 1.0;
    loop {
        covariance.diag_mut().iter_mut().for_each(|value| *value += add * ridge);
        if let Ok(factor) = Factor::from_matrix(covariance.view()) {
            return Gaussian::new(mean, factor).expect("finite rows have finite means");
        }
        // With far outliers the ridge is below the rounding error of the elements. It then grows with the trace, and in the
        // last resort only the diagonal is used.
        let trace = covariance.diag().sum();
        add = if add == 1.0 { trace.max(1.0) * 1e-10 / ridge.max(f64::MIN_POSITIVE) } else { add * 100.0 };
        if !(add < 1e250) {
            let deviations: Vec<f64> =
                covariance.diag().iter().map(|v| v.clamp(1e-200, 1e200).sqrt()).collect();
            let factor = Factor::from_standard_deviations(&deviations).expect("clamped above zero");
            return Gaussian::new(mean, factor).expect("finite rows have finite means");
        }
    }
}
