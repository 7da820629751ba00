use std::borrow::Cow;
use std::sync::Arc;

use ndarray::ArrayView2;

use super::blocks::BLOCK;
use super::has_gaps;
use super::table::{Table, unpacked};

/// Weighted rows in blocks of [`BLOCK`]; within a block, each column is contiguous. Zeros fill up the last block. Weights are
/// 1 by default.
#[derive(Debug, Clone)]
pub struct RowBlocks {
    dim: usize,
    rows: usize,
    values: Layout,
    weights: Vec<f64>,
    /// See [`RowBlocks::effective_rows`].
    effective: f64,
    /// The rows' own weights, if they have any.
    own: Option<Own>,
}

/// Weights of their own that rows have, besides those of a selection.
#[derive(Debug, Clone)]
struct Own {
    /// See [`RowBlocks::repeats`]; padded to whole blocks.
    repeats: Vec<f64>,
    /// What `repeats` has for a row of weight one.
    of_one: f64,
    /// See [`RowBlocks::unit`] and [`RowBlocks::repeats_of_prior`].
    unit: f64,
    of_prior: f64,
    /// Whether these are [`RowBlocks::truncated`].
    is_truncated: bool,
}

/// [`RowBlocks::repeats_of_prior`], if rows count `mean` times on average.
fn repeats_of_prior(mean: f64) -> f64 {
    (1.5 * mean).clamp(1.0, 8.0)
}

#[derive(Debug, Clone)]
enum Layout {
    /// All blocks in memory, one after the other.
    LaidOut(Vec<f64>),
    /// These rows of a table. Each request for a block lays it out again, so that a large table is in memory only once.
    Gathered { table: Arc<UnitTable>, rows: Vec<usize> },
}

/// Tables of at most this many numbers (6.4 MB) are laid out once, which is faster.
const MAX_LAID_OUT: usize = 800_000;

impl RowBlocks {
    /// Lays out a copy of `rows`.
    pub fn new(rows: ArrayView2<f64>) -> Self {
        RowBlocks::from_fn(rows.nrows(), rows.ncols(), |i, j| rows[(i, j)])
    }

    /// Rows with `value(i, j)` in row `i` and column `j`.
    pub fn from_fn(rows: usize, dim: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let mut values = vec![0.0; rows.div_ceil(BLOCK) * dim * BLOCK];
        for (b, block) in values.chunks_exact_mut(dim * BLOCK).enumerate() {
            for (j, column) in block.chunks_exact_mut(BLOCK).enumerate() {
                let here = column.iter_mut().take(rows - b * BLOCK);
                here.enumerate().for_each(|(r, place)| *place = value(b * BLOCK + r, j));
            }
        }
        RowBlocks::with_values(rows, dim, Layout::LaidOut(values))
    }

    /// Every `step`-th row of a table, in the units of its columns.
    pub fn of_table(table: UnitTable, step: usize) -> Self {
        let rows = (0..table.rows()).step_by(step).collect();
        RowBlocks::gathered(Arc::new(table), rows)
    }

    /// These rows of a table.
    fn gathered(table: Arc<UnitTable>, rows: Vec<usize>) -> Self {
        let (count, dim) = (rows.len(), table.dim());
        let gathered = RowBlocks::with_values(count, dim, Layout::Gathered { table, rows });
        if count * dim > MAX_LAID_OUT { gathered } else { gathered.laid_out() }
    }

    fn with_values(rows: usize, dim: usize, values: Layout) -> Self {
        let mut weights = vec![0.0; rows.div_ceil(BLOCK) * BLOCK];
        weights[..rows].fill(1.0);
        RowBlocks { dim, rows, values, weights, effective: 1.0, own: None }
    }

    /// The same rows, all blocks in memory.
    fn laid_out(self) -> Self {
        let Layout::Gathered { table, rows } = &self.values else { return self };
        let mut values = vec![0.0; self.blocks() * self.dim * BLOCK];
        let blocks = values.chunks_exact_mut(self.dim * BLOCK);
        blocks.zip(rows.chunks(BLOCK)).for_each(|(block, rows)| table.lay_out(rows, block));
        RowBlocks { values: Layout::LaidOut(values), ..self }
    }

    /// The same rows, with weight `weight(i)` for row `i`.
    pub fn with_weights(mut self, weight: impl Fn(usize) -> f64) -> Self {
        self.weights[..self.rows].iter_mut().enumerate().for_each(|(i, to)| *to = weight(i));
        self
    }

