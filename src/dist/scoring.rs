//! Log-densities and responsibilities of many rows under a mixture, computed by blocks.

use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, s};
use rand::Rng;
use rayon::prelude::*;

use super::gaps::GappedRows;
use super::{Density, DistError, Mixture};
use crate::linalg::blocks::{
    BLOCK, Moments, RowBlocks, TILE, scaled_distances, square_distances, square_norms, whitened,
};
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::special::{exp, ln};
use crate::linalg::vector::{Quad, Vector, Vector4};
use crate::linalg::{has_gaps, lower_inverse};
use crate::stats::EquallyRare;

/// Rows that one thread scores at a time. Only these are copied into blocks, not the whole matrix.
pub(super) const CHUNK: usize = 32 * BLOCK;

/// Scores of many rows. They run in parallel on the current rayon thread pool. The result does not depend on the number of
/// threads.
///
/// # Errors
/// [`DistError::Shape`] if the rows do not have [`Mixture::dim`] columns.
impl<C: Density> Mixture<C> {
    /// The log-density of each row.
    pub fn score_samples(&self, rows: ArrayView2<f64>) -> Result<Array1<f64>, DistError> {
        self.check_width(rows).map(|()| self.log_densities(rows))
    }

    /// The mean log-density of the rows; 0 without rows.
    pub fn score(&self, rows: ArrayView2<f64>) -> Result<f64, DistError> {
        self.check_width(rows).map(|()| self.mean_log_density(rows))
    }

    /// The log-density of each row, and the matrix of [`Mixture::predict_proba`].
    pub fn responsibilities(&self, rows: ArrayView2<f64>) -> Result<(Array1<f64>, Array2<f64>), DistError> {
        self.check_width(rows).map(|()| self.scored(rows))
    }

    /// The responsibilities: the probability of each component given the row, with one row for each row and one column for
    /// each component. Each row sums to one, except that a row whose density is zero in double precision has only zeros.
    pub fn predict_proba(&self, rows: ArrayView2<f64>) -> Result<Array2<f64>, DistError> {
        self.check_width(rows).map(|()| self.probabilities(rows))
    }

    /// The most probable component of each row.
    pub fn predict(&self, rows: ArrayView2<f64>) -> Result<Array1<usize>, DistError> {
        self.check_width(rows).map(|()| self.most_probable_components(rows))
    }

    fn check_width(&self, rows: ArrayView2<f64>) -> Result<(), DistError> {
        let (found, expected) = (rows.ncols(), self.dim());
        if found == expected { Ok(()) } else { Err(DistError::Shape { what: "a row", found, expected }) }
    }
}

/// The same for rows that have the mixture's columns.
impl<C: Density> Mixture<C> {
    pub(crate) fn log_densities(&self, rows: ArrayView2<f64>) -> Array1<f64> {
        let mut log_densities = Array1::zeros(rows.nrows());
        let chunks = log_densities.axis_chunks_iter_mut(Axis(0), CHUNK);
        self.score_chunks(rows, chunks, |log_densities, range, scored| {
            log_densities.slice_mut(s![range]).assign(&scored.log_densities());
        });
        log_densities
    }

    pub(crate) fn mean_log_density(&self, rows: ArrayView2<f64>) -> f64 {
        self.log_densities(rows).sum() / rows.nrows().max(1) as f64
    }

    pub(crate) fn scored(&self, rows: ArrayView2<f64>) -> (Array1<f64>, Array2<f64>) {
        let mut log_densities = Array1::zeros(rows.nrows());
        let mut responsibilities = Array2::zeros((rows.nrows(), self.k()));
        let chunks = log_densities
            .axis_chunks_iter_mut(Axis(0), CHUNK)
            .zip(responsibilities.axis_chunks_iter_mut(Axis(0), CHUNK));
        self.score_chunks(rows, chunks, |(log_densities, responsibilities), range, scored| {
            log_densities.slice_mut(s![range.clone()]).assign(&scored.log_densities());
            for j in 0..self.k() {
                let column = ArrayView1::from(&scored.responsibilities(j)[..scored.filled]);
                responsibilities.slice_mut(s![range.clone(), j]).assign(&column);
            }
        });
        (log_densities, responsibilities)
    }

    pub(crate) fn probabilities(&self, rows: ArrayView2<f64>) -> Array2<f64> {
        self.scored(rows).1
    }

