//! `gmm-bmm fit` as a user meets it.

mod common;

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use common::*;
use serde_json::Value;

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
    assert_eq!(model["learned"]["bayes"]["posterior"]["components"].as_array().unwrap().len(), 3);
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
fn a_choice_by_hardly_any_rows_is_warned_of() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(1001, 3, 1), &["a", "b", "c"]));
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stderr.clone()).unwrap();
    assert!(
        said("fit --data rows.csv --k 1..3 --limit 401 --out m.json").contains("the scores of 201 rows only")
    );
    for enough in ["", "--init-rows 1000", "--init-rows 500"] {
        let line = format!("fit --data rows.csv --k 1..3 {enough} --out m.json");
        assert!(!said(&line).contains("the scores of"), "{enough}");
    }
}

#[test]
fn a_range_of_k_keeps_the_best_prequential_score() {
    let place = with_clusters(4000);
    let result = place.json("fit --data rows.csv --k 1..5 --out model.json");
    let candidates = result["candidates"].as_array().unwrap();
    let best = candidates.iter().max_by(|a, b| number(&a["score"]).total_cmp(&number(&b["score"]))).unwrap();
    assert_eq!(candidates.len(), 5);
    assert_eq!(result["k"], best["k"]);
    assert_eq!(model(&place, "model.json")["rivals"].as_array().unwrap().len(), 4);
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
fn rows_that_were_learned_before_are_noted() {
    let place = with_clusters(1500);
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stderr.clone()).unwrap();
    place.run("fit --data rows.csv --k 2 --out model.json --limit 700").success();
    assert!(
        said("fit --data rows.csv --resume model.json --limit 700 --out twice.json").contains("count twice")
    );
    assert!(
        !said("fit --data rows.csv --resume model.json --skip 700 --limit 700 --out on.json")
            .contains("twice")
    );
}

#[test]
fn a_column_that_numbers_the_rows_is_noted() {
    let place = Workplace::new();
    let mut rows = clusters(300, 3, 3);
    rows.column_mut(1).iter_mut().enumerate().for_each(|(i, value)| *value = i as f64 + 7.0);
    place.write("rows.csv", &as_csv(&rows, &["a", "id", "c"]));
    for options in ["", "--algo em"] {
        let line = format!("fit --data rows.csv --k 2 --out m.json {options}");
        let note = predicates::str::contains("column 'id' goes up evenly from row to row");
        place.run(&line).success().stderr(note).stderr(predicates::str::contains("--drop 'id'"));
    }
    // Ids in another order are told by being all different.
    let mut many = clusters(2000, 2, 4);
    many.column_mut(1).iter_mut().enumerate().for_each(|(i, id)| *id = ((i * 787) % 2003) as f64);
    place.write("many.csv", &as_csv(&many, &["a", "key"]));
    let note = predicates::str::contains("column 'key' has another whole number in every row");
    place.run("fit --data many.csv --k 2 --out m.json").success().stderr(note);
    // It moves on from the first rows' range, but that is no reason to shuffle the file.
    let said = place.run("fit --data rows.csv --k 2 --init-rows 100 --out m.json").success();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(said.contains("'id' went on from the first rows' range") && !said.contains("shuffle"), "{said}");
}

#[test]
fn resuming_gives_the_bytes_of_one_run() {
    for (algorithm, cut) in [("obmm", 1700), ("obmm", 400), ("oem", 1700), ("obmm --moments paper", 1200)] {
        let place = with_clusters(0);
        let rows = clusters(2500, 3, 9);
        let header = ["a", "b", "c"];
        place.write("a.csv", &as_csv(&rows.slice(ndarray::s![..cut, ..]).to_owned(), &header));
        place.write("b.csv", &as_csv(&rows.slice(ndarray::s![cut.., ..]).to_owned(), &header));
        // Cut before the start and after it.
        let learn = format!("--algo {algorithm} --init-rows 1000");
        for k in ["3", "2..4"] {
            place.run(&format!("fit --data a.csv --data b.csv {learn} --k {k} --out whole.json")).success();
            place.run(&format!("fit --data a.csv {learn} --k {k} --out part.json")).success();
            place.run("fit --data b.csv --resume part.json --out part.json").success();
            assert_eq!(place.read("whole.json"), place.read("part.json"), "{algorithm}, K {k}, cut at {cut}");
        }
    }
}

