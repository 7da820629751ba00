//! Values and columns that are not what they seem: marks of missing values, and columns that hardly vary.

use ndarray::{ArrayView1, ArrayView2};

use super::Finding;
use crate::stats::ColumnSummary;

/// Values that look like marks of missing values, and columns that decide the log-likelihood, judged by the first rows.
pub fn find_odd_values(first: ArrayView2<f64>, names: &[String]) -> Vec<Finding> {
    find_sentinels(first, names).into_iter().chain(find_narrow_columns(first, names)).collect()
}

fn find_sentinels(first: ArrayView2<f64>, names: &[String]) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (column, name) in first.columns().into_iter().zip(names) {
        for (sentinel, rows) in sentinels(column) {
            let known = found.iter_mut().find_map(|finding| match finding {
                Finding::Sentinel { value, times, columns } if *value == sentinel => Some((times, columns)),
                _ => None,
            });
            match known {
                Some((times, columns)) => {
                    *times += rows;
                    columns.push(name.clone());
                }
                None => found.push(Finding::Sentinel {
                    value: sentinel,
                    times: rows,
                    columns: vec![name.clone()],
                }),
            }
        }
    }
    found
}

/// The least and the largest values of a column that occur several times, and are as far from all others as these are from each
/// other, with how often they occur.
fn sentinels(column: ArrayView1<f64>) -> Vec<(f64, u64)> {
    const MIN_TIMES: usize = 3;
    const MIN_OTHERS: usize = 10;
    let mut values: Vec<f64> = column.iter().copied().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (mut rest, mut found) = (values.as_slice(), Vec::new());
    loop {
        let (Some(&low), Some(&high)) = (rest.first(), rest.last()) else { return found };
        let (lows, highs) =
            (rest.partition_point(|value| *value <= low), rest.partition_point(|value| *value < high));
        let is_apart = |times: usize, others: &[f64], value: f64| {
            let [Some(least), Some(most)] = [others.first(), others.last()] else { return false };
            let distinct = 1 + others.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let gap = (value - least).abs().min((value - most).abs());
            times >= MIN_TIMES && 2 * times <= rest.len() && distinct >= MIN_OTHERS && gap >= most - least
        };
        if is_apart(lows, &rest[lows..], low) {
            found.push((low, lows as u64));
            rest = &rest[lows..];
        } else if is_apart(rest.len() - highs, &rest[..highs], high) {
            found.push((high, (rest.len() - highs) as u64));
            rest = &rest[..highs];
        } else {
            return found;
        }
    }
}

fn find_narrow_columns(first: ArrayView2<f64>, names: &[String]) -> Option<Finding> {
    const NARROW: f64 = 1e-9;
    let spread = |column: ArrayView1<f64>| {
        column
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect::<ColumnSummary>()
            .standard_deviation()
    };
    let spreads: Vec<f64> = first.columns().into_iter().map(spread).collect();
    let mut sorted: Vec<f64> = spreads.iter().copied().filter(|spread| *spread > 0.0).collect();
    sorted.sort_by(f64::total_cmp);
    let usual = *sorted.get(sorted.len() / 2)?;
    // A constant column has a finding of its own.
    let is_narrow = |spread: f64| spread > 0.0 && spread < NARROW * usual;
    let narrow = || spreads.iter().zip(names).filter(|(spread, _)| is_narrow(**spread));
    let columns: Vec<String> = narrow().map(|(_, name)| name.clone()).collect();
    let nats = narrow().map(|(spread, _)| (usual / spread).ln()).sum();
    (!columns.is_empty()).then_some(Finding::NarrowColumns { columns, nats })
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    fn names(columns: usize) -> Vec<String> {
        (0..columns).map(|j| format!("x{j}")).collect()
    }

    #[test]
    fn a_value_far_from_all_others_that_occurs_again_is_a_sentinel() {
        let usual = |i: usize| (i as f64 * 0.37).sin() * 3.0;
        let rows = Array2::from_shape_fn((1000, 4), |(i, j)| match j {
            0 if i % 40 == 0 => -999.0,
            1 if i % 100 == 0 => -999.0,
            1 if i % 100 == 1 => 1e6,
            // A single outlier, and a column of two values.
            2 if i == 7 => -999.0,
            3 => (i % 20 == 0) as u8 as f64,
            _ => usual(i),
        });
        let found = find_odd_values(rows.view(), &names(4));
        let sentinel = |value, times, columns: &[usize]| Finding::Sentinel {
            value,
            times,
            columns: columns.iter().map(|j| format!("x{j}")).collect(),
        };
        assert_eq!(found, [sentinel(-999.0, 35, &[0, 1]), sentinel(1e6, 10, &[1])]);
        assert!(
            found[0].to_string().starts_with("-999 occurs 35 times in the first rows of 'x0', 'x1'"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn usual_columns_have_no_sentinels() {
        // Whole numbers, a heavy tail, and zeros among positive numbers.
        let rows = Array2::from_shape_fn((2000, 3), |(i, j)| match j {
            0 => ((i * 7919) % 31) as f64,
            1 => 1.0 / (1.0 + (i * 7919 % 2000) as f64 / 20.0).powi(3),
            _ => (i % 3) as f64 * (1.0 + (i as f64).sin()),
        });
        assert_eq!(find_odd_values(rows.view(), &names(3)), []);
    }

    #[test]
    fn a_column_that_hardly_varies_decides_the_likelihood() {
        let rows = Array2::from_shape_fn((500, 4), |(i, j)| match j {
            0 => 1e-33 * (i as f64).sin(),
            3 => 0.0,
            _ => (i as f64 * j as f64).cos(),
        });
        let found = find_odd_values(rows.view(), &names(4));
        let [Finding::NarrowColumns { columns, nats }] = found.as_slice() else { panic!("{found:?}") };
        assert!(columns == &["x0"] && (74.0..78.0).contains(nats), "{found:?}");
    }
}
