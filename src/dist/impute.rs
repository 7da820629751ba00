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

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::dist::{Factor, Gaussian, Mixture};

    /// The inverse and the determinant, by elimination with pivots.
    fn inverse(matrix: &Array2<f64>) -> (Array2<f64>, f64) {
        let n = matrix.nrows();
        let (mut left, mut right, mut determinant) = (matrix.clone(), Array2::eye(n), 1.0);
        for i in 0..n {
            let best = (i..n).max_by(|&a, &b| left[(a, i)].abs().total_cmp(&left[(b, i)].abs())).unwrap();
            if best != i {
                determinant = -determinant;
                for j in 0..n {
                    left.swap((i, j), (best, j));
                    right.swap((i, j), (best, j));
                }
            }
            let pivot = left[(i, i)];
            determinant *= pivot;
            for j in 0..n {
                left[(i, j)] /= pivot;
                right[(i, j)] /= pivot;
            }
            for k in (0..n).filter(|&k| k != i) {
                let factor = left[(k, i)];
                for j in 0..n {
                    left[(k, j)] -= factor * left[(i, j)];
                    right[(k, j)] -= factor * right[(i, j)];
                }
            }
        }
        (right, determinant)
    }

    #[test]
    fn rows_with_gaps_have_the_distribution_of_whole_rows() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (dim, k, least) in [(3, 1, 1), (3, 1, 2), (8, 1, 5), (8, 3, 6)] {
            let mixture = mixture(dim, k, &mut rng);
            let mut drawn = || {
                let mut rows = Array2::from_elem((20_000, dim), f64::NAN);
                mixture.draw_missing(rows.view_mut(), &mut rng);
                rows
            };
            let whole = drawn();
            let mut gapped = drawn();
            gapped.slice_mut(ndarray::s![.., least..]).fill(f64::NAN);
            let mut scores = [whole, gapped].map(|rows| mixture.score_whole(rows.view()).to_vec());
            scores.iter_mut().for_each(|scores| scores.sort_by(f64::total_cmp));
            let rank = |i: usize| scores[0].partition_point(|&score| score < scores[1][i]);
            let distance = (0..20_000).map(|i| rank(i).abs_diff(i)).max().unwrap() as f64 / 20_000.0;
            assert!(distance < if k == 1 { 0.02 } else { 0.05 }, "{dim} {k} {least}: {distance}");
            assert_eq!(mixture.log_density_of_missing(drawn().view()), None);
        }
    }

    fn mixture(dim: usize, k: usize, rng: &mut ChaCha8Rng) -> GaussianMixture {
        let mut uniform = |scale: f64| scale * (2.0 * rng.random::<f64>() - 1.0);
        let mut component = || {
            let root =
                Array2::from_shape_fn((dim, dim), |(i, j)| uniform(1.0) + if i == j { 1.5 } else { 0.0 });
            let mean = (0..dim).map(|_| uniform(3.0)).collect();
            Gaussian::new(mean, Factor::from_matrix(root.dot(&root.t()).view()).unwrap()).unwrap()
        };
        let components: Vec<Gaussian> = (0..k).map(|_| component()).collect();
        let total = (k * (k + 1) / 2) as f64;
        Mixture::new((1..=k).map(|j| j as f64 / total).collect(), components).unwrap()
    }

    /// Mean and covariance of the missing values given the observed ones, from explicit inverses and densities.
    fn by_inverses(mixture: &GaussianMixture, row: &[f64]) -> (Array1<f64>, Array2<f64>) {
        let (observed, missing): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&i| !row[i].is_nan());
        let part = |m: &Array2<f64>, rows: &[usize], columns: &[usize]| {
            m.select(Axis(0), rows).select(Axis(1), columns)
        };
        let (mut total, n) = (0.0, missing.len());
        let (mut mean, mut square) = (Array1::zeros(n), Array2::<f64>::zeros((n, n)));
        for (component, weight) in mixture.components().iter().zip(mixture.weights()) {
            let (covariance, mu) = (component.covariance().matrix(), Array1::from(component.mean().to_vec()));
            let v = Array1::from_iter(observed.iter().map(|&i| row[i] - mu[i]));
            let (precision, determinant) = inverse(&part(&covariance, &observed, &observed));
            let density = weight * (-0.5 * v.dot(&precision.dot(&v))).exp() / determinant.sqrt();
            let gain = part(&covariance, &missing, &observed).dot(&precision);
            let expected = mu.select(Axis(0), &missing) + gain.dot(&v);
            let rest =
                part(&covariance, &missing, &missing) - gain.dot(&part(&covariance, &observed, &missing));
            let outer = Array2::from_shape_fn((n, n), |(i, j)| expected[i] * expected[j]);
            total += density;
            mean += &(density * &expected);
            square += &(density * (rest + outer));
        }
        mean /= total;
        square /= total;
        let outer = Array2::from_shape_fn((n, n), |(i, j)| mean[i] * mean[j]);
        (mean, square - outer)
    }

    /// A row of the mixture with gaps where the bits of `pattern` are set.
    fn row_with_gaps(mixture: &GaussianMixture, pattern: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
        let mut row = vec![0.0; mixture.dim()];
        mixture.sample_into(rng, &mut row);
        row.iter_mut()
            .enumerate()
            .filter(|(i, _)| pattern >> i & 1 == 1)
            .for_each(|(_, value)| *value = f64::NAN);
        row
    }

    #[test]
    fn conditional_means_are_those_from_explicit_inverses() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        for dim in 1..=5 {
            for k in [1, 3] {
                let mixture = mixture(dim, k, &mut rng);
                for pattern in 0..1 << dim {
                    let row = row_with_gaps(&mixture, pattern, &mut rng);
                    let (expected, _) = by_inverses(&mixture, &row);
                    let mut filled = Array2::from_shape_vec((1, dim), row.clone()).unwrap();
                    mixture.impute(filled.view_mut());
                    let mut expected = expected.iter();
                    for (before, after) in row.iter().zip(&filled) {
                        match before.is_nan() {
                            true => {
                                assert!((after - expected.next().unwrap()).abs() < 1e-10, "{dim} {pattern}")
                            }
                            false => assert_eq!(before.to_bits(), after.to_bits()),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn draws_have_the_conditional_mean_and_covariance() {
        const DRAWS: usize = 20_000;
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for dim in 1..=4 {
            let mixture = mixture(dim, 2, &mut rng);
            for pattern in 1..1 << dim {
                let row = row_with_gaps(&mixture, pattern, &mut rng);
                let (mean, covariance) = by_inverses(&mixture, &row);
                let mut rows = Array2::from_shape_fn((DRAWS, dim), |(_, column)| row[column]);
                mixture.draw_missing(rows.view_mut(), &mut rng);
                let missing: Vec<usize> = (0..dim).filter(|&i| row[i].is_nan()).collect();
                let drawn = rows.select(Axis(1), &missing);
                let deviations = &drawn - &mean;
                for i in 0..missing.len() {
                    let spread = (covariance[(i, i)] / DRAWS as f64).sqrt();
                    assert!(deviations.column(i).sum().abs() / (DRAWS as f64) < 5.0 * spread);
                    for j in 0..=i {
                        let found = deviations.column(i).dot(&deviations.column(j)) / DRAWS as f64;
                        // The mean of the squared products gives the standard error, also for a mixture of far components.
                        let products = &deviations.column(i) * &deviations.column(j);
                        let squares =
                            products.iter().map(|product| product * product).sum::<f64>() / DRAWS as f64;
                        let error = ((squares - found * found) / DRAWS as f64).sqrt();
                        assert!((found - covariance[(i, j)]).abs() < 5.0 * error, "{dim} {pattern}");
                    }
                }
            }
        }
    }

    #[test]
    fn ill_conditioned_and_far_rows_get_finite_values() {
        let covariance = array![[1e-100, 0.0], [1e-50 * (1.0 - 1e-9), 1e-55]];
        let narrow =
            Gaussian::new(vec![0.0, 0.0], Factor::from_lower_matrix(covariance.view()).unwrap()).unwrap();
        let wide = Gaussian::new(vec![1.0, 2.0], Factor::identity(2)).unwrap();
        let mixture = Mixture::new(vec![0.5, 0.5], vec![narrow, wide]).unwrap();
        let mut rows = array![[1e150, f64::NAN], [f64::NAN, -1e150], [f64::NAN, f64::NAN], [0.0, f64::NAN]];
        let mut drawn = rows.clone();
        mixture.impute(rows.view_mut());
        mixture.draw_missing(drawn.view_mut(), &mut ChaCha8Rng::seed_from_u64(1));
        assert!(rows.iter().chain(&drawn).all(|value| !value.is_nan()), "{rows} {drawn}");
    }
}
