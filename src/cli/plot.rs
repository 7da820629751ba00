//! `--plot`: a picture of a mixture, for the commands that have one.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::files::create_output;
use super::usage;
use crate::data::{Reservoir, select_columns};
use crate::dist::{Axes, GaussianMixture};
use crate::model::{Labels, Model, OutputFile, Recipe};
use crate::report::{LearningCurve, PairPlot, PictureFormat, PlotGroup};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Picture")]
pub(super) struct PlotArgs {
    /// Draw the mixture to this file, .svg or .png
    ///
    /// A pair plot: up to 1000 rows, taken at random, with each component's 1σ and 2σ ellipses for every pair of axes, and a histogram with the densities for each axis. Components of one cluster have one colour, and the legend names clusters as 'show' does; outlier components are grey.
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// What to draw it along: 'columns' (the first four), 'principal' (the four directions of the largest variance), or up to five columns by name or number
    #[arg(
        long,
        value_name = "columns|principal|LIST",
        default_value = "columns",
        requires = "plot",
        value_delimiter = ','
    )]
    plot_axes: Vec<String>,
}

/// A picture's place, opened before any work is done.
pub(super) struct PlotOutput {
    file: OutputFile,
    format: PictureFormat,
}

impl PlotOutput {
    /// Refuses a file that no picture can be written to.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let Some(format) = PictureFormat::of(path) else {
            return Err(usage(format!(
                "'{}' is not a picture that can be drawn: give a name that ends in .svg or .png",
                path.display()
            )));
        };
        Ok(PlotOutput { file: create_output(path)?, format })
    }

    /// Writes a learning curve. Returns whether there was a point to draw; if not, there is no file.
    pub fn write_curve(mut self, curve: &LearningCurve) -> anyhow::Result<bool> {
        let Some(drawn) = curve.draw(self.format)? else { return Ok(false) };
        self.file.write_all(&drawn)?;
        self.file.commit()?;
        Ok(true)
    }
}

/// Rows that a picture shows.
const MOST_ROWS: usize = 1000;
/// Numbers that it holds for that, unless a hundred rows have more.
const MOST_NUMBERS: usize = 1 << 20;

impl PlotArgs {
    /// Refuses a file that no picture can be written to.
    pub fn open(&self) -> anyhow::Result<Option<PlotOutput>> {
        self.plot.as_deref().map(PlotOutput::open).transpose()
    }

    /// An empty sample for the rows of a picture, if there is to be one; refuses axes that these columns do not have.
    pub fn sample(&self, columns: &[String], seed: u64) -> anyhow::Result<Option<Reservoir>> {
        if self.plot.is_none() {
            return Ok(None);
        }
        self.chosen(columns)?;
        let most = (MOST_NUMBERS / columns.len()).clamp(100, MOST_ROWS);
        Ok(Some(Reservoir::new(columns.len(), most, seed)))
    }

    /// The columns asked for by name; nothing where the directions follow from the model.
    fn chosen(&self, columns: &[String]) -> anyhow::Result<Option<Vec<usize>>> {
        match self.plot_axes.as_slice() {
            [word] if word == "principal" => Ok(None),
            [word] if word == "columns" => Ok(Some((0..columns.len().min(Axes::LEADING)).collect())),
            list => {
                let chosen =
                    select_columns(columns, list).map_err(|error| usage(format!("--plot-axes: {error}")))?;
                if chosen.len() > PairPlot::MOST_AXES {
                    let most = PairPlot::MOST_AXES;
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

    /// Draws a model, with some rows if there are any.
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

/// Clusters have a colour each.
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

/// What stands above a picture: who learned the model.
pub(super) fn heading(model: &Model) -> String {
    let by = match model.algorithm() {
        Recipe::Truth => "the true mixture".into(),
        by => by.describe(),
    };
    format!("{by}, K = {}", model.estimate().k())
}