    /// The rows with these indices and weights, where a smaller weight means that the row says less. They give an estimate the
    /// accuracy of fewer rows of equal weight. `counts` says how many rows each is, if that is not one.
    pub fn weighted(&self, order: &[usize], weights: &[f64], counts: Option<&[f64]>) -> Self {
        let mut rows = self.reordered(order).with_weights(|i| weights[i]);
        let count = |i: usize| counts.map_or(1.0, |counts| counts[i]);
        let squares: f64 = weights.iter().enumerate().map(|(i, weight)| weight * weight / count(i)).sum();
        let total = rows.total_weight();
        let equal = total.powi(2) / squares;
        rows.effective = if equal > 0.0 { equal / order.len() as f64 } else { 1.0 };
        if counts.is_some() && equal > 0.0 {
            let of_one = equal / total;
            let repeats: Vec<f64> = rows.weights.iter().map(|weight| of_one * weight).collect();
            let mean =
                rows.weights.iter().zip(&repeats).map(|(weight, own)| weight * own).sum::<f64>() / total;
            let unit = mean.max(1.0);
            rows.effective /= unit;
            let of_prior = repeats_of_prior(of_one * total / order.len() as f64);
            rows.own = Some(Own { repeats, of_one, unit, of_prior, is_truncated: false });
        }
        rows
    }

    /// The number of independent rows of equal weight that give an estimate the same accuracy.
    pub fn effective_rows(&self) -> f64 {
        self.rows as f64 * self.effective
    }

    /// How many times as much as one independent row each row of block `i` counts, if rows have weights of their own. A row that was
    /// selected for others counts as one of them.
    pub fn repeats(&self, i: usize) -> Option<&[f64]> {
        self.own.as_ref().map(|own| &own.repeats[i * BLOCK..(i + 1) * BLOCK])
    }

    /// How many times as much as one independent row a row counts: the mean over the weight of all rows, at least one. It is one if
    /// rows have no weights of their own.
    pub fn unit(&self) -> f64 {
        self.own.as_ref().map_or(1.0, |own| own.unit)
    }

    /// A row that counts this often is a row of the usual weight where a prior counts rows. Up to a few repetitions of all rows, a
    /// row of weight w is w rows.
    pub fn repeats_of_prior(&self) -> f64 {
        self.own.as_ref().map_or(1.0, |own| own.of_prior)
    }

    /// How many times as much as one row a row counts where a prior counts rows: the mean over the weight of all rows, at least one.
    pub fn prior_unit(&self) -> f64 {
        (self.unit() / self.repeats_of_prior()).max(1.0)
    }

    /// The same rows where no weight of its own is more than a few times the mean, if some are. A search for clusters among them
    /// does not follow a few heavy rows.
    pub fn truncated(&self) -> Option<Self> {
        const MOST: f64 = 5.0;
        let own = self.own.as_ref().filter(|own| !own.is_truncated)?;
        let rows = || self.weights[..self.rows].iter().zip(&own.repeats);
        let (total, count) = rows().fold((0.0, 0.0), |(total, count), (weight, repeats)| {
            (total + weight, count + weight / repeats.max(f64::MIN_POSITIVE))
        });
        let most = MOST * total / count;
        rows().any(|(_, repeats)| *repeats > most).then_some(())?;
        let mut even = self.clone();
        let repeats: Vec<f64> = own.repeats.iter().map(|repeats| repeats.min(most)).collect();
        let factor = |i: usize| repeats[i] / own.repeats[i].max(f64::MIN_POSITIVE);
        even.weights.iter_mut().enumerate().for_each(|(i, weight)| *weight *= factor(i));
        let left = even.total_weight();
        let mean = even.weights.iter().zip(&repeats).map(|(weight, own)| weight * own).sum::<f64>() / left;
        let unit = mean.max(1.0);
        even.effective *= left / total * (own.unit / unit);
        let of_prior = repeats_of_prior(left / count);
        even.own = Some(Own { repeats, of_one: own.of_one, unit, of_prior, is_truncated: true });
        Some(even)
    }

    /// The weights of the rows of block `i`; 0 for the rows that fill it up.
    pub fn weights(&self, i: usize) -> &[f64] {
        &self.weights[i * BLOCK..(i + 1) * BLOCK]
    }

