//! The learners of a comparison. To add one, add an entry to the list at the end; options, tables and pictures follow
//! from it.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::external::ExternalLearner;
use super::record::{CellSettings, RunRecord};
use crate::learn::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};
use crate::linalg::CovarianceType;
use crate::text::count;

/// The step-size exponents of online EM, chosen on the validation rows. Ties go to the first, so the default comes
/// first.
pub const ALPHAS: [f64; 6] = [0.8, 0.5, 0.6, 0.7, 0.9, 1.0];
/// The discounts of oBMM, chosen on the validation rows.
pub const BETAS: [f64; 3] = [0.0, 0.3, 0.5];

/// Number of k-means starts of batch EM without moves.
pub const PLAIN_STARTS: usize = 10;

/// Names and training of a learner of this program.
#[derive(Debug)]
pub struct Profile {
    /// Its name in tables and pictures.
    pub name: &'static str,
    /// The same name in lower case and without spaces: on the command line, in records and in CSV files.
    pub id: &'static str,
    /// The group of variants that it belongs to.
    pub family: &'static str,
    /// A short description; `{starts}`, `{plain_starts}`, `{shards}` and `{half_life}` are replaced by the run's
    /// settings.
    pub description: &'static str,
    /// How it is trained.
    pub way: Way,
}

/// How a contender is trained.
#[derive(Debug)]
pub enum Way {
    /// Not at all: it is the start.
    Start,
    /// Batch EM over all training rows.
    Batch {
        /// Whether the structure changes. With a fixed structure it is the best of [`PLAIN_STARTS`] k-means starts.
        structure: Structure,
    },
    /// One pass.
    Online {
        /// Values of its parameter, one of which is chosen on the validation rows; empty if it has no parameter.
        tuned: &'static [f64],
        /// The learner with such a value. A learner without a parameter ignores the value.
        algorithm: fn(f64, &CellSettings) -> Algorithm,
        /// Whether the structure changes. With a fixed structure the learner learns each row once, beginning with the
        /// start.
        structure: Structure,
    },
}

/// Whether the structure of the mixture changes during training.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// It stays that of the start.
    Fixed,
    /// It stays that of a [blind start](crate::learn::blind_start).
    Blind,
    /// Components are split and merged, as in [`fit`](crate::learn::fit).
    Revised,
    /// Like `Revised`, and rows lose weight with a half-life.
    Forgetting,
    /// Like `Revised`, with covariances that are not full.
    Constrained(CovarianceType),
    /// Like `Revised`, and K is learned: the contender has one cell in each fold, whichever K are compared.
    LearnedK,
}

impl Structure {
    /// The covariances of the components.
    pub fn covariance(self) -> CovarianceType {
        match self {
            Structure::Constrained(covariance) => covariance,
            _ => CovarianceType::Full,
        }
    }
}

