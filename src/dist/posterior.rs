use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::mixture::shared_kind;
use super::{Dirichlet, DistError, GaussianMixture, Mixture, NormalWishart, StudentMixture, check_length};
use crate::linalg::{CovarianceType, Factor};

/// What is known about a Gaussian mixture: `Dir(w | a) · ∏_j NW(μ_j, Λ_j | m_j, κ_j, W_j, ν_j)`. Priors have this type too.
///
/// ```
/// use gmm_bmm::dist::{Dirichlet, NormalWishart, Posterior};
/// use gmm_bmm::dist::Factor;
///
/// let component = |m: f64| NormalWishart::new(vec![m], 10.0, 12.0, Factor::identity(1));
/// let posterior = Posterior::new(Dirichlet::new(vec![3.0, 1.0])?, vec![component(0.0)?, component(5.0)?])?;
/// assert_eq!(posterior.point_estimate().weights(), [0.75, 0.25]);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Posterior {
    a: Dirichlet,
    components: Vec<NormalWishart>,
}

/// A posterior in a model file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PosteriorRecord {
    a: Dirichlet,
    components: Vec<NormalWishartRecord>,
}

/// A component in a model file. One without a matrix has that of the first component.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NormalWishartRecord {
    m: Vec<f64>,
    kappa: f64,
    nu: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    psi: Option<Factor>,
}

impl Serialize for Posterior {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let first = self.components[0].psi();
        let component = |(j, own): (usize, &NormalWishart)| NormalWishartRecord {
            m: own.mean().to_vec(),
            kappa: own.kappa(),
            nu: own.nu(),
            psi: (j == 0 || !own.psi().is_shared_with(first)).then(|| own.psi().clone()),
        };
        let components = self.components.iter().enumerate().map(component).collect();
        PosteriorRecord { a: self.a.clone(), components }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Posterior {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PosteriorRecord { a, components } = PosteriorRecord::deserialize(deserializer)?;
        let first = components.first().and_then(|first| first.psi.clone());
        let component = |record: NormalWishartRecord| {
            let psi = record.psi.or_else(|| first.clone()).ok_or_else(|| D::Error::missing_field("psi"))?;
            NormalWishart::new(record.m, record.kappa, record.nu, psi).map_err(D::Error::custom)
        };
        let components = components.into_iter().map(component).collect::<Result<_, _>>()?;
        Posterior::new(a, components).map_err(D::Error::custom)
    }
}

impl Posterior {
    /// From the distribution of the weights and that of each component.
    pub fn new(a: Dirichlet, components: Vec<NormalWishart>) -> Result<Self, DistError> {
        check_length("components", components.len(), a.concentrations().len())?;
        let dim = components[0].dim();
        components.iter().try_for_each(|c| check_length("a component's m", c.dim(), dim))?;
        Ok(Posterior { a, components })
    }

    /// The covariances of the components, as in [`Mixture::covariance_type`].
    pub fn covariance_type(&self) -> CovarianceType {
        shared_kind(self.components.iter().map(NormalWishart::psi))
    }

    /// The distribution of the weights.
    pub fn weights(&self) -> &Dirichlet {
        &self.a
    }

    /// The distribution of each component.
    pub fn components(&self) -> &[NormalWishart] {
        &self.components
    }

    /// The same estimate of each component with the weight of at most one row.
    pub(crate) fn weakened(&self) -> Self {
        let powers: Vec<f64> = self.components.iter().map(NormalWishart::power_of_one_row).collect();
        // A tied covariance has one number of rows.
        let least = powers.iter().copied().fold(1.0, f64::min);
        let is_tied = self.covariance_type() == CovarianceType::Tied;
        let weakened = self.components.iter().zip(&powers);
        let weakened = weakened.map(|(own, &power)| own.weakened(power, if is_tied { least } else { power }));
        let components = weakened.collect();
        let a = self.a.concentrations().iter().zip(&powers).map(|(a, power)| a * power).collect();
        Posterior { a: Dirichlet::new(a).expect("they stay positive"), components }
    }

    /// The number of components.
    pub fn k(&self) -> usize {
        self.components.len()
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.components[0].dim()
    }

    /// The expected weights, means and covariances.
    pub fn point_estimate(&self) -> GaussianMixture {
        let components = self.components.iter().map(NormalWishart::point_estimate).collect();
        Mixture::new(self.a.mean(), components).expect("a posterior has a mixture's shape")
    }

    /// The posterior predictive of the next row: a mixture of Student-t distributions.
    pub fn predictive(&self) -> StudentMixture {
        let components = self.components.iter().map(NormalWishart::predictive).collect();
        Mixture::new(self.a.mean(), components).expect("a posterior has a mixture's shape")
    }
}
