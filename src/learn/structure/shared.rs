//! Mixtures that several learners of a comparison find in the same rows, and which are found once.
//!
//! oBMM and online EM with revisions and batch EM begin from the same search. The results are the same with and without sharing.

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::covariance_prior::PriorStrength;
use super::find::Finder;
use super::{Limits, Size};
use crate::dist::GaussianMixture;
use crate::hash::mix_bits;
use crate::linalg::CovarianceType;
use crate::linalg::blocks::RowBlocks;

/// What [`Finder::find`] returns.
type Found = (GaussianMixture, Option<RowBlocks>);

/// The mixtures found so far.
#[derive(Default)]
pub(crate) struct SharedFinds {
    found: Vec<(Task, Found, f64)>,
    /// The seconds that all searches took that were not made again.
    saved: f64,
}

/// All that the result depends on. Rows are known by a hash of their values.
#[derive(PartialEq)]
struct Task {
    kind: CovarianceType,
    size: Size,
    first_k: Option<usize>,
    prior: PriorStrength,
    limits: Limits,
    ridge: f64,
    seed: u64,
    rows: usize,
    hash: u64,
}

thread_local! {
    /// What the work on this thread shares, if it shares anything.
    static SHARED: RefCell<Option<SharedFinds>> = const { RefCell::new(None) };
}

impl SharedFinds {
    /// Shares what `work` finds on this thread with earlier and later work.
    pub(crate) fn during<T>(&mut self, work: impl FnOnce() -> T) -> T {
        SHARED.set(Some(std::mem::take(self)));
        let result = work();
        *self = SHARED.take().unwrap_or_default();
        result
    }
}

/// The result of `find`, which may be known.
pub(super) fn found(finder: &Finder, rows: &RowBlocks, find: impl FnOnce() -> Found) -> Found {
    if SHARED.with_borrow(Option::is_none) {
        return find();
    }
    let task = Task::new(finder, rows);
    let known = SHARED.with_borrow_mut(|shared| {
        let shared = shared.as_mut()?;
        let (_, found, seconds) = shared.found.iter().find(|(known, ..)| *known == task)?;
        shared.saved += seconds;
        Some(found.clone())
    });
    known.unwrap_or_else(|| {
        let begun = Instant::now();
        let found = find();
        let seconds = begun.elapsed().as_secs_f64();
        if !finder.stop.load(Ordering::Relaxed) {
            let keep = (task, found.clone(), seconds);
            SHARED.with_borrow_mut(|shared| {
                if let Some(shared) = shared {
                    shared.found.push(keep);
                }
            });
        }
        found
    })
}

impl Task {
    fn new(finder: &Finder, rows: &RowBlocks) -> Self {
        let Finder { kind, size, first_k, prior, limits, ridge, seed, .. } = *finder;
        let mut hash = mix_bits(rows.effective_rows().to_bits());
        for (i, (block, _)) in rows.iter().enumerate() {
            let numbers = block.iter().chain(rows.weights(i));
            hash = numbers.fold(hash, |hash, value| mix_bits(hash ^ value.to_bits()));
        }
        Task { kind, size, first_k, prior, limits, ridge, seed, rows: rows.rows(), hash }
    }
}

/// Measures the time of work as if it shared nothing.
pub(crate) struct Stopwatch {
    begun: Instant,
    saved: f64,
}

impl Stopwatch {
    /// Begins now.
    pub(crate) fn start() -> Self {
        Stopwatch { begun: Instant::now(), saved: saved() }
    }

    /// The seconds since the start, and those of searches that were not made again.
    pub(crate) fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64() + saved() - self.saved
    }
}

fn saved() -> f64 {
    SHARED.with_borrow(|shared| shared.as_ref().map_or(0.0, |shared| shared.saved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::{EmSettings, fit_em};
    use ndarray::Array2;

    #[test]
    fn a_search_on_the_same_rows_is_made_once_and_its_time_counts_twice() {
        let wave = |i: usize, j: usize| ((i * (31 + 16 * j)) as f64 * 0.37).sin() + (i % 3 * 4 * j) as f64;
        let rows = Array2::from_shape_fn((400, 2), |(i, j)| wave(i, j));
        let fit = |seed: u64| fit_em(rows.view(), 3, seed, &EmSettings::default()).unwrap();
        let alone = [fit(1), fit(2)];
        let mut shared = SharedFinds::default();
        let seconds = |shared: &mut SharedFinds| {
            shared.during(|| {
                let watch = Stopwatch::start();
                assert_eq!([fit(1), fit(2)], alone);
                watch.seconds()
            })
        };
        let first = seconds(&mut shared);
        // Two starts with each seed, of which one is the same.
        let searches: f64 = shared.found.iter().map(|(.., seconds)| seconds).sum();
        let count = shared.found.len();
        assert_eq!(count, 3);
        assert!(seconds(&mut shared) >= searches && first >= searches);
        assert_eq!(shared.found.len(), count);
        assert!(SHARED.with_borrow(Option::is_none));
    }
}
