//! What must hold of a learner's state, whatever rows it has seen.

use gmm_bmm::dist::{GaussianMixture, Posterior};
use gmm_bmm::internals::learn::{FitState, LearnerState};
use gmm_bmm::internals::linalg::{Factor, MatrixState};
use ndarray::Array2;

use crate::common::{matrix_of_triangle, number};

/// Weights on the simplex, matrices and their states positive definite, every figure finite.
#[track_caller]
pub fn assert_sound(state: &FitState, what: &str) {
    for candidate in &state.candidates {
        assert!(candidate.prequential.log_likelihood.is_finite(), "{what}: prequential score");
        assert_sound_mixture(&candidate.learned.estimate(), what);
        match &candidate.learned {
            LearnerState::Point { matrix_states, .. } => assert_sound_copies(matrix_states, what),
            LearnerState::Bayes { posterior, matrix_states, .. } => {
                assert_sound_posterior(posterior, what);
                assert_sound_copies(matrix_states, what);
            }
            LearnerState::Sharded(state) => {
                assert_sound_posterior(&state.posterior, &format!("{what}, merged"));
                assert_sound_posterior(&state.common, &format!("{what}, common prior"));
                assert_sound_copies(&state.common_matrix_states, what);
                for (i, shard) in state.shards.iter().enumerate() {
                    assert_sound_posterior(&shard.posterior, &format!("{what}, shard {i}"));
                    assert_sound_copies(&shard.matrix_states, what);
                }
            }
        }
    }
}

/// That the model, and the posterior predictive where there is one, give every row a finite density.
#[track_caller]
pub fn assert_scores(state: &FitState, rows: &Array2<f64>, what: &str) {
    for candidate in &state.candidates {
        let scores = candidate.learned.estimate().score_samples(rows.view()).unwrap();
        assert!(scores.iter().all(|score| score.is_finite()), "{what}: scores");
        if let Some(posterior) = candidate.learned.posterior() {
            let scores = posterior.predictive().score_samples(rows.view()).unwrap();
            assert!(scores.iter().all(|score| score.is_finite()), "{what}: predictive scores");
        }
    }
}

#[track_caller]
fn assert_sound_mixture(mixture: &GaussianMixture, what: &str) {
    let weights = mixture.weights();
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{what}: weights {weights:?}");
    assert!(weights.iter().all(|weight| (0.0..=1.0).contains(weight)), "{what}: weights {weights:?}");
    for component in mixture.components() {
        assert!(component.mean().iter().all(|value| value.is_finite()), "{what}: means");
        assert_sound_factor(component.covariance(), what);
    }
}

#[track_caller]
fn assert_sound_posterior(posterior: &Posterior, what: &str) {
    assert_sound_mixture(&posterior.point_estimate(), what);
    let a = posterior.weights().concentrations();
    assert!(a.iter().all(|a| *a > 0.0 && a.is_finite()), "{what}: concentrations {a:?}");
    for component in posterior.components() {
        let (kappa, nu) = (component.kappa(), component.nu());
        assert!(kappa > 0.0 && kappa.is_finite(), "{what}: kappa {kappa}");
        assert!(nu > component.dim() as f64 - 1.0 && nu.is_finite(), "{what}: nu {nu}");
        assert_sound_factor(component.psi(), what);
    }
}

#[track_caller]
fn assert_sound_factor(factor: &Factor, what: &str) {
    let lower = factor.lower_matrix();
    assert!(lower.iter().all(|value| value.is_finite()), "{what}: an element of a factor");
    assert!(lower.diag().iter().all(|pivot| *pivot > 0.0), "{what}: pivots {:?}", lower.diag());
    assert!(factor.log_det().is_finite(), "{what}: log-determinant");
}

/// Working copies show their matrix and its inverse only in the file form.
#[track_caller]
fn assert_sound_copies(copies: &[MatrixState], what: &str) {
    for copy in copies {
        let copy = serde_json::to_value(copy).unwrap();
        let scale = number(&copy["scale"]);
        assert!(scale > 0.0, "{what}: the scale of a matrix state");
        let Some(precision) = copy.get("precision") else { continue };
        let [matrix, _inverse] = ["matrix", "inverse"].map(|part| {
            Factor::from_matrix(matrix_of_triangle(&precision[part]).view())
                .unwrap_or_else(|error| panic!("{what}: the {part} of a matrix state: {error}"))
        });
        // Both are followed row by row, not computed anew.
        let log_scale = number(&precision["log_scale"]);
        assert!((log_scale - scale.ln()).abs() < 1e-9, "{what}: ln {scale} = {log_scale}");
        let log_det = number(&precision["log_det"]) + number(&precision["log_growth"]);
        let exact = matrix.log_det();
        assert!((log_det - exact).abs() < 1e-7 * exact.abs().max(1.0), "{what}: ln det {log_det}, {exact}");
    }
}
