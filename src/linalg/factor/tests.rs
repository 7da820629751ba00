use super::*;
use ndarray::array;

fn example() -> Array2<f64> {
    array![[4.0, 2.0, 0.6], [2.0, 5.0, 1.5], [0.6, 1.5, 3.8]]
}

#[track_caller]
fn assert_close(a: &Array2<f64>, b: &Array2<f64>, tolerance: f64) {
    for (x, y) in a.iter().zip(b) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{a}\nagainst\n{b}");
    }
}

#[test]
fn a_factor_reproduces_its_matrix_and_determinant() {
    let factor = Factor::from_matrix(example().view()).unwrap();
    assert_close(&factor.matrix(), &example(), 1e-14);
    let det: f64 =
        4.0 * (5.0 * 3.8 - 1.5 * 1.5) - 2.0 * (2.0 * 3.8 - 1.5 * 0.6) + 0.6 * (2.0 * 1.5 - 5.0 * 0.6);
    assert!((factor.log_det() - det.ln()).abs() < 1e-13);
}

#[test]
fn rank_one_adds_the_outer_product_at_any_scale() {
    for scale in [1.0, 1e-9, 3e20] {
        let mut factor = Factor::from_matrix(example().view()).unwrap();
        factor.scale_by(scale);
        let v = [1.0, -2.0, 0.5];
        let (mut y, mut work) = ([0.0; 3], [0.0; 3]);
        let q = factor.quadratic_form(&v, &mut y);
        factor.rank_one(0.7 * scale, &y, &mut work);
        let outer = Array2::from_shape_fn((3, 3), |(i, j)| 0.7 * v[i] * v[j]);
        assert_close(&(factor.matrix() / scale), &(example() + outer), 1e-13);
        let lemma = (1.0 + 0.7 * scale * q).ln();
        let before = Factor::from_matrix(example().view()).unwrap().log_det() + 3.0 * scale.ln();
        assert!((factor.log_det() - before - lemma).abs() < 1e-11 * before.abs().max(1.0));
    }
}

#[test]
fn raising_a_pivot_leaves_the_other_variances_alone() {
    let mut factor = Factor::from_matrix(array![[1.0, 1.0], [1.0, 1.0 + 1e-9]].view()).unwrap();
    assert_eq!(factor.raise_pivots(&[1e-4, 1e-4]), 1);
    assert_close(&factor.matrix(), &array![[1.0, 1.0], [1.0, 1.0001]], 1e-12);
    assert_eq!(factor.raise_pivots(&[1e-5, 1e-5]), 0);
}

#[test]
fn file_form_is_exact_and_checked() {
    let mut factor = Factor::from_matrix(example().view()).unwrap();
    factor.scale_by(0.1);
    let text = serde_json::to_string(&factor).unwrap();
    let back: Factor = serde_json::from_str(&text).unwrap();
    assert_eq!(back, factor);
    assert!(serde_json::from_str::<Factor>(r#"{"scale":1,"lower":[[1],[2,-3]]}"#).is_err());
    assert!(serde_json::from_str::<Factor>(r#"{"scale":0,"lower":[[1]]}"#).is_err());
    assert!(serde_json::from_str::<Factor>(r#"{"scale":1,"lower":[[1],[2]]}"#).is_err());
}

/// Every operation on a diagonal gives what it gives on the same matrix as a triangle.
#[test]
fn diagonal_forms_agree_with_triangles() {
    let variances = [4.0, 0.25, 9.0];
    for diagonal in [Factor::from_variances(&variances).unwrap(), Factor::spherical(3, 2.5).unwrap()] {
        let mut diagonal = diagonal;
        diagonal.scale_by(1e-13);
        let mut full = Factor::from_matrix(diagonal.matrix().view()).unwrap();
        assert_close(&(diagonal.matrix() * 1e13), &(full.matrix() * 1e13), 1e-13);
        assert_close(&(diagonal.inverse() * 1e-13), &(full.inverse() * 1e-13), 1e-13);
        assert_close(&(diagonal.lower_matrix() * 1e6), &(full.lower_matrix() * 1e6), 1e-13);
        assert!((diagonal.log_det() - full.log_det()).abs() < 1e-12);
        let (v, mut y) = ([1e-6, -2e-6, 5e-7], [0.0; 3]);
        let (q, expected) = (diagonal.quadratic_form(&v, &mut y), full.quadratic_form(&v, &mut [0.0; 3]));
        assert!((q / expected - 1.0).abs() < 1e-13);
        let (mut a, mut b) = ([0.0; 3], [0.0; 3]);
        diagonal.multiply_lower(&v, &mut a);
        full.multiply_lower(&v, &mut b);
        diagonal.solve_upper(&mut a);
        full.solve_upper(&mut b);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12 * b.abs()));
        let text = serde_json::to_string(&diagonal).unwrap();
        assert_eq!(serde_json::from_str::<Factor>(&text).unwrap(), diagonal);
        let floor = [3e-13; 3];
        let mut raised = diagonal.clone();
        assert!(raised.raise_pivots(&floor) > 0 && raised.pivots().all(|pivot| pivot >= 2.999e-13));
        let mut units = diagonal.clone();
        units.change_units(&[2.0, 3.0, 0.5]);
        full.change_units(&[2.0, 3.0, 0.5]);
        assert_close(&(units.matrix() * 1e13), &(full.matrix() * 1e13), 1e-13);
        // A triangle takes its place where it is no longer diagonal.
        let (mut work, before) = ([0.0; 3], diagonal.matrix());
        diagonal.quadratic_form(&v, &mut y);
        diagonal.rank_one(1.0, &y, &mut work);
        let outer = Array2::from_shape_fn((3, 3), |(i, j)| v[i] * v[j]);
        assert_close(&(diagonal.matrix() * 1e13), &((before + outer) * 1e13), 1e-13);
    }
    for broken in [
        r#"{"scale":1,"diagonal":[1,0]}"#,
        r#"{"scale":1,"columns":2}"#,
        r#"{"scale":1,"columns":0,"variance":1}"#,
    ] {
        assert!(serde_json::from_str::<Factor>(broken).is_err());
    }
}
