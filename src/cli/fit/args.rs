//! The arguments of `gmm-bmm fit`.

use std::path::PathBuf;

use anyhow::Context;
use clap::ArgGroup;

use super::beginning::EarlierCurve;
use super::learner_args::{Algo, ObmmArgs, OdmmArgs, OemArgs};
use crate::cli::choice::OneK;
use crate::cli::clusters::ClusterArgs;
use crate::cli::console::Console;
use crate::cli::data_args::DataArgs;
use crate::cli::files::create_output;
use crate::cli::ks::parse_components;
use crate::cli::plot::PlotArgs;
use crate::cli::trace::{CurvePoints, Due, Trace, TraceFile};
use crate::cli::usage;
use crate::data::Dequantize;
use crate::learn::{
    Algorithm, Components, Effort, FitSettings, LearnError, Moments, Numbered, ObmmSettings, OdmmSettings,
    OemSettings, OnlineFit, PriorStrength, StartKind,
};
use crate::linalg::CovarianceType;

/// Learn a mixture from a stream in one pass and write a model file
///
/// The first rows are buffered and a start is fitted to them; then every row is learned once. Memory does not grow with the number of rows.
///
/// With a range of K, all K are learned in parallel in the same pass. The best K has the highest prequential score: the mean log-density of each row just before it is learned. If few rows follow those of the start, each K is scored on a random half of all rows instead. The model file contains every K. 'eval', 'predict', 'show' and --resume use the best unless --k names another.
///
/// The elbow is the smallest K that no larger K beats by more than one standard error, or by more than a fifth of the average gain per component. If the score rises to the end of the range, it is the K at which the curve bends most.
#[derive(Debug, clap::Args)]
#[command(override_usage = "gmm-bmm fit --data <FILE|NAME> [--k <auto|K|LO..HI|LIST>] --out <FILE> [OPTIONS]
       gmm-bmm fit --data <FILE|NAME> --resume <MODEL> [--k <K>] --out <FILE> [OPTIONS]
       gmm-bmm fit --data <FILE|NAME> --prior <MODEL> --out <FILE> [OPTIONS]")]
#[command(after_long_help = "Examples:
  gmm-bmm fit --data abalone --k 5 --out model.json
  zcat big.csv.gz | gmm-bmm fit --data - --k 2..10 --out model.json
  gmm-bmm fit --data day2.csv --resume model.json --out model.json
  gmm-bmm fit --data day2.csv --resume model.json --k 6 --out six.json
  gmm-bmm fit --data big.csv --k 8 --out model.json --checkpoint big.checkpoint
  gmm-bmm fit --data big.csv --k 8 --out model.json --algo odmm --shards 8
  gmm-bmm fit --data 'part-*.csv' --k 8 --out model.json --algo odmm --deal parts --shards 8
  mpirun -n 8 gmm-bmm fit --data 'part-*.csv' --k 8 --out model.json --algo odmm   (with MPI)
  gmm-bmm fit --data part1.csv --prior prior.json --shard 1/2 --out p1.json
  gmm-bmm fit --data train.csv --k 4 --out model.json --trace curve.csv --test test.csv
  gmm-bmm fit --data train.csv --k 4 --start blind --out model.json --trace curve.csv --test test.csv
  gmm-bmm fit --data big.csv --k 8 --out model.json --plot-curve curve.svg
  gmm-bmm fit --data magic04 --k 5 --out model.json --plot model.svg --plot-axes principal")]
pub(in crate::cli) struct Args {
    /// Number of components: auto (learned), a number, a range such as 2..10 (both ends included), or a list [default: auto]
    ///
    /// With 'auto', K is learned within 1 to 50 ('auto:2..80' sets other bounds) and changes as rows arrive. A component is added if the log-likelihood of the kept rows rises by more than the BIC penalty of its parameters, and two are joined if that costs less than the penalty. With a range or a list, all K are learned in the same pass, and the model file contains all of them. With --resume, --k chooses one K of a model that has several; by default all are resumed.
    #[arg(long, value_parser = parse_components, value_name = "auto|K|LO..HI|LIST")]
    pub(super) k: Option<Components>,

    /// Where to write the model ('-' is standard output)
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: PathBuf,

    /// The algorithm
    #[arg(long, value_enum, default_value = "obmm")]
    pub(super) algo: Algo,

    /// Seed of all random choices; results repeat bit for bit
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub(super) seed: u64,

