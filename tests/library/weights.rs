//! Weights of rows: a row of weight `w` counts as `w` rows.

use gmm_bmm::dist::{Dirichlet, NormalWishart, Posterior};
use gmm_bmm::findings::{Finding, Health};
use gmm_bmm::internals::learn::{LearnerState, Rows};
use gmm_bmm::internals::linalg::Factor;
use gmm_bmm::scores::Prequential;
use gmm_bmm::settings::{Algorithm, ObmmSettings, OdmmSettings, OemSettings};
use gmm_bmm::{FitSettings, GaussianMixture, LearnError, Model, OnlineFit, ndarray};
use ndarray::{Array2, Axis, s};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::*;

const OBMM: Algorithm =
    Algorithm::Obmm(ObmmSettings { moments: gmm_bmm::settings::Moments::Whitened, discount: 0.0 });

fn weights(rows: usize, seed: u64, draw: impl Fn(&mut ChaCha8Rng) -> f64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..rows).map(|_| draw(&mut rng)).collect()
}

fn posterior(k: usize, dim: usize) -> Posterior {
    let component = |j: usize| {
        let mean = (0..dim).map(|i| (i + 3 * j) as f64).collect();
        NormalWishart::new(mean, 0.7, dim as f64 + 2.5, Factor::identity(dim)).unwrap()
    };
    Posterior::new(Dirichlet::new(vec![1.5; k]).unwrap(), (0..k).map(component).collect()).unwrap()
}

fn learned(algorithm: Algorithm, state: LearnerState, rows: &Array2<f64>, weights: &[f64]) -> LearnerState {
    let mut learner = algorithm.learner(state, vec![1e-300; rows.ncols()], Health::default()).unwrap();
    let rows = Rows::new(rows.as_slice().unwrap(), rows.ncols()).with_weights(Some(weights));
    learner.observe_block(rows, &mut Prequential::default());
    learner.state()
}

fn bayes(k: usize, dim: usize) -> LearnerState {
    let prior = posterior(k, dim);
    LearnerState::Bayes { posterior: prior.clone(), prior, matrix_states: Vec::new() }
}

#[test]
fn one_component_learns_a_weighted_row_by_the_exact_conjugate_update() {
    for dim in [1, 3, 18] {
        let rows = clusters(60, dim, 5);
        for (seed, scale) in [(1, 1.0), (2, 1e-6), (3, 1e6)] {
            let weights = weights(60, seed, |rng| scale * rng.random_range(0.01..9.0));
            let state = learned(OBMM, bayes(1, dim), &rows, &weights);
            let found = &state.posterior().unwrap().components()[0];
            let total: f64 = weights.iter().sum();
            let prior = posterior(1, dim);
            let prior = &prior.components()[0];
            let mean =
                |j: usize| rows.column(j).iter().zip(&weights).map(|(x, w)| x * w).sum::<f64>() / total;
            let means: Vec<f64> = (0..dim).map(mean).collect();
            // With negligible rows left out, 1e-8 rows of each may be missing.
            let near = |a: f64, b: f64, what: &str| {
                assert!((a - b).abs() <= 1e-6 * b.abs().max(1e-3), "{what}, {dim} columns, {scale}: {a} {b}");
            };
            near(found.kappa(), 0.7 + total, "kappa");
            near(found.nu(), dim as f64 + 2.5 + total, "nu");
            let lower = found.psi().lower_matrix();
            let psi = lower.dot(&lower.t());
            for i in 0..dim {
                near(found.mean()[i], (0.7 * prior.mean()[i] + total * means[i]) / (0.7 + total), "mean");
                for j in 0..=i {
                    let product = |row: ndarray::ArrayView1<f64>| (row[i] - means[i]) * (row[j] - means[j]);
                    let within: f64 = rows.outer_iter().zip(&weights).map(|(row, w)| w * product(row)).sum();
                    let away = (means[i] - prior.mean()[i]) * (means[j] - prior.mean()[j]);
                    let expected = f64::from(u8::from(i == j)) + within + 0.7 * total / (0.7 + total) * away;
                    let size = (psi[(i, i)] * psi[(j, j)]).sqrt();
                    assert!((psi[(i, j)] - expected).abs() < 1e-6 * size, "{dim} columns, {scale}");
                }
            }
        }
    }
}

