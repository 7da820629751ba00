//! Reading delimited text, as a user of the library sees it.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gmm_bmm::data::{
    BadCell, BadRows, Block, CsvOptions, CsvStream, DataError, Input, RowProblem, RowSource, ShuffleBuffer,
};

type Rows = Vec<Vec<f64>>;

fn options() -> CsvOptions {
    CsvOptions::default()
}

fn choosing(columns: &[&str], drop: &[&str]) -> CsvOptions {
    let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    CsvOptions { columns: owned(columns), drop: owned(drop), ..options() }
}

fn skipping() -> CsvOptions {
    CsvOptions { bad_rows: BadRows::Skip, ..options() }
}

fn inputs<T: AsRef<[u8]>>(texts: &[T]) -> Vec<Input> {
    let input = |(i, text): (usize, &T)| Input::from_bytes(format!("part{}.csv", i + 1), text.as_ref());
    texts.iter().enumerate().map(input).collect()
}

fn open(text: impl AsRef<[u8]>, options: CsvOptions) -> Result<CsvStream, DataError> {
    CsvStream::open(inputs(&[text]), options)
}

fn drain(source: &mut dyn RowSource, most: usize) -> Result<Rows, DataError> {
    let mut block = Block::new(source.columns().len());
    let mut rows = Vec::new();
    while source.read_block(&mut block, most)? {
        assert!(!block.is_empty() && block.rows() <= most);
        rows.extend(block.iter().map(<[f64]>::to_vec));
    }
    assert!(block.is_empty());
    Ok(rows)
}

/// The columns and rows of a text.
fn read(text: impl AsRef<[u8]>, options: CsvOptions) -> (Vec<String>, Rows) {
    let mut stream = open(text, options).unwrap();
    let rows = drain(&mut stream, 100).unwrap();
    (stream.columns().to_vec(), rows)
}

fn rows(text: impl AsRef<[u8]>) -> Rows {
    read(text, options()).1
}

/// The error of a text, at opening or reading.
fn error(text: impl AsRef<[u8]>, options: CsvOptions) -> DataError {
    errors(&[text], options)
}

fn errors<T: AsRef<[u8]>>(texts: &[T], options: CsvOptions) -> DataError {
    match CsvStream::open(inputs(texts), options) {
        Ok(mut stream) => drain(&mut stream, 100).expect_err("an error was due"),
        Err(error) => error,
    }
}

