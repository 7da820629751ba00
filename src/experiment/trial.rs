//! All learners with one K on one fold of one data set.

mod starts;
mod timed;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ndarray::{ArrayView2, Axis};

use self::starts::Starts;
use self::timed::timed;
use super::contender::{ALPHAS, Contender, PLAIN_STARTS, Structure, Way};
use super::external::{ExternalLearner, Job, Measured, Unscored};
use super::plan::{Plan, PlannedSet, SEEDS_OF_COMMANDS};
use super::record::{CellRecord, CellSettings, GapJacobians};
use super::revising::{Course, Revising};
use super::split::FoldRows;
use crate::dist::{Axes, GaussianMixture, Marginal};
use crate::learn::{
    Algorithm, Components, EmSettings, Health, LearnError, OdmmSettings, OnlineFit, SharedFinds, Start,
    WeightedRows, default_start_rows, fit_em, fit_em_from_kmeans, fit_em_learning_k,
};
use crate::stats::median;

/// The most starts of the batch EM that is scored on the validation rows. It only serves to choose K.
pub const VALIDATION_RESTARTS: usize = 3;

/// One K on one fold of one data set, with the parts that its learners have in common.
pub(super) struct Trial<'a> {
    plan: &'a Plan,
    set: &'a PlannedSet,
    fold: usize,
    k: usize,
    seed: u64,
    split: FoldRows,
    log_jacobian: f64,
    gap_jacobians: Option<GapJacobians>,
    /// Fitted ones and blind ones, once they are needed.
    starts: [Option<Starts>; 2],
    /// What learners with revisions learn from all training rows, where the start takes all of them.
    of_starts: Vec<(Structure, CellResult)>,
    /// What learners find in the same rows.
    finds: SharedFinds,
}

/// The result of a learner on all training rows.
#[derive(Clone)]
struct CellResult {
    mixture: GaussianMixture,
    tuned: Option<f64>,
    validation: f64,
    prequential: Option<f64>,
    start_seconds: f64,
    learn_seconds: f64,
    machine_seconds: Option<f64>,
    health: Health,
}

/// A learner with some value of its parameter.
type Tunable = fn(f64, &CellSettings) -> Algorithm;

/// A learning curve.
#[derive(Debug, Default)]
pub(super) struct Curve {
    /// Rows seen, and mean test score then.
    pub points: Vec<(u64, f64)>,
    /// Rows seen at each revision that changed the mixture.
    pub revisions: Vec<u64>,
}

impl<'a> Trial<'a> {
    pub fn new(plan: &'a Plan, set: &'a PlannedSet, fold: usize, k: usize) -> Self {
        let split = FoldRows::new(plan, set, fold);
        let seed = plan.start_seed(set, fold, k);
        let (log_jacobian, gap_jacobians) = (split.log_jacobian(), split.gap_jacobians());
        let (starts, of_starts, finds) = ([None, None], Vec::new(), SharedFinds::default());
        Trial { plan, set, fold, k, seed, split, log_jacobian, gap_jacobians, starts, of_starts, finds }
    }

    /// Runs a learner and returns the record of its cell, or `None` if `stop` was set meanwhile.
    pub fn run(
        &mut self,
        contender: &Contender,
        stop: &AtomicBool,
    ) -> Result<Option<CellRecord>, LearnError> {
        if self.plan.repeat > 1 {
            // Each repetition is measured.
            return self.run_alone(contender, stop);
        }
        let mut finds = std::mem::take(&mut self.finds);
        let record = finds.during(|| self.run_alone(contender, stop));
        self.finds = finds;
        record
    }

