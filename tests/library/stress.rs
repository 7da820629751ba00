//! Rows that are hard to learn from: numbers at the edge of what double precision holds.
//!
//! At each quarter of a pass the weights are on the simplex, all matrices positive definite and all figures finite; in
//! the end every row has a finite score, and the health counters tell what had to be guarded. The long runs:
//! `cargo test --release --test library -- stress:: --ignored --nocapture --test-threads 1`.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gmm_bmm::findings::Health;
use gmm_bmm::internals::learn::FitState;
use gmm_bmm::settings::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::{Array2, Axis, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Cauchy, Distribution};

use crate::common::*;
use crate::sound::{assert_scores, assert_sound};

const OBMM: Algorithm = Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 });
const DISCOUNTED: Algorithm = Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.5 });
const OEM: Algorithm = Algorithm::Oem(OemSettings { alpha: 0.8, count_start: true });
/// The fastest forgetter, from the first row: the one that collapses most easily.
const FORGETFUL: Algorithm = Algorithm::Oem(OemSettings { alpha: 0.5, count_start: false });
const ODMM: Algorithm = Algorithm::Odmm(OdmmSettings {
    obmm: ObmmSettings { moments: Moments::Whitened, discount: 0.0 },
    shards: 3,
    warmup: Some(200),
});
/// Costs d³ a row, so it is left out where there are many columns or rows.
const PAPER: Algorithm = Algorithm::Obmm(ObmmSettings { moments: Moments::Paper, discount: 0.0 });

const FAST: [Algorithm; 5] = [OBMM, DISCOUNTED, OEM, FORGETFUL, ODMM];
const ALL: [Algorithm; 6] = [OBMM, DISCOUNTED, OEM, FORGETFUL, ODMM, PAPER];

const INIT_ROWS: usize = 300;

/// One pass over blocks of rows, looked at after each quarter of them.
fn pass(
    algorithm: Algorithm,
    k: usize,
    blocks: impl ExactSizeIterator<Item = Array2<f64>>,
    what: &str,
) -> FitState {
    let settings = FitSettings::new(algorithm, [k]).seed(7).start_rows(INIT_ROWS);
    let quarter = blocks.len().div_ceil(4);
    let mut fit = None;
    for (i, block) in blocks.enumerate() {
        let fit = fit.get_or_insert_with(|| OnlineFit::new(block.ncols(), settings.clone()).unwrap());
        fit.observe(block.view()).unwrap();
        if i % quarter == quarter - 1 {
            assert_sound(&fit.state().unwrap(), what);
        }
    }
    let mut fit = fit.unwrap();
    let state = fit.state().unwrap();
    assert_sound(&state, what);
    fit.finish(&AtomicBool::new(false)).unwrap();
    assert_sound(&fit.state().unwrap(), what);
    state
}

fn eighths(rows: &Array2<f64>) -> impl ExactSizeIterator<Item = Array2<f64>> {
    rows.axis_chunks_iter(Axis(0), rows.nrows().div_ceil(8)).map(|block| block.to_owned())
}

/// What each of these learners had to guard in a pass over `rows`, which then all get a finite score.
fn guarded(algorithms: &[Algorithm], k: usize, rows: &Array2<f64>, what: &str) -> Vec<(String, Health)> {
    let learn = |&algorithm: &Algorithm| {
        let what = format!("{what}, {algorithm:?}");
        let state = pass(algorithm, k, eighths(rows), &what);
        assert_scores(&state, rows, &what);
        let health = state.candidates[0].health;
        eprintln!("{what}: {health:?}");
        (what, health)
    };
    algorithms.iter().map(learn).collect()
}

#[track_caller]
fn nothing_was_guarded(healths: Vec<(String, Health)>) {
    for (what, mut health) in healths {
        // Online EM whose first steps replace half of a component narrows to the floor once in a while.
        if what.contains("count_start: false") && health.pivots_raised < 50 {
            health.pivots_raised = 0;
        }
        assert_eq!(health, Health::default(), "{what}");
    }
}

#[track_caller]
fn the_floor_held(healths: Vec<(String, Health)>) {
    for (what, health) in healths {
        assert!(health.pivots_raised > 0, "{what}: {health:?}");
        assert_eq!((health.rows_out_of_range, health.nu_floored), (0, 0), "{what}: {health:?}");
    }
}

#[test]
fn ordinary_rows_need_no_guard() {
    nothing_was_guarded(guarded(&ALL, 3, &clusters(2000, 4, 1), "ordinary rows"));
}

/// Rows whose covariance has this condition number, with its one weak direction in the midst of all columns.
fn ill_conditioned(condition: f64) -> Array2<f64> {
    let mut rows = normals(2000, 5, 3);
    for mut row in rows.outer_iter_mut() {
        row[0] *= condition.powf(-0.5);
        let twice_mean = 2.0 * row.mean().unwrap();
        row.iter_mut().for_each(|value| *value -= twice_mean);
    }
    rows
}

