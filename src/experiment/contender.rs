//! Who can take part in a comparison. A new contender is an entry in the list at the end; names, options, tables and
//! pictures follow from it.

use serde::{Deserialize, Serialize};

use super::record::CellSettings;
use crate::learn::{Algorithm, Moments, ObmmSettings, OdmmSettings, OemSettings};

/// The exponents that online EM may choose from, by the validation rows.
pub const ALPHAS: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
/// The discounts that oBMM may choose from, by the validation rows.
pub const BETAS: [f64; 3] = [0.0, 0.3, 0.5];

/// What there is to know of a contender.
pub struct Profile {
    /// Its name in tables and pictures.
    pub name: &'static str,
    /// The word for it on the command line.
    pub word: &'static str,
    /// The word for it and its like, which take part together unless told otherwise.
    pub family: &'static str,
    /// What it is, in a few words; `{restarts}` and `{shards}` stand for what the settings say.
    pub description: &'static str,
    /// How it comes to its mixture.
    pub way: Way,
}

/// How a contender comes to its mixture.
pub enum Way {
    /// It is the start itself.
    Start,
    /// Batch EM over all training rows.
    Batch,
    /// One pass from the start.
    Online {
        /// Values of its parameter to choose from by the validation rows; none where it has no parameter.
        tuned: &'static [f64],
        /// The learner with such a value. Where it has no parameter, the value means nothing.
        algorithm: fn(f64, &CellSettings) -> Algorithm,
    },
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
    pub fn describe(self, settings: &CellSettings) -> String {
        let restarts = settings.em_restarts.to_string();
        self.profile()
            .description
            .replace("{restarts}", &restarts)
            .replace("{shards}", &settings.shards.to_string())
    }

    /// Whether it learns in one pass over a stream.
    pub fn is_online(self) -> bool {
        matches!(self.profile().way, Way::Online { .. })
    }
}

contenders! {
    /// The fit of the first rows, from which every online learner begins.
    Start: Profile {
        name: "start",
        word: "start",
        family: "start",
        description: "the fit of the first, buffered rows, from which every online learner begins; what the pass itself adds is the difference to this",
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
        },
    },
    /// Batch EM with restarts.
    Em: Profile {
        name: "EM",
        word: "em",
        family: "em",
        description: "batch EM, the best of {restarts} restarts, which may read the data many times: the level to reach, though not always the best on new rows",
        way: Way::Batch,
    },
}
