//! The variances of components without correlations: one for each column, or one for all columns.

use super::bayes::Projection;
use crate::linalg::Factor;
use crate::linalg::simd::{Arithmetic, at_run_time};
use crate::linalg::special::{ln, ln_1p};
use crate::linalg::vector::{Quad, Vector, Vector4};

/// The means and variances of all components. Columns beyond the last one hold zero means and precisions.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    dim: usize,
    /// One component after the other.
    means: Vec<Quad>,
    /// One number for each column, or the same one in all columns.
    variances: Vec<Quad>,
    precisions: Vec<Quad>,
    /// `Σ ln variance` of each component.
    log_dets: Vec<f64>,
    pub is_spherical: bool,
    /// The least variance of each column.
    floor: Vec<Quad>,
}

impl Columns {
    /// From the mean of each component and its variances, one for each column or one for all.
    pub fn new<'a>(
        parts: impl Iterator<Item = (&'a [f64], Vec<f64>)>,
        floor: &[f64],
        is_spherical: bool,
    ) -> Self {
        let dim = floor.len();
        let quads = Quad::needed(dim);
        let (mut means, mut variances, mut log_dets) = (Vec::new(), Vec::new(), Vec::new());
        for (mean, own) in parts {
            means.extend(Quad::pad(mean, 0.0));
            let own = if own.len() == dim { own } else { vec![own[0]; dim] };
            variances.extend(Quad::pad(&own, 1.0));
            log_dets.push(0.0);
        }
        let mut floor = floor.to_vec();
        if is_spherical {
            let most = floor.iter().copied().fold(0.0, f64::max);
            floor.fill(most);
        }
        let precisions = vec![Quad::default(); variances.len()];
        let floor = Quad::pad(&floor, 0.0);
        let mut columns = Columns { dim, means, variances, precisions, log_dets, is_spherical, floor };
        for j in 0..columns.count() {
            columns.refresh(j, quads);
        }
        columns
    }

    pub fn count(&self) -> usize {
        self.log_dets.len()
    }

    pub fn mean(&self, j: usize) -> &[f64] {
        let quads = Quad::needed(self.dim);
        &Quad::flat(&self.means[j * quads..][..quads])[..self.dim]
    }

    /// The variances of component `j`: one for each column, or one for all.
    fn variances(&self, j: usize) -> &[f64] {
        let quads = Quad::needed(self.dim);
        let count = if self.is_spherical { 1 } else { self.dim };
        &Quad::flat(&self.variances[j * quads..][..quads])[..count]
    }

    /// Computes what follows from the variances of component `j`.
    fn refresh(&mut self, j: usize, quads: usize) {
        let range = j * quads..(j + 1) * quads;
        let (variances, precisions) = (&self.variances[range.clone()], &mut self.precisions[range]);
        self.log_dets[j] = invert(variances, precisions);
        let last = precisions.last_mut().expect("there are columns");
        (self.dim..4 * quads).for_each(|column| last.0[column % 4] = 0.0);
    }

    /// `Σ ln variance` of component `j`.
    pub fn log_det(&self, j: usize) -> f64 {
        self.log_dets[j]
    }

    /// The variances of component `j` as a factor.
    pub fn factor(&self, j: usize) -> Factor {
        match self.is_spherical {
            true => Factor::spherical(self.dim, self.variances(j)[0]),
            false => Factor::from_variances(self.variances(j)),
        }
        .expect("every update keeps variances positive")
    }

    /// `Σ v²/variance` and `Σ ln variance` over the observed columns of a row, for component `j`. Missing values are NaN, and `row` is
    /// padded with zeros.
    pub fn view(&self, j: usize, row: &[Quad], has_gaps: bool) -> (f64, f64) {
        let quads = row.len();
        let range = j * quads..(j + 1) * quads;
        let q = square_sum(row, &self.means[range.clone()], &self.precisions[range]);
        let log_det = if has_gaps {
            let observed =
                Quad::flat(row)[..self.dim].iter().enumerate().filter(|(_, value)| !value.is_nan());
            let variances = Quad::flat(&self.variances[j * quads..][..quads]);
            observed.map(|(column, _)| variances[column].ln()).sum()
        } else {
            self.log_dets[j]
        };
        (q, log_det)
    }

    /// `Σ ln(1 + c v²/variance)` over the observed columns of a row.
    pub fn log_sum(&self, j: usize, row: &[Quad], c: f64) -> f64 {
        let range = j * row.len()..(j + 1) * row.len();
        sum_of_logs(row, &self.means[range.clone()], &self.precisions[range], c)
    }

