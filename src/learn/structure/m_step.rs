//! The M step of EM, with a weak prior on the shape of each covariance.

use ndarray::Array2;

use super::e_step::Sums;
use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::linalg::Factor;
use crate::linalg::blocks::Moments;

/// The prior on the shape of a covariance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) enum Shape {
    /// No prior: maximum likelihood.
    Free,
    /// The pooled covariance, with the weight of this many rows.
    Pooled(f64),
    /// The pooled covariance, scaled to the component's own determinant, with the weight of this many rows. With the pooled
    /// determinant, narrow components would become too wide.
    OwnVolume(f64),
}

/// The mixture that maximises the likelihood of the sums. `old` is the mixture of the E step; `ridge` is added to each
/// variance.
pub(in crate::learn) fn maximise(
    sums: &Sums,
    old: &GaussianMixture,
    shape: Shape,
    ridge: f64,
) -> GaussianMixture {
    let dim = old.dim();
    let pooled = match shape {
        Shape::Free => None,
        _ => Some(pooled_covariance(&sums.moments, dim, ridge)),
    };
    let pooled_log_det = match (&pooled, shape) {
        (Some(pooled), Shape::OwnVolume(_)) => {
            Factor::from_matrix(pooled.view()).map_or(f64::NAN, |f| f.log_det())
        }
        _ => f64::NAN,
    };
    let component = |(moments, old): (&Moments, &Gaussian)| {
        if moments.count < EMPTY {
            return old.clone();
        }
        let (mean, scatter) = mean_and_scatter(moments, old.mean());
        let count = moments.count;
        let covariance = match (shape, &pooled) {
            (Shape::Pooled(strength), Some(pooled)) => (scatter + strength * pooled) / (count + strength),
            (Shape::OwnVolume(strength), Some(pooled)) => {
                let log_ratio = (old.covariance().log_det() - pooled_log_det) / dim as f64;
                // Without a determinant of the pooled covariance there is no prior.
                let strength = if log_ratio.is_finite() { strength } else { 0.0 };
                let own = if strength > 0.0 { strength * log_ratio.clamp(-600.0, 600.0).exp() } else { 0.0 };
                (scatter + own * pooled) / (count + strength)
            }
            _ => scatter / count,
        };
        gaussian_with_ridge(mean, covariance, ridge)
    };
    let components = sums.moments.iter().zip(old.components()).map(component).collect();
    // An empty component keeps a tiny weight, whose logarithm is finite.
    mixture_of_counts(sums.moments.iter().map(|moments| moments.count.max(EMPTY)).collect(), components)
}

/// A component with fewer rows than this keeps its mean and covariance.
const EMPTY: f64 = 1e-10;

fn pooled_covariance(moments: &[Moments], dim: usize, ridge: f64) -> Array2<f64> {
    let origin = vec![0.0; dim];
    let mut pooled = Array2::zeros((dim, dim));
    let mut count = 0.0;
    for moments in moments.iter().filter(|moments| moments.count >= EMPTY) {
        pooled += &mean_and_scatter(moments, &origin).1;
        count += moments.count;
    }
    pooled /= f64::max(count, EMPTY);
    pooled.diag_mut().iter_mut().for_each(|value| *value += ridge);
    pooled
}

/// The mean of rows and their scatter matrix about it, from their moments relative to `origin`.
pub(in crate::learn) fn mean_and_scatter(moments: &Moments, origin: &[f64]) -> (Vec<f64>, Array2<f64>) {
    let dim = origin.len();
    let shift: Vec<f64> = moments.first.iter().map(|sum| sum / moments.count).collect();
    let scatter = Array2::from_shape_fn((dim, dim), |(i, l)| {
        let second = if l <= i { moments.second[i * dim + l] } else { moments.second[l * dim + i] };
        second - moments.count * shift[i] * shift[l]
    });
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
