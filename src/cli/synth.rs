//! `gmm-bmm synth`: draw data from a known mixture.

mod output;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use indicatif::ProgressBar;
use serde::Serialize;

use super::console::Console;
use super::files::{Output, is_dash, refuse_overwriting};
use super::ks::parse_range;
use super::usage;
use crate::data::Catalogue;
use crate::data::synth::{PAPER_SETS, PAPER_TEST_ROWS, Synth, SynthSpec, Tails, TrueLevel};
use crate::model::{Model, Recipe};
use crate::stats::ColumnSummary;
use crate::text::count;
use output::write_rows;

/// Draw data from a known mixture
///
/// Draws the parameters of a Gaussian mixture, then training rows and test rows from it. --truth writes the true mixture as a model file, which every other command reads. Its score on the test rows is the best that a learner can expect. The same options and seed give the same bytes with any number of threads. Memory does not grow with the number of rows.
#[derive(Debug, clap::Args)]
#[command(override_usage = "gmm-bmm synth --k <K> --d <D> --n <N> --out <FILE> [OPTIONS]
       gmm-bmm synth --paper <N|LO..HI> --out <FILE|DIR> [OPTIONS]
       gmm-bmm synth --like <NAME> --out <FILE> [OPTIONS]")]
#[command(after_long_help = "Examples:
  gmm-bmm synth --k 4 --d 10 --n 200000 --seed 7 --out train.csv \\
      --test-rows 30000 --test-out test.csv --truth truth.json
  gmm-bmm fit --data train.csv --k 4 --out model.json
  gmm-bmm eval --model truth.json --data test.csv

  gmm-bmm synth --paper 1..9 --out figure1
  gmm-bmm synth --like yearmsd --out yearmsd-stand-in.csv.gz
  gmm-bmm synth --k 3 --d 2 --n 1000000 --drift 5 --out - | gmm-bmm fit --data - --k 3 --out model.json")]
pub(super) struct Args {
    /// Number of clusters
    #[arg(long, value_name = "K", required_unless_present_any = ["paper", "like"])]
    k: Option<usize>,

    /// Number of columns
    #[arg(long, value_name = "D", required_unless_present_any = ["paper", "like"])]
    d: Option<usize>,

    /// Number of training rows
    #[arg(long, value_name = "N", required_unless_present_any = ["paper", "like"])]
    n: Option<u64>,

    /// Seed of all random choices
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    mixture: MixtureArgs,

    /// Draw sets like those of the paper's Figure 1, by number from 1 to 9
    ///
    /// The nine sets have 2 to 6 overlapping clusters in 3 to 10 columns, 170000 training rows and 30000 test rows. With one number --out is a file. With a range such as 1..9 it is a folder with set1/train.csv, set1/test.csv, set1/truth.json and so on. The seed of set i is SEED + i − 1.
    #[arg(long, value_name = "N|LO..HI", value_parser = parse_sets, help_heading = "Sets with a name",
          conflicts_with_all = ["k", "d", "separation", "condition", "weight_skew", "drift", "heavy_tails", "like"])]
    paper: Option<PaperSets>,

    /// Draw a stand-in for this set of the catalogue: synthetic rows of its columns
    ///
    /// It has the set's number of rows and its column names. Its clusters overlap and have heavy tails; its columns are strongly correlated and have different units. The values have nothing else in common with the set. Other options override single properties, such as --n the number of rows.
    #[arg(long, value_name = "NAME", help_heading = "Sets with a name", conflicts_with = "d")]
    like: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Where to write the training rows as CSV ('-' is standard output; a name that ends in .gz is compressed)
    #[arg(long, short, value_name = "FILE|DIR")]
    out: PathBuf,

    /// Fraction of the training values to remove at random, from 0 to below 1 [default: 0]
    ///
    /// Each value is removed with this probability, whatever the values are. The others are those of the same command without this option. Test rows stay complete. A removed value is an empty cell ('NA' in a file of one column, where an empty line is no row).
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    missing: Option<f64>,

    /// Number of test rows to draw
    #[arg(long, value_name = "N")]
    test_rows: Option<u64>,

    /// Where to write the test rows
    #[arg(long, value_name = "FILE")]
    test_out: Option<PathBuf>,

    /// Where to write the true mixture as a model file
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Mixture")]
struct MixtureArgs {
    /// How far apart the clusters' means are [default: 4]
    ///
    /// The root mean square distance between two means, in spreads of a cluster. The spread is the square root of the variance averaged over all directions. At 2 the clusters overlap a lot, at 6 hardly.
    #[arg(long, hide_short_help = true, value_name = "SPREADS")]
    separation: Option<f64>,

