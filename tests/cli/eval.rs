//! `gmm-bmm eval` and `gmm-bmm show` as a user meets them.

use ndarray::Array2;
use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

fn with_model() -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(2000, 3, 1), &["a", "b", "c"]));
    place.write("test.csv", &as_csv(&clusters(300, 3, 2), &["a", "b", "c"]));
    place.run("fit --data rows.csv --k 3 --out model.json").success();
    place
}

#[test]
fn scores_have_a_mean_and_a_standard_error() {
    let place = with_model();
    let result = place.json("eval --model model.json --data test.csv --scores scores.csv");
    assert_eq!(result["rows"], 300);
    let text = place.read("scores.csv");
    let scores: Vec<f64> =
        text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert_eq!(scores.len(), 300);
    let mean = scores.iter().sum::<f64>() / 300.0;
    assert_close(number(&result["mean_log_likelihood"]), mean, 1e-12, "mean");
    // 300 rows are 37 batches of 8.
    let batches: Vec<f64> = scores.chunks_exact(8).map(|batch| batch.iter().sum()).collect();
    let expected = standard_error_by_runs(&batches, 8.0);
    assert_close(number(&result["standard_error"]) / expected, 1.0, 1e-9, "standard error");
    // Few rows are batches of their own.
    let result = place.json("eval --model model.json --data test.csv --limit 40");
    let expected = standard_error_by_runs(&scores[..40], 1.0);
    assert_close(number(&result["standard_error"]) / expected, 1.0, 1e-9, "standard error of 40 rows");
    assert!(place.json("eval --model model.json --data test.csv --limit 1")["standard_error"].is_null());
    let shown = place.json("show model.json");
    let identifiers: Vec<f64> =
        shown["components"].as_array().unwrap().iter().map(|c| number(&c["identifier"])).collect();
    assert!(column(&text, 2).iter().all(|component| identifiers.contains(component)));
}

/// The cells of a column of a scores file.
fn column(text: &str, index: usize) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.split(',').nth(index).unwrap().parse().unwrap()).collect()
}

#[test]
fn components_have_the_identifiers_that_show_gives_them() {
    let place = Workplace::new();
    // The lightest cluster comes first, so that a start is likely to have it elsewhere than last.
    let text: String = (0..2000)
        .map(|i| format!("{}\n", [0, 50, 50, 100, 100, 100][i % 6] as f64 + (i % 7) as f64))
        .collect();
    place.write("rows.csv", &format!("x\n{text}"));
    place.run("fit --data rows.csv --k 3 --out model.json").success();
    let shown = place.json("show model.json");
    place.run("eval --model model.json --data rows.csv --scores scores.csv").success();
    let labels = column(&place.read("scores.csv"), 2);
    for (place, start) in [100.0, 50.0, 0.0].into_iter().enumerate() {
        let component = &shown["components"][place];
        assert_close(number(&component["mean"][0]), start + 3.0, 0.2, "mean");
        let mine = labels.iter().zip(text.lines());
        let mine = mine.filter(|(label, _)| **label == number(&component["identifier"]));
        assert!(mine.clone().count() > 300);
        assert!(mine.map(|(_, x)| x.parse::<f64>().unwrap()).all(|x| (start..start + 10.0).contains(&x)));
    }
}

