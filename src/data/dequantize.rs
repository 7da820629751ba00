//! Discrete columns, and noise that makes them continuous.
//!
//! If many rows share one value of a column, a mixture can put a component on that value and make the likelihood as high
//! as the variance floor allows. Uniform noise of one quantum, added once to all rows, gives such a column a density, and
//! likelihoods can be compared.

use std::collections::HashMap;

use ndarray::{Array2, ArrayView1, ArrayView2};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A discrete column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscreteColumn {
    /// Which column, from 0.
    pub column: usize,
    /// The width of the noise: the step of the column's values.
    pub quantum: f64,
}

/// A column is discrete if more than this fraction of its rows share one value. It is also discrete if its values occur
/// `REPEATS` times on average and its `COMMONEST` values hold more than `ON_COMMONEST` of the rows.
const ON_ONE_VALUE: f64 = 0.1;
const REPEATS: usize = 5;
/// About as many as a mixture may have components.
const COMMONEST: usize = 10;
const ON_COMMONEST: f64 = 0.1;
/// Smaller steps, as a fraction of the standard deviation, are not the column's quantum: such narrow noise would not remove
/// the spikes.
const MIN: f64 = 0.01;

/// The discrete columns of `rows`, each with its quantum. Constant columns have no quantum and are not listed.
///
/// ```
/// use gmm_bmm::data::find_discrete;
/// use ndarray::Array2;
///
/// let rows = Array2::from_shape_fn((200, 2), |(i, j)| if j == 0 { (i % 7) as f64 } else { (i as f64).sin() });
/// let found = find_discrete(rows.view());
/// assert_eq!(found.len(), 1);
/// assert_eq!((found[0].column, found[0].quantum), (0, 1.0));
/// ```
pub fn find_discrete(rows: ArrayView2<f64>) -> Vec<DiscreteColumn> {
    let found = |(column, values): (usize, ArrayView1<f64>)| {
        let values = DistinctValues::of(values);
        values
            .is_discrete()
            .then(|| values.quantum())
            .flatten()
            .map(|quantum| DiscreteColumn { column, quantum })
    };
    rows.columns().into_iter().enumerate().filter_map(found).collect()
}

/// Column `column` of `rows` with its quantum, even if it does not look discrete; `None` if it is constant.
pub fn discrete_column(rows: ArrayView2<f64>, column: usize) -> Option<DiscreteColumn> {
    let quantum = DistinctValues::of(rows.column(column)).quantum()?;
    Some(DiscreteColumn { column, quantum })
}

/// A copy of `rows` with uniform noise of one quantum, centred on zero, in `columns`. The noise of a column depends only on
/// the seed, the column's number and the row's. Missing values stay NaN.
pub fn with_noise(rows: ArrayView2<f64>, columns: &[DiscreteColumn], seed: u64) -> Array2<f64> {
    Noise { columns: columns.to_vec(), seed }.noisy(rows, 0)
}

/// Uniform noise of one quantum, centred on zero, in discrete columns. That of a value depends only on the seed, the column's
/// number and the row's, so batches change no bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    pub(crate) columns: Vec<DiscreteColumn>,
    pub(crate) seed: u64,
}

impl Noise {
    /// A copy of rows with their noise. The first of them is row `first` of the data, counted from 0.
    pub fn noisy(&self, rows: ArrayView2<f64>, first: u64) -> Array2<f64> {
        let mut noisy = rows.as_standard_layout().into_owned();
        let dim = noisy.ncols().max(1);
        self.add_to(noisy.as_slice_mut().expect("standard layout is contiguous"), dim, first);
        noisy
    }

    /// Adds the noise to rows of `dim` numbers.
    pub(crate) fn add_to(&self, values: &mut [f64], dim: usize, first: u64) {
        // A random number takes two words of the generator.
        const WORDS: u128 = 2;
        for &DiscreteColumn { column, quantum } in &self.columns {
            let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
            rng.set_stream(column as u64);
            rng.set_word_pos(WORDS * u128::from(first));
            for value in values.iter_mut().skip(column).step_by(dim) {
                *value += quantum * (rng.random::<f64>() - 0.5);
            }
        }
    }
}

