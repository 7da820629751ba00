//! Learns shards apart and merges them: `cargo run --release --example distributed`.
//!
//! Each thread acts as a machine. The machines exchange the bytes of model files, as `gmm-bmm fit --prior` and
//! `gmm-bmm merge` do.

use std::error::Error;

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::{FitSettings, GaussianMixture, MergeOptions, Model, OnlineFit, fit, merge_models};
use ndarray::{ArrayView2, Axis, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const SHARDS: usize = 4;
const PRIOR_ROWS: usize = 5_000;

fn main() -> Result<(), Box<dyn Error>> {
    let synth = Synth::new(SynthSpec::paper(5)?)?;
    let truth: &GaussianMixture = synth.truth();
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let (rows, _) = truth.sample(80_000, &mut rng);
    let (test, _) = truth.sample(10_000, &mut rng);

    // The driver learns the common prior from the first rows.
    let settings = FitSettings::obmm([truth.k()]);
    let (first, rest) = rows.view().split_at(Axis(0), PRIOR_ROWS);
    let mut begun = OnlineFit::new(synth.columns().clone(), settings.clone())?;
    begun.observe(first)?;
    let prior = &begun.to_model()?;

    // Each shard learns its own rows.
    let shard_rows = rest.nrows().div_ceil(SHARDS);
    let shards: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let workers: Vec<_> = rest
            .axis_chunks_iter(Axis(0), shard_rows)
            .map(|part| scope.spawn(move || learn_shard(prior, part).expect("the shard can be learned")))
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("the worker ended")).collect()
    });

    // The driver merges the shards, in any order. It refuses a shard that occurs twice.
    let shards = shards
        .iter()
        .enumerate()
        .map(|(i, bytes)| Ok((format!("shard {i}"), Model::read(bytes.as_slice())?)));
    let shards = shards.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let merged = merge_models(prior, &shards, MergeOptions::default())?.model;

    let level = |mixture: &GaussianMixture| mixture.score(test.view()).unwrap();
    println!("true mixture                      {:.4}", level(truth));
    println!(
        "{:>6} rows, one learner          {:.4}",
        rows.nrows(),
        level(&fit(rows.view(), settings.clone())?.mixture)
    );
    println!(
        "{:>6} rows, {SHARDS} shards, merged     {:.4}",
        prior.rows() + merged.rows(),
        level(&merged.estimate())
    );
    println!(
        "{:>6} rows, the first shard alone {:.4}",
        shard_rows,
        level(&fit(rest.slice(s![..shard_rows, ..]), settings)?.mixture)
    );
    Ok(())
}

/// Learns a shard from the prior, and returns the bytes of its model file.
fn learn_shard(prior: &Model, rows: ArrayView2<f64>) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut pass = prior.begin_shard()?;
    for batch in rows.axis_chunks_iter(Axis(0), 1_000) {
        pass.observe(batch)?;
    }
    let mut file = Vec::new();
    pass.to_model()?.write(&mut file)?;
    Ok(file)
}
