//! The ways of learning online: what each has to give, and the list of them.

use serde::{Deserialize, Serialize};

use super::{Health, LearnError, LearnerState, OnlineLearner, Revised, Start};

/// A way of learning online, with its settings, which derive what [`Algorithm`] derives. A new one is a file of its own and
/// a line in the list below.
pub trait Method: Default {
    /// Its name on the command line.
    const NAME: &'static str;
    /// What it is, in a few words for the help.
    const SUMMARY: &'static str;

    /// Refuses settings out of range.
    fn check(&self) -> Result<(), LearnError>;

    /// What a learner of this kind knows before its first row.
    fn begin(&self, start: &Start) -> LearnerState;

    /// What a learner of this kind knows after a revision; `before` is what it knew until then, if anything. `None` where
    /// it has to learn the rows one by one.
    fn revise(&self, before: Option<&LearnerState>, revised: &Revised) -> Option<LearnerState>;

    /// Whether it makes states of this kind.
    fn makes(state: &LearnerState) -> bool;

    /// A learner that goes on from `state`. `floor` is the least variance of each column given the columns before it.
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
pub(super) fn foreign_state() -> LearnError {
    LearnError::State("it was made by another algorithm".into())
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($settings:ty),)+) => {
        /// Which online algorithm, with its settings.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
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

            /// What it is, in a few words.
            pub fn summary(&self) -> &'static str {
                match self { $(Algorithm::$name(_) => <$settings as Method>::SUMMARY,)+ }
            }

            /// Its name and settings, for people.
            pub fn describe(&self) -> String {
                match self { $(Algorithm::$name(settings) => settings.describe(),)+ }
            }

            /// Refuses settings out of range.
            pub fn check(&self) -> Result<(), LearnError> {
                match self { $(Algorithm::$name(settings) => settings.check(),)+ }
            }

            /// What a learner of this kind knows before its first row.
            pub fn begin(&self, start: &Start) -> LearnerState {
                match self { $(Algorithm::$name(settings) => settings.begin(start),)+ }
            }

            /// What a learner of this kind knows after a revision; `before` is what it knew until then, if anything.
            /// `None` where it has to learn the rows one by one.
            pub(super) fn revise(
                &self,
                before: Option<&LearnerState>,
                revised: &Revised,
            ) -> Option<LearnerState> {
                match self { $(Algorithm::$name(settings) => settings.revise(before, revised),)+ }
            }

            /// Whether it makes states of this kind.
            pub fn makes(&self, state: &LearnerState) -> bool {
                match self { $(Algorithm::$name(_) => <$settings as Method>::makes(state),)+ }
            }

            /// A learner that goes on from `state`. `floor` is the least variance of each column given the columns
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
                    return Err(LearnError::State("its working copies are not those of its matrices".into()));
                }
                match self { $(Algorithm::$name(settings) => settings.learner(state, floor, health),)+ }
            }
        }
    };
}

impl Algorithm {
    /// The algorithm that resumes from a revised mixture: shards that were revised together are one.
    pub(super) fn reviser(&self) -> Algorithm {
        match self {
            Algorithm::Odmm(settings) => Algorithm::Obmm(settings.obmm),
            other => *other,
        }
    }
}

methods! {
    /// Online Bayesian Moment Matching.
    Obmm(super::ObmmSettings),
    /// Online EM.
    Oem(super::OemSettings),
    /// oBMM on shards, merged.
    Odmm(super::OdmmSettings),
}
