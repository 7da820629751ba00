//! Discrete columns and their noise.

use gmm_bmm::data::{Catalogue, DiscreteColumn, ReadOptions, discrete_column, find_discrete, with_noise};
use ndarray::Array2;

use crate::common::repository;

/// The discrete columns of a bundled set, as the paper uses it.
fn found_in(name: &str) -> Vec<(String, f64)> {
    let set = Catalogue::built_in().find(name).unwrap();
    let file = set.path_in(&repository("datasets"));
    let mut rows = ReadOptions::default().columns(&set.columns).open(&[file]).unwrap();
    let found = find_discrete(rows.read_all().unwrap().view());
    found.iter().map(|found| (rows.columns().names[found.column].clone(), found.quantum)).collect()
}

fn names(found: &[(String, f64)]) -> Vec<&str> {
    found.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn all_columns_of_airfoil_but_the_measured_one_are_discrete() {
    let found = found_in("airfoil");
    let expected = ["frequency", "attack_angle", "chord_length", "velocity", "displacement_thickness"];
    assert_eq!(names(&found), expected);
    assert_eq!((found[0].1, found[1].1, found[2].1, found[3].1), (50.0, 0.1, 0.0254, 7.9));
    assert!((0.0001..0.0003).contains(&found[4].1), "{found:?}");
}

#[test]
fn all_columns_of_transfusion_are_discrete() {
    let quanta: Vec<f64> = found_in("transfusion").iter().map(|(_, quantum)| *quantum).collect();
    assert_eq!(quanta, [1.0, 1.0, 250.0, 1.0, 1.0]);
}

#[test]
fn lengths_and_rings_of_abalone_are_discrete_and_its_weights_are_not() {
    let found = found_in("abalone");
    let expected = [("Length", 0.005), ("Diameter", 0.005), ("Height", 0.005), ("Rings", 1.0)];
    assert_eq!(found, expected.map(|(name, quantum)| (name.to_string(), quantum)));
}

#[test]
fn banknote_power_plant_and_magic_have_no_discrete_column() {
    for name in ["banknote", "ccpp", "magic04"] {
        assert_eq!(found_in(name), [], "{name}");
    }
}

#[test]
fn a_column_inflated_at_zero_is_discrete() {
    let rows =
        Array2::from_shape_fn((500, 1), |(i, _)| if i % 5 == 0 { 0.0 } else { 3.0 + (i as f64).sin() });
    let found = find_discrete(rows.view());
    assert_eq!(found.len(), 1);
    assert!(found[0].quantum > 0.01 && found[0].quantum < 2.1);
}

#[test]
fn few_rows_a_constant_and_a_smooth_column_are_left_alone() {
    let smooth = |i: usize| (i as f64 * 0.37).sin();
    let rows = Array2::from_shape_fn((30, 2), |(i, j)| if j == 0 { 4.5 } else { smooth(i) });
    assert_eq!(find_discrete(rows.view()), []);
    assert_eq!(discrete_column(rows.view(), 0), None);
    assert!(discrete_column(rows.view(), 1).is_some());
}

#[test]
fn missing_values_change_neither_the_quantum_nor_the_noise_of_others() {
    let rows = Array2::from_shape_fn((1000, 2), |(i, j)| (i % (j + 7)) as f64);
    let mut gaps = rows.clone();
    gaps.indexed_iter_mut().filter(|((i, j), _)| (i + j) % 5 == 0).for_each(|(_, value)| *value = f64::NAN);
    assert_eq!(find_discrete(gaps.view()), find_discrete(rows.view()));
    let columns = find_discrete(rows.view());
    let (noisy, with_gaps) = (with_noise(rows.view(), &columns, 3), with_noise(gaps.view(), &columns, 3));
    for ((gap, noisy), with_gaps) in gaps.iter().zip(&noisy).zip(&with_gaps) {
        let expected = if gap.is_nan() { f64::NAN } else { *noisy };
        assert_eq!(with_gaps.to_bits(), expected.to_bits());
    }
    let nothing = Array2::from_elem((100, 1), f64::NAN);
    assert_eq!((find_discrete(nothing.view()), discrete_column(nothing.view(), 0)), (vec![], None));
}

#[test]
fn noise_stays_within_half_a_quantum_and_follows_from_the_seed() {
    let rows = Array2::from_shape_fn((1000, 3), |(i, j)| (i % (j + 3)) as f64);
    let columns = [DiscreteColumn { column: 2, quantum: 0.5 }];
    let noisy = with_noise(rows.view(), &columns, 7);
    assert_eq!(noisy.column(0), rows.column(0));
    let noise = &noisy.column(2) - &rows.column(2);
    assert!(noise.iter().all(|value| value.abs() <= 0.25));
    assert!(noise.sum().abs() / 1000.0 < 0.02 && noise.iter().any(|value| value.abs() > 0.2));
    assert_eq!(noisy, with_noise(rows.view(), &columns, 7));
    assert_ne!(noisy, with_noise(rows.view(), &columns, 8));
}
