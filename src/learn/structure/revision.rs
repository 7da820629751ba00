//! Revisions of a mixture, and the posterior after them.

mod rows;
mod unmoved;
mod unsearched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ndarray::ArrayView2;

pub(in crate::learn) use rows::search_rows;
use rows::weighted_rows;
use unmoved::unmoved;

use super::covariance_prior::{PriorStrength, Strength};
use super::directions::Directions;
use super::e_step::{Others, label, sweep};
use super::em::{Em, Improved};
use super::fill::filled;
use super::find::{Finder, ordered};
use super::history::{Identifiers, Move};
use super::m_step::Parts;
use super::posterior::Learned;
use super::refill::refill;
use super::reservoir::KeptRows;
use super::scaled::ScaledRows;
use super::search::{Found, MIN_RISE, Search};
use super::{Limits, RIDGE, Size, with_judged_price};
use crate::dist::{Dirichlet, GaussianMixture, Posterior};
use crate::learn::rules::forgetting::Forgetting;
use crate::learn::{Health, LearnError, RELATIVE_FLOOR, Start};
use crate::linalg::blocks::{BLOCK, RowBlocks};
use crate::linalg::{CovarianceType, Table};

/// The result of a revision.
#[derive(Debug, Clone)]
pub struct Revised {
    /// The prior around the revised mixture.
    pub(in crate::learn) prior: Posterior,
    /// The posterior of the rows under the revised mixture's responsibilities.
    pub(in crate::learn) posterior: Posterior,
    /// For each component that the revision did not change, its index before. Such a component keeps what it has learned from
    /// the whole stream.
    pub(in crate::learn) kept: Vec<Option<usize>>,
    /// The number of learned rows that the posterior represents.
    pub(in crate::learn) rows: u64,
    /// Their total weight.
    pub(in crate::learn) weight: f64,
    /// How many rows the prior of a covariance is worth.
    pub(in crate::learn) strength: f64,
    /// Safeguards that triggered.
    pub(in crate::learn) health: Health,
}

impl Revised {
    /// The posterior, with unchanged components from `before`.
    pub(in crate::learn) fn posterior_after(&self, before: Option<&Posterior>) -> Posterior {
        let Some(before) = before else { return self.posterior.clone() };
        let pick = |j: usize| self.kept[j].map_or((&self.posterior, j), |old| (before, old));
        let k = self.posterior.k();
        let concentration = |(posterior, j): (&Posterior, usize)| posterior.weights().concentrations()[j];
        let a = (0..k).map(|j| concentration(pick(j))).collect();
        let component = |(posterior, j): (&Posterior, usize)| posterior.components()[j].clone();
        let components = (0..k).map(|j| component(pick(j))).collect();
        Posterior::new(Dirichlet::new(a).expect("both are positive"), components)
            .expect("one component for each weight")
    }

    /// The point estimate, with unchanged components from `before`.
    pub(in crate::learn) fn mixture_after(&self, before: Option<&GaussianMixture>) -> GaussianMixture {
        let revised = self.posterior.point_estimate();
        let Some(before) = before else { return revised };
        let pick = |j: usize| self.kept[j].map_or((&revised, j), |old| (before, old));
        let weight = |(mixture, j): (&GaussianMixture, usize)| mixture.weights()[j];
        let total: f64 = (0..revised.k()).map(|j| weight(pick(j))).sum();
        let weights = (0..revised.k()).map(|j| weight(pick(j)) / total).collect();
        let component = |(mixture, j): (&GaussianMixture, usize)| mixture.components()[j].clone();
        let components = (0..revised.k()).map(|j| component(pick(j))).collect();
        GaussianMixture::new(weights, components).expect("one weight for each component")
    }
}

/// The task of a revision.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Task {
    /// The number of components.
    pub size: Size,
    /// Whether components are adjusted even if the search finds no better structure, as at the end of the stream.
    pub adjusts: bool,
    /// The log-density of noise in the units of the data, if any. Rows of a lower density belong to no component.
    pub noise: Option<f64>,
    /// Whether rows may be of a new kind, so that the search is made in any case.
    pub alert: bool,
}

/// A revision: its result and its moves.
pub(in crate::learn) struct Revision {
    /// `None` if the mixture stays the same.
    pub revised: Option<Revised>,
    pub moves: Vec<Move>,
}

/// How mixtures are revised.
#[derive(Debug, Clone, Copy)]
pub(in crate::learn) struct Revising<'a> {
    pub limits: Limits,
    /// The covariances of the components.
    pub kind: CovarianceType,
    /// The prior of covariances.
    pub prior: PriorStrength,
    /// Whether the stream has ended.
    pub closing: bool,
    pub seed: u64,
    pub stop: &'a AtomicBool,
}

