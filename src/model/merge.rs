//! Merging models that were learned apart from a common prior.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rayon::prelude::*;

use super::file::MAX_ROWS;
use super::{Model, Recipe};
use crate::dist::Posterior;
use crate::hash::Fingerprint;
use crate::learn::{
    Algorithm, CandidateState, Components, FitSettings, FitState, Health, KeptRows, LearnError, LearnerState,
    Lineage, MergeReport, Numbered, Prequential, ScoreRanks, SeenRows, Shard, Structure, align,
    finish_merged, merge, permute,
};
use crate::remedy::Remedy;
use crate::stats::{BatchSums, ColumnSummary};

/// Why models cannot be merged.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MergeError {
    /// The prior has no posterior to grow from.
    #[error("a common prior has to be a model of obmm, and this one was made by '{0}'")]
    NotAPrior(&'static str),
    /// A model that was not learned from a common prior.
    #[error("'{0}' was not learned from a common prior")]
    NotAShard(String),
    /// A model that was learned from another prior.
    #[error("'{name}' was learned from prior {found}, not from this prior, which is {expected}")]
    OtherPrior { name: String, found: Fingerprint, expected: Fingerprint },
    /// Other columns, or in another order.
    #[error("'{0}' was learned from other columns than the prior")]
    OtherColumns(String),
    /// Another number of components.
    #[error("'{name}' has {found} components where the prior has {expected}")]
    OtherK { name: String, found: usize, expected: usize },
    /// The rows of one shard twice.
    #[error(
        "'{first}' and '{second}' have learned the same rows (shard {shard}): a retried shard counts once, leave one out"
    )]
    SameShard { first: String, second: String, shard: Fingerprint },
    /// Some shards have numbers, and this one has none or is of another number of shards.
    #[error("'{name}' is {}, but '{other}' is {}", numbering(*found), numbering(*expected))]
    OtherNumbers {
        name: String,
        /// Of how many shards it is one; `None` if it has no number.
        found: Option<u32>,
        /// The model that it differs from.
        other: String,
        /// Of how many shards that is one.
        expected: Option<u32>,
    },
    /// One number twice.
    #[error(
        "'{first}' and '{second}' are both shard {nth} of {of}: a retried shard counts once, leave one out"
    )]
    SameNumber { first: String, second: String, nth: u32, of: u32 },
    /// Counts that cannot be right.
    #[error(
        "the shards say that they have learned {rows} rows together, more than can be counted (2^53): a file is damaged"
    )]
    TooManyRows { rows: u128 },
    /// The prior cannot be learned from.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// Nothing to merge.
    #[error("there is nothing to merge: name at least one shard")]
    Nothing,
}

impl MergeError {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        match self {
            MergeError::NotAShard(_) | MergeError::OtherPrior { .. } => vec![Remedy::LearnFromPrior],
            MergeError::OtherNumbers { .. } => vec![Remedy::NumberShards],
            _ => Vec::new(),
        }
    }
}

fn numbering(of: Option<u32>) -> String {
    of.map_or("not numbered".to_string(), |of| format!("of {of} shards"))
}

/// The outcome of a merge.
#[derive(Debug, Clone)]
pub struct Merged {
    /// The merged model.
    pub model: Model,
    /// How well the shards agree.
    pub report: MergeReport,
    /// Shards whose components are in another order than those of the prior, with that order.
    pub permuted: Vec<(String, Vec<usize>)>,
}

/// How [`merge_models`] merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeOptions {
    /// Whether shards whose components are in another order than those of the prior are reordered first. Otherwise they are
    /// only listed.
    pub realign: bool,
    /// Whether the prior was learned from a sample of the shards' own rows. They count once: the prior is where the shards
    /// begin, and weighs no more than one row for each component.
    pub prior_is_a_sample: bool,
    /// Whether the result is to be merged with others. Then it is not revised, and keeps rows of the shards only, a few times as
    /// many as one of them.
    pub intermediate: bool,
    /// Whether the caller knows that no shard is given twice. Then two shards of equal rows are not refused.
    pub distinct: bool,
}

