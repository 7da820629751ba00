//! The projection of the exact posterior after a row onto one Dirichlet and one Normal-Wishart per component.
//!
//! The Dirichlet counts rows: `a_j' = a_j + r_j`. Its mean is that of the exact posterior, `(a_j + r_j)/(A + 1)`. A component
//! without rows keeps its count, and the counts of shards add up.
//!
//! Component `j` has the exact marginal `(1−r)·NW(old) + r·NW(updated by x)`. In the frame where `W = I` and
//! the first axis lies along `v = x − m`, everything is diagonal. So each projection needs only `q = vᵀWv` and costs O(1),
//! and the change of `Ψ` is one scaled rank-one update.

use crate::linalg::vector::Vector;

/// The scalars of one Normal-Wishart before a row, with the row's quadratic form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scalars {
    /// The number of columns.
    pub dim: usize,
    /// `κ`.
    pub kappa: f64,
    /// `ν`.
    pub nu: f64,
    /// `q = vᵀWv`.
    pub q: f64,
    /// The component's responsibility for the row.
    pub r: f64,
}

/// The result of a projection: `κ'`, `ν'`, `m' = m + step·v` and `Ψ' = stretch·(Ψ + τ v vᵀ)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projected {
    /// `κ'`.
    pub kappa: f64,
    /// `ν'`.
    pub nu: f64,
    /// The step of the mean along `v`.
    pub step: f64,
    /// Weight of `v vᵀ`.
    pub tau: f64,
    /// Factor on the whole matrix.
    pub stretch: f64,
}

/// Eigenvalues in the whitened frame, which every projection uses.
struct Eigenvalues {
    b: f64,
    p: f64,
    /// `E[Λ]` along `v`.
    along: f64,
    /// `E[Λ]` across `v`.
    across: f64,
}

impl Scalars {
    fn frame(&self) -> Eigenvalues {
        let Scalars { kappa, nu, q, r, .. } = *self;
        let b = kappa / (kappa + 1.0);
        let p = 1.0 / (1.0 + b * q);
        Eigenvalues { b, p, along: (1.0 - r) * nu + r * (nu + 1.0) * p, across: nu + r }
    }

    /// The weight of `v vᵀ` that matches `E[Λ]`, for any `ν'`.
    fn tau(&self, frame: &Eigenvalues) -> f64 {
        self.r * (self.nu + 1.0) * frame.b * frame.p / frame.along
    }

    /// The projection in the whitened frame: `E[μ]`, `E[Λ]`, `E[(μ−m')ᵀΛ(μ−m')]` and the total variance of the
    /// whitened `Λ` are those of the exact mixture. It is equivariant under affine maps of the data, and a sum
    /// of positive terms.
    pub fn whitened(&self) -> Projected {
        let Scalars { dim, kappa, nu, q, r } = *self;
        let next = 1.0 / (kappa + 1.0);
        let p = self.frame().p;
        let (inverse, b) = (1.0 / kappa, kappa * next);
        let new = Whitened { weight: 1.0, nu, q, r, p, next, pull: next, inverse, b }.project(dim);
        Projected { kappa: new.kappa, nu: new.nu, step: new.step, tau: new.tau, stretch: new.nu * new.across }
    }

