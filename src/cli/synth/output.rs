//! Rows written as CSV to a file or standard output, plain or compressed.

use std::io::Write;
use std::sync::atomic::Ordering;

use indicatif::ProgressBar;
use rayon::prelude::*;

use crate::cli::Interrupted;
use crate::cli::files::Output;
use crate::cli::pass::watch_for_interrupt;
use crate::data::synth::SynthRows;
use crate::data::{Block, RowSource};

/// Numbers in a block: 8 MiB, whatever the number of columns.
const BLOCK_VALUES: usize = 1 << 20;

/// Draws all rows, passes each block to `see`, and writes it to `sink` if there is one.
pub(super) fn write_rows(
    mut rows: SynthRows,
    mut sink: Option<&mut Output>,
    bar: &ProgressBar,
    mut see: impl FnMut(&Block),
) -> anyhow::Result<()> {
    let interrupted = watch_for_interrupt();
    let dim = rows.columns().len();
    if let Some(sink) = &mut sink {
        sink.write_all(format!("{}\n", rows.columns().names.join(",")).as_bytes())?;
    }
    let mut block = Block::new(dim);
    let mut texts: Vec<Vec<u8>> = Vec::new();
    while rows.read_block(&mut block, (BLOCK_VALUES / dim).max(1))? {
        see(&block);
        if let Some(sink) = &mut sink {
            format_rows(&block, &mut texts);
            texts.iter().try_for_each(|text| sink.write_all(text))?;
        }
        bar.inc(block.rows() as u64);
        if interrupted.load(Ordering::Relaxed) {
            return Err(Interrupted(": the set being drawn was not written".into()).into());
        }
    }
    Ok(())
}

/// Formats rows as CSV in consecutive pieces. Each number has the fewest digits that give it back exactly. A missing value is
/// an empty cell, or `NA` in a single column.
fn format_rows(block: &Block, texts: &mut Vec<Vec<u8>>) {
    let dim = block.columns();
    let piece = 1024 * dim;
    let missing = if dim == 1 { "NA," } else { "," };
    texts.resize_with(block.values().len().div_ceil(piece), Vec::new);
    block.values().par_chunks(piece).zip(texts).for_each(|(values, text)| {
        text.clear();
        for row in values.chunks_exact(dim) {
            for value in row {
                match value.is_nan() {
                    true => text.extend_from_slice(missing.as_bytes()),
                    false => write!(text, "{value},").expect("writing to memory does not fail"),
                }
            }
            text.pop();
            text.push(b'\n');
        }
    });
}
