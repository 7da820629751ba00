//! Scoring many rows under a mixture, a block at a time.

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView2};

use super::{Density, Mixture};
use crate::linalg::blocks::{BLOCK, RowBlocks, square_norms, square_norms_up_to, subtract_mean};
use crate::linalg::lower_inverse;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::vector::{Quad, Vector, Vector4};
use crate::special::{exp, ln};

impl<C: Density> Mixture<C> {
    /// Log-density of each row.
    ///
    /// # Panics
    /// If the rows do not have [`Mixture::dim`] columns, here and below.
    pub fn score_samples(&self, rows: ArrayView2<f64>) -> Array1<f64> {
        let mut log_densities = Array1::zeros(rows.nrows());
        self.score_blocks(rows, |from, scored| {
            log_densities.slice_mut(ndarray::s![from..from + scored.filled]).assign(&scored.log_densities());
        });
        log_densities
    }

    /// Mean log-density of some rows; 0 of none.
    pub fn score(&self, rows: ArrayView2<f64>) -> f64 {
        self.score_samples(rows).sum() / rows.nrows().max(1) as f64
    }

    /// Log-density of each row, and the probability of each component given the row: a row of them for each row.
    pub fn responsibilities(&self, rows: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
        let mut log_densities = Array1::zeros(rows.nrows());
        let mut shares = Array2::zeros((rows.nrows(), self.k()));
        self.score_blocks(rows, |from, scored| {
            let range = ndarray::s![from..from + scored.filled];
            log_densities.slice_mut(range).assign(&scored.log_densities());
            for j in 0..self.k() {
                let share = ndarray::ArrayView1::from(&scored.shares(j)[..scored.filled]);
                shares.slice_mut(ndarray::s![from..from + scored.filled, j]).assign(&share);
            }
        });
        (log_densities, shares)
    }

    /// The most probable component of each row.
    pub fn predict(&self, rows: ArrayView2<f64>) -> Vec<usize> {
        let (_, shares) = self.responsibilities(rows);
        shares.outer_iter().map(|shares| most_probable(shares.iter().copied()).0).collect()
    }

    fn score_blocks(&self, rows: ArrayView2<f64>, mut take: impl FnMut(usize, &BlockScorer)) {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let mut scorer = BlockScorer::new(self);
        // The rows are laid out a few blocks at a time, so that a large matrix is not copied whole.
        for (i, some) in rows.axis_chunks_iter(ndarray::Axis(0), 32 * BLOCK).enumerate() {
            for (l, (block, filled)) in RowBlocks::new(some).iter().enumerate() {
                scorer.look_at(self, &block, filled);
                take((32 * i + l) * BLOCK, &scorer);
            }
        }
    }
}

/// The first of the largest shares, and its index.
pub fn most_probable(shares: impl Iterator<Item = f64>) -> (usize, f64) {
    let better =
        |best: (usize, f64), (j, share): (usize, f64)| if share > best.1 { (j, share) } else { best };
    shares.enumerate().fold((0, 0.0), better)
}

/// Log-densities of a block of rows, and each component's shares of them.
#[derive(Clone)]
pub(crate) struct BlockScorer {
    /// `L⁻¹` of each component, row after row.
    inverses: Arc<[Array2<f64>]>,
    log_weights: Vec<f64>,
    /// Component after component, [`BLOCK`] places each.
    shares: Vec<Quad>,
    log_densities: [Quad; QUADS],
    deviations: Vec<f64>,
    filled: usize,
    /// For rows in the order of their components: the component that most of the last block belonged to.
    leader: Option<usize>,
}

impl BlockScorer {
    pub fn new<C: Density>(mixture: &Mixture<C>) -> Self {
        let inverse = |component: &C| lower_inverse(component.scale_matrix().lower_matrix().view());
        BlockScorer {
            inverses: mixture.components().iter().map(inverse).collect(),
            log_weights: mixture.weights().iter().map(|weight| weight.ln()).collect(),
            shares: vec![Quad::default(); mixture.k() * QUADS],
            log_densities: [Quad::default(); QUADS],
            deviations: vec![0.0; mixture.dim() * BLOCK],
            filled: 0,
            leader: None,
        }
    }