#[test]
fn scores_have_the_row_numbers_of_the_file() {
    let place = with_model();
    let rows = place.read("test.csv");
    let (head, body) = rows.split_once('\n').unwrap();
    let mut lines: Vec<&str> = body.lines().take(6).collect();
    lines.insert(2, "1,,3");
    place.write("holes.csv", &format!("{head}\n{}\n", lines.join("\n")));
    place.run("eval --model model.json --data holes.csv --missing skip --scores scores.csv").success();
    let listed = place.read("scores.csv");
    assert_eq!(column(&listed, 0), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(listed.lines().nth(3), Some("3,,,,,,,the value in column 'b' is missing"));
    place.run("eval --model model.json --data test.csv --skip 290 --scores scores.csv").success();
    assert_eq!(column(&place.read("scores.csv"), 0)[0], 291.0);
    place.refuses(
        "eval --model model.json --data test.csv --shuffle-buffer 9 --scores shuffled.csv",
        2,
        &["--scores", "leave out --shuffle-buffer"],
    );
    // The model needs its columns, so that leaving one out is no way out.
    let line = "eval --model model.json --data holes.csv";
    place.refuses(
        line,
        1,
        &["row 3: the value in column 'b' is missing", "among 7 rows: 1 in 'b'", "--missing skip"],
    );
    place.refuses(
        &format!("{line} --drop b"),
        1,
        &["learned from column 'b'", "cannot be left out", "--drop"],
    );
    place.run("eval --model model.json --data test.csv --drop id").success();
    place.refuses(
        "eval --model model.json --data test.csv --scores no/where.csv",
        1,
        &["'no'", "does not exist"],
    );
}

/// Every K of a range can be used as if it had been learned alone.
#[test]
fn any_k_of_a_range_can_be_scored_and_shown() {
    let place = with_model();
    place.write("more.csv", &as_csv(&clusters(2400, 3, 1), &["a", "b", "c"]));
    for learner in ["obmm --init-rows 800", "em"] {
        let line = format!("fit --data more.csv --algo {learner}");
        place.run(&format!("{line} --k 2..4 --out several.json")).success();
        for k in 2..=4 {
            place.run(&format!("{line} --k {k} --out alone.json")).success();
            let scored = |name: &str, options: &str| {
                let line = format!("predict --model {name} --data test.csv --scores scores.csv {options}");
                (place.json(&line), place.read("scores.csv"))
            };
            assert_eq!(
                scored("several.json", &format!("--k {k}")),
                scored("alone.json", ""),
                "{learner}, K = {k}"
            );
            let shown = |line: &str| {
                let shown = place.json(&format!("show {line} --plot picture.svg"));
                let fields = ["k", "components", "prequential_log_likelihood", "revisions", "health"];
                (fields.map(|field| shown[field].clone()), place.read("picture.svg"))
            };
            assert_eq!(shown(&format!("several.json --k {k}")), shown("alone.json"), "{learner}, K = {k}");
        }
        let best = place.json("show several.json")["best_k"].clone();
        assert_eq!(place.json("eval --model several.json --data test.csv")["k"], best);
        assert_eq!(place.json("show several.json --k 2")["best_k"], best);
        let words = ["'several.json' does not have K = 7", "it has K = 2–4"];
        place.refuses("eval --model several.json --data test.csv --k 7", 2, &words);
        place.refuses("show several.json --k 7 --plot other.svg", 2, &words);
        place.refuses("predict --model several.json --data test.csv --k 0 --scores s.csv", 2, &["K = 2–4"]);
    }
    // A file says which K it has, and how another is used.
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stdout.clone()).unwrap();
    let text = said("show several.json --k 3");
    assert!(text.starts_with("3 components over") && text.contains("\nthe file has K = 2–4: "), "{text}");
    assert!(text.contains("or another with --k\n"), "{text}");
    place.run("eval --model model.json --data test.csv --k 3").success();
    assert!(!said("show model.json").contains("the file has K"));
}

#[test]
fn predict_is_another_name_for_eval() {
    let place = with_model();
    let scored = |command: &str| {
        let line = format!("{command} --model model.json --data test.csv --scores {command}.csv");
        (place.json(&line), place.read(&format!("{command}.csv")))
    };
    assert_eq!(scored("predict"), scored("eval"));
    let piped = place.run("predict --model model.json --data test.csv --scores -").success();
    assert_eq!(String::from_utf8_lossy(&piped.get_output().stdout), place.read("eval.csv"));
    place.run("--help").success().stdout(predicates::str::contains("predict"));
}

#[test]
fn a_file_of_another_kind_is_told_once_and_by_its_kind() {
    let place = with_model();
    let said = |line: &str| String::from_utf8(place.run(line).code(1).get_output().stderr.clone()).unwrap();
    let table = said("show test.csv");
    assert!(table.contains("looks like a CSV") && table.contains("gmm-bmm fit"), "{table}");
    place.write("cut.json", "{\"format\": ");
    assert!(said("show cut.json").contains("'cut.json': it ends in the middle"));
    assert_eq!(
        said("show nope.json"),
        "error: there is no file 'nope.json': a model file is made by 'gmm-bmm fit'\n"
    );
    assert!(said("eval --model model.json --data model.json").contains("'model.json' is a model file"));
}

