//! Revisions of the structure, as `fit` and `show` tell of them.

use ndarray::Array2;
use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

/// 6000 rows in four clusters, of which one appears after two thirds of the rows. By then three components have learned the
/// first three. The late cluster is nearest to the third, and the first two are far away but close together, so that a
/// revision has to split the third and to join the first two.
fn late_cluster() -> Array2<f64> {
    let mut rows = normals(6000, 2, 3);
    for (i, mut row) in rows.outer_iter_mut().enumerate() {
        let early = [[0.0, -100.0], [6.0, -100.0], [0.0, 0.0]][i % 3];
        let centre = if i >= 4000 { [0.0, 40.0] } else { early };
        row[0] += centre[0];
        row[1] += centre[1];
    }
    rows
}

pub fn with_late_cluster() -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&late_cluster(), &["a", "b"]));
    place
}

const FIT: &str = "fit --data rows.csv --k 3 --init-rows 1000";

fn said(place: &Workplace, line: &str) -> String {
    String::from_utf8(place.run(line).success().get_output().stdout.clone()).unwrap()
}

/// The number before a word.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().unwrap().trim_end();
    before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap()
        .parse()
        .unwrap_or_else(|_| panic!("no number before '{word}': {text}"))
}

#[test]
fn fit_and_show_tell_of_the_same_revisions() {
    let place = with_late_cluster();
    let result = place.json(&format!("{FIT} --out model.json"));
    let revisions = result["revisions"].as_array().unwrap();
    let kept = revisions.iter().filter(|revision| revision["kept"] == true).count();
    assert!(revisions.len() >= 2 && kept >= 1, "{result}");
    let novel = revisions.iter().find(|revision| revision["reason"] == "novelty").expect("a cluster is new");
    assert!((4000..4600).contains(&novel["rows"].as_u64().unwrap()), "{novel}");
    assert!(!novel["moves"].as_array().unwrap().is_empty(), "{novel}");
    assert_eq!(result["kept_rows"], 6000);
    assert_eq!(result["effort"], "default");

    let shown = place.json("show model.json");
    for field in ["revisions", "kept_rows", "effort"] {
        assert_eq!(shown[field], result[field], "{field}");
    }
    let identifiers: Vec<u64> =
        shown["components"].as_array().unwrap().iter().map(|c| c["identifier"].as_u64().unwrap()).collect();
    let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
    let mut of_file: Vec<u64> = model["state"]["candidates"][0]["structure"]["finished"]["identifiers"]["of"]
        .as_array()
        .unwrap()
        .iter()
        .map(|identifier| identifier.as_u64().unwrap())
        .collect();
    let mut sorted = identifiers.clone();
    of_file.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(sorted, of_file);
    assert!(identifiers.iter().any(|identifier| *identifier > 3), "a split gives new identifiers");

    let (fitted, shown) = (said(&place, &format!("{FIT} --out again.json")), said(&place, "show model.json"));
    for text in [&fitted, &shown] {
        assert_eq!(number_before(text, "revisions, "), revisions.len() as u64);
        assert_eq!(number_before(text, "of which changed"), kept as u64);
        assert!(text.contains("contains 6000 rows of the data"), "{text}");
    }
    let heading = shown.lines().find(|line| line.starts_with("component ")).unwrap();
    let heads: Vec<u64> = heading.split_whitespace().skip(1).map(|cell| cell.parse().unwrap()).collect();
    assert_eq!(heads, identifiers);
    assert!(shown.contains("effort: default"), "{shown}");
}

