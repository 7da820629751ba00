//! The plan of a comparison.

use std::collections::{BTreeMap, HashSet};

use ndarray::{Array2, Axis};

use super::contender::Contender;
use super::error::ExperimentError;
use super::external::{ExternalLearner, Launcher};
use super::index::{RecordIndex, SetIndex};
use super::record::{CellRecord, CellSettings, DataRecord};
use super::split::{FoldRows, fitting_rows};
use crate::hash::{FNV_EMPTY, fnv_add, mix_bits};

/// Commands get smaller seeds than this, because many take 32 bits with a sign.
pub(super) const SEEDS_OF_COMMANDS: u64 = 1 << 31;

/// A data set with its rows.
#[derive(Debug, Clone)]
pub struct PlannedSet {
    /// Its record.
    pub record: DataRecord,
    /// The rows that are split into folds; all training rows if there are test rows.
    pub rows: Array2<f64>,
    /// Their weights, all above 0, if they have any.
    pub weights: Option<Vec<f64>>,
    /// Separate test rows.
    pub test: Option<Array2<f64>>,
    /// Their weights, all above 0, if they have any.
    pub test_weights: Option<Vec<f64>>,
}

impl PlannedSet {
    /// The set without rows that have no value, and the number of these. They can neither be learned nor scored.
    pub fn without_empty_rows(mut self) -> (Self, usize) {
        let kept = |rows: &mut Array2<f64>, weights: &mut Option<Vec<f64>>| {
            let has_value = |&i: &usize| rows.row(i).iter().any(|value| !value.is_nan());
            let places: Vec<usize> = (0..rows.nrows()).filter(has_value).collect();
            let empty = rows.nrows() - places.len();
            if empty > 0 {
                *rows = rows.select(Axis(0), &places);
                if let Some(weights) = weights {
                    *weights = places.iter().map(|&i| weights[i]).collect();
                }
            }
            empty
        };
        let mut empty = kept(&mut self.rows, &mut self.weights);
        if let Some(test) = &mut self.test {
            empty += kept(test, &mut self.test_weights);
        }
        self.record.rows = self.rows.nrows();
        (self, empty)
    }
}

/// What to compare.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The data sets.
    pub sets: Vec<PlannedSet>,
    /// Sets without data that keep a row in the tables.
    pub missing: Vec<DataRecord>,
    /// The numbers of components.
    pub ks: Vec<usize>,
    /// The learners.
    pub contenders: Vec<Contender>,
    /// Seed of splits and starts.
    pub seed: u64,
    /// Seeds that splits and starts are repeated with: `seed`, `seed + 1` and so on.
    pub seeds: usize,
    /// Folds of the cross-validation with each seed; 1 if the sets have separate test rows.
    pub folds: usize,
    /// Settings of the learners.
    pub settings: CellSettings,
    /// How often each fit is timed; the median is recorded.
    pub repeat: usize,
    /// Runs the learners that are commands.
    pub launcher: Launcher,
    /// Whether cells that failed are run again.
    pub retry_failed: bool,
}

/// One learner with one K on one fold of one data set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Index of the data set in the plan.
    pub set: usize,
    /// The test fold, from 0.
    pub fold: usize,
    /// Components; ignored by a learner that learns K.
    pub k: usize,
    /// The learner.
    pub contender: Contender,
}

impl Plan {
    /// Refuses a plan that cannot be run.
    pub fn check(&self) -> Result<(), ExperimentError> {
        let refuse = |text: String| Err(ExperimentError::Plan(text));
        if self.sets.is_empty() || self.contenders.is_empty() || self.ks.is_empty() || self.ks.contains(&0) {
            return refuse("a comparison needs data, learners and numbers of components from 1".into());
        }
        if self.settings.half_life == Some(0) {
            return refuse("a half-life must be at least 1 row".into());
        }
        if self.settings.em_restarts == 0 || self.settings.shards == 0 || self.repeat == 0 || self.seeds == 0
        {
            return refuse("starts of EM, shards, seeds and repeats must be at least 1".into());
        }
        let mut called = HashSet::new();
        for learner in self.learners() {
            if let Some(fault) = learner.fault() {
                return refuse(fault);
            }
            let own = |contender: &&Contender| contender.name().eq_ignore_ascii_case(&learner.name);
            if Contender::ALL.iter().any(|contender| own(&contender)) || !called.insert(&learner.name) {
                return refuse(format!("two learners are called '{}': rename one of them", learner.name));
            }
        }
        let mut names = HashSet::new();
        for set in &self.sets {
            let name = &set.record.data;
            if !names.insert(name) {
                return refuse(format!("two data sets are called '{name}': rename one of the files"));
            }
            let rows = set.rows.nrows();
            match &set.test {
                Some(test) if test.nrows() == 0 || self.folds != 1 => {
                    return refuse(format!("'{name}' needs test rows, and then has one fold"));
                }
                None if self.folds < 2 || self.folds > rows => {
                    return refuse(format!(
                        "{} folds cannot be made of the {rows} rows of '{name}': give more rows or fewer folds",
                        self.folds
                    ));
                }
                _ => {}
            }
            let least = fitting_rows(rows - if set.test.is_some() { 0 } else { rows.div_ceil(self.folds) });
            let largest = self.ks.iter().copied().max().unwrap_or(1);
            // The second half of the training rows is scored after learning the first.
            if least / 2 < largest || least == rows {
                return refuse(format!(
                    "'{name}' has too few rows for K = {largest}: {least} are left to learn from once test and \
                     validation rows are set apart; choose fewer components or more folds"
                ));
            }
        }
        Ok(())
    }

