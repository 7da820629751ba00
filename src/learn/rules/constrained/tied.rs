//! One matrix that all components share.
//!
//! Distances are those of a factor that is computed again whenever the rows have grown by an eighth, so that the factor of a large
//! matrix costs little. In between, the outer products of rows are collected, and added to the matrix many at a time. When the
//! factor is computed depends on the rows alone, and a saved state holds what is collected.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::learn::structure::packed;
use crate::linalg::blocks::{BLOCK, Moments, TILE, whitened};
use crate::linalg::vector::Quad;
use crate::linalg::{Conditional, Factor, lower_inverse};

/// The factor is computed again when this fraction of the rows is new.
pub(super) const NEW_ROWS: f64 = 0.125;

/// A matrix in collection. Saved with it, a learner resumes with the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::learn) struct SharedState {
    /// The matrix by rows of its lower triangle, divided by `scale`, without what is collected.
    #[serde(with = "packed")]
    sum: Arc<Vec<f64>>,
    scale: f64,
    /// Collected deviations, one after the other, and their weights.
    #[serde(with = "packed")]
    collected: Arc<Vec<f64>>,
    weights: Vec<f64>,
    /// The weight of the rows since the factor was computed.
    new_rows: f64,
    factor: Factor,
    /// What whitened means are relative to, and the whitened means, one after the other.
    origin: Vec<f64>,
    whitened: Vec<f64>,
}

impl SharedState {
    /// Whether it is that of `k` components over `dim` columns.
    pub fn fits(&self, k: usize, dim: usize) -> bool {
        let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        self.sum.len() == dim * (dim + 1) / 2
            && (self.factor.dim(), self.origin.len(), self.whitened.len()) == (dim, dim, k * dim)
            && self.collected.len() == dim * self.weights.len()
            && self.weights.len() < BLOCK
            && self.scale > 0.0
            && [&self.sum[..], &self.collected, &self.weights, &self.origin, &self.whitened]
                .into_iter()
                .all(finite)
            && (self.scale + self.new_rows).is_finite()
    }
}

#[derive(Debug, Clone)]
pub(super) struct Tied {
    dim: usize,
    means: Vec<Vec<f64>>,
    origin: Vec<f64>,
    whitened: Vec<Vec<f64>>,
    /// The factor of the matrix of densities, its inverse by rows, and its determinant.
    factor: Factor,
    inverse: Vec<f64>,
    pub log_det: f64,
    sum: Moments,
    pub scale: f64,
    /// Collected deviations in a block.
    block: Vec<f64>,
    weights: [f64; BLOCK],
    collected: usize,
    pub new_rows: f64,
    floor: Vec<f64>,
    /// Whitened rows ahead: a tile of columns, how many rows it has, and which is next.
    tile: Vec<f64>,
    ahead: (usize, usize),
    /// The current row, whitened, for each component if it has gaps.
    current: Vec<f64>,
    completed: Vec<f64>,
    conditional: Conditional,
    space: Vec<f64>,
    quads: Vec<Quad>,
}

impl Tied {
    /// From the means, and the matrix, which is `divisor` times that of densities.
    pub fn new(
        means: Vec<Vec<f64>>,
        matrix: &Factor,
        divisor: f64,
        floor: &[f64],
        state: Option<&SharedState>,
    ) -> Self {
        let (dim, k) = (floor.len(), means.len());
        let mut tied = Tied {
            dim,
            origin: means[0].clone(),
            whitened: vec![vec![0.0; dim]; k],
            factor: matrix.times(1.0 / divisor),
            inverse: Vec::new(),
            log_det: 0.0,
            sum: Moments::new(dim),
            scale: 1.0,
            block: vec![0.0; dim * BLOCK],
            weights: [0.0; BLOCK],
            collected: 0,
            new_rows: 0.0,
            floor: floor.to_vec(),
            tile: vec![0.0; dim * TILE],
            ahead: (0, 0),
            current: vec![0.0; dim],
            completed: vec![0.0; k * dim],
            conditional: Conditional::default(),
            space: vec![0.0; 2 * dim * TILE],
            quads: vec![Quad::default(); dim * BLOCK / 4],
            means,
        };
        match state {
            None => {
                let full = matrix.matrix();
                tied.sum.second.iter_mut().zip(&full).for_each(|(to, value)| *to = *value);
                tied.adopt_factor();
                tied.whiten_means();
            }
            Some(state) => tied.restore(state),
        }
        tied
    }

