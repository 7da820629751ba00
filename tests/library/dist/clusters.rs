//! Components that are united to clusters.

use gmm_bmm::GaussianMixture;
use gmm_bmm::dist::{Clusters, Factor, Gaussian, Uniting};

fn normal(mean: &[f64], spread: f64) -> Gaussian {
    let covariance = Factor::from_standard_deviations(&vec![spread; mean.len()]).unwrap();
    Gaussian::new(mean.to_vec(), covariance).unwrap()
}

/// Weights in percent.
fn mixture(parts: &[(f64, Gaussian)]) -> GaussianMixture {
    let (weights, components) = parts.iter().map(|(percent, c)| (percent / 100.0, c.clone())).unzip();
    GaussianMixture::new(weights, components).unwrap()
}

fn found(mixture: &GaussianMixture, overlap: f64) -> Vec<Option<usize>> {
    let clusters = mixture.clusters(overlap);
    (0..mixture.k()).map(|j| clusters.of(j)).collect()
}

#[test]
fn components_far_apart_are_clusters_of_their_own_and_the_heaviest_is_the_first() {
    let mixture = mixture(&[
        (20.0, normal(&[0.0, 0.0], 1.0)),
        (50.0, normal(&[9.0, 0.0], 2.0)),
        (30.0, normal(&[0.0, 9.0], 0.1)),
    ]);
    let clusters = mixture.clusters(Clusters::OVERLAP);
    assert_eq!(found(&mixture, Clusters::OVERLAP), [Some(2), Some(0), Some(1)]);
    assert_eq!((clusters.count(), clusters.weights()), (3, [0.5, 0.3, 0.2].as_slice()));
    assert_eq!(clusters.members(0).collect::<Vec<_>>(), [1]);
    assert_eq!(clusters.outliers().count(), 0);
    assert_eq!(found(&mixture, 1.0), [Some(2), Some(0), Some(1)]);
}

/// Two equal normals at a distance of `distance` standard deviations are misclassified with probability `Φ(−distance/2)`.
#[test]
fn two_normals_are_united_where_the_misclassification_probability_exceeds_the_threshold() {
    for (distance, probability) in [(2.0, 0.1587), (3.0, 0.0668), (3.762, 0.03), (4.5, 0.0122)] {
        let pair = mixture(&[(50.0, normal(&[0.0, 5.0], 1.0)), (50.0, normal(&[distance, 5.0], 1.0))]);
        assert_eq!(found(&pair, 0.7 * probability), [Some(0), Some(0)], "{distance}");
        assert_eq!(pair.clusters(1.3 * probability).count(), 2, "{distance}");
    }
}

#[test]
fn rows_of_an_outlier_component_are_less_usual_than_all_others() {
    let far = mixture(&[(99.95, normal(&[0.0], 1.0)), (0.05, normal(&[60.0], 1e-3))]);
    let rows = ndarray::array![[0.0], [5.0], [60.0]];
    let usual = far.usualness(rows.view(), Clusters::OVERLAP);
    assert!(usual[0] > usual[1] && usual[1] > usual[2] && usual[2] < -1000.0, "{usual}");
    assert_eq!(usual[0], far.score_samples(rows.view()).unwrap()[0]);
}

#[test]
fn a_chain_is_one_cluster_and_probabilities_are_those_of_the_union() {
    let chain = mixture(&[
        (30.0, normal(&[0.0], 1.0)),
        (30.0, normal(&[2.5], 1.0)),
        (30.0, normal(&[5.0], 1.0)),
        (10.0, normal(&[11.0], 1.0)),
    ]);
    assert_eq!(found(&chain, Clusters::OVERLAP), [Some(0), Some(0), Some(0), Some(1)]);
    // A light, wide component is united with the narrow one at its centre.
    let covered = mixture(&[
        (40.0, normal(&[0.0], 1.0)),
        (40.0, normal(&[30.0], 1.0)),
        (1.0, normal(&[0.0], 6.0)),
        (19.0, normal(&[60.0], 1.0)),
    ]);
    assert_eq!(found(&covered, Clusters::OVERLAP), [Some(0), Some(1), Some(0), Some(2)]);
    assert!((covered.clusters(Clusters::OVERLAP).weights()[0] - 0.41).abs() < 1e-12);
}

#[test]
fn a_core_and_its_heavy_tail_are_one_cluster() {
    for dim in [1, 2, 5, 40] {
        let pair = mixture(&[(80.0, normal(&vec![1.0; dim], 1.0)), (20.0, normal(&vec![1.1; dim], 3.0))]);
        assert_eq!(found(&pair, Clusters::OVERLAP), [Some(0), Some(0)], "{dim}");
    }
}

