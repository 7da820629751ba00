//! The beginning of an online fit: a new pass, a resumed model, a shard, or a checkpoint.

use std::path::Path;

use anyhow::Context;

use super::Args;
use super::args::HalfLife;
use crate::cli::choice::OneK;
use crate::cli::console::Console;
use crate::cli::files::read_model;
use crate::cli::trace::CurveEnd;
use crate::cli::{usage, usage_error};
use crate::hash::Fingerprint;
use crate::learn::{Algorithm, FitSettings, Lineage, OnlineFit};
use crate::model::{Checkpoint, CurvePoint, ModelError};
use crate::text::count;

/// Where an online fit begins: anew, from a model or prior, or from the checkpoint of a run that was killed.
pub(super) struct Beginning {
    /// `None` for a new pass.
    pub(super) from: Option<OnlineFit>,
    /// How many rows of the data a checkpoint has learned already, and their fingerprint.
    pub(super) learned_before: Option<(u64, Fingerprint)>,
    /// The learning curve of the rows learned before.
    pub(super) curve: EarlierCurve,
}

/// Where the learning curve of earlier runs is.
pub(super) enum EarlierCurve {
    /// There are no earlier runs.
    None,
    /// In the checkpoint that the run resumes from.
    Saved(Vec<CurvePoint>),
    /// In the trace file, if it has the curve of the resumed model.
    OfModel(CurveEnd),
}

impl EarlierCurve {
    /// The points of the curve that is continued in the file `path`; none if the file does not have them.
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
    let mut curve = EarlierCurve::None;
    let mut from = match (&args.resume, &args.prior) {
        (Some(model), _) => {
            let (mut begun, end) = read_resumable(model, args.resumed_k()?)?;
            if let Some(HalfLife(rows)) = args.forgetting.half_life {
                begun.set_half_life(rows).map_err(usage_error)?;
            }
            curve = EarlierCurve::OfModel(end);
            Some(begun)
        }
        (None, Some(prior)) => Some(read_prior(prior, args.shard)?),
        (None, None) => None,
    };
    let gaps = args.data.reading.takes_gaps();
    from.iter_mut().for_each(|begun| begun.allow_gaps(gaps));
    let checkpoint = args.checkpoint.checkpoint.as_ref().filter(|path| path.exists());
    let Some(path) = checkpoint else { return Ok(Beginning { from, learned_before: None, curve }) };
    let (mut saved, Checkpoint { rows: seen, curve: points }) = read_checkpoint(path)?;
    saved.allow_gaps(gaps);
    let name = path.display();
    let other = match &from {
        Some(begun) if !same_shard(saved.lineage(), begun.lineage()) => Some("another shard or prior"),
        Some(begun) => difference(saved.settings(), begun.settings()),
        None if saved.lineage().is_some() => Some("a shard"),
        None => difference(saved.settings(), &args.settings()?),
    };
    if let Some(other) = other {
        return Err(usage(format!(
            "checkpoint '{name}' is of a run with {other}: delete it, or name another file"
        )));
    }
    let learned_before = from.as_ref().map_or(0, OnlineFit::rows);
    if saved.rows() <= learned_before {
        return Err(usage(format!(
            "checkpoint '{name}' is older than the model to resume, so that run seems to have finished: \
             delete the checkpoint if these rows are really to be learned"
        )));
    }
    let skip = saved.rows() - learned_before;
    console.note(&format!("resuming from checkpoint '{name}' after {}", count(skip, "row")));
    let curve = EarlierCurve::Saved(points);
    Ok(Beginning { from: Some(saved), learned_before: Some((skip, seen)), curve })
}

/// The first setting in which two runs differ.
fn difference(saved: &FitSettings, asked: &FitSettings) -> Option<&'static str> {
    // The start has decided on the columns of one, and not yet on those of the other.
    let is_on = |settings: &FitSettings| settings.dequantize.is_on();
    let (dequantize, weights) = (asked.dequantize.clone(), asked.weights.clone());
    let same_columns = FitSettings { dequantize, weights, ..saved.clone() };
    let differ = [
        (is_on(saved) != is_on(asked), "another --dequantize"),
        (saved.components != asked.components, "another --k"),
        (saved.algorithm != asked.algorithm, "another learner or other settings of it"),
        (saved.seed != asked.seed, "another --seed"),
        (saved.start != asked.start, "another --start"),
        (saved.start_rows != asked.start_rows, "another --init-rows"),
        (saved.effort != asked.effort, "another --effort"),
        (saved.keep_rows != asked.keep_rows, "another --keep-rows"),
        (saved.prior_strength != asked.prior_strength, "another --prior-strength"),
        (saved.half_life != asked.half_life, "another --half-life"),
        (same_columns != *asked, "other settings"),
    ];
    differ.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
}

fn same_shard(a: Option<&Lineage>, b: Option<&Lineage>) -> bool {
    let of = |lineage: Option<&Lineage>| lineage.map(|l| (l.prior, l.numbered.clone()));
    of(a) == of(b)
}

fn read_resumable(path: &Path, k: OneK) -> anyhow::Result<(OnlineFit, CurveEnd)> {
    let model = k.read(path)?;
    let end = CurveEnd::of(&model);
    match model.resume() {
        Ok(pass) => Ok((pass, end)),
        Err(ModelError::NotOnline(algorithm)) => Err(usage(format!(
            "'{}' was made by '{algorithm}', which does not learn row by row: resume a model of one of {}",
            path.display(),
            online_names()
        ))),
        Err(other) => Err(other.into()),
    }
}

fn online_names() -> String {
    let names: Vec<&str> = Algorithm::all().iter().map(Algorithm::name).collect();
    names.join(", ")
}

fn read_checkpoint(path: &Path) -> anyhow::Result<(OnlineFit, Checkpoint)> {
    read_model(path).context("checkpoint")?.resume_checkpoint().map_err(|error| match error {
        ModelError::NotACheckpoint => {
            usage(format!("'{}' is a model, not a checkpoint: name another file", path.display()))
        }
        other => other.into(),
    })
}

fn read_prior(path: &Path, shard: Option<(u32, u32)>) -> anyhow::Result<OnlineFit> {
    let model = read_model(path)?;
    let pass = model.begin_shard().with_context(|| format!("'{}' cannot be a prior", path.display()))?;
    Ok(match shard {
        Some((number, of)) => pass.with_shard_number(number, of)?,
        None => pass,
    })
}
