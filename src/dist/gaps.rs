//! Rows with gaps in a block: each component completes them by the distribution of the missing columns given the observed ones.

use std::collections::HashMap;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};

use super::{Density, Mixture, most_probable};
use crate::linalg::Conditional;
use crate::linalg::blocks::{BLOCK, Moments, TILE, whitened};

/// The rows with gaps of a block, and what components need for them. Rows with the same missing columns share it.
#[derive(Clone, Default)]
pub(super) struct GappedRows {
    /// The place of each row in the block, and its pattern, ordered by pattern.
    rows: Vec<(usize, usize)>,
    patterns: Vec<Pattern>,
    index: HashMap<Vec<usize>, usize>,
    /// The numbers that all patterns hold.
    size: usize,
    row: Vec<f64>,
    /// Space for the deviations of the rows, by columns, and for the whitened ones.
    deviations: Vec<f64>,
    whitened: Vec<f64>,
    /// The completed deviations of the missing values: by component, and then by row.
    completed: Vec<f64>,
}

#[derive(Clone)]
struct Pattern {
    missing: Vec<usize>,
    /// One for each component.
    conditionals: Vec<Conditional>,
}

/// Patterns are forgotten when they hold more numbers than this (8 MB).
const MAX_NUMBERS: usize = 1 << 20;

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
    }

    /// Finds the rows with gaps among the first `filled` rows of a block. `inverse` gives the rows of `L⁻¹` of a component, where they
    /// are known.
    pub fn find<'a, C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        inverse: impl Fn(usize) -> Option<&'a [f64]> + Copy,
        block: &[f64],
        filled: usize,
    ) {
        self.clear();
        self.forget_if_large();
        let mut missing = Vec::new();
        for place in 0..filled {
            let columns = block.chunks_exact(BLOCK).enumerate();
            missing.clear();
            missing.extend(columns.filter(|(_, column)| column[place].is_nan()).map(|(j, _)| j));
            if !missing.is_empty() {
                let pattern = self.pattern(mixture, inverse, &missing);
                self.rows.push((place, pattern));
            }
        }
        self.rows.sort_by_key(|&(place, pattern)| (pattern, place));
    }

    fn forget_if_large(&mut self) {
        if self.size > MAX_NUMBERS {
            (self.patterns, self.index, self.size) = (Vec::new(), HashMap::new(), 0);
        }
    }

    /// What each component needs for rows with these missing columns, outside of a block.
    pub fn conditionals<C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        missing: &[usize],
    ) -> &mut [Conditional] {
        self.forget_if_large();
        let pattern = self.pattern(mixture, |_| None, missing);
        &mut self.patterns[pattern].conditionals
    }

    fn pattern<'a, C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        inverse: impl Fn(usize) -> Option<&'a [f64]>,
        missing: &[usize],
    ) -> usize {
        if let Some(&known) = self.index.get(missing) {
            return known;
        }
        let conditional = |(j, component): (usize, &C)| {
            let (mut conditional, missing) = (Conditional::default(), missing.iter().copied());
            match inverse(j) {
                Some(inverse) => conditional.set_by_inverse(inverse, mixture.dim(), missing),
                None => conditional.set(component.scale_matrix(), missing),
            }
            conditional
        };
        let conditionals: Vec<Conditional> =
            mixture.components().iter().enumerate().map(conditional).collect();
        self.size += conditionals.iter().map(Conditional::size).sum::<usize>();
        self.patterns.push(Pattern { missing: missing.to_vec(), conditionals });
        self.index.insert(missing.to_vec(), self.patterns.len() - 1);
        self.patterns.len() - 1
    }

    /// Sets the log-density of the observed columns of each row with gaps under component `j`, at the row's place. The components must
    /// come in their order. `inverse` has the rows of `L⁻¹`, if they are known.
    pub fn log_densities<C: Density>(
        &mut self,
        component: &C,
        j: usize,
        inverse: Option<&[f64]>,
        block: &[f64],
        log_densities: &mut [f64],
    ) {
        let width = self.rows.len().next_multiple_of(TILE);
        if let Some(inverse) = inverse {
            self.whiten(component, inverse, block, width);
        }
        let GappedRows { rows, patterns, row, whitened, completed, .. } = self;
        for (n, &(place, pattern)) in rows.iter().enumerate() {
            let Pattern { missing, conditionals } = &mut patterns[pattern];
            row.clear();
            let q = if inverse.is_some() {
                row.extend(whitened[n..].iter().step_by(width));
                conditionals[j].complete_whitened(row, completed)
            } else {
                let columns = block.chunks_exact(BLOCK).zip(component.location());
                row.extend(columns.map(|(column, mean)| column[place] - mean));
                let q = conditionals[j].complete(component.scale_matrix(), row);
                completed.extend(missing.iter().map(|&column| row[column]));
                q
            };
            let observed = component.dim() - missing.len();
            log_densities[place] = component.observed_log_density_at(q, observed, conditionals[j].log_det);
        }
    }

    /// Whitens the deviations of the rows with gaps, with zeros for missing values.
    fn whiten<C: Density>(&mut self, component: &C, inverse: &[f64], block: &[f64], width: usize) {
        let dim = component.dim();
        self.deviations.clear();
        self.deviations.resize(dim * width, 0.0);
        self.whitened.resize(dim * width, 0.0);
        self.row.clear();
        self.row.resize(dim * TILE, 0.0);
        let columns = block.chunks_exact(BLOCK).zip(component.location());
        for ((column, mean), to) in columns.zip(self.deviations.chunks_exact_mut(width)) {
            for (to, (place, _)) in to.iter_mut().zip(&self.rows) {
                let deviation = column[*place] - mean;
                *to = if deviation.is_nan() { 0.0 } else { deviation };
            }
        }
        let GappedRows { deviations, whitened: out, row, .. } = self;
        whitened(inverse, deviations, &vec![0.0; dim], row, &mut out[..dim * width]);
    }

    /// Completes the deviations of the rows of a block from component `j`, after their log-densities were computed, and adds
    /// the conditional covariances of their missing columns to the second moments, with the weights of the rows.
    pub fn complete(
        &self,
        j: usize,
        k: usize,
        weights: &[f64; BLOCK],
        deviations: &mut [f64],
        moments: &mut Moments,
    ) {
        let dim = deviations.len() / BLOCK;
        let of_component = self.completed.len() / k;
        let mut completed = self.completed[j * of_component..][..of_component].iter();
        for of_pattern in self.rows.chunk_by(|a, b| a.1 == b.1) {
            let Pattern { missing, conditionals } = &self.patterns[of_pattern[0].1];
            let mut total = 0.0;
            for &(place, _) in of_pattern {
                for (&column, value) in missing.iter().zip(completed.by_ref()) {
                    // A row without weight must not remain NaN.
                    deviations[column * BLOCK + place] = if weights[place] > 0.0 { *value } else { 0.0 };
                }
                total += weights[place];
            }
            if total > 0.0 {
                add_covariance(&mut moments.second, dim, missing, &conditionals[j], total);
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
        let GappedRows { rows, patterns, row, .. } = self;
        for &(place, pattern) in &*rows {
            let Pattern { missing, conditionals } = &mut patterns[pattern];
            let mut left = random.random::<f64>();
            let is_chosen = |j: &usize| {
                left -= share(place, *j);
                left < 0.0
            };
            let chosen = (0..mixture.k()).find(is_chosen);
            // Rounding may leave a little.
            let j = chosen.unwrap_or_else(|| most_probable((0..mixture.k()).map(|j| share(place, j))).0);
            let (component, conditional) = (&mixture.components()[j], &mut conditionals[j]);
            row.clear();
            let columns = block.chunks_exact(BLOCK).zip(component.location());
            row.extend(columns.map(|(column, mean)| column[place] - mean));
            conditional.complete(component.scale_matrix(), row);
            for root in conditional.roots() {
                let z: f64 = StandardNormal.sample(random);
                root.for_each(|(column, value)| row[column] += z * value);
            }
            for &column in &*missing {
                block[column * BLOCK + place] = component.location()[column] + row[column];
            }
        }
    }
}

/// Adds `weight` times the conditional covariance to the lower triangle of a second moment, or to its diagonal if that is all.
fn add_covariance(second: &mut [f64], dim: usize, missing: &[usize], conditional: &Conditional, weight: f64) {
    for (n, &i) in missing.iter().enumerate() {
        if second.len() == dim {
            second[i] += weight * conditional.covariance(n, n);
            continue;
        }
        for (l, &j) in missing.iter().enumerate().take(n + 1) {
            second[i * dim + j] += weight * conditional.covariance(n, l);
        }
    }
}
