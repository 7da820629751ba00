//! Untidy files: `--na`, `--bad-cells`, `--circular`, `fit --dequantize`, and what is said of them.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use ndarray::Array2;

use crate::common::{as_csv, clusters, normals};
use crate::workplace::Workplace;

fn said(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn a_sentinel_is_noticed_and_read_as_a_gap() {
    let place = Workplace::new();
    let mut rows = clusters(2000, 2, 1);
    (0..2000).step_by(80).for_each(|i| rows[(i, 0)] = -999.0);
    place.write("rows.csv", &as_csv(&rows, &["x", "y"]));
    let first = place.run("fit --data rows.csv --k 3 --out bad.json").success();
    assert!(said(&first).contains("-999 occurs 25 times in the first rows of 'x', far from all other values: if that means a missing value, use --na -999 --missing marginal"), "{}", said(&first));
    let line = "fit --data rows.csv --k 3 --na -999,none --missing marginal --out model.json";
    let second = place.run(line).success();
    assert!(said(&second).contains("25 in 'x'") && !said(&second).contains("far from"), "{}", said(&second));
    let score = |model: &str, options: &str| {
        place.json(&format!("eval --model {model} --data rows.csv {options}"))["mean_log_likelihood"]
            .as_f64()
            .unwrap()
    };
    assert!(score("model.json", "--na -999 --missing marginal") > score("bad.json", "") + 0.05);
    place.refuses(
        "fit --data rows.csv --na -999 --out no.json",
        1,
        &["row 1", "25 in 'x'", "--missing marginal"],
    );
    place.run("impute --model model.json --data rows.csv --na -999 --out filled.csv").success();
    assert!(!place.read("filled.csv").contains("-999"));
}

#[test]
fn bad_cells_are_counted_as_gaps() {
    let place = Workplace::new();
    let text = as_csv(&clusters(500, 2, 1), &["x", "y"]);
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines[7] = "oops,1.5".into();
    lines[9] = "1.5,#REF!".into();
    place.write("rows.csv", &lines.join("\n"));
    place.refuses("fit --data rows.csv --out no.json", 1, &["'oops' in column 'x'", "--bad-cells missing"]);
    let line = "fit --data rows.csv --k 2 --bad-cells missing --missing marginal --out model.json";
    let result = place.json(line);
    assert_eq!((result["rows"].as_u64(), result["missing"]["bad_cells"].as_u64()), (Some(500), Some(2)));
    let words =
        "2 bad cells were read as missing values; the first: 'rows.csv', line 8, row 7: 'oops' in column 'x'";
    assert!(said(&place.run(line).success()).contains(words));
    place.run("predict --model model.json --data rows.csv --bad-cells missing --missing marginal --scores s.csv").success();
    assert!(place.read("s.csv").lines().all(|line| !line.contains(",,,,")));
}

#[test]
fn a_model_remembers_its_circular_columns() {
    let place = Workplace::new();
    let noise = normals(3000, 2, 1);
    // A wind from the north: about 0, which is 360.
    let wind = |i: usize| (15.0 * noise[(i, 0)]).rem_euclid(360.0);
    let text = |rows: std::ops::Range<usize>| -> String {
        rows.map(|i| format!("{},{},{}\n", i % 7, wind(i), noise[(i, 1)])).collect()
    };
    place.write("rows.csv", &("day,wind,x\n".to_string() + &text(0..3000)));
    place.write("a.csv", &("day,wind,x\n".to_string() + &text(0..2000)));
    place.write("b.csv", &("day,wind,x\n".to_string() + &text(2000..3000)));
    let fit = "fit --data a.csv --drop day --k 1 --circular 0..360 wind --quiet";
    place.run(&format!("{fit} --data b.csv --out model.json")).success();
    let shown = place.json("show model.json");
    assert_eq!(shown["columns"], serde_json::json!(["wind.cos", "wind.sin", "x"]));
    let mean = shown["components"][0]["mean"][0].as_f64().unwrap();
    assert!(mean > 0.9, "the mean direction is north: {mean}");
    // A resumed run, and every command that reads rows, needs no option.
    place.run(&format!("{fit} --out first.json")).success();
    place.run("fit --data b.csv --resume first.json --quiet --out second.json").success();
    assert_eq!(place.read("second.json"), place.read("model.json"));
    place.write("new.csv", "x,wind\n0,1\n0,359\n0,180\n0,\n");
    place.run("predict --model model.json --data new.csv --missing marginal --scores s.csv").success();
    let scores = place.read("s.csv");
    let ranks: Vec<f64> =
        scores.lines().skip(1).map(|line| line.split(',').nth(6).unwrap().parse().unwrap()).collect();
    assert!(ranks[0] > 0.5 && ranks[1] > 0.5 && ranks[2] == 0.0, "{ranks:?}");
    place.run("impute --model model.json --data new.csv --out filled.csv").success();
    let filled = place.read("filled.csv");
    let direction: f64 = filled.lines().last().unwrap().split(',').nth(1).unwrap().parse().unwrap();
    assert!(!(5.0..355.0).contains(&direction), "{filled}");
    place.refuses(
        "eval --model model.json --data new.csv --circular 0..400 wind",
        1,
        &["'wind'", "not circular"],
    );
    place.refuses("fit --data rows.csv --circular 5 wind --out no.json", 2, &["0..360 wind"]);
    place.refuses(
        "fit --data rows.csv --circular 0..100 wind --out no.json",
        1,
        &["out of the range", "'wind'"],
    );
}

/// Counts and a column of one decimal: narrow components could sit on their values.
fn discrete(rows: usize) -> Array2<f64> {
    let mut rows = clusters(rows, 2, 1);
    rows.column_mut(0).mapv_inplace(f64::round);
    rows
}

#[test]
fn noise_of_discrete_columns_is_remembered() {
    let place = Workplace::new();
    let all = discrete(9000);
    let part = |from: usize, to: usize| as_csv(&all.slice(ndarray::s![from..to, ..]).to_owned(), &["n", "y"]);
    for (name, from, to) in [("all", 0, 9000), ("a", 0, 6500), ("b", 6500, 9000), ("few", 0, 300)] {
        place.write(&format!("{name}.csv"), &part(from, to));
    }
    let score = |model: &str, data: &str| {
        place.json(&format!("eval --model {model} --data {data}"))["mean_log_likelihood"].as_f64().unwrap()
    };
    let plain = place.run("fit --data all.csv --k 3 --out plain.json").success();
    assert!(
        said(&plain).contains("'n' has few distinct values") && said(&plain).contains("--dequantize adds"),
        "{}",
        said(&plain)
    );
    let fit = "fit --k 3 --dequantize";
    let noisy = place.run(&format!("{fit} --data all.csv --out model.json")).success();
    assert!(!said(&noisy).contains("distinct values"), "{}", said(&noisy));
    let found = score("model.json", "all.csv");
    // The values themselves are spikes, and their noise is not.
    assert!(found < -3.0 && (found - score("model.json", "b.csv")).abs() < 0.1, "{found}");
    // Resuming is the same as never having stopped.
    place.run(&format!("{fit} --data a.csv --quiet --out first.json")).success();
    place.run("fit --data b.csv --resume first.json --quiet --out second.json").success();
    assert_eq!(place.read("second.json"), place.read("model.json"));
    place.run(&format!("{fit} --data few.csv --quiet --out few.json")).success();
    place.run("fit --data a.csv --resume few.json --skip 300 --quiet --out third.json").success();
    place.run("fit --data b.csv --resume third.json --quiet --out fourth.json").success();
    assert_eq!(place.read("fourth.json"), place.read("model.json"));
    assert!(score("few.json", "few.csv") < -3.0);
    place.run(&format!("{fit} --data few.csv --no-rows --quiet --out bare.json")).success();
    assert_eq!(score("bare.json", "few.csv"), score("few.json", "few.csv"));
    // The rows that were learned have uniform ranks only with their noise.
    place.run("predict --model model.json --data all.csv --scores s.csv").success();
    let ranks = place.read("s.csv");
    let ranks = ranks.lines().skip(1).map(|line| line.split(',').nth(6).unwrap().parse::<f64>().unwrap());
    let mean = ranks.sum::<f64>() / 9000.0;
    assert!((mean - 0.5).abs() < 0.005, "{mean}");
    // A learning curve scores test rows with their noise too.
    place.run(&format!("{fit} --data a.csv --quiet --out t.json --trace t.csv --test b.csv")).success();
    let curve = place.read("t.csv");
    let last: f64 = curve.lines().last().unwrap().rsplit(',').next().unwrap().parse().unwrap();
    assert!((last - score("t.json", "b.csv")).abs() < 1e-9);
    place.run(&format!("{fit} --data few.csv --quiet --out t.json --trace t.csv --test b.csv")).success();
    let curve = place.read("t.csv");
    let last: f64 = curve.lines().last().unwrap().rsplit(',').next().unwrap().parse().unwrap();
    assert!((last - score("t.json", "b.csv")).abs() < 1e-9);
    place.run("fit --data few.csv --k 2 --algo em --dequantize --quiet --out em.json").success();
    assert!(score("em.json", "few.csv") < -3.0);
    place.refuses(
        "fit --data b.csv --resume first.json --dequantize --out no.json",
        2,
        &["--dequantize", "--resume"],
    );
    let parts = "fit --data a.csv --data b.csv --algo odmm --deal parts --k 2 --dequantize --out no.json";
    place.refuses(parts, 2, &["--deal rows"]);
}

#[test]
fn a_killed_run_goes_on_with_the_same_noise() {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&discrete(12_000), &["n", "y"]));
    let fit = "fit --k 2 --dequantize --quiet --data";
    place.run(&format!("{fit} rows.csv --out straight.json")).success();
    let line = format!("{fit} - --out model.json --checkpoint run.ck --checkpoint-every 1000");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"));
    command.args(line.split_whitespace()).current_dir(place.folder.path()).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut stdin, text) = (child.stdin.take().unwrap(), place.read("rows.csv"));
    stdin.write_all(&text.as_bytes()[..3 * text.len() / 4]).unwrap();
    while !place.path("run.ck").exists() || place.json("show run.ck")["rows"].as_u64() < Some(6000) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let line = line.replace("--data -", "--data rows.csv");
    place.refuses(&line.replace("--dequantize ", ""), 2, &["another --dequantize"]);
    place.run(&line).success();
    assert_eq!(place.read("model.json"), place.read("straight.json"));
}

#[test]
fn columns_that_hardly_vary_are_named() {
    let place = Workplace::new();
    let mut rows = clusters(600, 3, 1);
    rows.column_mut(1).mapv_inplace(|value| 1e-33 * value);
    place.write("rows.csv", &as_csv(&rows, &["x", "dead", "z"]));
    let found = place.run("fit --data rows.csv --k 1 --out model.json").success();
    assert!(
        said(&found).contains("the standard deviation of 'dead' is less than a billionth")
            && said(&found).contains("--drop 'dead'"),
        "{}",
        said(&found)
    );
}