    /// The learners that are commands.
    pub(super) fn learners(&self) -> impl Iterator<Item = &ExternalLearner> {
        self.contenders.iter().filter_map(|contender| contender.commands())
    }

    /// The cells that the records do not have, in the order of the plan.
    pub(super) fn missing_cells(&self, index: &RecordIndex) -> Vec<Cell> {
        let mut missing = Vec::new();
        for (place, set) in self.sets.iter().enumerate() {
            let recorded = index.set(&set.record.data);
            // A learner that learns K has one cell in each fold, which is listed under the first K.
            let has_learned_k = |contender: &Contender, fold: usize| {
                recorded.is_some_and(|set| {
                    let failures = set.failures_of(contender).filter(|_| !self.retry_failed);
                    set.cells_of(contender).chain(failures).any(|cell| cell.fold == fold)
                })
            };
            let has_cell = |contender: &Contender, k: usize, fold: usize| {
                let has_failed = |set: &SetIndex| {
                    !self.retry_failed
                        && set.failures_of(contender).any(|cell| (cell.k, cell.fold) == (k, fold))
                };
                recorded.is_some_and(|set| set.cell(contender, k, fold).is_some() || has_failed(set))
            };
            for fold in 0..self.fold_count() {
                for &k in &self.ks {
                    let is_missing = |contender: &Contender| match contender.learns_k() {
                        true => k == self.ks[0] && !has_learned_k(contender, fold),
                        false => !has_cell(contender, k, fold),
                    };
                    let here = self.contenders.iter().filter(|contender| is_missing(contender)).cloned();
                    missing.extend(here.map(|contender| Cell { set: place, fold, k, contender }));
                }
            }
        }
        missing
    }

    /// Refuses to mix with records that were made with other settings or from other data.
    pub(super) fn check_against(&self, index: &RecordIndex) -> Result<(), ExperimentError> {
        for run in index.runs() {
            same("seed", &run.seed, &self.seed)?;
            same("number of folds", &run.folds, &self.folds)?;
            let mut settings = in_words(&run.settings).into_iter().zip(in_words(&self.settings));
            settings.try_for_each(|((what, theirs), (_, ours))| same(what, &theirs, &ours))?;
        }
        for set in &self.sets {
            let Some(recorded) = index.set(&set.record.data) else { continue };
            if let Some(data) = recorded.data().filter(|data| data.missing.is_none()) {
                let of = |what: &str| format!("{what} of '{}'", data.data);
                same(&of("number of rows"), &data.rows, &set.record.rows)?;
                same(&of("list of columns"), &data.columns.join(","), &set.record.columns.join(","))?;
                same(&of("noise"), &noise(data), &noise(&set.record))?;
                same(&of("weights"), &weights(data), &weights(&set.record))?;
            }
            self.check_rows_against(set, recorded)?;
        }
        Ok(())
    }

    /// Compares the spread of each fold's training rows with the one recorded in its cells.
    fn check_rows_against(&self, set: &PlannedSet, recorded: &SetIndex) -> Result<(), ExperimentError> {
        let of_fold: BTreeMap<usize, &CellRecord> = recorded.cells().map(|cell| (cell.fold, cell)).collect();
        for (fold, cell) in of_fold.into_iter().filter(|(fold, _)| *fold < self.fold_count()) {
            let split = FoldRows::new(self, set, fold);
            let gaps = split.gap_jacobians();
            same(
                &format!("conversion of scores of '{}'", set.record.data),
                &of_gaps(cell.gap_jacobians.is_some()),
                &of_gaps(gaps.is_some()),
            )?;
            let theirs = (cell.log_jacobian, cell.test.len(), &cell.gap_jacobians, &cell.weights);
            if theirs != (split.log_jacobian(), split.test.nrows(), &gaps, &split.test_weights) {
                return Err(ExperimentError::OtherSettings {
                    what: format!("content of '{}'", set.record.data),
                    theirs: "other rows".into(),
                    ours: "these".into(),
                });
            }
        }
        Ok(())
    }

    /// Folds of all seeds.
    pub(super) fn fold_count(&self) -> usize {
        self.folds * self.seeds
    }

    /// The seed of a fold, and the fold's number within that seed.
    pub(super) fn split_of(&self, fold: usize) -> (u64, usize) {
        (self.seed.wrapping_add((fold / self.folds) as u64), fold % self.folds)
    }

    /// The seed of the learners with one K in one fold.
    pub(super) fn start_seed(&self, set: &PlannedSet, fold: usize, k: impl std::fmt::Display) -> u64 {
        let (seed, fold) = self.split_of(fold);
        seed_for(seed, set.record.name_without_noise(), &format!("start {fold} {k}"))
    }

