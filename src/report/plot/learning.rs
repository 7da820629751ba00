//! The learning curve of one fit.

use super::PictureFormat;
use super::canvas;
use super::curves::{CurveLine, Curves, Revisions};
use super::style::{BLUE, Mark, ORANGE, VERMILION};
use crate::report::ReportError;
use crate::text::number::thousands;

/// The learning curve of one fit: prequential scores and scores of test rows against rows seen, with a vertical line at
/// each revision of the structure that changed the mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct LearningCurve {
    /// The heading above it.
    pub heading: String,
    /// Rows per point of the prequential score; the last point may have fewer.
    pub rows_per_point: u64,
    /// Rows seen, and the mean prequential score of the rows since the previous point.
    pub prequential: Vec<(u64, f64)>,
    /// Rows seen, and the mean score of the test rows.
    pub test: Vec<(u64, f64)>,
    /// Rows seen at the revisions that changed the mixture.
    pub revisions: Vec<u64>,
}

impl LearningCurve {
    /// The bytes of a file of this format; `None` if there is no point to draw.
    pub fn draw(&self, format: PictureFormat) -> Result<Option<Vec<u8>>, ReportError> {
        let failed = |reason: String| ReportError::Drawing { name: self.heading.clone(), reason };
        self.figure().map(|figure| canvas::file(&figure, format).map_err(failed)).transpose()
    }

    fn figure(&self) -> Option<Curves> {
        let line = |name: &str, note: String, (colour, mark), points: &[(u64, f64)]| CurveLine {
            name: name.to_string(),
            note,
            colour,
            mark,
            start_rows: None,
            points: points.iter().map(|&(rows, score)| (rows as f64, score)).collect(),
        };
        let note = format!("mean of each {} rows", thousands(self.rows_per_point));
        let mut lines = vec![
            line("prequential", note, (BLUE, Mark::Dot), &self.prequential),
            line("test rows", String::new(), (VERMILION, Mark::Up), &self.test),
        ];
        for line in &mut lines {
            line.points.retain(|(_, score)| score.is_finite());
        }
        lines.retain(|line| !line.points.is_empty());
        let rows: Vec<f64> = self.revisions.iter().map(|&rows| rows as f64).collect();
        let note = "that changed the mixture".to_string();
        let mut revisions = vec![Revisions { note, colour: ORANGE, rows }];
        revisions.retain(|revisions| !revisions.rows.is_empty());
        let y_title = "log-likelihood (nats per row)".to_string();
        Curves::of_lines(self.heading.clone(), y_title, lines, Vec::new(), revisions)
    }
}
