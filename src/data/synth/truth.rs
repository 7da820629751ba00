//! Draws the parameters of the mixture. Plain loops give the same numbers on every machine.

use ndarray::Array2;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{SynthError, SynthSpec};
use crate::dist::{Gaussian, GaussianMixture};
use crate::linalg::Factor;

/// The means are drawn this many times, and the draw with the best spacing is taken.
const DRAWS_OF_MEANS: usize = 32;
/// The distance of the columns from 0, in their own units, if units differ.
const OFFSET: f64 = 5.0;

/// The mixture at the end of the stream, and how far each cluster's mean moves until then (empty without drift).
pub(super) fn draw(spec: &SynthSpec) -> Result<(GaussianMixture, Vec<Vec<f64>>), SynthError> {
    let mut rng = ChaCha8Rng::seed_from_u64(spec.seed);
    let mut means = draw_means(&mut rng, spec);
    let mut covariances =
        (0..spec.k).map(|_| draw_covariance(&mut rng, spec)).collect::<Result<Vec<_>, _>>()?;
    let mut travel: Vec<Vec<f64>> = (0..spec.k).map(|_| draw_direction(&mut rng, spec.dim)).collect();
    travel.iter_mut().flatten().for_each(|step| *step *= spec.drift);
    if spec.shared_condition > 1.0 {
        let map = draw_stretch(&mut rng, spec.dim, spec.shared_condition);
        means.iter_mut().chain(&mut travel).for_each(|vector| *vector = multiply(&map, vector));
        for covariance in &mut covariances {
            *covariance = apply_map(&map, covariance)?;
        }
    }
    if spec.unit_decades > 0.0 {
        let (units, offsets) = draw_units(&mut rng, spec);
        means.iter_mut().chain(&mut travel).for_each(|vector| scale(vector, &units));
        means
            .iter_mut()
            .for_each(|mean| mean.iter_mut().zip(&offsets).for_each(|(value, offset)| *value += offset));
        covariances.iter_mut().for_each(|covariance| covariance.change_units(&units));
    }
    if spec.drift == 0.0 {
        travel.clear();
    }
    Ok((assemble(spec, means, &covariances)?, travel))
}

fn assemble(
    spec: &SynthSpec,
    means: Vec<Vec<f64>>,
    covariances: &[Factor],
) -> Result<GaussianMixture, SynthError> {
    let raw: Vec<f64> = (1..=spec.k).map(|j| (j as f64).powf(-spec.weight_skew)).collect();
    let total: f64 = raw.iter().sum();
    let (mut weights, mut components) = (Vec::new(), Vec::new());
    for ((weight, mean), covariance) in raw.iter().zip(means).zip(covariances) {
        for (fraction, width) in spec.tails.layers() {
            let mut covariance = covariance.clone();
            covariance.scale_by(width * width);
            weights.push(weight / total * fraction);
            components.push(Gaussian::new(mean.clone(), covariance)?);
        }
    }
    Ok(GaussianMixture::new(weights, components)?)
}

fn draw_means(rng: &mut impl Rng, spec: &SynthSpec) -> Vec<Vec<f64>> {
    let mut best = (f64::NEG_INFINITY, Vec::new());
    for _ in 0..DRAWS_OF_MEANS {
        let mut means: Vec<Vec<f64>> = (0..spec.k).map(|_| draw_normals(rng, spec.dim)).collect();
        let (closest, root_mean_square) = distances(&means);
        if root_mean_square > 0.0 {
            let grow = spec.separation / root_mean_square;
            means.iter_mut().flatten().for_each(|value| *value *= grow);
        }
        let spacing = closest / root_mean_square.max(f64::MIN_POSITIVE);
        if spacing > best.0 {
            best = (spacing, means);
        }
    }
    best.1
}

/// The least and the root mean square distance between two of the points.
fn distances(points: &[Vec<f64>]) -> (f64, f64) {
    let (mut closest, mut sum, mut pairs) = (f64::INFINITY, 0.0, 0u64);
    for (i, a) in points.iter().enumerate() {
        for b in &points[..i] {
            let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
            closest = closest.min(square);
            sum += square;
            pairs += 1;
        }
    }
    (closest.sqrt(), (sum / pairs.max(1) as f64).sqrt())
}

