//! The plan of a comparison: the data sets, with and without noise, and the settings of the learners.

use std::path::Path;

use super::Args;
use super::learners::check_programs;
use super::option_values::{NoiseChoice, Order, parse_contender};
use ndarray::{Array2, Axis};

use crate::cli::console::Console;
use crate::cli::data_args::tell_end;
use crate::cli::{usage, usage_error, wording};
use crate::data::{Block, Catalogue, DataSet, DiscreteColumn, discrete_column, find_discrete, with_noise};
use crate::experiment::{
    CellSettings, Contender, DataRecord, ExperimentError, PaperRecord, Plan, PlannedSet, Reported, STAND_IN,
    Units,
};
use crate::learn::{
    Finding, check_shards, find_column_faults, find_discrete_columns, find_numbering, find_odd_values,
    name_column_faults,
};
use crate::text::count;

impl Args {
    pub(super) fn plan(&self, console: &Console) -> anyhow::Result<Plan> {
        if self.test.is_some() && self.data.len() > 1 {
            return Err(usage("--test takes one --data"));
        }
        let mut contenders: Vec<Contender> =
            self.algos.iter().flat_map(|learners| learners.0.clone()).collect();
        if self.half_life.is_some() {
            contenders.push(Contender::ObmmForgetting);
        }
        contenders.extend(self.covariance.iter().flat_map(|&kind| Contender::of_covariance(kind)));
        self.start.apply(&mut contenders);
        contenders.extend(self.learners.contenders()?);
        contenders.sort();
        contenders.dedup();
        self.check_reference(&contenders)?;
        let (mut sets, mut missing) = (Vec::new(), Vec::new());
        for path in &self.data {
            if let Some(set) = self.reading.missing_set(path).filter(|_| self.keep_missing) {
                console.note(&format!("{} is missing: {}", set.name, wording::how_to_get(set)));
                missing.push(self.record_of(set.name.clone(), Some(set), 0, Vec::new()));
                continue;
            }
            let set = self.read_set(path, console)?;
            sets.extend(self.with_and_without_noise(set, console)?);
        }
        self.check_named_columns(&sets)?;
        let plan = Plan {
            sets,
            missing,
            ks: self.k.0.clone(),
            contenders,
            seed: self.seed,
            seeds: self.seeds.into(),
            folds: if self.test.is_some() { 1 } else { self.folds.into() },
            settings: CellSettings {
                em_restarts: self.em_restarts.into(),
                shards: self.shards.into(),
                warmup: self.warmup,
                half_life: self.half_life,
                file_order: self.order == Order::File,
                blind_prior: self.blind_prior,
                alpha: self.alpha,
            },
            repeat: self.repeat.into(),
            launcher: self.learners.launcher()?,
            retry_failed: self.learners.retry_failed,
        };
        plan.check().map_err(|error| match error {
            ExperimentError::Plan(text) => usage(text),
            other => other.into(),
        })?;
        check_programs(&plan.contenders)?;
        note_unweighted(&plan, console);
        if plan.contenders.contains(&Contender::Odmm) {
            let largest = plan.ks.iter().copied().max().unwrap_or(1);
            for set in &plan.sets {
                check_shards(plan.settings.shards, largest, set.rows.ncols()).map_err(usage_error)?;
            }
        }
        Ok(plan)
    }

    /// A learner that is named to test against must be known before the others are run.
    fn check_reference(&self, contenders: &[Contender]) -> anyhow::Result<()> {
        match &self.shown.reference {
            Some(name) if !contenders.iter().any(|contender| contender.name() == name) => {
                parse_contender(name)
                    .map(drop)
                    .map_err(|refusal| usage(format!("--reference '{name}': {refusal}")))
            }
            _ => Ok(()),
        }
    }