#[test]
fn a_narrow_cluster_inside_a_wide_one_is_a_cluster_unless_it_is_at_its_centre() {
    let wide = normal(&[0.0; 6], 5.0);
    let with = |place: f64| mixture(&[(90.0, wide.clone()), (10.0, normal(&[place; 6], 0.2))]);
    assert_eq!(found(&with(4.0), Clusters::OVERLAP), [Some(0), Some(1)]);
    assert_eq!(found(&with(0.1), Clusters::OVERLAP), [Some(0), Some(0)]);
}

#[test]
fn a_light_component_that_is_far_or_scattered_is_an_outlier() {
    let with = |percent: f64, extra: Gaussian| {
        mixture(&[
            (60.0, normal(&[0.0, 0.0], 1.0)),
            (40.0 - percent, normal(&[8.0, 0.0], 1.0)),
            (percent, extra),
        ])
    };
    let of_extra = |mixture: &GaussianMixture| found(mixture, Clusters::OVERLAP)[2];
    // One component is far away; the other is wide enough to contain both clusters.
    for extra in [normal(&[0.0, 40.0], 0.5), normal(&[4.0, 0.0], 12.0)] {
        let light = with(0.05, extra.clone());
        assert_eq!(of_extra(&light), None);
        assert_eq!(light.clusters(Clusters::OVERLAP).outliers().collect::<Vec<_>>(), [2]);
        assert_eq!(light.clusters(Clusters::OVERLAP).count(), 2);
    }
    // One component is heavy enough for a cluster; the other is light and overlaps a cluster.
    assert_eq!(of_extra(&with(0.5, normal(&[0.0, 40.0], 0.5))), Some(2));
    assert_eq!(of_extra(&with(0.05, normal(&[2.5, 0.0], 1.0))), Some(0));
}

#[test]
fn the_order_of_the_components_and_the_units_do_not_matter() {
    let parts = [
        (35.0, normal(&[0.0, 0.0], 1.0)),
        (25.0, normal(&[3.2, 0.0], 1.2)),
        (30.0, normal(&[0.0, 4.2], 0.7)),
        (9.95, normal(&[7.0, 7.0], 1.0)),
        (0.05, normal(&[3.0, 30.0], 1.0)),
    ];
    let reversed: Vec<_> = parts.iter().rev().cloned().collect();
    let scaled: Vec<_> = parts
        .iter()
        .map(|(weight, c)| {
            let mean = c.mean().iter().map(|m| 1e-7 * m).collect();
            let mut covariance = c.covariance().clone();
            covariance.scale_by(1e-14);
            (*weight, Gaussian::new(mean, covariance).unwrap())
        })
        .collect();
    for overlap in [0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2] {
        let expected = found(&mixture(&parts), overlap);
        let mut backwards = found(&mixture(&reversed), overlap);
        backwards.reverse();
        assert_eq!((&backwards, &found(&mixture(&scaled), overlap)), (&expected, &expected), "{overlap}");
    }
}

#[test]
fn components_are_united_until_so_many_clusters_are_left() {
    let mixture = mixture(&[
        (30.0, normal(&[0.0], 1.0)),
        (19.98, normal(&[3.0], 1.0)),
        (30.0, normal(&[40.0], 1.0)),
        (20.0, normal(&[70.0], 1.0)),
        (0.01, normal(&[4000.0], 1.0)),
        (0.01, normal(&[71.0], 1.0)),
    ]);
    let count = |count| {
        let clusters = mixture.clusters(Uniting::Count(count));
        (0..6).map(|j| clusters.of(j)).collect::<Vec<_>>()
    };
    // The light component that is far away stays an outlier, the other one belongs to its neighbour.
    assert_eq!(count(1), [Some(0), Some(0), Some(0), Some(0), None, Some(0)]);
    assert_eq!(count(2), [Some(1), Some(1), Some(0), Some(0), None, Some(0)]);
    assert_eq!(count(3), [Some(0), Some(0), Some(1), Some(2), None, Some(2)]);
    assert_eq!(count(3), found(&mixture, Clusters::OVERLAP));
    assert_eq!(count(4), [Some(0), Some(3), Some(1), Some(2), None, Some(2)]);
    assert_eq!((count(9), count(0)), (count(4), count(1)));
}

#[test]
fn a_core_and_its_tail_are_two_clusters_if_so_many_are_wanted() {
    let pair = mixture(&[(80.0, normal(&[1.0, 1.0], 1.0)), (20.0, normal(&[1.1, 1.1], 3.0))]);
    assert_eq!([1, 2].map(|count| pair.clusters(Uniting::Count(count)).count()), [1, 2]);
}

#[test]
fn a_component_without_weight_does_no_harm() {
    let empty = mixture(&[(100.0, normal(&[0.0], 1.0)), (0.0, normal(&[0.5], 1.0))]);
    assert_eq!(found(&empty, Clusters::OVERLAP), [Some(0), Some(0)]);
    assert_eq!(mixture(&[(100.0, normal(&[0.0], 1.0))]).clusters(0.0).count(), 1);
}
