//! The structure of a model in words: its revisions, and the rows of the data that its file contains.

use clap::ValueEnum;
use serde::Serialize;

use crate::learn::{Effort, Move, PriorStrength, Reason, RevisionRecord, StartKind};
use crate::model::{Model, NoRevisions, Recipe};
use crate::text::count;
use crate::text::number::{NONE, decimal, signed};

/// The revisions of a model and the rows that its file contains.
#[derive(Debug, Serialize)]
pub(super) struct StructureResult {
    /// What an online learner began from.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<StartKind>,
    /// The effort of the start and of revisions, where it is known.
    effort: Option<Effort>,
    /// How many rows the prior of a component's covariance is worth.
    #[serde(rename = "prior_strength", skip_serializing_if = "Option::is_none")]
    prior_rows: Option<f64>,
    #[serde(skip)]
    prior_is_learned: bool,
    /// All revisions, the oldest first; `None` where there is no record of them.
    revisions: Option<Vec<RevisionRecord>>,
    /// Rows of the data that the model file contains.
    kept_rows: u64,
    #[serde(skip)]
    pending: bool,
    #[serde(skip)]
    provisional: bool,
    #[serde(skip)]
    forgotten: bool,
    #[serde(skip)]
    no_revisions: Option<NoRevisions>,
}

impl StructureResult {
    pub fn of(model: &Model) -> Self {
        StructureResult {
            start: model.recipe().online().map(|_| model.start()),
            effort: match model.recipe() {
                Recipe::Online(_) if model.start() == StartKind::Blind => None,
                Recipe::Online(_) => model.has_history().then(|| model.effort()),
                Recipe::Em { settings, .. } => Some(settings.effort),
                Recipe::Truth { .. } => None,
            },
            prior_rows: model.prior_rows(),
            prior_is_learned: model.prior_strength() == PriorStrength::Auto,
            revisions: model.has_history().then(|| model.revisions().cloned().collect()),
            kept_rows: model.rows_in_file(),
            pending: model.waits_for_rows(),
            provisional: model.is_provisional(),
            forgotten: model.may_have_forgotten(),
            no_revisions: model.why_no_revisions(),
        }
    }

    /// How many revisions there were, and when the last was. `None` where there is nothing to revise.
    pub fn describe_revisions(&self) -> Option<String> {
        let revisions = self.revisions.as_deref().unwrap_or_default();
        let Some(last) = revisions.last() else {
            return self.no_revisions.map(|why| format!("no revisions: {}", describe_why(why)));
        };
        let changed = match (revisions.iter().filter(|revision| revision.kept).count(), revisions.len()) {
            (0, 1) => "which did not change".to_string(),
            (1, 1) => "which changed".to_string(),
            (0, _) => "none of which changed".to_string(),
            (changed, all) if changed == all => "all of which changed".to_string(),
            (changed, _) => format!("{changed} of which changed"),
        };
        Some(format!(
            "{}{}, {changed} the mixture; the last after {} ({})",
            if self.forgotten { "the latest " } else { "" },
            count(revisions.len() as u64, "revision"),
            count(last.rows, "row"),
            reason(last.reason)
        ))
    }

    /// How many rows the prior is worth, where it is known.
    pub fn describe_prior(&self) -> Option<String> {
        let rows = match self.prior_rows? {
            rows if rows < 10.0 => decimal(rows, 1),
            rows => decimal(rows, 0),
        };
        let source = if self.prior_is_learned { "learned from the data" } else { "as set" };
        Some(format!("prior: worth {rows} rows per component, {source}"))
    }

    /// Whether the model file contains rows of the data.
    pub fn has_rows(&self) -> bool {
        self.kept_rows > 0
    }

    /// What the model file contains of the data, in words that follow "it".
    pub fn describe_rows(&self) -> String {
        let rows = count(self.kept_rows, "row");
        let all = if self.kept_rows == 1 { "the only row".into() } else { format!("all {rows}") };
        match (self.has_rows(), self.pending, self.provisional) {
            (false, ..) => "contains no rows of the data".into(),
            (_, true, false) => format!(
                "contains {all} of the data for a resumed run, which fits the start again ('fit --no-rows' leaves them out)"
            ),
            (_, true, true) => format!(
                "contains {all} of the data, since the start waits for more or was interrupted: a resumed run fits it again \
                 ('fit --no-rows' leaves them out, --init-rows sets how many the start needs)"
            ),
            (_, false, _) => {
                format!("contains {rows} of the data, for later revisions ('fit --no-rows' leaves them out)")
            }
        }
    }

    /// Whether all rows were used at once, and the mixture is not provisional.
    pub fn used_all_rows(&self) -> bool {
        self.pending && !self.provisional
    }

    /// Whether the learner began from a blind start.
    pub fn is_blind(&self) -> bool {
        self.start == Some(StartKind::Blind)
    }

    /// The effort as the option spells it, where it is known.
    pub fn effort(&self) -> Option<String> {
        self.effort?.to_possible_value().map(|value| value.get_name().to_string())
    }

    /// A table of all revisions.
    pub fn history(&self) -> String {
        let revisions = self.revisions.as_deref().unwrap_or_default();
        if revisions.is_empty() {
            return String::new();
        }
        let mut text = format!("{:>12}   {:<17}   {:<4}   {:>9}   moves\n", "rows", "reason", "kept", "gain");
        for revision in revisions {
            let moves = describe_moves(revision);
            let gain = revision.validation_gain.map_or(NONE.into(), |gain| signed(gain, 4));
            let kept = if revision.kept { "yes" } else { "no" };
            text += &format!(
                "{:>12}   {:<17}   {kept:<4}   {gain:>9}   {}\n",
                revision.rows,
                reason(revision.reason),
                moves[0]
            );
            moves[1..].iter().for_each(|next| text += &format!("{:54}{next}\n", ""));
        }
        text + "gain: in the mean log-density of the validation rows, or of all kept rows where these are few\n"
    }
}

