use serde::Serialize;

/// The score of one K. Larger is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredK {
    /// The number of components.
    pub k: usize,
    /// Its score.
    pub score: f64,
    /// The standard error of its difference from the best score, if known.
    pub standard_error: Option<f64>,
}

/// The elbow of scores over K: the smallest K beyond which larger K gain little, or the K where the scores bend most.
///
/// If the scores level off, the elbow is the smallest K that no larger K exceeds by more than one standard error, or by more
/// than a fifth of the average gain for each further component. The average gain is the gain from the smallest K to the best,
/// divided by the range of K. The scores level off only if at least a tenth of the range lies beyond the elbow.
///
/// If the scores rise to the end, the elbow is the K where they bend most: the K with the largest height above the straight
/// line with the same total gain.
///
/// ```
/// use gmm_bmm::internals::stats::ScoredK;
/// use gmm_bmm::scores::{Beyond, Elbow};
///
/// let of = |scores: &[f64]| {
///     let scored = |(k, &score)| ScoredK { k, score, standard_error: None };
///     Elbow::find(&(2..).zip(scores).map(scored).collect::<Vec<_>>())
/// };
/// let levels_off = of(&[-9.0, -6.0, -5.0, -4.98, -4.97, -4.96]).unwrap();
/// assert_eq!((levels_off.k, levels_off.beyond), (4, Beyond::Little));
/// let rises = of(&[-9.0, -6.0, -5.5, -5.0, -4.5, -4.0]).unwrap();
/// assert_eq!((rises.k, rises.beyond), (3, Beyond::Rises));
/// assert_eq!(of(&[-6.0, -5.0, -4.0]), None); // a straight line
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Elbow {
    /// The number of components.
    pub k: usize,
    /// Its fraction of the gain from the smallest K to the best, from 0 to 1; `None` if the smallest K is the best.
    pub share: Option<f64>,
    /// The gain of larger K.
    pub beyond: Beyond,
}

/// The gain of K larger than the [`Elbow`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// Nothing: the elbow is the best K.
    Nothing,
    /// At most one standard error.
    WithinError,
    /// Little for each further component.
    Little,
    /// The scores do not level off within the range.
    Rises,
}

/// A component gains little if it gains less than this fraction of the average.
const LITTLE: f64 = 0.2;

/// At least one part in this many of the range lies beyond a K where the scores level off.
const TAIL: usize = 10;

/// The smallest bend, as a fraction of the gain. Scores that bend less rise evenly.
const MIN_BEND: f64 = 0.2;

impl Elbow {
    /// The elbow of scores in ascending order of K. `None` if there are fewer than two scores, if one is not finite, or if the
    /// scores rise evenly to the end.
    pub fn find(scored: &[ScoredK]) -> Option<Self> {
        let (first, last) = (scored.first()?, scored.last()?);
        if scored.len() < 2 || scored.iter().any(|at| !at.score.is_finite()) {
            return None;
        }
        let best = highest(scored, |at| at.score)?;
        let gain = best.score - first.score;
        let share = |at: &ScoredK| (gain > 0.0).then(|| (at.score - first.score) / gain);
        let place = |at: &ScoredK| (at.k - first.k) as f64 / (last.k - first.k) as f64;
        let is_near = |at: &&ScoredK| at.standard_error.is_some_and(|error| best.score - at.score <= error);
        let near = scored.iter().find(|at| at.k < best.k && is_near(at)).unwrap_or(best);
        let settled = highest(scored, |at| at.score - LITTLE * gain * place(at))?;
        let (at, beyond) = match near.k.min(settled.k) {
            k if TAIL * (last.k - k) < last.k - first.k => {
                let bend = |at: &ScoredK| share(at).unwrap_or(0.0) - place(at);
                let most = highest(scored, bend).filter(|at| bend(at) >= MIN_BEND)?;
                (most, Beyond::Rises)
            }
            k if k == best.k => (best, Beyond::Nothing),
            k if k == settled.k => (settled, Beyond::Little),
            _ => (near, Beyond::WithinError),
        };
        Some(Elbow { k: at.k, share: share(at), beyond })
    }
}

/// The element with the largest value; the first one of equals.
fn highest(scored: &[ScoredK], by: impl Fn(&ScoredK) -> f64) -> Option<&ScoredK> {
    scored.iter().reduce(|best, next| if by(next) > by(best) { next } else { best })
}
