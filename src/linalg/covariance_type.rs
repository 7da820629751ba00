use serde::{Deserialize, Serialize};

/// Which covariances the components of a mixture may have. The names are those of scikit-learn.
///
/// ```
/// use gmm_bmm::settings::CovarianceType;
///
/// // Free numbers of three components over ten columns, with their weights.
/// let free = |kind: CovarianceType| kind.parameters(3, 10);
/// assert_eq!(CovarianceType::ALL.map(free), [197, 87, 62, 35]);
/// assert_eq!("diag".parse(), Ok(CovarianceType::Diag));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CovarianceType {
    /// A full matrix for each component
    #[default]
    Full,
    /// One full matrix that all components share
    Tied,
    /// A variance of each column for each component
    Diag,
    /// One variance of all columns for each component
    Spherical,
}

impl CovarianceType {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Full, Self::Tied, Self::Diag, Self::Spherical];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Tied => "tied",
            Self::Diag => "diag",
            Self::Spherical => "spherical",
        }
    }

    /// Whether it is the default.
    pub fn is_full(&self) -> bool {
        *self == Self::Full
    }

    /// Whether columns have no correlations within a component.
    pub(crate) fn is_diagonal(self) -> bool {
        matches!(self, Self::Diag | Self::Spherical)
    }

    /// What the degrees of freedom `ν` of a component's precision are beyond the number of its rows: `E[Σ] = Ψ/(ν − beyond)`.
    pub(crate) fn beyond_rows(self, dim: usize) -> f64 {
        match self {
            Self::Full | Self::Tied => dim as f64 + 1.0,
            Self::Diag => 2.0,
            Self::Spherical => 2.0 / dim as f64,
        }
    }

    /// The free numbers that one more component has: its covariance if it has its own, its mean and its weight.
    pub(crate) fn of_component(self, dim: f64) -> f64 {
        let covariance = match self {
            Self::Full => dim * (dim + 1.0) / 2.0,
            Self::Tied => 0.0,
            Self::Diag => dim,
            Self::Spherical => 1.0,
        };
        covariance + dim + 1.0
    }

    /// The work of one row in `k` components, in products of two numbers.
    pub(crate) fn work(self, k: usize, dim: usize) -> f64 {
        let (k, d) = (k as f64, dim as f64);
        match self {
            Self::Full => k * d * d,
            Self::Tied => d * d + 4.0 * k * d,
            Self::Diag | Self::Spherical => 4.0 * k * d,
        }
    }

    /// The numbers of the matrices of `k` components.
    pub(crate) fn numbers(self, k: usize, dim: usize) -> f64 {
        match self {
            Self::Full => k as f64 * (dim as f64).powi(2),
            Self::Tied => (dim as f64).powi(2),
            Self::Diag | Self::Spherical => (k * dim) as f64,
        }
    }

    /// The free numbers of a mixture of `k` components over `dim` columns.
    pub fn parameters(self, k: usize, dim: usize) -> usize {
        let shared = if self == Self::Tied { dim * (dim + 1) / 2 } else { 0 };
        shared + k * self.of_component(dim as f64) as usize - 1
    }
}

impl std::str::FromStr for CovarianceType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| format!("'{name}' is no covariance type: {}", known()))
    }
}
