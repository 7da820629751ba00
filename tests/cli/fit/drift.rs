//! Forgetting by a half-life, and data that change.

use ndarray::Array2;

use super::{model, with_clusters};
use crate::common::*;
use crate::workplace::Workplace;

/// Two modes whose means move by `distance` standard deviations over the stream.
fn drifting(rows: usize, distance: f64) -> Array2<f64> {
    let mut data = normals(rows, 3, 4);
    for (i, mut row) in data.outer_iter_mut().enumerate() {
        row += 25.0 * (i % 2) as f64 + distance * i as f64 / rows as f64;
    }
    data
}

fn with_drift(rows: usize) -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&drifting(rows, 8.0), &["a", "b", "c"]));
    let latest = drifting(rows, 8.0).slice(ndarray::s![rows - 1000.., ..]).to_owned();
    place.write("latest.csv", &as_csv(&latest, &["a", "b", "c"]));
    place
}

fn level(place: &Workplace, name: &str) -> f64 {
    number(&place.json(&format!("eval --model {name} --data latest.csv"))["mean_log_likelihood"])
}

#[test]
fn a_half_life_follows_data_that_drift_and_without_one_the_change_is_told() {
    let place = with_drift(60_000);
    for (k, algo) in [("2", "obmm"), ("2", "oem"), ("auto", "obmm"), ("1..3", "obmm")] {
        let learn = format!("fit --data rows.csv --init-rows 1000 --k {k} --algo {algo}");
        let said = place.run(&format!("{learn} --out plain.json")).success().get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        if algo == "obmm" {
            assert!(
                said.contains("the data change about row ") && said.contains("--half-life ROWS"),
                "K {k}: {said}"
            );
        }
        let result = place.json(&format!("{learn} --half-life 800 --out model.json"));
        assert_eq!(result["half_life"], 800);
        assert!(level(&place, "model.json") > level(&place, "plain.json") + 0.5, "K {k}, {algo}");
    }
    let shown = place.json("show model.json");
    assert_eq!(shown["half_life"], 800);
    place.run("show model.json").success().stdout(predicates::str::contains("half-life: 800 rows\n"));
    let plain = place.json("show plain.json");
    assert!(number(&plain["data_changes"]["first"]) > 1000.0, "{}", plain["data_changes"]);
    place.run("show plain.json").success().stdout(predicates::str::contains("the data change about row"));
}

#[test]
fn resuming_with_a_half_life_gives_the_bytes_of_one_run() {
    let place = with_drift(6000);
    for (algo, k, half_life) in [
        ("obmm", "2", 700),
        ("oem", "2", 700),
        ("obmm", "auto", 300),
        ("obmm", "1..3", 50),
        ("obmm", "2", 100_000),
    ] {
        let learn =
            format!("--algo {algo} --k {k} --half-life {half_life} --init-rows 1000 --keep-rows 2000");
        place.run(&format!("fit --data rows.csv {learn} --out whole.json")).success();
        for cut in [400, 4321] {
            place.run(&format!("fit --data rows.csv --limit {cut} {learn} --out part.json")).success();
            place
                .run(&format!("fit --data rows.csv --skip {cut} --resume part.json --out part.json"))
                .success();
            assert_eq!(place.read("whole.json"), place.read("part.json"), "{learn}, cut at {cut}");
        }
        place.run(&format!("fit --data rows.csv {learn} --threads 1 --out one.json")).success();
        assert_eq!(place.read("whole.json"), place.read("one.json"), "{learn}");
    }
}

