use libm::lgamma;
use serde::{Deserialize, Serialize};

use super::{DistError, check_positive};

/// A Dirichlet distribution `Dir(w | a) ∝ ∏ w_j^(a_j − 1)`: what is known about the weights of a mixture.
///
/// ```
/// use gmm_bmm::dist::Dirichlet;
///
/// let weights = Dirichlet::new(vec![3.0, 1.0])?;
/// assert_eq!(weights.mean(), [0.75, 0.25]);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct Dirichlet {
    a: Vec<f64>,
}

impl TryFrom<Vec<f64>> for Dirichlet {
    type Error = DistError;

    fn try_from(a: Vec<f64>) -> Result<Self, DistError> {
        Dirichlet::new(a)
    }
}

impl From<Dirichlet> for Vec<f64> {
    fn from(dirichlet: Dirichlet) -> Self {
        dirichlet.a
    }
}

impl Dirichlet {
    /// The distribution with concentrations `a_j > 0`.
    pub fn new(a: Vec<f64>) -> Result<Self, DistError> {
        if a.is_empty() {
            return Err(DistError::Shape { what: "a", found: 0, expected: 1 });
        }
        a.iter().try_for_each(|&value| check_positive("a", value))?;
        check_positive("the sum of a", a.iter().sum())?;
        Ok(Dirichlet { a })
    }

    /// The concentrations `a`.
    pub fn concentrations(&self) -> &[f64] {
        &self.a
    }

    /// `A = Σ a_j`.
    pub fn total(&self) -> f64 {
        self.a.iter().sum()
    }

    /// `E[w_j] = a_j/A`.
    pub fn mean(&self) -> Vec<f64> {
        let total = self.total();
        self.a.iter().map(|a| a / total).collect()
    }

    /// `Var[w_j] = a_j (A − a_j) / (A² (A + 1))`.
    pub fn variance(&self) -> Vec<f64> {
        let total = self.total();
        self.a.iter().map(|a| a * (total - a) / (total * total * (total + 1.0))).collect()
    }

    /// The log-density at weights `w`, which are positive and sum to one.
    pub fn log_density(&self, w: &[f64]) -> f64 {
        let powers: f64 = self.a.iter().zip(w).map(|(a, w)| (a - 1.0) * w.ln() - lgamma(*a)).sum();
        lgamma(self.total()) + powers
    }
}
