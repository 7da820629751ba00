//! Missing values: `--missing` of every command that reads rows, `synth --missing` and `impute`.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::workplace::Workplace;

const SYNTH: &str = "synth --k 3 --d 4 --n 2000 --seed 5";

/// Complete rows, the same rows with gaps, and a model of the complete ones.
fn with_gaps() -> Workplace {
    let place = Workplace::new();
    place.run(&format!("{SYNTH} --out rows.csv --truth model.json")).success();
    place.run(&format!("{SYNTH} --missing 0.2 --out gaps.csv")).success();
    place
}

fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

/// The missing cells of each column, and the rows that have one.
fn gaps(text: &str) -> (Vec<usize>, usize) {
    let rows = &cells(text)[1..];
    let of = |column: usize| rows.iter().filter(|row| row[column].is_empty()).count();
    ((0..rows[0].len()).map(of).collect(), rows.iter().filter(|row| row.contains(&"")).count())
}

fn said(assert: &assert_cmd::assert::Assert) -> String {
    String::from_utf8_lossy(&assert.get_output().stderr).into_owned()
}

#[test]
fn synth_removes_a_fraction_of_the_values_and_leaves_the_others() {
    let place = with_gaps();
    let (whole, text) = (place.read("rows.csv"), place.read("gaps.csv"));
    let (counts, _) = gaps(&text);
    assert!(counts.iter().all(|count| (300..500).contains(count)), "{counts:?}");
    for (row, whole) in cells(&text).iter().zip(cells(&whole)) {
        assert!(row.iter().zip(whole).all(|(cell, whole)| cell.is_empty() || *cell == whole));
    }
    place.run(&format!("{SYNTH} --missing 0.2 --threads 1 --out again.csv")).success();
    assert_eq!(place.read("again.csv"), text);
    let result =
        place.json("synth --k 1 --d 1 --n 50 --missing 0.5 --test-rows 50 --test-out test.csv --out one.csv");
    assert_eq!(result["missing"], 0.5);
    let one = place.read("one.csv");
    assert_eq!((one.lines().count(), one.contains("NA")), (51, true));
    assert!(!place.read("test.csv").contains("NA"), "test rows are complete");
    for fraction in ["1", "-0.1", "nan", "x"] {
        place.refuses(&format!("{SYNTH} --missing={fraction} --out bad.csv"), 2, &["from 0 to below 1"]);
    }
}

#[test]
fn missing_values_are_refused_with_exact_counts() {
    let place = with_gaps();
    let text = place.read("gaps.csv");
    let (counts, _) = gaps(&text);
    let first = cells(&text).iter().position(|row| row.contains(&"")).unwrap();
    let column = cells(&text)[first].iter().position(|cell| cell.is_empty()).unwrap() + 1;
    let place_of =
        format!("'gaps.csv', line {}, row {first}: the value in column 'x{column}' is missing", first + 1);
    let all = format!(
        "missing values among 2000 rows: {} in 'x1', {} in 'x2', {} in 'x3', {} in 'x4'",
        counts[0], counts[1], counts[2], counts[3]
    );
    let remedies =
        "use the values that are there with --missing marginal, or skip such rows with --missing skip";
    for line in [
        "fit --data gaps.csv --k 2 --out out.json",
        "fit --data gaps.csv --k 2 --bad-rows skip --out out.json",
        "fit --data gaps.csv --k 2 --algo em --out out.json",
        "fit --data gaps.csv --k 2 --shuffle-buffer 100 --out out.json",
        "eval --model model.json --data gaps.csv --scores scores.csv",
        "compare --data gaps.csv --k 2 --out report",
        "show model.json --plot plot.svg --data gaps.csv",
    ] {
        place.refuses(line, 1, &[&place_of, &all, remedies]);
    }
    // Of a compressed file all rows are counted too, of a pipe those that were read.
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    std::fs::write(place.path("gaps.csv.gz"), packed.finish().unwrap()).unwrap();
    place.refuses("fit --data gaps.csv.gz --k 2 --out out.json", 1, &["'gaps.csv.gz', line", &all]);
    let piped = place.command("fit --data - --k 2 --out out.json").write_stdin(text).assert().code(1);
    let piped = said(&piped);
    assert!(
        piped.contains("'standard input', line") && piped.contains("(later rows are not counted)"),
        "{piped}"
    );
}