    /// Learns a row by online EM: `μ' = μ + ρv`, `Σ' = (1−ρ)(Σ + ρv²)`. A missing value leaves its column as it is. Returns how
    /// many variances were raised to the floor.
    pub fn learn_fraction(&mut self, j: usize, row: &[Quad], rho: f64) -> u64 {
        let quads = row.len();
        let range = j * quads..(j + 1) * quads;
        let (means, variances) = (&mut self.means[range.clone()], &mut self.variances[range]);
        move_fraction(row, means, variances, rho);
        self.settle(j, quads)
    }

    /// Learns a row by a projection of moments. Returns the sums over the columns that `κ'` and `ν'` follow from.
    pub fn learn_moments(&mut self, j: usize, row: &[Quad], step: &Projection) -> (StepSums, u64) {
        let quads = row.len();
        let range = j * quads..(j + 1) * quads;
        let (means, variances) = (&mut self.means[range.clone()], &mut self.variances[range]);
        let mut sums = [0.0; 3];
        project_columns(row, means, variances, step, self.dim, &mut sums);
        let raised = self.settle(j, quads);
        (StepSums { z: sums[0], z_left: sums[1], variance: sums[2] }, raised)
    }

    /// Moves the mean of component `j` by `step·v`, and multiplies its single variance.
    pub fn learn_spherical(&mut self, j: usize, row: &[Quad], step: f64, factor: f64) -> u64 {
        let quads = row.len();
        let range = j * quads..(j + 1) * quads;
        let (means, variances) = (&mut self.means[range.clone()], &mut self.variances[range]);
        for (mean, x) in Quad::flat_mut(means).iter_mut().zip(Quad::flat(row)) {
            let v = x - *mean;
            *mean += if v.is_nan() { 0.0 } else { step * v };
        }
        let new = variances[0].0[0] * factor;
        Quad::flat_mut(variances)[..self.dim].fill(new);
        self.settle(j, quads)
    }

    /// Multiplies the variances of component `j`.
    pub fn scale(&mut self, j: usize, factor: f64) {
        let quads = self.floor.len();
        let variances = &mut Quad::flat_mut(&mut self.variances[j * quads..(j + 1) * quads])[..self.dim];
        variances.iter_mut().for_each(|variance| *variance *= factor);
        self.refresh(j, quads);
    }

    /// Raises variances to the floor and computes what follows from them. Returns how many were raised.
    fn settle(&mut self, j: usize, quads: usize) -> u64 {
        let variances = Quad::flat_mut(&mut self.variances[j * quads..(j + 1) * quads]);
        let mut raised = 0;
        for (variance, floor) in variances[..self.dim].iter_mut().zip(Quad::flat(&self.floor)) {
            if *variance < *floor {
                *variance = *floor;
                raised += 1;
            }
        }
        variances[self.dim..].fill(1.0);
        self.refresh(j, quads);
        if self.is_spherical { raised.min(1) } else { raised }
    }
}

/// Sums over the columns of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepSums {
    /// `Σ z`.
    pub z: f64,
    /// `Σ z/(1 + bz)`.
    pub z_left: f64,
    /// `Σ Var[λ]/E[λ]²`.
    pub variance: f64,
}

at_run_time! {
    /// Stores `1/variance`, and returns `Σ ln variance`.
    fn invert(variances: &[Quad], precisions: &mut [Quad]) -> f64 = invert_kernel
}

#[inline(always)]
fn invert_kernel<A: Arithmetic>(variances: &[Quad], precisions: &mut [Quad]) -> f64 {
    let (mut sum, one) = (A::Vector::splat(0.0), A::Vector::splat(1.0));
    for (variance, precision) in variances.iter().zip(precisions) {
        let variance = A::Vector::load(variance);
        (one / variance).store(precision);
        sum = sum + ln(variance);
    }
    sum.sum()
}

/// `x − m`, or 0 where `x` is missing.
#[inline(always)]
fn deviation<A: Arithmetic>(x: &Quad, mean: &Quad) -> A::Vector {
    let x = A::Vector::load(x);
    // A comparison with NaN is false.
    x.if_below(A::Vector::splat(f64::INFINITY), x - A::Vector::load(mean), A::Vector::splat(0.0))
}

at_run_time! {
    /// `Σ p v²`.
    fn square_sum(row: &[Quad], means: &[Quad], precisions: &[Quad]) -> f64 = square_sum_kernel
}

