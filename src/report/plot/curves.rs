//! Learning curves: log-likelihood against rows seen, with a vertical line at each revision of the structure.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;

use super::canvas::{Canvas, DrawError, DrawResult, Figure};
use super::frame::{Axis, PlotFrame, readable};
use super::legend::{self, Item, Sample, UPRIGHT};
use super::style::{GREY, Mark, colour, mark};
use crate::experiment::Units;
use crate::experiment::{Contender, CurveRecord};
use crate::report::analysis::SetSummary;
use crate::report::format::{self, title};
use crate::text::number::{fixed, rows};

/// How far below the median score the picture reaches; see [`readable`]. The beginning of a curve is low.
pub(super) const REACH: f64 = 12.0;

pub(super) struct Curves {
    heading: String,
    y_title: String,
    /// In drawing order.
    lines: Vec<CurveLine>,
    levels: Vec<(String, f64)>,
    revisions: Vec<Revisions>,
    range: (f64, f64),
    rows: (f64, f64),
    log_axis: bool,
}

pub(super) struct CurveLine {
    pub name: String,
    /// A smaller line below the name; may be empty.
    pub note: String,
    pub colour: RGBColor,
    pub mark: Mark,
    /// Rows that the start was fitted to, if known.
    pub start_rows: Option<u64>,
    /// Rows seen, and score.
    pub points: Vec<(f64, f64)>,
}

/// The revisions of one learner.
pub(super) struct Revisions {
    /// The second line in the legend.
    pub note: String,
    pub colour: RGBColor,
    pub rows: Vec<f64>,
}

impl Curves {
    /// One line for each learner: its curve with the K chosen in fold 0, or its last one. Points before the end of the
    /// start are left out, because the start had already seen their rows. `None` if no curve has two points.
    pub fn new(set: &SetSummary, curves: &[CurveRecord]) -> Option<Self> {
        // Without the Jacobian of a fold, only the data's own units are possible.
        let (units, shift) = match (set.units, set.curve_shift) {
            (Units::Zscore, Some(shift)) => (Units::Zscore, shift),
            _ => (Units::Raw, 0.0),
        };
        let (mut lines, mut revisions) = (Vec::new(), Vec::new());
        let mut levels: Vec<(String, f64)> = Vec::new();
        // oBMM is drawn last, above oDMM, with which it may coincide.
        let (below, above): (Vec<_>, Vec<_>) =
            Contender::ALL.iter().partition(|contender| **contender != Contender::Obmm);
        for contender in below.into_iter().chain(above) {
            let chosen = set.entry(contender).and_then(|entry| entry.chosen.get(&0).copied());
            let mine = || curves.iter().filter(|curve| curve.contender == *contender);
            let Some(curve) = mine().rfind(|curve| Some(curve.k) == chosen).or(mine().next_back()) else {
                continue;
            };
            let start_rows = curve.start_rows;
            let shown = usable(curve).filter(|(rows, _)| *rows >= start_rows.unwrap_or(0) as f64);
            let points: Vec<_> = shown.map(|(rows, score)| (rows, score + shift)).collect();
            if points.len() < 2 {
                continue;
            }
            let (name, note) = (format!("{}, K = {}", contender.name(), curve.k), String::new());
            let (colour, mark) = (colour(contender, &[]), mark(contender, &[]));
            lines.push(CurveLine { name, note, colour, mark, start_rows, points });
            if !curve.revisions.is_empty() {
                let note = format!("of {}", contender.name());
                let rows = curve.revisions.iter().map(|&rows| rows as f64).collect();
                revisions.push(Revisions { note, colour, rows });
            }
            if let Some((name, level)) = &curve.level {
                let level = (name.clone(), level + shift);
                if level.1.is_finite() && !levels.contains(&level) {
                    levels.push(level);
                }
            }
        }
        let y_title = format!("test log-likelihood (nats, {} units)", format::units(units));
        let mut curves = Curves::of_lines(title(&set.data), y_title, lines, levels, revisions)?;
        // A log axis of less than a decade would have too few ticks.
        curves.log_axis = curves.rows.1 >= 10.0 * curves.rows.0;
        Some(curves)
    }

