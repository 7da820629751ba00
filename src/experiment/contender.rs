//! The learners of a comparison. To add one, add an entry to the list at the end; options, tables and pictures follow
//! from it.

use serde::{Deserialize, Serialize};

use super::record::{CellSettings, RunRecord};
use crate::learn::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};
use crate::text::count;

/// The step-size exponents of online EM, chosen on the validation rows. Ties go to the first, so the default comes
/// first.
pub const ALPHAS: [f64; 6] = [0.8, 0.5, 0.6, 0.7, 0.9, 1.0];
/// The discounts of oBMM, chosen on the validation rows.
pub const BETAS: [f64; 3] = [0.0, 0.3, 0.5];

/// Number of k-means starts of batch EM without moves.
pub const PLAIN_STARTS: usize = 10;

/// Names and training of a contender.
pub struct Profile {
    /// Its name in tables and pictures.
    pub name: &'static str,
    /// Its name on the command line and in CSV files.
    pub id: &'static str,
    /// The name on the command line that selects it together with its variants.
    pub family: &'static str,
    /// A short description; `{starts}`, `{plain_starts}`, `{moves}`, `{shards}` and `{half_life}` are replaced by the run's
    /// settings.
    pub description: &'static str,
    /// How it is trained.
    pub way: Way,
}

/// How a contender is trained.
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
    /// Components are split and merged, as in [`fit`](crate::learn::fit).
    Revised,
    /// Like `Revised`, and rows lose weight with a half-life.
    Forgetting,
    /// Like `Revised`, and K is learned: the contender has one cell in each fold, whichever K are compared.
    LearnedK,
}

