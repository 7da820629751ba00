//! Seconds of each phase of a fit: `cargo bench --bench phases -- FILE COLUMNS K`. FILE has rows of little-endian doubles.
//!
//! Prints one line of JSON: the start, the pass over all rows, the revisions and the end of the stream. Other load on the machine
//! only adds time, so each figure is the least of several runs. Also the seconds of scoring all rows.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gmm_bmm::ndarray::{Array2, ArrayView2, s};
use gmm_bmm::{FitSettings, LearnError, OnlineFit};

const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let [file, columns, k] = arguments.as_slice() else {
        println!("usage: cargo bench --bench phases -- FILE COLUMNS K");
        return Ok(());
    };
    let (columns, k): (usize, usize) = (columns.parse()?, k.parse()?);
    let numbers: Vec<f64> = std::fs::read(file)?
        .chunks_exact(8)
        .map(|bytes| f64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes")))
        .collect();
    let rows = Array2::from_shape_vec((numbers.len() / columns, columns), numbers)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let mut least = [f64::INFINITY; 5];
    for _ in 0..RUNS {
        let seconds = pool.install(|| phases(rows.view(), k))?;
        least.iter_mut().zip(seconds).for_each(|(least, seconds)| *least = seconds.min(*least));
    }
    let [start, pass, revisions, end, scoring] = least;
    println!(
        "{{\"start\": {start:.4}, \"pass\": {pass:.4}, \"revisions\": {revisions:.4}, \"end\": {end:.4}, \
         \"scoring\": {scoring:.4}, \"fit\": {:.4}}}",
        start + pass + revisions + end
    );
    Ok(())
}

/// Seconds of the start, the pass, the revisions, the end of the stream, and of scoring.
fn phases(rows: ArrayView2<f64>, k: usize) -> Result<[f64; 5], LearnError> {
    let never = AtomicBool::new(false);
    let mut pass = OnlineFit::new(rows.ncols(), FitSettings::obmm([k]))?;
    let mut seconds = [0.0; 5];
    let mut from = 0;
    loop {
        let began = Instant::now();
        from += pass.advance(rows.slice(s![from.., ..]))?;
        seconds[1] += began.elapsed().as_secs_f64();
        if pass.revision_due().is_none() {
            break;
        }
        let (began, phase) = (Instant::now(), if pass.has_started() { 2 } else { 0 });
        pass.revise(&never)?;
        seconds[phase] += began.elapsed().as_secs_f64();
    }
    let began = Instant::now();
    pass.finish(&never)?;
    seconds[3] = began.elapsed().as_secs_f64();
    let mixture = pass.mixture()?;
    let began = Instant::now();
    mixture.score_samples(rows);
    seconds[4] = began.elapsed().as_secs_f64();
    Ok(seconds)
}
