//! `fit --start blind`.

use serde_json::Value;

use super::{model, with_clusters};
use crate::common::*;

#[test]
fn a_blind_start_has_no_buffer_and_no_revisions_and_show_says_so() {
    let place = with_clusters(2000);
    for algo in ["obmm", "oem"] {
        let fit = format!("fit --data rows.csv --k 2,3 --start blind --algo {algo}");
        let result = place.json(&format!("{fit} --out model.json"));
        // Three columns: ten rows make the start, and all others are scored.
        assert_eq!((result["rows"].as_u64(), result["prequential_rows"].as_u64()), (Some(2000), Some(1990)));
        let file = model(&place, "model.json");
        assert_eq!(
            (&file["settings"]["online"]["start"], &result["kept_rows"]),
            (&Value::from("blind"), &Value::from(0))
        );
        let shown = place.json("show model.json");
        assert_eq!((&shown["start"], shown["effort"].is_null()), (&Value::from("blind"), true));
        let text = place.run("show model.json").success().get_output().stdout.clone();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("start: blind") && text.contains("no revisions: --start blind"), "{text}");
        let fitted = place.json(&format!("fit --data rows.csv --k 3 --algo {algo} --out fitted.json"));
        assert!(fitted["start"] == "fitted" && model(&place, "fitted.json")["start"].is_null());
        // The printed form of oEM, which does not count the rows of the start.
        assert!(algo == "obmm" || text.contains("as printed"), "{text}");
    }
}

#[test]
fn a_blind_fit_stops_and_resumes_to_the_bit_anywhere() {
    let place = with_clusters(400);
    for algo in ["obmm", "oem --half-life 100"] {
        let fit = format!("fit --data rows.csv --k 2..3 --start blind --algo {algo}");
        place.run(&format!("{fit} --out whole.json")).success();
        // Before, at and after the end of the start.
        for rows in [4, 10, 11, 250] {
            place.run(&format!("{fit} --limit {rows} --out part.json")).success();
            let rest = format!("fit --data rows.csv --skip {rows} --resume part.json --out part.json");
            place.run(&rest).success();
            assert_eq!(model(&place, "part.json"), model(&place, "whole.json"), "{algo} after {rows} rows");
        }
    }
}

#[test]
fn the_learning_curve_of_a_blind_start_begins_with_the_first_row() {
    let place = with_clusters(1200);
    place.write("test.csv", &as_csv(&clusters(300, 3, 2), &["a", "b", "c"]));
    let fit = "fit --data rows.csv --k 3 --start blind --out model.json --test test.csv --trace-every 400";
    place.run(&format!("{fit} --trace curve.csv --plot-curve curve.svg")).success();
    let points: Vec<Vec<f64>> = place
        .read("curve.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect())
        .collect();
    let rows: Vec<f64> = points.iter().map(|point| point[0]).collect();
    assert_eq!(rows, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1200.0]);
    let test: Vec<f64> = points.iter().map(|point| point[4]).collect();
    assert!(test.iter().all(|score| score.is_finite()) && test[10] > test[3], "{test:?}");
    assert!(points[3][3].is_nan() && points[4][3].is_finite(), "rows of the start are not scored");
    let picture = place.read("curve.svg");
    assert!(picture.starts_with("<svg") && picture.contains("polyline"), "{picture}");
}

#[test]
fn a_blind_fit_of_a_fold_is_the_cell_of_compare() {
    let place = with_clusters(300);
    let compare = "compare --no-pictures --data rows.csv --k 3 --folds 2 --seed 4 --algos obmm_blind";
    place.run(&format!("{compare} --out out")).success();
    place.run(&format!("{compare} --export-folds folds")).success();
    let folds: Value = serde_json::from_str(&place.read("folds/folds.json")).unwrap();
    let scores = place.read("out/loglik.csv");
    for fold in 0..2 {
        let exported = &folds["folds"][fold];
        let (folder, seed) = (exported["folder"].as_str().unwrap(), &exported["learner_seeds"]["3"]);
        let fit = format!("fit --data folds/{folder}/train.csv --k 3 --seed {seed} --start blind");
        place.run(&format!("{fit} --out model.json")).success();
        let scored = place.json(&format!("eval --model model.json --data folds/{folder}/test.csv"));
        let begins = format!("rows,obmm_blind,3,4,{fold},");
        let line = scores.lines().find(|line| line.starts_with(&begins)).unwrap();
        let cell: f64 = line.split(',').nth(8).unwrap().parse().unwrap();
        assert!((number(&scored["mean_log_likelihood"]) - cell).abs() < 1e-5, "{scored} {cell}");
    }
}

#[test]
fn options_that_a_blind_start_has_no_use_for_are_refused() {
    let place = with_clusters(60);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    for (more, said) in [
        ("", "--start blind needs a given number of components: add --k"),
        ("--k auto", "--start blind needs a given number of components"),
        ("--k 2 --algo odmm", "--start blind has no effect with --algo odmm"),
        ("--k 2 --algo em", "--start blind has no effect with --algo em"),
        ("--k 2 --init-rows 20", "--init-rows has no effect with --start blind"),
        ("--k 2 --effort thorough", "--effort has no effect with --start blind"),
        ("--k 2 --keep-rows 20", "--keep-rows has no effect with --start blind"),
        ("--k 2 --no-rows", "--no-rows has no effect with --start blind"),
        ("--k 2 --half-life 50 --discount 0.5", "leave --discount out"),
        ("--resume model.json", "cannot be used with"),
        ("--prior model.json", "cannot be used with"),
    ] {
        place.refuses(&format!("fit --data rows.csv --start blind {more} --out other.json"), 2, &[said]);
    }
}

#[test]
fn hard_rows_do_not_break_a_blind_start() {
    let place = with_clusters(20);
    let constant: String = (0..200).map(|i| format!("1,{}\n", i % 7)).collect();
    place.write("constant.csv", &format!("a,b\n{constant}"));
    place.write("one.csv", "a,b\n1,2\n");
    let gaps: String =
        (0..200).map(|i| if i < 15 { format!(",{i}\n") } else { format!("{},{i}\n", i * i % 17) }).collect();
    place.write("gaps.csv", &format!("a,b\n{gaps}"));
    for line in
        ["constant.csv --k 3", "one.csv --k 1", "gaps.csv --missing marginal --k 3", "rows.csv --k 20"]
    {
        for algo in ["obmm", "oem"] {
            let result =
                place.json(&format!("fit --data {line} --start blind --algo {algo} --out model.json"));
            assert!(result["rows"].as_u64().unwrap() > 0);
            let shown = place.json("show model.json");
            let finite = |component: &Value| vector(&component["mean"]).iter().all(|value| value.is_finite());
            assert!(shown["components"].as_array().unwrap().iter().all(finite), "{line}");
        }
    }
}
