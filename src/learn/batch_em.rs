//! Batch EM, which the one-pass learners are compared with.

use std::cell::OnceCell;
use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

use crate::dist::{GaussianMixture, Mixture};
use crate::learn::pass::online_fit::check_weights;
use crate::learn::structure::{
    Effort, Em, Finder, Price, PriorStrength, ScaledRows, Size, filled, kmeans_mixture, with_judged_price,
};
use crate::learn::{Components, LearnError};
use crate::linalg::CovarianceType;
use crate::linalg::blocks::RowBlocks;
use crate::stats::weighted_mean;

/// Settings of batch EM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmSettings {
    /// The most iterations after the structure is found.
    pub iterations: usize,
    /// EM stops when the mean log-likelihood rises by less than this.
    pub tolerance: f64,
    /// Added to each covariance's diagonal, in units of the column's variance.
    pub ridge: f64,
    /// Independent starts; the best by likelihood is kept.
    pub restarts: usize,
    /// How long splits and joins of components are tried.
    #[serde(default)]
    pub effort: Effort,
    /// The covariances of the components.
    #[serde(default, skip_serializing_if = "CovarianceType::is_full")]
    pub covariance: CovarianceType,
}

impl Default for EmSettings {
    fn default() -> Self {
        EmSettings {
            iterations: 200,
            tolerance: 1e-5,
            ridge: 1e-6,
            restarts: 2,
            effort: Effort::Thorough,
            covariance: CovarianceType::Full,
        }
    }
}

/// Rows, and their weights if they have any: a row of weight `w` counts as `w` rows.
#[derive(Debug, Clone, Copy)]
pub struct WeightedRows<'a> {
    /// The rows.
    pub rows: ArrayView2<'a, f64>,
    /// One weight for each.
    pub weights: Option<&'a [f64]>,
}

impl<'a> From<ArrayView2<'a, f64>> for WeightedRows<'a> {
    fn from(rows: ArrayView2<'a, f64>) -> Self {
        WeightedRows { rows, weights: None }
    }
}

impl WeightedRows<'_> {
    /// The rows with a weight above 0 and their weights, if others are among them.
    fn present(&self) -> Option<(Array2<f64>, Vec<f64>)> {
        let weights = self.weights.filter(|weights| weights.contains(&0.0))?;
        let present: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        Some((self.rows.select(Axis(0), &present), present.iter().map(|&i| weights[i]).collect()))
    }

    /// The number of independent rows that say as much: the total weight, or fewer if some rows are much heavier than one row.
    pub fn effective_rows(&self) -> f64 {
        let Some(weights) = self.weights else { return self.rows.nrows() as f64 };
        let (total, squares) =
            weights.iter().fold((0.0, 0.0), |(sum, squares), w| (sum + w, squares + w * w));
        if squares > 0.0 { (total * total / squares).min(total) } else { total }
    }

    /// The rows in units of their columns. No weight may be 0.
    pub(in crate::learn) fn scaled(&self, k: usize, kind: CovarianceType) -> Result<ScaledRows, LearnError> {
        let mut scaled = ScaledRows::new(self.rows, k, kind)?;
        if let Some(weights) = self.weights.filter(|weights| weights.iter().any(|weight| *weight != 1.0)) {
            let all: Vec<usize> = (0..weights.len()).collect();
            scaled.blocks = scaled.blocks.weighted(&all, weights, Some(weights));
        }
        Ok(scaled)
    }
}

/// The outcome of batch EM.
#[derive(Debug, Clone, PartialEq)]
pub struct EmFit {
    /// The fitted mixture.
    pub mixture: GaussianMixture,
    /// Its mean log-likelihood on the rows it was fitted to.
    pub mean_log_likelihood: f64,
    /// Iterations done after the structure was found.
    pub iterations: usize,
    /// Whether the gain fell below the tolerance.
    pub converged: bool,
    /// The covariances of its components.
    pub covariance: CovarianceType,
}

impl EmFit {
    /// `−BIC/(2n)`: the mean log-likelihood less `p ln n / 2n` for the `p` free parameters of the mixture. Compares fits with
    /// several K to the same rows; `rows` is their number, or their total weight.
    pub fn less_bic_price(&self, rows: f64) -> f64 {
        self.mean_log_likelihood - bic_price(&self.mixture, self.covariance, rows)
    }
}

/// `p ln n / 2n` for a mixture with `p` free numbers.
fn bic_price(mixture: &GaussianMixture, covariance: CovarianceType, rows: f64) -> f64 {
    let free = covariance.parameters(mixture.k(), mixture.dim());
    let rows = rows.max(2.0);
    free as f64 * rows.ln() / (2.0 * rows)
}

/// Batch EM with `k` components. It finds the structure by splits and merges under a weak prior, then runs EM without a
/// prior. Columns are scaled, so units do not matter, and values are limited to ±1e100 standard deviations, so that no
/// square overflows.
pub fn fit_em<'a>(
    rows: impl Into<WeightedRows<'a>>,
    k: usize,
    seed: u64,
    settings: &EmSettings,
) -> Result<EmFit, LearnError> {
    fit_em_of_size(rows.into(), Size::Given(k), seed, settings)
}

/// Batch EM that learns K within bounds: a component is added where it is worth the price that BIC puts on it or, with many
/// columns, where the evidence rises. Covariances have a learned prior.
pub fn fit_em_learning_k<'a>(
    rows: impl Into<WeightedRows<'a>>,
    bounds: RangeInclusive<usize>,
    seed: u64,
    settings: &EmSettings,
) -> Result<EmFit, LearnError> {
    let components = Components::learned(bounds);
    components.check()?;
    fit_em_of_size(rows.into(), components.sizes()[0], seed, settings)
}

