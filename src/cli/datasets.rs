//! `gmm-bmm datasets`: the catalogue of data sets.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::console::Console;
use super::wording;
use crate::data::{Block, Catalogue, DataError, DataSet, Input, ReadOptions, Source};
use crate::experiment::Reported;

/// List the catalogue of data sets, and whether their files are present
///
/// Every option --data takes the name of a set in place of a file. Some sets come with the source code. scripts/fetch_datasets.py fetches the others; with --list it compares checksums.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  gmm-bmm datasets
  gmm-bmm datasets --check --datasets ~/data
  gmm-bmm datasets --json
  gmm-bmm fit --data abalone --k 5 --out model.json")]
pub(super) struct Args {
    /// Folder of the catalogue's sets
    #[arg(long, value_name = "DIR", default_value = "datasets", env = "GMM_BMM_DATASETS")]
    datasets: PathBuf,

    /// Read the files that are present, and compare their rows and columns with the catalogue
    #[arg(long)]
    check: bool,
}

/// A set of the catalogue and the state of its file.
#[derive(Debug, Serialize)]
struct ListedSet {
    #[serde(flatten)]
    set: &'static DataSet,
    #[serde(flatten)]
    reported: Option<&'static Reported>,
    path: PathBuf,
    present: bool,
    /// How to get it.
    how_to_get: String,
    /// With --check: whether the file has the rows and columns of the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    good: Option<bool>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

pub(super) fn run(args: &Args, console: &Console) -> anyhow::Result<()> {
    let sets = Catalogue::built_in().sets();
    let bar = console.progress(args.check.then_some(sets.len() as u64));
    let listed: Vec<ListedSet> = sets.iter().map(|set| list(set, args)).inspect(|_| bar.inc(1)).collect();
    bar.finish_and_clear();
    console.result(&listed, |listed| table(listed))?;
    let bad = listed.iter().filter(|one| one.good == Some(false)).map(|one| one.set.name.as_str());
    match bad.collect::<Vec<_>>().join(", ") {
        bad if bad.is_empty() => Ok(()),
        bad => anyhow::bail!(
            "these files differ from the catalogue: {bad}; fetch them again with scripts/fetch_datasets.py --force"
        ),
    }
}

fn list(set: &'static DataSet, args: &Args) -> ListedSet {
    let path = set.path_in(&args.datasets);
    let present = path.is_file();
    let checked = (args.check && present).then(|| check(set, &path));
    ListedSet {
        set,
        reported: Reported::of(&set.name),
        present,
        how_to_get: wording::how_to_get(set),
        good: checked.as_ref().map(Result::is_ok),
        fault: checked.and_then(Result::err),
        path,
    }
}

/// Whether a file has the set's columns and rows, all of them numbers.
fn check(set: &DataSet, path: &Path) -> Result<(), String> {
    let options = ReadOptions::default().columns(&set.columns);
    let count = || {
        let mut stream = options.open_inputs(vec![Input::File(path.to_path_buf())])?;
        let mut block = Block::new(stream.columns().len());
        while stream.read_block(&mut block, 4096)? {}
        Ok(stream.rows_read())
    };
    let rows = count().map_err(|error: DataError| wording::error(&error))?;
    if rows == set.file_rows() {
        return Ok(());
    }
    Err(format!("it has {rows} rows, not {}", set.file_rows()))
}

fn table(listed: &[ListedSet]) -> String {
    let header =
        ["name", "rows", "columns", "present", "licence", "from", "file, or how to get it"].map(String::from);
    let rows: Vec<[String; 7]> = std::iter::once(header).chain(listed.iter().map(ListedSet::cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let line = |row: &[String; 7]| {
        let aligned = row.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| match i {
            1 | 2 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        let line = aligned.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    rows.iter().map(line).collect()
}

impl ListedSet {
    fn cells(&self) -> [String; 7] {
        let set = self.set;
        let present = match (self.present, self.good) {
            (false, _) => "no",
            (true, None) => "yes",
            (true, Some(true)) => "good",
            (true, Some(false)) => "bad",
        };
        let file = match (&self.fault, self.present) {
            (Some(fault), _) => format!("{}: {fault}", self.path.display()),
            (None, true) => self.path.display().to_string(),
            (None, false) => self.how_to_get.clone(),
        };
        [
            set.name.clone(),
            set.rows.to_string(),
            set.width().map_or("?".into(), |width| width.to_string()),
            present.into(),
            set.licence.clone(),
            set.sources.first().map_or("-".into(), home),
            file,
        ]
    }
}

/// The host or package that a source is at.
fn home(source: &Source) -> String {
    match source {
        Source::Url { at } => at.split('/').nth(2).unwrap_or(at).to_string(),
        Source::Package { package, version, .. } => format!("{package} {version}"),
    }
}
