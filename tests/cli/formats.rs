//! `.npy`, Parquet and Arrow files: the same rows give the same models, and bad files say what is wrong.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::common::repository;
use crate::workplace::Workplace;

/// A `.npy` file of a type, an order and a shape.
fn npy(kind: &str, by_column: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if by_column { "True" } else { "False" };
    let text = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(values);
    bytes
}

/// The rows of a CSV file.
fn rows_of(text: &str) -> Vec<Vec<f64>> {
    let cell = |cell: &str| if cell.is_empty() { f64::NAN } else { cell.parse().unwrap() };
    text.lines().skip(1).map(|line| line.split(',').map(cell).collect()).collect()
}

fn by_row(rows: &[Vec<f64>]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
}

fn by_column(rows: &[Vec<f64>]) -> Vec<u8> {
    (0..rows[0].len()).flat_map(|i| rows.iter().flat_map(move |row| row[i].to_le_bytes())).collect()
}

/// The rows of a table in the reference folder as `rows.csv`, `plain.csv` without a header, and arrays.
fn with_rows(name: &str) -> Workplace {
    let place = Workplace::new();
    let text = std::fs::read_to_string(repository("tests/reference/formats").join(name)).unwrap();
    place.write("rows.csv", &text);
    place.write("plain.csv", text.split_once('\n').unwrap().1);
    let rows = rows_of(&text);
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path(name), bytes).unwrap();
    let shape = format!("({}, 3)", rows.len());
    write("c.npy", &npy("<f8", false, &shape, &by_row(&rows)));
    write("fortran.npy", &npy("<f8", true, &shape, &by_column(&rows)));
    let swapped: Vec<u8> = rows.iter().flatten().flat_map(|value| value.to_be_bytes()).collect();
    write("swapped.npy", &npy(">f8", false, &shape, &swapped));
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&npy("<f8", false, &shape, &by_row(&rows))).unwrap();
    write("c.npy.gz", &packed.finish().unwrap());
    place
}

fn reference(name: &str) -> String {
    repository("tests/reference/formats").join(name).display().to_string()
}

/// The model that a fit of this data writes.
#[track_caller]
fn model(place: &Workplace, data: &str, options: &str) -> String {
    place.run(&format!("fit --data {data} --k 2 {options} --out model.json")).success();
    place.read("model.json")
}

const OPTIONS: [&str; 5] =
    ["", "--columns 3,1", "--drop 2 --skip 7", "--skip 10 --limit 30", "--shuffle-buffer 20 --seed 3"];

#[test]
fn arrays_give_the_models_of_the_same_text() {
    let place = with_rows("rows.csv");
    for options in OPTIONS {
        let expected = model(&place, "plain.csv", options);
        for data in ["c.npy", "fortran.npy", "swapped.npy", "c.npy.gz"] {
            assert!(model(&place, data, options) == expected, "{data} {options}");
        }
        let piped = place
            .command(&format!("fit --data - --k 2 {options} --out model.json"))
            .write_stdin(std::fs::read(place.path("c.npy")).unwrap())
            .assert();
        piped.success();
        assert!(place.read("model.json") == expected, "a pipe, {options}");
    }
    // By position, a model of columns with names takes an array too.
    model(&place, "rows.csv", "");
    for data in ["rows.csv", "c.npy", "fortran.npy"] {
        place.run(&format!("eval --model model.json --data {data} --scores {data}.scores")).success();
        assert_eq!(place.read(&format!("{data}.scores")), place.read("rows.csv.scores"), "{data}");
    }
}

#[test]
fn shards_of_arrays_begin_and_end_where_rows_do() {
    let place = with_rows("rows.csv");
    let fit = |data: &str| {
        let line = format!(
            "fit --algo odmm --deal parts --shards 4 --init-rows 5 --data {data} --k 1 --out model.json"
        );
        (place.json(&line)["rows"].clone(), place.read("model.json"))
    };
    let (rows, expected) = fit("c.npy");
    assert_eq!(rows, 60);
    assert!(fit("fortran.npy").1 == expected, "the cuts are the same");
    place.refuses(
        "fit --algo odmm --deal parts --shards 4 --data c.npy.gz --k 1 --out out.json",
        1,
        &["'c.npy.gz' is compressed and cannot be cut"],
    );
}

