use ndarray::Array2;

use super::*;
use crate::learn::{Algorithm, LearnerState, ObmmSettings, OnlineLearner, Prequential, Rows, prior_around};

/// Rows of three groups, with gaps if `gaps`.
fn rows(count: usize, dim: usize, gaps: bool) -> Vec<f64> {
    let wave = |i: usize, j: usize| ((i * (31 + 16 * j) + j) as f64 * 0.37).sin();
    let value = |i: usize, j: usize| {
        let missing = gaps && (i * dim + j) % 11 == 3;
        if missing {
            f64::NAN
        } else {
            2.0 * (i % 3) as f64 + wave(i, j) * (1 + j % 3) as f64 + 0.3 * wave(i, 0)
        }
    };
    (0..count).flat_map(|i| (0..dim).map(move |j| (i, j))).map(|(i, j)| value(i, j)).collect()
}

fn start(kind: CovarianceType, k: usize, dim: usize) -> GaussianMixture {
    let full = Array2::from_shape_fn((dim, dim), |(i, j)| if i == j { 1.5 + 0.2 * i as f64 } else { 0.2 });
    let factor = Factor::from_matrix(full.view()).unwrap().of_kind(kind);
    let component = |j: usize| {
        let own = if kind == CovarianceType::Tied { factor.clone() } else { factor.unshared() };
        Gaussian::new(vec![1.7 * j as f64; dim], own).unwrap()
    };
    let weights = (0..k).map(|j| 2.0 * (j + 1) as f64 / (k * (k + 1)) as f64).collect();
    Mixture::new(weights, (0..k).map(component).collect()).unwrap()
}

fn begin(kind: CovarianceType, algorithm: &Algorithm, k: usize, dim: usize) -> LearnerState {
    let mixture = start(kind, k, dim);
    let floor = vec![1e-9; dim];
    let start = crate::learn::Start { mixture, prior: None, unit: 1.0, floor, rows: 50, weight: 50.0 };
    algorithm.begin(&start)
}

fn learner(
    kind: CovarianceType,
    algorithm: &Algorithm,
    state: LearnerState,
    dim: usize,
) -> Box<dyn OnlineLearner> {
    let floor = vec![1e-9; dim];
    // A single component with a tied covariance is learned as one with a full covariance.
    match state {
        LearnerState::Bayes { prior, posterior, matrix_states } if kind == CovarianceType::Tied => {
            let health = Health::default();
            Box::new(Constrained::obmm(kind, Arc::new(prior), &posterior, &matrix_states, &floor, health))
        }
        state => algorithm.learner(state, floor, Health::default()).unwrap(),
    }
}

fn close(a: &GaussianMixture, b: &GaussianMixture, tolerance: f64) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= tolerance * (1.0 + b.abs());
    a.weights().iter().zip(b.weights()).all(|(a, b)| near(*a, *b))
        && a.means().iter().zip(&b.means()).all(|(a, b)| near(*a, *b))
        && a.covariances().iter().zip(&b.covariances()).all(|(a, b)| near(*a, *b))
}

fn algorithms() -> Vec<Algorithm> {
    vec![Algorithm::Obmm(ObmmSettings::default()), Algorithm::Oem(OemSettings::default())]
}

const HALF_LIVES: [Option<u64>; 2] = [None, Some(60)];

/// With one column, full, diagonal and spherical covariances are the same.
#[test]
fn structures_agree_in_one_column() {
    let values = rows(400, 1, false);
    let weights: Vec<f64> = (0..400).map(|i| [1.0, 1.0, 2.5, 0.25][i % 4]).collect();
    for algorithm in algorithms() {
        for half_life in HALF_LIVES {
            for weights in [None, Some(&weights[..])] {
                let run = |kind| {
                    let mut learner = learner(kind, &algorithm, begin(kind, &algorithm, 3, 1), 1);
                    learner.set_half_life(half_life);
                    let mut score = Prequential::default();
                    learner.observe_block(Rows::new(&values, 1).with_weights(weights), &mut score);
                    (learner.estimate(), score.mean().unwrap())
                };
                let (full, score) = run(CovarianceType::Full);
                for kind in [CovarianceType::Diag, CovarianceType::Spherical] {
                    let (found, own) = run(kind);
                    assert!(close(&found, &full, 1e-9), "{algorithm:?} {kind:?} {half_life:?}");
                    assert!((own - score).abs() < 1e-9, "{algorithm:?} {kind:?}: {own} {score}");
                }
            }
        }
    }
}

