//! A model that scores rows, and how a file that changes replaces it.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ndarray::{Array1, Array2, ArrayView2};

use super::{Args, Contamination};
use crate::ColumnNames;
use crate::cli::console::{Console, chain};
use crate::cli::files::is_dash;
use crate::cli::usage;
use crate::data::Noise;
use crate::dist::{AnomalyScore, Clusters, Deviations, GaussianMixture, StudentMixture, most_probable};
use crate::experiment::Units;
use crate::learn::{RankTable, ScoreRanks};
use crate::model::{Labels, Model};
use crate::stats::LogUnits;
use crate::text::{count, csv_cell};

/// A model and all that scores rows under it.
pub(super) struct Scorer {
    pub columns: ColumnNames,
    pub seed: u64,
    estimate: GaussianMixture,
    /// Scores instead of the estimate, if it is there.
    predictive: Option<StudentMixture>,
    units: LogUnits,
    /// The noise of discrete columns, if the model was learned with it.
    pub noise: Option<Noise>,
    ranks: Option<RankTable>,
    /// For each component: its identifier, and the fields of cluster and outlier.
    labels: Vec<(u64, String)>,
    /// Only if rows are written.
    clusters: Option<Clusters>,
    /// Only if the scores are explained.
    deviations: Option<Deviations>,
    /// The score of anomalies and its offset, if that is asked for.
    anomaly: Option<(AnomalyScore, f64)>,
}

/// The columns of the scores that every row has.
pub(super) const COLUMNS: &str = "row,log_likelihood,component,probability,cluster,outlier,rank,not_scored";

impl Scorer {
    pub fn new(args: &Args, model: &Model) -> anyhow::Result<Self> {
        let predictive = || {
            model.predictive().ok_or_else(|| {
                let algorithm = model.recipe().name();
                usage(format!("a model made by '{algorithm}' has no posterior, so no posterior predictive"))
            })
        };
        let predictive = args.predictive.then(predictive).transpose()?;
        let estimate = model.estimate();
        let ranks = model.ranks().map(ScoreRanks::table);
        if args.max_rank.is_some() && ranks.is_none() {
            return Err(usage(
                "the model has no ranks, which --max-rank needs: learn it again, or use --top",
            ));
        }
        let labels = args.scores.as_ref().map(|_| args.clusters.labels(model)).transpose()?;
        Ok(Scorer {
            columns: model.column_names(),
            seed: model.seed(),
            predictive,
            units: match args.units {
                Units::Raw => LogUnits::none(model.summaries().len()),
                Units::Zscore => model.summaries().iter().copied().collect(),
            },
            noise: model.noise(),
            ranks,
            clusters: labels.as_ref().map(|labels| labels.clusters().clone()),
            labels: labels.as_ref().map_or(Vec::new(), fields),
            anomaly: args.contamination.map(|Contamination(share)| {
                let score = model.anomaly_score(share);
                let offset = model.anomaly_offset(&score, share);
                (score, offset)
            }),
            deviations: args.explain.then(|| Deviations::new(&estimate)),
            estimate,
        })
    }

    pub fn k(&self) -> usize {
        self.estimate.k()
    }

    /// The log-density of each row, and the responsibilities of the components.
    pub fn score(&self, rows: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
        match &self.predictive {
            None => self.estimate.scored(rows),
            Some(mixture) => mixture.scored(rows),
        }
    }

    /// What the units add to the log-density of a row, of which only the columns with a value count.
    pub fn shift(&self, row: &[f64]) -> f64 {
        self.units.of_row(row)
    }

    /// What missing values would add to the log-density of each row on average, if any are missing.
    pub fn log_density_of_missing(&self, rows: ArrayView2<f64>) -> Option<Array1<f64>> {
        self.estimate.log_density_of_missing(rows)
    }

    /// The log-density by which a row gets its rank: without the outlier components. `of_missing` makes it comparable with
    /// that of whole rows.
    pub fn usualness(&self, log_density: f64, of_missing: f64, responsibilities: &[f64]) -> f64 {
        let log_share = |clusters: &Clusters| clusters.log_share(responsibilities.iter().copied());
        log_density + of_missing + self.clusters.as_ref().map_or(0.0, log_share)
    }

    /// The score of each row by which anomalies are detected, if that is asked for.
    pub fn anomaly_scores(&self, rows: ArrayView2<f64>) -> Option<Array1<f64>> {
        let (score, _) = self.anomaly.as_ref()?;
        Some(score.score_samples(rows).expect("rows have the model's columns"))
    }

    /// The fraction of the rows learned that are less usual.
    pub fn rank(&self, usualness: f64) -> Option<f64> {
        self.ranks.as_ref().and_then(|ranks| ranks.rank(usualness))
    }