/// Revises mixtures on a set of rows.
pub(in crate::learn) struct Reviser<'a> {
    rows: ScaledRows,
    /// The smallest variance of each column given the columns before it.
    floor: Vec<f64>,
    /// The number of learned rows. `rows` holds all of them or a sample.
    learned: u64,
    /// Their total weight, if rows have weights of their own.
    learned_weight: Option<f64>,
    /// Whether `rows` holds all learned rows.
    complete: bool,
    /// How rows lose weight, if they do.
    forgetting: Option<Forgetting>,
    how: Revising<'a>,
}

impl<'a> Reviser<'a> {
    /// A reviser on about `most` of the kept rows of a pass.
    pub fn new(kept: &KeptRows, floor: &[f64], most: usize, how: Revising<'a>) -> Result<Self, LearnError> {
        let (ages, own) = (kept.reservoir_ages(), kept.own_weights_of_reservoir());
        let rows =
            weighted_rows(kept.shared_reservoir(), floor.len(), ages.as_deref(), own, (most, how.kind))?;
        let (learned, complete, forgetting) = (kept.learned(), kept.is_complete(), kept.forgetting());
        let learned_weight = kept.has_own_weights().then(|| kept.learned_weight());
        Ok(Reviser { rows, floor: floor.to_vec(), learned, learned_weight, complete, forgetting, how })
    }

    /// A reviser on all learned rows, of `dim` numbers each, in the order of the stream, with their own weights if they have any.
    pub fn on_all(
        rows: Arc<Table>,
        own: Option<&[f64]>,
        dim: usize,
        forgetting: Option<Forgetting>,
        how: Revising<'a>,
    ) -> Result<Self, LearnError> {
        let count = rows.len() / dim;
        let learned_weight = own.map(|own| own.iter().sum());
        let ages = forgetting.map(|forgetting| {
            let mut later = own.map_or(count as f64, |own| own.iter().sum());
            let age = |i: usize| {
                later -= own.map_or(1.0, |own| own[i]);
                forgetting.weight(later.max(0.0))
            };
            (0..count).map(age).collect::<Vec<f64>>()
        });
        let rows = weighted_rows(rows, dim, ages.as_deref(), own, (usize::MAX, how.kind))?;
        let floor = rows.columns().iter().map(crate::learn::variance_floor).collect();
        Ok(Reviser { rows, floor, learned: count as u64, learned_weight, complete: true, forgetting, how })
    }

    /// The total weight of the learned rows, without their ages.
    fn learned_weight(&self) -> f64 {
        self.learned_weight.unwrap_or(self.learned as f64)
    }

    /// Whether `stop` is set.
    pub fn is_stopped(&self) -> bool {
        self.how.stop.load(Ordering::Relaxed)
    }

    /// Whether the rows are only a sample of the learned rows.
    pub fn is_partial(&self) -> bool {
        !self.complete
    }

    /// The size with a price that held-out rows decide on, if the stream is short and has ended. Also returns the mixture of a part
    /// of the rows that was found with it.
    fn judged(&self, size: Size) -> (Size, Option<GaussianMixture>) {
        let judges = self.how.closing && self.how.limits.restarts > 1;
        match judges {
            true => with_judged_price(&self.rows.blocks, self.finder(size, RELATIVE_FLOOR)),
            false => (size, None),
        }
    }