/// A single component with a tied covariance is one with a full covariance.
#[test]
fn a_single_tied_component_is_a_full_one() {
    let values = rows(300, 4, true);
    let weights: Vec<f64> = (0..300).map(|i| [1.0, 3.0][i % 2]).collect();
    let algorithm = Algorithm::Obmm(ObmmSettings::default());
    for half_life in HALF_LIVES {
        for (values, tolerance) in [(&rows(300, 4, false), 1e-9), (&values, 0.05)] {
            let run = |kind| {
                let mut learner = learner(kind, &algorithm, begin(kind, &algorithm, 1, 4), 4);
                learner.set_half_life(half_life);
                let rows = Rows::new(values, 4).with_weights(Some(&weights));
                learner.observe_block(rows, &mut Prequential::default());
                learner.estimate()
            };
            // Rows with gaps are completed by a factor that is a few rows old.
            let (tied, full) = (run(CovarianceType::Tied), run(CovarianceType::Full));
            assert!(close(&tied, &full, tolerance), "{half_life:?}\n{tied:?}\n{full:?}");
        }
    }
}

/// One component learns by exact conjugate updates.
#[test]
fn a_single_component_has_the_conjugate_posterior() {
    let (count, dim) = (500, 6);
    let values = rows(count, dim, false);
    let algorithm = Algorithm::Obmm(ObmmSettings::default());
    for kind in [CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical] {
        let prior = prior_around(&start(kind, 1, dim)).components()[0].clone();
        let mut learner = learner(kind, &algorithm, begin(kind, &algorithm, 1, dim), dim);
        learner.observe_block(Rows::new(&values, dim), &mut Prequential::default());
        let state = learner.state();
        let found = &state.posterior().unwrap().components()[0];
        let n = count as f64;
        assert!((found.kappa() - prior.kappa() - n).abs() < 1e-8 * n);
        assert!((found.nu() - prior.nu() - n).abs() < 1e-8 * n, "{kind:?} {}", found.nu());
        let column = |l: usize| values.iter().skip(l).step_by(dim);
        let means: Vec<f64> = (0..dim).map(|l| column(l).sum::<f64>() / n).collect();
        let mut psi = prior.psi().matrix();
        for i in 0..dim {
            for l in 0..dim {
                let products = column(i).zip(column(l)).map(|(a, b)| (a - means[i]) * (b - means[l]));
                let (a, b) = (means[i] - prior.mean()[i], means[l] - prior.mean()[l]);
                psi[(i, l)] += products.sum::<f64>() + prior.kappa() * n / (prior.kappa() + n) * a * b;
            }
        }
        let mean = psi.diag().mean().unwrap();
        for ((i, l), value) in found.psi().matrix().indexed_iter() {
            let expected = match kind {
                CovarianceType::Tied => psi[(i, l)],
                CovarianceType::Diag if i == l => psi[(i, l)],
                CovarianceType::Spherical if i == l => mean,
                _ => 0.0,
            };
            assert!((value - expected).abs() < 1e-8 * n, "{kind:?} {i} {l}: {value} {expected}");
        }
        for (l, value) in found.mean().iter().enumerate() {
            let expected = (prior.kappa() * prior.mean()[l] + n * means[l]) / (prior.kappa() + n);
            assert!((value - expected).abs() < 1e-9);
        }
    }
}

