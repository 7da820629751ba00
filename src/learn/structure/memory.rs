//! What a pass has learned from rows that are gone, as a control variate of what the kept rows say.
//!
//! The kept rows have old responsibilities `r`, of the mixture that the pass has learned, and new ones `r'`, of the revised
//! mixture. `T_ij = Σ r_i r'_j / Σ r_i` is the part of the old component `i` that is in the new component `j`. The statistics
//! of the new component are then `kept_j + T_ij (all_i − kept_i)`, where `all_i` are those that the pass has learned, and
//! `kept_i` those of the kept rows with the old responsibilities, if most rows of either component are those of the other. A
//! component that hardly changes so keeps the accuracy of all rows. For the parts of a split the correction would be wrong: it
//! is about the distance between them.

use ndarray::{Array1, Array2};
use rayon::prelude::*;

use super::covariance_prior::{PriorStrength, Strength};
use super::e_step::{groups, sweep};
use super::m_step::{EMPTY, Part, Parts, maximise};
use super::revision::divergence;
use crate::dist::{BlockScorer, Gaussian, GaussianMixture};
use crate::linalg::blocks::{BLOCK, RowBlocks};
use crate::linalg::{CovarianceType, Factor, MAX_EXACT};

/// The mixture that a pass has learned, and how its components differ from what the kept rows say of them.
pub(super) struct Memory<'a> {
    before: &'a GaussianMixture,
    /// For each component, the total responsibility for the kept rows.
    counts: Vec<f64>,
    /// For each component, its statistics less those of the kept rows; `None` if both differ by more than chance.
    missed: Vec<Option<Missed>>,
}

/// A difference of statistics, relative to the mean of the component.
struct Missed {
    count: f64,
    first: Array1<f64>,
    second: Array2<f64>,
}

/// An old component and a new one are the same if they share at least this part of the rows of either.
const MIN_SHARED: f64 = 0.7;
/// The covariance of the kept rows is not reduced by more than this part in any direction.
const MOST_REDUCED: f64 = 0.75;

impl<'a> Memory<'a> {
    /// For full covariances and rows without gaps, unless the matrices take too much memory.
    pub fn new(
        rows: &RowBlocks,
        before: &'a GaussianMixture,
        prior: PriorStrength,
        ridge: f64,
    ) -> Option<Self> {
        let dim = rows.dim();
        if before.k() * dim * dim > MAX_EXACT || rows.has_gaps() {
            return None;
        }
        let parts = Parts::new(sweep(rows, before, CovarianceType::Full, None), before);
        let (strength, total) = (Strength::learn(&parts, prior), rows.total_weight());
        let counts: Vec<f64> = parts.parts.iter().map(|part| part.count).collect();
        let missed = parts.parts.iter().zip(before.components()).zip(before.weights());
        let missed: Vec<Missed> =
            missed.map(|((part, old), weight)| Missed::new(part, old, weight * total)).collect();
        let kept = maximise(parts, before, Some(strength), ridge);
        // The expected divergence is half of this.
        let chance = 0.5 * (dim * (dim + 3)) as f64;
        let agrees = |j: usize| {
            let difference = divergence(&before.components()[j], &kept.components()[j]);
            counts[j] >= EMPTY && counts[j] * difference < chance
        };
        let missed = missed.into_iter().enumerate().map(|(j, missed)| agrees(j).then_some(missed)).collect();
        Some(Memory { before, counts, missed })
    }

    /// Adds to the rows of the components of `after` what the pass knows beyond the kept rows.
    pub fn correct(&self, rows: &RowBlocks, parts: &mut Parts, after: &GaussianMixture) {
        let (shared, k) = (self.shared(rows, after), after.k());
        let correct = |(j, part): (usize, &mut Part)| {
            let is_same = |i: &usize| {
                let both = shared[i * k + j];
                both >= MIN_SHARED * self.counts[*i] && both >= MIN_SHARED * part.count
            };
            let Some(i) = (0..self.counts.len()).find(is_same) else { return };
            let Some(missed) = &self.missed[i] else { return };
            let fraction = shared[i * k + j] / self.counts[i];
            let away: Array1<f64> = self.before.components()[i]
                .mean()
                .iter()
                .zip(&part.mean)
                .map(|(old, own)| old - own)
                .collect();
            // The difference relative to the mean of the new component.
            let first = &missed.first + &away * missed.count;
            let mut second = missed.second.clone();
            add_outer(&mut second, 1.0, &missed.first, &away);
            add_outer(&mut second, 1.0, &away, &first);
            let kept = after.components()[j].covariance().matrix();
            for share in [fraction, 0.5 * fraction, 0.25 * fraction] {
                let change = (share * missed.count, &first * share, &second * share);
                if let Some(corrected) = corrected(part, &kept, change) {
                    *part = corrected;
                    return;
                }
            }
        };
        parts.parts.par_iter_mut().enumerate().for_each(correct);
    }

