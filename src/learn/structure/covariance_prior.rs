//! The prior of the covariances, learned from the rows (empirical Bayes), and the evidence of a mixture under it.
//!
//! The covariance of component `j` has an inverse Wishart prior with `ν = d + 1 + s` and `Ψ₀ = s T_j`: it is worth `s` rows with
//! covariance `T_j = D_j^½ R D_j^½`, the component's own variances `D_j` and the correlations `R` that all components share.
//! `s` maximises the evidence, which has a closed form. So many columns or few rows lead to covariances that are alike, and
//! a component with enough rows has its own.

use ndarray::{Array1, Array2};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::m_step::{EMPTY, Part, Parts};
use crate::dist::{Gaussian, GaussianMixture};
use crate::linalg::special::{LN_2PI, LN_PI, log_gamma_ratio};
use crate::linalg::{Factor, lower_inverse, symmetric_eigenvalues};

/// How many rows the prior of a component's covariance is worth.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorStrength {
    /// Learned from the data.
    #[default]
    Auto,
    /// This many rows.
    Rows(f64),
}

impl PriorStrength {
    /// Whether it is the default.
    pub(crate) fn is_auto(&self) -> bool {
        *self == PriorStrength::Auto
    }
}

/// The strength of the prior in rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::learn) struct Strength {
    /// What the prior of a covariance is worth.
    pub rows: f64,
    /// What the prior of the shared correlations is worth, which is centred on uncorrelated columns.
    pub shared: f64,
}

impl Strength {
    /// A given strength for both.
    pub fn given(rows: f64) -> Self {
        Strength { rows, shared: rows }
    }

    /// The strength of the largest evidence, or a given one, for components with these rows.
    pub(super) fn learn(parts: &Parts, wanted: PriorStrength) -> Self {
        if !parts.kind.is_full() {
            return Strength::learn_constrained(parts, wanted);
        }
        let (dim, all) = (parts.dim(), parts.rows());
        let shared = if parts.filled().nth(1).is_none() {
            // One component shares nothing.
            0.0
        } else {
            let spectrum = [(all, symmetric_eigenvalues(shared_correlations(parts)))];
            most_evident(&spectrum, dim, MAX_ROWS)
        };
        let rows = match wanted {
            PriorStrength::Rows(rows) => rows,
            PriorStrength::Auto => {
                let centres = Centres::new(parts, shared);
                let inverse = centres.lower().map(|lower| lower_inverse(lower.lower_matrix().view()));
                let spectrum = |(j, part): (usize, &Part)| {
                    let mut scaled = centres.in_units_of(j, part);
                    if let Some(inverse) = &inverse {
                        scaled = inverse.dot(&scaled).dot(&inverse.t());
                    }
                    (parts.rows_of(part), symmetric_eigenvalues(scaled))
                };
                let filled: Vec<(usize, &Part)> = parts.filled().collect();
                let spectra: Vec<(f64, Vec<f64>)> = filled.into_par_iter().map(spectrum).collect();
                // The shared correlations know no more than all rows.
                most_evident(&spectra, dim, MAX_ROWS.min(all.max(1.0)))
            }
        };
        Strength { rows, shared }
    }
}

/// The range of strengths. Beyond it, the prior alone or the rows alone count.
pub(super) const MIN_ROWS: f64 = 1.0 / 64.0;
pub(super) const MAX_ROWS: f64 = 8192.0;
/// The own variances are shrunk to the shared ones by this many rows.
const SCALE_ROWS: f64 = 4.0;
/// The smallest variance of a column in a component, in units of the column's variance.
pub(super) const MIN_VARIANCE: f64 = 1e-12;

/// The strength of the largest evidence. Each component has a number of rows, and the eigenvalues of its covariance relative to
/// the centre of its prior.
pub(super) fn most_evident(spectra: &[(f64, Vec<f64>)], dim: usize, most: f64) -> f64 {
    let evidence = |strength: f64| -> f64 {
        let prior = log_gammas(0.5 * degrees_of_freedom(strength, dim), dim);
        spectra.iter().map(|(count, values)| log_evidence(strength, *count, values, &prior)).sum()
    };
    most_evident_by(evidence, most)
}

