//! A learned mixture over a sample of rows, along a few axes: one panel for each pair of them with the components'
//! ellipses, and on the diagonal each axis alone with its histogram and densities.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, RGBColor, WHITE};

use super::canvas::{self, Canvas, Drawn, Figure, PictureFormat};
use super::frame::{Axis, Frame};
use super::legend::{self, Item, Sample};
use super::shapes::{LETTER, curve, density, ellipse, histogram, range, readable_axis, shortened};
use super::style::{BLUE, GREEN, GREY, INK, Mark, ORANGE, PURPLE, SKY, VERMILION};
use crate::dist::Marginal;
use crate::report::ReportError;
use crate::report::format::{fixed, thousands};

/// Sides of a panel in SVG pixels, by the number of axes.
const SIDES: [f64; PairPlot::MOST_AXES] = [330.0, 290.0, 220.0, 178.0, 150.0];
pub(super) const GAP: f64 = 12.0;
const TOP: f64 = 44.0;
const FOOT: f64 = 42.0;
const LEGEND: f64 = 190.0;
const HEADING: f64 = 16.0;
pub(super) const TITLE: f64 = 13.0;
pub(super) const LABEL: f64 = 11.0;
/// Components beyond these would hide each other: the lightest are left out, and the picture says so.
const MOST_DRAWN: usize = 30;
const MOST_IN_LEGEND: usize = 10;
/// Beyond this nothing can be learned, and squares of it are no numbers.
const FARTHEST: f64 = 1e150;

/// Told apart by the colour-blind as well as so many can be.
const COLOURS: [RGBColor; 10] = [
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

/// A mixture and some rows along a few axes, to be drawn: a panel for each pair of axes with the rows and each
/// component's 1σ and 2σ ellipse, and one for each axis with a histogram of the rows and the densities.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPlot {
    /// What stands above it.
    pub heading: String,
    /// What the axes are called: from 1 to [`PairPlot::MOST_AXES`].
    pub axes: Vec<String>,
    /// The components along the axes.
    pub components: Vec<Marginal>,
    /// The components in groups that have a colour each, in the order of the legend.
    pub groups: Vec<PlotGroup>,
    /// Some rows along the axes; there may be none.
    pub rows: Vec<Vec<f64>>,
    /// How many rows these were taken from.
    pub rows_in_all: u64,
}

/// Components that are drawn in one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotGroup {
    /// What the legend calls it.
    pub name: String,
    /// Which components.
    pub components: Vec<usize>,
    /// Whether they are drawn in grey.
    pub is_apart: bool,
}

impl PlotGroup {
    /// A group for each component, numbered from the heaviest.
    pub fn of_each(components: &[Marginal]) -> Vec<Self> {
        let mut order: Vec<usize> = (0..components.len()).collect();
        order.sort_by(|&i, &j| components[j].weight.total_cmp(&components[i].weight));
        let group = |(place, component): (usize, usize)| PlotGroup {
            name: format!("#{}", place + 1),
            components: vec![component],
            is_apart: false,
        };
        order.into_iter().enumerate().map(group).collect()
    }
}

impl PairPlot {
    /// More axes than these make panels too small to read.
    pub const MOST_AXES: usize = 5;

    /// The bytes of a file of this format.
    pub fn draw(&self, format: PictureFormat) -> Result<Vec<u8>, ReportError> {
        let failed = |reason: String| ReportError::Drawing { name: self.heading.clone(), reason };
        let figure = self
            .figure()
            .ok_or_else(|| failed("components, rows and axes do not fit together".to_string()))?;
        canvas::file(&figure, format).map_err(failed)
    }

