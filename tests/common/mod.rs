//! Helpers that several test binaries share. No binary uses all of them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use gmm_bmm::data::ReadOptions;
use gmm_bmm::dist::Posterior;
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

/// Whether the tests run at full size, as `make test-long` runs them. Otherwise the slowest ones use fewer seeds, rows or
/// sets, which cover the same promises.
pub fn at_full_size() -> bool {
    std::env::var_os("GMM_BMM_LONG_TESTS").is_some()
}

pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub fn reference(name: &str) -> Value {
    let path = repository("tests/reference").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

pub fn vector(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

pub fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).unwrap()
}

/// A symmetric matrix given by the rows of its lower triangle.
pub fn matrix_of_triangle(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = value.as_array().unwrap().iter().map(vector).collect();
    Array2::from_shape_fn((rows.len(), rows.len()), |(i, j)| rows[i.max(j)][i.min(j)])
}

/// Some columns of a bundled set.
pub fn bundled(name: &str, columns: &[String]) -> Array2<f64> {
    let path = repository("datasets").join(format!("{name}.csv"));
    let mut rows = ReadOptions::default().columns(columns).open(&[path]).unwrap();
    rows.read_all().unwrap().into_array()
}

pub fn shuffled(rows: &Array2<f64>, seed: u64) -> Array2<f64> {
    let mut order: Vec<usize> = (0..rows.nrows()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    rows.select(Axis(0), &order)
}

pub fn normals(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_simple_fn((rows, columns), || StandardNormal.sample(&mut rng))
}

/// Three overlapping clusters with different shapes.
pub fn clusters(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut data = normals(rows, columns, seed);
    for (i, mut row) in data.outer_iter_mut().enumerate() {
        let cluster = i % 3;
        for j in 0..columns {
            let carried = if j > 0 { 0.6 * row[j - 1] } else { 0.0 };
            row[j] = row[j] * (1.0 + cluster as f64 * 0.5)
                + carried
                + 2.5 * cluster as f64 * (1.0 - j as f64 % 2.0);
        }
    }
    data
}

/// A narrow cluster and a wide one in runs of 500 rows: neighbouring rows are alike.
pub fn runs(rows: usize, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let wide: Vec<bool> = (0..rows.div_ceil(500)).map(|_| rng.random()).collect();
    let mut data = normals(rows, 2, seed);
    let of_wide_runs = data.outer_iter_mut().enumerate().filter(|(i, _)| wide[i / 500]);
    of_wide_runs.for_each(|(_, mut row)| row *= 6.0);
    data
}

/// The standard error of the mean score of a row, from the sums of scores over equally long runs that are independent.
pub fn standard_error_by_runs(sums: &[f64], rows_per_run: f64) -> f64 {
    let runs = sums.len() as f64;
    let mean = sums.iter().sum::<f64>() / runs;
    let squares: f64 = sums.iter().map(|sum| (sum - mean).powi(2)).sum();
    (squares / (runs - 1.0) / runs).sqrt() / rows_per_run
}

pub fn as_csv(rows: &Array2<f64>, header: &[&str]) -> String {
    let mut text = String::new();
    if !header.is_empty() {
        text += &(header.join(",") + "\n");
    }
    for row in rows.outer_iter() {
        let cells: Vec<String> = row.iter().map(|value| value.to_string()).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(off <= tolerance * expected.abs().max(1.0), "{what}: {found} against {expected}, off by {off:e}");
}

#[track_caller]
pub fn assert_same_posterior(found: &Posterior, expected: &Posterior, tolerance: f64) {
    let pairs = found.weights().concentrations().iter().zip(expected.weights().concentrations());
    pairs.for_each(|(a, b)| assert_close(a / b, 1.0, tolerance, "a"));
    for (found, expected) in found.components().iter().zip(expected.components()) {
        assert_close(found.kappa() / expected.kappa(), 1.0, tolerance, "kappa");
        assert_close(found.nu() / expected.nu(), 1.0, tolerance, "nu");
        found.mean().iter().zip(expected.mean()).for_each(|(a, b)| assert_close(*a, *b, tolerance, "m"));
        let (a, b) = (found.psi().matrix(), expected.psi().matrix());
        let size = b.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        a.iter().zip(&b).for_each(|(a, b)| assert_close(a / size, b / size, tolerance, "psi"));
    }
}
