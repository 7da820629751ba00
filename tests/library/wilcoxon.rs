//! The signed-rank test against SciPy, exact fractions and mpmath (`tests/reference/make_reference.py`).

use gmm_bmm::internals::stats::{holm, signed_rank};
use serde_json::Value;

use crate::common::{number, reference, vector};

/// The sample of a case: stored, or made anew from whole numbers.
fn differences(case: &Value) -> Vec<f64> {
    if let Some(stored) = case.get("differences") {
        return vector(stored);
    }
    let whole = |name: &str| case["recipe"][name].as_i64().unwrap();
    let (n, s, m, c, q) = (whole("n"), whole("s"), whole("m"), whole("c"), whole("q"));
    (0..n).map(|i| ((i * 7919 + 104_729 * s) % m - c) as f64 / q as f64).collect()
}

#[track_caller]
fn assert_relative(found: f64, expected: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(off <= 1e-12 * expected.abs(), "{what}: {found} against {expected}, off by {off:e}");
}

#[test]
fn every_reference_case_agrees_to_1e_12_of_itself() {
    let cases = reference("wilcoxon.json");
    let cases = cases["cases"].as_array().unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let name = format!("{} {}", case["name"], case["method"]);
        let test = signed_rank(&differences(case)).unwrap();
        assert_eq!(test.exact, case["method"] == "exact", "{name}");
        assert_eq!(test.r_plus, number(&case["r_plus"]), "{name}");
        assert_eq!(test.r_minus, number(&case["r_minus"]), "{name}");
        assert_relative(test.p_value, number(&case["p_value"]), &name);
        if let Some(z) = case.get("z") {
            assert_relative(test.z, number(z), &name);
        }
    }
}

#[test]
fn without_ranks_the_p_value_is_1() {
    for differences in [&[][..], &[0.0, -0.0]] {
        let test = signed_rank(differences).unwrap();
        assert_eq!((test.p_value, test.z, test.rank_biserial()), (1.0, 0.0, 0.0));
    }
    assert!(signed_rank(&[1.0, f64::NAN]).is_none());
}

#[test]
fn the_correction_does_not_cross_the_mean() {
    assert_eq!(signed_rank(&[2.0, -1.0]).unwrap().z, 0.0);
}

#[test]
fn swapping_the_sides_changes_only_the_signs() {
    let differences: Vec<f64> = (0..200).map(|i| ((i * 37 % 101) as f64 - 40.0) / 8.0).collect();
    let turned: Vec<f64> = differences.iter().map(|value| -value).collect();
    let (one, other) = (signed_rank(&differences).unwrap(), signed_rank(&turned).unwrap());
    assert_eq!((one.z, one.r_plus, one.p_value), (-other.z, other.r_minus, other.p_value));
    assert_eq!(one.rank_biserial(), -other.rank_biserial());
    assert!(one.favours_positive(0.05) && !other.favours_positive(0.05));
}

#[test]
fn holm_steps_down_and_never_falls_back() {
    let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        assert!((found - expected).abs() < 1e-15, "{adjusted:?}");
    }
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}