    /// What the online learner begins from: a mixture fitted to the first rows, or 'blind', as the paper may have begun
    ///
    /// A blind start is for comparisons: K components of equal weight, with the covariance of the first few rows (2·columns + 2, at least 10), and with means drawn from the Gaussian with the mean and covariance of these rows. There is no buffer, no EM and no revision, and learning curves begin with the first row. It needs --k and --algo obmm or oem, and the step of oEM then does not count the rows of the start unless --count-start says so. 'compare --start blind' compares it with the other learners.
    #[arg(long, hide_short_help = true, value_enum, default_value_t = StartKind::Fitted, hide_possible_values = true, value_name = "fitted|blind")]
    pub(super) start: StartKind,

    /// The covariances of components: full, tied, diag or spherical
    ///
    /// 'full' gives each component a matrix of its own; with the learned prior it is the best choice for nearly all data. 'tied' has one matrix that all components share, 'diag' a variance of each column for each component, and 'spherical' one variance of all columns for each component. They have fewer parameters, for very few rows, and take less time with many columns. The variance of 'spherical' is that of the columns in their own units, so it is for columns of one unit.
    #[arg(long, value_enum, default_value_t = CovarianceType::Full, hide_possible_values = true, value_name = "TYPE")]
    pub(super) covariance: CovarianceType,

    /// Rows that the start is fitted to [default: the larger of 5000 and 5·K·columns, but at most 32 MB]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) init_rows: Option<u32>,

    /// Add uniform noise of one quantum to columns with few distinct values, so that likelihoods are those of densities
    ///
    /// A mixture can put a narrow component on a value that occurs often, so its log-likelihood is as high as the floor of the variance allows. With noise as wide as the step of the column's values, scores of different mixtures and learners are comparable. The rows of the start decide which columns are discrete, and --seed the noise. The model file remembers both: 'eval', 'predict' and --resume add the same noise.
    #[arg(long, hide_short_help = true)]
    pub(super) dequantize: bool,

    #[command(flatten)]
    pub(super) data: DataArgs,

    #[command(flatten)]
    pub(super) revisions: RevisionArgs,

    #[command(flatten)]
    pub(super) forgetting: ForgettingArgs,

    #[command(flatten)]
    pub(super) obmm: ObmmArgs,

    #[command(flatten)]
    pub(super) odmm: OdmmArgs,

    #[command(flatten)]
    pub(super) oem: OemArgs,

    /// Learn one shard from this model as the common prior; combine shards with 'gmm-bmm merge'
    #[arg(long, hide_short_help = true, value_name = "MODEL", help_heading = "oDMM", conflicts_with_all = FIXED_BY_A_MODEL, conflicts_with = "k")]
    pub(super) prior: Option<PathBuf>,

    /// Number of this shard and of all shards, such as 3/8, so that 'gmm-bmm merge' can name missing ones
    #[arg(long, hide_short_help = true, value_name = "I/N", help_heading = "oDMM", requires = "prior", value_parser = parse_shard)]
    pub(super) shard: Option<(u32, u32)>,

    /// Resume from this model: fitting A, then resuming with B, gives the bits of fitting A and B together
    #[arg(long, value_name = "MODEL", help_heading = "Resuming",
          conflicts_with_all = FIXED_BY_A_MODEL, conflicts_with = "prior")]
    pub(super) resume: Option<PathBuf>,

    #[command(flatten)]
    pub(super) checkpoint: CheckpointArgs,

    #[command(flatten)]
    pub(super) clusters: ClusterArgs,

    #[command(flatten)]
    pub(super) trace: TraceArgs,

    #[command(flatten)]
    pub(super) plot: PlotArgs,
}

/// Options for finding and revising the structure.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Structure")]
pub(super) struct RevisionArgs {
    /// How much work goes into the structure: fast, default or thorough [default: default]
    ///
    /// As rows arrive, the structure of the mixture is revised on the kept rows: one component is split in two, and two others are joined into one, if that raises the likelihood. A revision is due when the number of rows has doubled, when many rows differ from all rows before, and at the end. A revised mixture is used only if it predicts held-out rows better. 'gmm-bmm show --history' lists the revisions. 'fast' only fits the start, with few moves, and never revises. 'thorough' tries more moves and looks at more rows; it is the default of --algo em, which has all rows at once.
    #[arg(long, value_enum, value_name = "EFFORT", hide_possible_values = true)]
    pub(super) effort: Option<Effort>,

