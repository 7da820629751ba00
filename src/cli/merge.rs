//! `gmm-bmm merge`: merge shards that were learned from a common prior.

use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use super::console::Console;
use super::files::{Output, is_dash, read_model, refuse_overwriting};
use super::structure::StructureResult;
use crate::learn::Lineage;
use crate::model::{MergeOptions, Merged, Model, merge_models};
use crate::text::{count, listed};

/// Merge shards that were learned from a common prior
///
/// Each shard is learned with 'fit --prior PRIOR' from its own part of the data, on any machine. The merged posterior is the product of the shards' posteriors over the prior. Models that were learned from another prior, have other columns or have learned exactly the same rows are refused. Rows of the prior that shards have learned again are reported. The order of the shards does not matter. A merged model can be merged again with other shards of the same prior. If the shards are numbered ('fit --shard 3/8'), missing ones are named and nothing is written, unless --partial is given.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm fit --data first.csv --k 5 --out prior.json
  gmm-bmm fit --data part1.csv --prior prior.json --shard 1/2 --out p1.json     # on any machine
  gmm-bmm fit --data part2.csv --prior prior.json --shard 2/2 --out p2.json
  gmm-bmm merge --prior prior.json p1.json p2.json --out model.json")]
pub(super) struct Args {
    /// The common prior of all shards
    #[arg(long, value_name = "MODEL")]
    prior: PathBuf,

    /// The model files of the shards
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<PathBuf>,

    /// Where to write the merged model ('-' is standard output)
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Reorder components that are in another order than the prior's before merging
    #[arg(long)]
    align: bool,

    /// Fail unless exactly N shards are given, so that a lost one is noticed
    #[arg(long, value_name = "N")]
    expect: Option<usize>,

    /// Merge even if numbered shards are missing, and name them in a warning
    #[arg(long)]
    partial: bool,
}

#[derive(Debug, Serialize)]
struct MergeResult {
    shards: usize,
    rows: u64,
    prior_rows: u64,
    k: usize,
    damping: Vec<f64>,
    weight_damping: Vec<f64>,
    disagreement: Vec<f64>,
    permuted: Vec<String>,
    /// Numbers of the shards that are not in the model.
    missing: Vec<u32>,
    #[serde(flatten)]
    structure: StructureResult,
    /// How many of the sampled rows of the prior the shards have learned again.
    prior_rows_repeated: usize,
    /// How many rows of the prior were sampled.
    prior_rows_sampled: usize,
    out: PathBuf,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    if let Some(expected) = args.expect {
        let found = args.shards.len();
        anyhow::ensure!(
            found <= expected,
            "{found} shards were given where {expected} are expected: leave out those of other runs"
        );
        anyhow::ensure!(
            found == expected,
            "{found} shards were given where {expected} are expected, so {} lost: learn those missing from {}, or \
             number shards with 'fit --shard I/N', so that missing ones can be named",
            if expected - found == 1 { "one is".to_string() } else { format!("{} are", expected - found) },
            listed(args.shards.iter().map(|shard| format!("'{}'", shard.display())), MAX_NAMED)
        );
    }
    refuse_overwriting([&args.out].into_iter(), args.shards.iter().chain([&args.prior]))?;
    let out = Output::open(&args.out)?;
    let prior = read_model(&args.prior)?;
    let bar = console.progress(Some(args.shards.len() as u64));
    let read = |path: &PathBuf| {
        let model = read_model(path);
        bar.inc(1);
        Ok((path.display().to_string(), model?))
    };
    let shards = args.shards.par_iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    bar.finish_and_clear();
    let options = MergeOptions { realign: args.align, ..MergeOptions::default() };
    let Merged { model, report, permuted } = merge_models(&prior, &shards, options)?;
    let missing = check_complete(&model, args.partial, console)?;
    tell_permuted(&permuted, args.align, console);
    console.tell(model.lineage().and_then(Lineage::repeats));
    let identifiers = prior.identifiers();
    for (what, damping) in [("", &report.damping), ("the weight of ", &report.weight_damping)] {
        for (j, lambda) in damping.iter().enumerate().filter(|(_, lambda)| **lambda < 1.0) {
            console.warn(&format!(
                "the shards disagree so much on {what}component {} that their product was improper; it was damped \
                 to the power {lambda:.3}",
                identifiers[j]
            ));
        }
    }
    out.write_model(&model)?;
    if is_dash(&args.out) {
        return Ok(());
    }
    let lineage = model.lineage();
    let result = MergeResult {
        shards: shards.len(),
        rows: model.rows(),
        prior_rows: prior.rows(),
        k: model.estimate().k(),
        damping: report.damping,
        weight_damping: report.weight_damping,
        disagreement: report.disagreement,
        permuted: permuted.into_iter().map(|(name, _)| name).collect(),
        missing,
        structure: StructureResult::of(&model),
        prior_rows_repeated: lineage.map_or(0, |lineage| lineage.prior_repeated.len()),
        prior_rows_sampled: lineage.map_or(0, |lineage| lineage.prior_sample.len()),
        out: args.out.clone(),
    };
    console.result(&result, describe)?;
    Ok(())
}

/// Returns the numbers of the missing shards. An error unless they may be missing.
fn check_complete(model: &Model, partial: bool, console: &Console) -> anyhow::Result<Vec<u32>> {
    let Some(numbered) = model.lineage().and_then(|lineage| lineage.numbered.as_ref()) else {
        return Ok(Vec::new());
    };
    let missing = numbered.missing();
    if missing.is_empty() {
        return Ok(missing);
    }
    let names = listed(missing.iter().map(u32::to_string), MAX_NAMED);
    let what = if missing.len() == 1 { "shard" } else { "shards" };
    let what = format!("{what} {names} of {} missing", numbered.of);
    anyhow::ensure!(
        partial,
        "{what}: learn what is missing with 'fit --prior --shard', or merge with --partial"
    );
    console.warn(&format!("{what}: the model has not learned their rows"));
    Ok(missing)
}

/// At most this many shards are listed.
const MAX_NAMED: usize = 20;

fn tell_permuted(permuted: &[(String, Vec<usize>)], realigned: bool, console: &Console) {
    for (name, order) in permuted {
        let order: Vec<String> = order.iter().map(|j| (j + 1).to_string()).collect();
        let order = order.join(", ");
        if realigned {
            console.note(&format!("the components of '{name}' were reordered like the prior's: {order}"));
        } else {
            console.warn(&format!(
                "the components of '{name}' seem to be in another order than the prior's ({order}): if they were permuted, \
                 merge again with --align"
            ));
        }
    }
}

fn describe(result: &MergeResult) -> String {
    let most = result.disagreement.iter().copied().fold(0.0, f64::max);
    let revisions = result.structure.describe_revisions().map_or(String::new(), |said| said + "\n");
    format!(
        "{} merged: {} from {} and a common prior of {}\n\
         shards differ from the merged model by {most:.4} at most (Bhattacharyya distance, mean over shards)\n\
         {revisions}model written to {}; it {}\n",
        count(result.shards as u64, "shard"),
        count(result.k as u64, "component"),
        count(result.rows, "row"),
        count(result.prior_rows, "row"),
        result.out.display(),
        result.structure.describe_rows()
    )
}
