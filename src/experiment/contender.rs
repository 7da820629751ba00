//! Who can take part in a comparison. A new contender is an entry in the list at the end; names, options, tables and
//! pictures follow from it.

use serde::{Deserialize, Serialize};

use super::record::{CellSettings, RunRecord};
use crate::learn::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};
use crate::words::count;

/// The exponents that online EM may choose from, by the validation rows. Of equals the first is chosen, so the default
/// comes first.
pub const ALPHAS: [f64; 6] = [0.8, 0.5, 0.6, 0.7, 0.9, 1.0];
/// The discounts that oBMM may choose from, by the validation rows.
pub const BETAS: [f64; 3] = [0.0, 0.3, 0.5];

/// k-means starts of batch EM without moves.
pub const PLAIN_STARTS: usize = 10;

/// What there is to know of a contender.
pub struct Profile {
    /// Its name in tables and pictures.
    pub name: &'static str,
    /// The word for it on the command line.
    pub word: &'static str,
    /// The word for it and its like, which take part together unless told otherwise.
    pub family: &'static str,
    /// What it is, in a few words; `{starts}`, `{plain_starts}`, `{moves}` and `{shards}` stand for what the
    /// run says.
    pub description: &'static str,
    /// How it comes to its mixture.
    pub way: Way,
}

/// How a contender comes to its mixture.
pub enum Way {
    /// It is the start itself.
    Start,
    /// Batch EM over all training rows.
    Batch {
        /// What becomes of the structure. Where it is fixed, batch EM is the best of [`PLAIN_STARTS`] k-means starts.
        structure: Structure,
    },
    /// One pass.
    Online {
        /// Values of its parameter to choose from by the validation rows; none where it has no parameter.
        tuned: &'static [f64],
        /// The learner with such a value. Where it has no parameter, the value means nothing.
        algorithm: fn(f64, &CellSettings) -> Algorithm,
        /// What becomes of the structure. Where it is fixed, the learner learns each row once from the start.
        structure: Structure,
    },
}

/// What becomes of the structure of a mixture while a contender learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Structure {
    /// It stays as it is at the start.
    Fixed,
    /// Components are split and joined, as [`fit`](crate::learn::fit) does.
    Revised,
    /// The same, and K is learned: the contender has one cell in each fold, whatever K are compared.
    LearnedK,
}

macro_rules! contenders {
    ($($(#[$doc:meta])* $name:ident: $profile:expr,)+) => {
        /// Who takes part in a comparison, in the order of the tables.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Contender {
            $($(#[$doc])* $name,)+
        }

        impl Contender {
            /// All of them, in the order of the tables.
            pub const ALL: &'static [Contender] = &[$(Contender::$name,)+];

            /// What there is to know of it.
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

    /// What it is, in a few words.
    pub fn describe(self, run: Option<&RunRecord>) -> String {
        let settings = run.map(|run| run.settings).unwrap_or_default();
        let moves = match run.is_none_or(|run| run.moves) {
            true => "with moves (splits and joins of components)",
            false => "without moves",
        };
        let starts = match settings.em_restarts {
            1 => "from 1 start".to_string(),
            several => format!("the best of {}", count(several as u64, "start")),
        };
        self.profile()
            .description
            .replace("{moves}", moves)
            .replace("{starts}", &starts)
            .replace("{plain_starts}", &PLAIN_STARTS.to_string())
            .replace("{shards}", &settings.shards.to_string())
    }

    /// Whether it learns in one pass over a stream.
    pub fn is_online(self) -> bool {
        matches!(self.profile().way, Way::Online { .. })
    }

    /// Whether it learns K, instead of being given several.
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
    /// The fit of the first rows, from which every online learner begins.
    Start: Profile {
        name: "start",
        word: "start",
        family: "start",
        description: "the fit of the first, buffered rows, from which every online learner that does not revise begins; what the pass itself adds is the difference to this",
        way: Way::Start,
    },
    /// Online EM as printed: its step begins at the first row.
    OemPrinted: Profile {
        name: "oEM printed",
        word: "oem_printed",
        family: "oem",
        description: "online EM as printed: its step size begins at the first row",
        way: Way::Online {
            tuned: &ALPHAS,
            algorithm: |alpha, _| Algorithm::Oem(OemSettings { alpha, count_start: false }),
            structure: Structure::Fixed,
        },
    },
    /// Online EM whose step counts the rows of the start.
    Oem: Profile {
        name: "oEM",
        word: "oem_counted",
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
        word: "oem_revised",
        family: "oem",
        description: "oEM whose structure is revised while rows come in and at the end, as 'fit' does it",
        way: Way::Online {
            tuned: &ALPHAS,
            algorithm: |alpha, _| Algorithm::Oem(OemSettings { alpha, count_start: true }),
            structure: Structure::Revised,
        },
    },
    /// oBMM, exact Bayes (β = 0).
    Obmm: Profile {
        name: "oBMM",
        word: "obmm_exact",
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
        word: "obmm_discounted",
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
        word: "obmm_revised",
        family: "obmm",
        description: "oBMM whose structure is revised while rows come in and at the end, as 'fit' does it",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::Revised,
        },
    },
    /// oBMM that learns K.
    ObmmAuto: Profile {
        name: "oBMM auto",
        word: "obmm_auto",
        family: "obmm",
        description: "oBMM that also learns K",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Whitened, discount: 0.0 }),
            structure: Structure::LearnedK,
        },
    },
    /// oBMM by the paper's printed equations.
    ObmmPaper: Profile {
        name: "paper moments",
        word: "obmm_paper",
        family: "obmm_paper",
        description: "online Bayesian Moment Matching by the paper's printed equations",
        way: Way::Online {
            tuned: &[],
            algorithm: |_, _| Algorithm::Obmm(ObmmSettings { moments: Moments::Paper, discount: 0.0 }),
            structure: Structure::Fixed,
        },
    },
    /// Shards learned apart and merged.
    Odmm: Profile {
        name: "oDMM",
        word: "odmm",
        family: "odmm",
        description: "online distributed Moment Matching: {shards} shards learned apart after a shared warm-up, then merged; where the warm-up (by default as many rows as the start) takes all rows, the same as oBMM",
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
        word: "em_plain",
        family: "em_plain",
        description: "batch EM without moves, the best of {plain_starts} k-means starts: what most programs do",
        way: Way::Batch { structure: Structure::Fixed },
    },
    /// Batch EM with moves.
    Em: Profile {
        name: "EM",
        word: "em",
        family: "em",
        description: "batch EM {moves}, {starts}, which may read the data many times: the level to reach, though not always the best on new rows",
        way: Way::Batch { structure: Structure::Revised },
    },
    /// Batch EM that learns K.
    EmAuto: Profile {
        name: "EM auto",
        word: "em_auto",
        family: "em_auto",
        description: "batch EM {moves} that also learns K, by BIC",
        way: Way::Batch { structure: Structure::LearnedK },
    },
}
