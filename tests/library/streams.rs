//! Long streams: structure that appears late, spikes, and changes that are reported.

use gmm_bmm::dist::Clusters;
use gmm_bmm::findings::{ChangeKind, Finding};
use gmm_bmm::settings::Components;
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::{Array2, s};

use crate::common::*;

const ROWS: usize = 60_000;
const CHANGE: usize = 40_000;

fn learned(rows: &Array2<f64>, settings: FitSettings) -> OnlineFit {
    let mut fit = OnlineFit::new(rows.ncols(), settings).unwrap();
    fit.observe(rows.view()).unwrap();
    fit
}

/// The row at which the data change first and in which way, if the pass reports it.
fn change(fit: &OnlineFit) -> Option<(u64, ChangeKind)> {
    let change = |finding: Finding| match finding {
        Finding::DataChange { row, kind, .. } => Some((row, kind?)),
        _ => None,
    };
    fit.findings().into_iter().find_map(change)
}

fn auto() -> FitSettings {
    FitSettings::obmm(Components::learned(1..=50))
}

#[test]
fn a_cluster_that_appears_late_is_learned_soon() {
    let seeds = if at_full_size() { 20 } else { 4 };
    for (dim, seed) in (1..=seeds).flat_map(|seed| [(2, seed), (5, seed)]) {
        let mut rows = normals(ROWS, dim, seed);
        // One row in five, at an irregular place.
        for i in (CHANGE..ROWS).filter(|i| i * i % 11 < 2) {
            rows[[i, 0]] += 52.0;
        }
        let mut fit = OnlineFit::new(dim, auto()).unwrap();
        fit.observe(rows.slice(s![..CHANGE + 5000, ..])).unwrap();
        let level = fit.mixture().unwrap().score(rows.slice(s![CHANGE + 5000.., ..])).unwrap();
        fit.observe(rows.slice(s![CHANGE + 5000.., ..])).unwrap();
        let mixture = fit.mixture().unwrap();
        assert_eq!(mixture.k(), 2, "d {dim}, seed {seed}");
        let active = fit.to_model().unwrap().active_rows();
        let firsts: Vec<u64> = active.iter().flatten().map(|rows| rows.first).collect();
        assert!(firsts.contains(&1), "{active:?}");
        assert!(active.iter().flatten().all(|rows| rows.last >= 59_500), "{active:?}");
        let best = mixture.score(rows.slice(s![CHANGE + 5000.., ..])).unwrap();
        // The weights follow the whole stream, in which the new rows are few at first.
        assert!(level > best - 0.3, "d {dim}, seed {seed}: {level} against {best}");
    }
}

#[test]
fn one_spike_does_not_ruin_a_component() {
    for (seed, spike) in [(1, 1e3), (2, 1e5), (3, 1e7)] {
        let mut rows = normals(ROWS, 3, seed);
        rows[[CHANGE, 1]] = spike;
        let mut fit = learned(&rows, auto());
        let usual = learned(&normals(ROWS, 3, seed), auto()).mixture().unwrap();
        let last = rows.slice(s![CHANGE + 1.., ..]);
        let (level, usual) = (fit.mixture().unwrap().score(last).unwrap(), usual.score(last).unwrap());
        assert!(level > usual - 0.01, "a spike of {spike}: {level} against {usual}");
        assert_eq!(change(&fit), None, "a spike of {spike}");
    }
}