macro_rules! contenders {
    ($($(#[$doc:meta])* $name:ident: $profile:expr,)+) => {
        /// A learner of a comparison, in the order of the tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Contender {
            $($(#[$doc])* $name,)+
        }

        impl Contender {
            /// All of them, in the order of the tables.
            pub const ALL: &'static [Contender] = &[$(Contender::$name,)+];

            /// Its names and training.
            pub fn profile(self) -> &'static Profile {
                match self {
                    $(Contender::$name => const { &$profile },)+
                }
            }
        }
    };
}

impl Contender {
    /// Its name in tables and pictures.
    pub fn name(self) -> &'static str {
        self.profile().name
    }

    /// A short description, with the settings of a run.
    pub fn describe(self, run: Option<&RunRecord>) -> String {
        let settings = run.map(|run| run.settings).unwrap_or_default();
        let moves = match run.is_none_or(|run| run.moves) {
            true => "with moves (splits and merges of components)",
            false => "without moves",
        };
        let starts = match settings.em_restarts {
            1 => "from 1 start".to_string(),
            several => format!("the best of {}", count(several as u64, "start")),
        };
        let half_life = match settings.half_life {
            None => "a tenth of the training rows".to_string(),
            Some(rows) => count(rows, "row"),
        };
        self.profile()
            .description
            .replace("{moves}", moves)
            .replace("{starts}", &starts)
            .replace("{plain_starts}", &PLAIN_STARTS.to_string())
            .replace("{shards}", &settings.shards.to_string())
            .replace("{half_life}", &half_life)
    }

    /// Whether it learns in one pass over a stream.
    pub fn is_online(self) -> bool {
        matches!(self.profile().way, Way::Online { .. })
    }

    /// Whether it learns K instead of being run with each K.
    pub fn learns_k(self) -> bool {
        match self.profile().way {
            Way::Start => false,
            Way::Batch { structure } | Way::Online { structure, .. } => structure == Structure::LearnedK,
        }
    }

    /// Whether it may read the rows many times.
    pub fn is_batch(self) -> bool {
        matches!(self.profile().way, Way::Batch { .. })
    }
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
    /// Online EM as printed: its step size starts at the first row.
    OemPrinted: Profile {
        name: "oEM printed",
        id: "oem_printed",
        family: "oem",
        description: "online EM as printed in the paper: its step size starts at the first row",
        way: Way::Online {
            tuned: &ALPHAS,
            algorithm: |alpha, _| Algorithm::Oem(OemSettings { alpha, count_start: false }),
            structure: Structure::Fixed,
        },
    },
    /// Online EM whose step size counts the rows of the start.
    Oem: Profile {
        name: "oEM",
        id: "oem_counted",
        family: "oem",
        description: "online EM whose step size counts the rows of the start",
        way: Way::Online {
            tuned: &ALPHAS,
            algorithm: |alpha, _| Algorithm::Oem(OemSettings { alpha, count_start: true }),
            structure: Structure::Fixed,
        },
    },
    /// Online EM with revisions.
    OemRevised: Profile {
        name: "oEM revised",
        id: "oem_revised",
        family: "oem",
        description: "oEM that revises its structure during the pass and at the end, as 'fit' does",
        way: Way::Online {
            tuned: &ALPHAS,
            algorithm: |alpha, _| Algorithm::Oem(OemSettings { alpha, count_start: true }),
            structure: Structure::Revised,
        },
    },
    /// oBMM, exact Bayes (β = 0).
    Obmm: Profile {
        name: "oBMM",
        id: "obmm_exact",
        family: "obmm",
        description: "online Bayesian Moment Matching, exact Bayes",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::Fixed,
        },
    },
    /// oBMM with β chosen on the validation rows.
    ObmmDiscounted: Profile {
        name: "oBMM β",
        id: "obmm_discounted",
        family: "obmm",
        description: "online Bayesian Moment Matching that discounts old rows by a β chosen on validation rows",
        way: Way::Online {
            tuned: &BETAS,
            algorithm: |discount, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount }),
            structure: Structure::Fixed,
        },
    },
    /// oBMM with revisions.
    ObmmRevised: Profile {
        name: "oBMM revised",
        id: "obmm_revised",
        family: "obmm",
        description: "oBMM that revises its structure during the pass and at the end, as 'fit' does",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::Revised,
        },
    },
    /// oBMM that learns K.
    ObmmAuto: Profile {
        name: "oBMM auto",
        id: "obmm_auto",
        family: "obmm",
        description: "oBMM that revises its structure and also learns K",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::LearnedK,
        },
    },
    /// oBMM with revisions and a half-life.
    ObmmForgetting: Profile {
        name: "oBMM forgetting",
        id: "obmm_forgetting",
        family: "obmm_forgetting",
        description: "oBMM revised whose rows lose weight, with a half-life of {half_life}; the training rows are in random order, so the difference to oBMM revised is the cost of forgetting",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::Forgetting,
        },
    },
    /// oBMM by the paper's printed equations.
    ObmmPaper: Profile {
        name: "paper moments",
        id: "obmm_paper",
        family: "obmm_paper",
        description: "online Bayesian Moment Matching by the paper's printed equations",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Paper, discount: 0.0 }),
            structure: Structure::Fixed,
        },
    },
    /// Shards learned separately and merged.
    Odmm: Profile {
        name: "oDMM",
        id: "odmm",
        family: "odmm",
        description: "online distributed Moment Matching: {shards} shards are learned separately after a shared warm-up and then merged; if the warm-up (by default as many rows as the start) takes all rows, it equals oBMM",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, settings| Algorithm::Odmm(OdmmSettings {
                obmm: ObmmSettings { moments: Moments::Whitened, discount: 0.0 },
                shards: settings.shards,
                warmup: settings.warmup,
            }),
            structure: Structure::Fixed,
        },
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
        description: "batch EM {moves}, {starts}, which reads the data many times: the level to reach, but not always the best on new rows",
        way: Way::Batch { structure: Structure::Revised },
    },
    /// Batch EM that learns K.
    EmAuto: Profile {
        name: "EM auto",
        id: "em_auto",
        family: "em_auto",
        description: "batch EM {moves} that also learns K, by BIC",
        way: Way::Batch { structure: Structure::LearnedK },
    },
}
