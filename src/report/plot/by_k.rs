//! Mean test log-likelihood against K, one line per learner.

use plotters::backend::DrawingBackend;
use plotters::style::Color;

use super::canvas::{Canvas, DrawResult, Figure};
use super::frame::{Axis, PlotFrame, readable};
use super::legend::{self, Item, Sample};
use super::style::{INK, Mark, colour, mark};
use crate::experiment::Contender;
use crate::report::analysis::{Entry, SetSummary};
use crate::report::analysis::{KScore, Score};
use crate::report::format::{title, units};
use crate::text::number::fixed;

/// The legend: its left and its first line, its space below, and the width of a letter, in SVG pixels.
const LEGEND: (f64, f64) = (650.0, 52.0);
const BELOW_LEGEND: f64 = 4.0;
const LETTER: f64 = 7.5;

/// Opacity of error bars, which lie above each other.
const PALE: f64 = 0.25;

/// How far below the median score the picture reaches; see [`readable`].
const REACH: f64 = 4.0;

pub(super) struct ByK<'a> {
    set: &'a SetSummary,
    /// All learners of the report, which their styles depend on.
    all: &'a [Contender],
    /// Learners that are run with each K and have points.
    entries: Vec<&'a Entry>,
    y: Axis,
    ks: Vec<usize>,
}

impl<'a> ByK<'a> {
    /// `None` if there is no score to show.
    pub fn new(set: &'a SetSummary, all: &'a [Contender]) -> Option<Self> {
        let is_shown = |entry: &&Entry| !entry.contender.learns_k() && !entry.by_k.is_empty();
        let entries: Vec<&Entry> = set.entries.iter().filter(is_shown).collect();
        let scores = || entries.iter().flat_map(|entry| &entry.by_k);
        let ends = scores().flat_map(|KScore { score, .. }| {
            let bar = error(score);
            [score.mean - bar, score.mean, score.mean + bar]
        });
        let (low, high) = readable(ends, REACH)?;
        let title = format!("mean test log-likelihood (nats, {} units)", units(set.units));
        let ks = scores().map(|at_k| at_k.k).collect();
        Some(ByK { set, all, y: Axis::linear(low, high, 7, &title), ks, entries })
    }

    fn draw_entry<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        frame: &PlotFrame,
        entry: &Entry,
    ) -> DrawResult<B> {
        let ink = colour(&entry.contender, self.all);
        let x = |at_k: &KScore| at_k.k as f64;
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
            frame.draw_line(canvas, &ends, canvas.stroke(ink.mix(PALE), 3.0), false)?;
            canvas.mark(mark(&entry.contender, self.all), frame.at(k, score.mean), ink)?;
            if entry.commonest_k() == Some(at_k.k) {
                canvas.ring(frame.at(k, score.mean), 8.0, INK, 1.25)?;
            }
        }
        Ok(())
    }

    fn items(&self) -> Vec<Item> {
        self.entries.iter().map(|entry| self.item(entry)).collect()
    }

    fn item(&self, entry: &Entry) -> Item {
        let hidden = entry.by_k.iter().map(|at_k| at_k.score.mean).filter(|mean| *mean < self.y.low);
        let lowest = hidden.min_by(f64::total_cmp);
        Item {
            text: entry.contender.name().to_string(),
            note: lowest.map(|low| format!("▼ down to {}", fixed(low, 1))).unwrap_or_default(),
            colour: colour(&entry.contender, self.all),
            mark: Some(mark(&entry.contender, self.all)),
            sample: if entry.contender.is_batch() { Sample::Dashed } else { Sample::Solid },
        }
    }
}

impl Figure for ByK<'_> {
    fn size(&self) -> (u32, u32) {
        let items = self.items();
        let longest = items.iter().map(|item| item.text.chars().count()).max().unwrap_or(0);
        let right = LEGEND.0 + legend::BEFORE_TEXT + LETTER * longest as f64;
        let bottom = LEGEND.1 + legend::height(&items) + BELOW_LEGEND;
        (right.max(800.0) as u32, bottom.max(440.0) as u32)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let x = Axis::whole(&self.ks, "components K");
        let heading = title(&self.set.data);
        let frame = PlotFrame::draw(canvas, [14.0, 12.0, 630.0, 428.0], &heading, x, self.y.clone())?;
        for entry in &self.entries {
            self.draw_entry(canvas, &frame, entry)?;
        }
        legend::draw_column(canvas, &self.items(), LEGEND.0, LEGEND.1)
    }
}

fn error(score: &Score) -> f64 {
    score.fold_error.or(score.standard_error).unwrap_or(0.0)
}