#[test]
fn missing_values_of_arrays_are_those_of_the_text() {
    let place = with_rows("gaps.csv");
    for options in ["--missing marginal", "--missing skip"] {
        let expected = model(&place, "plain.csv", options);
        assert!(model(&place, "fortran.npy", options) == expected, "{options}");
    }
    model(&place, "plain.csv", "--missing marginal");
    for data in ["plain.csv", "c.npy"] {
        place.run(&format!("impute --model model.json --data {data} --out {data}.filled")).success();
    }
    assert_eq!(rows_of(&place.read("c.npy.filled")), rows_of(&place.read("plain.csv.filled")));
    let words =
        ["'c.npy', row 9: the value in column 'c1' is missing", "missing values among 60 rows: 4 in 'c1'"];
    place.refuses("fit --data c.npy --k 2 --out out.json", 1, &words);
}

#[test]
fn integers_and_singles_are_read_and_other_arrays_refused() {
    let place = with_rows("rows.csv");
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.path(name), bytes).unwrap();
    let numbers: Vec<i16> = (0..120).map(|i| (i * 37 % 101 - 50) as i16).collect();
    write(
        "i2.npy",
        &npy("<i2", true, "(60, 2)", &numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>()),
    );
    let singles: Vec<u8> = numbers.iter().flat_map(|n| f32::from(*n).to_le_bytes()).collect();
    write("f4.npy", &npy("<f4", true, "(60, 2)", &singles));
    assert!(model(&place, "i2.npy", "") == model(&place, "f4.npy", ""));
    write(
        "line.npy",
        &npy("<i2", false, "(120,)", &numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>()),
    );
    assert_eq!(place.json("fit --data line.npy --k 1 --out line.json")["columns"], serde_json::json!(["c1"]));

    let zeros = [0; 96];
    for (name, bytes, words) in [
        ("complex.npy", npy("<c16", false, "(2, 3)", &zeros), "'<c16', not float or integer"),
        ("deep.npy", npy("<f8", false, "(2, 2, 3)", &zeros), "3 dimensions"),
        ("short.npy", npy("<f8", false, "(5, 3)", &zeros), "it was cut off"),
        ("long.npy", npy("<f8", false, "(3, 3)", &zeros), "something was appended"),
        ("none.npy", npy("<f8", false, "(0, 3)", &[]), "is empty"),
        ("huge.npy", npy("<f8", true, "(4611686018427387904, 8)", &zeros), "it was cut off"),
        ("head.npy", b"\x93NUMPY\x01\x00\xff\x00{".to_vec(), "the header ends early"),
        (
            "six.npy",
            b"\x93NUMPY".to_vec(),
            "the header ends early: the file was cut off, so write or fetch it anew",
        ),
        (
            "infinite.npy",
            npy("<f8", false, "(1, 1)", &f64::INFINITY.to_le_bytes()),
            "no column holds numbers",
        ),
    ] {
        write(name, &bytes);
        place.refuses(&format!("fit --data {name} --k 2 --out out.json"), 1, &[name, words]);
    }
    for options in ["--delimiter ;", "--no-header"] {
        place.refuses(
            &format!("fit --data c.npy {options} --k 2 --out out.json"),
            1,
            &["'c.npy' is a .npy array"],
        );
    }
    place.refuses(
        "fit --data rows.csv --data c.npy --k 2 --out out.json",
        1,
        &["'c.npy' has no names of columns"],
    );
    let mut piped = place.command("fit --data - --k 2 --out out.json");
    let piped = piped.write_stdin(std::fs::read(place.path("fortran.npy")).unwrap()).assert().code(1);
    let said = String::from_utf8_lossy(&piped.get_output().stderr).into_owned();
    assert!(said.contains("Fortran order") && said.contains("save it as a file"), "{said}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_the_feature_an_error_names_it() {
    let place = Workplace::new();
    for name in ["snappy.parquet", "lz4.arrow", "stream.arrows"] {
        let words = [name, "which this build cannot read", "--features parquet"];
        place.refuses(&format!("fit --data {} --k 2 --out out.json", reference(name)), 1, &words);
    }
}

#[cfg(feature = "parquet")]
mod tables {
    use super::*;

    const SAME: [&str; 11] = [
        "snappy.parquet",
        "lz4.parquet",
        "zstd.parquet",
        "gzip.parquet",
        "pages_v2.parquet",
        "polars.parquet",
        "lz4.arrow",
        "zstd.arrow",
        "uncompressed.arrow",
        "polars.arrow",
        "stream.arrows",
    ];

