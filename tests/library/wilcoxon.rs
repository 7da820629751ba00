//! The signed-rank test against SciPy, exact fractions and mpmath (`tests/reference/make_reference.py`).

use gmm_bmm::internals::stats::{TestMethod, Zeros, holm, signed_rank, signed_rank_with};
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

fn settings(case: &Value) -> (Zeros, TestMethod) {
    let zeros = match case["zero_method"].as_str().unwrap() {
        "wilcox" => Zeros::Drop,
        "pratt" => Zeros::Pratt,
        other => panic!("unknown rule {other}"),
    };
    let method = match case["method"].as_str().unwrap() {
        "exact" => TestMethod::Exact,
        "normal" => TestMethod::Normal { correction: case["correction"].as_bool().unwrap() },
        other => panic!("unknown method {other}"),
    };
    (zeros, method)
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
    assert!(cases.len() > 150);
    for case in cases {
        let name = format!("{} {} {}", case["name"], case["method"], case["zero_method"]);
        let (zeros, method) = settings(case);
        let test = signed_rank_with(&differences(case), zeros, method).unwrap();
        assert_eq!(test.exact, method == TestMethod::Exact, "{name}");
        assert_eq!(test.r_plus, number(&case["r_plus"]), "{name}");
        assert_eq!(test.r_minus, number(&case["r_minus"]), "{name}");
        assert_eq!(test.statistic(), number(&case["statistic"]), "{name}");
        assert_relative(test.p_value, number(&case["p_value"]), &name);
        if let Some(z) = case.get("z") {
            assert_relative(test.z, number(z), &name);
        }
    }
}

#[test]
fn left_to_itself_the_test_is_exact_where_it_can_be() {
    for case in reference("wilcoxon.json")["cases"].as_array().unwrap() {
        if case["zero_method"] != "wilcox" || (case["method"] == "normal" && case["correction"] == false) {
            continue;
        }
        let test = signed_rank(&differences(case)).unwrap();
        if test.exact == (case["method"] == "exact") {
            assert_relative(test.p_value, number(&case["p_value"]), case["name"].as_str().unwrap());
        } else {
            assert!(
                test.exact,
                "{}: the normal distribution was used where the exact one can be",
                case["name"]
            );
        }
    }
}

#[test]
fn without_ranks_the_p_value_is_1() {
    for differences in [&[][..], &[0.0, -0.0]] {
        for zeros in [Zeros::Drop, Zeros::Pratt] {
            let test = signed_rank_with(differences, zeros, TestMethod::Auto).unwrap();
            assert_eq!((test.p_value, test.z, test.rank_biserial()), (1.0, 0.0, 0.0));
        }
    }
    assert!(signed_rank(&[1.0, f64::NAN]).is_none());
}

#[test]
fn the_correction_does_not_cross_the_mean() {
    let test = signed_rank_with(&[2.0, -1.0], Zeros::Drop, TestMethod::Normal { correction: true }).unwrap();
    assert_eq!((test.z, test.p_value), (0.0, 1.0));
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
