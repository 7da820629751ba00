use ndarray::{Array2, ArrayView2};
use rand::Rng;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

use super::{
    DistError, Gaussian, StudentT, check_finite, check_length, check_positive, fill_standard_normal,
};
use crate::linalg::special::LN_2PI;
use crate::linalg::{CovarianceType, Factor, FactorError, cholesky};

/// A Normal-Wishart distribution `NW(μ, Λ | m, κ, W, ν) = N(μ | m, (κΛ)⁻¹) · Wishart(Λ | W, ν)`, parametrised by `Ψ = W⁻¹`:
/// what is known about the mean and the precision of a component.
///
/// ```
/// use gmm_bmm::dist::NormalWishart;
/// use gmm_bmm::dist::Factor;
///
/// let known = NormalWishart::new(vec![1.0], 10.0, 12.0, Factor::identity(1))?;
/// assert_eq!(known.point_estimate().mean(), [1.0]);
/// assert!((known.point_estimate().covariance().matrix()[(0, 0)] - 0.1).abs() < 1e-12); // Ψ/(ν − d − 1)
/// assert_eq!(known.predictive().degrees_of_freedom(), 12.0);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
///
/// If `Ψ` is diagonal, so is `Λ`, and each column has its own Gamma distribution: `Λ_ii ~ Gamma(ν/2, Ψ_ii/2)`. If `Ψ = ψI`, all
/// columns share one: `Λ = λI` with `λ ~ Gamma(νd/2, ψd/2)`. In each case `E[Λ] = νΨ⁻¹`, and `ν` rises by one with each row.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalWishart {
    m: Vec<f64>,
    kappa: f64,
    nu: f64,
    psi: Factor,
}

/// Below this the density of a row underflows in double precision.
const MIN_KAPPA: f64 = 1e-100;

impl NormalWishart {
    /// The distribution with these parameters, `κ > 0` and `ν > d − 1`.
    pub fn new(m: Vec<f64>, kappa: f64, nu: f64, psi: Factor) -> Result<Self, DistError> {
        check_length("m", m.len(), psi.dim())?;
        check_finite("m", &m)?;
        check_positive("kappa", kappa)?;
        if kappa < MIN_KAPPA {
            return Err(DistError::OutOfRange { name: "kappa", must: "at least 1e-100", value: kappa });
        }
        let least = if psi.kind().is_diagonal() { 0.0 } else { m.len() as f64 - 1.0 };
        if !(nu > least && nu.is_finite()) {
            let must = if least > 0.0 { "above d − 1 and finite" } else { "above 0 and finite" };
            return Err(DistError::OutOfRange { name: "nu", must, value: nu });
        }
        Ok(NormalWishart { m, kappa, nu, psi })
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.m.len()
    }

    /// The expected mean `m = E[μ]`.
    pub fn mean(&self) -> &[f64] {
        &self.m
    }

    /// `κ`: the number of rows that the knowledge about the mean is worth.
    pub fn kappa(&self) -> f64 {
        self.kappa
    }

    /// `ν`: the degrees of freedom of the precision.
    pub fn nu(&self) -> f64 {
        self.nu
    }

    /// `Ψ = W⁻¹`.
    pub fn psi(&self) -> &Factor {
        &self.psi
    }

    /// What `ν` is beyond the number of rows: `E[Σ] = Ψ/(ν − beyond)`.
    pub fn beyond_rows(&self) -> f64 {
        self.psi.kind().beyond_rows(self.dim())
    }

    /// The power of this distribution that has the weight of at most one row.
    pub(crate) fn power_of_one_row(&self) -> f64 {
        if self.nu - self.beyond_rows() <= 1.0 { 1.0 } else { (1.0 / self.kappa).min(1.0) }
    }

    /// The same point estimate with `κ` times `of_mean` and the rows of `ν` times `of_covariance`.
    pub(crate) fn weakened(&self, of_mean: f64, of_covariance: f64) -> Self {
        let nu = self.nu - (1.0 - of_covariance) * (self.nu - self.beyond_rows());
        let (m, psi) = (self.m.clone(), self.psi.times(of_covariance));
        NormalWishart { m, kappa: self.kappa * of_mean, nu, psi }
    }

    /// The expected precision `E[Λ] = νW`.
    pub fn mean_precision(&self) -> Array2<f64> {
        self.nu * self.psi.inverse()
    }

