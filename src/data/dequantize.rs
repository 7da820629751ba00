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

#[cfg(all(test, feature = "csv"))]
mod tests {
    use super::*;
    use crate::data::{Catalogue, ReadOptions};

    /// The discrete columns of a bundled set, as the paper uses it.
    fn found_in(name: &str) -> Vec<(String, f64)> {
        let set = Catalogue::built_in().find(name).unwrap();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("datasets");
        let mut rows = ReadOptions::default().columns(&set.columns).open(&[set.path_in(&folder)]).unwrap();
        let found = find_discrete(rows.read_all().unwrap().view());
        found.iter().map(|found| (rows.columns().names[found.column].clone(), found.quantum)).collect()
    }

    fn names(found: &[(String, f64)]) -> Vec<&str> {
        found.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn all_columns_of_airfoil_but_the_measured_one_are_discrete() {
        let found = found_in("airfoil");
        let expected = ["frequency", "attack_angle", "chord_length", "velocity", "displacement_thickness"];
        assert_eq!(names(&found), expected);
        assert_eq!((found[0].1, found[1].1, found[2].1, found[3].1), (50.0, 0.1, 0.0254, 7.9));
        assert!((0.0001..0.0003).contains(&found[4].1), "{found:?}");
    }

    #[test]
    fn all_columns_of_transfusion_are_discrete() {
        let quanta: Vec<f64> = found_in("transfusion").iter().map(|(_, quantum)| *quantum).collect();
        assert_eq!(quanta, [1.0, 1.0, 250.0, 1.0, 1.0]);
    }

    #[test]
    fn lengths_and_rings_of_abalone_are_discrete_and_its_weights_are_not() {
        let found = found_in("abalone");
        let expected = [("Length", 0.005), ("Diameter", 0.005), ("Height", 0.005), ("Rings", 1.0)];
        assert_eq!(found, expected.map(|(name, quantum)| (name.to_string(), quantum)));
    }

    #[test]
    fn banknote_power_plant_and_magic_have_no_discrete_column() {
        for name in ["banknote", "ccpp", "magic04"] {
            assert_eq!(found_in(name), [], "{name}");
        }
    }

    #[test]
    fn a_column_inflated_at_zero_is_discrete() {
        let rows =
            Array2::from_shape_fn((500, 1), |(i, _)| if i % 5 == 0 { 0.0 } else { 3.0 + (i as f64).sin() });
        let found = find_discrete(rows.view());
        assert_eq!(found.len(), 1);
        assert!(found[0].quantum > 0.01 && found[0].quantum < 2.1);
    }

    #[test]
    fn few_rows_a_constant_and_a_smooth_column_are_left_alone() {
        let smooth = |i: usize| (i as f64 * 0.37).sin();
        let rows = Array2::from_shape_fn((30, 2), |(i, j)| if j == 0 { 4.5 } else { smooth(i) });
        assert_eq!(find_discrete(rows.view()), []);
        assert_eq!(discrete_column(rows.view(), 0), None);
        assert!(discrete_column(rows.view(), 1).is_some());
    }

    #[test]
    fn missing_values_change_neither_the_quantum_nor_the_noise_of_others() {
        let rows = Array2::from_shape_fn((1000, 2), |(i, j)| (i % (j + 7)) as f64);
        let mut gaps = rows.clone();
        gaps.indexed_iter_mut()
            .filter(|((i, j), _)| (i + j) % 5 == 0)
            .for_each(|(_, value)| *value = f64::NAN);
        assert_eq!(find_discrete(gaps.view()), find_discrete(rows.view()));
        let columns = find_discrete(rows.view());
        let (noisy, with_gaps) = (with_noise(rows.view(), &columns, 3), with_noise(gaps.view(), &columns, 3));
        for ((gap, noisy), with_gaps) in gaps.iter().zip(&noisy).zip(&with_gaps) {
            let expected = if gap.is_nan() { f64::NAN } else { *noisy };
            assert_eq!(with_gaps.to_bits(), expected.to_bits());
        }
        let nothing = Array2::from_elem((100, 1), f64::NAN);
        assert_eq!((find_discrete(nothing.view()), discrete_column(nothing.view(), 0)), (vec![], None));
    }

    #[test]
    fn noise_stays_within_half_a_quantum_and_follows_from_the_seed() {
        let rows = Array2::from_shape_fn((1000, 3), |(i, j)| (i % (j + 3)) as f64);
        let columns = [DiscreteColumn { column: 2, quantum: 0.5 }];
        let noisy = with_noise(rows.view(), &columns, 7);
        assert_eq!(noisy.column(0), rows.column(0));
        let noise = &noisy.column(2) - &rows.column(2);
        assert!(noise.iter().all(|value| value.abs() <= 0.25));
        assert!(noise.sum().abs() / 1000.0 < 0.02 && noise.iter().any(|value| value.abs() > 0.2));
        assert_eq!(noisy, with_noise(rows.view(), &columns, 7));
        let part =
            Noise { columns: columns.to_vec(), seed: 7 }.noisy(rows.slice(ndarray::s![333.., ..]), 333);
        assert_eq!(part, noisy.slice(ndarray::s![333.., ..]));
        assert_ne!(noisy, with_noise(rows.view(), &columns, 8));
    }
}