    /// Rows to keep for revisions; 0 turns revisions off [default: 80000, or K·columns² if that is more, and no more than 64 MB]
    ///
    /// The kept rows are a random sample of all rows, or all rows while there are few. More kept rows make revisions better and slower, and the model file larger. In addition, up to 4000 rows are held out to decide whether a revision is kept; they are learned at the end.
    #[arg(long, hide_short_help = true, value_name = "N")]
    pub(super) keep_rows: Option<usize>,

    /// How many rows the prior of a component's covariance is worth: auto or a number [default: auto]
    ///
    /// The prior says that the columns of all components have about the same correlations. It matters where rows are few for the number of columns: a component then has the correlations of all components, and its own standard deviations. 'auto' learns its strength from the data; 'gmm-bmm show' prints it. A number sets it.
    #[arg(long, hide_short_help = true, value_name = "auto|ROWS", value_parser = parse_prior_strength)]
    pub(super) prior_strength: Option<PriorStrength>,

    /// Write the model without rows of the data, to share it
    ///
    /// A model file contains the kept rows, so that resuming is the same as never having stopped. Without them the file is small and reveals no rows. A run that resumes from it does not revise until it has seen about as many new rows as the model has learned, so the result differs from that of a run that never stopped. A checkpoint always contains the rows; it is removed at the end of the run.
    #[arg(long, hide_short_help = true)]
    pub(super) no_rows: bool,
}

fn parse_prior_strength(text: &str) -> Result<PriorStrength, String> {
    match text.trim() {
        "auto" => Ok(PriorStrength::Auto),
        number => match number.parse() {
            Ok(rows) if rows > 0.0 && f64::is_finite(rows) => Ok(PriorStrength::Rows(rows)),
            _ => Err("give a number of rows above 0, or 'auto'".into()),
        },
    }
}

/// Options for data that drift.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Structure")]
pub(super) struct ForgettingArgs {
    /// Rows after which a row has half its weight, for data that drift
    ///
    /// For data in the order of time. By default all rows have the same weight. The model describes about the last 1.4·ROWS rows; a component that gets no more rows loses its weight, and a revision removes it or uses it elsewhere. The kept rows and revisions use the same weights. A longer half-life is more accurate while the data stay the same, a shorter one follows them sooner: with n rows that drift steadily, n/30 to n/20 is a good beginning. The model file remembers the half-life. With --resume, it can be set, changed, or removed with 'none'. Without a half-life, 'fit' says about where the data change, if they do. Shards (--algo odmm, --prior) have no common order of rows, and batch EM has none, so they have no half-life.
    #[arg(long, value_name = "ROWS|none", value_parser = parse_half_life)]
    pub(super) half_life: Option<HalfLife>,
}

/// The value of `--half-life`; `None` removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HalfLife(pub Option<u64>);

fn parse_half_life(text: &str) -> Result<HalfLife, String> {
    match text.trim() {
        "none" => Ok(HalfLife(None)),
        number => match number.parse() {
            Ok(rows) if rows > 0 => Ok(HalfLife(Some(rows))),
            _ => Err("give a number of rows, at least 1, or 'none'".into()),
        },
    }
}

/// Options whose values a run that begins from a model takes from the model.
const FIXED_BY_A_MODEL: [&str; 16] = [
    "covariance",
    "dequantize",
    "start",
    "effort",
    "keep_rows",
    "prior_strength",
    "algo",
    "seed",
    "init_rows",
    "moments",
    "discount",
    "shards",
    "deal",
    "warmup",
    "alpha",
    "count_start",
];

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Resuming")]
pub(super) struct CheckpointArgs {
    /// Save the state to this file from time to time; after a kill, the same command resumes from it
    ///
    /// A checkpoint is a model file of the rows so far: 'gmm-bmm show', 'eval' and 'export' can read it while the fit is running.
    #[arg(long, value_name = "FILE")]
    pub(super) checkpoint: Option<PathBuf>,

    /// Rows between checkpoints
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 100_000, requires = "checkpoint", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) checkpoint_every: u64,
}

impl CheckpointArgs {
    /// Fails at once if the file cannot be written, not when the first checkpoint is due.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let Some(path) = &self.checkpoint else { return Ok(()) };
        if path.exists() && !path.is_dir() && !path.is_file() {
            return Err(usage(format!(
                "checkpoint '{}' has to be a file that can be read again",
                path.display()
            )));
        }
        create_output(path).context("checkpoint").map(drop)
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Learning curve")]
#[command(group = ArgGroup::new("curve").args(["trace", "plot_curve"]).multiple(true))]
pub(super) struct TraceArgs {
    /// Write the learning curve to this CSV file; a resumed run keeps the points that the earlier run wrote there
    ///
    /// The file has each point as soon as it is computed, and keeps them if the run is killed.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,

