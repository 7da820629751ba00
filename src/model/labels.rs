//! What the components and the clusters of a model are called.

use super::Model;
use crate::dist::Clusters;

/// The components of a model and their clusters, by names that last.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    identifiers: Vec<u64>,
    clusters: Clusters,
}

impl Labels {
    /// The identifier of each component of [`Model::estimate`], in their order.
    pub fn identifiers(&self) -> &[u64] {
        &self.identifiers
    }

    /// The clusters.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// What a cluster is called: the smallest identifier of its components. It stays the same while other components
    /// come and go.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn cluster_name(&self, cluster: usize) -> u64 {
        let names = self.clusters.members(cluster).map(|component| self.identifiers[component]);
        names.min().expect("a cluster has components")
    }
}

impl Model {
    /// The identifier of each component of [`Model::estimate`], in their order. Models without a record of their structure
    /// count from 1.
    pub fn identifiers(&self) -> Vec<u64> {
        match &self.structure {
            Some(structure) => structure.latest_identifiers().all().to_vec(),
            None => (1..=self.k() as u64).collect(),
        }
    }

    /// The components united into clusters by [`GaussianMixture::clusters`](crate::GaussianMixture::clusters), with their
    /// names.
    pub fn labels(&self, overlap: f64) -> Labels {
        Labels { identifiers: self.identifiers(), clusters: self.estimate().clusters(overlap) }
    }
}
