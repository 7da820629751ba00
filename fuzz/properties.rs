//! Properties of all readers, for any bytes: no panic, no hang, bounded memory, and an error that names the place.
//!
//! The fuzz targets call these functions with inputs of a fuzzer; `tests/fuzz.rs` calls them with the saved corpus and a
//! bounded number of changes to it.

use std::io::{self, Read, Write};

use gmm_bmm::Model;
use gmm_bmm::data::{BadRows, Block, Catalogue, DataError, Input, Missing, ReadOptions};

/// The name of the text in messages.
const NAME: &str = "fuzzed.csv";
/// The most rows that are read.
const MAX_ROWS: u64 = 20_000;

/// Any text, read as delimited text. The first two bytes choose the options.
pub fn csv(bytes: &[u8]) {
    let (options, text) = csv_options(bytes);
    let whole = read_csv(text, usize::MAX, 1000, &options);
    // The result does not depend on the pieces in which bytes arrive, or on the size of the blocks.
    let piecewise = read_csv(text, 1 + text.len() % 7, 3, &options);
    if text.starts_with(b"\x1f\x8b") && whole.2.is_some() {
        // How much a decoder returns before it finds the damage depends on its buffers.
        assert!(piecewise.2.is_some(), "damage is met in pieces too");
    } else {
        assert_eq!(whole, piecewise, "pieces and blocks must not matter");
    }
    let (columns, rows, ending) = whole;
    // Missing values are one NaN.
    let is_value = |bits: &u64| *bits == f64::NAN.to_bits() || f64::from_bits(*bits).abs() <= 1e150;
    assert!(rows.iter().flatten().all(is_value), "only numbers in range are rows");
    if let Some(error) = ending {
        assert!(!error.is_empty() && !error.contains('\0'), "an error is words: {error:?}");
        let names_option =
            ["--columns", "--drop", "delimiter", "column"].iter().any(|word| error.contains(word));
        assert!(error.contains(NAME) || names_option, "an error says where: {error}");
    } else if !rows.is_empty() {
        rows_survive_being_written(&columns, &rows);
    }
}

/// Any bytes, read as an array or a table of columns: from a pipe in pieces of two sizes, and from a file.
pub fn tables(bytes: &[u8]) {
    let options = ReadOptions::default().missing(Missing::Marginal).bad_rows(BadRows::Skip).limit(MAX_ROWS);
    let whole = read_csv(bytes, usize::MAX, 1000, &options);
    let piecewise = read_csv(bytes, 1 + bytes.len() % 7, 3, &options);
    if !bytes.starts_with(b"\x1f\x8b") {
        assert_eq!(whole, piecewise, "pieces and blocks must not matter");
    }
    let mut file = tempfile::Builder::new().prefix(NAME).tempfile().expect("there is room for a file");
    file.write_all(bytes).expect("there is room for a file");
    let input = || Input::File(file.path().to_path_buf());
    let of_file = read_input(input(), 1000, &options);
    assert_eq!(of_file, read_input(input(), 3, &options), "the size of blocks must not matter");
    for (_, rows, ending) in [&whole, &of_file] {
        let is_value = |bits: &u64| *bits == f64::NAN.to_bits() || f64::from_bits(*bits).abs() <= 1e150;
        assert!(rows.iter().flatten().all(is_value), "only numbers in range are rows");
        assert!(ending.as_ref().is_none_or(|error| error.contains(NAME)), "an error says where: {ending:?}");
    }
}

/// Rows as the bits of their numbers.
type Outcome = (Vec<String>, Vec<Vec<u64>>, Option<String>);

fn csv_options(bytes: &[u8]) -> (ReadOptions, &[u8]) {
    let (&[first, second], text) = bytes.split_first_chunk().unwrap_or((&[0, 0], bytes));
    let bit = |place: u8| first >> place & 1 == 1;
    let missing = match (bit(7), second % 2) {
        (false, _) => Missing::Refuse,
        (true, 0) => Missing::Marginal,
        (true, _) => Missing::Skip,
    };
    let options = ReadOptions::default()
        .missing(missing)
        .delimiter(bit(0).then_some(second))
        .has_header(bit(1).then_some(bit(2)))
        .columns(if bit(3) { &["2", "1"][..] } else { &[] }.iter().copied())
        .drop(bit(4).then_some("1"))
        .bad_rows(if bit(5) { BadRows::Skip } else { BadRows::Refuse })
        .limit(if bit(6) { 3 } else { MAX_ROWS });
    (options, text)
}

/// The columns, the rows, and the error that reading ended with.
fn read_csv(text: &[u8], piece: usize, block_rows: usize, options: &ReadOptions) -> Outcome {
    let reader = Box::new(Pieces { bytes: text.to_vec(), at: 0, piece });
    read_input(Input::Reader { name: NAME.into(), reader }, block_rows, options)
}