    fn read_set(&self, path: &Path, console: &Console) -> anyhow::Result<PlannedSet> {
        let mut rows = self.reading.open(&[path.to_path_buf()], self.seed, None, console)?;
        let columns = rows.columns().clone();
        let (values, weights) = self.counted(rows.read_all()?, path, console);
        tell_end(&mut rows, console);
        console.tell(name_column_faults(&find_column_faults(values.view()), &columns.names));
        console.tell(find_numbering(values.view(), &columns.names));
        console.tell(find_odd_values(values.view(), &columns.names));
        let test = self.reading.read_test(self.test.as_ref(), self.seed, columns.clone(), console)?;
        let name = set_name(path);
        let (test, test_weights) = match (test, &self.test) {
            (Some(test), Some(path)) => {
                let (rows, weights) = self.counted(test, path, console);
                (Some(rows), weights)
            }
            _ => (None, None),
        };
        let rows = values.nrows() + test.as_ref().map_or(0, Array2::nrows);
        let known = self.known_set(path, &name, &columns.names, rows as u64, console);
        let mut record = self.record_of(name, known, values.nrows(), columns.names);
        if weights.is_some() || test_weights.is_some() {
            record.weight = self.reading.weight_column().cloned();
        }
        let set = PlannedSet { record, rows: values, weights, test, test_weights };
        let (set, empty) = set.without_empty_rows();
        if empty > 0 {
            console.note(&format!(
                "'{}': {} without any value {} left out",
                path.display(),
                count(empty as u64, "row"),
                if empty == 1 { "is" } else { "are" }
            ));
        }
        Ok(set)
    }

