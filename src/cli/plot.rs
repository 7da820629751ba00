//! `--plot`: a picture of a mixture.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::files::create_output;
use super::{usage, wording};
use crate::data::{Reservoir, select_columns};
use crate::dist::{Axes, GaussianMixture};
use crate::files::OutputFile;
use crate::model::{Labels, Model, Recipe};
use crate::report::{LearningCurve, PairPlot, PictureFormat, PlotGroup};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Picture")]
pub(super) struct PlotArgs {
    /// Draw the mixture to this file, .svg or .png
    ///
    /// A pair plot: for every pair of axes a random sample of up to 1000 rows with the 1σ and 2σ ellipses of the components, and for each axis a histogram with the densities. The components of a cluster have one colour. The legend names the clusters as 'show' does. Outlier components are grey.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Axes: 'columns' (the first four), 'principal' (the four directions of the largest variance), or up to five columns by name or number
    #[arg(
        long,
        hide_short_help = true,
        value_name = "columns|principal|LIST",
        default_value = "columns",
        requires = "plot",
        value_delimiter = ','
    )]
    plot_axes: Vec<String>,
}

/// The file of a picture, opened before any work is done.
pub(super) struct PlotOutput {
    file: OutputFile,
    format: PictureFormat,
}

impl PlotOutput {
    /// Opens the file; an error where its name does not end in .svg or .png.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let Some(format) = PictureFormat::of(path) else {
            return Err(usage(format!(
                "'{}' is neither an SVG nor a PNG file: give a name that ends in .svg or .png",
                path.display()
            )));
        };
        Ok(PlotOutput { file: create_output(path)?, format })
    }

    /// Writes a learning curve. Without a point to draw it returns false and writes no file.
    pub fn write_curve(mut self, curve: &LearningCurve) -> anyhow::Result<bool> {
        let Some(drawn) = curve.draw(self.format)? else { return Ok(false) };
        self.file.write_all(&drawn)?;
        self.file.commit()?;
        Ok(true)
    }
}

/// The most rows that a picture shows.
const MAX_ROWS: usize = 1000;
/// The most numbers that its rows have, unless a hundred rows have more.
const MAX_NUMBERS: usize = 1 << 20;

impl PlotArgs {
    /// Opens the file of the picture, if there is to be one.
    pub fn open(&self) -> anyhow::Result<Option<PlotOutput>> {
        self.plot.as_deref().map(PlotOutput::open).transpose()
    }

    /// An empty sample for the rows of the picture, if there is to be one; an error for axes that are not among the columns.
    pub fn sample(&self, columns: &[String], seed: u64) -> anyhow::Result<Option<Reservoir>> {
        self.check(columns)?;
        Ok(self.plot.is_some().then(|| PlotArgs::empty_sample(columns.len(), seed)))
    }

    /// An error if there is to be a picture along axes that are not among the columns.
    pub fn check(&self, columns: &[String]) -> anyhow::Result<()> {
        if self.plot.is_some() {
            self.chosen(columns)?;
        }
        Ok(())
    }

    /// An empty sample for rows of this many columns.
    pub fn empty_sample(columns: usize, seed: u64) -> Reservoir {
        Reservoir::new(columns, (MAX_NUMBERS / columns).clamp(100, MAX_ROWS), seed)
    }

    /// The chosen columns; `None` where the directions follow from the model.
    fn chosen(&self, columns: &[String]) -> anyhow::Result<Option<Vec<usize>>> {
        match self.plot_axes.as_slice() {
            [word] if word == "principal" => Ok(None),
            [word] if word == "columns" => Ok(Some((0..columns.len().min(Axes::LEADING)).collect())),
            list => {
                let chosen = select_columns(columns, list)
                    .map_err(|error| usage(format!("--plot-axes: {}", wording::error(&error))))?;
                if chosen.len() > PairPlot::MAX_AXES {
                    let most = PairPlot::MAX_AXES;
                    return Err(usage(format!(
                        "--plot-axes names {} columns: give {most} at most",
                        chosen.len()
                    )));
                }
                Ok(Some(chosen))
            }
        }
    }

    fn axes(&self, columns: &[String], mixture: &GaussianMixture) -> anyhow::Result<Axes> {
        Ok(match self.chosen(columns)? {
            Some(chosen) => Axes::columns(columns, &chosen),
            None => Axes::principal(mixture),
        })
    }

    /// Draws a model, with a sample of rows if there is one.
    pub fn write(
        &self,
        to: PlotOutput,
        model: &Model,
        labels: &Labels,
        sample: Option<&Reservoir>,
    ) -> anyhow::Result<()> {
        let mixture = model.estimate();
        let axes = self.axes(&model.column_names().names, &mixture)?;
        let plot = PairPlot {
            heading: heading(model),
            axes: axes.names().to_vec(),
            components: axes.of_mixture(&mixture),
            groups: groups(labels),
            rows: sample.map_or(Vec::new(), |sample| sample.rows().map(|row| axes.of_row(row)).collect()),
            rows_in_all: sample.map_or(0, Reservoir::seen),
        };
        let PlotOutput { mut file, format } = to;
        file.write_all(&plot.draw(format)?)?;
        Ok(file.commit()?)
    }
}

/// A group for each cluster, and one for the outliers.
fn groups(labels: &Labels) -> Vec<PlotGroup> {
    let clusters = labels.clusters();
    let of_cluster = |cluster: usize| PlotGroup {
        name: format!("#{}", labels.cluster_name(cluster)),
        components: clusters.members(cluster).collect(),
        is_apart: false,
    };
    let outliers: Vec<usize> = clusters.outliers().collect();
    let mut groups: Vec<PlotGroup> = (0..clusters.count()).map(of_cluster).collect();
    if !outliers.is_empty() {
        groups.push(PlotGroup { name: "outliers".into(), components: outliers, is_apart: true });
    }
    groups
}

/// The heading of a picture: how the model was learned.
pub(super) fn heading(model: &Model) -> String {
    let by = match model.recipe() {
        Recipe::Truth { .. } => "the true mixture".into(),
        by => by.describe(),
    };
    format!("{by}, K = {}", model.estimate().k())
}
