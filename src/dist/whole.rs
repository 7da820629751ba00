//! Scores of rows with gaps that are comparable with those of whole rows.

use ndarray::{Array1, ArrayView2, Axis, s};

use super::GaussianMixture;
use super::scoring::{BlockScorer, CHUNK};
use crate::linalg::has_gaps;
use crate::stats::EquallyRare;

/// Missing values are NaN in the rows.
///
/// # Panics
/// All methods panic if the rows do not have [`Mixture::dim`](super::Mixture::dim) columns.
impl GaussianMixture {
    /// The log-density of each row, where rows with gaps count as whole rows that are as rare; see [`Self::log_density_of_missing`].
    pub fn score_whole(&self, rows: ArrayView2<f64>) -> Array1<f64> {
        match self.with_missing(rows, |scored, scores| scores.copy_from_slice(scored)) {
            Some(scores) => scores,
            None => self.log_densities(rows),
        }
    }

    /// What the missing values of a row would add to its log-density if the whole row were as rare under each component as its
    /// observed values are, and 0 for a row without gaps. With it, the log-density of a row with gaps is comparable with that of a
    /// whole row. `None` if no row has gaps.
    ///
    /// It is `Σ_j r_j (c_j − (q'_j − q_j)/2)`, where `c_j` is the largest log-density of the missing values given the observed ones,
    /// and the squared distance `q'_j` in all columns is as rare as `q_j` in the observed ones.
    pub fn log_density_of_missing(&self, rows: ArrayView2<f64>) -> Option<Array1<f64>> {
        self.with_missing(rows, |_, _| {})
    }

    /// For each row, what `begin` makes of the log-densities of a block, plus the log-density of its missing values. `None` if no
    /// row has gaps.
    fn with_missing(
        &self,
        rows: ArrayView2<f64>,
        begin: impl Fn(&[f64], &mut [f64]) + Sync,
    ) -> Option<Array1<f64>> {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let any = || rows.iter().any(|value| value.is_nan());
        if !rows.as_slice().map_or_else(any, has_gaps) {
            return None;
        }
        let (mut sums, rare) = (Array1::zeros(rows.nrows()), EquallyRare::new(self.dim()));
        let chunks = sums.axis_chunks_iter_mut(Axis(0), CHUNK);
        self.score_chunks(rows, chunks, |sums, range, scored: &BlockScorer| {
            let mut sums = sums.slice_mut(s![range]);
            let sums = sums.as_slice_mut().expect("an array of one axis is contiguous");
            begin(scored.log_densities().as_slice().expect("likewise"), sums);
            scored.add_log_densities_of_missing(&rare, sums);
        });
        Some(sums)
    }
}
