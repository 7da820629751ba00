//! Combining posteriors that were learned apart from one common prior: `P · ∏_t (P_t / P)`.
//!
//! With natural parameters that is a sum: `a = a₀ + Σ(a_t − a₀)`, likewise `κ`, `ν`, `κm`, and
//! `Ψ = Ψ₀ + Σ(Ψ_t − Ψ₀) + Σ κ_t (m_t−m)(m_t−m)ᵀ − (T−1) κ₀ (m₀−m)(m₀−m)ᵀ`.

use ndarray::{Array1, Array2, ArrayView1, Axis};
use serde::{Deserialize, Serialize};

use crate::dist::{Dirichlet, Gaussian, NormalWishart, Posterior};
use crate::learn::shards::assignment::best_assignment;
use crate::linalg::{CovarianceType, Factor};

/// How well the parts of a merged posterior agree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MergeReport {
    /// For each component the power `λ ∈ [0, 1]` that damps `∏ P_t/P` of its Normal-Wishart so that it is proper; 1 is no
    /// damping.
    pub damping: Vec<f64>,
    /// The same for the component's concentration in the Dirichlet. Empty in files of earlier versions.
    #[serde(default)]
    pub weight_damping: Vec<f64>,
    /// For each component the mean Bhattacharyya distance of the parts from the whole: 0 is agreement, 1 or more is large
    /// disagreement.
    pub disagreement: Vec<f64>,
}

impl MergeReport {
    /// Components whose product was improper, in the Normal-Wishart or in the Dirichlet.
    pub fn damped(&self) -> u64 {
        let weights = self.weight_damping.iter().copied().chain(std::iter::repeat(1.0));
        self.damping.iter().zip(weights).filter(|(own, weight)| **own < 1.0 || *weight < 1.0).count() as u64
    }
}

/// The product of posteriors over their common prior. Improper components are damped, so that the result is always a
/// proper posterior. A component's Normal-Wishart and its concentration are damped separately: shards that disagree on the
/// place of a component can still agree on how many rows it has.
///
/// # Panics
/// If the posteriors differ in shape from the prior.
pub fn merge(prior: &Posterior, parts: &[&Posterior]) -> (Posterior, MergeReport) {
    let mut concentrations = Vec::with_capacity(prior.k());
    let mut components = Vec::with_capacity(prior.k());
    let mut report = MergeReport::default();
    let tied = (prior.covariance_type() == CovarianceType::Tied).then(|| merge_tied(prior, parts));
    for (j, (component, &a)) in prior.components().iter().zip(prior.weights().concentrations()).enumerate() {
        let (lambda, merged) = match &tied {
            Some((lambda, components)) => (*lambda, components[j].clone()),
            None => {
                let sums = ProductSums::of(component, parts.iter().map(|part| &part.components()[j]));
                largest_proper(|lambda| sums.damped(component, lambda), component.clone())
            }
        };
        let distances = parts.iter().map(|part| distance(&merged, &part.components()[j]));
        report.disagreement.push(distances.sum::<f64>() / parts.len().max(1) as f64);
        report.damping.push(lambda);
        components.push(merged);
        let gained = parts.iter().map(|part| part.weights().concentrations()[j] - a).sum();
        let (lambda, a) = merge_concentration(a, gained);
        report.weight_damping.push(lambda);
        concentrations.push(a);
    }
    let weights = Dirichlet::new(concentrations).unwrap_or_else(|_| {
        // A sum that overflows, which only a damaged file can ask for.
        report.weight_damping.fill(0.0);
        prior.weights().clone()
    });
    (Posterior::new(weights, components).expect("as many components as the prior"), report)
}

/// The concentration for `P·∏(P_t/P)^λ`, with `λ`: the largest for which it is positive, less a tenth. Counts only grow,
/// so only shards that discount their rows can lose more than the prior had.
fn merge_concentration(prior: f64, gained: f64) -> (f64, f64) {
    let merged = prior + gained;
    if merged > 0.0 && merged.is_finite() {
        (1.0, merged)
    } else if gained < 0.0 && gained.is_finite() {
        let lambda = KEPT * prior / -gained;
        (lambda, prior + lambda * gained)
    } else {
        (0.0, prior)
    }
}

