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
        ] {
            place.refuses(line, 1, &["rows.csv", "43", "w"]);
        }
    }
    place.write("rows.csv", &weighted(&rows, |_| "1".into()));
    for line in [
        "compare --data rows.csv --weight w --k 2 --folds 2 --algos obmm --out out",
        "impute --model model.json --data rows.csv --weight w --out out.csv",
        "predict --model model.json --data rows.csv --weight w --target y --scores out.csv",
    ] {
        place.refuses(line, 2, &["--weight"]);
    }
}
