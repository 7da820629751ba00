//! Mean test log-likelihood against K, one line per learner.

use plotters::backend::DrawingBackend;

use super::canvas::{Canvas, Drawn, Figure};
use super::frame::{Axis, Frame, readable};
use super::legend::{self, Item, Sample};
use super::style::{INK, Mark, colour, mark};
use crate::report::format::{title, units};
use crate::report::scores::{KScore, Score};
use crate::report::summary::{Entry, SetSummary};
use crate::text::number::fixed;

/// Distance between neighbouring learners, in steps of K, so that error bars do not hide each other.
const APART: f64 = 0.07;

/// How far below the median score the picture reaches; see [`readable`].
const REACH: f64 = 4.0;

pub(super) struct ByK<'a> {
    set: &'a SetSummary,
    range: (f64, f64),
    ks: Vec<usize>,
}

impl<'a> ByK<'a> {
    /// `None` if there is no score to show.
    pub fn new(set: &'a SetSummary) -> Option<Self> {
        let scores = || entries(set).flat_map(|entry| &entry.by_k);
        let ends = scores().flat_map(|KScore { score, .. }| {
            let bar = error(score);
            [score.mean - bar, score.mean, score.mean + bar]
        });
        Some(ByK { set, range: readable(ends, REACH)?, ks: scores().map(|at_k| at_k.k).collect() })
    }

    fn draw_entry<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        frame: &Frame,
        entry: &Entry,
        shift: f64,
    ) -> Drawn<B> {
        let ink = colour(entry.contender);
        let x = |at_k: &KScore| at_k.k as f64 + shift;
        let points: Vec<_> = entry.by_k.iter().map(|at_k| (x(at_k), at_k.score.mean)).collect();
        frame.draw_line(canvas, &points, canvas.stroke(ink, 1.75), entry.contender.is_batch())?;
        for at_k in &entry.by_k {
            let score = &at_k.score;
            let (k, bar) = (x(at_k), error(score));
            if !frame.shows(k, score.mean) {
                // Below the frame: only an arrow at its bottom.
                let (px, py) = frame.at(k, frame.floor());
                canvas.mark(Mark::Down, (px, py - canvas.px(7.0)), ink)?;
                continue;
            }
            let ends = [(k, score.mean - bar), (k, score.mean + bar)];
            frame.draw_line(canvas, &ends, canvas.stroke(ink, 1.0), false)?;
            canvas.mark(mark(entry.contender), frame.at(k, score.mean), ink)?;
            if entry.commonest_k() == Some(at_k.k) {
                canvas.ring(frame.at(k, score.mean), 8.0, INK, 1.25)?;
            }
        }
        Ok(())
    }

    fn item(&self, entry: &Entry, floor: f64) -> Item {
        let hidden = entry.by_k.iter().map(|at_k| at_k.score.mean).filter(|mean| *mean < floor);
        let lowest = hidden.min_by(f64::total_cmp);
        Item {
            text: entry.contender.name().to_string(),
            note: lowest.map(|low| format!("▼ down to {}", fixed(low, 1))).unwrap_or_default(),
            colour: colour(entry.contender),
            mark: Some(mark(entry.contender)),
            sample: if entry.contender.is_batch() { Sample::Dashed } else { Sample::Solid },
        }
    }
}

impl Figure for ByK<'_> {
    fn size(&self) -> (u32, u32) {
        (800, 440)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let x = Axis::whole(&self.ks, "components K");
        let y_title = format!("mean test log-likelihood (nats, {} units)", units(self.set.units));
        let y = Axis::linear(self.range.0, self.range.1, 7, &y_title);
        let heading = title(&self.set.data);
        let frame = Frame::draw(canvas, [14.0, 12.0, 630.0, 428.0], &heading, x, y)?;
        let middle = (entries(self.set).count() as f64 - 1.0) / 2.0;
        for (index, entry) in entries(self.set).enumerate() {
            self.draw_entry(canvas, &frame, entry, APART * (index as f64 - middle))?;
        }
        let items: Vec<_> = entries(self.set).map(|entry| self.item(entry, frame.floor())).collect();
        legend::draw_column(canvas, &items, 650.0, 52.0)
    }
}

/// Learners that are run with each K.
fn entries(set: &SetSummary) -> impl Iterator<Item = &Entry> {
    set.entries.iter().filter(|entry| !entry.contender.learns_k())
}

fn error(score: &Score) -> f64 {
    score.fold_error.or(score.standard_error).unwrap_or(0.0)
}
