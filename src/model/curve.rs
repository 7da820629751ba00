//! Points of a learning curve, as a checkpoint keeps them.

use serde::{Deserialize, Serialize};

/// The scores of one K after some rows. In a file it is a list of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Listed", into = "Listed")]
pub struct CurvePoint {
    /// Rows seen.
    pub rows: u64,
    /// Components.
    pub k: usize,
    /// Seconds since the run began.
    pub seconds: f64,
    /// Prequential score, if rows have been scored.
    pub prequential: Option<f64>,
    /// Mean log-likelihood of the test rows, if there are any.
    pub test: Option<f64>,
}

type Listed = (u64, usize, f64, Option<f64>, Option<f64>);

impl From<Listed> for CurvePoint {
    fn from((rows, k, seconds, prequential, test): Listed) -> Self {
        CurvePoint { rows, k, seconds, prequential, test }
    }
}

impl From<CurvePoint> for Listed {
    fn from(point: CurvePoint) -> Self {
        (point.rows, point.k, point.seconds, point.prequential, point.test)
    }
}
