//! Rows in an order of their own.

use crate::common::*;
use crate::workplace::Workplace;

/// Fits a set of the catalogue; what was said on standard error, and the model's score of the same rows.
fn fit(place: &Workplace, data: &str, more: &str) -> (String, f64) {
    let assert =
        place.run(&format!("fit --data {data} --k 4 --init-rows 1000 {more} --out model.json")).success();
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    let score = place.json(&format!("eval --model model.json --data {data}"));
    (said, number(&score["mean_log_likelihood"]))
}

/// Both files are sorted by class.
#[test]
fn rows_sorted_by_class_are_noticed_and_a_shuffle_buffer_mends_them() {
    let place = Workplace::new();
    for (data, lost) in [("banknote", 0.1), ("magic04", 0.05)] {
        let (said, sorted) = fit(&place, data, "--effort fast");
        assert!(
            said.contains("differ from the later ones") && said.contains("--shuffle-buffer"),
            "{data}: {said}"
        );
        let (said, shuffled) = fit(&place, data, "--effort fast --shuffle-buffer 20000");
        assert!(!said.contains("differ from the later ones"), "{data}: {said}");
        assert!(shuffled > sorted + lost, "{data}: {sorted} sorted, {shuffled} shuffled");
        let (_, revised) = fit(&place, data, "");
        assert!(revised > shuffled - 0.1, "{data}: {revised} sorted and revised, {shuffled} shuffled");
    }
}

#[test]
fn rows_in_random_order_raise_no_alarm() {
    let place = Workplace::new();
    for seed in 0..5 {
        place.write("rows.csv", &as_csv(&clusters(20_000, 6, seed), &[]));
        let assert = place.run("fit --data rows.csv --k 1 --out model.json").success();
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(!said.contains("differ from the later ones"), "seed {seed}: {said}");
    }
}
