//! What is counted while rows are learned: safeguards and scores.

use serde::{Deserialize, Serialize};

use crate::learn::ScoreSink;

/// How often numerical safeguards triggered while learning. This says nothing about the fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Rows that were not learned because their squared distance from every component overflowed.
    pub rows_out_of_range: u64,
    /// Times a column's variance given the columns before it was held at the floor.
    pub pivots_raised: u64,
    /// Times a projection was held at the least degrees of freedom of a Wishart distribution.
    pub nu_floored: u64,
    /// Times the paper's printed equations had no solution, so that the old value was kept.
    pub literal_steps_kept: u64,
    /// Components whose product over the shards was improper and was damped.
    pub components_damped: u64,
    /// Validation rows that were not learned at the end of the stream, because they are far from all components.
    pub rows_set_aside: u64,
}

impl Health {
    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        let Health {
            rows_out_of_range,
            pivots_raised,
            nu_floored,
            literal_steps_kept,
            components_damped,
            rows_set_aside,
        } = *self;
        [rows_out_of_range, pivots_raised, nu_floored, literal_steps_kept, components_damped, rows_set_aside]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl Health {
    /// The counts since `before`.
    pub(in crate::learn) fn since(self, before: Health) -> Health {
        Health {
            rows_out_of_range: self.rows_out_of_range.saturating_sub(before.rows_out_of_range),
            pivots_raised: self.pivots_raised.saturating_sub(before.pivots_raised),
            nu_floored: self.nu_floored.saturating_sub(before.nu_floored),
            literal_steps_kept: self.literal_steps_kept.saturating_sub(before.literal_steps_kept),
            components_damped: self.components_damped.saturating_sub(before.components_damped),
            rows_set_aside: self.rows_set_aside.saturating_sub(before.rows_set_aside),
        }
    }
}

impl std::ops::Add for Health {
    type Output = Health;

    fn add(self, other: Health) -> Health {
        Health {
            rows_out_of_range: self.rows_out_of_range.saturating_add(other.rows_out_of_range),
            pivots_raised: self.pivots_raised.saturating_add(other.pivots_raised),
            nu_floored: self.nu_floored.saturating_add(other.nu_floored),
            literal_steps_kept: self.literal_steps_kept.saturating_add(other.literal_steps_kept),
            components_damped: self.components_damped.saturating_add(other.components_damped),
            rows_set_aside: self.rows_set_aside.saturating_add(other.rows_set_aside),
        }
    }
}

/// The prequential score: the sum of the log-densities of rows before they are learned, each times the weight of the row. It
/// estimates the log marginal likelihood. The rows of the start are not in it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prequential {
    /// Rows in the sum.
    pub rows: u64,
    /// The sum.
    pub log_likelihood: f64,
    /// The total weight of the rows, if one has another weight than 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

impl Prequential {
    /// The mean over the rows; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.log_likelihood / self.total_weight())
    }

    /// The total weight of the rows, which is their number if they have no weights.
    pub fn total_weight(&self) -> f64 {
        self.weight.unwrap_or(self.rows as f64)
    }

    /// The score of two sets of rows together.
    pub fn joined(self, other: Prequential) -> Prequential {
        Prequential {
            rows: self.rows.saturating_add(other.rows),
            log_likelihood: self.log_likelihood + other.log_likelihood,
            weight: self.weight.or(other.weight).map(|_| self.total_weight() + other.total_weight()),
        }
    }
}

impl ScoreSink for Prequential {
    fn add(&mut self, log_densities: &[f64], weights: Option<&[f64]>) {
        if weights.is_some() || self.weight.is_some() {
            for (i, log_density) in log_densities.iter().enumerate() {
                let weight = weights.map_or(1.0, |weights| weights[i]);
                if weight != 1.0 || self.weight.is_some() {
                    self.weight = Some(self.total_weight() + weight);
                }
                self.rows += 1;
                self.log_likelihood += weight * log_density;
            }
            return;
        }
        self.rows += log_densities.len() as u64;
        log_densities.iter().for_each(|log_density| self.log_likelihood += log_density);
    }

    fn log_likelihood(&self) -> f64 {
        self.log_likelihood
    }
}
