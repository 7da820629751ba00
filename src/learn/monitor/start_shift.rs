//! Differences between the rows of the start and the rows after them.

use crate::stats::ColumnSummary;

/// A column whose mean over the rows of the start is far from its mean over the later rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnShift {
    /// Which column, from 0.
    pub column: usize,
    /// The difference of the means, in standard deviations of the column over all rows.
    pub deviations: f64,
}

/// Smaller shifts do not matter for a start.
const NOTABLE: f64 = 0.25;
/// Standard errors that rows in random order do not reach, even with many columns.
const BEYOND_CHANCE: f64 = 6.0;
/// With fewer later rows a shift has no effect.
const MIN_LATER_ROWS: u64 = 50;

/// The columns that shifted between the rows of the `start` and the rows after them, the largest shift first. It needs only
/// the summaries of both, which a pass has anyway.
pub(in crate::learn) fn find_shifts(start: &[ColumnSummary], all: &[ColumnSummary]) -> Vec<ColumnShift> {
    let shift = |(column, (start, all)): (usize, (&ColumnSummary, &ColumnSummary))| {
        let later = all.count.saturating_sub(start.count);
        if start.count == 0 || later < MIN_LATER_ROWS || all.is_constant() {
            return None;
        }
        let (first, later) = (start.count as f64, later as f64);
        let apart = (start.mean - all.mean).abs() * (all.count as f64 / later);
        let deviations = apart / all.standard_deviation();
        let chance = BEYOND_CHANCE * (1.0 / first + 1.0 / later).sqrt();
        (deviations > chance.max(NOTABLE)).then_some(ColumnShift { column, deviations })
    };
    let mut shifts: Vec<ColumnShift> = start.iter().zip(all).enumerate().filter_map(shift).collect();
    shifts.sort_by(|a, b| b.deviations.total_cmp(&a.deviations));
    shifts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_rows_are_noticed_and_mixed_ones_are_not() {
        let mixed = |i: u32| f64::from(i.wrapping_mul(2654435761) >> 16);
        let sorted = |i: u32| f64::from(i / 10) + 1e-3 * mixed(i);
        let shifts = |value: &dyn Fn(u32) -> f64| {
            find_shifts(&[(0..500).map(value).collect()], &[(0..5000).map(value).collect()])
        };
        assert_eq!(shifts(&mixed), []);
        assert!(shifts(&sorted)[0].deviations > 1.0);
        assert_eq!(shifts(&|_| 3.0), []);
        assert_eq!(find_shifts(&[(0..500).map(sorted).collect()], &[(0..510).map(sorted).collect()]), []);
    }
}
