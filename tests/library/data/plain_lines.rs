//! The fast way through plain lines against the csv crate: the same rows bit for bit, or the same error.

use std::io::{self, Cursor, Read};

use gmm_bmm::data::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

/// Gives its bytes in pieces of a few, as a pipe may.
struct Pieces(Cursor<Vec<u8>>, usize);

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

/// All that a reader of a text gets to see.
#[derive(Debug, PartialEq)]
struct Seen {
    columns: Vec<String>,
    /// The rows, also those before an error.
    bits: Vec<u64>,
    error: Option<String>,
    rows: (u64, u64, u64),
    missing: MissingCounts,
    first_skipped: Option<String>,
}

fn see(text: &[u8], piece: usize, options: &ReadOptions, most: usize) -> Result<Seen, String> {
    let reader = Box::new(Pieces(Cursor::new(text.to_vec()), piece));
    let inputs = vec![Input::Reader { name: "text".into(), reader }];
    let mut stream = options.open_inputs(inputs).map_err(|error| error.to_string())?;
    let mut block = Block::new(stream.columns().len());
    let mut bits = Vec::new();
    let error = loop {
        let read = stream.read_block(&mut block, most);
        bits.extend(block.values().iter().map(|value| value.to_bits()));
        match read {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    Ok(Seen {
        columns: stream.columns().names.clone(),
        bits,
        error,
        rows: (stream.rows_read(), stream.rows_skipped(), stream.rows_left_out()),
        missing: stream.missing().clone(),
        first_skipped: stream.first_skipped().map(BadRow::to_string),
    })
}

fn assert_same(text: &[u8], piece: usize, options: &ReadOptions, most: usize) {
    let reference = see(text, piece, &options.clone().csv_crate_only(), most);
    let fast = see(text, piece, options, most);
    let shown = String::from_utf8_lossy(text);
    assert_eq!(fast, reference, "{shown:?} in pieces of {piece}, {options:?}");
}

fn cell() -> impl Strategy<Value = String> {
    let odd = [
        "",
        " ",
        "\t",
        "x",
        "M",
        "NA",
        "nan",
        "-inf",
        "1e999",
        "1e-400",
        "-0",
        "+1",
        ".5",
        "5.",
        ".",
        "-",
        "1e5",
        "1E-3",
        "1e",
        "1e+",
        " 2",
        "2 ",
        "\t3 ",
        "0x1",
        "1_0",
        "\"4\"",
        "\" 5 \"",
        "\"a\nb\"",
        "\"a,b\"",
        "\"",
        "6\"",
        "\"\"",
        "\"7\"8",
        "\u{feff}9",
        "é",
        "\0",
        "\u{b}1",
        "1\u{c}",
        "9007199254740993",
        "0.1e-10",
        "--1",
        "3,14",
        "1e150",
        "1.0000000000000001e150",
        "00000000000000000000000012.5",
        "123456789012345678901234567890",
    ];
    prop_oneof![
        6 => (-1000i32..1000).prop_map(|value| value.to_string()),
        6 => any::<i32>().prop_map(|value| (f64::from(value) * 1.2345678e-7).to_string()),
        2 => any::<f64>().prop_map(|value| value.to_string()),
        2 => any::<f64>().prop_map(|value| format!("{value:e}")),
        2 => "[-+]?[0-9]{0,20}[.]?[0-9]{0,20}([eE][-+]?[0-9]{0,3})?",
        3 => select(odd.to_vec()).prop_map(str::to_string),
    ]
}

/// A table that is regular but for a few lines.
fn table() -> impl Strategy<Value = Vec<u8>> {
    let delimiter = select(vec![",", ";", "\t", "|", " ", "  ", ", "]);
    let line_end = select(vec!["\n", "\r\n", "\r"]);
    let shape = (1usize..5, delimiter, line_end, any::<[bool; 4]>());
    shape.prop_flat_map(|(width, delimiter, line_end, [mark, header, trailing, ended])| {
        let line = prop_oneof![
            30 => vec((-9999i32..9999).prop_map(|value| (f64::from(value) / 64.0).to_string()), width),
            10 => vec(cell(), width),
            2 => vec(cell(), 0..width + 2),
        ];
        vec(line, 0..40).prop_map(move |lines| {
            let mut text = String::from(if mark { "\u{feff}" } else { "" });
            if header {
                let names: Vec<String> = (0..width).map(|i| format!("x{i}")).collect();
                text += &(names.join(delimiter) + line_end);
            }
            for line in &lines {
                text += &line.join(delimiter);
                text += if trailing && !line.is_empty() { delimiter } else { "" };
                text += line_end;
            }
            if !ended {
                text.truncate(text.trim_end_matches(['\r', '\n']).len());
            }
            text.into_bytes()
        })
    })
}

fn reading() -> impl Strategy<Value = ReadOptions> {
    let columns = select(vec![vec![], vec![], vec![], vec!["1"], vec!["2", "1"]]);
    let header = select(vec![None, None, Some(true), Some(false)]);
    let delimiter = select(vec![None, None, None, Some(b','), Some(b' ')]);
    let missing = select(vec![Missing::Refuse, Missing::Skip, Missing::Marginal, Missing::Marginal]);
    let limit = select(vec![None, None, Some(7)]);
    let left_out = select(vec![0, 0, 3]);
    (any::<bool>(), missing, columns, header, delimiter, limit, left_out).prop_map(
        |(skip, missing, columns, has_header, delimiter, limit, left_out)| {
            let bad_rows = if skip { BadRows::Skip } else { BadRows::Refuse };
            let options = options().bad_rows(bad_rows).missing(missing).columns(columns);
            options.has_header(has_header).delimiter(delimiter).limit(limit).skip(left_out)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn tables_are_read_alike(
        text in table(),
        piece in select(vec![1, 2, 5, 17, 64, usize::MAX]),
        options in reading(),
        most in select(vec![1, 3, 1000]),
    ) {
        assert_same(&text, piece, &options, most);
    }

    #[test]
    fn any_bytes_are_read_alike(
        text in vec(select(b"0123456789.-+eE,; \t\"\n\rx\xef\xbb\xbf\xff".to_vec()), 0..400),
        piece in select(vec![1, 3, 50, usize::MAX]),
        options in reading(),
    ) {
        assert_same(&text, piece, &options, 10);
    }
}

#[test]
fn tables_of_many_buffers_with_odd_lines_among_plain_ones_are_read_alike() {
    let mut text = String::from("a,b,c,d,note\n");
    for i in 0..30_000 {
        let x = f64::from(i) / 7.0;
        match i % 1000 {
            137 => text += &format!("\"{x}\",1,3,4,\"two\nlines\"\n"),
            138 => text += "1,2,word,4,\"quoted\"\n",
            499 => text += "\n  \n",
            750 => text += &format!("{x}, {x} ,word,,\n"),
            760 => text += &format!("{x},,NA,{x},note\n"),
            _ => text += &format!("{x},{i},{:e},{},note\n", -x, x.sqrt()),
        }
    }
    for piece in [1000, 65_536, usize::MAX] {
        let gaps = |missing| skipping().missing(missing);
        for options in [
            gaps(Missing::Marginal),
            gaps(Missing::Skip),
            skipping(),
            options(),
            choosing(&["d", "a"], &[]),
            choosing(&["b"], &[]),
        ] {
            assert_same(text.as_bytes(), piece, &options, 4096);
        }
    }
    let marginal = skipping().missing(Missing::Marginal);
    let seen = see(text.as_bytes(), usize::MAX, &marginal, 4096).unwrap();
    assert_eq!(
        (seen.rows, seen.missing.rows, seen.missing.values),
        ((29_910, 60, 0), 29_910, vec![0, 30, 30, 0])
    );
}

#[test]
fn lines_longer_than_the_buffer_are_read_alike() {
    let line = |length: usize| format!("{},2\n", "1".repeat(length));
    let text: String =
        [100, 200_000, 3, 131_071, 131_072, 131_069, 70, 400_000, 5, 1_100_000, 9].map(line).concat();
    for piece in [1000, usize::MAX] {
        assert_same(text.as_bytes(), piece, &skipping(), 100);
    }
}

#[test]
fn a_byte_order_mark_further_down_is_no_part_of_a_number() {
    assert_same("1,2\n\u{feff}3,4\n".as_bytes(), 100, &options(), 100);
    assert_says(&error("1,2\n\u{feff}3,4\n", options()), &["line 2, row 2"]);
}