#[test]
fn a_row_of_weight_one_in_a_block_with_weights_has_the_bits_of_one_without() {
    let rows = clusters(400, 3, 2);
    for algorithm in [OBMM, Algorithm::Oem(OemSettings::default())] {
        let begin = || match algorithm {
            Algorithm::Oem(_) => LearnerState::Point {
                start: posterior(3, 3).point_estimate(),
                start_rows: 7.0,
                mixture: posterior(3, 3).point_estimate(),
                rows: 0.0,
                matrix_states: Vec::new(),
            },
            _ => bayes(3, 3),
        };
        let mut plain = algorithm.learner(begin(), vec![1e-300; 3], Health::default()).unwrap();
        plain.observe_block(Rows::new(rows.as_slice().unwrap(), 3), &mut Prequential::default());
        assert_eq!(learned(algorithm, begin(), &rows, &[1.0; 400]), plain.state());
    }
}

fn mean_log_density(mixture: &GaussianMixture, rows: &Array2<f64>) -> f64 {
    mixture.score_samples(rows.view()).unwrap().mean().unwrap()
}

/// Each row as often as its weight says, in random order.
fn repeated(rows: &Array2<f64>, weights: &[f64], seed: u64) -> Array2<f64> {
    let mut order: Vec<usize> =
        (0..rows.nrows()).flat_map(|i| std::iter::repeat_n(i, weights[i] as usize)).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    rows.select(Axis(0), &order)
}

/// The rows come in another order, so on some data the search ends in another optimum of about the same level.
#[test]
fn a_row_of_a_whole_weight_is_learned_like_repeated_rows() {
    let mut differences = Vec::new();
    for seed in 4..9 {
        let rows = clusters(3000, 2, seed);
        let counts = weights(3000, seed + 40, |rng| f64::from(rng.random_range(0..6_u8)));
        let held_out = clusters(4000, 2, seed + 20);
        for algorithm in
            [OBMM, Algorithm::Oem(OemSettings::default()), Algorithm::Odmm(OdmmSettings::default())]
        {
            for half_life in [None, Some(4000)] {
                if half_life.is_some() && matches!(algorithm, Algorithm::Odmm(_)) {
                    continue;
                }
                let mut settings = FitSettings::new(algorithm, 3).start_rows(500);
                settings.half_life = half_life;
                let level = |rows: &Array2<f64>, weights: Option<&[f64]>| {
                    let mut pass = OnlineFit::new(2, settings.clone()).unwrap();
                    pass.observe_weighted(rows.view(), weights).unwrap();
                    mean_log_density(&pass.mixture().unwrap(), &held_out)
                };
                let (weighted, whole) =
                    (level(&rows, Some(&counts)), level(&repeated(&rows, &counts, 9), None));
                assert!(
                    (weighted - whole).abs() < 0.02,
                    "{seed} {algorithm:?} {half_life:?}: {weighted} {whole}"
                );
                let most = if half_life.is_some() { 0.01 } else { 0.002 };
                differences.push(((weighted - whole).abs() / most, seed, algorithm));
            }
        }
    }
    let apart = differences.iter().filter(|(times, ..)| *times > 1.0).count();
    assert!(4 * apart < differences.len(), "{differences:?}");
}

fn file(pass: &mut OnlineFit) -> Vec<u8> {
    let mut file = Vec::new();
    pass.finish(&std::sync::atomic::AtomicBool::new(false)).unwrap();
    pass.to_model().unwrap().write(&mut file).unwrap();
    file
}

fn all_settings() -> Vec<FitSettings> {
    vec![
        FitSettings::obmm(2..=3).start_rows(400),
        FitSettings::obmm(3).start_rows(400).half_life(300).keep_rows(200),
        FitSettings::oem(3).start_rows(400).keep_rows(300),
        FitSettings::odmm(3, 2).start_rows(400),
        FitSettings::learned_k(1..=6).start_rows(400),
        FitSettings::obmm(3).blind(),
    ]
}

#[test]
fn weight_zero_is_an_absent_row_to_the_bit_and_batches_and_resuming_change_no_bit() {
    let mut rows = clusters(2000, 2, 6);
    rows[(1234, 1)] = f64::NAN;
    let some = weights(2000, 8, |rng| [0.0, 0.5, 1.0, 1.0, 2.0, 7.5][rng.random_range(0..6)]);
    let present: Vec<usize> = (0..2000).filter(|&i| some[i] > 0.0).collect();
    let of_present: Vec<f64> = present.iter().map(|&i| some[i]).collect();
    for settings in all_settings() {
        let settings = settings.gaps(true);
        let mut whole = OnlineFit::new(2, settings.clone()).unwrap();
        whole.observe_weighted(rows.view(), Some(&some)).unwrap();
        let mut absent = OnlineFit::new(2, settings.clone()).unwrap();
        absent.observe_weighted(rows.select(Axis(0), &present).view(), Some(&of_present)).unwrap();
        assert!(file(&mut whole) == file(&mut absent), "{settings:?}");
        for batch in [1, 7, 333] {
            let mut parts = OnlineFit::new(2, settings.clone()).unwrap();
            for (i, from) in (0..2000).step_by(batch).enumerate() {
                let to = (from + batch).min(2000);
                parts.observe_weighted(rows.slice(s![from..to, ..]), Some(&some[from..to])).unwrap();
                if batch == 333 && i % 2 == 0 && !matches!(settings.algorithm, Algorithm::Odmm(_)) {
                    let mut saved = Vec::new();
                    parts.to_model().unwrap().write(&mut saved).unwrap();
                    parts = Model::read(saved.as_slice()).unwrap().resume().unwrap();
                    parts.allow_gaps(true);
                }
            }
            assert!(file(&mut whole) == file(&mut parts), "batches of {batch}: {settings:?}");
        }
    }
}