    #[test]
    fn tables_give_the_models_of_the_same_text() {
        let place = with_rows("rows.csv");
        let expected = model(&place, "rows.csv", "");
        for name in SAME {
            assert!(model(&place, &reference(name), "") == expected, "{name}");
        }
        for options in &OPTIONS[1..] {
            let expected = model(&place, "rows.csv", options);
            for name in ["snappy.parquet", "pages_v2.parquet", "lz4.arrow", "stream.arrows"] {
                assert!(model(&place, &reference(name), options) == expected, "{name} {options}");
            }
        }
        for name in ["lz4.arrow", "stream.arrows"] {
            let bytes = std::fs::read(reference(name)).unwrap();
            place.command("fit --data - --k 2 --out model.json").write_stdin(bytes).assert().success();
            assert!(place.read("model.json") == expected, "{name} from a pipe");
        }
        // All of one stream, in several formats, with columns found by name.
        let files = ["lz4.parquet", "zstd.arrow"].map(|name| format!("--data {}", reference(name)));
        place.run(&format!("fit --data rows.csv {} --k 2 --out model.json", files.join(" "))).success();
        assert!(place.read("model.json") == model(&place, "rows.csv --data rows.csv --data rows.csv", ""));
    }

    #[test]
    fn nulls_and_nans_are_missing_values() {
        let place = with_rows("gaps.csv");
        for options in ["--missing marginal", "--missing skip"] {
            let expected = model(&place, "rows.csv", options);
            for name in ["nulls.parquet", "nans.parquet", "nulls.arrow"] {
                assert!(model(&place, &reference(name), options) == expected, "{name} {options}");
            }
        }
        model(&place, "rows.csv", "--missing marginal");
        place.run("impute --model model.json --data rows.csv --out rows.filled").success();
        for name in ["nulls.parquet", "nulls.arrow"] {
            place
                .run(&format!("impute --model model.json --data {} --out filled", reference(name)))
                .success();
            assert_eq!(rows_of(&place.read("filled")), rows_of(&place.read("rows.filled")), "{name}");
            assert!(place.read("filled").starts_with("x,y,z\n"));
        }
    }

    #[test]
    fn encryption_is_named() {
        let place = Workplace::new();
        let mut bytes = std::fs::read(reference("snappy.parquet")).unwrap();
        // An encrypted column: its page cannot be read.
        bytes[4..36].fill(0x5a);
        std::fs::write(place.path("column.parquet"), &bytes).unwrap();
        place.refuses(
            "fit --data column.parquet --k 1 --out m.json",
            1,
            &["column 'x' is damaged or encrypted"],
        );
        let end = bytes.len() - 4;
        bytes[..4].copy_from_slice(b"PARE");
        bytes[end..].copy_from_slice(b"PARE");
        std::fs::write(place.path("all.parquet"), &bytes).unwrap();
        place.refuses("fit --data all.parquet --k 1 --out m.json", 1, &["it is encrypted"]);
    }

    #[test]
    fn shards_of_tables_begin_and_end_where_rows_do() {
        let place = with_rows("rows.csv");
        let fit = |data: &str| {
            let line = format!(
                "fit --algo odmm --deal parts --shards 4 --init-rows 5 --data {data} --k 1 --out model.json"
            );
            (place.json(&line)["rows"].clone(), place.read("model.json"))
        };
        let (rows, expected) = fit(&reference("snappy.parquet"));
        assert_eq!(rows, 60);
        for name in ["pages_v2.parquet", "uncompressed.arrow", "polars.arrow", "stream.arrows"] {
            assert!(fit(&reference(name)).1 == expected, "{name}");
        }
    }

