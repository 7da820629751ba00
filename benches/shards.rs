//! Wall time of oDMM on one thread and on two, with rows in memory: `cargo bench --bench shards`.
//!
//! Runs on one and on two threads alternate, and the best of six counts.

use std::time::Instant;

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::data::{Block, RowSource};
use gmm_bmm::settings::{Algorithm, OdmmSettings};
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::Axis;

fn main() {
    let spec = SynthSpec { k: 5, dim: 50, rows: 130_064, ..SynthSpec::default() };
    let synth = Synth::new(spec).expect("the spec is in range");
    let mut rows = Block::new(50);
    synth.training().read_block(&mut rows, 130_064).expect("a drawn source cannot fail");
    println!("{} rows × {} columns, K = 5", rows.rows(), rows.columns());
    let ceilings = (0..4).map(|_| ceiling(&rows));
    println!("two independent passes in parallel: ratio {:.2} at best", ceilings.fold(1.0, f64::min));
    for shards in [5, 8] {
        let mut best = [f64::INFINITY; 2];
        for _ in 0..6 {
            for threads in [1, 2] {
                let seconds = time(&rows, shards, threads);
                best[threads - 1] = best[threads - 1].min(seconds);
            }
        }
        let [one, two] = best;
        println!("{shards} shards: 1 thread {one:.3} s, 2 threads {two:.3} s, ratio {:.2}", two / one);
    }
}

/// The best possible ratio on this machine: two independent passes in parallel, relative to one after the other.
fn ceiling(rows: &Block) -> f64 {
    let one_by_one = time(rows, 1, 1) + time(rows, 1, 1);
    let spent = std::thread::scope(|scope| {
        let other = scope.spawn(|| time(rows, 1, 1));
        let own = time(rows, 1, 1);
        own.max(other.join().expect("the pass does not panic"))
    });
    spent / one_by_one
}

/// The seconds of a pass after the start, which is the same for all runs.
fn time(rows: &Block, shards: usize, threads: usize) -> f64 {
    let algorithm = Algorithm::Odmm(OdmmSettings { shards, ..OdmmSettings::default() });
    let settings = FitSettings::new(algorithm, [5]).seed(1).start_rows(1000);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    pool.install(|| {
        let mut fit = OnlineFit::new(rows.columns(), settings).expect("the settings are in range");
        let view = rows.view();
        let (start, rest) = view.split_at(Axis(0), 1000);
        fit.observe(start).expect("rows can be learned");
        let begun = Instant::now();
        for portion in rest.axis_chunks_iter(Axis(0), 4096) {
            fit.observe(portion).expect("rows can be learned");
        }
        begun.elapsed().as_secs_f64()
    })
}
