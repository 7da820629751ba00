//! Pair plots of a learned mixture with a sample of rows, along a few axes.

use super::canvas::{self, PictureFormat};
use super::panels::{Grouped, Panels, SIDES};
use super::shapes::{range, readable_axis};
use crate::dist::Marginal;
use crate::report::ReportError;

/// Rows with larger values are not drawn: their squares overflow.
const MAX_DRAWN: f64 = 1e150;

/// A mixture and some rows along a few axes. Each pair of axes has a panel with the rows and each component's 1σ and 2σ
/// ellipse; each axis has one with a histogram of the rows and the densities.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPlot {
    /// The heading above it.
    pub heading: String,
    /// The names of the axes: from 1 to [`PairPlot::MAX_AXES`].
    pub axes: Vec<String>,
    /// The components along the axes.
    pub components: Vec<Marginal>,
    /// Groups of components, each with its own colour, in the order of the legend.
    pub groups: Vec<PlotGroup>,
    /// Some rows along the axes; may be empty. A panel leaves out rows that are NaN on its axes.
    pub rows: Vec<Vec<f64>>,
    /// The number of rows that they were sampled from.
    pub rows_in_all: u64,
}

/// Components that are drawn in one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct PlotGroup {
    /// Its name in the legend.
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
    pub const MAX_AXES: usize = 5;

    /// The bytes of a file of this format.
    pub fn draw(&self, format: PictureFormat) -> Result<Vec<u8>, ReportError> {
        let failed = |reason: String| ReportError::Drawing { name: self.heading.clone(), reason };
        let figure = self
            .figure()
            .ok_or_else(|| failed("components, rows and axes do not fit together".to_string()))?;
        canvas::file(&figure, format).map_err(failed)
    }

    /// The layout, or `None` if the parts do not fit together.
    pub(super) fn figure(&self) -> Option<Panels<'_>> {
        let count = self.axes.len();
        let sound = (1..=PairPlot::MAX_AXES).contains(&count)
            && !self.components.is_empty()
            && self.components.iter().all(|component| component.is_sound(count))
            && self.rows.iter().all(|row| row.len() == count)
            && self.groups.iter().map(|group| group.components.len()).sum::<usize>() == self.components.len();
        if !sound {
            return None;
        }
        let mut components = self.grouped()?;
        components.sort_by(|a, b| b.marginal.weight.total_cmp(&a.marginal.weight));
        let near = |row: &&Vec<f64>| row.iter().all(|value| value.is_nan() || value.abs() <= MAX_DRAWN);
        let rows: Vec<&[f64]> = self.rows.iter().filter(near).map(Vec::as_slice).collect();
        let side = SIDES[count - 1];
        let marginals: Vec<&Marginal> = components.iter().map(|component| component.marginal).collect();
        let axis = |i: usize| readable_axis(range(&marginals, &rows, i), &self.axes[i], side);
        let axes = (0..count).map(axis).collect();
        Some(Panels { plot: self, components, rows, axes, side, coarseness: 0 })
    }

    /// Each component with its group; `None` if a component has no group.
    fn grouped(&self) -> Option<Vec<Grouped<'_>>> {
        let of =
            |component: usize| self.groups.iter().position(|group| group.components.contains(&component));
        let grouped = |(i, marginal)| Some(Grouped { marginal, group: of(i)? });
        self.components.iter().enumerate().map(grouped).collect()
    }
}

#[cfg(test)]
mod tests {
    use plotters::style::RGBColor;

    use super::super::panels::COLOURS;
    use super::*;

    /// Components that lie well inside the rows.
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

    /// The number of dots: a path of many dots has a line of length 0 for each.
    fn dots(svg: &str) -> usize {
        let lines = svg.lines().filter(|l| l.contains("#606060"));
        lines
            .map(
                |l| {
                    if l.starts_with("<path") {
                        l.matches("h0").count()
                    } else {
                        l.matches("<circle").count()
                    }
                },
            )
            .sum()
    }

    /// The number of lines of a colour.
    fn lines_of(svg: &str, colour: RGBColor) -> usize {
        let stroke = format!("stroke=\"#{:02X}{:02X}{:02X}\"", colour.0, colour.1, colour.2);
        let is_line = |line: &&str| ["<polyline", "<path"].iter().any(|name| line.starts_with(name));
        svg.lines().filter(is_line).filter(|line| line.contains(&stroke)).count()
    }

    #[test]
    fn every_panel_has_two_ellipses_for_each_component() {
        for (axes, k) in [(1, 1), (1, 3), (2, 1), (3, 4), (5, 2)] {
            let svg = svg(&plot(axes, k));
            for colour in COLOURS.iter().take(k) {
                let lines = lines_of(&svg, *colour);
                // Two in each pair's panel, a curve on the diagonal, and one line in the legend.
                assert_eq!(lines, axes * (axes - 1) + axes + 1, "{axes} axes, {k} components");
            }
            assert_eq!(dots(&svg) > 0, axes > 1);
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
        let lines = |colour: RGBColor| lines_of(&svg, colour);
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
    fn a_panel_leaves_out_rows_with_a_gap_on_its_axes() {
        let dots = |plot: &PairPlot| dots(&svg(plot));
        let whole = plot(3, 2);
        let mut gaps = whole.clone();
        gaps.rows.iter_mut().for_each(|row| row[2] = f64::NAN);
        // One of the three pairs of axes is left.
        assert!(dots(&gaps) > 0 && dots(&gaps) < dots(&whole) / 2);
        gaps.rows.iter_mut().for_each(|row| row.fill(f64::NAN));
        assert_eq!(dots(&gaps), 0);
        assert!(!svg(&gaps).contains("NaN") && !svg(&gaps).contains("#DCDCDC"));
    }

    #[test]
    fn many_components_are_counted_and_no_rows_are_none() {
        let mut many = plot(2, 50);
        many.rows.clear();
        let svg = svg(&many);
        assert!(svg.contains("and 20 lighter") && svg.contains("20 more are not drawn"));
        assert!(!svg.contains("rows") && !svg.contains("#DCDCDC"));
    }

    /// Components and rows that fill all panels.
    #[test]
    fn crowded_plots_are_small_files() {
        let at = |seed: usize| (seed.wrapping_mul(0x9e37_79b9) >> 7) % 10_000;
        for k in [20, 50] {
            let mut crowded = plot(5, k);
            for (i, component) in crowded.components.iter_mut().enumerate() {
                component.weight = (1 + i) as f64 / (k * (k + 1) / 2) as f64;
                component.mean = (0..5).map(|axis| at(1 + 5 * i + axis) as f64 / 500.0).collect();
            }
            crowded.rows = (0..1000)
                .map(|i| (0..5).map(|axis| at(1000 + 5 * i + axis) as f64 / 500.0).collect())
                .collect();
            let text = svg(&crowded);
            assert!(text.len() < 100_000, "K = {k}: {} bytes", text.len());
            assert!(text.contains("1,000 of 5,000 rows") && text.contains("dots: one in"));
        }
        assert!(!svg(&plot(2, 3)).contains("dots: one in"));
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
