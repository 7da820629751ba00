//! What several test files share.
#![allow(dead_code)]

pub mod reading;
pub mod sound;

use std::path::{Path, PathBuf};

use gmm_bmm::data::{Block, CsvOptions, CsvStream, Input};
use ndarray::{Array2, Axis};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;

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
    let options = CsvOptions { columns: columns.to_vec(), ..CsvOptions::default() };
    let path = repository("datasets").join(format!("{name}.csv"));
    let mut stream = CsvStream::open(vec![Input::File(path)], options).unwrap();
    let mut block = Block::new(stream.columns().len());
    let mut all = Vec::new();
    while stream.read_block(&mut block, 1000).unwrap() {
        all.extend_from_slice(block.values());
    }
    Array2::from_shape_vec((all.len() / block.columns(), block.columns()), all).unwrap()
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

/// The real binary, in an empty folder of its own.
pub struct Workplace {
    pub folder: tempfile::TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command with the words of `line`, run in the folder.
    pub fn run(&self, line: &str) -> assert_cmd::assert::Assert {
        self.command(line).assert()
    }

    pub fn command(&self, line: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("gmm-bmm");
        command.current_dir(self.folder.path()).args(line.split_whitespace());
        command.env("GMM_BMM_DATASETS", repository("datasets"));
        command
    }

    /// The JSON that a command prints.
    pub fn json(&self, line: &str) -> Value {
        let assert = self.run(&format!("{line} --json")).success();
        serde_json::from_slice(&assert.get_output().stdout).unwrap()
    }

    /// That a command fails with this code, says all of `words` on standard error, and leaves no new file.
    #[track_caller]
    pub fn refuses(&self, line: &str, code: i32, words: &[&str]) {
        let before = self.files();
        let assert = self.run(line).code(code);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        for word in words {
            assert!(said.contains(word), "'{line}' said: {said}\nwithout: {word}");
        }
        assert!(!said.contains("panicked"), "{said}");
        // What an earlier, killed run left may be cleared up.
        let kept = |name: &&String| !name.ends_with(".part") || self.path(name).exists();
        let before: Vec<&String> = before.iter().filter(kept).collect();
        assert_eq!(before, self.files().iter().collect::<Vec<_>>(), "'{line}' left files behind");
    }

    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
