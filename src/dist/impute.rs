//! Missing values of rows, given the values that the rows have, under a Gaussian mixture.

use ndarray::{Array1, ArrayView2, ArrayViewMut2, Axis};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::gaps::GappedRows;
use super::{Density, GaussianMixture};
use crate::linalg::special::{LN_2PI, log_sum_exp};
use crate::linalg::{Conditional, has_gaps};
use crate::stats::{EquallyRare, MixtureOfNormals};

/// Rows that one thread completes at a time.
pub(super) const CHUNK: usize = 1024;

/// Missing values, which are NaN in the rows.
///
/// # Panics
/// All methods panic if the rows do not have [`Mixture::dim`](super::Mixture::dim) columns.
impl GaussianMixture {
    /// Replaces each missing value by its mean given the observed values: `Σ_j r_j E_j[x_M | x_O]`, where `r_j` is the
    /// probability of component `j` given the observed values. A row without any value becomes the mixture's mean.
    ///
    /// ```
    /// use gmm_bmm::dist::{Factor, Gaussian, Mixture};
    /// use ndarray::array;
    ///
    /// let covariance = array![[1.0, 0.8], [0.8, 1.0]];
    /// let gaussian = Gaussian::new(vec![0.0, 5.0], Factor::from_matrix(covariance.view())?)?;
    /// let mixture = Mixture::new(vec![1.0], vec![gaussian])?;
    /// let mut rows = array![[1.0, f64::NAN], [f64::NAN, f64::NAN]];
    /// mixture.impute(rows.view_mut());
    /// assert!((&rows - &array![[1.0, 5.8], [0.0, 5.0]]).iter().all(|difference| difference.abs() < 1e-12));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn impute(&self, mut rows: ArrayViewMut2<f64>) {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let chunks: Vec<_> = rows.axis_chunks_iter_mut(Axis(0), CHUNK).collect();
        chunks.into_par_iter().for_each(|mut chunk| {
            let mut given = Given::new(self);
            for mut row in chunk.outer_iter_mut() {
                if given.set(row.iter().copied()) {
                    for &column in &given.missing {
                        let parts = given.completed.iter().zip(&given.responsibilities);
                        row[column] = parts.map(|(completed, r)| r * completed[column]).sum();
                    }
                }
            }
        });
    }

    /// The log-density of each row, where rows with gaps count as whole rows that are as rare; see [`Self::log_density_of_missing`].
    pub fn score_whole(&self, rows: ArrayView2<f64>) -> Array1<f64> {
        let scores = self.log_densities(rows);
        match self.log_density_of_missing(rows) {
            Some(missing) => scores + missing,
            None => scores,
        }
    }

    /// What the missing values of a row would add to its log-density if the whole row were as rare under each component as its
    /// observed values are, and 0 for a row without gaps. With it, the log-density of a row with gaps is comparable with that of a
    /// whole row. `None` if no row has gaps.
    ///
    /// It is `Σ_j r_j (c_j − (q'_j − q_j)/2)`, where `c_j` is the largest log-density of the missing values given the observed ones,
    /// and the squared distance `q'_j` in all columns is as rare as `q_j` in the observed ones.
    pub fn log_density_of_missing(&self, rows: ArrayView2<f64>) -> Option<Array1<f64>> {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let any = || rows.iter().any(|value| value.is_nan());
        if !rows.as_slice().map_or_else(any, has_gaps) {
            return None;
        }
        let (mut gains, rare) = (Array1::zeros(rows.nrows()), EquallyRare::new(self.dim()));
        let chunks: Vec<_> =
            rows.axis_chunks_iter(Axis(0), CHUNK).zip(gains.axis_chunks_iter_mut(Axis(0), CHUNK)).collect();
        chunks.into_par_iter().for_each(|(rows, gains)| {
            let mut given = Given::new(self);
            for (row, gain) in rows.outer_iter().zip(gains) {
                if given.set(row.iter().copied()) {
                    *gain = given.log_density(&rare);
                }
            }
        });
        Some(gains)
    }

    /// Replaces the missing values of each row by a draw of their distribution given the observed values: a component is drawn
    /// by its probability given the observed values, then the values from the component's conditional distribution.
    pub fn draw_missing<R: Rng + ?Sized>(&self, mut rows: ArrayViewMut2<f64>, rng: &mut R) {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let mut given = Given::new(self);
        for mut row in rows.outer_iter_mut() {
            if given.set(row.iter().copied()) {
                let drawn = given.draw(rng);
                given.missing.iter().for_each(|&column| row[column] = given.completed[drawn][column]);
            }
        }
    }
}

