//! The tables, laid out once for every format.

use super::names::{self, NONE, fixed, p_value, significant, thousands, title};
use super::paired::Arrow;
use super::summary::{Entry, PaperColumns, SetSummary, Summary};
use crate::data::Units;
use crate::experiment::{Contender, SIGNIFICANCE};

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<Cell>>,
    /// How many columns at the left hold words; the rest hold numbers.
    pub words: usize,
}

impl Grid {
    /// Letters of the longest marks in a column: every cell of it needs room for them, to keep the digits in line.
    pub fn width_of_marks(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].marks().chars().count()).max().unwrap_or(0)
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Cell {
    pub text: String,
    /// A second figure, in brackets where there is one line only.
    pub aside: Option<String>,
    pub best: bool,
    pub arrow: &'static str,
    /// Whether the arrow points the other way than the difference of the means.
    pub against_mean: bool,
}

impl Cell {
    fn new(text: impl Into<String>) -> Self {
        Cell { text: text.into(), ..Cell::default() }
    }

    fn of(value: Option<f64>, write: impl Fn(f64) -> String) -> Self {
        Cell::new(value.map_or_else(|| NONE.to_string(), write))
    }

    /// All of it in one line.
    pub fn line(&self) -> String {
        let aside = self.aside.as_ref().map_or(String::new(), |aside| format!(" ({aside})"));
        format!("{}{}{aside}", self.text, self.marks())
    }

    /// The arrow, marked where it points the other way than the means.
    pub fn marks(&self) -> String {
        format!("{}{}", self.arrow, if self.against_mean { AGAINST_MEAN } else { "" })
    }
}

/// Marks an arrow that points the other way than the means.
const AGAINST_MEAN: &str = "†";

/// Decimals of the scores in the main table: those of the paper's tables, and more of a single set, whose learners may be
/// close, as far as they fit the width of a terminal.
fn score_decimals(summary: &Summary) -> usize {
    let [set] = summary.sets.as_slice() else { return 2 };
    let scores = set.entries.iter().filter_map(|entry| entry.score.as_ref());
    match scores.map(|score| score.mean.abs()).fold(0.0, f64::max) {
        most if most < 10.0 => 4,
        most if most < 100.0 => 3,
        _ => 2,
    }
}

/// Mean test log-likelihoods, in the layout of the paper's Tables 1 and 2.
pub(super) fn scores(summary: &Summary) -> Grid {
    let paper = PaperHead::new(summary.sets.iter().map(|set| &set.paper));
    let decimals = score_decimals(summary);
    let mut head = vec!["data set".to_string(), "units".to_string()];
    head.extend(summary.contenders.iter().map(|contender| contender.name().to_string()));
    head.extend(paper.head());
    let row = |set: &SetSummary| {
        let mut row = vec![Cell::new(title(&set.data)), Cell::new(names::units(set.units))];
        for contender in &summary.contenders {
            let entry = set.entry(*contender);
            let mut cell =
                Cell::new(entry.and_then(|entry| shown(entry, decimals)).unwrap_or(NONE.to_string()));
            if let Some(entry) = entry {
                cell.best = is_best(set, entry, decimals);
                let several = entry.by_k.len() > 1 || entry.contender.learns_k();
                let ks = names::range_of_k(&entry.chosen).filter(|_| several);
                cell.aside = ks.map(|ks| format!("K={ks}"));
                cell.arrow = entry.arrow.map_or("", |arrow| arrow.sign());
                cell.against_mean = is_against_mean(summary, set, entry);
            }
            row.push(cell);
        }
        row.extend(paper.cells(&set.paper, |score| fixed(score, 2)));
        row
    };
    Grid {
        caption: "Mean test log-likelihood per row, in nats".to_string(),
        head,
        rows: summary.sets.iter().map(row).collect(),
        words: 2,
    }
}

/// The score with the chosen K.
fn shown(entry: &Entry, decimals: usize) -> Option<String> {
    entry.score.as_ref().map(|score| fixed(score.mean, decimals))
}

/// Whether a learner shows the figure of the best one, and competes with it.
fn is_best(set: &SetSummary, entry: &Entry, decimals: usize) -> bool {
    let best = set.entries.iter().find(|entry| entry.best).and_then(|best| shown(best, decimals));
    entry.can_be_best() && best.is_some() && shown(entry, decimals) == best
}

/// Whether the test and the means disagree on who is better.
fn is_against_mean(summary: &Summary, set: &SetSummary, entry: &Entry) -> bool {
    let reference = summary.reference.and_then(|contender| set.entry(contender)?.score.as_ref());
    match (entry.arrow, &entry.score, reference) {
        (Some(Arrow::Up), Some(own), Some(reference)) => own.mean < reference.mean,
        (Some(Arrow::Down), Some(own), Some(reference)) => own.mean > reference.mean,
        _ => false,
    }
}