#[test]
fn skipping_learns_from_the_complete_rows() {
    let place = with_gaps();
    let text = place.read("gaps.csv");
    let (counts, incomplete) = gaps(&text);
    let complete: Vec<&str> = text.lines().filter(|line| !line.split(',').any(str::is_empty)).collect();
    place.write("complete.csv", &(complete.join("\n") + "\n"));
    let result = place.json("fit --data gaps.csv --missing skip --k 2 --out skipped.json");
    assert_eq!(
        (result["rows"].as_u64(), result["rows_skipped"].as_u64()),
        (Some(2000 - incomplete as u64), Some(0))
    );
    let missing = json!({ "columns": ["x1", "x2", "x3", "x4"], "values": counts, "rows": 2000, "rows_left_out": incomplete });
    assert_eq!(result["missing"], missing);
    place.run("fit --data complete.csv --k 2 --out complete.json").success();
    assert_eq!(place.read("skipped.json"), place.read("complete.json"));
    let told =
        said(&place.run("eval --model model.json --data gaps.csv --missing skip --scores s.csv").success());
    let expected = format!("missing values among 2000 rows: {} in 'x1'", counts[0]);
    assert!(
        told.contains(&expected) && told.contains(&format!("; {incomplete} rows were skipped")),
        "{told}"
    );
    // The rows keep their numbers in the file.
    let rows = &cells(&text)[1..];
    let numbers: Vec<String> = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| !row.contains(&""))
        .map(|(i, _)| (i + 1).to_string())
        .collect();
    let scores = place.read("s.csv");
    let scored =
        cells(&scores)[1..].iter().filter(|row| !row[1].is_empty()).map(|row| row[0]).collect::<Vec<_>>();
    assert_eq!(scored, numbers);
    // The others are listed with the reason.
    assert_eq!(cells(&scores).len(), rows.len() + 1);
    assert_eq!(scores.matches("is missing").count(), rows.len() - numbers.len());
    // Shards add up their counts.
    let parts = place
        .json("fit --algo odmm --shards 2 --deal parts --init-rows 300 --data gaps.csv --missing skip --k 2 --out p.json");
    assert_eq!(parts["missing"], missing);
}

#[test]
fn a_picture_shows_rows_with_gaps_where_it_can() {
    let place = with_gaps();
    place.run("show model.json --plot plot.svg --data gaps.csv --missing marginal").success();
    let svg = place.read("plot.svg");
    assert!(svg.contains("1,000 of 2,000 rows") && !svg.contains("NaN"));
}

#[test]
fn impute_fills_the_gaps_and_nothing_else() {
    let place = with_gaps();
    let (counts, _) = gaps(&place.read("gaps.csv"));
    let result = place.json("impute --model model.json --data gaps.csv --out filled.csv");
    assert_eq!((result["rows"].as_u64(), &result["missing"]["values"]), (Some(2000), &json!(counts)));
    let (whole, text, filled) = (place.read("rows.csv"), place.read("gaps.csv"), place.read("filled.csv"));
    let (mut error, mut spread, mut missing) = (0.0, 0.0, 0);
    let number = |cell: &str| cell.parse::<f64>().unwrap();
    let mean: f64 = cells(&whole)[1..].iter().map(|row| number(row[0])).sum::<f64>() / 2000.0;
    for ((whole, gaps), filled) in cells(&whole).iter().zip(cells(&text)).zip(cells(&filled)) {
        assert_eq!(filled.len(), 4);
        assert!(gaps.iter().zip(&filled).all(|(gap, filled)| gap.is_empty() || gap == filled));
        if gaps[0].is_empty() {
            error += (number(filled[0]) - number(whole[0])).powi(2);
            spread += (mean - number(whole[0])).powi(2);
            missing += 1;
        }
    }
    assert_eq!(missing, counts[0]);
    assert!(error < 0.8 * spread, "{error} {spread}");
    // A complete file comes out as it is.
    place.run("impute --model model.json --data rows.csv --out same.csv").success();
    assert_eq!(place.read("same.csv"), whole);
    // Threads, pipes and compression change nothing.
    place.run("impute --model model.json --data gaps.csv --out one.csv --threads 1").success();
    assert_eq!(place.read("one.csv"), filled);
    let piped =
        place.command("impute --model model.json --data - --out -").write_stdin(text).assert().success();
    assert_eq!(String::from_utf8_lossy(&piped.get_output().stdout), filled);
    place.run("impute --model model.json --data gaps.csv --out filled.csv.gz").success();
    place.run("impute --model model.json --data filled.csv.gz --out unpacked.csv").success();
    assert_eq!(place.read("unpacked.csv"), filled);
}

