//! The figures of the tables, computed from records.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::below_start;
use super::paired::{self, Arrow};
use super::repeats::Repeats;
use super::scores::{CellScore, KScore, Score, ScoredRows, shift};
use super::select::{
    Differences, Pairs, SelectRule, choose_ks, commonest_k, elbow_over_k, paired_differences,
};
use crate::experiment::{
    CellRecord, Contender, DataRecord, Failure, Folds, PaperColumns, RecordIndex, RunRecord, SetIndex, Units,
};
use crate::report::format::title;
use crate::report::{ReportError, ReportOptions};
use crate::stats::Elbow;
use crate::text::count;
use crate::text::number::{fixed, thousands};

/// The learner that others are tested against by default is the first of these in the records.
const REFERENCES: [Contender; 4] =
    [Contender::Obmm, Contender::ObmmDiscounted, Contender::ObmmPaper, Contender::ObmmBlind];

/// All figures of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// How the records were summarised.
    pub options: ReportOptions,
    /// The learner that others are tested against.
    pub reference: Option<Contender>,
    /// The learners that took part, in the order of the columns.
    pub contenders: Vec<Contender>,
    /// The data sets, in the order of the records.
    pub sets: Vec<SetSummary>,
    /// The runs that wrote the records.
    pub runs: Vec<RunRecord>,
    /// Notes for readers of the figures.
    pub notes: Vec<String>,
}

/// One data set: a row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetSummary {
    /// The data set as it was used.
    pub data: DataRecord,
    /// The units that scores are shown in.
    pub units: Units,
    /// The paper's mean test log-likelihoods, if they are comparable.
    pub paper: PaperColumns,
    /// The paper's seconds.
    pub paper_seconds: PaperColumns,
    /// The learners, in the order of the columns.
    pub entries: Vec<Entry>,
    /// What converts a learning curve, which is that of fold 0, to z-scored units.
    #[serde(skip)]
    pub(in crate::report) curve_shift: Option<f64>,
}

/// One learner on one data set: a cell of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The learner.
    pub contender: Contender,
    /// The K chosen in each fold; folds without a score are left out.
    pub chosen: BTreeMap<usize, usize>,
    /// The elbow over K of the score that K is chosen by, over all folds.
    pub elbow: Option<Elbow>,
    /// Its figures with the K chosen in each fold.
    pub score: Option<Score>,
    /// Its figures for every K, ascending.
    pub by_k: Vec<KScore>,
    /// Its cells, by K and then fold, and then those that failed.
    #[serde(skip)]
    pub(in crate::report) cells: Vec<CellScore>,
    /// Cells without scores, by K and then fold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedCell>,
    /// p-value of the test against the reference.
    pub p_value: Option<f64>,
    /// The p-value with Holm's correction over the data sets.
    pub p_holm: Option<f64>,
    /// Rank-biserial correlation, in [−1, 1]; positive if better than the reference.
    pub effect_size: Option<f64>,
    /// The mean of the paired differences to the reference, learner − reference.
    pub difference: Option<f64>,
    /// Its standard error.
    pub difference_error: Option<f64>,
    /// Whether it is better or worse than the reference: significantly in ranks, and in the mean.
    pub arrow: Option<Arrow>,
    /// Whether it has the best mean of the learners without failed cells.
    pub best: bool,
}

/// A cell of a learner that failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedCell {
    /// Components.
    pub k: usize,
    /// The test fold, from 0.
    pub fold: usize,
    /// Why.
    pub failure: Failure,
}

impl FailedCell {
    fn new(cell: &CellRecord) -> Self {
        let failure = cell.failure.clone().unwrap_or(Failure::NoScores { message: String::new() });
        FailedCell { k: cell.k, fold: cell.fold, failure }
    }

    /// Whether its scores are not those of a density.
    fn is_no_density(&self) -> bool {
        matches!(self.failure, Failure::NotADensity { .. })
    }
}

