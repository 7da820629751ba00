//! The geometry of a pair plot: ranges of axes, ellipses, histograms and densities.

use super::frame::Axis;
use super::panels::{GAP, LABEL, TITLE};
use crate::dist::Marginal;

/// Width of a letter, in multiples of the font size.
pub(super) const LETTER: f64 = 0.62;
/// The fraction of the rows, or of the mixture, that may lie beyond either end of an axis.
const TAIL: f64 = 0.005;

/// `P(X ≤ x)` of one component on one axis.
fn below(component: &Marginal, axis: usize, x: f64) -> f64 {
    // Without spread it is a step function.
    let deviation = component.deviation(axis).max(f64::MIN_POSITIVE);
    0.5 * libm::erfc((component.mean[axis] - x) / deviation * std::f64::consts::FRAC_1_SQRT_2)
}

/// The `p`-quantile of the mixture, by bisection.
fn quantile(components: &[&Marginal], axis: usize, p: f64) -> f64 {
    let edge = |side: f64| components.iter().map(move |c| c.mean[axis] + side * 10.0 * c.deviation(axis));
    let (mut low, mut high) = (edge(-1.0).fold(f64::MAX, f64::min), edge(1.0).fold(f64::MIN, f64::max));
    for _ in 0..100 {
        let middle = low + 0.5 * (high - low);
        let part: f64 = components.iter().map(|c| c.weight * below(c, axis, middle)).sum();
        if part < p { low = middle } else { high = middle }
    }
    low + 0.5 * (high - low)
}

