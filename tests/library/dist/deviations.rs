//! How far a row's columns are from what the others predict.

use gmm_bmm::GaussianMixture;
use gmm_bmm::dist::Deviations;
use ndarray::{Axis, array};

fn two() -> GaussianMixture {
    let covariances = array![
        [[4.0, 1.5, -0.5], [1.5, 2.0, 0.3], [-0.5, 0.3, 1.0]],
        [[1.0, 0.2, 0.1], [0.2, 0.5, -0.3], [0.1, -0.3, 2.0]]
    ];
    let means = array![[1.0, -2.0, 3.0], [4.0, 0.0, 1.0]];
    GaussianMixture::from_arrays(array![0.7, 0.3].view(), means.view(), covariances.view()).unwrap()
}

/// The mixture of some columns.
fn part(mixture: &GaussianMixture, columns: &[usize]) -> GaussianMixture {
    let means = mixture.means().select(Axis(1), columns);
    let covariances = mixture.covariances().select(Axis(1), columns).select(Axis(2), columns);
    let weights = ndarray::Array1::from(mixture.weights().to_vec());
    GaussianMixture::from_arrays(weights.view(), means.view(), covariances.view()).unwrap()
}

#[test]
fn a_deviation_has_the_density_of_the_column_given_the_others() {
    let mixture = two();
    for row in [[2.5, -4.0, 5.0], [3.0, -1.0, 8.0], [-6.0, 0.0, 1.0]] {
        let found = Deviations::new(&mixture).of(&row);
        for (j, found) in found.into_iter().enumerate() {
            let others = [(j + 1) % 3, (j + 2) % 3];
            let without = part(&mixture, &others).log_density(&others.map(|other| row[other]));
            let one = part(&mixture, &[j]);
            let parts = || (0..2).map(|n| ([0.7, 0.3][n], one.means()[(n, 0)], one.covariances()[(n, 0, 0)]));
            let mean: f64 = parts().map(|(weight, mean, _)| weight * mean).sum();
            let square =
                |(weight, own, variance): (f64, f64, f64)| weight * (variance + (own - mean).powi(2));
            let unit = parts().map(square).sum::<f64>().sqrt();
            let density = mixture.log_density(&row) - without + unit.ln();
            let expected = (-2.0 * density - std::f64::consts::TAU.ln()).max(0.0).sqrt();
            assert!((found.abs() - expected).abs() < 1e-9, "{j}: {found} {expected}");
        }
    }
}

#[test]
fn a_column_without_a_value_is_left_out() {
    let found = Deviations::new(&two()).of(&[2.0, f64::NAN, -1.0]);
    let expected = Deviations::new(&part(&two(), &[0, 2])).of(&[2.0, -1.0]);
    assert!(found[1].is_nan() && (found[0] - expected[0]).abs() < 1e-12);
    assert!((found[2] - expected[1]).abs() < 1e-12);
}

/// The likeliest component of a row between two clusters is not the one that it came from.
#[test]
fn the_moved_column_is_named_under_the_whole_mixture() {
    let narrow = [[1.0, 0.0], [0.0, 1.0]];
    let mixture = GaussianMixture::from_arrays(
        array![0.5, 0.5].view(),
        array![[0.0, 0.0], [8.0, 8.0]].view(),
        ndarray::arr3(&[narrow, narrow]).view(),
    )
    .unwrap();
    // The first column is that of the second cluster, the other one is between both.
    let found = mixture.explain(array![[8.0, 3.5], [3.5, 0.0]].view());
    assert!(found[(0, 1)].abs() > found[(0, 0)].abs() && found[(1, 0)].abs() > found[(1, 1)].abs());
}