impl Model {
    /// The fingerprint that identifies this model as a common prior.
    pub fn prior_fingerprint(&self) -> Result<Fingerprint, MergeError> {
        let (posterior, _) = self.common_prior()?;
        let text = serde_json::to_vec(&(&self.columns.names, posterior))
            .expect("a posterior has only finite numbers");
        Ok(Fingerprint::of_bytes(&text))
    }

    /// The posterior that shards begin from, and how they learn.
    pub(super) fn common_prior(&self) -> Result<(&Posterior, &FitSettings), MergeError> {
        if self.half_life().is_some() {
            return Err(LearnError::ShardsForget.into());
        }
        match (&self.settings, self.posterior()) {
            (Recipe::Online(settings), Some(posterior))
                if matches!(settings.algorithm, Algorithm::Obmm(_)) =>
            {
                Ok((posterior, settings))
            }
            _ => Err(MergeError::NotAPrior(self.settings.name())),
        }
    }

    /// The posterior of a shard before any closing revision, so that its components are those of the prior.
    fn shard_posterior(&self) -> Result<&Posterior, MergeError> {
        self.own().learned.posterior().ok_or(MergeError::NotAPrior(self.settings.name()))
    }
}

/// Merges shards: the product of their posteriors over the common prior. The names of the shards are for errors.
///
/// ```
/// use gmm_bmm::{FitSettings, MergeOptions, OnlineFit, merge_models};
/// use ndarray::{Array2, Axis};
///
/// let rows = Array2::from_shape_fn((9000, 1), |(i, _)| ((i % 3) * 20 + (i * 7) % 11) as f64 + i as f64 / 1e5);
/// let (first, rest) = rows.view().split_at(Axis(0), 5000);
/// let mut pass = OnlineFit::new(1, FitSettings::obmm(3))?;
/// pass.observe(first)?;
/// let prior = pass.to_model()?;
///
/// let mut shards = Vec::new();
/// for (i, part) in rest.axis_chunks_iter(Axis(0), 2000).enumerate() {
///     let mut shard = prior.begin_shard()?;
///     shard.observe(part)?;
///     shards.push((format!("shard {i}"), shard.to_model()?));
/// }
/// let merged = merge_models(&prior, &shards, MergeOptions::default())?.model;
/// assert_eq!((merged.k(), merged.rows()), (3, 4000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn merge_models(
    prior: &Model,
    shards: &[(String, Model)],
    options: MergeOptions,
) -> Result<Merged, MergeError> {
    let expected = prior.prior_fingerprint()?;
    check_belonging(prior, shards, expected, options.distinct)?;
    let numbered = check_numbers(shards)?;
    let rows = count_rows(shards)?;
    // In a fixed order, so that the result does not depend on the order of the arguments.
    let mut shards: Vec<&(String, Model)> = shards.iter().collect();
    shards.sort_by(|(_, a), (_, b)| a.lineage().map(|l| &l.shards).cmp(&b.lineage().map(|l| &l.shards)));
    let shards = shards.as_slice();
    let (common, settings) = prior.common_prior()?;
    let own = shards.iter().map(|(_, shard)| shard.shard_posterior()).collect::<Result<Vec<_>, _>>()?;
    let orders: Vec<Vec<usize>> = own.par_iter().map(|own| align(common, own)).collect();
    let mut permuted = Vec::new();
    let mut posteriors = Vec::with_capacity(shards.len());
    for (((name, _), own), order) in shards.iter().zip(own).zip(orders) {
        let in_order = order.iter().copied().eq(0..order.len());
        posteriors.push(if in_order || !options.realign { own.clone() } else { permute(own, &order) });
        if !in_order {
            permuted.push((name.clone(), order));
        }
    }
    if options.prior_is_a_sample {
        posteriors.push(common.weakened());
    }
    let (posterior, report) = merge(common, &posteriors.iter().collect::<Vec<_>>());
    let lineage = joined_lineage(prior, shards, expected, numbered, &report, options);
    let scores = shards.iter().map(|(_, shard)| shard.own().prequential);
    let mut health = shards.iter().fold(Health::default(), |sum, (_, shard)| sum + shard.own().health);
    health.components_damped = report.damped();
    let merged = CandidateState {
        learned: LearnerState::Bayes { prior: common.clone(), posterior, matrix_states: Vec::new() },
        prequential: scores.fold(Prequential::default(), Prequential::joined),
        health,
        structure: prior.structure().map(Structure::inherited),
        ranks: ScoreRanks::merged(shards.iter().map(|(_, shard)| shard.own().ranks.as_ref())),
    };
    let mut settings = settings.clone();
    if let Components::Given(_) = settings.components {
        settings.components = merged.learned.k().into();
    }
    let state = FitState {
        rows,
        columns: merged_columns(prior, shards),
        floor: prior.state.floor.clone(),
        pending: None,
        pending_weights: None,
        candidates: vec![merged],
        shard: Some(Shard { lineage, rows: Fingerprint::default() }),
        sample: prior.state.sample.clone(),
        seen: SeenRows::merged(shards.iter().map(|(_, shard)| (&shard.state.seen, shard.state.rows))),
        scores: BatchSums::default(),
        kept: joined_rows(prior, shards, options),
    };
    let mut model = Model {
        settings: Recipe::Online(settings),
        best: 0,
        state,
        checkpoint: None,
        curve: Vec::new(),
        ..prior.clone()
    };
    if !options.intermediate {
        finish(&mut model);
    }
    Ok(Merged { model, report, permuted })
}