#[test]
fn the_history_lists_every_revision() {
    let place = with_late_cluster();
    let result = place.json(&format!("{FIT} --out model.json"));
    let history = said(&place, "show model.json --history");
    let table: Vec<&str> =
        history.lines().skip_while(|line| !line.trim_start().starts_with("rows ")).collect();
    for revision in result["revisions"].as_array().unwrap() {
        let rows = revision["rows"].to_string();
        let line = table.iter().find(|line| line.trim_start().starts_with(&format!("{rows} "))).unwrap();
        let kept = if revision["kept"] == true { " yes " } else { " no " };
        assert!(line.contains(kept), "{line}");
        for made in revision["moves"].as_array().unwrap() {
            let split = &made["split"];
            let words =
                format!("split {} into {} and {};", split["component"], split["into"][0], split["into"][1]);
            assert!(history.contains(&words), "{words} not in\n{history}");
        }
    }
    assert!(history.contains("new kind of rows") && history.contains("number of rows"), "{history}");
    assert!(!history.contains("weight"), "{history}");
}

#[test]
fn models_that_are_not_revised_say_why() {
    let place = with_late_cluster();
    for (options, words) in [
        ("--k 3 --effort fast", "no revisions: --effort fast only fits the start"),
        ("--k 3 --keep-rows 0", "no revisions: --keep-rows 0 turns them off"),
        ("--k 3 --limit 500", "no revisions: the mixture was fitted to all rows at once"),
    ] {
        let text = said(&place, &format!("fit --data rows.csv --init-rows 1000 {options} --out model.json"));
        assert!(text.contains(words), "{options}: {text}");
        assert_eq!(text.contains("all 500 rows were used"), options.contains("500"), "{text}");
        assert!(!text.contains("provisional") && !text.contains("interrupted"), "{text}");
        assert!(said(&place, "show model.json").contains(words), "{options}");
        assert_eq!(place.json("show model.json")["revisions"], serde_json::json!([]));
    }
    for options in ["--k 1", "--k 3 --algo em --limit 1000"] {
        let text = said(&place, &format!("fit --data rows.csv {options} --out model.json"));
        assert!(!text.contains("revision") && text.contains("contains no rows of the data"), "{text}");
        assert!(said(&place, "show model.json --history").contains("no revisions"));
    }
    let em = place.json("fit --data rows.csv --k 3 --algo em --effort fast --limit 1000 --out model.json");
    assert_eq!(em["effort"], "fast");
    place.refuses("fit --data rows.csv --k 3 --algo em --keep-rows 5 --out m.json", 2, &["--keep-rows"]);
    place.refuses(
        "fit --data rows.csv --k 3 --keep-rows 1000000000000000000 --out m.json",
        2,
        &["1000000000000000000 kept rows", "2 GB", "--keep-rows"],
    );
}