fn fit_em_of_size(
    rows: WeightedRows,
    size: Size,
    seed: u64,
    settings: &EmSettings,
) -> Result<EmFit, LearnError> {
    let never = AtomicBool::new(false);
    let limits = settings.effort.limits();
    let (Size::Given(least) | Size::Learned { least, .. }) = size;
    let judged = OnceCell::new();
    best_of_starts(rows, least, settings, size, |rows, restart| {
        let (prior, ridge, seed) = (PriorStrength::Auto, settings.ridge, seed.wrapping_add(restart));
        let finder = Finder {
            kind: settings.covariance,
            size,
            first_k: None,
            prior,
            limits,
            ridge,
            seed,
            stop: &never,
        };
        let (size, known) = judged.get_or_init(|| with_judged_price(&rows.blocks, finder));
        let finder = Finder { size: *size, first_k: known.as_ref().map(Mixture::k), ..finder };
        match known {
            Some(known) if restart == 0 => finder.find_from(&rows.blocks, known).0,
            _ => finder.find(&rows.blocks).0,
        }
    })
}

/// Batch EM without splits and merges. Each start is one run of k-means in all columns, without a prior.
/// `settings.effort` has no effect.
pub fn fit_em_from_kmeans<'a>(
    rows: impl Into<WeightedRows<'a>>,
    k: usize,
    seed: u64,
    settings: &EmSettings,
) -> Result<EmFit, LearnError> {
    best_of_starts(rows.into(), k, settings, Size::Given(k), |rows, restart| {
        let seed = seed.wrapping_add(restart);
        let fill = || filled(&rows.blocks, None, seed, &AtomicBool::new(false));
        let complete = rows.blocks.has_gaps().then(fill);
        kmeans_mixture(
            complete.as_ref().unwrap_or(&rows.blocks),
            k,
            seed,
            settings.ridge,
            settings.covariance,
        )
    })
}

/// EM from each start, which follows from the scaled rows and the number of the start. The best is kept: by likelihood for a given K, and
/// otherwise by likelihood minus the price of the components.
///
/// With a given K, EM maximises the likelihood. If K is learned, covariances have the learned prior.
fn best_of_starts(
    rows: WeightedRows,
    k: usize,
    settings: &EmSettings,
    size: Size,
    start: impl Fn(&ScaledRows, u64) -> GaussianMixture,
) -> Result<EmFit, LearnError> {
    check_weights(rows.weights, rows.rows.nrows(), 0)?;
    let present = rows.present();
    let (rows, weights) = match &present {
        Some((rows, weights)) => (rows.view(), Some(weights.as_slice())),
        None => (rows.rows, rows.weights),
    };
    let scaled = WeightedRows { rows, weights }.scaled(k, settings.covariance)?;
    let never = AtomicBool::new(false);
    let prior = matches!(size, Size::Learned { .. }).then_some(PriorStrength::Auto);
    let em = Em { prior, price: size.price(&scaled.blocks, settings.covariance), ..settings.em() };
    let from_start = |restart: usize| {
        let start = start(&scaled, restart as u64);
        em.run(&scaled.blocks, &start, f64::NEG_INFINITY, &never)
    };
    // Of equals the earlier start is kept.
    let fits = (0..settings.restarts.max(1)).map(from_start);
    let best = fits.reduce(|a, b| if b.level > a.level { b } else { a });
    let best = best.expect("there is at least one start");
    let mixture = scaled.unscale(&best.mixture);
    // With gaps, the Jacobian differs from row to row.
    let mean_log_likelihood = if scaled.blocks.has_gaps() {
        let log_densities = mixture.log_densities(rows);
        match weights {
            None => log_densities.mean().unwrap_or_default(),
            Some(weights) => weighted_mean(log_densities.iter().copied(), weights),
        }
    } else {
        best.mean_log_likelihood - scaled.log_jacobian()
    };
    let (iterations, converged) = (best.iterations, best.converged);
    Ok(EmFit { mixture, mean_log_likelihood, iterations, converged, covariance: settings.covariance })
}

impl EmSettings {
    fn em(&self) -> Em {
        let EmSettings { iterations, tolerance, ridge, covariance: kind, .. } = *self;
        Em { kind, iterations, tolerance, prior: None, price: Price::NONE, ridge, noise: None }
    }
}

/// EM from a given start, in the units of the rows. The ridge is added to the diagonal of each covariance unscaled.
pub fn expectation_maximisation(
    rows: ArrayView2<f64>,
    start: &GaussianMixture,
    settings: &EmSettings,
) -> EmFit {
    let never = AtomicBool::new(false);
    let best = settings.em().run(&RowBlocks::new(rows), start, f64::NEG_INFINITY, &never);
    EmFit {
        mixture: best.mixture,
        mean_log_likelihood: best.mean_log_likelihood,
        iterations: best.iterations,
        converged: best.converged,
        covariance: settings.covariance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    #[test]
    fn the_best_of_several_kmeans_starts_is_kept() {
        let group = |i: usize| [0.0, 3.0, 4.5, 30.0, 33.0, 60.0][i % 6];
        let wave = |i: usize, j: usize| ((i * (31 + 16 * j)) as f64 * 0.37).sin();
        let rows = Array2::from_shape_fn((600, 2), |(i, j)| group(i) * (1 - j) as f64 + wave(i, j));
        let settings = |restarts| EmSettings { restarts, ..EmSettings::default() };
        let of = |restarts, seed| fit_em_from_kmeans(rows.view(), 6, seed, &settings(restarts)).unwrap();
        let each: Vec<f64> = (3..8).map(|seed| of(1, seed).mean_log_likelihood).collect();
        let best = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(of(5, 3).mean_log_likelihood, best);
        assert!(each.iter().any(|&level| level < best - 1e-3), "{each:?}");
    }
}