    /// What is drawn, or nothing if the parts do not fit together.
    pub(super) fn figure(&self) -> Option<Panels<'_>> {
        let count = self.axes.len();
        let sound = (1..=PairPlot::MOST_AXES).contains(&count)
            && !self.components.is_empty()
            && self.components.iter().all(|component| component.is_sound(count))
            && self.rows.iter().all(|row| row.len() == count)
            && self.groups.iter().map(|group| group.components.len()).sum::<usize>() == self.components.len();
        if !sound {
            return None;
        }
        let mut components = self.grouped()?;
        components.sort_by(|a, b| b.marginal.weight.total_cmp(&a.marginal.weight));
        let near = |row: &&Vec<f64>| row.iter().all(|value| value.abs() <= FARTHEST);
        let rows: Vec<&[f64]> = self.rows.iter().filter(near).map(Vec::as_slice).collect();
        let side = SIDES[count - 1];
        let marginals: Vec<&Marginal> = components.iter().map(|component| component.marginal).collect();
        let axis = |i: usize| readable_axis(range(&marginals, &rows, i), &self.axes[i], side);
        let axes = (0..count).map(axis).collect();
        Some(Panels { plot: self, components, rows, axes, side })
    }

    /// Each component with its group; nothing if one has none.
    fn grouped(&self) -> Option<Vec<Grouped<'_>>> {
        let of =
            |component: usize| self.groups.iter().position(|group| group.components.contains(&component));
        let grouped = |(i, marginal)| Some(Grouped { marginal, group: of(i)? });
        self.components.iter().enumerate().map(grouped).collect()
    }
}

/// A component and its group.
#[derive(Clone, Copy)]
struct Grouped<'a> {
    marginal: &'a Marginal,
    group: usize,
}

/// A pair plot laid out.
pub(super) struct Panels<'a> {
    plot: &'a PairPlot,
    /// From the heaviest.
    components: Vec<Grouped<'a>>,
    rows: Vec<&'a [f64]>,
    axes: Vec<Axis>,
    side: f64,
}