    /// The paper's printed equations, as closely as possible: `ν` from the sum of the element variances of the
    /// raw `Λ`; `κ` from its equation for `E[μ²λ]` (one column) or from
    /// `E[(μ−m)(μ−m)ᵀ] = (κ+1)/(κ(ν−d−1)) W⁻¹` (more). `None` if they have no admissible solution.
    pub fn literal(&self, precision: &RawPrecision) -> Option<Projected> {
        let Scalars { dim, kappa, nu, q, r } = *self;
        let d = dim as f64;
        let frame = self.frame();
        let nu_new = precision.degrees_of_freedom(self, &frame);
        let inverse_kappa = if dim == 1 {
            // 1/κ' = E[μ²λ] − E[μ]²E[λ], each moment the mixture's
            let mean = precision.mean + r * precision.deviation / (kappa + 1.0);
            let moved = precision.mean + precision.deviation / (kappa + 1.0);
            let w = precision.trace;
            let old = 1.0 / kappa + precision.mean.powi(2) * nu * w;
            let new = 1.0 / (kappa + 1.0) + moved.powi(2) * (nu + 1.0) * w * frame.p;
            (1.0 - r) * old + r * new - mean * mean * w * frame.along
        } else {
            // tr(W'C)(ν'−d−1)/d = (κ'+1)/κ', with C the mixture of the printed covariances and of the means
            let printed = |kappa: f64, nu: f64| (kappa + 1.0) / (kappa * (nu - d - 1.0));
            let (old, new) = (printed(kappa, nu), printed(kappa + 1.0, nu + 1.0));
            let between = r * (1.0 - r) * q / ((kappa + 1.0) * (kappa + 1.0));
            let along = (1.0 - r) * old + r * new / frame.p + between;
            let across = (1.0 - r) * old + r * new;
            let trace = (along * frame.along + (d - 1.0) * across * frame.across) / nu_new;
            trace * (nu_new - d - 1.0) / d - 1.0
        };
        let kappa_new = 1.0 / inverse_kappa;
        let admissible =
            kappa_new >= MIN_KAPPA && kappa_new.is_finite() && nu_new > d + 1.0 && nu_new.is_finite();
        admissible.then(|| Projected {
            kappa: kappa_new,
            nu: nu_new,
            step: r / (kappa + 1.0),
            tau: self.tau(&frame),
            stretch: nu_new / frame.across,
        })
    }
}

/// The inputs of [`Scalars::whitened`], for one component or for several at once.
#[derive(Clone, Copy)]
pub(in crate::learn) struct Whitened<V> {
    /// `s`, the weight of the row.
    pub weight: V,
    pub nu: V,
    pub q: V,
    pub r: V,
    /// `1/(1 + bq)`.
    pub p: V,
    /// `1/(κ+s)`.
    pub next: V,
    /// `s/(κ+s)`.
    pub pull: V,
    /// `1/κ`.
    pub inverse: V,
    /// `κs/(κ+s)`.
    pub b: V,
}

/// [`Projected`], for one component or for several at once.
pub(in crate::learn) struct NewScalars<V> {
    pub kappa: V,
    pub nu: V,
    pub step: V,
    pub tau: V,
    /// `1/(ν + rs)`, of which `ν'` times is the factor on `Ψ`.
    pub across: V,
    /// `E[Λ]` along `v`, in the frame.
    pub along: V,
}

impl<V: Vector> Whitened<V> {
    #[inline(always)]
    pub fn project(self, dim: usize) -> NewScalars<V> {
        let Whitened { weight, nu, q, r, p, next, pull, inverse, b } = self;
        let (one, d, others) = (V::splat(1.0), V::splat(dim as f64), V::splat(dim as f64 - 1.0));
        let not_r = one - r;
        let (nu_next, rows) = (nu + weight, r.mul_add(weight, nu));
        let (old, new) = (not_r * nu, r * nu_next);
        let along = new.mul_add(p, old);
        // One division for both. Small numbers are never squared.
        let both = one / (along * rows);
        let along_old = rows * both;
        let along_new = p * along_old;
        let across = along * both;
        let between = r * not_r * (q * pull * pull);
        let spread =
            between.mul_add((nu_next * not_r).mul_add(p, nu * r), d * r.mul_add(next, not_r * inverse));
        // A term without weight may be out of range. It is limited, so that zero times it is zero.
        let limit = V::splat(1e100);
        let along_old = along_old.if_below(limit, along_old, limit);
        let variance = not_r * Self::variance(nu, along_old, across, others)
            + r * Self::variance(nu_next, along_new, across, others);
        let nu_new = (V::splat(dim as f64 * (dim as f64 + 1.0)) / variance).max(V::splat(least_nu(dim)));
        NewScalars {
            kappa: (d / spread).max(V::splat(MIN_KAPPA)),
            nu: nu_new,
            step: r * pull,
            tau: new * b * along_new,
            across,
            along,
        }
    }

