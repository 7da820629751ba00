//! Stopping and going on: `--resume`, `--checkpoint`, Ctrl-C.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use gmm_bmm::Model;

use super::structure::with_late_cluster;
use super::{model, with_clusters};
use crate::common::*;
use crate::workplace::Workplace;

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

/// One K alone learns the same rows and revises on the same kept rows as several do.
#[test]
fn one_k_of_several_is_resumed_to_the_same_bits_alone() {
    for learn in ["obmm", "oem", "odmm --shards 2 --warmup 1500"] {
        let place = with_late_cluster();
        let line = format!("fit --data rows.csv --limit 3000 --k 1..4 --init-rows 1000 --algo {learn}");
        place.run(&format!("{line} --out part.json")).success();
        place.run("fit --data rows.csv --skip 3000 --resume part.json --out all.json").success();
        let read = |name: &str| Model::read(place.read(name).as_bytes()).unwrap();
        let all = read("all.json");
        let changed = all.revisions().filter(|revision| revision.kept).count();
        assert!(changed > 0 || learn.contains("odmm"), "{learn}: no revision to tell by");
        for k in 1..=4 {
            let line = format!("fit --data rows.csv --skip 3000 --resume part.json --k {k} --out one.json");
            let result = place.json(&line);
            assert_eq!((&result["k"], result["candidates"].as_array().unwrap().len()), (&k.into(), 1));
            // Not printed: a model has many numbers.
            assert!(all.clone().with_k(k) == Some(read("one.json")), "{learn}, K = {k}");
        }
        assert_eq!(all.with_k(5), None);
    }
}

/// Rows that wait for the start are those of every K.
#[test]
fn one_k_of_several_is_resumed_before_the_start() {
    let place = with_clusters(3000);
    place.run("fit --data rows.csv --limit 700 --k 2..4 --init-rows 1000 --out part.json").success();
    place.run("fit --data rows.csv --skip 700 --resume part.json --k 3 --out one.json").success();
    place.run("fit --data rows.csv --k 3 --init-rows 1000 --out straight.json").success();
    assert_eq!(place.read("one.json"), place.read("straight.json"));
}

#[test]
fn a_k_that_the_model_to_resume_does_not_have_is_refused() {
    let place = with_clusters(2000);
    place.run("fit --data rows.csv --k 2..3,5 --out model.json").success();
    let line = "fit --data rows.csv --resume model.json --out x.json";
    place.refuses(&format!("{line} --k 4"), 2, &["'model.json' does not have K = 4", "it has K = 2–3, 5"]);
    place.refuses(&format!("{line} --k 2..3"), 2, &["--resume takes one K"]);
    place.refuses(&format!("{line} --k 0"), 2, &["at least 1"]);
    place.refuses(&line.replace("--resume", "--k 2 --prior"), 2, &["--prior", "--k"]);
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
    let place = with_clusters(12_000);
    place.run("fit --data rows.csv --k 2..3 --out straight.json").success();
    let line = "fit --data - --k 2..3 --out model.json --checkpoint run.checkpoint --checkpoint-every 2000";
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
    place.write("other.csv", &as_csv(&clusters(12_000, 3, 99), &["a", "b", "c"]));
    place.refuses(&line.replace("--data -", "--data other.csv"), 2, &["the rows are not those"]);
    place.write("short.csv", &as_csv(&clusters(100, 3, 99), &["a", "b", "c"]));
    place.refuses(
        &line.replace("--data -", "--data short.csv"),
        2,
        &["fewer rows than the checkpoint has learned"],
    );
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
    assert!(said.contains("resuming from checkpoint"), "{said}");
    assert_eq!(place.read("straight.json"), place.read("model.json"));
    assert!(!place.path("run.checkpoint").exists());
}

/// The points of a learning curve without seconds, which must not go back.
fn curve(place: &Workplace, name: &str) -> Vec<String> {
    let (mut last, mut points) = (0.0, Vec::new());
    for line in place.read(name).lines().skip(1) {
        let mut cells: Vec<&str> = line.split(',').collect();
        let seconds: f64 = cells.remove(2).parse().unwrap();
        assert!(seconds >= last, "{line}");
        last = seconds;
        points.push(cells.join(","));
    }
    points
}

#[test]
fn a_killed_run_goes_on_with_its_learning_curve() {
    let place = with_clusters(12_000);
    let line = |data: &str, name: &str| {
        format!(
            "fit --data {data} --k 2..3 --out {name}.json --init-rows 1000 --trace {name}.csv --trace-every 700 \
             --checkpoint {name}.checkpoint --checkpoint-every 2500 --test rows.csv"
        )
    };
    place.run(&line("rows.csv", "straight")).success();
    let text = place.read("rows.csv");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
        .args(line("-", "killed").split_whitespace())
        .current_dir(place.folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&text.as_bytes()[..text.len() / 2]).unwrap();
    wait_for(&place, "killed.checkpoint");
    child.kill().unwrap();
    child.wait().unwrap();
    // The file has the points before the checkpoint, in whole lines.
    let (points, left) = (curve(&place, "straight.csv"), curve(&place, "killed.csv"));
    assert!(left.len() >= 2 && left == points[..left.len()], "{left:?}");
    assert!(place.read("killed.csv").ends_with('\n'));
    place.run(&line("rows.csv", "killed")).success();
    assert_eq!(place.read("killed.json"), place.read("straight.json"));
    assert_eq!(points.len(), 2 * 18, "every 700 rows, and the last");
    assert_eq!(curve(&place, "killed.csv"), points);
}

