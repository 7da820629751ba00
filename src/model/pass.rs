//! From a pass to its model, and back.

use super::{CurvePoint, MergeError, Model, ModelError, Recipe};
use crate::hash::Fingerprint;
use crate::learn::{
    CandidateState, Components, FitSettings, FitState, LearnError, Lineage, OnlineFit, Shard, StartKind,
    Structure,
};

/// What a checkpoint holds in addition to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Of the rows of the data that were read before it was saved.
    pub rows: Fingerprint,
    /// The learning curve so far, where one is traced.
    pub curve: Vec<CurvePoint>,
}

impl OnlineFit {
    /// The model of the pass as it is now, to be written to a file, scored with or resumed. It contains the mixture at the
    /// end of the stream if [`OnlineFit::finish`] was called since the last row.
    pub fn to_model(&self) -> Result<Model, LearnError> {
        Ok(self.model_of(self.state()?))
    }

    /// The model as a checkpoint, which [`Model::resume_checkpoint`] resumes in the middle of its data.
    pub fn to_checkpoint(&self, checkpoint: Checkpoint) -> Result<Model, LearnError> {
        let model = self.model_of(self.running_state()?);
        Ok(Model { checkpoint: Some(checkpoint.rows), curve: checkpoint.curve, ..model })
    }

    /// The K with the best prequential score, and the others as its rivals.
    fn model_of(&self, state: FitState) -> Model {
        let settings = self.settings();
        Model {
            start: settings.start,
            start_rows: settings.start_rows,
            effort: settings.effort,
            learns_k: match settings.components {
                Components::Given(_) => None,
                Components::Learned { least, most } => Some([least, most]),
            },
            keep_rows: settings.keep_rows,
            half_life: settings.half_life,
            ..Model::new(Recipe::Online(settings.algorithm), settings.seed, state, self.columns())
        }
    }
}

impl Model {
    /// Resumes the pass that this model was saved from. It gives the bits of a pass that never stopped.
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, Model, OnlineFit};
    /// # let rows = ndarray::Array2::from_shape_fn((900, 1), |(i, _)| ((i % 3) * 20 + (i * 7) % 11) as f64);
    /// # let mut pass = OnlineFit::new(["x"], FitSettings::obmm([3]))?;
    /// # pass.observe(rows.view())?;
    /// # let mut file = Vec::new();
    /// # pass.to_model()?.write(&mut file)?;
    /// let mut resumed = Model::read(file.as_slice())?.resume()?;
    /// resumed.observe(rows.view())?;
    /// assert_eq!(resumed.rows(), 1800);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::NotOnline`] if no online learner made this model.
    pub fn resume(self) -> Result<OnlineFit, ModelError> {
        let (algorithm, columns) = (self.algorithm, self.column_names());
        let (settings, state) = self.into_state().ok_or(ModelError::NotOnline(algorithm.name()))?;
        Ok(OnlineFit::restore(settings, columns, state)?)
    }

    /// Resumes the pass that was under way when this model was saved as its checkpoint.
    ///
    /// # Errors
    /// [`ModelError::NotACheckpoint`] if it was not saved as one.
    pub fn resume_checkpoint(mut self) -> Result<(OnlineFit, Checkpoint), ModelError> {
        let rows = self.checkpoint.ok_or(ModelError::NotACheckpoint)?;
        let checkpoint = Checkpoint { rows, curve: std::mem::take(&mut self.curve) };
        let columns = self.column_names();
        let (settings, mut state) = self.into_state().ok_or(ModelError::NotACheckpoint)?;
        // The rows since the pass began belong to the shard that it still learns.
        if let Some(shard) = &mut state.shard
            && let Some(own) = shard.lineage.shards.pop()
        {
            shard.rows = own;
        }
        Ok((OnlineFit::restore(settings, columns, state)?, checkpoint))
    }

    /// Begins a pass over one shard, with this model as the common prior. [`merge_models`](super::merge_models) merges the
    /// models of the shards.
    pub fn begin_shard(&self) -> Result<OnlineFit, MergeError> {
        self.begin_shard_keeping(self.keep_rows)
    }

    /// [`Model::begin_shard`] for a shard that keeps another number of rows for the revision of the merged mixture: fewer make
    /// its model smaller.
    pub fn begin_shard_keeping(&self, keep_rows: Option<usize>) -> Result<OnlineFit, MergeError> {
        let (prior, algorithm) = self.common_prior()?;
        let settings = FitSettings {
            gaps: false,
            algorithm,
            components: Components::Given(vec![prior.k()]),
            seed: self.seed,
            start: StartKind::Fitted,
            start_rows: self.start_rows,
            effort: self.effort,
            keep_rows,
            half_life: None,
        };
        let floor = self.columns.iter().map(|column| column.floor).collect();
        // The history of the prior is in its own file.
        let inherited = self.structure.as_ref().map(Structure::inherited);
        let structure = inherited.map(|inherited| Structure { history: Vec::new(), ..inherited });
        let mut state = FitState::of_new_shard(&settings, floor, [(prior.clone(), structure)]);
        let lineage = Lineage {
            prior: self.prior_fingerprint()?,
            prior_rows: self.rows,
            shards: Vec::new(),
            prior_sample: self.sample.keys().to_vec(),
            prior_repeated: Vec::new(),
            numbered: None,
            merged: None,
        };
        state.shard = Some(Shard { lineage, rows: Fingerprint::default() });
        Ok(OnlineFit::restore(settings, self.column_names(), state)?)
    }

    /// The pass that this model came from. `None` if no online learner made it.
    pub(super) fn into_state(self) -> Option<(FitSettings, FitState)> {
        let own = CandidateState {
            learned: self.learned,
            prequential: self.prequential,
            health: self.health,
            structure: self.structure,
            ranks: self.ranks,
        };
        let mut candidates = self.rivals;
        candidates.push(own);
        candidates.sort_by_key(|candidate| candidate.learned.k());
        let settings = FitSettings {
            // As before: a column with gaps has fewer values than there are rows.
            gaps: self.columns.iter().any(|column| column.summary.count < self.rows),
            algorithm: self.algorithm.online()?,
            components: match self.learns_k {
                Some([least, most]) => Components::Learned { least, most },
                None => Components::Given(candidates.iter().map(|c| c.learned.k()).collect()),
            },
            seed: self.seed,
            start: self.start,
            start_rows: self.start_rows,
            effort: self.effort,
            keep_rows: self.keep_rows,
            half_life: self.half_life,
        };
        let state = FitState {
            rows: self.rows,
            columns: self.columns.iter().map(|column| column.summary).collect(),
            floor: self.columns.iter().map(|column| column.floor).collect(),
            pending: self.pending,
            candidates,
            // Rows that are learned from now on are a shard of their own.
            shard: self.lineage.map(|lineage| Shard { lineage, rows: Fingerprint::default() }),
            sample: self.sample,
            seen: self.seen,
            scores: self.scores.unwrap_or_default(),
            kept: self.kept,
        };
        Some((settings, state))
    }
}
