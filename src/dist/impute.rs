//! Missing values of rows, given the values that the rows have, under a Gaussian mixture.

use ndarray::{Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, s};
use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::{Gaussian, GaussianMixture, fill_standard_normal};
use crate::special::log_sum_exp;

/// Rows that one thread completes at a time.
const CHUNK: usize = 256;
/// Values further from a mean, in standard deviations, count as being this far: their squares overflow.
const FARTHEST: f64 = 1e150;

/// Missing values, which are NaN in the rows.
///
/// # Panics
/// Both methods panic if the rows do not have [`Mixture::dim`](super::Mixture::dim) columns.
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
        let roots = self.roots();
        let chunks: Vec<_> = rows.axis_chunks_iter_mut(Axis(0), CHUNK).collect();
        chunks.into_par_iter().for_each(|mut chunk| {
            for mut row in chunk.outer_iter_mut() {
                let Some(given) = Given::new(self, &roots, &row) else { continue };
                for (place, &column) in given.missing.iter().enumerate() {
                    let parts = given.components.iter().zip(&given.responsibilities);
                    row[column] = parts.map(|(component, r)| r * component.mean[place]).sum();
                }
            }
        });
    }

    /// Replaces the missing values of each row by a draw of their distribution given the observed values: a component is drawn
    /// by its probability given the observed values, then the values from the component's conditional distribution.
    pub fn draw_missing<R: Rng + ?Sized>(&self, mut rows: ArrayViewMut2<f64>, rng: &mut R) {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let roots = self.roots();
        let mut z = vec![0.0; self.dim()];
        for mut row in rows.outer_iter_mut() {
            let Some(given) = Given::new(self, &roots, &row) else { continue };
            let mut left = rng.random::<f64>();
            let is_drawn = |r: &f64| {
                left -= r;
                left < 0.0
            };
            let drawn = given.responsibilities.iter().position(is_drawn).unwrap_or(self.k() - 1);
            let Conditional { mean, root, .. } = &given.components[drawn];
            let z = &mut z[..given.missing.len()];
            fill_standard_normal(rng, z);
            for (place, &column) in given.missing.iter().enumerate() {
                let noise: f64 = root.row(place).iter().zip(&*z).map(|(l, z)| l * z).sum();
                row[column] = mean[place] + noise;
            }
        }
    }

    /// The lower Cholesky factor of each component's covariance.
    fn roots(&self) -> Vec<Array2<f64>> {
        self.components().iter().map(|component| component.covariance().lower_matrix()).collect()
    }
}

/// The missing values of one row, given its observed values.
struct Given {
    /// The columns of the missing values.
    missing: Vec<usize>,
    /// The probability of each component given the observed values.
    responsibilities: Vec<f64>,
    components: Vec<Conditional>,
}

impl Given {
    /// `None` if no value is missing.
    fn new(mixture: &GaussianMixture, roots: &[Array2<f64>], row: &ArrayViewMut1<f64>) -> Option<Given> {
        let (observed, missing): (Vec<usize>, Vec<usize>) = (0..row.len()).partition(|&i| !row[i].is_nan());
        if missing.is_empty() {
            return None;
        }
        let parts = mixture.components().iter().zip(roots);
        let components: Vec<Conditional> = parts
            .map(|(component, root)| Conditional::new(component, root.view(), row, &observed, &missing))
            .collect();
        let terms = components.iter().zip(mixture.weights());
        let terms: Vec<f64> = terms.map(|(component, weight)| weight.ln() + component.log_density).collect();
        let total = log_sum_exp(&terms);
        let responsibilities = terms.iter().map(|term| (term - total).exp()).collect();
        Some(Given { missing, responsibilities, components })
    }
}

/// The missing values under one component, given the observed ones.
struct Conditional {
    /// The log-density of the observed values, without the constant that all components share.
    log_density: f64,
    /// The conditional mean of the missing values.
    mean: Vec<f64>,
    /// `L` of their conditional covariance `LLᵀ`.
    root: Array2<f64>,
}

impl Conditional {
    /// With the observed columns before the missing ones, the Cholesky factor of the covariance is
    /// `[[A, 0], [B, C]]`. Then `y = A⁻¹(x_O − μ_O)` gives the density of the observed values and the conditional mean
    /// `μ_M + By`, and the conditional covariance is `CCᵀ`.
    fn new(
        component: &Gaussian,
        root: ArrayView2<f64>,
        row: &ArrayViewMut1<f64>,
        observed: &[usize],
        missing: &[usize],
    ) -> Conditional {
        let order = [observed, missing].concat();
        let mut lower = root.select(Axis(0), &order);
        make_lower(&mut lower);
        let known = observed.len();
        let mut y = Vec::with_capacity(known);
        let mut log_density = 0.0;
        for (i, &column) in observed.iter().enumerate() {
            let explained: f64 = y.iter().zip(lower.row(i)).map(|(y, l)| y * l).sum();
            let deviation = (row[column] - component.mean()[column] - explained) / lower[(i, i)];
            let deviation = deviation.clamp(-FARTHEST, FARTHEST);
            log_density -= 0.5 * deviation * deviation + lower[(i, i)].ln();
            y.push(deviation);
        }
        let expected = |(place, &column): (usize, &usize)| {
            let explained: f64 = y.iter().zip(lower.row(known + place)).map(|(y, l)| y * l).sum();
            component.mean()[column] + explained
        };
        let mean = missing.iter().enumerate().map(expected).collect();
        Conditional { log_density, mean, root: lower.slice(s![known.., known..]).to_owned() }
    }
}

/// Turns a square matrix `A` into the lower triangular `L` with `LLᵀ = AAᵀ` and a positive diagonal, by rotations of its
/// columns. This does not form `AAᵀ`, so it cannot fail for an ill-conditioned covariance.
fn make_lower(matrix: &mut Array2<f64>) {
    let dim = matrix.nrows();
    for i in 0..dim {
        for j in i + 1..dim {
            let (a, b) = (matrix[(i, i)], matrix[(i, j)]);
            if b == 0.0 {
                continue;
            }
            let norm = a.hypot(b);
            let (cos, sin) = (a / norm, b / norm);
            for k in i..dim {
                let (x, y) = (matrix[(k, i)], matrix[(k, j)]);
                matrix[(k, i)] = cos * x + sin * y;
                matrix[(k, j)] = cos * y - sin * x;
            }
            matrix[(i, j)] = 0.0;
        }
        if matrix[(i, i)] < 0.0 {
            matrix.slice_mut(s![i.., i]).mapv_inplace(|value| -value);
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, array};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::dist::{Factor, Mixture};

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
                        let size = (covariance[(i, i)] * covariance[(j, j)]).sqrt();
                        assert!((found - covariance[(i, j)]).abs() < 0.06 * size, "{dim} {pattern}");
                    }
                }
            }
        }
    }

    #[test]
    fn ill_conditioned_and_far_rows_get_finite_values() {
        let covariance = array![[1e-200, 0.0], [1e-100 * (1.0 - 1e-9), 1e-105]];
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
