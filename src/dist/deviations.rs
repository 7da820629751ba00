//! How improbable each column of a row is, given the other columns.

use ndarray::{Array2, ArrayView1, ArrayView2, Axis};

use super::{Gaussian, GaussianMixture};
use crate::linalg::Factor;
use crate::linalg::special::log_sum_exp;

/// How improbable each column of a row is under a mixture, given the other columns of the row.
///
/// The density of column `j` given the others is `f(x) / f(x without j)`. With the precision matrix `P` of a component and
/// `v = x − μ`, the component's density without column `j` follows from that of the whole row: the column given the others has the
/// variance `1 / Pⱼⱼ` and deviates by `(P v)ⱼ / √Pⱼⱼ` standard deviations.
///
/// The density is per standard deviation of the column in the whole mixture, so columns of different units are comparable. It is
/// told as the deviation at which a normal distribution has this density. So the column that was most probably moved has the
/// largest deviation.
#[derive(Debug, Clone)]
pub struct Deviations {
    components: Vec<Weighted>,
    /// The logarithm of each column's standard deviation in the whole mixture.
    units: Vec<f64>,
}

#[derive(Debug, Clone)]
struct Weighted {
    log_weight: f64,
    component: Gaussian,
    given_others: GivenOthers,
}

/// Each column given the others, under a component.
#[derive(Debug, Clone)]
struct GivenOthers {
    /// The precision matrix, of which row `j` is divided by `√Pⱼⱼ`.
    precision: Array2<f64>,
    /// The logarithm of the density of the row at its mean.
    log_peak: f64,
}

impl GivenOthers {
    fn new(covariance: &Factor) -> Self {
        let dim = covariance.dim();
        let log_peak = Gaussian::log_density_of(0.0, covariance.log_det(), dim);
        GivenOthers { precision: divided(covariance.inverse()), log_peak }
    }
}

impl Deviations {
    /// Prepares the components of a mixture.
    pub fn new(mixture: &GaussianMixture) -> Self {
        let weighted = |(&weight, component): (&f64, &Gaussian)| Weighted {
            log_weight: weight.ln(),
            component: component.clone(),
            given_others: GivenOthers::new(component.covariance()),
        };
        let components = mixture.weights().iter().zip(mixture.components()).map(weighted).collect();
        let unit = |column: usize| {
            let weighted = || mixture.weights().iter().zip(mixture.components());
            let mean: f64 = weighted().map(|(weight, own)| weight * own.mean()[column]).sum();
            let square =
                |own: &Gaussian| own.covariance().diagonal()[column] + (own.mean()[column] - mean).powi(2);
            0.5 * weighted().map(|(weight, own)| weight * square(own)).sum::<f64>().ln()
        };
        Deviations { components, units: (0..mixture.dim()).map(unit).collect() }
    }

    /// The deviation of each column of `row` given the others. A column without a value has none (NaN), and the others are given
    /// the columns that have values.
    pub fn of(&self, row: &[f64]) -> Vec<f64> {
        let observed: Vec<usize> = (0..row.len()).filter(|&j| !row[j].is_nan()).collect();
        // For each component: the log-density of the row, and the deviation of each observed column and its log-density.
        let found: Vec<_> = self.components.iter().filter_map(|own| own.columns(row, &observed)).collect();
        let mut deviations = vec![f64::NAN; row.len()];
        let whole = log_sum_exp(&found.iter().map(|own| own.0).collect::<Vec<f64>>());
        for (i, &column) in observed.iter().enumerate() {
            let without = log_sum_exp(&found.iter().map(|own| own.0 - own.1[i].1).collect::<Vec<f64>>());
            // Twice the logarithm of the density, relative to the largest one of a standard normal distribution.
            let square = -2.0 * (whole - without + self.units[column]) - (2.0 * std::f64::consts::PI).ln();
            let mean: f64 = found.iter().map(|own| (own.0 - own.1[i].1 - without).exp() * own.1[i].0).sum();
            deviations[column] = square.max(0.0).sqrt().copysign(mean);
        }
        deviations
    }
}

impl Weighted {
    /// The log-density of the observed columns with the weight, and for each of them the deviation and the log-density given the
    /// others. `None` if the covariance of these columns is not positive definite.
    fn columns(&self, row: &[f64], observed: &[usize]) -> Option<(f64, Vec<(f64, f64)>)> {
        let v: Vec<f64> = observed.iter().map(|&j| row[j] - self.component.mean()[j]).collect();
        let of_observed;
        let given_others = if observed.len() == row.len() {
            &self.given_others
        } else {
            let covariance = self.component.covariance().matrix();
            let covariance = covariance.select(Axis(0), observed).select(Axis(1), observed);
            of_observed = GivenOthers::new(&Factor::from_matrix(covariance.view()).ok()?);
            &of_observed
        };
        let deviations = along(&given_others.precision, &v);
        let column = |(i, &deviation): (usize, &f64)| {
            // The diagonal holds √Pⱼⱼ.
            let log_density = Gaussian::log_density_of(deviation * deviation, 0.0, 1);
            (deviation, log_density + given_others.precision[(i, i)].ln())
        };
        let columns = deviations.iter().enumerate().map(column).collect();
        let roots = given_others.precision.diag();
        let square: f64 = deviations.iter().zip(roots).zip(&v).map(|((d, root), v)| d * root * v).sum();
        Some((self.log_weight + given_others.log_peak - 0.5 * square, columns))
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
    /// For each row, how improbable each column is given the other columns, as the deviation at which a normal distribution with
    /// the column's spread has this density.
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
    /// assert!((&found - &array![[0.65, 0.0], [-3.87, 4.90]]).iter().all(|off| off.abs() < 0.01), "{found}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        let deviations = Deviations::new(self);
        let mut found = Array2::zeros(rows.dim());
        for (mut to, row) in found.outer_iter_mut().zip(rows.outer_iter()) {
            to.assign(&ndarray::Array1::from(deviations.of(&row.to_vec())));
        }
        found
    }
}
