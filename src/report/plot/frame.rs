//! Axes: ranges, ticks, and the frame with its grid.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Canvas, DrawResult, Pixel};
use super::style::{FAINT, GREY, INK};
use crate::text::number::fixed;

const LABEL: f64 = 13.0;
const TITLE: f64 = 14.0;
const HEADING: f64 = 16.0;

/// One axis. A log axis holds decimal logarithms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<(f64, String)>,
    pub title: String,
    /// Whether ticks are names instead of numbers: then they have no grid.
    pub named: bool,
}

impl Axis {
    /// About `count` round ticks over a slightly widened range.
    pub fn linear(low: f64, high: f64, count: usize, title: &str) -> Self {
        let (low, high) = if high > low { (low, high) } else { (low - 0.5, low + 0.5) };
        let margin = 0.04 * (high - low);
        let (low, high) = (low - margin, high + margin);
        let rough = (high - low) / count as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= 0.7 * rough);
        let step = step.unwrap_or(10.0 * power);
        let decimals = (-(step * 1.0001).log10().floor()).max(0.0) as usize;
        let first = (low / step).ceil() as i64;
        let ticks = (first..).map(|i| i as f64 * step).take_while(|value| *value <= high);
        let ticks = ticks.map(|value| (value, fixed(value, decimals))).collect();
        Axis { low, high, ticks, title: title.to_string(), named: false }
    }

    /// A log axis over positive values: ticks at 1, or at 1, 2 and 5, times powers of ten.
    pub fn log(low: f64, high: f64, write: impl Fn(f64) -> String, title: &str) -> Self {
        let (mut from, mut to) = (low.log10(), high.log10());
        if to - from < 0.3 {
            (from, to) = (from - 0.15, to + 0.15);
        }
        let margin = 0.03 * (to - from);
        let (from, to) = (from - margin, to + margin);
        let multiples: &[f64] = if to - from > 1.6 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        // At most about six labels.
        let every = (((to - from) / 6.0).ceil() as i32).max(1);
        let mut ticks = Vec::new();
        for power in from.floor() as i32..=to.ceil() as i32 {
            for multiple in multiples.iter().filter(|_| power % every == 0) {
                let value = multiple * 10f64.powi(power);
                if (from..=to).contains(&value.log10()) {
                    ticks.push((value.log10(), write(value)));
                }
            }
        }
        Axis { low: from, high: to, ticks, title: title.to_string(), named: false }
    }

    /// Whole numbers, with half a step on either side.
    pub fn whole(values: &[usize], title: &str) -> Self {
        let (low, high) =
            (values.iter().min().copied().unwrap_or(1), values.iter().max().copied().unwrap_or(1));
        let every = ((high - low) / 16 + 1).max(1);
        let ticks = (low..=high).step_by(every).map(|value| (value as f64, value.to_string())).collect();
        Axis { low: low as f64 - 0.5, high: high as f64 + 0.5, ticks, title: title.to_string(), named: false }
    }
}

/// The range to show of some values: all of them, unless the lowest lie far below the median, as those of a learner
/// that diverged do. Then the range ends `reach` times the distance from highest to median below the median, which keeps
/// the rest readable.
pub(super) fn readable(values: impl Iterator<Item = f64>, reach: f64) -> Option<(f64, f64)> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
    let upper_half = highest - sorted[sorted.len() / 2];
    let floor = highest - reach * upper_half;
    if upper_half <= 0.0 || lowest >= floor {
        return Some((lowest, highest));
    }
    // Down to the lowest value within reach, to waste no space.
    let reached = sorted.iter().copied().find(|value| *value >= floor).unwrap_or(floor);
    Some((reached - 0.08 * (highest - reached), highest))
}

/// Width of a number, in multiples of the font size.
fn width_in_ems(number: &str) -> f64 {
    number.chars().map(|c| if matches!(c, ',' | '.') { 0.32 } else { 0.64 }).sum()
}

/// The area of the data, in pixels.
#[derive(Debug, Clone)]
pub(super) struct PlotFrame {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
    x: Axis,
    y: Axis,
}