    fn run_alone(
        &mut self,
        contender: &Contender,
        stop: &AtomicBool,
    ) -> Result<Option<CellRecord>, LearnError> {
        if let Some(learner) = contender.commands() {
            return Ok(self.run_external(contender, learner, stop));
        }
        let learned = match contender.way() {
            None | Some(Way::Start) => self.learn_start()?,
            Some(Way::Batch { structure }) => self.learn_em(*structure)?,
            Some(&Way::Online { tuned, algorithm, structure }) => match structure {
                Structure::Fixed | Structure::Blind => self.learn_online(tuned, algorithm, structure)?,
                _ => self.learn_revised(tuned, algorithm, structure)?,
            },
        };
        Ok(Some(CellRecord {
            k: learned.mixture.k(),
            tuned: learned.tuned,
            validation: Some(learned.validation),
            prequential: learned.prequential,
            test: scores(&learned.mixture, self.split.test.view()).map(|score| score as f32).collect(),
            start_seconds: learned.start_seconds,
            learn_seconds: learned.learn_seconds,
            machine_seconds: learned.machine_seconds,
            guarded: learned.health.total(),
            marginals: self.marginals(&learned.mixture),
            ..self.empty_cell(contender)
        }))
    }

    /// The record of a cell without results.
    fn empty_cell(&self, contender: &Contender) -> CellRecord {
        let k = if contender.learns_k() { 0 } else { self.k };
        CellRecord {
            train_rows: self.split.train.nrows(),
            weights: self.split.test_weights.clone(),
            log_jacobian: self.log_jacobian,
            gap_jacobians: self.gap_jacobians.clone(),
            ..CellRecord::empty(&self.set.record.data, contender.clone(), k, self.fold)
        }
    }

    /// Runs a command: on the training rows without the validation rows, to score these, and then on all of them.
    fn run_external(
        &self,
        contender: &Contender,
        learner: &ExternalLearner,
        stop: &AtomicBool,
    ) -> Option<CellRecord> {
        let empty = self.empty_cell(contender);
        let structure = if learner.learns_k() { Structure::LearnedK } else { Structure::Fixed };
        let job = Job {
            learner,
            launcher: &self.plan.launcher,
            names: &self.set.record.columns,
            k: self.k,
            seed: self.seed_of(structure) % SEEDS_OF_COMMANDS,
            stop,
        };
        let run = || -> Result<CellRecord, Unscored> {
            let first = job.run(self.split.fitting(), self.split.validation().rows, false)?;
            let learned = job.run(self.split.training(), self.split.test.view(), true)?;
            Ok(CellRecord {
                k: learned.k.filter(|_| learner.learns_k()).unwrap_or(empty.k),
                validation: self.split.validation().mean_of(first.scores.into_iter()).map(bounded),
                test: learned.scores.iter().map(|&score| bounded(score) as f32).collect(),
                learn_seconds: learned.seconds,
                measured: Some(learned.measured),
                ..empty.clone()
            })
        };
        match run() {
            Ok(cell) => Some(cell),
            Err(Unscored::Failed(failure)) => {
                let measured = Some(Measured::default());
                Some(CellRecord { failure: Some(failure), measured, weights: None, ..empty.clone() })
            }
            Err(Unscored::Stopped) => None,
        }
    }

    /// The marginals for a picture of the mixture, in the first fold only.
    fn marginals(&self, mixture: &GaussianMixture) -> Option<Vec<Marginal>> {
        if self.fold != 0 {
            return None;
        }
        let axes = Axes::leading(&self.set.record.columns);
        let marginals = axes.of_mixture(mixture);
        // JSON has no infinities.
        marginals.iter().all(|marginal| marginal.is_sound(axes.names().len())).then_some(marginals)
    }

    /// The learning curve of `contender`: its mean test score after each of `row_counts` rows, of which the last is the
    /// number of training rows.
    pub fn curve(
        &mut self,
        contender: &Contender,
        tuned: Option<f64>,
        row_counts: &[usize],
    ) -> Result<Curve, LearnError> {
        let Some(&Way::Online { algorithm, structure, .. }) = contender.way() else {
            return Ok(Curve::default());
        };
        let algorithm = algorithm(tuned.unwrap_or_default(), &self.plan.settings);
        let Course { estimates, revisions } = match structure {
            Structure::Fixed | Structure::Blind => {
                let start = self.starts(structure)?.all.clone();
                Course { estimates: self.estimates(&algorithm, &start, row_counts)?, revisions: Vec::new() }
            }
            Structure::Revised | Structure::Forgetting | Structure::Constrained(_) | Structure::LearnedK => {
                self.revising(structure).course(algorithm, self.split.training(), row_counts)?
            }
        };
        let score = |(rows, mixture): &(usize, GaussianMixture)| {
            (*rows as u64, mean_score(mixture, self.split.testing()))
        };
        Ok(Curve { points: estimates.iter().map(score).collect(), revisions })
    }

