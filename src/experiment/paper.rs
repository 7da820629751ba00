//! The figures of publications: in the catalogue, and as the records hold them.

use std::collections::HashMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::record::DataRecord;
use crate::data::{CATALOGUE_TEXT, Catalogue};

/// What publications report about a set of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reported {
    /// The units in which the paper reports.
    pub units: Units,
    /// What the paper reports.
    pub paper: PaperFigures,
    /// What another publication reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
}

impl Reported {
    /// The figures of a set of the built-in catalogue.
    pub fn of(name: &str) -> Option<&'static Reported> {
        static ALL: OnceLock<HashMap<String, Reported>> = OnceLock::new();
        ALL.get_or_init(read_all).get(name)
    }
}

/// The figures of all sets by name.
fn read_all() -> HashMap<String, Reported> {
    #[derive(Deserialize)]
    struct Set {
        name: String,
        #[serde(flatten)]
        reported: Reported,
    }
    #[derive(Deserialize)]
    struct Sets {
        sets: Vec<Set>,
    }
    let all: Sets =
        serde_json::from_str(CATALOGUE_TEXT).expect("a test checks that the built-in catalogue parses");
    all.sets.into_iter().map(|set| (set.name, set.reported)).collect()
}

/// The units that a log-likelihood is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// Those of the data
    Raw,
    /// Every column scaled to mean 0 and standard deviation 1
    Zscore,
}

/// What the paper's tables report about a data set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperFigures {
    /// Table 1: mean test log-likelihood on the small sets.
    pub table1: Option<PaperRow>,
    /// Table 2: mean test log-likelihood on the large sets.
    pub table2: Option<PaperRow>,
    /// Table 3: seconds on the large sets.
    pub table3: Option<PaperRow>,
}

/// A row of a table of the paper: a figure of each of its learners.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperRow {
    oem: f64,
    obmm: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    odmm: Option<f64>,
    /// In Table 1, whether the paper marks the difference as significant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    oem_significant: Option<bool>,
}

/// Mean test log-likelihoods of a publication, for its own split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The publication and the place in it.
    pub source: String,
    /// Its models, and their scores.
    pub scores: Vec<(String, f64)>,
}

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

impl From<PaperRow> for PaperColumns {
    fn from(row: PaperRow) -> Self {
        PaperColumns { oem: Some(row.oem), obmm: Some(row.obmm), odmm: row.odmm }
    }
}

/// What the paper reports for a data set, if the catalogue has it with as many columns.
pub fn paper_figures(data: &DataRecord) -> PaperRecord {
    let is_same = |width: Option<usize>| {
        data.missing.is_some() || width.is_none_or(|width| width == data.columns.len())
    };
    let set = Catalogue::built_in().find(data.catalogue_name()).filter(|set| is_same(set.width()));
    let Some(Reported { units, paper, published }) = set.and_then(|set| Reported::of(&set.name)) else {
        return PaperRecord::default();
    };
    PaperRecord {
        units: Some(*units),
        scores: paper.table2.or(paper.table1).map(PaperColumns::from).unwrap_or_default(),
        seconds: paper.table3.map(PaperColumns::from).unwrap_or_default(),
        published: published.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_of_the_catalogue_has_the_figures_of_the_paper_or_of_another_publication() {
        for set in Catalogue::built_in().sets() {
            let Reported { paper, published, .. } = Reported::of(&set.name).unwrap();
            let is_of_paper = paper.table1.is_some() || (paper.table2.is_some() && paper.table3.is_some());
            let is_other =
                published.is_some() || ["yearmsd_sample8162", "watch"].contains(&set.name.as_str());
            assert!(is_of_paper != is_other, "{}", set.name);
        }
        let power = Reported::of("power").unwrap().published.as_ref().unwrap();
        assert_eq!(power.scores[0], ("Gaussian".to_string(), -7.74));
    }
}
