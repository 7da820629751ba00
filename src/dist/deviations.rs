//! How far each column of a row is from what the other columns predict.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::{Gaussian, GaussianMixture, most_probable};
use crate::linalg::Factor;

/// The deviations of a row's columns, each given the others, under a component of a mixture.
///
/// With the precision matrix `P` of the component and `v = x − μ`, column `j` given the others has the variance `1 / Pⱼⱼ`,
/// and its deviation from its conditional mean is `(P v)ⱼ / Pⱼⱼ`. In standard deviations that is `(P v)ⱼ / √Pⱼⱼ`.
#[derive(Debug, Clone)]
pub struct Deviations {
    components: Vec<Gaussian>,
    /// The precision matrix of each component, of which row `j` is divided by `√Pⱼⱼ`.
    precisions: Vec<Array2<f64>>,
}

impl Deviations {
    /// Prepares the components of a mixture.
    pub fn new(mixture: &GaussianMixture) -> Self {
        let components = mixture.components().to_vec();
        let precisions = components.iter().map(|component| divided(component.covariance().inverse()));
        Deviations { precisions: precisions.collect(), components }
    }

    /// The deviation of each column of `row` given the others, in standard deviations, under one component. A column
    /// without a value has none (NaN), and the others are given the columns that have values.
    pub fn of(&self, component: usize, row: &[f64]) -> Vec<f64> {
        let own = &self.components[component];
        let v: Vec<f64> = row.iter().zip(own.mean()).map(|(x, mean)| x - mean).collect();
        if v.iter().all(|v| !v.is_nan()) {
            return along(&self.precisions[component], &v);
        }
        let observed: Vec<usize> = (0..v.len()).filter(|&j| !v[j].is_nan()).collect();
        let mut deviations = vec![f64::NAN; v.len()];
        let covariance = own.covariance().matrix().select(Axis(0), &observed).select(Axis(1), &observed);
        if let Ok(factor) = Factor::from_matrix(covariance.view()) {
            let v: Vec<f64> = observed.iter().map(|&j| v[j]).collect();
            let found = along(&divided(factor.inverse()), &v);
            observed.iter().zip(found).for_each(|(&j, found)| deviations[j] = found);
        }
        deviations
    }
}

/// A precision matrix with row `j` divided by `√Pⱼⱼ`.
fn divided(mut precision: Array2<f64>) -> Array2<f64> {
    for (j, mut row) in precision.outer_iter_mut().enumerate() {
        let root = row[j].sqrt();
        row /= root;
    }
    precision
}

fn along(rows: &Array2<f64>, v: &[f64]) -> Vec<f64> {
    rows.outer_iter().map(|row: ArrayView1<f64>| row.iter().zip(v).map(|(p, v)| p * v).sum()).collect()
}

impl GaussianMixture {
    /// For each row, how far each column is from what the other columns predict, in standard deviations, under the most
    /// probable component.
    ///
    /// ```
    /// use gmm_bmm::GaussianMixture;
    /// use ndarray::array;
    /// // Two columns with a correlation of 0.8.
    /// let covariance = array![[[1.0, 0.8], [0.8, 1.0]]];
    /// let mixture =
    ///     GaussianMixture::from_arrays(array![1.0].view(), array![[0.0, 0.0]].view(), covariance.view())?;
    /// let found = mixture.explain(array![[2.0, 1.6], [0.0, 3.0]].view());
    /// // The second column is 1.6 if the first is 2, so it does not deviate.
    /// assert!((&found - &array![[1.2, 0.0], [-4.0, 5.0]]).iter().all(|off| off.abs() < 1e-9), "{found}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        let (deviations, responsibilities) = (Deviations::new(self), self.predict_proba(rows));
        let mut found = Array2::zeros(rows.dim());
        for ((mut to, row), own) in
            found.outer_iter_mut().zip(rows.outer_iter()).zip(responsibilities.outer_iter())
        {
            let component = most_probable(own.iter().copied()).0;
            to.iter_mut().zip(deviations.of(component, &row.to_vec())).for_each(|(to, found)| *to = found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::dist::{Gaussian, Mixture};

    #[test]
    fn a_deviation_is_that_from_the_regression_on_the_other_columns() {
        let covariance = array![[4.0, 1.5, -0.5], [1.5, 2.0, 0.3], [-0.5, 0.3, 1.0]];
        let component =
            Gaussian::new(vec![1.0, -2.0, 3.0], Factor::from_matrix(covariance.view()).unwrap()).unwrap();
        let mixture = Mixture::new(vec![1.0], vec![component]).unwrap();
        let row = [2.5, -4.0, 5.0];
        let found = Deviations::new(&mixture).of(0, &row);
        for (j, found) in found.into_iter().enumerate() {
            let (a, b) = ((j + 1) % 3, (j + 2) % 3);
            // Regression of column j on columns a and b, by Cramer's rule.
            let s = |i: usize, j: usize| covariance[(i, j)];
            let det = s(a, a) * s(b, b) - s(a, b) * s(a, b);
            let beta_a = (s(j, a) * s(b, b) - s(j, b) * s(a, b)) / det;
            let beta_b = (s(j, b) * s(a, a) - s(j, a) * s(a, b)) / det;
            let v = |i: usize| row[i] - mixture.components()[0].mean()[i];
            let variance = s(j, j) - beta_a * s(j, a) - beta_b * s(j, b);
            let expected = (v(j) - beta_a * v(a) - beta_b * v(b)) / variance.sqrt();
            assert!((found - expected).abs() < 1e-12, "{j}: {found} {expected}");
        }
    }

    #[test]
    fn a_column_without_a_value_is_left_out() {
        let covariance = array![[4.0, 1.5, -0.5], [1.5, 2.0, 0.3], [-0.5, 0.3, 1.0]];
        let normal = |covariance: &Array2<f64>| {
            let dim = covariance.nrows();
            let factor = Factor::from_matrix(covariance.view()).unwrap();
            Mixture::new(vec![1.0], vec![Gaussian::new(vec![1.0; dim], factor).unwrap()]).unwrap()
        };
        let found = Deviations::new(&normal(&covariance)).of(0, &[2.0, f64::NAN, -1.0]);
        let rest = covariance.select(Axis(0), &[0, 2]).select(Axis(1), &[0, 2]);
        let expected = Deviations::new(&normal(&rest)).of(0, &[2.0, -1.0]);
        assert!(found[1].is_nan() && (found[0] - expected[0]).abs() < 1e-12);
        assert!((found[2] - expected[1]).abs() < 1e-12);
    }
}
