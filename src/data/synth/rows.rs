use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::Synth;
use crate::data::{Block, ColumnNames, DataError, RowSource};

/// Rows that share a random stream. The rows drawn depend on this number.
const CHUNK: usize = 1024;

/// Rows of a known mixture, drawn on all threads while they are read.
#[derive(Debug, Clone)]
pub struct SynthRows {
    synth: Synth,
    purpose: Purpose,
    rows: u64,
    /// The fraction of values that are missing.
    missing: f64,
    /// Chunks drawn so far.
    chunks: u64,
    drawn: Vec<f64>,
    /// How many values of `drawn` were read.
    read: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Training,
    Test,
}

impl SynthRows {
    pub(super) fn training(synth: Synth) -> Self {
        let rows = synth.spec().rows;
        SynthRows::new(synth, Purpose::Training, rows)
    }

    pub(super) fn test(synth: Synth, rows: u64) -> Self {
        SynthRows::new(synth, Purpose::Test, rows)
    }

    fn new(synth: Synth, purpose: Purpose, rows: u64) -> Self {
        SynthRows { synth, purpose, rows, missing: 0.0, chunks: 0, drawn: Vec::new(), read: 0 }
    }

    /// Removes values at random: each is NaN with the probability `fraction`, independently of all values. The others stay what
    /// they are.
    pub fn missing(mut self, fraction: f64) -> Self {
        self.missing = fraction;
        self
    }

    /// How many rows there are in all.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Draws the next few chunks, each on a thread.
    fn draw(&mut self) {
        let dim = self.synth.spec().dim;
        let left = self.rows.saturating_sub(self.chunks * CHUNK as u64);
        let most = (CHUNKS_PER_THREAD * rayon::current_num_threads() * CHUNK) as u64;
        let rows = usize::try_from(left.min(most)).expect("a few chunks fit in memory");
        self.read = 0;
        self.drawn.resize(rows * dim, 0.0);
        let (synth, purpose, missing, first) = (&self.synth, self.purpose, self.missing, self.chunks);
        let chunks = self.drawn.par_chunks_mut(CHUNK * dim).enumerate();
        chunks.for_each(|(i, values)| {
            draw_chunk(synth, purpose, first + i as u64, values);
            remove_values(synth, purpose, first + i as u64, missing, values);
        });
        self.chunks += rows.div_ceil(CHUNK) as u64;
    }
}

const CHUNKS_PER_THREAD: usize = 4;

impl RowSource for SynthRows {
    fn columns(&self) -> &ColumnNames {
        self.synth.columns()
    }

    fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        assert!(most > 0, "a block of no rows would look like the end of the source");
        block.clear();
        let dim = self.synth.spec().dim;
        while block.rows() < most {
            if self.read == self.drawn.len() {
                self.draw();
                if self.drawn.is_empty() {
                    break;
                }
            }
            let take = (self.drawn.len() - self.read).min((most - block.rows()) * dim);
            let rows = &self.drawn[self.read..self.read + take];
            rows.chunks_exact(dim).for_each(|row| block.push(row));
            self.read += take;
        }
        Ok(!block.is_empty())
    }
}

/// Draws the rows of one chunk: `x = μ_j − (1−t)·travel_j + √c L_j z`, `t` from 0 at the first row to 1 at the last.
fn draw_chunk(synth: &Synth, purpose: Purpose, chunk: u64, values: &mut [f64]) {
    let spec = synth.spec();
    let (truth, plan) = (synth.truth(), &synth.0);
    let mut rng = ChaCha8Rng::seed_from_u64(spec.seed);
    // Stream 0 has drawn the parameters.
    rng.set_stream(match purpose {
        Purpose::Training => 2 * chunk + 1,
        Purpose::Test => 2 * chunk + 2,
    });
    let moving = purpose == Purpose::Training && !plan.travel.is_empty();
    let mut z = vec![0.0; spec.dim];
    for (i, row) in values.chunks_exact_mut(spec.dim).enumerate() {
        let u = rng.random::<f64>();
        let component = plan.cumulative.partition_point(|&sum| sum <= u).min(truth.k() - 1);
        z.iter_mut().for_each(|value| *value = StandardNormal.sample(&mut rng));
        let gaussian = &truth.components()[component];
        gaussian.covariance().multiply_lower(&z, row);
        row.iter_mut().zip(gaussian.mean()).for_each(|(value, mean)| *value += mean);
        if moving {
            let position = chunk * CHUNK as u64 + i as u64;
            let left = 1.0 - position as f64 / (spec.rows - 1).max(1) as f64;
            let travel = &plan.travel[component / synth.layers()];
            row.iter_mut().zip(travel).for_each(|(value, step)| *value -= left * step);
        }
    }
}

/// Replaces a fraction of the values of one chunk by NaN.
fn remove_values(synth: &Synth, purpose: Purpose, chunk: u64, fraction: f64, values: &mut [f64]) {
    if fraction == 0.0 {
        return;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(synth.spec().seed);
    // The last streams; the first have drawn the rows.
    rng.set_stream(match purpose {
        Purpose::Training => u64::MAX - 2 * chunk,
        Purpose::Test => u64::MAX - 2 * chunk - 1,
    });
    values.iter_mut().filter(|_| rng.random::<f64>() < fraction).for_each(|value| *value = f64::NAN);
}