    /// The mixture of a learner without revisions after each of `row_counts` rows.
    fn estimates(
        &self,
        algorithm: &Algorithm,
        start: &Start,
        row_counts: &[usize],
    ) -> Result<Vec<(usize, GaussianMixture)>, LearnError> {
        let mut pass = OnlineFit::from_start(*algorithm, start)?;
        let mut before = 0;
        let mut estimate = |&rows: &usize| {
            observe(&mut pass, self.split.training().part(before..rows))?;
            before = rows;
            Ok((rows, pass.mixture()?))
        };
        row_counts.iter().map(&mut estimate).collect()
    }

    /// Training rows.
    pub fn train_rows(&self) -> usize {
        self.split.train.nrows()
    }

    /// Rows after which the curve of a learner can begin: those that its start is fitted to. The few rows of a blind start
    /// are learned like all others, so its curve begins with the first row.
    pub fn start_rows(&self, contender: &Contender) -> usize {
        if contender.is_blind() {
            return 1;
        }
        default_start_rows(self.k, self.split.train.ncols()).min(self.train_rows())
    }

    fn learn_em(&self, structure: Structure) -> Result<CellResult, LearnError> {
        let starts = match structure {
            Structure::Fixed | Structure::Blind => PLAIN_STARTS,
            _ => self.plan.settings.em_restarts,
        };
        let learn = |rows: WeightedRows, restarts: usize| {
            let settings =
                EmSettings { restarts, covariance: structure.covariance(), ..EmSettings::default() };
            let seed = self.seed_of(structure);
            match structure {
                Structure::Fixed | Structure::Blind => fit_em_from_kmeans(rows, self.k, seed, &settings),
                Structure::Revised | Structure::Forgetting | Structure::Constrained(_) => {
                    fit_em(rows, self.k, seed, &settings)
                }
                Structure::LearnedK => fit_em_learning_k(rows, Components::DEFAULT_BOUNDS, seed, &settings),
            }
        };
        let first = learn(self.split.fitting(), starts.min(VALIDATION_RESTARTS))?;
        let (fit, learn_seconds) = timed(self.plan.repeat, || learn(self.split.training(), starts))?;
        Ok(CellResult {
            mixture: fit.mixture,
            tuned: None,
            validation: mean_score(&first.mixture, self.split.validation()),
            prequential: None,
            start_seconds: 0.0,
            learn_seconds,
            machine_seconds: None,
            health: Health::default(),
        })
    }

    fn learn_start(&mut self) -> Result<CellResult, LearnError> {
        let starts = self.starts(Structure::Fixed)?.clone();
        Ok(CellResult {
            mixture: starts.all.mixture.clone(),
            tuned: None,
            validation: mean_score(&starts.fitting.mixture, self.split.validation()),
            prequential: Some(mean_score(&starts.half.mixture, self.second_half())),
            start_seconds: starts.seconds,
            learn_seconds: starts.seconds,
            machine_seconds: None,
            health: Health::default(),
        })
    }