/// The density of a row before it is learned is the product, over the columns, of Student-t densities.
#[test]
fn the_evidence_is_that_of_the_predictive_distributions() {
    use crate::dist::{Density, StudentT};
    let dim = 3;
    let algorithm = Algorithm::Obmm(ObmmSettings::default());
    for x in [[0.5, -1.0, 2.0], [4.0, f64::NAN, 0.0]] {
        let log_density = |kind| {
            let mut learner = learner(kind, &algorithm, begin(kind, &algorithm, 1, dim), dim);
            learner.observe(&x).unwrap()
        };
        let observed = || (0..dim).filter(|l| !x[*l].is_nan());
        for kind in [CovarianceType::Diag, CovarianceType::Spherical, CovarianceType::Tied] {
            let prior = prior_around(&start(kind, 1, dim)).components()[0].clone();
            let expected = match kind {
                CovarianceType::Diag => observed()
                    .map(|l| {
                        let scale = (prior.kappa() + 1.0) / (prior.kappa() * prior.nu());
                        let variance = prior.psi().diagonal()[l] * scale;
                        let factor = Factor::from_variances(&[variance]).unwrap();
                        let t = StudentT::new(vec![prior.mean()[l]], factor, prior.nu()).unwrap();
                        t.log_density(&[x[l]])
                    })
                    .sum(),
                _ => prior.predictive().log_density(&x),
            };
            assert!((log_density(kind) - expected).abs() < 1e-10, "{kind:?}");
        }
    }
}

/// The scale of the factor of `Ψ` is another than that of `Ψ/ν`, so each has to be the right one.
#[test]
fn tied_components_have_the_evidence_of_their_mixture() {
    use crate::dist::Density;
    let (dim, kind, nu) = (3, CovarianceType::Tied, 1e6);
    let prior = prior_around(&start(kind, 3, dim));
    let component = |own: &NormalWishart| {
        let psi = Factor::from_matrix((own.psi().matrix() * (nu / own.nu())).view()).unwrap();
        NormalWishart::new(own.mean().to_vec(), nu, nu, psi).unwrap()
    };
    // A row changes next to nothing, so what is expected stays.
    let a = [1e6, 2e6, 3e6];
    let components: Vec<NormalWishart> = prior.components().iter().map(component).collect();
    let expected = |x: &[f64]| {
        let densities = components.iter().map(|own| own.predictive().log_density(x).exp());
        a.iter().zip(densities).map(|(a, density)| a / 6e6 * density).sum::<f64>().ln()
    };
    let posterior = Posterior::new(Dirichlet::new(a.to_vec()).unwrap(), components.clone()).unwrap();
    let mut learner =
        Constrained::obmm(kind, Arc::new(prior), &posterior, &[], &vec![1e-9; dim], Health::default());
    for x in [[0.5, -1.0, 2.0], [4.0, f64::NAN, 0.0], [3.0, 1.0, 2.5]] {
        let found = learner.observe(&x).unwrap();
        assert!((found - expected(&x)).abs() < 1e-4, "{found} {}", expected(&x));
    }
}

/// The projection matches the moments of the mixture of both cases, column by column.
#[test]
fn the_projection_keeps_the_moments_of_the_exact_posterior() {
    let (kappa, nu, r, dim) = (7.0, 23.0, 0.35, 2);
    let (mean, variances, x) = ([1.0, -2.0], [0.8, 3.0], [2.5, -2.2]);
    let mut columns = Columns::new(std::iter::once((&mean[..], variances.to_vec())), &[1e-9; 2], false);
    let row = Quad::pad(&x, 0.0);
    let step = Projection::new(CovarianceType::Diag, dim, (kappa, nu), r, 1.0);
    let (sums, _) = columns.learn_moments(0, &row, &step);
    let (new_kappa, new_nu) = (step.kappa(sums.z, sums.z_left), step.nu_of_columns(sums.variance).0);
    let (mut spread, mut variance) = (0.0, 0.0);
    for l in 0..dim {
        let v = x[l] - mean[l];
        let psi = nu * variances[l];
        // (probability, m, κ, ν, ψ) of both cases.
        let cases = [
            (1.0 - r, mean[l], kappa, nu, psi),
            (r, mean[l] + v / (kappa + 1.0), kappa + 1.0, nu + 1.0, psi + kappa / (kappa + 1.0) * v * v),
        ];
        let over = |f: &dyn Fn(f64, f64, f64, f64) -> f64| -> f64 {
            cases.iter().map(|&(share, m, kappa, nu, psi)| share * f(m, kappa, nu, psi)).sum()
        };
        let new_mean = over(&|m, _, _, _| m);
        let lambda = over(&|_, _, nu, psi| nu / psi);
        assert!((columns.mean(0)[l] - new_mean).abs() < 1e-13);
        let found = columns.factor(0).diagonal()[l];
        assert!((found * lambda - 1.0).abs() < 1e-13);
        let square = over(&|_, _, nu, psi| 2.0 * nu / (psi * psi) + (nu / psi).powi(2));
        variance += (square - lambda * lambda) / (lambda * lambda);
        // E[λ(μ − m')²]
        spread += over(&|m, kappa, nu, psi| 1.0 / kappa + nu / psi * (m - new_mean).powi(2));
    }
    assert!((new_nu * variance / (2.0 * dim as f64) - 1.0).abs() < 1e-12);
    assert!((new_kappa * spread / dim as f64 - 1.0).abs() < 1e-12);
}