    /// How elongated the clusters are: largest over smallest eigenvalue of a covariance [default: 10]
    #[arg(long, hide_short_help = true, value_name = "RATIO")]
    condition: Option<f64>,

    /// How unequal the weights are: cluster j has a weight in proportion to j^−SKEW [default: 0.5]
    #[arg(long, hide_short_help = true, value_name = "SKEW")]
    weight_skew: Option<f64>,

    /// How far each mean moves from the first training row to the last [default: 0]
    ///
    /// Each mean moves at a constant speed in its own random direction, by this many spreads in all. The true mixture and the test rows are those at the end.
    #[arg(long, hide_short_help = true, value_name = "SPREADS")]
    drift: Option<f64>,

    /// Give the clusters heavy tails: each is three Gaussians, 1, 3 and 10 times as wide
    ///
    /// They have 80, 15 and 5 % of the cluster's weight, so the true mixture has three components for each cluster.
    #[arg(long, hide_short_help = true)]
    heavy_tails: bool,
}

fn parse_fraction(text: &str) -> Result<f64, String> {
    let fraction = text.parse().ok().filter(|fraction| (0.0..1.0).contains(fraction));
    fraction.ok_or_else(|| "give a fraction from 0 to below 1, such as 0.1".into())
}

/// Numbers of the paper's sets.
#[derive(Debug, Clone)]
struct PaperSets(Vec<usize>);

fn parse_sets(text: &str) -> Result<PaperSets, String> {
    let sets = parse_range(text, |text| match text.parse() {
        Ok(set) if (1..=PAPER_SETS).contains(&set) => Ok(set),
        _ => Err(format!("give a number from 1 to {PAPER_SETS}, or a range such as 1..{PAPER_SETS}")),
    });
    sets.map(|sets| PaperSets(sets.collect()))
}

/// One mixture to draw and where its rows go.
struct SynthJob {
    /// Its name, if it has one.
    set: Option<String>,
    synth: Synth,
    /// The fraction of training values to remove.
    missing: Option<f64>,
    test_rows: u64,
    out: PathBuf,
    test_out: Option<PathBuf>,
    truth: Option<PathBuf>,
}

/// The result of drawing one set.
#[derive(Debug, Serialize)]
struct DrawnSet {
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<String>,
    rows: u64,
    columns: Vec<String>,
    k: usize,
    components: usize,
    seed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<f64>,
    out: PathBuf,
    test_rows: u64,
    test_out: Option<PathBuf>,
    truth: Option<PathBuf>,
    /// Of the true mixture on the test rows.
    #[serde(flatten)]
    level: Option<Level>,
}

#[derive(Debug, Serialize)]
struct Level {
    true_mean_log_likelihood: f64,
    standard_error: f64,
    bayes_error: f64,
}

/// One set by itself, or several.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum SynthResult {
    One(Box<DrawnSet>),
    Several { sets: Vec<DrawnSet> },
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let mut jobs = args.jobs(console)?;
    check_paths(&jobs)?;
    let to_stdout = jobs.iter().flat_map(SynthJob::paths).any(|path| is_dash(path));
    let several = jobs.len() > 1;
    let outputs = jobs.iter().map(|job| SynthFiles::open(job, several)).collect::<Result<Vec<_>, _>>()?;
    let rows = jobs.iter().flat_map(|job| [job.synth.spec().rows, job.test_rows]);
    let bar = console.progress(Some(rows.fold(0, u64::saturating_add)));
    bar.set_message("rows");
    let drawn = jobs.drain(..).zip(outputs).map(|(job, outputs)| job.run(outputs, &bar));
    let mut drawn = drawn.collect::<anyhow::Result<Vec<DrawnSet>>>()?;
    bar.finish_and_clear();
    if to_stdout {
        drawn.iter().for_each(|drawn| console.note(drawn.describe().trim_end()));
        return Ok(());
    }
    let outcome = match drawn.pop() {
        Some(only) if drawn.is_empty() => SynthResult::One(Box::new(only)),
        last => SynthResult::Several { sets: drawn.into_iter().chain(last).collect() },
    };
    Ok(console.result(&outcome, |outcome| match outcome {
        SynthResult::One(drawn) => drawn.describe(),
        SynthResult::Several { sets } => sets.iter().map(DrawnSet::describe).collect(),
    })?)
}

