use super::Model;
use crate::learn::{Effort, StartKind};

/// Why a model of several components has no revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRevisions {
    /// The effort is [`Effort::Fast`].
    FastEffort,
    /// The pass began from a blind start.
    BlindStart,
    /// No rows are kept.
    KeepsNoRows,
    /// The start was fitted to all rows.
    WaitsForRows,
    /// There were few rows, and the mixture was fitted to all of them.
    FittedToAll,
    /// The model is a shard, which is revised when it is merged.
    Shard,
    /// The pass began from a model without rows.
    StartedWithoutRows,
    /// None was due.
    NoneDue,
}

impl Model {
    /// Why the model has no revisions. `None` where it has some, or where there is nothing to revise.
    pub fn why_no_revisions(&self) -> Option<NoRevisions> {
        let merged = self.lineage().is_some_and(|lineage| lineage.merged.is_some());
        match self.structure() {
            _ if self.settings.online().is_none() => None,
            None => None,
            Some(structure) if structure.revisions().next().is_some() => None,
            Some(_) if self.k() == 1 => None,
            Some(_) if self.start() == StartKind::Blind => Some(NoRevisions::BlindStart),
            Some(_) if self.effort() == Effort::Fast => Some(NoRevisions::FastEffort),
            Some(_) if self.keep_rows() == Some(0) => Some(NoRevisions::KeepsNoRows),
            Some(_) if self.is_provisional() => Some(NoRevisions::WaitsForRows),
            Some(_) if self.waits_for_rows() => Some(NoRevisions::FittedToAll),
            Some(_) if self.lineage().is_some() && !merged => Some(NoRevisions::Shard),
            Some(_) if !self.keeps_rows() => Some(NoRevisions::StartedWithoutRows),
            Some(_) => Some(NoRevisions::NoneDue),
        }
    }
}
