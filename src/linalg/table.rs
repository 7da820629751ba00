//! Rows in memory, one after the other, in half the space where they are many.

/// Rows in memory. Few are exact. Many are stored in single precision: as they are in columns that this changes nothing of,
/// and as deviations from the column's median in units of its spread in the others.
#[derive(Debug, Clone, PartialEq)]
pub enum Table {
    /// The numbers of all rows.
    Exact(Vec<f64>),
    /// Deviations in single precision.
    Single {
        /// Centre and unit of each column.
        units: Vec<(f64, f64)>,
        /// The deviations of all rows.
        values: Vec<f32>,
    },
}

/// A table of more numbers (32 MB) is stored in single precision.
pub const MAX_EXACT: usize = 4 << 20;
/// Deviations are clamped to this many units.
const MAX_DEVIATION: f64 = 1e30;

impl Default for Table {
    fn default() -> Self {
        Table::Exact(Vec::new())
    }
}

impl Table {
    /// How many numbers.
    pub fn len(&self) -> usize {
        match self {
            Table::Exact(values) => values.len(),
            Table::Single { values, .. } => values.len(),
        }
    }

    /// The numbers of all rows, if they are exact.
    pub fn exact(&self) -> Option<&[f64]> {
        match self {
            Table::Exact(values) => Some(values),
            Table::Single { .. } => None,
        }
    }

    /// The number in column `j` of row `i`, of `dim` columns.
    pub fn value(&self, i: usize, j: usize, dim: usize) -> f64 {
        match self {
            Table::Exact(values) => values[i * dim + j],
            Table::Single { units, values } => unpacked(values[i * dim + j], units[j]),
        }
    }

    /// Appends row `i` of `dim` columns to `to`.
    pub fn copy_row(&self, i: usize, dim: usize, to: &mut Vec<f64>) {
        match self {
            Table::Exact(values) => to.extend_from_slice(&values[i * dim..][..dim]),
            Table::Single { units, values } => {
                to.extend(
                    values[i * dim..][..dim].iter().zip(units).map(|(&value, &unit)| unpacked(value, unit)),
                );
            }
        }
    }

    /// Appends a row.
    pub fn push(&mut self, row: &[f64]) {
        match self {
            Table::Exact(values) if values.len() + row.len() > MAX_EXACT && !values.is_empty() => {
                let units: Vec<(f64, f64)> = (0..row.len()).map(|j| unit(values, j, row.len())).collect();
                let packed = values.chunks_exact(row.len()).flat_map(|row| row.iter().zip(&units));
                let values = packed.map(|(&value, &unit)| packed_value(value, unit)).collect();
                *self = Table::Single { units, values };
                self.push(row);
            }
            Table::Exact(values) => values.extend_from_slice(row),
            Table::Single { units, values } => {
                values.extend(row.iter().zip(&*units).map(|(&value, &unit)| packed_value(value, unit)));
            }
        }
    }

    /// Replaces row `i`.
    pub fn set(&mut self, i: usize, row: &[f64]) {
        match self {
            Table::Exact(values) => values[i * row.len()..][..row.len()].copy_from_slice(row),
            Table::Single { units, values } => {
                let places = values[i * row.len()..][..row.len()].iter_mut();
                places
                    .zip(row.iter().zip(&*units))
                    .for_each(|(to, (&value, &unit))| *to = packed_value(value, unit));
            }
        }
    }

    /// The first `rows` rows of `dim` numbers.
    pub fn truncate(&mut self, rows: usize, dim: usize) {
        let len = rows.saturating_mul(dim);
        match self {
            Table::Exact(values) => values.truncate(len),
            Table::Single { values, .. } => values.truncate(len),
        }
    }

    /// The rows with these indices, of `dim` numbers each.
    pub fn chosen(&self, indices: impl IntoIterator<Item = usize>, dim: usize) -> Self {
        match self {
            Table::Exact(values) => {
                Table::Exact(indices.into_iter().flat_map(|i| &values[i * dim..][..dim]).copied().collect())
            }
            Table::Single { units, values } => {
                let values = indices.into_iter().flat_map(|i| &values[i * dim..][..dim]).copied().collect();
                Table::Single { units: units.clone(), values }
            }
        }
    }