impl Panels<'_> {
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
        &self.components[..self.components.len().min(MOST_DRAWN)]
    }

    /// The groups of which a component is drawn.
    fn drawn_groups(&self) -> impl Iterator<Item = usize> {
        let is_drawn = |&group: &usize| self.drawn().iter().any(|component| component.group == group);
        (0..self.plot.groups.len()).filter(is_drawn)
    }

    fn colour(&self, group: usize) -> RGBColor {
        if self.plot.groups[group].is_apart { GREY } else { COLOURS[group % COLOURS.len()] }
    }

    /// Heavy components in full, light ones thin and pale.
    fn stroke<B: DrawingBackend>(
        &self,
        canvas: &Canvas<B>,
        index: usize,
        pale: f64,
    ) -> plotters::style::ShapeStyle {
        let heaviest = self.components[0].marginal.weight.max(f64::MIN_POSITIVE);
        let Grouped { marginal, group } = self.components[index];
        let share = (marginal.weight / heaviest).sqrt();
        let ink = self.colour(group).mix(pale * (0.5 + 0.5 * share));
        canvas.stroke(ink, 0.9 + 1.1 * share)
    }

    fn draw_pair<B: DrawingBackend>(&self, canvas: &Canvas<B>, row: usize, column: usize) -> Drawn<B> {
        let last = self.axes.len() - 1;
        let x = labelled(&self.axes[column], row == last);
        let y = labelled(&self.axes[row], column == 0);
        let frame = Frame::panel(canvas, self.panel(row, column), x, y, LABEL)?;
        for values in self.rows.iter().filter(|values| frame.shows(values[column], values[row])) {
            canvas.dot(frame.at(values[column], values[row]), 1.25, POINTS.mix(0.45))?;
        }
        // The heaviest last, above the others.
        for (index, component) in self.drawn().iter().enumerate().rev() {
            for (times, pale) in [(2.0, 0.75), (1.0, 1.0)] {
                let corners = ellipse(component.marginal, column, row, times);
                frame.draw_line(canvas, &corners, self.stroke(canvas, index, pale), false)?;
            }
        }
        for Grouped { marginal, group } in self.drawn().iter().rev() {
            let (x, y) = (marginal.mean[column], marginal.mean[row]);
            if frame.shows(x, y) {
                canvas.dot(frame.at(x, y), 3.4, WHITE)?;
                canvas.dot(frame.at(x, y), 2.5, self.colour(*group))?;
            }
        }
        Ok(())
    }

    fn draw_alone<B: DrawingBackend>(&self, canvas: &Canvas<B>, index: usize) -> Drawn<B> {
        let axis = &self.axes[index];
        let bars = histogram(axis, self.rows.iter().map(|row| row[index]), self.rows.len());
        let curves: Vec<Vec<f64>> =
            self.components.iter().map(|component| density(axis, component.marginal, index)).collect();
        let mut whole = vec![0.0; curves[0].len()];
        for curve in &curves {
            whole.iter_mut().zip(curve).for_each(|(sum, value)| *sum += value);
        }
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (tallest, peak) = (most(&bars), most(&whole));
        // A spike, as of a column that is mostly one value, would press everything else flat.
        let high = if bars.is_empty() { peak } else { tallest.max(peak.min(1.6 * tallest)) };
        let high = if high > 0.0 { 1.06 * high } else { 1.0 };
        let y = Axis { low: 0.0, high, ticks: Vec::new(), title: String::new(), named: true };
        let x = labelled(axis, index + 1 == self.axes.len());
        let frame = Frame::panel(canvas, self.panel(index, index), x, y, LABEL)?;
        let step = (axis.high - axis.low) / bars.len().max(1) as f64;
        for (i, bar) in bars.iter().enumerate().filter(|(_, bar)| **bar > 0.0) {
            let from = axis.low + step * i as f64;
            let (left, bottom) = frame.at(from, 0.0);
            let (right, top) = frame.at(from + step, bar.min(high));
            // A hair between bars.
            canvas.bar([(left, top), (right - canvas.px(0.75), bottom)], BARS)?;
        }
        frame.draw_line(canvas, &curve(axis, &whole), canvas.stroke(INK, 1.5), false)?;
        for (component, values) in curves.iter().enumerate().take(MOST_DRAWN).rev() {
            frame.draw_line(canvas, &curve(axis, values), self.stroke(canvas, component, 1.0), false)?;
        }
        Ok(())
    }

    fn draw_titles<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
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
            let beside = if index == 0 { self.left() - 20.0 } else { 8.0 };
            canvas.upward_text(title, (canvas.px(beside), middle.1), font)?;
        }
        Ok(())
    }

    /// In the corner that a lower triangle leaves free.
    fn draw_legend<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
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
        let items: Vec<Item> = self.drawn_groups().take(MOST_IN_LEGEND).map(item).collect();
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
        if groups > MOST_IN_LEGEND {
            notes.push(format!("and {} lighter", groups - MOST_IN_LEGEND));
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
        notes
    }
}

