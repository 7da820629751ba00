//! `gmm-bmm predict`: ranks, explanations, kept columns, and rows that cannot be scored.

use ndarray::Array2;

use crate::common::{as_csv, clusters, normals};
use crate::workplace::Workplace;

/// A place with `rows.csv` (x, y) and a model of it.
pub fn with_model(rows: &Array2<f64>, options: &str) -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(rows, &["x", "y"]));
    place.run(&format!("fit --data rows.csv --out model.json --quiet {options}")).success();
    place
}

/// The cells of a column of the scores.
fn cells<'a>(scores: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = scores.lines();
    let place = lines.next().unwrap().split(',').position(|cell| cell == name).unwrap();
    lines.map(|line| line.split(',').nth(place).unwrap()).collect()
}

fn numbers(scores: &str, name: &str) -> Vec<f64> {
    cells(scores, name).into_iter().map(|cell| cell.parse().unwrap()).collect()
}

/// The largest error of the ranks of the rows that were learned, and the largest relative error of the low ranks with
/// `least` rows below them.
#[track_caller]
fn rank_errors(place: &Workplace, options: &str, least: f64) -> (f64, f64) {
    place.run(&format!("predict --model model.json --data rows.csv --scores s.csv {options}")).success();
    let scores = place.read("s.csv");
    let (densities, ranks) = (numbers(&scores, "log_likelihood"), numbers(&scores, "rank"));
    let mut sorted = densities.clone();
    sorted.sort_by(f64::total_cmp);
    let (mut worst, mut relative) = (0.0f64, 0.0f64);
    for (density, rank) in densities.iter().zip(ranks) {
        let below = sorted.partition_point(|other| other < density) as f64;
        let off = (rank - below / sorted.len() as f64).abs();
        worst = worst.max(off);
        if below >= least && below <= 0.01 * sorted.len() as f64 {
            relative = relative.max(off * sorted.len() as f64 / below);
        }
    }
    (worst, relative)
}

#[test]
fn the_rank_is_the_fraction_of_rows_with_a_lower_density() {
    for (options, rows) in [
        ("--k 3", 9000),
        ("--k 3 --algo oem", 9000),
        ("--k 2..3", 9000),
        ("--k 3", 700),
        ("--k 3 --no-rows", 9000),
        ("--k auto", 9000),
        ("--k 3 --algo odmm --shards 2", 9000),
    ] {
        let place = with_model(&clusters(rows, 2, rows as u64), options);
        let (worst, relative) = rank_errors(&place, "", 1.0);
        assert!(worst < 0.01 && relative < 0.05, "{options} {rows}: {worst} {relative}");
    }
    let place = with_model(&clusters(2000, 2, 1), "--k 2..3 --algo em");
    for k in [2, 3] {
        let (worst, relative) = rank_errors(&place, &format!("--k {k}"), 1.0);
        assert!(worst < 0.01 && relative < 0.05, "em {k}: {worst} {relative}");
    }
}

#[test]
fn ranks_hold_where_few_rows_are_kept() {
    // The reservoir is a small sample, and most rows were scored before they were learned.
    let place = with_model(&clusters(60_000, 2, 5), "--k 3 --keep-rows 2000");
    let (worst, _) = rank_errors(&place, "", 1.0);
    assert!(worst < 0.02, "{worst}");
    let place = with_model(&clusters(60_000, 2, 6), "--k 3 --keep-rows 0");
    let (worst, relative) = rank_errors(&place, "", 20.0);
    assert!(worst < 0.02 && relative < 0.2, "{worst} {relative}");
}