macro_rules! contenders {
    ($($(#[$doc:meta])* $name:ident: $profile:expr,)+) => {
        /// A learner of a comparison, in the order of the tables.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Contender {
            $($(#[$doc])* $name,)+
            /// A learner that is a command.
            External(Arc<ExternalLearner>),
        }

        impl Contender {
            /// Those that are part of this program, in the order of the tables.
            pub const ALL: &'static [Contender] = &[$(Contender::$name,)+];

            /// Its names and training, unless it is a command.
            pub fn profile(&self) -> Option<&'static Profile> {
                match self {
                    $(Contender::$name => Some(const { &$profile }),)+
                    Contender::External(_) => None,
                }
            }
        }
    };
}

impl Contender {
    /// Its name in tables and pictures.
    pub fn name(&self) -> &str {
        match self {
            Contender::External(learner) => &learner.name,
            own => own.profile().map_or("", |profile| profile.name),
        }
    }

    /// Its name in CSV files.
    pub fn id(&self) -> &str {
        self.profile().map_or(self.name(), |profile| profile.id)
    }

    /// A learner that is a command.
    pub fn external(learner: ExternalLearner) -> Self {
        Contender::External(Arc::new(learner))
    }

    /// The commands of a learner that has some.
    pub fn commands(&self) -> Option<&ExternalLearner> {
        match self {
            Contender::External(learner) => Some(learner),
            _ => None,
        }
    }

    /// How a learner of this program is trained.
    pub(super) fn way(&self) -> Option<&'static Way> {
        self.profile().map(|profile| &profile.way)
    }

    /// A short description, with the settings of a run.
    pub fn describe(&self, run: Option<&RunRecord>) -> String {
        let description = match self {
            Contender::External(learner) => {
                let scorer = learner.scorer.as_ref().map(|words| format!(", scored by: {}", one_line(words)));
                return one_line(&learner.command) + &scorer.unwrap_or_default();
            }
            own => own.profile().map_or("", |profile| profile.description),
        };
        let settings = run.map(|run| run.settings).unwrap_or_default();
        let starts = match settings.em_restarts {
            1 => "from 1 start".to_string(),
            several => format!("the best of {}", count(several as u64, "start")),
        };
        let half_life = match settings.half_life {
            None => "a tenth of the training rows".to_string(),
            Some(rows) => count(rows, "row"),
        };
        description
            .replace("{starts}", &starts)
            .replace("{plain_starts}", &PLAIN_STARTS.to_string())
            .replace("{shards}", &settings.shards.to_string())
            .replace("{half_life}", &half_life)
    }

    /// Whether it learns in one pass over a stream.
    pub fn is_online(&self) -> bool {
        matches!(self.way(), Some(Way::Online { .. }))
    }

    /// Whether it learns K instead of being run with each K.
    pub fn learns_k(&self) -> bool {
        self.structure() == Some(Structure::LearnedK)
            || self.commands().is_some_and(ExternalLearner::learns_k)
    }

    /// Whether it may read the rows many times.
    pub fn is_batch(&self) -> bool {
        matches!(self.way(), Some(Way::Batch { .. })) || self.commands().is_some_and(|learner| learner.batch)
    }

    /// Whether it begins from a blind start.
    pub fn is_blind(&self) -> bool {
        self.structure() == Some(Structure::Blind)
    }

    fn structure(&self) -> Option<Structure> {
        match self.way()? {
            Way::Start => None,
            Way::Batch { structure } | Way::Online { structure, .. } => Some(*structure),
        }
    }

    /// EM and oBMM with these covariances, if they are not full.
    pub fn of_covariance(covariance: CovarianceType) -> impl Iterator<Item = Contender> {
        let has = move |contender: &&Contender| match contender.profile().map(|profile| &profile.way) {
            Some(Way::Batch { structure } | Way::Online { structure, .. }) => {
                *structure == Structure::Constrained(covariance)
            }
            _ => false,
        };
        Contender::ALL.iter().filter(has).cloned()
    }

    /// The contender of this program with an id, or with one of earlier versions.
    pub fn named(id: &str) -> Option<Self> {
        let id = EARLIER_IDS.iter().find(|(earlier, _)| *earlier == id).map_or(id, |(_, id)| id);
        Contender::ALL.iter().find(|contender| contender.id() == id).cloned()
    }
}

/// The words of a command, with those quoted that contain spaces.
fn one_line(words: &[String]) -> String {
    let quoted = |word: &String| match word.contains(char::is_whitespace) || word.is_empty() {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Ids of earlier versions, and those of today.
const EARLIER_IDS: [(&str, &str); 2] = [("oem_counted", "oem"), ("obmm_exact", "obmm")];

/// The id, or the commands of a learner that has some.
impl Serialize for Contender {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.commands() {
            Some(learner) => learner.serialize(serializer),
            None => serializer.serialize_str(self.id()),
        }
    }
}

impl<'de> Deserialize<'de> for Contender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Text {
            Id(String),
            Learner(ExternalLearner),
        }
        match Text::deserialize(deserializer)? {
            Text::Learner(learner) => Ok(Contender::external(learner)),
            Text::Id(id) => Contender::named(&id)
                .ok_or_else(|| serde::de::Error::custom(format!("no learner is called '{id}'"))),
        }
    }
}