/// The strength of the largest evidence.
pub(super) fn most_evident_by(evidence: impl Fn(f64) -> f64, most: f64) -> f64 {
    let mut tried = vec![(MIN_ROWS, evidence(MIN_ROWS))];
    while let Some(next) = tried.last().map(|last| 2.0 * last.0).filter(|next| *next <= most) {
        tried.push((next, evidence(next)));
    }
    let best = (0..tried.len()).fold(0, |best, i| if tried[i].1 > tried[best].1 { i } else { best });
    if best == 0 || best + 1 == tried.len() {
        return tried[best].0;
    }
    // The top of the parabola through three neighbours.
    let [left, top, right] = [best - 1, best, best + 1].map(|i| tried[i].1);
    let place = 0.5 * (left - right) / (left - 2.0 * top + right);
    if place.is_finite() { tried[best].0 * place.clamp(-0.5, 0.5).exp2() } else { tried[best].0 }
}

/// The part of a component's log-evidence that depends on the strength. `prior` has the log-gammas of the prior.
fn log_evidence(strength: f64, count: f64, eigenvalues: &[f64], prior: &[f64]) -> f64 {
    let spread: f64 = eigenvalues.iter().map(|value| (strength + count * value.max(0.0)).ln()).sum();
    evidence_after(strength, count, (prior.len() as f64 * strength.ln(), spread), prior)
}

/// `ν/2 ln|Ψ₀| − (ν+N)/2 ln|Ψ₀ + N S| + ln Γ_d((ν+N)/2) − ln Γ_d(ν/2)`, from the logarithms of both determinants.
pub(super) fn covariance_evidence(strength: f64, count: f64, before: f64, after: f64, dim: usize) -> f64 {
    let prior = log_gammas(0.5 * degrees_of_freedom(strength, dim), dim);
    evidence_after(strength, count, (before, after), &prior)
}

/// [`covariance_evidence`], given the log-gammas of the prior.
fn evidence_after(strength: f64, count: f64, (before, after): (f64, f64), prior: &[f64]) -> f64 {
    let nu = degrees_of_freedom(strength, prior.len());
    0.5 * (nu * before - (nu + count) * after) + log_multigamma_ratio(0.5 * nu, 0.5 * count, prior)
}

/// `ν` of a prior of this strength.
fn degrees_of_freedom(strength: f64, dim: usize) -> f64 {
    dim as f64 + 1.0 + strength
}

/// `ln Γ(x − i/2)` for each `i` below `dim`.
fn log_gammas(x: f64, dim: usize) -> Vec<f64> {
    // Two neighbours differ by a ratio of gamma functions a half apart, so that one log-gamma is enough.
    let mut next = libm::lgamma(x);
    let mut log_gammas = Vec::with_capacity(dim);
    for i in 0..dim {
        log_gammas.push(next);
        if i + 1 < dim {
            next -= log_gamma_ratio(x - 0.5 * (i + 1) as f64, 1);
        }
    }
    log_gammas
}

/// `ln Γ_d(x + h) − ln Γ_d(x)`, given the log-gammas of `x`.
fn log_multigamma_ratio(x: f64, h: f64, of_x: &[f64]) -> f64 {
    let (mut top, mut sum) = (libm::lgamma(x + h), 0.0);
    for (i, base) in of_x.iter().enumerate() {
        sum += top - base;
        if i + 1 < of_x.len() {
            top -= log_gamma_ratio(x + h - 0.5 * (i + 1) as f64, 1);
        }
    }
    sum
}

/// The centres `T_j` of the priors.
pub(super) struct Centres {
    /// `R`; none if columns are uncorrelated.
    correlations: Option<Array2<f64>>,
    /// The square roots of the variances, for each component.
    deviations: Vec<Vec<f64>>,
}

impl Centres {
    /// For components with these rows. The shared correlations have a prior worth `shared` rows.
    pub fn new(parts: &Parts, shared: f64) -> Self {
        let all = parts.rows();
        let correlations = parts.filled().nth(1).map(|_| {
            let mut correlations = shared_correlations(parts);
            correlations *= all / (all + shared);
            correlations.diag_mut().fill(1.0);
            correlations
        });
        let logs = |part: &Part| -> Vec<f64> { part.variances().map(f64::ln).collect() };
        let mut pooled = vec![0.0; parts.dim()];
        for (_, part) in parts.filled() {
            let share = part.count * parts.information / all;
            pooled.iter_mut().zip(logs(part)).for_each(|(to, log)| *to += share * log);
        }
        let of_part = |part: &Part| {
            let own = parts.rows_of(part);
            let own = own / (own + SCALE_ROWS);
            let logs = if part.count < EMPTY { pooled.clone() } else { logs(part) };
            let shrunk = logs.iter().zip(&pooled).map(|(log, pooled)| own * log + (1.0 - own) * pooled);
            shrunk.map(|log| (0.5 * log).exp()).collect()
        };
        Centres { correlations, deviations: parts.parts.iter().map(of_part).collect() }
    }