    /// The variance of the whitened `Λ` of one of the two terms of the mixture, about the mean of both.
    #[inline(always)]
    fn variance(n: V, along: V, across: V, others: V) -> V {
        let others_across = others * across;
        let trace = along + others_across;
        let off_along = n.mul_add(along, V::splat(-1.0));
        let off_across = n.mul_add(across, V::splat(-1.0));
        let within = trace.mul_add(trace, along.mul_add(along, others_across * across));
        let off_mean = (others * off_across).mul_add(off_across, off_along * off_along);
        n.mul_add(within, off_mean)
    }
}

/// What the printed equations need in addition to `q`: numbers of the raw precision `W` of a component, and of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawPrecision {
    /// `m` and `v`, used only with one column.
    pub mean: f64,
    /// See [`RawPrecision::mean`].
    pub deviation: f64,
    /// `tr W`.
    pub trace: f64,
    /// `Σ W_ij²`.
    pub squares: f64,
    /// `|u|²`, `u = Wv`.
    pub u_square: f64,
    /// `uᵀWu`.
    pub u_form: f64,
}

impl RawPrecision {
    /// `ν' = Σ_ij (M_ij² + M_ii M_jj) / Σ_ij Var[Λ_ij]`, `M = E[Λ]`: `Var[Λ_ij] = (M_ij² + M_ii M_jj)/ν` solved
    /// for all elements together.
    fn degrees_of_freedom(&self, scalars: &Scalars, frame: &Eigenvalues) -> f64 {
        let Scalars { nu, r, .. } = *scalars;
        // W − g u uᵀ is the updated W; both means below are of that form, times a count.
        let g = frame.b * frame.p;
        let old = nu * self.squares_and_trace(0.0);
        let new = (nu + 1.0) * self.squares_and_trace(g);
        // M = (ν + r)W − r(ν+1)g u uᵀ
        let mean_count = nu + r;
        let mean = mean_count * mean_count * self.squares_and_trace(r * (nu + 1.0) * g / mean_count);
        // E[Λ|new] − E[Λ|old] = W − (ν+1) g u uᵀ
        let apart = self.sum_of_squares((nu + 1.0) * g);
        mean / ((1.0 - r) * old + r * new + r * (1.0 - r) * apart)
    }

    /// `Σ X_ij²` of `X = W − g u uᵀ`.
    fn sum_of_squares(&self, g: f64) -> f64 {
        self.squares - 2.0 * g * self.u_form + (g * self.u_square).powi(2)
    }

    /// `Σ_ij (X_ij² + X_ii X_jj)` of `X = W − g u uᵀ`.
    fn squares_and_trace(&self, g: f64) -> f64 {
        self.sum_of_squares(g) + (self.trace - g * self.u_square).powi(2)
    }
}

/// The least `κ` of a projection. Below it the mean is unknown anyway.
pub const MIN_KAPPA: f64 = 1e-9;

/// The least `ν` of a projection. A row with two very different terms can lead to less than a Wishart distribution has.
pub fn least_nu(dim: usize) -> f64 {
    dim as f64 + 0.01
}

/// The paper's Dirichlet equations: each `a_j` follows from the mean and variance of its weight under `Σ_j r_j Dir(a + e_j)`.
/// Returns how many have no admissible solution; those become `a_j + r_j`.
pub fn project_dirichlet_literally(a: &mut [f64], r: &[f64]) -> u64 {
    let total: f64 = a.iter().sum();
    let mut unsolved = 0;
    for (a, &r) in a.iter_mut().zip(r) {
        let mean = (*a + r) / (total + 1.0);
        let variance = dirichlet_variance(*a, r, total);
        let solved = mean * (mean - mean * mean - variance) / variance;
        if solved > 0.0 && solved.is_finite() {
            *a = solved;
        } else {
            *a += r;
            unsolved += 1;
        }
    }
    unsolved
}

/// Variance of one weight under `r·Dir(a + e_j) + (1−r)·Dir(a + e_other)`: within plus between.
fn dirichlet_variance(a: f64, r: f64, total: f64) -> f64 {
    let within = (1.0 - r) * a * (total + 1.0 - a) + r * (a + 1.0) * (total - a);
    (within / (total + 2.0) + r * (1.0 - r)) / (total + 1.0).powi(2)
}
