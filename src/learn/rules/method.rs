//! The online algorithms: their common interface, and the list of them.

use serde::{Deserialize, Serialize};

use crate::learn::{Health, LearnError, LearnerState, OnlineLearner, Revised, Start};

/// The settings of an online algorithm, and what it does. A new algorithm is a file and a line in the list below.
pub trait Method: Default {
    /// Its name on the command line.
    const NAME: &'static str;
    /// A short description.
    const SUMMARY: &'static str;

    /// An error if a setting is out of range.
    fn check(&self) -> Result<(), LearnError>;

    /// The state of a learner before its first row.
    fn begin(&self, start: &Start) -> LearnerState;

    /// The state of a learner after a revision. `before` is its state until then, if there was one. `None` if the learner
    /// has to learn the rows one by one.
    fn revise(&self, before: Option<&LearnerState>, revised: &Revised) -> Option<LearnerState>;

    /// Whether its learners have states of this kind.
    fn makes(state: &LearnerState) -> bool;

    /// A learner that resumes from `state`. `floor` is the least variance of each column given the columns before it.
    fn learner(
        &self,
        state: LearnerState,
        floor: Vec<f64>,
        health: Health,
    ) -> Result<Box<dyn OnlineLearner>, LearnError>;

    /// Its name and settings, for people.
    fn describe(&self) -> String;
}

/// The error of [`Method::learner`] for a state that the method does not make.
pub(in crate::learn) fn foreign_state() -> LearnError {
    LearnError::State("it was made by another algorithm".into())
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($settings:ty),)+) => {
        /// An online algorithm and its settings.
        ///
        /// ```
        /// use gmm_bmm::FitSettings;
        /// use gmm_bmm::settings::Algorithm;
        /// assert_eq!(FitSettings::oem(3).algorithm.name(), "oem");
        /// assert!(Algorithm::all().iter().any(|algorithm| algorithm.name() == "oem"));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Algorithm {
            $($(#[$doc])* $name($settings),)+
        }

        impl Algorithm {
            /// All of them, with default settings.
            pub fn all() -> Vec<Self> {
                vec![$(Algorithm::$name(<$settings>::default()),)+]
            }

            /// Its name on the command line.
            pub fn name(&self) -> &'static str {
                match self { $(Algorithm::$name(_) => <$settings as Method>::NAME,)+ }
            }

            /// A short description.
            pub fn summary(&self) -> &'static str {
                match self { $(Algorithm::$name(_) => <$settings as Method>::SUMMARY,)+ }
            }

            /// Its name and settings, for people.
            pub fn describe(&self) -> String {
                match self { $(Algorithm::$name(settings) => settings.describe(),)+ }
            }

            /// An error if a setting is out of range.
            pub fn check(&self) -> Result<(), LearnError> {
                match self { $(Algorithm::$name(settings) => settings.check(),)+ }
            }

            /// The state of a learner before its first row.
            pub fn begin(&self, start: &Start) -> LearnerState {
                match self { $(Algorithm::$name(settings) => settings.begin(start),)+ }
            }

            /// The state of a learner after a revision. `before` is its state until then, if there was one. `None` if
            /// the learner has to learn the rows one by one.
            pub(in crate::learn) fn revise(
                &self,
                before: Option<&LearnerState>,
                revised: &Revised,
            ) -> Option<LearnerState> {
                match self { $(Algorithm::$name(settings) => settings.revise(before, revised),)+ }
            }

            /// Whether its learners have states of this kind.
            pub fn makes(&self, state: &LearnerState) -> bool {
                match self { $(Algorithm::$name(_) => <$settings as Method>::makes(state),)+ }
            }

            /// A learner that resumes from `state`. `floor` is the least variance of each column given the columns
            /// before it.
            pub fn learner(
                &self,
                state: LearnerState,
                floor: Vec<f64>,
                health: Health,
            ) -> Result<Box<dyn OnlineLearner>, LearnError> {
                self.check()?;
                if !state.is_consistent() || floor.len() != state.dim() {
                    return Err(LearnError::State("its parts have different shapes".into()));
                }
                if !state.owns_its_matrix_states() {
                    return Err(LearnError::State("its matrix states are not those of its matrices".into()));
                }
                match self { $(Algorithm::$name(settings) => settings.learner(state, floor, health),)+ }
            }
        }
    };
}

impl Algorithm {
    /// The algorithm that resumes from a revised mixture: oBMM for oDMM, whose shards are merged by then.
    pub(in crate::learn) fn reviser(&self) -> Algorithm {
        match self {
            Algorithm::Odmm(settings) => Algorithm::Obmm(settings.obmm),
            other => *other,
        }
    }

    /// The number of last rows, of `rows` rows, that the mixture mainly depends on if there is no half-life. It is smaller for
    /// online EM: the inverse of its step.
    pub(in crate::learn) fn memory(&self, rows: u64) -> u64 {
        match self {
            Algorithm::Oem(settings) => (rows as f64).powf(settings.alpha) as u64,
            _ => rows,
        }
    }
}

methods! {
    /// Online Bayesian Moment Matching.
    Obmm(crate::learn::ObmmSettings),
    /// Online EM.
    Oem(crate::learn::OemSettings),
    /// oBMM on shards that are merged.
    Odmm(crate::learn::OdmmSettings),
}
