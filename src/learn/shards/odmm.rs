//! oDMM: shards that learn apart from the posterior of a common warm-up and are merged by the product of posteriors over it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

use crate::dist::{GaussianMixture, Posterior};
use crate::learn::kernel::MatrixState;
use crate::learn::rules::method::foreign_state;
use crate::learn::shards::merge::{MergeReport, merge};
use crate::learn::{
    Health, LearnError, LearnerState, Method, ObmmSettings, OnlineLearner, Prequential, Revised, Rows,
    ScoreSink, Start,
};

/// Settings of oDMM.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OdmmSettings {
    /// How each shard learns.
    pub obmm: ObmmSettings,
    /// The number of shards. The result depends on it, but not on the number of threads.
    pub shards: usize,
    /// Rows of the warm-up, which all shards begin from. `None` is the rows of the start, 0 is the paper's set-up.
    pub warmup: Option<u64>,
}

impl Default for OdmmSettings {
    fn default() -> Self {
        OdmmSettings { obmm: ObmmSettings::default(), shards: 5, warmup: None }
    }
}

/// The state of one shard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardState {
    /// Its posterior.
    pub posterior: Posterior,
    /// Safeguards that triggered.
    pub health: Health,
    /// The states of its components' matrices. Computed again if there are none.
    #[serde(rename = "working", default, skip_serializing_if = "Vec::is_empty")]
    pub matrix_states: Vec<MatrixState>,
}

/// The state of oDMM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardedState {
    /// The prior of the warm-up.
    pub prior: Posterior,
    /// The posterior of the warm-up: the common prior of the shards.
    pub common: Posterior,
    /// During the warm-up, the states of its components' matrices.
    #[serde(rename = "common_working", default, skip_serializing_if = "Vec::is_empty")]
    pub common_matrix_states: Vec<MatrixState>,
    /// Safeguards that triggered in the warm-up.
    pub common_health: Health,
    /// Rows of the warm-up.
    pub warmup: u64,
    /// Rows learned, warm-up included.
    pub rows: u64,
    /// The shards; none during the warm-up.
    pub shards: Vec<ShardState>,
    /// The merged posterior.
    pub posterior: Posterior,
    /// How well the shards agree.
    pub merged: MergeReport,
}

impl OdmmSettings {
    /// The shard that learns a row, by the number of rows after the warm-up and before it.
    pub(crate) fn shard_of(&self, place: u64) -> usize {
        (place / DEAL % self.shards as u64) as usize
    }
}

impl ShardedState {
    /// The state before the first row.
    pub(in crate::learn) fn begin(prior: Posterior, settings: &OdmmSettings, start_rows: u64) -> Self {
        ShardedState {
            common: prior.clone(),
            common_matrix_states: Vec::new(),
            common_health: Health::default(),
            warmup: settings.warmup.unwrap_or(start_rows),
            rows: 0,
            shards: Vec::new(),
            posterior: prior.clone(),
            merged: MergeReport::default(),
            prior,
        }
    }
}

impl Method for OdmmSettings {
    const NAME: &'static str = "odmm";
    const SUMMARY: &'static str = "oBMM on shards, learned in parallel and merged";

    fn check(&self) -> Result<(), LearnError> {
        if !(1..=MAX_SHARDS).contains(&self.shards) {
            return Err(LearnError::Setting {
                name: "shards",
                must: "from 1 to 65535",
                value: self.shards as f64,
            });
        }
        self.obmm.check()
    }

    fn begin(&self, start: &Start) -> LearnerState {
        let prior = start.prior();
        LearnerState::Sharded(Box::new(ShardedState::begin(prior, self, start.rows)))
    }

    fn revise(&self, before: Option<&LearnerState>, revised: &Revised) -> Option<LearnerState> {
        let mut state = ShardedState::begin(revised.prior.clone(), self, revised.rows);
        if before.is_some() || state.warmup < revised.rows {
            return None;
        }
        state.common = revised.posterior_after(None);
        state.posterior = state.common.clone();
        state.common_health = revised.health;
        state.rows = revised.rows;
        Some(LearnerState::Sharded(Box::new(state)))
    }

    fn makes(state: &LearnerState) -> bool {
        matches!(state, LearnerState::Sharded(_))
    }