    /// The rows that have a weight above 0, and their weights unless these are all 1.
    fn counted(&self, block: Block, path: &Path, console: &Console) -> (Array2<f64>, Option<Vec<f64>>) {
        let Some(weights) = block.weights().map(<[f64]>::to_vec) else { return (block.into_array(), None) };
        let places: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] > 0.0).collect();
        let (absent, mut rows) = (weights.len() - places.len(), block.into_array());
        if absent > 0 {
            rows = rows.select(Axis(0), &places);
            console.note(&format!(
                "'{}': {} of weight 0 {} left out",
                path.display(),
                count(absent as u64, "row"),
                if absent == 1 { "is" } else { "are" }
            ));
        }
        let weights: Vec<f64> = places.into_iter().map(|i| weights[i]).collect();
        (rows, Some(weights).filter(|weights| weights.iter().any(|&weight| weight != 1.0)))
    }

    /// The set of the catalogue that was read. A file that only has its name is the user's own, unless it is declared as a
    /// stand-in.
    fn known_set(
        &self,
        path: &Path,
        name: &str,
        columns: &[String],
        rows: u64,
        console: &Console,
    ) -> Option<&'static DataSet> {
        let set = Catalogue::built_in().find(name)?;
        let is_named = self.stand_in || Catalogue::set_named_by(path).is_some();
        if is_named && set.width().is_none_or(|width| width == columns.len()) || set.has(columns, rows) {
            return Some(set);
        }
        if !is_named {
            console.note(&format!(
                "'{}' has the name of a set in the catalogue, {}, but not its columns and {} rows: it is compared as a set \
                 of its own",
                path.display(),
                set.title,
                set.file_rows()
            ));
        }
        None
    }

    /// The record of a set, which may be one of the catalogue. A set without columns is a missing one.
    fn record_of(
        &self,
        name: String,
        known: Option<&DataSet>,
        rows: usize,
        columns: Vec<String>,
    ) -> DataRecord {
        let reported = known.and_then(|set| Reported::of(&set.name));
        let data = known.map_or(name, |set| set.name.clone());
        DataRecord {
            title: known.map_or(data.clone(), |set| set.title.clone()),
            units: self.shown.units.0.or(reported.map(|reported| reported.units)).unwrap_or(Units::Raw),
            missing: known.filter(|_| columns.is_empty()).map(wording::how_to_get),
            data: if self.stand_in { data + STAND_IN } else { data },
            rows,
            columns,
            dequantized: Vec::new(),
            discrete: Vec::new(),
            weight: None,
            stand_in: self.stand_in,
            sample: None,
            // The figures of a known set are filled in; a set of the user has none, whatever its name.
            paper: known.is_none().then(PaperRecord::default),
        }
    }

    /// A set as it is, with noise in its discrete columns, or both.
    fn with_and_without_noise(
        &self,
        mut set: PlannedSet,
        console: &Console,
    ) -> anyhow::Result<Vec<PlannedSet>> {
        let names = &set.record.columns;
        let found: Vec<DiscreteColumn> = match &self.dequantize {
            NoiseChoice::Off => {
                let found = find_discrete_columns(set.rows.view(), names);
                if let Some(Finding::DiscreteColumns { columns }) = &found {
                    set.record.discrete = columns.clone();
                }
                console.tell(found);
                Vec::new()
            }
            NoiseChoice::Auto => find_discrete(set.rows.view()),
            NoiseChoice::Both => {
                let found = find_discrete(set.rows.view());
                set.record.discrete = found.iter().map(|found| names[found.column].clone()).collect();
                found
            }
            NoiseChoice::Columns(wanted) => {
                let chosen = (0..names.len()).filter(|&column| wanted.contains(&names[column]));
                chosen.filter_map(|column| discrete_column(set.rows.view(), column)).collect()
            }
        };
        if found.is_empty() {
            return Ok(vec![set]);
        }
        let spread: Vec<(String, f64)> = found.iter().map(|f| (names[f.column].clone(), f.quantum)).collect();
        let list: Vec<String> =
            spread.iter().map(|(name, quantum)| format!("'{name}' ({quantum})")).collect();
        let both = self.dequantize == NoiseChoice::Both;
        console.note(&format!(
            "{}: noise of one quantum is added to the discrete columns {}{}",
            set.record.data,
            list.join(", "),
            if both { " in a second line, whose scores are comparable" } else { "" }
        ));
        let seed = self.seed;
        let noisy = PlannedSet {
            rows: with_noise(set.rows.view(), &found, seed),
            test: set.test.as_ref().map(|test| with_noise(test.view(), &found, seed.wrapping_add(1))),
            record: set.record.dequantized(spread),
            weights: set.weights.clone(),
            test_weights: set.test_weights.clone(),
        };
        Ok(if both { vec![set, noisy] } else { vec![noisy] })
    }

    fn check_named_columns(&self, sets: &[PlannedSet]) -> anyhow::Result<()> {
        let NoiseChoice::Columns(wanted) = &self.dequantize else { return Ok(()) };
        let has = |name: &String| sets.iter().any(|set| set.record.columns.contains(name));
        match wanted.iter().find(|name| !has(name)) {
            None => Ok(()),
            Some(name) => {
                let columns = sets.first().map(|set| set.record.columns.join(", ")).unwrap_or_default();
                Err(usage(format!("--dequantize names '{name}', but the columns are {columns}")))
            }
        }
    }
}

/// Names the commands that learn rows without their weights.
fn note_unweighted(plan: &Plan, console: &Console) {
    let learners = plan.contenders.iter().filter_map(|contender| contender.commands());
    let unweighted: Vec<&str> =
        learners.filter(|learner| !learner.takes_weights()).map(|learner| learner.name.as_str()).collect();
    if plan.sets.iter().any(|set| set.weights.is_some()) && !unweighted.is_empty() {
        console.note(&format!(
            "{} {} rows without their weights: a command that takes weights has the placeholder {{weights}}",
            unweighted.join(", "),
            if unweighted.len() == 1 { "learns" } else { "learn" }
        ));
    }
}

/// The file's name without folder and extensions, or the name of the set in the catalogue.
fn set_name(path: &Path) -> String {
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let name = file.strip_suffix(".gz").unwrap_or(&file);
    let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    match name {
        // The last two are no names of folders.
        "" | "-" | "." | ".." => "data".into(),
        _ => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_named_after_their_files() {
        for (path, name) in
            [("a/abalone.csv", "abalone"), ("x.y.csv.gz", "x.y"), ("magic04", "magic04"), ("-", "data")]
        {
            assert_eq!(set_name(Path::new(path)), name);
        }
    }
}
