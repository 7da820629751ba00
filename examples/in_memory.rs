//! Reads a table into memory and fits a mixture to it: `cargo run --release --example in_memory -- FILE K [ALGO [RUNS [SEED]]]`.
//!
//! Prints seconds as JSON: of reading, of learning and its phases, of one iteration of batch EM, and of scoring all rows. Other
//! load on the machine only adds time, so each is the least of all runs. `scripts/bench_peers.py` compares them with other
//! libraries.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gmm_bmm::batch::{EmSettings, expectation_maximisation};
use gmm_bmm::data::ReadOptions;
use gmm_bmm::{FitSettings, GaussianMixture, LearnError, OnlineFit, Progress};
use ndarray::{Array2, ArrayView2, s};

const NAMES: [&str; 8] = [
    "read_seconds",
    "start_seconds",
    "pass_seconds",
    "revision_seconds",
    "end_seconds",
    "learn_seconds",
    "iteration_seconds",
    "score_seconds",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, k, more @ ..] = arguments.as_slice() else {
        return Err("in_memory FILE K [ALGO [RUNS [SEED]]]".into());
    };
    let settings = match more.first().map_or("obmm", String::as_str) {
        "obmm" => FitSettings::obmm(k.parse::<usize>()?),
        "oem" => FitSettings::oem(k.parse::<usize>()?),
        other => return Err(format!("{other} is neither obmm nor oem").into()),
    };
    let runs: usize = more.get(1).map_or(Ok(1), |runs| runs.parse())?;
    let settings = settings.seed(more.get(2).map_or(Ok(1), |seed| seed.parse())?);

    let mut least = [f64::INFINITY; NAMES.len()];
    for _ in 0..runs {
        let begun = Instant::now();
        let rows: Array2<f64> = ReadOptions::default().open(&[file])?.read_all()?.into_array();
        let reading = begun.elapsed().as_secs_f64();
        let (phases, mixture) = fit(rows.view(), settings.clone())?;
        let iteration = seconds_per_iteration(rows.view(), &mixture);
        let begun = Instant::now();
        mixture.score_samples(rows.view()).unwrap();
        let scoring = begun.elapsed().as_secs_f64();
        let [start, pass, revisions, end] = phases;
        let learning = phases.iter().sum();
        let now = [reading, start, pass, revisions, end, learning, iteration, scoring];
        least.iter_mut().zip(now).for_each(|(least, now)| *least = now.min(*least));
    }
    let figures: Vec<String> =
        NAMES.iter().zip(least).map(|(name, value)| format!("\"{name}\": {value}")).collect();
    println!("{{{}}}", figures.join(", "));
    Ok(())
}

/// Fits a mixture, and measures the start, the pass, the revisions and the end of the stream.
fn fit(rows: ArrayView2<f64>, settings: FitSettings) -> Result<([f64; 4], GaussianMixture), LearnError> {
    let never = AtomicBool::new(false);
    let mut pass = OnlineFit::new(rows.ncols(), settings)?;
    let (mut seconds, mut from) = ([0.0; 4], 0);
    loop {
        let begun = Instant::now();
        if let Progress::Learned(taken) = pass.advance(rows.slice(s![from.., ..]))? {
            from += taken;
        }
        seconds[1] += begun.elapsed().as_secs_f64();
        if from == rows.nrows() && pass.revision_due().is_none() {
            break;
        }
        if pass.revision_due().is_none() {
            continue;
        }
        let (begun, phase) = (Instant::now(), if pass.has_started() { 2 } else { 0 });
        pass.revise(&never)?;
        seconds[phase] += begun.elapsed().as_secs_f64();
    }
    let begun = Instant::now();
    let mixture = pass.mixture()?;
    seconds[3] = begun.elapsed().as_secs_f64();
    Ok((seconds, mixture))
}

/// The difference of the times of four iterations of batch EM and of one, divided by three.
fn seconds_per_iteration(rows: ArrayView2<f64>, mixture: &GaussianMixture) -> f64 {
    let seconds = |iterations: usize| {
        let settings = EmSettings { iterations, tolerance: f64::NEG_INFINITY, ..EmSettings::default() };
        let begun = Instant::now();
        expectation_maximisation(rows, mixture, &settings);
        begun.elapsed().as_secs_f64()
    };
    let few = seconds(1);
    (seconds(4) - few) / 3.0
}