#[test]
fn zscored_units_differ_by_the_columns_spreads() {
    let place = with_model();
    let model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
    let jacobian: f64 =
        (0..3).map(|j| (number(&model["state"]["summaries"][j]["squares"]) / 2000.0).sqrt().ln()).sum();
    let raw = place.json("eval --model model.json --data test.csv");
    let scaled = place.json("eval --model model.json --data test.csv --units zscore");
    let gain = number(&scaled["mean_log_likelihood"]) - number(&raw["mean_log_likelihood"]);
    assert_close(gain, jacobian, 1e-12, "gain");
    // The units of a row with gaps are those of its observed columns.
    place.write("gap.csv", ",,1\n");
    let score = |units: &str| {
        let line = "eval --model model.json --data gap.csv --no-header --missing marginal --units";
        number(&place.json(&format!("{line} {units}"))["mean_log_likelihood"])
    };
    let last = (number(&model["state"]["summaries"][2]["squares"]) / 2000.0).sqrt().ln();
    assert_close(score("zscore") - score("raw"), last, 1e-12, "gain of one column");
}

#[test]
fn the_posterior_predictive_is_another_score_and_only_for_bayesian_models() {
    let place = with_model();
    let point = place.json("eval --model model.json --data test.csv");
    let predictive = place.json("eval --model model.json --data test.csv --predictive");
    assert_ne!(point["mean_log_likelihood"], predictive["mean_log_likelihood"]);
    place.run("fit --data rows.csv --k 2 --algo oem --out oem.json").success();
    place.refuses("eval --model oem.json --data test.csv --predictive", 2, &["'oem'", "no posterior"]);
}

#[test]
fn columns_are_matched_by_name_or_by_position() {
    let place = with_model();
    let expected = place.json("eval --model model.json --data test.csv");
    let rows = clusters(300, 3, 2);
    let swapped = rows.select(ndarray::Axis(1), &[2, 0, 1]);
    place.write("swapped.csv", &as_csv(&swapped, &["c", "a", "b"]));
    place.write("bare.csv", &as_csv(&rows, &[]));
    place.write("less.csv", &as_csv(&rows.select(ndarray::Axis(1), &[0, 1]), &["a", "b"]));
    place.write("bareless.csv", &as_csv(&rows.select(ndarray::Axis(1), &[0, 1]), &[]));
    for file in ["swapped.csv", "bare.csv"] {
        let found = place.json(&format!("eval --model model.json --data {file}"));
        assert_eq!(found["mean_log_likelihood"], expected["mean_log_likelihood"], "{file}");
    }
    place.refuses("eval --model model.json --data less.csv", 1, &["less.csv", "'c'"]);
    place.refuses("eval --model model.json --data bareless.csv", 1, &["bareless.csv", "2 column", "3"]);
}

/// Chosen columns are those of the model, in its order, or it is said what they are taken for.
#[test]
fn chosen_columns_are_matched_with_the_model_s() {
    let place = with_model();
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stderr.clone()).unwrap();
    let level = |line: &str| number(&place.json(line)["mean_log_likelihood"]);
    let line = "eval --model model.json --data test.csv";
    let expected = level(line);
    for columns in ["a,b,c", "c,a,b", "2,1,3", "3,1-2"] {
        let line = format!("{line} --columns {columns}");
        assert_eq!(level(&line), expected, "{columns}");
        assert_eq!(said(&line), "", "{columns}");
    }
    place.refuses(&format!("{line} --columns a,b"), 1, &["test.csv", "2 columns", "3"]);
    // A file with the same columns by other names.
    let rows = clusters(300, 3, 2).select(ndarray::Axis(1), &[1, 0, 2]);
    place.write("others.csv", &as_csv(&rows, &["y", "x", "c"]));
    let line = "eval --model model.json --data others.csv";
    place.refuses(line, 1, &["others.csv", "'a'", "--columns"]);
    assert_eq!(level(&format!("{line} --columns x,y,c")), expected);
    let told = said(&format!("{line} --columns x,y,c"));
    assert!(told.contains("by their order: 'x' for 'a', 'y' for 'b'\n"), "{told}");
    place.refuses(
        &format!("{line} --columns c,x,y"),
        1,
        &["'c' is chosen in the place of the model's 'a'", "--columns"],
    );
    // To go on from the model, and from a checkpoint or prior, is the same.
    for begin in ["--resume", "--prior"] {
        for (columns, out) in [("a,b,c", "one.json"), ("c,b,a", "two.json")] {
            place
                .run(&format!("fit --data test.csv {begin} model.json --columns {columns} --out {out}"))
                .success();
        }
        assert_eq!(place.read("one.json"), place.read("two.json"), "{begin}");
    }
}