#[test]
fn impute_passes_other_columns_headers_and_quotes_through() {
    let place = with_gaps();
    let rows = "when;\"x4\";x2; x1 ;note;x3\n\
                2024-01-31; 1.50 ;NA;;\"a; \"\"b\"\"\";2\n\
                ;?;+3;\"\";\"two\nlines\";\"1e0\"\n\
                NA;;;;NA;\n";
    place.write("mixed.csv", rows);
    place.run("impute --model model.json --data mixed.csv --out filled.csv").success();
    let filled = place.read("filled.csv");
    let number = |text: &str| text.parse::<f64>().unwrap();
    let (first, rest) = filled
        .strip_prefix("when;\"x4\";x2; x1 ;note;x3\n2024-01-31; 1.50 ;")
        .unwrap()
        .split_once('\n')
        .unwrap();
    let first: Vec<&str> = first.splitn(3, ';').collect();
    assert!(number(first[0]).is_finite() && number(first[1]).is_finite());
    assert_eq!(first[2], "\"a; \"\"b\"\"\";2");
    let second: Vec<&str> = rest.split(';').collect();
    assert!(second[0].is_empty() && number(second[1]).is_finite() && number(second[3]).is_finite());
    assert_eq!((second[2], second[4]), ("+3", "\"two\nlines\""));
    assert!(second[5].starts_with("\"1e0\"\nNA"));
    // A row without any value gets the mean of the mixture.
    let truth = place.json("show model.json");
    let mean = |column: usize| -> f64 {
        let part =
            |c: &serde_json::Value| c["weight"].as_f64().unwrap() * c["mean"][column].as_f64().unwrap();
        truth["components"].as_array().unwrap().iter().map(part).sum()
    };
    let last: Vec<&str> = filled.lines().last().unwrap().split(';').collect();
    for (cell, column) in [(1, 3), (2, 1), (3, 0), (5, 2)] {
        assert!((number(last[cell]) - mean(column)).abs() < 1e-9);
    }
    assert_eq!((last[0], last[4]), ("NA", "NA"));
    // Without a header the columns are those of the model in order, also one that is empty.
    place.write("bare.csv", "1,,3,4\n5,,7,8\n");
    place.run("impute --model model.json --data bare.csv --out bare-filled.csv").success();
    let bare = place.read("bare-filled.csv");
    assert!(cells(&bare).iter().all(|row| row.len() == 4 && number(row[1]).is_finite()), "{bare}");
}

