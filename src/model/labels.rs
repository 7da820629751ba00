//! The names of components and clusters.

use std::collections::{BTreeSet, HashMap};

use super::Model;
use crate::dist::{Clusters, GaussianMixture, Uniting};
use crate::learn::Move;

/// The components of a model and their clusters, with names that stay while the model is revised.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    identifiers: Vec<u64>,
    clusters: Clusters,
    cluster_names: Vec<u64>,
}

/// The identifier of a component and of those that it came from.
type Family = BTreeSet<u64>;

impl Labels {
    /// The identifier of each component of [`Model::estimate`], in their order.
    pub fn identifiers(&self) -> &[u64] {
        &self.identifiers
    }

    /// The clusters.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// The name of a cluster: the smallest identifier of its components, or of those that they came from by splits and
    /// merges, that no other cluster has. So a cluster keeps its name while components are split and merged.
    ///
    /// # Panics
    /// If there is no such cluster.
    pub fn cluster_name(&self, cluster: usize) -> u64 {
        self.cluster_names[cluster]
    }
}

impl Model {
    /// The identifier of each component of [`Model::estimate`], in their order. Without a history they count from 1.
    pub fn identifiers(&self) -> Vec<u64> {
        match self.structure() {
            Some(structure) => structure.latest_identifiers().all().to_vec(),
            None => (1..=self.k() as u64).collect(),
        }
    }

    /// The components united into clusters by [`GaussianMixture::clusters`], with their names.
    pub fn labels(&self, uniting: impl Into<Uniting>) -> Labels {
        let mixture = self.estimate();
        let identifiers = self.identifiers();
        let families = self.families(&mixture, &identifiers);
        let clusters = mixture.clusters(uniting);
        let cluster_names = names(&clusters, &identifiers, &families);
        Labels { identifiers, clusters, cluster_names }
    }

    /// The family of each component.
    fn families(&self, mixture: &GaussianMixture, identifiers: &[u64]) -> Vec<Family> {
        let Some(structure) = self.structure() else {
            return identifiers.iter().map(|&own| Family::from([own])).collect();
        };
        let kept = structure.revisions().filter(|revision| revision.kept);
        let known = known_families(kept.flat_map(|revision| &revision.moves));
        let (running, before) = (structure.identifiers.all(), self.own().learned.estimate());
        let origins = before.most_probable_components(mixture.means().view());
        let successors = mixture.most_probable_components(before.means().view());
        let of = |(component, &own): (usize, &u64)| {
            // A mixture that was searched again at the end of the stream has components without a record. Each comes from the
            // component of the running state that its mean belongs to, and from those whose means belong to it.
            let is_origin = |&i: &usize| origins[component] == i || successors[i] == component;
            let is_recorded = known.contains_key(&own) || running.contains(&own);
            let parents: Vec<u64> = match is_recorded {
                true => Vec::new(),
                false => (0..running.len()).filter(is_origin).map(|i| running[i]).collect(),
            };
            family_of(&known, &parents, own)
        };
        identifiers.iter().enumerate().map(of).collect()
    }
}

/// The families of all identifiers that moves assigned.
fn known_families<'a>(moves: impl Iterator<Item = &'a Move>) -> HashMap<u64, Family> {
    let mut known = HashMap::new();
    for Move { split, merged, .. } in moves {
        for (parent, part) in split.iter().flat_map(|split| split.into.map(|part| (split.component, part))) {
            known.insert(part, family_of(&known, &[parent], part));
        }
        if let Some(merged) = merged {
            known.insert(merged.into, family_of(&known, &merged.components, merged.into));
        }
    }
    known
}

/// The family of `own`, which came from `parents`.
fn family_of(known: &HashMap<u64, Family>, parents: &[u64], own: u64) -> Family {
    let related = parents.iter().chain([&own]);
    related.flat_map(|one| known.get(one).into_iter().flatten().chain([one])).copied().collect()
}

fn names(clusters: &Clusters, identifiers: &[u64], families: &[Family]) -> Vec<u64> {
    let of = |cluster: usize| -> Family {
        clusters.members(cluster).flat_map(|component| &families[component]).copied().collect()
    };
    let all: Vec<Family> = (0..clusters.count()).map(of).collect();
    let name = |cluster: usize| {
        let others =
            |name: &u64| all.iter().enumerate().any(|(i, other)| i != cluster && other.contains(name));
        let own = || clusters.members(cluster).map(|component| identifiers[component]).min();
        all[cluster].iter().find(|name| !others(name)).copied().or_else(own)
    };
    (0..clusters.count()).map(|cluster| name(cluster).expect("a cluster has components")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Gaussian;
    use crate::learn::{MergeMove, SplitMove};
    use crate::linalg::Factor;

    /// The names of clusters after some moves. Components at the same place are one cluster.
    fn named(moves: &[Move], parts: &[(u64, f64)]) -> Vec<u64> {
        let normal = |place: f64| Gaussian::new(vec![place], Factor::identity(1)).unwrap();
        let weights = vec![1.0 / parts.len() as f64; parts.len()];
        let components = parts.iter().map(|part| normal(part.1)).collect();
        let mixture = GaussianMixture::new(weights, components).unwrap();
        let identifiers: Vec<u64> = parts.iter().map(|part| part.0).collect();
        let known = known_families(moves.iter());
        let families: Vec<Family> = identifiers.iter().map(|&own| family_of(&known, &[], own)).collect();
        names(&mixture.clusters(Clusters::OVERLAP), &identifiers, &families)
    }

    fn split(component: u64, into: [u64; 2]) -> Move {
        Move { split: Some(SplitMove { component, into }), merged: None, added: None, gain: 0.1 }
    }

    fn join(components: [u64; 2], into: u64) -> Move {
        Move { split: None, merged: Some(MergeMove { components, into }), added: None, gain: 0.1 }
    }

    #[test]
    fn a_cluster_keeps_its_name_while_its_components_are_split_and_joined() {
        assert_eq!(named(&[], &[(1, 0.0), (3, 0.0), (2, 50.0)]), [1, 2]);
        let mut moves = vec![split(1, [101, 102])];
        assert_eq!(named(&moves, &[(101, 0.0), (3, 0.0), (102, 0.0), (2, 50.0)]), [1, 2]);
        moves.extend([join([101, 3], 103), split(2, [104, 105]), split(102, [106, 107])]);
        let parts = [(103, 0.0), (106, 0.0), (107, 0.0), (104, 50.0), (105, 50.0)];
        assert_eq!(named(&moves, &parts), [1, 2]);
    }

    #[test]
    fn clusters_that_came_from_one_component_have_names_of_their_own() {
        let mut moves = vec![split(1, [101, 102])];
        assert_eq!(named(&moves, &[(101, 0.0), (102, 50.0)]), [101, 102]);
        moves.push(split(101, [103, 104]));
        assert_eq!(named(&moves, &[(103, 0.0), (104, 0.0), (102, 50.0)]), [101, 102]);
    }
}
