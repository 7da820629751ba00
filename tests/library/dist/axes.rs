//! Columns and principal axes of a mixture.

use gmm_bmm::GaussianMixture;
use gmm_bmm::dist::{Axes, Factor, Gaussian};
use ndarray::array;

fn mixture() -> GaussianMixture {
    let gaussian = |mean: [f64; 3]| {
        let covariance = array![[4.0, 2.0, 0.0], [2.0, 5.0, 1.0], [0.0, 1.0, 3.0]];
        Gaussian::new(mean.to_vec(), Factor::from_matrix(covariance.view()).unwrap()).unwrap()
    };
    GaussianMixture::new(vec![0.25, 0.75], vec![gaussian([0.0, 1.0, 2.0]), gaussian([9.0, 1.0, -2.0])])
        .unwrap()
}

#[test]
fn columns_have_their_own_means_and_covariances() {
    let names = ["a", "b", "c"].map(String::from);
    let axes = Axes::columns(&names, &[2, 1]);
    assert_eq!(axes.names(), ["c", "b"]);
    assert_eq!(axes.of_row(&[7.0, 8.0, 9.0]), [9.0, 8.0]);
    let parts = axes.of_mixture(&mixture());
    assert_eq!((parts[1].weight, parts[1].mean.as_slice()), (0.75, [-2.0, 1.0].as_slice()));
    assert!((parts[0].deviation(0) - 3f64.sqrt()).abs() < 1e-12);
    assert!((parts[0].correlation(0, 1) - 1.0 / 15f64.sqrt()).abs() < 1e-12);
    assert!(parts[0].is_sound(2) && !parts[0].is_sound(3));
    assert_eq!(Axes::leading(&names).names(), names);
}

#[test]
fn principal_axes_are_uncorrelated_over_the_whole_mixture_and_the_longest_comes_first() {
    let mixture = mixture();
    let axes = Axes::principal(&mixture);
    let parts = axes.of_mixture(&mixture);
    let whole = |i: usize, j: usize| -> f64 {
        parts.iter().map(|p| p.weight * (p.covariance[i.max(j)][i.min(j)] + p.mean[i] * p.mean[j])).sum()
    };
    for i in 0..3 {
        for j in 0..i {
            assert!(whole(i, j).abs() < 1e-6, "{i} {j}: {}", whole(i, j));
        }
    }
    assert!((whole(0, 0) + whole(1, 1) + whole(2, 2) - 3.0).abs() < 1e-9, "each column adds its own");
    assert!(whole(0, 0) >= whole(1, 1) && whole(1, 1) >= whole(2, 2));
    assert!(axes.names()[0].starts_with("PC 1 ("), "{:?}", axes.names());
}
