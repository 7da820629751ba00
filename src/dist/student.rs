use rand::Rng;
use rand_distr::{ChiSquared, Distribution};

use super::{Density, DistError, check_finite, check_length, check_positive, fill_standard_normal};
use crate::linalg::Factor;
use crate::linalg::special::{LN_PI, log_gamma_ratio};

/// A multivariate Student-t distribution with location `m`, scale matrix `S` and `f` degrees of freedom.
///
/// ```
/// use gmm_bmm::dist::{Density, StudentT};
/// use gmm_bmm::dist::Factor;
///
/// // One degree of freedom is the Cauchy distribution.
/// let cauchy = StudentT::new(vec![0.0], Factor::identity(1), 1.0)?;
/// assert!((cauchy.log_density(&[1.0]) + (2.0 * std::f64::consts::PI).ln()).abs() < 1e-12);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct StudentT {
    location: Vec<f64>,
    scale: Factor,
    degrees_of_freedom: f64,
    log_constant: f64,
}

impl StudentT {
    /// The distribution with this location, scale matrix and `f > 0` degrees of freedom.
    pub fn new(location: Vec<f64>, scale: Factor, degrees_of_freedom: f64) -> Result<Self, DistError> {
        check_length("location", location.len(), scale.dim())?;
        check_finite("location", &location)?;
        check_positive("degrees of freedom", degrees_of_freedom)?;
        let dim = location.len();
        let log_constant = log_gamma_ratio(degrees_of_freedom / 2.0, dim)
            - 0.5 * (dim as f64 * (LN_PI + degrees_of_freedom.ln()) + scale.log_det());
        Ok(StudentT { location, scale, degrees_of_freedom, log_constant })
    }

    /// The degrees of freedom `f`.
    pub fn degrees_of_freedom(&self) -> f64 {
        self.degrees_of_freedom
    }
}

impl Density for StudentT {
    fn location(&self) -> &[f64] {
        &self.location
    }

    /// The scale matrix `S`. For `f > 2` the covariance is `f/(f−2) S`.
    fn scale_matrix(&self) -> &Factor {
        &self.scale
    }

    /// `ln Γ((f+d)/2) − ln Γ(f/2) − ½ ln|πfS| − (f+d)/2 · ln(1 + q/f)`.
    fn log_density_at(&self, q: f64) -> f64 {
        let f = self.degrees_of_freedom;
        self.log_constant - 0.5 * (f + self.dim() as f64) * (q / f).ln_1p()
    }

    /// A marginal has the same degrees of freedom.
    fn observed_log_density_at(&self, q: f64, observed: usize, missing_log_det: f64) -> f64 {
        let (f, o) = (self.degrees_of_freedom, observed as f64);
        let log_det = self.scale.log_det() - missing_log_det;
        let ratio = log_gamma_ratio(0.5 * f, observed);
        ratio - 0.5 * (o * (LN_PI + f.ln()) + log_det) - 0.5 * (f + o) * (q / f).ln_1p()
    }

    fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [f64]) {
        let mut z = vec![0.0; self.dim()];
        fill_standard_normal(rng, &mut z);
        let chi = ChiSquared::new(self.degrees_of_freedom).expect("f is positive").sample(rng);
        let stretch = (self.degrees_of_freedom / chi).sqrt();
        self.scale.multiply_lower(&z, out);
        out.iter_mut().zip(&self.location).for_each(|(value, m)| *value = m + stretch * *value);
    }
}