/// Resuming from a file after any row, and any batches, change no bit.
#[test]
fn resuming_and_batches_change_no_bit() {
    let (count, dim) = (260, 5);
    let weights: Vec<f64> = (0..count).map(|i| [1.0, 1.0, 1.0, 2.0, 0.5][i % 5]).collect();
    for kind in [CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical] {
        for algorithm in algorithms() {
            for half_life in HALF_LIVES {
                for (values, weights) in [
                    (rows(count, dim, false), None),
                    (rows(count, dim, true), None),
                    (rows(count, dim, true), Some(&weights[..])),
                ] {
                    let all = Rows::new(&values, dim).with_weights(weights);
                    let make = |state| {
                        let mut learner =
                            algorithm.learner(state, vec![1e-9; dim], Health::default()).unwrap();
                        learner.set_half_life(half_life);
                        learner
                    };
                    let mut straight = make(begin(kind, &algorithm, 3, dim));
                    let mut score = Prequential::default();
                    straight.observe_block(all, &mut score);
                    for (batch, resumes) in [(1, false), (7, true), (64, true), (129, true)] {
                        let mut learner = make(begin(kind, &algorithm, 3, dim));
                        let mut own = Prequential::default();
                        for rows in all.chunks(batch) {
                            learner.observe_block(rows, &mut own);
                            if resumes {
                                let text = serde_json::to_string(&learner.state()).unwrap();
                                let state: LearnerState = serde_json::from_str(&text).unwrap();
                                assert!(state.is_consistent() && state.owns_its_matrix_states());
                                learner = make(state);
                            }
                        }
                        assert_eq!(own, score, "{kind:?} {algorithm:?} {half_life:?} {batch}");
                        let same = learner.state() == straight.state();
                        assert!(same, "{kind:?} {algorithm:?} {half_life:?} {batch}");
                    }
                }
            }
        }
    }
}

/// A row of weight 0 would be no row, and rows that are far away are skipped or learned without NaN.
#[test]
fn far_rows_are_no_danger() {
    let dim = 3;
    for kind in [CovarianceType::Tied, CovarianceType::Diag, CovarianceType::Spherical] {
        for algorithm in algorithms() {
            let mut learner = algorithm
                .learner(begin(kind, &algorithm, 3, dim), vec![1e-9; dim], Health::default())
                .unwrap();
            for x in [[1e9, 0.0, -1e9], [1e200, 1e200, 1e200], [0.0; 3], [f64::NAN, 1e-300, 2.0]] {
                let seen = learner.observe(&x);
                assert!(seen.is_none_or(|log_density| !log_density.is_nan()), "{kind:?} {algorithm:?}");
            }
            learner.observe_block(Rows::new(&rows(200, dim, true), dim), &mut Prequential::default());
            let mixture = learner.estimate();
            assert!(mixture.means().iter().chain(&mixture.covariances()).all(|value| value.is_finite()));
        }
    }
}