    fn restore(&mut self, state: &SharedState) {
        let mut sum = state.sum.iter();
        for i in 0..self.dim {
            self.sum.second[i * self.dim..][..i + 1]
                .iter_mut()
                .zip(&mut sum)
                .for_each(|(to, value)| *to = *value);
        }
        (self.scale, self.new_rows) = (state.scale, state.new_rows);
        for (row, weight) in state.collected.chunks_exact(self.dim).zip(&state.weights) {
            let place = self.collected;
            row.iter().enumerate().for_each(|(l, value)| self.block[l * BLOCK + place] = *value);
            self.weights[place] = *weight;
            self.collected += 1;
        }
        (self.factor, self.origin) = (state.factor.clone(), state.origin.clone());
        self.adopt_factor();
        for (to, from) in self.whitened.iter_mut().zip(state.whitened.chunks_exact(self.dim)) {
            to.copy_from_slice(from);
        }
    }

    pub fn state(&self) -> SharedState {
        let triangle = (0..self.dim).flat_map(|i| self.sum.second[i * self.dim..][..i + 1].iter().copied());
        let places = (0..self.collected).flat_map(|n| (0..self.dim).map(move |l| l * BLOCK + n));
        SharedState {
            sum: Arc::new(triangle.collect()),
            scale: self.scale,
            collected: Arc::new(places.map(|place| self.block[place]).collect()),
            weights: self.weights[..self.collected].to_vec(),
            new_rows: self.new_rows,
            factor: self.factor.clone(),
            origin: self.origin.clone(),
            whitened: self.whitened.concat(),
        }
    }

    pub fn means(&self) -> &[Vec<f64>] {
        &self.means
    }

    /// The matrix now, divided by `divisor`.
    pub fn matrix(&self, divisor: f64) -> Factor {
        let mut now = self.clone();
        now.collect_all();
        now.factored(divisor)
    }

    fn factored(&self, divisor: f64) -> Factor {
        let (dim, scale) = (self.dim, self.scale / divisor);
        let mut factor = Factor::from_triangle(dim, 1.0, |i, l| scale * self.sum.second[i * dim + l]);
        factor.raise_pivots(&self.floor);
        factor
    }

    /// Computes the factor again from all rows.
    pub fn publish(&mut self, divisor: f64) {
        self.collect_all();
        self.factor = self.factored(divisor);
        let scale = std::mem::replace(&mut self.scale, 1.0);
        self.sum.second.iter_mut().for_each(|value| *value *= scale);
        (self.new_rows, self.ahead) = (0.0, (0, 0));
        self.origin.clone_from(&self.means[0]);
        self.adopt_factor();
        self.whiten_means();
    }

    fn adopt_factor(&mut self) {
        self.inverse = lower_inverse(self.factor.lower_matrix().view()).into_raw_vec_and_offset().0;
        self.log_det = self.factor.log_det();
    }

    fn whiten_means(&mut self) {
        for (mean, whitened) in self.means.iter().zip(&mut self.whitened) {
            let away: Vec<f64> = mean.iter().zip(&self.origin).map(|(mean, origin)| mean - origin).collect();
            whiten(&self.factor, &away, whitened);
        }
    }

