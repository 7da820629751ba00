//! What one pass reaches on real data: the split is that of `tests/reference/levels.json`.

use gmm_bmm::batch::{EmSettings, fit_em};
use gmm_bmm::dist::GaussianMixture;
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::{Array2, Axis};
use serde_json::Value;

use crate::common::*;

struct Split {
    train: Array2<f64>,
    test: Array2<f64>,
    k: usize,
    scikit_learn: f64,
}

/// The splits of a set that the file has.
fn splits(name: &str) -> Vec<Split> {
    let file = reference("levels.json");
    let cases: &Vec<Value> = file["cases"].as_array().unwrap();
    cases.iter().filter(|case| case["name"] == name).map(|case| split(name, case)).collect()
}

fn split(name: &str, case: &Value) -> Split {
    let columns: Vec<String> =
        case["columns"].as_array().unwrap().iter().map(|c| c.as_str().unwrap().to_string()).collect();
    let rows = bundled(name, &columns);
    let test: Vec<usize> = vector(&case["test_rows"]).into_iter().map(|i| i as usize).collect();
    let train: Vec<usize> = (0..rows.nrows()).filter(|i| test.binary_search(i).is_err()).collect();
    Split {
        train: rows.select(Axis(0), &train),
        test: rows.select(Axis(0), &test),
        k: case["k"].as_u64().unwrap() as usize,
        scikit_learn: number(&case["scikit_learn"]),
    }
}

fn score(mixture: &GaussianMixture, rows: &Array2<f64>) -> f64 {
    mixture.score(rows.view()).unwrap()
}

/// Mean test log-likelihood of one pass of oBMM over the rows in an order of their own for each seed.
fn one_pass(split: &Split, seed: u64) -> f64 {
    let settings = FitSettings::obmm([split.k]).seed(seed);
    let mut fit = OnlineFit::new(split.train.ncols(), settings).unwrap();
    fit.observe(shuffled(&split.train, seed).view()).unwrap();
    score(&fit.mixture().unwrap(), &split.test)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean over splits and seeds is at most this far below scikit-learn's.
const MARGIN: f64 = 0.02;

#[track_caller]
fn assert_level(name: &str) {
    let seeds = if at_full_size() { 5 } else { 1 };
    let splits = splits(name);
    let of_split = |split: &Split| mean(&(1..=seeds).map(|seed| one_pass(split, seed)).collect::<Vec<_>>());
    let levels: Vec<f64> = splits.iter().map(of_split).collect();
    let theirs: Vec<f64> = splits.iter().map(|split| split.scikit_learn).collect();
    println!("{name}: {levels:.3?}, scikit-learn's best of 5: {theirs:.3?}");
    assert!(mean(&levels) >= mean(&theirs) - MARGIN, "{name}: {levels:?} against {theirs:?}");
}

#[test]
fn one_pass_over_magic04_reaches_scikit_learn() {
    assert_level("magic04");
}

#[test]
fn one_pass_over_abalone_reaches_scikit_learn() {
    assert_level("abalone");
}

#[test]
fn one_pass_over_banknote_reaches_scikit_learn() {
    assert_level("banknote");
}

#[test]
fn batch_em_reaches_scikit_learn() {
    let (names, restarts) =
        if at_full_size() { (&["abalone", "magic04"][..], 5) } else { (&["abalone"][..], 3) };
    for &name in names {
        let split = &splits(name)[0];
        let settings = EmSettings { restarts, ..EmSettings::default() };
        let fit = fit_em(split.train.view(), split.k, 1, &settings).unwrap();
        let level = score(&fit.mixture, &split.test);
        println!("{name}: {level:.3} against {:.3}", split.scikit_learn);
        assert!(level >= split.scikit_learn - MARGIN, "{name}: {level} against {}", split.scikit_learn);
    }
}