fn distance(a: &NormalWishart, b: &NormalWishart) -> f64 {
    a.point_estimate().bhattacharyya(&b.point_estimate())
}

/// The components of the product of posteriors whose components share `Ψ`, and the power that they are damped with.
fn merge_tied(prior: &Posterior, parts: &[&Posterior]) -> (f64, Vec<NormalWishart>) {
    let of =
        |j: usize| ProductSums::of(&prior.components()[j], parts.iter().map(|part| &part.components()[j]));
    let sums: Vec<ProductSums> = (0..prior.k()).map(of).collect();
    let damped = |lambda: f64| {
        let first = &prior.components()[0];
        let mut psi = diagonal_or_matrix(first.psi()) + lambda * &sums[0].psi;
        let moved: Vec<Array1<f64>> = sums
            .iter()
            .zip(prior.components())
            .map(|(own, prior)| own.add_spread(prior, lambda, &mut psi))
            .collect();
        let factor = Factor::from_matrix(psi.view()).ok()?;
        let component = |((own, prior), moved): ((&ProductSums, &NormalWishart), &Array1<f64>)| {
            let mean = (moved + &ArrayView1::from(prior.mean())).to_vec();
            let (kappa, nu) = (prior.kappa() + lambda * own.kappa, prior.nu() + lambda * own.nu);
            NormalWishart::new(mean, kappa, nu, factor.clone()).ok()
        };
        sums.iter().zip(prior.components()).zip(&moved).map(component).collect::<Option<Vec<_>>>()
    };
    largest_proper(damped, prior.components().to_vec())
}

/// The matrix of a factor, or its diagonal as a column if it has no other elements.
fn diagonal_or_matrix(factor: &Factor) -> Array2<f64> {
    if factor.kind().is_diagonal() {
        Array1::from(factor.diagonal()).insert_axis(Axis(1))
    } else {
        factor.matrix()
    }
}

/// What the parts add to the natural parameters of one Normal-Wishart.
struct ProductSums {
    kappa: f64,
    nu: f64,
    /// `κ_t` and `m_t − m₀` of each part.
    means: Vec<(f64, Array1<f64>)>,
    /// `Σ (Ψ_t − Ψ₀)`, or its diagonal as a column.
    psi: Array2<f64>,
}

impl ProductSums {
    fn of<'a>(prior: &NormalWishart, parts: impl Iterator<Item = &'a NormalWishart>) -> ProductSums {
        let psi0 = diagonal_or_matrix(prior.psi());
        let m0 = ArrayView1::from(prior.mean());
        let mut sums = ProductSums { kappa: 0.0, nu: 0.0, means: Vec::new(), psi: Array2::zeros(psi0.dim()) };
        for part in parts {
            sums.kappa += part.kappa() - prior.kappa();
            sums.nu += part.nu() - prior.nu();
            sums.means.push((part.kappa(), &ArrayView1::from(part.mean()) - &m0));
            sums.psi += &diagonal_or_matrix(part.psi());
            sums.psi -= &psi0;
        }
        sums
    }

    /// The component for `P·∏(P_t/P)^λ`, if it is proper.
    fn damped(&self, prior: &NormalWishart, lambda: f64) -> Option<NormalWishart> {
        let kappa = prior.kappa() + lambda * self.kappa;
        let nu = prior.nu() + lambda * self.nu;
        let mut psi = diagonal_or_matrix(prior.psi()) + lambda * &self.psi;
        let moved = self.add_spread(prior, lambda, &mut psi);
        let mean = (&moved + &ArrayView1::from(prior.mean())).to_vec();
        let factor = match prior.psi().kind() {
            CovarianceType::Diag => Factor::from_variances(&psi.column(0).to_vec()),
            CovarianceType::Spherical => Factor::spherical(prior.dim(), psi.mean().unwrap_or(f64::NAN)),
            _ => Factor::from_matrix(psi.view()),
        };
        NormalWishart::new(mean, kappa, nu, factor.ok()?).ok()
    }

    /// Adds to `Ψ` how far the means are apart, about the new mean, where the terms are smallest. Returns the new mean less the
    /// old one.
    fn add_spread(&self, prior: &NormalWishart, lambda: f64, psi: &mut Array2<f64>) -> Array1<f64> {
        let kappa = prior.kappa() + lambda * self.kappa;
        let mut moved = Array1::zeros(prior.dim());
        for (kappa_t, moved_t) in &self.means {
            moved.scaled_add(lambda * kappa_t / kappa, moved_t);
        }
        for (kappa_t, moved_t) in &self.means {
            add_outer(psi, lambda * kappa_t, &(moved_t - &moved));
        }
        add_outer(psi, (1.0 - lambda * self.means.len() as f64) * prior.kappa(), &moved);
        moved
    }
}

