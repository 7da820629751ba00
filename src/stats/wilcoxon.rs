//! Wilcoxon's signed-rank test of paired differences, two-sided.
//!
//! The absolute differences are ranked; equal ones get the mean of their ranks. `R⁺` and `R⁻` are the sums of the ranks of
//! the positive and of the negative differences. Under the null hypothesis both signs have probability ½:
//!
//! - exact: `p = 2·#{sign patterns with rank sum ≤ min(R⁺, R⁻)}/2ⁿ`, at most 1;
//! - approximate: `z = (R⁺ − E ∓ ½)/√V` is standard normal, with `E = (n(n+1) − n₀(n₀+1))/4`,
//!   `V = (n(n+1)(2n+1) − n₀(n₀+1)(2n₀+1))/24 − Σ(t³ − t)/48` over groups of `t` equal differences, and `n₀` zeros.

use libm::erfc;

/// The largest number of differences for the exact distribution.
pub const MAX_EXACT: usize = 50;

/// The rule for differences of zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Zeros {
    /// Leave them out (Wilcoxon 1945).
    #[default]
    Drop,
    /// Rank them with the others, then leave out their ranks (Pratt 1959).
    Pratt,
}

/// The null distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TestMethod {
    /// Exact up to `MAX_EXACT` differences without ties and zeros, else normal with continuity correction.
    #[default]
    Auto,
    /// Exact. With ties, zeros or more than `MAX_EXACT` differences, the same as [`TestMethod::Auto`].
    Exact,
    /// Normal, with or without continuity correction.
    Normal {
        /// Whether the rank sum is corrected by half a step towards its mean.
        correction: bool,
    },
}

/// The result of a signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// The number of ranked differences: all of them by Pratt's rule, otherwise those that are not zero.
    pub ranked: usize,
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
    /// The smaller of the two rank sums.
    pub fn statistic(&self) -> f64 {
        self.r_plus.min(self.r_minus)
    }

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

/// The test without zeros ([`Zeros::Drop`]) and with [`TestMethod::Auto`]. `None` if a difference is NaN.
///
/// ```
/// let test = gmm_bmm::internals::stats::signed_rank(&[0.1, 0.2, 0.3, 0.4, 0.5]).unwrap();
/// assert_eq!((test.r_plus, test.r_minus, test.p_value), (15.0, 0.0, 0.0625));
/// assert_eq!(test.rank_biserial(), 1.0);
/// ```
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    signed_rank_with(differences, Zeros::Drop, TestMethod::Auto)
}

/// The test with this rule for zeros and this null distribution.
///
/// `None` if a difference is NaN. If there is nothing to rank, the p-value is 1.
pub fn signed_rank_with(differences: &[f64], zeros: Zeros, method: TestMethod) -> Option<SignedRank> {
    if differences.iter().any(|difference| difference.is_nan()) {
        return None;
    }
    let ranks = Ranks::of(differences, zeros);
    let exact = match method {
        TestMethod::Normal { .. } => false,
        TestMethod::Auto | TestMethod::Exact => ranks.can_be_exact(),
    };
    let correction = !matches!(method, TestMethod::Normal { correction: false });
    let (z, normal_p) = ranks.normal(correction);
    let p_value = if exact { exact_p(ranks.count, ranks.plus.min(ranks.minus) / 2) } else { normal_p };
    Some(SignedRank {
        ranked: ranks.count,
        r_plus: ranks.plus as f64 / 2.0,
        r_minus: ranks.minus as f64 / 2.0,
        z,
        p_value,
        exact,
    })
}

/// Doubled sums of ranks, which are integers even with ties.
struct Ranks {
    count: usize,
    zeros: usize,
    plus: u64,
    minus: u64,
    /// `Σ(t³ − t)` over groups of equal differences other than zero.
    tied: u128,
}

impl Ranks {
    fn of(differences: &[f64], rule: Zeros) -> Ranks {
        let used = differences.iter().copied().filter(|&value| rule == Zeros::Pratt || value != 0.0);
        let mut sorted: Vec<f64> = used.collect();
        sorted.sort_unstable_by(|a, b| a.abs().total_cmp(&b.abs()));
        let mut ranks = Ranks { count: sorted.len(), zeros: 0, plus: 0, minus: 0, tied: 0 };
        let mut before = 0;
        for group in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
            let size = group.len() as u64;
            if group[0] == 0.0 {
                ranks.zeros = group.len();
            } else {
                let doubled_rank = 2 * before + size + 1;
                let positive = group.iter().filter(|value| **value > 0.0).count() as u64;
                ranks.plus += doubled_rank * positive;
                ranks.minus += doubled_rank * (size - positive);
                ranks.tied += u128::from(size).pow(3) - u128::from(size);
            }
            before += size;
        }
        ranks
    }

    fn can_be_exact(&self) -> bool {
        self.count <= MAX_EXACT && self.zeros == 0 && self.tied == 0
    }

    /// `z` of the positive ranks, and its two-sided p-value.
    fn normal(&self, correction: bool) -> (f64, f64) {
        let (n, n0) = (self.count as u128, self.zeros as u128);
        let variance_48 = 2 * (n * (n + 1) * (2 * n + 1) - n0 * (n0 + 1) * (2 * n0 + 1)) - self.tied;
        if variance_48 == 0 {
            return (0.0, 1.0);
        }
        // R⁺ − E is half the difference of the sums, a quarter of the difference of the doubled sums.
        let mut gap_4 = self.plus as i128 - self.minus as i128;
        if correction {
            gap_4 -= 2 * gap_4.signum();
        }
        let variance = variance_48 as f64 / 48.0;
        let gap = gap_4 as f64 / 4.0;
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