#[inline(always)]
fn square_sum_kernel<A: Arithmetic>(row: &[Quad], means: &[Quad], precisions: &[Quad]) -> f64 {
    let mut sums = [A::Vector::splat(0.0); 4];
    for (n, ((x, mean), precision)) in row.iter().zip(means).zip(precisions).enumerate() {
        let v = deviation::<A>(x, mean);
        sums[n % 4] = (v * A::Vector::load(precision)).mul_add(v, sums[n % 4]);
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])).sum()
}

at_run_time! {
    /// `Σ ln(1 + c p v²)`.
    fn sum_of_logs(row: &[Quad], means: &[Quad], precisions: &[Quad], c: f64) -> f64 = sum_of_logs_kernel
}

#[inline(always)]
fn sum_of_logs_kernel<A: Arithmetic>(row: &[Quad], means: &[Quad], precisions: &[Quad], c: f64) -> f64 {
    let (mut sum, c) = (A::Vector::splat(0.0), A::Vector::splat(c));
    for ((x, mean), precision) in row.iter().zip(means).zip(precisions) {
        let v = deviation::<A>(x, mean);
        sum = sum + ln_1p(c * A::Vector::load(precision) * v * v);
    }
    sum.sum()
}

at_run_time! {
    fn move_fraction(row: &[Quad], means: &mut [Quad], variances: &mut [Quad], rho: f64) = move_fraction_kernel
}

#[inline(always)]
fn move_fraction_kernel<A: Arithmetic>(row: &[Quad], means: &mut [Quad], variances: &mut [Quad], rho: f64) {
    let (rest, rho) = (A::Vector::splat(1.0 - rho), A::Vector::splat(rho));
    let (zero, infinity) = (A::Vector::splat(0.0), A::Vector::splat(f64::INFINITY));
    for ((x, mean), variance) in row.iter().zip(means).zip(variances) {
        let (old, v) = (A::Vector::load(variance), deviation::<A>(x, mean));
        rho.mul_add(v, A::Vector::load(mean)).store(mean);
        let new = rest * (rho * v).mul_add(v, old);
        let x = A::Vector::load(x);
        x.if_below(infinity, new, old).max(zero).store(variance);
    }
}

at_run_time! {
    fn project_columns(row: &[Quad], means: &mut [Quad], variances: &mut [Quad], step: &Projection, dim: usize, sums: &mut [f64; 3]) =
        project_columns_kernel
}

/// Column by column, the projection of the mixture `(1−r)·old + r·new` of two Normal-Gamma distributions.
#[inline(always)]
fn project_columns_kernel<A: Arithmetic>(
    row: &[Quad],
    means: &mut [Quad],
    variances: &mut [Quad],
    step: &Projection,
    dim: usize,
    sums: &mut [f64; 3],
) {
    let all = A::Vector::splat;
    let (one, zero, infinity) = (all(1.0), all(0.0), all(f64::INFINITY));
    let not_r = all(1.0 - step.r);
    let r = all(step.r);
    let (nu, next) = (all(step.nu_left), all(step.nu_left + step.weight));
    let (mut z_sum, mut left_sum, mut variance_sum) = (zero, zero, zero);
    for (n, ((x, mean), variance)) in row.iter().zip(means).zip(variances).enumerate() {
        let old = A::Vector::load(variance);
        let v = deviation::<A>(x, mean);
        // z = v²/Ψ after the part of the row that belongs to the component for certain, which multiplies Ψ by `grown`.
        let whole = v * v / (all(step.nu) * old);
        let missing = A::Vector::load(x).if_below(infinity, zero, one);
        let grown = all(step.missing).mul_add(missing, all(step.added).mul_add(whole, one));
        let z = all(step.left * step.left) * whole / grown;
        let p = one / all(step.b).mul_add(z, one);
        // E[λ] in units of 1/Ψ.
        let mean_of_old = not_r * nu;
        let expected = (r * next).mul_add(p, mean_of_old);
        all(step.step).mul_add(v, A::Vector::load(mean)).store(mean);
        (all(step.nu) * old * grown / expected).store(variance);
        let (off_old, off_new) = (nu - expected, next.mul_add(p, zero - expected));
        let of_old = off_old.mul_add(off_old, all(2.0) * nu);
        let of_new = off_new.mul_add(off_new, all(2.0) * next * p * p);
        let spread = not_r.mul_add(of_old, r * of_new) / (expected * expected);
        let is_column = Quad(std::array::from_fn(|lane| f64::from(u8::from(4 * n + lane < dim))));
        variance_sum = spread.mul_add(A::Vector::load(&is_column), variance_sum);
        z_sum = z_sum + z;
        left_sum = z.mul_add(p, left_sum);
    }
    *sums = [z_sum.sum(), left_sum.sum(), variance_sum.sum()];
}
