//! `gmm-bmm export`: write a mixture as CSV files and NumPy arrays.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use super::choice::OneK;
use super::clusters::ClusterArgs;
use super::console::Console;
use super::files::{create_output, is_dash, refuse_overwriting};
use super::usage;
use crate::dist::GaussianMixture;
use crate::files::{NpyValues, NpzWriter, OutputFile};
use crate::model::{Labels, Model};
use crate::text::{count, csv_cell};

/// Write a mixture as CSV files and NumPy arrays
///
/// A folder gets three files, and a name that ends in .npz gets the last one alone:
///
/// means.csv has a line for each component: its identifier, its cluster (empty for an outlier component), its weight, and its mean in each column of the data. covariances.csv has a line for each component and column of the data: the identifier, the name of the column, and its covariance with each column. mixture.npz has the arrays 'weights' (K), 'means' (K × columns), 'covariances' (K × columns × columns), 'identifiers' (K), 'clusters' (K, with -1 for an outlier component), 'columns' (their names), and 'rank_log_densities' and 'rank_rows', the distribution that ranks are looked up in, which numpy.load reads. docs/MODEL_FORMAT.md shows how.
///
/// The heaviest component comes first, as in 'show'. Numbers are exact. Existing files are replaced.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm export model.json --out mixture
  gmm-bmm export model.json --out mixture.npz
  gmm-bmm export model.json --k 6 --out six.npz && python3 -c \"import numpy; print(numpy.load('six.npz')['means'])\"")]
pub(super) struct Args {
    /// The model file ('-' is standard input)
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    #[command(flatten)]
    one_k: OneK,

    /// Folder to write to, which is made if it does not exist, or a file whose name ends in .npz
    #[arg(long, short, value_name = "DIR|FILE")]
    out: PathBuf,

    #[command(flatten)]
    clusters: ClusterArgs,
}

#[derive(Debug, Serialize)]
struct ExportResult {
    k: usize,
    columns: Vec<String>,
    files: Vec<PathBuf>,
}

/// The files of a folder.
const FILES: [&str; 3] = ["means.csv", "covariances.csv", "mixture.npz"];

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let files = files(&args.out)?;
    refuse_overwriting(files.iter(), [&args.model].into_iter())?;
    // The model is read first, so that a wrong name leaves no empty folder.
    let model = args.one_k.read(&args.model)?;
    if files.len() > 1 {
        std::fs::create_dir_all(&args.out)
            .with_context(|| format!("cannot create '{}'", args.out.display()))?;
    }
    let mut outputs = files.iter().map(|path| create_output(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mixture = model.estimate();
    let exported = Exported::new(&model, &mixture, &args.clusters.labels(&model)?);
    if let [means, covariances, _] = outputs.as_mut_slice() {
        exported.write_means(means)?;
        exported.write_covariances(covariances)?;
    }
    if let Some(arrays) = outputs.last_mut() {
        exported.write_arrays(arrays)?;
    }
    outputs.into_iter().try_for_each(OutputFile::commit)?;
    let result = ExportResult { k: mixture.k(), columns: exported.columns, files };
    Ok(console.result(&result, describe)?)
}

/// The files that are written.
fn files(out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let ends_in = |end: &str| out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(end));
    if is_dash(out) || ends_in("csv") || ends_in("npy") || ends_in("json") {
        return Err(usage(format!(
            "--out '{}' is neither a folder nor a file whose name ends in .npz: give one of them",
            out.display()
        )));
    }
    if ends_in("npz") && !out.is_dir() {
        return Ok(vec![out.to_path_buf()]);
    }
    if out.exists() && !out.is_dir() {
        return Err(usage(format!(
            "'{}' is a file, not a folder: give a folder, or a name that ends in .npz",
            out.display()
        )));
    }
    Ok(FILES.iter().map(|name| out.join(name)).collect())
}