#[test]
fn a_resumed_run_knows_how_sure_the_differences_are() {
    let place = with_clusters(2500);
    let result = |line: &str| place.json(line)["candidates"].clone();
    let whole = result("fit --data rows.csv --init-rows 1000 --k 2..4 --out whole.json");
    assert!(whole[0]["standard_error"].as_f64().unwrap() > 0.0);
    place.run("fit --data rows.csv --limit 1333 --init-rows 1000 --k 2..4 --out part.json").success();
    assert_eq!(result("fit --data rows.csv --skip 1333 --resume part.json --out part.json"), whole);
    assert_eq!(place.read("part.json"), place.read("whole.json"));
}

/// A stream that ends with the rows of the start, or soon after, has K chosen by half of its rows.
#[test]
fn k_is_chosen_by_enough_rows_wherever_the_stream_ends() {
    let place = with_clusters(2400);
    for (rows, scored) in [(1399, 700), (1400, 700), (1401, 701), (2099, 1050), (2100, 700), (2400, 1000)] {
        let line = format!("fit --data rows.csv --limit {rows} --init-rows 1400");
        let result = place.json(&format!("{line} --k 2..4 --out several.json"));
        assert_eq!(result["prequential_rows"], scored, "of {rows}");
        assert!(result["candidates"].as_array().unwrap().iter().any(|c| c["standard_error"].is_number()));
        // The K that is kept is the same as if it were alone.
        let k = &result["k"];
        place.run(&format!("{line} --k {k} --out alone.json")).success();
        assert_eq!(
            model(&place, "several.json")["learned"],
            model(&place, "alone.json")["learned"],
            "{rows}"
        );
    }
}

#[test]
fn options_that_a_learner_has_no_use_for_are_refused() {
    let place = with_clusters(100);
    for (options, words) in [
        ("--shards 4", ["--shards means nothing to --algo obmm", "--algo odmm"]),
        ("--algo em --discount 0.5", ["--discount means nothing to --algo em", "obmm or odmm"]),
        ("--algo odmm --alpha 0.6", ["--alpha means nothing to --algo odmm", "--algo oem"]),
        ("--algo oem --moments paper", ["--moments means nothing", "obmm"]),
    ] {
        place.refuses(&format!("fit --data rows.csv --k 2 --out m.json {options}"), 2, &words);
    }
    place.refuses("fti --data rows.csv", 2, &["the commands are fit, eval, compare"]);
    place.refuses(
        "fit --data rows.csv --k 2 --out m.json --skip 500",
        1,
        &["no rows to learn from", "--skip"],
    );
}

