//! The learning curve of a pass: a CSV file, and the points of a picture.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context;

use super::files::create_output;
use super::plot::heading;
use super::usage;
use crate::data::Block;
use crate::files::OutputFile;
use crate::learn::{OnlineFit, Prequential};
use crate::model::{CurvePoint, Model};
use crate::report::LearningCurve;

const HEADER: &str = "rows,k,seconds,prequential_log_likelihood,test_log_likelihood";

pub(super) struct Trace {
    /// The CSV file, if there is one.
    file: Option<TraceFile>,
    test: Option<Block>,
    /// When points of the file and scores of the test rows are due.
    due: Due,
    begun: Instant,
    /// Seconds of the runs before this one.
    seconds_before: f64,
    points: Vec<CurvePoint>,
    /// The points of the picture, if there is one.
    picture: Option<CurvePoints>,
}

/// When points of a curve are due: every `every` rows. A curve that begins with the first row has more points before that, after
/// 1, 2, 5, 10, 20, 50 rows and so on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    pub every: u64,
    pub from_first_row: bool,
}

impl Due {
    fn is_now(self, rows: u64) -> bool {
        rows > 0 && self.rows_until(rows - 1) == 1
    }

    /// Rows until a point is due, after `rows` rows.
    fn rows_until(self, rows: u64) -> u64 {
        let mut next = self.every - rows % self.every;
        if self.from_first_row && rows < self.every {
            let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
            let early = powers.flat_map(|power| [1, 2, 5].map(|times| power.saturating_mul(times)));
            next = early.take_while(|at| *at < self.every).find(|at| *at > rows).map_or(next, |at| at - rows);
        }
        next
    }
}

/// The file of a learning curve. Points are added to it as the pass makes them, so that it survives a kill. The end of the
/// pass replaces it as a whole.
pub(super) struct TraceFile {
    path: PathBuf,
    whole: OutputFile,
    /// The file while the pass runs, after the first point.
    growing: Option<File>,
}

impl TraceFile {
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz")) {
            return Err(usage("--trace grows line by line, so it cannot be compressed: leave out .gz"));
        }
        Ok(TraceFile { path: path.to_path_buf(), whole: create_output(path)?, growing: None })
    }

    /// Adds the latest points, which are the last of `points`. A pipe or device gets all points at the end, because what it
    /// has cannot be replaced.
    fn add(&mut self, points: &[CurvePoint], latest: usize) -> anyhow::Result<()> {
        if self.path.exists() && !self.path.is_file() {
            return Ok(());
        }
        if let Some(file) = &mut self.growing {
            // One write for each point, so that a kill leaves whole lines.
            let written = file.write_all(lines(&points[points.len() - latest..]).as_bytes());
            return written.with_context(|| format!("cannot write '{}'", self.path.display()));
        }
        let mut file = create_output(&self.path)?;
        write!(file, "{HEADER}\n{}", lines(points))?;
        file.commit()?;
        let opened = OpenOptions::new().append(true).open(&self.path);
        self.growing = Some(opened.with_context(|| format!("cannot write '{}'", self.path.display()))?);
        Ok(())
    }

    /// Replaces the file with the whole curve.
    fn finish(mut self, points: &[CurvePoint]) -> anyhow::Result<()> {
        write!(self.whole, "{HEADER}\n{}", lines(points))?;
        Ok(self.whole.commit()?)
    }
}

/// The lines of points. Cells without a value stay empty.
fn lines(points: &[CurvePoint]) -> String {
    let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let mut text = String::new();
    for CurvePoint { rows, k, seconds, prequential, test } in points {
        let _ = writeln!(text, "{rows},{k},{seconds:.3},{},{}", cell(*prequential), cell(*test));
    }
    text
}

/// The last point of a model's curve, which identifies the file with the curve.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CurveEnd {
    rows: u64,
    /// Each K and its prequential score.
    scores: Vec<(usize, Option<f64>)>,
}

impl CurveEnd {
    pub fn of(model: &Model) -> Self {
        let rated = model.choice().candidates;
        CurveEnd {
            rows: model.rows(),
            scores: rated.into_iter().map(|rated| (rated.k, finite(rated.score))).collect(),
        }
    }

