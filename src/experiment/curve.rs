//! Learning curves: the held-out score against the rows seen.

use super::contender::Contender;
use super::index::RecordIndex;
use super::plan::Plan;
use super::record::{CellRecord, CurveRecord};
use super::trial::{Curve, Trial};
use crate::learn::LearnError;

/// The fold whose test rows are scored.
const FOLD: usize = 0;
/// Points of a curve.
const POINTS: usize = 30;

/// The missing curves of one data set.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CurveJob {
    /// Index of the data set in the plan.
    pub set: usize,
    /// Components: the K that the fold's validation rows chose for oBMM, or for the first online learner without oBMM.
    pub k: usize,
    /// Learners, with the α or β of their cell.
    pub learners: Vec<(Contender, Option<f64>)>,
    /// Mean test score of batch EM with as many components.
    pub level: Option<(String, f64)>,
}

/// The curves that the records, which have all cells, do not have yet.
pub(super) fn missing_curves(plan: &Plan, index: &RecordIndex) -> Vec<CurveJob> {
    (0..plan.sets.len()).filter_map(|set| missing_curves_of(plan, set, index)).collect()
}

fn missing_curves_of(plan: &Plan, set: usize, index: &RecordIndex) -> Option<CurveJob> {
    let recorded = index.set(&plan.sets[set].record.data)?;
    // A learner that learns K has no K to draw its curve at.
    let online = || plan.contenders.iter().filter(|c| c.is_online() && !c.learns_k());
    let leader = online().find(|contender| **contender == Contender::Obmm).or_else(|| online().next())?;
    let of_leader: Vec<&CellRecord> =
        recorded.cells_of(leader).filter(|cell| cell.fold == FOLD && plan.ks.contains(&cell.k)).collect();
    let k = best_k(&of_leader)?;
    let is_drawn = |contender: &&Contender| {
        recorded.curves().iter().any(|curve| curve.contender == **contender && curve.k == k)
    };
    let wanted = online().filter(|contender| !is_drawn(contender));
    let learners: Vec<_> =
        wanted.filter_map(|c| Some((c.clone(), recorded.cell(c, k, FOLD)?.tuned))).collect();
    let level = recorded.cell(&Contender::Em, k, FOLD).and_then(CellRecord::mean_score);
    let level = level.map(|score| ("batch EM".to_string(), score));
    (!learners.is_empty()).then_some(CurveJob { set, k, learners, level })
}

/// The K with the best score of the validation rows. Ties go to the smaller K; a single K needs no score.
fn best_k(cells: &[&CellRecord]) -> Option<usize> {
    if let [only] = cells {
        return Some(only.k);
    }
    let scored = cells.iter().filter_map(|cell| Some((cell.k, cell.validation?)));
    scored.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(k, _)| k)
}

/// Computes the curves of one data set. Stops when `emit` returns `false`.
pub(super) fn run_curves(
    plan: &Plan,
    job: &CurveJob,
    emit: &mut dyn FnMut(CurveRecord) -> bool,
) -> Result<(), (Contender, LearnError)> {
    let set = &plan.sets[job.set];
    let mut trial = Trial::new(plan, set, FOLD, job.k);
    for (contender, tuned) in &job.learners {
        let start_rows = trial.start_rows(contender);
        let row_counts = spaced(start_rows, trial.train_rows());
        let curve =
            trial.curve(contender, *tuned, &row_counts).map_err(|error| (contender.clone(), error))?;
        let Curve { points, revisions } = curve;
        let (data, contender, level) = (set.record.data.clone(), contender.clone(), job.level.clone());
        let start_rows = Some(start_rows as u64);
        if !emit(CurveRecord { data, contender, k: job.k, points, start_rows, level, revisions }) {
            break;
        }
    }
    Ok(())
}

/// Numbers of rows from `first` to `most`, evenly spaced on a logarithmic axis.
pub(super) fn spaced(first: usize, most: usize) -> Vec<usize> {
    let first = first.clamp(1, most.max(1));
    let ratio = most as f64 / first as f64;
    let at = |i: usize| (first as f64 * ratio.powf(i as f64 / (POINTS - 1) as f64)).round() as usize;
    let mut counts: Vec<usize> = (0..POINTS).map(|i| at(i).min(most)).collect();
    counts.dedup();
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_spaced_evenly_on_a_logarithmic_axis() {
        let counts = spaced(10, 100_000);
        assert_eq!((counts.len(), counts[0], counts[29]), (30, 10, 100_000));
        assert!(counts.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(spaced(5000, 5003), [5000, 5001, 5002, 5003]);
        assert_eq!(spaced(10, 10), [10]);
        assert_eq!(spaced(10, 3), [3]);
    }
}