    /// The weight of row `i`.
    pub fn weight(&self, i: usize) -> f64 {
        self.weights[i]
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The rows `Av` for each row `v`. Zeros of `A` cost nothing.
    pub fn multiply(&self, matrix: &ndarray::Array2<f64>) -> Self {
        let dim = matrix.nrows();
        let mut values = vec![0.0; self.blocks() * dim * BLOCK];
        for ((block, _), out) in self.iter().zip(values.chunks_exact_mut(dim * BLOCK)) {
            for (coefficients, out) in matrix.rows().into_iter().zip(out.chunks_exact_mut(BLOCK)) {
                let terms = coefficients.iter().zip(block.chunks_exact(BLOCK));
                for (coefficient, column) in terms.filter(|(coefficient, _)| **coefficient != 0.0) {
                    out.iter_mut().zip(column).for_each(|(sum, value)| *sum += coefficient * value);
                }
            }
        }
        let (weights, own) = (self.weights.clone(), self.own.clone());
        RowBlocks { dim, values: Layout::LaidOut(values), weights, own, ..*self }
    }

    /// Whether a value is missing.
    pub fn has_gaps(&self) -> bool {
        self.iter().any(|(block, _)| has_gaps(&block))
    }

    /// A copy in memory, with each block changed by `change`, which also gets the block's index and the number of rows in it.
    pub fn map_blocks(&self, mut change: impl FnMut(usize, &mut [f64], usize)) -> Self {
        let mut values = Vec::with_capacity(self.blocks() * self.dim * BLOCK);
        for (i, (block, filled)) in self.iter().enumerate() {
            let from = values.len();
            values.extend_from_slice(&block);
            change(i, &mut values[from..], filled);
        }
        let (weights, own) = (self.weights.clone(), self.own.clone());
        let (dim, rows, effective) = (self.dim, self.rows, self.effective);
        RowBlocks { dim, rows, values: Layout::LaidOut(values), weights, effective, own }
    }

    /// Appends rows, with these weights if they have any. `values` has them one after the other, `units` has centre and unit
    /// of each column.
    pub fn add(&mut self, values: &[f64], units: &[(f64, f64)], weights: Option<&[f64]>) {
        let (before, dim) = (self.rows, self.dim);
        self.rows += values.len() / dim;
        let blocks = self.blocks();
        self.weights.resize(blocks * BLOCK, 0.0);
        match weights {
            None => self.weights[before..self.rows].fill(1.0),
            Some(weights) => self.weights[before..self.rows].copy_from_slice(weights),
        }
        if let Some(own) = &mut self.own {
            own.repeats.resize(before, 0.0);
            own.repeats.extend(self.weights[before..].iter().map(|weight| own.of_one * weight));
        }
        match &mut self.values {
            Layout::LaidOut(laid_out) => {
                laid_out.resize(blocks * dim * BLOCK, 0.0);
                for (i, row) in (before..).zip(values.chunks_exact(dim)) {
                    for (j, (value, unit)) in row.iter().zip(units).enumerate() {
                        laid_out[(i / BLOCK * dim + j) * BLOCK + i % BLOCK] = in_units(*value, *unit);
                    }
                }
            }
            Layout::Gathered { table, rows } => {
                let of_table = table.rows();
                Arc::make_mut(table).more.extend_from_slice(values);
                rows.extend(of_table..table.rows());
            }
        }
    }

    /// The rows with these indices, in this order.
    pub fn reordered(&self, order: &[usize]) -> Self {
        let rows = match &self.values {
            Layout::LaidOut(_) => RowBlocks::from_fn(order.len(), self.dim, |i, j| self.value(order[i], j)),
            Layout::Gathered { table, rows } => {
                RowBlocks::gathered(table.clone(), order.iter().map(|&i| rows[i]).collect())
            }
        };
        let own = self.own.as_ref().map(|own| {
            let mut repeats: Vec<f64> = order.iter().map(|&i| own.repeats[i]).collect();
            repeats.resize(rows.blocks() * BLOCK, 0.0);
            Own { repeats, ..*own }
        });
        RowBlocks { effective: self.effective, own, ..rows.with_weights(|i| self.weight(order[i])) }
    }

    /// Every `step`-th row.
    pub fn thinned(&self, step: usize) -> Self {
        self.reordered(&(0..self.rows).step_by(step).collect::<Vec<usize>>())
    }

    /// The value in row `i` and column `j`.
    pub fn value(&self, i: usize, j: usize) -> f64 {
        match &self.values {
            Layout::LaidOut(values) => values[(i / BLOCK * self.dim + j) * BLOCK + i % BLOCK],
            Layout::Gathered { table, rows } => table.value(rows[i], j),
        }
    }

    /// The number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.rows.div_ceil(BLOCK)
    }

    /// Block `i`, and the number of rows in it.
    pub fn block(&self, i: usize) -> (Cow<'_, [f64]>, usize) {
        let (size, filled) = (self.dim * BLOCK, BLOCK.min(self.rows - i * BLOCK));
        let block = match &self.values {
            Layout::LaidOut(values) => Cow::Borrowed(&values[i * size..(i + 1) * size]),
            Layout::Gathered { table, rows } => {
                let mut block = vec![0.0; size];
                table.lay_out(&rows[i * BLOCK..][..filled], &mut block);
                Cow::Owned(block)
            }
        };
        (block, filled)
    }

    /// Each block, and the number of rows in it.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, [f64]>, usize)> {
        (0..self.blocks()).map(|i| self.block(i))
    }
}

/// Rows in memory, one after the other, read in the units of their columns. Values are clamped to ±1e100 units, so that
/// squares do not overflow.
#[derive(Debug, Clone)]
pub struct UnitTable {
    values: Arc<Table>,
    /// Rows appended later.
    more: Vec<f64>,
    /// Centre and unit of each column.
    units: Vec<(f64, f64)>,
}

