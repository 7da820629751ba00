//! The learning curve of a pass: lines of a CSV file, and points of a picture.

use std::io::Write;
use std::time::Instant;

use super::plot::heading;
use crate::data::Block;
use crate::learn::{FitState, OnlineFit, Prequential};
use crate::model::{Model, OutputFile};
use crate::report::LearningCurve;

pub(super) struct Trace {
    /// The CSV file, where one was asked for.
    file: Option<OutputFile>,
    test: Option<Block>,
    /// Rows between lines of the file and scores of the test rows; none where there are neither.
    every: Option<u64>,
    begun: Instant,
    last_rows: u64,
    /// For the picture, where one was asked for.
    points: Option<CurvePoints>,
}

impl Trace {
    /// With a file, a picture, or both. The test rows are scored every so many rows, when a line is written to the file.
    pub fn new(
        mut file: Option<OutputFile>,
        test: Option<Block>,
        every: u64,
        points: Option<CurvePoints>,
    ) -> anyhow::Result<Self> {
        if let Some(file) = &mut file {
            writeln!(file, "rows,k,seconds,prequential_log_likelihood,test_log_likelihood")?;
        }
        let every = (file.is_some() || test.is_some()).then_some(every);
        Ok(Trace { file, test, every, begun: Instant::now(), last_rows: 0, points })
    }

    /// Rows until something is due, where `position` rows of the data have been learned.
    pub fn rows_until_due(&self, position: u64) -> u64 {
        let points = self.points.as_ref().map(|points| points.every);
        let until = |every: u64| every - position % every;
        self.every.into_iter().chain(points).map(until).min().unwrap_or(u64::MAX)
    }

    /// Adds what is due after `position` rows of the data.
    pub fn add_if_due(&mut self, position: u64, fit: &OnlineFit) -> anyhow::Result<()> {
        if let Some(points) = &mut self.points {
            points.add_if_due(position, fit);
        }
        match self.every {
            Some(every) if position.is_multiple_of(every) => self.add(&fit.state()?),
            _ => Ok(()),
        }
    }

    /// Adds a line for each K. Cells that have no value yet stay empty.
    fn add(&mut self, state: &FitState) -> anyhow::Result<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let score = |rows: &Block| -> Vec<f64> {
            state.candidates.iter().map(|candidate| candidate.mixture().score(rows.view())).collect()
        };
        let test = self.test.as_ref().map(score);
        if let Some(file) = &mut self.file {
            for (i, candidate) in state.candidates.iter().enumerate() {
                let cell = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let prequential = cell(candidate.prequential.mean());
                let test = cell(test.as_ref().map(|scores| scores[i]));
                writeln!(file, "{},{},{seconds:.3},{prequential},{test}", state.rows, candidate.learned.k())?;
            }
        }
        if let (Some(points), Some(scores), None) = (&mut self.points, test, &state.pending) {
            points.test.push((state.rows, scores));
        }
        self.last_rows = state.rows;
        Ok(())
    }

    /// Adds the last point and puts the file in its place. Returns the points of the picture.
    pub fn finish(mut self, state: &FitState) -> anyhow::Result<Option<CurvePoints>> {
        if self.every.is_some() && state.rows > self.last_rows {
            self.add(state)?;
        }
        if let Some(file) = self.file {
            file.commit()?;
        }
        if let Some(points) = &mut self.points {
            points.finish(state);
        }
        Ok(self.points)
    }
}

/// Rows between points of a picture at first, unless another number is given.
const FIRST_EVERY: u64 = 500;
/// Points beyond which every second one is dropped.
const MOST_POINTS: usize = 200;

/// The points of a learning curve, in numbers that do not grow with the rows.
pub(super) struct CurvePoints {
    every: u64,
    ks: Vec<usize>,
    /// Where the run began: rows seen before, and the scores of each K by then.
    first: (u64, Vec<Prequential>),
    /// Rows of the run, rows seen, and the scores of each K by then.
    points: Vec<(u64, u64, Vec<Prequential>)>,
    /// Rows seen, and the mean score of the test rows under each K.
    test: Vec<(u64, Vec<f64>)>,
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

    fn add_if_due(&mut self, position: u64, fit: &OnlineFit) {
        if !position.is_multiple_of(self.every) || !fit.has_started() {
            return;
        }
        let (ks, scores) = fit.scores().into_iter().unzip();
        self.ks = ks;
        self.push(position, fit.rows(), scores);
    }

    fn push(&mut self, position: u64, rows: u64, scores: Vec<Prequential>) {
        self.points.push((position, rows, scores));
        if self.points.len() > MOST_POINTS {
            self.every = self.every.saturating_mul(2);
            let every = self.every;
            self.points.retain(|(position, ..)| position.is_multiple_of(every));
        }
    }

