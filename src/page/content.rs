//! The figures of a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ndarray::{Array2, ArrayView2, Axis};
use serde::Serialize;

use super::PageOptions;
use crate::dist::{GaussianMixture, most_probable};
use crate::learn::{ChangeKind, DataChange, Reason};
use crate::model::{Labels, Model};
use crate::text::count;

/// Rows that are drawn.
const MAX_ROWS: usize = 400;
/// Their numbers, so that the page stays small.
const MAX_ROW_NUMBERS: usize = 30_000;
/// Components that are shown.
const MAX_COMPONENTS: usize = 100;
/// Correlations of all components, of two bytes each.
const MAX_CORRELATIONS: usize = 200_000;

/// All that a page shows. Means are in standard deviations of the column from its mean, and so are rows.
#[derive(Serialize)]
pub(super) struct Content {
    heading: String,
    facts: Vec<(&'static str, String)>,
    columns: Vec<PageColumn>,
    /// Columns and components that are left out, because there are too many.
    columns_left_out: usize,
    components_left_out: usize,
    /// The heaviest first; outlier components together last.
    clusters: Vec<PageCluster>,
    components: Vec<PageComponent>,
    /// For each component, the correlations below the diagonal, row by row: base64 of little-endian 16-bit integers, of which
    /// 32767 is 1.
    correlations: String,
    rows: Vec<Vec<Option<f64>>>,
    /// The place of each row's cluster.
    row_clusters: Vec<usize>,
    /// Of how many rows those are a sample.
    rows_in_all: u64,
    course: PageCourse,
    by_k: Vec<ScoreOfK>,
    k: usize,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct PageColumn {
    name: String,
    mean: f64,
    unit: f64,
}

#[derive(Serialize)]
struct PageCluster {
    /// `None` for the outlier components.
    name: Option<u64>,
    weight: f64,
    mean: Vec<f64>,
    spread: Vec<f64>,
}

#[derive(Serialize)]
struct PageComponent {
    identifier: u64,
    /// The place of its cluster.
    cluster: usize,
    weight: f64,
    mean: Vec<f64>,
    spread: Vec<f64>,
}

/// The course of the prequential score.
#[derive(Default, Serialize)]
struct PageCourse {
    /// Rows seen, and the mean score of the rows since the last point.
    points: Vec<(f64, f64)>,
    revisions: Vec<PageRevision>,
    alarms: Vec<Alarm>,
}

/// A change of the data.
#[derive(Serialize)]
struct Alarm {
    row: u64,
    kind: Option<ChangeKind>,
}

#[derive(Serialize)]
struct PageRevision {
    rows: u64,
    reason: Reason,
    gain: Option<f64>,
    moves: usize,
}

#[derive(Serialize)]
struct ScoreOfK {
    k: usize,
    score: f64,
    /// The standard error of the difference to the best.
    error: Option<f64>,
}

impl Content {
    /// `None` if the model does not have the K that is asked for.
    pub(super) fn new(whole: &Model, options: &PageOptions) -> Option<Content> {
        let model = match options.k {
            Some(k) => whole.clone().with_k(k)?,
            None => whole.clone(),
        };
        let (mixture, labels) = (model.estimate(), model.labels(options.clusters));
        let shown = PageRows::of(&model, &mixture);
        let order = mixture.heaviest_first();
        let outliers = labels.clusters().count();
        let place = |component: usize| labels.clusters().of(component).unwrap_or(outliers);
        let components: Vec<usize> = order.iter().copied().take(MAX_COMPONENTS).collect();
        let (rows, row_clusters, rows_in_all) = shown.rows(&model, &mixture, options.rows, place);
        let findings = options.findings.clone();
        Some(Content {
            heading: format!(
                "{} of {} over {}",
                count(mixture.k() as u64, "component"),
                count(labels.clusters().count() as u64, "cluster"),
                count(model.summaries().len() as u64, "column")
            ),
            facts: facts(&model),
            columns_left_out: model.summaries().len() - shown.columns.len(),
            components_left_out: mixture.k() - components.len(),
            clusters: shown.clusters(&mixture, &labels),
            correlations: shown.correlations(&mixture, &components),
            components: components.iter().map(|&j| shown.component(&mixture, &labels, j, place(j))).collect(),
            columns: shown.described(&model),
            rows,
            row_clusters,
            rows_in_all,
            course: course(whole, &model),
            by_k: by_k(whole),
            k: model.k(),
            findings,
        })
    }
}

fn facts(model: &Model) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("learned from", count(model.rows(), "row")),
        ("by", model.recipe().describe()),
        ("seed", model.seed().to_string()),
    ];
    if let Some(score) = model.prequential().mean() {
        let rows = count(model.prequential().rows, "row");
        facts.push(("prequential log-likelihood", format!("{score:.4} per row, over {rows}")));
    }
    if let Some(rows) = model.half_life() {
        facts.push(("half-life", count(rows, "row")));
    }
    facts.push(("written by", format!("gmm-bmm {}", model.tool())));
    facts
}

