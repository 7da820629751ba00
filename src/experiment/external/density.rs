//! Whether scores are those of a density: its integral, by importance sampling.

use ndarray::{Array2, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::Failure;
use crate::stats::{ColumnSummary, mean, standard_error};

/// Points around each training row with each width.
const REPEATS: usize = 2;
/// Training rows that points are drawn around.
const CENTRES: usize = 300;
/// Standard deviations of the points around a row, relative to those of the columns. Small ones find narrow components,
/// large ones the tails.
const WIDTHS: [f64; 6] = [3.0, 1.0, 0.3, 0.03, 0.003, 0.0003];
const POINTS: usize = REPEATS * CENTRES * WIDTHS.len();
/// An integral this close to 1, beyond its standard errors, is that of a density.
const TOLERANCE: f64 = 0.1;
/// Standard errors that an estimate may be off.
const ERRORS: f64 = 5.0;
/// Ratios of densities are also averaged up to this limit. That mean is never above the integral, and few points with huge
/// ratios do not widen its standard error.
const LIMIT: f64 = 20.0;

/// Points drawn from a known density `q`: Gaussians of several widths around training rows. The integral of `p` is the
/// mean of `p/q` over the points.
pub(super) struct Integral {
    points: Array2<f64>,
    log_q: Vec<f64>,
}

impl Integral {
    /// `None` if no training row is complete: then there is nothing to draw points around.
    pub fn new(train: ArrayView2<f64>, seed: u64) -> Option<Self> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let complete: Vec<usize> =
            (0..train.nrows()).filter(|&i| train.row(i).iter().all(|x| !x.is_nan())).collect();
        if complete.is_empty() {
            return None;
        }
        let dim = train.ncols();
        let units: Vec<f64> = train
            .columns()
            .into_iter()
            .map(|column| column.iter().copied().collect::<ColumnSummary>().unit())
            .collect();
        let centres: Vec<Vec<f64>> = (0..CENTRES)
            .map(|_| {
                train
                    .row(complete[rng.random_range(0..complete.len())])
                    .iter()
                    .zip(&units)
                    .map(|(x, unit)| x / unit)
                    .collect()
            })
            .collect();
        // In units of the columns.
        let mut scaled = Array2::zeros((POINTS, dim));
        for (place, mut point) in scaled.outer_iter_mut().enumerate() {
            let (centre, width) = (&centres[place % CENTRES], WIDTHS[place / CENTRES % WIDTHS.len()]);
            for (value, middle) in point.iter_mut().zip(centre) {
                let noise: f64 = StandardNormal.sample(&mut rng);
                *value = middle + width * noise;
            }
        }
        let log_unit: f64 = units.iter().map(|unit| unit.ln()).sum();
        let log_q = scaled
            .outer_iter()
            .map(|point| log_mixture(point.as_slice().expect("rows are contiguous"), &centres) - log_unit)
            .collect();
        let points = Array2::from_shape_fn((POINTS, dim), |(i, j)| scaled[(i, j)] * units[j]);
        Some(Integral { points, log_q })
    }

    pub fn points(&self) -> ArrayView2<'_, f64> {
        self.points.view()
    }

    /// The integral and its standard error, from the scores of the points. Refuses one that is not 1.
    pub fn check(&self, scores: &[f64]) -> Result<(f64, f64), Failure> {
        let most = f64::from(f32::MAX);
        let ratios: Vec<f64> = scores.iter().zip(&self.log_q).map(|(p, q)| (p - q).exp().min(most)).collect();
        let integral = mean(&ratios).unwrap_or_default();
        let standard_error = standard_error(&ratios).unwrap_or_default();
        let is_one = (integral - 1.0).abs() <= TOLERANCE + ERRORS * standard_error;
        match is_one && !is_surely_more_than_one(&ratios) {
            true => Ok((integral, standard_error)),
            false => Err(Failure::NotADensity { integral, standard_error }),
        }
    }
}

/// Whether even the mean of the limited ratios is more than 1.
fn is_surely_more_than_one(ratios: &[f64]) -> bool {
    let limited: Vec<f64> = ratios.iter().map(|ratio| ratio.min(LIMIT)).collect();
    let (least, error) = (mean(&limited).unwrap_or_default(), standard_error(&limited).unwrap_or_default());
    least > 1.0 + TOLERANCE + ERRORS * error
}

/// The log-density of the mixture of all centres and widths, where the unit of each column is 1.
fn log_mixture(point: &[f64], centres: &[Vec<f64>]) -> f64 {
    let dim = point.len() as f64;
    let constant =
        -0.5 * dim * (2.0 * std::f64::consts::PI).ln() - ((centres.len() * WIDTHS.len()) as f64).ln();
    let squares: Vec<f64> =
        centres.iter().map(|centre| centre.iter().zip(point).map(|(m, x)| (x - m) * (x - m)).sum()).collect();
    let terms = || {
        squares.iter().flat_map(|square| {
            WIDTHS.iter().map(move |width| -0.5 * square / (width * width) - dim * width.ln())
        })
    };
    let most = terms().fold(f64::NEG_INFINITY, f64::max);
    constant + most + terms().map(|term| (term - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::EmSettings;
    use crate::learn::fit_em_from_kmeans;

    /// Two groups, one of them narrow, in units of their own; the last column may be discrete.
    fn rows(dim: usize, discrete: bool) -> Array2<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
        Array2::from_shape_fn((900, dim), |(i, j)| {
            let (group, scale) = ((i % 3).min(1) as f64, 10f64.powi(3 * j as i32 - 2));
            let value = 8.0 * group + noise() * if group > 0.0 { 1.0 } else { 0.05 };
            scale * if discrete && j + 1 == dim { value.round() } else { value }
        })
    }

    #[test]
    fn a_mixture_integrates_to_one_and_a_scaled_one_does_not() {
        for (dim, discrete, seed) in [(1, false, 1), (2, false, 2), (3, false, 3), (2, true, 4), (3, true, 5)]
        {
            let rows = rows(dim, discrete);
            let mixture = fit_em_from_kmeans(rows.view(), 3, 1, &EmSettings::default()).unwrap().mixture;
            let integral = Integral::new(rows.view(), seed).unwrap();
            let scores = mixture.log_densities(integral.points()).to_vec();
            let (value, error) = integral.check(&scores).unwrap();
            assert!((value - 1.0).abs() < 0.1 && error < 0.1, "d = {dim}: {value} ± {error}");
            for factor in [0.5f64, 2.0, 1e3] {
                let scaled: Vec<f64> = scores.iter().map(|score| score + factor.ln()).collect();
                let failure = integral.check(&scaled).unwrap_err();
                assert_eq!(failure.short(), "not a density");
            }
            // A constant has an integral so large that its standard error is, too.
            for constant in [5.0, 300.0] {
                let failure = integral.check(&vec![constant; scores.len()]).unwrap_err();
                assert_eq!(failure.short(), "not a density", "{constant} in {dim} columns");
            }
        }
    }
}