#[test]
fn a_model_can_be_written_without_rows_wherever_the_stream_ends() {
    let place = with_late_cluster();
    // Before the start is made, with several K, and after it.
    for (k, limit) in [("3", 700), ("2..3", 1200), ("3", 6000)] {
        let line = format!("fit --data rows.csv --init-rows 1000 --k {k} --limit {limit}");
        let rows = place.json(&format!("{line} --out with.json"));
        assert_eq!(rows["kept_rows"], limit);
        let text = said(&place, &format!("{line} --out with.json"));
        assert_eq!(number_before(&text, "rows of the data"), limit);
        let bare = place.json(&format!("{line} --out bare.json --no-rows"));
        assert_eq!((&bare["kept_rows"], &bare["k"]), (&0.into(), &rows["k"]));
        let model: Value = serde_json::from_str(&place.read("bare.json")).unwrap();
        let state = &model["state"];
        assert!(state.get("pending").is_none(), "{limit}");
        let none = serde_json::json!([]);
        assert_eq!((&state["kept"]["reservoir"], &state["kept"]["validation"]), (&none, &none));
        assert!(said(&place, "show bare.json").contains("the file contains no rows of the data"));
        let score = |model: &str| {
            place.json(&format!("eval --model {model} --data rows.csv"))["mean_log_likelihood"].clone()
        };
        assert_eq!(score("bare.json"), score("with.json"), "the mixture is the same");
        // Resuming learns and, when as many new rows have come, revises again.
        let resumed = place.json("fit --data rows.csv --resume bare.json --out more.json");
        assert_eq!(resumed["rows"], limit + 6000);
        let again: Vec<u64> = resumed["revisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|revision| revision["rows"].as_u64().unwrap())
            .filter(|rows| *rows > limit)
            .collect();
        assert!(limit == 6000 || !again.is_empty(), "{k} {limit}: {resumed}");
        assert!(again.iter().all(|rows| *rows >= 2 * limit - limit / 10), "{again:?}");
    }
}

#[test]
fn shards_are_revised_when_they_are_merged() {
    let place = with_late_cluster();
    let line = "fit --data rows.csv --init-rows 500 --k 3 --algo odmm --shards 2";
    let result = place.json(&format!("{line} --deal parts --out parts.json"));
    let revisions = result["revisions"].as_array().unwrap();
    assert_eq!((revisions.len(), &revisions[0]["reason"]), (1, &"merge".into()), "{result}");
    assert!(said(&place, "show parts.json --history").contains(" merge of shards "));
    let result = place.json(&format!("{line} --out rows.json"));
    assert_eq!(result["revisions"][0]["reason"], "end", "{result}");
}

#[test]
fn a_closing_revision_that_changes_nothing_is_forgotten_by_a_resumed_run() {
    let place = Workplace::new();
    let mut rows = normals(4000, 2, 5);
    rows.outer_iter_mut().enumerate().for_each(|(i, mut row)| row[0] += 40.0 * (i % 3) as f64);
    place.write("rows.csv", &as_csv(&rows, &["a", "b"]));
    let line = "fit --data rows.csv --init-rows 500 --k 3 --algo odmm --shards 2";
    let part = place.json(&format!("{line} --limit 2000 --out part.json"));
    assert_eq!(part["revisions"][0]["kept"], false, "{part}");
    place.run("fit --data rows.csv --skip 2000 --resume part.json --out part.json").success();
    let whole = place.json(&format!("{line} --out whole.json"));
    assert_eq!(whole["revisions"].as_array().unwrap().len(), 1);
    assert_eq!(place.read("part.json"), place.read("whole.json"));
}

#[test]
fn a_model_on_standard_output_is_told_of_on_standard_error() {
    let place = with_late_cluster();
    let output = place.run(&format!("{FIT} --out -")).success().get_output().clone();
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("note: the model contains 6000 rows of the data"), "{note}");
    let output = place.run(&format!("{FIT} --out - --no-rows")).success().get_output().clone();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("rows of the data"));
}

/// The x of each vertical line in the colour of revisions; the last is the legend's.
fn marks(svg: &str) -> Vec<f64> {
    let lines = svg.lines().filter(|line| line.starts_with("<polyline") || line.starts_with("<line"));
    lines
        .filter(|line| line.contains("#E69F00"))
        .map(|line| {
            let points = line.split("points=\"").nth(1).unwrap();
            points.split(',').next().unwrap().parse().unwrap()
        })
        .collect()
}