fn read_input(input: Input, block_rows: usize, options: &ReadOptions) -> Outcome {
    let mut stream = match options.open_inputs(vec![input]) {
        Ok(stream) => stream,
        Err(error) => return (Vec::new(), Vec::new(), Some(words(&error))),
    };
    let columns = stream.columns().names.clone();
    let mut block = Block::new(columns.len());
    let mut rows: Vec<Vec<u64>> = Vec::new();
    let ending = loop {
        let read = stream.read_block(&mut block, block_rows);
        rows.extend(block.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()));
        match read {
            Ok(true) => {}
            Ok(false) => break None,
            Err(error) => break Some(words(&error)),
        }
    };
    assert_eq!(stream.rows_read(), rows.len() as u64);
    assert_eq!(stream.rows_skipped() > 0, stream.first_skipped().is_some());
    (columns, rows, ending)
}

/// An error with its causes.
fn words(error: &DataError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn rows_survive_being_written(columns: &[String], rows: &[Vec<u64>]) {
    let numbers: Vec<String> = (1..=columns.len()).map(|i| format!("column{i}")).collect();
    let mut text = numbers.join(",") + "\n";
    for row in rows {
        let cells: Vec<String> = row.iter().map(|bits| f64::from_bits(*bits).to_string()).collect();
        text += &(cells.join(",") + "\n");
    }
    let options = ReadOptions::default().delimiter(b',').has_header(true);
    let options = options.missing(Missing::Marginal).columns(numbers);
    let (_, again, ending) = read_csv(text.as_bytes(), usize::MAX, 1000, &options);
    assert_eq!((again.as_slice(), ending), (rows, None), "rows survive being written");
}

/// Returns its bytes in small pieces, as a pipe may.
struct Pieces {
    bytes: Vec<u8>,
    at: usize,
    piece: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.piece).min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Any text, read as a model file, with and without its checksum, which a fuzzer cannot guess.
pub fn model(bytes: &[u8]) {
    for text in [bytes, &without_checksum(bytes)] {
        match Model::read(text) {
            Ok(model) => can_be_used(&model),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// A model file without its checksum, as for an edited file.
pub fn without_checksum(bytes: &[u8]) -> Vec<u8> {
    const NAME: &[u8] = b"\"checksum\"";
    let Some(name) = bytes.windows(NAME.len()).rposition(|window| window == NAME) else {
        return bytes.to_vec();
    };
    let before = bytes[..name].trim_ascii_end();
    [before.strip_suffix(b",").unwrap_or(before), b"\n}\n"].concat()
}

/// An accepted model can be written, scored with and resumed.
fn can_be_used(model: &Model) {
    let mut text = Vec::new();
    model.write(&mut text).expect("a model that was read can be written");
    assert_eq!(&Model::read(text.as_slice()).expect("a model that was written can be read"), model);
    let dim = model.summaries().len();
    for value in [0.0, -3.25, 1e6, 1e150] {
        let row = vec![value; dim];
        assert!(!model.estimate().log_density(&row).is_nan(), "a density is a number, or zero");
        assert!(model.predictive().is_none_or(|predictive| !predictive.log_density(&row).is_nan()));
    }
    let Ok(mut fit) = model.clone().resume() else { return };
    let rows = ndarray::Array2::from_shape_fn((4, dim), |(i, j)| (i * 7 + j * 3) as f64 * 0.5 - 2.0);
    if fit.observe(rows.view()).is_err() {
        return;
    }
    if let Ok(model) = fit.to_model() {
        // Writing may fail if a number is out of range, but must not panic.
        let _ = model.write(io::sink());
    }
}

/// Any text, read as the records of a comparison, and a report made of what was accepted.
pub fn records(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let path = folder.path().join(gmm_bmm::internals::experiment::RECORDS_FILE);
    std::fs::File::create(path).and_then(|mut file| file.write_all(bytes)).expect("there is room for a file");
    match gmm_bmm::internals::experiment::read_records(folder.path()) {
        Ok(records) => {
            let index = records.into_iter().collect();
            let options = gmm_bmm::internals::report::ReportOptions {
                select: gmm_bmm::internals::report::SelectRule::Validation,
                pairs: gmm_bmm::internals::report::Pairs::Rows,
                units: None,
                reference: None,
                hide_k: false,
                pictures: true,
            };
            if let Ok(summary) = gmm_bmm::internals::report::Summary::new(&index, &options) {
                assert!(!summary.terminal(false).is_empty());
            }
        }
        Err(error) => assert!(error.to_string().contains("line "), "an error says where: {error}"),
    }
}

/// Any text, read as a catalogue of data sets.
pub fn catalogue(bytes: &[u8]) {
    if let Ok(catalogue) = serde_json::from_slice::<Catalogue>(bytes) {
        for set in catalogue.sets() {
            assert!(catalogue.find(&set.name).is_some());
            let _ = (set.file_rows(), set.width(), set.availability(), set.path_in("datasets".as_ref()));
        }
    }
}

/// Any words, one to a line, read as a command line.
pub fn options(bytes: &[u8]) {
    let words: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_string).collect();
    gmm_bmm::cli::parses(words);
}