#[test]
fn merged_shards_have_ranks_and_old_files_have_none() {
    let place = with_model(&clusters(6000, 2, 1), "--k 3");
    for seed in [2, 3] {
        place.write(&format!("p{seed}.csv"), &as_csv(&clusters(3000, 2, seed), &["x", "y"]));
        place.run(&format!("fit --data p{seed}.csv --prior model.json --out p{seed}.json --quiet")).success();
    }
    place.run("merge --prior model.json p2.json p3.json --out merged.json --quiet").success();
    place.run("predict --model merged.json --data p2.csv --scores s.csv").success();
    let ranks = numbers(&place.read("s.csv"), "rank");
    let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
    assert!((mean - 0.5).abs() < 0.03, "{mean}");
    std::fs::copy(crate::common::repository("tests/reference/truth_small.json"), place.path("old.json"))
        .unwrap();
    let columns = place.json("show old.json")["columns"].as_array().unwrap().len();
    place.write("one.csv", &format!("{}\n", vec!["1"; columns].join(",")));
    place.run("predict --model old.json --data one.csv --no-header --scores s.csv").success();
    assert_eq!(cells(&place.read("s.csv"), "rank"), [""]);
}

#[test]
fn an_explanation_names_the_column_that_was_changed() {
    let mut rows = normals(8000, 2, 3);
    rows.outer_iter_mut().for_each(|mut row| row[1] = 0.9 * row[0] + 0.3 * row[1]);
    let place = with_model(&rows, "--k 1");
    place.write("odd.csv", "x,y,id\n1,0.9,a\n1,-2,\"b,c\"\n3,2.7,d\n");
    place.run("predict --model model.json --data odd.csv --scores s.csv --explain --keep id").success();
    let scores = place.read("s.csv");
    let header = "row,log_likelihood,component,probability,cluster,outlier,rank,not_scored,explanation,id";
    assert_eq!(scores.lines().next(), Some(header));
    let explained = cells(&scores, "explanation");
    // y is (-2 - 0.9) / 0.3 = -9.7 from its regression on x.
    let words: Vec<&str> = explained[1].split(' ').collect();
    assert!(words[0].starts_with("y:-9.") && words[1].starts_with("x:+"), "{explained:?}");
    assert_eq!(explained[0].split(' ').count(), 1, "{explained:?}");
    assert!(scores.contains(",\"b,c\"\n"), "{scores}");
    let ranks = numbers(&scores.replace("\"b,c\"", "b"), "rank");
    assert!(ranks[1] == 0.0 && ranks[0] > 0.3, "{ranks:?}");
    place.refuses("predict --model model.json --data odd.csv --explain", 2, &["--scores"]);
    place.refuses("predict --model model.json --data odd.csv --keep id", 2, &["--scores"]);
    place.refuses(
        "predict --model model.json --data odd.csv --keep idd --scores t.csv",
        1,
        &["no column 'idd'", "did you mean 'id'"],
    );
}

/// Densities of fewer columns are higher here, so without a correction every row with a gap would have a rank near 1.
#[test]
fn rows_with_gaps_have_ranks_like_whole_rows() {
    let mut rows = normals(6000, 3, 5);
    rows.column_mut(2).mapv_inplace(|value| 100.0 * value);
    for i in (0..6000).step_by(3) {
        rows[(i, 2)] = f64::NAN;
    }
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&rows, &["x", "y", "z"]).replace("NaN", ""));
    place.run("fit --data rows.csv --missing marginal --k 1 --out model.json").success();
    place.write("new.csv", "x,y,z\n0,0,\n7,0,\n0,0,0\n");
    place.run("predict --model model.json --data new.csv --missing marginal --scores s.csv").success();
    let ranks = numbers(&place.read("s.csv"), "rank");
    assert!(ranks[0] > 0.99 && ranks[1] == 0.0 && ranks[2] > 0.99, "{ranks:?}");
    place.run("predict --model model.json --data rows.csv --missing marginal --scores s.csv").success();
    let ranks = numbers(&place.read("s.csv"), "rank");
    let mean = |from: usize| ranks.iter().skip(from).step_by(3).sum::<f64>() / 2000.0;
    assert!((mean(0) - 0.5).abs() < 0.06 && (mean(1) - 0.5).abs() < 0.06, "{} {}", mean(0), mean(1));
}

