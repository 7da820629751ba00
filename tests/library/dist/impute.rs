//! Missing values that are filled from the others.

use gmm_bmm::GaussianMixture;
use gmm_bmm::dist::{Factor, Gaussian, Mixture};
use ndarray::{Array1, Array2, Axis, array};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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
        let root = Array2::from_shape_fn((dim, dim), |(i, j)| uniform(1.0) + if i == j { 1.5 } else { 0.0 });
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
    let part =
        |m: &Array2<f64>, rows: &[usize], columns: &[usize]| m.select(Axis(0), rows).select(Axis(1), columns);
    let (mut total, n) = (0.0, missing.len());
    let (mut mean, mut square) = (Array1::zeros(n), Array2::<f64>::zeros((n, n)));
    for (component, weight) in mixture.components().iter().zip(mixture.weights()) {
        let (covariance, mu) = (component.covariance().matrix(), Array1::from(component.mean().to_vec()));
        let v = Array1::from_iter(observed.iter().map(|&i| row[i] - mu[i]));
        let (precision, determinant) = inverse(&part(&covariance, &observed, &observed));
        let density = weight * (-0.5 * v.dot(&precision.dot(&v))).exp() / determinant.sqrt();
        let gain = part(&covariance, &missing, &observed).dot(&precision);
        let expected = mu.select(Axis(0), &missing) + gain.dot(&v);
        let rest = part(&covariance, &missing, &missing) - gain.dot(&part(&covariance, &observed, &missing));
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