    /// `Σ r_i r'_j` over the kept rows, by rows.
    fn shared(&self, rows: &RowBlocks, after: &GaussianMixture) -> Vec<f64> {
        const NEGLIGIBLE: f64 = 1e-6;
        let (old_k, k) = (self.before.k(), after.k());
        let scorers = (BlockScorer::of_ordered(self.before), BlockScorer::of_ordered(after));
        let of_group = |group: std::ops::Range<usize>| {
            let (mut old, mut new) = scorers.clone();
            let mut shared = vec![0.0; old_k * k];
            for i in group {
                let (block, filled) = rows.block(i);
                old.score_block(self.before, &block, filled);
                new.score_block(after, &block, filled);
                let counts = |responsibilities: &[f64]| responsibilities.iter().any(|r| *r > NEGLIGIBLE);
                let present: Vec<usize> = (0..k).filter(|&j| counts(new.responsibilities(j))).collect();
                for a in (0..old_k).filter(|&a| counts(old.responsibilities(a))) {
                    let mut weighted = [0.0; BLOCK];
                    let own = old.responsibilities(a).iter().zip(rows.weights(i));
                    weighted.iter_mut().zip(own).for_each(|(to, (r, weight))| *to = r * weight);
                    for &j in &present {
                        let both = weighted.iter().zip(new.responsibilities(j));
                        shared[a * k + j] += both.map(|(a, b)| a * b).sum::<f64>();
                    }
                }
            }
            shared
        };
        let parts: Vec<Vec<f64>> = groups(rows).into_par_iter().map(of_group).collect();
        (0..old_k * k).map(|at| parts.iter().map(|part| part[at]).sum()).collect()
    }
}

impl Missed {
    /// The statistics of `count` rows with the moments of `old`, less those of `part`.
    fn new(part: &Part, old: &Gaussian, count: f64) -> Self {
        let away = Array1::from(part.mean.clone()) - Array1::from(old.mean().to_vec());
        let mut second = old.covariance().matrix() * count - &part.scatter;
        add_outer(&mut second, -part.count, &away, &away);
        Missed { count: count - part.count, first: away * -part.count, second }
    }
}

/// The rows of a component with a correction relative to their mean; `None` if it leaves too little of their covariance
/// `kept`.
fn corrected(
    part: &Part,
    kept: &Array2<f64>,
    (count, first, second): (f64, Array1<f64>, Array2<f64>),
) -> Option<Part> {
    let total = part.count + count;
    if !(total > (1.0 - MOST_REDUCED) * part.count) {
        return None;
    }
    let shift = &first / total;
    let mut change = second;
    add_outer(&mut change, -total, &shift, &shift);
    let least = &change + &(kept * (MOST_REDUCED * part.count));
    let scatter = &change + &part.scatter;
    let whole = &scatter + &(kept * (1e-6 * part.count));
    [least, whole].iter().all(|matrix| Factor::from_matrix(matrix.view()).is_ok()).then(|| Part {
        count: total,
        mean: part.mean.iter().zip(&shift).map(|(mean, shift)| mean + shift).collect(),
        squares: scatter.diag().iter().map(|square| square.max(0.0)).collect(),
        scatter,
    })
}

/// Adds `c·a bᵀ`.
fn add_outer(to: &mut Array2<f64>, c: f64, a: &Array1<f64>, b: &Array1<f64>) {
    for (mut row, a) in to.rows_mut().into_iter().zip(a) {
        row.scaled_add(c * a, b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::Mixture;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn gaussian(mean: &[f64], deviations: &[f64]) -> Gaussian {
        Gaussian::new(mean.to_vec(), Factor::from_standard_deviations(deviations).unwrap()).unwrap()
    }

    /// Rows of three clusters. The pass has learned the first well and has united the other two.
    #[test]
    fn a_component_that_stays_keeps_what_all_rows_say_and_one_that_is_split_does_not_suffer() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let centres = [[0.0, 0.0], [12.0, 3.0], [12.0, -3.0]];
        let values: Vec<[f64; 2]> =
            (0..600).map(|i| [centres[i % 3][0] + normal(), centres[i % 3][1] + normal()]).collect();
        let rows = RowBlocks::from_fn(values.len(), 2, |i, j| values[i][j]);
        let of =
            |weights: &[f64], components: Vec<Gaussian>| Mixture::new(weights.to_vec(), components).unwrap();
        let third = 1.0 / 3.0;
        let united = gaussian(&[12.0, 0.0], &[1.0, 10f64.sqrt()]);
        let before = of(&[third, 2.0 * third], vec![gaussian(&[0.0; 2], &[1.0; 2]), united]);
        let truth: Vec<Gaussian> = centres.iter().map(|centre| gaussian(centre, &[1.0; 2])).collect();
        let after = of(&[third; 3], truth);
        let parts = || Parts::new(sweep(&rows, &after, CovarianceType::Full, None), &after);
        let mut known = parts();
        let memory = Memory::new(&rows, &before, PriorStrength::Rows(1e-3), 1e-9).unwrap();
        memory.correct(&rows, &mut known, &after);
        let error = |part: &Part, centre: [f64; 2]| {
            let mean: f64 = part.mean.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum();
            let scatter = &part.scatter / part.count - Array2::<f64>::eye(2);
            mean + scatter.iter().map(|value| value * value).sum::<f64>()
        };
        let errors =
            |parts: &Parts| -> Vec<f64> { (0..3).map(|j| error(&parts.parts[j], centres[j])).collect() };
        let (kept, corrected) = (errors(&parts()), errors(&known));
        assert!(kept[0] > 1e-4 && corrected[0] < 1e-3 * kept[0], "{kept:?} {corrected:?}");
        assert!(corrected[1..] == kept[1..], "{kept:?} {corrected:?}");
        // A component that the kept rows do not confirm is forgotten.
        let moved =
            of(&[third, 2.0 * third], vec![gaussian(&[0.5, 0.0], &[1.0; 2]), before.components()[1].clone()]);
        assert!(Memory::new(&rows, &moved, PriorStrength::Rows(1e-3), 1e-9).unwrap().missed[0].is_none());
    }
}
