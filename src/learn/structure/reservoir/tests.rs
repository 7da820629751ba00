use super::*;

fn stream(rows: u64, seed: u64, most: usize) -> (KeptRows, Vec<f64>) {
    let mut kept = KeptRows::new(seed, most, true);
    let mut learned = RowBuffer::default();
    let values: Vec<f64> = (0..rows).map(|i| i as f64).collect();
    kept.route(Rows::new(&values, 1), &mut learned);
    (kept, learned.rows(1).values().to_vec())
}

#[test]
fn the_division_into_batches_does_not_matter() {
    let rows: Vec<f64> = (0..12_000).map(f64::from).collect();
    for half_life in [None, Some(300)] {
        let routed = |batch: usize| {
            let mut kept = KeptRows::new(5, 400, true).with_half_life(half_life, 2);
            let mut learned = RowBuffer::default();
            Rows::new(&rows, 2).chunks(batch).for_each(|batch| kept.route(batch, &mut learned));
            (kept, learned)
        };
        let whole = routed(6000);
        assert!([1, 7, 250].iter().all(|&batch| routed(batch) == whole));
    }
}

#[test]
fn every_row_is_learned_once_or_held_back() {
    let (kept, learned) = stream(120_000, 3, 500);
    let mut all = [learned, kept.validation().to_vec()].concat();
    all.sort_by(f64::total_cmp);
    assert!(all.iter().enumerate().all(|(i, row)| *row == i as f64) && all.len() == 120_000);
    assert_eq!(kept.validation().len(), MAX_VALIDATION);
    assert_eq!(kept.reservoir_len(), 500);
    assert!(kept.is_sound(1) && !kept.is_complete() && !kept.is_sound(3));
}

#[test]
fn both_samples_are_uniform() {
    let mut halves = [0; 4];
    for seed in 0..200 {
        let (kept, _) = stream(1000, seed, 50);
        kept.reservoir(1).iter().for_each(|row| halves[usize::from(*row >= 500.0)] += 1);
        kept.validation().iter().for_each(|row| halves[2 + usize::from(*row >= 500.0)] += 1);
    }
    assert!(halves.iter().all(|half| (4700..5300).contains(half)), "{halves:?}");
}

#[test]
fn rows_survive_a_file_to_the_bit() {
    let (kept, _) = stream(300, 1, 100);
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<KeptRows>(&text).unwrap(), kept);
    assert!(
        serde_json::from_str::<KeptRows>(&text.replace("\"reservoir\":[\"AA", "\"reservoir\":[\"!A"))
            .is_err()
    );
}

#[test]
fn merged_reservoirs_are_in_proportion_to_the_rows() {
    let (small, _) = stream(200, 1, 100);
    let (large, _) = stream(2000, 2, 100);
    let merged = KeptRows::merged(&[&small, &large], 1, large.most()).unwrap();
    assert_eq!(merged.learned(), small.learned() + large.learned());
    assert!((95..=100).contains(&merged.reservoir_len()));
    let of_small = merged.reservoir(1).iter().take(12).filter(|row| **row < 200.0).count();
    assert!(of_small >= 9);
}

#[test]
fn a_merged_reservoir_that_is_not_all_rows_is_not_complete() {
    let (few, _) = stream(2000, 1, 100);
    let (many, _) = stream(2000, 2, 1000);
    // The first kept one row in twenty, and so gives the second no more than that.
    let merged = KeptRows::merged(&[&few, &many], 1, 80_000).unwrap();
    assert!((190..=210).contains(&merged.reservoir_len()) && !merged.is_complete() && merged.is_sound(1));
    let (sample, _) = stream(500, 3, 80_000);
    let filled = merged.clone().filled_from(&sample, 1, 80_000);
    assert_eq!(filled.reservoir_len(), merged.reservoir_len() + sample.reservoir_len());
    assert!(!filled.is_complete() && filled.is_sound(1));
}

#[test]
fn rows_in_single_precision_do_not_depend_on_batches_or_on_a_file_between() {
    let (rows, dim) = (120_000, 50);
    let values: Vec<f64> =
        (0..rows * dim).map(|i| (i as f64 * 0.37).sin() * 1e-3 + (i % dim) as f64).collect();
    let begun = || (KeptRows::new(3, 90_000, true), RowBuffer::default());
    let (mut straight, mut learned) = begun();
    straight.route(Rows::new(&values, dim), &mut learned);
    assert!(straight.shared_reservoir().exact().is_none() && straight.is_sound(dim));
    let (mut resumed, mut learned) = begun();
    for (i, batch) in Rows::new(&values, dim).chunks(7000).enumerate() {
        if i % 5 == 4 {
            resumed = serde_json::from_str(&serde_json::to_string(&resumed).unwrap()).unwrap();
        }
        learned.clear();
        resumed.route(batch, &mut learned);
    }
    assert!(resumed == straight);
    // Each row is still the one of the stream, and another part of the stream merges into it.
    let merged = KeptRows::merged(&[&straight, &resumed], dim, 90_000).unwrap();
    for kept in [&straight, &merged] {
        let row = kept.every_row(kept.held(dim), dim);
        assert!(row.iter().enumerate().all(|(j, value)| (value - j as f64).abs() < 2e-3));
        let parts: Vec<f64> = kept.reservoir_parts(dim).flat_map(|part| part.to_vec()).collect();
        assert!(parts == *kept.reservoir(dim));
    }
}
