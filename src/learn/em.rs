//! Batch EM: the level that one pass has to reach, and the fit of the first rows.
//!
//! One sweep over the rows does the E-step and gathers the M-step's sums about the old means, in blocks that turn
//! both into matrix products.

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::LearnError;
use super::columns::tame_summaries;
use super::kmeans::kmeans;
use crate::dist::{BlockScorer, Gaussian, GaussianMixture, Mixture};
use crate::linalg::Factor;
use crate::linalg::blocks::{BLOCK, Moments, RowBlocks, subtract_mean};
use crate::stats::ColumnSummary;

/// Settings of batch EM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmSettings {
    /// At most so many iterations from each start.
    pub iterations: usize,
    /// Stop when the mean log-likelihood gains less than this.
    pub tolerance: f64,
    /// Added to each covariance's diagonal, in units of the column's variance.
    pub ridge: f64,
    /// Independent starts; the best by likelihood is kept.
    pub restarts: usize,
    /// Rounds of k-means before EM.
    pub kmeans_rounds: usize,
}

impl Default for EmSettings {
    fn default() -> Self {
        EmSettings { iterations: 200, tolerance: 1e-5, ridge: 1e-6, restarts: 10, kmeans_rounds: 10 }
    }
}

/// The outcome of batch EM.
#[derive(Debug, Clone, PartialEq)]
pub struct EmFit {
    /// The fitted mixture.
    pub mixture: GaussianMixture,
    /// Its mean log-likelihood on the rows it was fitted to.
    pub mean_log_likelihood: f64,
    /// Iterations done.
    pub iterations: usize,
    /// Whether the gain fell below the tolerance.
    pub converged: bool,
}

impl EmFit {
    /// The mean log-likelihood less the price per row that BIC puts on the mixture's free numbers, `p ln n / 2n`: by this
    /// fits with several K to the same `rows` can be compared.
    pub fn less_bic_price(&self, rows: usize) -> f64 {
        let (k, dim) = (self.mixture.k(), self.mixture.dim());
        let free = (k - 1) + k * (dim + dim * (dim + 1) / 2);
        self.mean_log_likelihood - free as f64 * (rows as f64).ln() / (2.0 * rows as f64)
    }
}

/// EM from `settings.restarts` k-means++ starts, the best by likelihood. Columns are scaled first, so units do
/// not matter, and values are held within ±1e100 standard deviations, so that no square overflows.
pub fn fit_em(
    rows: ArrayView2<f64>,
    k: usize,
    seed: u64,
    settings: &EmSettings,
) -> Result<EmFit, LearnError> {
    let scaled = ScaledRows::new(rows, k)?;
    let from_start = |restart: usize| {
        let start = scaled.kmeans_mixture(k, settings, seed, restart);
        scaled.improve(&start, settings)
    };
    let fits: Vec<EmFit> = (0..settings.restarts.max(1)).into_par_iter().map(from_start).collect();
    // Of equals the earlier start wins, whatever the number of threads.
    let better = |a: EmFit, b: EmFit| if b.mean_log_likelihood > a.mean_log_likelihood { b } else { a };
    let best = fits.into_iter().reduce(better).expect("there is at least one start");
    Ok(scaled.unscale(best))
}

/// Rows in units of their columns, as EM wants them.
pub(super) struct ScaledRows {
    columns: Vec<ColumnSummary>,
    blocks: RowBlocks,
}

impl ScaledRows {
    /// Scales rows from which `k` components are to be learned.
    pub fn new(rows: ArrayView2<f64>, k: usize) -> Result<Self, LearnError> {
        if k == 0 || rows.is_empty() {
            return Err(LearnError::TooFewRows { k, rows: rows.nrows() as u64 });
        }
        let columns = tame_summaries(rows);
        let scales: Vec<(f64, f64)> = columns.iter().map(|column| (column.mean, column.unit())).collect();
        let scaled = |i, j| {
            let (centre, unit): (f64, f64) = scales[j];
            ((rows[(i, j)] - centre) / unit).clamp(-1e100, 1e100)
        };
        let blocks = RowBlocks::from_fn(rows.nrows(), rows.ncols(), scaled);
        Ok(ScaledRows { columns, blocks })
    }

