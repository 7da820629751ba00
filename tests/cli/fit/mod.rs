//! `gmm-bmm fit` as a user meets it.

mod blind;
mod choice;
mod drift;
mod input;
mod labels;
mod resume;
mod structure;

#[cfg(target_os = "linux")]
use std::io::Write;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

fn with_clusters(rows: usize) -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(rows, 3, 1), &["a", "b", "c"]));
    place
}

/// The parts of a model file that a resumed run has to reproduce: all of it.
fn model(place: &Workplace, name: &str) -> Value {
    serde_json::from_str(&place.read(name)).unwrap()
}

#[test]
fn a_fit_writes_a_model_and_says_what_it_did() {
    let place = with_clusters(2000);
    let result = place.json("fit --data rows.csv --k 3 --out model.json");
    assert_eq!(result["rows"], 2000);
    assert_eq!(result["columns"], serde_json::json!(["a", "b", "c"]));
    assert_eq!(result["k"], 3);
    assert_eq!(result["prequential_rows"], 1000);
    for field in ["read_seconds", "learn_seconds", "prequential_log_likelihood"] {
        assert!(result[field].is_number(), "{field}");
    }
    assert_eq!(result["health"]["rows_out_of_range"], 0);
    let model = model(&place, "model.json");
    assert_eq!(model["format"], "gmm-bmm model");
    assert_eq!(
        model["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["components"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads_and_another_seed_does_not() {
    let place = with_clusters(3000);
    for (threads, seed, out) in [(1, 5, "a"), (2, 5, "b"), (7, 5, "c"), (2, 6, "d")] {
        let line = format!(
            "fit --data rows.csv --init-rows 1000 --k 1..4 --seed {seed} --threads {threads} --out {out}.json"
        );
        place.run(&line).success();
    }
    assert_eq!(place.read("a.json"), place.read("b.json"));
    assert_eq!(place.read("a.json"), place.read("c.json"));
    assert_ne!(place.read("a.json"), place.read("d.json"));
}

#[test]
fn the_learning_curve_has_a_point_every_so_many_rows() {
    let place = with_clusters(3000);
    place.write("test.csv", &as_csv(&clusters(200, 3, 2), &["a", "b", "c"]));
    place
        .run("fit --data rows.csv --k 2..3 --out m.json --trace curve.csv --trace-every 1000 --test test.csv")
        .success();
    let text = place.read("curve.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "rows,k,seconds,prequential_log_likelihood,test_log_likelihood");
    assert_eq!(lines.len(), 1 + 3 * 2);
    assert!(lines[5].starts_with("3000,2,") && lines[6].starts_with("3000,3,"), "{text}");
    place
        .run("fit --data rows.csv --k 2 --out m.json --trace curve.csv --trace-every 1000 --test test.csv")
        .success();
    let level: f64 = place.read("curve.csv").trim_end().rsplit(',').next().unwrap().parse().unwrap();
    let score = place.json("eval --model m.json --data test.csv");
    assert_close(level, number(&score["mean_log_likelihood"]), 1e-12, "last point");
}

/// Peak memory of the process, in kB, as the kernel counts it.
#[cfg(target_os = "linux")]
fn peak_memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(target_os = "linux")]
#[test]
fn a_million_rows_take_no_more_memory_than_a_thousand() {
    let place = Workplace::new();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
        .args("fit --data - --k 3 --out model.json --quiet".split_whitespace())
        .current_dir(place.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let text = as_csv(&clusters(10_000, 4, 6), &[]);
    let mut stdin = child.stdin.take().unwrap();
    let mut peak = 0;
    for _ in 0..100 {
        stdin.write_all(text.as_bytes()).unwrap();
        peak = peak.max(peak_memory(child.id()).unwrap_or(0));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    assert_eq!(model(&place, "model.json")["state"]["rows"], 1_000_000);
    assert!(peak > 0 && peak < 100_000, "peak memory {peak} kB");
    println!("peak memory {peak} kB");
}
