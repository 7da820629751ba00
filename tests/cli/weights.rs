//! `--weight`: rows with weights in `fit` and `eval`.

use ndarray::Array2;

use crate::common::{as_csv, clusters};
use crate::workplace::Workplace;

/// Rows of two columns, and a column `w` of weights.
fn weighted(rows: &Array2<f64>, weight: impl Fn(usize) -> String) -> String {
    let plain = as_csv(rows, &["x", "y"]);
    let mut lines = plain.lines();
    let head = format!("{},w\n", lines.next().unwrap());
    head + &lines.enumerate().map(|(i, line)| format!("{line},{}\n", weight(i))).collect::<String>()
}

#[test]
fn rows_of_weight_zero_are_absent_and_whole_weights_are_repeated_rows() {
    let rows = clusters(3000, 2, 8);
    let place = Workplace::new();
    place.write("zero.csv", &weighted(&rows, |i| if i % 3 == 0 { "0" } else { "1" }.into()));
    let kept: Vec<usize> = (0..3000).filter(|i| i % 3 != 0).collect();
    place.write("absent.csv", &as_csv(&rows.select(ndarray::Axis(0), &kept), &["x", "y"]));
    place.run("fit --data zero.csv --weight w --k 3 --out zero.json").success();
    place.run("fit --data absent.csv --k 3 --out absent.json").success();
    assert_eq!(place.read("zero.json"), place.read("absent.json"));

    let score = |line: &str| place.json(line)["mean_log_likelihood"].as_f64().unwrap();
    let (zero, absent) = (
        score("eval --model zero.json --data zero.csv --weight w"),
        score("eval --model zero.json --data absent.csv"),
    );
    assert!((zero - absent).abs() < 1e-12, "{zero} {absent}");

    let twice: Vec<usize> = (0..3000).flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    place.write("twice.csv", &as_csv(&rows.select(ndarray::Axis(0), &twice), &["x", "y"]));
    place.write("counts.csv", &weighted(&rows, |i| (i % 3).to_string()));
    let (counts, repeated) = (
        score("eval --model zero.json --data counts.csv --weight w"),
        score("eval --model zero.json --data twice.csv"),
    );
    assert!((counts - repeated).abs() < 1e-10, "{counts} {repeated}");
}

#[test]
fn weights_that_no_row_can_have_are_refused_with_their_row() {
    let rows = clusters(300, 2, 7);
    let place = Workplace::new();
    place.write("plain.csv", &as_csv(&rows, &["x", "y"]));
    place.run("fit --data plain.csv --k 2 --out model.json").success();
    for wrong in ["-1", "NaN", "inf", "", "much"] {
        place.write("rows.csv", &weighted(&rows, |i| if i == 41 { wrong.into() } else { "1".into() }));
        for line in [
            "fit --data rows.csv --weight w --k 2 --out out.json",
            "eval --model model.json --data rows.csv --weight w",
            "compare --no-pictures --data rows.csv --weight w --k 2 --folds 2 --algos obmm --out out",
        ] {
            place.refuses(line, 1, &["rows.csv", "43", "w"]);
        }
    }
    place.write("rows.csv", &weighted(&rows, |_| "1".into()));
    for line in [
        "impute --model model.json --data rows.csv --weight w --out out.csv",
        "predict --model model.json --data rows.csv --weight w --target y --scores out.csv",
    ] {
        place.refuses(line, 2, &["--weight"]);
    }
}

/// The lines of the records but those of runs, without seconds, in an order that does not depend on threads.
fn cells(place: &Workplace, folder: &str) -> Vec<String> {
    let text = place.read(&format!("{folder}/records.jsonl"));
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|record| record["kind"] != "run")
        .map(|mut record| {
            for seconds in ["start_seconds", "learn_seconds", "machine_seconds"] {
                record.as_object_mut().unwrap().remove(seconds);
            }
            record.to_string()
        })
        .collect();
    lines.sort();
    lines
}

const EVERY_KIND: &str =
    "--k 2 --folds 2 --algos start,oem_blind,oem,obmm,obmm_revised,obmm_auto,odmm,em_plain,em";

