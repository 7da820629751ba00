//! Moves compared with plain computations, and a search that leaves a local optimum.

use std::sync::atomic::AtomicBool;

use ndarray::Array2;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::e_step::{Assigned, sweep};
use super::history::Identifiers;
use super::look::all_fit;
use super::merge::cheapest_merges;
use super::search::Search;
use super::split::best_split;
use super::*;
use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::linalg::Factor;

fn gaussian(mean: [f64; 2], spread: f64) -> Gaussian {
    Gaussian::new(mean.to_vec(), Factor::from_standard_deviations(&[spread, spread]).unwrap()).unwrap()
}

fn truth() -> GaussianMixture {
    let parts = [[-4.0, 0.0], [4.0, 0.0], [0.0, 7.0]].map(|mean| gaussian(mean, 1.0));
    Mixture::new(vec![0.3, 0.3, 0.4], parts.to_vec()).unwrap()
}

fn drawn(rows: usize) -> Array2<f64> {
    truth().sample(rows, &mut ChaCha8Rng::seed_from_u64(3)).0
}

/// A local optimum: two components share one cluster, and one component covers the two others.
fn misplaced() -> GaussianMixture {
    let parts = vec![gaussian([0.0, 0.0], 4.0), gaussian([0.2, 7.0], 1.0), gaussian([-0.2, 7.0], 1.0)];
    Mixture::new(vec![0.6, 0.2, 0.2], parts).unwrap()
}

#[test]
fn a_weight_counts_as_so_many_rows() {
    let rows = drawn(300);
    let twice = ndarray::concatenate![ndarray::Axis(0), rows, rows.slice(ndarray::s![..100, ..])];
    let weighted = RowBlocks::new(rows.view()).with_weights(|i| if i < 100 { 2.0 } else { 1.0 });
    let (one, other) = (
        sweep(&weighted, &truth(), CovarianceType::Full, None),
        sweep(&RowBlocks::new(twice.view()), &truth(), CovarianceType::Full, None),
    );
    assert!((one.log_likelihood - other.log_likelihood).abs() < 1e-9 * one.log_likelihood.abs());
    for (one, other) in one.moments.iter().zip(&other.moments) {
        assert!((one.count - other.count).abs() < 1e-9);
        one.first.iter().zip(&other.first).for_each(|(a, b)| assert!((a - b).abs() < 1e-8));
    }
}

#[test]
fn the_loss_of_a_join_is_what_scoring_says() {
    let rows = drawn(500);
    let (blocks, mixture) = (RowBlocks::new(rows.view()), misplaced());
    let merges = cheapest_merges(&blocks, &mixture, &Assigned::new(&blocks, &mixture, None), 3);
    assert_eq!((merges.len(), merges[0].components), (3, [1, 2]), "the two on one cluster cost least");
    for merge in &merges {
        let [i, j] = merge.components;
        let other = 3 - i - j;
        let merged = Mixture::new(
            vec![mixture.weights()[other], merge.weight],
            vec![mixture.components()[other].clone(), merge.merged.clone()],
        );
        let loss =
            500.0 * (mixture.mean_log_density(rows.view()) - merged.unwrap().mean_log_density(rows.view()));
        assert!((merge.loss - loss).abs() < 1e-7 * (1.0 + loss.abs()), "{} against {loss}", merge.loss);
    }
}

#[test]
fn the_gain_of_a_split_is_what_scoring_says_and_finds_both_clusters() {
    let rows = drawn(2000);
    let (blocks, mixture) = (RowBlocks::new(rows.view()), misplaced());
    let assigned = Assigned::new(&blocks, &mixture, None);
    let split = best_split(&blocks, &mixture, &assigned, 0, (CovarianceType::Full, 1)).unwrap();
    let mut places: Vec<f64> = split.parts.iter().map(|part| part.mean()[0]).collect();
    places.sort_by(f64::total_cmp);
    assert!((places[0] + 4.0).abs() < 0.3 && (places[1] - 4.0).abs() < 0.3, "{places:?}");
    let (mut weights, mut parts) = (mixture.weights().to_vec(), mixture.components().to_vec());
    let weight = weights.remove(0);
    parts.remove(0);
    weights.extend(split.shares.map(|share| share * weight));
    parts.extend(split.parts.clone());
    let after = Mixture::new(weights, parts).unwrap();
    let gain = 2000.0 * (after.mean_log_density(rows.view()) - mixture.mean_log_density(rows.view()));
    // With unchanged responsibilities the prediction is a lower bound.
    assert!((0.75 * gain..1.01 * gain).contains(&split.gain), "{} against {gain}", split.gain);
}

#[test]
fn a_look_sees_a_local_optimum() {
    let rows = drawn(20_000);
    let blocks = RowBlocks::new(rows.view());
    let em = Em {
        iterations: 50,
        tolerance: 1e-6,
        prior: None,
        price: Price::NONE,
        ridge: 1e-6,
        noise: None,
        kind: CovarianceType::Full,
    };
    let after_em =
        |start: &GaussianMixture| em.run(&blocks, start, f64::NEG_INFINITY, &AtomicBool::new(false)).mixture;
    assert!(!all_fit(&blocks, &after_em(&misplaced()), 1));
    assert!(all_fit(&blocks, &after_em(&truth()), 1));
}

#[test]
fn a_search_leaves_a_local_optimum_and_logs_its_move() {
    let rows = drawn(3000);
    let blocks = RowBlocks::new(rows.view());
    let never = AtomicBool::new(false);
    let limits = Effort::Default.limits();
    let size = Size::Given(3);
    let search = Search {
        kind: CovarianceType::Full,
        rows: &blocks,
        prior: PriorStrength::Auto,
        ridge: 1e-6,
        limits,
        size,
        noise: None,
        seed: 1,
        stop: &never,
    };
    let stuck = search.em(50, 1e-6).run(&blocks, &misplaced(), f64::NEG_INFINITY, &never);
    let level = truth().mean_log_density(rows.view());
    assert!(stuck.mean_log_likelihood < level - 0.2, "EM alone stays where it is");
    let mut identifiers = Identifiers::new(3);
    let found = search.run(stuck, &mut identifiers);
    assert!(found.mixture.mean_log_density(rows.view()) > level - 0.005);
    assert_eq!(found.moves.len(), 1);
    let first = &found.moves[0];
    assert_eq!((first.split.unwrap().component, first.merged.unwrap().components), (1, [2, 3]));
    assert!(first.gain > 0.2 && identifiers.is_sound(3) && identifiers.all().iter().all(|&id| id > 3));
}
