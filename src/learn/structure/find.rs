//! Finding a mixture without an earlier one.

use std::sync::atomic::AtomicBool;

use super::covariance_prior::{PriorStrength, Strength};
use super::directions::Directions;
use super::e_step::label;
use super::em::{Em, Improved, Price};
use super::fill::{complete_rows, filled};
use super::history::Identifiers;
use super::m_step::maximise;
use super::search::Search;
use super::seed::{parts_of_labels, seed_mixtures};
#[cfg(feature = "cli")]
use super::shared::found;
use super::{Limits, Size};
use crate::dist::GaussianMixture;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::RowBlocks;

/// How a mixture is found.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Finder<'a> {
    /// The covariances of the components.
    pub kind: CovarianceType,
    pub size: Size,
    /// The number of components that a search begins with if K is learned; the smallest one if `None`.
    pub first_k: Option<usize>,
    /// The prior of covariances.
    pub prior: PriorStrength,
    pub limits: Limits,
    /// Added to each variance.
    pub ridge: f64,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// The number of clusters that order the rows while K is unknown.
const ORDERING_CLUSTERS: usize = 16;

impl Finder<'_> {
    /// Finds a mixture for rows in scaled units. Also returns the rows ordered by component, which makes EM faster, if they
    /// have no gaps.
    pub fn find(&self, rows: &RowBlocks) -> (GaussianMixture, Option<RowBlocks>) {
        if let Some(even) = rows.truncated() {
            return (self.with_own_weights(rows, &self.find(&even).0), None);
        }
        found(self, rows, || self.find_now(rows))
    }

    fn find_now(&self, rows: &RowBlocks) -> (GaussianMixture, Option<RowBlocks>) {
        if rows.has_gaps() {
            return (self.find_with_gaps(rows), None);
        }
        let (mixture, ordered) = self.find_in_complete(rows);
        (mixture, Some(ordered))
    }

    /// Improves a mixture that is known for similar rows, which takes less work than finding one. With gaps or many columns it
    /// finds one.
    pub fn find_from(
        &self,
        rows: &RowBlocks,
        known: &GaussianMixture,
    ) -> (GaussianMixture, Option<RowBlocks>) {
        if rows.has_gaps() || self.size.is_one() || Directions::of(rows).is_some() {
            return self.find(rows);
        }
        if let Some(even) = rows.truncated() {
            return (self.with_own_weights(rows, &self.find_from(&even, known).0), None);
        }
        let (rows, _) = ordered(rows, &label(rows, known).0);
        (self.improved(&rows, known), Some(rows))
    }

    /// A mixture that was found with truncated weights, after EM with those of the rows.
    fn with_own_weights(&self, rows: &RowBlocks, found: &GaussianMixture) -> GaussianMixture {
        let em = self.em(rows, self.limits.first_iterations, 1e-4);
        em.run(rows, found, f64::NEG_INFINITY, self.stop).mixture
    }

    fn find_with_gaps(&self, rows: &RowBlocks) -> GaussianMixture {
        let em = self.em(rows, self.limits.first_iterations, 1e-4);
        let on_all = |mixture: &GaussianMixture| em.run(rows, mixture, f64::NEG_INFINITY, self.stop);
        // The first one of equals is kept.
        let better = |a: Improved, b: Improved| if b.level > a.level { b } else { a };
        let found_from = |complete: &RowBlocks| {
            let first = on_all(&self.find_in_complete(complete).0);
            // The mixture that is found fills the gaps better.
            let complete = filled(rows, Some(&first.mixture), self.seed, self.stop);
            let search = self.search(&complete);
            let start = search.em(self.limits.iterations, 1e-4);
            let start = start.run(&complete, &first.mixture, f64::NEG_INFINITY, self.stop);
            let k = start.mixture.k();
            let second = on_all(&search.run(start, &mut Identifiers::new(k)).mixture);
            better(first, second)
        };
        // One Gaussian blurs the structure of the missing values. Rows without gaps do not, but they are fewer.
        let found = found_from(&filled(rows, None, self.seed, self.stop));
        match complete_rows(rows, self.size) {
            Some(complete) => better(found, found_from(&complete)).mixture,
            None => found.mixture,
        }
    }

    /// For rows without gaps.
    fn find_in_complete(&self, rows: &RowBlocks) -> (GaussianMixture, RowBlocks) {
        if self.size.is_one() {
            // One Gaussian needs no search.
            return (self.of_labels(rows, &vec![0; rows.rows()], 1), rows.clone());
        }
        let Some(directions) = Directions::of(rows) else {
            return self.search_anew(rows);
        };
        // In these directions, columns without correlations have some.
        let projected = directions.project(rows);
        let found = Finder { kind: CovarianceType::Full, ..*self }.search_anew(&projected).0;
        let labels = label(&projected, &found).0;
        let (rows, labels) = ordered(rows, &labels);
        (self.of_labels(&rows, &labels, found.k()), rows)
    }

    /// The mixture whose components have the rows with each label.
    pub fn of_labels(&self, rows: &RowBlocks, labels: &[usize], k: usize) -> GaussianMixture {
        let (parts, old) = parts_of_labels(rows, labels, k, self.kind);
        let strength = Strength::learn(&parts, self.prior);
        maximise(parts, &old, Some(strength), self.ridge)
    }

    /// Finds a mixture in all columns. Also returns the rows ordered by component.
    fn search_anew(&self, rows: &RowBlocks) -> (GaussianMixture, RowBlocks) {
        let seeds = |k: usize, count: usize| seed_mixtures(rows, k, self.seed, count, self.ridge, self.kind);
        let (start, labels) = match self.size {
            Size::Given(k) => self.best_seed(rows, seeds(k, self.limits.seeds)),
            Size::Learned { least, most, .. } => {
                let first = self.first_k.unwrap_or(least).clamp(least, most.max(least));
                let (start, _) = self.best_seed(rows, seeds(first, self.limits.seeds));
                // Labels of more clusters keep similar rows together.
                let (_, labels) = seeds(most.min(ORDERING_CLUSTERS), 1).remove(0);
                (start, labels)
            }
        };
        let (rows, _) = ordered(rows, &labels);
        (self.improved(&rows, &start), rows)
    }

    /// The mixture after EM and a search.
    fn improved(&self, rows: &RowBlocks, start: &GaussianMixture) -> GaussianMixture {
        let search = self.search(rows);
        let em = search.em(self.limits.first_iterations, 1e-4);
        let start = em.run(rows, start, f64::NEG_INFINITY, self.stop);
        let k = start.mixture.k();
        search.run(start, &mut Identifiers::new(k)).mixture
    }

    /// The seed with the largest likelihood after EM on a part of the rows. The worse half of the seeds is dropped after every few
    /// iterations.
    fn best_seed(
        &self,
        rows: &RowBlocks,
        mut seeds: Vec<(GaussianMixture, Vec<usize>)>,
    ) -> (GaussianMixture, Vec<usize>) {
        const FEW: usize = 15;
        if seeds.len() == 1 {
            return seeds.remove(0);
        }
        let (k, dim) = (seeds[0].0.k(), rows.dim());
        let step = (rows.rows() / (4 * k * dim).max(2500)).max(1);
        let part = rows.thinned(step);
        let em = self.em(rows, FEW, 1e-3);
        let price = if matches!(self.size, Size::Given(_)) { em.price } else { Price::NONE };
        let em = Em { price, ..em };
        let improve = |start: &GaussianMixture| em.run(&part, start, f64::NEG_INFINITY, self.stop);
        let mut left: Vec<(usize, Improved)> =
            seeds.iter().map(|(start, _)| improve(start)).enumerate().collect();
        while left.len() > 1 {
            // The sort is stable, so the first one of equals is kept.
            left.sort_by(|a, b| b.1.level.total_cmp(&a.1.level));
            left.truncate(left.len().div_ceil(2));
            if left.iter().all(|(_, fit)| fit.converged) {
                break;
            }
            for (_, fit) in left.iter_mut().filter(|(_, fit)| !fit.converged) {
                *fit = improve(&fit.mixture);
            }
        }
        seeds.swap_remove(left[0].0)
    }

    fn search<'r>(&'r self, rows: &'r RowBlocks) -> Search<'r> {
        let Finder { kind, size, prior, limits, ridge, seed, stop, .. } = *self;
        Search { rows, kind, prior, ridge, limits, size, noise: None, seed, stop }
    }

    /// EM with the search's prior and price.
    pub fn em(&self, rows: &RowBlocks, iterations: usize, tolerance: f64) -> Em {
        Em { ridge: self.ridge, ..self.search(rows).em(iterations, tolerance) }
    }
}

/// Only comparisons share what they find.
#[cfg(not(feature = "cli"))]
fn found<T>(_: &Finder, _: &RowBlocks, find: impl FnOnce() -> T) -> T {
    find()
}

/// Rows and labels in the order of the labels.
pub(super) fn ordered(rows: &RowBlocks, labels: &[usize]) -> (RowBlocks, Vec<usize>) {
    let mut order: Vec<usize> = (0..rows.rows()).collect();
    order.sort_by_key(|&i| labels[i]);
    (rows.reordered(&order), order.iter().map(|&i| labels[i]).collect())
}