#[test]
fn changes_of_every_kind_are_reported_near_their_row() {
    type Change = fn(&mut Array2<f64>);
    let changes: [(ChangeKind, Change); 8] = [
        (ChangeKind::Level, |rows| shift(rows, 1.0, 0)),
        (ChangeKind::Level, |rows| shift(rows, 3.0, 1)),
        (ChangeKind::Level, |rows| shift(rows, 30.0, 2)),
        (ChangeKind::Spread, |rows| rows.slice_mut(s![CHANGE.., ..]).mapv_inplace(|value| 0.5 * value)),
        (ChangeKind::Spread, |rows| rows.slice_mut(s![CHANGE.., 0]).mapv_inplace(|value| 2.0 * value)),
        (ChangeKind::Correlation, |rows| {
            for mut row in rows.slice_mut(s![CHANGE.., ..]).outer_iter_mut() {
                row[1] = 0.6 * row[0] + 0.8 * row[1];
            }
        }),
        (ChangeKind::NewComponent, |rows| {
            (CHANGE..ROWS).step_by(20).for_each(|i| rows[[i, 0]] += 25.0);
        }),
        (ChangeKind::Weights, |rows| {
            for i in 0..ROWS {
                rows[[i, 0]] += if (i % 10 == 0) == (i < CHANGE) { 12.0 } else { 0.0 };
            }
        }),
    ];
    for (seed, (kind, make)) in (1..).zip(changes) {
        let mut rows = normals(ROWS, 3, seed);
        make(&mut rows);
        // As soon as it has to be known.
        let known = if kind == ChangeKind::Weights { CHANGE + 5000 } else { CHANGE + 2000 };
        let rows = rows.slice(s![..known, ..]).to_owned();
        for settings in [FitSettings::obmm([1]), FitSettings::obmm([4]), auto()] {
            // The weights of clusters are those of a mixture that has them.
            let k = settings.components.clone();
            if kind == ChangeKind::Weights && k == FitSettings::obmm([1]).components {
                continue;
            }
            let found = change(&learned(&rows, settings));
            let (row, found) = found.unwrap_or_else(|| panic!("no {kind:?} for {k:?}"));
            assert!(row.abs_diff(CHANGE as u64) <= 2000, "{kind:?}, {k:?}: row {row}");
            assert_eq!(found, kind, "{k:?}");
        }
    }
}

/// Rows of a sorted file: at the first row that windows can judge, all rows are far from the earlier ones.
#[test]
fn a_jump_of_all_rows_is_one_of_the_level() {
    let mut rows = normals(30_000, 2, 3);
    rows.slice_mut(s![15_000.., ..]).mapv_inplace(|value| value + 8.0);
    let (row, kind) = change(&learned(&rows, FitSettings::obmm([1]))).expect("a change");
    assert_eq!(kind, ChangeKind::Level);
    assert!(row.abs_diff(15_000) <= 500, "{row}");
}

#[test]
fn one_spike_does_not_ruin_a_component_of_a_given_number() {
    // On some seeds the spike is a validation row, which is learned at the end of the stream.
    for seed in 1..=if at_full_size() { 60 } else { 3 } {
        let mut rows = normals(ROWS, 3, seed);
        rows[[CHANGE, 1]] = 1e5;
        let mixture = learned(&rows, FitSettings::obmm([4])).mixture().unwrap();
        let usual = learned(&normals(ROWS, 3, seed), FitSettings::obmm([4])).mixture().unwrap();
        let last = rows.slice(s![CHANGE + 1.., ..]);
        let (level, usual) = (mixture.score(last).unwrap(), usual.score(last).unwrap());
        assert!(level > usual - 0.01, "seed {seed}: {level} against {usual}");
    }
}

/// Adds to a column from the row of the change on.
fn shift(rows: &mut Array2<f64>, by: f64, column: usize) {
    rows.slice_mut(s![CHANGE.., column]).mapv_inplace(|value| value + by);
}

#[test]
fn a_resumed_run_is_compared_with_the_rows_before() {
    let rows = normals(30_000, 3, 9);
    let model = |rows: &Array2<f64>| {
        let mut fit = learned(rows, FitSettings::obmm([2]));
        let mut file = Vec::new();
        assert_eq!(fit.today(), None);
        fit.mixture().unwrap();
        fit.to_model().unwrap().write(&mut file).unwrap();
        gmm_bmm::Model::read(file.as_slice()).unwrap().resume().unwrap()
    };
    let before = rows.slice(s![..27_000, ..]).to_owned();
    for (by, lower) in [(0.0, false), (0.4, true)] {
        let mut fit = model(&before);
        fit.observe((&rows.slice(s![27_000.., ..]) + by).view()).unwrap();
        let today = fit.today().unwrap();
        assert_eq!(today.lower_than > 0.999, lower, "{today:?}");
        assert!(today.rows > 2500 && (today.expected + 4.257).abs() < 0.05, "{today:?}");
    }
}