impl Args {
    fn jobs(&self, console: &Console) -> anyhow::Result<Vec<SynthJob>> {
        let OutputArgs { out, missing, test_rows, test_out, truth } = &self.output;
        let test_rows = test_rows.unwrap_or(if self.paper.is_some() { PAPER_TEST_ROWS } else { 0 });
        if test_out.is_some() && test_rows == 0 {
            return Err(usage("--test-out needs rows: say how many with --test-rows"));
        }
        let Some(PaperSets(sets)) = &self.paper else {
            let (set, synth) = self.draw_mixture(console)?;
            let (out, test_out, truth) = (out.clone(), test_out.clone(), truth.clone());
            return Ok(vec![SynthJob { set, synth, missing: *missing, test_rows, out, test_out, truth }]);
        };
        if sets.len() == 1 {
            return Ok(vec![self.paper_job(sets[0], test_rows)?]);
        }
        if test_out.is_some() || truth.is_some() {
            return Err(usage(
                "several sets are written to the folder --out with their test rows and truth: leave out --test-out and --truth",
            ));
        }
        let in_folder = |&set: &usize| {
            let folder = out.join(format!("set{set}"));
            Ok(SynthJob {
                out: folder.join("train.csv"),
                test_out: (test_rows > 0).then(|| folder.join("test.csv")),
                truth: Some(folder.join("truth.json")),
                ..self.paper_job(set, test_rows)?
            })
        };
        sets.iter().map(in_folder).collect()
    }

    fn paper_job(&self, set: usize, test_rows: u64) -> anyhow::Result<SynthJob> {
        let fixed = SynthSpec::paper(set).map_err(|error| usage(error.to_string()))?;
        let seed = self.seed.wrapping_add(set as u64 - 1);
        let spec = SynthSpec { seed, rows: self.n.unwrap_or(fixed.rows), ..fixed };
        Ok(SynthJob {
            set: Some(format!("paper set {set}")),
            synth: Synth::new(spec).map_err(|error| usage(error.to_string()))?,
            missing: self.output.missing,
            test_rows,
            out: self.output.out.clone(),
            test_out: self.output.test_out.clone(),
            truth: self.output.truth.clone(),
        })
    }

    /// The mixture that the options describe, or a stand-in for a set of the catalogue.
    fn draw_mixture(&self, console: &Console) -> anyhow::Result<(Option<String>, Synth)> {
        let catalogue = Catalogue::built_in();
        let like = match &self.like {
            None => None,
            Some(name) => Some(catalogue.find(name).ok_or_else(|| {
                let names: Vec<&str> = catalogue.sets().iter().map(|set| set.name.as_str()).collect();
                usage(format!("there is no set '{name}' in the catalogue: give one of {}", names.join(", ")))
            })?),
        };
        let base = like.map_or(Ok(SynthSpec::default()), SynthSpec::like);
        let base = base.map_err(|error| usage(error.to_string()))?;
        let spec = SynthSpec {
            k: self.k.unwrap_or(base.k),
            dim: self.d.unwrap_or(base.dim),
            rows: self.n.unwrap_or(base.rows),
            seed: self.seed,
            separation: self.mixture.separation.unwrap_or(base.separation),
            condition: self.mixture.condition.unwrap_or(base.condition),
            weight_skew: self.mixture.weight_skew.unwrap_or(base.weight_skew),
            drift: self.mixture.drift.unwrap_or(base.drift),
            tails: if self.mixture.heavy_tails { Tails::Heavy } else { base.tails },
            ..base
        };
        let synth = match like {
            Some(set) => Synth::with_columns(spec, set.columns.clone()),
            None => Synth::new(spec),
        };
        let synth = synth.map_err(|error| usage(error.to_string()))?;
        if let Some(set) = like {
            console.note(&describe_stand_in(&set.name, &synth));
        }
        if synth.spec().drift > 0.0 {
            console.note("the means move: the truth and the test rows are those at the end");
        }
        Ok((like.map(|set| format!("stand-in for {}", set.name)), synth))
    }
}

fn describe_stand_in(name: &str, synth: &Synth) -> String {
    let SynthSpec { k, dim, rows, .. } = synth.spec();
    format!(
        "stand-in for {name}: {rows} synthetic rows of its {dim} columns, {k} overlapping clusters with heavy tails (each \
         80 % a Gaussian, 15 % one three times and 5 % one ten times as wide), correlated columns in different units; the \
         true mixture has {} Gaussians",
        synth.truth().k()
    )
}

