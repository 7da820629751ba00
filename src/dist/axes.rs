//! Projections of rows and mixtures on a few axes: columns, or the directions of largest variance.
//!
//! If `x` is normal with mean `μ` and covariance `Σ`, then `y = A(x − c)` is normal with mean `A(μ − c)` and covariance
//! `AΣAᵀ`.

use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{GaussianMixture, fill_standard_normal};

/// A few axes on which rows and mixtures are projected.
///
/// ```
/// use gmm_bmm::dist::{Axes, Gaussian, Mixture};
/// use gmm_bmm::dist::Factor;
///
/// let names = ["length", "width", "height"].map(String::from);
/// let axes = Axes::columns(&names, &[2, 0]);
/// assert_eq!(axes.of_row(&[1.0, 2.0, 3.0]), [3.0, 1.0]);
///
/// let gaussian = Gaussian::new(vec![1.0, 2.0, 3.0], Factor::identity(3))?;
/// let marginals = axes.of_mixture(&Mixture::new(vec![1.0], vec![gaussian])?);
/// assert_eq!(marginals[0].mean, [3.0, 1.0]);
/// assert_eq!(marginals[0].correlation(0, 1), 0.0);
/// # Ok::<(), gmm_bmm::dist::DistError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Axes {
    names: Vec<String>,
    /// `c`.
    centre: Array1<f64>,
    /// `A`, with one row for each axis.
    directions: Array2<f64>,
}

/// A component of a mixture, projected on [`Axes`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// Its weight in the mixture.
    pub weight: f64,
    /// Its mean on each axis.
    pub mean: Vec<f64>,
    /// The lower triangle of its covariance, by rows.
    pub covariance: Vec<Vec<f64>>,
}

impl Marginal {
    /// The standard deviation on one axis.
    pub fn deviation(&self, axis: usize) -> f64 {
        self.covariance[axis][axis].sqrt()
    }

    /// The correlation of two different axes, from −1 to 1; 0 where a deviation is 0.
    pub fn correlation(&self, one: usize, other: usize) -> f64 {
        let together = self.covariance[one.max(other)][one.min(other)];
        let apart = self.deviation(one) * self.deviation(other);
        if apart > 0.0 { (together / apart).clamp(-1.0, 1.0) } else { 0.0 }
    }

    /// Whether this is a valid component on this number of axes: its shapes agree and its numbers are finite.
    pub fn is_sound(&self, axes: usize) -> bool {
        let shaped = self.mean.len() == axes
            && self.covariance.len() == axes
            && self.covariance.iter().enumerate().all(|(i, row)| row.len() == i + 1 && row[i] >= 0.0);
        let mut numbers = self.mean.iter().chain(self.covariance.iter().flatten());
        shaped && self.weight >= 0.0 && self.weight.is_finite() && numbers.all(|value| value.is_finite())
    }
}

impl Axes {
    /// The default number of axes.
    pub const LEADING: usize = 4;

    /// The columns with indices `chosen` among the columns with these names.
    ///
    /// # Panics
    /// If an index is not smaller than the number of columns.
    pub fn columns(names: &[String], chosen: &[usize]) -> Self {
        Axes {
            names: chosen.iter().map(|&column| names[column].clone()).collect(),
            centre: Array1::zeros(names.len()),
            directions: Array2::from_shape_fn((chosen.len(), names.len()), |(axis, column)| {
                f64::from(u8::from(chosen[axis] == column))
            }),
        }
    }

    /// The first [`Axes::LEADING`] columns.
    pub fn leading(names: &[String]) -> Self {
        Axes::columns(names, &(0..names.len().min(Axes::LEADING)).collect::<Vec<_>>())
    }

    /// The principal components of the mixture's correlation matrix. Their names contain their percentage of the variance.
    pub fn principal(mixture: &GaussianMixture) -> Self {
        let dim = mixture.dim();
        let (centre, units, correlation) = whole_mixture(mixture);
        let mut directions = leading_directions(&correlation, dim.min(Axes::LEADING), 1000);
        let percent = |axis: ArrayView1<f64>| 100.0 * axis.dot(&correlation.dot(&axis)) / dim as f64;
        let percents = directions.axis_iter(Axis(0)).map(percent);
        let names =
            percents.enumerate().map(|(i, percent)| format!("PC {} ({percent:.0}%)", i + 1)).collect();
        directions /= &units.insert_axis(Axis(0));
        Axes { names, centre, directions }
    }

