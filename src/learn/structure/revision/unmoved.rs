//! Components that a revision leaves as they are.

use crate::dist::{Gaussian, GaussianMixture};
use crate::learn::structure::e_step::Assigned;
use crate::linalg::blocks::RowBlocks;
use crate::linalg::{CovarianceType, lower_inverse};

/// For each component of `after`, its index in `before` if it is about the same: less than a tenth of its rows have changed
/// component, and the difference is within the estimation error of its number of rows. `origins` has the candidates.
pub(super) fn unmoved(
    rows: &RowBlocks,
    (before, after): (&GaussianMixture, &GaussianMixture),
    origins: &[Option<usize>],
    (noise, kind): (Option<f64>, CovarianceType),
) -> Vec<Option<usize>> {
    let (old, new) = (Assigned::new(rows, before, noise), Assigned::new(rows, after, noise));
    let is_unmoved = |j: usize, origin: usize| {
        let (mut moved, mut count, mut squares) = (0.0, 0.0, 0.0);
        for i in 0..rows.blocks() {
            let both = old.of_block(i, origin).iter().zip(new.of_block(i, j)).zip(rows.weights(i));
            for ((old, new), weight) in both {
                moved += weight * (old - new).abs();
                count += weight * old;
                squares += weight * weight * old;
            }
        }
        // Rows of weight w are no more accurate than as many rows of weight 1, so this is Kish's effective number of rows.
        let effective = if squares > 0.0 { count * count / squares } else { 0.0 };
        let dim = rows.dim() as f64;
        let chance = kind.of_component(dim) - 1.0;
        let difference = divergence(&before.components()[origin], &after.components()[j]);
        moved < 0.1 * count && effective * difference < chance
    };
    let keep = |(j, &origin): (usize, &Option<usize>)| origin.filter(|&origin| is_unmoved(j, origin));
    origins.iter().enumerate().map(keep).collect()
}

/// The Kullback-Leibler divergence of `b` from `a`.
fn divergence(a: &Gaussian, b: &Gaussian) -> f64 {
    if a.covariance().kind().is_diagonal() && b.covariance().kind().is_diagonal() {
        let (own, other) = (a.covariance().diagonal(), b.covariance().diagonal());
        let columns = own.iter().zip(&other).zip(a.mean().iter().zip(b.mean()));
        let term = |((own, other), (mean, centre)): ((&f64, &f64), (&f64, &f64))| {
            (own + (mean - centre).powi(2)) / other - 1.0 - (own / other).ln()
        };
        return 0.5 * columns.map(term).sum::<f64>();
    }
    let inverse = lower_inverse(b.covariance().lower_matrix().view());
    let away: Vec<f64> = a.mean().iter().zip(b.mean()).map(|(a, b)| a - b).collect();
    let squares = |values: ndarray::ArrayView1<f64>| values.iter().map(|value| value * value).sum::<f64>();
    let trace: f64 = inverse.dot(&a.covariance().lower_matrix()).rows().into_iter().map(squares).sum();
    let distance = squares(inverse.dot(&ndarray::Array1::from(away)).view());
    0.5 * (trace - a.mean().len() as f64 + distance + b.covariance().log_det() - a.covariance().log_det())
}