    /// The state of each shard has its own counters, so `_health` is not used.
    fn learner(
        &self,
        state: LearnerState,
        floor: Vec<f64>,
        _health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError> {
        let LearnerState::Sharded(state) = state else { return Err(foreign_state()) };
        if !state.shards.is_empty() && state.shards.len() != self.shards {
            let found = state.shards.len();
            return Err(LearnError::State(format!(
                "it has {found} shards, the settings say {}",
                self.shards
            )));
        }
        let ShardedState { prior, common, common_matrix_states, common_health, warmup, rows, shards, .. } =
            *state;
        let warming =
            self.obmm.restore(Arc::new(prior), &common, &common_matrix_states, floor.clone(), common_health);
        drop(common_matrix_states);
        let common = Arc::new(common);
        // Each state is freed before the next shard is made, so that only one is in memory twice.
        let restore = |ShardState { posterior, health, matrix_states }| {
            self.obmm.restore(Arc::clone(&common), &posterior, &matrix_states, floor.clone(), health)
        };
        let shards = shards.into_iter().map(restore).collect();
        Ok(Box::new(Odmm { settings: *self, floor, warming, warmup, rows, shards, merged: OnceLock::new() }))
    }

    fn describe(&self) -> String {
        format!("oDMM ({} shards)", self.shards)
    }
}

/// The most shards.
const MAX_SHARDS: usize = 65_535;
/// Rows that are dealt to a shard at a time.
const DEAL: u64 = 64;
/// Rows of a shard that a worker learns before it takes another shard. Small enough to keep all workers busy with few
/// shards.
const PIECE: usize = 64;

#[derive(Debug)]
struct Odmm {
    settings: OdmmSettings,
    floor: Vec<f64>,
    /// Learns the warm-up. Afterwards it holds the common prior.
    warming: Box<dyn OnlineLearner>,
    warmup: u64,
    rows: u64,
    shards: Vec<Box<dyn OnlineLearner>>,
    /// The merged shards, computed when needed and discarded by the next row.
    merged: OnceLock<(Posterior, MergeReport)>,
}

/// The rows of a block that belong to one shard.
struct ShardRows<'a> {
    shard: &'a mut Box<dyn OnlineLearner>,
    /// Rows, their weights, and their positions in the block.
    rows: VecDeque<(&'a [f64], f64, usize)>,
}

impl Odmm {
    /// Makes the shards, which begin from the common prior.
    fn make_shards(&mut self) {
        let common = Arc::new(posterior_of(self.warming.as_ref()));
        let shard = |_| {
            let floor = self.floor.clone();
            self.settings.obmm.restore(Arc::clone(&common), &common, &[], floor, Health::default())
        };
        self.shards = (0..self.settings.shards).map(shard).collect();
    }

    /// Deals rows after the warm-up to the shards, which learn them. Returns the evidence of each row.
    fn deal<'a>(&mut self, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Vec<Option<f64>> {
        if self.shards.is_empty() {
            self.make_shards();
        }
        let first = self.rows - self.warmup;
        let mut queued: Vec<ShardRows> =
            self.shards.iter_mut().map(|shard| ShardRows { shard, rows: VecDeque::new() }).collect();
        let mut dealt = 0;
        for (place, (row, weight)) in rows.enumerate() {
            queued[self.settings.shard_of(first + place as u64)].rows.push_back((row, weight, place));
            dealt = place + 1;
        }
        self.rows += dealt as u64;
        let mut evidence = vec![None; dealt];
        for (place, seen) in learn_in_parallel(queued) {
            evidence[place] = seen;
        }
        evidence
    }

    fn merged(&self) -> &(Posterior, MergeReport) {
        self.merged.get_or_init(|| {
            let common = posterior_of(self.warming.as_ref());
            if self.shards.is_empty() {
                return (common, MergeReport::default());
            }
            let posteriors: Vec<_> = self.shards.iter().map(|shard| posterior_of(shard.as_ref())).collect();
            merge(&common, &posteriors.iter().collect::<Vec<_>>())
        })
    }
}

/// Safeguards that triggered in the warm-up, in the shards, and in the merge.
pub(in crate::learn) fn health_of_all(
    common: Health,
    shards: impl Iterator<Item = Health>,
    merged: &MergeReport,
) -> Health {
    Health { components_damped: merged.damped(), ..shards.fold(common, |sum, health| sum + health) }
}

