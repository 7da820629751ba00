use super::Factor;

/// The matrix of one mixture component while it is being learned, with the scratch its updates need.
///
/// A learner asks for the quadratic form of a deviation and then, if it likes, adds that same deviation:
/// the second step reuses what the first computed. Which form the matrix is kept in is nobody else's business.
#[derive(Debug, Clone)]
pub struct ComponentMatrix {
    factor: Factor,
    whitened: Vec<f64>,
    work: Vec<f64>,
}

impl ComponentMatrix {
    /// Starts from this matrix.
    pub fn new(factor: Factor) -> Self {
        let dim = factor.dim();
        ComponentMatrix { factor, whitened: vec![0.0; dim], work: vec![0.0; dim] }
    }

    /// `vᵀΨ⁻¹v`.
    pub fn quadratic_form(&mut self, v: &[f64]) -> f64 {
        self.factor.quadratic_form(v, &mut self.whitened)
    }

    /// `Ψ ← Ψ + τ v vᵀ`, `τ ≥ 0`, with the `v` of the last [`ComponentMatrix::quadratic_form`].
    pub fn rank_one(&mut self, tau: f64) {
        self.factor.rank_one(tau, &self.whitened, &mut self.work);
    }

    /// `Ψ ← cΨ`.
    pub fn scale_by(&mut self, c: f64) {
        self.factor.scale_by(c);
    }

    /// `ln |Ψ|`.
    pub fn log_det(&self) -> f64 {
        self.factor.log_det()
    }

    /// See [`Factor::raise_pivots`].
    pub fn raise_pivots(&mut self, floor: &[f64], times: f64) -> usize {
        self.factor.raise_pivots(floor, times)
    }

    /// The matrix as it is now.
    pub fn factor(&self) -> &Factor {
        &self.factor
    }
}
