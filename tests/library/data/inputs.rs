//! Where delimited text comes from: several inputs, files, gzip, and what is not text.

use std::io::{self, Read};
use std::path::Path;

use gmm_bmm::data::*;

use super::*;

// ---- several inputs

#[test]
fn several_inputs_are_one_stream_matched_by_name() {
    let texts = ["x,Sex,y\n1,M,2\n", "y;x\n4;3\n", "z\ty\tx\n0\t6\t5\n"];
    let mut stream = options().open_inputs(inputs(&texts)).unwrap();
    assert_eq!(drain(&mut stream, 2).unwrap(), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]);
}

#[test]
fn a_later_input_without_a_chosen_column_is_an_error() {
    assert_says(&errors(&["x,y\n1,2\n", "x,z\n1,2\n"], options()), &["'part2.csv'", "column 'y'"]);
    assert_says(&errors(&["x,y\n1,2\n", "3,4\n"], options()), &["'part2.csv'", "no names of columns"]);
}

#[test]
fn inputs_without_headers_need_the_same_number_of_fields() {
    let mut stream = options().open_inputs(inputs(&["M,1,2\n", "F 3 4\n"])).unwrap();
    assert_eq!(drain(&mut stream, 9).unwrap(), [[1.0, 2.0], [3.0, 4.0]]);
    assert_says(&errors(&["1,2\n", "1,2,3\n"], options()), &["'part2.csv'", "3 fields", "has 2"]);
    assert_says(&errors(&["1,2\n", "x,y\n1,2\n"], options()), &["'part2.csv'", "has names of columns"]);
}

#[test]
fn rows_are_numbered_anew_in_each_input() {
    assert_says(&errors(&["x\n1\n2\n", "x\n3\nbad\n"], options()), &["'part2.csv', line 3, row 2"]);
}

#[test]
fn a_later_input_with_only_a_header_adds_no_rows_and_a_notice() {
    let mut stream = options().open_inputs(inputs(&["x\n1\n", "x\n", "x\n2\n"])).unwrap();
    assert_eq!(drain(&mut stream, 9).unwrap(), [[1.0], [2.0]]);
    assert_eq!(notices(&mut stream), ["'part2.csv' has only a header, no rows"]);
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
    let mut stream = options().open_inputs(vec![Input::File(first), Input::File(second)]).unwrap();
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
    assert_says(&error, &["'part1.csv'", "truncated or corrupt", &format!("after row {good} (")]);
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
        let inputs = vec![Input::File(good.clone()), Input::File(path.to_path_buf())];
        options().open_inputs(inputs).err().expect("an error was due")
    };
    assert!(matches!(with(&directory.path().join("none.csv")), DataError::Missing(_)));
    assert!(matches!(with(directory.path()), DataError::Directory(_)));
    assert!(matches!(with(&empty), DataError::Empty(_)));
    assert!(matches!(options().open_inputs(vec![]), Err(DataError::NoInputs)));
    assert!(matches!(options().open_inputs(vec![Input::Stdin, Input::Stdin]), Err(DataError::StdinTwice)));
}

#[test]
fn empty_and_blank_texts_are_errors() {
    for text in ["", "\n\n", "  \r\n", "\u{feff}", "\u{feff}\n"] {
        assert!(matches!(error(text, options()), DataError::Empty(_)), "{text:?}");
    }
}

#[test]
fn other_formats_are_named() {
    assert_says(&error(b"\xff\xfex\0,\0", options()), &["UTF-16"]);
    assert_says(&error(b"\xfe\xff\0x", options()), &["UTF-16"]);
    assert_says(&error(b"x,y\n1,\0\n", options()), &["looks binary", "NUL"]);
    assert_says(&error(b"PK\x03\x04rest", options()), &["zip archive"]);
    assert_says(&error("\n@relation iris\n@data\n1,2\n", options()), &["ARFF or KEEL"]);
    assert_says(&error("% iris\n@RELATION iris\n@DATA\n1,2\n", options()), &["ARFF"]);
}

#[test]
fn an_unclosed_quote_cannot_fill_the_memory() {
    let head = io::Cursor::new(b"x,y\n1,2\n3,4\n5,6\n\"7,8\n".to_vec());
    let reader = Box::new(head.chain(io::repeat(b'9')));
    let inputs = vec![Input::Reader { name: "endless".into(), reader }];
    let mut stream = options().open_inputs(inputs).unwrap();
    assert_says(&drain(&mut stream, 10).unwrap_err(), &["'endless'", "after row 3", "has "]);
    assert_eq!(stream.rows_read(), 3);
    let endless_line = vec![Input::Reader { name: "line".into(), reader: Box::new(io::repeat(b'9')) }];
    assert!(matches!(options().open_inputs(endless_line), Err(DataError::TooLarge { .. })));
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
    let mut stream = options().open_inputs(vec![Input::Reader { name: "wire".into(), reader }]).unwrap();
    assert_says(&drain(&mut stream, 10).unwrap_err(), &["'wire'", "after row 2", "the wire was cut"]);
}

#[test]
fn a_shuffled_stream_has_the_same_rows_in_another_order() {
    let (text, expected) = long_table(3000);
    let shuffled = |seed, most| {
        let mut stream = open(&text, options().shuffle(500, seed)).unwrap();
        let rows = drain(&mut stream, most).unwrap();
        assert_eq!(stream.rows_read(), 3000);
        rows
    };
    let mut rows = shuffled(1, 7);
    assert!(rows == shuffled(1, 1000) && rows != shuffled(2, 1000) && rows != expected);
    rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert!(rows == expected);
}
