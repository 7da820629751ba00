//! Components without rows.

use std::sync::atomic::AtomicBool;

use super::e_step::Assigned;
use super::em::{Em, Improved};
use super::search_state::split_all;
use super::split::{Split, best_split};
use crate::dist::{Gaussian, GaussianMixture, Mixture};
use crate::linalg::blocks::RowBlocks;

/// A component with fewer rows is empty.
const MIN_ROWS: f64 = 1.0;

/// Replaces each component that EM has left without rows by a half of another one, and runs EM again. EM leaves one without
/// rows where two of them compete for the same few values.
pub(super) fn refill(em: Em, rows: &RowBlocks, mut fit: Improved, seed: u64, stop: &AtomicBool) -> Improved {
    while let Some(better) = refill_one(em, rows, &fit, seed, stop) {
        fit = better;
    }
    fit
}

/// The fit with one empty component less, by the split that gains most of those after which EM leaves no further one empty.
fn refill_one(em: Em, rows: &RowBlocks, fit: &Improved, seed: u64, stop: &AtomicBool) -> Option<Improved> {
    let mixture = &fit.mixture;
    // Rows with weights of their own count as rows of the mean weight.
    let all = if rows.repeats(0).is_some() { rows.rows() as f64 } else { rows.total_weight() };
    let is_empty = |weight: &&f64| *weight * all < MIN_ROWS;
    let empty = mixture.weights().iter().position(|weight| is_empty(&weight))?;
    let assigned = Assigned::new(rows, mixture, em.noise);
    let splits = (0..mixture.k()).filter_map(|j| best_split(rows, mixture, &assigned, j, (em.kind, seed)));
    let mut splits: Vec<Split> = splits.collect();
    splits.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    splits.extend(halves_of_heaviest(mixture));
    let refilled = |split| Some(em.run(rows, &replaced(mixture, empty, split)?, f64::NEG_INFINITY, stop));
    let count = |mixture: &GaussianMixture| mixture.weights().iter().filter(is_empty).count();
    splits.into_iter().filter_map(refilled).find(|after| count(&after.mixture) < count(mixture))
}

/// Two halves of the component with the largest weight. No split gains if it has just the shape of a Gaussian.
fn halves_of_heaviest(mixture: &GaussianMixture) -> Option<Split> {
    let component =
        (0..mixture.k()).max_by(|&i, &j| mixture.weights()[i].total_cmp(&mixture.weights()[j]))?;
    let whole = &mixture.components()[component];
    let lower = whole.covariance().lower_matrix();
    let half = |side: f64| {
        let mean = whole.mean().iter().zip(lower.column(0)).map(|(mean, axis)| mean + side * axis);
        Gaussian::new(mean.collect(), whole.covariance().clone()).ok()
    };
    Some(Split { component, gain: 0.0, shares: [0.5, 0.5], parts: [half(-0.5)?, half(0.5)?] })
}

/// The mixture after a split, without the empty component: the new part has its place.
fn replaced(mixture: &GaussianMixture, empty: usize, split: Split) -> Option<GaussianMixture> {
    let split = split_all(mixture, &[split]);
    let (mut weights, mut components) = (split.weights().to_vec(), split.components().to_vec());
    weights.swap_remove(empty);
    components.swap_remove(empty);
    let total: f64 = weights.iter().sum();
    Mixture::new(weights.into_iter().map(|weight| weight / total).collect(), components).ok()
}