    /// Lines over a linear axis of rows. `None` if there is no point.
    pub fn of_lines(
        heading: String,
        y_title: String,
        lines: Vec<CurveLine>,
        levels: Vec<(String, f64)>,
        revisions: Vec<Revisions>,
    ) -> Option<Self> {
        let all = || lines.iter().flat_map(|line| &line.points);
        let scores = all().map(|(_, score)| *score).chain(levels.iter().map(|(_, level)| *level));
        let range = readable(scores, REACH)?;
        let first = all().map(|(rows, _)| *rows).min_by(f64::total_cmp)?;
        let last = all().map(|(rows, _)| *rows).max_by(f64::total_cmp)?;
        let rows = (first, last);
        Some(Curves { heading, y_title, lines, levels, revisions, range, rows, log_axis: false })
    }

    /// Rows that the start was fitted to and all rows, if all learners have the same start.
    pub fn start_rows(&self) -> Option<(u64, u64)> {
        let start_rows = self.lines.first()?.start_rows;
        let is_common = self.lines.iter().all(|line| line.start_rows == start_rows);
        Some((start_rows.filter(|_| is_common)?, self.rows.1.round() as u64))
    }

    /// Whether the axis of rows is logarithmic.
    pub fn has_log_axis(&self) -> bool {
        self.log_axis
    }

    /// Whether revisions are marked.
    pub fn has_revisions(&self) -> bool {
        !self.revisions.is_empty()
    }

    /// The axis of rows, and the function that maps rows to it.
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

/// The points that a log axis can show.
pub(super) fn usable(curve: &CurveRecord) -> impl Iterator<Item = (f64, f64)> + '_ {
    let points = curve.points.iter().map(|(rows, score)| (*rows as f64, *score));
    points.filter(|(rows, score)| *rows >= 1.0 && score.is_finite())
}

impl Figure for Curves {
    fn size(&self) -> (u32, u32) {
        (800, 400)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let (x, place) = self.axis_of_rows();
        let ends = (x.low, x.high);
        let y = Axis::linear(self.range.0, self.range.1, 6, &self.y_title);
        let frame = PlotFrame::draw(canvas, [14.0, 12.0, 592.0, 388.0], &self.heading, x, y)?;
        let mut items = Vec::new();
        for (name, level) in &self.levels {
            let line = [(ends.0, *level), (ends.1, *level)];
            frame.draw_line(canvas, &line, canvas.stroke(GREY, 1.5), true)?;
            let note = format!("level {}", fixed(*level, 2));
            let sample = Sample::Dashed;
            items.push(Item { text: name.clone(), note, colour: GREY, mark: None, sample });
        }
        for (place_in_order, revisions) in self.revisions.iter().enumerate() {
            // Learners are often revised after the same number of rows.
            let shift = canvas.px(2.0 * place_in_order as f64);
            for &rows in &revisions.rows {
                let style = canvas.stroke(revisions.colour, UPRIGHT);
                frame.draw_upright(canvas, place(rows), shift, style)?;
            }
        }
        for line in &self.lines {
            items.push(draw_line(canvas, &frame, line, place)?);
        }
        for Revisions { note, colour, .. } in &self.revisions {
            let (text, note) = ("revisions".to_string(), note.clone());
            items.push(Item { text, note, colour: *colour, mark: None, sample: Sample::Upright });
        }
        legend::draw_column(canvas, &items, 608.0, 52.0)
    }
}

/// Draws a line with its marks, and returns its legend item.
fn draw_line<B: DrawingBackend>(
    canvas: &Canvas<B>,
    frame: &PlotFrame,
    line: &CurveLine,
    place: fn(f64) -> f64,
) -> Result<Item, DrawError<B>> {
    let points: Vec<_> = line.points.iter().map(|point| (place(point.0), point.1)).collect();
    frame.draw_line(canvas, &points, canvas.stroke(line.colour, 1.75), false)?;
    for point in spaced(&points).filter(|point| frame.shows(point.0, point.1)) {
        canvas.mark(line.mark, frame.at(point.0, point.1), line.colour)?;
    }
    let best = line.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let note = if best < frame.floor() {
        format!("below the frame: at best {}", fixed(best, 1))
    } else {
        line.note.clone()
    };
    let (text, mark) = (line.name.clone(), Some(line.mark));
    Ok(Item { text, note, colour: line.colour, mark, sample: Sample::Solid })
}

/// Points far enough apart that their marks do not overlap.
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
