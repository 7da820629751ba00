//! Wilcoxon's signed-rank test of paired differences, two-sided.
//!
//! The absolute differences are ranked; equal ones get the mean of their ranks. `R⁺` and `R⁻` are the sums of the ranks of
//! the positive and of the negative differences. Under the null hypothesis both signs have probability ½:
//!
//! - exact: `p = 2·#{sign patterns with rank sum ≤ min(R⁺, R⁻)}/2ⁿ`, at most 1;
//! - approximate: `z = (R⁺ − E ∓ ½)/√V` is standard normal, with `E = n(n+1)/4` and `V = n(n+1)(2n+1)/24 − Σ(t³ − t)/48`
//!   over groups of `t` equal differences.

use libm::erfc;

/// The largest number of differences for the exact distribution. With more, or with ties, the normal one is used with continuity
/// correction.
const MAX_EXACT: usize = 50;

/// The result of a signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The sum of the ranks of the positive differences.
    pub r_plus: f64,
    /// The sum of the ranks of the negative differences.
    pub r_minus: f64,
    /// The standard score of `r_plus`; positive if the differences tend to be positive.
    pub z: f64,
    /// The two-sided p-value. It underflows to zero below about 1e-308.
    pub p_value: f64,
    /// Whether the exact distribution was used.
    pub exact: bool,
}

impl SignedRank {
    /// The matched-pairs rank-biserial correlation `(R⁺ − R⁻)/(R⁺ + R⁻)`, from −1 to 1: an effect size that does not depend on
    /// the number of differences.
    pub fn rank_biserial(&self) -> f64 {
        let total = self.r_plus + self.r_minus;
        if total > 0.0 { (self.r_plus - self.r_minus) / total } else { 0.0 }
    }

    /// Whether the differences tend to be positive, at significance level `alpha`.
    pub fn favours_positive(&self, alpha: f64) -> bool {
        self.p_value < alpha && self.r_plus > self.r_minus
    }
}

/// The test of differences, of which those that are zero are left out (Wilcoxon 1945). `None` if a difference is NaN. If there is
/// nothing to rank, the p-value is 1.
///
/// ```
/// let test = gmm_bmm::internals::stats::signed_rank(&[0.1, 0.2, 0.3, 0.4, 0.5]).unwrap();
/// assert_eq!((test.r_plus, test.r_minus, test.p_value), (15.0, 0.0, 0.0625));
/// assert_eq!(test.rank_biserial(), 1.0);
/// ```
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let ranks = Ranks::of(differences);
    let exact = ranks.count <= MAX_EXACT && ranks.tied == 0;
    let (z, normal_p) = ranks.normal();
    let p_value = if exact { exact_p(ranks.count, ranks.plus.min(ranks.minus) / 2) } else { normal_p };
    let (r_plus, r_minus) = (ranks.plus as f64 / 2.0, ranks.minus as f64 / 2.0);
    Some(SignedRank { r_plus, r_minus, z, p_value, exact })
}

/// Doubled sums of ranks, which are integers even with ties.
struct Ranks {
    count: usize,
    plus: u64,
    minus: u64,
    /// `Σ(t³ − t)` over groups of equal differences.
    tied: u128,
}

impl Ranks {
    fn of(differences: &[f64]) -> Ranks {
        let mut sorted: Vec<f64> = differences.iter().copied().filter(|value| *value != 0.0).collect();
        sorted.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
        let mut ranks = Ranks { count: sorted.len(), plus: 0, minus: 0, tied: 0 };
        let mut before = 0;
        for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
            let size = group.len() as u64;
            let doubled_rank = 2 * before + size + 1;
            let positive = group.iter().filter(|value| **value > 0.0).count() as u64;
            ranks.plus += doubled_rank * positive;
            ranks.minus += doubled_rank * (size - positive);
            ranks.tied += u128::from(size).pow(3) - u128::from(size);
            before += size;
        }
        ranks
    }

    /// `z` of the positive ranks with continuity correction, and its two-sided p-value.
    fn normal(&self) -> (f64, f64) {
        let n = self.count as u128;
        let variance_48 = 2 * (n * (n + 1) * (2 * n + 1)) - self.tied;
        if variance_48 == 0 {
            return (0.0, 1.0);
        }
        // R⁺ − E is half the difference of the sums, a quarter of the difference of the doubled sums.
        let gap_4 = self.plus as i128 - self.minus as i128;
        let gap = (gap_4 - 2 * gap_4.signum()) as f64 / 4.0;
        let variance = variance_48 as f64 / 48.0;
        // erfc gets gap/√2V directly, because a rounding error of z is multiplied by z² in a tiny p-value.
        (gap / variance.sqrt(), erfc(gap.abs() / (2.0 * variance).sqrt()))
    }
}

/// The two-sided exact p-value of the smaller rank sum. Counts up to 2⁵⁰ are exact in double precision.
fn exact_p(n: usize, smaller: u64) -> f64 {
    let smaller = smaller as usize;
    let mut ways = vec![0.0f64; smaller + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for total in (rank..=smaller).rev() {
            ways[total] += ways[total - rank];
        }
    }
    let patterns: f64 = ways.iter().sum();
    (2.0 * patterns / (n as f64).exp2()).min(1.0)
}