fn place(path: &Path) -> String {
    if is_dash(path) { "standard output".into() } else { path.display().to_string() }
}

/// Refuses two outputs in one place.
fn check_paths(jobs: &[SynthJob]) -> anyhow::Result<()> {
    if jobs.iter().flat_map(SynthJob::paths).filter(|path| is_dash(path)).count() > 1 {
        return Err(usage("'-' is named for two outputs: give each its own"));
    }
    refuse_overwriting(jobs.iter().flat_map(SynthJob::paths), std::iter::empty())
}

impl SynthJob {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.out), self.test_out.as_ref(), self.truth.as_ref()].into_iter().flatten()
    }

    fn run(self, outputs: SynthFiles, bar: &ProgressBar) -> anyhow::Result<DrawnSet> {
        let SynthFiles { mut training, mut test, truth } = outputs;
        let missing = self.missing.unwrap_or(0.0);
        write_rows(self.synth.training().missing(missing), Some(&mut training), bar, |_| ())?;
        let mut level = TrueLevel::default();
        let synth = &self.synth;
        write_rows(synth.test(self.test_rows), test.as_mut(), bar, |block| level.add(synth, block))?;
        if let Some(mut truth) = truth {
            let mut text = Vec::new();
            self.truth_model().write(&mut text)?;
            truth.write_all(&text)?;
            truth.commit()?;
        }
        test.map_or(Ok(()), Output::commit)?;
        training.commit()?;
        let spec = self.synth.spec();
        Ok(DrawnSet {
            rows: spec.rows,
            columns: self.synth.columns().names.clone(),
            k: spec.k,
            components: self.synth.truth().k(),
            seed: spec.seed,
            missing: self.missing,
            level: (level.rows() > 0).then(|| Level {
                true_mean_log_likelihood: level.mean_log_likelihood(),
                standard_error: level.standard_error(),
                bayes_error: level.bayes_error(),
            }),
            set: self.set,
            out: self.out,
            test_rows: self.test_rows,
            test_out: self.test_out,
            truth: self.truth,
        })
    }

    fn truth_model(&self) -> Model {
        let spec = self.synth.spec();
        let summarise = |(mean, variance): (f64, f64)| ColumnSummary {
            count: spec.rows,
            mean,
            squares: variance * spec.rows as f64,
        };
        let summaries: Vec<ColumnSummary> = self.synth.column_moments().into_iter().map(summarise).collect();
        let columns = self.synth.columns().clone();
        Model::from_mixtures(
            vec![self.synth.truth().clone()],
            Recipe::Truth { seed: spec.seed },
            &columns,
            &summaries,
        )
    }
}

/// The files of a job, opened before anything is drawn.
struct SynthFiles {
    training: Output,
    test: Option<Output>,
    truth: Option<Output>,
}

impl SynthFiles {
    fn open(job: &SynthJob, make_folder: bool) -> anyhow::Result<Self> {
        if let Some(folder) = job.out.parent().filter(|_| make_folder) {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder '{}'", folder.display()))?;
        }
        let test = job.test_out.as_deref().map(Output::open_table).transpose()?;
        let truth = job.truth.as_deref().map(Output::open_table).transpose()?;
        Ok(SynthFiles { training: Output::open_table(&job.out)?, test, truth })
    }
}

impl DrawnSet {
    fn describe(&self) -> String {
        let name = self.set.as_ref().map_or(String::new(), |set| format!("{set}: "));
        let components = match self.components / self.k {
            1 => count(self.k as u64, "component"),
            layers => format!("{} clusters of {layers} components", self.k),
        };
        let mut text = format!(
            "{name}{} of {} from {components} (seed {}){} in {}\n",
            count(self.rows, "row"),
            count(self.columns.len() as u64, "column"),
            self.seed,
            self.missing
                .map_or(String::new(), |missing| format!(", {} % of the values removed,", 100.0 * missing)),
            place(&self.out)
        );
        if let Some(level) = &self.level {
            let where_to =
                self.test_out.as_ref().map_or(String::new(), |path| format!(" in {}", place(path)));
            text += &format!(
                "  {} test rows{where_to}: true mean log-likelihood {:.6} ± {:.6}, clusters overlap by {:.1} %\n",
                self.test_rows,
                level.true_mean_log_likelihood,
                level.standard_error,
                100.0 * level.bayes_error
            );
        }
        if let Some(truth) = &self.truth {
            text += &format!("  true mixture in {}\n", place(truth));
        }
        text
    }
}
