//! Rows that are written again with their gaps filled.

use gmm_bmm::data::{Block, Missing};

use super::{inputs, options};

/// A text with its gaps filled with 7, 8 and so on.
fn filled(text: &str, columns: &[&str]) -> String {
    let options = options().missing(Missing::Marginal).columns(columns.iter().copied()).keep_text();
    let mut rows = options.open_inputs(inputs(&[text])).unwrap();
    let mut out = rows.header_text().map_or(Vec::new(), |header| [header, b"\n"].concat());
    let mut block = Block::new(rows.columns().len());
    let values: Vec<f64> = (0..block.columns()).map(|i| i as f64 + 7.0).collect();
    while rows.read_block(&mut block, 2).unwrap() {
        assert_eq!(rows.texts().rows(), block.rows());
        for (i, row) in block.iter().enumerate() {
            rows.texts().write_filled(i, row, &values, &mut out);
            out.push(b'\n');
        }
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn only_missing_cells_of_the_chosen_columns_change() {
    let text =
        "name, x ,\"y\",note\nA, 1.50 ,NA,\n\"b \"\"c\"\", d\",,\"2\",\"two\nlines\"\n,,,\n\"\",1e0,+2,NA\n";
    let expected = "name, x ,\"y\",note\nA, 1.50 ,8,\n\"b \"\"c\"\", d\",7,\"2\",\"two\nlines\"\n,7,8,\n\"\",1e0,+2,NA\n";
    assert_eq!(filled(text, &["x", "y"]), expected);
    assert_eq!(filled(text, &["y", "x"]).lines().nth(1), Some("A, 1.50 ,7,"));
}

#[test]
fn other_delimiters_line_ends_and_blank_lines_are_read() {
    assert_eq!(filled("1;2\r\n\r\n;3\r\n4;", &[]), "1;2\n7;3\n4;8\n");
    assert_eq!(filled("x  y\n1  NA\n\n  NA 2 \n", &[]), "x y\n1 8\n7 2\n");
    assert_eq!(filled("x\n1\n\n  \nNA\n2\n", &[]), "x\n1\n7\n2\n");
    assert_eq!(filled("\u{feff}x\ty\n\t1\n\t\n2\t3\n", &[]), "x\ty\n7\t1\n7\t8\n2\t3\n");
}