#[test]
fn with_a_half_life_fresh_rows_rank_evenly_while_the_data_drift() {
    for gaps in [false, true] {
        let mut rows = normals(42_000, 3, 4);
        for (i, mut row) in rows.outer_iter_mut().enumerate() {
            row += 20.0 * i.min(40_000) as f64 / 42_000.0;
            if gaps && i % 7 == 0 {
                row[i % 3] = f64::NAN;
            }
        }
        let settings = FitSettings::obmm([2]).half_life(1000).gaps(gaps);
        let mut fit = learned(&rows.slice(s![..40_000, ..]).to_owned(), settings);
        fit.mixture().unwrap();
        let model = fit.to_model().unwrap();
        let table = model.ranks().unwrap().table();
        let fresh = rows.slice(s![40_000.., ..]);
        let mut ranks: Vec<f64> =
            model.estimate().score_whole(fresh).iter().map(|&score| table.rank(score).unwrap()).collect();
        ranks.sort_by(f64::total_cmp);
        let count = ranks.len() as f64;
        let apart = ranks.iter().enumerate().map(|(i, rank)| (rank - i as f64 / count).abs());
        let most = apart.fold(0.0, f64::max);
        assert!(most < 0.06, "gaps {gaps}: {most}");
        let anomaly = ndarray::array![[26.0, 19.0, 19.0]];
        let rank = table.rank(model.estimate().score_whole(anomaly.view())[0]).unwrap();
        assert!(rank < 0.001, "gaps {gaps}: {rank}");
    }
}

#[test]
fn a_time_series_has_few_components() {
    for seed in 1..=3 {
        let mut rows = normals(4500, 2, seed);
        for i in 1..4500 {
            for j in 0..2 {
                rows[[i, j]] = 0.98 * rows[[i - 1, j]] + 0.199 * rows[[i, j]];
            }
        }
        let k = learned(&rows, auto()).mixture().unwrap().k();
        assert!(k <= 3, "seed {seed}: K = {k}");
    }
}

/// Two half moons, and a circle in a circle.
#[test]
fn curved_clusters_are_united_and_others_stay_apart() {
    let noise = normals(3000, 2, 8);
    let angle = |i: usize| i as f64 * 0.618 % 1.0 * std::f64::consts::PI;
    let moons = Array2::from_shape_fn((3000, 2), |(i, j)| {
        let place = [[angle(i).cos(), angle(i).sin()], [1.0 - angle(i).cos(), 0.5 - angle(i).sin()]];
        place[i % 2][j] + 0.06 * noise[[i, j]]
    });
    let circles = Array2::from_shape_fn((3000, 2), |(i, j)| {
        let place = [(2.0 * angle(i)).cos(), (2.0 * angle(i)).sin()];
        place[j] * [1.0, 0.5][i % 2] + 0.05 * noise[[i, j]]
    });
    let blobs = Array2::from_shape_fn((3000, 2), |(i, j)| {
        [[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]][i % 3][j] + noise[[i, j]]
    });
    for (rows, expected) in [(moons, 2), (circles, 2), (blobs, 3)] {
        let mixture = learned(&rows, auto()).mixture().unwrap();
        assert_eq!(mixture.clusters(Clusters::OVERLAP).count(), expected, "K = {}", mixture.k());
    }
}

#[test]
fn streams_that_do_not_change_are_not_reported() {
    for seed in 1..=if at_full_size() { 4 } else { 2 } {
        let plain = normals(ROWS, 3, seed);
        let mut modes = plain.clone();
        let mut cycle = plain.clone();
        for (i, mut row) in modes.outer_iter_mut().enumerate() {
            row += 8.0 * ((i / 3000) % 2) as f64;
        }
        for (i, mut row) in cycle.outer_iter_mut().enumerate() {
            row += 3.0 * (i as f64 / 1440.0 * std::f64::consts::TAU).sin();
        }
        for rows in [plain, modes, cycle] {
            for settings in [FitSettings::obmm([4]), auto()] {
                assert_eq!(change(&learned(&rows, settings)), None, "seed {seed}");
            }
        }
    }
}

#[test]
fn modes_that_alternate_are_not_reported_in_any_phase() {
    // Windows of a whole period are all alike, and those that begin half a window later are not.
    for phase in [0, 500, 1000, 1500] {
        let mut rows = normals(60_000, 3, phase as u64);
        for (i, mut row) in rows.outer_iter_mut().enumerate() {
            row += 8.0 * (((i + phase) / 2000) % 2) as f64;
        }
        assert_eq!(change(&learned(&rows, FitSettings::obmm([1]))), None, "phase {phase}");
    }
}
