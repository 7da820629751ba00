//! Speed of reading CSV by the csv crate alone and with the fast path for plain lines:
//! `cargo bench --bench reading`, or `cargo bench --bench reading -- FILE...` for files of your own.
//!
//! The text is in memory, its numbers are written to the last digit, and the figures are the best of seven runs.

use std::fmt::Write;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Instant;

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::data::{Block, Input, ReadOptions, RowSource};

const TEXT_BYTES: usize = 32 << 20;
const RUNS: usize = 7;

/// Bytes that inputs share.
#[derive(Clone)]
struct Text(Arc<[u8]>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn main() {
    println!("{:>3} {:>9}   {:^24}   {:^24}", "", "", "csv crate", "fast path");
    let unit = format!("{:>9} {:>14}", "MB/s", "rows/s");
    println!("{:>3} {:>9}   {unit}   {unit}   ratio", "d", "rows");
    // Cargo itself adds '--bench'.
    let files: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if files.is_empty() {
        [3, 10, 50, 91].into_iter().for_each(|dim| measure(&generate(dim)));
    }
    for file in &files {
        measure(&Text(std::fs::read(file).expect("the file can be read").into()));
    }
}

fn measure(text: &Text) {
    let mut best = [f64::INFINITY; 2];
    let (mut dim, mut rows) = (0, 0);
    for _ in 0..RUNS {
        for (way, best) in best.iter_mut().enumerate() {
            let begun = Instant::now();
            (dim, rows) = read(text, way == 0);
            *best = best.min(begun.elapsed().as_secs_f64());
        }
    }
    let [reference, fast] = best;
    let speed = |seconds: f64| {
        let megabytes = text.0.len() as f64 / 1e6;
        format!("{:>9.0} {:>14.0}", megabytes / seconds, rows as f64 / seconds)
    };
    let speeds = best.map(speed).join("   ");
    println!("{dim:>3} {rows:>9}   {speeds}   {:.2}", reference / fast);
}

/// A table of `dim` columns drawn from a mixture.
fn generate(dim: usize) -> Text {
    let synth = Synth::new(SynthSpec { k: 5, dim, rows: u64::MAX / 2, ..SynthSpec::default() });
    let mut source = synth.expect("the spec is in range").training();
    let mut text = (1..=dim).map(|i| format!("x{i}")).collect::<Vec<_>>().join(",") + "\n";
    let mut block = Block::new(dim);
    while text.len() < TEXT_BYTES {
        source.read_block(&mut block, 1024).expect("a drawn source cannot fail");
        for row in block.iter() {
            for (i, number) in row.iter().enumerate() {
                let end = if i + 1 == dim { '\n' } else { ',' };
                write!(text, "{number}{end}").expect("a string takes all");
            }
        }
    }
    Text(text.into_bytes().into())
}

/// Reads it all: how many columns and rows.
fn read(text: &Text, csv_crate_only: bool) -> (usize, u64) {
    let reader = Box::new(Cursor::new(text.clone()));
    let input = Input::Reader { name: "text".into(), reader };
    let mut options = ReadOptions::default();
    if csv_crate_only {
        options = options.csv_crate_only();
    }
    let mut rows = options.open_inputs(vec![input]).expect("the text is a table");
    let mut block = Block::new(rows.columns().len());
    while rows.read_block(&mut block, 4096).expect("every row can be read") {}
    (rows.columns().len(), rows.rows_read())
}
