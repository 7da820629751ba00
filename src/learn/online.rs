//! The one step that all online learners share: evidence, responsibilities, one scaled rank-one update each.

use super::{Health, LearnerState, OnlineLearner, Prequential};
use crate::dist::GaussianMixture;
use crate::linalg::{ComponentMatrix, Factor};
use crate::special::share_out;

/// Below this a responsibility changes nothing in double precision.
const NEGLIGIBLE: f64 = 1e-17;

/// A component's location and matrix while it is being learned, and its view of the current row.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub mean: Vec<f64>,
    pub matrix: ComponentMatrix,
    /// `v = x − m` of the current row.
    pub deviation: Vec<f64>,
    /// `vᵀ matrix⁻¹ v` of the current row.
    pub q: f64,
}

/// `m ← m + step·v`, `matrix ← stretch·(matrix + τ v vᵀ)`, then pivots held at `floor_times` × the floor.
pub(super) struct Change {
    pub step: f64,
    pub tau: f64,
    pub stretch: f64,
    pub floor_times: f64,
}

impl Cell {
    pub fn new(mean: &[f64], matrix: &Factor) -> Self {
        let deviation = vec![0.0; mean.len()];
        Cell { mean: mean.to_vec(), matrix: ComponentMatrix::new(matrix.clone()), deviation, q: 0.0 }
    }

    pub fn look_at(&mut self, x: &[f64]) {
        for ((v, x), m) in self.deviation.iter_mut().zip(x).zip(&self.mean) {
            *v = x - m;
        }
        self.q = self.matrix.quadratic_form(&self.deviation);
    }

    fn apply(&mut self, change: &Change, floor: &[f64]) -> usize {
        for (m, v) in self.mean.iter_mut().zip(&self.deviation) {
            *m += change.step * v;
        }
        self.matrix.rank_one(change.tau);
        self.matrix.scale_by(change.stretch);
        self.matrix.raise_pivots(floor, change.floor_times)
    }
}

/// What differs between learners: the evidence of a row, and what a responsibility does to a component.
pub(super) trait Rule: Send {
    /// `ln density_j(x)` of each component; the cells have looked at `x`.
    fn log_densities(&mut self, x: &[f64], cells: &[Cell], out: &mut [f64]);

    /// What each component's density is weighted by, and the sum of that.
    fn weights(&self) -> (&[f64], f64);

    /// Learns the row for component `j`, whose responsibility is `r`. `None` leaves its cell as it is.
    fn update(&mut self, j: usize, r: f64, cell: &Cell, health: &mut Health) -> Option<Change>;

    /// Once the cell of component `j` has changed: refreshes what depends on its matrix.
    fn refresh(&mut self, j: usize, cell: &Cell);

    /// Learns the weights from the row's responsibilities.
    fn update_weights(&mut self, r: &[f64], health: &mut Health);

    fn estimate(&self, cells: &[Cell]) -> GaussianMixture;

    fn state(&self, cells: &[Cell]) -> LearnerState;
}

/// An online learner: components, and the rule by which rows change them.
#[derive(Debug, Clone)]
pub(super) struct Online<R> {
    cells: Vec<Cell>,
    rule: R,
    /// Least variance of each column given the columns before it.
    floor: Vec<f64>,
    shares: Vec<f64>,
    health: Health,
}

impl<R: Rule> Online<R> {
    pub fn new(cells: Vec<Cell>, mut rule: R, floor: Vec<f64>, health: Health) -> Self {
        for (j, cell) in cells.iter().enumerate() {
            rule.refresh(j, cell);
        }
        let shares = vec![0.0; cells.len()];
        Online { cells, rule, floor, shares, health }
    }
}

impl<R: Rule> OnlineLearner for Online<R> {
    fn observe(&mut self, x: &[f64]) -> Option<f64> {
        self.cells.iter_mut().for_each(|cell| cell.look_at(x));
        self.rule.log_densities(x, &self.cells, &mut self.shares);
        let (weights, total) = self.rule.weights();
        let evidence = share_out(&mut self.shares, weights, total);
        if !evidence.is_finite() {
            // So far out that its squared distance is not a number any more: nothing can be learned from it.
            self.health.rows_out_of_range += 1;
            return None;
        }
        for (j, cell) in self.cells.iter_mut().enumerate() {
            let r = self.shares[j];
            if r < NEGLIGIBLE {
                continue;
            }
            if let Some(change) = self.rule.update(j, r, cell, &mut self.health) {
                self.health.pivots_raised += cell.apply(&change, &self.floor) as u64;
                self.rule.refresh(j, cell);
            }
        }
        self.rule.update_weights(&self.shares, &mut self.health);
        Some(evidence)
    }

    fn observe_block(&mut self, rows: &[f64], score: &mut Prequential) {
        for row in rows.chunks_exact(self.floor.len()) {
            score.add(self.observe(row));
        }
    }

    fn estimate(&self) -> GaussianMixture {
        self.rule.estimate(&self.cells)
    }

    fn state(&self) -> LearnerState {
        self.rule.state(&self.cells)
    }

    fn health(&self) -> Health {
        self.health
    }
}