    /// Draw the learning curve to this file, .svg or .png
    ///
    /// The picture shows the mean prequential score of the rows between two points, and with --test the score of the test rows, against the number of rows seen. A vertical line marks each revision that changed the mixture. Of several K, the best is drawn. A resumed run draws only its own rows.
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(super) plot_curve: Option<PathBuf>,

    /// Rows between points of the curve [default: 10000; in a picture 500, or more if there would be too many points]
    ///
    /// With --start blind, the file and the scores of test rows also have points after 1, 2, 5, 10, 20, 50 rows and so on. Until the few rows of the start are complete, the mixture is drawn around the rows so far.
    #[arg(long, hide_short_help = true, value_name = "N", requires = "curve",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) trace_every: Option<u64>,

    /// Score each point on these rows (held in memory)
    #[arg(long, hide_short_help = true, value_name = "FILE|NAME", requires = "curve")]
    pub(super) test: Option<PathBuf>,
}

impl Args {
    pub(super) fn components(&self) -> Components {
        self.k.clone().unwrap_or_else(|| Components::learned(Components::DEFAULT_BOUNDS))
    }

    /// The K of a model to resume, if one is given.
    pub(super) fn resumed_k(&self) -> anyhow::Result<OneK> {
        match &self.k {
            None => Ok(OneK { k: None }),
            Some(Components::Given(ks)) if ks.len() == 1 => Ok(OneK { k: ks.first().copied() }),
            Some(_) => Err(usage("--resume takes one K of the model with --k, or all of them without it")),
        }
    }

    /// Refuses options that the learner does not have, which would have no effect.
    pub(super) fn refuse_foreign_options(&self) -> anyhow::Result<()> {
        // The parser does not require an option that another given one, such as --k, excludes.
        if self.shard.is_some() && self.prior.is_none() {
            return Err(usage(
                "--shard numbers a shard of a common prior: give the prior with --prior, or leave it out",
            ));
        }
        let name = self.algo.name();
        let oem = OemSettings::default();
        let given = [
            ("--moments", self.obmm.moments == Moments::Paper, ["obmm", "odmm"].as_slice()),
            ("--discount", self.obmm.discount != 0.0, &["obmm", "odmm"]),
            ("--shards", self.odmm.shards.is_some(), &["odmm"]),
            ("--deal", self.odmm.deal.is_some(), &["odmm"]),
            ("--warmup", self.odmm.warmup.is_some(), &["odmm"]),
            ("--alpha", self.oem.alpha != oem.alpha, &["oem"]),
            ("--count-start", self.oem.count_start.is_some_and(|given| given != oem.count_start), &["oem"]),
            ("--start blind", self.start == StartKind::Blind, &["obmm", "oem"]),
            ("--init-rows", self.init_rows.is_some() && name == "em", &["obmm"]),
            ("--keep-rows", self.revisions.keep_rows.is_some() && name == "em", &["obmm"]),
            ("--prior-strength", self.revisions.prior_strength.is_some() && name == "em", &["obmm"]),
            ("--half-life", self.forgetting.half_life.is_some(), &["obmm", "oem"]),
        ];
        match given.iter().find(|(_, given, learners)| *given && !learners.contains(&name)) {
            None => {
                self.refuse_with_blind_start()?;
                self.refuse_other_forgetting()
            }
            Some((option, _, learners)) => Err(usage(format!(
                "{option} has no effect with --algo {name}: leave it out, or choose --algo {}",
                learners.join(" or ")
            ))),
        }
    }

