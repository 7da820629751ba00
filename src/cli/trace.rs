//! The learning curve of a pass, as CSV.

use std::io::Write;
use std::time::Instant;

use crate::data::Block;
use crate::learn::FitState;
use crate::model::OutputFile;

pub(super) struct Trace {
    file: OutputFile,
    test: Option<Block>,
    begun: Instant,
    last_rows: u64,
}

impl Trace {
    pub fn new(mut file: OutputFile, test: Option<Block>) -> anyhow::Result<Self> {
        writeln!(file, "rows,k,seconds,prequential_log_likelihood,test_log_likelihood")?;
        Ok(Trace { file, test, begun: Instant::now(), last_rows: 0 })
    }

    /// Adds a point for each K. Cells that have no value yet stay empty.
    pub fn add(&mut self, state: &FitState) -> anyhow::Result<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        for candidate in &state.candidates {
            let prequential = candidate.prequential.mean();
            let test = self.test.as_ref().map(|rows| candidate.mixture().score(rows.view()));
            let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let k = candidate.learned.k();
            writeln!(self.file, "{},{k},{seconds:.3},{},{}", state.rows, cell(prequential), cell(test))?;
        }
        self.last_rows = state.rows;
        Ok(())
    }

    /// Adds the last point and puts the file in its place.
    pub fn finish(mut self, state: &FitState) -> anyhow::Result<()> {
        if state.rows > self.last_rows {
            self.add(state)?;
        }
        Ok(self.file.commit()?)
    }
}