    /// `T_j`.
    pub fn matrix(&self, j: usize) -> Array2<f64> {
        let own = &self.deviations[j];
        match &self.correlations {
            None => {
                Array2::from_diag(&own.iter().map(|deviation| deviation * deviation).collect::<Array1<f64>>())
            }
            Some(shared) => {
                let mut matrix = shared.clone();
                for (mut row, deviation) in matrix.rows_mut().into_iter().zip(own) {
                    row.iter_mut().zip(own).for_each(|(value, other)| *value *= deviation * other);
                }
                matrix
            }
        }
    }

    /// The factor of the shared correlations, if there are any and it exists.
    fn lower(&self) -> Option<Factor> {
        self.correlations.as_ref().and_then(|matrix| {
            let mut matrix = matrix.clone();
            matrix.diag_mut().iter_mut().for_each(|value| *value += MIN_VARIANCE);
            Factor::from_matrix(matrix.view()).ok()
        })
    }

    /// The covariance of a component's rows in units of the centre's deviations.
    fn in_units_of(&self, j: usize, part: &Part) -> Array2<f64> {
        let own = &self.deviations[j];
        let mut scaled = &part.scatter / part.count;
        for (mut row, deviation) in scaled.rows_mut().into_iter().zip(own) {
            row.iter_mut().zip(own).for_each(|(value, other)| *value /= deviation * other);
        }
        scaled
    }
}

/// The mean correlations in the components, weighted by their rows.
fn shared_correlations(parts: &Parts) -> Array2<f64> {
    let dim = parts.dim();
    let mut shared = Array2::zeros((dim, dim));
    let all: f64 = parts.filled().map(|(_, part)| part.count).sum();
    for (_, part) in parts.filled() {
        let roots: Vec<f64> = part.variances().map(|variance| (variance * part.count).sqrt()).collect();
        let share = part.count / all;
        for ((mut to, from), root) in shared.rows_mut().into_iter().zip(part.scatter.rows()).zip(&roots) {
            for ((to, value), other) in to.iter_mut().zip(from).zip(&roots) {
                *to += share * value / (root * other);
            }
        }
    }
    shared.diag_mut().fill(1.0);
    shared
}

impl Part {
    /// The variance of each column.
    fn variances(&self) -> impl Iterator<Item = f64> {
        self.squares.iter().map(|square| (square / self.count).max(MIN_VARIANCE))
    }
}

/// What the log-evidence of the mixture is below its log-likelihood, for each row: the price of its parameters. The likelihood
/// at the estimated parameters is replaced by its mean over their priors. Rows of all components count alike.
pub(super) fn evidence_price(parts: &Parts, mixture: &GaussianMixture, strength: Strength) -> f64 {
    // A prior may count a row as several, and the evidence does not.
    let information = parts.information * (parts.prior_unit / parts.unit);
    let (dim, all) = (parts.dim(), parts.rows() * (parts.prior_unit / parts.unit));
    let centres = Centres::new(parts, strength.shared);
    let shared_log_det = centres.lower().map_or(0.0, |lower| lower.log_det());
    let mean: Vec<f64> = (0..dim)
        .map(|l| parts.filled().map(|(_, part)| part.count * information * part.mean[l]).sum::<f64>() / all)
        .collect();
    let of_part = |(j, part): (usize, &Part)| -> (f64, f64) {
        let count = part.count * information;
        let old = &mixture.components()[j];
        let (trace, away) = relative_spread(part, old, &mean);
        let fitted = count * mixture.weights()[j].ln()
            - 0.5 * count * (dim as f64 * LN_2PI + old.covariance().log_det() + trace);
        let own_log_det = 2.0 * centres.deviations[j].iter().map(|deviation| deviation.ln()).sum::<f64>();
        let before = dim as f64 * strength.rows.ln() + own_log_det + shared_log_det;
        let mut after = centres.matrix(j) * strength.rows;
        after.scaled_add(information, &part.scatter);
        after.diag_mut().iter_mut().for_each(|value| *value += MIN_VARIANCE * count);
        let after = Factor::from_matrix(after.view()).map_or(f64::INFINITY, |factor| factor.log_det());
        let averaged = covariance_evidence(strength.rows, count, before, after, dim)
            - 0.5 * count * dim as f64 * LN_PI
            + libm::lgamma(count + 1.0);
        (fitted - averaged, away)
    };
    let filled: Vec<(usize, &Part)> = parts.filled().collect();
    let found: Vec<(f64, f64)> = filled.par_iter().map(|&part| of_part(part)).collect();
    let k = mixture.k() as f64;
    // The means have a prior around the mean of all rows. How wide it is follows from the means.
    let away: f64 = found.iter().map(|(_, away)| away).sum();
    let kappa = (dim as f64 * k / away).min(1.0);
    let of_mean = |&(_, part): &(usize, &Part)| (1.0 + part.count * information / kappa).ln();
    let means = 0.5 * (dim as f64 * filled.iter().map(of_mean).sum::<f64>() + kappa * away);
    let weights = libm::lgamma(all + k) - libm::lgamma(k);
    (found.iter().map(|(price, _)| price).sum::<f64>() + means + weights) / all
}