#[test]
fn a_row_without_values_is_listed_and_counts_for_nothing() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    place.write("gaps.csv", "x,y\n1,2\n,NA\n3,\n");
    place.write("values.csv", "x,y\n1,2\n3,\n");
    place.run("predict --model model.json --data gaps.csv --missing marginal --scores s.csv").success();
    let scores = place.read("s.csv");
    assert_eq!(scores.lines().nth(2), Some("2,,,,,,,the row has no value"));
    assert_eq!(cells(&scores, "not_scored"), ["", "the row has no value", ""]);
    let result =
        |data: &str| place.json(&format!("eval --model model.json --data {data} --missing marginal"));
    let (with, without) = (result("gaps.csv"), result("values.csv"));
    assert_eq!(with["mean_log_likelihood"], without["mean_log_likelihood"]);
    assert_eq!((&with["rows"], &with["rows_skipped"]), (&2.into(), &1.into()));
}

#[test]
fn every_row_of_the_data_has_a_line() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    let mut text = String::from("when,x,y\n");
    for i in 0..9000 {
        text += &match i % 1000 {
            7 => format!("t{i},word,1\n"),
            8 => format!("t{i},1\n"),
            9 => format!("\"t,{i}\",x\"y,1\n"),
            10 => format!("t{i},,1\n"),
            _ => format!("t{i},{},1\n", i % 7),
        };
    }
    place.write("data.csv", &text);
    let line = "predict --model model.json --data data.csv --bad-rows skip --missing skip --scores";
    for options in ["", "--keep when", "--explain --keep when,y"] {
        let said = place.run(&format!("{line} s.csv {options}")).success();
        let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
        assert!(said.contains("27 bad rows were skipped") && said.contains("9 rows were skipped"), "{said}");
        let scores = place.read("s.csv");
        let lines: Vec<&str> = scores.lines().skip(1).collect();
        assert_eq!(lines.len(), 9000);
        for (i, line) in lines.iter().enumerate() {
            assert!(line.starts_with(&format!("{},", i + 1)), "{line}");
            let expected = match i % 1000 {
                7 => Some("'word' in column 'x' is not a number"),
                8 => Some("the row has 2 fields instead of 3"),
                9 => Some("\"'x\"\"y' in column 'x' is not a number\""),
                10 => Some("the value in column 'x' is missing"),
                _ => None,
            };
            assert_eq!(line.split(',').nth(7), Some(expected.unwrap_or("")), "{line}");
            assert_eq!(line.split(',').nth(1) == Some(""), expected.is_some(), "{line}");
            if options.contains("when") {
                assert!(line.contains(&format!("t{i}")) || line.contains(&format!("\"t,{i}\"")), "{line}");
            }
        }
        let piped = place.run(&format!("{line} - {options}")).success().get_output().stdout.clone();
        assert_eq!(String::from_utf8(piped).unwrap(), scores);
    }
    place.refuses("predict --model model.json --data data.csv --scores t.csv", 1, &["row 8", "'word'"]);
}

#[test]
fn a_stray_quote_does_not_take_the_rows_below_it_along() {
    let place = with_model(&clusters(1000, 2, 1), "--k 2");
    let rows: Vec<String> = (0..1500).map(|i| format!("{},{}", i % 7, i % 5)).collect();
    let with_quotes = |lines: &[usize]| {
        let quote = |i: usize| if lines.contains(&(i + 2)) { "\"" } else { "" };
        let rows: String = rows.iter().enumerate().map(|(i, row)| format!("{}{row}\n", quote(i))).collect();
        format!("x,y\n{rows}")
    };
    for (lines, words) in [
        (&[13][..], ["line 13", "not closed in the 1489 lines to the end"]),
        (&[13, 700], ["line 13", "spans 688 lines"]),
        (&[1200], ["line 1200", "not closed in the 302 lines to the end"]),
    ] {
        place.write("data.csv", &with_quotes(lines));
        for command in ["fit --k 2 --out m.json", "predict --model model.json --scores s.csv"] {
            for bad_rows in ["refuse", "skip"] {
                place.refuses(&format!("{command} --data data.csv --bad-rows {bad_rows}"), 1, &words);
            }
        }
    }
    // A quoted cell of several lines is fine where no number is needed.
    place.write("data.csv", "x,y,note\n1,2,\"two\nlines\"\n3,x,a\n4,5,\"b\n\"\n");
    let line = "predict --model model.json --data data.csv --columns x,y --bad-rows skip --scores s.csv";
    assert_eq!(place.json(line)["rows"], 2);
    assert_eq!(place.read("s.csv").lines().count(), 4);
}