    /// A learner without revisions. Its parameter, if it has one, is chosen from `values`.
    fn learn_online(
        &mut self,
        values: &[f64],
        algorithm: Tunable,
        structure: Structure,
    ) -> Result<CellResult, LearnError> {
        let starts = self.starts(structure)?.clone();
        let (tuned, algorithm, validation) = self.choose(values, algorithm, &starts.fitting)?;
        let learn = || {
            let mut pass = OnlineFit::from_start(algorithm, &starts.all)?;
            observe(&mut pass, self.split.training())?;
            let begun = Instant::now();
            let mixture = pass.mixture()?;
            Ok((mixture, begun.elapsed().as_secs_f64(), pass.running_health()))
        };
        let ((mixture, merge_seconds, health), seconds) = timed(self.plan.repeat, learn)?;
        let of_shards = match algorithm {
            Algorithm::Odmm(odmm) => self.seconds_of_slowest_shard(&odmm, &starts.all)?,
            _ => None,
        };
        Ok(CellResult {
            mixture,
            tuned,
            validation,
            prequential: self.prequential(&algorithm, &starts.half)?,
            start_seconds: starts.seconds,
            learn_seconds: starts.seconds + seconds,
            machine_seconds: of_shards.map(|of_shards| starts.seconds + of_shards + merge_seconds),
            health,
        })
    }

    /// Seconds of the warm-up and the slowest shard; `None` if the warm-up takes all rows. A row takes as long with any prior, so each
    /// shard begins from the start.
    fn seconds_of_slowest_shard(
        &self,
        odmm: &OdmmSettings,
        start: &Start,
    ) -> Result<Option<f64>, LearnError> {
        let warmup = odmm.warmup.unwrap_or(start.rows).min(self.train_rows() as u64) as usize;
        let shared = self.split.training().part(0..warmup);
        let WeightedRows { rows: rest, weights } = self.split.training().part(warmup..self.train_rows());
        let seconds = |rows: WeightedRows| {
            let learn = || observe(&mut OnlineFit::from_start(Algorithm::Obmm(odmm.obmm), start)?, rows);
            Ok(timed(self.plan.repeat, learn)?.1)
        };
        let of_shard = |shard: usize| {
            let places: Vec<usize> =
                (0..rest.nrows()).filter(|&place| odmm.shard_of(place as u64) == shard).collect();
            let weights: Option<Vec<f64>> =
                weights.map(|weights| places.iter().map(|&i| weights[i]).collect());
            let rows = rest.select(Axis(0), &places);
            seconds(WeightedRows { rows: rows.view(), weights: weights.as_deref() })
        };
        if rest.is_empty() {
            return Ok(None);
        }
        let of_shards = (0..odmm.shards).map(of_shard).collect::<Result<Vec<f64>, LearnError>>()?;
        Ok(Some(seconds(shared)? + of_shards.into_iter().fold(0.0, f64::max)))
    }

    /// A learner with revisions. Each pass fits its own start. If that takes all rows, learners of the same structure learn the same
    /// mixture in the same time.
    fn learn_revised(
        &mut self,
        values: &[f64],
        algorithm: Tunable,
        structure: Structure,
    ) -> Result<CellResult, LearnError> {
        let known =
            self.of_starts.iter().find(|(known, _)| *known == structure).map(|(_, known)| known.clone());
        let candidates = self.candidates(values, algorithm);
        let (tuned, algorithm) = if known.is_some() || candidates.len() == 1 {
            candidates[0]
        } else {
            let start = self.starts(Structure::Fixed)?.fitting.clone();
            let (tuned, algorithm, _) = self.choose(values, algorithm, &start)?;
            (tuned, algorithm)
        };
        let revising = self.revising(structure);
        let train = self.split.training();
        let prequential = revising.prequential(algorithm, train, self.half())?.mean().map(bounded);
        if let Some(learned) = known {
            return Ok(CellResult { tuned, prequential, ..learned });
        }
        let fitting = revising.learn(algorithm, self.split.fitting())?;
        let validation = mean_score(&fitting.mixture, self.split.validation());
        let mut start_seconds = Vec::with_capacity(self.plan.repeat);
        let learn = || {
            let passed = revising.learn(algorithm, train)?;
            start_seconds.push(passed.start_seconds);
            Ok(passed)
        };
        let (passed, learn_seconds) = timed(self.plan.repeat, learn)?;
        let has_started = passed.has_started;
        let learned = CellResult {
            mixture: passed.mixture,
            tuned,
            validation,
            prequential,
            start_seconds: median(&start_seconds).unwrap_or(learn_seconds),
            learn_seconds,
            machine_seconds: None,
            health: passed.health,
        };
        if !has_started {
            self.of_starts.push((structure, learned.clone()));
        }
        Ok(learned)
    }