    /// Every `step`-th of the rows.
    pub fn thinned(&self, step: usize) -> ScaledRows {
        ScaledRows { columns: self.columns.clone(), blocks: self.blocks.thinned(step) }
    }

    pub fn rows(&self) -> usize {
        self.blocks.rows()
    }

    /// A mixture from k-means; each `restart` has random numbers of its own.
    pub fn kmeans_mixture(
        &self,
        k: usize,
        settings: &EmSettings,
        seed: u64,
        restart: usize,
    ) -> GaussianMixture {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(restart as u64);
        let labels = kmeans(&self.blocks, k, settings.kmeans_rounds, &mut rng);
        mixture_of_labels(&self.blocks, &labels, k, &self.ridge(settings))
    }

    /// EM from `start`.
    pub fn improve(&self, start: &GaussianMixture, settings: &EmSettings) -> EmFit {
        iterate(&self.blocks, start, &self.ridge(settings), settings)
    }

    fn ridge(&self, settings: &EmSettings) -> Vec<f64> {
        vec![settings.ridge; self.columns.len()]
    }

    /// Back to the data's own units; log-densities change by the sum of the units' logarithms.
    pub fn unscale(&self, fit: EmFit) -> EmFit {
        let units: Vec<f64> = self.columns.iter().map(ColumnSummary::unit).collect();
        let unscaled = |gaussian: &Gaussian| {
            let mut covariance = gaussian.covariance().clone();
            covariance.change_units(&units);
            let mean =
                gaussian.mean().iter().zip(&self.columns).map(|(m, c)| c.mean + c.unit() * m).collect();
            Gaussian::new(mean, covariance).expect("means are within 1e100 units of the centre")
        };
        let components = fit.mixture.components().iter().map(unscaled).collect();
        let jacobian: f64 = units.iter().map(|unit| unit.ln()).sum();
        EmFit {
            mixture: Mixture::new(fit.mixture.weights().to_vec(), components).expect("same shape as before"),
            mean_log_likelihood: fit.mean_log_likelihood - jacobian,
            ..fit
        }
    }
}

/// EM from a given start; `ridge` is added to the diagonal of each covariance.
pub fn expectation_maximisation(
    rows: ArrayView2<f64>,
    start: &GaussianMixture,
    ridge: &[f64],
    settings: &EmSettings,
) -> EmFit {
    iterate(&RowBlocks::new(rows), start, ridge, settings)
}

fn iterate(rows: &RowBlocks, start: &GaussianMixture, ridge: &[f64], settings: &EmSettings) -> EmFit {
    let mut mixture = start.clone();
    let mut before = f64::NEG_INFINITY;
    for iteration in 0..settings.iterations {
        let (now, sums) = sweep(rows, &mixture);
        if now - before < settings.tolerance {
            return EmFit { mixture, mean_log_likelihood: now, iterations: iteration, converged: true };
        }
        before = now;
        mixture = maximise(&sums, &mixture, ridge);
    }
    let (mean_log_likelihood, _) = sweep(rows, &mixture);
    EmFit { mixture, mean_log_likelihood, iterations: settings.iterations, converged: false }
}

/// The mean log-likelihood, and the M-step's sums about the old means.
fn sweep(rows: &RowBlocks, mixture: &GaussianMixture) -> (f64, Vec<Moments>) {
    let mut scorer = BlockScorer::new(mixture);
    let mut sums = vec![Moments::new(mixture.dim()); mixture.k()];
    let mut deviations = vec![0.0; mixture.dim() * BLOCK];
    let mut log_likelihood = 0.0;
    for (block, filled) in rows.iter() {
        scorer.look_at(mixture, block, filled);
        log_likelihood += scorer.log_densities().sum();
        for (j, (component, sums)) in mixture.components().iter().zip(&mut sums).enumerate() {
            subtract_mean(block, component.mean(), &mut deviations);
            sums.add(&deviations, scorer.shares(j));
        }
    }
    (log_likelihood / rows.rows() as f64, sums)
}