fn describe_why(why: NoRevisions) -> &'static str {
    match why {
        NoRevisions::FastEffort => "--effort fast only fits the start",
        NoRevisions::BlindStart => "--start blind has none",
        NoRevisions::KeepsNoRows => "--keep-rows 0 turns them off",
        NoRevisions::WaitsForRows => "the start waits for more rows, or was interrupted",
        NoRevisions::FittedToAll => "the mixture was fitted to all rows at once",
        NoRevisions::Shard => "shards are revised when they are merged",
        NoRevisions::StartedWithoutRows => "the model was started without rows to revise on",
        _ => "none was due",
    }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Start => "start",
        Reason::Doubling => "number of rows",
        Reason::Novelty => "new kind of rows",
        Reason::Misfit => "rows that do not fit",
        Reason::End => "end of the stream",
        Reason::Merge => "merge of shards",
    }
}

/// Each move in words, at least one line.
fn describe_moves(revision: &RevisionRecord) -> Vec<String> {
    if revision.moves.is_empty() && !revision.anew {
        return vec![if revision.kept { "components adjusted" } else { NONE }.to_string()];
    }
    let tried = if revision.kept { "" } else { "tried: " };
    let mut lines: Vec<String> =
        revision.moves.iter().map(|made| format!("{tried}{}", describe_move(made))).collect();
    if revision.anew {
        lines.push("a new mixture was fitted to all rows".to_string());
    }
    lines
}

fn describe_move(made: &Move) -> String {
    let split = made.split.map(|split| {
        let [one, other] = split.into;
        format!("split {} into {one} and {other}", split.component)
    });
    let merged = made.merged.map(|merged| {
        let [one, other] = merged.components;
        format!("joined {one} and {other} into {}", merged.into)
    });
    let added = made.added.map(|added| format!("added {added} for rows of a new kind"));
    let gain = format!("gain {} per row", decimal(made.gain, 4));
    let parts: Vec<String> = split.into_iter().chain(added).chain(merged).chain([gain]).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::{MergeMove, SplitMove};

    fn result(revisions: Vec<RevisionRecord>) -> StructureResult {
        StructureResult {
            start: Some(StartKind::Fitted),
            effort: Some(Effort::Default),
            prior_rows: None,
            prior_is_learned: true,
            revisions: Some(revisions),
            kept_rows: 3,
            pending: false,
            provisional: false,
            forgotten: false,
            no_revisions: Some(NoRevisions::NoneDue),
        }
    }

    fn record(rows: u64, reason: Reason, kept: bool, moves: Vec<Move>) -> RevisionRecord {
        let validation_gain = Some(if kept { 0.25 } else { -0.001 });
        RevisionRecord { rows, reason, kept, validation_gain, moves, anew: false }
    }

    fn swap(from: u64) -> Move {
        Move {
            split: Some(SplitMove { component: 3, into: [from, from + 1] }),
            merged: Some(MergeMove { components: [1, 4], into: from + 2 }),
            added: None,
            gain: 0.012,
        }
    }

    #[test]
    fn revisions_are_counted_in_words() {
        let said = |kept: &[bool]| {
            let records = kept.iter().map(|&kept| record(9000, Reason::Doubling, kept, vec![])).collect();
            result(records).describe_revisions().unwrap()
        };
        assert_eq!(said(&[]), "no revisions: none was due");
        let last = "the mixture; the last after 9000 rows (number of rows)";
        assert_eq!(said(&[true]), format!("1 revision, which changed {last}"));
        assert_eq!(said(&[false]), format!("1 revision, which did not change {last}"));
        assert_eq!(said(&[false, false]), format!("2 revisions, none of which changed {last}"));
        assert_eq!(said(&[true, true]), format!("2 revisions, all of which changed {last}"));
        assert_eq!(said(&[true, false]), format!("2 revisions, 1 of which changed {last}"));
        let forgotten = StructureResult { forgotten: true, ..result(vec![swap_record()]) };
        assert!(forgotten.describe_revisions().unwrap().starts_with("the latest 1 revision, "));
    }

    fn swap_record() -> RevisionRecord {
        record(48_250, Reason::Novelty, true, vec![swap(7), swap(10)])
    }

    #[test]
    fn the_history_names_every_move() {
        let history = result(vec![
            swap_record(),
            record(50_000, Reason::Doubling, false, vec![swap(13)]),
            record(60_000, Reason::End, true, vec![]),
        ])
        .history();
        let lines: Vec<&str> = history.lines().collect();
        assert_eq!(lines.len(), 6, "{history}");
        assert!(lines[1].contains("48250   new kind of rows    yes      +0.2500   split 3 into 7 and 8; "));
        assert!(lines[1].ends_with("joined 1 and 4 into 9; gain 0.0120 per row"), "{history}");
        let column = |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count());
        assert_eq!(column(lines[1], "split"), column(lines[2], "split"), "{history}");
        assert!(lines[3].contains("no       -0.0010   tried: split 3 into 13 and 14"), "{history}");
        assert!(lines[4].ends_with("components adjusted"));
        assert_eq!(result(vec![]).history(), "");
    }
}
