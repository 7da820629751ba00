//! The learned prior: many columns, few rows, and the number of components.

use gmm_bmm::settings::PriorStrength;
use gmm_bmm::{FitSettings, GaussianMixture, LearnError, Model, OnlineFit};
use ndarray::{Array2, s};

use crate::common::*;

fn learn(rows: &Array2<f64>, settings: FitSettings) -> (GaussianMixture, Model) {
    let mut pass = OnlineFit::new(rows.ncols(), settings).unwrap();
    pass.observe(rows.view()).unwrap();
    pass.finish(&Default::default()).unwrap();
    (pass.mixture().unwrap(), pass.to_model().unwrap())
}

fn auto() -> FitSettings {
    FitSettings::learned_k(1..=50)
}

/// Rows of groups in many columns, which all have the same correlations.
fn grouped(rows: usize, columns: usize, groups: usize, apart: f64, seed: u64) -> Array2<f64> {
    let (mut data, centres) = (normals(rows, columns, seed), normals(groups, columns, seed + 100));
    for (i, mut row) in data.outer_iter_mut().enumerate() {
        for j in 1..columns {
            row[j] += 0.5 * row[j - 1];
        }
        row.scaled_add(apart, &centres.row(i % groups));
    }
    data
}

#[test]
fn two_groups_of_thirty_rows_in_two_hundred_columns_are_found() {
    for seed in 1..=3 {
        let rows = grouped(80, 200, 2, 1.5, seed);
        let (learned, held_out) = (rows.slice(s![..60, ..]).to_owned(), rows.slice(s![60.., ..]));
        let (mixture, _) = learn(&learned, auto());
        assert_eq!(mixture.k(), 2, "seed {seed}");
        let labels = mixture.predict(held_out).unwrap();
        assert!((2..20).all(|i| labels[i] == labels[i % 2]), "seed {seed}: {labels:?}");
    }
}

#[test]
fn few_rows_share_correlations_and_beat_the_own_covariance() {
    let rows = grouped(1000, 50, 4, 0.7, 5);
    let (learned, held_out) = (rows.slice(s![..400, ..]).to_owned(), rows.slice(s![400.., ..]));
    let (shared, model) = learn(&learned, FitSettings::obmm(4));
    let (own, weak) = learn(&learned, FitSettings::obmm(4).prior_strength(1.0));
    assert!(model.prior_rows().unwrap() > 100.0, "{:?}", model.prior_rows());
    assert_eq!(weak.prior_rows(), Some(1.0));
    assert!(shared.score(held_out).unwrap() > own.score(held_out).unwrap() + 2.0);
}

#[test]
fn components_of_many_rows_and_different_shapes_need_no_prior() {
    let mut rows = normals(6000, 3, 2);
    for (i, mut row) in rows.outer_iter_mut().enumerate() {
        let (group, slope) = (i % 3, [3.0, -3.0, 0.2][i % 3]);
        row[1] += slope * row[0];
        row[2] += 12.0 * group as f64 - slope * row[1];
    }
    let (_, model) = learn(&rows, FitSettings::obmm(3));
    assert!(model.prior_rows().unwrap() < 20.0, "{:?}", model.prior_rows());
}

#[test]
fn the_evidence_finds_the_groups_of_many_columns() {
    // With 60 columns a component has 1,890 numbers, so that BIC asks for more rows than there are.
    let (mixture, _) = learn(&grouped(600, 60, 4, 1.0, 3), auto());
    assert_eq!(mixture.k(), 4);
}

#[test]
fn a_model_keeps_the_strength_that_was_set() {
    let rows = clusters(1500, 3, 4);
    let settings = FitSettings::obmm(3).start_rows(500).prior_strength(40.0);
    let mut whole = OnlineFit::new(3, settings.clone()).unwrap();
    whole.observe(rows.view()).unwrap();
    let mut part = OnlineFit::new(3, settings).unwrap();
    part.observe(rows.slice(s![..900, ..])).unwrap();
    let mut file = Vec::new();
    part.to_model().unwrap().write(&mut file).unwrap();
    let mut resumed = Model::read(file.as_slice()).unwrap().resume().unwrap();
    assert_eq!(resumed.settings().prior_strength, PriorStrength::Rows(40.0));
    resumed.observe(rows.slice(s![900.., ..])).unwrap();
    assert_eq!(resumed.mixture().unwrap(), whole.mixture().unwrap());
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = OnlineFit::new(3, FitSettings::obmm(3).prior_strength(wrong));
        assert!(matches!(refused, Err(LearnError::Setting { name: "the strength of the prior", .. })));
    }
}