    /// For rows in the order of their components, where most components are far from all rows of a block. Shares below
    /// `exp(−60)` may be zero.
    pub fn of_ordered<C: Density>(mixture: &Mixture<C>) -> Self {
        BlockScorer { leader: Some(0), ..BlockScorer::new(mixture) }
    }

    /// Scores a block whose first `filled` rows are rows; the shares of the others are zero.
    pub fn look_at<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64], filled: usize) {
        self.filled = filled;
        match self.leader {
            None => (0..mixture.k()).for_each(|j| self.compute_terms(mixture, block, j, None)),
            Some(leader) => self.look_at_ordered(mixture, block, leader),
        }
        share_out(&mut self.shares, &mut self.log_densities);
        for shares in Quad::flat_mut(&mut self.shares).chunks_exact_mut(BLOCK) {
            shares[filled..].fill(0.0);
        }
    }

    /// Log-terms of component `j`; of rows whose term would be below `least`, they may be minus infinity.
    fn compute_terms<C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        block: &[f64],
        j: usize,
        least: Option<&[f64; BLOCK]>,
    ) {
        let component = &mixture.components()[j];
        subtract_mean(block, component.location(), &mut self.deviations);
        let terms = &mut Quad::flat_mut(&mut self.shares)[j * BLOCK..][..BLOCK];
        let inverse = self.inverses[j].as_slice().expect("standard layout");
        match least {
            None => square_norms(inverse, &self.deviations, terms),
            Some(least) => {
                let most = least.map(|least| component.square_below(least - self.log_weights[j]));
                square_norms_up_to(inverse, &self.deviations, &most, terms);
            }
        }
        for term in terms.iter_mut() {
            *term = self.log_weights[j] + component.log_density_at(*term);
        }
    }

    /// Looks at the component of the last block first: rows that it explains need not be measured against all others.
    fn look_at_ordered<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64], leader: usize) {
        const NEGLIGIBLE: f64 = 60.0;
        self.compute_terms(mixture, block, leader, None);
        let mut least = [0.0; BLOCK];
        let terms = &Quad::flat(&self.shares)[leader * BLOCK..][..BLOCK];
        least.iter_mut().zip(terms).for_each(|(least, term)| *least = term - NEGLIGIBLE);
        // Places without a row ask for nothing.
        least[self.filled..].fill(f64::INFINITY);
        let mut best = [leader; BLOCK];
        for j in (0..mixture.k()).filter(|&j| j != leader) {
            self.compute_terms(mixture, block, j, Some(&least));
            let terms = &Quad::flat(&self.shares)[j * BLOCK..][..BLOCK];
            for ((least, term), best) in least.iter_mut().zip(terms).zip(&mut best) {
                if term - NEGLIGIBLE > *least {
                    (*least, *best) = (term - NEGLIGIBLE, j);
                }
            }
        }
        // The last row is nearest to the next block.
        self.leader = Some(best[self.filled.saturating_sub(1)]);
    }

    /// `|L⁻¹(x − m)|²` of each row of a block under component `j` alone.
    pub fn square_norms<C: Density>(&mut self, mixture: &Mixture<C>, j: usize, block: &[f64]) -> &[f64] {
        subtract_mean(block, mixture.components()[j].location(), &mut self.deviations);
        let terms = &mut Quad::flat_mut(&mut self.shares)[j * BLOCK..][..BLOCK];
        square_norms(self.inverses[j].as_slice().expect("standard layout"), &self.deviations, terms);
        terms
    }

    /// Log-density of each row.
    pub fn log_densities(&self) -> ndarray::ArrayView1<'_, f64> {
        ndarray::ArrayView1::from(&Quad::flat(&self.log_densities)[..self.filled])
    }

    /// The share of component `j` in each row of the block.
    pub fn shares(&self, j: usize) -> &[f64] {
        &Quad::flat(&self.shares)[j * BLOCK..][..BLOCK]
    }
}

/// Quads in a block.
const QUADS: usize = BLOCK / 4;