fn wait_for(place: &Workplace, file: &str) {
    let waited = std::time::Instant::now();
    while !place.path(file).exists() {
        assert!(waited.elapsed() < Duration::from_secs(60), "{file} was not written");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_run_goes_on_from_its_checkpoint_to_the_same_bytes() {
    let place = with_clusters(30_000);
    place.run("fit --data rows.csv --k 2..3 --out straight.json").success();
    let line = "fit --data - --k 2..3 --out model.json --checkpoint run.checkpoint --checkpoint-every 5000";
    // Fed slowly, so that it is killed in the middle.
    let text = place.read("rows.csv");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
        .args(line.split_whitespace())
        .current_dir(place.folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&text.as_bytes()[..text.len() / 2]).unwrap();
    wait_for(&place, "run.checkpoint");
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!(!place.path("model.json").exists());

    // Of other data, or a model that is no checkpoint: refused.
    place.write("other.csv", &as_csv(&clusters(30_000, 3, 99), &["a", "b", "c"]));
    place.refuses(&line.replace("--data -", "--data other.csv"), 2, &["the rows are not those"]);
    place.write("short.csv", &as_csv(&clusters(100, 3, 99), &["a", "b", "c"]));
    place.refuses(&line.replace("--data -", "--data short.csv"), 2, &["the rows end before"]);
    place.refuses(
        &line.replace("--data -", "--data rows.csv").replace("run.checkpoint", "straight.json"),
        2,
        &["not a checkpoint"],
    );
    // A checkpoint is a model file like any other.
    place.run("show run.checkpoint").success();
    place.refuses(
        &line.replace("2..3", "4").replace("--data -", "--data rows.csv"),
        2,
        &["a run with another --k"],
    );
    let again = place.run(&line.replace("--data -", "--data rows.csv")).success();
    let said = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
    assert!(said.contains("going on from checkpoint"), "{said}");
    assert_eq!(place.read("straight.json"), place.read("model.json"));
    assert!(!place.path("run.checkpoint").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupt_saves_the_checkpoint() {
    let place = with_clusters(3000);
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
        .args(
            "fit --data - --k 2 --out model.json --checkpoint run.checkpoint --checkpoint-every 2000"
                .split_whitespace(),
        )
        .current_dir(place.folder.path())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = place.read("rows.csv");
    stdin.write_all(text.as_bytes()).unwrap();
    wait_for(&place, "run.checkpoint");
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
    // It ends although its input is still open and nothing comes.
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(place.path("run.checkpoint").exists() && !place.path("model.json").exists());
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

#[test]
fn degenerate_columns_are_named() {
    let place = Workplace::new();
    place
        .run("fit --data transfusion --k 2 --out m.json")
        .success()
        .stderr(predicates::str::contains("'monetary' is a linear function of 'frequency'"));
    let mut rows = clusters(1200, 3, 3);
    rows.column_mut(1).fill(4.0);
    place.write("constant.csv", &as_csv(&rows, &["a", "b", "c"]));
    place
        .run("fit --data constant.csv --k 2 --out m.json")
        .success()
        .stderr(predicates::str::contains("column 'b' is constant"));
    assert!(
        place
            .run("fit --data constant.csv --k 2 --out m.json --quiet")
            .success()
            .get_output()
            .stderr
            .is_empty()
    );
}

#[test]
fn a_column_that_only_some_component_holds_at_the_floor_is_named() {
    let place = Workplace::new();
    let mut rows = clusters(2000, 3, 3);
    for (i, mut row) in rows.outer_iter_mut().enumerate() {
        row[0] += 30.0 * (i % 2) as f64;
        row[1] = if i % 2 == 0 { row[1] } else { 2.0 * row[0] + 1e-5 * row[1] };
    }
    place.write("rows.csv", &as_csv(&rows, &["a", "b", "c"]));
    place
        .run("fit --data rows.csv --k 2 --out m.json")
        .success()
        .stderr(predicates::str::contains("the spread of 'b', given the columns before, is held at a floor"));
}

#[test]
fn word_columns_are_left_out_with_a_notice_and_catalogue_names_use_the_papers_columns() {
    let place = Workplace::new();
    let file = repository("datasets/abalone.csv");
    let line = format!("fit --data {} --k 2 --out m.json", file.display());
    place.run(&line).success().stderr(predicates::str::contains("'Sex' left out"));
    let result = place.json("fit --data magic04 --k 2 --out m.json --limit 2000");
    assert_eq!(result["columns"].as_array().unwrap().len(), 10);
    assert_eq!(result["rows"], 2000);
    place.refuses("fit --data northridge --k 2 --out m2.json", 1, &["northridge"]);
}

#[test]
fn bad_input_is_refused_with_file_row_and_column_and_leaves_nothing() {
    let place = with_clusters(50);
    let k = "--k 2 --out out.json";
    place.write("empty.csv", "");
    place.write("header.csv", "a,b\n");
    place.write("ragged.csv", "a,b\n1,2\n3\n4,5\n");
    place.write("word.csv", "a,b\n1,2\n3,x\n4,5\n");
    place.write("nan.csv", "a,b\n1,2\n3,4\nNaN,5\n");
    place.write("words.csv", "a,b\nx,y\nu,v\n");
    place.refuses(&format!("fit --data missing.csv {k}"), 1, &["missing.csv", "does not exist"]);
    place.refuses(&format!("fit --data empty.csv {k}"), 1, &["empty.csv", "empty"]);
    place.refuses(&format!("fit --data header.csv {k}"), 1, &["header.csv", "only a header"]);
    place.refuses(&format!("fit --data ragged.csv {k}"), 1, &["ragged.csv", "row 2", "line 3"]);
    place.refuses(
        &format!("fit --data word.csv {k}"),
        1,
        &["word.csv", "row 2", "'b'", "'x'", "--bad-rows skip"],
    );
    place.refuses(&format!("fit --data nan.csv {k}"), 1, &["nan.csv", "row 3", "'a'"]);
    place.refuses(&format!("fit --data words.csv {k}"), 1, &["words.csv"]);
    place.refuses(&format!("fit --data rows.csv --columns a,z {k}"), 1, &["'z'", "a, b, c"]);
    place.refuses("fit --data rows.csv --k 0 --out out.json", 2, &["at least 1"]);
    place.refuses("fit --data rows.csv --k 5..2 --out out.json", 2, &["2..5"]);
    place.refuses("fit --data rows.csv --k 51 --out out.json", 1, &["51 components", "50 rows"]);
    place.refuses("fit --data rows.csv --k 51 --algo em --out out.json", 1, &["51 components", "50 rows"]);
    place.refuses("fit --data rows.csv --k 2 --out no/such/folder.json", 1, &["no/such/folder.json"]);
    place.refuses("fit --data rows.csv --k 2 --out .", 1, &["directory"]);
    place.refuses("fit --data rows.csv --k 2 --discount 1.5 --out out.json", 2, &["discount"]);
    place.refuses("fit --data rows.csv --k 2 --algo oem --alpha 0.3 --out out.json", 2, &["alpha"]);
    place.refuses("fit --data rows.csv --out out.json", 2, &["--k"]);
    place.refuses("fit --data rows.csv --k 2 --out rows.csv", 2, &["rows.csv", "replace"]);
    place.refuses("fit --data rows.csv --k 2 --out a.json --trace ./a.json", 2, &["replace"]);
    place.refuses(
        "fit --data abalon --k 2 --out out.json",
        1,
        &["did you mean 'abalone'?", "gmm-bmm datasets"],
    );
    place.refuses("fit rows.csv --k 2 --out out.json", 2, &["tip:", "'--data rows.csv'"]);
    place.refuses("eval model.json --data rows.csv", 2, &["tip:", "'--model model.json'"]);
    place.refuses("fit --data rows.csv --k 2,x --out out.json", 2, &["2,3,5"]);
    place.write("one.csv", "a,b\n1,2\n");
    place.refuses("fit --data one.csv --k 2 --out out.json", 1, &["2 components", "from 1 row:"]);
    let skipped = place.json(&format!("fit --data word.csv --bad-rows skip {k}"));
    assert_eq!(skipped["rows_skipped"], 1);
}

#[test]
fn extreme_scales_give_a_model_that_can_be_read_back_and_impossible_ones_an_error() {
    let place = Workplace::new();
    for scale in [1e-165, 1e-100, 1e100, 1e140] {
        place.write("scaled.csv", &as_csv(&(scale * clusters(1500, 2, 5)), &["a", "b"]));
        place.run("fit --data scaled.csv --k 2 --out m.json").success();
        place.run("show m.json").success();
        place.run("fit --data scaled.csv --resume m.json --out m.json").success();
    }
    let wild: String =
        (0..50).map(|i| format!("{},1.7e308\n", if i % 2 == 0 { "-1.7e308" } else { "1.7e308" })).collect();
    place.write("wild.csv", &format!("1,2\n{wild}"));
    place.refuses("fit --data wild.csv --k 2 --out wild.json", 1, &["row 2", "1.7e308"]);
}

#[test]
fn an_old_model_survives_a_run_that_fails() {
    let place = with_clusters(1500);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    let before = place.read("model.json");
    place.write("bad.csv", "a,b,c\n1,2,3\n1,oops,3\n");
    place.refuses("fit --data bad.csv --resume model.json --out model.json", 1, &["row 2", "'b'"]);
    assert_eq!(before, place.read("model.json"));
}

#[test]
fn resuming_checks_what_it_is_given() {
    let place = with_clusters(1500);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    place.run("fit --data rows.csv --k 2 --algo em --out batch.json").success();
    place.write("other.csv", "a,b\n1,2\n3,4\n");
    place.refuses("fit --data rows.csv --resume batch.json --out x.json", 2, &["'em'", "cannot go on"]);
    place.refuses("fit --data other.csv --resume model.json --out x.json", 1, &["other.csv", "'c'"]);
    place.refuses("fit --data rows.csv --resume model.json --k 3 --out x.json", 2, &["--k"]);
    place.refuses("fit --data rows.csv --resume rows.csv --out x.json", 1, &["rows.csv", "not a model file"]);
    // Columns are found by name, whatever their order.
    let swapped = clusters(100, 3, 4);
    place.write("swapped.csv", &as_csv(&swapped, &["c", "a", "b"]));
    place.run("fit --data swapped.csv --resume model.json --out x.json").success();
    let mean = |file: &str, j: usize| number(&model(&place, file)["columns"][j]["summary"]["mean"]);
    let expected = (1500.0 * mean("model.json", 2) + swapped.column(0).sum()) / 1600.0;
    assert_close(mean("x.json", 2), expected, 1e-12, "mean of c");
}

#[test]
fn standard_input_gzip_and_standard_output_work() {
    let place = with_clusters(1200);
    place.run("fit --data rows.csv --k 2 --out file.json").success();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(place.read("rows.csv").as_bytes()).unwrap();
    std::fs::write(place.path("rows.csv.gz"), encoder.finish().unwrap()).unwrap();
    place.run("fit --data rows.csv.gz --k 2 --out gz.json").success();
    let piped =
        place.command("fit --data - --k 2 --out -").write_stdin(place.read("rows.csv")).assert().success();
    assert_eq!(place.read("file.json"), place.read("gz.json"));
    assert_eq!(place.read("file.json").as_bytes(), piped.get_output().stdout);
}

#[test]
fn a_shuffle_buffer_changes_the_order_by_the_seed_alone() {
    let place = with_clusters(3000);
    for (seed, out) in [(1, "a"), (1, "b"), (2, "c")] {
        place
            .run(&format!("fit --data rows.csv --k 2 --shuffle-buffer 500 --seed {seed} --out {out}.json"))
            .success();
    }
    place.run("fit --data rows.csv --k 2 --out straight.json").success();
    assert_eq!(place.read("a.json"), place.read("b.json"));
    assert_ne!(place.read("a.json"), place.read("c.json"));
    assert_ne!(place.read("a.json"), place.read("straight.json"));
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
    assert_eq!(model(&place, "model.json")["rows"], 1_000_000);
    assert!(peak > 0 && peak < 100_000, "peak memory {peak} kB");
    println!("peak memory {peak} kB");
}

#[test]
fn several_processes_that_would_write_one_file_are_refused() {
    let place = with_clusters(2000);
    let fit = |algo: &str, rank: &str| {
        let mut command = place.command(&format!("fit --data rows.csv --k 3 --algo {algo} --out model.json"));
        command.env("OMPI_COMM_WORLD_SIZE", "4").env("OMPI_COMM_WORLD_RANK", rank);
        let assert = command.assert().code(2);
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    assert!(fit("obmm", "0").contains("write the same file"));
    // Said by the first alone.
    assert_eq!(fit("obmm", "3"), "");
    #[cfg(not(feature = "mpi"))]
    {
        let said = fit("odmm", "0");
        assert!(said.contains("built without MPI") && said.contains("--features mpi"), "{said}");
    }
    assert!(!place.path("model.json").exists());
}

#[test]
fn first_rows_can_be_left_out() {
    let place = with_clusters(3000);
    let text = place.read("rows.csv");
    let lines: Vec<&str> = text.lines().collect();
    place.write("rest.csv", &format!("{}\n{}\n", lines[0], lines[1201..2701].join("\n")));
    place.run("fit --data rest.csv --k 2 --out rest.json").success();
    place.run("fit --data rows.csv --skip 1200 --limit 1500 --k 2 --out skipped.json").success();
    assert_eq!(place.read("rest.json"), place.read("skipped.json"));
    place.refuses("fit --data rows.csv --skip 3000 --k 2 --out model.json", 1, &["no rows to learn from"]);
}

#[test]
fn a_pattern_stands_for_the_files_that_it_matches() {
    let place = with_clusters(0);
    let rows = clusters(3000, 3, 1);
    for (name, from) in [("p-1.csv", 0), ("p-2.csv", 1500)] {
        let part = rows.slice(ndarray::s![from..from + 1500, ..]).to_owned();
        place.write(name, &as_csv(&part, &["a", "b", "c"]));
    }
    place.run("fit --data p-*.csv --k 2 --out pattern.json").success();
    place.run("fit --data p-1.csv --data p-2.csv --k 2 --out named.json").success();
    assert_eq!(place.read("pattern.json"), place.read("named.json"));
    place.refuses("fit --data q-*.csv --k 2 --out model.json", 1, &["no file matches 'q-*.csv'"]);
}