impl Summary {
    /// Summarises records.
    pub fn new(index: &RecordIndex, options: &ReportOptions) -> Result<Self, ReportError> {
        if index.cell_count() == 0 {
            return Err(ReportError::NothingToShow);
        }
        let contenders: BTreeSet<_> = index.sets().iter().flat_map(|set| set.contenders()).collect();
        let contenders: Vec<Contender> = contenders.into_iter().cloned().collect();
        let took_part = |contender: &Contender| contenders.contains(contender);
        let reference = match &options.reference {
            Some(wanted) if !took_part(wanted) => {
                return Err(ReportError::NoReference(wanted.name().to_string()));
            }
            Some(wanted) => Some(wanted.clone()),
            None => REFERENCES.into_iter().find(took_part),
        };
        let mut notes = Vec::new();
        let mut below_start = Vec::new();
        let mut sets = Vec::new();
        for set in index.sets() {
            let data = data_of(set);
            if set.cells().next().is_some() || data.missing.is_some() {
                let repeats = Repeats::new(index, set);
                below_start.extend(below_start::note(&data, set, &repeats)?);
                let seed = index.runs().first().map_or(0, |run| run.seed);
                sets.push(set_summary(data, set, &repeats, seed, options, reference.as_ref(), &mut notes)?);
            }
        }
        let has_online = contenders.iter().any(|contender| contender.is_online());
        if below_start.is_empty() && has_online && contenders.contains(&Contender::Start) {
            below_start.push(below_start::none());
        }
        notes.extend(below_start);
        correct_p_values(&contenders, &mut sets);
        Ok(Summary {
            options: options.clone(),
            reference,
            contenders,
            sets,
            runs: index.runs().to_vec(),
            notes,
        })
    }

    /// The seeds that splits and starts were repeated with, if there are several.
    pub(in crate::report) fn seeds(&self) -> Option<usize> {
        self.runs.iter().map(|run| run.seeds).max().filter(|seeds| *seeds > 1)
    }

    /// Whether there are folds, and not a single test file.
    pub(in crate::report) fn has_folds(&self) -> bool {
        self.runs.iter().any(|run| run.folds > 1) || self.sets.iter().any(SetSummary::has_folds)
    }
}

impl SetSummary {
    /// The figures of a learner.
    pub fn entry(&self, contender: &Contender) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.contender == *contender)
    }

    /// Whether any learner was tested on several folds.
    pub(in crate::report) fn has_folds(&self) -> bool {
        self.entries.iter().flat_map(|entry| &entry.by_k).any(|at_k| at_k.score.folds > 1)
    }

    /// The K at which times are compared: the one that most folds chose for the reference.
    pub fn time_k(&self, reference: Option<&Contender>) -> Option<usize> {
        let by_reference = reference.and_then(|contender| self.entry(contender)?.commonest_k());
        by_reference.or_else(|| self.entries.iter().find_map(Entry::commonest_k))
    }
}

impl Entry {
    /// The figures at one K; for a learner that learns K, those at the K it found.
    pub fn at(&self, k: usize) -> Option<&Score> {
        if self.contender.learns_k() {
            return self.score.as_ref();
        }
        self.by_k.iter().find(|at_k| at_k.k == k).map(|at_k| &at_k.score)
    }

    /// The K that most folds chose. Ties go to the smaller K.
    pub fn commonest_k(&self) -> Option<usize> {
        commonest_k(&self.chosen)
    }

    /// Whether it competes for the best: it has not failed anywhere, so that its mean is over the rows of the others.
    pub(in crate::report) fn can_be_best(&self) -> bool {
        self.failures.is_empty()
    }

    /// How many folds chose this K.
    pub fn folds_with(&self, k: usize) -> usize {
        self.chosen.values().filter(|chosen| **chosen == k).count()
    }
}

/// The record of a set without what the tables do not show.
fn data_of(set: &SetIndex) -> DataRecord {
    match set.data() {
        Some(data) => DataRecord { sample: None, paper: None, ..data.clone() },
        None => DataRecord {
            data: set.name().to_string(),
            title: set.name().to_string(),
            rows: 0,
            columns: Vec::new(),
            dequantized: Vec::new(),
            discrete: Vec::new(),
            weight: None,
            units: Units::Raw,
            stand_in: false,
            missing: None,
            sample: None,
            paper: None,
        },
    }
}

