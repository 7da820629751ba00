//! Which online learners end below the start.

use super::ReportError;
use super::names::{fixed, title};
use super::scores::mean;
use super::summary::{Cells, differences};
use crate::experiment::{Contender, DataRecord, Pairs};
use crate::stats::standard_error;
use crate::text::runs_of_k;

/// How far a learner is below the start with the same K.
struct Loss {
    k: usize,
    /// The mean of the paired differences, positive where the learner is below the start.
    mean: f64,
    standard_error: f64,
}

/// The learners of one set that are below the start by more than the standard error, in a sentence.
pub(super) fn note(data: &DataRecord, cells: &Cells) -> Result<Option<String>, ReportError> {
    let mut named = Vec::new();
    for &contender in cells.keys().filter(|contender| contender.is_online()) {
        let losses = losses(contender, data, cells)?;
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

/// What is said where the start took part and no learner is below it.
pub(super) fn none() -> String {
    format!("No online learner has a mean test score {BELOW}.")
}

/// The K at which a learner is below the start by more than the standard error.
fn losses(contender: Contender, data: &DataRecord, cells: &Cells) -> Result<Vec<Loss>, ReportError> {
    let (Some(ours), Some(starts)) = (cells.get(&contender), cells.get(&Contender::Start)) else {
        return Ok(Vec::new());
    };
    let mut losses = Vec::new();
    // Folds in which a learner found different K say nothing together.
    for (&k, folds) in ours.iter().filter(|_| !contender.learns_k()) {
        let Some(start) = starts.get(&k) else { continue };
        let differences = differences(folds, start, Pairs::Rows, &data.data)?;
        if let (Some(mean), Some(standard_error)) = (mean(&differences), standard_error(&differences))
            && -mean > standard_error
        {
            losses.push(Loss { k, mean: -mean, standard_error });
        }
    }
    Ok(losses)
}