#[test]
fn a_row_of_density_zero_is_listed() {
    let place = with_model(&(1e-9 * clusters(1000, 2, 1)), "--k 2");
    place.write("far.csv", "x,y\n0,0\n1e150,0\n1e-9,0\n");
    let line = "predict --model model.json --data far.csv --scores s.csv";
    place.refuses(line, 1, &["row 2 of those read is so far from every component"]);
    let said = place.run(&format!("{line} --bad-rows skip")).success();
    assert!(String::from_utf8_lossy(&said.get_output().stderr).contains("1 row is so far"));
    assert_eq!(place.read("s.csv").lines().nth(2), Some("2,,,,,,,the density is zero in double precision"));
    assert_eq!(place.json(&format!("{line} --bad-rows skip"))["rows_skipped"], 1);
}

#[test]
fn the_most_unusual_rows_can_be_selected() {
    let place = with_model(&clusters(4000, 2, 1), "--k 3");
    place.write("new.csv", "x,y,id\n50,0,far\n1,2,usual\n0,-90,farthest\n,1,gap\n2,1,usual\n");
    let line = "predict --model model.json --data new.csv --missing skip --scores s.csv --keep id";
    place.run(&format!("{line} --top 2")).success().stdout(predicates::str::contains("; 2 rows written"));
    assert_eq!(cells(&place.read("s.csv"), "id"), ["farthest", "far"]);
    assert_eq!(cells(&place.read("s.csv"), "row"), ["3", "1"]);
    place.run(&format!("{line} --max-rank 0.001")).success();
    assert_eq!(cells(&place.read("s.csv"), "id"), ["far", "farthest"]);
    place.run(&format!("{line} --max-rank 0.001 --top 1")).success();
    assert_eq!(cells(&place.read("s.csv"), "id"), ["farthest"]);
    // All rows that were learned, the lowest first.
    place.run("predict --model model.json --data rows.csv --scores s.csv --top 9999").success();
    let ranks = numbers(&place.read("s.csv"), "rank");
    assert!(ranks.len() == 4000 && ranks.is_sorted());
    place.refuses(&format!("{line} --max-rank 2"), 2, &["from 0 to 1"]);
    place.refuses(&format!("{line} --max-rank -1"), 2, &["from 0 to 1"]);
    place.refuses("predict --model model.json --data - --scores - --follow --top 3", 2, &["--max-rank"]);
}

#[test]
fn rows_of_outlier_components_have_a_low_rank() {
    let mut rows = clusters(20_000, 2, 3);
    let far: Vec<usize> = (0..20_000).step_by(1500).collect();
    for &i in &far {
        rows[(i, 0)] = 500.0 + 0.01 * rows[(i, 0)];
        rows[(i, 1)] = 500.0 + 0.01 * rows[(i, 1)];
    }
    let place = with_model(&rows, "--k 4");
    place.run("predict --model model.json --data rows.csv --scores s.csv").success();
    let scores = place.read("s.csv");
    let (outlier, ranks) = (cells(&scores, "outlier"), numbers(&scores, "rank"));
    assert!(far.iter().all(|&i| outlier[i] == "1"), "the test needs an outlier component");
    assert!(far.iter().all(|&i| ranks[i] < 0.001), "{:?}", far.iter().map(|&i| ranks[i]).collect::<Vec<_>>());
    let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
    assert!((mean - 0.5).abs() < 0.01, "{mean}");
}