#[test]
fn a_resumed_run_goes_on_with_the_learning_curve_of_its_model() {
    let place = with_clusters(6000);
    let first = "fit --data rows.csv --limit 2800 --k 2..3 --init-rows 1000 --out m.json";
    let trace = "--trace-every 700 --test rows.csv --trace";
    let rest = format!("fit --data rows.csv --skip 2800 --resume m.json --out on.json {trace}");
    place.run(&format!("fit --data rows.csv --k 2..3 --init-rows 1000 --out s.json {trace} s.csv")).success();
    let straight = curve(&place, "s.csv");
    // A second run replaces the points of the first.
    place.run(&format!("{first} {trace} m.csv")).success();
    let part = curve(&place, "m.csv");
    // The last point is that of the model, with a closing revision and all rows learned.
    assert_eq!((&part[..6], part.len()), (&straight[..6], 8));
    let score = number(&place.json("eval --model m.json --data rows.csv")["mean_log_likelihood"]);
    let test = |point: &String| point.rsplit(',').next().unwrap().parse::<f64>().unwrap();
    assert!(part[6..].iter().any(|point| (test(point) - score).abs() < 1e-9), "{score} not in {part:?}");
    for _ in 0..2 {
        place.run(&format!("{rest} m.csv")).success();
        assert_eq!(curve(&place, "m.csv"), straight);
    }
    let note = predicates::str::contains("does not have the learning curve of the model to resume");
    // None, that of another model, and no curve at all.
    place
        .run("fit --data rows.csv --k 2..3 --limit 2800 --seed 2 --init-rows 900 --out o.json --trace o.csv")
        .success();
    place.write("words.csv", "some,words\n");
    for file in ["new.csv", "o.csv", "words.csv"] {
        place.run(&format!("{rest} {file}")).success().stderr(note.clone());
        assert_eq!(curve(&place, file), straight[8..]);
    }
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
    place.refuses(
        "fit --data rows.csv --resume batch.json --out x.json",
        2,
        &["'em'", "does not learn row by row"],
    );
    place.refuses("fit --data other.csv --resume model.json --out x.json", 1, &["other.csv", "'c'"]);
    place.refuses("fit --data rows.csv --resume model.json --k 3 --out x.json", 2, &["does not have K = 3"]);
    place.refuses("fit --data rows.csv --resume rows.csv --out x.json", 1, &["rows.csv", "not a model file"]);
    // Columns are found by name, whatever their order.
    let swapped = clusters(100, 3, 4);
    place.write("swapped.csv", &as_csv(&swapped, &["c", "a", "b"]));
    place.run("fit --data swapped.csv --resume model.json --out x.json").success();
    let mean = |file: &str, j: usize| number(&model(&place, file)["state"]["summaries"][j]["mean"]);
    let expected = (1500.0 * mean("model.json", 2) + swapped.column(0).sum()) / 1600.0;
    assert_close(mean("x.json", 2), expected, 1e-12, "mean of c");
}

#[test]
fn a_day_that_is_learned_twice_is_noticed_wherever_it_was() {
    let place = Workplace::new();
    let day = |seed: u64| as_csv(&clusters(500, 2, seed), &["x", "y"]);
    (0..12).for_each(|i| drop(place.write(&format!("day{i:02}.csv"), &day(i))));
    let before = |said: &str, row: &str| {
        assert!(said.contains("rows, from about row") && said.contains(row), "{said}");
        assert!(said.contains("count twice: resume with new rows"), "{said}");
    };
    let said = |line: &str| {
        let assert = place.run(line).success();
        String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
    };
    // Many days in one pass, then more in passes of their own.
    let first = said("fit --data day0*.csv --k 2 --init-rows 800 --out m.json");
    assert!(!first.contains("twice"), "{first}");
    let next = said("fit --data day10.csv --resume m.json --out m.json");
    assert!(!next.contains("twice"), "{next}");
    before(&said("fit --data day03.csv --resume m.json --out again.json"), "from about row 150");
    before(&said("fit --data day10.csv --resume m.json --out again.json"), "from about row 500");
    before(
        &said("fit --data day11.csv --data day04.csv --resume m.json --out again.json"),
        "from about row 200",
    );
    let new = said("fit --data day11.csv --resume m.json --out again.json");
    assert!(!new.contains("twice"), "{new}");
    // Within one run, with other learners, and from shards that read their own files.
    for options in ["--k 2 --algo oem", "--k 2 --algo odmm --shards 2", "--k 2..3"] {
        let fit = format!(
            "fit --data day00.csv --data day01.csv --data day02.csv --data day01.csv --out o.json {options}"
        );
        before(&said(&fit), "from about row 50");
    }
    said("fit --data day0*.csv --k 2 --algo odmm --deal parts --shards 2 --init-rows 800 --out parts.json");
    before(&said("fit --data day05.csv --resume parts.json --out again.json"), "from about row");
    // A model without rows has no keys of rows either.
    said("fit --data day0*.csv --k 2 --no-rows --out none.json");
    assert!(!place.read("none.json").contains("\"seen\": \""));
    assert!(!said("fit --data day03.csv --resume none.json --out again.json").contains("twice"));
}
