//! The M step for tied, diagonal and spherical covariances, and their learned prior.
//!
//! A variance of component `j` has an inverse Gamma prior worth `s` rows with the variance that all components have together; a
//! tied covariance has an inverse Wishart prior worth `s` rows with its own variances and no correlations. As with full
//! covariances, `s` maximises the evidence.

use ndarray::{Array1, Array2};

use super::covariance_prior::{
    MAX_ROWS, MIN_ROWS, MIN_VARIANCE, PriorStrength, Strength, covariance_evidence, most_evident,
    most_evident_by,
};
use super::m_step::{EMPTY, Part, Parts, gaussian_with_ridge, mixture_of_counts};
use crate::dist::{Gaussian, GaussianMixture};
use crate::linalg::{CovarianceType, Factor, symmetric_eigenvalues};

/// With more rows for each column, the prior of a tied covariance does not matter.
const ROWS_PER_COLUMN: f64 = 20.0;
/// The most columns that the strength of the prior of a tied covariance is learned from.
const COLUMNS_OF_STRENGTH: usize = 300;

impl Strength {
    /// The strength of the largest evidence, or a given one.
    pub(super) fn learn_constrained(parts: &Parts, wanted: PriorStrength) -> Self {
        let rows = match wanted {
            PriorStrength::Rows(rows) => rows,
            PriorStrength::Auto => learned_rows(parts),
        };
        Strength::given(rows)
    }
}

fn learned_rows(parts: &Parts) -> f64 {
    let (dim, all) = (parts.dim(), parts.rows());
    if let Some(scatter) = &parts.shared {
        if all > ROWS_PER_COLUMN * dim as f64 {
            return MIN_ROWS;
        }
        // How much correlations are to shrink hardly depends on how many columns show it.
        let columns: Vec<usize> = (0..dim).step_by(dim.div_ceil(COLUMNS_OF_STRENGTH)).collect();
        let root = |l: usize| scatter[(l, l)].max(MIN_VARIANCE * all).sqrt();
        let roots: Vec<f64> = columns.iter().map(|&l| root(l)).collect();
        let mut correlations = Array2::from_shape_fn((columns.len(), columns.len()), |(i, j)| {
            scatter[(columns[i], columns[j])] / (roots[i] * roots[j])
        });
        correlations.diag_mut().fill(1.0);
        return most_evident(&[(all, symmetric_eigenvalues(correlations))], columns.len(), MAX_ROWS);
    }
    if parts.filled().nth(1).is_none() {
        // The prior would be centred on the component's own variances.
        return MIN_ROWS;
    }
    let pooled = variances(parts, &pooled_squares(parts), parts.filled().map(|(_, part)| part.count).sum());
    // A spherical variance is that of all columns, so that a row counts once for each.
    let values = if parts.kind == CovarianceType::Spherical { dim as f64 } else { 1.0 };
    let spectrum = |(_, part): (usize, &Part)| {
        let own = variances(parts, &part.squares, part.count);
        let relative = own.iter().zip(&pooled).map(|(own, pooled)| own / pooled).collect();
        (values * part.count * parts.information / part.spread, relative)
    };
    let spectra: Vec<(f64, Vec<f64>)> = parts.filled().map(spectrum).collect();
    let evidence = |strength: f64| -> f64 {
        let strength = values * strength;
        let of_part = |(count, relative): &(f64, Vec<f64>)| -> f64 {
            let spread: f64 = relative.iter().map(|value| (strength + count * value).ln()).sum();
            let same = covariance_evidence(strength, *count, strength.ln(), 0.0, 1);
            relative.len() as f64 * same - 0.5 * (2.0 + strength + count) * spread
        };
        spectra.iter().map(of_part).sum()
    };
    most_evident_by(evidence, MAX_ROWS.min(all.max(1.0)))
}

/// The squared deviations of all rows from the means of their components, by columns.
fn pooled_squares(parts: &Parts) -> Vec<f64> {
    let mut pooled = vec![0.0; parts.dim()];
    for (_, part) in parts.filled() {
        pooled.iter_mut().zip(&part.squares).for_each(|(sum, square)| *sum += square);
    }
    pooled
}

/// The variances of rows with these squared deviations: one for each column, or a single one.
fn variances(parts: &Parts, squares: &[f64], count: f64) -> Vec<f64> {
    let variance = |square: f64| (square / count).max(MIN_VARIANCE);
    match parts.kind {
        CovarianceType::Spherical => vec![variance(squares.iter().sum::<f64>() / squares.len() as f64)],
        _ => squares.iter().map(|square| variance(*square)).collect(),
    }
}

/// What the centre of the prior adds to the scatter of one component, for each row that it is worth.
pub(super) fn centre(parts: &Parts) -> Vec<f64> {
    let count: f64 = parts.filled().map(|(_, part)| part.count).sum();
    let mut centre = variances(parts, &pooled_squares(parts), count);
    if let (CovarianceType::Spherical, Some(&value)) = (parts.kind, centre.first()) {
        centre.resize(parts.dim(), value);
    }
    centre
}