#[test]
fn the_half_life_can_be_set_changed_and_removed_when_a_run_resumes() {
    let place = with_drift(12_000);
    let resume = |more: &str, out: &str| {
        place
            .run(&format!("fit --data rows.csv --skip 6000 --resume half.json {more} --out {out}"))
            .success();
        model(&place, out)["settings"]["online"]["half_life"].clone()
    };
    for begun in ["", "--half-life 5000"] {
        place
            .run(&format!("fit --data rows.csv --limit 6000 --init-rows 1000 --k 2 {begun} --out half.json"))
            .success();
        assert_eq!(resume("--half-life 400", "set.json"), 400);
        assert_eq!(resume("--half-life none", "none.json"), serde_json::Value::Null);
        resume("", "same.json");
        let (set, none) = (level(&place, "set.json"), level(&place, "none.json"));
        assert!(set > none + 0.3, "{begun}: {set} with a short half-life, {none} without");
        let a = &model(&place, "set.json")["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["a"];
        let total: f64 = a.as_array().unwrap().iter().map(number).sum();
        assert!(total < 400.0 / 2_f64.ln() + 1.0, "{total}");
    }
    // A checkpoint belongs to one half-life.
    place.run("fit --data rows.csv --init-rows 1000 --k 2 --half-life 9 --limit 5000 --no-rows --out small.json").success();
    place.run("fit --data rows.csv --skip 5000 --resume small.json --out small.json").success();
    assert_eq!(model(&place, "small.json")["settings"]["online"]["half_life"], 9);
}

#[test]
fn learners_without_an_order_of_rows_refuse_a_half_life() {
    let place = with_clusters(2000);
    place.run("fit --data rows.csv --k 2 --out prior.json").success();
    place.run("fit --data rows.csv --k 2 --half-life 500 --out forgetting.json").success();
    place.run("fit --data rows.csv --prior prior.json --out shard.json").success();
    place.run("fit --data rows.csv --k 2 --algo odmm --out shards.json").success();
    let fit = "fit --data rows.csv --out x.json";
    for (more, code, words) in [
        (
            "--k 2 --algo odmm --half-life 50",
            2,
            ["--half-life has no effect with --algo odmm", "obmm or oem"],
        ),
        ("--k 2 --algo em --half-life 50", 2, ["--half-life has no effect with --algo em", "obmm or oem"]),
        ("--prior prior.json --half-life 50", 2, ["shards cannot have a half-life", "order"]),
        ("--prior forgetting.json", 1, ["'forgetting.json' cannot be a prior", "half-life"]),
        ("--resume shards.json --half-life 50", 2, ["shards cannot have a half-life", "order"]),
        ("--resume shard.json --half-life 50", 2, ["shards cannot have a half-life", "order"]),
        ("--k 2 --half-life 0", 2, ["at least 1", "'none'"]),
        ("--k 2 --half-life 1.5", 2, ["number of rows", "'none'"]),
        ("--k 2 --half-life 50 --discount 0.3", 2, ["leave --discount out", "--half-life"]),
        ("--k 2 --algo oem --half-life 50 --alpha 0.6", 2, ["leave --alpha out", "--half-life"]),
    ] {
        place.refuses(&format!("{fit} {more}"), code, &words);
    }
}

#[test]
fn extreme_half_lives_give_a_proper_model() {
    let place = with_drift(6000);
    for half_life in ["1", "10", "18446744073709551615"] {
        for more in ["--k 2", "--k auto", "--k 3 --algo oem", "--k 2 --moments paper --limit 1500"] {
            let line = format!(
                "fit --data rows.csv --init-rows 1000 --half-life {half_life} {more} --out model.json"
            );
            place.run(&line).success();
            assert!(level(&place, "model.json").is_finite(), "{line}");
        }
    }
    // A half-life beyond the stream changes next to nothing.
    place.run("fit --data rows.csv --init-rows 1000 --k 2 --out plain.json").success();
    place
        .run("fit --data rows.csv --init-rows 1000 --k 2 --half-life 1000000000000 --out model.json")
        .success();
    assert!((level(&place, "model.json") - level(&place, "plain.json")).abs() < 1e-3);
}

#[test]
fn a_component_that_dies_out_is_removed_and_a_new_one_is_added() {
    // The first third of the stream has two kinds of rows, then one of them dies out, then a third kind appears.
    let kind = |i: usize| match i / 10_000 {
        0 => i % 2,
        1 => 0,
        _ => 2 * (i % 2),
    };
    let mut rows = normals(30_000, 3, 8);
    rows.outer_iter_mut().enumerate().for_each(|(i, mut row)| row += 30.0 * kind(i) as f64);
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&rows, &["a", "b", "c"]));
    let means = |limit: usize| -> Vec<f64> {
        let line = format!(
            "fit --data rows.csv --limit {limit} --init-rows 2000 --k auto --half-life 500 --out m.json"
        );
        place.run(&line).success();
        let shown = place.json("show m.json");
        let heavy = |c: &&serde_json::Value| number(&c["weight"]) > 0.01;
        let components = shown["components"].as_array().unwrap();
        components.iter().filter(heavy).map(|c| number(&c["mean"][0])).collect()
    };
    let near = |means: &[f64], centre: f64| means.iter().any(|mean| (mean - centre).abs() < 5.0);
    let (two, one, other) = (means(10_000), means(20_000), means(30_000));
    assert!(near(&two, 0.0) && near(&two, 30.0), "{two:?}");
    assert!(near(&one, 0.0) && !near(&one, 30.0), "{one:?}");
    assert!(near(&other, 0.0) && near(&other, 60.0) && !near(&other, 30.0), "{other:?}");
}

#[test]
fn compare_adds_the_learner_that_forgets() {
    let place = with_clusters(600);
    let compare = "compare --no-pictures --data rows.csv --k 3 --folds 2 --algos obmm_revised --out results";
    let result = place.json(&format!("{compare} --half-life 100"));
    let entries = result["sets"][0]["entries"].as_array().unwrap().clone();
    let names: Vec<&str> = entries.iter().filter_map(|entry| entry["contender"].as_str()).collect();
    assert_eq!(names, ["obmm_revised", "obmm_forgetting"]);
    place.refuses(&format!("{compare} --half-life 200"), 1, &["half-life"]);
    place.refuses(&format!("{compare} --half-life 0"), 2, &["half-life"]);
    assert!(place.read("results/summary.md").contains("half-life of 100 rows"));
}