    /// Makes the first of these rows current; the others are whitened with it.
    pub fn prepare<'a>(&mut self, rows: impl Iterator<Item = &'a [f64]>) {
        let (filled, next) = self.ahead;
        if next == filled {
            let (block, space) = self.space.split_at_mut(self.dim * TILE);
            block.fill(0.0);
            let mut filled = 0;
            for row in rows.take(TILE) {
                row.iter().enumerate().for_each(|(l, value)| block[l * TILE + filled] = *value);
                filled += 1;
            }
            whitened(&self.inverse, block, &self.origin, space, &mut self.tile);
            self.ahead = (filled, 0);
        }
        let place = self.ahead.1;
        self.current.iter_mut().enumerate().for_each(|(l, value)| *value = self.tile[l * TILE + place]);
        self.ahead.1 += 1;
    }

    /// The squared distance of the current row from component `j`.
    pub fn distance(&self, j: usize) -> f64 {
        let mut sums = [0.0; 8];
        let (mut rows, mut means) = (self.current.chunks_exact(8), self.whitened[j].chunks_exact(8));
        for (row, mean) in (&mut rows).zip(&mut means) {
            for n in 0..8 {
                let away = row[n] - mean[n];
                sums[n] += away * away;
            }
        }
        let rest = rows.remainder().iter().zip(means.remainder());
        rest.map(|(value, mean)| (value - mean) * (value - mean)).sum::<f64>() + sums.iter().sum::<f64>()
    }

    /// Completes a row with gaps for each component. Returns `ln |S|` of its observed columns. `distance_of` receives the squared
    /// distance of each component.
    pub fn complete(&mut self, row: &[f64], mut distance_of: impl FnMut(usize, f64)) -> f64 {
        self.ahead = (0, 0);
        self.conditional.set(&self.factor, (0..row.len()).filter(|&l| row[l].is_nan()));
        for (j, (mean, v)) in self.means.iter().zip(self.completed.chunks_exact_mut(self.dim)).enumerate() {
            v.iter_mut().zip(row).zip(mean).for_each(|((v, x), mean)| *v = x - mean);
            distance_of(j, self.conditional.complete(&self.factor, v));
        }
        self.log_det - self.conditional.log_det
    }

    /// Learns the current row for component `j`: its mean moves by `step·v`, and the matrix gets `tau·vvᵀ`. `row` is `None` if it has
    /// gaps and was completed.
    pub fn learn(&mut self, j: usize, row: Option<&[f64]>, step: f64, tau: f64) {
        let weight = tau / self.scale;
        match row {
            Some(row) => {
                let place = self.collected;
                for (l, (x, mean)) in row.iter().zip(&mut self.means[j]).enumerate() {
                    let v = x - *mean;
                    self.block[l * BLOCK + place] = v;
                    *mean += step * v;
                }
                let whitened = self.whitened[j].iter_mut().zip(&self.current);
                whitened.for_each(|(mean, x)| *mean += step * (x - *mean));
            }
            None => {
                let (place, v) = (self.collected, &self.completed[j * self.dim..][..self.dim]);
                for (l, (v, mean)) in v.iter().zip(&mut self.means[j]).enumerate() {
                    self.block[l * BLOCK + place] = *v;
                    *mean += step * v;
                }
                whiten(&self.factor, v, &mut self.current);
                let whitened = self.whitened[j].iter_mut().zip(&self.current);
                whitened.for_each(|(mean, y)| *mean += step * y);
            }
        }
        self.keep(weight);
    }

    /// Adds `weight` times the conditional matrix of the missing columns of a row that was completed.
    pub fn learn_missing(&mut self, weight: f64) {
        let conditional = std::mem::take(&mut self.conditional);
        for root in conditional.roots() {
            let place = self.collected;
            (0..self.dim).for_each(|l| self.block[l * BLOCK + place] = 0.0);
            root.for_each(|(l, value)| self.block[l * BLOCK + place] = value);
            self.keep(weight / self.scale);
        }
        self.conditional = conditional;
    }

    /// Keeps the last deviation with this weight.
    fn keep(&mut self, weight: f64) {
        self.weights[self.collected] = weight;
        self.collected += 1;
        if self.collected == BLOCK {
            self.collect_all();
        }
    }

    fn collect_all(&mut self) {
        if self.collected == 0 {
            return;
        }
        self.weights[self.collected..].fill(0.0);
        // What earlier blocks left must not count, even where it is no number.
        if self.collected < BLOCK {
            self.block.chunks_exact_mut(BLOCK).for_each(|column| column[self.collected..].fill(0.0));
        }
        let origin = std::mem::take(&mut self.space);
        self.sum.add_relative(&self.block, &vec![0.0; self.dim], &self.weights, &mut self.quads);
        self.space = origin;
        self.collected = 0;
    }
}

/// A deviation whose squared length is its squared distance, in the coordinates of the inverse that whitens rows.
fn whiten(factor: &Factor, away: &[f64], whitened: &mut [f64]) {
    let distance = factor.quadratic_form(away, whitened);
    let length: f64 = whitened.iter().map(|value| value * value).sum();
    if length > 0.0 {
        let scale = (distance / length).sqrt();
        whitened.iter_mut().for_each(|value| *value *= scale);
    }
}