#[test]
fn draws_are_completed_copies_that_follow_from_the_seed() {
    let place = with_gaps();
    place.run("impute --model model.json --data gaps.csv --draws 3 --out three.csv").success();
    place.run("impute --model model.json --data gaps.csv --draws 2 --seed 1 --out two.csv").success();
    place.run("impute --model model.json --data gaps.csv --draws 2 --seed 9 --out other.csv").success();
    let (text, three, two) = (place.read("gaps.csv"), place.read("three.csv"), place.read("two.csv"));
    let (gaps, three) = (cells(&text), cells(&three));
    assert_eq!((three[0].join(","), three.len()), ("x1,x2,x3,x4,draw".into(), 1 + 3 * 2000));
    for (i, row) in three[1..].iter().enumerate() {
        assert_eq!(row[4], (i % 3 + 1).to_string());
        let original = &gaps[1 + i / 3];
        assert!(original.iter().zip(row).all(|(gap, cell)| if gap.is_empty() {
            !cell.is_empty()
        } else {
            gap == cell
        }));
    }
    let first_two: Vec<_> = three[1..].iter().filter(|row| row[4] != "3").collect();
    assert_eq!(cells(&two)[1..].iter().collect::<Vec<_>>(), first_two);
    assert_ne!(place.read("other.csv"), two);
    place.refuses(
        "impute --model model.json --data two.csv --draws 2 --out again.csv",
        1,
        &["column 'draw'", "--draws"],
    );
    place.refuses("impute --model model.json --data gaps.csv --draws 0 --out none.csv", 2, &["--draws"]);
    place.refuses("impute --model model.json --data gaps.csv --seed 3 --out none.csv", 2, &["--draws"]);
}

