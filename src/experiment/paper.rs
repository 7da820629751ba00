//! The paper's figures, as the records hold them.

use serde::{Deserialize, Serialize};

use super::record::DataRecord;
use crate::data::{Catalogue, PaperTriple, Published, Units};

/// What the paper reports for a data set: nothing if the set is not one of the paper's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PaperRecord {
    /// The units of `scores`.
    pub units: Option<Units>,
    /// Mean test log-likelihoods.
    pub scores: PaperColumns,
    /// Seconds of learning.
    pub seconds: PaperColumns,
    /// What another publication reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

/// One figure of the paper for each of its learners.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PaperColumns {
    /// Online EM.
    pub oem: Option<f64>,
    /// Online Bayesian Moment Matching.
    pub obmm: Option<f64>,
    /// Online distributed Moment Matching.
    pub odmm: Option<f64>,
}

impl From<PaperTriple> for PaperColumns {
    fn from(row: PaperTriple) -> Self {
        PaperColumns { oem: Some(row.oem), obmm: Some(row.obmm), odmm: Some(row.odmm) }
    }
}

/// What the paper reports for a data set, if the catalogue has it with as many columns.
pub(super) fn paper_figures(data: &DataRecord) -> PaperRecord {
    let is_same = |width: Option<usize>| {
        data.missing.is_some() || width.is_none_or(|width| width == data.columns.len())
    };
    let Some(set) = Catalogue::built_in().find(data.catalogue_name()).filter(|set| is_same(set.width()))
    else {
        return PaperRecord::default();
    };
    let small =
        set.paper.table1.map(|row| PaperColumns { oem: Some(row.oem), obmm: Some(row.obmm), odmm: None });
    PaperRecord {
        units: Some(set.units),
        scores: set.paper.table2.map(PaperColumns::from).or(small).unwrap_or_default(),
        seconds: set.paper.table3.map(PaperColumns::from).unwrap_or_default(),
        published: set.published.clone(),
    }
}
