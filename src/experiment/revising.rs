//! Passes with revisions over rows in memory: [`fit`](crate::learn::fit) in the steps that a cell needs.

use std::sync::atomic::AtomicBool;

use super::trial::observe;
use crate::dist::GaussianMixture;
use crate::learn::{
    Algorithm, Components, FitSettings, Health, LearnError, OnlineFit, Prequential, Progress, Stopwatch,
    WeightedRows, default_start_rows,
};
use crate::linalg::CovarianceType;

/// The settings of passes that differ in algorithm and rows.
#[derive(Debug, Clone)]
pub(super) struct Revising {
    pub components: Components,
    pub covariance: CovarianceType,
    pub seed: u64,
    /// The number of further rows after which a row has half its weight, if rows lose weight.
    pub half_life: Option<u64>,
}

/// The result of a pass.
#[derive(Clone)]
pub(super) struct Passed {
    pub mixture: GaussianMixture,
    pub health: Health,
    /// Seconds until the start was fitted.
    pub start_seconds: f64,
    /// Whether rows followed those of the start.
    pub has_started: bool,
}

/// The course of a pass.
pub(super) struct Course {
    /// Rows seen, and the mixture then. The last one is the mixture at the end of the stream.
    pub estimates: Vec<(usize, GaussianMixture)>,
    /// Rows seen at each revision that changed the mixture.
    pub revisions: Vec<u64>,
}

impl Revising {
    fn settings(&self, algorithm: Algorithm) -> FitSettings {
        let settings = FitSettings::new(algorithm, self.components.clone()).seed(self.seed).gaps(true);
        FitSettings { half_life: self.half_life, covariance: self.covariance, unwatched: true, ..settings }
    }

    /// Begins a pass, and observes the rows of its start.
    fn begin(&self, algorithm: Algorithm, rows: WeightedRows) -> Result<OnlineFit, LearnError> {
        let mut pass = OnlineFit::new(rows.rows.ncols(), self.settings(algorithm))?;
        observe(&mut pass, rows.part(0..self.start_rows(rows)))?;
        Ok(pass)
    }

    fn start_rows(&self, WeightedRows { rows, .. }: WeightedRows) -> usize {
        default_start_rows(self.components.largest_at_start(), rows.ncols()).min(rows.nrows())
    }

    /// Learns all rows.
    pub fn learn(&self, algorithm: Algorithm, rows: WeightedRows) -> Result<Passed, LearnError> {
        let watch = Stopwatch::start();
        let mut pass = self.begin(algorithm, rows)?;
        let mut start_seconds = watch.seconds();
        observe(&mut pass, rows.part(self.start_rows(rows)..rows.rows.nrows()))?;
        let mixture = pass.unscored_mixture()?;
        let has_started = pass.has_started();
        if !has_started {
            start_seconds = watch.seconds();
        }
        Ok(Passed { mixture, health: pass.running_health(), start_seconds, has_started })
    }

    /// The score of all rows from `from` on, each before it is learned. The start is fitted to rows before these.
    pub fn prequential(
        &self,
        algorithm: Algorithm,
        rows: WeightedRows,
        from: usize,
    ) -> Result<Prequential, LearnError> {
        let settings = self.settings(algorithm).start_rows(self.start_rows(rows).min(from));
        let mut pass = OnlineFit::new(rows.rows.ncols(), settings)?;
        observe(&mut pass, rows.part(0..from))?;
        let mut score = Prequential::default();
        let mut seen = from;
        while seen < rows.rows.nrows() {
            let (progress, own) = pass.advance_and_score(rows.part(seen..rows.rows.nrows()))?;
            score = score.joined(own);
            match progress {
                Progress::Learned(taken) => seen += taken,
                Progress::RevisionDue => drop(pass.revise(&AtomicBool::new(false))?),
            }
        }
        Ok(score)
    }

