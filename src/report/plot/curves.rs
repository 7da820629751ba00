//! Learning curves: test log-likelihood against rows seen.

use plotters::backend::DrawingBackend;

use super::canvas::{Canvas, Drawn, Figure};
use super::frame::{Axis, Frame, readable, rows};
use super::legend::{self, Item};
use super::style::{GREY, colour, mark};
use crate::data::Units;
use crate::experiment::{Contender, CurveRecord};
use crate::learn::default_init_rows;
use crate::report::names::{fixed, title, units};
use crate::report::summary::SetSummary;

/// How far below the middle score the picture goes; see [`readable`]. The beginning of a curve is low.
pub(super) const REACH: f64 = 12.0;

pub(super) struct Curves {
    heading: String,
    units: Units,
    lines: Vec<Line>,
    levels: Vec<(String, f64)>,
    range: (f64, f64),
    rows: (f64, f64),
}

struct Line {
    contender: Contender,
    k: usize,
    /// Rows that the start was fitted to, where that is known.
    start_rows: Option<u64>,
    /// Rows seen, and score.
    points: Vec<(f64, f64)>,
}

impl Curves {
    /// One line for each learner: of the K chosen in fold 0 if there is such a curve, else of the last. Points before
    /// the start was complete are left out, since they show rows that the start had already seen. Nothing where no curve
    /// has two points.
    pub fn new(set: &SetSummary, curves: &[&CurveRecord]) -> Option<Self> {
        // Without a fold to take the Jacobian from, the data's own units must do.
        let (units, shift) = match (set.units, set.curve_shift) {
            (Units::Zscore, Some(shift)) => (Units::Zscore, shift),
            _ => (Units::Raw, 0.0),
        };
        let mut lines = Vec::new();
        let mut levels: Vec<(String, f64)> = Vec::new();
        for &contender in Contender::ALL {
            let chosen = set.entry(contender).and_then(|entry| entry.chosen.get(&0).copied());
            let mine = || curves.iter().filter(|curve| curve.contender == contender);
            let Some(curve) = mine().rfind(|curve| Some(curve.k) == chosen).or(mine().next_back()) else {
                continue;
            };
            let start_rows = start_rows(curve, set.data.columns.len());
            let shown = usable(curve).filter(|(rows, _)| *rows >= start_rows.unwrap_or(0) as f64);
            let points: Vec<_> = shown.map(|(rows, score)| (rows, score + shift)).collect();
            if points.len() < 2 {
                continue;
            }
            lines.push(Line { contender, k: curve.k, start_rows, points });
            if let Some((name, level)) = &curve.level {
                let level = (name.clone(), level + shift);
                if level.1.is_finite() && !levels.contains(&level) {
                    levels.push(level);
                }
            }
        }
        let all = || lines.iter().flat_map(|line| &line.points);
        let scores = all().map(|(_, score)| *score).chain(levels.iter().map(|(_, level)| *level));
        let range = readable(scores, REACH)?;
        let first = all().map(|(rows, _)| *rows).min_by(f64::total_cmp)?;
        let last = all().map(|(rows, _)| *rows).max_by(f64::total_cmp)?;
        Some(Curves { heading: title(&set.data), units, lines, levels, range, rows: (first, last) })
    }

    /// Rows that the start was fitted to, and rows in all, where the start of all learners is the same.
    pub fn start_rows(&self) -> Option<(u64, u64)> {
        let start_rows = self.lines.first()?.start_rows;
        let is_common = self.lines.iter().all(|line| line.start_rows == start_rows);
        Some((start_rows.filter(|_| is_common)?, self.rows.1.round() as u64))
    }

    /// Whether the axis of rows is logarithmic: over less than a decade it would have hardly a tick.
    pub fn has_log_axis(&self) -> bool {
        self.rows.1 >= 10.0 * self.rows.0
    }

    /// The axis of rows, and where a number of rows is on it.
    fn axis_of_rows(&self) -> (Axis, fn(f64) -> f64) {
        if self.has_log_axis() {
            return (Axis::log(self.rows.0, self.rows.1, rows, "rows seen (log axis)"), f64::log10);
        }
        let mut axis = Axis::linear(self.rows.0, self.rows.1, 6, "rows seen");
        axis.ticks.retain(|(value, _)| *value >= 0.0 && value.fract() == 0.0);
        axis.ticks.iter_mut().for_each(|(value, label)| *label = rows(*value));
        (axis, std::convert::identity)
    }
}

/// Rows that the start of a curve was fitted to: as the record says, or for a record of an early version the default.
pub(super) fn start_rows(curve: &CurveRecord, columns: usize) -> Option<u64> {
    let last = curve.points.last()?.0;
    let default = || (columns > 0).then(|| (default_init_rows(curve.k, columns) as u64).min(last));
    curve.start_rows.or_else(default)
}

/// The points that a log axis can show.
pub(super) fn usable(curve: &CurveRecord) -> impl Iterator<Item = (f64, f64)> + '_ {
    let points = curve.points.iter().map(|(rows, score)| (*rows as f64, *score));
    points.filter(|(rows, score)| *rows >= 1.0 && score.is_finite())
}

impl Figure for Curves {
    fn size(&self) -> (u32, u32) {
        (800, 400)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
        let (x, place) = self.axis_of_rows();
        let ends = (x.low, x.high);
        let y_title = format!("test log-likelihood (nats, {} units)", units(self.units));
        let y = Axis::linear(self.range.0, self.range.1, 6, &y_title);
        let frame = Frame::draw(canvas, [14.0, 12.0, 592.0, 388.0], &self.heading, x, y)?;
        let mut items = Vec::new();
        for (name, level) in &self.levels {
            let line = [(ends.0, *level), (ends.1, *level)];
            frame.draw_line(canvas, &line, canvas.stroke(GREY, 1.5), true)?;
            let note = format!("level {}", fixed(*level, 2));
            items.push(Item { text: name.clone(), note, colour: GREY, mark: None, dashed: true });
        }
        // oBMM last, above oDMM, with which it may coincide.
        let (below, above): (Vec<_>, Vec<_>) =
            self.lines.iter().partition(|line| line.contender != Contender::Obmm);
        for line in below.into_iter().chain(above) {
            let ink = colour(line.contender);
            let points: Vec<_> = line.points.iter().map(|point| (place(point.0), point.1)).collect();
            frame.draw_line(canvas, &points, canvas.stroke(ink, 1.75), false)?;
            for point in spaced(&points).filter(|point| frame.shows(point.0, point.1)) {
                canvas.mark(mark(line.contender), frame.at(point.0, point.1), ink)?;
            }
            let text = format!("{}, K = {}", line.contender.name(), line.k);
            let mark = Some(mark(line.contender));
            let best = line.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
            let note = if best < frame.floor() {
                format!("below: at best {}", fixed(best, 1))
            } else {
                String::new()
            };
            items.push(Item { text, note, colour: ink, mark, dashed: false });
        }
        legend::draw_column(canvas, &items, 608.0, 52.0)
    }
}

/// Points far enough apart for their marks not to merge.
fn spaced(points: &[(f64, f64)]) -> impl Iterator<Item = &(f64, f64)> {
    let across = points.last().map_or(0.0, |last| last.0) - points.first().map_or(0.0, |first| first.0);
    let mut next = f64::NEG_INFINITY;
    points.iter().filter(move |point| {
        let show = point.0 >= next;
        if show {
            next = point.0 + across / 14.0;
        }
        show
    })
}
