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

/// Each entry has the name, the id, the family, the training and the description of a learner: the members of [`Profile`].
macro_rules! contenders {
    ($($contender:ident = $name:literal, $id:literal, $family:literal, $way:expr, $description:literal;)+) => {
        /// A learner of a comparison, in the order of the tables.
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Contender {
            $(#[doc = $description] $contender,)+
            /// A learner that is a command.
            External(Arc<ExternalLearner>),
        }

        impl Contender {
            /// Those that are part of this program, in the order of the tables.
            pub const ALL: &'static [Contender] = &[$(Contender::$contender,)+];

            /// Its names and training, unless it is a command.
            pub fn profile(&self) -> Option<&'static Profile> {
                match self {
                    $(Contender::$contender => Some(const {
                        &Profile { name: $name, id: $id, family: $family, way: $way, description: $description }
                    }),)+
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

const fn batch(structure: Structure) -> Way {
    Way::Batch { structure }
}

const fn constrained(covariance: CovarianceType) -> Structure {
    Structure::Constrained(covariance)
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
    Start = "start", "start", "start", Way::Start,
        "the mixture fitted to the first rows, with which every online learner without revisions begins; the difference to it is the gain of the pass";
    OemBlind = "oEM blind", "oem_blind", "oem", online(&ALPHAS, printed_oem, Structure::Blind),
        "oEM printed from a blind start: components drawn around the mean and covariance of the first few rows, without a buffer, EM or revisions";
    OemPrinted = "oEM printed", "oem_printed", "oem", online(&ALPHAS, printed_oem, Structure::Fixed),
        "online EM as printed in the paper: its step size starts at the first row";
    Oem = "oEM", "oem", "oem", online(&ALPHAS, oem, Structure::Fixed),
        "online EM whose step size counts the rows of the start";
    OemRevised = "oEM revised", "oem_revised", "oem", online(&ALPHAS, oem, Structure::Revised),
        "oEM that revises its structure during the pass and at the end, as 'fit' does, with the α of oEM";
    ObmmBlind = "oBMM blind", "obmm_blind", "obmm", online(&[], obmm, Structure::Blind),
        "oBMM from a blind start: components drawn around the mean and covariance of the first few rows, without a buffer, EM or revisions";
    Obmm = "oBMM", "obmm", "obmm", online(&[], obmm, Structure::Fixed),
        "online Bayesian Moment Matching, exact Bayes";
    ObmmDiscounted = "oBMM discounted", "obmm_discounted", "obmm", online(&BETAS, obmm, Structure::Fixed),
        "online Bayesian Moment Matching that discounts old rows by a β chosen on validation rows";
    ObmmRevised = "oBMM revised", "obmm_revised", "obmm", online(&[], obmm, Structure::Revised),
        "oBMM that revises its structure during the pass and at the end, as 'fit' does";
    ObmmAuto = "oBMM auto", "obmm_auto", "obmm", online(&[], obmm, Structure::LearnedK),
        "oBMM that revises its structure and also learns K";
    ObmmForgetting = "oBMM forgetting", "obmm_forgetting", "obmm_forgetting", online(&[], obmm, Structure::Forgetting),
        "oBMM revised whose rows lose weight, with a half-life of {half_life}; the training rows are in random order, so the difference to oBMM revised is the cost of forgetting";
    ObmmPaper = "oBMM paper", "obmm_paper", "obmm_paper", online(&[], paper_obmm, Structure::Fixed),
        "online Bayesian Moment Matching by the paper's printed equations";
    Odmm = "oDMM", "odmm", "odmm", online(&[], odmm, Structure::Fixed),
        "online distributed Moment Matching: {shards} shards are learned separately after a shared warm-up and then merged; if the warm-up (by default as many rows as the start) takes all rows, it equals oBMM";
    OdmmBlind = "oDMM blind", "odmm_blind", "odmm", online(&[], odmm, Structure::Blind),
        "oDMM from a blind start: {shards} shards separate after the first few rows";
    EmPlain = "EM plain", "em_plain", "em_plain", batch(Structure::Fixed),
        "batch EM without moves, the best of {plain_starts} k-means starts, as in most software";
    Em = "EM", "em", "em", batch(Structure::Revised),
        "batch EM with moves (splits and merges of components), {starts}, which reads the data many times: the level to reach, but not always the best on new rows";
    EmAuto = "EM auto", "em_auto", "em_auto", batch(Structure::LearnedK),
        "batch EM with moves (splits and merges of components) that also learns K, by BIC";
    ObmmTied = "oBMM tied", "obmm_tied", "tied", online(&[], obmm, constrained(CovarianceType::Tied)),
        "oBMM revised with one covariance that all components share";
    EmTied = "EM tied", "em_tied", "tied", batch(constrained(CovarianceType::Tied)),
        "EM with one covariance that all components share";
    ObmmDiag = "oBMM diag", "obmm_diag", "diag", online(&[], obmm, constrained(CovarianceType::Diag)),
        "oBMM revised with a variance of each column for each component";
    EmDiag = "EM diag", "em_diag", "diag", batch(constrained(CovarianceType::Diag)),
        "EM with a variance of each column for each component";
    ObmmSpherical = "oBMM spherical", "obmm_spherical", "spherical", online(&[], obmm, constrained(CovarianceType::Spherical)),
        "oBMM revised with one variance of all columns for each component";
    EmSpherical = "EM spherical", "em_spherical", "spherical", batch(constrained(CovarianceType::Spherical)),
        "EM with one variance of all columns for each component";
}