impl PlotFrame {
    /// Lays axes out inside a box (left, top, right, bottom; SVG pixels) and draws heading, grid and labels.
    pub fn draw<B: DrawingBackend>(
        canvas: &Canvas<B>,
        outer: [f64; 4],
        heading: &str,
        x: Axis,
        y: Axis,
    ) -> Result<Self, super::canvas::DrawError<B>> {
        let longest = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let for_labels = 8.0 + 0.62 * LABEL * longest as f64;
        let for_title = |axis: &Axis, room: f64| if axis.title.is_empty() { 0.0 } else { room };
        let frame = PlotFrame {
            left: canvas.px(outer[0] + for_labels + for_title(&y, TITLE + 9.0)),
            top: canvas.px(outer[1] + HEADING + 11.0),
            right: canvas.px(outer[2]),
            bottom: canvas.px(outer[3] - LABEL - 10.0 - for_title(&x, TITLE + 7.0)),
            x,
            y,
        };
        frame.draw_grid(canvas, LABEL)?;
        let middle = ((frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2);
        let title = || canvas.font(TITLE, INK, false);
        if !frame.x.title.is_empty() {
            let at = (middle.0, canvas.px(outer[3]));
            canvas.text(&frame.x.title, at, title(), HPos::Center, VPos::Bottom)?;
        }
        if !frame.y.title.is_empty() {
            canvas.upward_text(&frame.y.title, (canvas.px(outer[0]), middle.1), title())?;
        }
        let heading_style = canvas.font(HEADING, INK, true);
        canvas.text(heading, (frame.left, canvas.px(outer[1])), heading_style, HPos::Left, VPos::Top)?;
        Ok(frame)
    }

    /// One of several panels, inside a box of SVG pixels with its labels outside. The caller draws titles.
    pub fn panel<B: DrawingBackend>(
        canvas: &Canvas<B>,
        [left, top, right, bottom]: [f64; 4],
        x: Axis,
        y: Axis,
        label: f64,
    ) -> Result<Self, super::canvas::DrawError<B>> {
        let px = |length| canvas.px(length);
        let frame = PlotFrame { left: px(left), top: px(top), right: px(right), bottom: px(bottom), x, y };
        frame.draw_grid(canvas, label)?;
        Ok(frame)
    }

    fn draw_grid<B: DrawingBackend>(&self, canvas: &Canvas<B>, size: f64) -> DrawResult<B> {
        let label = || canvas.font(size, INK, false);
        let gap = canvas.px(0.46 * size);
        let mut free_from = i32::MIN;
        for (value, text) in &self.x.ticks {
            let (x, _) = self.at(*value, self.y.low);
            canvas.line(&[(x, self.top), (x, self.bottom)], canvas.stroke(FAINT, 1.0))?;
            // A label that would run into the one before it is left out.
            let half = canvas.px(0.5 * size * width_in_ems(text));
            if !text.is_empty() && x - half >= free_from {
                free_from = x + half + canvas.px(0.2 * size);
                canvas.text(text, (x, self.bottom + gap), label(), HPos::Center, VPos::Top)?;
            }
        }
        for (value, text) in &self.y.ticks {
            let (_, y) = self.at(self.x.low, *value);
            if !self.y.named {
                canvas.line(&[(self.left, y), (self.right, y)], canvas.stroke(FAINT, 1.0))?;
            }
            if !text.is_empty() {
                canvas.text(text, (self.left - gap, y), label(), HPos::Right, VPos::Center)?;
            }
        }
        let corners = [(self.left, self.top), (self.left, self.bottom), (self.right, self.bottom)];
        canvas.line(&corners, canvas.stroke(GREY, 1.0))
    }

    /// The pixel of a value.
    pub fn at(&self, x: f64, y: f64) -> Pixel {
        let part = |axis: &Axis, value: f64| (value - axis.low) / (axis.high - axis.low);
        let across = part(&self.x, x) * f64::from(self.right - self.left);
        let up = part(&self.y, y) * f64::from(self.bottom - self.top);
        (self.left + across.round() as i32, self.bottom - up.round() as i32)
    }

    /// Whether a point lies inside.
    pub fn shows(&self, x: f64, y: f64) -> bool {
        (self.x.low..=self.x.high).contains(&x) && (self.y.low..=self.y.high).contains(&y)
    }

    /// The lowest value that is shown.
    pub fn floor(&self) -> f64 {
        self.y.low
    }

    /// A vertical line over the full height, `shift` pixels to the right of a value. Draws nothing if the value is
    /// outside the frame.
    pub fn draw_upright<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        x: f64,
        shift: i32,
        style: plotters::style::ShapeStyle,
    ) -> DrawResult<B> {
        if !(self.x.low..=self.x.high).contains(&x) {
            return Ok(());
        }
        let (x, _) = self.at(x, self.y.low);
        canvas.line(&[(x + shift, self.top), (x + shift, self.bottom)], style)
    }