/// [`maximise`](super::m_step::maximise) for these covariances.
pub(super) fn maximise_constrained(
    parts: Parts,
    old: &GaussianMixture,
    strength: Option<Strength>,
    ridge: f64,
) -> GaussianMixture {
    let rows = strength.map_or(0.0, |strength| strength.rows / parts.information);
    let (kind, centre) = (parts.kind, centre(&parts));
    let counts: Vec<f64> = parts.parts.iter().map(|part| part.count.max(EMPTY)).collect();
    let shared = parts.shared.map(|scatter| {
        let count: f64 = counts.iter().sum();
        let prior = Array2::from_diag(&Array1::from(centre.iter().map(|v| rows * v).collect::<Vec<f64>>()));
        let covariance = (scatter + prior) / (count + rows);
        gaussian_with_ridge(vec![0.0; centre.len()], covariance, ridge).covariance().clone()
    });
    let component = |(part, old): (Part, &Gaussian)| {
        let Part { count, spread, mean, squares, .. } = part;
        let factor = match &shared {
            Some(shared) => shared.clone(),
            None => {
                let squares = if count < EMPTY { old.covariance().diagonal() } else { squares };
                let count = if count < EMPTY { 1.0 } else { count };
                let rows = rows * spread;
                let terms = squares.iter().zip(&centre);
                let variances =
                    terms.map(|(square, centre)| (square + rows * centre) / (count + rows) + ridge);
                diagonal_factor(kind, variances.map(|value| value.max(f64::MIN_POSITIVE)))
            }
        };
        Gaussian::new(mean, factor).expect("finite rows have finite means")
    };
    let components = parts.parts.into_iter().zip(old.components()).map(component).collect();
    mixture_of_counts(counts, components)
}