/// `Σ = QΛQᵀ` with `Q` uniform over rotations.
fn draw_covariance(rng: &mut impl Rng, spec: &SynthSpec) -> Result<Factor, SynthError> {
    // The triangular form of `QΛ^½` is the factor of `Σ`.
    let mut stretch = draw_stretch(rng, spec.dim, spec.condition);
    Ok(Factor::from_lower_matrix(orthonormalise(&mut stretch).view())?)
}

/// The rows of `QΛ^½`.
fn draw_stretch(rng: &mut impl Rng, dim: usize, condition: f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = (0..dim).map(|_| draw_normals(rng, dim)).collect();
    // An orthonormalised Gaussian matrix is uniform over rotations and reflections.
    orthonormalise(&mut rows);
    let roots: Vec<f64> = spectrum(dim, condition).collect();
    rows.iter_mut().for_each(|row| scale(row, &roots));
    rows
}

/// The factor of `AΣAᵀ`: the triangular form of `AL`.
fn apply_map(map: &[Vec<f64>], covariance: &Factor) -> Result<Factor, SynthError> {
    let lower = covariance.lower_matrix();
    let product = |row: &Vec<f64>| {
        (0..row.len()).map(|j| (j..row.len()).map(|i| row[i] * lower[(i, j)]).sum()).collect()
    };
    let mut rows: Vec<Vec<f64>> = map.iter().map(product).collect();
    Ok(Factor::from_lower_matrix(orthonormalise(&mut rows).view())?)
}

fn multiply(map: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    map.iter().map(|row| row.iter().zip(vector).map(|(a, x)| a * x).sum()).collect()
}

/// Square roots of eigenvalues that fall geometrically, from largest to smallest by `condition`, and average 1.
fn spectrum(dim: usize, condition: f64) -> impl Iterator<Item = f64> {
    let eigenvalue = move |i: usize| condition.powf(-(i as f64) / (dim.max(2) - 1) as f64);
    let mean = (0..dim).map(eigenvalue).sum::<f64>() / dim as f64;
    (0..dim).map(move |i| (eigenvalue(i) / mean).sqrt())
}

/// Makes the rows orthonormal by the Gram–Schmidt method, applied twice for numerical accuracy. Returns the lower triangle
/// `L` such that the old matrix is `L` times the new one.
fn orthonormalise(rows: &mut [Vec<f64>]) -> Array2<f64> {
    let dim = rows.len();
    let mut lower = Array2::zeros((dim, dim));
    for i in 0..dim {
        let (before, rest) = rows.split_at_mut(i);
        let row = &mut rest[0];
        for _ in 0..2 {
            for (j, other) in before.iter().enumerate() {
                let along: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
                lower[(i, j)] += along;
            }
        }
        let norm = row.iter().map(|value| value * value).sum::<f64>().sqrt();
        row.iter_mut().for_each(|value| *value /= norm);
        lower[(i, i)] = norm;
    }
    lower
}

fn draw_direction(rng: &mut impl Rng, dim: usize) -> Vec<f64> {
    let mut direction = draw_normals(rng, dim);
    let norm = direction.iter().map(|value| value * value).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    direction.iter_mut().for_each(|value| *value /= norm);
    direction
}

/// Units that are log-uniform around 1 over `unit_decades` powers of ten, and an offset in each unit.
fn draw_units(rng: &mut impl Rng, spec: &SynthSpec) -> (Vec<f64>, Vec<f64>) {
    let half = spec.unit_decades / 2.0;
    let units: Vec<f64> =
        (0..spec.dim).map(|_| 10f64.powf(half * (2.0 * rng.random::<f64>() - 1.0))).collect();
    let mut offsets = draw_normals(rng, spec.dim);
    scale(&mut offsets, &units);
    offsets.iter_mut().for_each(|offset| *offset *= OFFSET);
    (units, offsets)
}

fn draw_normals(rng: &mut impl Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| StandardNormal.sample(rng)).collect()
}

fn scale(values: &mut [f64], by: &[f64]) {
    values.iter_mut().zip(by).for_each(|(value, by)| *value *= by);
}

