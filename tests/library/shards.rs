//! Shards learned apart: oDMM in one process.

use std::io::Write;

use gmm_bmm::data::synth::{Synth, SynthSpec};
use gmm_bmm::data::{Block, RowSource};
use gmm_bmm::dist::GaussianMixture;
use gmm_bmm::internals::learn::FitState;
use gmm_bmm::settings::{Algorithm, ObmmSettings, OdmmSettings};
use gmm_bmm::{FitSettings, OnlineFit};
use ndarray::{Array2, Axis};

use crate::common::*;

fn fit(rows: &Array2<f64>, settings: FitSettings, block: usize) -> FitState {
    let mut fit = OnlineFit::new(rows.ncols(), settings).unwrap();
    rows.axis_chunks_iter(Axis(0), block).for_each(|rows| fit.observe(rows).unwrap());
    fit.state().unwrap()
}

fn odmm(shards: usize, warmup: Option<u64>) -> Algorithm {
    Algorithm::Odmm(OdmmSettings { obmm: ObmmSettings::default(), shards, warmup })
}

#[test]
fn with_one_component_any_sharding_is_the_one_machine_posterior() {
    let rows = clusters(5000, 4, 12) + 10.0;
    // A start of fewer rows than there are, or with a warm-up of its rows nothing would be left for the shards.
    let settings = |algorithm| FitSettings::new(algorithm, [1]).seed(3).start_rows(1000);
    let whole = fit(&rows, settings(Algorithm::Obmm(ObmmSettings::default())), 5000);
    let whole = whole.candidates[0].learned.posterior().unwrap();
    for shards in [1, 2, 5, 50] {
        for warmup in [None, Some(0), Some(3333), Some(10_000)] {
            for block in [1, 100, 5000] {
                let parts = fit(&rows, settings(odmm(shards, warmup)), block);
                assert_same_posterior(parts.candidates[0].learned.posterior().unwrap(), whole, 1e-9);
            }
        }
    }
}

fn draw(spec: SynthSpec, test_rows: u64) -> (Array2<f64>, Array2<f64>) {
    let synth = Synth::new(spec).unwrap();
    let read = |mut source: Box<dyn RowSource>| {
        let mut block = Block::new(source.columns().len());
        let mut values = Vec::new();
        while source.read_block(&mut block, 8192).unwrap() {
            values.extend_from_slice(block.values());
        }
        Array2::from_shape_vec((values.len() / block.columns(), block.columns()), values).unwrap()
    };
    (read(Box::new(synth.training())), read(Box::new(synth.test(test_rows))))
}

fn score(mixture: &GaussianMixture, rows: &Array2<f64>) -> f64 {
    mixture.score(rows.view()).unwrap()
}

#[test]
fn sharding_loses_next_to_nothing_on_the_papers_synthetic_sets() {
    let mut losses = [0.0; 4];
    let (sets, rows) = if at_full_size() { (1..=9, 60_000) } else { (2..=3, 30_000) };
    let count = sets.clone().count() as f64;
    for set in sets {
        let spec = SynthSpec { rows, ..SynthSpec::paper(set).unwrap() };
        let k = spec.k;
        let (train, test) = draw(spec, 10_000);
        let level = |algorithm| {
            let settings = FitSettings::new(algorithm, [k]).seed(3);
            score(&fit(&train, settings, 8192).mixture(), &test)
        };
        let whole = level(Algorithm::Obmm(ObmmSettings::default()));
        let sharded = [odmm(5, None), odmm(50, None), odmm(5, Some(0)), odmm(50, Some(0))];
        for (loss, algorithm) in losses.iter_mut().zip(sharded) {
            *loss += (whole - level(algorithm)) / count;
        }
    }
    let [five, fifty, five_apart, fifty_apart] = losses;
    // Written past the test runner, which keeps what println! says to itself.
    let _ = writeln!(
        std::io::stderr(),
        "mean loss against oBMM with 5 and 50 shards: {five:.4} and {fifty:.4}, without a warm-up {five_apart:.4} and {fifty_apart:.4}"
    );
    assert!(five <= 0.005, "5 shards lose {five}");
    assert!(fifty <= 0.02, "50 shards lose {fifty}");
}

/// The rows of the start have other shares of the clusters than those after them. The shards must not multiply that.
#[test]
fn the_weights_of_shards_are_those_of_one_pass() {
    let all = clusters(40_000, 2, 5);
    // Rows of the first cluster are rarer after the start than in it.
    let kept: Vec<usize> = (0..all.nrows()).filter(|i| *i < 3000 || i % 3 > 0 || i % 2 == 0).collect();
    let rows = all.select(Axis(0), &kept);
    for k in [3, 10] {
        let weights = |shards| {
            // Without kept rows all make the same start.
            let settings = FitSettings::new(odmm(shards, None), [k]).seed(3).start_rows(3000).keep_rows(0);
            fit(&rows, settings, 5000).mixture().weights().to_vec()
        };
        let whole = weights(1);
        for shards in [5, 20] {
            let parts = weights(shards);
            let off = whole.iter().zip(&parts).map(|(whole, part)| (whole - part).abs()).sum::<f64>();
            assert!(off < 0.03, "K = {k}, {shards} shards: {whole:?} against {parts:?}");
        }
    }
}
