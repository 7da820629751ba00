//! `gmm-bmm figure1`: the paper's Figure 1.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use rayon::prelude::*;
use serde::Serialize;

use super::console::Console;
use super::files::create_output;
use crate::data::synth::{PAPER_SETS, PAPER_TEST_ROWS};
use crate::experiment::{CurveRecord, Record, figure1_curves};
use crate::report::figure1;

/// Draw the paper's Figure 1: learning curves of oBMM and oEM on nine synthetic sets
///
/// Each set is generated from a known mixture ('synth --paper 1..9') and learned in one pass: by oBMM with revisions, and by oBMM and oEM from a blind start, as the paper may have. Test rows are scored during the pass. Writes the curves to figure1.jsonl, and two figures as SVG and PNG: the scores, and the gaps to the true model. Running it again replaces the files; an interrupted run leaves the curves of the last one.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm figure1 --out results/figure1
  gmm-bmm figure1 --rows 5000 --test-rows 1000 --out quick")]
pub(super) struct Args {
    /// Training rows of each set
    #[arg(long, value_name = "N", default_value_t = 170_000, value_parser = clap::value_parser!(u64).range(10..))]
    rows: u64,

    /// Test rows of each set
    #[arg(long, value_name = "N", default_value_t = PAPER_TEST_ROWS, value_parser = clap::value_parser!(u64).range(1..))]
    test_rows: u64,

    /// Seed of the sets and of the starts
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    /// Folder to write to
    #[arg(long, short, value_name = "DIR", default_value = "gmm-bmm-figure1")]
    out: PathBuf,
}

#[derive(Debug, Serialize)]
struct CurveEndpoint<'a> {
    set: String,
    learner: &'a str,
    #[serde(skip)]
    name: &'a str,
    rows: u64,
    test_log_likelihood: f64,
    true_log_likelihood: f64,
    gap: f64,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot create '{}'", args.out.display()))?;
    let mut file = create_output(&args.out.join("figure1.jsonl"))?;
    let bar = console.progress(Some(PAPER_SETS as u64));
    let learn = |set: usize| {
        let curves = figure1_curves(set, args.rows, args.test_rows, args.seed);
        bar.inc(1);
        curves
    };
    let curves: Vec<Vec<CurveRecord>> =
        (1..=PAPER_SETS).into_par_iter().map(learn).collect::<Result<_, _>>()?;
    let curves: Vec<CurveRecord> = curves.into_iter().flatten().collect();
    bar.finish_and_clear();
    for curve in &curves {
        serde_json::to_writer(&mut file, &Record::Curve(curve.clone()))?;
        file.write_all(b"\n")?;
    }
    file.commit()?;
    figure1(&curves, &args.out)?;
    let panels: Vec<CurveEndpoint> = curves.iter().filter_map(panel).collect();
    console.result(&panels, |panels| describe(panels, args))?;
    Ok(())
}

fn panel(curve: &CurveRecord) -> Option<CurveEndpoint<'_>> {
    let &(rows, score) = curve.points.last()?;
    let (_, level) = curve.level.as_ref()?;
    Some(CurveEndpoint {
        set: curve.data.clone(),
        learner: curve.contender.id(),
        name: curve.contender.name(),
        rows,
        test_log_likelihood: score,
        true_log_likelihood: *level,
        gap: score - level,
    })
}

fn describe(panels: &[CurveEndpoint], args: &Args) -> String {
    let mut names: Vec<&str> = Vec::new();
    panels.iter().for_each(|panel| {
        if !names.contains(&panel.name) {
            names.push(panel.name)
        }
    });
    let of = |name: &str| panels.iter().filter(|panel| panel.name == name).collect::<Vec<_>>();
    let own: Vec<Vec<&CurveEndpoint>> = names.iter().map(|name| of(name)).collect();
    let mut text = format!("{:<16} {:>10}", "set", "truth");
    names.iter().for_each(|name| text += &format!(" {name:>14}"));
    text += "\n";
    for (place, first) in own.first().into_iter().flatten().enumerate() {
        text += &format!("{:<16} {:>10.4}", first.set, first.true_log_likelihood);
        for panel in own.iter().filter_map(|panels| panels.get(place)) {
            text += &format!(" {:>14.4}", panel.test_log_likelihood);
        }
        text += "\n";
    }
    for (name, panels) in names.iter().zip(&own) {
        let mean = panels.iter().map(|panel| panel.gap).sum::<f64>() / panels.len().max(1) as f64;
        let worst = panels.iter().map(|panel| panel.gap).fold(0.0, f64::min);
        text += &format!("{name}: mean gap {mean:.4}, worst {worst:.4}\n");
    }
    text + &format!(
        "after one pass over {} rows; figures in {}\n",
        args.rows,
        args.out.join("plots").display()
    )
}