fn maximise(sums: &[Moments], old: &GaussianMixture, ridge: &[f64]) -> GaussianMixture {
    let component = |(sums, old): (&Moments, &Gaussian)| {
        if sums.count < EMPTY { old.clone() } else { gaussian_of(sums, old.mean(), ridge) }
    };
    let components = sums.iter().zip(old.components()).map(component).collect();
    // An empty component keeps a trace of weight, so that its logarithm stays finite.
    mixture_of_counts(sums.iter().map(|sums| sums.count.max(EMPTY)).collect(), components)
}

/// The Gaussian of some rows, from their moments about `origin`.
fn gaussian_of(sums: &Moments, origin: &[f64], ridge: &[f64]) -> Gaussian {
    let dim = origin.len();
    let shift: Vec<f64> = sums.first.iter().map(|sum| sum / sums.count).collect();
    let covariance = Array2::from_shape_fn((dim, dim), |(i, l)| {
        let second = if l <= i { sums.second[i * dim + l] } else { sums.second[l * dim + i] };
        second / sums.count - shift[i] * shift[l]
    });
    let mean = origin.iter().zip(&shift).map(|(mean, shift)| mean + shift).collect();
    gaussian_with_ridge(mean, covariance, ridge)
}

fn mixture_of_counts(counts: Vec<f64>, components: Vec<Gaussian>) -> GaussianMixture {
    let total: f64 = counts.iter().sum();
    let weights = counts.iter().map(|count| count / total).collect();
    Mixture::new(weights, components).expect("one weight for each component")
}

/// A component with fewer rows than this keeps its place and shape.
const EMPTY: f64 = 1e-10;

/// A Gaussian whose covariance may be singular until the ridge is on; rounding may ask for more of it.
fn gaussian_with_ridge(mean: Vec<f64>, mut covariance: Array2<f64>, ridge: &[f64]) -> Gaussian {
    let mut add = 1.0;
    loop {
        for (value, ridge) in covariance.diag_mut().iter_mut().zip(ridge) {
            *value += add * ridge;
        }
        if let Ok(factor) = Factor::from_matrix(covariance.view()) {
            return Gaussian::new(mean, factor).expect("finite rows have finite means");
        }
        // Far outliers make entries so large that the ridge drowns in their rounding: raise the diagonal with
        // them, and in the end keep the diagonal alone.
        let trace = covariance.diag().sum();
        add = if add == 1.0 { trace.max(1.0) * 1e-10 / ridge[0].max(f64::MIN_POSITIVE) } else { add * 100.0 };
        if !(add < 1e250) {
            let deviations: Vec<f64> =
                covariance.diag().iter().map(|v| v.clamp(1e-200, 1e200).sqrt()).collect();
            let factor = Factor::from_standard_deviations(&deviations).expect("clamped above zero");
            return Gaussian::new(mean, factor).expect("finite rows have finite means");
        }
    }
}

/// Means and covariances of the rows with each label. A label without rows gets those of all rows.
fn mixture_of_labels(rows: &RowBlocks, labels: &[usize], k: usize, ridge: &[f64]) -> GaussianMixture {
    let origin = vec![0.0; rows.dim()];
    let moments = |belongs: &dyn Fn(usize) -> bool| {
        let mut sums = Moments::new(rows.dim());
        for ((block, _), labels) in rows.iter().zip(labels.chunks(BLOCK)) {
            let mut weights = [0.0; BLOCK];
            weights
                .iter_mut()
                .zip(labels)
                .for_each(|(weight, label)| *weight = f64::from(u8::from(belongs(*label))));
            sums.add(block, &weights);
        }
        sums
    };
    let mut components = Vec::with_capacity(k);
    let mut counts = Vec::with_capacity(k);
    for j in 0..k {
        let sums = moments(&|label| label == j);
        counts.push(sums.count + 1.0 / k as f64);
        let sums = if sums.count == 0.0 { moments(&|_| true) } else { sums };
        components.push(gaussian_of(&sums, &origin, ridge));
    }
    mixture_of_counts(counts, components)
}