    /// A polyline through points, clipped at the frame.
    pub fn polyline(&self, points: &[(f64, f64)]) -> Vec<[Pixel; 2]> {
        let clip = |a: (f64, f64), b: (f64, f64)| {
            // The part of the segment from a to b that lies inside.
            let (mut enter, mut leave) = (0.0f64, 1.0f64);
            for (from, to, axis) in [(a.0, b.0, &self.x), (a.1, b.1, &self.y)] {
                if from == to && !(axis.low..=axis.high).contains(&from) {
                    return None;
                }
                if from != to {
                    let (low, high) = ((axis.low - from) / (to - from), (axis.high - from) / (to - from));
                    (enter, leave) = (enter.max(low.min(high)), leave.min(low.max(high)));
                }
            }
            let at = |share: f64| match share {
                // Whole pixels, so that segments meet.
                0.0 => self.at(a.0, a.1),
                1.0 => self.at(b.0, b.1),
                _ => self.at(a.0 + share * (b.0 - a.0), a.1 + share * (b.1 - a.1)),
            };
            (enter <= leave).then(|| [at(enter), at(leave)])
        };
        points.windows(2).filter_map(|pair| clip(pair[0], pair[1])).collect()
    }

    /// Draws that line. Connected segments are drawn in one piece, so that dashes and joints are clean.
    pub fn draw_line<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        points: &[(f64, f64)],
        style: plotters::style::ShapeStyle,
        dashed: bool,
    ) -> DrawResult<B> {
        let mut run: Vec<Pixel> = Vec::new();
        let draw = |run: &[Pixel]| if dashed { canvas.dashed(run, style) } else { canvas.line(run, style) };
        for [from, to] in self.polyline(points) {
            if run.last() != Some(&from) {
                if run.len() > 1 {
                    draw(&run)?;
                }
                run = vec![from];
            }
            run.push(to);
        }
        if run.len() > 1 { draw(&run) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::number::rows;

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::linear(-9.83, -8.91, 6, "");
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["−9.8", "−9.6", "−9.4", "−9.2", "−9.0"]);
        let axis = Axis::log(100.0, 170_000.0, rows, "");
        let labels: Vec<_> = axis.ticks.iter().map(|(_, label)| label.as_str()).collect();
        assert_eq!(labels, ["100", "1,000", "10,000", "100,000"]);
        assert_eq!(Axis::linear(3.0, 3.0, 5, "").ticks.len(), 5);
    }

    #[test]
    fn lines_are_cut_off_where_they_leave() {
        let unit =
            |title: &str| Axis { low: 0.0, high: 1.0, ticks: vec![], title: title.into(), named: false };
        let frame = PlotFrame { left: 0, top: 0, right: 100, bottom: 100, x: unit("x"), y: unit("y") };
        let lines = frame.polyline(&[(-0.5, 0.5), (0.5, 0.5), (0.5, 2.0), (3.0, 2.0)]);
        assert_eq!(lines, [[(0, 50), (50, 50)], [(50, 50), (50, 0)]]);
        assert!(frame.polyline(&[(-1.0, 0.5), (0.5, -1.0)]).is_empty());
    }

    #[test]
    fn outliers_below_are_cut_off_and_even_spreads_are_not() {
        let (low, high) = readable([-10.0, -9.5, -9.0, -8.8, -8.5, -500.0, -400.0].into_iter(), 4.0).unwrap();
        assert!(low > -11.0 && high == -8.5, "{low}");
        assert_eq!(readable((0..10).map(f64::from), 4.0), Some((0.0, 9.0)));
        assert_eq!(readable([2.0, 2.0, 1.0].into_iter(), 4.0), Some((1.0, 2.0)));
        assert_eq!(readable(std::iter::empty(), 4.0), None);
    }
}