    #[test]
    fn only_columns_of_numbers_are_read_and_others_can_be_kept() {
        let place = Workplace::new();
        let (mut models, mut scores) = (Vec::new(), Vec::new());
        for name in ["mixed.parquet", "mixed.arrow"] {
            let data = reference(name);
            let fitted = place.run(&format!("fit --data {data} --k 1 --out all.json")).success();
            let said = String::from_utf8_lossy(&fitted.get_output().stderr).into_owned();
            for words in [
                "columns 'id' and 'kind' left out: they hold words",
                "column 'time' left out: it holds dates or times",
                "column 'flag' left out: it holds true and false",
                "columns 'list' and 'record' left out: they hold lists",
                "column 'nothing' left out: it is empty",
            ] {
                assert!(said.contains(words), "{name} said: {said}\nwithout: {words}");
            }
            models.push(model(&place, &data, "--columns double,single,half,long,tiny,cents"));
            place
                .run(&format!(
                    "predict --model model.json --data {data} --scores scores.csv --keep id,long,cents,flag,half"
                ))
                .success();
            scores.push(place.read("scores.csv"));
            for (options, words) in [
                ("--columns double,id", "column 'id' does not hold numbers but words"),
                ("--columns record", "column 'record' does not hold numbers but lists"),
                ("--columns duoble", "did you mean 'double'?"),
            ] {
                place.refuses(&format!("fit --data {data} {options} --k 1 --out out.json"), 1, &[words]);
            }
            place.refuses(
                &format!("predict --model model.json --data {data} --scores out.csv --keep list"),
                1,
                &["the values of column 'list' cannot be written as text: leave out"],
            );
        }
        assert!(models[0] == models[1] && scores[0] == scores[1]);
        let third = scores[0].lines().nth(3).unwrap();
        assert!(third.ends_with(",\"row 2, \"\"2\"\"\",-96,0.04,true,0.25"), "{third}");
    }

    #[test]
    fn texts_dictionaries_and_times_are_the_same_in_every_table() {
        let place = Workplace::new();
        let (mut models, mut scores, mut filled) = (Vec::new(), Vec::new(), Vec::new());
        for name in ["texts.parquet", "texts.arrow", "texts.arrows"] {
            let data = reference(name);
            models.push(model(&place, &data, "--missing marginal"));
            assert!(models[0].contains("\"level\"") && models[0].contains("\"took\""));
            let line = format!("--model model.json --data {data}");
            let keep = "--missing marginal --keep word,kind,level,took,day,local,utc";
            place.run(&format!("predict {line} --scores scores.csv {keep}")).success();
            scores.push(place.read("scores.csv"));
            place.run(&format!("impute {line} --out filled.csv")).success();
            filled.push(place.read("filled.csv"));
        }
        assert!(models.iter().all(|model| *model == models[0]));
        assert!(scores.iter().all(|text| *text == scores[0]), "{scores:?}");
        assert!(filled.iter().all(|text| *text == filled[0]), "{filled:?}");
        let lines: Vec<&str> = filled[0].lines().collect();
        let second =
            "w2,kind 0,1,4,1969-12-29,1970-01-02T23:59:59.998,1970-01-01T00:00:00.002002Z,0.9092974268256817";
        assert_eq!(lines[3], second);
        assert!(lines[2].starts_with("\"a long word, number 1\",kind 0,0,1,1969-12-28,"), "{}", lines[2]);
        assert!(lines[4].starts_with(",kind 1,") && lines[5].starts_with("w4,,"), "{lines:?}");
        place.run(&format!("fit --data {} --k 1 --out all.json", reference("mixed.arrow"))).success();
        for name in ["mixed.parquet", "mixed.arrow"] {
            let line = format!("impute --model all.json --data {} --out out.csv", reference(name));
            place.refuses(&line, 1, &["columns 'list', 'record'", "leave out such columns"]);
        }
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        let place = Workplace::new();
        for name in ["snappy.parquet", "lz4.arrow", "stream.arrows"] {
            let bytes = std::fs::read(reference(name)).unwrap();
            std::fs::write(place.path(name), &bytes[..bytes.len() / 2]).unwrap();
            place.refuses(&format!("fit --data {name} --k 2 --out out.json"), 1, &[name]);
        }
        place.refuses("fit --data snappy.parquet --k 2 --out out.json", 1, &["write or fetch it anew"]);
        let words =
            format!("fit --data {} --drop level,took,x --k 2 --out out.json", reference("texts.arrow"));
        let said = place.run(&words).failure().code(1);
        let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
        assert!(said.contains("no column holds numbers") && !said.contains("--delimiter"), "{said}");
        place.refuses(
            &format!("fit --data {} --k 2 --out out.json", reference("brotli.parquet")),
            1,
            &["it is compressed with brotli: write it with snappy, lz4, zstd or gzip"],
        );
        let mut piped = place.command("fit --data - --k 2 --out out.json");
        let piped = piped.write_stdin(std::fs::read(reference("zstd.parquet")).unwrap()).assert().code(1);
        let said = String::from_utf8_lossy(&piped.get_output().stderr).into_owned();
        assert!(said.contains("cannot come from a pipe: save it as a file"), "{said}");
    }
}