/// The range of an axis: all rows except the outermost, and as much of the mixture as keeps the rows readable.
pub(super) fn range(components: &[&Marginal], rows: &[&[f64]], axis: usize) -> (f64, f64) {
    const REACH: f64 = 0.2;
    let mixture = (quantile(components, axis, TAIL), quantile(components, axis, 1.0 - TAIL));
    let mut values: Vec<f64> = rows.iter().map(|row| row[axis]).filter(|value| !value.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = match values.as_slice() {
        [] => mixture,
        sorted => {
            let at = |p: f64| sorted[(p * (sorted.len() - 1) as f64).round() as usize];
            let (low, high) = (at(TAIL), at(1.0 - TAIL));
            let reach = REACH * (high - low);
            (low.min(mixture.0.max(low - reach)), high.max(mixture.1.min(high + reach)))
        }
    };
    // A constant column needs some width too.
    let least = (1e-9 * low.abs().max(high.abs())).max(1e-290);
    if high - low > least {
        return (low, high);
    }
    let half = if low == 0.0 { 0.5 } else { 0.1 * low.abs() };
    (low - half, high + half)
}

/// An axis with ticks that fit along `side` pixels. Very large and very small numbers are multiples of a power of ten.
pub(super) fn readable_axis((low, high): (f64, f64), name: &str, side: f64) -> Axis {
    let size = low.abs().max(high.abs());
    let power = if (1e-2..1e5).contains(&size) { 0 } else { 3 * (size.log10() / 3.0).floor() as i32 };
    let unit = 10f64.powi(power);
    let suffix = if power == 0 { String::new() } else { format!(" (×10{})", superscript(power)) };
    let letters = side / (LETTER * TITLE) - suffix.chars().count() as f64;
    let title = shortened(name, letters) + &suffix;
    let width = |label: &str| LETTER * LABEL * label.chars().count() as f64;
    let mut axis = Axis::linear(low / unit, high / unit, 1, &title);
    for count in [5, 4, 3, 2] {
        let finer = Axis::linear(low / unit, high / unit, count, &title);
        if finer.ticks.iter().map(|(_, label)| width(label) + 8.0).sum::<f64>() <= side {
            axis = finer;
            break;
        }
    }
    let (from, to) = (axis.low, axis.high);
    // Labels must not overlap those of the next panel.
    axis.ticks.retain(|(value, label)| {
        let at = (value - from) / (to - from) * side;
        let half = 0.5 * width(label);
        at - half >= -0.4 * GAP && at + half <= side + 0.4 * GAP
    });
    axis.ticks.iter_mut().for_each(|(value, _)| *value *= unit);
    Axis { low: from * unit, high: to * unit, ..axis }
}

fn superscript(power: i32) -> String {
    let digit = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    power.to_string().chars().map(digit).collect()
}

/// The ellipse `times` standard deviations around a component's mean, with this number of corners.
pub(super) fn ellipse(
    component: &Marginal,
    x: usize,
    y: usize,
    times: f64,
    corners: usize,
) -> Vec<(f64, f64)> {
    let correlation = component.correlation(x, y);
    let rest = (1.0 - correlation * correlation).max(0.0).sqrt();
    let corner = |i: usize| {
        let (sin, cos) = (std::f64::consts::TAU * (i % corners) as f64 / corners as f64).sin_cos();
        let across = times * component.deviation(x) * cos;
        let up = times * component.deviation(y) * (correlation * cos + rest * sin);
        (component.mean[x] + across, component.mean[y] + up)
    };
    (0..=corners).map(corner).collect()
}

/// The density of the rows in equal intervals of the axis. Rows beyond its ends count, but are not shown.
pub(super) fn histogram(axis: &Axis, values: impl Iterator<Item = f64>, rows: usize) -> Vec<f64> {
    if rows == 0 {
        return Vec::new();
    }
    let count = (2.0 * (rows as f64).cbrt()).clamp(8.0, 30.0) as usize;
    let step = (axis.high - axis.low) / count as f64;
    let mut bars = vec![0.0; count];
    for value in values {
        let place = ((value - axis.low) / step).floor();
        if (0.0..count as f64).contains(&place) {
            bars[place as usize] += 1.0 / (rows as f64 * step);
        }
    }
    bars
}

/// A component's part of the density, averaged over short intervals, so that no spike can hide between two points.
pub(super) fn density(axis: &Axis, component: &Marginal, index: usize, points: usize) -> Vec<f64> {
    let step = (axis.high - axis.low) / points as f64;
    let ends: Vec<f64> = (0..=points).map(|i| below(component, index, axis.low + step * i as f64)).collect();
    ends.windows(2).map(|pair| component.weight * (pair[1] - pair[0]).max(0.0) / step).collect()
}

/// A curve through the centres of such intervals. Where it is flat at zero, it has no points in between.
pub(super) fn curve(axis: &Axis, values: &[f64]) -> Vec<(f64, f64)> {
    let step = (axis.high - axis.low) / values.len() as f64;
    let flat = 2e-3 * values.iter().copied().fold(0.0, f64::max);
    let is_inside = |i: usize| {
        let neighbours = values.get(i.wrapping_sub(1)..i + 2);
        neighbours.is_some_and(|around| around.iter().all(|&value| value < flat))
    };
    let points = values.iter().enumerate().filter(|(i, _)| !is_inside(*i));
    points.map(|(i, value)| (axis.low + step * (i as f64 + 0.5), *value)).collect()
}

/// Text of at most `most` characters. The middle is left out: names often differ at the end only.
pub(super) fn shortened(text: &str, most: f64) -> String {
    let most = (most as usize).max(4);
    if text.chars().count() <= most {
        return text.to_string();
    }
    let end = (most - 1) / 2;
    let last = text.chars().skip(text.chars().count() - end);
    text.chars().take(most - 1 - end).chain(['…']).chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(weight: f64, mean: f64, variance: f64) -> Marginal {
        Marginal { weight, mean: vec![mean], covariance: vec![vec![variance]] }
    }

    #[test]
    fn one_outlier_does_not_set_the_range() {
        let component = normal(1.0, 0.0, 1.0);
        let mut rows: Vec<Vec<f64>> = (0..1000).map(|i| vec![i as f64 / 250.0 - 2.0]).collect();
        rows[7][0] = 1e9;
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let (low, high) = range(&[&component], &rows, 0);
        assert!((-2.7..-2.3).contains(&low) && (2.3..2.7).contains(&high), "{low} {high}");
        // Without rows it is the mixture's own: 99% within 2.576 standard deviations.
        let (low, high) = range(&[&component], &[], 0);
        assert!((low + 2.576).abs() < 1e-3 && (high - 2.576).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn axes_of_any_size_have_ticks_that_fit() {
        for (low, high) in [
            (0.0, 1.0),
            (-3e7, 4e7),
            (1e-9, 2e-9),
            (1e9, 1e9 + 1.0),
            (-1e150, 1e150),
            (0.9, 1.1),
            (5e-300, 6e-300),
        ] {
            let component = normal(1.0, 0.5 * (low + high), ((high - low) / 5.0).powi(2));
            let range = range(&[&component], &[&[low], &[high]], 0);
            let axis = readable_axis(range, "a name of many letters that is too long", 150.0);
            assert!(axis.low < axis.high && axis.low.is_finite() && axis.high.is_finite(), "{axis:?}");
            let letters: usize = axis.ticks.iter().map(|(_, label)| label.chars().count()).sum();
            assert!(letters as f64 * LETTER * LABEL <= 150.0 + GAP, "{axis:?}");
            assert!(axis.title.chars().count() <= 24, "{axis:?}");
        }
        let constant = range(&[&normal(1.0, 3.0, 0.0)], &[&[3.0], &[3.0]], 0);
        assert!(constant.0 < 3.0 && constant.1 > 3.0, "{constant:?}");
        assert_eq!(readable_axis((2e6, 9e6), "x", 150.0).title, "x (×10⁶)");
        assert_eq!(readable_axis((2e-5, 9e-5), "x", 150.0).title, "x (×10⁻⁶)");
    }

    #[test]
    fn bars_and_curves_hold_what_the_axis_shows() {
        let axis = Axis { low: -8.0, high: 8.0, ticks: vec![], title: String::new(), named: false };
        let sum = |values: &[f64]| values.iter().sum::<f64>() * 16.0 / values.len() as f64;
        // A spread far below the steps is still there.
        for variance in [1.0, 1e-20, 0.0] {
            assert!((sum(&density(&axis, &normal(0.4, 0.3, variance), 0, 60)) - 0.4).abs() < 1e-6);
        }
        let bars = histogram(&axis, [-9.0, 0.0, 1.0, 2.0].into_iter(), 4);
        assert!((sum(&bars) - 0.75).abs() < 1e-12);
        assert!(histogram(&axis, std::iter::empty(), 0).is_empty());
    }

    #[test]
    fn names_with_a_common_beginning_stay_different() {
        let names: Vec<String> =
            (0..12).map(|i| shortened(&format!("a_rather_long_column_name_{i}"), 18.0)).collect();
        assert_eq!(names[11], "a_rather_…_name_11");
        assert!(names.iter().all(|name| name.chars().count() == 18));
        assert!((1..12).all(|i| names[i] != names[i - 1]));
        assert_eq!((shortened("abcdef", 5.0), shortened("abcde", 5.0)), ("ab…ef".into(), "abcde".into()));
    }

    #[test]
    fn an_ellipse_has_a_constant_mahalanobis_distance() {
        let component =
            Marginal { weight: 1.0, mean: vec![1.0, 2.0], covariance: vec![vec![4.0], vec![1.0, 1.0]] };
        // (x−m)ᵀΣ⁻¹(x−m) with Σ⁻¹ = [[1, −1], [−1, 4]] / 3.
        for (x, y) in ellipse(&component, 0, 1, 2.0, 28) {
            let (a, b) = (x - 1.0, y - 2.0);
            assert!(((a * a - 2.0 * a * b + 4.0 * b * b) / 3.0 - 4.0).abs() < 1e-9);
        }
    }
}
