//! Missing values: refused with their counts, skipped, or read as NaN.

use std::fs;

use gmm_bmm::Remedy;
use gmm_bmm::data::*;

use super::*;

fn with(missing: Missing) -> ReadOptions {
    options().missing(missing)
}

/// Rows with `None` where a value is missing.
fn gaps(text: impl AsRef<[u8]>, options: ReadOptions) -> Vec<Vec<Option<f64>>> {
    let known = |value: f64| Some(value).filter(|value| !value.is_nan());
    read(text, options).1.into_iter().map(|row| row.into_iter().map(known).collect()).collect()
}

#[test]
fn every_form_of_a_missing_value_is_nan() {
    let forms = [
        "", " ", "NA", "na", " NA ", "NaN", "nan", "N/A", "#N/A", "null", "None", "?", "-", ".", "\"\"",
        "\"NA\"",
    ];
    for form in forms {
        for text in [format!("x,y\n1,2\n{form},3\n4,5\n"), format!("1,2\n{form},3\r\n4,5")] {
            let expected = [[Some(1.0), Some(2.0)], [None, Some(3.0)], [Some(4.0), Some(5.0)]];
            assert_eq!(gaps(&text, with(Missing::Marginal)), expected, "{form:?}");
            assert_eq!(read(&text, with(Missing::Skip)).1, [[1.0, 2.0], [4.0, 5.0]], "{form:?}");
            assert_says(&error(&text, options()), &["row 2: the value in column", "is missing"]);
        }
    }
}

#[test]
fn all_nan_have_the_same_bits() {
    let (_, rows) = read("x,y\n1,2\nNA,nan\n,-NaN\n", with(Missing::Marginal));
    assert!(rows[1..].iter().flatten().all(|value| value.to_bits() == f64::NAN.to_bits()));
}

#[test]
fn infinities_and_words_are_bad_cells_also_next_to_a_missing_one() {
    for cell in ["inf", "-Infinity", "1e999", "tall"] {
        for missing in [Missing::Refuse, Missing::Skip, Missing::Marginal] {
            let text = format!("x,y\n1,2\n,{cell}\n");
            let error = error(text, with(missing));
            assert!(matches!(error, DataError::BadRow(_)), "{error}");
            assert_says(&error, &["row 2", &format!("'{cell}' in column 'y'")]);
        }
    }
}

#[test]
fn skipping_bad_rows_does_not_skip_missing_values() {
    let error = error("x,y\n1,2\n3,tall\n5,\n", skipping());
    assert_says(&error, &["row 3: the value in column 'y' is missing"]);
    assert_eq!(error.remedies(), [Remedy::UseObservedValues, Remedy::SkipRowsWithGaps]);
}

#[test]
fn the_error_counts_all_rows_of_files_and_says_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let text = "x,y,z\n1,2,3\n,2,NA\n1,,3\nbad,,\n1,,3\n";
    let said = "line 3, row 2: the value in column 'x' is missing; ";
    let counts = "missing values among 4 rows: 1 in 'x', 2 in 'y', 1 in 'z'";
    let plain = write(folder.path(), "plain.csv", text.as_bytes());
    let packed = write(folder.path(), "packed.csv.gz", &gzip(text.as_bytes()));
    for file in [&plain, &packed] {
        for options in [options(), skipping(), options().csv_crate_only(), options().shuffle(10, 1)] {
            let error = options.open(&[file]).unwrap().read_all().unwrap_err().to_string();
            assert!(error.ends_with(&format!("{said}{counts}")), "{error}");
        }
        let both = options().open(&[file, &plain]).unwrap().read_all().unwrap_err().to_string();
        assert!(both.ends_with("among 8 rows: 2 in 'x', 4 in 'y', 2 in 'z'"), "{both}");
        let limited = options().limit(3).open(&[file]).unwrap().read_all().unwrap_err().to_string();
        assert!(limited.ends_with("among 3 rows: 1 in 'x', 1 in 'y', 1 in 'z'"), "{limited}");
    }
    let pipe = error(text, options()).to_string();
    let so_far = "missing values among the first 2 rows: 1 in 'x', 1 in 'z' (later rows are not counted)";
    assert!(pipe.ends_with(&format!("{said}{so_far}")), "{pipe}");
    // A damaged file is counted as far as it can be read.
    let bytes = fs::read(&packed).unwrap();
    fs::write(&packed, &bytes[..bytes.len() - 1]).unwrap();
    let damaged = options().open(&[&packed]).unwrap().read_all().unwrap_err().to_string();
    assert!(
        damaged.contains("the value in column 'x' is missing") && damaged.contains("not counted"),
        "{damaged}"
    );
}