#[test]
fn targets_are_predicted_from_the_other_columns() {
    let xs = normals(3000, 2, 5);
    // The target is 2x − z with a noise of 0.5.
    let noise = normals(3000, 1, 6);
    let y = |i: usize| 2.0 * xs[(i, 0)] - xs[(i, 1)] + 0.5 * noise[(i, 0)];
    let rows = Array2::from_shape_fn((3000, 3), |(i, j)| [xs[(i, 0)], y(i), xs[(i, 1)]][j]);
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&rows, &["x", "y", "z"]));
    place.run("fit --data rows.csv --k 1 --out model.json --quiet").success();
    // The target need not be there, and the order of columns does not matter.
    place.write("new.csv", "id,z,x\na,1,0.5\nb,,2\nc,-1,word\n");
    let options = "--missing marginal --bad-rows skip --keep id";
    let run = format!(
        "predict --model model.json --data new.csv --target y --interval 0.9 --scores s.csv {options}"
    );
    place.run(&run).success();
    let scores = place.read("s.csv");
    assert_eq!(scores.lines().next().unwrap(), "row,y_mean,y_std,y_low,y_high,not_scored,id");
    let close = |name: &str, expected: [f64; 2]| {
        let cells = cells(&scores, name);
        for (cell, expected) in cells.iter().zip(expected) {
            assert!((cell.parse::<f64>().unwrap() - expected).abs() < 0.1, "{name}: {scores}");
        }
    };
    close("y_mean", [0.0, 4.0]);
    close("y_std", [0.5, 1.25f64.sqrt()]);
    close("y_low", [-0.822, 4.0 - 1.839]);
    close("y_high", [0.822, 4.0 + 1.839]);
    assert!(scores.lines().nth(3).unwrap().starts_with("3,,,,,") && scores.ends_with(",c\n"), "{scores}");
    // With the target in the data, its values change nothing but the copy.
    place.run("predict --model model.json --data rows.csv --target 2 --keep y --scores s.csv").success();
    let scores = place.read("s.csv");
    let (means, truth) = (numbers(&scores, "y_mean"), numbers(&scores, "y"));
    let square = means.iter().zip(&truth).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 3000.0;
    assert!((square.sqrt() - 0.5).abs() < 0.03, "{square}");
    for (options, error) in [
        ("--target x,y,z --scores s.csv", "none is left"),
        ("--target w --scores s.csv", "no column 'w'"),
        ("--target y --interval 90 --scores s.csv", "between 0 and 1"),
        ("--target y", "--scores"),
    ] {
        place
            .run(&format!("predict --model model.json --data rows.csv {options}"))
            .code(2)
            .stderr(predicates::str::contains(error));
    }
}

#[test]
fn contamination_marks_anomalies_also_those_that_lie_together() {
    let rows = clusters(2000, 2, 3);
    let group = normals(20, 2, 4).mapv(|value| 40.0 + 0.1 * value);
    let rows = ndarray::concatenate![ndarray::Axis(0), rows, group];
    let place = with_model(&rows, "--k 3");
    let line = "predict --model model.json --data rows.csv --scores s.csv";
    for (share, most) in [("0.01", 0.011), ("auto", 0.04)] {
        place.run(&format!("{line} --contamination {share}")).success();
        let scores = place.read("s.csv");
        let (marks, values) = (numbers(&scores, "anomaly"), numbers(&scores, "anomaly_score"));
        assert!(marks[2000..].iter().all(|&mark| mark == 1.0), "{share}");
        assert!(marks.iter().sum::<f64>() / 2020.0 <= most, "{share}");
        let usual = values[..2000].iter().copied().fold(f64::INFINITY, f64::min);
        assert!(values[2000..].iter().all(|&value| value < usual), "{share}");
    }
    place.run(&format!("{line} --contamination 0.01 --top 20")).success();
    assert!(numbers(&place.read("s.csv"), "row").iter().all(|&row| row > 2000.0));
    place.write("bad.csv", "x,y\n1,1\n,2\n");
    place.run("predict --model model.json --data bad.csv --scores s.csv --contamination auto --explain --missing skip").success();
    let scores = place.read("s.csv");
    assert!(scores.lines().all(|line| line.matches(',').count() == 10), "{scores}");
    for wrong in ["0", "0.6", "-1", "nan", "much"] {
        place.refuses(&format!("{line} --contamination={wrong}"), 2, &["--contamination", "at most 0.5"]);
    }
}
