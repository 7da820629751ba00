//! The layout and drawing of a pair plot: one panel for each pair of axes with ellipses, and on the diagonal each axis
//! with its histogram and densities.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor, WHITE};

use super::canvas::{Canvas, DrawResult, Figure};
use super::frame::{Axis, PlotFrame};
use super::legend::{self, Item, Sample};
use super::pairs::{PairPlot, PlotGroup};
use super::shapes::{LETTER, curve, density, ellipse, histogram, shortened};
use super::style::{BLUE, GREEN, GREY, INK, Mark, ORANGE, PURPLE, SKY, VERMILION};
use crate::dist::Marginal;
use crate::text::number::{fixed, thousands};

/// Sides of a panel in SVG pixels, by the number of axes.
pub(super) const SIDES: [f64; PairPlot::MAX_AXES] = [330.0, 290.0, 220.0, 178.0, 150.0];
pub(super) const GAP: f64 = 12.0;
const TOP: f64 = 44.0;
const FOOT: f64 = 42.0;
const LEGEND: f64 = 190.0;
const HEADING: f64 = 16.0;
pub(super) const TITLE: f64 = 13.0;
pub(super) const LABEL: f64 = 11.0;
/// How finely a pair plot is drawn.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Corners of an ellipse.
    corners: usize,
    /// Points of a density's curve.
    curve: usize,
    /// One in this number of rows has dots.
    rows_per_dot: usize,
    /// More components would hide each other: the lightest are left out, and the picture says so.
    most_drawn: usize,
    /// Opacity of a 2σ ellipse, relative to that of the 1σ ellipse. Equal ones take one path.
    pale: f64,
}

/// From the finest. A crowded plot takes a coarser one, so that its file stays small.
const DETAILS: [Detail; 7] = [
    Detail { corners: 28, curve: 60, rows_per_dot: 1, most_drawn: 30, pale: 0.75 },
    Detail { corners: 24, curve: 50, rows_per_dot: 2, most_drawn: 30, pale: 0.75 },
    Detail { corners: 20, curve: 40, rows_per_dot: 3, most_drawn: 30, pale: 1.0 },
    Detail { corners: 16, curve: 30, rows_per_dot: 5, most_drawn: 30, pale: 1.0 },
    Detail { corners: 14, curve: 24, rows_per_dot: 8, most_drawn: 30, pale: 1.0 },
    Detail { corners: 14, curve: 24, rows_per_dot: 8, most_drawn: 20, pale: 1.0 },
    Detail { corners: 12, curve: 24, rows_per_dot: 8, most_drawn: 15, pale: 1.0 },
];
const MAX_IN_LEGEND: usize = 10;
/// As safe for colour-blind readers as ten colours can be.
pub(super) const COLOURS: [RGBColor; 10] = [
    BLUE,
    VERMILION,
    GREEN,
    PURPLE,
    ORANGE,
    SKY,
    RGBColor(0x88, 0x22, 0x55),
    RGBColor(0x99, 0x99, 0x33),
    RGBColor(0x33, 0x22, 0x88),
    RGBColor(0x66, 0x33, 0x00),
];
const BARS: RGBColor = RGBColor(0xdc, 0xdc, 0xdc);
const POINTS: RGBColor = RGBColor(0x60, 0x60, 0x60);

/// A component and its group.
#[derive(Clone, Copy)]
pub(super) struct Grouped<'a> {
    pub marginal: &'a Marginal,
    pub group: usize,
}

/// A pair plot laid out.
#[derive(Clone)]
pub(super) struct Panels<'a> {
    pub plot: &'a PairPlot,
    /// From the heaviest.
    pub components: Vec<Grouped<'a>>,
    pub rows: Vec<&'a [f64]>,
    pub axes: Vec<Axis>,
    /// Side of a panel in SVG pixels.
    pub side: f64,
    /// How much detail is left out: 0 for none.
    pub coarseness: usize,
}

