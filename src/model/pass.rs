//! From a pass to its model, and back.

use super::{CurvePoint, MergeError, Model, ModelError, Recipe};
use crate::data::ColumnNames;
use crate::hash::Fingerprint;
use crate::learn::{
    Finding, FitSettings, FitState, LearnError, Lineage, OnlineFit, Shard, StartKind, Structure,
    find_discrete_columns, find_odd_values,
};

/// What a checkpoint holds in addition to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The fingerprint of the rows that were read before it was saved.
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

    fn model_of(&self, state: FitState) -> Model {
        Model::new(Recipe::Online(self.settings().clone()), state, self.columns().clone())
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
        let name = self.settings.name();
        let (settings, columns, state) = self.into_state().ok_or(ModelError::NotOnline(name))?;
        Ok(OnlineFit::restore(settings, columns, state)?)
    }

    /// Resumes the pass that was under way when this model was saved as its checkpoint.
    ///
    /// # Errors
    /// [`ModelError::NotACheckpoint`] if it was not saved as one.
    pub fn resume_checkpoint(mut self) -> Result<(OnlineFit, Checkpoint), ModelError> {
        let rows = self.checkpoint.ok_or(ModelError::NotACheckpoint)?;
        let checkpoint = Checkpoint { rows, curve: std::mem::take(&mut self.curve) };
        let (settings, columns, mut state) = self.into_state().ok_or(ModelError::NotACheckpoint)?;
        // The rows since the pass began belong to the shard that it still learns.
        if let Some(shard) = &mut state.shard
            && let Some(own) = shard.lineage.shards.pop()
        {
            shard.rows = own;
        }
        Ok((OnlineFit::restore(settings, columns, state)?, checkpoint))
    }

    /// What a user should know about the data, as far as the model tells it. A pass that is under way knows more:
    /// [`OnlineFit::findings`].
    pub fn findings(&self) -> Vec<Finding> {
        let (kept, names) = (self.kept_rows(), self.column_names().names);
        let rows = kept.view();
        let mut found: Vec<Finding> = find_discrete_columns(rows, &names)
            .filter(|_| !self.settings.dequantize().is_on())
            .into_iter()
            .collect();
        // The rows are a sample, so how often a value occurs in them says little.
        let of_columns = |finding: &Finding| !matches!(finding, Finding::Sentinel { .. });
        found.extend(find_odd_values(rows, &names).into_iter().filter(of_columns));
        let of_pass = self.clone().resume().map(|pass| pass.findings()).unwrap_or_default();
        found.extend(of_pass.into_iter().filter(|finding| !found.contains(finding)).collect::<Vec<_>>());
        found
    }

    /// Begins a pass over one shard, with this model as the common prior. [`merge_models`](super::merge_models) merges the
    /// models of the shards.
    pub fn begin_shard(&self) -> Result<OnlineFit, MergeError> {
        self.begin_shard_keeping(self.keep_rows())
    }

    /// [`Model::begin_shard`] for a shard that keeps another number of rows for the revision of the merged mixture: fewer make
    /// its model smaller.
    pub fn begin_shard_keeping(&self, keep_rows: Option<usize>) -> Result<OnlineFit, MergeError> {
        let (prior, settings) = self.common_prior()?;
        let settings = FitSettings {
            components: prior.k().into(),
            start: StartKind::Fitted,
            keep_rows,
            half_life: None,
            dequantize: self.decided_dequantize(),
            gaps: false,
            ..settings.clone()
        };
        let floor = self.state.floor.clone();
        // The history of the prior is in its own file.
        let inherited = self.structure().map(Structure::inherited);
        let structure = inherited.map(|inherited| Structure { history: Vec::new(), ..inherited });
        let mut state = FitState::of_new_shard(&settings, floor, [(prior.clone(), structure)]);
        let lineage = Lineage {
            prior: self.prior_fingerprint()?,
            prior_rows: self.state.rows,
            shards: Vec::new(),
            prior_sample: self.state.sample.keys().to_vec(),
            prior_repeated: Vec::new(),
            numbered: None,
            merged: None,
        };
        state.shard = Some(Shard { lineage, rows: Fingerprint::default() });
        Ok(OnlineFit::restore(settings, self.column_names(), state)?)
    }

    /// The pass that this model came from. `None` if no online learner made it.
    pub(super) fn into_state(self) -> Option<(FitSettings, ColumnNames, FitState)> {
        let gaps = self.has_gaps();
        match self.settings {
            Recipe::Online(settings) => Some((FitSettings { gaps, ..settings }, self.columns, self.state)),
            Recipe::Em { .. } | Recipe::Truth { .. } => None,
        }
    }
}
