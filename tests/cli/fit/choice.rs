//! Which K is kept, and what is said of the others.

use gmm_bmm::{FitSettings, OnlineFit};

use super::{model, with_clusters};
use crate::common::*;
use crate::workplace::Workplace;

#[test]
fn a_choice_by_hardly_any_rows_is_warned_of() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(1001, 3, 1), &["a", "b", "c"]));
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stderr.clone()).unwrap();
    assert!(said("fit --data rows.csv --k 1..3 --limit 401 --out m.json").contains("the scores of 201 rows"));
    for enough in ["", "--init-rows 1000", "--init-rows 500"] {
        let line = format!("fit --data rows.csv --k 1..3 {enough} --out m.json");
        assert!(!said(&line).contains("the scores of"), "{enough}");
    }
}

#[test]
fn a_learned_k_at_its_upper_bound_is_told() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(900, 3, 1), &["a", "b", "c"]));
    let said = |k: &str| {
        let line = format!("fit --data rows.csv --k {k} --out m.json");
        String::from_utf8(place.run(&line).success().get_output().stderr.clone()).unwrap()
    };
    let told = said("auto:1..2");
    assert!(
        told.contains("note: K = 2 is the largest that was allowed") && told.contains("--k auto:"),
        "{told}"
    );
    assert!(["auto:1..9", "auto:2..2", "2"].iter().all(|k| !said(k).contains("is the largest")));
}

#[test]
fn a_range_of_k_keeps_the_best_prequential_score() {
    let place = with_clusters(4000);
    let result = place.json("fit --data rows.csv --k 1..5 --out model.json");
    let candidates = result["candidates"].as_array().unwrap();
    let best = candidates.iter().max_by(|a, b| number(&a["score"]).total_cmp(&number(&b["score"]))).unwrap();
    assert_eq!(candidates.len(), 5);
    assert_eq!(result["k"], best["k"]);
    assert_eq!(model(&place, "model.json")["state"]["candidates"].as_array().unwrap().len(), 5);
}

#[test]
fn a_list_of_k_is_learned_as_a_range_is() {
    let place = with_clusters(2000);
    let candidates =
        |k: &str| place.json(&format!("fit --data rows.csv --k {k} --out model.json"))["candidates"].clone();
    let (listed, range) = (candidates("4,1..2,2"), candidates("1..4"));
    let ks: Vec<u64> = listed.as_array().unwrap().iter().map(|c| c["k"].as_u64().unwrap()).collect();
    assert_eq!(ks, [1, 2, 4]);
    assert_eq!(listed[2]["score"], range[3]["score"]);
}

#[test]
fn the_elbow_is_named_in_words_and_for_programs() {
    let place = Workplace::new();
    place.run("synth --k 3 --d 3 --n 4000 --seed 1 --out rows.csv").success();
    let line = "fit --data rows.csv --k 2..6 --init-rows 1500 --out model.json";
    let result = place.json(line);
    assert_eq!((&result["elbow"]["k"], &result["k"]), (&3.into(), &3.into()), "{result}");
    assert_eq!(result["elbow"]["beyond"], "nothing");
    assert_eq!(result["elbow"]["share"], 1.0);
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stdout.clone()).unwrap();
    assert!(said(line).contains("\nelbow at K = 3, the best: larger K gain nothing\n"));
    // Scores and elbow are in the file.
    let shown = place.json("show model.json --k 5");
    assert_eq!((&shown["k"], &shown["best_k"]), (&5.into(), &3.into()));
    assert_eq!((&shown["elbow"], &shown["candidates"]), (&result["elbow"], &result["candidates"]));
    assert!(said("show model.json").contains("\nelbow at K = 3"));
    // Where the score rises to the largest K, that is said.
    let text = said("fit --data rows.csv --k 1..3 --out model.json");
    assert!(text.contains("try larger K, such as --k 3..6\n"), "{text}");
    // One K has no elbow.
    let result = place.json("fit --data rows.csv --k 3 --out model.json");
    assert!(result["elbow"].is_null() && !said("show model.json").contains("elbow"));
}

