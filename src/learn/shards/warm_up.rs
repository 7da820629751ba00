//! oDMM over shards that are learned apart, by threads or by processes that exchange messages.
//!
//! The warm-up learns the first rows of the first shard. Its result is the [`CommonPrior`] of all shards. Each shard
//! learns its rows from that prior, and [`CommonPrior::merge`] merges the [`LearnedShard`]s in their order. Both types can
//! be sent as JSON without loss. The result does not depend on which process learned which shard.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use crate::data::ColumnNames;
use crate::dist::Posterior;
use crate::learn::rules::method::foreign_state;
use crate::learn::shards::merge::merge;
use crate::learn::shards::odmm::{OdmmSettings, ShardState, ShardedState, health_of_all};
use crate::learn::structure::Schedule;
use crate::learn::{
    Algorithm, CandidateState, FitSettings, FitState, Health, KeptRows, LearnError, LearnerState, OnlineFit,
    Prequential, RowSample, ScoreRanks, SeenRows, Structure,
};
use crate::stats::{BatchSums, ColumnSummary};

/// The warm-up of oDMM: a pass over the first rows of the first shard.
pub struct WarmUp {
    settings: FitSettings,
    odmm: OdmmSettings,
    fit: OnlineFit,
    rows: u64,
}

/// What all shards begin from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommonPrior {
    settings: FitSettings,
    columns: ColumnNames,
    floor: Vec<f64>,
    warmup: u64,
    candidates: Vec<CandidatePrior>,
}

/// What the shards of one K begin from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CandidatePrior {
    prior: Posterior,
    common: Posterior,
    health: Health,
    /// The identifiers of the components, and the revisions that led to them.
    structure: Option<Structure>,
}

/// What one shard has learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedShard {
    /// Rows of the shard. The first shard includes the warm-up.
    pub rows: u64,
    columns: Vec<ColumnSummary>,
    /// One for each K.
    candidates: Vec<ShardCandidate>,
    kept: Option<KeptRows>,
    seen: SeenRows,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ShardCandidate {
    shard: ShardState,
    prequential: Prequential,
    ranks: Option<ScoreRanks>,
}

impl WarmUp {
    /// Begins the warm-up.
    ///
    /// # Panics
    /// If the algorithm is not oDMM.
    pub fn new(columns: impl Into<ColumnNames>, settings: FitSettings) -> Result<Self, LearnError> {
        let Algorithm::Odmm(odmm) = settings.algorithm else { panic!("only oDMM has a warm-up") };
        // One shard takes what the start learns beyond the warm-up.
        let alone = Algorithm::Odmm(OdmmSettings { shards: 1, ..odmm });
        let fit = OnlineFit::new(columns, FitSettings { algorithm: alone, ..settings.clone() })?;
        let rows = (settings.buffered_rows(fit.dim()) as u64).max(odmm.warmup.unwrap_or(0));
        Ok(WarmUp { settings, odmm, fit, rows })
    }

    /// How many more rows the warm-up needs.
    pub fn rows_wanted(&self) -> u64 {
        self.rows - self.fit.rows()
    }

    /// The pass of the warm-up. It must not observe more than [`WarmUp::rows_wanted`] rows.
    pub fn pass(&mut self) -> &mut OnlineFit {
        &mut self.fit
    }

    /// Ends the warm-up. Returns what all shards begin from, and the pass of the first shard.
    pub fn finish(self) -> Result<(CommonPrior, OnlineFit), LearnError> {
        if !self.fit.has_started() {
            return Err(LearnError::ShortFirstShard { rows: self.fit.rows(), wanted: self.rows });
        }
        let mut state = self.fit.state()?;
        let mut common_prior = CommonPrior {
            settings: self.settings,
            columns: self.fit.columns().clone(),
            floor: state.floor.clone(),
            warmup: 0,
            candidates: Vec::with_capacity(state.candidates.len()),
        };
        for candidate in &mut state.candidates {
            let LearnerState::Sharded(warmed) = &candidate.learned else {
                unreachable!("the warm-up is learned by oDMM")
            };
            let ShardedState { prior, common, common_health, warmup, rows, shards, .. } =
                warmed.as_ref().clone();
            let structure = candidate.structure.take().map(|structure| structure.inherited());
            candidate.structure = structure.clone();
            let begun = shards.into_iter().next();
            let ShardState { posterior, health, matrix_states } =
                begun.unwrap_or_else(|| shard_state(common.clone(), Health::default()));
            common_prior.warmup = warmup.min(rows);
            common_prior.candidates.push(CandidatePrior {
                prior,
                common: common.clone(),
                health: common_health,
                structure,
            });
            candidate.learned = LearnerState::Bayes { prior: common, posterior, matrix_states };
            candidate.health = health;
        }
        let settings = common_prior.shard_settings(self.odmm);
        let first = OnlineFit::restore(settings, common_prior.columns.clone(), state)?;
        Ok((common_prior, first))
    }
}