fn assert_says(error: &DataError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Numbers that no two rows share, as text and as rows.
fn long_table(count: usize) -> (String, Rows) {
    let rows: Rows = (0..count).map(|i| vec![i as f64, i as f64 / 7.0, -1e-3 * i as f64]).collect();
    let lines: Vec<String> = rows.iter().map(|row| format!("{},{},{:e}\n", row[0], row[1], row[2])).collect();
    (format!("a,b,c\n{}", lines.concat()), rows)
}

// ---- text

#[test]
fn a_plain_table_with_a_header_is_read() {
    let (columns, rows) = read("x,y\n1,2\n3,4.5\n", options());
    assert_eq!(columns, ["x", "y"]);
    assert_eq!(rows, [[1.0, 2.0], [3.0, 4.5]]);
}

#[test]
fn a_table_without_a_header_has_columns_named_by_position() {
    let stream = open("M,1,2\nF,3,4\n", options()).unwrap();
    assert_eq!(stream.columns(), ["c2", "c3"]);
    assert!(!stream.named());
    assert!(open("x,y\n1,2\n", options()).unwrap().named());
}

#[test]
fn no_row_is_lost_or_changed_whatever_the_block_size() {
    let (text, expected) = long_table(20_011);
    for most in [1, 7, 1000, usize::MAX] {
        let mut stream = open(&text, options()).unwrap();
        assert!(drain(&mut stream, most).unwrap() == expected, "blocks of {most}");
        assert_eq!(stream.rows_read(), 20_011);
    }
}

#[test]
fn every_delimiter_is_detected() {
    for text in
        ["x,y\n1,2\n", "x;y\n1;2\n", "x\ty\n1\t2\n", "x|y\n1|2\n", "x y\n1 2\n", "  x    y \n 1 \t  2\n"]
    {
        assert_eq!(read(text, options()), (vec!["x".into(), "y".into()], vec![vec![1.0, 2.0]]), "{text:?}");
    }
}

#[test]
fn a_delimiter_can_be_forced() {
    let forced = |byte| CsvOptions { delimiter: Some(byte), ..options() };
    assert_eq!(read("1:2\n3:4\n", forced(b':')).1, [[1.0, 2.0], [3.0, 4.0]]);
    assert_eq!(read("1   2\n 3 4\n", forced(b' ')).1, [[1.0, 2.0], [3.0, 4.0]]);
    assert_says(&error("1\n", forced(b'"')), &["delimiter"]);
}

#[test]
fn aligned_columns_of_blanks_are_read_over_many_buffers() {
    let text: String =
        (0..60_000).map(|i| format!("{i:>9}   {:<12}\t{:>4}  \r\n", i as f64 / 2.0, i % 10)).collect();
    let rows = rows(&text);
    assert_eq!(rows.len(), 60_000);
    assert_eq!(rows[59_999], [59_999.0, 29_999.5, 9.0]);
}

#[test]
fn all_line_ends_are_read() {
    for text in ["x,y\r\n1,2\r\n3,4\r\n", "x,y\r1,2\r3,4", "x,y\n1,2\n3,4", "x,y\n1,2\r\n3,4\r"] {
        assert_eq!(rows(text), [[1.0, 2.0], [3.0, 4.0]], "{text:?}");
    }
}

#[test]
fn blank_lines_and_lines_of_blanks_are_ignored() {
    assert_eq!(rows("\n  \nx,y\n\n1,2\n \t \n3,4\n\n\n"), [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn quotes_and_blanks_around_numbers_are_taken_off() {
    let (columns, rows) = read("\"a, b\", \"c\"\n\"1\", 2 \n\" 3 \",4\t\n", options());
    assert_eq!(columns[0], "a, b");
    assert_eq!(rows, [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn one_column_is_enough() {
    assert_eq!(read("height\n1.5\n2.5\n", options()), (vec!["height".into()], vec![vec![1.5], vec![2.5]]));
    assert_eq!(rows("1.5"), [[1.5]]);
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert_eq!(read(b"\xef\xbb\xbfx,y\n1,2\n", options()).0, ["x", "y"]);
    assert_eq!(rows(b"\xef\xbb\xbf\"1\",2\n"), [[1.0, 2.0]]);
}

#[test]
fn names_that_are_not_utf8_are_read_lossily() {
    assert_eq!(read(b"H\xf6he,y\n1,2\n", options()).0, ["H\u{fffd}he", "y"]);
}

#[test]
fn a_table_with_lines_longer_than_the_sample_is_read() {
    let width = 30_000;
    let line = |f: &dyn Fn(usize) -> String| (0..width).map(f).collect::<Vec<_>>().join(",") + "\n";
    let text = line(&|i| format!("x{i}")) + &line(&|i| format!("{i}.25")) + &line(&|i| format!("{i}.5"));
    let (columns, rows) = read(&text, options());
    assert_eq!((columns.len(), columns[29_999].as_str()), (width, "x29999"));
    assert_eq!((rows.len(), rows[1][29_999]), (2, 29_999.5));
}

#[test]
fn numbers_of_every_form_are_read_and_words_are_not() {
    assert_eq!(rows("x,y\n+1,.5\n5.,-1e5\n1E-2,007\n"), [[1.0, 0.5], [5.0, -1e5], [0.01, 7.0]]);
    for cell in ["nan", "NaN", "inf", "-Infinity", "1e999", "1_0", "NA", "?", "null", "", "0x1", "one"] {
        let error = error(format!("x,y\n1,2\n1,{cell}\n"), options());
        assert!(matches!(error, DataError::BadRow(_)), "{cell}: {error}");
    }
}

// ---- header

#[test]
fn a_header_can_be_forced_either_way() {
    let forced = |header| CsvOptions { has_header: Some(header), ..options() };
    assert_eq!(read("1,2\n3,4\n", forced(true)), (vec!["1".into(), "2".into()], vec![vec![3.0, 4.0]]));
    assert_says(&error("x,y\n1,2\n", forced(false)), &["line 1, row 1", "'x'", "'c1'"]);
}

#[test]
fn a_bad_cell_in_the_first_row_does_not_make_it_a_header() {
    assert_says(&error("5.1,3x,2\n4.9,3,1\n", options()), &["row 1", "'3x'"]);
    assert_says(&error("NA,1\n4.9,3\n", options()), &["row 1", "'NA'"]);
}

#[test]
fn a_header_that_could_be_data_gets_a_notice() {
    let stream = open("id,1990,1991\n1,2,3\n", options()).unwrap();
    assert_eq!(stream.columns(), ["id", "1990", "1991"]);
    assert!(stream.notices()[0].contains("--no-header"), "{:?}", stream.notices());
}

#[test]
fn a_header_alone_is_an_error() {
    assert_says(&error("x,y\n\n", options()), &["part1.csv", "only a header, no rows"]);
}

#[test]
fn a_header_of_another_width_than_the_rows_is_an_error() {
    assert_says(&error("x,y\n1,2,3\n4,5,6\n", options()), &["2 field(s)", "3"]);
    assert_says(&error("My table\nx,y\n1,2\n3,4\n", options()), &["remove any lines above"]);
}

#[test]
fn columns_without_a_name_are_called_by_position() {
    assert_eq!(read(",x,\n1,2,3\n", options()).0, ["c1", "x", "c3"]);
}

#[test]
fn equal_names_matter_only_when_chosen_by_name() {
    assert_eq!(read("x,y,x\n1,2,3\n", options()).0, ["x", "y", "x.2"]);
    assert_says(&error("x,y,x\n1,2,3\n", choosing(&["x"], &[])), &["columns 1, 3", "by number"]);
    assert_eq!(read("x,y,x\n1,2,3\n", choosing(&["3"], &[])).1, [[3.0]]);
}

// ---- columns

#[test]
fn columns_of_words_and_empty_columns_are_left_out_with_a_notice() {
    let stream = open("Sex,x,City,gap\nM,1,Ulm,\nF,2,Bonn,NA\n", options()).unwrap();
    assert_eq!(stream.columns(), ["x"]);
    assert_eq!(
        stream.notices(),
        [
            "columns 'Sex' and 'City' left out: they hold words, not numbers",
            "column 'gap' left out: it is empty in the first rows"
        ]
    );
    assert!(open("Sex,x\nM,1\n", choosing(&[], &["Sex"])).unwrap().notices().is_empty());
}

#[test]
fn columns_are_chosen_by_name_number_and_range_in_the_order_given() {
    let text = "a,b,c,d,e\n1,2,3,4,5\n";
    assert_eq!(read(text, choosing(&["e", "2-3", "1"], &[])).1, [[5.0, 2.0, 3.0, 1.0]]);
    assert_eq!(read(text, choosing(&[], &["b", "4-5"])).1, [[1.0, 3.0]]);
    assert_eq!(read(text, choosing(&["d", "c", "b"], &["3"])).0, ["d", "b"]);
    assert_eq!(read("7,8\n9,10\n", choosing(&["c2"], &[])).1, [[8.0], [10.0]]);
}

#[test]
fn an_exact_name_wins_over_a_number() {
    assert_eq!(read("x,1\n5,6\n", choosing(&["1"], &[])).1, [[6.0]]);
}

#[test]
fn an_unknown_column_gets_the_nearest_name_and_the_list() {
    let text = "Length,Height\n1,2\n";
    assert_says(
        &error(text, choosing(&["Hieght"], &[])),
        &["'Hieght'", "did you mean 'Height'", "Length, Height"],
    );
    assert_says(&error(text, choosing(&[], &["Weight"])), &["'Weight'"]);
    assert_says(&error(text, choosing(&["7"], &[])), &["'7'", "1 to 2"]);
}

#[test]
fn nothing_left_to_read_is_an_error() {
    assert_says(&error("x,y\n1,2\n", choosing(&[], &["1-2"])), &["no columns are left", "--drop"]);
    assert_says(&error("x,y\na,b\n", options()), &["no columns are left", "--delimiter"]);
}

#[test]
fn a_column_of_words_that_is_asked_for_fails_at_its_first_cell() {
    assert_says(&error("Sex,x\nM,1\n", choosing(&["Sex"], &[])), &["row 1", "'M'", "column 'Sex'"]);
}

// ---- bad rows

#[test]
fn a_bad_cell_is_reported_with_its_place_and_a_remedy() {
    let error = error("id,Height\r\n1,1.5\r\n\r\n2,tall\r\n", options());
    assert_says(
        &error,
        &[
            "'part1.csv'",
            "line 4",
            "row 2",
            "column 'Height'",
            "'tall'",
            "--drop 'Height'",
            "--bad-rows skip",
        ],
    );
    let DataError::BadRow(bad) = error else { panic!("{error}") };
    assert_eq!((bad.line, bad.row), (4, 2));
    assert!(matches!(bad.problem, RowProblem::Cell { why: BadCell::NotANumber, .. }));
}

#[test]
fn the_text_of_a_long_cell_is_cut() {
    let text = error(format!("x\n1\n{}\n", "z".repeat(500)), options()).to_string();
    assert!(text.contains(&format!("'{}…'", "z".repeat(40))), "{text}");
}

#[test]
fn line_numbers_hold_over_quoted_line_breaks_and_lone_returns() {
    assert_says(&error("name,x\n\"a\nb\",1\nc,?\n", options()), &["line 4, row 2"]);
    assert_says(&error("x,y\r1,2\r\r3,?", options()), &["line 4, row 2"]);
    assert_says(&error("x  y\n1  2\n  \n3  ?\n", options()), &["line 4, row 2"]);
    assert_says(&error("x,y\n1,2\n\"3,4\n5,6\n", options()), &["line 3, row 2"]);
}

#[test]
fn a_ragged_row_is_refused_or_skipped() {
    assert_says(&error("x,y\n1,2\n3\n4,5\n", options()), &["line 3, row 2", "1 field(s) instead of 2"]);
    assert_eq!(read("x,y\n1,2\n3\n4,5,6\n7,8\n", skipping()).1, [[1.0, 2.0], [7.0, 8.0]]);
}

#[test]
fn skipped_rows_are_counted_and_the_first_is_kept_as_an_example() {
    let mut stream = open("x,y\n1,2\n,3\nNA,4\n5,1e999\n6,7\n", skipping()).unwrap();
    assert_eq!(drain(&mut stream, 2).unwrap(), [[1.0, 2.0], [6.0, 7.0]]);
    assert_eq!((stream.rows_read(), stream.rows_skipped()), (2, 3));
    assert_eq!(stream.first_skipped(), Some("'part1.csv', line 3, row 2: the cell in column 'x' is empty"));
}

#[test]
fn a_bad_cell_in_a_column_that_is_not_read_does_no_harm() {
    assert_eq!(read("x,y\n1,2\n3,?\n", choosing(&["x"], &[])).1, [[1.0], [3.0]]);
}

#[test]
fn the_limit_counts_good_rows() {
    let limited = CsvOptions { limit: Some(2), ..skipping() };
    let mut stream = CsvStream::open(inputs(&["x\n1\n?\n", "x\n2\n3\n"]), limited).unwrap();
    assert_eq!(drain(&mut stream, 100).unwrap(), [[1.0], [2.0]]);
    let limited = CsvOptions { limit: Some(2), ..options() };
    assert_eq!(read("x\n1\n2\nbad\n", limited).1.len(), 2);
}

#[test]
fn decimal_commas_are_recognised() {
    for text in ["3,14;2,71\n1,5;2,5\n", "x;y\n1;2,71\n2;2,5\n", "3,14 2,71\n3,1 2,7\n", "x,y\n\"3,14\",1\n"]
    {
        assert_says(&error(text, options()), &["part1.csv", "decimal comma", "decimal point"]);
    }
    assert_eq!(read("x;y\n1;2,71\n2;2,5\n", choosing(&["x"], &[])).1, [[1.0], [2.0]]);
}

// ---- several inputs

#[test]
fn several_inputs_are_one_stream_matched_by_name() {
    let texts = ["x,Sex,y\n1,M,2\n", "y;x\n4;3\n", "z\ty\tx\n0\t6\t5\n"];
    let mut stream = CsvStream::open(inputs(&texts), options()).unwrap();
    assert_eq!(drain(&mut stream, 2).unwrap(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
}

#[test]
fn a_later_input_without_a_chosen_column_is_an_error() {
    assert_says(&errors(&["x,y\n1,2\n", "x,z\n1,2\n"], options()), &["'part2.csv'", "column 'y'"]);
    assert_says(&errors(&["x,y\n1,2\n", "3,4\n"], options()), &["'part2.csv'", "no header"]);
}

#[test]
fn inputs_without_headers_need_the_same_number_of_fields() {
    let mut stream = CsvStream::open(inputs(&["M,1,2\n", "F 3 4\n"]), options()).unwrap();
    assert_eq!(drain(&mut stream, 9).unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
    assert_says(&errors(&["1,2\n", "1,2,3\n"], options()), &["'part2.csv'", "3 field(s)", "has 2"]);
    assert_says(&errors(&["1,2\n", "x,y\n1,2\n"], options()), &["'part2.csv'", "has a header"]);
}

#[test]
fn rows_are_numbered_anew_in_each_input() {
    assert_says(&errors(&["x\n1\n2\n", "x\n3\nbad\n"], options()), &["'part2.csv', line 3, row 2"]);
}

#[test]
fn a_later_input_with_only_a_header_adds_no_rows_and_a_notice() {
    let mut stream = CsvStream::open(inputs(&["x\n1\n", "x\n", "x\n2\n"]), options()).unwrap();
    assert_eq!(drain(&mut stream, 9).unwrap(), [[1.0], [2.0]]);
    assert_eq!(stream.notices(), ["'part2.csv' has only a header, no rows"]);
}

// ---- files and bytes

#[test]
fn gzip_is_recognised_by_its_bytes_with_any_number_of_members() {
    let mut bytes = gzip(b"x,y\n1,2\n");
    bytes.extend(gzip(b"3,4\n"));
    assert_eq!(rows(&bytes), [[1.0, 2.0], [3.0, 4.0]]);
}

#[test]
fn bytes_are_counted_as_they_are_in_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let (text, expected) = long_table(5000);
    let packed = gzip(text.as_bytes());
    let first = write(directory.path(), "first.csv", text.as_bytes());
    let second = write(directory.path(), "second", &packed);
    let mut stream = CsvStream::open(vec![first.into(), second.into()], options()).unwrap();
    let size = (text.len() + packed.len()) as u64;
    assert_eq!(stream.total_bytes(), Some(size));
    assert!(drain(&mut stream, 999).unwrap() == [expected.clone(), expected].concat());
    assert_eq!(stream.bytes_read(), size);
    assert_eq!(open("1\n", options()).unwrap().total_bytes(), None);
}

#[test]
fn truncated_gzip_names_the_file_and_the_last_good_row() {
    let (text, _) = long_table(50_000);
    let packed = gzip(text.as_bytes());
    let mut stream = open(&packed[..packed.len() / 2], options()).unwrap();
    let error = drain(&mut stream, 1000).unwrap_err();
    let good = stream.rows_read();
    assert!(good > 10_000 && good < 40_000, "{good}");
    assert_says(&error, &["'part1.csv'", "truncated or corrupt", &format!("after row {good}:")]);
}

#[test]
fn rows_before_a_break_in_a_short_gzip_are_still_read() {
    let packed = gzip(b"x,y\n1,2\n3,4\n");
    let mut stream = open(&packed[..packed.len() - 6], options()).unwrap();
    assert_says(&drain(&mut stream, 10).unwrap_err(), &["after row 2"]);
    assert_eq!(stream.rows_read(), 2);
    assert!(matches!(error(&packed[..12], options()), DataError::Gzip { row: 0, .. }));
}

#[test]
fn corrupt_gzip_is_an_error() {
    let mut wrong_sum = gzip(b"x,y\n1,2\n");
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    assert!(matches!(error(&wrong_sum, options()), DataError::Gzip { row: 1, .. }));
    let mut not_deflate = gzip(long_table(5000).0.as_bytes());
    not_deflate[10..].fill(0xff);
    assert!(matches!(error(&not_deflate, options()), DataError::Gzip { row: 0, .. }));
    let mut trailing = gzip(b"x,y\n1,2\n3,4\n");
    trailing.extend(b"not gzip any more");
    assert!(matches!(error(&trailing, options()), DataError::Gzip { row: 2, .. }));
}

#[test]
fn files_that_cannot_be_read_fail_at_once_even_if_they_come_last() {
    let directory = tempfile::tempdir().unwrap();
    let good = write(directory.path(), "good.csv", b"x\n1\n");
    let empty = write(directory.path(), "empty.csv", b"");
    let with = |path: &Path| {
        let inputs = vec![good.clone().into(), Input::File(path.to_path_buf())];
        CsvStream::open(inputs, options()).err().expect("an error was due")
    };
    assert!(matches!(with(&directory.path().join("none.csv")), DataError::Missing { .. }));
    assert!(matches!(with(directory.path()), DataError::Directory { .. }));
    assert!(matches!(with(&empty), DataError::Empty { .. }));
    assert!(matches!(CsvStream::open(vec![], options()), Err(DataError::NoInputs)));
    assert!(matches!(
        CsvStream::open(vec![Input::Stdin, Input::Stdin], options()),
        Err(DataError::StdinTwice)
    ));
}

#[test]
fn empty_and_blank_texts_are_errors() {
    for text in ["", "\n\n", "  \r\n", "\u{feff}", "\u{feff}\n"] {
        assert!(matches!(error(text, options()), DataError::Empty { .. }), "{text:?}");
    }
}

#[test]
fn other_formats_are_named() {
    assert_says(&error(b"\xff\xfex\0,\0", options()), &["UTF-16", "iconv"]);
    assert_says(&error(b"\xfe\xff\0x", options()), &["UTF-16"]);
    assert_says(&error(b"x,y\n1,\0\n", options()), &["looks binary", "NUL"]);
    assert_says(&error(b"PK\x03\x04rest", options()), &["zip archive"]);
    assert_says(&error("\n@relation iris\n@data\n1,2\n", options()), &["ARFF or KEEL", "strip"]);
    assert_says(&error("% iris\n@RELATION iris\n@DATA\n1,2\n", options()), &["ARFF"]);
}

#[test]
fn an_unclosed_quote_cannot_fill_the_memory() {
    let head = io::Cursor::new(b"x,y\n1,2\n3,4\n5,6\n\"7,8\n".to_vec());
    let reader = Box::new(head.chain(io::repeat(b'9')));
    let inputs = vec![Input::Reader { name: "endless".into(), reader }];
    let mut stream = CsvStream::open(inputs, options()).unwrap();
    assert_says(&drain(&mut stream, 10).unwrap_err(), &["'endless'", "after row 3", "unclosed quote"]);
    assert_eq!(stream.rows_read(), 3);
    let endless_line = vec![Input::Reader { name: "line".into(), reader: Box::new(io::repeat(b'9')) }];
    assert!(matches!(CsvStream::open(endless_line, options()), Err(DataError::TooLarge { .. })));
}

#[test]
fn a_field_of_more_than_a_mebibyte_is_refused() {
    let text = format!("x,y\n1,2\n3,{}\n", "1".repeat(1024 * 1024 + 1));
    assert_says(&error(text, options()), &["after row 1", "1 MiB"]);
    assert_says(&error("1".repeat(2 * 1024 * 1024), options()), &["after row 0", "1 MiB"]);
}

/// A reader that fails after its bytes.
struct Breaking(io::Cursor<Vec<u8>>);

impl Read for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the wire was cut")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_read_that_fails_names_the_last_good_row() {
    let reader = Box::new(Breaking(io::Cursor::new(b"x\n1\n2\n3".to_vec())));
    let mut stream = CsvStream::open(vec![Input::Reader { name: "wire".into(), reader }], options()).unwrap();
    assert_says(&drain(&mut stream, 10).unwrap_err(), &["'wire'", "after row 2", "the wire was cut"]);
}

#[test]
fn a_shuffled_stream_has_the_same_rows_in_another_order() {
    let (text, expected) = long_table(3000);
    let shuffled = |seed, most| {
        let mut buffer = ShuffleBuffer::new(open(&text, options()).unwrap(), 500, seed);
        let rows = drain(&mut buffer, most).unwrap();
        assert_eq!(buffer.source().rows_read(), 3000);
        rows
    };
    let mut rows = shuffled(1, 7);
    assert!(rows == shuffled(1, 1000) && rows != shuffled(2, 1000) && rows != expected);
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert!(rows == expected);
}
