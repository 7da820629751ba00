//! Mixtures of normal distributions of one number.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// A mixture of normal distributions of one number.
#[derive(Debug, Clone, Default)]
pub(crate) struct MixtureOfNormals {
    /// The weight, mean and standard deviation of each part.
    parts: Vec<(f64, f64, f64)>,
}

impl MixtureOfNormals {
    /// Replaces all parts. Weights add up to one.
    pub fn set(&mut self, parts: impl Iterator<Item = (f64, f64, f64)>) {
        self.parts.clear();
        self.parts.extend(parts.filter(|part| part.0 > 0.0));
    }

    pub fn mean_and_variance(&self) -> (f64, f64) {
        let sum = |term: &dyn Fn(f64, f64) -> f64| self.parts.iter().map(|(w, m, s)| w * term(*m, *s)).sum();
        let mean: f64 = sum(&|m, _| m);
        (mean, sum(&|m, s| s * s + (m - mean).powi(2)))
    }

    /// The number below which this fraction of the distribution lies, by Newton steps within a bracket that is halved where a
    /// step leaves it.
    pub fn quantile(&self, level: f64) -> f64 {
        const WIDTH: f64 = 40.0;
        // Tails are compared, so that levels near 1 keep their accuracy.
        let upper = level > 0.5;
        let ends = |sign: f64| self.parts.iter().map(move |(_, m, s)| m + sign * WIDTH * s);
        let (mut low, mut high) =
            (ends(-1.0).fold(f64::INFINITY, f64::min), ends(1.0).fold(f64::NEG_INFINITY, f64::max));
        let narrowest = self.parts.iter().map(|part| part.2).fold(f64::INFINITY, f64::min);
        let mut x = self.mean_and_variance().0;
        for _ in 0..200 {
            let (tail, density) = self.tail_and_density(x, upper);
            let excess = if upper { 1.0 - level - tail } else { tail - level };
            if excess > 0.0 {
                high = x;
            } else {
                low = x;
            }
            let newton = x - excess / density;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - x).abs() <= (1e-10 * narrowest).max(f64::EPSILON * x.abs()) {
                return next;
            }
            x = next;
        }
        x
    }

    /// The fraction below `x`, or above it if `upper`, and the density.
    fn tail_and_density(&self, x: f64, upper: bool) -> (f64, f64) {
        let sign = if upper { FRAC_1_SQRT_2 } else { -FRAC_1_SQRT_2 };
        self.parts.iter().fold((0.0, 0.0), |(tail, density), (weight, mean, deviation)| {
            let z = (x - mean) / deviation;
            let own = (-0.5 * z * z).exp() / (deviation * (2.0 * PI).sqrt());
            (tail + 0.5 * weight * libm::erfc(sign * z), density + weight * own)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normals(parts: &[(f64, f64, f64)]) -> MixtureOfNormals {
        let mut normals = MixtureOfNormals::default();
        normals.set(parts.iter().copied());
        normals
    }

    #[test]
    fn quantiles_of_one_normal_are_those_of_tables() {
        let one = normals(&[(1.0, 3.0, 2.0)]);
        // scipy.stats.norm.ppf
        let table = [
            (0.5, 0.0),
            (0.975, 1.959963984540054),
            (0.05, -1.6448536269514729),
            (1e-12, -7.034483825301132),
            (1.0 - 1e-9, 5.9978070105847),
        ];
        for (level, z) in table {
            assert!((one.quantile(level) - (3.0 + 2.0 * z)).abs() < 1e-6 * (1.0 + f64::abs(z)), "{level}");
        }
    }

    #[test]
    fn quantiles_invert_the_distribution_function_of_parts_of_any_scale() {
        for parts in [
            vec![(0.5, -1e3, 1e-3), (0.5, 1e3, 1e2)],
            vec![(0.999, 0.0, 1.0), (0.001, 1e6, 1e-6)],
            vec![(0.3, 1.0, 0.1), (0.7, 1.0, 10.0)],
            vec![(1.0, 1e8, 1e-4), (0.0, f64::NAN, 0.0)],
        ] {
            let normals = normals(&parts);
            for level in [1e-6, 0.01, 0.3, 0.5, 0.7, 0.9995, 1.0 - 1e-6] {
                let x = normals.quantile(level);
                let below = normals.tail_and_density(x, false).0;
                // Where the density is zero, every number between the parts is a quantile.
                assert!((below - level).abs() < 1e-4, "{parts:?} {level} {x} {below}");
            }
        }
    }
}