    pub(crate) fn most_probable_components(&self, rows: ArrayView2<f64>) -> Array1<usize> {
        let probabilities = self.probabilities(rows);
        probabilities.outer_iter().map(|row| most_probable(row.iter().copied()).0).collect()
    }

    /// Scores chunks of rows in parallel. `store` writes a scored block to the given rows of the chunk's output.
    pub(super) fn score_chunks<T: Send>(
        &self,
        rows: ArrayView2<f64>,
        outputs: impl Iterator<Item = T>,
        store: impl Fn(&mut T, Range<usize>, &BlockScorer) + Sync,
    ) {
        assert_eq!(rows.ncols(), self.dim(), "rows must have the mixture's columns");
        let scorer = BlockScorer::new(self);
        let chunks: Vec<_> = rows.axis_chunks_iter(Axis(0), CHUNK).zip(outputs).collect();
        chunks.into_par_iter().for_each(|(rows, mut output)| {
            let mut scorer = scorer.clone();
            for (i, (block, filled)) in RowBlocks::new(rows).iter().enumerate() {
                scorer.score_block(self, &block, filled);
                store(&mut output, i * BLOCK..i * BLOCK + filled, &scorer);
            }
        });
    }
}

/// The index and the value of the largest probability; the first one of equals.
///
/// ```
/// use gmm_bmm::dist::most_probable;
///
/// assert_eq!(most_probable([0.2, 0.4, 0.4].into_iter()), (1, 0.4));
/// ```
pub fn most_probable(probabilities: impl Iterator<Item = f64>) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 > best.1 { next } else { best };
    probabilities.enumerate().fold((0, 0.0), better)
}

/// What whitens the deviations of rows from a component.
enum Whitening {
    /// `L⁻¹`.
    Triangle(Array2<f64>),
    /// The diagonal of a diagonal `L⁻¹`.
    Diagonal(Vec<f64>),
    /// `L⁻¹` is that of all components. Rows are whitened once, relative to the first component, and this is the whitened mean.
    Shared(Vec<f64>),
}

/// Computes log-densities and responsibilities of a block of rows.
#[derive(Clone)]
pub(crate) struct BlockScorer {
    whitenings: Arc<[Whitening]>,
    /// `L⁻¹` of all components if they share it, and space for a whitened block.
    shared: Option<Arc<Array2<f64>>>,
    whitened: Vec<f64>,
    log_weights: Vec<f64>,
    /// One component after the other, [`BLOCK`] numbers each. While a block is scored, the log-terms `ln w_j f_j(x)`.
    responsibilities: Vec<Quad>,
    log_densities: [Quad; QUADS],
    /// Space for a block of rows.
    space: Vec<Quad>,
    /// Space for a tile of rows.
    tile: Vec<f64>,
    filled: usize,
    /// For rows ordered by component: the most probable component of the last row. `None` for rows in any order.
    leader: Option<usize>,
    gapped: GappedRows,
}

impl BlockScorer {
    pub fn new<C: Density>(mixture: &Mixture<C>) -> Self {
        let (first, others) = mixture.components().split_first().expect("a mixture has components");
        let is_shared = !others.is_empty()
            && others.iter().all(|c| c.scale_matrix().is_shared_with(first.scale_matrix()));
        let inverse = |component: &C| lower_inverse(component.scale_matrix().lower_matrix().view());
        let shared = is_shared.then(|| Arc::new(inverse(first)));
        let whitening = |component: &C| match (&shared, component.scale_matrix().roots()) {
            (Some(inverse), _) => {
                let means = component.location().iter().zip(first.location());
                Whitening::Shared(
                    inverse.dot(&means.map(|(m, origin)| m - origin).collect::<Array1<f64>>()).to_vec(),
                )
            }
            (None, Some(roots)) => Whitening::Diagonal(roots.iter().map(|root| 1.0 / root).collect()),
            (None, None) => Whitening::Triangle(inverse(component)),
        };
        let whitenings = mixture.components().iter().map(whitening).collect();
        BlockScorer {
            whitenings,
            whitened: vec![0.0; if is_shared { mixture.dim() * BLOCK } else { 0 }],
            shared,
            log_weights: mixture.weights().iter().map(|weight| weight.ln()).collect(),
            responsibilities: vec![Quad::default(); mixture.k() * QUADS],
            log_densities: [Quad::default(); QUADS],
            space: vec![Quad::default(); mixture.dim() * QUADS],
            tile: vec![0.0; mixture.dim() * TILE],
            filled: 0,
            leader: None,
            gapped: GappedRows::default(),
        }
    }