impl Panels<'_> {
    fn detail(&self) -> Detail {
        DETAILS[self.coarseness.min(DETAILS.len() - 1)]
    }

    fn left(&self) -> f64 {
        let labels = self.axes.iter().skip(1).flat_map(|axis| &axis.ticks);
        let longest = labels.map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        38.0 + LETTER * LABEL * longest as f64
    }

    /// The box of the panel in some row and column.
    fn panel(&self, row: usize, column: usize) -> [f64; 4] {
        let place = |index: usize| index as f64 * (self.side + GAP);
        let (left, top) = (self.left() + place(column), TOP + place(row));
        [left, top, left + self.side, top + self.side]
    }

    fn drawn(&self) -> &[Grouped<'_>] {
        &self.components[..self.components.len().min(self.detail().most_drawn)]
    }

    /// The groups of which a component is drawn.
    fn drawn_groups(&self) -> impl Iterator<Item = usize> {
        let is_drawn = |&group: &usize| self.drawn().iter().any(|component| component.group == group);
        (0..self.plot.groups.len()).filter(is_drawn)
    }

    fn colour(&self, group: usize) -> RGBColor {
        if self.plot.groups[group].is_apart { GREY } else { COLOURS[group % COLOURS.len()] }
    }

    /// Heavy components are thick and opaque, light ones thin and pale.
    fn stroke<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        index: usize,
        pale: f64,
    ) -> plotters::style::ShapeStyle {
        let heaviest = self.components[0].marginal.weight.max(f64::MIN_POSITIVE);
        let Grouped { marginal, group } = self.components[index];
        let share = (marginal.weight / heaviest).sqrt();
        // Two digits take less space in a file and look the same.
        let opacity = (100.0 * pale * (0.5 + 0.5 * share)).round() / 100.0;
        let ink = self.colour(group).mix(opacity);
        canvas.stroke(ink, 0.9 + 1.1 * share)
    }

    fn draw_pair<B: DrawingBackend>(&self, canvas: &Canvas<B>, row: usize, column: usize) -> DrawResult<B> {
        let last = self.axes.len() - 1;
        let x = labelled(&self.axes[column], row == last);
        let y = labelled(&self.axes[row], column == 0);
        let frame = PlotFrame::panel(canvas, self.panel(row, column), x, y, LABEL)?;
        let rows = self.rows.iter().step_by(self.detail().rows_per_dot);
        for values in rows.filter(|values| frame.shows(values[column], values[row])) {
            canvas.dot(frame.at(values[column], values[row]), 1.25, POINTS.mix(0.45))?;
        }
        // The heaviest are drawn last, above the others.
        for (index, component) in self.drawn().iter().enumerate().rev() {
            for (times, pale) in [(2.0, self.detail().pale), (1.0, 1.0)] {
                let corners = ellipse(component.marginal, column, row, times, self.detail().corners);
                frame.draw_line(canvas, &corners, self.stroke(canvas, index, pale), false)?;
            }
        }
        let place = |marginal: &Marginal| (marginal.mean[column], marginal.mean[row]);
        let shown = |one: &&Grouped| frame.shows(place(one.marginal).0, place(one.marginal).1);
        let means: Vec<_> = self.drawn().iter().rev().filter(shown).collect();
        let at = |one: &Grouped| frame.at(place(one.marginal).0, place(one.marginal).1);
        means.iter().try_for_each(|one| canvas.dot(at(one), 3.4, WHITE))?;
        means.iter().try_for_each(|one| canvas.dot(at(one), 2.5, self.colour(one.group)))
    }

    fn draw_alone<B: DrawingBackend>(&self, canvas: &Canvas<B>, index: usize) -> DrawResult<B> {
        let axis = &self.axes[index];
        let values = || self.rows.iter().map(|row| row[index]).filter(|value| !value.is_nan());
        let bars = histogram(axis, values(), values().count());
        let density = |component: &Grouped| density(axis, component.marginal, index, self.detail().curve);
        let curves: Vec<Vec<f64>> = self.components.iter().map(density).collect();
        let mut whole = vec![0.0; curves[0].len()];
        for curve in &curves {
            whole.iter_mut().zip(curve).for_each(|(sum, value)| *sum += value);
        }
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (tallest, peak) = (most(&bars), most(&whole));
        // A spike, as of a column that is mostly one value, would flatten everything else.
        let high = if bars.is_empty() { peak } else { tallest.max(peak.min(1.6 * tallest)) };
        let high = if high > 0.0 { 1.06 * high } else { 1.0 };
        let y = Axis { low: 0.0, high, ticks: Vec::new(), title: String::new(), named: true };
        let x = labelled(axis, index + 1 == self.axes.len());
        let frame = PlotFrame::panel(canvas, self.panel(index, index), x, y, LABEL)?;
        let step = (axis.high - axis.low) / bars.len().max(1) as f64;
        for (i, bar) in bars.iter().enumerate().filter(|(_, bar)| **bar > 0.0) {
            let from = axis.low + step * i as f64;
            let (left, bottom) = frame.at(from, 0.0);
            let (right, top) = frame.at(from + step, bar.min(high));
            // A thin gap between bars.
            canvas.bar([(left, top), (right - canvas.px(0.75), bottom)], BARS)?;
        }
        frame.draw_line(canvas, &curve(axis, &whole), canvas.stroke(INK, 1.5), false)?;
        for (component, values) in curves.iter().enumerate().take(self.drawn().len()).rev() {
            frame.draw_line(canvas, &curve(axis, values), self.stroke(canvas, component, 1.0), false)?;
        }
        Ok(())
    }

    fn draw_titles<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let font = || canvas.font(TITLE, INK, false);
        let foot = canvas.px(f64::from(self.size().1) - 8.0);
        for (index, axis) in self.axes.iter().enumerate() {
            let [left, top, right, bottom] = self.panel(index, index);
            let middle = (canvas.px((left + right) / 2.0), canvas.px((top + bottom) / 2.0));
            canvas.text(&axis.title, (middle.0, foot), font(), HPos::Center, VPos::Bottom)?;
            let (title, font) = match index {
                0 => ("density", canvas.font(TITLE, GREY, false)),
                _ => (axis.title.as_str(), font()),
            };
            let x = if index == 0 { self.left() - 20.0 } else { 8.0 };
            canvas.upward_text(title, (canvas.px(x), middle.1), font)?;
        }
        Ok(())
    }

    /// Draws the legend in the free corner above the diagonal.
    fn draw_legend<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let last = self.axes.len() - 1;
        let [left, top, right, _] = self.panel(0, last);
        let (x, mut y) = if last == 0 { (right + 24.0, top + 10.0) } else { (left + 16.0, top + 10.0) };
        let item = |index: usize| {
            let PlotGroup { name, components, .. } = &self.plot.groups[index];
            let weight = components.iter().map(|&component| self.plot.components[component].weight).sum();
            Item {
                text: format!("{name}   {}", fixed(weight, 3)),
                note: String::new(),
                colour: self.colour(index),
                mark: Some(Mark::Dot),
                sample: Sample::Solid,
            }
        };
        let items: Vec<Item> = self.drawn_groups().take(MAX_IN_LEGEND).map(item).collect();
        legend::draw_column(canvas, &items, x, y)?;
        y += 22.0 * items.len() as f64 + 4.0;
        for note in self.notes() {
            let font = canvas.font(LABEL + 0.5, GREY, false);
            canvas.text(&note, (canvas.px(x), canvas.px(y)), font, HPos::Left, VPos::Center)?;
            y += 16.0;
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (all, drawn) = (self.components.len(), self.drawn().len());
        let groups = self.drawn_groups().count();
        if groups > MAX_IN_LEGEND {
            notes.push(format!("and {} lighter", groups - MAX_IN_LEGEND));
        }
        if self.plot.groups.len() < all {
            notes.push("one colour for each cluster".to_string());
        }
        if all > drawn {
            notes.push(format!("{} more are not drawn", thousands((all - drawn) as u64)));
        }
        if all > 1 {
            notes.push("black: the whole mixture".to_string());
        }
        if self.axes.len() > 1 {
            notes.push("means, 1σ and 2σ ellipses".to_string());
        }
        let (shown, in_all) = (self.plot.rows.len() as u64, self.plot.rows_in_all);
        match shown {
            0 => {}
            _ if shown < in_all => notes.push(format!("{} of {} rows", thousands(shown), thousands(in_all))),
            _ => notes.push(format!("all {} rows", thousands(shown))),
        }
        let rows_per_dot = self.detail().rows_per_dot;
        if rows_per_dot > 1 && shown > 0 && self.axes.len() > 1 {
            notes.push(format!("dots: one in {rows_per_dot} of them"));
        }
        notes
    }
}

