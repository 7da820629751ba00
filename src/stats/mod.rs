//! Statistics: Wilcoxon's signed-rank test, Holm's correction, means and standard errors, the elbow of scores.

mod batches;
mod chi_squared;
mod column;
mod elbow;
mod normals;
mod wilcoxon;

pub use batches::BatchSums;
pub(crate) use chi_squared::{EquallyRare, quantile as chi_squared_quantile};
pub use column::ColumnSummary;
#[cfg(feature = "cli")]
pub(crate) use column::LogUnits;
pub use elbow::{Beyond, Elbow, ScoredK};
pub(crate) use normals::MixtureOfNormals;
pub use wilcoxon::signed_rank;

/// P-values of several tests, adjusted by Holm's method (1979), in the order given. The smallest is multiplied by the number
/// of tests, the next by one less, and so on. No adjusted value is below that of a smaller p-value.
///
/// ```
/// use gmm_bmm::internals::stats::holm;
///
/// assert_eq!(holm(&[0.5, 0.125, 0.25]), [0.5, 0.375, 0.5]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut before = 0.0f64;
    for (rank, &i) in order.iter().enumerate() {
        let tests_left = (p_values.len() - rank) as f64;
        before = before.max((tests_left * p_values[i]).min(1.0));
        adjusted[i] = before;
    }
    adjusted
}

/// The mean of the values; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean of values with weights.
pub(crate) fn weighted_mean(values: impl Iterator<Item = f64>, weights: &[f64]) -> f64 {
    let sum: f64 = values.zip(weights).map(|(value, weight)| value * weight).sum();
    sum / weights.iter().sum::<f64>()
}

/// The summary of values with weights, of which each is one observation whatever its weight. The mean is the weighted one, and the
/// standard error is `√(n/(n−1)·Σ w²(x−mean)²)/Σ w`. With weights of 1 it is the summary of the values.
#[cfg(feature = "cli")]
pub(crate) fn weighted_summary(values: impl Iterator<Item = f64> + Clone, weights: &[f64]) -> ColumnSummary {
    let total: f64 = weights.iter().sum();
    let mean = weighted_mean(values.clone(), weights);
    // Weights with a mean of 1.
    let unit = weights.len() as f64 / total;
    let deviation = |(value, weight): (f64, &f64)| (weight * unit * (value - mean)).powi(2);
    let squares = values.zip(weights).map(deviation).sum::<f64>().min(f64::MAX);
    ColumnSummary { count: weights.len() as u64, mean, squares }
}

/// The standard error of the mean of the values; `None` for fewer than two.
pub fn standard_error(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (n - 1.0) / n).sqrt())
}

/// The mean gain of some rows and its standard error. No row counts for more than 30 nats, so a few outliers do not decide.
/// Gains that are not a number, of rows that neither mixture explains, do not count.
pub(crate) fn capped_mean_and_error(gains: impl IntoIterator<Item = f64>) -> (f64, f64) {
    const MAX: f64 = 30.0;
    let gains = gains.into_iter().filter(|gain| !gain.is_nan());
    let gains: Vec<f64> = gains.map(|gain| gain.clamp(-MAX, MAX)).collect();
    let count = gains.len().max(1) as f64;
    let mean = gains.iter().sum::<f64>() / count;
    let variance = gains.iter().map(|gain| (gain - mean).powi(2)).sum::<f64>() / count;
    (mean, (variance / count).sqrt())
}

/// [`capped_mean_and_error`] of gains with weights.
pub(crate) fn weighted_mean_and_error(gains: &[f64], weights: &[f64]) -> (f64, f64) {
    const MAX: f64 = 30.0;
    let pairs = || gains.iter().zip(weights).filter(|(gain, _)| !gain.is_nan());
    let capped = |gain: &f64| gain.clamp(-MAX, MAX);
    let total: f64 = pairs().map(|(_, weight)| weight).sum::<f64>().max(f64::MIN_POSITIVE);
    let mean = pairs().map(|(gain, weight)| weight * capped(gain)).sum::<f64>() / total;
    let squares: f64 = pairs().map(|(gain, weight)| (weight * (capped(gain) - mean)).powi(2)).sum();
    (mean, squares.sqrt() / total)
}

/// The median of the values; `None` without values.
#[cfg(feature = "cli")]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_of_no_values_are_none() {
        assert_eq!((mean(&[]), standard_error(&[1.0])), (None, None));
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(standard_error(&[1.0, 3.0]), Some(1.0));
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_median_of_an_even_number_is_between_two_values() {
        assert_eq!(
            (median(&[]), median(&[5.0, 1.0, 3.0]), median(&[4.0, 1.0])),
            (None, Some(3.0), Some(2.5))
        );
    }
}