/// A mixture with its labels, the heaviest component first.
struct Exported {
    columns: Vec<String>,
    weights: Vec<f64>,
    means: Vec<Vec<f64>>,
    /// The rows of each matrix.
    covariances: Vec<Vec<Vec<f64>>>,
    identifiers: Vec<u64>,
    /// `None` for an outlier component.
    clusters: Vec<Option<u64>>,
    /// Log-densities and the rows that each stands for; empty if they are not known.
    ranks: (Vec<f64>, Vec<f64>),
}

impl Exported {
    fn new(model: &Model, mixture: &GaussianMixture, labels: &Labels) -> Self {
        let order = mixture.heaviest_first();
        let component = |&j: &usize| &mixture.components()[j];
        let matrix = |j: &usize| -> Vec<Vec<f64>> {
            component(j).covariance().matrix().rows().into_iter().map(|row| row.to_vec()).collect()
        };
        let cluster = |&j: &usize| labels.clusters().of(j).map(|cluster| labels.cluster_name(cluster));
        Exported {
            columns: model.column_names().names,
            weights: order.iter().map(|&j| mixture.weights()[j]).collect(),
            means: order.iter().map(|j| component(j).mean().to_vec()).collect(),
            covariances: order.iter().map(matrix).collect(),
            identifiers: order.iter().map(|&j| labels.identifiers()[j]).collect(),
            clusters: order.iter().map(cluster).collect(),
            ranks: model.ranks().map(|ranks| ranks.table().centroids().unzip()).unwrap_or_default(),
        }
    }

    fn header(&self) -> String {
        self.columns.iter().map(|name| format!(",{}", csv_cell(name))).collect()
    }

    fn write_means(&self, to: &mut impl Write) -> anyhow::Result<()> {
        writeln!(to, "component,cluster,weight{}", self.header())?;
        for (i, mean) in self.means.iter().enumerate() {
            let cluster = self.clusters[i].map_or(String::new(), |cluster| cluster.to_string());
            writeln!(to, "{},{cluster},{}{}", self.identifiers[i], self.weights[i], cells(mean))?;
        }
        Ok(())
    }

    fn write_covariances(&self, to: &mut impl Write) -> anyhow::Result<()> {
        writeln!(to, "component,column{}", self.header())?;
        for (identifier, matrix) in self.identifiers.iter().zip(&self.covariances) {
            for (name, row) in self.columns.iter().zip(matrix) {
                writeln!(to, "{identifier},{}{}", csv_cell(name), cells(row))?;
            }
        }
        Ok(())
    }

    fn write_arrays(&self, to: &mut impl Write) -> anyhow::Result<()> {
        let (k, d) = (self.weights.len(), self.columns.len());
        let clusters: Vec<i64> =
            self.clusters.iter().map(|cluster| cluster.map_or(-1, |name| name as i64)).collect();
        let mut archive = NpzWriter::new(to);
        archive.add("weights", &[k], NpyValues::F64(&self.weights))?;
        archive.add("means", &[k, d], NpyValues::F64(&self.means.concat()))?;
        archive.add("covariances", &[k, d, d], NpyValues::F64(&self.covariances.concat().concat()))?;
        archive.add("identifiers", &[k], NpyValues::U64(&self.identifiers))?;
        archive.add("clusters", &[k], NpyValues::I64(&clusters))?;
        archive.add("columns", &[d], NpyValues::Text(&self.columns))?;
        let (log_densities, rows) = &self.ranks;
        archive.add("rank_log_densities", &[log_densities.len()], NpyValues::F64(log_densities))?;
        archive.add("rank_rows", &[rows.len()], NpyValues::F64(rows))?;
        archive.finish()?;
        Ok(())
    }
}

/// Numbers as the rest of a line.
fn cells(values: &[f64]) -> String {
    values.iter().map(|value| format!(",{value}")).collect()
}

fn describe(result: &ExportResult) -> String {
    let files: Vec<String> = result.files.iter().map(|file| file.display().to_string()).collect();
    format!(
        "{} over {} written to {}\n",
        count(result.k as u64, "component"),
        count(result.columns.len() as u64, "column"),
        files.join(", ")
    )
}
