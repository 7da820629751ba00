//! Long streams: structure that appears late, spikes, and changes that are reported.

use gmm_bmm::findings::Finding;
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

/// The row at which the data change first, if the pass reports it.
fn change(fit: &OnlineFit) -> Option<u64> {
    let row = |finding: Finding| match finding {
        Finding::DataChange { row, .. } => Some(row),
        _ => None,
    };
    fit.findings().into_iter().find_map(row)
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
        let level = fit.mixture().unwrap().score(rows.slice(s![CHANGE + 5000.., ..]));
        fit.observe(rows.slice(s![CHANGE + 5000.., ..])).unwrap();
        let mixture = fit.mixture().unwrap();
        assert_eq!(mixture.k(), 2, "d {dim}, seed {seed}");
        let best = mixture.score(rows.slice(s![CHANGE + 5000.., ..]));
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
        let (level, usual) = (fit.mixture().unwrap().score(last), usual.score(last));
        assert!(level > usual - 0.01, "a spike of {spike}: {level} against {usual}");
        assert_eq!(change(&fit), None, "a spike of {spike}");
    }
}

#[test]
fn a_jump_of_any_size_is_reported_near_its_row() {
    for (seed, jump) in [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 10.0), (6, 30.0)] {
        let mut rows = normals(ROWS, 3, seed);
        rows.slice_mut(s![CHANGE.., 0]).mapv_inplace(|value| value + jump);
        // Four components over one cluster absorb a jump of one standard deviation.
        let four = Some(FitSettings::obmm([4])).filter(|_| jump > 1.0);
        for settings in four.into_iter().chain([auto()]) {
            let row = change(&learned(&rows, settings)).unwrap_or(0);
            assert!(row.abs_diff(CHANGE as u64) <= 2000, "a jump of {jump}: row {row}");
        }
    }
}

#[test]
fn streams_that_do_not_change_are_not_reported() {
    for seed in 1..=4 {
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
