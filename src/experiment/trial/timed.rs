//! The time that learners take.

use crate::learn::{LearnError, Stopwatch};
use crate::stats::median;

/// The result of `work`, and the median of the seconds it takes.
pub(super) fn timed<T>(
    repeat: usize,
    mut work: impl FnMut() -> Result<T, LearnError>,
) -> Result<(T, f64), LearnError> {
    let mut time = || {
        let watch = Stopwatch::start();
        let value = work()?;
        Ok((value, watch.seconds()))
    };
    let (value, first) = time()?;
    let mut seconds = vec![first];
    for _ in 1..repeat {
        seconds.push(time()?.1);
    }
    Ok((value, median(&seconds).unwrap_or(first)))
}
