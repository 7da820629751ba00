//! The scalars of oBMM for tied, diagonal and spherical covariances: their projections and densities.
//!
//! The exact posterior of component `j` after a row is the mixture `(1−r)·old + r·new`. `m`, `κ`, `E[Λ]` and the total variance of
//! the whitened `Λ` are matched, as for full covariances. A diagonal `Λ` has one Gamma distribution for each column, which share
//! `κ` and `ν`; a spherical one has one for all columns; a tied `Λ` has one Wishart distribution, which every row counts for.

use std::f64::consts::PI;

use crate::linalg::CovarianceType;
use crate::linalg::special::log_gamma_ratio;

/// `κ'` is at least this.
const MIN_KAPPA: f64 = 1e-9;

/// What a row does to one component. A row of weight `w` is `w − √w` rows that belong to the component with the fraction `r`
/// for certain, and `√w` more with probability `r`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Projection {
    pub r: f64,
    pub nu: f64,
    kappa: f64,
    dim: f64,
    /// `√w`, or `w` below 1.
    pub weight: f64,
    /// What is learned for certain: `ν`, `m` and `Ψ` after it are `nu_left`, `m + (1 − left)·v` and `Ψ + added·vvᵀ`.
    pub nu_left: f64,
    pub left: f64,
    pub added: f64,
    /// `κs/(κ+s)`, and `1/(κ+s)` of the rest.
    pub b: f64,
    next: f64,
    /// The step of the mean along `v`.
    pub step: f64,
    /// What a missing value adds to `Ψ` of its column, as a fraction.
    pub missing: f64,
}

impl Projection {
    /// The projection for a component with `κ` and `ν`, a row with responsibility `r` and this weight.
    pub fn new(kind: CovarianceType, dim: usize, (kappa, nu): (f64, f64), r: f64, weight: f64) -> Self {
        let s = weight.min(weight.sqrt());
        let certain = r * (weight - s);
        let inverse = 1.0 / (kappa + certain);
        let left = kappa * inverse;
        let next = 1.0 / (kappa + certain + s);
        Projection {
            r,
            nu,
            kappa: kappa + certain,
            dim: dim as f64,
            weight: s,
            nu_left: nu + certain,
            left,
            added: left * certain,
            b: s * (kappa + certain) * next,
            next,
            step: (r * s * next).mul_add(left, certain * inverse),
            missing: weight * r / (nu - kind.beyond_rows(dim)).max(1.0),
        }
    }

    /// `κ'`, given `Σ z` and `Σ z/(1 + bz)` over the columns.
    pub fn kappa(&self, z: f64, z_left: f64) -> f64 {
        let (r, pull) = (self.r, self.weight * self.next);
        let between = (self.nu_left + self.weight) * (1.0 - r) * z_left + self.nu_left * r * z;
        self.kappa_of(r * (1.0 - r) * pull * pull * between)
    }

    /// The same for a tied covariance, which counts the row whichever component it belongs to.
    pub fn kappa_of_tied(&self, z: f64, z_left: f64) -> f64 {
        let (r, pull) = (self.r, self.weight * self.next);
        let between = (self.nu_left + self.weight) * ((1.0 - r) * z_left + r * z);
        self.kappa_of(r * (1.0 - r) * pull * pull * between)
    }

    fn kappa_of(&self, between: f64) -> f64 {
        let spread = between + self.dim * (self.r * self.next + (1.0 - self.r) / self.kappa);
        (self.dim / spread).max(MIN_KAPPA)
    }

    /// `ν'` of a diagonal covariance, given `Σ Var[λ]/E[λ]²` over the columns, and whether it is held at the least.
    pub fn nu_of_columns(&self, variance: f64) -> (f64, bool) {
        let (nu, least) = (2.0 * self.dim / variance, 1.01);
        (nu.max(least), nu < least)
    }

    /// `ν'` and the factor on the variance of a spherical covariance, `Σ z` and `Σ z/(1 + bz)`, and whether `ν'` is held at the
    /// least. `q` is `Σ v²/variance` over the `observed` columns.
    pub fn spherical(&self, q: f64, observed: usize) -> (f64, f64, [f64; 2], bool) {
        let Projection { r, nu, nu_left, weight, .. } = *self;
        let missing = (self.dim - observed as f64) / self.dim;
        let whole = q / (nu * self.dim);
        let grown = 1.0 + self.added * whole + missing * self.missing;
        let z = self.left * self.left * whole / grown;
        let p = 1.0 / (1.0 + self.b * z);
        let next = nu_left + weight;
        let expected = (1.0 - r) * nu_left + r * next * p;
        let of_old = 2.0 * nu_left / self.dim + (nu_left - expected).powi(2);
        let of_new = 2.0 * next * p * p / self.dim + (next * p - expected).powi(2);
        let variance = ((1.0 - r) * of_old + r * of_new) / (expected * expected);
        let (new, least) = (2.0 / (self.dim * variance), 1.01 / self.dim);
        (new.max(least), nu * grown / expected, [self.dim * z, self.dim * z * p], new < least)
    }

    /// The weight of `vvᵀ` in a tied `Ψ`, and `κ'`, given `q = vᵀΨ⁻¹v`: `E[Λ]` is matched for each component by itself.
    pub fn tied(&self, q: f64) -> (f64, f64) {
        let z = self.left * self.left * q / (1.0 + self.added * q);
        let tau = self.r * self.b / (1.0 + self.b * z * (1.0 - self.r));
        let kappa = self.kappa_of_tied(z, z / (1.0 + self.b * z));
        ((tau * self.left).mul_add(self.left, self.added), kappa)
    }
}

/// The terms of the log-density of `observed` columns that do not depend on their values. `log_det` is that of `Ψ/ν` in these
/// columns.
pub(super) fn log_constant(
    kind: CovarianceType,
    (dim, observed): (usize, usize),
    (kappa, nu): (f64, f64),
    log_det: f64,
) -> f64 {
    let (d, o, b) = (dim as f64, observed as f64, kappa / (kappa + 1.0));
    let (ratio, scale) = match kind {
        CovarianceType::Diag => (o * log_gamma_ratio(0.5 * nu, 1), b / (PI * nu)),
        CovarianceType::Spherical => (log_gamma_ratio(0.5 * nu * d, observed), b / (PI * nu * d)),
        _ => (log_gamma_ratio(0.5 * (nu + 1.0 - d), observed), b / (PI * nu)),
    };
    ratio + 0.5 * (o * scale.ln() - log_det)
}
