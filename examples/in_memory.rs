//! Reads a table into memory and fits a mixture to it: `cargo run --release --example in_memory -- FILE K [ALGO [RUNS]]`.
//!
//! Prints the seconds of reading and learning as JSON, the least of all runs. `scripts/bench_peers.py` compares them with
//! other libraries.

use std::time::Instant;

use gmm_bmm::data::ReadOptions;
use gmm_bmm::{FitSettings, fit};
use ndarray::Array2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, k, more @ ..] = arguments.as_slice() else {
        return Err("in_memory FILE K [ALGO [RUNS]]".into());
    };
    let settings = match more.first().map_or("obmm", String::as_str) {
        "obmm" => FitSettings::obmm(k.parse::<usize>()?),
        "oem" => FitSettings::oem(k.parse::<usize>()?),
        other => return Err(format!("{other} is neither obmm nor oem").into()),
    };
    let runs: usize = more.get(1).map_or(Ok(1), |runs| runs.parse())?;

    let (mut reading, mut learning) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..runs {
        let begun = Instant::now();
        let rows = read(file)?;
        reading = reading.min(begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        fit(rows.view(), settings.clone())?;
        learning = learning.min(begun.elapsed().as_secs_f64());
    }
    println!("{{\"read_seconds\": {reading}, \"learn_seconds\": {learning}}}");
    Ok(())
}

/// All rows of a file.
fn read(file: &str) -> Result<Array2<f64>, Box<dyn std::error::Error>> {
    Ok(ReadOptions::default().open(&[file])?.read_all()?.into_array())
}
