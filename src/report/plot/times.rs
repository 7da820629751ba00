//! Learning times, a bar for each learner.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{RGBColor, WHITE};

use super::canvas::{Canvas, DrawResult, Figure};
use super::frame::{Axis, PlotFrame};
use super::style::{INK, colour};
use crate::experiment::Contender;
use crate::report::analysis::{SetSummary, Summary};
use crate::report::format::title;
use crate::report::tables::{median_seconds, ratio};
use crate::text::number::{self, significant};

/// Above this ratio of the longest to the shortest time, the axis is logarithmic.
const LARGE: f64 = 30.0;
const TEXT: f64 = 13.0;

pub(super) struct Times {
    heading: String,
    pub k: usize,
    bars: Vec<Bar>,
}

struct Bar {
    contender: Contender,
    colour: RGBColor,
    seconds: f64,
    label: String,
}

impl Times {
    /// `None` if there is no time to show.
    pub fn new(summary: &Summary, set: &SetSummary) -> Option<Self> {
        let k = set.time_k(summary.reference.as_ref())?;
        let bar = |contender: &Contender| {
            let seconds = median_seconds(set, contender, k).filter(|seconds| *seconds > 0.0)?;
            let ratio = ratio(set, summary, contender, k);
            let label = match ratio {
                Some(ratio) => format!("{} s  ({}×)", significant(seconds), number::ratio(ratio)),
                None => format!("{} s", significant(seconds)),
            };
            let colour = colour(contender, &summary.contenders);
            Some(Bar { contender: contender.clone(), colour, seconds, label })
        };
        let bars: Vec<_> = summary.contenders.iter().filter_map(bar).collect();
        let heading = format!("{}, K = {k}", title(&set.data));
        (!bars.is_empty()).then_some(Times { heading, k, bars })
    }
}

impl Figure for Times {
    fn size(&self) -> (u32, u32) {
        (800, 96 + 28 * self.bars.len() as u32)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let seconds = || self.bars.iter().map(|bar| bar.seconds);
        let longest = seconds().fold(0.0, f64::max);
        let shortest = seconds().fold(f64::INFINITY, f64::min);
        let log = longest > LARGE * shortest;
        let mut x = if log {
            Axis::log(
                shortest / 2.0,
                longest,
                number::power,
                "learning time in seconds, start included (log axis)",
            )
        } else {
            Axis::linear(0.0, longest, 6, "learning time in seconds, start included")
        };
        if !log {
            x.low = 0.0;
            x.ticks.retain(|(value, _)| *value >= 0.0);
        }
        let count = self.bars.len() as f64;
        let place = |index: usize| count - index as f64;
        let names = self.bars.iter().enumerate();
        let ticks = names.map(|(index, bar)| (place(index), bar.contender.name().to_string())).collect();
        let y = Axis { low: 0.4, high: count + 0.6, ticks, title: String::new(), named: true };
        let foot = x.low;
        let bottom = f64::from(self.size().1) - 12.0;
        let frame = PlotFrame::draw(canvas, [14.0, 12.0, 640.0, bottom], &self.heading, x, y)?;
        for (index, bar) in self.bars.iter().enumerate() {
            let length = if log { bar.seconds.log10() } else { bar.seconds };
            let end = frame.at(length, place(index));
            let start = frame.at(foot, place(index));
            let half = canvas.px(8.0);
            canvas.bar([(start.0, start.1 - half), (end.0, end.1 + half)], bar.colour)?;
            let font = canvas.font(TEXT, INK, false);
            let at = (end.0 + canvas.px(7.0), end.1);
            // Hides the grid behind the label.
            let width = canvas.px(0.55 * TEXT * bar.label.chars().count() as f64);
            canvas.bar([(at.0, at.1 - half), (at.0 + width, at.1 + half)], WHITE)?;
            canvas.text(&bar.label, at, font, HPos::Left, VPos::Center)?;
        }
        Ok(())
    }
}