/// `tr(Σ⁻¹S)` for the rows of a component with covariance `Σ`, about its mean, and the squared distance of their mean from
/// `centre`.
fn relative_spread(part: &Part, component: &Gaussian, centre: &[f64]) -> (f64, f64) {
    let inverse = lower_inverse(component.covariance().lower_matrix().view());
    let half = inverse.dot(&part.scatter);
    let spread: f64 = (&half * &inverse).sum() / part.count;
    let square = |from: &[f64]| {
        let away: Array1<f64> = part.mean.iter().zip(from).map(|(a, b)| a - b).collect();
        inverse.dot(&away).iter().map(|value| value * value).sum::<f64>()
    };
    (spread + square(component.mean()), square(centre))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::{Density, StudentT};

    #[test]
    fn the_evidence_is_the_product_of_the_predictive_densities() {
        let rows = [0.3, -1.2, 0.8, 2.5, -0.1];
        let (strength, centre) = (3.0, 0.7);
        let (mut nu, mut psi, mut log_density) = (2.0 + strength, strength * centre, 0.0);
        for value in rows {
            let scale = Factor::from_standard_deviations(&[f64::sqrt(psi / nu)]).unwrap();
            log_density +=
                StudentT::new(vec![0.0], scale, nu).unwrap().log_density_at(value * value * nu / psi);
            (nu, psi) = (nu + 1.0, psi + value * value);
        }
        let squares: f64 = rows.iter().map(|value| value * value).sum();
        let before = f64::ln(strength * centre);
        let found = covariance_evidence(strength, 5.0, before, (strength * centre + squares).ln(), 1);
        assert!((found - 2.5 * LN_PI - log_density).abs() < 1e-12, "{found} {log_density}");
    }

    #[test]
    fn multivariate_gamma_functions_are_products_of_gamma_functions() {
        for (x, h, dim) in [(3.0, 2.5, 4), (40.0, 100.0, 60), (2.0, 0.5, 1)] {
            let term = |i: usize| libm::lgamma(x + h - 0.5 * i as f64) - libm::lgamma(x - 0.5 * i as f64);
            let sum: f64 = (0..dim).map(term).sum();
            let found = log_multigamma_ratio(x, h, &log_gammas(x, dim));
            assert!((found - sum).abs() < 1e-9 * sum.abs(), "{found} {sum}");
        }
    }

    #[test]
    fn the_strength_is_large_if_shapes_are_alike_and_small_if_they_are_not() {
        let alike = vec![(30.0, vec![1.1, 0.9, 1.0, 1.05]); 6];
        let different = vec![(300.0, vec![3.0, 0.2, 0.1, 0.7]); 6];
        assert!(most_evident(&alike, 4, MAX_ROWS) > 100.0);
        assert!(most_evident(&different, 4, MAX_ROWS) < 10.0);
        assert!(most_evident(&alike, 4, 16.0) <= 16.0 * f64::sqrt(2.0));
    }
}