    /// A scorer for rows ordered by component, where most components are far from all rows of a block. It is faster, and
    /// responsibilities below `exp(−60)` may become zero.
    pub fn of_ordered<C: Density>(mixture: &Mixture<C>) -> Self {
        BlockScorer { leader: Some(0), ..BlockScorer::new(mixture) }
    }

    /// Forgets the last row, so that scores do not depend on earlier blocks.
    pub fn restart(&mut self) {
        self.leader = self.leader.and(Some(0));
    }

    /// Scores the first `filled` rows of a block. The responsibilities of the others are zero. A missing value is NaN; such a
    /// row is scored by its other columns.
    pub fn score_block<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64], filled: usize) {
        self.filled = filled;
        self.whiten(mixture, block);
        match self.leader {
            None => (0..mixture.k()).for_each(|j| self.compute_terms(mixture, block, j, None)),
            Some(leader) => self.compute_ordered_terms(mixture, block, leader),
        }
        self.gapped.clear();
        if has_gaps(block) {
            self.compute_gapped_terms(mixture, block);
        }
        normalise(&mut self.responsibilities, &mut self.log_densities);
        for of_component in Quad::flat_mut(&mut self.responsibilities).chunks_exact_mut(BLOCK) {
            of_component[filled..].fill(0.0);
        }
    }

    /// Computes the log-terms of component `j`. Terms below `least` may become minus infinity.
    fn compute_terms<C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        block: &[f64],
        j: usize,
        least: Option<&[f64; BLOCK]>,
    ) {
        let component = &mixture.components()[j];
        self.compute_norms(mixture, j, block, least);
        for term in &mut Quad::flat_mut(&mut self.responsibilities)[j * BLOCK..][..BLOCK] {
            *term = self.log_weights[j] + component.log_density_at(*term);
        }
    }

    /// Whitens a block for all components that share their matrix.
    fn whiten<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64]) {
        if let Some(inverse) = &self.shared {
            let (inverse, origin) =
                (inverse.as_slice().expect("standard layout"), mixture.components()[0].location());
            whitened(inverse, block, origin, &mut self.tile, &mut self.whitened);
        }
    }

    /// Replaces the terms of component `j` by the squared norms of the whitened rows. Those of terms below `least` may become
    /// infinite.
    fn compute_norms<C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        j: usize,
        block: &[f64],
        least: Option<&[f64; BLOCK]>,
    ) {
        let terms = &mut Quad::flat_mut(&mut self.responsibilities)[j * BLOCK..][..BLOCK];
        let (component, log_weight) = (&mixture.components()[j], self.log_weights[j]);
        let mean = component.location();
        match &self.whitenings[j] {
            Whitening::Triangle(inverse) => {
                let inverse = inverse.as_slice().expect("standard layout");
                let most =
                    |least: &[f64; BLOCK]| least.map(|term| component.quadratic_form_at(term - log_weight));
                square_norms(inverse, block, mean, least.map(most).as_ref(), &mut self.tile, terms);
            }
            Whitening::Diagonal(scales) => scaled_distances(block, mean, scales, terms),
            Whitening::Shared(mean) => {
                let terms = terms.try_into().expect("a block of terms");
                square_distances(&self.whitened, mean, terms);
            }
        }
    }

    /// Computes the log-terms of rows with gaps.
    #[inline(never)]
    fn compute_gapped_terms<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64]) {
        let BlockScorer { whitenings, shared, gapped, .. } = self;
        let inverse = |j: usize| match &whitenings[j] {
            Whitening::Triangle(inverse) => inverse.as_slice(),
            Whitening::Shared(_) => shared.as_ref().and_then(|inverse| inverse.as_slice()),
            Whitening::Diagonal(_) => None,
        };
        gapped.find(mixture, inverse, block, self.filled);
        let mut of_rows = [0.0; BLOCK];
        for (j, component) in mixture.components().iter().enumerate() {
            let terms = &mut Quad::flat_mut(&mut self.responsibilities)[j * BLOCK..][..BLOCK];
            gapped.log_densities(component, j, &mut of_rows);
            for place in gapped.places() {
                terms[place] = self.log_weights[j] + of_rows[place];
            }
        }
    }

    /// Adds the moments of the rows of the block that was scored last, relative to the mean of component `j`, with these weights.
    /// Rows with gaps are completed, and the conditional covariances of their missing columns are added too. If components share
    /// their second moments, `shared` has them and their origin, and completed rows are added there.
    pub fn add_moments<C: Density>(
        &mut self,
        mixture: &Mixture<C>,
        j: usize,
        block: &[f64],
        weights: &[f64; BLOCK],
        moments: &mut Moments,
        shared: Option<(&mut Moments, &[f64])>,
    ) {
        let component = &mixture.components()[j];
        if self.gapped.is_empty() {
            return moments.add_relative(block, component.location(), weights, &mut self.space);
        }
        let of_component = (j, component.location());
        match shared {
            None => {
                self.gapped.add_moments(of_component, block, weights, moments, None, &mut self.space);
            }
            Some((all, origin)) => {
                let (gapped, space) = (&mut self.gapped, &mut self.space);
                let deviations =
                    gapped.add_moments(of_component, block, weights, moments, Some(&mut *all), space);
                let shift: Vec<f64> = origin.iter().zip(component.location()).map(|(o, m)| o - m).collect();
                all.add_relative(deviations, &shift, weights, space);
            }
        }
    }

    /// Adds the second moments of the complete rows of the block that was scored last, relative to `origin`, with these weights.
    /// [`BlockScorer::add_moments`] adds those of blocks with gaps.
    pub fn add_shared_moments(
        &mut self,
        block: &[f64],
        weights: &[f64; BLOCK],
        all: &mut Moments,
        origin: &[f64],
    ) {
        if self.gapped.is_empty() {
            all.add_relative(block, origin, weights, &mut self.space);
        }
    }

    /// Fills the gaps of the block that was scored last by draws, from a component that is drawn by its responsibility.
    pub fn draw_missing<C: Density, R: Rng + ?Sized>(
        &mut self,
        mixture: &Mixture<C>,
        block: &mut [f64],
        random: &mut R,
    ) {
        let responsibilities = Quad::flat(&self.responsibilities);
        let share = |place: usize, j: usize| responsibilities[j * BLOCK + place];
        self.gapped.fill(mixture, block, share, random);
    }

    /// Adds the log-densities of the missing values of the rows of the block, if they are as rare as the observed ones.
    pub fn add_log_densities_of_missing(&self, rare: &EquallyRare, out: &mut [f64]) {
        self.gapped.add_of_missing(|place, j| self.responsibilities(j)[place], rare, out);
    }

    /// Computes the log-terms of the last row's component first. They bound the terms that other components need.
    fn compute_ordered_terms<C: Density>(&mut self, mixture: &Mixture<C>, block: &[f64], leader: usize) {
        const NEGLIGIBLE: f64 = 60.0;
        self.compute_terms(mixture, block, leader, None);
        let mut least = [0.0; BLOCK];
        let terms = &Quad::flat(&self.responsibilities)[leader * BLOCK..][..BLOCK];
        least.iter_mut().zip(terms).for_each(|(least, term)| *least = term - NEGLIGIBLE);
        // No term is needed after the last row.
        least[self.filled..].fill(f64::INFINITY);
        // The last row is the most similar one to the next block.
        let (last, mut best) = (self.filled.saturating_sub(1), leader);
        for j in (0..mixture.k()).filter(|&j| j != leader) {
            self.compute_terms(mixture, block, j, Some(&least));
            let terms = &Quad::flat(&self.responsibilities)[j * BLOCK..][..BLOCK];
            if terms[last] - NEGLIGIBLE > least[last] {
                best = j;
            }
            for (least, term) in least.iter_mut().zip(terms) {
                *least = if term - NEGLIGIBLE > *least { term - NEGLIGIBLE } else { *least };
            }
        }
        self.leader = Some(best);
    }

    /// `|L⁻¹(x − m)|²` of each row `x` of a block, for component `j`.
    pub fn square_norms<C: Density>(&mut self, mixture: &Mixture<C>, j: usize, block: &[f64]) -> &[f64] {
        self.whiten(mixture, block);
        self.compute_norms(mixture, j, block, None);
        &Quad::flat(&self.responsibilities)[j * BLOCK..][..BLOCK]
    }

    /// The log-density of each row.
    pub fn log_densities(&self) -> ArrayView1<'_, f64> {
        ArrayView1::from(&Quad::flat(&self.log_densities)[..self.filled])
    }

    /// The responsibility of component `j` for each row of the block.
    pub fn responsibilities(&self, j: usize) -> &[f64] {
        &Quad::flat(&self.responsibilities)[j * BLOCK..][..BLOCK]
    }
}

