//! Where an online fit begins.

use std::path::Path;

use anyhow::Context;

use super::Args;
use crate::cli::choice::OneK;
use crate::cli::console::Console;
use crate::cli::files::read_model;
use crate::cli::pass::Provenance;
use crate::cli::trace::CurveEnd;
use crate::cli::usage;
use crate::learn::{Algorithm, Fingerprint, FitSettings, OnlineFit, RowSample};
use crate::model::{CurvePoint, Lineage, Numbered};
use crate::stats::ColumnSummary;
use crate::text::count;

/// Where an online fit begins: from nothing, from a model or prior, or from the checkpoint of a run that was killed.
pub(super) struct Beginning {
    /// `None` begins from nothing.
    pub(super) from: Option<(Provenance, OnlineFit)>,
    /// Rows of the present data that are learned already, and what they were.
    pub(super) learned_before: Option<(u64, Fingerprint)>,
    /// The columns of the rows that a model to resume had learned.
    pub(super) resumed: Option<Vec<ColumnSummary>>,
    /// The learning curve of the rows learned before.
    pub(super) curve: EarlierCurve,
}

/// Where the learning curve of the rows learned before is to be found.
pub(super) enum EarlierCurve {
    /// No rows were learned before.
    None,
    /// In the checkpoint that the run goes on from.
    Saved(Vec<CurvePoint>),
    /// In the file that a model to resume was traced to, if that is the file of this run.
    OfModel(CurveEnd),
}

impl EarlierCurve {
    /// The points, where there are any, of a curve that goes on in the file `path`.
    pub(super) fn points(self, path: &Path, console: &Console) -> Vec<CurvePoint> {
        let name = path.display();
        match self {
            EarlierCurve::None => Vec::new(),
            EarlierCurve::Saved(points) => {
                if points.is_empty() {
                    console.note(&format!(
                        "the checkpoint has no learning curve, so '{name}' begins after the rows learned before"
                    ));
                }
                points
            }
            EarlierCurve::OfModel(end) => {
                // A pipe must not be read.
                let points = Some(path).filter(|path| path.is_file()).and_then(|path| end.read(path));
                if points.is_none() {
                    console.note(&format!(
                        "'{name}' does not have the learning curve of the model to resume, so it begins after the rows \
                         learned before"
                    ));
                }
                points.unwrap_or_default()
            }
        }
    }
}

pub(super) fn beginning(args: &Args, console: &Console) -> anyhow::Result<Beginning> {
    let mut resumed = None;
    let mut curve = EarlierCurve::None;
    let from = match (&args.resume, &args.prior) {
        (Some(model), _) => {
            let (begun, fit, columns, end) = read_resumable(model, args.resumed_k()?)?;
            resumed = Some(columns);
            curve = EarlierCurve::OfModel(end);
            Some((begun, fit))
        }
        (None, Some(prior)) => Some(read_prior(prior, args.shard)?),
        (None, None) => None,
    };
    let checkpoint = args.checkpoint.checkpoint.as_ref().filter(|path| path.exists());
    let Some(path) = checkpoint else { return Ok(Beginning { from, learned_before: None, resumed, curve }) };
    let (saved, fit, seen, points) = read_checkpoint(path)?;
    let name = path.display();
    let other = match &from {
        Some((begun, _)) if !same_shard(&saved.lineage, &begun.lineage) => Some("another shard or prior"),
        Some((begun, _)) => difference(&saved.settings, &begun.settings),
        None if saved.lineage.is_some() => Some("a shard"),
        None => difference(&saved.settings, &args.settings()?),
    };
    if let Some(other) = other {
        return Err(usage(format!(
            "checkpoint '{name}' is of a run with {other}: delete it, or name another file"
        )));
    }
    let learned_before = from.as_ref().map_or(0, |(_, fit)| fit.rows());
    if fit.rows() <= learned_before {
        return Err(usage(format!(
            "checkpoint '{name}' is older than the model to resume, so that run seems to have finished: \
             delete the checkpoint if these rows are really to be learned"
        )));
    }
    let skip = fit.rows() - learned_before;
    console.note(&format!("going on from checkpoint '{name}' after {}", count(skip, "row")));
    let curve = EarlierCurve::Saved(points);
    Ok(Beginning { from: Some((saved, fit)), learned_before: Some((skip, seen)), resumed, curve })
}

/// What two runs do not have in common.
fn difference(saved: &FitSettings, asked: &FitSettings) -> Option<&'static str> {
    let differ = [
        (saved.components != asked.components, "another --k"),
        (saved.algorithm != asked.algorithm, "another learner or other settings of it"),
        (saved.seed != asked.seed, "another --seed"),
        (saved.init_rows != asked.init_rows, "another --init-rows"),
        (saved.effort != asked.effort, "another --effort"),
        (saved.keep_rows != asked.keep_rows, "another --keep-rows"),
        (saved != asked, "other settings"),
    ];
    differ.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

fn same_shard(a: &Option<Lineage>, b: &Option<Lineage>) -> bool {
    let of = |lineage: &Option<Lineage>| lineage.as_ref().map(|l| (l.prior, l.numbered.clone()));
    of(a) == of(b)
}

fn read_resumable(
    path: &Path,
    k: OneK,
) -> anyhow::Result<(Provenance, OnlineFit, Vec<ColumnSummary>, CurveEnd)> {
    let mut model = k.read(path)?;
    let (names, algorithm) = (model.column_names(), model.algorithm);
    let (lineage, sample) = (model.lineage.clone(), std::mem::take(&mut model.sample));
    let Some((settings, state)) = model.into_fit() else {
        return Err(usage(format!(
            "'{}' was made by '{}', which cannot go on row by row: resume a model of one of {}",
            path.display(),
            algorithm.name(),
            online_names()
        )));
    };
    let (columns, end) = (state.columns.clone(), CurveEnd::of(&state));
    let fit = OnlineFit::restore(settings.clone(), state)?;
    Ok((Provenance { settings, columns: names, lineage, sample }, fit, columns, end))
}

fn online_names() -> String {
    let names: Vec<&str> = Algorithm::all().iter().map(Algorithm::name).collect();
    names.join(", ")
}

/// A checkpoint goes on with the very shard that it is in the middle of.
fn read_checkpoint(path: &Path) -> anyhow::Result<(Provenance, OnlineFit, Fingerprint, Vec<CurvePoint>)> {
    let mut model = read_model(path).context("checkpoint")?;
    let (columns, sample) = (model.column_names(), std::mem::take(&mut model.sample));
    let (curve, seen) = (std::mem::take(&mut model.curve), model.checkpoint);
    let (Some((settings, state, lineage)), Some(seen)) = (model.into_interrupted_fit(), seen) else {
        return Err(usage(format!("'{}' is a model, not a checkpoint: name another file", path.display())));
    };
    let fit = OnlineFit::restore(settings.clone(), state)?;
    Ok((Provenance { settings, columns, lineage, sample }, fit, seen, curve))
}

fn read_prior(path: &Path, shard: Option<(u32, u32)>) -> anyhow::Result<(Provenance, OnlineFit)> {
    let model = read_model(path)?;
    let (settings, state, mut lineage) =
        model.begin_shard().with_context(|| format!("'{}' cannot be a prior", path.display()))?;
    lineage.numbered = shard.map(|(nth, of)| Numbered { of, shards: vec![nth] });
    let fit = OnlineFit::restore(settings.clone(), state)?;
    let (columns, sample) = (model.column_names(), RowSample::default());
    Ok((Provenance { settings, columns, lineage: Some(lineage), sample }, fit))
}
