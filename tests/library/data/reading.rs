//! Reading delimited text, as a user of the library sees it.

use gmm_bmm::Remedy;
use gmm_bmm::data::*;

use super::*;

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
    assert_eq!(stream.columns().names, ["c2", "c3"]);
    assert!(!stream.columns().named);
    assert!(open("x,y\n1,2\n", options()).unwrap().columns().named);
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
    let forced = |byte: u8| options().delimiter(byte);
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
    for cell in ["inf", "-Infinity", "1e999", "1_0", "0x1", "one"] {
        let error = error(format!("x,y\n1,2\n1,{cell}\n"), options());
        assert!(matches!(error, DataError::BadRow(_)), "{cell}: {error}");
    }
    for cell in ["nan", "NaN", "NA", "?", "null", ""] {
        let error = error(format!("x,y\n1,2\n1,{cell}\n"), options());
        assert!(matches!(error, DataError::MissingValue(_)), "{cell}: {error}");
    }
}

// ---- header

#[test]
fn a_header_can_be_forced_either_way() {
    let forced = |header: bool| options().has_header(header);
    assert_eq!(read("1,2\n3,4\n", forced(true)), (vec!["1".into(), "2".into()], vec![vec![3.0, 4.0]]));
    assert_says(&error("x,y\n1,2\n", forced(false)), &["line 1, row 1", "'x'", "'c1'"]);
}

#[test]
fn a_bad_cell_in_the_first_row_does_not_make_it_a_header() {
    assert_says(&error("5.1,3x,2\n4.9,3,1\n", options()), &["row 1", "'3x'"]);
    assert_says(
        &error("NA,1\n4.9,3\n", options()),
        &["row 1", "column 'c1' is missing", "in the first row: 1 in 'c1'"],
    );
}

#[test]
fn a_header_that_could_be_data_gets_a_notice() {
    let mut stream = open("id,1990,1991\n1,2,3\n", options()).unwrap();
    assert_eq!(stream.columns().names, ["id", "1990", "1991"]);
    let notice = Notice::HeaderWithNumbers("part1.csv".into());
    assert_eq!(notice.remedies(), [Remedy::ReadFirstLineAsData]);
    assert_eq!(stream.take_notices(), [notice]);
}

#[test]
fn a_header_alone_is_an_error() {
    assert_says(&error("x,y\n\n", options()), &["part1.csv", "only a header, no rows"]);
}

#[test]
fn a_header_of_another_width_than_the_rows_is_an_error() {
    assert_says(&error("x,y\n1,2,3\n4,5,6\n", options()), &["2 fields", "3"]);
    let titled = error("My table\nx,y\n1,2\n3,4\n", options());
    assert_eq!(titled.remedies(), [Remedy::CorrectHeader]);
}

#[test]
fn columns_without_a_name_are_called_by_position() {
    assert_eq!(read(",x,\n1,2,3\n", options()).0, ["c1", "x", "c3"]);
}

#[test]
fn equal_names_matter_only_when_chosen_by_name() {
    assert_eq!(read("x,y,x\n1,2,3\n", options()).0, ["x", "y", "x.2"]);
    assert_says(&error("x,y,x\n1,2,3\n", choosing(&["x"], &[])), &["columns 1, 3", "are all called 'x'"]);
    assert_eq!(read("x,y,x\n1,2,3\n", choosing(&["3"], &[])).1, [[3.0]]);
}

// ---- columns

#[test]
fn columns_of_words_and_empty_columns_are_left_out_with_a_notice() {
    let mut stream = open("Sex,x,City,gap\nM,1,Ulm,\nF,2,Bonn,NA\n", options()).unwrap();
    assert_eq!(stream.columns().names, ["x"]);
    assert_eq!(
        notices(&mut stream),
        [
            "columns 'Sex' and 'City' left out: they hold words, not numbers",
            "column 'gap' left out: it is empty in the first rows"
        ]
    );
    assert!(open("Sex,x\nM,1\n", choosing(&[], &["Sex"])).unwrap().take_notices().is_empty());
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
    let dropped = error("x,y\n1,2\n", choosing(&[], &["1-2"]));
    assert_says(&dropped, &["no columns are left"]);
    assert_eq!(dropped.remedies(), [Remedy::DropFewerColumns]);
    let words = error("x,y\na,b\n", options());
    assert_says(&words, &["no column holds numbers"]);
    assert_eq!(words.remedies(), [Remedy::SetDelimiter, Remedy::ChooseColumns]);
}

#[test]
fn a_column_of_words_that_is_asked_for_fails_at_its_first_cell() {
    assert_says(&error("Sex,x\nM,1\n", choosing(&["Sex"], &[])), &["row 1", "'M'", "column 'Sex'"]);
}

// ---- bad rows

#[test]
fn a_bad_cell_is_reported_with_its_place_and_a_remedy() {
    let error = error("id,Height\r\n1,1.5\r\n\r\n2,tall\r\n", options());
    assert_says(&error, &["'part1.csv'", "line 4", "row 2", "column 'Height'", "'tall'"]);
    let drop = Remedy::DropColumns(vec!["Height".into()]);
    assert_eq!(error.remedies(), [Remedy::CorrectData, drop, Remedy::BadCellsAsMissing, Remedy::SkipBadRows]);
    let DataError::BadRow(bad) = error else { panic!("{error}") };
    assert_eq!((bad.line, bad.row), (Some(4), 2));
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
    assert_says(
        &error("x,y\n1,2\n\"3,4\n5,6\n", options()),
        &["line 3: a quoted cell starting here is not closed", "2 lines"],
    );
    // The bad cell is not the quoted one, but to skip the record may be to skip several rows.
    let text = "name,x\na,1\n\"b\nb\",bad\nc,3\nd,4\n";
    assert_says(&error(text, options()), &["line 3, row 2", "'bad'"]);
    assert_says(&error(text, skipping()), &["line 3: a quoted cell starting here spans 2 lines"]);
}