#[test]
fn the_learning_curve_marks_the_revisions_that_changed_the_mixture() {
    let place = with_late_cluster();
    place.write("test.csv", &as_csv(&late_cluster(), &["a", "b"]));
    let line = format!("{FIT} --out model.json --plot-curve curve.svg --trace-every 250");
    let result = place.json(&line);
    assert_eq!(result["plot_curve"], "curve.svg");
    let picture = place.read("curve.svg");
    let kept: Vec<&Value> =
        result["revisions"].as_array().unwrap().iter().filter(|revision| revision["kept"] == true).collect();
    let found = marks(&picture);
    assert_eq!(found.len(), kept.len() + 1, "one line each, and one in the legend");
    assert!(found[..kept.len()].windows(2).all(|pair| pair[0] < pair[1]), "{found:?}");
    for words in ["oBMM (whitened moments), K = 3", "prequential", "mean of each 250 rows", "revisions"] {
        assert!(picture.contains(words), "{words}");
    }
    assert!(!picture.contains("test rows"));
    assert!(said(&place, &line).contains("learning curve written to curve.svg"));
    assert_eq!(place.read("curve.svg"), picture, "the same seed gives the same picture");
    place.run(&format!("{FIT} --out plain.json")).success();
    assert_eq!(place.read("plain.json"), place.read("model.json"), "drawing does not change what is learned");

    // With test rows, with and without a CSV file.
    place.run(&format!("{line} --test test.csv")).success();
    let tested = place.read("curve.svg");
    assert!(tested.contains("test rows"));
    place.run(&format!("{line} --test test.csv --trace curve.csv")).success();
    assert_eq!(place.read("curve.svg"), tested);
    assert_eq!(place.read("curve.csv").lines().count(), 1 + 24);
    place.run(&format!("{FIT} --out model.json --plot-curve curve.png")).success();
    assert!(std::fs::read(place.path("curve.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_learning_curve_of_a_resumed_run_and_of_several_k() {
    let place = with_late_cluster();
    place.run("fit --data rows.csv --limit 3000 --init-rows 1000 --k 2..3 --out part.json").success();
    let result =
        place.json("fit --data rows.csv --skip 3000 --resume part.json --out part.json --plot-curve a.svg");
    let picture = place.read("a.svg");
    assert!(picture.contains(&format!("K = {}", result["k"])), "{}", &picture[..600]);
    let kept = result["revisions"].as_array().unwrap().iter();
    let later =
        kept.filter(|revision| revision["kept"] == true && revision["rows"].as_u64() > Some(3000)).count();
    assert_eq!(marks(&picture).len(), later + usize::from(later > 0));
    for label in [">3,500<", ">6,000<"] {
        assert!(
            picture.lines().any(|line| line == &label[1..label.len() - 1]) || picture.contains(label),
            "{label}"
        );
    }
    assert!(!picture.contains("2,500"), "the axis begins where the run does");
    place.run("fit --data rows.csv --init-rows 1000 --k 2..3 --out whole.json").success();
    assert_eq!(place.read("whole.json"), place.read("part.json"));
}

#[test]
fn a_learning_curve_that_cannot_be_drawn_is_refused_or_left_out() {
    let place = with_late_cluster();
    let line = format!("{FIT} --out model.json --plot-curve");
    place.refuses(&format!("{line} curve.pdf"), 2, &["curve.pdf", ".svg or .png"]);
    place.refuses(&format!("{line} nowhere/curve.svg"), 1, &["nowhere/curve.svg"]);
    place.refuses(&format!("{FIT} --out a.svg --plot-curve a.svg"), 2, &["a.svg", "replace"]);
    place.refuses(&format!("{line} a.svg --plot a.svg"), 2, &["a.svg", "replace"]);
    place.refuses(&format!("{FIT} --out m.json --test rows.csv"), 2, &["--trace", "--plot-curve"]);
    place.refuses(&format!("{FIT} --out m.json --trace-every 5"), 2, &["--trace", "--plot-curve"]);
    place.refuses(
        "fit --data rows.csv --k 2 --algo em --out m.json --plot-curve a.svg",
        2,
        &["learning curve"],
    );
    let parts = "fit --data rows.csv --k 2 --algo odmm --deal parts --out m.json --plot-curve a.svg";
    place.refuses(parts, 2, &["learning curve"]);
    // The start takes all rows.
    for limit in [800, 1000] {
        let assert = place.run(&format!("{line} none.svg --limit {limit}")).success();
        let warning = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(warning.contains(&format!("the start took all {limit} rows")), "{warning}");
        assert!(!place.path("none.svg").exists());
        assert!(place.json("show model.json")["rows"] == limit);
    }
}

#[test]
fn a_single_row_is_described_as_one() {
    let place = Workplace::new();
    place.write("one.csv", "a,b\n1,2\n");
    let fitted = place.run("fit --data one.csv --out model.json").success();
    let output = fitted.get_output();
    let said = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert!(said.contains("(1 row in all)") && said.contains("give more rows"), "{said}");
    assert!(said.contains("it contains the only row of the data") && !said.contains("smaller --k"), "{said}");
}