    /// The points of the curve in a file up to this point; `None` if the file does not have this point.
    pub fn read(&self, path: &Path) -> Option<Vec<CurvePoint>> {
        let text = std::fs::read_to_string(path).ok()?;
        // A run that was killed may have left a part of a line.
        let text = &text[..=text.rfind('\n')?];
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
    /// With a file, a picture, or both.
    pub fn new(file: Option<TraceFile>, picture: Option<CurvePoints>, test: Option<Block>, due: Due) -> Self {
        let (seconds_before, points) = (0.0, Vec::new());
        Trace { file, test, due, begun: Instant::now(), seconds_before, points, picture }
    }

    /// Resumes from the points of earlier runs, of which there may be none, with `fit` as it is now. The last point of a
    /// run is that of the mixture at the end of the stream; a resumed stream has the mixture so far there.
    pub fn resume(mut self, points: Vec<CurvePoint>, fit: &OnlineFit) -> anyhow::Result<Self> {
        self.seconds_before = points.last().map_or(0.0, |point| point.seconds);
        self.points = points;
        let rows = fit.rows();
        if self.due.is_now(rows) && self.points.last().is_some_and(|last| last.rows == rows) {
            self.replace(fit)?;
        }
        Ok(self)
    }

    /// The points of the file so far.
    pub fn points(&self) -> &[CurvePoint] {
        &self.points
    }

    /// When points of the file and scores of the test rows are due; `None` if there are neither.
    fn due(&self) -> Option<Due> {
        (self.file.is_some() || self.test.is_some()).then_some(self.due)
    }

    /// The most rows between two points.
    pub fn longest(&self) -> u64 {
        let picture = self.picture.as_ref().map(|picture| picture.every);
        self.due().map(|due| due.every).into_iter().chain(picture).min().unwrap_or(u64::MAX)
    }

    /// Rows until a point is due, after `rows` rows in all.
    pub fn rows_until_due(&self, rows: u64) -> u64 {
        let picture = self.picture.as_ref().map(|picture| picture.every);
        let picture = picture.map(|every| every - rows % every);
        self.due().map(|due| due.rows_until(rows)).into_iter().chain(picture).min().unwrap_or(u64::MAX)
    }

    /// Adds the points that are due.
    pub fn add_if_due(&mut self, fit: &OnlineFit) -> anyhow::Result<()> {
        if let Some(picture) = &mut self.picture {
            picture.add_if_due(fit);
        }
        if self.due().is_some_and(|due| due.is_now(fit.rows())) {
            let latest = self.replace(fit)?;
            if let Some(file) = &mut self.file {
                file.add(&self.points, latest)?;
            }
        }
        Ok(())
    }

    /// Adds a point for each K, and returns how many. It replaces those after the same number of rows.
    fn replace(&mut self, fit: &OnlineFit) -> anyhow::Result<usize> {
        let rows = fit.rows();
        self.points.retain(|point| point.rows != rows);
        let before = self.points.len();
        if let Some(picture) = &mut self.picture {
            picture.test.retain(|(at, ..)| *at != rows);
        }
        let noise = fit.noise();
        let noisy = |rows: &Block| noise.as_ref().map(|noise| noise.noisy(rows.view(), 0));
        let noisy = self.test.as_ref().and_then(noisy);
        let test = self.test.as_ref().map(|rows| noisy.as_ref().map_or(rows.view(), |noisy| noisy.view()));
        let seconds = self.seconds_before + self.begun.elapsed().as_secs_f64();
        for (k, score, mixture) in fit.mixtures()? {
            let test = finite(test.map(|rows| mixture.mean_log_density(rows)));
            if self.file.is_some() {
                let prequential = finite(score.mean());
                self.points.push(CurvePoint { rows, k, seconds, prequential, test });
            }
            let is_drawn = fit.has_started() || self.due.from_first_row;
            if let (Some(picture), Some(test), true) = (&mut self.picture, test, is_drawn) {
                picture.test.push((rows, k, test));
            }
        }
        Ok(self.points.len() - before)
    }

    /// Adds the last point, of the finished pass, and completes the file. Returns the points of the picture.
    pub fn finish(mut self, fit: &OnlineFit) -> anyhow::Result<Option<CurvePoints>> {
        if self.due().is_some() {
            self.replace(fit)?;
        }
        if let Some(file) = self.file {
            file.finish(&self.points)?;
        }
        if let Some(picture) = &mut self.picture {
            picture.finish(fit);
        }
        Ok(self.picture)
    }
}

/// Rows between the first points of a picture, unless another number is given.
const FIRST_EVERY: u64 = 500;
/// With more points than this, every second one is dropped.
const MAX_POINTS: usize = 200;

/// The points of a picture. Their number is bounded.
pub(super) struct CurvePoints {
    every: u64,
    ks: Vec<usize>,
    /// Rows seen before the run, and the scores of each K then.
    first: (u64, Vec<Prequential>),
    /// Rows seen, and the scores of each K then.
    points: Vec<(u64, Vec<Prequential>)>,
    /// Rows seen, K, and the mean score of the test rows.
    test: Vec<(u64, usize, f64)>,
}

impl CurvePoints {
    /// For a run that begins or resumes with `fit`.
    pub fn new(fit: &OnlineFit, every: Option<u64>) -> Self {
        let scores = fit.scores().into_iter().map(|(_, score)| score).collect();
        CurvePoints {
            every: every.unwrap_or(FIRST_EVERY),
            ks: Vec::new(),
            first: (fit.rows(), scores),
            points: Vec::new(),
            test: Vec::new(),
        }
    }