/// Seconds of learning at the K that most folds chose for the reference, and as a multiple of the reference's.
pub(super) fn times(summary: &Summary) -> Grid {
    let paper = PaperHead::new(summary.sets.iter().map(|set| &set.paper_seconds));
    let mut head = vec!["data set".to_string(), "K".to_string()];
    head.extend(summary.contenders.iter().map(|contender| contender.name().to_string()));
    head.extend(paper.head());
    let row = |set: &SetSummary| {
        let k = set.time_k(summary.reference);
        let mut row = vec![Cell::new(title(&set.data)), Cell::of(k.map(|k| k as f64), |k| fixed(k, 0))];
        for contender in &summary.contenders {
            let seconds = k.and_then(|k| median_seconds(set, *contender, k));
            let ratio = k.and_then(|k| ratio(set, summary, *contender, k));
            let aside = ratio.map(|ratio| format!("{}×", names::ratio(ratio)));
            row.push(Cell { aside, ..Cell::of(seconds, significant) });
        }
        row.extend(paper.cells(&set.paper_seconds, |seconds| fixed(seconds, 1)));
        row
    };
    let has_folds = summary.has_folds();
    let reference = summary.reference.map(Contender::name);
    let which_k = reference.filter(|_| has_choice(summary)).map_or(String::new(), |name| {
        format!(
            " ({} for {name})",
            if has_folds { "the one that most folds chose" } else { "the one chosen" }
        )
    });
    Grid {
        caption: format!(
            "Learning time in seconds, start included{}, at the same K for all{which_k}{}{}",
            if has_folds { ", median over folds" } else { "" },
            if summary.contenders.iter().any(|contender| contender.learns_k()) {
                " but those that learn K"
            } else {
                ""
            },
            reference.map_or(String::new(), |name| format!(", and as a multiple of {name}'s"))
        ),
        head,
        rows: summary.sets.iter().map(row).collect(),
        words: 1,
    }
}

pub(super) fn median_seconds(set: &SetSummary, contender: Contender, k: usize) -> Option<f64> {
    Some(set.entry(contender)?.at(k)?.learn_seconds.median)
}

/// Time as a multiple of the reference's at the same K.
pub(super) fn ratio(set: &SetSummary, summary: &Summary, contender: Contender, k: usize) -> Option<f64> {
    let ratio = median_seconds(set, contender, k)? / median_seconds(set, summary.reference?, k)?;
    ratio.is_finite().then_some(ratio)
}

/// Everything about the cells of the main table.
pub(super) fn details(summary: &Summary) -> Grid {
    let head = [
        "data set",
        "learner",
        "K",
        "elbow",
        "mean",
        "std. error",
        "p",
        "p (Holm)",
        "effect",
        "tuned",
        "seconds",
    ];
    let mut rows = Vec::new();
    for set in &summary.sets {
        for entry in &set.entries {
            let Some(score) = &entry.score else { continue };
            rows.push(vec![
                Cell::new(title(&set.data)),
                Cell::new(entry.contender.name()),
                Cell::new(names::list_of_k(&entry.chosen)),
                Cell::new(names::elbow(entry.elbow)),
                Cell { best: is_best(set, entry, 4), ..Cell::new(fixed(score.mean, 4)) },
                Cell::of(score.standard_error, |error| fixed(error, 4)),
                Cell::of(entry.p_value, p_value),
                Cell::of(entry.p_holm, p_value),
                Cell::of(entry.effect_size, |effect| fixed(effect, 3)),
                Cell::of(score.tuned, significant),
                Cell::new(significant(score.learn_seconds.median)),
            ]);
        }
    }
    let (several, median) = match summary.has_folds() {
        true => (" (where folds chose several, with how many folds chose each)", ", median over folds"),
        false => ("", ""),
    };
    Grid {
        caption: format!(
            "The same with the chosen K{several}, the elbow over K, standard errors over rows, and tests. elbow is {ELBOW}; p (Holm) is corrected for the \
             number of data sets; effect is the rank-biserial correlation of the paired scores, from −1 to 1; tuned is \
             the learner's own parameter (α of oEM, β of oBMM) chosen on validation rows{median}; seconds are those of \
             learning with the chosen K, start included{median}"
        ),
        head: head.map(String::from).to_vec(),
        rows,
        words: 2,
    }
}

/// Whether there were several K to choose from.
fn has_choice(summary: &Summary) -> bool {
    summary.sets.iter().flat_map(|set| &set.entries).any(|entry| entry.by_k.len() > 1)
}

const ELBOW: &str = "the smallest K beyond which larger K gain little, or, where the score rises to the end of \
                     the range (marked 'rises'), the K at which it bends most";

/// The elbows over K, a sentence for each data set that has any, after one that says what they are.
pub(super) fn elbows(summary: &Summary) -> Vec<String> {
    let of_set = |set: &SetSummary| {
        let found = set.entries.iter().filter(|entry| entry.elbow.is_some());
        let named: Vec<String> =
            found.map(|entry| format!("{} {}", entry.contender.name(), names::elbow(entry.elbow))).collect();
        (!named.is_empty()).then(|| format!("Elbow over K, {}: {}.", title(&set.data), named.join(", ")))
    };
    let named: Vec<String> = summary.sets.iter().filter_map(of_set).collect();
    let explained = (!named.is_empty()).then(|| format!("Elbow: {ELBOW}."));
    explained.into_iter().chain(named).collect()
}