impl CommonPrior {
    fn odmm(&self) -> Result<OdmmSettings, LearnError> {
        match self.settings.algorithm {
            Algorithm::Odmm(odmm) => Ok(odmm),
            _ => Err(foreign_state()),
        }
    }

    fn shard_settings(&self, odmm: OdmmSettings) -> FitSettings {
        FitSettings { algorithm: Algorithm::Obmm(odmm.obmm), ..self.settings.clone() }
    }

    fn new_shard(&self) -> FitState {
        let common = self.candidates.iter().map(|own| (own.common.clone(), own.structure.clone()));
        FitState::of_new_shard(&self.settings, self.floor.clone(), common)
    }

    /// Begins the pass of a shard other than the first.
    pub fn begin_shard(&self) -> Result<OnlineFit, LearnError> {
        OnlineFit::restore(self.shard_settings(self.odmm()?), self.columns.clone(), self.new_shard())
    }

    /// The result of a shard's pass over all its rows.
    pub fn learned_shard(&self, pass: &OnlineFit) -> Result<LearnedShard, LearnError> {
        // A shard without rows has learned nothing beyond the prior.
        let state = if pass.rows() == 0 { self.new_shard() } else { pass.state()? };
        let FitState { rows, columns, kept, seen, candidates, .. } = state;
        let candidates = candidates.into_iter().map(shard_candidate).collect::<Result<_, _>>()?;
        Ok(LearnedShard { rows, columns, candidates, kept, seen })
    }

    /// Merges the posteriors of the shards, in their order. Returns the finished pass of the whole run.
    pub fn merge(&self, learned: &[LearnedShard]) -> Result<OnlineFit, LearnError> {
        let shards = self.odmm()?.shards;
        let k_count = self.candidates.len();
        if learned.len() != shards || learned.iter().any(|shard| shard.candidates.len() != k_count) {
            let found = learned.len();
            return Err(LearnError::State(format!("{found} shards were learned where there are {shards}")));
        }
        let rows = learned.iter().map(|shard| shard.rows).sum();
        let mut columns = vec![ColumnSummary::default(); self.floor.len()];
        for shard in learned {
            columns.iter_mut().zip(&shard.columns).for_each(|(all, &own)| *all = all.merged(own));
        }
        let candidates = (0..k_count).map(|nth| self.merge_candidate(nth, learned, rows)).collect();
        let kept: Option<Vec<&KeptRows>> = learned.iter().map(|shard| shard.kept.as_ref()).collect();
        let kept = kept.and_then(|kept| {
            let most = kept.iter().map(|kept| kept.most()).max()?;
            KeptRows::merged(&kept, self.floor.len(), most)
        });
        let state = FitState {
            rows,
            columns,
            floor: self.floor.clone(),
            pending: None,
            pending_weights: None,
            candidates,
            shard: None,
            sample: RowSample::default(),
            seen: SeenRows::merged(learned.iter().map(|shard| (&shard.seen, shard.rows))),
            scores: BatchSums::default(),
            kept,
        };
        finish_merged(self.settings.clone(), self.columns.clone(), state)
    }

    fn merge_candidate(&self, nth: usize, learned: &[LearnedShard], rows: u64) -> CandidateState {
        let CandidatePrior { prior, common, health: common_health, structure } = &self.candidates[nth];
        let shards: Vec<&ShardCandidate> = learned.iter().map(|shard| &shard.candidates[nth]).collect();
        let posteriors: Vec<&Posterior> = shards.iter().map(|own| &own.shard.posterior).collect();
        let (posterior, merged) = merge(common, &posteriors);
        let health = health_of_all(*common_health, shards.iter().map(|own| own.shard.health), &merged);
        let scores = shards.iter().map(|own| own.prequential);
        let prequential = scores.fold(Prequential::default(), Prequential::joined);
        let learned = LearnerState::Sharded(Box::new(ShardedState {
            prior: prior.clone(),
            common: common.clone(),
            common_health: *common_health,
            common_matrix_states: Vec::new(),
            warmup: self.warmup,
            rows,
            shards: shards.iter().map(|own| own.shard.clone()).collect(),
            posterior,
            merged,
        }));
        let ranks = ScoreRanks::merged(shards.iter().map(|own| own.ranks.as_ref()));
        CandidateState { learned, prequential, health, structure: structure.clone(), ranks }
    }
}

/// Revises the mixture of merged shards on the rows that they kept. Its components are those of the common prior, whose
/// structure the state has. Returns the finished pass.
pub(crate) fn finish_merged(
    settings: FitSettings,
    columns: ColumnNames,
    mut state: FitState,
) -> Result<OnlineFit, LearnError> {
    for candidate in &mut state.candidates {
        let k = candidate.learned.k();
        let schedule = if k > 1 { Schedule::at_end_only() } else { Schedule::never() };
        let inherited = candidate.structure.take();
        let inherited = inherited.unwrap_or_else(|| Structure::new(k, Schedule::never()));
        candidate.structure = Some(Structure { schedule, ..inherited });
    }
    let mut pass = OnlineFit::restore(settings, columns, state)?;
    pass.finish(&AtomicBool::new(false))?;
    Ok(pass.finished_by_merge())
}

