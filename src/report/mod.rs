//! Records → tables and pictures, computed from the records alone.
//!
//! [`read_records`](crate::experiment::read_records) reads `records.jsonl`, [`Summary`] holds the figures, and
//! [`write_report`] writes them as CSV, LaTeX, Markdown, SVG and PNG pictures, and a self-contained HTML page. Each format has
//! its own file in this module.

mod analysis;
mod answer;
mod csv;
mod format;
mod html;
mod latex;
mod legend;
mod markdown;
mod pack;
mod plot;
mod tables;
mod terminal;

pub use analysis::{Arrow, Pairs, SelectRule, SetSummary, Summary};
pub use pack::pack;
pub use plot::{LearningCurve, PairPlot, PictureFormat, PlotGroup, figure1};

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::experiment::{Contender, RecordIndex, Units};
use crate::files::OutputFile;
use plot::Picture;

/// How to summarise records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOptions {
    /// How K is chosen for each learner.
    pub select: SelectRule,
    /// What the signed-rank test pairs.
    pub pairs: Pairs,
    /// The units to show scores in; by default those of each data set's record.
    pub units: Option<Units>,
    /// The learner that the others are tested against; by default oBMM or the first of its variants in the records.
    pub reference: Option<Contender>,
    /// Whether the table of scores has no chosen K.
    pub hide_k: bool,
    /// Whether there are pictures.
    pub pictures: bool,
}

/// Why a report cannot be made.
#[allow(missing_docs)]
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// There is no result to show.
    #[error("the records hold no result")]
    NothingToShow,
    /// The learner to test against is not there.
    #[error("the records hold no result of {0} to test the others against")]
    NoReference(String),
    /// Two learners were tested on different rows.
    #[error(
        "on '{data}', fold {fold}, {one} was tested on {one_rows} rows and {other} on {other_rows}: the records come from different data"
    )]
    Unpaired {
        data: String,
        /// The fold, from 0.
        fold: usize,
        one: String,
        one_rows: usize,
        other: String,
        other_rows: usize,
    },
    /// The choice of K needs scores of single rows that packed records do not have.
    #[error("the packed records have the scores of single rows only for the K that validation rows chose")]
    RowsNotKept,
    /// A file of the report cannot be written.
    #[error("{source}")]
    Unwritable { file: PathBuf, source: io::Error },
    /// A picture cannot be drawn.
    #[error("the picture '{name}' cannot be drawn: {reason}")]
    Drawing { name: String, reason: String },
}

/// A format of the report: the text of a file, from the figures and the pictures of each data set.
type Render = fn(&Summary, &[Vec<Picture>]) -> String;

/// The files of a report except its pictures. To add a format, write its module and add a line here.
const FORMATS: &[(&str, Render)] = &[
    ("loglik.csv", |summary, _| csv::cells(summary)),
    ("table.csv", |summary, _| csv::scores(summary)),
    ("table.tex", |summary, _| latex::render(summary)),
    ("times.csv", |summary, _| csv::times(summary)),
    ("summary.md", markdown::render),
    ("report.html", html::render),
];

/// The names of the files that [`write_report`] writes, except pictures.
pub fn report_files() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|(name, _)| *name)
}

/// Writes tables, `plots/*.svg`, `plots/*.png` and `report.html` into a folder, which is created if necessary.
pub fn write_report(
    index: &RecordIndex,
    options: &ReportOptions,
    folder: &Path,
) -> Result<Summary, ReportError> {
    let mut summary = Summary::new(index, options)?;
    summary.notes.extend(plot::notes(&summary, index));
    let pictures = match options.pictures {
        true => plot::pictures(&summary, index)?,
        false => vec![Vec::new(); summary.sets.len()],
    };
    for picture in pictures.iter().flatten() {
        write_picture(folder, picture)?;
    }
    for (name, render) in FORMATS {
        write_file(folder, name, render(&summary, &pictures).as_bytes())?;
    }
    Ok(summary)
}

fn write_picture(folder: &Path, picture: &Picture) -> Result<(), ReportError> {
    write_file(folder, &format!("plots/{}.svg", picture.name), picture.svg.as_bytes())?;
    write_file(folder, &format!("plots/{}.png", picture.name), &picture.png)
}

fn write_file(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), ReportError> {
    let path = folder.join(name);
    let write = || {
        if let Some(parent) = path.parent() {
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("cannot create the folder '{}': {error}", parent.display()),
                )
            };
            std::fs::create_dir_all(parent).map_err(named)?;
        }
        let mut file = OutputFile::create(&path)?;
        file.write_all(bytes)?;
        file.commit()
    };
    write().map_err(|source| ReportError::Unwritable { file: path.clone(), source })
}