    /// The name of each axis.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The coordinates of a row on the axes; NaN on those that a missing value, which is NaN, has a part in.
    pub fn of_row(&self, row: &[f64]) -> Vec<f64> {
        let deviations = &ArrayView1::from(row) - &self.centre;
        if deviations.iter().all(|value| !value.is_nan()) {
            return self.directions.dot(&deviations).to_vec();
        }
        let along = |axis: ArrayView1<f64>| {
            axis.iter()
                .zip(&deviations)
                .filter(|(part, _)| **part != 0.0)
                .map(|(part, value)| part * value)
                .sum()
        };
        self.directions.outer_iter().map(along).collect()
    }

    /// The components of a mixture, projected on the axes.
    pub fn of_mixture(&self, mixture: &GaussianMixture) -> Vec<Marginal> {
        let parts = mixture.components().iter().zip(mixture.weights());
        parts
            .map(|(component, &weight)| {
                let root = self.directions.dot(&component.covariance().lower_matrix());
                let covariance = root.dot(&root.t());
                Marginal {
                    weight,
                    mean: self.of_row(component.mean()),
                    covariance: (0..covariance.nrows())
                        .map(|i| covariance.row(i).iter().take(i + 1).copied().collect())
                        .collect(),
                }
            })
            .collect()
    }
}

/// Mean, standard deviations and correlation matrix of the whole mixture.
pub(super) fn whole_mixture(mixture: &GaussianMixture) -> (Array1<f64>, Array1<f64>, Array2<f64>) {
    let parts = || mixture.components().iter().zip(mixture.weights());
    let mut mean = Array1::zeros(mixture.dim());
    for (component, &weight) in parts() {
        mean.scaled_add(weight, &ArrayView1::from(component.mean()));
    }
    let mut variance = Array1::<f64>::zeros(mixture.dim());
    for (component, &weight) in parts() {
        let away = &ArrayView1::from(component.mean()) - &mean;
        variance.scaled_add(weight, &(&away * &away + Array1::from(component.covariance().diagonal())));
    }
    // A variance of zero, or one that overflows, gives no unit.
    let units = variance.mapv(|v| if v.is_normal() { v.sqrt() } else { 1.0 });
    let mut correlation = Array2::zeros((mixture.dim(), mixture.dim()));
    for (component, &weight) in parts() {
        let away = (&ArrayView1::from(component.mean()) - &mean) / &units;
        let away = away.insert_axis(Axis(1));
        let mut own = away.dot(&away.t());
        match component.covariance().roots() {
            Some(roots) => {
                let columns = own.diag_mut().into_iter().zip(roots).zip(&units);
                columns.for_each(|((to, root), unit)| *to += (root / unit).powi(2));
            }
            None => {
                let root = component.covariance().lower_matrix() / units.view().insert_axis(Axis(1));
                own += &root.dot(&root.t());
            }
        }
        correlation.scaled_add(weight, &own);
    }
    (mean, units, correlation)
}

/// The eigenvectors of the largest eigenvalues of a symmetric matrix, as rows, by at most `steps` steps of orthogonal
/// iteration. Directions with nearly equal eigenvalues are not separated.
pub(crate) fn leading_directions(matrix: &Array2<f64>, count: usize, steps: usize) -> Array2<f64> {
    let mut values = vec![0.0; count * matrix.nrows()];
    fill_standard_normal(&mut ChaCha8Rng::seed_from_u64(0), &mut values);
    let mut found =
        Array2::from_shape_vec((count, matrix.nrows()), values).expect("values has count × columns numbers");
    make_orthonormal(&mut found);
    for _ in 0..steps {
        let mut next = found.dot(matrix);
        make_orthonormal(&mut next);
        let change = (&next - &found).iter().fold(0.0f64, |most, value| most.max(value.abs()));
        found = next;
        if change < 1e-9 {
            break;
        }
    }
    for mut row in found.rows_mut() {
        let largest = row.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(1.0);
        // The sign of an eigenvector is arbitrary: the largest element becomes positive.
        row *= if largest < 0.0 { -1.0 } else { 1.0 };
    }
    found
}

fn make_orthonormal(rows: &mut Array2<f64>) {
    for i in 0..rows.nrows() {
        let (before, mut rest) = rows.view_mut().split_at(Axis(0), i);
        let mut row = rest.row_mut(0);
        // A second pass removes the rounding errors of the first.
        for _ in 0..2 {
            for other in before.rows() {
                let along = row.dot(&other);
                row.scaled_add(-along, &other);
            }
        }
        let length = row.dot(&row).sqrt();
        if length > 0.0 {
            row /= length;
        }
    }
}