    fn add_if_due(&mut self, fit: &OnlineFit) {
        if !fit.rows().is_multiple_of(self.every) || !fit.has_started() {
            return;
        }
        let scores = fit.scores().into_iter().map(|(_, score)| score).collect();
        self.push(fit.rows(), scores);
    }

    /// Adds a point, unless few rows were scored since the last point.
    fn push(&mut self, rows: u64, scores: Vec<Prequential>) {
        if self.scored(&scores) < self.every.div_ceil(2) {
            return;
        }
        self.points.push((rows, scores));
        if self.points.len() > MAX_POINTS {
            self.every = self.every.saturating_mul(2);
            self.points.retain(|(rows, _)| rows.is_multiple_of(self.every));
        }
    }

    /// Rows scored since the last point.
    fn scored(&self, scores: &[Prequential]) -> u64 {
        let before = self.points.last().map_or(&self.first.1, |(_, scores)| scores);
        let rows = |scores: &[Prequential]| scores.first().map_or(0, |score| score.rows);
        rows(scores).saturating_sub(rows(before))
    }

    /// Adds the end of the stream, if the start was made. It replaces the last point if few rows were scored since then.
    fn finish(&mut self, fit: &OnlineFit) {
        if !fit.has_started() {
            return;
        }
        let scores: Vec<Prequential>;
        (self.ks, scores) = fit.scores().into_iter().unzip();
        if self.scored(&scores) < self.every.div_ceil(2) {
            self.points.pop();
        }
        self.points.push((fit.rows(), scores));
    }