/// Workers take a shard from the queue, learn a piece of its rows, and append it to the queue. The rows of a shard are
/// learned in order, so the result does not depend on the number of workers.
fn learn_in_parallel(queued: Vec<ShardRows>) -> Vec<(usize, Option<f64>)> {
    let queue = Mutex::new(queued.into_iter().filter(|turn| !turn.rows.is_empty()).collect::<VecDeque<_>>());
    let results = Mutex::new(Vec::new());
    let next = || queue.lock().expect("no worker panics").pop_front();
    rayon::scope(|scope| {
        for _ in 0..rayon::current_num_threads() {
            scope.spawn(|_| {
                while let Some(mut turn) = next() {
                    let piece = turn.rows.len().min(PIECE);
                    let rows = turn.rows.drain(..piece);
                    let mut learn = |(row, weight, place)| (place, observe(turn.shard.as_mut(), row, weight));
                    let seen: Vec<_> = rows.map(&mut learn).collect();
                    results.lock().expect("no worker panics").extend(seen);
                    if !turn.rows.is_empty() {
                        queue.lock().expect("no worker panics").push_back(turn);
                    }
                }
            });
        }
    });
    results.into_inner().expect("no worker panics")
}

/// Learns one row. Returns its log-density before it is learned, or `None` if it is skipped.
fn observe(learner: &mut dyn OnlineLearner, row: &[f64], weight: f64) -> Option<f64> {
    if weight == 1.0 {
        return learner.observe(row);
    }
    let mut score = Prequential::default();
    learner.observe_block(Rows::new(row, row.len()).with_weights(Some(&[weight])), &mut score);
    score.mean()
}

fn posterior_of(learner: &dyn OnlineLearner) -> Posterior {
    match learner.state() {
        LearnerState::Bayes { posterior, .. } => posterior,
        _ => unreachable!("the learners of oDMM are oBMM"),
    }
}

impl OnlineLearner for Odmm {
    fn observe_block(&mut self, rows: Rows, score: &mut dyn ScoreSink) {
        self.observe_parts(&[rows], score);
    }

    /// Shards get the rows of all parts at once, so that none waits for another.
    fn observe_parts(&mut self, parts: &[Rows], score: &mut dyn ScoreSink) -> Vec<f64> {
        self.merged.take();
        let (mut totals, mut apart) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        for rows in parts {
            let warm = self.warmup.saturating_sub(self.rows) as usize;
            let (shared, rest) = rows.split_at(warm);
            self.warming.observe_block(shared, score);
            self.rows += shared.count() as u64;
            totals.push(score.log_likelihood());
            apart.push(rest);
        }
        if apart.iter().all(Rows::is_empty) {
            return totals;
        }
        // Scores are added in the order of the rows, not in the order of learning.
        let mut evidence = self.deal(apart.iter().flat_map(|rows| rows.iter())).into_iter();
        for (total, rows) in totals.iter_mut().zip(&apart).filter(|(_, rows)| !rows.is_empty()) {
            for ((_, weight), seen) in rows.iter().zip(evidence.by_ref()) {
                let Some(seen) = seen else { continue };
                score.add(&[seen], (weight != 1.0).then_some(&[weight]));
            }
            *total = score.log_likelihood();
        }
        totals
    }

    fn shard_rows(&self) -> Vec<u64> {
        let dealt = self.rows.saturating_sub(self.warmup);
        let round = DEAL * self.settings.shards as u64;
        let of_shard =
            |shard: u64| dealt / round * DEAL + (dealt % round).saturating_sub(shard * DEAL).min(DEAL);
        (0..self.settings.shards as u64).map(of_shard).collect()
    }

    fn estimate(&self) -> GaussianMixture {
        self.merged().0.point_estimate()
    }

    fn state(&self) -> LearnerState {
        let LearnerState::Bayes { prior, posterior: common, matrix_states: common_matrix_states } =
            self.warming.state()
        else {
            unreachable!("the warm-up is oBMM")
        };
        let (posterior, merged) = self.merged().clone();
        let state_of = |shard: &dyn OnlineLearner| {
            let LearnerState::Bayes { posterior, matrix_states, .. } = shard.state() else {
                unreachable!("the shards are oBMM")
            };
            ShardState { posterior, health: shard.health(), matrix_states }
        };
        LearnerState::Sharded(Box::new(ShardedState {
            prior,
            common,
            common_matrix_states,
            common_health: self.warming.health(),
            warmup: self.warmup,
            rows: self.rows,
            shards: self.shards.iter().map(|shard| state_of(shard.as_ref())).collect(),
            posterior,
            merged,
        }))
    }

    /// The merged posterior alone: the states of the shards would take as much memory each.
    fn state_to_revise(&self) -> LearnerState {
        let prior = posterior_of(self.warming.as_ref());
        LearnerState::Bayes { prior, posterior: self.merged().0.clone(), matrix_states: Vec::new() }
    }

    fn health(&self) -> Health {
        let shards = self.shards.iter().map(|shard| shard.health());
        health_of_all(self.warming.health(), shards, &self.merged().1)
    }
}