/// Few rows are scored by halves, more after the start; batch EM is scored on all.
#[test]
fn every_k_has_its_difference_to_the_best_with_a_standard_error() {
    for (rows, options) in [(3000, ""), (8000, ""), (3000, "--algo em")] {
        let place = with_clusters(rows);
        let result = place.json(&format!("fit --data rows.csv --k 1..4 --out model.json {options}"));
        let candidates = result["candidates"].as_array().unwrap();
        let best = candidates.iter().find(|c| c["k"] == result["k"]).unwrap();
        assert!(best["difference"].is_null() && best["standard_error"].is_null());
        for other in candidates.iter().filter(|c| c["k"] != result["k"]) {
            let difference = number(&other["difference"]);
            assert_close(difference, number(&other["score"]) - number(&best["score"]), 1e-12, "difference");
            assert!(difference <= 0.0 && number(&other["standard_error"]) > 0.0, "{other}");
        }
        let single = &candidates[0];
        assert!(-number(&single["difference"]) > 3.0 * number(&single["standard_error"]), "{single}");
    }
}

#[test]
fn the_standard_error_of_a_difference_allows_for_neighbours_that_are_alike() {
    let place = Workplace::new();
    let rows = runs(60_000, 3);
    place.write("rows.csv", &as_csv(&rows, &["a", "b"]));
    let totals = [1, 2].map(|k| {
        let mut pass = OnlineFit::new(2, FitSettings::obmm([k])).unwrap();
        let chunks = rows.axis_chunks_iter(ndarray::Axis(0), 500).map(|run| {
            pass.observe(run).unwrap();
            if pass.has_started() {
                pass.state().unwrap().candidates[0].prequential.log_likelihood
            } else {
                0.0
            }
        });
        chunks.collect::<Vec<f64>>()
    });
    // Differences gained in each run after the start of 5000 rows.
    let beyond: Vec<f64> = totals[0].iter().zip(&totals[1]).map(|(one, two)| one - two).skip(9).collect();
    let gained: Vec<f64> = beyond.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = standard_error_by_runs(&gained, 500.0);
    // oDMM learns the same two K by shards.
    for options in ["", "--algo em", "--algo odmm"] {
        let result = place.json(&format!("fit --data rows.csv --k 1,2 --out model.json {options}"));
        assert_eq!(result["k"], 2);
        let ratio = number(&result["candidates"][0]["standard_error"]) / expected;
        assert!((0.6..1.5).contains(&ratio), "{options}: {ratio}");
    }
}

/// A stream that ends with the rows of the start, or soon after, has K chosen by half of its rows.
#[test]
fn k_is_chosen_by_enough_rows_wherever_the_stream_ends() {
    let place = with_clusters(2400);
    for (rows, scored) in [(1399, 700), (1400, 700), (1401, 701), (2099, 1050), (2100, 700), (2400, 1000)] {
        let line = format!("fit --data rows.csv --limit {rows} --init-rows 1400");
        let result = place.json(&format!("{line} --k 2..4 --out several.json"));
        // Once the pass has started, one row in twenty or so is held back and not scored.
        let found = result["prequential_rows"].as_u64().unwrap();
        let least = if rows < 2100 { scored } else { scored - scored / 10 };
        assert!((least..=scored).contains(&found), "{found} of {rows}");
        assert!(result["candidates"].as_array().unwrap().iter().any(|c| c["standard_error"].is_number()));
        if (1400..2100).contains(&rows) {
            // Alone, a K makes its start from the first 1400 rows. Several K wait for more.
            continue;
        }
        // The K that is kept is the same as if it were alone.
        let k = &result["k"];
        place.run(&format!("{line} --k {k} --out alone.json")).success();
        assert_eq!(
            best(&model(&place, "several.json"))["learned"],
            best(&model(&place, "alone.json"))["learned"],
            "{rows}"
        );
    }
}

/// The state of the best K of a model file.
fn best(model: &serde_json::Value) -> &serde_json::Value {
    &model["state"]["candidates"][model["best"].as_u64().unwrap() as usize]
}