    /// Adds the end of the stream, where the start was made. A last point of few rows takes the place of the one before it.
    fn finish(&mut self, state: &FitState) {
        if state.pending.is_some() {
            return;
        }
        self.ks = state.candidates.iter().map(|candidate| candidate.learned.k()).collect();
        let near = |rows: u64| state.rows - rows < self.every.div_ceil(2);
        if self.points.last().is_some_and(|(_, rows, _)| near(*rows)) {
            self.points.pop();
        }
        let scores = state.candidates.iter().map(|candidate| candidate.prequential).collect();
        self.points.push((0, state.rows, scores));
    }

    /// The curve of the K that a model keeps: the mean score of the rows between two points.
    pub fn curve(&self, model: &Model) -> LearningCurve {
        let place = self.ks.iter().position(|k| *k == model.k()).unwrap_or(0);
        let mut before = self.first.1.get(place).copied().unwrap_or_default();
        let mut prequential = Vec::with_capacity(self.points.len());
        for (_, rows, scores) in &self.points {
            let Some(&now) = scores.get(place) else { continue };
            if now.rows > before.rows {
                let sum = now.log_likelihood - before.log_likelihood;
                prequential.push((*rows, sum / (now.rows - before.rows) as f64));
            }
            before = now;
        }
        let test = self.test.iter().filter_map(|(rows, scores)| Some((*rows, *scores.get(place)?)));
        let revisions = model.structure.iter().flat_map(|structure| structure.revisions());
        let changes = revisions.filter(|revision| revision.kept && revision.rows > self.first.0);
        LearningCurve {
            heading: heading(model),
            rows_per_point: self.every,
            prequential,
            test: test.collect(),
            revisions: changes.map(|revision| revision.rows).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::FitSettings;
    use crate::model::ColumnNames;

    /// 600 rows in two clusters, of which the second appears after half of them.
    fn rows() -> ndarray::Array2<f64> {
        ndarray::Array2::from_shape_fn((600, 1), |(i, _)| {
            (i as f64 * 0.7).sin() + if i < 300 { 0.0 } else { 20.0 }
        })
    }

    fn learned(points: &mut CurvePoints, fit: &mut OnlineFit, from: usize) -> LearningCurve {
        for i in from..600 {
            fit.observe(rows().slice(ndarray::s![i..i + 1, ..])).unwrap();
            points.add_if_due((i - from + 1) as u64, fit);
        }
        let state = fit.finish(&std::sync::atomic::AtomicBool::new(false)).unwrap();
        points.finish(&state);
        let columns = ColumnNames { names: vec!["x".into()], named: true };
        let settings = FitSettings { init_rows: Some(100), ..FitSettings::obmm([2]) };
        points.curve(&Model::from_fit(&settings, state, &columns))
    }

    #[test]
    fn a_curve_has_the_mean_score_of_the_rows_between_its_points() {
        let settings = FitSettings { init_rows: Some(100), ..FitSettings::obmm([2]) };
        let mut fit = OnlineFit::new(1, settings).unwrap();
        let mut points = CurvePoints::new(&fit, Some(50));
        let curve = learned(&mut points, &mut fit, 0);
        // The first point is where the start is complete; no row has been scored by then.
        let expected: Vec<u64> = (3..=12).map(|i| 50 * i).collect();
        assert_eq!(curve.prequential.iter().map(|(rows, _)| *rows).collect::<Vec<_>>(), expected);
        let score = |rows: u64| curve.prequential.iter().find(|point| point.0 == rows).unwrap().1;
        assert!(score(350) < score(300) - 5.0 && score(600) > score(350) + 5.0, "{curve:?}");
        let total = fit.scores()[0].1;
        let mean = curve.prequential.iter().map(|(_, score)| score).sum::<f64>() / 10.0;
        // Each batch holds back a few validation rows, so that the batches are not quite of one size.
        assert!((mean - total.mean().unwrap()).abs() < 0.5, "{mean} {total:?}");
        let mut points = CurvePoints::new(&OnlineFit::new(1, FitSettings::obmm([2])).unwrap(), Some(70));
        points.points = vec![(490, 490, vec![]), (560, 560, vec![]), (580, 580, vec![])];
        points.finish(&fit.state().unwrap());
        assert_eq!(points.points.iter().map(|point| point.1).collect::<Vec<_>>(), [490, 560, 600]);
        assert!(curve.revisions.iter().all(|rows| (100..=600).contains(rows)), "{curve:?}");
    }

    #[test]
    fn a_resumed_run_begins_its_curve_where_it_resumes() {
        let settings = FitSettings { init_rows: Some(100), ..FitSettings::obmm([2]) };
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
    fn the_number_of_points_does_not_grow_with_the_rows() {
        let fit = OnlineFit::new(1, FitSettings::obmm([2])).unwrap();
        let mut points = CurvePoints::new(&fit, None);
        let mut position = 0;
        while position < 10_000_000 {
            position += points.every - position % points.every;
            points.push(position, position, vec![Prequential::default()]);
        }
        assert!((100..=MOST_POINTS).contains(&points.points.len()), "{}", points.points.len());
        let even = points.points.windows(2).all(|pair| pair[1].1 - pair[0].1 == points.every);
        assert!(even && points.points[0].1 == points.every);
    }
}