/// The columns that are shown, with the mean and unit of each.
struct PageRows {
    columns: Vec<usize>,
    means: Vec<f64>,
    units: Vec<f64>,
}

impl PageRows {
    /// All columns, or those in which the components differ most if there are too many.
    fn of(model: &Model, mixture: &GaussianMixture) -> PageRows {
        let summaries = || model.summaries().iter();
        let (means, units): (Vec<f64>, Vec<f64>) = summaries().map(|s| (s.mean, s.unit())).unzip();
        let k = mixture.k().min(MAX_COMPONENTS);
        let fits = |columns: &usize| k * columns * (columns - 1) / 2 <= MAX_CORRELATIONS;
        let most = (1..=means.len()).take_while(fits).last().unwrap_or(1);
        let between = |j: usize| -> f64 {
            let parts = mixture.components().iter().zip(mixture.weights());
            parts.map(|(part, weight)| weight * ((part.mean()[j] - means[j]) / units[j]).powi(2)).sum()
        };
        let spreads: Vec<f64> = (0..means.len()).map(between).collect();
        let mut columns: Vec<usize> = (0..means.len()).collect();
        columns.sort_by(|&a, &b| spreads[b].total_cmp(&spreads[a]));
        columns.truncate(most);
        columns.sort_unstable();
        PageRows { columns, means, units }
    }

    fn described(&self, model: &Model) -> Vec<PageColumn> {
        let names = model.column_names().names;
        let column =
            |&j: &usize| PageColumn { name: names[j].clone(), mean: self.means[j], unit: self.units[j] };
        self.columns.iter().map(column).collect()
    }

    /// A value in standard deviations from the mean.
    fn scaled(&self, j: usize, value: f64) -> f64 {
        short((value - self.means[j]) / self.units[j])
    }

    fn component(
        &self,
        mixture: &GaussianMixture,
        labels: &Labels,
        j: usize,
        cluster: usize,
    ) -> PageComponent {
        let (part, weight) = (&mixture.components()[j], mixture.weights()[j]);
        let variances = part.covariance().diagonal();
        PageComponent {
            identifier: labels.identifiers()[j],
            cluster,
            weight: short(weight),
            mean: self.columns.iter().map(|&c| self.scaled(c, part.mean()[c])).collect(),
            spread: self.columns.iter().map(|&c| short(variances[c].sqrt() / self.units[c])).collect(),
        }
    }

    fn clusters(&self, mixture: &GaussianMixture, labels: &Labels) -> Vec<PageCluster> {
        let clusters = labels.clusters();
        let named =
            (0..clusters.count()).map(|i| (Some(labels.cluster_name(i)), clusters.members(i).collect()));
        let outliers: Vec<usize> = clusters.outliers().collect();
        let all = named.chain((!outliers.is_empty()).then_some((None, outliers)));
        all.map(|(name, members): (_, Vec<usize>)| self.cluster(mixture, name, &members)).collect()
    }

