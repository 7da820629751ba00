//! The learning curve of a pass, as CSV.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::data::Block;
use crate::learn::FitState;
use crate::model::{CurvePoint, OutputFile};

const HEADER: &str = "rows,k,seconds,prequential_log_likelihood,test_log_likelihood";

pub(super) struct Trace {
    file: OutputFile,
    test: Option<Block>,
    begun: Instant,
    /// Seconds of the runs before this one.
    seconds_before: f64,
    points: Vec<CurvePoint>,
}

/// The last point of the curve of a model, by which a file is known to be its curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CurveEnd {
    rows: u64,
    /// Each K and its prequential score.
    scores: Vec<(usize, Option<f64>)>,
}

impl CurveEnd {
    pub fn of(state: &FitState) -> Self {
        let score = |i: usize| {
            let candidate = &state.candidates[i];
            (candidate.learned.k(), finite(candidate.prequential.mean()))
        };
        CurveEnd { rows: state.rows, scores: (0..state.candidates.len()).map(score).collect() }
    }

    /// The points of the curve in a file, up to this one; `None` if the file does not have this one.
    pub fn read(&self, path: &Path) -> Option<Vec<CurvePoint>> {
        let text = std::fs::read_to_string(path).ok()?;
        let lines = text.strip_prefix(HEADER)?.lines().skip(1);
        let points: Vec<CurvePoint> = lines.map(parse).collect::<Option<_>>()?;
        let points: Vec<CurvePoint> = points.into_iter().filter(|point| point.rows <= self.rows).collect();
        let has = |(k, score): &(usize, Option<f64>)| {
            points.iter().any(|p| (p.rows, p.k, p.prequential) == (self.rows, *k, *score))
        };
        self.scores.iter().all(has).then_some(points)
    }
}

fn parse(line: &str) -> Option<CurvePoint> {
    let cells: Vec<&str> = line.split(',').collect();
    let [rows, k, seconds, prequential, test] = cells.as_slice() else { return None };
    let optional = |cell: &str| if cell.is_empty() { Some(None) } else { Some(Some(cell.parse().ok()?)) };
    Some(CurvePoint {
        rows: rows.parse().ok()?,
        k: k.parse().ok()?,
        seconds: seconds.parse().ok()?,
        prequential: optional(prequential)?,
        test: optional(test)?,
    })
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

impl Trace {
    /// Goes on from the points of earlier runs, of which there may be none.
    pub fn new(file: OutputFile, test: Option<Block>, points: Vec<CurvePoint>) -> Self {
        let seconds_before = points.last().map_or(0.0, |point| point.seconds);
        Trace { file, test, begun: Instant::now(), seconds_before, points }
    }

    /// All points so far.
    pub fn points(&self) -> &[CurvePoint] {
        &self.points
    }

    /// Adds a point for each K.
    pub fn add(&mut self, state: &FitState) -> anyhow::Result<()> {
        let seconds = self.seconds_before + self.begun.elapsed().as_secs_f64();
        for candidate in &state.candidates {
            let test = self.test.as_ref().map(|rows| candidate.mixture().score(rows.view()));
            self.points.push(CurvePoint {
                rows: state.rows,
                k: candidate.learned.k(),
                seconds,
                prequential: finite(candidate.prequential.mean()),
                test: finite(test),
            });
        }
        Ok(())
    }

    /// Adds the last point and writes the file. Cells without a value stay empty.
    pub fn finish(mut self, state: &FitState) -> anyhow::Result<()> {
        if self.points.last().is_none_or(|last| state.rows > last.rows) {
            self.add(state)?;
        }
        writeln!(self.file, "{HEADER}")?;
        let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        for CurvePoint { rows, k, seconds, prequential, test } in &self.points {
            writeln!(self.file, "{rows},{k},{seconds:.3},{},{}", cell(*prequential), cell(*test))?;
        }
        Ok(self.file.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_curve_of_a_model_if_it_has_its_last_point() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curve.csv");
        let end = |rows, score| CurveEnd { rows, scores: vec![(2, Some(score)), (3, None)] };
        let body = "1000,2,0.100,-1.5,\n1000,3,0.100,,-2.5\n2000,2,0.200,-1.25,\n2000,3,0.200,,-2.5\n";
        std::fs::write(&path, format!("{HEADER}\n{body}")).unwrap();
        let points = end(2000, -1.25).read(&path).unwrap();
        assert_eq!((points.len(), points[0].test, points[1].test), (4, None, Some(-2.5)));
        assert_eq!(end(1000, -1.5).read(&path).unwrap(), points[..2]);
        assert_eq!(end(2000, -1.5).read(&path), None);
        assert_eq!(end(3000, -1.25).read(&path), None);
        std::fs::write(&path, "rows,k\n1,2\n").unwrap();
        assert_eq!(end(1, 2.0).read(&path), None);
        assert_eq!(end(1, 2.0).read(folder.path()), None);
    }
}