    /// The fields of a row after its number.
    pub fn fields(
        &self,
        row: &[f64],
        log_density: f64,
        rank: Option<f64>,
        responsibilities: &[f64],
        anomaly_score: Option<f64>,
    ) -> String {
        let (best, probability) = most_probable(responsibilities.iter().copied());
        let (component, cluster) = &self.labels[best];
        let rank = rank.map_or(String::new(), |rank| rank.to_string());
        let score = log_density + self.shift(row);
        let mut fields = format!("{score},{component},{probability},{cluster},{rank},");
        if let Some(deviations) = &self.deviations {
            fields.push(',');
            fields += &csv_cell(&explanation(&deviations.of(row), &self.columns.names));
        }
        if let Some((score, (_, offset))) = anomaly_score.zip(self.anomaly.as_ref()) {
            fields += &format!(",{},{score}", u8::from(score < *offset));
        }
        fields
    }

    /// The fields of a row that cannot be scored, after its number.
    pub fn empty_fields(&self, reason: &str) -> String {
        let explanation = if self.deviations.is_some() { "," } else { "" };
        let anomaly = if self.anomaly.is_some() { ",," } else { "" };
        format!(",,,,,,{}{explanation}{anomaly}", csv_cell(reason))
    }
}

/// Columns that an explanation names at most.
const MAX_NAMED: usize = 3;
/// A column is named if it deviates by this many standard deviations; the one that deviates most is always named.
const MIN_DEVIATION: f64 = 2.0;

/// The columns that deviate most from what the others predict.
fn explanation(deviations: &[f64], names: &[String]) -> String {
    let mut order: Vec<usize> =
        (0..deviations.len()).filter(|&column| !deviations[column].is_nan()).collect();
    order.sort_by(|&i, &j| deviations[j].abs().total_cmp(&deviations[i].abs()));
    let named = order.iter().take(MAX_NAMED).enumerate();
    let named = named.filter(|(nth, column)| *nth == 0 || deviations[**column].abs() >= MIN_DEVIATION);
    let words: Vec<String> =
        named.map(|(_, &column)| format!("{}:{:+.1}", names[column], deviations[column])).collect();
    words.join(" ")
}

/// For each component: its identifier, and the fields of cluster and outlier.
fn fields(labels: &Labels) -> Vec<(u64, String)> {
    let of_component = |(component, &identifier): (usize, &u64)| {
        let cluster = labels.clusters().of(component).map(|cluster| labels.cluster_name(cluster));
        (identifier, cluster.map_or("0,1".into(), |cluster| format!("{cluster},0")))
    };
    labels.identifiers().iter().enumerate().map(of_component).collect()
}

/// A model file that is read again when it changes.
pub(super) struct WatchedModel {
    path: PathBuf,
    seen: Option<Version>,
}

/// By which a changed file is recognised: time, size, and the number of the file.
type Version = (SystemTime, u64, u64);

fn version(path: &Path) -> Option<Version> {
    let metadata = std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&metadata);
    #[cfg(not(unix))]
    let number = 0;
    Some((metadata.modified().ok()?, metadata.len(), number))
}

impl WatchedModel {
    /// Watches a file. To be called before the file is read, so that no change is missed.
    pub fn new(path: &Path) -> Self {
        let seen = if is_dash(path) { None } else { version(path) };
        WatchedModel { path: path.to_path_buf(), seen }
    }

    /// Replaces the scorer if the file has changed. A file that cannot take its place leaves it as it is.
    pub fn update(&mut self, scorer: &mut Scorer, args: &Args, console: &Console) {
        // A file that is gone for a moment is not a new one.
        let Some(now) = version(&self.path).filter(|now| self.seen.is_some_and(|seen| seen != *now)) else {
            return;
        };
        self.seen = Some(now);
        let name = self.path.display();
        let read = args.one_k.read(&self.path).and_then(|model| {
            let new = Scorer::new(args, &model)?;
            anyhow::ensure!(
                new.columns.names == scorer.columns.names,
                "it was learned from other columns than the model so far"
            );
            Ok((new, model.rows()))
        });
        match read {
            Ok((new, rows)) => {
                let (k, rows) = (count(new.k() as u64, "component"), count(rows, "row"));
                console.note(&format!(
                    "'{name}' has changed: the next rows are scored under its {k}, learned from {rows}"
                ));
                *scorer = new;
            }
            Err(error) => console.warn(&format!(
                "'{name}' has changed but cannot be used, so the model so far stays in use: {}",
                chain(&error)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_explanation_names_the_columns_that_deviate_most() {
        let names = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(explanation(&[1.0, -6.06, 3.2, 2.5], &names), "b:-6.1 c:+3.2 d:+2.5");
        assert_eq!(explanation(&[1.0, -6.06, 1.2, 1.9], &names), "b:-6.1");
        assert_eq!(explanation(&[0.1, 0.0, -0.2, 0.0], &names), "c:-0.2");
    }
}