#[cfg(test)]
mod tests {
    use super::super::Tails;
    use super::*;

    fn spec() -> SynthSpec {
        SynthSpec { k: 5, dim: 6, separation: 3.5, condition: 40.0, weight_skew: 1.0, ..SynthSpec::default() }
    }

    #[test]
    fn means_are_as_far_apart_as_asked() {
        let (truth, travel) = draw(&spec()).unwrap();
        let means: Vec<Vec<f64>> = truth.components().iter().map(|c| c.mean().to_vec()).collect();
        let (closest, root_mean_square) = distances(&means);
        assert!((root_mean_square - 3.5).abs() < 1e-12);
        assert!(closest > 1.5, "{closest}");
        assert!(travel.is_empty());
    }

    #[test]
    fn covariances_have_the_condition_asked_for_and_spread_one() {
        let covariance = draw(&spec()).unwrap().0.components()[2].covariance().clone();
        let matrix = covariance.matrix();
        let trace: f64 = matrix.diag().sum();
        assert!((trace - 6.0).abs() < 1e-12);
        // The trace of the inverse tells the spectrum apart from others of the same trace and determinant.
        let roots: Vec<f64> = spectrum(6, 40.0).collect();
        assert!(((roots[0] / roots[5]).powi(2) - 40.0).abs() < 1e-10);
        let inverse_trace: f64 = covariance.inverse().diag().sum();
        assert!((inverse_trace - roots.iter().map(|root| root.powi(-2)).sum::<f64>()).abs() < 1e-10);
        let log_det: f64 = roots.iter().map(|root| 2.0 * root.ln()).sum();
        assert!((covariance.log_det() - log_det).abs() < 1e-11);
        assert!(matrix[(0, 1)].abs() > 1e-3, "it is rotated");
    }

    #[test]
    fn heavy_tails_are_three_gaussians_around_each_mean() {
        let (truth, _) = draw(&SynthSpec { tails: Tails::Heavy, ..spec() }).unwrap();
        assert_eq!(truth.k(), 15);
        let [core, middle, outer] = &truth.components()[3..6] else { unreachable!("three were taken") };
        assert_eq!(core.mean(), outer.mean());
        assert!((truth.weights()[4] / truth.weights()[3] - 0.15 / 0.8).abs() < 1e-14);
        let width = |of: &Gaussian| of.covariance().diagonal()[0].sqrt();
        assert!((width(middle) / width(core) - 3.0).abs() < 1e-12);
        assert!((width(outer) / width(core) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn an_extreme_condition_still_makes_a_covariance() {
        for dim in [1, 2, 60] {
            assert!(draw(&SynthSpec { dim, condition: 1e10, ..spec() }).is_ok());
        }
    }

    #[test]
    fn a_map_that_all_share_correlates_columns_and_leaves_the_overlap_alone() {
        let (plain, _) = draw(&spec()).unwrap();
        let (mapped, _) = draw(&SynthSpec { shared_condition: 1e4, unit_decades: 4.0, ..spec() }).unwrap();
        let distance = |mixture: &GaussianMixture, from: usize, to: usize| {
            let [from, to] = [from, to].map(|j| &mixture.components()[j]);
            let apart: Vec<f64> = from.mean().iter().zip(to.mean()).map(|(a, b)| a - b).collect();
            from.covariance().quadratic_form(&apart, &mut [0.0; 6])
        };
        for (from, to) in [(0, 1), (1, 0), (2, 4)] {
            let (before, after) = (distance(&plain, from, to), distance(&mapped, from, to));
            assert!((before - after).abs() < 1e-8 * before, "{before} {after}");
        }
        let covariance = mapped.components()[0].covariance();
        assert!(covariance.condition_estimate() > 20.0, "{}", covariance.condition_estimate());
    }

    #[test]
    fn drift_is_measured_in_spreads_and_leaves_the_truth_alone() {
        let (moving, travel) = draw(&SynthSpec { drift: 2.5, ..spec() }).unwrap();
        assert_eq!(moving, draw(&spec()).unwrap().0);
        for steps in travel {
            assert!((steps.iter().map(|step| step * step).sum::<f64>().sqrt() - 2.5).abs() < 1e-12);
        }
    }
}
