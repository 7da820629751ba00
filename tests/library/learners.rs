//! What must hold of the learners whatever the data.

use std::sync::atomic::AtomicBool;

use gmm_bmm::dist::{Dirichlet, NormalWishart, Posterior};
use gmm_bmm::findings::{ColumnFault, Health};
use gmm_bmm::internals::learn::Scalars;
use gmm_bmm::internals::learn::{CandidateState, FitState, LearnerState};
use gmm_bmm::internals::linalg::Factor;
use gmm_bmm::settings::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};
use gmm_bmm::{FitSettings, LearnError, Model, OnlineFit};
use ndarray::{Array1, Array2, Axis, concatenate, s};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::*;
use crate::sound::assert_sound;

const OBMM: Algorithm = Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 });

fn settings(algorithm: Algorithm, ks: Vec<usize>) -> FitSettings {
    FitSettings::new(algorithm, ks).seed(7)
}

fn fit(rows: &Array2<f64>, algorithm: Algorithm, k: usize) -> FitState {
    let mut fit = OnlineFit::new(rows.ncols(), settings(algorithm, vec![k])).unwrap();
    fit.observe(rows.view()).unwrap();
    fit.state().unwrap()
}

fn finished(mut fit: OnlineFit) -> FitState {
    fit.finish(&AtomicBool::new(false)).unwrap();
    fit.state().unwrap()
}

fn prior(m: &[f64], k: usize) -> Posterior {
    prior_with(m, vec![1.5; k])
}

fn prior_with(m: &[f64], a: Vec<f64>) -> Posterior {
    let (dim, k) = (m.len(), a.len());
    let component = |j: usize| {
        let shifted = m.iter().map(|value| value + j as f64).collect();
        NormalWishart::new(shifted, 0.7, dim as f64 + 2.5, Factor::identity(dim)).unwrap()
    };
    Posterior::new(Dirichlet::new(a).unwrap(), (0..k).map(component).collect()).unwrap()
}

fn learn(prior: &Posterior, rows: &Array2<f64>) -> Posterior {
    let state =
        LearnerState::Bayes { prior: prior.clone(), posterior: prior.clone(), matrix_states: Vec::new() };
    let floor = vec![1e-300; rows.ncols()];
    let mut learner = OBMM.learner(state, floor, Health::default()).unwrap();
    for row in rows.outer_iter() {
        learner.observe(&row.to_vec()).unwrap();
    }
    learner.state().posterior().unwrap().clone()
}

#[test]
fn with_one_component_obmm_is_the_closed_form_posterior() {
    for dim in [1, 3, 10] {
        let n = 10_000.0;
        let rows = 3.0 * clusters(10_000, dim, 5) + 100.0;
        let prior = prior(&vec![90.0; dim], 1);
        let posterior = learn(&prior, &rows);
        let (old, new) = (&prior.components()[0], &posterior.components()[0]);
        assert_close(posterior.weights().total() / (prior.weights().total() + n), 1.0, 1e-10, "a");
        assert_close(new.kappa() / (old.kappa() + n), 1.0, 1e-10, "kappa");
        assert_close(new.nu() / (old.nu() + n), 1.0, 1e-10, "nu");
        let mean = rows.mean_axis(Axis(0)).unwrap();
        let m0 = Array1::from(old.mean().to_vec());
        let m = (old.kappa() * &m0 + n * &mean) / (old.kappa() + n);
        new.mean()
            .iter()
            .zip(&m)
            .for_each(|(found, expected)| assert_close(found / expected, 1.0, 1e-10, "m"));
        let deviations = &rows - &mean;
        let apart = (&mean - &m0).insert_axis(Axis(1));
        let psi = old.psi().matrix()
            + deviations.t().dot(&deviations)
            + old.kappa() * n / (old.kappa() + n) * apart.dot(&apart.t());
        let size = psi.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        for (found, expected) in new.psi().matrix().iter().zip(&psi) {
            assert_close(found / size, expected / size, 1e-10, &format!("psi, d {dim}"));
        }
    }
}