    fn finder(&self, size: Size, ridge: f64) -> Finder<'a> {
        let Revising { limits, kind, prior, seed, stop, .. } = self.how;
        Finder { kind, size, first_k: None, prior, limits, ridge, seed, stop }
    }

    /// Finds a mixture without an earlier one, in the units of the data.
    pub fn start(&self, size: Size) -> (Revised, Start) {
        let (size, known) = self.judged(size);
        let (found, rows) = self.find_anew(size, known.as_ref());
        let mixture = ordered_by_means(&found.mixture);
        let revised = self.revised(&rows, &mixture, found.strength, vec![None; mixture.k()], None);
        let prior = Some(revised.prior.clone());
        let mixture = self.rows.unscale(&mixture);
        let (floor, rows, weight) = (self.floor.clone(), self.learned, self.learned_weight());
        let start = Start { mixture, prior, unit: self.rows.blocks.prior_unit(), floor, rows, weight };
        (revised, start)
    }

    /// The best mixture of several starts, and the rows that EM used. The first start is a mixture that is known for similar rows,
    /// if there is one.
    fn find_anew(&self, size: Size, known: Option<&GaussianMixture>) -> (Improved, RowBlocks) {
        let finder = self.start_finder(size);
        let rows = &self.rows.blocks;
        let first = self
            .polished(known.map_or_else(|| finder.find(rows), |known| finder.find_from(rows, known)), size);
        let first_k = Some(first.0.mixture.k());
        let restarts = 1..self.how.limits.restarts;
        restarts.map(|restart| self.find_again(size, first_k, restart)).fold(first, better)
    }

    /// A mixture from other seeds than the first, of this number of components if K is learned.
    fn find_again(&self, size: Size, first_k: Option<usize>, restart: u64) -> (Improved, RowBlocks) {
        let finder = self.start_finder(size);
        let seed = finder.seed.wrapping_add(restart);
        self.polished(Finder { seed, first_k, ..finder }.find(&self.rows.blocks), size)
    }

    fn start_finder(&self, size: Size) -> Finder<'a> {
        self.finder(size, if self.how.closing { RELATIVE_FLOOR } else { RIDGE })
    }

    fn polished(
        &self,
        (found, rows): (GaussianMixture, Option<RowBlocks>),
        size: Size,
    ) -> (Improved, RowBlocks) {
        let rows = rows.unwrap_or_else(|| self.rows.blocks.clone());
        (self.polish(&rows, &found, size, self.polish_iterations(found.k()), None), rows)
    }

    /// Revises a mixture. If `stop` is set meanwhile, returns the best mixture so far.
    pub fn revise(
        &mut self,
        current: &GaussianMixture,
        identifiers: &mut Identifiers,
        task: Task,
    ) -> Revision {
        let current = self.rows.scale(current);
        if self.nothing_gains(&current, task) {
            return self.unsearched(&current, task);
        }
        let noise = task.noise.map(|noise| noise + self.rows.log_jacobian());
        let some = self.informative_rows(&current, task.size);
        let rows = some.as_ref().unwrap_or(&self.rows.blocks);
        let Revising { closing, seed, stop, .. } = self.how;
        let complete = rows.has_gaps().then(|| filled(rows, Some(&current), seed, stop));
        let rows = complete.as_ref().unwrap_or(rows);
        let even = rows.truncated();
        let (Found { mixture, moves, origins }, strength) =
            self.search(even.as_ref().unwrap_or(rows), &current, identifiers, task, noise);
        let forgets = self.forgetting.is_some_and(|forgetting| forgetting.has_forgotten(self.learned));
        if moves.is_empty() && !task.adjusts && (!closing || forgets) {
            // The posterior from all rows is more accurate than an adjustment to some of them. With a half-life, the rows of any
            // sample are older than the next ones, and an adjustment follows the path of data that drift.
            return Revision { revised: None, moves };
        }
        let closely = closing && !self.complete && !moves.is_empty();
        let iterations = if closely { self.polish_iterations(mixture.k()) } else { 2 };
        let fit = self.polish(&self.rows.blocks, &mixture, task.size, iterations, noise);
        let (mixture, strength) = (fit.mixture, fit.strength.or(strength));
        // A tied covariance is that of all components, so that none stays the same.
        let kept = if self.complete || self.how.kind == CovarianceType::Tied {
            vec![None; mixture.k()]
        } else {
            unmoved(rows, (&current, &mixture), &origins, (noise, self.how.kind))
        };
        let changed = kept.len() != current.k() || kept.iter().any(|kept| kept.is_none());
        let revised = || self.revised(&self.rows.blocks, &mixture, strength, kept, noise);
        Revision { revised: changed.then(revised), moves }
    }

    /// Searches for a better structure on some rows without gaps.
    fn search(
        &self,
        rows: &RowBlocks,
        current: &GaussianMixture,
        identifiers: &mut Identifiers,
        task: Task,
        noise: Option<f64>,
    ) -> (Found, Option<Strength>) {
        let Revising { limits, kind, prior, seed, stop, .. } = self.how;
        let size = task.size;
        let search =
            |rows: &RowBlocks, kind, current: &GaussianMixture, noise, identifiers: &mut Identifiers| {
                let search = Search { rows, kind, prior, ridge: RIDGE, limits, size, noise, seed, stop };
                let start = search.em(limits.iterations, 1e-4).run(rows, current, f64::NEG_INFINITY, stop);
                let strength = start.strength;
                (search.run(start, identifiers), strength)
            };
        let Some(directions) = Directions::of(rows) else {
            return search(rows, kind, current, noise, identifiers);
        };
        // The level of noise is a density in all columns.
        let projected = directions.project(rows);
        let (found, strength) =
            search(&projected, CovarianceType::Full, &directions.project_mixture(current), None, identifiers);
        if found.moves.is_empty() {
            return (Found { mixture: current.clone(), ..found }, strength);
        }
        let labels = label(&projected, &found.mixture).0;
        let (rows, labels) = ordered(rows, &labels);
        let anew = self.finder(size, RIDGE).of_labels(&rows, &labels, found.mixture.k());
        let component = |(j, origin): (usize, &Option<usize>)| {
            origin.map_or(&anew.components()[j], |old| &current.components()[old]).clone()
        };
        let components = found.origins.iter().enumerate().map(component).collect();
        let mixture = GaussianMixture::new(found.mixture.weights().to_vec(), components)
            .expect("one weight for each component");
        (Found { mixture, ..found }, strength)
    }

    /// Appends the validation rows.
    pub fn add_validation_rows(&mut self, kept: &KeptRows) {
        let before = self.rows.rows();
        self.rows.add(kept.validation(), kept.validation_weights().as_deref());
        self.learned += (self.rows.rows() - before) as u64;
        if let (Some(weight), Some(own)) = (&mut self.learned_weight, kept.own_weights_of_validation()) {
            *weight += own.iter().sum::<f64>();
        }
    }

    /// The mixture after EM on all rows of the stream or, if a search is cheap and finds a better one, a new mixture. Also
    /// returns the index of each component before; `None` if it has no counterpart.
    pub fn finish(&self, current: &GaussianMixture, size: Size) -> (Revised, Vec<Option<usize>>) {
        let current = self.rows.scale(current);
        let (size, known) = self.judged(size);
        let rows = &self.rows.blocks;
        let own = self.polish(rows, &current, size, 3 * self.polish_iterations(current.k()), None);
        let anew = (self.how.limits.restarts > 1).then(|| match &known {
            Some(known) => self.find_anew(size, Some(known)).0,
            // The present mixture is what a search from the start has found.
            None => self.find_again(size, Some(own.mixture.k()), 1).0,
        });
        let better = anew.filter(|anew| anew.level > own.level + MIN_RISE);
        let (fit, origins) = match better {
            Some(anew) => {
                let origins = self.counterparts(&own.mixture, &anew.mixture);
                (anew, origins)
            }
            None => (own, (0..current.k()).map(Some).collect()),
        };
        let kept = vec![None; fit.mixture.k()];
        (self.revised(rows, &fit.mixture, fit.strength, kept, None), origins)
    }

    /// For each component of `after`, the one of `before` that has more than half of its rows, if it also has more than half
    /// of the rows of that one.
    fn counterparts(&self, before: &GaussianMixture, after: &GaussianMixture) -> Vec<Option<usize>> {
        let (old, new) = (label(&self.rows.blocks, before).0, label(&self.rows.blocks, after).0);
        let mut shared = vec![vec![0_usize; before.k()]; after.k()];
        old.iter().zip(&new).for_each(|(&old, &new)| shared[new][old] += 1);
        let of_old = |i: usize| shared.iter().map(|row| row[i]).sum::<usize>();
        let counterpart = |row: &Vec<usize>| {
            let of_new: usize = row.iter().sum();
            (0..row.len()).find(|&i| 2 * row[i] > of_new && 2 * row[i] > of_old(i))
        };
        shared.iter().map(counterpart).collect()
    }

    /// EM on all rows, to closer convergence than in a search.
    fn polish(
        &self,
        rows: &RowBlocks,
        mixture: &GaussianMixture,
        size: Size,
        iterations: usize,
        noise: Option<f64>,
    ) -> Improved {
        let Revising { kind, prior, seed, stop, .. } = self.how;
        let (prior, price) = (Some(prior), size.price(rows, kind));
        let em = Em { kind, iterations, tolerance: 1e-5, prior, price, ridge: RELATIVE_FLOOR, noise };
        let fit = em.run(rows, mixture, f64::NEG_INFINITY, stop);
        // A component without rows in a sample may have rows in the stream.
        if self.complete && !rows.has_gaps() { refill(em, rows, fit, seed, stop) } else { fit }
    }

    /// The number of iterations of [`Reviser::polish`] for `k` components. It is larger if they are cheap.
    fn polish_iterations(&self, k: usize) -> usize {
        const ROWS: f64 = 600_000.0;
        const WORK: f64 = 4e9;
        let rows = self.rows.rows().max(1) as f64;
        let most = 3 * self.how.limits.iterations;
        let affordable = (ROWS / rows).min(WORK / (rows * self.how.kind.work(k, self.rows.blocks.dim())));
        (affordable as usize).clamp(2.min(most), most.max(2))
    }

    /// Orders the rows by component. If there are more rows than a search needs, returns a selection: the rows of the lowest
    /// density, and a part of the others with larger weights.
    fn informative_rows(&mut self, mixture: &GaussianMixture, size: Size) -> Option<RowBlocks> {
        let wanted =
            self.how.limits.row_factor * search_rows(size, self.how.kind, mixture.k(), mixture.dim());
        let all = &self.rows.blocks;
        let directions = if all.has_gaps() { None } else { Directions::of(all) };
        let (labels, log_densities) = match directions {
            None => label(all, mixture),
            Some(directions) => label(&directions.project(all), &directions.project_mixture(mixture)),
        };
        let mut by_component: Vec<usize> = (0..self.rows.rows()).collect();
        by_component.sort_by_key(|&i| labels[i]);
        drop(labels);
        let log_densities: Vec<f64> = by_component.iter().map(|&i| log_densities[i]).collect();
        self.rows.blocks = self.rows.blocks.reordered(&by_component);
        let all = &self.rows.blocks;
        if all.rows() <= wanted + wanted / 2 {
            return None;
        }
        let mut order: Vec<usize> = (0..all.rows()).collect();
        let worst = wanted / 4;
        order.select_nth_unstable_by(worst, |&a, &b| {
            log_densities[a].total_cmp(&log_densities[b]).then(a.cmp(&b))
        });
        let mut weights = vec![0.0; all.rows()];
        order[..worst].iter().for_each(|&i| weights[i] = 1.0);
        let others: Vec<usize> = (0..all.rows()).filter(|&i| weights[i] == 0.0).collect();
        let step = others.len().div_ceil(wanted - worst).max(1);
        let weight = others.len() as f64 / others.len().div_ceil(step) as f64;
        others.iter().step_by(step).for_each(|&i| weights[i] = weight);
        let chosen: Vec<usize> = (0..all.rows()).filter(|&i| weights[i] > 0.0).collect();
        Some(all.reordered(&chosen).with_weights(|i| weights[chosen[i]] * all.weight(chosen[i])))
    }

    /// The conjugate posterior of all rows under the mixture's responsibilities, in the units of the data. Concentrations are
    /// scaled to all learned rows.
    fn revised(
        &self,
        rows: &RowBlocks,
        mixture: &GaussianMixture,
        strength: Option<Strength>,
        kept: Vec<Option<usize>>,
        noise: Option<f64>,
    ) -> Revised {
        let noise = noise.map(|noise| vec![noise; rows.blocks() * BLOCK]);
        let sums = sweep(rows, mixture, self.how.kind, noise.as_deref().map(Others::noise));
        let parts = Parts::new(sums, mixture);
        let strength = strength.unwrap_or_else(|| Strength::learn(&parts, self.how.prior));
        let scale = match self.forgetting {
            None if self.learned_weight.is_none() => self.learned as f64 / rows.rows() as f64,
            None => self.learned_weight() / rows.total_weight(),
            Some(forgetting) => forgetting.weight_of(self.learned_weight()) / rows.total_weight(),
        };
        let learned =
            Learned { parts: &parts, mixture, strength, units: self.rows.units(), floor: &self.floor };
        let prior = learned.prior();
        let (posterior, health) = learned.posterior(&prior, scale);
        let (rows, weight) = (self.learned, self.learned_weight());
        Revised { prior, posterior, kept, rows, weight, strength: strength.rows, health }
    }
}

