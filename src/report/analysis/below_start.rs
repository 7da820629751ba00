//! The note on online learners that score below the start.

use super::repeats::Repeats;
use super::select::Pairs;
use super::summary::differences;
use crate::experiment::{Contender, DataRecord, SetIndex};
use crate::report::ReportError;
use crate::report::format::title;
use crate::stats::ColumnSummary;
use crate::text::number::fixed;
use crate::text::runs_of_k;

/// The loss of a learner against the start with the same K.
struct Loss {
    k: usize,
    /// The mean of the paired differences, positive if the learner is below the start.
    mean: f64,
    standard_error: f64,
}

/// Names the learners of one set that are below the start by more than the standard error.
pub(in crate::report) fn note(
    data: &DataRecord,
    records: &SetIndex,
    repeats: &Repeats,
) -> Result<Option<String>, ReportError> {
    let mut named = Vec::new();
    for contender in records.contenders().filter(|contender| contender.is_online()) {
        let losses = losses(contender, records, repeats)?;
        if let Some(worst) = losses.iter().max_by(|a, b| a.mean.total_cmp(&b.mean)) {
            let by = format!("{} ± {}", fixed(worst.mean, 4), fixed(worst.standard_error, 4));
            let by = if losses.len() == 1 {
                format!("by {by}")
            } else {
                format!("most at K = {}, by {by}", worst.k)
            };
            let ks: Vec<usize> = losses.iter().map(|loss| loss.k).collect();
            named.push(format!("{} at K = {} ({by})", contender.name(), runs_of_k(&ks)));
        }
    }
    let text = || format!("{}: mean test score {BELOW}: {}.", title(data), named.join("; "));
    Ok((!named.is_empty()).then(text))
}

const BELOW: &str =
    "below that of the start with the same K by more than the standard error of the paired difference";

/// The note if the start took part and no learner is below it.
pub(in crate::report) fn none() -> String {
    format!("No online learner has a mean test score {BELOW}.")
}

/// The K at which a learner is below the start by more than the standard error.
fn losses(contender: &Contender, records: &SetIndex, repeats: &Repeats) -> Result<Vec<Loss>, ReportError> {
    let mut losses = Vec::new();
    // Folds in which a learner found different K cannot be averaged for one K.
    let starts = records.by_k(&Contender::Start);
    for (k, folds) in records.by_k(contender).into_iter().filter(|_| !contender.learns_k()) {
        let Some(start) = starts.get(&k) else { continue };
        let packed: Option<Vec<ColumnSummary>> =
            folds.values().map(|cell| cell.summary.as_ref()?.to_start).collect();
        let differences: ColumnSummary = match packed {
            Some(parts) => parts.into_iter().fold(ColumnSummary::default(), ColumnSummary::merged),
            None => differences(&folds, start, Pairs::Rows, repeats, records.name())?.summary(),
        };
        if let Some(standard_error) = differences.standard_error().filter(|error| error.is_finite())
            && -differences.mean > standard_error
        {
            losses.push(Loss { k, mean: -differences.mean, standard_error });
        }
    }
    Ok(losses)
}