    /// The mixture after each of `row_counts` rows, of which the last is the number of all rows.
    pub fn course(
        &self,
        algorithm: Algorithm,
        rows: WeightedRows,
        row_counts: &[usize],
    ) -> Result<Course, LearnError> {
        let mut pass = OnlineFit::new(rows.rows.ncols(), self.settings(algorithm))?;
        let mut estimates = Vec::with_capacity(row_counts.len());
        let mut before = 0;
        for &count in row_counts {
            observe(&mut pass, rows.part(before..count))?;
            before = count;
            if pass.has_started() && count < rows.rows.nrows() {
                let now = pass.mixtures()?.into_iter().map(|(.., mixture)| (count, mixture));
                estimates.extend(now);
            }
        }
        estimates.push((before, pass.mixture()?));
        Ok(Course { estimates, revisions: changing_revisions(&pass) })
    }
}

/// Rows seen at each revision that changed the mixture.
pub(super) fn changing_revisions(pass: &OnlineFit) -> Vec<u64> {
    pass.revisions().filter(|revision| revision.kept).map(|revision| revision.rows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::{ObmmSettings, OemSettings, fit};
    use ndarray::{Array2, s};

    fn revising(k: usize) -> Revising {
        let (components, covariance) = (Components::Given(vec![k]), CovarianceType::Full);
        Revising { components, covariance, seed: 3, half_life: None }
    }

    fn oem(alpha: f64) -> Algorithm {
        Algorithm::Oem(OemSettings { alpha, count_start: true })
    }

    /// Two groups in the first 5,500 rows, two more after them.
    fn stream() -> Array2<f64> {
        let centre = |i: usize| if i < 5500 { i % 2 } else { i % 4 };
        let wave = |i: usize, j: usize| ((i * (31 + 16 * j)) as f64 * 0.37).sin();
        Array2::from_shape_fn((8000, 2), |(i, j)| (centre(i) * (12 - 5 * j)) as f64 + wave(i, j))
    }

    #[test]
    fn a_pass_is_what_fit_does() {
        let rows = stream();
        for (few, alpha) in [(8000, 0.6), (300, 1.0)] {
            let rows = rows.slice(s![..few, ..]);
            let straight = fit(rows, revising(4).settings(oem(alpha))).unwrap().mixture;
            assert_eq!(revising(4).learn(oem(alpha), rows.into()).unwrap().mixture, straight);
        }
    }

    #[test]
    fn the_course_of_a_pass_ends_with_its_mixture_and_knows_its_revisions() {
        let (rows, obmm) = (stream(), Algorithm::Obmm(ObmmSettings::default()));
        let course = revising(4).course(obmm, rows.view().into(), &[3000, 5000, 6000, 8000]).unwrap();
        let counts: Vec<usize> = course.estimates.iter().map(|(count, _)| *count).collect();
        assert_eq!(counts, [5000, 6000, 8000], "before the start there is nothing to show");
        assert_eq!(course.estimates[2].1, revising(4).learn(obmm, rows.view().into()).unwrap().mixture);
        assert!(course.revisions.iter().any(|&rows| (5500..=8000).contains(&rows)), "{:?}", course.revisions);
        let course = revising(4).course(obmm, rows.slice(s![..300, ..]).into(), &[300]).unwrap();
        assert_eq!((course.estimates.len(), course.revisions.len()), (1, 0));
    }

    #[test]
    fn every_row_of_the_second_half_is_scored_before_it_is_learned() {
        let (rows, obmm) = (stream(), Algorithm::Obmm(ObmmSettings::default()));
        let score = revising(4).prequential(obmm, rows.view().into(), 4000).unwrap();
        assert_eq!(score.rows, 4000);
        // With one component nothing is held back or revised, so it is the score of the pass itself.
        let single = revising(1);
        let settings = single.settings(obmm).start_rows(4000);
        let mut pass = OnlineFit::new(2, settings).unwrap();
        pass.observe(rows.view()).unwrap();
        let own = pass.scores()[0].1;
        assert_eq!(single.prequential(obmm, rows.view().into(), 4000).unwrap(), own);
    }
}