/// The better one of two mixtures, the first one of equals.
fn better(a: (Improved, RowBlocks), b: (Improved, RowBlocks)) -> (Improved, RowBlocks) {
    if b.0.level > a.0.level { b } else { a }
}

/// The components ordered by their means, so that starts from different rows of the same distribution number them alike.
fn ordered_by_means(mixture: &GaussianMixture) -> GaussianMixture {
    let mut order: Vec<usize> = (0..mixture.k()).collect();
    let mean = |j: usize| mixture.components()[j].mean();
    let by_mean = |&a: &usize, &b: &usize| {
        let columns = mean(a).iter().zip(mean(b)).map(|(a, b)| a.total_cmp(b));
        columns.reduce(std::cmp::Ordering::then).unwrap_or(std::cmp::Ordering::Equal)
    };
    order.sort_by(by_mean);
    let weights = order.iter().map(|&j| mixture.weights()[j]).collect();
    let components = order.iter().map(|&j| mixture.components()[j].clone()).collect();
    GaussianMixture::new(weights, components).expect("the same components in another order")
}

pub(in crate::learn) fn rows_of(values: &[f64], dim: usize) -> ArrayView2<'_, f64> {
    ArrayView2::from_shape((values.len() / dim, dim), values).expect("rows are whole")
}
