//! The tables, laid out once for all output formats.

use std::collections::BTreeSet;
use std::ops::Range;

use super::analysis::{Entry, SetSummary, Summary};
use super::format::{self, title};
use super::legend::ELBOW;
use crate::experiment::{Contender, PaperColumns};
use crate::text::number::{self, NONE, fixed, p_value, significant};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportTable {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<TableCell>>,
    /// How many columns at the left hold text; the rest hold numbers.
    pub text_columns: usize,
    /// The columns of the paper's figures.
    pub paper: Range<usize>,
}

impl ReportTable {
    /// Characters of the longest arrow in a column. Every cell reserves room for it, to keep the digits aligned.
    pub fn width_of_arrows(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].arrow.chars().count()).max().unwrap_or(0)
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct TableCell {
    pub text: String,
    /// A second figure: below the first, or in brackets if there is one line only.
    pub aside: Option<String>,
    pub best: bool,
    pub arrow: &'static str,
}

impl TableCell {
    fn new(text: impl Into<String>) -> Self {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    fn of(value: Option<f64>, write: impl Fn(f64) -> String) -> Self {
        TableCell::new(value.map_or_else(|| NONE.to_string(), write))
    }

    /// The whole cell in one line.
    pub fn line(&self) -> String {
        let aside = self.aside.as_ref().map_or(String::new(), |aside| format!(" ({aside})"));
        format!("{}{}{aside}", self.text, self.arrow)
    }
}

/// Decimals of the scores in the main table: as in the paper's tables. A single set has more, since its learners may be
/// close, as far as they fit the width of a terminal.
pub(super) fn score_decimals(summary: &Summary) -> usize {
    let [set] = summary.sets.as_slice() else { return 2 };
    let scores = set.entries.iter().filter_map(|entry| entry.score.as_ref());
    match scores.map(|score| score.mean.abs()).fold(0.0, f64::max) {
        most if most < 10.0 => 4,
        most if most < 100.0 => 3,
        _ => 2,
    }
}

/// Mean test log-likelihoods, in the layout of the paper's Tables 1 and 2.
pub(super) fn scores(summary: &Summary) -> ReportTable {
    let paper = PaperHead::new(summary.sets.iter().map(|set| &set.paper));
    let decimals = score_decimals(summary);
    let mut head = vec!["data set".to_string()];
    head.extend(paper.head());
    let paper_columns = 1..head.len();
    head.extend(summary.contenders.iter().map(|contender| contender.name().to_string()));
    let units: BTreeSet<&str> = summary.sets.iter().map(|set| format::units(set.units)).collect();
    let common_units = units.first().filter(|_| units.len() == 1);
    let row = |set: &SetSummary| {
        let own_units = common_units.is_none().then(|| format::units(set.units).to_string());
        let mut row = vec![TableCell { aside: own_units, ..TableCell::new(title(&set.data)) }];
        row.extend(paper.cells(&set.paper, |score| fixed(score, 2)));
        for contender in &summary.contenders {
            let entry = set.entry(contender);
            let mut cell =
                TableCell::new(entry.and_then(|entry| shown(entry, decimals)).unwrap_or(NONE.to_string()));
            if let Some(entry) = entry {
                if let (None, Some(failed)) = (&entry.score, entry.failures.first()) {
                    cell.text = failed.failure.short().to_string();
                }
                cell.best = is_best(set, entry, decimals);
                let several = !summary.options.hide_k && (entry.by_k.len() > 1 || entry.contender.learns_k());
                let ks = format::range_of_k(&entry.chosen).filter(|ks| several && ks != "0");
                let ks = ks.map(|ks| format!("K={ks}"));
                let asides: Vec<String> =
                    [seed_error(entry, decimals), ks, partly_failed(entry)].into_iter().flatten().collect();
                cell.aside = (!asides.is_empty()).then(|| asides.join(", "));
                cell.arrow = entry.arrow.map_or("", |arrow| arrow.sign());
            }
            row.push(cell);
        }
        row
    };
    ReportTable {
        caption: format!(
            "Mean test log-likelihood per row, in nats{}",
            common_units.map_or(String::new(), |units| format!(", {units} units"))
        ),
        head,
        rows: summary.sets.iter().map(row).collect(),
        text_columns: 1,
        paper: paper_columns,
    }
}

/// The standard error over seeds, if there are several.
fn seed_error(entry: &Entry, decimals: usize) -> Option<String> {
    Some(format!("±{}", fixed(entry.score.as_ref()?.seed_error?, decimals)))
}

/// Says that a score is not over all folds, because some of them failed.
fn partly_failed(entry: &Entry) -> Option<String> {
    (entry.score.is_some() && !entry.failures.is_empty()).then(|| "some failed".to_string())
}

/// The score with the chosen K.
fn shown(entry: &Entry, decimals: usize) -> Option<String> {
    entry.score.as_ref().map(|score| fixed(score.mean, decimals))
}

/// Whether a learner shows the same figure as the best.
fn is_best(set: &SetSummary, entry: &Entry, decimals: usize) -> bool {
    let best = set.entries.iter().find(|entry| entry.best).and_then(|best| shown(best, decimals));
    entry.can_be_best() && best.is_some() && shown(entry, decimals) == best
}

/// Learning times at the K that most folds chose for the reference, and as a multiple of the reference's.
pub(super) fn times(summary: &Summary) -> ReportTable {
    let paper = PaperHead::new(summary.sets.iter().map(|set| &set.paper_seconds));
    let mut head = vec!["data set".to_string(), "K".to_string()];
    head.extend(paper.head());
    let paper_columns = 2..head.len();
    head.extend(summary.contenders.iter().map(|contender| contender.name().to_string()));
    let on_machines = |contender: &&Contender| {
        let of_set =
            |set: &SetSummary| machine_seconds(set, contender, set.time_k(summary.reference.as_ref())?);
        summary.sets.iter().any(|set| of_set(set).is_some())
    };
    let spread: Vec<&Contender> = summary.contenders.iter().filter(on_machines).collect();
    let shards = summary.runs.last().map_or(0, |run| run.settings.shards);
    head.extend(spread.iter().map(|contender| format!("{} on {shards} machines", contender.name())));
    let row = |set: &SetSummary| {
        let k = set.time_k(summary.reference.as_ref());
        let mut row =
            vec![TableCell::new(title(&set.data)), TableCell::of(k.map(|k| k as f64), |k| fixed(k, 0))];
        row.extend(paper.cells(&set.paper_seconds, |seconds| fixed(seconds, 1)));
        for contender in &summary.contenders {
            let seconds = k.and_then(|k| median_seconds(set, contender, k));
            let ratio = k.and_then(|k| ratio(set, summary, contender, k));
            let aside = ratio.map(|ratio| format!("{}×", number::ratio(ratio)));
            row.push(TableCell { aside, ..TableCell::of(seconds, significant) });
        }
        for contender in &spread {
            let seconds = k.and_then(|k| machine_seconds(set, contender, k));
            let of_reference =
                k.zip(summary.reference.as_ref()).and_then(|(k, one)| median_seconds(set, one, k));
            let ratio = seconds.zip(of_reference).map(|(own, other)| own / other);
            let aside =
                ratio.filter(|ratio| ratio.is_finite()).map(|ratio| format!("{}×", number::ratio(ratio)));
            row.push(TableCell { aside, ..TableCell::of(seconds, significant) });
        }
        row
    };
    let has_folds = summary.has_folds();
    let reference = summary.reference.as_ref().map(Contender::name);
    let which_k = reference.filter(|_| has_choice(summary)).map_or(String::new(), |name| {
        format!(
            " ({} for {name})",
            if has_folds { "the one that most folds chose" } else { "the one chosen" }
        )
    });
    ReportTable {
        caption: format!(
            "Learning time in seconds, start included{}, at the same K for all{which_k}{}{}",
            if has_folds { ", median over folds" } else { "" },
            if summary.contenders.iter().any(|contender| contender.learns_k()) {
                " except those that learn K"
            } else {
                ""
            },
            reference.map_or(String::new(), |name| format!(", and as a multiple of {name}'s"))
        ),
        head,
        rows: summary.sets.iter().map(row).collect(),
        text_columns: 1,
        paper: paper_columns,
    }
}

fn machine_seconds(set: &SetSummary, contender: &Contender, k: usize) -> Option<f64> {
    set.entry(contender)?.at(k)?.machine_seconds
}

pub(super) fn median_seconds(set: &SetSummary, contender: &Contender, k: usize) -> Option<f64> {
    Some(set.entry(contender)?.at(k)?.learn_seconds.median)
}

/// The time as a multiple of the reference's at the same K.
pub(super) fn ratio(set: &SetSummary, summary: &Summary, contender: &Contender, k: usize) -> Option<f64> {
    let ratio = median_seconds(set, contender, k)? / median_seconds(set, summary.reference.as_ref()?, k)?;
    ratio.is_finite().then_some(ratio)
}

/// The column of the details that is left out with one seed.
const SEED_COLUMN: usize = 6;

/// The main table in detail: a row for each of its cells.
pub(super) fn details(summary: &Summary) -> ReportTable {
    let head = [
        "data set",
        "learner",
        "K",
        "elbow",
        "mean",
        "std. error",
        "over seeds",
        "difference",
        "p",
        "p (Holm)",
        "effect",
        "tuned",
        "seconds",
    ];
    let mut rows = Vec::new();
    for set in &summary.sets {
        for entry in &set.entries {
            let Some(score) = &entry.score else {
                let failed = entry.failures.first().map_or(NONE, |failed| failed.failure.short());
                let mut row = vec![
                    TableCell::new(title(&set.data)),
                    TableCell::new(entry.contender.name()),
                    TableCell::new(failed),
                ];
                row.resize(head.len(), TableCell::new(NONE));
                rows.push(row);
                continue;
            };
            rows.push(vec![
                TableCell::new(title(&set.data)),
                TableCell::new(entry.contender.name()),
                TableCell::new(format::list_of_k(&entry.chosen)),
                TableCell::new(format::elbow(entry.elbow)),
                TableCell { best: is_best(set, entry, 4), ..TableCell::new(fixed(score.mean, 4)) },
                TableCell::of(score.standard_error, |error| fixed(error, 4)),
                TableCell::of(score.seed_error, |error| fixed(error, 4)),
                TableCell::new(difference(entry)),
                TableCell::of(entry.p_value, p_value),
                TableCell::of(entry.p_holm, p_value),
                TableCell::of(entry.effect_size, |effect| fixed(effect, 3)),
                TableCell::of(score.tuned, significant),
                TableCell::new(significant(score.learn_seconds.median)),
            ]);
        }
    }
    let mut head = head.map(String::from).to_vec();
    let over_seeds = match summary.seeds() {
        Some(seeds) => format!(", and the next column the standard error over the {seeds} seeds"),
        None => {
            head.remove(SEED_COLUMN);
            rows.iter_mut().for_each(|row| drop(row.remove(SEED_COLUMN)));
            String::new()
        }
    };
    let (several, median) = match summary.has_folds() {
        true => {
            (" (if folds chose several, with the number of folds that chose each)", ", median over folds")
        }
        false => ("", ""),
    };
    ReportTable {
        caption: format!(
            "Details of the same scores. K is the chosen K{several}; elbow is {ELBOW}; std. error is over rows{over_seeds}; difference is the mean \
             of the paired differences to the reference, learner − reference, ± its standard error; p (Holm) is \
             corrected for the number of data sets; effect is the rank-biserial correlation of the paired scores, from −1 \
             to 1; tuned is the learner's own parameter (α of oEM, β of oBMM) chosen on validation rows{median}; seconds \
             are those of learning with the chosen K, start included{median}"
        ),
        head,
        rows,
        text_columns: 2,
        paper: 0..0,
    }
}

/// The mean of the paired differences to the reference, and its standard error.
fn difference(entry: &Entry) -> String {
    match (entry.difference, entry.difference_error) {
        (None, _) => NONE.to_string(),
        (Some(mean), None) => fixed(mean, 4),
        (Some(mean), Some(error)) => format!("{} ± {}", fixed(mean, 4), fixed(error, 4)),
    }
}

/// Whether a learner has several K to choose from.
pub(super) fn has_choice(summary: &Summary) -> bool {
    summary.sets.iter().flat_map(|set| &set.entries).any(|entry| entry.by_k.len() > 1)
}

/// Which of the paper's columns are shown.
struct PaperHead([bool; 3]);

impl PaperHead {
    fn new<'a>(rows: impl Iterator<Item = &'a PaperColumns>) -> Self {
        PaperHead(rows.map(values).fold([false; 3], |any, row| [0, 1, 2].map(|i| any[i] || row[i].is_some())))
    }

    fn head(&self) -> Vec<String> {
        let names = ["paper oEM", "paper oBMM", "paper oDMM"];
        names.iter().zip(self.0).filter(|(_, there)| *there).map(|(name, _)| name.to_string()).collect()
    }

    fn cells(&self, row: &PaperColumns, write: impl Fn(f64) -> String) -> Vec<TableCell> {
        let there = values(row).into_iter().zip(self.0).filter(|(_, there)| *there);
        there.map(|(value, _)| TableCell::of(value, &write)).collect()
    }
}

fn values(row: &PaperColumns) -> [Option<f64>; 3] {
    [row.oem, row.obmm, row.odmm]
}