#[test]
fn a_ragged_row_is_refused_or_skipped() {
    assert_says(&error("x,y\n1,2\n3\n4,5\n", options()), &["line 3, row 2", "1 field instead of 2"]);
    assert_eq!(read("x,y\n1,2\n3\n4,5,6\n7,8\n", skipping()).1, [[1.0, 2.0], [7.0, 8.0]]);
}

#[test]
fn skipped_rows_are_counted_and_the_first_is_kept_as_an_example() {
    let mut stream = open("x,y\n1,2\nword,3\ninf,4\n5,1e999\n6,7\n", skipping()).unwrap();
    assert_eq!(drain(&mut stream, 2).unwrap(), [[1.0, 2.0], [6.0, 7.0]]);
    assert_eq!((stream.rows_read(), stream.rows_skipped()), (2, 3));
    let first = stream.first_skipped().map(BadRow::to_string);
    assert_eq!(first.as_deref(), Some("'part1.csv', line 3, row 2: 'word' in column 'x' is not a number"));
}

#[test]
fn a_bad_cell_in_a_column_that_is_not_read_does_no_harm() {
    assert_eq!(read("x,y\n1,2\n3,?\n", choosing(&["x"], &[])).1, [[1.0], [3.0]]);
}

#[test]
fn json_and_numbers_with_signs_are_called_by_their_name() {
    for text in ["[{\"x\": 1}]\n", "{\"x\": [1, 2]}\n", "[\n [1, 2],\n [3, 4]]\n"] {
        assert_says(&error(text, options()), &["part1.csv", "looks like JSON"]);
    }
    assert_eq!(read("[x],{y}\n1,2\n", options()).1, [[1.0, 2.0]]);
    let signed = error("a,b\n1%,$3\n2%,$4\n", options());
    assert_says(&signed, &["no column holds numbers", "columns 'a' and 'b' left out", "such as % or $"]);
    for cells in [["12%", "7.5 %"], ["$12", "\"$1,200.50\""], ["3 €", "4 €"]] {
        let text = format!("x,share\n1,{}\n2,{}\n", cells[0], cells[1]);
        let mut stream = open(&text, options()).unwrap();
        let said = notices(&mut stream).join("\n");
        assert!(said.contains("'share' left out: it holds numbers with a sign such as % or $"), "{said}");
    }
}

#[test]
fn the_limit_counts_good_rows() {
    let limited = skipping().limit(2);
    let mut stream = limited.open_inputs(inputs(&["x\n1\nbad\n", "x\n2\n3\n"])).unwrap();
    assert_eq!(drain(&mut stream, 100).unwrap(), [[1.0], [2.0]]);
    let limited = options().limit(2);
    assert_eq!(read("x\n1\n2\nbad\n", limited).1.len(), 2);
}

#[test]
fn decimal_commas_are_recognised() {
    for text in ["3,14;2,71\n1,5;2,5\n", "x;y\n1;2,71\n2;2,5\n", "3,14 2,71\n3,1 2,7\n", "x,y\n\"3,14\",1\n"]
    {
        assert_says(&error(text, options()), &["part1.csv", "decimal comma", "a point is needed"]);
    }
    assert_eq!(read("x;y\n1;2,71\n2;2,5\n", choosing(&["x"], &[])).1, [[1.0], [2.0]]);
    // With points between the digits, which have to go first.
    let pointed = "x;y\n2.015,27;1,449\n3.001,5;2,25\n";
    assert_says(&error(pointed, options()), &["'2.015,27'", "decimal comma", "a point is needed"]);
}

#[test]
fn thousands_separators_and_dates_are_called_by_their_name() {
    let grouped = "x,pay\n1,\"1,234\"\n2,\"12,345,678.5\"\n";
    let grouped = error(grouped, options());
    assert_says(&grouped, &["'pay'", "'1,234'", "thousands separators"]);
    assert!(grouped.remedies().contains(&Remedy::DropColumns(vec!["pay".into()])));
    let stray = "x,pay\n1,10.5\n2,\"1,234.5\"\n3,11.5\n";
    assert_says(&error(stray, options()), &["row 2", "'1,234.5'", "thousands separators"]);
    let mut stream = open("day,x,name\n2024-01-31,1,a\n2024-02-01,2,b\n", options()).unwrap();
    assert_eq!(stream.columns().names, ["x"]);
    let notices = notices(&mut stream);
    assert!(notices[0].contains("'name' left out: it holds words"), "{notices:?}");
    assert!(notices[1].contains("'day' left out: it holds dates or times"), "{notices:?}");
}

#[test]
fn a_model_file_is_no_data() {
    let text = "{\n \"format\": \"gmm-bmm model\",\n \"version\": 2\n}\n";
    let model = error(text, options());
    assert_says(&model, &["part1.csv", "model file"]);
    assert_eq!(model.remedies(), [Remedy::UseAsModel]);
}
