//! Rows drawn from a known mixture.

use gmm_bmm::data::synth::{PAPER_SETS, Synth, SynthRows, SynthSpec, TrueLevel};
use gmm_bmm::data::{Block, Catalogue, RowSource};

fn read(mut rows: SynthRows, most: usize) -> Vec<f64> {
    let mut block = Block::new(rows.columns().len());
    let mut all = Vec::new();
    while rows.read_block(&mut block, most).unwrap() {
        assert!(block.rows() <= most);
        all.extend_from_slice(block.values());
    }
    assert!(!rows.read_block(&mut block, most).unwrap(), "the end stays the end");
    all
}

fn synth(rows: u64) -> Synth {
    Synth::new(SynthSpec { k: 3, dim: 4, rows, seed: 11, ..SynthSpec::default() }).unwrap()
}

#[test]
fn rows_do_not_depend_on_the_block_or_the_threads() {
    let all = read(synth(20_011).training(), 1000);
    assert_eq!(all.len(), 4 * 20_011);
    for most in [1, 777, 1024, 100_000] {
        assert!(read(synth(20_011).training(), most) == all);
    }
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| read(synth(20_011).training(), 4096)) == all);
    }
}

#[test]
fn fewer_rows_are_the_beginning_of_more_and_test_rows_are_others() {
    let (few, many) = (read(synth(1500).training(), 100), read(synth(5000).training(), 100));
    assert!(many.starts_with(&few));
    let test = read(synth(1500).test(1500), 100);
    assert!(!test.iter().any(|value| few.contains(value)));
    assert!(read(synth(1500).test(0), 100).is_empty());
}

#[test]
fn a_fraction_of_the_values_is_removed_whatever_the_block() {
    let whole = read(synth(20_011).training(), 1000);
    let gaps = read(synth(20_011).training().missing(0.3), 1000);
    let removed = gaps.iter().filter(|value| value.is_nan()).count() as f64 / gaps.len() as f64;
    assert!((removed - 0.3).abs() < 0.01, "{removed}");
    assert!(gaps.iter().zip(&whole).all(|(value, whole)| value.is_nan() || value == whole));
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    assert!(bits(read(synth(20_011).training().missing(0.3), 77)) == bits(gaps));
}

#[test]
fn drift_moves_the_mean_by_that_many_spreads() {
    let rows = 100_000;
    let spec = SynthSpec { k: 1, dim: 2, rows, drift: 6.0, seed: 3, ..SynthSpec::default() };
    let synth = Synth::new(spec).unwrap();
    let all = read(synth.training(), 4096);
    let mean = |values: &[f64], column: usize| {
        values.iter().skip(column).step_by(2).sum::<f64>() / (values.len() / 2) as f64
    };
    let (first, last) = (&all[..10_000], &all[all.len() - 10_000..]);
    let moved = (0..2).map(|c| (mean(last, c) - mean(first, c)).powi(2)).sum::<f64>().sqrt();
    // The two ends of 5000 rows each are 95 % of the way apart.
    assert!((moved - 6.0 * 0.95).abs() < 0.1, "{moved}");
    let test = read(synth.test(5000), 100);
    for column in 0..2 {
        assert!((mean(&test, column) - synth.truth().components()[0].mean()[column]).abs() < 0.1);
    }
}

#[test]
fn two_round_clusters_overlap_as_theory_says() {
    let spec =
        SynthSpec { k: 2, dim: 3, separation: 2.0, condition: 1.0, weight_skew: 0.0, ..SynthSpec::default() };
    let synth = Synth::new(spec).unwrap();
    let mut block = Block::new(3);
    let mut rows = synth.test(100_000);
    let mut level = TrueLevel::default();
    while rows.read_block(&mut block, 5000).unwrap() {
        level.add(&synth, &block);
    }
    assert_eq!(level.rows(), 100_000);
    // Φ(−1)
    assert!((level.bayes_error() - 0.158_655).abs() < 0.003, "{}", level.bayes_error());
    assert!(level.standard_error() > 0.0 && level.standard_error() < 0.01);
}

fn overlap(spec: SynthSpec) -> f64 {
    let synth = Synth::new(spec).unwrap();
    let mut block = Block::new(synth.spec().dim);
    synth.test(1_000).read_block(&mut block, 1_000).unwrap();
    let mut level = TrueLevel::default();
    level.add(&synth, &block);
    level.bayes_error()
}

#[test]
fn the_nine_sets_have_the_papers_shapes_and_overlap() {
    for set in 1..=PAPER_SETS {
        let spec = SynthSpec::paper(set).unwrap();
        assert!((2..=6).contains(&spec.k) && (3..=10).contains(&spec.dim));
        assert_eq!(spec.rows, 170_000);
        let overlap = overlap(spec);
        assert!((0.03..=0.2).contains(&overlap), "set {set}: {overlap}");
    }
    assert!(SynthSpec::paper(0).is_err() && SynthSpec::paper(10).is_err());
}

#[test]
fn every_set_with_known_columns_has_a_substitute() {
    for set in Catalogue::built_in().sets() {
        let Ok(spec) = SynthSpec::like(set) else {
            assert_eq!(set.name, "northridge");
            continue;
        };
        assert_eq!((spec.rows, spec.dim), (set.rows, set.columns.len()));
        let synth = Synth::with_columns(spec.clone(), set.columns.clone()).unwrap();
        assert!(synth.column_moments().iter().all(|(_, variance)| *variance > 0.0));
        let overlap = overlap(spec);
        assert!((0.1..=0.3).contains(&overlap), "{}: {overlap}", set.name);
    }
}

#[test]
fn settings_out_of_range_are_refused_with_their_value() {
    let refused = |spec: SynthSpec| Synth::new(spec).unwrap_err().to_string();
    let good = SynthSpec::default;
    assert_eq!(
        refused(SynthSpec { k: 0, ..good() }),
        "the number of clusters must be at least 1, this one is 0"
    );
    assert!(refused(SynthSpec { dim: 0, ..good() }).contains("columns"));
    assert!(refused(SynthSpec { rows: 0, ..good() }).contains("rows"));
    assert!(refused(SynthSpec { separation: -1.0, ..good() }).contains("separation"));
    assert!(refused(SynthSpec { condition: 0.5, ..good() }).contains("condition"));
    assert!(refused(SynthSpec { weight_skew: f64::NAN, ..good() }).contains("weight skew"));
    assert!(refused(SynthSpec { drift: f64::INFINITY, ..good() }).contains("drift"));
    assert!(refused(SynthSpec { k: 1 << 40, dim: 1 << 20, ..good() }).contains("fewer"));
    assert!(Synth::with_columns(good(), ["a"]).is_err());
}
