use serde::{Deserialize, Serialize};

/// Count, mean and spread of the values of one column, updated value by value (Welford's algorithm).
///
/// ```
/// use gmm_bmm::scores::ColumnSummary;
///
/// let summary: ColumnSummary = [1.0, 3.0].into_iter().collect();
/// assert_eq!((summary.count, summary.mean, summary.standard_deviation()), (2, 2.0, 1.0));
/// assert_eq!(summary.standard_error(), Some(1.0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSummary {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The sum of squared deviations from the mean.
    pub squares: f64,
}

impl ColumnSummary {
    /// Adds a value, which must not be NaN. If the squares overflow, they stay at the largest finite number.
    pub fn push(&mut self, value: f64) {
        ColumnSummary::push_row(std::slice::from_mut(self), &[value]);
    }

    /// Adds a value to each column. All columns must have the same count.
    pub fn push_row(columns: &mut [ColumnSummary], row: &[f64]) {
        let Some(first) = columns.first() else { return };
        let weight = 1.0 / (first.count + 1) as f64;
        for (column, value) in columns.iter_mut().zip(row) {
            column.count += 1;
            let deviation = (value - column.mean).clamp(-f64::MAX, f64::MAX);
            column.mean += deviation * weight;
            column.squares = (column.squares + deviation * (value - column.mean)).min(f64::MAX);
        }
    }

    /// Adds the values of a row with gaps; a missing value is NaN. The columns may have different counts.
    pub fn push_gapped_row(columns: &mut [ColumnSummary], row: &[f64]) {
        for (column, value) in columns.iter_mut().zip(row).filter(|(_, value)| !value.is_nan()) {
            column.push(*value);
        }
    }

    /// The summary of the values of both.
    pub fn merged(self, other: ColumnSummary) -> ColumnSummary {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let count = self.count.saturating_add(other.count);
        let fraction = other.count as f64 / count as f64;
        let difference = other.mean - self.mean;
        let between = difference * difference * self.count as f64 * fraction;
        ColumnSummary {
            count,
            mean: self.mean + difference * fraction,
            squares: (self.squares + other.squares + between).min(f64::MAX),
        }
    }

    /// The standard deviation, with divisor `n` as in scikit-learn's `StandardScaler`.
    pub fn standard_deviation(&self) -> f64 {
        (self.squares / self.count.max(1) as f64).sqrt()
    }

    /// The standard error of the mean; `None` for fewer than two values.
    pub fn standard_error(&self) -> Option<f64> {
        let n = self.count as f64;
        (self.count > 1).then(|| (self.squares / (n - 1.0) / n).sqrt())
    }

    /// A positive unit for the column: its standard deviation, or its absolute value where it is constant.
    pub fn unit(&self) -> f64 {
        let deviation = self.standard_deviation();
        if !self.is_constant() {
            deviation
        } else if self.mean == 0.0 {
            1.0
        } else {
            self.mean.abs()
        }
    }

    /// Whether the column varies by no more than rounding errors.
    pub fn is_constant(&self) -> bool {
        !(self.standard_deviation() > 1e-13 * self.mean.abs())
    }
}

/// The summary of the values that are not missing, which are NaN.
impl FromIterator<f64> for ColumnSummary {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut summary = ColumnSummary::default();
        values.into_iter().filter(|value| !value.is_nan()).for_each(|value| summary.push(value));
        summary
    }
}

/// For each column, what its values add to the log-density of a row if the column is measured in its unit.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogUnits(Vec<f64>);

#[cfg(feature = "cli")]
impl LogUnits {
    /// Of columns that stay in their own units.
    pub fn none(columns: usize) -> Self {
        LogUnits(vec![0.0; columns])
    }

    /// What all columns add to the log-density of a row.
    pub fn of_all(&self) -> f64 {
        self.0.iter().sum()
    }

    /// What the columns with a value, which is not NaN, add to the log-density of a row.
    pub fn of_row<'a>(&self, row: impl IntoIterator<Item = &'a f64>) -> f64 {
        row.into_iter().zip(&self.0).filter(|(value, _)| !value.is_nan()).map(|(_, unit)| unit).sum()
    }
}

/// The units of the columns with these summaries.
#[cfg(feature = "cli")]
impl FromIterator<ColumnSummary> for LogUnits {
    fn from_iter<I: IntoIterator<Item = ColumnSummary>>(columns: I) -> Self {
        LogUnits(columns.into_iter().map(|column| column.unit().ln()).collect())
    }
}