impl Figure for Panels<'_> {
    fn size(&self) -> (u32, u32) {
        let last = self.axes.len() - 1;
        let [_, _, right, bottom] = self.panel(last, last);
        let margin = if last == 0 { LEGEND } else { 16.0 };
        ((right + margin).ceil() as u32, (bottom + FOOT).ceil() as u32)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B> {
        let heading = canvas.font(HEADING, INK, true);
        let room = f64::from(self.size().0) - self.left();
        let text = shortened(&self.plot.heading, room / (LETTER * HEADING));
        canvas.text(&text, (canvas.px(self.left()), canvas.px(12.0)), heading, HPos::Left, VPos::Top)?;
        for row in 0..self.axes.len() {
            for column in 0..row {
                self.draw_pair(canvas, row, column)?;
            }
            self.draw_alone(canvas, row)?;
        }
        self.draw_titles(canvas)?;
        self.draw_legend(canvas)
    }

    fn simpler(&self) -> Option<Self> {
        let coarseness = self.coarseness + 1;
        (coarseness < DETAILS.len()).then(|| Panels { coarseness, ..self.clone() })
    }
}

/// The same axis, with or without labels.
fn labelled(axis: &Axis, labels: bool) -> Axis {
    let mut axis = axis.clone();
    if !labels {
        axis.ticks.iter_mut().for_each(|(_, label)| label.clear());
    }
    axis
}