    /// Whether this has whole rows of `dim` numbers, none of them infinite.
    pub fn is_sound(&self, dim: usize) -> bool {
        let whole = self.len().is_multiple_of(dim);
        whole
            && match self {
                Table::Exact(values) => !values.iter().any(|value| value.is_infinite()),
                Table::Single { units, values } => {
                    let is_unit =
                        |(centre, unit): &(f64, f64)| centre.is_finite() && unit.is_finite() && *unit > 0.0;
                    units.len() == dim
                        && units.iter().all(is_unit)
                        && !values.iter().any(|value| value.is_infinite())
                }
            }
    }
}

fn packed_value(value: f64, (centre, unit): (f64, f64)) -> f32 {
    ((value - centre) / unit).clamp(-MAX_DEVIATION, MAX_DEVIATION) as f32
}

pub(super) fn unpacked(value: f32, (centre, unit): (f64, f64)) -> f64 {
    (centre + unit * f64::from(value)).clamp(-f64::MAX, f64::MAX)
}

/// Centre and unit of a column: 0 and 1 if single precision has all its values, and otherwise the median and the distance of
/// two quantiles, which a few wild values do not change.
fn unit(values: &[f64], j: usize, dim: usize) -> (f64, f64) {
    let mut column: Vec<f64> = values.iter().skip(j).step_by(dim).filter(|v| !v.is_nan()).copied().collect();
    let fits = |value: &f64| f64::from(*value as f32) == *value && value.abs() < MAX_DEVIATION;
    if column.iter().all(fits) {
        return (0.0, 1.0);
    }
    let last = (column.len() - 1) as f64;
    let mut quantile =
        |share: f64| *column.select_nth_unstable_by((last * share).round() as usize, f64::total_cmp).1;
    let ranges = [0.25, 0.1, 0.01, 0.0].map(|share| quantile(1.0 - share) - quantile(share));
    let unit = ranges.into_iter().find(|range| *range > 0.0 && range.is_finite()).unwrap_or(1.0);
    (quantile(0.5), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: far from zero, whole numbers, numbers of single precision, with gaps, constant, and with a wild value.
    fn row(i: usize) -> [f64; 6] {
        let wave = (i as f64 * 0.7).sin();
        let gap = if i.is_multiple_of(3) { f64::NAN } else { 0.1 * wave };
        let wild = if i == 5 { 1e300 } else { wave };
        [1e9 + wave, (i % 1000) as f64, f64::from(wave as f32), gap, 0.1, wild]
    }

    #[test]
    fn many_rows_are_kept_to_single_precision_and_simple_columns_exactly() {
        let rows = MAX_EXACT / 6 + 1000;
        let mut table = Table::default();
        for i in 0..rows {
            assert_eq!(table.exact().is_some(), 6 * i <= MAX_EXACT);
            table.push(&row(i));
        }
        table.set(7, &row(8));
        assert!(
            table.exact().is_none() && table.len() == 6 * rows && table.is_sound(6) && !table.is_sound(7)
        );
        let mut copied = Vec::new();
        for i in (0..rows).step_by(997).chain(1..12) {
            copied.clear();
            table.copy_row(i, 6, &mut copied);
            for (j, (value, &found)) in row(if i == 7 { 8 } else { i }).into_iter().zip(&copied).enumerate() {
                assert_eq!(found.to_bits(), table.value(i, j, 6).to_bits());
                let error = [2e-7, 0.0, 0.0, 1e-8, 1e-16, if i == 5 { 1e300 } else { 2e-7 }][j];
                assert!(
                    found.is_nan() && value.is_nan() || (found - value).abs() <= error,
                    "{i} {j} {found}"
                );
            }
        }
        let some = table.chosen([9, 4], 6);
        assert!(some.value(1, 0, 6) == table.value(4, 0, 6) && some.len() == 12);
    }
}