/// The missing values of one row, given its observed values.
pub(super) struct Given<'a> {
    mixture: &'a GaussianMixture,
    gaps: GappedRows,
    /// The columns of the missing values.
    missing: Vec<usize>,
    /// The probability of each component given the observed values.
    responsibilities: Vec<f64>,
    /// The row with the conditional means of each component.
    completed: Vec<Vec<f64>>,
    /// The squared distance from each component in the observed columns.
    distances: Vec<f64>,
}

impl<'a> Given<'a> {
    pub fn new(mixture: &'a GaussianMixture) -> Self {
        let (k, dim) = (mixture.k(), mixture.dim());
        let (missing, gaps) = (Vec::with_capacity(dim), GappedRows::default());
        let (responsibilities, completed) = (vec![0.0; k], vec![vec![0.0; dim]; k]);
        Given { mixture, gaps, missing, responsibilities, completed, distances: vec![0.0; k] }
    }

    /// Computes the conditional means and the responsibilities of a row. Returns false if no value is missing.
    pub fn set(&mut self, row: impl Iterator<Item = f64> + Clone) -> bool {
        self.missing.clear();
        self.missing.extend(row.clone().enumerate().filter(|(_, value)| value.is_nan()).map(|(i, _)| i));
        if self.missing.is_empty() {
            return false;
        }
        let observed = self.mixture.dim() - self.missing.len();
        let conditionals = self.gaps.conditionals(self.mixture, &self.missing);
        for (j, component) in self.mixture.components().iter().enumerate() {
            let completed = &mut self.completed[j];
            let deviations = completed.iter_mut().zip(row.clone()).zip(component.mean());
            deviations.for_each(|((deviation, value), mean)| *deviation = value - mean);
            let q = conditionals[j].complete(component.covariance(), completed);
            completed.iter_mut().zip(component.mean()).for_each(|(value, mean)| *value += mean);
            self.distances[j] = q;
            let log_density = component.observed_log_density_at(q, observed, conditionals[j].log_det);
            // Finite also if the row is so far from all components that its density is zero in double precision.
            self.responsibilities[j] = self.mixture.weights()[j].ln() + log_density.max(f64::MIN);
        }
        let total = log_sum_exp(&self.responsibilities);
        self.responsibilities.iter_mut().for_each(|term| *term = (*term - total).exp());
        true
    }

    /// Sets the distribution of one missing column given the observed values.
    pub fn column(&mut self, column: usize, distribution: &mut MixtureOfNormals) {
        let place =
            self.missing.iter().position(|&missing| missing == column).expect("the column is missing");
        let conditionals = self.gaps.conditionals(self.mixture, &self.missing);
        let parts = self.responsibilities.iter().zip(&self.completed).zip(conditionals);
        distribution.set(parts.map(|((&r, completed), conditional)| {
            (r, completed[column], conditional.covariance(place, place).sqrt())
        }));
    }

    /// See [`GaussianMixture::log_density_of_missing`].
    fn log_density(&mut self, rare: &EquallyRare) -> f64 {
        let observed = self.mixture.dim() - self.missing.len();
        let constant = self.missing.len() as f64 * LN_2PI;
        let conditionals = self.gaps.conditionals(self.mixture, &self.missing);
        let parts = conditionals.iter().zip(&self.responsibilities).zip(&self.distances);
        let likely = parts.filter(|((_, r), _)| **r > 0.0);
        let of_part = |((conditional, r), &q): ((&Conditional, &f64), &f64)| {
            // Without an observed value, the mean squared distance.
            let more = if observed > 0 { rare.distance(observed, q) - q } else { self.mixture.dim() as f64 };
            -0.5 * r * (constant + conditional.log_det + more)
        };
        likely.map(of_part).sum()
    }

    /// Draws a component, and adds a draw of its conditional distribution to its means. Returns the component.
    fn draw<R: Rng + ?Sized>(&mut self, rng: &mut R) -> usize {
        let mut left = rng.random::<f64>();
        let is_drawn = |r: &f64| {
            left -= r;
            left < 0.0
        };
        // Rounding may leave a little.
        let drawn = self.responsibilities.iter().position(is_drawn).unwrap_or(self.mixture.k() - 1);
        let row = &mut self.completed[drawn];
        for root in self.gaps.conditionals(self.mixture, &self.missing)[drawn].roots() {
            let z: f64 = StandardNormal.sample(rng);
            root.for_each(|(column, value)| row[column] += z * value);
        }
        drawn
    }
}