fn set_summary(
    data: DataRecord,
    records: &SetIndex,
    repeats: &Repeats,
    seed: u64,
    options: &ReportOptions,
    reference: Option<&Contender>,
    notes: &mut Vec<String>,
) -> Result<SetSummary, ReportError> {
    let units = options.units.unwrap_or(data.units);
    let mut entries = Vec::new();
    for contender in records.contenders() {
        let mut failures: Vec<FailedCell> = records.failures_of(contender).map(FailedCell::new).collect();
        failures.sort_by_key(|failed| !failed.is_no_density());
        let all: Vec<&CellRecord> = records.cells_of(contender).collect();
        // Scores that are not those of a density say nothing, also where the check did not notice.
        let is_density = !failures.iter().any(FailedCell::is_no_density);
        let by_k = if is_density { records.by_k(contender) } else { BTreeMap::new() };
        let compared: &[&CellRecord] = if is_density { &all } else { &[] };
        let chosen = choose_ks(compared, options.select, repeats);
        let is_needed = |cell: &&&CellRecord| {
            options.select == SelectRule::Paper || chosen.get(&cell.fold) == Some(&cell.k)
        };
        if compared.iter().filter(is_needed).any(|cell| cell.lacks_rows()) {
            return Err(ReportError::RowsNotKept);
        }
        let at_k =
            |(k, folds): (&usize, &Folds)| Some(KScore { k: *k, score: Score::new(folds, units, repeats)? });
        entries.push(Entry {
            contender: contender.clone(),
            score: Score::new(&chosen_cells(records, contender, &chosen), units, repeats),
            chosen,
            elbow: elbow_over_k(compared, options.select, repeats),
            by_k: by_k.iter().filter_map(at_k).collect(),
            cells: all
                .iter()
                .copied()
                .chain(records.failures_of(contender))
                .map(|cell| CellScore::new(cell, units, seed, repeats))
                .collect(),
            failures,
            p_value: None,
            p_holm: None,
            effect_size: None,
            difference: None,
            difference_error: None,
            arrow: None,
            best: false,
        });
    }
    test_against(reference, &mut entries, records, options.pairs, repeats)?;
    mark_best(&mut entries);
    notes.extend(note_spaced_rows(&data, &entries, records));
    notes.extend(note_weights(&data));
    note_gaps(&data, &entries, records, notes);
    let (paper, paper_seconds) = paper_columns(records.data(), units);
    notes.extend(published_note(records.data()));
    let curve_shift = records.cells().find(|cell| cell.fold == 0);
    Ok(SetSummary {
        data,
        units,
        paper,
        paper_seconds,
        entries,
        curve_shift: curve_shift.map(|cell| shift(cell, Units::Zscore, ScoredRows::Test)),
    })
}

/// The cells of one learner with the K chosen in each fold.
fn chosen_cells<'a>(
    records: &'a SetIndex,
    contender: &Contender,
    chosen: &BTreeMap<usize, usize>,
) -> Folds<'a> {
    chosen.iter().filter_map(|(fold, k)| Some((*fold, records.cell(contender, *k, *fold)?))).collect()
}

fn mark_best(entries: &mut [Entry]) {
    let mean_of =
        |entry: &Entry| entry.score.as_ref().map(|score| score.mean).filter(|_| entry.can_be_best());
    let best = entries.iter().filter_map(mean_of).max_by(f64::total_cmp);
    for entry in entries {
        entry.best = best.is_some() && mean_of(entry) == best;
    }
}

/// Tests every learner against the reference, each with its own K in each fold.
fn test_against(
    reference: Option<&Contender>,
    entries: &mut [Entry],
    records: &SetIndex,
    pairs: Pairs,
    repeats: &Repeats,
) -> Result<(), ReportError> {
    let folds_of = |entry: &Entry| chosen_cells(records, &entry.contender, &entry.chosen);
    let mean_of = |entry: &Entry| entry.score.as_ref().map(|score| score.mean);
    let Some(base_entry) = entries.iter().find(|entry| Some(&entry.contender) == reference) else {
        return Ok(());
    };
    let (base, base_mean) = (folds_of(base_entry), mean_of(base_entry));
    for entry in entries.iter_mut().filter(|entry| Some(&entry.contender) != reference) {
        let Some(outcome) =
            paired::test(&differences(&folds_of(entry), &base, pairs, repeats, records.name())?)
        else {
            continue;
        };
        entry.p_value = Some(outcome.p_value);
        entry.effect_size = Some(outcome.effect_size);
        (entry.difference, entry.difference_error) = (outcome.difference, outcome.difference_error);
        let shown = mean_of(entry).zip(base_mean).map(|(own, base)| own - base);
        entry.arrow = shown.and_then(|shown| outcome.arrow(shown));
    }
    Ok(())
}

/// Learner − reference, over the folds that both have. Units do not matter: they shift both sides equally.
pub(in crate::report) fn differences(
    folds: &Folds,
    base: &Folds,
    pairs: Pairs,
    repeats: &Repeats,
    data: &str,
) -> Result<Differences, ReportError> {
    let mut both = folds.iter().filter_map(|(fold, cell)| Some((fold, *cell, *base.get(fold)?)));
    if let Some((fold, cell, other)) = both.find(|(_, cell, other)| cell.test.len() != other.test.len()) {
        return Err(ReportError::Unpaired {
            data: data.to_string(),
            fold: *fold,
            one: cell.contender.name().to_string(),
            one_rows: cell.test.len(),
            other: other.contender.name().to_string(),
            other_rows: other.test.len(),
        });
    }
    let cells: Vec<_> = folds.values().copied().collect();
    let others: Vec<_> = base.values().copied().collect();
    Ok(paired_differences(&cells, &others, pairs, repeats))
}