#[test]
fn impute_refuses_what_it_cannot_complete_and_leaves_nothing() {
    let place = with_gaps();
    let impute = "impute --model model.json --out out.csv --data";
    place.write("word.csv", "x1,x2,x3,x4\n1,2,3,\n1,tall,,4\n");
    place.refuses(&format!("{impute} word.csv"), 1, &["row 2", "'tall' in column 'x2'", "--bad-rows skip"]);
    let told = said(&place.run(&format!("{impute} word.csv --bad-rows skip")).success());
    assert!(
        told.contains("1 bad row was skipped") && told.contains("missing values among 1 row: 1 in 'x4'"),
        "{told}"
    );
    assert_eq!(place.read("out.csv").lines().count(), 2);
    std::fs::remove_file(place.path("out.csv")).unwrap();
    place.write("infinite.csv", "x1,x2,x3,x4\n1,inf,3,\n");
    place.refuses(&format!("{impute} infinite.csv"), 1, &["'inf' in column 'x2'", "finite"]);
    place.write("other.csv", "x1,x2,x3\n1,,3\n");
    place.refuses(&format!("{impute} other.csv"), 1, &["'x4'", "learned from"]);
    place.write("ragged.csv", "x1,x2,x3,x4\n1,2,3,4\n1,2\n");
    place.refuses(&format!("{impute} ragged.csv"), 1, &["row 2", "2 fields instead of 4"]);
    place.refuses(&format!("{impute} gaps.csv --shuffle-buffer 5"), 2, &["leave out --shuffle-buffer"]);
    place.refuses(&format!("{impute} *.csv"), 2, &["files: give one"]);
    place.refuses("impute --model model.json --data gaps.csv --out gaps.csv", 2, &["replace"]);
    place.refuses("impute --model - --data - --out -", 2, &["standard input"]);
    let whole = place.read("gaps.csv");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(whole.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(place.path("cut.csv.gz"), &packed[..packed.len() / 2]).unwrap();
    place.refuses(&format!("{impute} cut.csv.gz"), 1, &["truncated or corrupt"]);
}

#[test]
fn every_kind_of_learner_of_compare_takes_gaps() {
    let place = Workplace::new();
    place.run("synth --k 3 --d 4 --n 240 --seed 5 --missing 0.2 --out gaps.csv").success();
    let algos = "start,oem,oem_blind,obmm,obmm_blind,obmm_revised,odmm,em_plain";
    let line = format!(
        "compare --no-pictures --data gaps.csv --missing marginal --k 2 --folds 2 --algos {algos} --out out"
    );
    let result = place.json(&line);
    let entries = result["sets"][0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 8);
    for entry in entries {
        let mean = entry["score"]["mean"].as_f64().unwrap();
        assert!((-8.0..-4.0).contains(&mean), "{entry}");
    }
}

/// The figures of z-scored units are those of the same rows in another unit. Rows without a value are no test rows.
#[test]
fn zscored_figures_of_compare_do_not_depend_on_the_unit_of_the_data() {
    let place = with_gaps();
    let text = place.read("gaps.csv");
    let mut lines: Vec<String> =
        text.lines().filter(|line| *line != ",,,").take(901).map(String::from).collect();
    lines.extend((0..30).map(|_| ",,,".to_string()));
    place.write("same.csv", &(lines.join("\n") + "\n"));
    let scaled = |cell: &str| match cell.parse::<f64>() {
        Ok(value) => (1000.0 * value).to_string(),
        Err(_) => cell.to_string(),
    };
    let larger: Vec<String> =
        lines.iter().map(|line| line.split(',').map(scaled).collect::<Vec<_>>().join(",")).collect();
    std::fs::create_dir(place.path("larger")).unwrap();
    place.write("larger/same.csv", &(larger.join("\n") + "\n"));
    let compared = |data: &str, out: &str| {
        let line = format!(
            "compare --data {data} --missing marginal --units zscore --k 1..2 --folds 3 --algos start,oem,obmm,odmm,em --out {out}"
        );
        let assert = place.run(&line).success();
        assert!(said(&assert).contains("30 rows without any value are left out"), "{}", said(&assert));
        let text = place.read(&format!("{out}/loglik.csv"));
        let rows = cells(&text);
        let place_of = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
        let columns = ["rows", "mean", "validation", "prequential"].map(place_of);
        let numbers = |row: &Vec<&str>| columns.map(|column| row[column].parse::<f64>().unwrap_or(0.0));
        let mut all: Vec<_> = rows[1..]
            .iter()
            .map(|row| (row[1].to_string(), row[2].to_string(), row[4].to_string(), numbers(row)))
            .collect();
        all.sort_by(|a, b| a.partial_cmp(b).unwrap());
        all
    };
    let (one, other) = (compared("same.csv", "one"), compared("larger/same.csv", "other"));
    assert_eq!(one.len(), 5 * 2 * 3);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!((&one.0, &one.1, &one.2, one.3[0]), (&other.0, &other.1, &other.2, 300.0));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-3;
        assert!(one.3.iter().zip(&other.3).all(near), "{one:?} {other:?}");
    }
    // The curves and their levels too.
    let ticks = |out: &str| {
        let svg = place.read(&format!("{out}/plots/loglik-same.svg"));
        svg.lines().filter(|line| line.starts_with('−')).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(ticks("one"), ticks("other"));
    // eval agrees: the same model on the rows in both units.
    let means = ["same.csv", "larger/same.csv"].map(|data| {
        place.run(&format!("fit --data {data} --missing marginal --k 2 --out m.json")).success();
        let result =
            place.json(&format!("eval --model m.json --data {data} --missing marginal --units zscore"));
        (result["rows"].as_u64().unwrap(), result["mean_log_likelihood"].as_f64().unwrap())
    });
    assert_eq!((means[0].0, means[1].0), (900, 900));
    assert!((means[0].1 - means[1].1).abs() < 1e-3, "{means:?}");
}

/// Points around rows with gaps have no density, so the density of a command is integrated around complete rows.
#[test]
#[cfg(unix)]
fn the_density_of_a_command_is_checked_also_with_gaps() {
    let place = Workplace::new();
    place.write("rows.csv", &("x,y\n".to_string() + &"0.1,0.5\n0.9,\n,0.2\n0.4,0.7\n0.6,0.3\n".repeat(40)));
    // A standard Gaussian in each observed column.
    place.write(
        "score.awk",
        "FNR > 1 { split($0, x, \",\"); l = 0; for (j = 1; j <= 2; j++) if (x[j] != \"NaN\") l -= x[j] * x[j] / 2 + 0.918938533204673; print l }",
    );
    let learner = "mine=sh -c 'test -s \"$1\" && awk -f score.awk \"$2\" >\"$3\"' sh {train} {test} {scores}";
    place
        .command(
            "compare --data rows.csv --missing marginal --k 1 --folds 2 --dequantize off --algos start --out out --learner",
        )
        .arg(learner)
        .assert()
        .success();
    let records = place.read("out/records.jsonl");
    let own: Vec<&str> = records.lines().filter(|line| line.contains("\"integral\"")).collect();
    assert!(
        own.len() == 2 && own.iter().all(|line| line.contains("\"integral\":[") && !line.contains("failure")),
        "{own:?}"
    );
}