#[test]
fn condition_numbers_up_to_1e14() {
    for condition in [1e2, 1e4] {
        nothing_was_guarded(guarded(
            &FAST,
            2,
            &ill_conditioned(condition),
            &format!("condition {condition:e}"),
        ));
        guarded(&[PAPER], 2, &ill_conditioned(condition), "condition");
    }
    for &condition in if at_full_size() { &[1e8, 1e10, 1e12, 1e14][..] } else { &[1e8, 1e14] } {
        the_floor_held(guarded(&ALL, 2, &ill_conditioned(condition), &format!("condition {condition:e}")));
    }
}

#[test]
fn scales_from_1e_minus_150_to_1e150() {
    let rows = clusters(2000, 3, 2);
    for &power in if at_full_size() { &[-145, -100, -50, 50, 100, 149][..] } else { &[-145, 149] } {
        nothing_was_guarded(guarded(&ALL, 3, &(10f64.powi(power) * &rows), &format!("scale 1e{power}")));
    }
    // Here the least variance that the floor allows is that of the rows.
    the_floor_held(guarded(&ALL, 3, &(1e-150 * &rows), "scale 1e-150"));
    let mut mixed = clusters(2000, 4, 2);
    for (power, mut column) in [-145, -20, 30, 149].into_iter().zip(mixed.columns_mut()) {
        column *= 10f64.powi(power);
    }
    nothing_was_guarded(guarded(&FAST, 3, &mixed, "scales from 1e-145 to 1e149"));
    // The paper's moments are those of the raw precision, which the smallest column rules; still they learn.
    for (what, health) in guarded(&[PAPER], 3, &mixed, "scales from 1e-145 to 1e149") {
        assert!(health.literal_steps_kept < 100, "{what}: {health:?}");
    }
}

#[test]
fn rows_beyond_the_range_of_squares_are_counted_and_not_learned() {
    let mut rows = 1e-150 * clusters(2000, 3, 2);
    rows.slice_mut(s![1000.., ..]).mapv_inplace(|value| 1e299 * value);
    for algorithm in ALL {
        let what = format!("from 1e-150 to 1e149, {algorithm:?}");
        let state = pass(algorithm, 3, eighths(&rows), &what);
        // One row in twenty or so is held back for validation.
        let counted = state.candidates[0].health.rows_out_of_range;
        assert!((900..=1000).contains(&counted), "{what}: {counted}");
        assert_scores(&state, &rows.slice(s![..1000, ..]).to_owned(), &what);
    }
}

#[test]
fn duplicated_rows_only() {
    the_floor_held(guarded(&ALL, 3, &Array2::from_elem((2000, 3), 2.5), "one row"));
    let three = clusters(3, 3, 5);
    let rows = Array2::from_shape_fn((2000, 3), |(i, j)| three[(i % 3, j)]);
    the_floor_held(guarded(&ALL, 5, &rows, "three rows"));
}

#[test]
fn sorted_rows() {
    let mut rows: Vec<Vec<f64>> = clusters(2000, 3, 9).outer_iter().map(|row| row.to_vec()).collect();
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let rows = Array2::from_shape_vec((2000, 3), rows.concat()).unwrap();
    nothing_was_guarded(guarded(&[OBMM, DISCOUNTED, OEM, FORGETFUL], 4, &rows, "sorted"));
    guarded(&[ODMM, PAPER], 4, &rows, "sorted");
}

#[test]
fn heavy_tails() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let cauchy = Cauchy::new(0.0, 1.0).unwrap();
    let rows = Array2::from_shape_simple_fn((2000, 3), || cauchy.sample(&mut rng));
    guarded(&[OBMM, DISCOUNTED, ODMM, OEM, FORGETFUL], 4, &rows, "Cauchy");
    let rows = Array2::from_shape_simple_fn((4000, 3), || cauchy.sample(&mut rng));
    for (what, health) in guarded(&[PAPER], 4, &rows, "Cauchy") {
        assert!(health.literal_steps_kept > 0, "{what}: {health:?}");
    }
}

#[test]
fn whole_numbers() {
    let rows = clusters(2000, 4, 6);
    guarded(&ALL, 4, &rows.mapv(f64::round), "whole numbers");
    the_floor_held(guarded(&ALL, 4, &rows.mapv(|v| f64::from(u8::from(v > 2.0))), "zeros and ones"));
    the_floor_held(guarded(&ALL, 4, &rows.mapv(|v| (v - 1.0).max(0.0).floor()), "counts, mostly zero"));
}

#[test]
fn many_components_and_many_columns() {
    let (k, columns) = if at_full_size() { (100, 200) } else { (20, 30) };
    for (what, health) in guarded(&ALL, k, &clusters(20 * k, 2, 6), &format!("K = {k}")) {
        assert_eq!(health.rows_out_of_range, 0, "{what}");
    }
    guarded(&[OBMM, OEM, ODMM], 2, &clusters(600, columns, 6), &format!("d = {columns}"));
}