fn correct_p_values(contenders: &[Contender], sets: &mut [SetSummary]) {
    for contender in contenders {
        let p_values: Vec<_> =
            sets.iter().map(|set| set.entry(contender).and_then(|entry| entry.p_value)).collect();
        for (set, corrected) in sets.iter_mut().zip(paired::corrected(&p_values)) {
            if let Some(entry) = set.entries.iter_mut().find(|entry| entry.contender == *contender) {
                entry.p_holm = corrected;
            }
        }
    }
}

/// Says what weights change.
fn note_weights(data: &DataRecord) -> Option<String> {
    let column = data.weight.as_ref()?;
    Some(format!(
        "{}: rows have the weights of the column {column}. Means of scores and of paired differences are weighted, and tests rank \
         each row once, whatever its weight.",
        title(data)
    ))
}

/// Says that the tests use a part of the rows.
fn note_spaced_rows(data: &DataRecord, entries: &[Entry], records: &SetIndex) -> Option<String> {
    let (mut used, mut all) = (0, 0);
    let entry = entries.iter().find(|entry| !entry.chosen.is_empty())?;
    for (fold, k) in &entry.chosen {
        let cell = records.cell(&entry.contender, *k, *fold)?;
        used += cell.test.len() as u64;
        all += cell.summary?.rows.count;
    }
    (used < all).then(|| {
        format!(
            "{}: tests and paired differences use {} of {} test rows, evenly spaced.",
            title(data),
            thousands(used),
            thousands(all)
        )
    })
}

fn note_gaps(data: &DataRecord, entries: &[Entry], records: &SetIndex, notes: &mut Vec<String>) {
    let most = entries.iter().flat_map(|entry| &entry.by_k).map(|at_k| at_k.score.folds).max().unwrap_or(0);
    let title = title(data);
    for entry in entries {
        let who = entry.contender.name();
        if let Some(failed) = entry.failures.first() {
            let place = |failed: &FailedCell| match (entry.contender.learns_k(), most > 1 || failed.fold > 0)
            {
                (true, _) => format!("fold {}", failed.fold),
                (false, true) => format!("K = {}, fold {}", failed.k, failed.fold),
                (false, false) => format!("K = {}", failed.k),
            };
            notes.push(format!(
                "{title}: {who} has no scores in {}; the first ({}): {}.",
                count(entry.failures.len() as u64, "cell"),
                place(failed),
                failed.failure
            ));
        }
        match &entry.score {
            None if !entry.failures.is_empty() && entry.by_k.is_empty() => {}
            None => notes.push(format!(
                "{title}: no K could be chosen for {who}, so its cell is empty; loglik.csv has its scores for each K."
            )),
            Some(score) if score.folds < most => notes.push(format!(
                "{title}: {who} has {} of {most} folds so far; its mean is over these folds{}.",
                score.folds,
                if entry.failures.is_empty() { "" } else { " and cannot be compared with the others'" }
            )),
            Some(_) => {}
        }
        let by_k = records.by_k(&entry.contender);
        let has_gap = |fold: &&usize| by_k.values().any(|folds| !folds.contains_key(fold));
        let given_k = !entry.contender.learns_k();
        let gaps = entry.chosen.keys().filter(has_gap).filter(|_| given_k).count();
        if gaps > 0 {
            let place = if most > 1 { format!(" in {}", count(gaps as u64, "fold")) } else { String::new() };
            notes.push(format!(
                "{title}: {who} is missing some K{place} so far; K is chosen among the others."
            ));
        }
    }
}

/// What another publication reports for the set.
fn published_note(data: Option<&DataRecord>) -> Option<String> {
    let published =
        data?.paper.as_ref()?.published.as_ref().filter(|_| data.is_some_and(|data| !data.stand_in))?;
    let scores: Vec<String> =
        published.scores.iter().map(|(model, score)| format!("{model} {}", fixed(*score, 2))).collect();
    Some(format!("{}: {}. Source: {}.", title(data?), scores.join(", "), published.source))
}

/// The paper's figures: scores only where data and units are the paper's, times also for a substitute of its size.
fn paper_columns(data: Option<&DataRecord>, units: Units) -> (PaperColumns, PaperColumns) {
    let Some((data, paper)) = data.and_then(|data| Some((data, data.paper.as_ref()?))) else {
        return Default::default();
    };
    let is_comparable = paper.units == Some(units) && data.dequantized.is_empty() && !data.stand_in;
    (if is_comparable { paper.scores } else { PaperColumns::default() }, paper.seconds)
}