    /// A learner for each value of its parameter, or one if it has no parameter.
    fn candidates(&self, values: &[f64], algorithm: Tunable) -> Vec<(Option<f64>, Algorithm)> {
        let given = self.plan.settings.alpha;
        let values = given.as_slice().get(..1).filter(|_| values == ALPHAS).unwrap_or(values);
        let with = |tuned: Option<f64>| (tuned, algorithm(tuned.unwrap_or_default(), &self.plan.settings));
        match values {
            [] => vec![with(None)],
            _ => values.iter().map(|&value| with(Some(value))).collect(),
        }
    }

    /// The candidate that scores best on the validation rows after a pass from this start, the first of equals, and its score.
    fn choose(
        &self,
        values: &[f64],
        algorithm: Tunable,
        start: &Start,
    ) -> Result<(Option<f64>, Algorithm, f64), LearnError> {
        let mut best: Option<(Option<f64>, Algorithm, f64)> = None;
        for (tuned, algorithm) in self.candidates(values, algorithm) {
            let mut pass = OnlineFit::from_start(algorithm, start)?;
            observe(&mut pass, self.split.fitting())?;
            let score = mean_score(&pass.mixture()?, self.split.validation());
            if best.is_none_or(|best| score > best.2) {
                best = Some((tuned, algorithm, score));
            }
        }
        Ok(best.expect("every learner has at least one candidate"))
    }

    /// Passes with revisions.
    fn revising(&self, structure: Structure) -> Revising {
        let components = match structure {
            Structure::LearnedK => Components::learned(Components::DEFAULT_BOUNDS),
            _ => Components::Given(vec![self.k]),
        };
        let half_life = (structure == Structure::Forgetting).then(|| self.half_life());
        let covariance = structure.covariance();
        Revising { components, covariance, seed: self.seed_of(structure), half_life }
    }

    fn half_life(&self) -> u64 {
        let WeightedRows { rows, weights } = self.split.training();
        let all = weights.map_or(rows.nrows() as u64, |weights| weights.iter().sum::<f64>() as u64);
        self.plan.settings.half_life.unwrap_or((all / 10).max(1))
    }

    /// The seed of a learned K does not depend on the K of the other learners.
    fn seed_of(&self, structure: Structure) -> u64 {
        match structure {
            Structure::LearnedK => self.plan.start_seed(self.set, self.fold, "auto"),
            _ => self.seed,
        }
    }

    /// The prequential score of the second half. These rows are the same for all K and learners, whatever the start takes.
    fn prequential(&self, algorithm: &Algorithm, start: &Start) -> Result<Option<f64>, LearnError> {
        let mut pass = OnlineFit::from_start(*algorithm, start)?;
        observe(&mut pass, self.split.training().part(0..self.half()))?;
        pass.restart_scores();
        observe(&mut pass, self.second_half())?;
        Ok(pass.scores()[0].1.mean().map(bounded))
    }

    fn half(&self) -> usize {
        self.split.train.nrows() / 2
    }

    fn second_half(&self) -> WeightedRows<'_> {
        self.split.second_half()
    }
}

fn scores(mixture: &GaussianMixture, rows: ArrayView2<f64>) -> impl Iterator<Item = f64> {
    mixture.log_densities(rows).into_iter().map(bounded)
}

fn mean_score(mixture: &GaussianMixture, rows: WeightedRows) -> f64 {
    rows.mean_of(scores(mixture, rows.rows)).unwrap_or_default()
}

pub(super) fn observe(pass: &mut OnlineFit, rows: WeightedRows) -> Result<(), LearnError> {
    pass.observe_weighted(rows.rows, rows.weights)
}

/// JSON has no infinities: a row without density has the lowest score that a record can hold.
fn bounded(score: f64) -> f64 {
    let most = f64::from(f32::MAX);
    if score.is_nan() { -most } else { score.clamp(-most, most) }
}

#[cfg(test)]
mod tests;
