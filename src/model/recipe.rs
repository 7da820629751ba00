//! How a model was made.

use serde::{Deserialize, Serialize};

use crate::data::Dequantize;
use crate::learn::{EmSettings, FitSettings, RowWeights};
use crate::linalg::CovarianceType;

/// How a model was made: the settings of what made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recipe {
    /// Batch EM.
    Em {
        /// Its settings.
        settings: EmSettings,
        /// Seed of all random choices.
        seed: u64,
        /// Whether discrete columns have noise of one quantum, and which.
        #[serde(default, skip_serializing_if = "Dequantize::is_off")]
        dequantize: Dequantize,
        /// The weights of the rows, if a row had another than 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weights: Option<RowWeights>,
    },
    /// The mixture that synthetic data were drawn from.
    Truth {
        /// Seed of all random choices.
        seed: u64,
    },
    /// A pass of an online learner, which can resume from the model.
    Online(FitSettings),
}

impl Recipe {
    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Recipe::Online(settings) => settings.algorithm.name(),
            Recipe::Em { .. } => "em",
            Recipe::Truth { .. } => "truth",
        }
    }

    /// A description for users.
    pub fn describe(&self) -> String {
        match self {
            Recipe::Online(settings) => with_covariance(settings.algorithm.describe(), settings.covariance),
            Recipe::Em { settings, .. } => with_covariance("batch EM".into(), settings.covariance),
            Recipe::Truth { .. } => "the generating mixture (not learned)".into(),
        }
    }

    /// The covariances of the components.
    pub fn covariance(&self) -> CovarianceType {
        match self {
            Recipe::Online(settings) => settings.covariance,
            Recipe::Em { settings, .. } => settings.covariance,
            Recipe::Truth { .. } => CovarianceType::Full,
        }
    }

    /// Seed of all random choices.
    pub fn seed(&self) -> u64 {
        match self {
            Recipe::Online(FitSettings { seed, .. }) | Recipe::Em { seed, .. } | Recipe::Truth { seed } => {
                *seed
            }
        }
    }

    /// Whether discrete columns have noise of one quantum, and which.
    pub(super) fn dequantize(&self) -> &Dequantize {
        match self {
            Recipe::Online(FitSettings { dequantize, .. }) | Recipe::Em { dequantize, .. } => dequantize,
            Recipe::Truth { .. } => &Dequantize::Off,
        }
    }

    /// The weights of the rows, if a row had another than 1.
    pub(super) fn weights(&self) -> Option<&RowWeights> {
        match self {
            Recipe::Online(FitSettings { weights, .. }) | Recipe::Em { weights, .. } => weights.as_ref(),
            Recipe::Truth { .. } => None,
        }
    }

    /// The settings of the pass that can resume from such a model.
    pub fn online(&self) -> Option<&FitSettings> {
        match self {
            Recipe::Online(settings) => Some(settings),
            Recipe::Em { .. } | Recipe::Truth { .. } => None,
        }
    }
}

fn with_covariance(name: String, covariance: CovarianceType) -> String {
    if covariance.is_full() { name } else { format!("{name} with {} covariances", covariance.name()) }
}