#[test]
fn the_rows_before_the_error_are_given_and_the_stream_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "gaps.csv", b"x,y\n1,2\n3,\n5,6\nbad,7\n");
    let mut rows = options().open(&[file]).unwrap();
    let mut block = Block::new(2);
    assert!(rows.read_block(&mut block, 10).is_err());
    assert_eq!((block.values(), rows.rows_read(), rows.rows_skipped()), (&[1.0, 2.0][..], 1, 0));
    assert!(!rows.read_block(&mut block, 10).unwrap());
}

#[test]
fn a_header_is_found_above_gaps() {
    let marginal = || with(Missing::Marginal);
    let some = Some;
    assert_eq!(gaps("x,y\n,2\n1,\n", marginal()), [[None, some(2.0)], [some(1.0), None]]);
    assert_eq!(read("x,y\n,\n,\n1,2\n", marginal()).0, ["x", "y"]);
    assert_eq!(read(",x\n1,2\n", marginal()).0, ["c1", "x"]);
    // The first line of a file without a header may have gaps too.
    assert_eq!(gaps(",2\n1,3\n", marginal()), [[None, some(2.0)], [some(1.0), some(3.0)]]);
    assert_eq!(gaps("NA,2\n1,3\n", marginal())[0], [None, some(2.0)]);
    assert_eq!(gaps("x y\nNA 2\n1 NA\n", marginal()), [[None, some(2.0)], [some(1.0), None]]);
}

#[test]
fn a_column_that_begins_with_gaps_is_one_of_numbers() {
    let mut text = String::from("x,late,word\n");
    (0..150).for_each(|i| text += &format!("{i},,a\n"));
    text += "150,7.5,NA\n";
    let (columns, rows) = read(&text, with(Missing::Marginal));
    assert_eq!(columns, ["x", "late"]);
    assert!(rows[..150].iter().all(|row| row[1].is_nan()) && rows[150][1] == 7.5);
    // Beyond the sample a column can be asked for.
    let late = format!("x,late\n{}1,2\n", "0,\n".repeat(1000));
    let mut stream = open(&late, with(Missing::Marginal)).unwrap();
    assert_eq!(notices(&mut stream), ["column 'late' left out: it is empty in the first rows"]);
    assert_eq!(read(&late, with(Missing::Marginal).columns(["x", "late"])).1[1000], [1.0, 2.0]);
}

#[test]
fn a_row_without_any_value_is_a_row_and_a_blank_line_is_none() {
    let marginal = || with(Missing::Marginal);
    assert_eq!(gaps("x,y\n1,2\n,\n\n3,4\n", marginal()).len(), 3);
    assert_eq!(gaps("x\n1\n\nNA\n \n2\n", marginal()), [[Some(1.0)], [None], [Some(2.0)]]);
}

#[test]
fn counts_do_not_depend_on_blocks_pieces_skips_and_shuffling() {
    let line = |i: usize| {
        format!(
            "{},{}\n",
            if i.is_multiple_of(3) { "" } else { "1" },
            if i.is_multiple_of(7) { "NA" } else { "2" }
        )
    };
    let text = format!("x,y\n{}", (0..1000).map(line).collect::<String>());
    for missing in [Missing::Marginal, Missing::Skip] {
        for most in [1, 7, 1000] {
            for options in [with(missing), with(missing).csv_crate_only(), with(missing).shuffle(50, 3)] {
                let mut stream = open(&text, options).unwrap();
                let rows = drain(&mut stream, most).unwrap();
                let left_out = if missing == Missing::Skip { 334 + 143 - 48 } else { 0 };
                assert_eq!((rows.len() as u64, stream.rows_left_out()), (1000 - left_out, left_out));
                assert_eq!((stream.missing().rows, &stream.missing().values[..]), (1000, &[334, 143][..]));
            }
        }
    }
    let mut stream = open(&text, with(Missing::Marginal).skip(990)).unwrap();
    assert_eq!(drain(&mut stream, 100).unwrap().len(), 10);
    assert_eq!((stream.missing().rows, &stream.missing().values[..]), (10, &[4, 1][..]));
}

#[test]
fn shards_of_a_file_with_gaps_have_all_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let line = |i: usize| if i.is_multiple_of(4) { format!("{i},\n") } else { format!("{i},{i}\n") };
    let text = format!("x,y\n{}", (0..200).map(line).collect::<String>());
    let file = write(folder.path(), "gaps.csv", text.as_bytes());
    let options = with(Missing::Marginal);
    let shards = options.deal(&[file], 3).unwrap();
    let mut counts = MissingCounts::new(&["x".into(), "y".into()]);
    for shard in 0..3 {
        let mut rows = options.open_shard(&shards, shard).unwrap();
        drain(&mut rows, 13).unwrap();
        counts.add(rows.missing());
    }
    assert_eq!((counts.rows, counts.values), (200, vec![0, 50]));
}