const fn online(
    tuned: &'static [f64],
    algorithm: fn(f64, &CellSettings) -> Algorithm,
    structure: Structure,
) -> Way {
    Way::Online { tuned, algorithm, structure }
}

fn oem(alpha: f64, _: &CellSettings) -> Algorithm {
    Algorithm::Oem(OemSettings { alpha, count_start: true })
}

fn printed_oem(alpha: f64, _: &CellSettings) -> Algorithm {
    Algorithm::Oem(OemSettings { alpha, count_start: false })
}

/// Exact Bayes where the discount is not tuned: it is 0 then.
fn obmm(discount: f64, _: &CellSettings) -> Algorithm {
    Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount })
}

fn paper_obmm(_: f64, _: &CellSettings) -> Algorithm {
    Algorithm::Obmm(ObmmSettings { moments: Moments::Paper, discount: 0.0 })
}

/// Its shards are oBMM.
fn odmm(_: f64, settings: &CellSettings) -> Algorithm {
    Algorithm::Odmm(OdmmSettings {
        obmm: ObmmSettings { moments: Moments::Whitened, discount: 0.0 },
        shards: settings.shards,
        warmup: settings.warmup,
    })
}

contenders! {
    /// The fit of the first rows, with which every online learner begins.
    Start: Profile {
        name: "start",
        id: "start",
        family: "start",
        description: "the mixture fitted to the first rows, with which every online learner without revisions begins; the difference to it is the gain of the pass",
        way: Way::Start,
    },
    /// Online EM as printed, from a blind start.
    OemBlind: Profile {
        name: "oEM blind",
        id: "oem_blind",
        family: "oem",
        description: "oEM printed from a blind start: components drawn around the mean and covariance of the first few rows, without a buffer, EM or revisions",
        way: online(&ALPHAS, printed_oem, Structure::Blind),
    },
    /// Online EM as printed: its step size starts at the first row.
    OemPrinted: Profile {
        name: "oEM printed",
        id: "oem_printed",
        family: "oem",
        description: "online EM as printed in the paper: its step size starts at the first row",
        way: online(&ALPHAS, printed_oem, Structure::Fixed),
    },
    /// Online EM whose step size counts the rows of the start.
    Oem: Profile {
        name: "oEM",
        id: "oem",
        family: "oem",
        description: "online EM whose step size counts the rows of the start",
        way: online(&ALPHAS, oem, Structure::Fixed),
    },
    /// Online EM with revisions.
    OemRevised: Profile {
        name: "oEM revised",
        id: "oem_revised",
        family: "oem",
        description: "oEM that revises its structure during the pass and at the end, as 'fit' does, with the α of oEM",
        way: online(&ALPHAS, oem, Structure::Revised),
    },
    /// oBMM from a blind start.
    ObmmBlind: Profile {
        name: "oBMM blind",
        id: "obmm_blind",
        family: "obmm",
        description: "oBMM from a blind start: components drawn around the mean and covariance of the first few rows, without a buffer, EM or revisions",
        way: online(&[], obmm, Structure::Blind),
    },
    /// oBMM, exact Bayes (β = 0).
    Obmm: Profile {
        name: "oBMM",
        id: "obmm",
        family: "obmm",
        description: "online Bayesian Moment Matching, exact Bayes",
        way: online(&[], obmm, Structure::Fixed),
    },
    /// oBMM with β chosen on the validation rows.
    ObmmDiscounted: Profile {
        name: "oBMM discounted",
        id: "obmm_discounted",
        family: "obmm",
        description: "online Bayesian Moment Matching that discounts old rows by a β chosen on validation rows",
        way: online(&BETAS, obmm, Structure::Fixed),
    },
    /// oBMM with revisions.
    ObmmRevised: Profile {
        name: "oBMM revised",
        id: "obmm_revised",
        family: "obmm",
        description: "oBMM that revises its structure during the pass and at the end, as 'fit' does",
        way: online(&[], obmm, Structure::Revised),
    },
    /// oBMM that learns K.
    ObmmAuto: Profile {
        name: "oBMM auto",
        id: "obmm_auto",
        family: "obmm",
        description: "oBMM that revises its structure and also learns K",
        way: online(&[], obmm, Structure::LearnedK),
    },
    /// oBMM with revisions and a half-life.
    ObmmForgetting: Profile {
        name: "oBMM forgetting",
        id: "obmm_forgetting",
        family: "obmm_forgetting",
        description: "oBMM revised whose rows lose weight, with a half-life of {half_life}; the training rows are in random order, so the difference to oBMM revised is the cost of forgetting",
        way: online(&[], obmm, Structure::Forgetting),
    },
    /// oBMM by the paper's printed equations.
    ObmmPaper: Profile {
        name: "oBMM paper",
        id: "obmm_paper",
        family: "obmm_paper",
        description: "online Bayesian Moment Matching by the paper's printed equations",
        way: online(&[], paper_obmm, Structure::Fixed),
    },
    /// Shards learned separately and merged.
    Odmm: Profile {
        name: "oDMM",
        id: "odmm",
        family: "odmm",
        description: "online distributed Moment Matching: {shards} shards are learned separately after a shared warm-up and then merged; if the warm-up (by default as many rows as the start) takes all rows, it equals oBMM",
        way: online(&[], odmm, Structure::Fixed),
    },
    /// oDMM from a blind start.
    OdmmBlind: Profile {
        name: "oDMM blind",
        id: "odmm_blind",
        family: "odmm",
        description: "oDMM from a blind start: {shards} shards separate after the first few rows",
        way: online(&[], odmm, Structure::Blind),
    },
    /// Batch EM from k-means alone.
    EmPlain: Profile {
        name: "EM plain",
        id: "em_plain",
        family: "em_plain",
        description: "batch EM without moves, the best of {plain_starts} k-means starts, as in most software",
        way: Way::Batch { structure: Structure::Fixed },
    },
    /// Batch EM with moves.
    Em: Profile {
        name: "EM",
        id: "em",
        family: "em",
        description: "batch EM with moves (splits and merges of components), {starts}, which reads the data many times: the level to reach, but not always the best on new rows",
        way: Way::Batch { structure: Structure::Revised },
    },
    /// Batch EM that learns K.
    EmAuto: Profile {
        name: "EM auto",
        id: "em_auto",
        family: "em_auto",
        description: "batch EM with moves (splits and merges of components) that also learns K, by BIC",
        way: Way::Batch { structure: Structure::LearnedK },
    },
    /// oBMM revised with tied covariances.
    ObmmTied: Profile {
        name: "oBMM tied",
        id: "obmm_tied",
        family: "tied",
        description: "oBMM revised with one covariance that all components share",
        way: online(&[], obmm, Structure::Constrained(CovarianceType::Tied)),
    },
    /// Batch EM with tied covariances.
    EmTied: Profile {
        name: "EM tied",
        id: "em_tied",
        family: "tied",
        description: "EM with one covariance that all components share",
        way: Way::Batch { structure: Structure::Constrained(CovarianceType::Tied) },
    },
    /// oBMM revised with diag covariances.
    ObmmDiag: Profile {
        name: "oBMM diag",
        id: "obmm_diag",
        family: "diag",
        description: "oBMM revised with a variance of each column for each component",
        way: online(&[], obmm, Structure::Constrained(CovarianceType::Diag)),
    },
    /// Batch EM with diag covariances.
    EmDiag: Profile {
        name: "EM diag",
        id: "em_diag",
        family: "diag",
        description: "EM with a variance of each column for each component",
        way: Way::Batch { structure: Structure::Constrained(CovarianceType::Diag) },
    },
    /// oBMM revised with spherical covariances.
    ObmmSpherical: Profile {
        name: "oBMM spherical",
        id: "obmm_spherical",
        family: "spherical",
        description: "oBMM revised with one variance of all columns for each component",
        way: online(&[], obmm, Structure::Constrained(CovarianceType::Spherical)),
    },
    /// Batch EM with spherical covariances.
    EmSpherical: Profile {
        name: "EM spherical",
        id: "em_spherical",
        family: "spherical",
        description: "EM with one variance of all columns for each component",
        way: Way::Batch { structure: Structure::Constrained(CovarianceType::Spherical) },
    },
}
