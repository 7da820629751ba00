//! What the tables of `compare` show.

use super::option_values::{Learners, ShownUnits, parse_contender, parse_learners};
use crate::cli::usage;
use crate::experiment::{Contender, RecordIndex, name_without_noise};
use crate::report::{Pairs, ReportOptions, SelectRule};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tables")]
pub(super) struct ShownArgs {
    /// How K is chosen for the tables
    #[arg(long, value_enum, default_value_t, value_name = "RULE")]
    select: SelectRule,

    /// What the Wilcoxon tests pair
    #[arg(long, hide_short_help = true, value_enum, default_value_t)]
    pairs: Pairs,

    /// Units of the scores
    #[arg(long, value_enum, default_value_t)]
    pub units: ShownUnits,

    /// The learner that the others are tested against: one of --algos or a name in the tables [default: obmm]
    #[arg(long, hide_short_help = true, value_name = "LEARNER")]
    pub reference: Option<String>,

    /// Show only these learners of the records, a list of names as in --algos or in the tables
    #[arg(long, hide_short_help = true, value_name = "LIST", value_delimiter = ',')]
    show_learners: Vec<String>,

    /// Show only these data sets of the records, in this order
    ///
    /// A name stands for the set with and without noise; NAME+dequantized is the one with noise.
    #[arg(long, hide_short_help = true, value_name = "LIST", value_delimiter = ',')]
    show_sets: Vec<String>,

    /// Leave the chosen K out of the table of scores
    #[arg(long, hide_short_help = true)]
    no_k: bool,

    /// Write the tables without pictures, which take most of the time
    #[arg(long, hide = true)]
    no_pictures: bool,

    /// Also write records.jsonl.gz: the records in a small form, from which --from-records makes the same tables
    ///
    /// It has the scores of single test rows, rounded to 0.001, only for the K that each fold chose. No cells can be added to it.
    #[arg(long, hide_short_help = true)]
    pub pack: bool,
}

impl ShownArgs {
    pub fn options(&self, index: &RecordIndex) -> anyhow::Result<ReportOptions> {
        let reference = self.reference.as_deref().map(|name| reference(name, index)).transpose()?;
        let (select, pairs, units) = (self.select, self.pairs, self.units.0);
        Ok(ReportOptions { select, pairs, units, reference, hide_k: self.no_k, pictures: !self.no_pictures })
    }

    /// Keeps the learners and sets to show.
    pub fn choose(&self, index: &mut RecordIndex) -> anyhow::Result<()> {
        if !self.show_learners.is_empty() {
            let wanted = self.show_learners.iter().map(|name| named(name, index));
            let wanted: Vec<Contender> = wanted.collect::<Result<Vec<_>, _>>()?.concat();
            index.choose_learners(&wanted);
        }
        if !self.show_sets.is_empty() {
            let is_meant = |name: &str, wanted: &str| name == wanted || name_without_noise(name) == wanted;
            let names: Vec<&str> = index.sets().iter().map(|set| set.name()).collect();
            let is_there = |wanted: &&String| names.iter().any(|name| is_meant(name, wanted));
            if let Some(unknown) = self.show_sets.iter().find(|wanted| !is_there(wanted)) {
                return Err(usage(format!("--show-sets '{unknown}': the records have {}", names.join(", "))));
            }
            index.choose_sets(|name| self.show_sets.iter().position(|wanted| is_meant(name, wanted)));
        }
        Ok(())
    }
}

/// A learner of the records that is a command, or one of this program.
fn reference(name: &str, index: &RecordIndex) -> anyhow::Result<Contender> {
    match command(name, index) {
        Some(command) => Ok(command),
        None => parse_contender(name).map_err(|refusal| usage(format!("--reference '{name}': {refusal}"))),
    }
}

/// Learners to show.
fn named(name: &str, index: &RecordIndex) -> anyhow::Result<Vec<Contender>> {
    match (command(name, index), parse_contender(name), parse_learners(name)) {
        (Some(command), ..) => Ok(vec![command]),
        (_, Ok(one), _) => Ok(vec![one]),
        (.., Ok(Learners(several))) => Ok(several),
        (.., Err(refusal)) => Err(usage(format!("--show-learners '{name}': {refusal}"))),
    }
}

fn command(name: &str, index: &RecordIndex) -> Option<Contender> {
    let learners = index.sets().iter().flat_map(|set| set.contenders());
    learners.filter(|one| one.commands().is_some()).find(|one| one.name() == name).cloned()
}
