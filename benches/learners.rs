//! Passes of each learner over rows in memory, on one thread: `cargo bench --bench learners [-- 0.1]` (the number scales the
//! data sets).
//!
//! Prints nanoseconds per row and component without the start, and the ratio to the fused kernel alone with the same number of
//! columns and components in the same run. Other load on the machine only adds time, so the time of each 4096 rows is the
//! best of several runs, and these times are summed.

use std::hint::black_box;
use std::time::Instant;

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::data::{Block, RowSource};
use gmm_bmm::internals::learn::default_start_rows;
use gmm_bmm::internals::linalg::fused_kernel;
use gmm_bmm::settings::{Algorithm, ObmmSettings, OdmmSettings, OemSettings};
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::Axis;

/// Rows, columns, components.
const SETS: [(usize, usize, usize); 4] =
    [(170_000, 3, 2), (170_000, 10, 6), (130_064, 50, 5), (515_345, 91, 5)];

fn main() {
    let scale: f64 = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1.0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    pool.install(|| run(scale));
}

fn run(scale: f64) {
    let learners = [
        ("obmm", Algorithm::Obmm(ObmmSettings::default())),
        ("oem", Algorithm::Oem(OemSettings::default())),
        ("odmm, 1 shard", Algorithm::Odmm(OdmmSettings { shards: 1, ..OdmmSettings::default() })),
    ];
    println!(
        "{:>7} {:>3} {:>2}  {:<14} {:>9} {:>9} {:>9} {:>9}",
        "rows", "d", "K", "learner", "pass ns", "kernel ns", "ratio", "start s"
    );
    for (rows, dim, k) in SETS {
        let rows = ((rows as f64 * scale) as usize).max(2 * default_start_rows(k, dim));
        let spec = SynthSpec { k, dim, rows: rows as u64, ..SynthSpec::default() };
        let synth = Synth::new(spec).expect("the spec is in range");
        let mut block = Block::new(dim);
        synth.training().read_block(&mut block, rows).expect("a drawn source cannot fail");
        for (name, algorithm) in learners {
            let (mut portions, mut start, mut kernel) = (Vec::new(), f64::INFINITY, f64::INFINITY);
            for _ in 0..if dim > 50 { 3 } else { 6 } {
                let (run_start, run_portions) = time(&block, algorithm, k);
                start = start.min(run_start);
                portions.resize(run_portions.len(), f64::INFINITY);
                portions.iter_mut().zip(run_portions).for_each(|(best, time)| *best = time.min(*best));
                kernel = (0..10).map(|_| kernel_time(dim, k)).fold(kernel, f64::min);
            }
            let learned = rows - default_start_rows(k, dim);
            let pass = portions.iter().sum::<f64>() * 1e9 / (learned * k) as f64;
            println!(
                "{rows:>7} {dim:>3} {k:>2}  {name:<14} {pass:>9.1} {kernel:>9.1} {:>9.2} {start:>9.3}",
                pass / kernel
            );
        }
    }
}

/// The seconds of the start, and of each portion of the pass.
fn time(rows: &Block, algorithm: Algorithm, k: usize) -> (f64, Vec<f64>) {
    let first = default_start_rows(k, rows.columns());
    let settings = FitSettings::new(algorithm, [k]).seed(1).start_rows(first);
    let mut fit = OnlineFit::new(rows.columns(), settings).expect("the settings are in range");
    let view = rows.view();
    let (buffered, rest) = view.split_at(Axis(0), first);
    let mut observe = |rows| {
        let begun = Instant::now();
        fit.observe(rows).expect("rows can be learned");
        begun.elapsed().as_secs_f64()
    };
    (observe(buffered), rest.axis_chunks_iter(Axis(0), 4096).map(observe).collect())
}

/// Nanoseconds per row and component of the fused kernel with `k` components.
fn kernel_time(dim: usize, k: usize) -> f64 {
    let width = dim.div_ceil(4) * 4;
    let value = |i: usize| if i % width < dim { ((i * 7919) % 1013) as f64 / 506.0 - 1.0 } else { 0.0 };
    let rows: Vec<f64> = (0..64 * width).map(value).collect();
    let repeat = 400_000 / (k * (dim * dim + 20));
    let begun = Instant::now();
    black_box(fused_kernel(dim, k, black_box(&rows), repeat));
    begun.elapsed().as_secs_f64() * 1e9 / (64 * k * repeat) as f64
}
