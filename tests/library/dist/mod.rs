//! Distributions, and what their types promise.

mod axes;
mod clusters;
mod deviations;
mod impute;
mod prediction;

use gmm_bmm::dist::Clusters;
use gmm_bmm::{FitSettings, GaussianMixture, LearnError, MergeError, Model, ModelError, OnlineFit};

/// Other threads may learn and score.
#[test]
fn public_types_are_send_sync_and_debug() {
    fn check<T: Send + Sync + std::fmt::Debug>() {}
    check::<OnlineFit>();
    check::<FitSettings>();
    check::<GaussianMixture>();
    check::<Clusters>();
    check::<Model>();
    check::<LearnError>();
    check::<ModelError>();
    check::<MergeError>();
}
