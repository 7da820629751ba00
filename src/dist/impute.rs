//! Missing values of rows, given the values that the rows have, under a Gaussian mixture.

use std::collections::HashMap;

use ndarray::{ArrayViewMut2, Axis};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::{Density, Gaussian, GaussianMixture};
use crate::linalg::Conditional;
use crate::linalg::special::log_sum_exp;
use crate::stats::MixtureOfNormals;

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

/// What each component needs for rows with the same missing columns.
#[derive(Default)]
struct Patterns {
    /// One for each component.
    conditionals: HashMap<Vec<usize>, Vec<Conditional>>,
    /// The numbers that they hold.
    size: usize,
}

/// Patterns are forgotten when they hold more numbers than this (8 MB).
const MAX_NUMBERS: usize = 1 << 20;

impl Patterns {
    fn conditionals(&mut self, mixture: &GaussianMixture, missing: &[usize]) -> &mut [Conditional] {
        if !self.conditionals.contains_key(missing) {
            if self.size > MAX_NUMBERS {
                (self.conditionals, self.size) = (HashMap::new(), 0);
            }
            let conditional = |component: &Gaussian| {
                let mut conditional = Conditional::default();
                conditional.set(component.covariance(), missing.iter().copied());
                conditional
            };
            let own: Vec<Conditional> = mixture.components().iter().map(conditional).collect();
            self.size += own.iter().map(Conditional::size).sum::<usize>();
            self.conditionals.insert(missing.to_vec(), own);
        }
        self.conditionals.get_mut(missing).map_or(&mut [], Vec::as_mut_slice)
    }
}

/// The missing values of one row, given its observed values.
pub(super) struct Given<'a> {
    mixture: &'a GaussianMixture,
    patterns: Patterns,
    /// The columns of the missing values.
    missing: Vec<usize>,
    /// The probability of each component given the observed values.
    responsibilities: Vec<f64>,
    /// The row with the conditional means of each component.
    completed: Vec<Vec<f64>>,
}

impl<'a> Given<'a> {
    pub fn new(mixture: &'a GaussianMixture) -> Self {
        let (k, dim) = (mixture.k(), mixture.dim());
        let (missing, patterns) = (Vec::with_capacity(dim), Patterns::default());
        let (responsibilities, completed) = (vec![0.0; k], vec![vec![0.0; dim]; k]);
        Given { mixture, patterns, missing, responsibilities, completed }
    }

    /// Computes the conditional means and the responsibilities of a row. Returns false if no value is missing.
    pub fn set(&mut self, row: impl Iterator<Item = f64> + Clone) -> bool {
        self.missing.clear();
        self.missing.extend(row.clone().enumerate().filter(|(_, value)| value.is_nan()).map(|(i, _)| i));
        if self.missing.is_empty() {
            return false;
        }
        let observed = self.mixture.dim() - self.missing.len();
        let conditionals = self.patterns.conditionals(self.mixture, &self.missing);
        for (j, component) in self.mixture.components().iter().enumerate() {
            let completed = &mut self.completed[j];
            let deviations = completed.iter_mut().zip(row.clone()).zip(component.mean());
            deviations.for_each(|((deviation, value), mean)| *deviation = value - mean);
            let q = conditionals[j].complete(component.covariance(), completed);
            completed.iter_mut().zip(component.mean()).for_each(|(value, mean)| *value += mean);
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
        let conditionals = self.patterns.conditionals(self.mixture, &self.missing);
        let parts = self.responsibilities.iter().zip(&self.completed).zip(conditionals);
        distribution.set(parts.map(|((&r, completed), conditional)| {
            (r, completed[column], conditional.covariance(place, place).sqrt())
        }));
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
        for root in self.patterns.conditionals(self.mixture, &self.missing)[drawn].roots() {
            let z: f64 = StandardNormal.sample(rng);
            root.for_each(|(column, value)| row[column] += z * value);
        }
        drawn
    }
}
