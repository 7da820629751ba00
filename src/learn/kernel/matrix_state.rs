use serde::{Deserialize, Serialize};

use crate::learn::kernel::component::FormSchedule;
use crate::learn::kernel::precision::Precision;
use crate::learn::rules::constrained::SharedState;
use crate::linalg::Factor;

/// The state of a component's matrix in addition to its [`Factor`]: its form, and when the form is chosen again.
///
/// With it a resumed learner computes the same bits; without it, the same results up to rounding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "MatrixRecord")]
pub struct MatrixState {
    #[serde(flatten)]
    schedule: FormSchedule,
    /// `c` of `Ψ = c·P` or `Ψ = c·LLᵀ`.
    scale: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<PrecisionRecord>,
    /// The matrix that all components share, if covariances are tied. Then it is the state of all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<Box<SharedState>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixRecord {
    updates_left: u32,
    patience: u32,
    margin: f64,
    scale: f64,
    precision: Option<PrecisionRecord>,
    shared: Option<Box<SharedState>>,
}

/// The precision form: `P` and `M` as rows of their lower triangles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrecisionRecord {
    log_scale: f64,
    log_det: f64,
    log_growth: f64,
    matrix: Vec<Vec<f64>>,
    inverse: Vec<Vec<f64>>,
}

/// Why numbers are not a [`MatrixState`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the saved state of a component's matrix is invalid: {0}")]
pub struct MatrixStateError(&'static str);

impl TryFrom<MatrixRecord> for MatrixState {
    type Error = MatrixStateError;

    fn try_from(record: MatrixRecord) -> Result<Self, MatrixStateError> {
        let MatrixRecord { updates_left, patience, margin, scale, precision, shared } = record;
        if let Some(precision) = &precision {
            precision.check()?;
            if updates_left == 0 {
                return Err(MatrixStateError("no updates are left before the next rebuild"));
            }
        }
        if !(margin >= 0.0 && margin.is_finite()) {
            return Err(MatrixStateError("its margin is negative or not finite"));
        }
        if !positive(scale) {
            return Err(MatrixStateError("its scale is not a positive number"));
        }
        Ok(MatrixState {
            schedule: FormSchedule { updates_left, patience, margin },
            scale,
            precision,
            shared,
        })
    }
}

fn positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

impl PrecisionRecord {
    fn check(&self) -> Result<(), MatrixStateError> {
        if ![self.log_scale, self.log_det, self.log_growth].iter().all(|value| value.is_finite()) {
            return Err(MatrixStateError("a logarithm is not finite"));
        }
        for triangle in [&self.matrix, &self.inverse] {
            if triangle.len() != self.matrix.len() {
                return Err(MatrixStateError("its matrix and its inverse differ in size"));
            }
            for (i, row) in triangle.iter().enumerate() {
                if row.len() != i + 1 {
                    return Err(MatrixStateError("its rows do not form a lower triangle"));
                }
                if !row.iter().all(|value| value.is_finite()) || !positive(row[i]) {
                    return Err(MatrixStateError(
                        "an element is not finite, or one on the diagonal is not positive",
                    ));
                }
            }
        }
        Ok(())
    }
}

impl MatrixState {
    pub(in crate::learn) fn new(
        schedule: FormSchedule,
        factor_scale: f64,
        precision: Option<&Precision>,
    ) -> Self {
        let record = |precision: &Precision| {
            let current = precision.with_pending();
            let rows = |element: &dyn Fn(usize, usize) -> f64| {
                (0..current.dim()).map(|i| (0..=i).map(|j| element(i, j)).collect()).collect()
            };
            PrecisionRecord {
                log_scale: current.log_scale,
                log_det: current.log_det,
                log_growth: current.log_growth,
                matrix: rows(&|i, j| current.matrix(i, j)),
                inverse: rows(&|i, j| current.inverse(i, j)),
            }
        };
        let scale = precision.map_or(factor_scale, |precision| precision.scale);
        MatrixState { schedule, scale, precision: precision.map(record), shared: None }
    }

    /// The state of a matrix that all components share.
    pub(in crate::learn) fn of_shared(state: SharedState) -> Self {
        let schedule = FormSchedule { updates_left: 0, patience: 0, margin: 0.0 };
        MatrixState { schedule, scale: 1.0, precision: None, shared: Some(Box::new(state)) }
    }

    pub(in crate::learn) fn shared(&self) -> Option<&SharedState> {
        self.shared.as_deref()
    }

    pub(in crate::learn) fn schedule(&self) -> FormSchedule {
        self.schedule
    }

    pub(in crate::learn) fn scale(&self) -> f64 {
        self.scale
    }

    pub(in crate::learn) fn precision(&self) -> Option<Box<Precision>> {
        let record = self.precision.as_ref()?;
        let mut precision = Precision::new(record.matrix.len(), self.scale, |i, j| record.matrix[i][j]);
        precision.set_inverse(|i, j| record.inverse[i][j]);
        precision.log_scale = record.log_scale;
        precision.log_det = record.log_det;
        precision.log_growth = record.log_growth;
        Some(Box::new(precision))
    }

    /// Whether this can be the state of that matrix: it has the same size and the same diagonal.
    pub(crate) fn belongs_to(&self, factor: &Factor) -> bool {
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-6;
        let Some(record) = &self.precision else { return near(self.scale, factor.scale()) };
        let close = |(row, expected): (&Vec<f64>, f64)| near(self.scale * row[row.len() - 1], expected);
        record.matrix.len() == factor.dim() && record.matrix.iter().zip(factor.diagonal()).all(close)
    }
}
