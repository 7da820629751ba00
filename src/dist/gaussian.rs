use rand::Rng;

use super::{Density, DistError, check_finite, check_length, fill_standard_normal};
use crate::linalg::Factor;
use crate::linalg::special::LN_2PI;

/// A normal distribution with mean `μ` and full covariance `Σ`.
///
/// ```
/// use gmm_bmm::dist::{Density, Gaussian};
/// use gmm_bmm::dist::Factor;
///
/// let gaussian = Gaussian::new(vec![1.0, 2.0], Factor::from_standard_deviations(&[1.0, 3.0])?)?;
/// let peak = -(2.0 * std::f64::consts::PI * 3.0).ln();
/// assert!((gaussian.log_density(&[1.0, 2.0]) - peak).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    mean: Vec<f64>,
    covariance: Factor,
    log_det: f64,
}

impl Gaussian {
    /// The normal distribution with this mean and covariance.
    pub fn new(mean: Vec<f64>, covariance: Factor) -> Result<Self, DistError> {
        check_length("mean", mean.len(), covariance.dim())?;
        check_finite("mean", &mean)?;
        let log_det = covariance.log_det();
        Ok(Gaussian { mean, covariance, log_det })
    }

    /// The mean `μ`.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The covariance `Σ`.
    pub fn covariance(&self) -> &Factor {
        &self.covariance
    }

    /// `⅛ Δᵀ Σ̄⁻¹ Δ + ½ ln(|Σ̄| / √(|Σ₁||Σ₂|))`, `Σ̄ = (Σ₁+Σ₂)/2`: how far two Gaussians are apart.
    pub(crate) fn bhattacharyya(&self, other: &Gaussian) -> f64 {
        let covariances = [self.covariance(), other.covariance()];
        let middle = if covariances.iter().all(|own| own.kind().is_diagonal()) {
            let [own, others] = covariances.map(Factor::diagonal);
            let means = own.iter().zip(&others).map(|(a, b)| 0.5 * (a + b));
            Factor::from_variances(&means.collect::<Vec<f64>>())
        } else {
            Factor::from_matrix((0.5 * (covariances[0].matrix() + covariances[1].matrix())).view())
        };
        let Ok(middle) = middle else { return f64::INFINITY };
        let apart: Vec<f64> = self.mean().iter().zip(other.mean()).map(|(a, b)| a - b).collect();
        let q = middle.quadratic_form(&apart, &mut vec![0.0; apart.len()]);
        let shapes = middle.log_det() - 0.5 * (self.covariance().log_det() + other.covariance().log_det());
        q / 8.0 + 0.5 * shapes.max(0.0)
    }

    /// The log-density, from the quadratic form `(x−μ)ᵀΣ⁻¹(x−μ)` and `ln |Σ|`.
    #[inline]
    pub fn log_density_of(quadratic_form: f64, log_det: f64, dim: usize) -> f64 {
        -0.5 * (dim as f64 * LN_2PI + log_det + quadratic_form)
    }
}

impl Density for Gaussian {
    #[inline]
    fn location(&self) -> &[f64] {
        &self.mean
    }

    fn scale_matrix(&self) -> &Factor {
        &self.covariance
    }

    #[inline]
    fn log_density_at(&self, q: f64) -> f64 {
        Gaussian::log_density_of(q, self.log_det, self.dim())
    }

    fn observed_log_density_at(&self, q: f64, observed: usize, missing_log_det: f64) -> f64 {
        Gaussian::log_density_of(q, self.log_det - missing_log_det, observed)
    }

    #[inline]
    fn quadratic_form_at(&self, log_density: f64) -> f64 {
        2.0 * (self.log_density_at(0.0) - log_density)
    }

    fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f64]) {
        let mut z = vec![0.0; self.dim()];
        fill_standard_normal(rng, &mut z);
        self.covariance.multiply_lower(&z, out);
        out.iter_mut().zip(&self.mean).for_each(|(value, mean)| *value += mean);
    }
}
