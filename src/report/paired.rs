//! The signed-rank test of a learner against the reference.

use crate::experiment::SIGNIFICANCE;
use crate::stats::{holm, signed_rank};

/// The direction of a significant difference to the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrow {
    /// Significantly better.
    Up,
    /// Significantly worse.
    Down,
}

impl Arrow {
    /// The symbol in tables.
    pub fn sign(self) -> &'static str {
        match self {
            Arrow::Up => "↑",
            Arrow::Down => "↓",
        }
    }
}

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outcome {
    pub p_value: f64,
    /// Rank-biserial correlation, in [−1, 1]; positive if the learner is better than the reference.
    pub effect_size: f64,
}

impl Outcome {
    pub fn arrow(&self) -> Option<Arrow> {
        (self.p_value < SIGNIFICANCE && self.effect_size != 0.0).then_some(if self.effect_size > 0.0 {
            Arrow::Up
        } else {
            Arrow::Down
        })
    }
}

/// Tests differences (learner − reference); `None` if they cannot be tested.
pub(super) fn test(differences: &[f64]) -> Option<Outcome> {
    let result = signed_rank(differences).filter(|_| !differences.is_empty())?;
    Some(Outcome { p_value: result.p_value, effect_size: result.rank_biserial() })
}

/// Holm's correction of the known p-values.
pub(super) fn corrected(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = p_values.iter().flatten().copied().collect();
    let mut corrected = holm(&known).into_iter();
    p_values.iter().map(|p| p.and_then(|_| corrected.next())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arrow_follows_the_sign_of_the_effect() {
        let up: Vec<f64> = (1..40).map(f64::from).collect();
        let down: Vec<f64> = up.iter().map(|x| -x).collect();
        assert_eq!(test(&up).unwrap().arrow(), Some(Arrow::Up));
        assert_eq!(test(&down).unwrap().arrow(), Some(Arrow::Down));
        let even: Vec<f64> = up.iter().enumerate().map(|(i, x)| if i % 2 == 0 { *x } else { -x }).collect();
        assert_eq!(test(&even).and_then(|outcome| outcome.arrow()), None);
    }

    #[test]
    fn the_correction_leaves_gaps_where_they_are() {
        let corrected = corrected(&[Some(0.01), None, Some(0.04)]);
        assert_eq!(corrected, [Some(0.02), None, Some(0.04)]);
    }
}