    /// The moments of some components together.
    fn cluster(&self, mixture: &GaussianMixture, name: Option<u64>, members: &[usize]) -> PageCluster {
        let weight: f64 = members.iter().map(|&j| mixture.weights()[j]).sum();
        let moments = |c: usize| {
            let mean_of = |j: usize| (mixture.components()[j].mean()[c] - self.means[c]) / self.units[c];
            let share = |j: usize| mixture.weights()[j] / weight.max(f64::MIN_POSITIVE);
            let mean: f64 = members.iter().map(|&j| share(j) * mean_of(j)).sum();
            let variance =
                |j: usize| mixture.components()[j].covariance().diagonal()[c] / self.units[c].powi(2);
            let square = |j: usize| share(j) * (variance(j) + (mean_of(j) - mean).powi(2));
            (short(mean), short(members.iter().map(|&j| square(j)).sum::<f64>().sqrt()))
        };
        let (mean, spread) = self.columns.iter().map(|&c| moments(c)).unzip();
        PageCluster { name, weight: short(weight), mean, spread }
    }

    fn correlations(&self, mixture: &GaussianMixture, components: &[usize]) -> String {
        let mut bytes = Vec::new();
        for &j in components {
            let matrix = mixture.components()[j].covariance().matrix();
            for (nth, &a) in self.columns.iter().enumerate() {
                for &b in &self.columns[..nth] {
                    let correlation = matrix[(a, b)] / (matrix[(a, a)].sqrt() * matrix[(b, b)].sqrt());
                    // A cast from NaN gives 0.
                    bytes.extend(((correlation * 32767.0).round() as i16).to_le_bytes());
                }
            }
        }
        STANDARD.encode(bytes)
    }

    /// A sample of the rows that are given, or that the model keeps, the place of the cluster of each, and how many there are.
    fn rows(
        &self,
        model: &Model,
        mixture: &GaussianMixture,
        given: Option<ArrayView2<f64>>,
        place: impl Fn(usize) -> usize,
    ) -> (Vec<Vec<Option<f64>>>, Vec<usize>, u64) {
        let all = given.map_or_else(|| model.kept_rows(), |rows| rows.into());
        let most = (MAX_ROW_NUMBERS / self.columns.len().max(1)).clamp(50, MAX_ROWS).min(all.nrows());
        let chosen: Vec<usize> = (0..most).map(|i| i * all.nrows() / most).collect();
        let sample: Array2<f64> = all.select(Axis(0), &chosen);
        let responsibilities = mixture.scored(sample.view()).1;
        let clusters = responsibilities.outer_iter().map(|row| place(most_probable(row.iter().copied()).0));
        let value = |row: &[f64], c: usize| Some(self.scaled(c, row[c])).filter(|value| value.is_finite());
        let scaled = sample.outer_iter().map(|row| {
            let row = row.to_vec();
            self.columns.iter().map(|&c| value(&row, c)).collect()
        });
        (scaled.collect(), clusters.collect(), all.nrows() as u64)
    }
}

/// The scores of the K that is shown, from all K of the pass.
fn course(whole: &Model, model: &Model) -> PageCourse {
    let changes = model.data_changes();
    let alarm = |change: &DataChange| Alarm { row: change.row, kind: Some(change.kind) };
    let mut alarms: Vec<Alarm> = changes.iter().flat_map(|changes| changes.list.iter().map(alarm)).collect();
    if let (Some(changes), true) = (changes, alarms.is_empty()) {
        // Files of earlier versions have no kinds.
        alarms.push(Alarm { row: changes.first, kind: None });
    }
    let kept = model.revisions().filter(|revision| revision.kept);
    let revisions = kept.map(|record| PageRevision {
        rows: record.rows,
        reason: record.reason,
        gain: record.validation_gain.map(short),
        moves: record.moves.len(),
    });
    let place = whole.choice().candidates.iter().position(|rated| rated.k == model.k());
    let points = place.map_or(Vec::new(), |place| whole.score_course(place));
    PageCourse {
        points: points.into_iter().map(|(rows, score)| (rows.round(), (1e4 * score).round() / 1e4)).collect(),
        revisions: revisions.collect(),
        alarms,
    }
}

fn by_k(model: &Model) -> Vec<ScoreOfK> {
    let candidates = model.choice().candidates;
    let scored = |rated: &crate::learn::RatedK| {
        Some(ScoreOfK { k: rated.k, score: rated.score?, error: rated.standard_error })
    };
    let scored: Vec<ScoreOfK> = candidates.iter().filter_map(scored).collect();
    if scored.len() > 1 { scored } else { Vec::new() }
}

/// A number with the digits that a picture shows.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}