    /// The curve of the model's best K: the mean score of the rows between two points.
    pub fn curve(&self, model: &Model) -> LearningCurve {
        let place = self.ks.iter().position(|k| *k == model.k()).unwrap_or(0);
        let mut before = self.first.1.get(place).copied().unwrap_or_default();
        let mut prequential = Vec::with_capacity(self.points.len());
        for (rows, scores) in &self.points {
            let Some(&now) = scores.get(place) else { continue };
            if now.rows > before.rows {
                let sum = now.log_likelihood - before.log_likelihood;
                prequential.push((*rows, sum / (now.rows - before.rows) as f64));
            }
            before = now;
        }
        let test = self.test.iter().filter(|(_, k, _)| *k == model.k());
        let changes = model.revisions().filter(|revision| revision.kept && revision.rows > self.first.0);
        LearningCurve {
            heading: heading(model),
            rows_per_point: self.every,
            prequential,
            test: test.map(|&(rows, _, score)| (rows, score)).collect(),
            revisions: changes.map(|revision| revision.rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::FitSettings;

    /// 600 rows in two clusters, of which the second appears after half of them.
    fn rows() -> ndarray::Array2<f64> {
        ndarray::Array2::from_shape_fn((600, 1), |(i, _)| {
            (i as f64 * 0.7).sin() + if i < 300 { 0.0 } else { 20.0 }
        })
    }

    fn learned(points: &mut CurvePoints, fit: &mut OnlineFit, from: usize) -> LearningCurve {
        for i in from..600 {
            fit.observe(rows().slice(ndarray::s![i..i + 1, ..])).unwrap();
            points.add_if_due(fit);
        }
        fit.finish(&std::sync::atomic::AtomicBool::new(false)).unwrap();
        points.finish(fit);
        points.curve(&fit.to_model().unwrap())
    }

    #[test]
    fn a_curve_has_the_mean_score_of_the_rows_between_its_points() {
        let settings = FitSettings::obmm([2]).start_rows(100);
        let mut fit = OnlineFit::new(1, settings).unwrap();
        let mut points = CurvePoints::new(&fit, Some(50));
        let curve = learned(&mut points, &mut fit, 0);
        // The start is complete at the first multiple of 50, before any row is scored.
        let expected: Vec<u64> = (3..=12).map(|i| 50 * i).collect();
        assert_eq!(curve.prequential.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), expected);
        let score = |rows: u64| curve.prequential.iter().find(|point| point.0 == rows).unwrap().1;
        assert!(score(350) < score(300) - 5.0 && score(600) > score(350) + 5.0, "{curve:?}");
        let total = fit.scores()[0].1;
        let mean = curve.prequential.iter().map(|(_, score)| score).sum::<f64>() / 10.0;
        // Each batch holds back a few validation rows, so the numbers of scored rows differ a little.
        assert!((mean - total.mean().unwrap()).abs() < 0.5, "{mean} {total:?}");
        assert!(curve.revisions.iter().all(|rows| (100..=600).contains(rows)), "{curve:?}");
    }

    #[test]
    fn a_resumed_run_begins_its_curve_where_it_resumes() {
        let settings = FitSettings::obmm([2]).start_rows(100);
        let mut fit = OnlineFit::new(1, settings).unwrap();
        fit.observe(rows().slice(ndarray::s![..400, ..])).unwrap();
        let whole = fit.scores()[0].1;
        let mut points = CurvePoints::new(&fit, Some(100));
        let curve = learned(&mut points, &mut fit, 400);
        assert_eq!(curve.prequential.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), [500, 600]);
        assert!(curve.revisions.iter().all(|rows| *rows > 400), "{curve:?}");
        let after = fit.scores()[0].1;
        let mean = (after.log_likelihood - whole.log_likelihood) / (after.rows - whole.rows) as f64;
        let (one, two) = (curve.prequential[0].1, curve.prequential[1].1);
        assert!(one.min(two) <= mean && mean <= one.max(two), "{mean} {curve:?}");
    }

    #[test]
    fn points_are_due_at_multiples_and_early_if_the_curve_begins_with_the_first_row() {
        let due_until = |due: Due, last: u64| {
            let stepwise: Vec<u64> =
                std::iter::successors(Some(0), |rows| Some(rows + due.rows_until(*rows)))
                    .skip(1)
                    .take_while(|rows| *rows <= last)
                    .collect();
            assert_eq!(stepwise, (1..=last).filter(|rows| due.is_now(*rows)).collect::<Vec<_>>());
            stepwise
        };
        assert_eq!(due_until(Due { every: 30, from_first_row: false }, 90), [30, 60, 90]);
        assert_eq!(due_until(Due { every: 30, from_first_row: true }, 90), [1, 2, 5, 10, 20, 30, 60, 90]);
        assert_eq!(due_until(Due { every: 1, from_first_row: true }, 3), [1, 2, 3]);
        assert_eq!(Due { every: u64::MAX, from_first_row: true }.rows_until(6_000_000), 4_000_000);
    }

    #[test]
    fn the_number_of_points_does_not_grow_with_the_rows() {
        let fit = OnlineFit::new(1, FitSettings::obmm([2])).unwrap();
        let mut points = CurvePoints::new(&fit, None);
        let mut rows = 0;
        while rows < 10_000_000 {
            rows += points.every - rows % points.every;
            points.push(rows, vec![Prequential { rows, ..Prequential::default() }]);
        }
        assert!((100..=MAX_POINTS).contains(&points.points.len()), "{}", points.points.len());
        let even = points.points.windows(2).all(|pair| pair[1].0 - pair[0].0 == points.every);
        assert!(even && points.points[0].0 == points.every);
        // A point of few rows is left out.
        let before = points.points.len();
        points.push(rows + points.every, vec![Prequential { rows: rows + 1, ..Prequential::default() }]);
        assert_eq!(points.points.len(), before);
    }

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