/// Whether discrete columns get noise of one quantum, which makes them continuous.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dequantize {
    /// They do not.
    #[default]
    Off,
    /// Those that the rows of the start show to be discrete do.
    Discrete,
    /// These do.
    Columns(Vec<DiscreteColumn>),
}

impl Dequantize {
    /// Whether any column may get noise.
    pub fn is_on(&self) -> bool {
        *self != Dequantize::Off
    }

    pub(crate) fn is_off(&self) -> bool {
        !self.is_on()
    }

    /// The same for the columns that these rows show to be discrete, unless the columns are known.
    pub(crate) fn decided(&self, rows: ArrayView2<f64>) -> Dequantize {
        match self {
            Dequantize::Discrete => Dequantize::Columns(find_discrete(rows)),
            known => known.clone(),
        }
    }

    /// The noise, if its columns are known.
    pub(crate) fn noise(&self, seed: u64) -> Option<Noise> {
        match self {
            Dequantize::Columns(columns) if !columns.is_empty() => {
                Some(Noise { columns: columns.clone(), seed })
            }
            _ => None,
        }
    }

    /// Whether the columns can be those of rows of `dim` numbers.
    pub(crate) fn is_sound(&self, dim: usize) -> bool {
        let is_sound =
            |one: &DiscreteColumn| one.column < dim && one.quantum > 0.0 && one.quantum.is_finite();
        !matches!(self, Dequantize::Columns(columns) if !columns.iter().all(is_sound))
    }
}

/// The distinct values of a column in order, with how often each occurs, without missing ones.
struct DistinctValues {
    /// Rows that have a value.
    rows: usize,
    sorted: Vec<(f64, usize)>,
    standard_deviation: f64,
}

impl DistinctValues {
    fn of(column: ArrayView1<f64>) -> DistinctValues {
        let mut counts: HashMap<u64, usize> = HashMap::new();
        // Adding zero makes −0 a 0.
        let values = column.iter().filter(|value| !value.is_nan());
        values.for_each(|value| *counts.entry((value + 0.0).to_bits()).or_default() += 1);
        let mut sorted: Vec<(f64, usize)> =
            counts.into_iter().map(|(bits, count)| (f64::from_bits(bits), count)).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rows = sorted.iter().map(|(_, count)| count).sum();
        let weighed = |f: &dyn Fn(f64) -> f64| {
            sorted.iter().map(|&(value, count)| f(value) * count as f64).sum::<f64>()
                / usize::max(rows, 1) as f64
        };
        let mean = weighed(&|value| value);
        let standard_deviation = weighed(&|value| (value - mean).powi(2)).sqrt();
        DistinctValues { rows, sorted, standard_deviation }
    }

    fn is_discrete(&self) -> bool {
        let mut counts: Vec<usize> = self.sorted.iter().map(|&(_, count)| count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let share = |commonest: usize| {
            let held: usize = counts.iter().take(commonest).filter(|count| **count > 1).sum();
            held as f64 / self.rows.max(1) as f64
        };
        let few_values = counts.len() * REPEATS <= self.rows;
        share(1) > ON_ONE_VALUE || (few_values && share(COMMONEST) > ON_COMMONEST)
    }

    /// The smallest gap between neighbouring values that is wide enough, or the narrowest width allowed if there is none.
    fn quantum(&self) -> Option<f64> {
        let narrowest = MIN * self.standard_deviation;
        if !(narrowest > 0.0 && narrowest.is_finite()) {
            return None;
        }
        let gaps = self.sorted.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let smallest = gaps.filter(|gap| *gap >= narrowest).fold(f64::INFINITY, f64::min);
        // Subtraction of decimal values leaves rounding errors in the last digits.
        Some(if smallest.is_finite() { rounded(smallest) } else { narrowest })
    }
}

/// To ten significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.9e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_of_a_row_does_not_depend_on_the_rows_before_it() {
        let rows = Array2::from_shape_fn((1000, 3), |(i, j)| (i % (j + 3)) as f64);
        let noise = Noise { columns: vec![DiscreteColumn { column: 2, quantum: 0.5 }], seed: 7 };
        let part = noise.noisy(rows.slice(ndarray::s![333.., ..]), 333);
        assert_eq!(part, noise.noisy(rows.view(), 0).slice(ndarray::s![333.., ..]));
    }
}
