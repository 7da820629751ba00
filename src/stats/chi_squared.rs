//! Chi-squared distributions with whole numbers of degrees of freedom.

use std::sync::OnceLock;

/// `ln P(χ² > x)` with `degrees` degrees of freedom.
fn ln_upper_tail(degrees: usize, x: f64) -> f64 {
    let half = 0.5 * x;
    if half <= 0.0 {
        return 0.0;
    }
    // The sum of hᵃ e⁻ʰ / Γ(a + 1) over a = 0, 1, … or 1/2, 3/2, … below degrees / 2; for odd degrees also P(χ²₁ > x).
    let is_odd = degrees % 2 == 1;
    let (mut a, mut term) =
        if is_odd { (0.5, 0.5 * half.ln() - half - libm::lgamma(1.5)) } else { (0.0, -half) };
    let (mut most, mut sum) = if is_odd { (libm::erfc(half.sqrt()).ln(), 1.0) } else { (term, 0.0) };
    while a < 0.5 * degrees as f64 {
        if term > most {
            (most, sum) = (term, sum * (most - term).exp() + 1.0);
        } else {
            sum += (term - most).exp();
        }
        a += 1.0;
        term += (half / a).ln();
    }
    most + sum.ln()
}

/// The value that a chi-squared variable is below with probability `p`, where `0 < p < 1`.
pub(crate) fn quantile(degrees: usize, p: f64) -> f64 {
    let (mut least, mut most) = (0.0, 2.0 * degrees as f64 + 4.0);
    let target = (1.0 - p).ln();
    while ln_upper_tail(degrees, most) > target {
        most *= 2.0;
    }
    for _ in 0..60 {
        let middle = 0.5 * (least + most);
        if ln_upper_tail(degrees, middle) > target {
            least = middle;
        } else {
            most = middle;
        }
    }
    0.5 * (least + most)
}

/// For squared distances in fewer columns, the squared distances in all columns that are as rare.
///
/// A row at squared distance `q` from its component in `observed` columns is as rare as a row at squared distance `q'` in all
/// columns if `P(χ²_observed > q) = P(χ²_all > q')`.
pub(crate) struct EquallyRare {
    columns: usize,
    /// For each number of observed columns, pairs of the cube roots of `q` and `q'`.
    tables: Vec<OnceLock<Vec<(f64, f64)>>>,
}

impl EquallyRare {
    /// For rows of `columns` columns.
    pub fn new(columns: usize) -> Self {
        EquallyRare { columns, tables: (0..columns).map(|_| OnceLock::new()).collect() }
    }

    /// `q'`, given `q` in `observed` of the columns, from 1 to all of them.
    pub fn distance(&self, observed: usize, q: f64) -> f64 {
        if observed == self.columns {
            return q;
        }
        let table = self.tables[observed].get_or_init(|| table(observed, self.columns));
        let root = q.max(0.0).cbrt();
        let place = table.partition_point(|pair| pair.0 <= root);
        let (below, above) = (table[place.max(1) - 1], table.get(place));
        match above {
            Some(above) => {
                let part = (root - below.0) / (above.0 - below.0);
                (below.1 + part * (above.1 - below.1)).powi(3)
            }
            // The difference grows like a logarithm.
            None => q + below.1.powi(3) - below.0.powi(3),
        }
    }
}

/// Cube roots of chi-squared variables are almost normal, so the pairs are almost on a line.
fn table(observed: usize, columns: usize) -> Vec<(f64, f64)> {
    /// The steps, in standard deviations, and the range.
    const STEP: f64 = 0.1;
    const FROM: f64 = -8.0;
    const KNOTS: usize = 320;
    let root = |degrees: usize, z: f64| {
        let part = 2.0 / (9.0 * degrees as f64);
        ((degrees as f64).cbrt() * (1.0 - part + z * part.sqrt())).max(0.0)
    };
    let mut pairs = vec![(0.0, 0.0)];
    for knot in 0..KNOTS {
        let own = root(observed, FROM + STEP * knot as f64);
        if own == 0.0 {
            continue;
        }
        let tail = ln_upper_tail(observed, own.powi(3));
        let (mut low, mut high) = (own.max(pairs[pairs.len() - 1].1), 2.0 * own + 4.0 * root(columns, 0.0));
        for _ in 0..50 {
            let middle = 0.5 * (low + high);
            if ln_upper_tail(columns, middle.powi(3)) > tail { low = middle } else { high = middle }
        }
        pairs.push((own, low));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of `scipy.stats.chi2.logsf`.
    #[test]
    fn tails_are_those_of_scipy() {
        let cases = [
            (1, 0.01, -0.08300741217032805),
            (1, 3.0, -2.4857327909860794),
            (1, 400.0, -203.22400819053735),
            (2, 5.0, -2.5),
            (3, 0.2, -0.02266563808621801),
            (3, 50.0, -23.25034799121721),
            (10, 2.0, -0.00366656045230851),
            (10, 300.0, -133.10866903107092),
            (501, 400.0, -0.00032121963705608185),
            (500, 900.0, -56.5211937796416),
        ];
        for (degrees, x, expected) in cases {
            let found = ln_upper_tail(degrees, x);
            assert!(
                (found - expected).abs() < 1e-9 * (1.0 + f64::abs(expected)),
                "{degrees} {x}: {found} {expected}"
            );
        }
    }

    /// Values of `chi2.isf(chi2.sf(q, observed), columns)` of SciPy.
    #[test]
    fn distances_are_equally_rare() {
        let cases = [
            (1, 2, 0.001, 0.051101558711901265),
            (1, 3, 0.5, 2.4767907407365035),
            (1, 3, 9.0, 14.15641360912669),
            (2, 3, 1.0, 1.8387887712472735),
            (2, 3, 60.0, 63.73380568415794),
            (5, 10, 3.0, 7.267365781721027),
            (5, 10, 30.0, 40.34203109680366),
            (90, 100, 70.0, 78.85957809312853),
            (90, 100, 200.0, 214.45354991765382),
            (3, 500, 2.0, 493.58885463940925),
            (3, 500, 40.0, 697.816841345503),
        ];
        for (observed, columns, q, expected) in cases {
            let found = EquallyRare::new(columns).distance(observed, q);
            assert!(
                (found - expected).abs() < 2e-3 + 5e-3 * expected,
                "{observed} {columns} {q}: {found} {expected}"
            );
        }
    }

    #[test]
    fn distances_rise_with_the_distance_and_with_the_columns() {
        for (observed, columns) in [(1, 2), (1, 500), (40, 41), (499, 500)] {
            let rare = EquallyRare::new(columns);
            let mut before = 0.0f64;
            for i in 0..4000 {
                let q = 1e-6 * 1.01f64.powi(i);
                let found = rare.distance(observed, q);
                assert!(found.is_finite() && found >= before.max(q * (1.0 - 1e-9)), "{observed} {q} {found}");
                before = found;
            }
            assert_eq!(rare.distance(columns, 3.5), 3.5);
            assert!(rare.distance(observed, 0.0) < 1e-9);
        }
    }
}
