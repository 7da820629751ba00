//! Rows with gaps in a block: each component completes them by the distribution of the missing columns given the observed ones.

use std::collections::HashMap;
use std::ops::Range;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::{Density, Mixture, most_probable};
use crate::linalg::blocks::{BLOCK, Moments};
use crate::linalg::gapped_rows::{complete_row, padded_columns, quads_of_column, set_conditional};
use crate::linalg::special::LN_2PI;
use crate::linalg::vector::Quad;
use crate::stats::EquallyRare;

/// The rows with gaps of a block, and what components need for them. Rows with the same missing columns share it.
#[derive(Clone, Default)]
pub(super) struct GappedRows {
    /// One for each component.
    matrices: Vec<Matrix>,
    /// The place of each row in the block, and its pattern, ordered by pattern.
    rows: Vec<(usize, usize)>,
    patterns: Vec<Pattern>,
    /// The pattern of a set of missing columns, given by bits.
    index: HashMap<Vec<u64>, usize>,
    /// The missing columns of all patterns.
    missing: Vec<usize>,
    /// What components need for each pattern.
    numbers: Vec<Quad>,
    /// `ln |C|` of the conditional matrices: by pattern, and then by component.
    log_dets: Vec<f64>,
    /// The missing columns of each row of the block as bits.
    bits: Vec<u64>,
    /// The values of each row with gaps, padded with zeros.
    values: Vec<Quad>,
    /// The completed deviations of the missing values: by component, and then by row.
    completed: Vec<f64>,
    /// The quadratic forms of the observed columns, likewise.
    distances: Vec<f64>,
    /// Space for the deviations of a row, and for its completion.
    deviations: Vec<Quad>,
    row: Vec<Quad>,
    /// Space for the deviations of a block, and zeros.
    block: Vec<f64>,
    origin: Vec<f64>,
}

/// The matrix of a component.
#[derive(Clone)]
enum Matrix {
    /// The columns of `L⁻¹`, padded with zeros, and the number of triangles before.
    Triangle(Vec<Quad>, usize),
    /// The triangle of the first component.
    Shared,
    /// The square roots of a diagonal.
    Diagonal(Vec<f64>),
}

/// Rows with the same missing columns.
#[derive(Clone)]
struct Pattern {
    /// Its place in the missing columns of all patterns.
    missing: Range<usize>,
    /// Its place in the numbers of all patterns. There is a part for each triangle.
    numbers: usize,
}

/// Patterns are kept for the next block until they hold this much (1 MB).
const MAX_QUADS: usize = 1 << 15;