    /// A seed for one purpose on one data set.
    pub(super) fn seed_of(&self, set: &PlannedSet, purpose: &str) -> u64 {
        seed_for(self.seed, set.record.name_without_noise(), purpose)
    }
}

/// A seed for one purpose on one data set.
pub(super) fn seed_for(seed: u64, data: &str, purpose: &str) -> u64 {
    derived_seed(seed, &format!("{data}/{purpose}"))
}

/// Records of earlier versions do not say which values were missing.
fn of_gaps(is_by_row: bool) -> &'static str {
    if is_by_row { "by the observed values of each row" } else { "by all columns" }
}

/// The settings of the learners, with their names.
fn in_words(settings: &CellSettings) -> [(&'static str, String); 7] {
    let CellSettings { em_restarts, shards, warmup, half_life, file_order, blind_prior, alpha } = *settings;
    let rows = |rows: Option<u64>, none: &str| rows.map_or(none.into(), |rows| format!("{rows} rows"));
    [
        ("number of starts of EM", em_restarts.to_string()),
        ("number of shards", shards.to_string()),
        ("order of rows", if file_order { "file order" } else { "shuffled order" }.into()),
        ("warm-up", rows(warmup, "the start's rows")),
        ("half-life", rows(half_life, "a tenth of the rows")),
        ("blind start", format!("{},{}", blind_prior.mean_rows, blind_prior.spread)),
        ("α", alpha.map_or("chosen".into(), |alpha| alpha.to_string())),
    ]
}

fn weights(data: &DataRecord) -> String {
    data.weight.as_ref().map_or("none".into(), |column| format!("'{column}'"))
}

fn noise(data: &DataRecord) -> String {
    if data.dequantized.is_empty() {
        return "none".into();
    }
    data.dequantized
        .iter()
        .map(|(name, quantum)| format!("{name} by {quantum}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn same<T: PartialEq + ToString>(what: &str, theirs: &T, ours: &T) -> Result<(), ExperimentError> {
    if theirs == ours {
        return Ok(());
    }
    Err(ExperimentError::OtherSettings {
        what: what.into(),
        theirs: theirs.to_string(),
        ours: ours.to_string(),
    })
}

/// Derives a seed from another and a purpose, the same on every machine: FNV-1a, then a finaliser that mixes all bits.
fn derived_seed(seed: u64, purpose: &str) -> u64 {
    mix_bits(seed.to_le_bytes().into_iter().chain(purpose.bytes()).fold(FNV_EMPTY, fnv_add))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::Units;

    /// A plan for one small set.
    pub fn plan_of(rows: usize, folds: usize) -> Plan {
        let values = Array2::from_shape_fn((rows, 2), |(i, j)| ((i * (j + 3)) as f64 * 0.7).sin());
        let record = DataRecord {
            data: "waves".into(),
            title: "Waves".into(),
            rows,
            columns: vec!["a".into(), "b".into()],
            discrete: Vec::new(),
            dequantized: Vec::new(),
            units: Units::Raw,
            stand_in: false,
            missing: None,
            sample: None,
            paper: None,
            weight: None,
        };
        Plan {
            sets: vec![PlannedSet { record, rows: values, weights: None, test: None, test_weights: None }],
            missing: Vec::new(),
            ks: vec![1, 2],
            contenders: vec![Contender::Start, Contender::Obmm],
            seed: 1,
            seeds: 1,
            folds,
            settings: CellSettings { em_restarts: 2, ..CellSettings::default() },
            repeat: 1,
            launcher: Launcher::default(),
            retry_failed: false,
        }
    }

    #[test]
    fn plans_that_cannot_be_run_are_refused() {
        assert!(plan_of(60, 3).check().is_ok());
        let refused = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan_of(60, 3);
            change(&mut plan);
            plan.check().unwrap_err().to_string()
        };
        assert!(refused(&|plan| plan.folds = 1).contains("1 folds cannot be made of the 60 rows"));
        assert!(refused(&|plan| plan.folds = 61).contains("61 folds"));
        assert!(refused(&|plan| plan.ks = vec![30]).contains("too few rows for K = 30"));
        assert!(refused(&|plan| plan.sets.push(plan.sets[0].clone())).contains("two data sets"));
        assert!(refused(&|plan| plan.repeat = 0).contains("at least 1"));
    }

    #[test]
    fn all_cells_are_missing_at_first() {
        let plan = plan_of(60, 3);
        assert_eq!(plan.missing_cells(&RecordIndex::default()).len(), 3 * 2 * 2);
    }

    #[test]
    fn seeds_depend_on_seed_and_purpose() {
        let seeds = [derived_seed(1, "a"), derived_seed(2, "a"), derived_seed(1, "b"), derived_seed(1, "ab")];
        let distinct: HashSet<u64> = seeds.into_iter().collect();
        assert_eq!(distinct.len(), 4);
        assert_eq!(derived_seed(1, "a"), derived_seed(1, "a"));
    }
}
