//! Rows with gaps: every step against a plain version of the same update with explicit inverses, and what must hold of passes.

use std::sync::atomic::AtomicBool;

use gmm_bmm::batch::{EmSettings, expectation_maximisation, fit_em};
use gmm_bmm::dist::{Gaussian, GaussianMixture, NormalWishart, Posterior, StudentMixture};
use gmm_bmm::findings::Health;
use gmm_bmm::internals::learn::LearnerState;
use gmm_bmm::internals::learn::Scalars;
use gmm_bmm::internals::linalg::Factor;
use gmm_bmm::internals::special::log_gamma_ratio;
use gmm_bmm::settings::{Algorithm, Moments, ObmmSettings, OemSettings};
use gmm_bmm::{FitSettings, Model, OnlineFit};
use ndarray::{Array1, Array2, ArrayView1, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::*;

const OBMM: Algorithm = Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 });

/// The rows, of which this fraction of the values is missing. Each row keeps a value.
fn with_gaps(rows: &Array2<f64>, fraction: f64, seed: u64) -> Array2<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut rows = rows.clone();
    for mut row in rows.outer_iter_mut() {
        let kept = random.random_range(0..row.len());
        for (j, value) in row.iter_mut().enumerate() {
            if random.random::<f64>() < fraction && j != kept {
                *value = f64::NAN;
            }
        }
    }
    rows
}

/// The inverse and the determinant of a matrix, by elimination with pivots.
fn inverse(matrix: &Array2<f64>) -> (Array2<f64>, f64) {
    let n = matrix.nrows();
    let (mut left, mut right, mut det) = (matrix.clone(), Array2::<f64>::eye(n), 1.0);
    for i in 0..n {
        let pivot = (i..n).max_by(|&a, &b| left[(a, i)].abs().total_cmp(&left[(b, i)].abs())).unwrap();
        if pivot != i {
            det = -det;
            for j in 0..n {
                left.swap((i, j), (pivot, j));
                right.swap((i, j), (pivot, j));
            }
        }
        let by = left[(i, i)];
        det *= by;
        for j in 0..n {
            left[(i, j)] /= by;
            right[(i, j)] /= by;
        }
        for r in (0..n).filter(|&r| r != i) {
            let factor = left[(r, i)];
            for j in 0..n {
                left[(r, j)] -= factor * left[(i, j)];
                right[(r, j)] -= factor * right[(i, j)];
            }
        }
    }
    (right, det)
}

/// A row as a component with this mean and matrix sees it.
struct Seen {
    /// The completed deviation.
    v: Array1<f64>,
    /// The matrix of the missing columns given the observed ones, in its place.
    conditional: Array2<f64>,
    q: f64,
    det: f64,
    observed: usize,
}

fn see(x: ArrayView1<f64>, mean: &[f64], matrix: &Array2<f64>) -> Seen {
    let (o, m): (Vec<usize>, Vec<usize>) = (0..x.len()).partition(|&i| !x[i].is_nan());
    let block =
        |a: &[usize], b: &[usize]| Array2::from_shape_fn((a.len(), b.len()), |(i, j)| matrix[(a[i], b[j])]);
    let (inner, det) = inverse(&block(&o, &o));
    let v_o: Array1<f64> = o.iter().map(|&i| x[i] - mean[i]).collect();
    let gain = block(&m, &o).dot(&inner);
    let (completed, rest) = (gain.dot(&v_o), block(&m, &m) - gain.dot(&block(&o, &m)));
    let mut v = Array1::zeros(x.len());
    o.iter().zip(&v_o).for_each(|(&i, value)| v[i] = *value);
    m.iter().zip(&completed).for_each(|(&i, value)| v[i] = *value);
    let mut conditional = Array2::zeros(matrix.dim());
    for (a, &i) in m.iter().enumerate() {
        m.iter().enumerate().for_each(|(b, &j)| conditional[(i, j)] = rest[(a, b)]);
    }
    Seen { v, conditional, q: v_o.dot(&inner.dot(&v_o)), det, observed: o.len() }
}