/// How the table is to be read, a sentence each; the best online learners are marked by `best`.
pub(super) fn legend(summary: &Summary, best: &str) -> Vec<String> {
    let mut legend = Vec::new();
    if summary.contenders.iter().any(|contender| contender.is_online()) {
        let bar = summary.reference.map_or(String::new(), |reference| {
            format!(" among those that are not significantly worse than {}", reference.name())
        });
        legend.push(format!(
            "{best}: the best mean of the online learners{bar}, or several if they are equal to the decimals shown; the start and batch EM do not compete."
        ));
    }
    if let Some(reference) = summary.reference {
        let reference = reference.name();
        legend.push(format!(
            "↑ / ↓: significantly better / worse than {reference} (Wilcoxon signed-rank test, two-sided, p < {}, not corrected for the number of data sets), paired on {}. With many rows the smallest difference is significant: the details in summary.md have the size of each effect.",
            SIGNIFICANCE,
            names::pairs(summary.options.pairs, summary.has_folds())
        ));
    }
    if summary.sets.iter().any(|set| set.entries.iter().any(|entry| is_against_mean(summary, set, entry))) {
        legend.push(format!(
            "{AGAINST_MEAN}: the means say the opposite. The test weighs ranks, while a few extreme rows can move a mean."
        ));
    }
    if has_choice(summary) {
        let several = summary
            .sets
            .iter()
            .flat_map(|set| &set.entries)
            .any(|entry| entry.chosen.values().min() != entry.chosen.values().max());
        legend.push(format!(
            "K: the number of components, chosen for each learner{}.{}",
            names::select_rule(summary.options.select, summary.has_folds()),
            if several { " A range such as 5–7 is of folds that chose different K." } else { "" }
        ));
    }
    if summary.sets.iter().any(|set| set.units == Units::Zscore) {
        legend.push(
            "Units: scores of a z-scored set are those of columns scaled to standard deviation 1, by the exact Jacobian."
                .to_string(),
        );
    }
    if summary.sets.iter().any(|set| set.paper != PaperColumns::default()) {
        legend.push(
            "Paper: figures printed by Jaini & Poupart (2016), shown where data and units are theirs."
                .to_string(),
        );
    }
    legend
}

/// Who took part, and what it is.
pub(super) fn learners(summary: &Summary) -> Vec<(&'static str, String)> {
    let run = summary.runs.last();
    summary.contenders.iter().map(|contender| (contender.name(), contender.describe(run))).collect()
}

/// What is special about single data sets, a sentence each.
pub(super) fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    for set in &summary.sets {
        let data = &set.data;
        if data.stand_in {
            notes.push(format!(
                "{}: a synthetic stand-in ({} rows) with the columns of a set that was not at hand. Its scores say nothing about that set.",
                title(data),
                thousands(data.rows as u64)
            ));
        }
        if let Some(how) = &data.missing {
            notes.push(format!("{}: {how}.", title(data)));
        }
        if !data.dequantized.is_empty() {
            let columns: Vec<_> =
                data.dequantized.iter().map(|(column, quantum)| format!("{column} ({quantum})")).collect();
            notes.push(format!(
                "{}: uniform noise of one quantum was added to the discrete columns, which otherwise have no bounded likelihood: {}.",
                title(data),
                columns.join(", ")
            ));
        }
    }
    for data in summary.sets.iter().map(|set| &set.data).filter(|data| !data.discrete.is_empty()) {
        notes.push(format!(
            "{}: {} {} few distinct values, so the density is unbounded: do not compare these scores with others. Dequantizing adds noise of one quantum.",
            title(data),
            data.discrete.join(", "),
            if data.discrete.len() == 1 { "has" } else { "have" }
        ));
    }
    notes.extend(summary.notes.iter().cloned());
    notes
}

/// Which of the paper's columns there are.
struct PaperHead([bool; 3]);

impl PaperHead {
    fn new<'a>(rows: impl Iterator<Item = &'a PaperColumns>) -> Self {
        PaperHead(rows.map(values).fold([false; 3], |any, row| [0, 1, 2].map(|i| any[i] || row[i].is_some())))
    }

    fn head(&self) -> Vec<String> {
        let names = ["paper oEM", "paper oBMM", "paper oDMM"];
        names.iter().zip(self.0).filter(|(_, there)| *there).map(|(name, _)| name.to_string()).collect()
    }

    fn cells(&self, row: &PaperColumns, write: impl Fn(f64) -> String) -> Vec<Cell> {
        let there = values(row).into_iter().zip(self.0).filter(|(_, there)| *there);
        there.map(|(value, _)| Cell::of(value, &write)).collect()
    }
}

fn values(row: &PaperColumns) -> [Option<f64>; 3] {
    [row.oem, row.obmm, row.odmm]
}
