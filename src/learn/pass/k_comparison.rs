//! Several K of one pass: their scores, and which to use.

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::learn::Prequential;
use crate::stats::{BatchSums, Beyond, Elbow, ScoredK};

/// One K of several.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatedK {
    /// The K.
    pub k: usize,
    /// Its score per row: the mean prequential log-likelihood, or −BIC/(2n) for batch EM.
    pub score: Option<f64>,
    /// Its score less the best, zero or below; none for the best itself.
    pub difference: Option<f64>,
    /// The standard error of that difference, paired over batches of rows.
    pub standard_error: Option<f64>,
}

/// Other K that are worth trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TryNext {
    /// Larger ones: the score rises to the end of the range.
    Larger(RangeInclusive<usize>),
    /// Smaller ones: the smallest K of the range does as well as any.
    Smaller(RangeInclusive<usize>),
}

/// Several K with their scores, in the order of K.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KComparison {
    /// Each K.
    pub candidates: Vec<RatedK>,
    /// The elbow of the scores, where there is one.
    pub elbow: Option<Elbow>,
}

impl KComparison {
    /// The K of a pass. Rows that are in no batch, as those of shards that learned apart, leave no standard errors.
    pub(crate) fn of_pass(scores: &[(usize, Prequential)], batches: &BatchSums) -> Self {
        let none = BatchSums::default();
        let known = scores.first().is_some_and(|(_, score)| batches.covers(score.rows));
        let means: Vec<_> = scores.iter().map(|(k, score)| (*k, score.mean())).collect();
        KComparison::new(&means, if known { batches } else { &none })
    }

    /// Several K with their scores, in the order of K and of the candidates of `batches`.
    pub fn new(scores: &[(usize, Option<f64>)], batches: &BatchSums) -> Self {
        let score = |i: usize| scores[i].1.unwrap_or(f64::NEG_INFINITY);
        let best = (0..scores.len()).fold(0, |best, i| if score(i) > score(best) { i } else { best });
        let rate = |(place, &(k, score)): (usize, &(usize, Option<f64>))| {
            let another = place != best;
            RatedK {
                k,
                score,
                difference: score.zip(scores[best].1).map(|(own, top)| own - top).filter(|_| another),
                standard_error: batches.standard_error_of_difference(place, best).filter(|_| another),
            }
        };
        let candidates: Vec<RatedK> = scores.iter().enumerate().map(rate).collect();
        let scored = candidates.iter().map(|&RatedK { k, score, standard_error, .. }| {
            Some(ScoredK { k, score: score?, standard_error })
        });
        let elbow = scored.collect::<Option<Vec<_>>>().and_then(|scored| Elbow::find(&scored));
        KComparison { candidates, elbow }
    }

    /// Whether every one of several K has a finite score.
    pub fn is_scored(&self) -> bool {
        self.candidates.len() > 1
            && self.candidates.iter().all(|candidate| candidate.score.is_some_and(f64::is_finite))
    }

    /// The K to try after these, where the scores suggest some.
    pub fn try_next(&self) -> Option<TryNext> {
        let (first, last) = (self.candidates.first()?.k, self.candidates.last()?.k);
        match self.elbow {
            _ if !self.is_scored() => None,
            None | Some(Elbow { beyond: Beyond::Rises, .. }) => Some(TryNext::Larger(last..=2 * last)),
            Some(Elbow { k, .. }) if k == first && k > 1 => Some(TryNext::Smaller(1..=k)),
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_k_is_rated_against_the_best() {
        let (mut batches, mut totals) = (BatchSums::new(vec![0.0; 3]), [0.0; 3]);
        for row in 0..40 {
            let by_row = f64::from(row % 2);
            for (total, score) in totals.iter_mut().zip([-9.0 + by_row, -5.0, -5.25]) {
                *total += score;
            }
            batches.record(1, &totals);
        }
        let choice = KComparison::new(&[(2, Some(-8.5)), (3, Some(-5.0)), (4, Some(-5.25))], &batches);
        let differences: Vec<_> = choice.candidates.iter().map(|rated| rated.difference).collect();
        assert_eq!(differences, [Some(-3.5), None, Some(-0.25)]);
        let errors: Vec<_> = choice.candidates.iter().map(|rated| rated.standard_error).collect();
        assert!(errors[0] > Some(0.05) && errors[1].is_none() && errors[2] == Some(0.0), "{errors:?}");
        assert_eq!(choice.elbow.map(|elbow| elbow.k), Some(3));
    }

    #[test]
    fn other_k_are_suggested_where_the_range_ends_too_soon() {
        let next = |from: usize, scores: &[f64]| {
            let scores: Vec<_> = (from..).zip(scores.iter().map(|&score| Some(score))).collect();
            KComparison::new(&scores, &BatchSums::default()).try_next()
        };
        assert_eq!(next(2, &[-9.0, -6.0, -5.5, -5.0, -4.5, -4.0]), Some(TryNext::Larger(7..=14)));
        assert_eq!(next(2, &[-6.0, -5.0, -4.0]), Some(TryNext::Larger(4..=8)));
        assert_eq!(next(3, &[-4.0, -4.1, -4.2]), Some(TryNext::Smaller(1..=3)));
        assert_eq!(next(1, &[-4.0, -4.1, -4.2]), None);
        assert_eq!(next(2, &[-9.0, -6.0, -5.0, -4.98, -4.97, -4.96]), None);
        assert_eq!(next(2, &[-9.0]), None);
        assert_eq!(next(2, &[-9.0, f64::NAN]), None);
    }

    #[test]
    fn without_scores_nothing_is_said() {
        let choice = KComparison::of_pass(
            &[(2, Prequential::default()), (3, Prequential::default())],
            &BatchSums::default(),
        );
        assert_eq!((choice.candidates[1].difference, choice.elbow), (None, None));
        assert_eq!(KComparison::new(&[], &BatchSums::default()).candidates, []);
        // Batches that lack some of the rows say nothing.
        let score = |log_likelihood| Prequential { rows: 50, log_likelihood, weight: None };
        let choice =
            KComparison::of_pass(&[(2, score(-100.0)), (3, score(-50.0))], &BatchSums::new(vec![0.0; 2]));
        let rated = choice.candidates[0];
        assert_eq!((rated.difference, rated.standard_error), (Some(-1.0), None));
    }
}