    /// The point estimate: the Gaussian with mean `E[μ]` and covariance `E[Σ] = Ψ/(ν − d − 1)`, or `Ψ/(ν − 2)` for a diagonal `Ψ` and
    /// `Ψ/(ν − 2/d)` for `ψI`. For `ν < d + 2` the expected covariance is very large or infinite, so `ν = d + 2` is used.
    ///
    /// The alternative `E[Λ]⁻¹ = Ψ/ν` is narrower and scores worse on new rows.
    pub fn point_estimate(&self) -> Gaussian {
        let mut covariance = self.psi.clone();
        covariance.scale_by(1.0 / (self.nu - self.beyond_rows()).max(1.0));
        Gaussian::new(self.m.clone(), covariance).expect("checked when the Normal-Wishart was made")
    }

    /// The posterior predictive of one row: a Student-t with `ν − d + 1` degrees of freedom, or `νd` if `Ψ = ψI`. If `Ψ` is
    /// diagonal, it is a product of one Student-t with `ν` degrees of freedom for each column; this is the multivariate one with
    /// the same scales and degrees of freedom.
    pub fn predictive(&self) -> StudentT {
        let freedom = match self.psi.kind() {
            CovarianceType::Diag => self.nu,
            CovarianceType::Spherical => self.nu * self.dim() as f64,
            _ => self.nu - self.dim() as f64 + 1.0,
        };
        let mut scale = self.psi.clone();
        let count = if self.psi.kind().is_diagonal() { self.nu } else { freedom };
        scale.scale_by((self.kappa + 1.0) / (self.kappa * count));
        StudentT::new(self.m.clone(), scale, freedom).expect("checked when the Normal-Wishart was made")
    }

    /// The log-density at mean `μ` and precision `Λ`.
    pub fn log_density(&self, mu: &[f64], lambda: ArrayView2<f64>) -> Result<f64, FactorError> {
        let d = self.dim() as f64;
        let root = cholesky(lambda)?;
        let log_det_lambda = 2.0 * root.diag().iter().map(|value| value.ln()).sum::<f64>();
        let deviation = ndarray::Array1::from_iter(mu.iter().zip(&self.m).map(|(mu, m)| mu - m));
        let spread = root.t().dot(&deviation);
        let normal =
            0.5 * (d * (self.kappa.ln() - LN_2PI) + log_det_lambda - self.kappa * spread.dot(&spread));
        // tr(ΨΛ) = |LᵀR|² with Ψ = LLᵀ, Λ = RRᵀ
        let trace: f64 = self.psi.lower_matrix().t().dot(&root).iter().map(|value| value * value).sum();
        let wishart = 0.5 * ((self.nu - d - 1.0) * log_det_lambda - trace + self.nu * self.psi.log_det())
            - 0.5 * self.nu * d * std::f64::consts::LN_2
            - log_multigamma(self.nu / 2.0, self.dim());
        Ok(normal + wishart)
    }

    /// Draws a mean `μ` and a precision `Λ`, by Bartlett's decomposition.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> (Vec<f64>, Array2<f64>) {
        let dim = self.dim();
        let mut bartlett = Array2::<f64>::zeros((dim, dim));
        for i in 0..dim {
            let chi = ChiSquared::new(self.nu - i as f64).expect("nu > d − 1");
            bartlett[(i, i)] = chi.sample(rng).sqrt();
            for j in 0..i {
                bartlett[(i, j)] = StandardNormal.sample(rng);
            }
        }
        // Λ = BBᵀ with B = L⁻ᵀA; μ = m + κ^−½ B⁻ᵀz = m + κ^−½ L A⁻ᵀz.
        let mut root = bartlett.clone();
        for mut column in root.columns_mut() {
            let mut values = column.to_vec();
            self.psi.solve_upper(&mut values);
            column.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        }
        let factor = Factor::from_lower_matrix(bartlett.view()).expect("the diagonal is positive");
        let mut z = vec![0.0; dim];
        fill_standard_normal(rng, &mut z);
        factor.solve_upper(&mut z);
        let mut mu = vec![0.0; dim];
        self.psi.multiply_lower(&z, &mut mu);
        let shrink = self.kappa.sqrt().recip();
        mu.iter_mut().zip(&self.m).for_each(|(value, m)| *value = m + shrink * *value);
        (mu, root.dot(&root.t()))
    }
}

/// `ln Γ_d(x)`, the multivariate gamma function.
fn log_multigamma(x: f64, dim: usize) -> f64 {
    let d = dim as f64;
    let gammas: f64 = (0..dim).map(|i| libm::lgamma(x - i as f64 / 2.0)).sum();
    d * (d - 1.0) / 4.0 * crate::linalg::special::LN_PI + gammas
}