fn outer(v: &Array1<f64>) -> Array2<f64> {
    let column = v.view().insert_axis(Axis(1));
    column.dot(&column.t())
}

fn largest(matrix: &Array2<f64>) -> f64 {
    matrix.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

fn posterior(dim: usize, k: usize) -> Posterior {
    let component = |j: usize| {
        let mean = (0..dim).map(|i| 3.0 * ((i + 2 * j) as f64).sin()).collect();
        let b = Array2::from_shape_fn((dim, dim), |(i, l)| ((i * 5 + l * 3 + j) as f64).cos());
        let psi = 4.0 * (b.dot(&b.t()) + 0.5 * Array2::<f64>::eye(dim));
        let psi = Factor::from_matrix(psi.view()).unwrap();
        NormalWishart::new(mean, 2.0 + j as f64, dim as f64 + 6.0 + j as f64, psi).unwrap()
    };
    let weights = gmm_bmm::dist::Dirichlet::new((0..k).map(|j| 1.0 + j as f64).collect()).unwrap();
    Posterior::new(weights, (0..k).map(component).collect()).unwrap()
}

/// `m`, `κ`, `ν` and `Ψ` of a component.
type Plain = (Vec<f64>, f64, f64, Array2<f64>);

/// Both learners, with several K and widths (interleaved matrices and others), against the same formulas.
#[test]
fn every_step_of_obmm_equals_a_plain_version() {
    for (dim, k, rows) in [(1, 2, 20), (2, 1, 60), (4, 3, 120), (7, 6, 60), (20, 2, 25)] {
        let complete = 2.0 * normals(rows, dim, 3);
        for fraction in [0.1, 0.5] {
            let rows = with_gaps(&complete, fraction, 5);
            let start = posterior(dim, k);
            let d = dim as f64;
            let state = LearnerState::Bayes {
                prior: start.clone(),
                posterior: start.clone(),
                matrix_states: Vec::new(),
            };
            let mut learner = OBMM.learner(state, vec![1e-300; dim], Health::default()).unwrap();
            let mut a = start.weights().concentrations().to_vec();
            let mut plain: Vec<Plain> = start
                .components()
                .iter()
                .map(|c| (c.mean().to_vec(), c.kappa(), c.nu(), c.psi().matrix()))
                .collect();
            for row in rows.outer_iter() {
                let seen: Vec<Seen> = plain.iter().map(|(mean, _, _, psi)| see(row, mean, psi)).collect();
                let log_density = |(seen, (_, kappa, nu, _)): (&Seen, &Plain)| {
                    let (o, b) = (seen.observed as f64, kappa / (kappa + 1.0));
                    let degrees = nu - (d - o);
                    log_gamma_ratio(0.5 * (degrees + 1.0 - o), seen.observed)
                        + 0.5 * (o * (b / std::f64::consts::PI).ln() - seen.det.ln())
                        - 0.5 * (degrees + 1.0) * (b * seen.q).ln_1p()
                };
                let total: f64 = a.iter().sum();
                let terms: Vec<f64> = seen
                    .iter()
                    .zip(&plain)
                    .map(log_density)
                    .zip(&a)
                    .map(|(l, a)| l.exp() * a / total)
                    .collect();
                let evidence: f64 = terms.iter().sum();
                let found = learner.observe(&row.to_vec()).unwrap();
                assert_close(
                    found,
                    evidence.ln(),
                    1e-9 * (1.0 + evidence.ln().abs()),
                    &format!("evidence, d {dim}, K {k}"),
                );
                for (j, (mean, kappa, nu, psi)) in plain.iter_mut().enumerate() {
                    let r = terms[j] / evidence;
                    a[j] += r;
                    let Seen { v, conditional, q, .. } = &seen[j];
                    let new = Scalars { dim, kappa: *kappa, nu: *nu, q: *q, r }.whitened();
                    let expected_covariance = conditional / (*nu - d - 1.0).max(1.0);
                    mean.iter_mut().zip(v).for_each(|(mean, v)| *mean += new.step * v);
                    *psi = new.stretch * (&*psi + new.tau * outer(v) + r * expected_covariance);
                    (*kappa, *nu) = (new.kappa, new.nu);
                }
            }
            let learned = learner.state().posterior().unwrap().clone();
            for (found, (mean, kappa, nu, psi)) in learned.components().iter().zip(&plain) {
                assert_close(found.kappa() / kappa, 1.0, 1e-9, "kappa");
                assert_close(found.nu() / nu, 1.0, 1e-9, "nu");
                for (found, expected) in found.mean().iter().zip(mean) {
                    assert_close(*found, *expected, 1e-9 * (1.0 + expected.abs()), "mean");
                }
                let difference = largest(&(found.psi().matrix() - psi)) / largest(psi);
                assert!(difference < 1e-9, "d {dim}, K {k}: {difference}");
            }
        }
    }
}

#[test]
fn every_step_of_online_em_equals_a_plain_version() {
    for (dim, k) in [(1, 2), (3, 2), (6, 5), (19, 2)] {
        let rows = with_gaps(&(1.5 * normals(90, dim, 4)), 0.3, 6);
        let start = posterior(dim, k).point_estimate();
        let settings = OemSettings::default();
        let state = LearnerState::Point {
            start: start.clone(),
            start_rows: 50.0,
            mixture: start.clone(),
            rows: 0.0,
            matrix_states: Vec::new(),
        };
        let mut learner =
            Algorithm::Oem(settings).learner(state, vec![1e-300; dim], Health::default()).unwrap();
        let (mut weights, mut means) = (start.weights().to_vec(), Vec::new());
        let mut matrices: Vec<Array2<f64>> = Vec::new();
        for component in start.components() {
            means.push(component.mean().to_vec());
            matrices.push(component.covariance().matrix());
        }
        let frozen = (weights.clone(), means.clone(), matrices.clone());
        let gathering = (2 * dim).max(20);
        for (n, row) in rows.outer_iter().enumerate() {
            let (w, m, s) = if n < gathering {
                frozen.clone()
            } else {
                (weights.clone(), means.clone(), matrices.clone())
            };
            let term = |j: usize| {
                let seen = see(row, &m[j], &s[j]);
                let constant = seen.observed as f64 * std::f64::consts::TAU.ln() + seen.det.ln();
                w[j] * (-0.5 * (seen.q + constant)).exp()
            };
            let terms: Vec<f64> = (0..k).map(term).collect();
            let evidence: f64 = terms.iter().sum();
            let found = learner.observe(&row.to_vec()).unwrap();
            assert_close(found, evidence.ln(), 1e-9 * (1.0 + evidence.ln().abs()), "evidence");
            let gamma = ((n + 50 + 1) as f64 + 3.0).powf(-settings.alpha);
            for j in 0..k {
                let r = terms[j] / evidence;
                let Seen { v, conditional, .. } = see(row, &means[j], &matrices[j]);
                weights[j] = (1.0 - gamma) * weights[j] + gamma * r;
                let rho = gamma * r / weights[j];
                means[j].iter_mut().zip(&v).for_each(|(mean, v)| *mean += rho * v);
                matrices[j] = (1.0 - rho) * (&matrices[j] + rho * outer(&v)) + rho * conditional;
            }
        }
        let learned = learner.estimate();
        for j in 0..k {
            assert_close(learned.weights()[j], weights[j], 1e-9, "weight");
            let covariance = learned.components()[j].covariance().matrix();
            assert!(largest(&(covariance - &matrices[j])) < 1e-8 * largest(&matrices[j]), "d {dim}, K {k}");
            for (found, expected) in learned.components()[j].mean().iter().zip(&means[j]) {
                assert_close(*found, *expected, 1e-8 * (1.0 + expected.abs()), "mean");
            }
        }
    }
}

/// The scores of a mixture and of its posterior predictive are those of the observed columns, whatever the block they are in.
#[test]
fn scores_are_those_of_the_observed_columns() {
    for (dim, k) in [(1, 2), (3, 4), (9, 2)] {
        let mut rows = with_gaps(&(2.0 * normals(300, dim, 8)), 0.4, 9);
        rows.row_mut(7).fill(f64::NAN);
        let start = posterior(dim, k);
        let mixture = start.point_estimate();
        let predictive: StudentMixture = start.predictive();
        let (scores, shares) = mixture.responsibilities(rows.view()).unwrap();
        let student = predictive.score_samples(rows.view()).unwrap();
        for (i, row) in rows.outer_iter().enumerate() {
            let term = |(component, w): (&Gaussian, &f64)| {
                let seen = see(row, component.mean(), &component.covariance().matrix());
                w * (-0.5 * (seen.q + seen.observed as f64 * std::f64::consts::TAU.ln() + seen.det.ln()))
                    .exp()
            };
            let terms: Vec<f64> = mixture.components().iter().zip(mixture.weights()).map(term).collect();
            let sum: f64 = terms.iter().sum();
            assert_close(scores[i], sum.ln(), 1e-9 * (1.0 + sum.ln().abs()), "score");
            assert_close(mixture.log_density(row.as_slice().unwrap()), scores[i], 1e-9, "one row");
            terms
                .iter()
                .zip(shares.row(i))
                .for_each(|(term, share)| assert_close(*share, term / sum, 1e-9, "share"));
            let single = predictive.log_density(row.as_slice().unwrap());
            assert_close(student[i], single, 1e-9 * (1.0 + single.abs()), "predictive");
        }
        assert_close(scores[7], 0.0, 1e-15, "a row without values");
    }
}

/// The predictive density of some columns integrates the others out.
#[test]
fn the_predictive_of_one_column_is_the_integral_over_the_other() {
    let predictive = posterior(2, 3).predictive();
    for x in [-2.0, 0.3, 4.0] {
        let step = 0.02;
        let density = |i: i32| predictive.log_density(&[x, f64::from(i) * step]).exp();
        let integral: f64 = (-20_000..=20_000).map(density).sum::<f64>() * step;
        assert_close(predictive.log_density(&[x, f64::NAN]).exp() / integral, 1.0, 1e-4, "integral");
    }
}

/// Batch EM at K = 1 against plain EM with explicit inverses, run to convergence; and no small change of the result is likelier.
#[test]
fn em_with_gaps_finds_the_gaussian_of_the_largest_likelihood() {
    for (dim, fraction) in [(2, 0.3), (4, 0.5), (5, 0.1)] {
        let mixing =
            Array2::from_shape_fn((dim, dim), |(i, j)| if i == j { 1.0 } else { 0.4 / (1 + i) as f64 });
        let rows = with_gaps(&(normals(300, dim, 21).dot(&mixing) + 5.0), fraction, 22);
        let (mut mean, mut covariance) = (vec![5.0; dim], Array2::<f64>::eye(dim));
        for _ in 0..400 {
            let (mut first, mut second) = (Array1::<f64>::zeros(dim), Array2::<f64>::zeros((dim, dim)));
            for row in rows.outer_iter() {
                let seen = see(row, &mean, &covariance);
                first += &seen.v;
                second += &(outer(&seen.v) + seen.conditional);
            }
            let n = rows.nrows() as f64;
            let shift = first / n;
            covariance = second / n - outer(&shift);
            mean.iter_mut().zip(&shift).for_each(|(mean, shift)| *mean += shift);
        }
        let settings = EmSettings { tolerance: 1e-15, iterations: 1000, ridge: 0.0, ..EmSettings::default() };
        let start = Gaussian::new(vec![4.0; dim], Factor::identity(dim)).unwrap();
        let start = GaussianMixture::new(vec![1.0], vec![start]).unwrap();
        let found = expectation_maximisation(rows.view(), &start, &settings);
        let gaussian = &found.mixture.components()[0];
        for (found, expected) in gaussian.mean().iter().zip(&mean) {
            assert_close(*found, *expected, 1e-6, "mean");
        }
        assert!(largest(&(gaussian.covariance().matrix() - &covariance)) < 1e-6);
        // The whole command's EM reaches the same level.
        let whole = fit_em(rows.view(), 1, 3, &EmSettings::default()).unwrap();
        assert_close(whole.mean_log_likelihood, found.mean_log_likelihood, 1e-4, "level");
        let level = |mean: Vec<f64>, covariance: Array2<f64>| {
            let gaussian = Gaussian::new(mean, Factor::from_matrix(covariance.view()).unwrap()).unwrap();
            GaussianMixture::new(vec![1.0], vec![gaussian]).unwrap().score(rows.view()).unwrap()
        };
        let best = level(mean.clone(), covariance.clone());
        for i in 0..dim {
            for change in [-0.01, 0.01] {
                let mut moved = mean.clone();
                moved[i] += change;
                assert!(level(moved, covariance.clone()) < best);
                let mut changed = covariance.clone();
                changed[(i, i)] *= 1.0 + change;
                assert!(level(mean.clone(), changed) < best);
            }
        }
    }
}

/// The mean over seeds of the ratio of the learned and the true trace, and its standard error.
fn trace_ratio(fraction: f64) -> (f64, f64) {
    let dim = 4;
    let mixing =
        Array2::from_shape_fn((dim, dim), |(i, j)| if i >= j { 1.0 / (1 + i - j) as f64 } else { 0.0 });
    let truth = mixing.t().dot(&mixing).diag().sum();
    let ratios: Vec<f64> = (0..12)
        .map(|seed| {
            let rows = with_gaps(&normals(12_000, dim, 100 + seed).dot(&mixing), fraction, seed);
            let settings = FitSettings::obmm(1).seed(seed).gaps(true);
            let mut fit = OnlineFit::new(dim, settings).unwrap();
            fit.observe(rows.view()).unwrap();
            fit.mixture().unwrap().components()[0].covariance().matrix().diag().sum() / truth
        })
        .collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

#[test]
fn covariances_learned_in_one_pass_are_unbiased() {
    for fraction in [0.3, 0.5] {
        let (mean, error) = trace_ratio(fraction);
        assert!((mean - 1.0).abs() < 3.0 * error + 0.002, "{fraction}: {mean} ± {error}");
    }
}

/// A pass over rows with gaps, in batches of this size.
fn pass(rows: &Array2<f64>, settings: &FitSettings, batch: usize) -> OnlineFit {
    let mut fit = OnlineFit::new(rows.ncols(), settings.clone()).unwrap();
    for rows in rows.axis_chunks_iter(Axis(0), batch) {
        fit.observe(rows).unwrap();
    }
    fit
}

#[test]
fn batching_and_resuming_change_no_bit() {
    let rows = with_gaps(&clusters(1_500, 3, 3), 0.2, 4);
    for settings in [
        FitSettings::obmm(3),
        FitSettings::oem(2),
        FitSettings::obmm(vec![2, 3]),
        FitSettings::learned_k(1..=3),
        FitSettings::odmm(3, 4),
    ] {
        let settings = settings.seed(5).start_rows(500).gaps(true);
        let bytes = |mut fit: OnlineFit| {
            fit.finish(&AtomicBool::new(false)).unwrap();
            bytes_of(&fit)
        };
        let whole = bytes(pass(&rows, &settings, rows.nrows()));
        if !matches!(settings.algorithm, Algorithm::Odmm(_)) {
            assert!(whole == bytes(pass(&rows, &settings, 777)), "batches, {settings:?}");
        }
        for cut in [300, 1_255] {
            let (first, rest) = rows.view().split_at(Axis(0), cut);
            let mut fit = OnlineFit::new(3, settings.clone()).unwrap();
            fit.observe(first).unwrap();
            let saved = bytes_of(&fit);
            let mut again = Model::read(saved.as_slice()).unwrap().resume().unwrap();
            again.allow_gaps(true);
            again.observe(rest).unwrap();
            if !matches!(settings.algorithm, Algorithm::Odmm(_)) {
                assert!(whole == bytes(again), "cut at {cut}, {settings:?}");
            }
        }
    }
}

#[test]
fn structure_is_found_with_a_third_of_the_values_missing() {
    for seed in if at_full_size() { 1..4 } else { 1..2 } {
        let complete = clusters(12_000, 4, seed);
        let test = clusters(4_000, 4, seed + 1000);
        let settings = FitSettings::obmm(3).seed(seed);
        let level = |rows: &Array2<f64>, settings: FitSettings| {
            let mut fit = pass(rows, &settings, 5_000);
            fit.finish(&AtomicBool::new(false)).unwrap();
            fit.mixture().unwrap().score(test.view()).unwrap()
        };
        let gapped = level(&with_gaps(&complete, 0.3, seed), settings.clone().gaps(true));
        let full = level(&complete, settings);
        assert!(gapped > full - 0.02, "seed {seed}: {gapped} with gaps, {full} without");
    }
}

#[test]
fn rows_without_gaps_learn_the_same_whether_gaps_are_allowed_or_not() {
    let rows = clusters(6_000, 3, 6);
    let bytes = |gaps: bool| {
        let mut fit = pass(&rows, &FitSettings::obmm(3).gaps(gaps), 1000);
        fit.finish(&AtomicBool::new(false)).unwrap();
        bytes_of(&fit)
    };
    assert!(bytes(true) == bytes(false));
}

#[test]
fn gaps_are_refused_unless_allowed_and_empty_rows_are_counted() {
    let mut rows = clusters(50, 2, 1);
    rows[(3, 1)] = f64::NAN;
    let mut fit = OnlineFit::new(2, FitSettings::obmm(2)).unwrap();
    assert!(fit.observe(rows.view()).is_err());
    rows.row_mut(0).fill(f64::NAN);
    rows.row_mut(20).fill(f64::NAN);
    rows.row_mut(49).fill(f64::NAN);
    let mut fit = OnlineFit::new(2, FitSettings::obmm(2).gaps(true)).unwrap();
    fit.observe(rows.view()).unwrap();
    assert_eq!((fit.rows(), fit.empty_rows()), (47, 3));
    rows[(4, 0)] = f64::INFINITY;
    assert!(fit.observe(rows.view()).is_err());
}

#[test]
fn a_column_that_begins_or_remains_empty_does_no_harm() {
    for from in [3_000, 5_000] {
        let mut rows = clusters(5_000, 3, 2);
        rows.slice_mut(ndarray::s![..from.min(5_000), 1]).fill(f64::NAN);
        for k in [1, 3] {
            let mut fit = pass(&rows, &FitSettings::obmm(k).gaps(true), 1000);
            fit.finish(&AtomicBool::new(false)).unwrap();
            let mixture = fit.mixture().unwrap();
            assert!(mixture.score(rows.view()).unwrap().is_finite());
            assert!(mixture.covariances().iter().chain(&mixture.means()).all(|value| value.is_finite()));
        }
    }
}

fn bytes_of(fit: &OnlineFit) -> Vec<u8> {
    let mut bytes = Vec::new();
    fit.to_model().unwrap().write(&mut bytes).unwrap();
    bytes
}