#[test]
fn the_total_of_the_weights_is_the_number_of_rows_also_after_a_hundred_million() {
    for (k, before) in [(3, 3.0), (10, 1e8)] {
        let prior = prior_with(&[0.0, 0.0], vec![before / k as f64; k]);
        let gained = learn(&prior, &clusters(20_000, 2, 4)).weights().total() - prior.weights().total();
        assert_close(gained, 20_000.0, 1e-6, &format!("K = {k}, from {before}"));
    }
}

/// Three Householder reflections: an orthogonal matrix that mixes all columns.
fn rotation(dim: usize, seed: u64) -> Array2<f64> {
    let mut matrix = Array2::eye(dim);
    for v in normals(3, dim, seed).outer_iter() {
        let v = v.to_owned().insert_axis(Axis(1));
        let reflection = Array2::eye(dim) - 2.0 / v.t().dot(&v)[(0, 0)] * v.dot(&v.t());
        matrix = matrix.dot(&reflection);
    }
    matrix
}

#[test]
fn rescaling_rotating_and_shifting_the_data_changes_only_the_units() {
    for dim in [1, 2, 5] {
        let rows = clusters(3000, dim, 11);
        let units = Array1::from_shape_fn(dim, |j| 10f64.powi(3 * (j as i32 % 3) - 3));
        let map = Array2::from_diag(&units).dot(&rotation(dim, 3)); // x → Bx + c
        let shift = Array1::from_shape_fn(dim, |j| 7.0 * units[j] * j as f64);
        let mapped = rows.dot(&map.t()) + &shift;
        let prior = prior(&vec![0.5; dim], 3);
        let carry = |component: &NormalWishart| {
            let m = map.dot(&Array1::from(component.mean().to_vec())) + &shift;
            let psi = map.dot(&component.psi().matrix()).dot(&map.t());
            let psi = Factor::from_matrix(psi.view()).unwrap();
            NormalWishart::new(m.to_vec(), component.kappa(), component.nu(), psi).unwrap()
        };
        let carried = |p: &Posterior| {
            Posterior::new(p.weights().clone(), p.components().iter().map(carry).collect()).unwrap()
        };
        let expected = carried(&learn(&prior, &rows));
        let found = learn(&carried(&prior), &mapped);
        let pairs = found.weights().concentrations().iter().zip(expected.weights().concentrations());
        pairs.for_each(|(a, b)| assert_close(a / b, 1.0, 1e-8, "a"));
        for (found, expected) in found.components().iter().zip(expected.components()) {
            assert_close(found.kappa() / expected.kappa(), 1.0, 1e-8, "kappa");
            assert_close(found.nu() / expected.nu(), 1.0, 1e-8, "nu");
            for j in 0..dim {
                assert_close(found.mean()[j] / units[j], expected.mean()[j] / units[j], 1e-8, "m");
                for i in 0..dim {
                    let unit = units[i] * units[j] * expected.nu();
                    let (a, b) = (found.psi().matrix()[(i, j)], expected.psi().matrix()[(i, j)]);
                    assert_close(a / unit, b / unit, 1e-8, "psi");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_projection_is_a_proper_distribution(
        dim in 1usize..30, kappa in 1e-3f64..1e6, extra in 0.02f64..1e6, log_q in -12f64..200.0, r in 0f64..=1.0,
    ) {
        let nu = dim as f64 + extra;
        let new = Scalars { dim, kappa, nu, q: log_q.exp2(), r }.whitened();
        prop_assert!(new.kappa > 0.0 && new.kappa <= kappa + 1.0 + 1e-9 * kappa, "{:?}", new);
        prop_assert!(new.nu > dim as f64 && new.nu <= nu + 1.0 + 1e-9 * nu, "{:?}", new);
        prop_assert!(new.tau >= 0.0 && new.stretch > 0.0 && new.stretch.is_finite(), "{:?}", new);
    }

    #[test]
    fn no_responsibility_changes_nothing_and_full_responsibility_is_the_conjugate_update(
        dim in 1usize..30, kappa in 0.1f64..1e4, extra in 0.1f64..1e4, q in 0f64..1e3,
    ) {
        let nu = dim as f64 + extra;
        let none = Scalars { dim, kappa, nu, q, r: 0.0 }.whitened();
        prop_assert!((none.kappa / kappa - 1.0).abs() < 1e-12 && (none.nu / nu - 1.0).abs() < 1e-12);
        prop_assert!(none.step == 0.0 && none.tau == 0.0 && (none.stretch - 1.0).abs() < 1e-12);
        let far = Scalars { dim, kappa, nu, q: (q + 1.0) * 1e300, r: 1.0 }.whitened();
        prop_assert!((far.kappa / (kappa + 1.0) - 1.0).abs() < 1e-12 && (far.nu / (nu + 1.0) - 1.0).abs() < 1e-12);
        let all = Scalars { dim, kappa, nu, q, r: 1.0 }.whitened();
        prop_assert!((all.kappa / (kappa + 1.0) - 1.0).abs() < 1e-12 && (all.nu / (nu + 1.0) - 1.0).abs() < 1e-12);
        prop_assert!((all.tau / (kappa / (kappa + 1.0)) - 1.0).abs() < 1e-12 && (all.stretch - 1.0).abs() < 1e-12);
    }

    #[test]
    fn weights_count_the_responsibilities(a in proptest::collection::vec(1e-3f64..1e8, 1..11), x in -2f64..12.0) {
        let prior = prior_with(&[0.5, 0.5], a.clone());
        let row = Array2::from_elem((1, 2), x);
        let (_, shares) = prior.predictive().responsibilities(row.view()).unwrap();
        let found = learn(&prior, &row);
        for ((found, a), share) in found.weights().concentrations().iter().zip(a).zip(&shares) {
            prop_assert!((found - a - share).abs() < 1e-9 + 1e-15 * a, "{found} from {a} and {share}");
        }
    }
}

#[test]
fn draws_from_the_exact_mixture_have_the_projected_moments() {
    let (m, x, kappa, nu, r) = ([0.3, -1.0, 2.0], [1.5, 0.5, 0.0], 2.5, 9.0, 0.4);
    let psi = Array2::from_shape_fn((3, 3), |(i, j)| if i == j { 4.0 } else { 1.0 });
    let old = NormalWishart::new(m.to_vec(), kappa, nu, Factor::from_matrix(psi.view()).unwrap()).unwrap();
    let v: Vec<f64> = x.iter().zip(m).map(|(x, m)| x - m).collect();
    let updated = |scale: f64, step: f64, tau: f64, kappa: f64, nu: f64| {
        let mut psi = old.psi().clone();
        let (mut y, mut work) = ([0.0; 3], [0.0; 3]);
        psi.quadratic_form(&v, &mut y);
        psi.rank_one(tau, &y, &mut work);
        psi.scale_by(scale);
        let mean = m.iter().zip(&v).map(|(m, v)| m + step * v).collect();
        NormalWishart::new(mean, kappa, nu, psi).unwrap()
    };
    let new = updated(1.0, 1.0 / (kappa + 1.0), kappa / (kappa + 1.0), kappa + 1.0, nu + 1.0);
    let q = old.psi().quadratic_form(&v, &mut [0.0; 3]);
    let change = Scalars { dim: 3, kappa, nu, q, r }.whitened();
    let projected = updated(change.stretch, change.step, change.tau, change.kappa, change.nu);

    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let n = 200_000;
    let (mut mean, mut precision, mut spread) = (Array1::<f64>::zeros(3), Array2::<f64>::zeros((3, 3)), 0.0);
    for _ in 0..n {
        let (mu, lambda) = if rng.random::<f64>() < r { new.sample(&mut rng) } else { old.sample(&mut rng) };
        let off = Array1::from_iter(mu.iter().zip(projected.mean()).map(|(mu, m)| mu - m));
        spread += off.dot(&lambda.dot(&off)) / n as f64;
        mean += &(Array1::from(mu) / n as f64);
        precision += &(lambda / n as f64);
    }
    // Standard errors here are about 0.2 % of each figure; five of them.
    mean.iter().zip(projected.mean()).for_each(|(a, b)| assert_close(*a, *b, 0.01, "E[μ]"));
    precision.iter().zip(&projected.mean_precision()).for_each(|(a, b)| assert_close(*a, *b, 0.02, "E[Λ]"));
    assert_close(spread, 3.0 / projected.kappa(), 0.02, "E[(μ−m)ᵀΛ(μ−m)]");
}

#[test]
fn online_em_ends_finite_with_any_step_on_every_bundled_set_and_nine_synthetic_ones() {
    let names = ["abalone", "airfoil", "banknote", "ccpp", "magic04", "transfusion"];
    let mut sets: Vec<(String, Array2<f64>)> = names
        .iter()
        .map(|name| {
            let columns = gmm_bmm::data::Catalogue::built_in().find(name).unwrap().columns.clone();
            (name.to_string(), bundled(name, &columns))
        })
        .collect();
    if !at_full_size() {
        sets.iter_mut().for_each(|(_, rows)| *rows = rows.slice(s![..rows.nrows().min(3000), ..]).to_owned());
    }
    let rows = if at_full_size() { 4000 } else { 2000 };
    sets.extend((1..=9).map(|i| (format!("synthetic {i}"), clusters(rows, 2 + i as usize, i))));
    let alphas = if at_full_size() { &[0.5, 0.6, 0.75, 0.9, 1.0][..] } else { &[0.5, 1.0][..] };
    for (name, rows) in &sets {
        for &alpha in alphas {
            for count_start in [false, true] {
                let state = fit(rows, Algorithm::Oem(OemSettings { alpha, count_start }), 4);
                assert_sound(&state, &format!("{name}, α {alpha}, count_start {count_start}"));
            }
        }
    }
}

#[test]
fn obmm_survives_hostile_data() {
    let normal = clusters(3000, 4, 21);
    let mut constant = normal.clone();
    constant.column_mut(2).fill(5.0);
    let mut duplicated = normal.clone();
    duplicated.column_mut(3).assign(&(250.0 * &normal.column(0)));
    let mut outliers = normal.clone();
    for i in [3, 500, 1500, 2999] {
        outliers[(i, 1)] = 1e150;
        outliers[(i, 2)] = -1e150;
    }
    let mut worse = normal.clone();
    worse.row_mut(2000).fill(1e300);
    let alike = Array2::from_elem((1500, 3), 2.5);
    let one_row = normal.slice(s![..1, ..]).to_owned();
    let three_rows = normal.slice(s![..3, ..]).to_owned();
    let tiny = 1e-150 * &normal;
    let huge = 1e150 * &normal;
    let hostile = [
        ("a constant column", constant),
        ("a duplicated column", duplicated),
        ("outliers of 1e150", outliers),
        ("an outlier of 1e300", worse),
        ("equal rows", alike),
        ("one row", one_row),
        ("fewer rows than K", three_rows),
        ("scale 1e-150", tiny),
        ("scale 1e150", huge),
    ];
    for (what, rows) in &hostile {
        for discount in [0.0, 0.5] {
            for moments in [Moments::Whitened, Moments::Paper] {
                let state = fit(rows, Algorithm::Obmm(ObmmSettings { moments, discount }), 5);
                assert_sound(&state, &format!("{what}, {moments:?}, discount {discount}"));
            }
        }
        assert_sound(&fit(rows, Algorithm::Oem(OemSettings::default()), 5), &format!("{what}, oEM"));
    }
}

#[test]
fn stopping_and_going_on_gives_the_same_bits_wherever_it_stops() {
    let rows = clusters(2500, 3, 8);
    for algorithm in [
        OBMM,
        Algorithm::Obmm(ObmmSettings { moments: Moments::Paper, discount: 0.3 }),
        Algorithm::Oem(OemSettings { alpha: 0.6, count_start: false }),
        Algorithm::Oem(OemSettings::default()),
    ] {
        let settings = settings(algorithm, vec![2, 4]).start_rows(1000);
        let mut straight = OnlineFit::new(3, settings.clone()).unwrap();
        straight.observe(rows.view()).unwrap();
        // In the buffer, at its end, within oEM's gathering, later; and twice.
        for stops in [vec![1], vec![999], vec![1000], vec![1010], vec![1700], vec![300, 2000]] {
            let mut fit = OnlineFit::new(3, settings.clone()).unwrap();
            let mut from = 0;
            for to in stops.iter().copied().chain([2500]) {
                fit.observe(rows.slice(s![from..to, ..])).unwrap();
                let text = serde_json::to_string(&fit.state().unwrap().candidates).unwrap();
                let mut state = fit.state().unwrap();
                state.candidates = serde_json::from_str(&text).unwrap();
                fit = OnlineFit::restore(settings.clone(), 3.into(), state).unwrap();
                from = to;
            }
            assert_eq!(fit.state().unwrap(), straight.state().unwrap(), "{algorithm:?} stopped at {stops:?}");
        }
    }
}

/// Every learner, and every form of it that has steps of its own.
fn all_learners() -> Vec<Algorithm> {
    let odmm = |obmm, warmup| Algorithm::Odmm(OdmmSettings { obmm, shards: 3, warmup });
    let paper = ObmmSettings { moments: Moments::Paper, discount: 0.0 };
    let discounted = ObmmSettings { moments: Moments::Whitened, discount: 0.3 };
    let mut all = Algorithm::all();
    all.extend([
        Algorithm::Obmm(paper),
        Algorithm::Obmm(discounted),
        Algorithm::Oem(OemSettings { alpha: 0.6, count_start: false }),
        odmm(ObmmSettings::default(), None),
        odmm(discounted, Some(0)),
        odmm(paper, Some(40)),
    ]);
    all
}

/// A pass cut after `cut` rows: first in memory alone, then by way of a model file.
fn models_of_a_cut_pass(settings: &FitSettings, rows: &Array2<f64>, cut: usize) -> [Vec<u8>; 2] {
    let (first, rest) = rows.view().split_at(Axis(0), cut);
    let write = |fit: &OnlineFit| {
        let mut text = Vec::new();
        fit.to_model().unwrap().write(&mut text).unwrap();
        text
    };
    let mut fit = OnlineFit::new(rows.ncols(), settings.clone()).unwrap();
    fit.observe(first).unwrap();
    let mut resumed = Model::read(write(&fit).as_slice()).unwrap().resume().unwrap();
    [&mut fit, &mut resumed].map(|fit| {
        fit.observe(rest).unwrap();
        write(fit)
    })
}

#[test]
fn a_short_stream_may_be_cut_at_every_row() {
    let mut rows = clusters(210, 2, 17);
    // Out of range: not learned, and not counted as learned.
    [16, 150].iter().for_each(|&i| rows.row_mut(i).fill(1e200));
    for (algorithm, ks) in all_learners().into_iter().flat_map(|a| [(a, vec![2]), (a, vec![1, 3])]) {
        let settings = settings(algorithm, ks).start_rows(10);
        let [straight, resumed] = models_of_a_cut_pass(&settings, &rows, 210);
        assert!(straight == resumed, "{settings:?} resumed with nothing more to learn");
        // After the start, a prime step meets every phase of the schedules.
        let (near, far) = if at_full_size() { (1, 1) } else { (3, 29) };
        let cuts = (3..40).step_by(near).chain((40..210).step_by(far));
        for cut in cuts {
            for (how, found) in
                ["in memory", "by file"].iter().zip(models_of_a_cut_pass(&settings, &rows, cut))
            {
                assert!(found == straight, "{settings:?} cut {how} after row {cut}");
            }
        }
    }
}

#[test]
fn columns_are_inspected_in_the_rows_of_the_start_alone() {
    // One column stops being constant after the rows of the start, the other becomes a copy of the first.
    let rows = Array2::from_shape_fn((20, 3), |(i, j)| match j {
        0 => (i as f64 * 1.3).sin(),
        1 if i < 10 => 7.5,
        2 if i >= 10 => (i as f64 * 1.3).sin(),
        _ => (i as f64 * (0.4 + j as f64)).cos(),
    });
    // With several K, half as many rows are buffered beyond those of the start.
    for (ks, seen) in [(vec![1, 2], 10), (vec![1, 2], 14), (vec![1, 2], 15), (vec![1, 2], 20), (vec![2], 20)]
    {
        let settings = settings(OBMM, ks).start_rows(10);
        let mut pass = OnlineFit::new(3, settings).unwrap();
        assert_eq!(pass.column_faults(), []);
        pass.observe(rows.slice(s![..seen, ..])).unwrap();
        assert_eq!(pass.column_faults(), [ColumnFault::Constant { column: 1 }], "{seen} rows");
    }
}

#[test]
fn the_scores_of_few_rows_do_not_depend_on_their_order() {
    let rows = clusters(3000, 2, 31);
    let mut order: Vec<usize> = (0..3000).collect();
    order.sort_by_key(|i| i % 3);
    let best = |rows: &Array2<f64>| {
        let mut fit = OnlineFit::new(2, settings(OBMM, vec![1, 2, 3])).unwrap();
        fit.observe(rows.view()).unwrap();
        let state = finished(fit);
        state.candidates[state.best()].prequential.mean().unwrap()
    };
    let (sorted, mixed) = (best(&rows.select(ndarray::Axis(0), &order)), best(&rows));
    assert!((sorted - mixed).abs() < 0.1, "sorted {sorted}, mixed {mixed}");
}

#[test]
fn several_k_learned_in_parallel_are_what_each_is_alone() {
    // A further cluster appears after half of the rows.
    let mut rows = clusters(9000, 2, 31);
    rows.slice_mut(s![4500..;3, 0]).map_inplace(|value| *value += 60.0);
    let mut together = OnlineFit::new(2, settings(OBMM, vec![1, 2, 3, 4]).start_rows(800)).unwrap();
    together.observe(rows.view()).unwrap();
    let together = finished(together);
    let changed = |candidate: &CandidateState| {
        candidate.structure.iter().flat_map(|s| s.revisions()).filter(|revision| revision.kept).count()
    };
    assert!(together.candidates.iter().map(changed).sum::<usize>() > 2, "too few revisions to tell");
    // One component alone holds no rows back, for there is nothing to revise.
    for (i, k) in [(1, 2), (2, 3), (3, 4)] {
        let mut alone = OnlineFit::new(2, settings(OBMM, vec![k]).start_rows(800)).unwrap();
        alone.observe(rows.view()).unwrap();
        let alone = finished(alone);
        assert!(together.candidates[i] == alone.candidates[0], "K = {k}");
    }
}

#[test]
fn scores_by_halves_choose_k_where_all_rows_went_into_the_start() {
    let apart = Array2::from_shape_fn((60, 1), |(i, _)| (i % 2 * 50) as f64);
    let rows = concatenate![Axis(0), normals(60, 1, 3) + apart];
    let mut fit = OnlineFit::new(1, settings(OBMM, vec![1, 2])).unwrap();
    fit.observe(rows.view()).unwrap();
    assert!(!fit.has_started());
    let state = finished(fit);
    assert_eq!(state.best(), 1);
    assert!(state.pending.is_some());
}

#[test]
fn rows_that_cannot_be_learned_are_errors() {
    let settings = FitSettings::obmm([2]);
    assert!(OnlineFit::new(0, settings.clone()).is_err());
    let mut pass = OnlineFit::new(2, settings.clone()).unwrap();
    let refused = pass.observe(ndarray::array![[1.0, 2.0, 3.0]].view()).unwrap_err();
    assert_eq!(refused, LearnError::Columns { found: 3, expected: 2 });
    let refused = pass.observe(ndarray::array![[1.0, 2.0], [3.0, f64::NAN]].view()).unwrap_err();
    assert_eq!(refused, LearnError::NotFinite { row: 2, column: 1 });
    assert_eq!(pass.rows(), 0, "a portion is learned whole or not at all");
    assert!(
        gmm_bmm::fit(ndarray::array![[1.0, 2.0]].view(), settings).is_err(),
        "one row for two components"
    );
}
