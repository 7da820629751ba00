//! Reading text through the library.

mod dequantize;
mod inputs;
mod match_columns;
mod missing;
mod plain_lines;
mod reading;
mod row_reader;
mod row_texts;
mod shards;
mod synth;
mod untidy;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use gmm_bmm::data::{BadRows, Block, DataError, Input, Notice, ReadOptions, RowReader, RowSource};

pub type Values = Vec<Vec<f64>>;

pub fn options() -> ReadOptions {
    ReadOptions::default()
}

pub fn choosing(columns: &[&str], drop: &[&str]) -> ReadOptions {
    options().columns(columns.iter().copied()).drop(drop.iter().copied())
}

pub fn skipping() -> ReadOptions {
    options().bad_rows(BadRows::Skip)
}

pub fn inputs<T: AsRef<[u8]>>(texts: &[T]) -> Vec<Input> {
    let input = |(i, text): (usize, &T)| Input::from_bytes(format!("part{}.csv", i + 1), text.as_ref());
    texts.iter().enumerate().map(input).collect()
}

pub fn open(text: impl AsRef<[u8]>, options: ReadOptions) -> Result<RowReader, DataError> {
    options.open_inputs(inputs(&[text]))
}

pub fn drain(source: &mut dyn RowSource, most: usize) -> Result<Values, DataError> {
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
pub fn read(text: impl AsRef<[u8]>, options: ReadOptions) -> (Vec<String>, Values) {
    let mut stream = open(text, options).unwrap();
    let rows = drain(&mut stream, 100).unwrap();
    (stream.columns().names.clone(), rows)
}

/// The error or the notices about a text.
pub fn notices(rows: &mut RowReader) -> Vec<String> {
    rows.take_notices().iter().map(Notice::to_string).collect()
}

pub fn rows(text: impl AsRef<[u8]>) -> Values {
    read(text, options()).1
}

/// The error of a text, at opening or reading.
pub fn error(text: impl AsRef<[u8]>, options: ReadOptions) -> DataError {
    errors(&[text], options)
}

pub fn errors<T: AsRef<[u8]>>(texts: &[T], options: ReadOptions) -> DataError {
    match options.open_inputs(inputs(texts)) {
        Ok(mut stream) => drain(&mut stream, 100).expect_err("an error was due"),
        Err(error) => error,
    }
}

pub fn assert_says(error: &DataError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "'{part}' is not in: {text}");
    }
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn write(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    path
}

/// Numbers that no two rows share, as text and as rows.
pub fn long_table(count: usize) -> (String, Values) {
    let rows: Values = (0..count).map(|i| vec![i as f64, i as f64 / 7.0, -1e-3 * i as f64]).collect();
    let lines: Vec<String> = rows.iter().map(|row| format!("{},{},{:e}\n", row[0], row[1], row[2])).collect();
    (format!("a,b,c\n{}", lines.concat()), rows)
}