/// Rows that are laid out together: as many as share a cache line in each column.
const TOGETHER: usize = 8;

impl UnitTable {
    /// From values by rows, and centre and unit of each column.
    pub fn new(values: Arc<Table>, units: Vec<(f64, f64)>) -> Self {
        UnitTable { values, more: Vec::new(), units }
    }

    fn dim(&self) -> usize {
        self.units.len()
    }

    fn rows(&self) -> usize {
        (self.values.len() + self.more.len()) / self.dim()
    }

    /// The value in row `i` and column `j`, in the units of the data.
    fn own_value(&self, i: usize, j: usize) -> f64 {
        let dim = self.dim();
        match (i * dim).checked_sub(self.values.len()) {
            None => self.values.value(i, j, dim),
            Some(from) => self.more[from + j],
        }
    }

    fn value(&self, i: usize, j: usize) -> f64 {
        in_units(self.own_value(i, j), self.units[j])
    }

    /// Copies these rows to the front of a block.
    fn lay_out(&self, rows: &[usize], block: &mut [f64]) {
        let (dim, kept) = (self.dim(), self.values.len());
        for (from, rows) in (0..).step_by(TOGETHER).zip(rows.chunks(TOGETHER)) {
            let here: [usize; TOGETHER] = std::array::from_fn(|r| rows[r.min(rows.len() - 1)] * dim);
            let all_kept = here.iter().all(|&at| at < kept);
            for (j, (unit, column)) in self.units.iter().zip(block.chunks_exact_mut(BLOCK)).enumerate() {
                let scaled: [f64; TOGETHER] = match &*self.values {
                    Table::Exact(values) if all_kept => {
                        std::array::from_fn(|r| in_units(values[here[r] + j], *unit))
                    }
                    Table::Single { units, values } if all_kept => {
                        std::array::from_fn(|r| in_units(unpacked(values[here[r] + j], units[j]), *unit))
                    }
                    _ => std::array::from_fn(|r| self.value(here[r] / dim, j)),
                };
                column[from..from + rows.len()].copy_from_slice(&scaled[..rows.len()]);
            }
        }
    }
}

/// A value in the unit of its column, relative to the centre.
pub fn in_units(value: f64, (centre, unit): (f64, f64)) -> f64 {
    ((value - centre) / unit).clamp(-1e100, 1e100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;

    fn numbers(rows: usize, dim: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, dim), |(i, j)| ((i * 37 + j * 11) % 101) as f64 / 25.0 - 2.0)
    }

    #[test]
    fn the_last_block_knows_how_many_rows_it_has() {
        let blocks = RowBlocks::new(numbers(BLOCK + 3, 2).view());
        let filled: Vec<usize> = blocks.iter().map(|(_, filled)| filled).collect();
        assert_eq!((blocks.rows(), filled), (BLOCK + 3, vec![BLOCK, 3]));
    }

    #[test]
    fn gathered_rows_are_the_same_as_those_laid_out() {
        let (rows, dim) = (2 * BLOCK + 13, 5);
        let numbers = numbers(rows, dim);
        let units = vec![(0.3, 1.7); dim];
        let order: Vec<usize> = (0..rows).map(|i| (i * 7 + 3) % rows).collect();
        let laid_out = RowBlocks::from_fn(rows, dim, |i, j| in_units(numbers[(i, j)], units[j]));
        let table = UnitTable::new(Arc::new(Table::Exact(numbers.iter().copied().collect())), units);
        let every = (0..rows).collect();
        let gathered =
            RowBlocks::with_values(rows, dim, Layout::Gathered { table: Arc::new(table), rows: every });
        assert!(matches!(gathered.values, Layout::Gathered { .. }));
        let weight = |i: usize| 1.0 + i as f64;
        for change in [
            (|rows, _| rows) as fn(RowBlocks, &[usize]) -> RowBlocks,
            |rows, order| rows.reordered(order),
            |rows, _| rows.thinned(3),
            |mut rows, _| {
                rows.add(&[0.5, -1.0, 2.0, 7.0, 1e9, 3.0, 1.0, 0.0, -4.0, 2.5], &[(0.3, 1.7); 5], None);
                rows
            },
        ] {
            let of = |blocks: &RowBlocks| change(blocks.clone().with_weights(weight), &order);
            let (one, other) = (of(&laid_out), of(&gathered));
            assert_eq!((one.rows(), &one.weights), (other.rows(), &other.weights));
            assert!(one.iter().zip(other.iter()).all(|(one, other)| one == other));
            assert!((0..one.rows()).all(|i| (0..dim).all(|j| one.value(i, j) == other.value(i, j))));
        }
    }
}
