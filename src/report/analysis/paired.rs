//! The signed-rank test of a learner against the reference.

use super::scores::{mean, standard_error};
use super::select::{Differences, SIGNIFICANCE};
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
pub(in crate::report) struct Outcome {
    pub p_value: f64,
    /// Rank-biserial correlation, in [−1, 1]; positive if the learner is better than the reference.
    pub effect_size: f64,
    /// The mean of the differences, and its standard error.
    pub difference: Option<f64>,
    pub difference_error: Option<f64>,
}

impl Outcome {
    /// The direction in which the ranks differ significantly, if the means differ in the same direction: those of the pairs, and
    /// those of the tables, whose difference is `shown`. A few extreme rows can move a mean against the ranks.
    pub fn arrow(&self, shown: f64) -> Option<Arrow> {
        let means = [self.difference?, shown];
        let agree = |sign: f64| sign * self.effect_size > 0.0 && means.iter().all(|mean| sign * mean > 0.0);
        match self.p_value < SIGNIFICANCE {
            true if agree(1.0) => Some(Arrow::Up),
            true if agree(-1.0) => Some(Arrow::Down),
            _ => None,
        }
    }
}

/// Tests differences (learner − reference); `None` if they cannot be tested.
pub(in crate::report) fn test(differences: &Differences) -> Option<Outcome> {
    let Differences { values, weights } = differences;
    let result = signed_rank(values).filter(|_| !values.is_empty())?;
    let (difference, difference_error) = match weights {
        None => (mean(values), standard_error(values)),
        Some(_) => {
            let summary = differences.summary();
            (Some(summary.mean), summary.standard_error())
        }
    };
    let finite = |value: Option<f64>| value.filter(|value| value.is_finite());
    Some(Outcome {
        p_value: result.p_value,
        effect_size: result.rank_biserial(),
        difference: finite(difference),
        difference_error: finite(difference_error),
    })
}

/// Holm's correction of the known p-values.
pub(in crate::report) fn corrected(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known: Vec<f64> = p_values.iter().flatten().copied().collect();
    let mut corrected = holm(&known).into_iter();
    p_values.iter().map(|p| p.and_then(|_| corrected.next())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Differences {
        Differences { values: values.to_vec(), weights: None }
    }

    #[test]
    fn an_arrow_needs_ranks_and_means_of_the_same_sign() {
        let up: Vec<f64> = (1..40).map(f64::from).collect();
        let down: Vec<f64> = up.iter().map(|x| -x).collect();
        assert_eq!(test(&of(&up)).unwrap().arrow(1.0), Some(Arrow::Up));
        assert_eq!(test(&of(&down)).unwrap().arrow(-1.0), Some(Arrow::Down));
        let even: Vec<f64> = up.iter().enumerate().map(|(i, x)| if i % 2 == 0 { *x } else { -x }).collect();
        assert_eq!(test(&of(&even)).and_then(|outcome| outcome.arrow(1.0)), None);
        // One extreme row moves the mean against the ranks.
        let moved = test(&of(&[&up[..], &[-1e6]].concat())).unwrap();
        assert!(moved.p_value < 0.05 && moved.effect_size > 0.0 && moved.difference < Some(0.0));
        assert_eq!([moved.arrow(-1.0), moved.arrow(1.0), test(&of(&up)).unwrap().arrow(-1.0)], [None; 3]);
    }

    #[test]
    fn the_correction_leaves_gaps_where_they_are() {
        let corrected = corrected(&[Some(0.01), None, Some(0.04)]);
        assert_eq!(corrected, [Some(0.02), None, Some(0.04)]);
    }
}