impl Figure for Panels<'_> {
    fn size(&self) -> (u32, u32) {
        let last = self.axes.len() - 1;
        let [_, _, right, bottom] = self.panel(last, last);
        let beside = if last == 0 { LEGEND } else { 16.0 };
        ((right + beside).ceil() as u32, (bottom + FOOT).ceil() as u32)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> Drawn<B> {
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
}

/// The same axis, with or without the words at its ticks.
fn labelled(axis: &Axis, labels: bool) -> Axis {
    let mut axis = axis.clone();
    if !labels {
        axis.ticks.iter_mut().for_each(|(_, label)| label.clear());
    }
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Components that lie well inside the rows, along so many axes.
    fn plot(axes: usize, k: usize) -> PairPlot {
        let component = |j: usize| Marginal {
            weight: 1.0 / k as f64,
            mean: vec![j as f64; axes],
            covariance: (0..axes)
                .map(|i| (0..=i).map(|j| if i == j { 1.0 } else { 0.5 }).collect())
                .collect(),
        };
        // Dense in the middle, as the mixture is, and wide enough to show all of it.
        let cubed = |i: usize, axis: usize| ((i * (axis + 7) % 101) as f64 / 50.0 - 1.0).powi(3);
        let place = |i: usize, axis: usize| (k as f64 - 1.0) / 2.0 + 7.0 * cubed(i, axis);
        let components: Vec<Marginal> = (0..k).map(component).collect();
        PairPlot {
            heading: "A & <b>".into(),
            axes: (0..axes).map(|i| format!("<x{i}>")).collect(),
            groups: PlotGroup::of_each(&components),
            components,
            rows: (0..300).map(|i| (0..axes).map(|axis| place(i, axis)).collect()).collect(),
            rows_in_all: 5000,
        }
    }

    fn svg(plot: &PairPlot) -> String {
        String::from_utf8(plot.draw(PictureFormat::Svg).unwrap()).unwrap()
    }

    #[test]
    fn every_panel_has_two_ellipses_for_each_component() {
        for (axes, k) in [(1, 1), (1, 3), (2, 1), (3, 4), (5, 2)] {
            let svg = svg(&plot(axes, k));
            for colour in COLOURS.iter().take(k) {
                let stroke = format!("stroke=\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
                let lines = svg.lines().filter(|l| l.starts_with("<polyline") && l.contains(&stroke)).count();
                // Two in each pair's panel, a curve on the diagonal, and one line in the legend.
                assert_eq!(lines, axes * (axes - 1) + axes + 1, "{axes} axes, {k} components");
            }
            let points = svg.lines().filter(|l| l.contains("<circle") && l.contains("#606060")).count();
            assert_eq!(points > 0, axes > 1);
            assert!(svg.contains("300 of 5,000 rows") && !svg.contains("NaN") && !svg.contains("inf\""));
            assert!(svg.contains("&lt;x0&gt;") && !svg.contains("<x0>"), "names are no markup");
        }
    }

    #[test]
    fn components_of_one_group_have_one_colour() {
        let mut plot = plot(2, 4);
        let group = |name: &str, components: &[usize], is_apart| PlotGroup {
            name: name.into(),
            components: components.to_vec(),
            is_apart,
        };
        plot.groups = vec![group("#7", &[0, 2, 3], false), group("outliers", &[1], true)];
        let svg = svg(&plot);
        let lines = |colour: RGBColor| {
            let stroke = format!("stroke=\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
            svg.lines().filter(|l| l.starts_with("<polyline") && l.contains(&stroke)).count()
        };
        // Of each component two ellipses and two curves; of each group one line in the legend.
        assert_eq!((lines(COLOURS[0]), lines(COLOURS[1])), (3 * 4 + 1, 0));
        for words in ["#7   0.750", "outliers   0.250", "one colour for each cluster"] {
            assert!(svg.contains(words), "{words}");
        }
    }

    #[test]
    fn the_same_plot_is_the_same_bytes() {
        for format in [PictureFormat::Svg, PictureFormat::Png] {
            assert_eq!(plot(2, 3).draw(format).unwrap(), plot(2, 3).draw(format).unwrap());
        }
        assert!(plot(1, 1).draw(PictureFormat::Png).unwrap().starts_with(b"\x89PNG"));
    }

    #[test]
    fn many_components_are_counted_and_no_rows_are_none() {
        let mut many = plot(2, 50);
        many.rows.clear();
        let svg = svg(&many);
        assert!(svg.contains("and 20 lighter") && svg.contains("20 more are not drawn"));
        assert!(!svg.contains("rows") && !svg.contains("#DCDCDC"));
    }

    #[test]
    fn parts_that_do_not_fit_together_are_refused() {
        let mut wrong = vec![plot(2, 2); 9];
        wrong[0].rows[3].pop();
        wrong[1].components[1].mean[0] = f64::NAN;
        wrong[2].components[0].covariance[1].pop();
        wrong[3].axes.push("more".into());
        wrong[4].components.clear();
        wrong[5] = plot(6, 2);
        wrong[6].groups.pop();
        wrong[7].groups[1].components = vec![0];
        wrong[8].groups[1].components = vec![7];
        for plot in wrong {
            assert!(matches!(plot.draw(PictureFormat::Svg), Err(ReportError::Drawing { .. })));
        }
    }
}