/// The largest `λ` for which the product is proper, found by halving (`λ = 0` is the prior, which is), less a tenth.
fn largest_proper<T>(damped: impl Fn(f64) -> Option<T>, prior: T) -> (f64, T) {
    if let Some(product) = damped(1.0) {
        return (1.0, product);
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if damped(middle).is_some() { low = middle } else { high = middle }
    }
    match damped(KEPT * low) {
        Some(product) => (KEPT * low, product),
        None => (0.0, prior),
    }
}

/// How much of the largest proper `λ` is used: at that `λ` itself a component is proper in name only.
const KEPT: f64 = 0.9;

/// `λ` is found to within 2⁻³⁰.
const HALVINGS: usize = 30;

/// Adds an outer product to a matrix, or its diagonal to a column.
fn add_outer(matrix: &mut Array2<f64>, times: f64, v: &Array1<f64>) {
    let is_column = matrix.ncols() == 1;
    for ((i, j), value) in matrix.indexed_iter_mut() {
        *value += times * v[i] * v[if is_column { i } else { j }];
    }
}

/// Which component of `part` belongs to each component of `prior`: the assignment with the least total distance.
/// This is the identity unless the components were permuted.
pub fn align(prior: &Posterior, part: &Posterior) -> Vec<usize> {
    let estimates = |posterior: &Posterior| -> Vec<Gaussian> {
        posterior.components().iter().map(NormalWishart::point_estimate).collect()
    };
    let (ours, theirs) = (estimates(prior), estimates(part));
    let costs = Array2::from_shape_fn((prior.k(), part.k()), |(i, j)| {
        ours[i].bhattacharyya(&theirs[j]).min(f64::MAX.sqrt())
    });
    best_assignment(costs.view())
}