fn joined_lineage(
    prior: &Model,
    shards: &[&(String, Model)],
    expected: Fingerprint,
    numbered: Option<Numbered>,
    report: &MergeReport,
    options: MergeOptions,
) -> Lineage {
    let lineages = || shards.iter().filter_map(|(_, shard)| shard.lineage());
    let mut parts: Vec<Fingerprint> = lineages().flat_map(|lineage| lineage.shards.iter().copied()).collect();
    parts.sort_unstable();
    // The rows of a prior that is a sample are found among those of the shards, as they should be.
    let watched = |_: &&Lineage| !options.prior_is_a_sample;
    let repeated: BTreeSet<Fingerprint> =
        lineages().filter(watched).flat_map(|lineage| lineage.prior_repeated.iter().copied()).collect();
    let sample = if options.prior_is_a_sample { &[] } else { prior.state.sample.keys() };
    Lineage {
        prior: expected,
        prior_rows: prior.state.rows,
        shards: parts,
        prior_sample: sample.to_vec(),
        prior_repeated: repeated.into_iter().collect(),
        numbered,
        merged: Some(report.clone()),
    }
}

/// An intermediate merge keeps at most this many times as many rows as a shard.
const MAX_SHARDS_KEPT: usize = 4;

/// Rows kept by the prior and the shards, in proportion to the rows each has learned. `None` if one of them keeps none.
fn joined_rows(prior: &Model, shards: &[&(String, Model)], options: MergeOptions) -> Option<KeptRows> {
    let dim = prior.columns.len();
    let own = prior.state.kept.as_ref()?;
    let mut kept: Vec<&KeptRows> =
        shards.iter().map(|(_, shard)| shard.state.kept.as_ref()).collect::<Option<_>>()?;
    let most = kept.iter().map(|kept| kept.most()).max().unwrap_or(0);
    if options.intermediate {
        return KeptRows::merged(&kept, dim, most.saturating_mul(MAX_SHARDS_KEPT.min(kept.len())));
    }
    if options.prior_is_a_sample {
        return Some(KeptRows::merged(&kept, dim, own.most())?.filled_from(own, dim, own.most()));
    }
    kept.insert(0, own);
    KeptRows::merged(&kept, dim, most.max(own.most()))
}

