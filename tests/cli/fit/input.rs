//! What `fit` makes of its data and options, and what it refuses.

use std::io::Write;

use super::with_clusters;
use crate::common::*;
use crate::workplace::Workplace;

#[test]
fn a_column_that_numbers_the_rows_is_noted() {
    let place = Workplace::new();
    let mut rows = clusters(300, 3, 3);
    rows.column_mut(1).iter_mut().enumerate().for_each(|(i, value)| *value = i as f64 + 7.0);
    place.write("rows.csv", &as_csv(&rows, &["a", "id", "c"]));
    for options in ["", "--algo em"] {
        let line = format!("fit --data rows.csv --k 2 --out m.json {options}");
        let note = predicates::str::contains("column 'id' increases by a constant step");
        place.run(&line).success().stderr(note).stderr(predicates::str::contains("--drop 'id'"));
    }
    // Identifiers in another order are recognised because all differ.
    let mut many = clusters(2000, 2, 4);
    many.column_mut(1).iter_mut().enumerate().for_each(|(i, id)| *id = ((i * 787) % 2003) as f64);
    place.write("many.csv", &as_csv(&many, &["a", "key"]));
    let note = predicates::str::contains("column 'key' has a different whole number in every row");
    place.run("fit --data many.csv --k 2 --out m.json").success().stderr(note);
    // It moves on from the first rows' range, but that is no reason to shuffle the file.
    let said = place.run("fit --data rows.csv --k 2 --init-rows 100 --out m.json").success();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(
        said.contains("leave the range that 'id' had in the first rows") && !said.contains("shuffle"),
        "{said}"
    );
}

#[test]
fn options_that_a_learner_has_no_use_for_are_refused() {
    let place = with_clusters(100);
    for (options, words) in [
        ("--shards 4", ["--shards has no effect with --algo obmm", "--algo odmm"]),
        ("--algo em --discount 0.5", ["--discount has no effect with --algo em", "obmm or odmm"]),
        ("--algo odmm --alpha 0.6", ["--alpha has no effect with --algo odmm", "--algo oem"]),
        ("--algo oem --moments paper", ["--moments has no effect with --algo oem", "obmm"]),
    ] {
        place.refuses(&format!("fit --data rows.csv --k 2 --out m.json {options}"), 2, &words);
    }
    place.refuses("fti --data rows.csv", 2, &["the commands are fit, eval, impute, compare"]);
    place.refuses(
        "fit --data rows.csv --k 2 --out m.json --skip 500",
        1,
        &["no rows to learn from", "--skip"],
    );
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
    place.run("fit --data rows.csv --k 2 --out m.json").success().stderr(predicates::str::contains(
        "the variance of 'b', given the columns before, is held at a floor",
    ));
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
    place.refuses("fit --data rows.csv --k automatic --out out.json", 2, &["auto:2..50"]);
    place.refuses("fit --data rows.csv --k auto:5..2 --out out.json", 2, &["2..5"]);
    place.refuses("fit --data rows.csv --k auto:0..2 --out out.json", 2, &["at least 1"]);
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

/// A name in a header, in a model or of a file must not move the cursor or clear the screen.
#[test]
fn escape_sequences_in_names_reach_the_terminal_spelt_out() {
    let place = Workplace::new();
    let mut rows = clusters(300, 3, 5);
    rows.column_mut(0).fill(1.0);
    rows.column_mut(1).mapv_inplace(f64::round);
    let with_words = as_csv(&rows, &[]).replace('\n', ",red\n");
    let header = "a\u{1b}[2Jx,b\u{9b}31m,c\u{7},word\u{1b}[0m\n";
    place.write("odd\u{1b}[1m.csv", &(header.to_string() + &with_words));
    place.write("other.csv", "a,b,c\n1,2,3\n4,5,6\n");
    let fit = "fit --data odd\u{1b}[1m.csv --k 2 --out m\u{1b}[7m.json";
    for line in [
        fit.to_string(),
        format!("{fit} --plot m.svg"),
        format!("{fit} --columns none"),
        format!("{fit} --columns c"),
        "show m\u{1b}[7m.json".to_string(),
        "eval --model m\u{1b}[7m.json --data other.csv".to_string(),
        "eval --model m\u{1b}[7m.json --data odd\u{1b}[1m.csv".to_string(),
        "compare --data odd\u{1b}[1m.csv --k 1 --folds 2 --algos start,obmm --out out".to_string(),
        "compare --data odd\u{1b}[1m.csv --k 1 --folds 3 --algos start,obmm --out out".to_string(),
        "compare --from-records out".to_string(),
    ] {
        let output = place.command(&line).output().unwrap();
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(text);
            let raw = text.chars().find(|c| c.is_control() && *c != '\n');
            assert_eq!(raw, None, "'{line}' said {text:?}");
        }
    }
    let said = String::from_utf8_lossy(&place.run(fit).success().get_output().stderr).into_owned();
    assert!(said.contains("a\\u{1b}[2Jx"), "{said}");
    let pages = ["m.svg", "out/report.html", "out/summary.md", "out/plots/pairs-odd--1m.svg"];
    for name in pages {
        let text = place.read(name);
        assert_eq!(text.chars().find(|c| c.is_control() && *c != '\n'), None, "{name}");
        assert!(text.contains("u{1b}") || text.contains("u{9b}"), "{name}");
    }
}
