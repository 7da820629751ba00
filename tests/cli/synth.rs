//! `gmm-bmm synth`, and the draws behind it.

use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

use assert_cmd::Command;
use flate2::read::MultiGzDecoder;
use gmm_bmm::Model;
use gmm_bmm::data::synth::{Synth, SynthSpec, Tails, TrueLevel};
use gmm_bmm::data::{Block, ReadOptions, RowSource};
use ndarray::{Array1, Array2};
use predicates::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn synth(folder: &TempDir, options: &str) -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("gmm-bmm");
    command.current_dir(folder.path()).arg("synth").args(options.split_whitespace());
    command
}

fn drawn(folder: &TempDir, options: &str) -> Value {
    let output = synth(folder, options).arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

fn read(folder: &TempDir, name: &str) -> Vec<u8> {
    fs::read(folder.path().join(name)).unwrap()
}

fn model(path: impl AsRef<Path>) -> Model {
    Model::read(BufReader::new(fs::File::open(path).unwrap())).unwrap()
}

fn rows(path: impl AsRef<Path>) -> Block {
    ReadOptions::default().open(&[path]).unwrap().read_all().unwrap()
}

fn mean_log_likelihood(model: &Model, rows: &Block) -> f64 {
    model.estimate().score(rows.view()).unwrap()
}

/// Header and number of rows.
fn shape(text: &[u8]) -> (String, usize) {
    let text = std::str::from_utf8(text).unwrap();
    (text.lines().next().unwrap().to_string(), text.lines().count() - 1)
}

fn files(folder: &TempDir) -> Vec<String> {
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> =
        fs::read_dir(folder.path()).unwrap().map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

const SMALL: &str = "--k 2 --d 3 --n 1000 --seed 42 --separation 3 --out train.csv \
                     --test-rows 80 --test-out test.csv --truth truth.json";

#[test]
fn the_true_mixture_scores_as_scipy_says() {
    let reference: Value = serde_json::from_str(include_str!("../reference/truth_small_scipy.json"))
        .expect("the reference is JSON");
    let (truth, test) = ("tests/reference/truth_small.json", "tests/reference/truth_small_test.csv");
    let score = mean_log_likelihood(&model(truth), &rows(test));
    assert!((score - reference["mean_log_likelihood"].as_f64().unwrap()).abs() < 1e-9);

    // The same draw today: what a seed gives does not change unawares.
    let folder = folder();
    let result = drawn(&folder, SMALL);
    assert!((result["true_mean_log_likelihood"].as_f64().unwrap() - score).abs() < 1e-9);
    let (now, then) = (rows(folder.path().join("test.csv")), rows(test));
    assert_eq!(now.rows(), then.rows());
    for (now, then) in now.values().iter().zip(then.values()) {
        assert!((now - then).abs() < 1e-9, "{now} is not {then}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = folder();
    let options = "--k 3 --d 4 --n 30000 --seed 5 --test-rows 5000 --drift 1";
    let with = |threads: u8, name: &str| {
        let outputs = format!("--out {name}.csv --test-out {name}-test.csv --truth {name}.json");
        let mut result = drawn(&folder, &format!("{options} {outputs} --threads {threads}"));
        result["true_mean_log_likelihood"].take()
    };
    assert_eq!(with(1, "one"), with(2, "two"));
    for suffix in [".csv", "-test.csv", ".json"] {
        assert!(read(&folder, &format!("one{suffix}")) == read(&folder, &format!("two{suffix}")), "{suffix}");
    }
    drawn(&folder, "--k 3 --d 4 --n 30000 --seed 6 --drift 1 --out other.csv");
    assert!(read(&folder, "one.csv") != read(&folder, "other.csv"));
}

#[test]
fn numbers_in_the_file_are_the_numbers_drawn() {
    let folder = folder();
    let result = drawn(&folder, SMALL);
    assert_eq!(result["columns"], serde_json::json!(["x1", "x2", "x3"]));
    assert_eq!((&result["rows"], &result["k"], &result["seed"]), (&1000.into(), &2.into(), &42.into()));
    let spec = SynthSpec { k: 2, dim: 3, rows: 1000, seed: 42, separation: 3.0, ..SynthSpec::default() };
    let synth = Synth::new(spec).unwrap();
    let mut block = Block::new(3);
    synth.training().read_block(&mut block, 1000).unwrap();
    assert!(rows(folder.path().join("train.csv")) == block);
    assert_eq!(model(folder.path().join("truth.json")).estimate(), *synth.truth());
}

#[test]
fn moments_of_many_rows_are_those_of_the_truth() {
    for tails in [Tails::Normal, Tails::Heavy] {
        let spec = SynthSpec {
            k: 4,
            dim: 3,
            rows: 250_000,
            seed: 9,
            tails,
            unit_decades: 2.0,
            ..SynthSpec::default()
        };
        let synth = Synth::new(spec).unwrap();
        let truth = synth.truth();
        let mut mean = Array1::<f64>::zeros(3);
        for (weight, component) in truth.weights().iter().zip(truth.components()) {
            mean.scaled_add(*weight, &Array1::from(component.mean().to_vec()));
        }
        let mut covariance = Array2::<f64>::zeros((3, 3));
        for (weight, component) in truth.weights().iter().zip(truth.components()) {
            let apart = Array1::from(component.mean().to_vec()) - &mean;
            let outer = Array2::from_shape_fn((3, 3), |(i, j)| apart[i] * apart[j]);
            covariance.scaled_add(*weight, &(component.covariance().matrix() + outer));
        }
        for (i, (column_mean, variance)) in synth.column_moments().into_iter().enumerate() {
            assert!((column_mean - mean[i]).abs() < 1e-9 * (1.0 + mean[i].abs()));
            assert!((variance - covariance[(i, i)]).abs() < 1e-9 * variance);
        }
        compare_moments(&synth, &mean, &covariance);
    }
}

/// Sample means of `x` and of products of deviations from the true mean, within five standard errors.
fn compare_moments(synth: &Synth, mean: &Array1<f64>, covariance: &Array2<f64>) {
    let mut source = synth.training();
    let mut block = Block::new(3);
    let pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];
    let (mut count, mut sums) = (0.0, [[0.0f64; 2]; 9]);
    while source.read_block(&mut block, 8192).unwrap() {
        for row in block.iter() {
            count += 1.0;
            let apart: Vec<f64> = row.iter().zip(mean).map(|(x, m)| x - m).collect();
            let products = pairs.iter().map(|&(i, j)| apart[i] * apart[j] - covariance[(i, j)]);
            let all = apart.iter().copied().chain(products);
            for (sum, value) in sums.iter_mut().zip(all.collect::<Vec<_>>()) {
                sum[0] += value;
                sum[1] += value * value;
            }
        }
    }
    assert_eq!(count, 250_000.0);
    for (i, [sum, squares]) in sums.into_iter().enumerate() {
        let standard_error = (squares / count).sqrt() / count.sqrt();
        assert!(
            (sum / count).abs() < 5.0 * standard_error,
            "moment {i}: off by {} of {standard_error}",
            sum / count
        );
    }
}

#[test]
fn the_nine_paper_sets_go_into_a_folder_each() {
    let folder = folder();
    let result = drawn(&folder, "--paper 1..9 --n 300 --test-rows 200 --out sets");
    let sets = result["sets"].as_array().unwrap();
    assert_eq!(sets.len(), 9);
    for (i, set) in sets.iter().enumerate() {
        let (k, d) = (set["k"].as_u64().unwrap(), set["columns"].as_array().unwrap().len());
        assert!((2..=6).contains(&k) && (3..=10).contains(&d));
        let name = |file: &str| format!("sets/set{}/{file}", i + 1);
        assert_eq!(set["out"], name("train.csv"));
        assert_eq!(shape(&read(&folder, &name("train.csv"))).1, 300);
        assert_eq!(shape(&read(&folder, &name("test.csv"))).1, 200);
        let truth = model(folder.path().join(name("truth.json")));
        assert_eq!((truth.k() as u64, truth.summaries().len()), (k, d));
    }
    // One set by itself is the same set, in a file.
    drawn(&folder, "--paper 4 --n 300 --out four.csv");
    assert!(read(&folder, "four.csv") == read(&folder, "sets/set4/train.csv"));
}

#[test]
fn a_paper_set_has_the_papers_rows() {
    let folder = folder();
    let result = drawn(&folder, "--paper 1 --out train.csv --test-out test.csv");
    assert_eq!(result["set"], "paper set 1");
    assert_eq!(shape(&read(&folder, "train.csv")), ("x1,x2,x3".into(), 170_000));
    assert_eq!(shape(&read(&folder, "test.csv")).1, 30_000);
}

#[test]
fn a_stand_in_has_the_sets_columns_and_says_what_it_is() {
    let folder = folder();
    for (name, columns, first) in
        [("yearmsd", 91, "year"), ("MiniBooNE", 50, "pid1"), ("heterogeneity", 16, "Index")]
    {
        let options = format!("--like {name} --n 50 --test-rows 20 --out like.csv --truth like.json");
        let lower = name.to_lowercase();
        synth(&folder, &options).assert().success().stderr(predicate::str::contains(format!(
            "stand-in for {lower}: 50 synthetic rows of its {columns} columns"
        )));
        let (header, rows) = shape(&read(&folder, "like.csv"));
        assert_eq!((header.split(',').count(), rows), (columns, 50));
        assert!(header.starts_with(first));
        assert_eq!(model(folder.path().join("like.json")).k(), 24);
    }
    let result = drawn(&folder, "--like banknote --k 3 --out like.csv");
    assert_eq!((&result["rows"], &result["k"], &result["components"]), (&1372.into(), &3.into(), &9.into()));
    assert_eq!(shape(&read(&folder, "like.csv")), ("variance,skewness,curtosis,entropy".into(), 1372));
}

#[test]
fn drift_moves_the_means_to_the_truth() {
    let folder = folder();
    let options =
        "--k 1 --d 2 --n 40000 --drift 8 --out train.csv --test-rows 4000 --test-out test.csv --truth t.json";
    synth(&folder, options).assert().success().stderr(predicate::str::contains("those at the end"));
    let (train, test) = (rows(folder.path().join("train.csv")), rows(folder.path().join("test.csv")));
    let truth = model(folder.path().join("t.json")).estimate();
    let distance = |rows: &mut dyn Iterator<Item = &[f64]>| {
        let (mut sums, mut count) = ([0.0; 2], 0.0);
        for row in rows {
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            count += 1.0;
        }
        let mean = truth.components()[0].mean();
        sums.iter().zip(mean).map(|(sum, mean)| (sum / count - mean).powi(2)).sum::<f64>().sqrt()
    };
    assert!((distance(&mut train.iter().take(2000)) - 8.0 * 0.975).abs() < 0.2);
    assert!((distance(&mut train.iter().skip(38_000)) - 8.0 * 0.025).abs() < 0.2);
    assert!(distance(&mut test.iter()) < 0.2);
}

#[test]
fn rows_go_to_standard_output_and_into_gzip() {
    let folder = folder();
    let options = "--k 2 --d 2 --n 3000 --out";
    let output = synth(&folder, &format!("{options} -")).assert().success().get_output().clone();
    assert_eq!(shape(&output.stdout), ("x1,x2".into(), 3000));
    assert!(String::from_utf8(output.stderr).unwrap().contains("3000 rows of 2 columns from 2 components"));
    synth(&folder, &format!("{options} rows.csv.gz")).assert().success();
    let mut text = Vec::new();
    MultiGzDecoder::new(&read(&folder, "rows.csv.gz")[..]).read_to_end(&mut text).unwrap();
    assert!(text == output.stdout);
}

#[test]
fn wrong_usage_is_told_and_leaves_no_file() {
    let folder = folder();
    let wrong = [
        ("--k 0 --d 2 --n 10 --out a.csv", "clusters must be at least 1"),
        ("--k 2 --d 0 --n 10 --out a.csv", "columns must be at least 1"),
        ("--k 2 --d 2 --n 0 --out a.csv", "rows must be at least 1"),
        ("--k 2 --d 2 --n 10 --condition 0.5 --out a.csv", "the condition must be from 1"),
        ("--k 2 --d 2 --n 10 --separation=-1 --out a.csv", "the separation must be"),
        ("--k 2 --d 2 --n 10 --drift nan --out a.csv", "the drift must be"),
        ("--k 2 --d 2 --out a.csv", "--n <N>"),
        ("--k 2 --d 2 --n 10", "--out"),
        ("--k 2 --d 2 --n 10 --out a.csv --test-out b.csv", "--test-rows"),
        ("--k 2 --d 2 --n 10 --out a.csv --truth a.csv", "command writes too"),
        ("--k 2 --d 2 --n 10 --out - --truth -", "two outputs"),
        ("--paper 0 --out a.csv", "from 1 to 9"),
        ("--paper 9..1 --out a", "write 1..9"),
        ("--paper 1..2 --out a --truth t.json", "leave out --test-out and --truth"),
        ("--paper 1 --k 3 --out a.csv", "cannot be used with"),
        ("--like iris --out a.csv", "give one of abalone"),
        ("--like northridge --out a.csv", "not known"),
    ];
    for (options, message) in wrong {
        synth(&folder, options).assert().code(2).stderr(predicate::str::contains(message));
        assert!(files(&folder).is_empty(), "{options}");
    }
}

#[test]
fn a_path_that_cannot_be_written_fails_before_any_row_is_drawn() {
    let folder = folder();
    // A thousand million rows: drawing them would not end within the test.
    let options = "--k 2 --d 2 --n 1000000000 --out a.csv --truth no/such/truth.json";
    synth(&folder, options)
        .assert()
        .code(1)
        .stderr(predicate::str::contains("cannot write 'no/such/truth.json'"));
    assert!(files(&folder).is_empty());
    fs::write(folder.path().join("file"), "").unwrap();
    synth(&folder, "--paper 1..2 --out file")
        .assert()
        .code(1)
        .stderr(predicate::str::contains("cannot make the folder"));
    assert_eq!(files(&folder), ["file"]);
}

#[test]
fn the_true_level_is_the_mean_over_blocks_of_any_size() {
    let synth = Synth::new(SynthSpec { k: 3, dim: 2, tails: Tails::Heavy, ..SynthSpec::default() }).unwrap();
    let level = |most: usize| {
        let (mut source, mut block) = (synth.test(5000), Block::new(2));
        let mut level = TrueLevel::default();
        while source.read_block(&mut block, most).unwrap() {
            level.add(&synth, &block);
        }
        level
    };
    assert_eq!(level(100), level(3333));
}
