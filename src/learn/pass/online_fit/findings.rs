//! What a pass has found out about its data.

use ndarray::s;

use super::{FinishedPass, OnlineFit, Stage};
use crate::learn::monitor::findings::{
    find_columns_at_floor, find_discrete_columns, find_numbering, find_odd_values, find_repeated_rows,
    judge_choice, judge_health, judge_learned_k, judge_order, judge_row_count, name_column_faults,
};
use crate::learn::structure::rows_of;
use crate::learn::{Finding, Lineage, Today};

/// Rows that the columns are judged by.
const FIRST_ROWS: usize = 4096;

impl OnlineFit {
    /// What a user should know about the data and about what was learned from them so far. Complete after
    /// [`OnlineFit::finish`].
    ///
    /// ```
    /// use gmm_bmm::{FitSettings, OnlineFit};
    /// use gmm_bmm::findings::Finding;
    /// let rows = ndarray::Array2::from_shape_fn((200, 2), |(i, j)| if j == 0 { i as f64 } else { (i as f64).sin() });
    /// let mut pass = OnlineFit::new(["id", "x"], FitSettings::obmm([2]))?;
    /// pass.observe(rows.view())?;
    /// assert!(pass.findings().contains(&Finding::RowNumbers { column: "id".into() }));
    /// # Ok::<(), gmm_bmm::LearnError>(())
    /// ```
    pub fn findings(&self) -> Vec<Finding> {
        let names = &self.columns.names;
        let mut found = self.first_findings();
        found.extend(judge_order(&self.start_shifts(), names, &found, self.keeps_rows()));
        found.extend(self.weights.finding());
        let faults = self.column_faults();
        found.extend(name_column_faults(&faults, names));
        found.extend(self.data_change());
        match find_repeated_rows(&self.resumed_from, &self.summaries) {
            // All rows of the run come again, so their number is known.
            Some(repeated) => found.push(repeated),
            None => found.extend(self.seen.findings().into_iter().map(|found| self.placed(found))),
        }
        found.extend(judge_choice(&self.scores()));
        found.extend(self.recognition.shard().map(|shard| shard.lineage).as_ref().and_then(Lineage::repeats));
        let best = self.best();
        let mut health = self.running_health();
        if let Some(finished) = self.finished(best) {
            health = health + finished.health;
        }
        if let (Some(floor), Ok(mixture)) = (self.floor(), self.mixture_of(best)) {
            if health.pivots_raised > 0 {
                found.extend(find_columns_at_floor(&mixture, floor, &faults, names));
            }
            found.extend(judge_row_count(mixture.k(), self.rows));
            found.extend(judge_learned_k(&self.settings.components, mixture.k()));
        }
        found.extend(judge_health(&health));
        found
    }

    /// A finding of learned rows with their places in the stream.
    fn placed(&self, finding: Finding) -> Finding {
        let place = |row: u64| self.places.of(row - 1) + 1;
        match finding {
            Finding::RowsLearnedBefore { rows, from, before } => {
                Finding::RowsLearnedBefore { rows, from: place(from), before: place(before) }
            }
            other => other,
        }
    }

    /// How the rows of this run compare with those before, if the pass was resumed: for the K with the best score.
    pub fn today(&self) -> Option<Today> {
        let Stage::Learning(learning) = &self.stage else { return None };
        learning.candidates[self.best()].today()
    }

    /// The changes of the data that the K with the best score found.
    fn data_change(&self) -> Option<Finding> {
        let Stage::Learning(learning) = &self.stage else { return None };
        let changes = learning.candidates[self.best()].changes()?;
        Some(changes.finding(self.settings.half_life.is_some()))
    }

    /// What the first rows show of the columns, without what takes time to compute. Known before the start is fitted.
    pub(crate) fn first_findings(&self) -> Vec<Finding> {
        let Stage::Buffering(buffer) = &self.stage else { return self.first_findings.clone() };
        let rows = rows_of(buffer.rows(self.dim()).values(), self.dim());
        let first = rows.slice(s![..rows.nrows().min(FIRST_ROWS), ..]);
        let names = &self.columns.names;
        // Columns with noise are no longer discrete.
        let discrete = find_discrete_columns(first, names).filter(|_| !self.settings.dequantize.is_on());
        let mut found: Vec<Finding> = discrete.into_iter().collect();
        found.extend(find_numbering(first, names));
        found.extend(find_odd_values(first, names));
        found
    }

    /// The least variances of the columns, once there is a mixture.
    fn floor(&self) -> Option<&[f64]> {
        match (&self.stage, &self.finished_pass) {
            (Stage::Learning(learning), _) => Some(&learning.floor),
            (_, Some(FinishedPass::Buffered(made))) => Some(&made.floor),
            _ => None,
        }
    }
}
