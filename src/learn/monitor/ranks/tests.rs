use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;

/// Log-densities as those of a mixture: skewed, with a heavy lower tail.
fn values(rows: usize, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |_| {
        let squares: f64 = (0..4).map(|_| normal(&mut rng).powi(2)).sum();
        -0.5 * squares * if rng.next_u32().is_multiple_of(500) { 50.0 } else { 1.0 }
    };
    (0..rows).map(&mut draw).collect()
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

fn sketch(values: &[f64]) -> ScoreRanks {
    let mut ranks = ScoreRanks::default();
    values.iter().for_each(|&value| ranks.push(value));
    ranks
}

#[test]
fn the_value_at_a_rank_has_that_rank() {
    assert_eq!(ScoreRanks::default().table().value_at(0.1), None);
    let table = sketch(&values(20_000, 3)).table();
    for share in [0.0, 0.001, 0.02, 0.5, 0.99, 1.0] {
        let rank = table.rank(table.value_at(share).unwrap()).unwrap();
        assert!((rank - share).abs() < 0.03 * share + 1e-4, "{share}: {rank}");
    }
}

/// The largest error of any rank, and the largest relative error of ranks up to one in a hundred.
fn errors(ranks: &ScoreRanks, values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (table, rows) = (ranks.table(), values.len() as f64);
    let (mut worst, mut relative) = (0.0f64, 0.0f64);
    for (i, &value) in sorted.iter().enumerate() {
        let below = sorted.partition_point(|&other| other < value) as f64 / rows;
        let off = (table.rank(value).unwrap() - below).abs();
        worst = worst.max(off);
        if i > 0 && below > 0.0 && below <= 0.01 {
            relative = relative.max(off / below);
        }
    }
    (worst, relative)
}

#[test]
fn ranks_are_within_one_percent_and_low_ranks_relatively_so_in_any_order() {
    for rows in [10, 700, 20_000, 300_000] {
        let drawn = values(rows, rows as u64);
        let mut ascending = drawn.clone();
        ascending.sort_by(f64::total_cmp);
        let descending: Vec<f64> = ascending.iter().rev().copied().collect();
        let mut inwards = Vec::new();
        for i in 0..rows / 2 {
            inwards.extend([ascending[i], ascending[rows - 1 - i]]);
        }
        for (order, values) in
            [("drawn", &drawn), ("up", &ascending), ("down", &descending), ("inwards", &inwards)]
        {
            let ranks = sketch(values);
            let (worst, relative) = errors(&ranks, values);
            assert!(worst < 0.008 && relative < 0.05, "{rows} {order}: {worst} {relative}");
            assert!(ranks.centroids.len() < 1000, "{} centroids", ranks.centroids.len());
            assert_eq!(ranks.rows(), values.len() as f64);
        }
    }
}

#[test]
fn integers_have_the_order_of_numbers() {
    let sorted = [f64::MIN, -1e9, -2.5, -2.0, -1e-300, 0.0, 1e-300, 1.0, 7.25, f64::MAX];
    assert!(sorted.map(ordered).is_sorted() && sorted.map(ordered).map(value) == sorted);
}

#[test]
fn equal_values_are_not_below_each_other() {
    let mut drawn: Vec<f64> = (0..50_000).map(|i| f64::from(i % 10)).collect();
    drawn.shuffle(&mut ChaCha8Rng::seed_from_u64(3));
    let table = sketch(&drawn).table();
    for value in 0..10 {
        let rank = table.rank(f64::from(value)).unwrap();
        assert!((rank - 0.1 * f64::from(value)).abs() < 0.01, "{value}: {rank}");
    }
    assert_eq!(sketch(&[2.0; 5000]).table().rank(2.0), Some(0.0));
    assert_eq!(sketch(&[2.0; 5000]).table().rank(2.1), Some(1.0));
    assert_eq!(ScoreRanks::default().table().rank(2.0), None);
}

#[test]
fn parts_that_are_merged_are_as_good_as_one() {
    let drawn = values(60_000, 9);
    let mut all = ScoreRanks::default();
    drawn.chunks(7001).for_each(|part| all.merge(&sketch(part)));
    let (worst, relative) = errors(&all, &drawn);
    assert!(worst < 0.006 && relative < 0.06, "{worst} {relative}");
    // A sample of one row in four that counts for four.
    let mut weighted = ScoreRanks::default();
    weighted.extend(drawn[..40_000].iter().step_by(4).copied(), 4.0);
    drawn[40_000..].iter().for_each(|&value| weighted.push(value));
    assert_eq!(weighted.rows(), 60_000.0);
    assert!(errors(&weighted, &drawn).0 < 0.02);
}

#[test]
fn with_a_half_life_old_rows_lose_their_weight() {
    for half_life in [80, 2000] {
        let mut ranks = ScoreRanks::default();
        ranks.set_half_life(Some(half_life / HALF_LIVES));
        values(20_000, 5).into_iter().for_each(|value| ranks.push(value + 100.0));
        // Of every two rows, one has no value.
        let recent = values(6 * half_life as usize, 6);
        for &value in &recent {
            ranks.push(value);
            ranks.skip(1.0);
        }
        let table = ranks.table();
        let mut latest = recent[5 * half_life as usize..].to_vec();
        latest.sort_by(f64::total_cmp);
        let median = table.rank(latest[latest.len() / 2]).unwrap();
        assert!((median - 0.5).abs() < 0.1, "{median}");
        assert!(table.rank(50.0).unwrap() > 0.995);
        // Half of the rows of an endless stream have a value.
        let rows = half_life as f64 / std::f64::consts::LN_2 / 2.0;
        assert!((ranks.rows() / rows - 1.0).abs() < 0.1, "{} {rows}", ranks.rows());
    }
}

#[test]
fn a_saved_sketch_resumes_with_the_same_bits_and_a_broken_one_is_refused() {
    let drawn = values(9000, 4);
    let whole = sketch(&drawn);
    let text = serde_json::to_string(&sketch(&drawn[..5555])).unwrap();
    let mut resumed: ScoreRanks = serde_json::from_str(&text).unwrap();
    drawn[5555..].iter().for_each(|&value| resumed.push(value));
    assert_eq!(resumed, whole);
    assert!(text.len() < 16_000, "{} bytes", text.len());
    let broken = |centroids: &[f64], buffer: &[f64]| {
        let (centroids, buffer) = (Arc::new(centroids.to_vec()), Arc::new(buffer.to_vec()));
        let record = RanksRecord { centroids, buffer, half_life: None, others: 0.0, weighted: Vec::new() };
        ScoreRanks::try_from(record).is_err()
    };
    assert!(!broken(&[1.0, 1.0, 2.0, 3.0], &[0.5]));
    assert!(broken(&[1.0], &[]) && broken(&[2.0, 1.0, 1.0, 1.0], &[]) && broken(&[1.0, 0.0], &[]));
    assert!(broken(&[f64::NAN, 1.0], &[]) && broken(&[], &[f64::INFINITY]) && broken(&[], &[0.0; BUFFER]));
}

#[test]
fn pushing_allocates_nothing_after_a_while() {
    let mut ranks = sketch(&values(20_000, 1));
    let capacity = |ranks: &ScoreRanks| {
        let mut both = [ranks.centroids.capacity(), ranks.merged.capacity()];
        both.sort_unstable();
        (both, ranks.buffer.capacity())
    };
    let before = capacity(&ranks);
    values(5000, 2).into_iter().for_each(|value| ranks.push(value));
    assert_eq!(capacity(&ranks), before);
}