/// The diagonal matrix with these variances, or with their mean if it is spherical.
pub(super) fn diagonal_factor(kind: CovarianceType, variances: impl Iterator<Item = f64>) -> Factor {
    let variances: Vec<f64> = variances.collect();
    match kind {
        CovarianceType::Spherical => {
            let dim = variances.len();
            Factor::spherical(dim, variances.iter().sum::<f64>() / dim as f64)
        }
        _ => Factor::from_variances(&variances),
    }
    .expect("variances are positive and finite")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::structure::e_step::sweep;
    use crate::learn::structure::m_step::maximise;
    use crate::linalg::blocks::RowBlocks;

    fn rows(count: usize, dim: usize) -> Array2<f64> {
        let wave = |i: usize, j: usize| ((i * (31 + 16 * j)) as f64 * 0.37).sin();
        Array2::from_shape_fn((count, dim), |(i, j)| {
            40.0 + 3.0 * (i % 3) as f64 * (j % 2) as f64 + wave(i, j) * (1 + j) as f64 + 0.4 * wave(i, 0)
        })
    }

    fn start(k: usize, dim: usize) -> GaussianMixture {
        let gaussian = |j: usize| {
            let mean = (0..dim).map(|l| 40.0 + (j * (l + 1)) as f64).collect();
            let variances: Vec<f64> = (0..dim).map(|l| 2.0 + ((j + l) % 3) as f64).collect();
            Gaussian::new(mean, Factor::from_variances(&variances).unwrap()).unwrap()
        };
        GaussianMixture::new(vec![1.0 / k as f64; k], (0..k).map(gaussian).collect()).unwrap()
    }

    /// scikit-learn's formulas, written out: `_estimate_gaussian_parameters` with `reg_covar`.
    fn reference(
        rows: &Array2<f64>,
        weights: &[f64],
        old: &GaussianMixture,
        kind: CovarianceType,
        ridge: f64,
    ) -> (Vec<f64>, Array2<f64>, Vec<Array2<f64>>) {
        let (k, dim) = (old.k(), old.dim());
        let responsibilities = old.predict_proba(rows.view()).unwrap();
        let r = |i: usize, j: usize| weights[i] * responsibilities[(i, j)];
        let all = 0..rows.nrows();
        let count = |j: usize| all.clone().map(|i| r(i, j)).sum::<f64>();
        let mean = |j: usize, l: usize| all.clone().map(|i| r(i, j) * rows[(i, l)]).sum::<f64>() / count(j);
        let means = Array2::from_shape_fn((k, dim), |(j, l)| mean(j, l));
        let full = |j: usize| {
            Array2::from_shape_fn((dim, dim), |(a, b)| {
                let term =
                    |i: usize| r(i, j) * (rows[(i, a)] - means[(j, a)]) * (rows[(i, b)] - means[(j, b)]);
                all.clone().map(term).sum::<f64>() / count(j)
            })
        };
        let total: f64 = weights.iter().sum();
        let unit = Array2::<f64>::eye(dim);
        let covariance = |j: usize| match kind {
            CovarianceType::Full => full(j) + ridge * &unit,
            CovarianceType::Tied => {
                let pooled = (0..k).map(|j| full(j) * (count(j) / total)).reduce(|a, b| a + b).unwrap();
                pooled + ridge * &unit
            }
            CovarianceType::Diag => Array2::from_diag(&full(j).diag()) + ridge * &unit,
            CovarianceType::Spherical => (full(j).diag().mean().unwrap() + ridge) * &unit,
        };
        let covariances = (0..k).map(covariance).collect();
        ((0..k).map(|j| count(j) / total).collect(), means.clone(), covariances)
    }

    #[test]
    fn a_step_of_em_has_scikit_learns_formulas() {
        for (dim, k) in [(1, 2), (2, 3), (5, 4), (40, 2)] {
            let (rows, old, ridge) = (rows(333, dim), start(k, dim), 1e-3);
            let weights: Vec<f64> = (0..333).map(|i| 0.5 + (i % 4) as f64).collect();
            let blocks = RowBlocks::new(rows.view()).with_weights(|i| weights[i]);
            for kind in CovarianceType::ALL {
                let parts = Parts::new(sweep(&blocks, &old, kind, None), &old);
                let found = maximise(parts, &old, None, ridge);
                let (shares, means, covariances) = reference(&rows, &weights, &old, kind, ridge);
                let close = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + b.abs());
                assert!(found.weights().iter().zip(&shares).all(|(a, b)| close(*a, *b)), "{kind:?} {dim}");
                assert!(found.means().iter().zip(&means).all(|(a, b)| close(*a, *b)), "{kind:?} {dim}");
                let pairs = found.covariances();
                let expected = covariances.iter().flatten();
                assert!(pairs.iter().zip(expected).all(|(a, b)| close(*a, *b)), "{kind:?} {dim}");
                assert_eq!(found.covariance_type(), kind);
                // The next sweep scores with the form of the factors.
                let scored = found.log_densities(rows.view());
                for (row, scored) in rows.outer_iter().zip(&scored).step_by(50) {
                    assert!(close(*scored, found.log_density(&row.to_vec())), "{kind:?} {dim}");
                }
            }
        }
    }

    /// A gap is filled by its conditional mean, and its conditional variance is added: for a diagonal covariance that is the mean
    /// and the variance of the component.
    #[test]
    fn a_step_of_em_fills_gaps() {
        let (dim, k) = (3, 2);
        let (mut rows, old) = (rows(200, dim), start(k, dim));
        rows.iter_mut().enumerate().filter(|(i, _)| i % 7 == 0).for_each(|(_, value)| *value = f64::NAN);
        let r = old.predict_proba(rows.view()).unwrap();
        for kind in CovarianceType::ALL {
            let found = maximise(
                Parts::new(sweep(&RowBlocks::new(rows.view()), &old, kind, None), &old),
                &old,
                None,
                0.0,
            );
            for j in 0..k {
                let own = &old.components()[j];
                let count: f64 = r.column(j).sum();
                let filled = |i: usize, l: usize| match rows[(i, l)] {
                    value if value.is_nan() => own.mean()[l],
                    value => value,
                };
                for l in 0..dim {
                    let mean = (0..200).map(|i| r[(i, j)] * filled(i, l)).sum::<f64>() / count;
                    assert!((found.means()[(j, l)] - mean).abs() < 1e-10, "{kind:?}");
                    let square = |i: usize| {
                        let missing = f64::from(u8::from(rows[(i, l)].is_nan()));
                        (filled(i, l) - mean).powi(2) + missing * own.covariance().diagonal()[l]
                    };
                    let variance = (0..200).map(|i| r[(i, j)] * square(i)).sum::<f64>() / count;
                    if matches!(kind, CovarianceType::Full | CovarianceType::Diag) {
                        assert!((found.covariances()[(j, l, l)] - variance).abs() < 1e-10, "{kind:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_prior_is_strong_if_variances_are_alike_and_weak_if_they_are_not() {
        let parts = |variances: [[f64; 3]; 4], kind| Parts {
            parts: variances
                .iter()
                .map(|own| Part {
                    count: 200.0,
                    spread: 1.0,
                    cost: 1.0,
                    mean: vec![0.0; 3],
                    squares: own.iter().map(|value| 200.0 * value).collect(),
                    scatter: Array2::zeros((0, 0)),
                })
                .collect(),
            shared: None,
            information: 1.0,
            unit: 1.0,
            prior_unit: 1.0,
            kind,
        };
        let alike = [[1.0, 4.0, 9.0], [1.05, 3.9, 9.1], [0.95, 4.1, 8.8], [1.0, 4.0, 9.0]];
        let different = [[1.0, 4.0, 9.0], [10.0, 0.4, 1.0], [0.1, 40.0, 90.0], [5.0, 1.0, 2.0]];
        for kind in [CovarianceType::Diag, CovarianceType::Spherical] {
            let strength = |variances| Strength::learn(&parts(variances, kind), PriorStrength::Auto).rows;
            assert!(strength(alike) > 50.0 && strength(different) < 5.0, "{kind:?}");
        }
    }
}