    /// Refuses options that a blind start has no use for.
    fn refuse_with_blind_start(&self) -> anyhow::Result<()> {
        if self.start != StartKind::Blind {
            return Ok(());
        }
        if !matches!(self.k, Some(Components::Given(_))) {
            return Err(usage(
                "--start blind needs a given number of components: add --k K, or a range or list",
            ));
        }
        let useless = [
            ("--init-rows", self.init_rows.is_some()),
            ("--effort", self.revisions.effort.is_some()),
            ("--keep-rows", self.revisions.keep_rows.is_some()),
            ("--prior-strength", self.revisions.prior_strength.is_some()),
            ("--no-rows", self.revisions.no_rows),
            ("--dequantize", self.dequantize),
        ];
        match useless.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(usage(format!(
                "{option} has no effect with --start blind, which fits nothing to first rows and keeps none: leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options that set how rows lose weight in another way than a half-life.
    fn refuse_other_forgetting(&self) -> anyhow::Result<()> {
        if self.forgetting.half_life.is_none_or(|half_life| half_life.0.is_none()) {
            return Ok(());
        }
        if self.prior.is_some() {
            return Err(usage(LearnError::ShardsForget.to_string()));
        }
        let others = [
            ("--discount", self.obmm.discount != 0.0),
            ("--alpha", self.oem.alpha != OemSettings::default().alpha),
        ];
        match others.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => {
                Err(usage(format!("--half-life sets how rows lose weight: leave {option} out")))
            }
        }
    }

    /// Whether the algorithm is oDMM.
    pub(super) fn is_odmm(&self) -> bool {
        matches!(self.algo, Algo::Online(Algorithm::Odmm(_)))
    }

    pub(super) fn settings(&self) -> anyhow::Result<FitSettings> {
        let obmm = ObmmSettings { moments: self.obmm.moments, discount: self.obmm.discount };
        let Algo::Online(mut algorithm) = self.algo else {
            anyhow::bail!("batch EM is not an online learner")
        };
        // A learner without options keeps its default settings.
        if let Algorithm::Obmm(settings) = &mut algorithm {
            *settings = obmm;
        } else if let Algorithm::Oem(settings) = &mut algorithm {
            let count_start = self.oem.count_start.unwrap_or(self.start == StartKind::Fitted);
            *settings = OemSettings { alpha: self.oem.alpha, count_start };
        } else if let Algorithm::Odmm(settings) = &mut algorithm {
            let shards = self.odmm.shards.map_or(settings.shards, usize::from);
            *settings = OdmmSettings { obmm, shards, warmup: self.odmm.warmup };
        }
        algorithm.check().map_err(|error| usage(error.to_string()))?;
        Ok(FitSettings {
            start: self.start,
            start_rows: self.init_rows.map(|rows| rows as usize),
            effort: self.revisions.effort.unwrap_or_default(),
            keep_rows: self.revisions.keep_rows,
            prior_strength: self.revisions.prior_strength.unwrap_or_default(),
            covariance: self.covariance,
            half_life: self.forgetting.half_life.and_then(|half_life| half_life.0),
            dequantize: if self.dequantize { Dequantize::Discrete } else { Dequantize::Off },
            gaps: self.data.reading.takes_gaps(),
            ..FitSettings::new(algorithm, self.components()).seed(self.seed)
        })
    }
}

impl TraceArgs {
    /// Whether there is a learning curve.
    pub(super) fn is_asked_for(&self) -> bool {
        self.trace.is_some() || self.plot_curve.is_some()
    }

    /// Opens the learning curve of a run that begins or resumes with `fit`.
    pub(super) fn open(
        &self,
        data: &DataArgs,
        fit: &OnlineFit,
        earlier: EarlierCurve,
        console: &Console,
    ) -> anyhow::Result<Option<Trace>> {
        const EVERY: u64 = 10_000;
        if !self.is_asked_for() {
            return Ok(None);
        }
        let file = self.trace.as_deref().map(TraceFile::create).transpose()?;
        let earlier = self.trace.as_deref().map_or(Vec::new(), |path| earlier.points(path, console));
        let test = data.reading.read_test(
            self.test.as_ref(),
            fit.settings().seed,
            fit.columns().clone(),
            console,
        )?;
        let picture = self.plot_curve.as_ref().map(|_| CurvePoints::new(fit, self.trace_every));
        let from_first_row = fit.settings().start == StartKind::Blind;
        let due = Due { every: self.trace_every.unwrap_or(EVERY), from_first_row };
        let trace = Trace::new(file, picture, test, due);
        trace.resume(earlier, fit).map(Some)
    }
}

/// Parses `3/8`, the third of eight.
fn parse_shard(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('/').and_then(|(nth, of)| Some((nth.parse().ok()?, of.parse().ok()?)));
    match parsed {
        Some((nth, of)) if (1..=of).contains(&nth) && of <= Numbered::MAX => Ok((nth, of)),
        _ => Err(format!(
            "give a number and how many there are, such as 3/8, from 1/N to N/N, N at most {}",
            Numbered::MAX
        )),
    }
}