/// Leaves out the matrix states: they would double every message, and are computed again where they are needed.
fn shard_state(posterior: Posterior, health: Health) -> ShardState {
    ShardState { posterior, health, matrix_states: Vec::new() }
}

fn shard_candidate(candidate: CandidateState) -> Result<ShardCandidate, LearnError> {
    let CandidateState { learned, prequential, health, ranks, .. } = candidate;
    match learned {
        LearnerState::Bayes { posterior, .. } => {
            Ok(ShardCandidate { shard: shard_state(posterior, health), prequential, ranks })
        }
        _ => Err(LearnError::State("a shard is learned by oBMM".into())),
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;
    use crate::learn::ObmmSettings;

    fn rows(from: usize, to: usize) -> Array2<f64> {
        Array2::from_shape_fn((to - from, 2), |(i, j)| {
            let at = (from + i) as f64;
            (at * (0.7 + j as f64)).sin() + if (from + i).is_multiple_of(2) { 4.0 } else { 0.0 }
        })
    }

    fn settings(warmup: Option<u64>) -> FitSettings {
        let odmm = OdmmSettings { obmm: ObmmSettings::default(), shards: 3, warmup };
        FitSettings::new(Algorithm::Odmm(odmm), [1, 2]).start_rows(100)
    }

    fn learn(warmup: Option<u64>, by_message: bool) -> FitState {
        let mut warm = WarmUp::new(2, settings(warmup)).unwrap();
        let wanted = warm.rows_wanted() as usize;
        warm.pass().observe(rows(0, wanted).view()).unwrap();
        assert_eq!(warm.rows_wanted(), 0);
        let (prior, mut first) = warm.finish().unwrap();
        first.observe(rows(wanted, 400).view()).unwrap();
        let sent = serde_json::to_string(&prior).unwrap();
        let prior = if by_message { serde_json::from_str(&sent).unwrap() } else { prior };
        let mut second = prior.begin_shard().unwrap();
        second.observe(rows(400, 900).view()).unwrap();
        let third = prior.begin_shard().unwrap();
        let mut learned: Vec<LearnedShard> =
            [first, second, third].iter().map(|pass| prior.learned_shard(pass).unwrap()).collect();
        if by_message {
            let sent = serde_json::to_string(&learned).unwrap();
            learned = serde_json::from_str(&sent).unwrap();
        }
        prior.merge(&learned).unwrap().state().unwrap()
    }

    #[test]
    fn messages_lose_nothing_and_an_empty_shard_changes_nothing() {
        for warmup in [None, Some(0), Some(40), Some(250)] {
            let state = learn(warmup, false);
            assert_eq!(state, learn(warmup, true));
            assert_eq!((state.rows, state.columns[0].count), (900, 900));
            assert_eq!(state.candidates[1].prequential.rows, 800);
            // The model can be resumed.
            OnlineFit::restore(settings(warmup), 2.into(), state).unwrap();
        }
    }

    #[test]
    fn with_one_component_it_is_the_posterior_of_one_pass() {
        let one = Algorithm::Obmm(ObmmSettings::default());
        let apart = FitSettings { algorithm: one, keep_rows: Some(0), ..settings(None) };
        let mut whole = OnlineFit::new(2, apart).unwrap();
        whole.observe(rows(0, 900).view()).unwrap();
        whole.finish(&AtomicBool::new(false)).unwrap();
        let whole = whole.state().unwrap();
        for warmup in [None, Some(0), Some(250)] {
            let state = learn(warmup, false);
            let of = |state: &FitState| {
                let candidate = &state.candidates[0];
                let finished = candidate.structure.as_ref().and_then(|structure| structure.finished.as_ref());
                let posterior = finished.map_or(candidate.learned.posterior(), |f| f.estimate.posterior());
                posterior.unwrap().components()[0].clone()
            };
            let (found, expected) = (of(&state), of(&whole));
            assert!((found.kappa() / expected.kappa() - 1.0).abs() < 1e-9);
            let (found, expected) = (found.psi().matrix(), expected.psi().matrix());
            found.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-9 * 900.0, "{a} {b}"));
        }
    }

    #[test]
    fn a_first_shard_too_short_for_the_start_is_refused() {
        let mut warm = WarmUp::new(2, settings(None)).unwrap();
        warm.pass().observe(rows(0, 50).view()).unwrap();
        assert_eq!(warm.finish().err(), Some(LearnError::ShortFirstShard { rows: 50, wanted: 150 }));
    }
}