/// Revises the merged mixture on the kept rows of all shards. The merged posterior stays as it is, so that the model can be
/// resumed, or merged with more shards.
fn finish(model: &mut Model) {
    let Some((settings, columns, state)) = model.clone().into_state() else { return };
    let Ok(state) = finish_merged(settings, columns, state).and_then(|pass| pass.state()) else { return };
    model.state.candidates[0].structure =
        state.candidates.into_iter().next().and_then(|candidate| candidate.structure);
}

fn check_belonging(
    prior: &Model,
    shards: &[(String, Model)],
    expected: Fingerprint,
    distinct: bool,
) -> Result<(), MergeError> {
    if shards.is_empty() {
        return Err(MergeError::Nothing);
    }
    let k = prior.common_prior()?.0.k();
    let mut seen: Vec<(Fingerprint, &str)> = Vec::new();
    let mut known = HashSet::new();
    for (name, shard) in shards {
        let Some(lineage) = shard.lineage() else { return Err(MergeError::NotAShard(name.clone())) };
        if lineage.prior != expected {
            return Err(MergeError::OtherPrior { name: name.clone(), found: lineage.prior, expected });
        }
        if shard.columns.names != prior.columns.names {
            return Err(MergeError::OtherColumns(name.clone()));
        }
        if shard.k() != k {
            return Err(MergeError::OtherK { name: name.clone(), found: shard.k(), expected: k });
        }
        for &fingerprint in &lineage.shards {
            if !known.insert(fingerprint) && !distinct {
                let first = seen.iter().find(|(other, _)| *other == fingerprint).map_or("", |(_, name)| name);
                return Err(MergeError::SameShard {
                    first: first.to_string(),
                    second: name.clone(),
                    shard: fingerprint,
                });
            }
            seen.push((fingerprint, name));
        }
    }
    Ok(())
}

/// Checks that either all shards are numbered or none, and that no number occurs twice. Returns all numbers.
fn check_numbers(shards: &[(String, Model)]) -> Result<Option<Numbered>, MergeError> {
    let of = |model: &Model| model.lineage().and_then(|lineage| lineage.numbered.clone());
    let Some((first, model)) = shards.first() else { return Ok(None) };
    let expected = of(model).map(|numbered| numbered.of);
    let mut owners: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, model) in shards {
        let numbered = of(model);
        let found = numbered.as_ref().map(|numbered| numbered.of);
        if found != expected {
            let (name, other) = (name.clone(), first.clone());
            return Err(MergeError::OtherNumbers { name, found, other, expected });
        }
        for nth in numbered.iter().flat_map(|numbered| numbered.shards.iter().copied()) {
            if let Some(first) = owners.insert(nth, name) {
                let (first, second, of) = (first.to_string(), name.clone(), found.unwrap_or(0));
                return Err(MergeError::SameNumber { first, second, nth, of });
            }
        }
    }
    Ok(expected.map(|of| Numbered { of, shards: owners.into_keys().collect() }))
}

/// The number of rows of all shards.
fn count_rows(shards: &[(String, Model)]) -> Result<u64, MergeError> {
    let rows: u128 = shards.iter().map(|(_, shard)| u128::from(shard.state.rows)).sum();
    u64::try_from(rows).ok().filter(|rows| *rows <= MAX_ROWS).ok_or(MergeError::TooManyRows { rows })
}

fn merged_columns(prior: &Model, shards: &[&(String, Model)]) -> Vec<ColumnSummary> {
    let merged = |j: usize| {
        let parts = shards.iter().map(|(_, shard)| shard.state.columns[j]);
        parts.fold(ColumnSummary::default(), ColumnSummary::merged)
    };
    (0..prior.columns.len()).map(merged).collect()
}