#[test]
fn a_given_number_of_components_has_none_without_rows() {
    for (dim, seed) in [(1, 1), (2, 1), (2, 2), (3, 3)] {
        // Gaussian rows, and a few with the mark of a missing value.
        let mut rows = normals(600, dim, seed);
        rows.rows_mut().into_iter().step_by(60).for_each(|mut row| row[0] = -999.0);
        for k in [3, 4] {
            let mut fit = OnlineFit::new(dim, FitSettings::obmm([k])).unwrap();
            fit.observe(rows.view()).unwrap();
            let mixture = fit.mixture().unwrap();
            let least = mixture.weights().iter().copied().fold(1.0, f64::min) * 600.0;
            assert!(least > 0.5, "d {dim}, seed {seed}, K = {k}: {:?}", mixture.weights());
        }
    }
}

/// Two clusters far apart; then, for `rows` rows, nothing but the first; then the second again.
fn second_cluster_away(rows: usize) -> impl ExactSizeIterator<Item = Array2<f64>> {
    const BLOCK: usize = 1000;
    let last = rows / BLOCK + 1;
    (0..last + 1).map(move |i| {
        let mut block = normals(if i == 0 { INIT_ROWS } else { BLOCK }, 2, i as u64);
        let away = block.outer_iter_mut().enumerate().filter(|(row, _)| i == last || i == 0 && row % 3 == 0);
        away.for_each(|(_, mut row)| row += 100.0);
        block
    })
}

/// With more than two components, several share the first cluster and overlap.
fn component_empty_for(rows: usize) {
    for (algorithm, k) in FAST.into_iter().flat_map(|algorithm| [2, 3, 10].map(|k| (algorithm, k))) {
        let what = format!("empty for {rows} rows, K = {k}, {algorithm:?}");
        let begun = Instant::now();
        let state = pass(algorithm, k, second_cluster_away(rows), &what);
        assert_scores(&state, &second_cluster_away(rows).next().unwrap(), &what);
        let (mixture, health) = (state.candidates[0].learned.estimate(), state.candidates[0].health);
        let seconds = begun.elapsed().as_secs_f64();
        let means: Vec<_> = mixture.components().iter().map(|component| component.mean()[0]).collect();
        eprintln!("{what}: {seconds:.1} s, weights {:?}, means {means:?}, {health:?}", mixture.weights());
        if algorithm == OBMM || algorithm == ODMM {
            assert_eq!(health, Health::default(), "{what}");
            let second = || mixture.weights().iter().zip(&means).filter(|(_, mean)| **mean > 50.0);
            let weight: f64 = second().map(|(weight, _)| weight).sum();
            let mean = second().map(|(weight, mean)| weight * mean).sum::<f64>() / weight;
            assert_close(mean, 100.0, 0.01, &what);
            // A third of the first rows, a thousand of the last, and the prior's.
            let share = (INIT_ROWS as f64 / 3.0 + 1000.0) / (rows as f64 + 1300.0);
            assert_close(weight / share, 1.0, 0.02, &what);
        }
    }
}

#[test]
fn a_component_empty_for_long() {
    component_empty_for(20_000);
}

#[test]
#[ignore = "long: run it in release"]
fn a_component_empty_for_a_million_rows() {
    component_empty_for(1_000_000);
}

#[test]
#[ignore = "long: run it in release"]
fn ten_million_rows() {
    let block = |i: u32| clusters(100_000, 3, i.into());
    for algorithm in FAST {
        let what = format!("ten million rows, {algorithm:?}");
        let begun = Instant::now();
        let state = pass(algorithm, 3, (0..100).map(block), &what);
        let seconds = begun.elapsed().as_secs_f64();
        let candidate = &state.candidates[0];
        let (score, prequential) = (
            candidate.learned.estimate().score(block(1000).view()).unwrap(),
            candidate.prequential.mean().unwrap(),
        );
        let health = candidate.health;
        eprintln!("{what}: {seconds:.1} s, score {score}, prequential {prequential}, {health:?}");
        assert_eq!(state.rows, 10_000_000);
        // Steps of a half, as the first ones are, may leave a component on a single row.
        if algorithm != FORGETFUL {
            assert_eq!(candidate.health, Health::default(), "{what}");
            assert_close(score, prequential, 0.01, &what);
        }
    }
}

/// Three rows for each component to start from, in two hundred columns: every matrix is singular but for its ridge.
#[test]
#[ignore = "long: run it in release"]
fn a_hundred_components_in_two_hundred_columns() {
    for algorithm in [OBMM, OEM] {
        let begun = Instant::now();
        guarded(&[algorithm], 100, &clusters(10_000, 200, 6), "K = 100, d = 200");
        eprintln!("{:.1} s", begun.elapsed().as_secs_f64());
    }
}
