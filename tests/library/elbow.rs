//! The elbow of the scores of several K.

use gmm_bmm::internals::stats::ScoredK;
use gmm_bmm::scores::{Beyond, Elbow};

fn scored(from: usize, scores: &[f64]) -> Vec<ScoredK> {
    (from..).zip(scores).map(|(k, &score)| ScoredK { k, score, standard_error: None }).collect()
}

fn found(from: usize, scores: &[f64]) -> Option<(usize, Beyond)> {
    Elbow::find(&scored(from, scores)).map(|elbow| (elbow.k, elbow.beyond))
}

/// Prequential scores of synthetic data with six components in three columns. The last step is small.
const SIX: [f64; 19] = [
    -5.569, -5.357, -5.256, -5.173, -5.150, -5.151, -5.152, -5.153, -5.152, -5.154, -5.153, -5.154, -5.155,
    -5.156, -5.156, -5.157, -5.159, -5.159, -5.160,
];

#[test]
fn the_true_k_is_the_elbow_whatever_the_range() {
    for to in 7..=20 {
        assert_eq!(found(2, &SIX[..to - 1]), Some((6, Beyond::Nothing)), "2..{to}");
    }
    assert_eq!(found(5, &SIX[3..]), Some((6, Beyond::Nothing)));
}

/// Prequential scores of Abalone, K from 2 to 20.
#[test]
fn scores_that_level_off_have_their_elbow_where_they_do() {
    let scores = [
        11.089, 11.839, 12.227, 12.430, 12.489, 12.573, 12.658, 12.787, 12.794, 12.807, 12.842, 12.828,
        12.869, 12.870, 12.852, 12.818, 12.842, 12.842, 12.833,
    ];
    for to in 10..=20 {
        assert_eq!(found(2, &scores[..to - 1]), Some((9, Beyond::Little)), "2..{to}");
    }
    let share = Elbow::find(&scored(2, &scores)).unwrap().share.unwrap();
    assert!((share - 1.698 / 1.781).abs() < 1e-9, "{share}");
}

/// Prequential scores of MAGIC Gamma Telescope, K from 2 to 10.
#[test]
fn scores_that_rise_to_the_end_have_their_elbow_where_they_bend() {
    let magic = [-28.416, -27.560, -27.297, -27.050, -26.922, -26.774, -26.675, -26.588, -26.515];
    assert_eq!(found(2, &magic), Some((5, Beyond::Rises)));
    // One K that gains little does not show that the scores level off.
    let to_20 = [-26.40, -26.41, -26.28, -26.22, -26.16, -26.14, -26.13, -26.04, -25.92, -25.919];
    assert_eq!(found(2, &[magic.as_slice(), &to_20].concat()), Some((5, Beyond::Rises)));
    let even: Vec<f64> = (0..9).map(|k| f64::from(k) + 0.1 * f64::from(k % 2)).collect();
    assert_eq!(found(2, &even), None);
}

#[test]
fn a_smaller_k_within_one_standard_error_of_the_best_is_the_elbow() {
    let mut scored = scored(2, &[-9.0, -5.5, -5.25, -5.0, -5.5]);
    scored[1].standard_error = Some(0.5);
    let elbow = Elbow::find(&scored).unwrap();
    assert_eq!((elbow.k, elbow.beyond, elbow.share), (3, Beyond::WithinError, Some(0.875)));
    scored[1].standard_error = Some(0.25);
    assert_eq!(Elbow::find(&scored).unwrap().k, 5);
}

#[test]
fn the_smallest_k_can_be_the_elbow() {
    let elbow = Elbow::find(&scored(3, &[-4.0, -4.1, -4.2])).unwrap();
    assert_eq!((elbow.k, elbow.beyond, elbow.share), (3, Beyond::Nothing, None));
    assert_eq!(found(3, &[-4.0, -4.0]), Some((3, Beyond::Nothing)));
}

/// K need not be consecutive. From 4 to 16, each component gains little.
#[test]
fn gaps_between_k_count_as_several_components() {
    let of = |ks: &[usize], scores: &[f64]| {
        let scored = ks.iter().zip(scores);
        let scored = scored.map(|(&k, &score)| ScoredK { k, score, standard_error: None });
        Elbow::find(&scored.collect::<Vec<_>>()).map(|elbow| (elbow.k, elbow.beyond))
    };
    assert_eq!(of(&[1, 2, 4, 16], &[-9.0, -7.0, -5.0, -4.5]), Some((4, Beyond::Little)));
    assert_eq!(of(&[1, 2, 4, 5], &[-9.0, -6.0, -5.0, -4.5]), Some((2, Beyond::Rises)));
}

#[test]
fn one_k_and_scores_that_are_not_finite_have_no_elbow() {
    assert_eq!((found(2, &[]), found(2, &[-1.0])), (None, None));
    assert_eq!(found(2, &[-1.0, f64::NAN, -0.5]), None);
    assert_eq!(found(2, &[f64::NEG_INFINITY, -1.0, -0.5]), None);
}