impl GappedRows {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The places of the rows with gaps.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        self.rows.iter().map(|&(place, _)| place)
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.completed.clear();
        self.distances.clear();
    }

    /// Finds the rows with gaps among the first `filled` rows of a block. `inverse` gives the rows of `L⁻¹` of a component, or
    /// `None` if its matrix is diagonal. It is always the same mixture.
    pub fn find<'a, C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        inverse: impl Fn(usize) -> Option<&'a [f64]>,
        block: &[f64],
        filled: usize,
    ) {
        self.clear();
        if self.matrices.is_empty() {
            self.prepare(mixture, inverse);
        }
        self.forget_late_patterns();
        let words = mixture.dim().div_ceil(64);
        self.mark(block, words);
        let bits = std::mem::take(&mut self.bits);
        for (place, missing) in bits.chunks_exact(words).enumerate().take(filled) {
            if missing.iter().any(|word| *word != 0) {
                let pattern = self.pattern(mixture.dim(), missing);
                self.rows.push((place, pattern));
            }
        }
        self.bits = bits;
        self.rows.sort_unstable_by_key(|&(place, pattern)| (pattern, place));
        let quads = Quad::needed(mixture.dim());
        self.values.clear();
        self.values.resize(self.rows.len() * quads, Quad::default());
        for (values, &(place, _)) in self.values.chunks_exact_mut(quads).zip(&self.rows) {
            let columns = block.chunks_exact(BLOCK);
            Quad::flat_mut(values).iter_mut().zip(columns).for_each(|(to, column)| *to = column[place]);
        }
    }

    /// Forgets the patterns after those that there is room for. The first patterns are those of most rows.
    fn forget_late_patterns(&mut self) {
        if self.numbers.len() <= MAX_QUADS {
            return;
        }
        let kept = self.patterns.partition_point(|pattern| pattern.numbers <= MAX_QUADS) - 1;
        let Pattern { missing, numbers } = self.patterns[kept].clone();
        self.patterns.truncate(kept);
        self.missing.truncate(missing.start);
        self.numbers.truncate(numbers);
        self.log_dets.truncate(kept * self.matrices.len());
        self.index.retain(|_, pattern| *pattern < kept);
    }

    fn prepare<'a, C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        inverse: impl Fn(usize) -> Option<&'a [f64]>,
    ) {
        let (first, dim, mut triangles) = (inverse(0), mixture.dim(), 0);
        let matrix = |(j, component): (usize, &C)| match (inverse(j), component.scale_matrix().roots()) {
            (Some(inverse), _) if j > 0 && first.is_some_and(|first| std::ptr::eq(first, inverse)) => {
                Matrix::Shared
            }
            (Some(inverse), _) => {
                triangles += 1;
                Matrix::Triangle(padded_columns(inverse, dim), triangles - 1)
            }
            (None, roots) => Matrix::Diagonal(roots.unwrap_or_default()),
        };
        self.origin = vec![0.0; dim];
        self.matrices = mixture.components().iter().enumerate().map(matrix).collect();
    }

    /// Marks the missing columns of each row of a block, by this many words of bits.
    fn mark(&mut self, block: &[f64], words: usize) {
        self.bits.clear();
        self.bits.resize(BLOCK * words, 0);
        for (j, column) in block.chunks_exact(BLOCK).enumerate() {
            let places = self.bits[j / 64..].iter_mut().step_by(words);
            places.zip(column).for_each(|(bits, value)| *bits |= u64::from(value.is_nan()) << (j % 64));
        }
    }

    /// The pattern of these missing columns, given as bits.
    fn pattern(&mut self, dim: usize, bits: &[u64]) -> usize {
        if let Some(&known) = self.index.get(bits) {
            return known;
        }
        let GappedRows { matrices, patterns, index, missing, numbers, log_dets, .. } = self;
        let from = missing.len();
        missing.extend((0..dim).filter(|j| bits[j / 64] >> (j % 64) & 1 == 1));
        let own = &missing[from..];
        let size = own.len() * quads_of_column(dim, own.len());
        patterns.push(Pattern { missing: from..missing.len(), numbers: numbers.len() });
        for matrix in &*matrices {
            let log_det = match matrix {
                Matrix::Triangle(inverse, _) => {
                    let first = numbers.len();
                    numbers.resize(first + size, Quad::default());
                    set_conditional(inverse, own, &mut numbers[first..])
                }
                Matrix::Shared => log_dets[log_dets.len() - 1],
                Matrix::Diagonal(roots) => own.iter().map(|&column| 2.0 * roots[column].ln()).sum(),
            };
            log_dets.push(log_det);
        }
        index.insert(bits.to_vec(), patterns.len() - 1);
        patterns.len() - 1
    }

    /// The missing columns of a pattern, and `[Q; R⁻¹]` of component `j` unless its matrix is diagonal.
    fn conditional(&self, pattern: usize, j: usize) -> (&[usize], Option<&[Quad]>) {
        let Pattern { missing, numbers } = &self.patterns[pattern];
        let missing = &self.missing[missing.clone()];
        let size = missing.len() * quads_of_column(self.origin.len(), missing.len());
        let part = match &self.matrices[j] {
            Matrix::Triangle(_, part) => *part,
            Matrix::Shared => 0,
            Matrix::Diagonal(_) => return (missing, None),
        };
        (missing, Some(&self.numbers[numbers + part * size..][..size]))
    }

    /// Completes row `n` by component `j`. Returns the quadratic form of the observed columns. The missing values of the completed
    /// deviation are at the end of `self.row`, after the quads of a row.
    fn complete_row<C: Density>(&mut self, component: &C, j: usize, n: usize) -> f64 {
        let quads = Quad::needed(component.dim());
        let mut deviations = std::mem::take(&mut self.deviations);
        let mut row = std::mem::take(&mut self.row);
        deviations.resize(quads, Quad::default());
        let values = Quad::flat(&self.values[n * quads..][..quads]);
        let all = Quad::flat_mut(&mut deviations).iter_mut().zip(values).zip(component.location());
        all.for_each(|((to, value), mean)| *to = value - mean);
        let (missing, conditional) = self.conditional(self.rows[n].1, j);
        missing.iter().for_each(|&column| Quad::flat_mut(&mut deviations)[column] = 0.0);
        row.resize(quads_of_column(component.dim(), missing.len()), Quad::default());
        let first = if let Matrix::Shared = self.matrices[j] { 0 } else { j };
        let q = match (&self.matrices[first], conditional) {
            (Matrix::Triangle(inverse, _), Some(conditional)) => {
                complete_row(inverse, &deviations, conditional, missing.len(), &mut row)
            }
            (Matrix::Diagonal(roots), _) => {
                row.fill(Quad::default());
                let scaled = Quad::flat(&deviations).iter().zip(roots).map(|(v, root)| v / root);
                scaled.map(|value| value * value).sum()
            }
            _ => f64::NAN,
        };
        (self.deviations, self.row) = (deviations, row);
        q
    }

    /// Sets the log-density of the observed columns of each row with gaps under component `j`, at the row's place. The components must
    /// come in their order.
    pub fn log_densities<C: Density>(&mut self, component: &C, j: usize, log_densities: &mut [f64]) {
        let dim = component.dim();
        for n in 0..self.rows.len() {
            let (place, pattern) = self.rows[n];
            let q = self.complete_row(component, j, n);
            self.distances.push(q);
            let count = self.patterns[pattern].missing.len();
            self.completed.extend_from_slice(&Quad::flat(&self.row[Quad::needed(dim)..])[..count]);
            let log_det = self.log_dets[pattern * self.matrices.len() + j];
            log_densities[place] = component.observed_log_density_at(q, dim - count, log_det);
        }
    }

    /// Adds the moments of the rows of a block, relative to the mean of component `j`, after their log-densities were computed. Rows
    /// with gaps are completed, and the conditional covariances of their missing columns are added to the second moments of `all`, or
    /// to those of the rows. Returns the completed deviations.
    pub fn add_moments(
        &mut self,
        (j, mean): (usize, &[f64]),
        block: &[f64],
        weights: &[f64; BLOCK],
        moments: &mut Moments,
        all: Option<&mut Moments>,
        space: &mut [Quad],
    ) -> &[f64] {
        let mut deviations = std::mem::take(&mut self.block);
        deviations.resize(block.len(), 0.0);
        let columns = deviations.chunks_exact_mut(BLOCK).zip(block.chunks_exact(BLOCK));
        for ((to, column), mean) in columns.zip(mean) {
            to.iter_mut().zip(column).for_each(|(to, value)| *to = value - mean);
        }
        let k = self.matrices.len();
        let of_component = self.completed.len() / k;
        let mut completed = self.completed[j * of_component..][..of_component].iter();
        let second = &mut all.unwrap_or(&mut *moments).second;
        for of_pattern in self.rows.chunk_by(|a, b| a.1 == b.1) {
            let (missing, conditional) = self.conditional(of_pattern[0].1, j);
            let mut total = 0.0;
            for &(place, _) in of_pattern {
                for (&column, value) in missing.iter().zip(completed.by_ref()) {
                    // A row without weight must not remain NaN.
                    deviations[column * BLOCK + place] = if weights[place] > 0.0 { *value } else { 0.0 };
                }
                total += weights[place];
            }
            if total > 0.0 {
                self.add_covariance(j, missing, conditional, total, second);
            }
        }
        moments.add_relative(&deviations, &self.origin, weights, space);
        self.block = deviations;
        &self.block
    }

    /// Adds `weight` times the conditional covariance to the lower triangle of a second moment, or to its diagonal if that is all.
    fn add_covariance(
        &self,
        j: usize,
        missing: &[usize],
        conditional: Option<&[Quad]>,
        weight: f64,
        second: &mut [f64],
    ) {
        let dim = self.origin.len();
        let is_diagonal = second.len() == dim;
        let place = |i: usize, l: usize| if is_diagonal { i } else { i * dim + l };
        let Some(conditional) = conditional else {
            if let Matrix::Diagonal(roots) = &self.matrices[j] {
                missing.iter().for_each(|&i| second[place(i, i)] += weight * roots[i] * roots[i]);
            }
            return;
        };
        for root in roots(conditional, dim, missing.len()) {
            for (i, value) in root.iter().enumerate() {
                let others = if is_diagonal { i..i + 1 } else { 0..i + 1 };
                for l in others {
                    second[place(missing[i], missing[l])] += weight * value * root[l];
                }
            }
        }
    }

    /// Adds `Σ_j r_j (c_j − (q'_j − q_j)/2)` of each row with gaps at its place; see
    /// [`GaussianMixture::log_density_of_missing`](super::GaussianMixture::log_density_of_missing). `share` is the responsibility of a component for the row
    /// at a place.
    pub fn add_of_missing(&self, share: impl Fn(usize, usize) -> f64, rare: &EquallyRare, out: &mut [f64]) {
        let (dim, k) = (self.origin.len(), self.matrices.len());
        for (n, &(place, pattern)) in self.rows.iter().enumerate() {
            let missing = self.patterns[pattern].missing.len();
            let observed = dim - missing;
            for j in (0..k).filter(|&j| share(place, j) > 0.0) {
                let q = self.distances[j * self.rows.len() + n];
                // Without an observed value, the mean squared distance.
                let more = if observed > 0 { rare.distance(observed, q) - q } else { dim as f64 };
                let log_det = self.log_dets[pattern * k + j];
                out[place] -= 0.5 * share(place, j) * (missing as f64 * LN_2PI + log_det + more);
            }
        }
    }

    /// Fills the gaps of the rows of a block by draws. `share` is the responsibility of a component for the row at a place.
    pub fn fill<C: Density, R: Rng + ?Sized>(
        &mut self,
        mixture: &Mixture<C>,
        block: &mut [f64],
        share: impl Fn(usize, usize) -> f64,
        random: &mut R,
    ) {
        let dim = mixture.dim();
        for n in 0..self.rows.len() {
            let (place, pattern) = self.rows[n];
            let mut left = random.random::<f64>();
            let is_chosen = |j: &usize| {
                left -= share(place, *j);
                left < 0.0
            };
            let chosen = (0..mixture.k()).find(is_chosen);
            // Rounding may leave a little.
            let j = chosen.unwrap_or_else(|| most_probable((0..mixture.k()).map(|j| share(place, j))).0);
            let component = &mixture.components()[j];
            self.complete_row(component, j, n);
            let mut row = std::mem::take(&mut self.row);
            let (missing, conditional) = self.conditional(pattern, j);
            let completed = &mut Quad::flat_mut(&mut row[Quad::needed(dim)..])[..missing.len()];
            match (conditional, &self.matrices[j]) {
                (Some(conditional), _) => {
                    for root in roots(conditional, dim, missing.len()) {
                        let z: f64 = StandardNormal.sample(random);
                        completed.iter_mut().zip(root).for_each(|(to, value)| *to += z * value);
                    }
                }
                (None, Matrix::Diagonal(roots)) => {
                    for (to, &column) in completed.iter_mut().zip(missing) {
                        let z: f64 = StandardNormal.sample(random);
                        *to += z * roots[column];
                    }
                }
                _ => {}
            }
            for (&column, value) in missing.iter().zip(&*completed) {
                block[column * BLOCK + place] = component.location()[column] + value;
            }
            self.row = row;
        }
    }
}

/// The columns of `R⁻¹`: as many numbers as missing columns up to it.
fn roots(conditional: &[Quad], dim: usize, count: usize) -> impl Iterator<Item = &[f64]> {
    let columns = conditional.chunks_exact(quads_of_column(dim, count)).enumerate();
    columns.map(move |(n, column)| &Quad::flat(&column[Quad::needed(dim)..])[..=n])
}