#[test]
fn damaged_models_are_refused() {
    let place = with_model();
    let text = place.read("model.json");
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let broken = [
        ("cut.json", text[..text.len() / 2].to_string(), "cut short"),
        ("later.json", with("\"version\": 6", "\"version\": 99"), "version 99"),
        ("other.json", with("gmm-bmm model", "something else"), "something else"),
        ("nan.json", with("\"nu\": ", "\"nu\": NaN, \"x\": "), "damaged"),
        ("low.json", with("\"nu\": ", "\"nu\": -"), "nu must be above d − 1"),
        ("kappa.json", with("\"kappa\": ", "\"kappa\": -"), "kappa must be positive"),
        ("empty.json", String::new(), "is empty"),
        ("list.json", "[1, 2, 3]".into(), "not a model file"),
        ("object.json", "{}".into(), "not a model file"),
        ("no_version.json", "{\"format\": \"gmm-bmm model\"}".into(), "does not say its version"),
        ("cut_number.json", "{\"format\": \"gmm-bmm model\", \"version\": -".into(), "cut short"),
    ];
    for (name, text, words) in &broken {
        place.write(name, text);
        place.refuses(&format!("eval --model {name} --data test.csv"), 1, &[name, words]);
        place.refuses(&format!("show {name}"), 1, &[name, words]);
        place.refuses(&format!("fit --data rows.csv --resume {name} --out out.json"), 1, &[name, words]);
    }
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        value.to_string()
    };
    let posterior = |value: &mut Value, j: usize, field: &str, to: f64| {
        value["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["components"][j][field] = to.into();
    };
    let out_of_range = [
        changed(&|v| {
            v["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["a"] =
                serde_json::json!([1e308, 1e308, 1e308])
        }),
        changed(&|v| posterior(v, 0, "kappa", 1e-310)),
        changed(&|v| posterior(v, 1, "nu", 2.0)),
        changed(&|v| v["state"]["floor"][0] = 1e308.into()),
        changed(&|v| v["state"]["summaries"][0]["count"] = u64::MAX.into()),
        changed(&|v| v["state"]["rows"] = 3.into()),
        changed(&|v| v["state"]["pending"] = serde_json::json!([1.0, 2.0])),
    ];
    for (i, text) in out_of_range.iter().enumerate() {
        let name = format!("range{i}.json");
        place.write(&name, text);
        place.refuses(&format!("show {name}"), 1, &[&name]);
        place.refuses(&format!("fit --data rows.csv --resume {name} --out out.json"), 1, &[&name]);
    }
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["columns"]["names"].as_array_mut().unwrap().pop();
    place.write("columns.json", &value.to_string());
    place.refuses("show columns.json", 1, &["columns.json", "2 columns"]);
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["state"]["candidates"][0]["learned"]["bayes"]["posterior"]["components"][1]["psi"]["lower"][1][1] =
        0.0.into();
    place.write("pivot.json", &value.to_string());
    place.refuses("show pivot.json", 1, &["pivot.json", "not positive definite"]);
}

#[test]
fn hopeless_rows_are_named_not_scored_as_nothing() {
    let place = with_model();
    place.write("far.csv", "a,b,c\n1,2,3\n1e200,2,3\n");
    place.refuses("eval --model model.json --data far.csv --scores scores.csv", 1, &["row 2"]);
    place.write("header.csv", "a,b,c\n");
    place.refuses("eval --model model.json --data header.csv", 1, &["only a header"]);
    place.refuses("eval --model - --data -", 2, &["standard input"]);
    let line = "eval --model model.json --data test.csv --scores test.csv";
    place.refuses(line, 2, &["'test.csv' would replace a file that this command reads too"]);
}

#[test]
fn show_prints_a_model_for_a_person_and_for_a_program() {
    let place = with_model();
    let text = String::from_utf8(place.run("show model.json").success().get_output().stdout.clone()).unwrap();
    for words in [
        "3 components over 3 columns",
        "2000 rows",
        "weight",
        "numerical safeguards: none triggered",
        "±",
        "moments), seed 1",
    ] {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    // What is said of a component stands apart from the columns, which may have the same names.
    let heads: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let first = heads.iter().position(|head| *head == "weight").unwrap();
    assert_eq!(heads[first..first + 7], ["weight", "κ", "condition", "", "a", "b", "c"]);
    let shown = place.json("show model.json");
    let weights: f64 = shown["components"].as_array().unwrap().iter().map(|c| number(&c["weight"])).sum();
    assert_close(weights, 1.0, 1e-12, "weights");
    assert_eq!(shown["algorithm"]["obmm"]["moments"], "whitened");
    for component in shown["components"].as_array().unwrap() {
        let covariance = component["covariance"].as_array().unwrap();
        for (j, row) in covariance.iter().enumerate() {
            let deviation = number(&component["standard_deviation"][j]);
            assert_close(number(&row[j]), deviation * deviation, 1e-12, "a variance");
            (0..3).for_each(|i| assert_eq!(row[i], covariance[i][j]));
        }
        assert_eq!(covariance.len(), 3);
    }
}

#[test]
fn a_large_model_is_shown_on_one_screen() {
    let place = Workplace::new();
    let names: Vec<String> = (0..12).map(|i| format!("x{i}")).collect();
    let header: Vec<&str> = names.iter().map(String::as_str).collect();
    place.write("rows.csv", &as_csv(&normals(3000, 12, 2), &header));
    place.run("fit --data rows.csv --k 20 --effort fast --out model.json").success();
    let said = |line: &str| String::from_utf8(place.run(line).success().get_output().stdout.clone()).unwrap();
    let (screen, all) = (said("show model.json"), said("show model.json --all"));
    assert!(screen.lines().count() <= 40, "{screen}");
    assert!(screen.contains("… and 15 more components and 2 more columns (--all lists them)"), "{screen}");
    assert!(all.lines().count() > 80 && !all.contains("--all lists"), "{all}");
    assert!(screen.contains("weight: fraction of the rows; "), "{screen}");
    let by_overlap = &place.json("show model.json")["by_overlap"];
    assert!(by_overlap.as_array().unwrap().len() > 2, "{by_overlap}");
}

#[test]
fn show_tells_in_words_what_was_guarded() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&Array2::from_elem((500, 2), 2.5), &["a", "b"]));
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    let said = place.run("show model.json").success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.contains("times a column's variance was held at its floor"), "{said}");

    let mut model: Value = serde_json::from_str(&place.read("model.json")).unwrap();
    model["state"]["candidates"][0]["health"] = serde_json::json!({
        "rows_out_of_range": 11,
        "pivots_raised": 22,
        "nu_floored": 33,
        "literal_steps_kept": 44,
        "components_damped": 55,
        "rows_set_aside": 66,
    });
    model.as_object_mut().unwrap().remove("checksum");
    place.write("model.json", &model.to_string());
    let said = place.run("show model.json").success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    for words in [
        "11 rows too far from every component to be learned",
        "22 times a column's variance was held at its floor",
        "33 times a projection was held at the fewest degrees of freedom",
        "44 times the paper's equations had no solution",
        "55 components had a product over the shards that was damped",
        "66 validation rows far from every component at the end, and not learned",
    ] {
        assert!(said.contains(words), "{said}\nwithout: {words}");
    }
    let one = place.read("model.json").replace("\"pivots_raised\":22", "\"pivots_raised\":1");
    place.write("one.json", &one);
    let said = place.run("show one.json").success();
    let said = String::from_utf8_lossy(&said.get_output().stdout).into_owned();
    assert!(said.contains("; 1 time a column's variance"), "{said}");
    let counts = place.json("show model.json")["health"].clone();
    assert_eq!(counts, model["state"]["candidates"][0]["health"]);
}