#[test]
fn weights_of_one_have_the_bits_of_none() {
    let rows = clusters(1500, 2, 6);
    for settings in all_settings() {
        let mut plain = OnlineFit::new(2, settings.clone()).unwrap();
        plain.observe(rows.view()).unwrap();
        let mut ones = OnlineFit::new(2, settings.clone()).unwrap();
        ones.observe_weighted(rows.view(), Some(&[1.0; 1500])).unwrap();
        assert!(file(&mut plain) == file(&mut ones), "{settings:?}");
    }
}

#[test]
fn weights_that_no_row_can_have_are_refused_with_their_row() {
    let rows = clusters(10, 2, 1);
    let mut pass = OnlineFit::new(2, FitSettings::obmm(1)).unwrap();
    pass.observe(rows.view()).unwrap();
    for wrong in [-1.0, -1e-300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2e15] {
        let mut weights = vec![1.0; 10];
        weights[3] = wrong;
        let refused = pass.observe_weighted(rows.view(), Some(&weights));
        assert!(matches!(refused, Err(LearnError::Weight { row: 14, .. })), "{refused:?}");
    }
    let refused = pass.observe_weighted(rows.view(), Some(&[1.0; 9]));
    assert_eq!(refused, Err(LearnError::WeightCount { weights: 9, rows: 10 }));
    assert_eq!(pass.rows(), 10);
}

#[test]
fn extreme_weights_give_a_finite_mixture() {
    let rows = clusters(3000, 3, 7);
    for mut settings in all_settings() {
        for scale in [1e-12, 1e9] {
            // A half-life counts weights.
            settings.half_life = settings.half_life.map(|_| if scale > 1.0 { 300_000_000_000 } else { 300 });
            let weights = weights(3000, 4, |rng| scale * rng.random_range(0.1..5.0));
            let mut pass = OnlineFit::new(3, settings.clone()).unwrap();
            pass.observe_weighted(rows.view(), Some(&weights)).unwrap();
            let mixture = pass.mixture().unwrap();
            let level = mean_log_density(&mixture, &rows);
            assert!(level > -20.0, "{scale} {settings:?}: {level}");
            crate::sound::assert_sound(&pass.state().unwrap(), "weights");
        }
    }
}

#[test]
fn one_heavy_row_among_others_does_no_harm() {
    let rows = clusters(3000, 2, 7);
    let mut weights = vec![1.0; 3000];
    weights[2000] = 1e6;
    let mut pass = OnlineFit::new(2, FitSettings::obmm(3).start_rows(500)).unwrap();
    pass.observe_weighted(rows.view(), Some(&weights)).unwrap();
    let mixture = pass.mixture().unwrap();
    assert!(mixture.score_samples(rows.view()).unwrap().iter().all(|level| level.is_finite()));
}

/// Four clusters with the same distances between them.
fn four(rows: usize, dim: usize, seed: u64) -> Array2<f64> {
    let mut data = normals(rows, dim, seed);
    for (i, mut row) in data.outer_iter_mut().enumerate() {
        row[0] += 9.0 * (i % 4 / 2) as f64;
        row[1] += 9.0 * (i % 2) as f64;
    }
    data
}

#[test]
fn equal_weights_of_any_size_leave_the_number_of_components_as_it_is() {
    for (dim, scale) in [(2, 100.0), (5, 1000.0), (2, 1e9)] {
        let (rows, held_out) = (four(3000, dim, 1), four(4000, dim, 2));
        for settings in [FitSettings::learned_k(1..=50), FitSettings::learned_k(1..=50).start_rows(1000)] {
            let level = |weights: Option<&[f64]>| {
                let mut pass = OnlineFit::new(dim, settings.clone()).unwrap();
                pass.observe_weighted(rows.view(), weights).unwrap();
                let mixture = pass.mixture().unwrap();
                (mixture.k(), mean_log_density(&mixture, &held_out))
            };
            let ((k, plain), (weighted_k, weighted)) = (level(None), level(Some(&[scale; 3000])));
            assert_eq!((k, weighted_k), (4, 4), "{dim} columns, weights of {scale}");
            assert!(
                (plain - weighted).abs() < 0.005,
                "{dim} columns, weights of {scale}: {plain} {weighted}"
            );
        }
    }
}