at_run_time! {
    /// Log-terms in, shares and log-densities of the rows out. A row of no density at all has no shares.
    fn share_out(terms: &mut [Quad], log_densities: &mut [Quad; QUADS]) = share_out_kernel
}

#[inline(always)]
fn share_out_kernel<A: Arithmetic>(terms: &mut [Quad], log_densities: &mut [Quad; QUADS]) {
    let of = A::Vector::splat;
    for (q, log_density) in log_densities.iter_mut().enumerate() {
        let mut top = of(f64::MIN);
        for term in terms.iter().skip(q).step_by(QUADS) {
            top = A::Vector::load(term).max(top);
        }
        let mut sum = of(0.0);
        for term in terms.iter_mut().skip(q).step_by(QUADS) {
            let share = exp(A::Vector::load(term) - top);
            sum = sum + share;
            share.store(term);
        }
        let least = of(f64::MIN_POSITIVE);
        sum.if_below(least, of(f64::NEG_INFINITY), top + ln(sum.max(least))).store(log_density);
        let inverse = sum.if_below(least, of(0.0), of(1.0) / sum);
        for term in terms.iter_mut().skip(q).step_by(QUADS) {
            (A::Vector::load(term) * inverse).store(term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Gaussian, GaussianMixture};
    use super::*;
    use crate::linalg::Factor;

    fn mixture() -> GaussianMixture {
        let narrow = Gaussian::new(vec![0.0, 1.0], Factor::from_standard_deviations(&[0.1, 2.0]).unwrap());
        let wide = Gaussian::new(vec![-3.0, 4.0], Factor::identity(2));
        Mixture::new(vec![0.3, 0.7], vec![narrow.unwrap(), wide.unwrap()]).unwrap()
    }

    #[test]
    fn blocks_score_as_single_rows_do() {
        let mixture = mixture();
        let rows =
            Array2::from_shape_fn((32 * BLOCK + 77, 2), |(i, j)| ((i * 7 + j * 3) % 90) as f64 / 9.0 - 5.0);
        let (log_densities, shares) = mixture.responsibilities(rows.view());
        assert_eq!(log_densities, mixture.score_samples(rows.view()));
        let predicted = mixture.predict(rows.view());
        for (i, row) in rows.outer_iter().enumerate() {
            let exact = mixture.log_density(row.as_slice().unwrap());
            assert!((log_densities[i] - exact).abs() < 1e-12 * (1.0 + exact.abs()));
            assert!((shares.row(i).sum() - 1.0).abs() < 1e-14);
            assert!(shares[(i, predicted[i])] >= 0.5);
        }
        assert_eq!(mixture.score(rows.slice(ndarray::s![..0, ..])), 0.0);
    }

    #[test]
    fn log_weights_far_from_zero_keep_their_shares() {
        let shared = |values: [f64; 3]| {
            let mut terms: Vec<Quad> = values.iter().flat_map(|&v| [Quad([v; 4]); QUADS]).collect();
            let mut log_densities = [Quad::default(); QUADS];
            share_out(&mut terms, &mut log_densities);
            (log_densities[0].0[0], [0, 1, 2].map(|j| terms[j * QUADS].0[0]))
        };
        let (total, values) = shared([-1e4, -1e4 + 2f64.ln(), f64::NEG_INFINITY]);
        assert!((total - (-1e4 + 3f64.ln())).abs() < 1e-9);
        assert!((values[0] - 1.0 / 3.0).abs() < 1e-12 && values[2] == 0.0);
        assert_eq!(shared([f64::NEG_INFINITY; 3]).0, f64::NEG_INFINITY);
    }

    #[test]
    fn a_row_beyond_all_numbers_has_no_density_and_no_shares() {
        let rows = ndarray::array![[1e200, 1e200], [0.0, 0.0]];
        let (log_densities, shares) = mixture().responsibilities(rows.view());
        assert_eq!(log_densities[0], f64::NEG_INFINITY);
        assert_eq!(shares.row(0).sum(), 0.0);
        assert!(log_densities[1].is_finite());
    }
}
