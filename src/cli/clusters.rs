//! The clusters of a model in words.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::usage;
use crate::dist::{Clusters, Uniting};
use crate::model::{Labels, Model};
use crate::text::number::percent;
use crate::text::{count, listed};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Clusters")]
pub(super) struct ClusterArgs {
    /// Unite components into one cluster while the probability that a row of one is assigned to the other exceeds P [default: 0.01]
    ///
    /// The probabilities are estimated from rows drawn from the mixture. A smaller value gives fewer clusters. A component whose centre is assigned to another component joins it at any value, so that a core and its wide tails are one cluster.
    #[arg(long, hide_short_help = true, value_name = "P", value_parser = parse_probability)]
    overlap: Option<f64>,
    /// Unite components until N clusters are left
    ///
    /// The two clusters that are confused most are united first. Outlier components belong to no cluster.
    #[arg(long, value_name = "N", conflicts_with = "overlap", value_parser = parse_count, allow_negative_numbers = true)]
    clusters: Option<NonZeroUsize>,
}

impl ClusterArgs {
    /// Which components are one cluster.
    pub fn uniting(&self) -> Uniting {
        let overlap = Uniting::Overlap(self.overlap.unwrap_or(Clusters::OVERLAP));
        self.clusters.map_or(overlap, |wanted| Uniting::Count(wanted.get()))
    }

    /// Whether one of the options is given.
    pub fn is_given(&self) -> bool {
        self.overlap.is_some() || self.clusters.is_some()
    }

    /// The clusters of a model, as many as are wanted.
    pub fn labels(&self, model: &Model) -> anyhow::Result<Labels> {
        let labels = model.labels(self.uniting());
        let (found, wanted) = (labels.clusters().count(), self.clusters.map_or(1, NonZeroUsize::get));
        if found < wanted {
            return Err(usage(format!(
                "--clusters {wanted}: the model has {} besides outliers: give at most {found}, or fit with a larger --k",
                count(found as u64, "component")
            )));
        }
        Ok(labels)
    }
}

fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "give a whole number from 1".into())
}

pub(super) fn parse_probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("give a number from 0 to 1".into()),
    }
}

/// The clusters of a model.
#[derive(Debug, Serialize)]
pub(super) struct ClustersResult {
    /// Clusters are united above it; absent if a number of clusters was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    overlap: Option<f64>,
    /// How many clusters there are with other overlaps.
    by_overlap: Vec<ByOverlap>,
    /// The heaviest first.
    clusters: Vec<ShownCluster>,
    /// Identifiers of the outlier components.
    outliers: Vec<u64>,
    #[serde(skip)]
    outlier_weight: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct ByOverlap {
    overlap: f64,
    clusters: usize,
}

/// Overlaps for which the number of clusters is shown.
const OVERLAPS: [f64; 5] = [0.003, 0.01, 0.03, 0.1, 0.3];

#[derive(Debug, Serialize)]
struct ShownCluster {
    /// Its name.
    cluster: u64,
    weight: f64,
    /// Their identifiers.
    components: Vec<u64>,
}

/// Components of a cluster beyond these are not named one by one.
const MAX_NAMED: usize = 20;

impl ClustersResult {
    pub fn of(model: &Model, labels: &Labels, uniting: Uniting) -> Self {
        let clusters = labels.clusters();
        let sorted = |members: &mut dyn Iterator<Item = usize>| {
            let mut names: Vec<u64> = members.map(|component| labels.identifiers()[component]).collect();
            names.sort_unstable();
            names
        };
        let shown = |(i, &weight): (usize, &f64)| ShownCluster {
            cluster: labels.cluster_name(i),
            weight,
            components: sorted(&mut clusters.members(i)),
        };
        let mixture = model.estimate();
        let weights = mixture.weights().to_vec();
        let by_overlap = |&overlap: &f64| ByOverlap { overlap, clusters: mixture.clusters(overlap).count() };
        ClustersResult {
            overlap: if let Uniting::Overlap(overlap) = uniting { Some(overlap) } else { None },
            by_overlap: OVERLAPS.iter().map(by_overlap).collect(),
            clusters: clusters.weights().iter().enumerate().map(shown).collect(),
            outliers: sorted(&mut clusters.outliers()),
            outlier_weight: clusters.outliers().map(|component| weights[component]).sum(),
        }
    }

    /// How many clusters there are, and a line for each of the first ones.
    pub fn describe(&self, most: usize) -> String {
        let mut text = count(self.clusters.len() as u64, "cluster");
        if self.by_overlap.iter().any(|by| by.clusters != self.clusters.len()) {
            let by = |by: &ByOverlap| format!("{} at {}", by.clusters, by.overlap);
            let by: Vec<String> = self.by_overlap.iter().map(by).collect();
            text += &format!(" (by --overlap: {})", by.join(", "));
        }
        text += ":\n";
        for cluster in self.clusters.iter().take(most) {
            let name = format!("cluster {}", cluster.cluster);
            text += &line(&name, cluster.weight, &cluster.components);
        }
        if self.clusters.len() > most {
            text += &format!("  … and {} more\n", self.clusters.len() - most);
        }
        if !self.outliers.is_empty() {
            text += &line("outliers", self.outlier_weight, &self.outliers);
        }
        text
    }
}

fn line(name: &str, weight: f64, components: &[u64]) -> String {
    let what = if components.len() == 1 { "component" } else { "components" };
    let percent = percent(weight);
    let components = listed(components.iter().map(u64::to_string), MAX_NAMED);
    format!("  {name:<16} {percent:>6} %   {what} {components}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_and_outliers_have_a_line_each() {
        let cluster = |cluster, weight, components| ShownCluster { cluster, weight, components };
        let result = ClustersResult {
            overlap: Some(0.01),
            by_overlap: vec![
                ByOverlap { overlap: 0.01, clusters: 2 },
                ByOverlap { overlap: 0.1, clusters: 3 },
            ],
            clusters: vec![cluster(3, 0.7, vec![3, 7, 9]), cluster(1, 0.2998, vec![1])],
            outliers: vec![12],
            outlier_weight: 0.0002,
        };
        let text = result.describe(8);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "2 clusters (by --overlap: 2 at 0.01, 3 at 0.1):",
                "  cluster 3          70.0 %   components 3, 7, 9",
                "  cluster 1          30.0 %   component 1",
                "  outliers          0.020 %   component 12"
            ]
        );
        assert!(result.describe(1).contains("\n  … and 1 more\n"));
    }

    #[test]
    fn a_probability_is_from_0_to_1() {
        assert_eq!(parse_probability("0.05"), Ok(0.05));
        for text in ["-0.1", "1.5", "nan", "x", ""] {
            assert!(parse_probability(text).is_err(), "{text}");
        }
    }
}
