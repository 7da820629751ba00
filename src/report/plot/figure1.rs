//! The paper's Figure 1: test log-likelihood against rows seen on the synthetic sets, with the true model's level.

use std::path::Path;

use plotters::backend::DrawingBackend;

use super::Picture;
use super::canvas::{Canvas, DrawResult, Figure};
use super::curves::usable;
use super::frame::{Axis, PlotFrame, readable};
use super::legend::{self, Item, Sample};
use super::style::{GREY, colour};
use crate::experiment::{Contender, CurveRecord};
use crate::report::{ReportError, write_picture};
use crate::text::number::{power, short_rows};

const ACROSS: usize = 3;
const WIDE: f64 = 312.0;
const HIGH: f64 = 232.0;
const FOOT: f64 = 40.0;
/// How far below the median score a panel reaches: nearly always the whole curve is visible.
const REACH: f64 = 50.0;

/// Draws Figure 1 into a folder: `plots/figure1.svg`, `plots/figure1.png`, and as `plots/figure1-gap` the same with
/// the gap to the level on a log axis. Each data set has a panel, three in a row, in the order of the curves.
pub fn figure1(curves: &[CurveRecord], folder: &Path) -> Result<(), ReportError> {
    let mut panels: Vec<Vec<&CurveRecord>> = Vec::new();
    for curve in curves.iter().filter(|curve| usable(curve).next().is_some()) {
        match panels.iter_mut().find(|panel| panel[0].data == curve.data) {
            Some(panel) => panel.push(curve),
            None => panels.push(vec![curve]),
        }
    }
    if panels.is_empty() {
        return Err(ReportError::NothingToShow);
    }
    for (name, gap, what) in
        [("figure1", false, "Test log-likelihood"), ("figure1-gap", true, "Gap to the true model")]
    {
        let caption = format!("{what} against rows seen.");
        let alt = format!("{} panels. {caption}", panels.len());
        let figure = Figure1 { panels: &panels, gap };
        write_picture(folder, &Picture::draw(name.to_string(), caption, alt, &figure)?)?;
    }
    Ok(())
}

struct Figure1<'a> {
    panels: &'a [Vec<&'a CurveRecord>],
    gap: bool,
}

impl Figure1<'_> {
    fn draw_panel<B: DrawingBackend>(&self, canvas: &Canvas<B>, index: usize) -> DrawResult<B> {
        let curves = &self.panels[index];
        let lines: Vec<_> = curves.iter().map(|curve| (&curve.contender, self.points(curve))).collect();
        let all = || lines.iter().flat_map(|(_, points)| points);
        let seen = curves.iter().flat_map(|curve| usable(curve)).map(|(rows, _)| rows);
        let (first, last) = seen.fold((f64::INFINITY, 0.0f64), |(a, b), rows| (a.min(rows), b.max(rows)));
        let level = curves.iter().find_map(|curve| curve.level.as_ref()).map(|(_, level)| *level);

        let bottom_row = index + ACROSS >= self.panels.len();
        let x = Axis::log(first, last, short_rows, if bottom_row { "rows seen" } else { "" });
        let y_title = match (index.is_multiple_of(ACROSS), self.gap) {
            (false, _) => "",
            (true, false) => "test log-likelihood (nats)",
            (true, true) => "gap to the truth (nats)",
        };
        let y = if self.gap {
            let gaps = || all().map(|(_, gap)| 10f64.powf(*gap));
            let (low, high) = gaps().fold((f64::INFINITY, 0.0f64), |(a, b), gap| (a.min(gap), b.max(gap)));
            // Without a gap to show, any axis will do.
            let (low, high) = if low <= high { (low, high) } else { (0.01, 1.0) };
            Axis::log(low, high, power, y_title)
        } else {
            let (low, high) =
                readable(all().map(|(_, score)| *score).chain(level), REACH).unwrap_or((0.0, 1.0));
            Axis::linear(low, high, 5, y_title)
        };
        let ends = (x.low, x.high);
        let (column, row) = ((index % ACROSS) as f64, (index / ACROSS) as f64);
        let (left, top) = (12.0 + column * WIDE, 10.0 + row * HIGH);
        let heading = format!("{}, K = {}", curves[0].data, curves[0].k);
        let outer = [left, top, left + WIDE - 20.0, top + HIGH - 12.0];
        let frame = PlotFrame::draw(canvas, outer, &heading, x, y)?;
        if let Some(level) = level.filter(|_| !self.gap) {
            let line = [(ends.0, level), (ends.1, level)];
            frame.draw_line(canvas, &line, canvas.stroke(GREY, 1.5), true)?;
        }
        for (contender, points) in &lines {
            frame.draw_line(canvas, points, canvas.stroke(colour(contender, &[]), 1.75), false)?;
        }
        Ok(())
    }

    /// Logarithm of the rows seen, and the score or the logarithm of its gap to the level if there is one.
    fn points(&self, curve: &CurveRecord) -> Vec<(f64, f64)> {
        let level = curve.level.as_ref().map_or(f64::NAN, |(_, level)| *level);
        let shown = |(rows, score): (f64, f64)| {
            let y = if self.gap { (level - score).log10() } else { score };
            y.is_finite().then_some((rows.log10(), y))
        };
        usable(curve).filter_map(shown).collect()
    }

    fn items(&self) -> Vec<Item> {
        let mut contenders: Vec<&Contender> =
            self.panels.iter().flatten().map(|curve| &curve.contender).collect();
        contenders.sort();
        contenders.dedup();
        let line = |contender: &Contender| Item {
            text: contender.name().to_string(),
            note: String::new(),
            colour: colour(contender, &[]),
            mark: None,
            sample: Sample::Solid,
        };
        let mut items: Vec<_> = contenders.into_iter().map(line).collect();
        let level = self.panels.iter().flatten().find_map(|curve| curve.level.as_ref());
        if let Some((name, _)) = level.filter(|_| !self.gap) {
            let text = name.clone();
            items.push(Item { text, note: String::new(), colour: GREY, mark: None, sample: Sample::Dashed });
        }
        items
    }
}

impl Figure for Figure1<'_> {
    fn size(&self) -> (u32, u32) {
        let rows = self.panels.len().div_ceil(ACROSS);
        let columns = self.panels.len().min(ACROSS);
        ((12.0 + WIDE * columns as f64) as u32, (10.0 + HIGH * rows as f64 + FOOT) as u32)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        for index in 0..self.panels.len() {
            self.draw_panel(canvas, index)?;
        }
        let foot = f64::from(self.size().1) - FOOT / 2.0;
        legend::draw_row(canvas, &self.items(), 60.0, foot)
    }
}
