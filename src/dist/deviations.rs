//! How far each column of a row is from what the other columns let expect.

use ndarray::{Array2, ArrayView2};

use super::{GaussianMixture, most_probable};

/// The deviations of a row's columns, each given the others, under a component of a mixture.
///
/// With the precision matrix `P` of the component and `v = x − μ`, column `j` given the others has the variance `1 / Pⱼⱼ`,
/// and its deviation from its conditional mean is `(P v)ⱼ / Pⱼⱼ`. In standard deviations that is `(P v)ⱼ / √Pⱼⱼ`.
#[derive(Debug, Clone)]
pub struct Deviations {
    /// For each component its mean and its precision matrix, of which row `j` is divided by `√Pⱼⱼ`.
    components: Vec<(Vec<f64>, Array2<f64>)>,
}

impl Deviations {
    /// Prepares the components of a mixture.
    pub fn new(mixture: &GaussianMixture) -> Self {
        let prepare = |component: &super::Gaussian| {
            let mut precision = component.covariance().inverse();
            for (j, mut row) in precision.outer_iter_mut().enumerate() {
                let root = row[j].sqrt();
                row /= root;
            }
            (component.mean().to_vec(), precision)
        };
        Deviations { components: mixture.components().iter().map(prepare).collect() }
    }

    /// The deviation of each column of `row` given the others, in standard deviations, under one component.
    pub fn of(&self, component: usize, row: &[f64]) -> Vec<f64> {
        let (mean, precision) = &self.components[component];
        let v: Vec<f64> = row.iter().zip(mean).map(|(x, mean)| x - mean).collect();
        let along = |weights: ndarray::ArrayView1<f64>| weights.iter().zip(&v).map(|(p, v)| p * v).sum();
        precision.outer_iter().map(along).collect()
    }
}

impl GaussianMixture {
    /// For each row, how far each column is from what the other columns let expect, in standard deviations, under the most
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
    use crate::linalg::Factor;

    #[test]
    fn a_deviation_is_that_from_the_regression_on_the_other_columns() {
        let covariance = array![[4.0, 1.5, -0.5], [1.5, 2.0, 0.3], [-0.5, 0.3, 1.0]];
        let component =
            Gaussian::new(vec![1.0, -2.0, 3.0], Factor::from_matrix(covariance.view()).unwrap()).unwrap();
        let mixture = Mixture::new(vec![1.0], vec![component]).unwrap();
        let row = [2.5, -4.0, 5.0];
        let found = Deviations::new(&mixture).of(0, &row);
        for j in 0..3 {
            let (a, b) = ((j + 1) % 3, (j + 2) % 3);
            // Regression of column j on columns a and b, by Cramer's rule.
            let s = |i: usize, j: usize| covariance[(i, j)];
            let det = s(a, a) * s(b, b) - s(a, b) * s(a, b);
            let beta_a = (s(j, a) * s(b, b) - s(j, b) * s(a, b)) / det;
            let beta_b = (s(j, b) * s(a, a) - s(j, a) * s(a, b)) / det;
            let v = |i: usize| row[i] - mixture.components()[0].mean()[i];
            let variance = s(j, j) - beta_a * s(j, a) - beta_b * s(j, b);
            let expected = (v(j) - beta_a * v(a) - beta_b * v(b)) / variance.sqrt();
            assert!((found[j] - expected).abs() < 1e-12, "{j}: {} {expected}", found[j]);
        }
    }
}