/// The posterior with its components in another order.
pub fn permute(posterior: &Posterior, order: &[usize]) -> Posterior {
    let a = order.iter().map(|&j| posterior.weights().concentrations()[j]).collect();
    let components = order.iter().map(|&j| posterior.components()[j].clone()).collect();
    Posterior::new(Dirichlet::new(a).expect("as before"), components)
        .expect("the same parts in another order")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(m: [f64; 2], kappa: f64, nu: f64, diagonal: f64, off: f64) -> NormalWishart {
        let psi = ndarray::array![[diagonal, off], [off, diagonal]];
        NormalWishart::new(m.to_vec(), kappa, nu, Factor::from_matrix(psi.view()).unwrap()).unwrap()
    }

    fn posterior(parts: [NormalWishart; 2], a: [f64; 2]) -> Posterior {
        Posterior::new(Dirichlet::new(a.to_vec()).unwrap(), parts.to_vec()).unwrap()
    }

    fn example() -> (Posterior, [Posterior; 3]) {
        let prior = posterior(
            [component([0.0, 0.0], 2.0, 6.0, 8.0, 1.0), component([9.0, 1.0], 2.0, 6.0, 5.0, 0.0)],
            [3.0; 2],
        );
        let part = |shift: f64, rows: f64| {
            posterior(
                [
                    component([shift, 0.1], 2.0 + rows, 6.0 + rows, 8.0 + 2.0 * rows, 1.0),
                    component([9.0 - shift, 1.2], 2.0 + rows, 6.0 + rows, 5.0 + rows, 0.5),
                ],
                [3.0 + rows, 3.0 + 0.5 * rows],
            )
        };
        (prior, [part(0.2, 30.0), part(-0.1, 50.0), part(0.05, 20.0)])
    }

    #[test]
    fn merging_one_part_gives_it_back_and_order_and_grouping_do_not_matter() {
        let (prior, [a, b, c]) = example();
        let (alone, report) = merge(&prior, &[&b]);
        assert_eq!(report.damping, [1.0, 1.0]);
        let same = |x: &Posterior, y: &Posterior| {
            let counts = |p: &Posterior| p.weights().concentrations().to_vec();
            counts(x).iter().zip(counts(y)).for_each(|(x, y)| assert!((x / y - 1.0).abs() < 1e-12));
            for (x, y) in x.components().iter().zip(y.components()) {
                assert!((x.kappa() / y.kappa() - 1.0).abs() < 1e-12 && (x.nu() / y.nu() - 1.0).abs() < 1e-12);
                let (p, q) = (x.psi().matrix(), y.psi().matrix());
                p.iter()
                    .zip(&q)
                    .for_each(|(p, q)| assert!((p - q).abs() < 1e-10 * q.abs().max(1.0), "{p} {q}"));
                x.mean().iter().zip(y.mean()).for_each(|(p, q)| assert!((p - q).abs() < 1e-12));
            }
        };
        same(&alone, &b);
        let (all, _) = merge(&prior, &[&a, &b, &c]);
        same(&merge(&prior, &[&c, &a, &b]).0, &all);
        let (two, _) = merge(&prior, &[&a, &b]);
        same(&merge(&prior, &[&two, &c]).0, &all);
    }

    /// Two parts of the example whose first component has lost what the prior knew of it.
    fn lost(a: [f64; 2]) -> (Posterior, [Posterior; 2]) {
        let (prior, [x, y, _]) = example();
        let lose = |p: &Posterior| {
            posterior([component([0.0, 0.0], 0.5, 3.0, 3.0, 0.5), p.components()[1].clone()], a)
        };
        (prior, [lose(&x), lose(&y)])
    }

    #[test]
    fn an_improper_product_is_damped_and_reported() {
        let (prior, [a, b]) = lost([0.5, 4.0]);
        let (merged, report) = merge(&prior, &[&a, &b]);
        assert!(report.damping[0] > 0.0 && report.damping[0] < 1.0 && report.damping[1] == 1.0);
        assert!(report.weight_damping[0] > 0.0 && report.weight_damping[0] < 1.0);
        assert_eq!((report.weight_damping[1], report.damped()), (1.0, 1));
        assert!(merged.components()[0].kappa() > 0.05 * prior.components()[0].kappa());
        let weights = merged.weights().concentrations();
        assert!((weights[0] - 0.3).abs() < 1e-12 && (weights[1] - 5.0).abs() < 1e-12, "{weights:?}");
    }

    #[test]
    fn a_component_that_is_damped_keeps_the_counts_of_its_rows() {
        let (prior, [a, b]) = lost([13.0, 23.0]);
        let (merged, report) = merge(&prior, &[&a, &b]);
        assert!(report.damping[0] < 1.0);
        assert_eq!((report.weight_damping.as_slice(), report.damped()), ([1.0, 1.0].as_slice(), 1));
        assert_eq!(merged.weights().concentrations(), [23.0, 43.0]);
    }

    #[test]
    fn concentrations_that_overflow_leave_those_of_the_prior() {
        let (prior, [a, b, _]) = example();
        let huge =
            |p: &Posterior| posterior([p.components()[0].clone(), p.components()[1].clone()], [8e307, 8e307]);
        let (merged, report) = merge(&prior, &[&huge(&a), &huge(&b)]);
        assert_eq!(merged.weights(), prior.weights());
        assert_eq!(report.weight_damping, [0.0, 0.0]);
    }

    #[test]
    fn permuted_components_are_found_and_put_back() {
        let (prior, [a, ..]) = example();
        assert_eq!(align(&prior, &a), [0, 1]);
        let swapped = permute(&a, &[1, 0]);
        assert_eq!(align(&prior, &swapped), [1, 0]);
        assert_eq!(permute(&swapped, &align(&prior, &swapped)), a);
    }
}