#[test]
fn no_component_follows_a_few_heavy_rows() {
    for (dim, seed) in [(2, 1), (5, 2), (5, 3)] {
        let (rows, held_out) = (four(4000, dim, seed), four(4000, dim, seed + 10));
        let heavy = rand_distr::LogNormal::new(0.0, 2.0).unwrap();
        let some = weights(4000, seed, |rng| rand_distr::Distribution::sample(&heavy, rng));
        for settings in [FitSettings::obmm(4), FitSettings::learned_k(1..=50)] {
            let mut pass = OnlineFit::new(dim, settings).unwrap();
            pass.observe_weighted(rows.view(), Some(&some)).unwrap();
            let mixture = pass.mixture().unwrap();
            let least = mixture.weights().iter().copied().fold(1.0, f64::min);
            assert!(mixture.k() == 4 && least > 0.1, "{dim} columns, seed {seed}: {:?}", mixture.weights());
            let best = -0.5 * dim as f64 * (1.0 + (2.0 * std::f64::consts::PI).ln()) - 4_f64.ln();
            let level = mean_log_density(&mixture, &held_out);
            assert!(level > best - 0.4, "{dim} columns, seed {seed}: {level}, best {best}");
        }
    }
}

#[test]
fn a_half_life_that_a_few_heavy_rows_exceed_is_refused() {
    let rows = clusters(3000, 2, 7);
    let learned = |half_life, weight| {
        let settings = FitSettings::obmm(3).start_rows(500).half_life(half_life);
        let mut pass = OnlineFit::new(2, settings).unwrap();
        pass.observe_weighted(rows.view(), Some(&[weight; 3000]))
    };
    assert!(matches!(
        learned(1000, 100.0),
        Err(LearnError::ShortHalfLife { half_life: 1000, least: 30, .. })
    ));
    for (half_life, weight) in [(100_000, 100.0), (1000, 2.0), (1000, 0.1), (10, 2.0)] {
        assert_eq!(learned(half_life, weight), Ok(()), "{half_life} {weight}");
    }
}

#[test]
fn changes_have_the_row_of_the_stream() {
    let mut rows = normals(60_000, 2, 3);
    rows.slice_mut(s![40_000.., ..]).mapv_inplace(|value| value + 1.0);
    let weights: Vec<f64> = (0..60_000).map(|i| f64::from(u8::from(i % 3 > 0))).collect();
    for batch in [60_000, 777] {
        let mut pass = OnlineFit::new(2, FitSettings::obmm(1)).unwrap();
        for (rows, weights) in rows.axis_chunks_iter(Axis(0), batch).zip(weights.chunks(batch)) {
            pass.observe_weighted(rows, Some(weights)).unwrap();
        }
        let row = pass.findings().into_iter().find_map(|finding| match finding {
            Finding::DataChange { row, .. } => Some(row),
            _ => None,
        });
        assert!(row.is_some_and(|row| row.abs_diff(40_000) <= 1500), "{row:?}");
    }
}

#[test]
fn a_model_remembers_that_rows_had_weights() {
    let rows = clusters(600, 2, 7);
    for (weight, column, known) in
        [(2.0, Some("w"), true), (2.0, None, true), (1.0, Some("w"), false), (0.0, Some("w"), false)]
    {
        let mut weights = [1.0; 600];
        weights[400] = weight;
        let mut pass = OnlineFit::new(2, FitSettings::obmm(2).start_rows(200)).unwrap();
        pass.set_weight_column(column.map(String::from));
        pass.observe_weighted(rows.view(), Some(&weights)).unwrap();
        let mut file = Vec::new();
        pass.to_model().unwrap().write(&mut file).unwrap();
        let model = Model::read(file.as_slice()).unwrap();
        assert_eq!(model.weights().map(|weights| weights.column.as_deref()), known.then_some(column));
        assert_eq!(String::from_utf8_lossy(&file).contains("\"weights\": {"), known);
        let mut resumed = model.resume().unwrap();
        resumed.observe(rows.view()).unwrap();
        assert_eq!(resumed.settings().weights.is_some(), known);
    }
}