/// Quads in a block.
const QUADS: usize = BLOCK / 4;

at_run_time! {
    /// `terms` has the log-terms of one component after the other. Replaces them by responsibilities and computes the log-densities (log-sum-exp). A row of density zero has
    /// responsibilities of zero.
    fn normalise(terms: &mut [Quad], log_densities: &mut [Quad]) = normalise_kernel
}

#[inline(always)]
fn normalise_kernel<A: Arithmetic>(terms: &mut [Quad], log_densities: &mut [Quad]) {
    let (of, quads) = (A::Vector::splat, log_densities.len());
    for (q, log_density) in log_densities.iter_mut().enumerate() {
        let mut top = of(f64::MIN);
        for term in terms.iter().skip(q).step_by(quads) {
            top = A::Vector::load(term).max(top);
        }
        let mut sum = of(0.0);
        for term in terms.iter_mut().skip(q).step_by(quads) {
            let relative = exp(A::Vector::load(term) - top);
            sum = sum + relative;
            relative.store(term);
        }
        let least = of(f64::MIN_POSITIVE);
        sum.if_below(least, of(f64::NEG_INFINITY), top + ln(sum.max(least))).store(log_density);
        let inverse = sum.if_below(least, of(0.0), of(1.0) / sum);
        for term in terms.iter_mut().skip(q).step_by(quads) {
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
        let (log_densities, responsibilities) = mixture.responsibilities(rows.view()).unwrap();
        assert_eq!(log_densities, mixture.log_densities(rows.view()));
        assert_eq!(responsibilities, mixture.probabilities(rows.view()));
        let predicted = mixture.most_probable_components(rows.view());
        for (i, row) in rows.outer_iter().enumerate() {
            let exact = mixture.log_density(row.as_slice().unwrap());
            assert!((log_densities[i] - exact).abs() < 1e-12 * (1.0 + exact.abs()));
            assert!((responsibilities.row(i).sum() - 1.0).abs() < 1e-14);
            assert!(responsibilities[(i, predicted[i])] >= 0.5);
        }
        assert_eq!(mixture.mean_log_density(rows.slice(s![..0, ..])), 0.0);
    }

    #[test]
    fn log_terms_far_from_zero_keep_their_responsibilities() {
        let normalised = |values: [f64; 3]| {
            let mut terms: Vec<Quad> = values.iter().flat_map(|&v| [Quad([v; 4]); QUADS]).collect();
            let mut log_densities = [Quad::default(); QUADS];
            normalise(&mut terms, &mut log_densities);
            (log_densities[0].0[0], [0, 1, 2].map(|j| terms[j * QUADS].0[0]))
        };
        let (total, values) = normalised([-1e4, -1e4 + 2f64.ln(), f64::NEG_INFINITY]);
        assert!((total - (-1e4 + 3f64.ln())).abs() < 1e-9);
        assert!((values[0] - 1.0 / 3.0).abs() < 1e-12 && values[2] == 0.0);
        assert_eq!(normalised([f64::NEG_INFINITY; 3]).0, f64::NEG_INFINITY);
    }

    #[test]
    fn a_row_that_overflows_has_density_and_responsibilities_zero() {
        let rows = ndarray::array![[1e200, 1e200], [0.0, 0.0]];
        let (log_densities, responsibilities) = mixture().scored(rows.view());
        assert_eq!(log_densities[0], f64::NEG_INFINITY);
        assert_eq!(responsibilities.row(0).sum(), 0.0);
        assert!(log_densities[1].is_finite());
    }

    #[test]
    fn rows_of_another_width_are_an_error() {
        let rows = Array2::zeros((3, mixture().dim() + 1));
        let expected =
            DistError::Shape { what: "a row", found: mixture().dim() + 1, expected: mixture().dim() };
        assert_eq!(mixture().score_samples(rows.view()), Err(expected.clone()));
        assert_eq!(mixture().predict(rows.view()), Err(expected));
    }
}