#[test]
fn a_comparison_of_rows_of_weight_one_is_that_of_rows_without_weights() {
    let rows = clusters(160, 2, 5);
    let place = Workplace::new();
    for (folder, text) in [
        ("plain", as_csv(&rows, &["x", "y"])),
        ("ones", weighted(&rows, |_| "1".into())),
        ("zeros", weighted(&rows, |i| if i % 4 == 1 { "0" } else { "1" }.into())),
        ("halves", weighted(&rows, |i| ["0", "2", "0.5"][i % 3].into())),
        (
            "absent",
            as_csv(&rows, &["x", "y"])
                .lines()
                .enumerate()
                .filter(|(i, _)| i % 4 != 2)
                .map(|(_, line)| format!("{line}\n"))
                .collect(),
        ),
        (
            "present",
            weighted(&rows, |i| ["0", "2", "0.5"][i % 3].into())
                .lines()
                .enumerate()
                .filter(|(i, _)| *i == 0 || i % 3 != 1)
                .map(|(_, line)| format!("{line}\n"))
                .collect(),
        ),
    ] {
        std::fs::create_dir(place.path(folder)).unwrap();
        place.write(&format!("{folder}/rows.csv"), &text);
        let option = if text.starts_with("x,y,w") { "--weight w" } else { "" };
        place
            .run(&format!(
                "compare --no-pictures --data {folder}/rows.csv {option} {EVERY_KIND} --out {folder}/out"
            ))
            .success();
    }
    let records = |folder: &str| cells(&place, &format!("{folder}/out"));
    assert_eq!(records("ones"), records("plain"));
    assert_eq!(records("zeros"), records("absent"), "folds are made of the rows that count");
    assert_eq!(records("halves"), records("present"));
    assert!(records("halves").iter().any(|line| line.contains("\"weight\":\"w\"")));
    assert!(place.read("halves/out/summary.md").contains("weights of the column w"));
    // The records belong to these weights.
    place.write("ones/rows.csv", &weighted(&rows, |i| ["1", "2"][i % 2].into()));
    let again = format!("compare --no-pictures --data ones/rows.csv --weight w {EVERY_KIND} --out ones/out");
    place.refuses(&again, 1, &["weights of 'rows'"]);
    place.run("compare --no-pictures --from-records halves/out --pack --out halves/packed").success();
    let mean = |folder: &str| {
        place.json(&format!("compare --no-pictures --from-records {folder}"))["sets"][0]["entries"][0]["score"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!((mean("halves/out") - mean("halves/packed")).abs() < 1e-3);
}

#[test]
fn weights_of_test_rows_are_repetitions() {
    let (rows, tested) = (clusters(200, 2, 5), clusters(60, 2, 9));
    let place = Workplace::new();
    place.write("rows.csv", &weighted(&rows, |_| "1".into()));
    let repeated: Vec<usize> = (0..60).flat_map(|i| std::iter::repeat_n(i, i % 3)).collect();
    place.write("counts.csv", &weighted(&tested, |i| (i % 3).to_string()));
    place.write("repeated.csv", &weighted(&tested.select(ndarray::Axis(0), &repeated), |_| "1".into()));
    let mean = |test: &str| {
        let line = format!(
            "compare --no-pictures --data rows.csv --test {test}.csv --weight w --k 2 --algos start,obmm,em --out {test}"
        );
        let result = place.json(&line);
        let of = |i: usize| result["sets"][0]["entries"][i]["score"]["mean"].as_f64().unwrap();
        [of(0), of(1), of(2)]
    };
    let (counts, repeated) = (mean("counts"), mean("repeated"));
    for (a, b) in counts.into_iter().zip(repeated) {
        assert!((a - b).abs() < 1e-5, "{counts:?} {repeated:?}");
    }
}

#[cfg(unix)]
#[test]
fn commands_get_weights_if_they_ask_for_them() {
    let place = Workplace::new();
    place.write("rows.csv", &weighted(&clusters(60, 2, 5), |i| ["0.5", "2"][i % 2].into()));
    // Its score of every row is the sum of the weights.
    place.write(
        "sum.sh",
        "s=$(awk '{ s += $1 } END { print s }' $1)\ntail -n +2 $2 | awk -v s=$s '{ print s }' > $3\n",
    );
    let mut command = place.command(
        "compare --no-pictures --data rows.csv --weight w --k 2 --algos start --folds 2 --out out --json",
    );
    // Three columns at most are integrated, and this is no density.
    let said =
        command.args(["--learner", "sum=sh sum.sh {weights} {test} {scores} {train}"]).assert().success();
    let text = place.read("out/records.jsonl");
    assert!(text.contains("not_a_density"), "{text}");
    assert!(!String::from_utf8_lossy(&said.get_output().stderr).contains("without their weights"));
    let mut command = place.command(
        "compare --no-pictures --data rows.csv --weight w --k 2 --algos start --folds 2 --out other",
    );
    let said = command.args(["--learner", "sum=sh sum.sh {train} {test} {scores}"]).assert();
    assert!(
        String::from_utf8_lossy(&said.get_output().stderr).contains("sum learns rows without their weights")
    );
    place.run("compare --data rows.csv --weight w --k 2 --folds 2 --export-folds folds").success();
    let lines = |name: &str| place.read(&format!("folds/rows/fold-0/{name}")).lines().count();
    assert_eq!(
        (lines("weights.txt") + 1, lines("test_weights.txt") + 1),
        (lines("train.csv"), lines("test.csv"))
    );
}

#[test]
fn a_model_that_was_learned_with_weights_says_so() {
    let rows = clusters(900, 2, 5);
    let place = Workplace::new();
    place.write("rows.csv", &weighted(&rows, |i| ["0.5", "2"][i % 2].into()));
    place.write("plain.csv", &as_csv(&rows, &["x", "y"]));
    for algo in ["obmm", "em"] {
        place.run(&format!("fit --data rows.csv --weight w --algo {algo} --k 2 --out {algo}.json")).success();
        let said = place.run(&format!("show {algo}.json")).success();
        assert!(
            String::from_utf8_lossy(&said.get_output().stdout).contains("with the weights of column 'w'")
        );
    }
    let notes =
        |line: &str| String::from_utf8_lossy(&place.run(line).success().get_output().stderr).to_string();
    let words = "the weights of column 'w', and here each row counts once";
    let option = "(--weight w uses them here, too)";
    for (line, is_told, has_column) in [
        ("eval --model obmm.json --data rows.csv", true, true),
        ("predict --model em.json --data plain.csv --scores scores.csv", true, false),
        ("eval --model obmm.json --data rows.csv --weight w", false, false),
        ("fit --data plain.csv --resume obmm.json --out out.json", true, false),
        ("fit --data rows.csv --weight w --resume obmm.json --out out.json", false, false),
        ("fit --data rows.csv --drop w --resume obmm.json --out out.json", true, true),
    ] {
        let said = notes(line);
        assert_eq!((said.contains(words), said.contains(option)), (is_told, has_column), "{line}: {said}");
    }
    let line = "fit --data rows.csv --resume obmm.json --out out.json";
    place.refuses(line, 2, &["the weights of column 'w'", "--weight w", "--drop w"]);
}

#[test]
fn a_word_in_the_weight_column_has_advice_that_helps() {
    let rows = clusters(300, 2, 7);
    let place = Workplace::new();
    for wrong in ["much", "NaN", ""] {
        place.write("rows.csv", &weighted(&rows, |i| if i == 41 { wrong.into() } else { "1".into() }));
        let line = "fit --data rows.csv --weight w --k 2 --out out.json";
        let said = place.run(line).failure();
        let said = String::from_utf8_lossy(&said.get_output().stderr).to_string();
        assert!(said.contains("weight column 'w'") && said.contains("--bad-rows skip"), "{said}");
        assert!(!said.contains("--bad-cells") && !said.contains("--missing"), "{said}");
        place.run(&format!("{line} --bad-rows skip")).success();
    }
}

#[test]
fn a_half_life_counts_weights() {
    let rows = clusters(3000, 2, 7);
    let place = Workplace::new();
    place.write("rows.csv", &weighted(&rows, |_| "100".into()));
    let line = "fit --data rows.csv --weight w --k 3 --out out.json --half-life";
    place.refuses(&format!("{line} 1000"), 1, &["half-life of 1000", "100", "2080"]);
    place.run(&format!("{line} 100000")).success();
}

#[test]
fn learners_of_a_comparison_do_not_depend_on_the_unit_of_the_weights() {
    let rows = clusters(400, 2, 5);
    let place = Workplace::new();
    let scores = |weight: &str| {
        place.write("rows.csv", &weighted(&rows, |_| weight.into()));
        let line = format!("compare --data rows.csv --weight w --k 3 --folds 2 --out {weight} --algos");
        let result = place.json(&format!("{line} start,oem,obmm,obmm_revised,odmm,obmm_auto,em"));
        let entries = result["sets"][0]["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["score"]["mean"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let ones = scores("1");
    for weight in ["100", "100000"] {
        let found = scores(weight);
        assert!(ones.iter().zip(&found).all(|(a, b)| (a - b).abs() < 0.05), "{weight}: {found:?}, {ones:?}");
    }
}
