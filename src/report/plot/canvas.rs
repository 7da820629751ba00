//! Drawing in pixels, the same for SVG and PNG.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontStyle, FontTransform, IntoFont, RGBColor, ShapeStyle, TextStyle, WHITE, register_font,
};

use super::style::Mark;
use crate::text::printable;

/// PNG pixels per SVG pixel.
const PNG_SCALE: u32 = 2;
/// A file should have fewer bytes.
const MAX_BYTES: usize = 100_000;
/// PNGs are drawn larger by this factor and averaged down, which smooths edges.
const SMOOTHING: u32 = 2;
/// Registered under the name of the generic family, so that an SVG viewer uses its own font of that family.
const FONT: &str = "sans-serif";

pub(super) type Area<B> = DrawingArea<B, Shift>;
pub(super) type DrawError<B> = DrawingAreaErrorKind<<B as DrawingBackend>::ErrorType>;
pub(super) type DrawResult<B> = Result<(), DrawError<B>>;
pub(super) type Pixel = (i32, i32);

/// Something that can be drawn by any back end.
pub(super) trait Figure {
    /// Width and height in SVG pixels.
    fn size(&self) -> (u32, u32);
    fn draw<B: DrawingBackend>(&self, canvas: &Canvas<B>) -> DrawResult<B>;

    /// The same figure with less detail, or `None` if there is no such one.
    fn simpler(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
}

/// A white sheet with the scale of its pixels.
pub(super) struct Canvas<B: DrawingBackend> {
    pub area: Area<B>,
    scale: f64,
    text: TextMetrics,
}

/// How a back end places text.
#[derive(Clone, Copy)]
struct TextMetrics {
    /// The factor of a font size, so that both formats look the same.
    size: f64,
    /// How far text must be lowered, in multiples of its size.
    drop: f64,
}

/// The size is the height of a line, and the em is smaller by this factor.
const IN_SVG: TextMetrics = TextMetrics { size: 1.24 / 1.164, drop: 0.0 };
/// The back end places text too high.
const IN_PNG: TextMetrics = TextMetrics { size: 1.0, drop: 0.15 };

impl<B: DrawingBackend> Canvas<B> {
    /// Converts SVG pixels to pixels.
    pub fn px(&self, length: f64) -> i32 {
        (length * self.scale).round() as i32
    }

    pub fn stroke(&self, colour: impl Color, width: f64) -> ShapeStyle {
        colour.stroke_width(((width * self.scale).round() as u32).max(1))
    }

    pub fn font(&self, size: f64, colour: RGBColor, bold: bool) -> TextStyle<'static> {
        let style = if bold { FontStyle::Bold } else { FontStyle::Normal };
        // Not `FontDesc::style`, which changes the name of the style and keeps the glyphs.
        let mut text = TextStyle::from((FONT, size * self.text.size * self.scale, style).into_font());
        text.color = colour.to_backend_color();
        text
    }

    /// Text anchored at a point.
    pub fn text(&self, text: &str, at: Pixel, style: TextStyle<'_>, h: HPos, v: VPos) -> DrawResult<B> {
        let at = (at.0, at.1 + self.dropped(&style));
        self.area.draw(&Text::new(shown(text), at, style.pos(Pos::new(h, v))))
    }

    /// Text that reads upwards, centred at a point.
    pub fn upward_text(&self, text: &str, at: Pixel, style: TextStyle<'_>) -> DrawResult<B> {
        let at = (at.0 + self.dropped(&style), at.1);
        let style = style.transform(FontTransform::Rotate270).pos(Pos::new(HPos::Center, VPos::Top));
        self.area.draw(&Text::new(shown(text), at, style))
    }

    fn dropped(&self, style: &TextStyle<'_>) -> i32 {
        (self.text.drop * style.font.get_size()).round() as i32
    }

    pub fn line(&self, points: &[Pixel], style: ShapeStyle) -> DrawResult<B> {
        self.area.draw(&PathElement::new(points.to_vec(), style))
    }

    pub fn dashed(&self, points: &[Pixel], style: ShapeStyle) -> DrawResult<B> {
        let (dash, gap) = (self.px(6.0), self.px(4.0));
        self.area.draw(&DashedPathElement::new(points.to_vec(), dash, gap, style))
    }

    pub fn bar(&self, corners: [Pixel; 2], colour: RGBColor) -> DrawResult<B> {
        self.area.draw(&Rectangle::new(corners, colour.filled()))
    }

    pub fn ring(&self, at: Pixel, radius: f64, colour: RGBColor, width: f64) -> DrawResult<B> {
        self.area.draw(&Circle::new(at, self.px(radius), self.stroke(colour, width)))
    }

    pub fn dot(&self, at: Pixel, radius: f64, colour: impl Color) -> DrawResult<B> {
        self.area.draw(&Circle::new(at, self.px(radius), colour.filled()))
    }

    pub fn mark(&self, mark: Mark, at: Pixel, colour: RGBColor) -> DrawResult<B> {
        let r = self.px(4.0);
        let shift = |offsets: &[Pixel]| offsets.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect::<Vec<_>>();
        let fill = |offsets: &[Pixel]| self.area.draw(&Polygon::new(shift(offsets), colour.filled()));
        let strokes = |a: [Pixel; 2], b: [Pixel; 2]| {
            self.line(&shift(&a), self.stroke(colour, 2.0))?;
            self.line(&shift(&b), self.stroke(colour, 2.0))
        };
        match mark {
            Mark::Dot => self.area.draw(&Circle::new(at, r, colour.filled())),
            Mark::Ring => {
                self.area.draw(&Circle::new(at, r, WHITE.filled()))?;
                self.ring(at, 3.5, colour, 1.5)
            }
            Mark::Square => fill(&[(-r, -r), (r, -r), (r, r), (-r, r)]),
            Mark::Diamond => fill(&[(0, -r - r / 3), (r + r / 3, 0), (0, r + r / 3), (-r - r / 3, 0)]),
            Mark::Up => fill(&[(0, -r - r / 4), (r + r / 4, r), (-r - r / 4, r)]),
            Mark::Down => fill(&[(0, r + r / 4), (r + r / 4, -r), (-r - r / 4, -r)]),
            Mark::Cross => strokes([(-r, -r), (r, r)], [(-r, r), (r, -r)]),
            Mark::Plus => strokes([(-r - r / 4, 0), (r + r / 4, 0)], [(0, -r - r / 4), (0, r + r / 4)]),
        }
    }
}

/// Removes control characters, with which an SVG is not well formed.
fn shown(text: &str) -> String {
    printable(text).replace(['\n', '\t'], " ")
}

/// File formats of pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    /// Vector graphics.
    Svg,
    /// Pixels.
    Png,
}

impl PictureFormat {
    /// The format that a file's extension names.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "svg" => Some(PictureFormat::Svg),
            "png" => Some(PictureFormat::Png),
            _ => None,
        }
    }
}

/// A figure as the bytes of a file of this format.
pub(super) fn file(figure: &impl Figure, format: PictureFormat) -> Result<Vec<u8>, String> {
    match format {
        PictureFormat::Svg => svg(figure).map(String::into_bytes),
        PictureFormat::Png => png(figure),
    }
}

/// A figure as short SVG text. A crowded figure has less detail.
pub(super) fn svg(figure: &impl Figure) -> Result<String, String> {
    let mut text = compact(&svg_of(figure)?, false);
    let mut simpler = figure.simpler();
    while let Some(figure) = simpler.filter(|_| text.len() >= MAX_BYTES) {
        text = compact(&svg_of(&figure)?, true);
        simpler = figure.simpler();
    }
    Ok(text)
}

fn svg_of(figure: &impl Figure) -> Result<String, String> {
    let (width, height) = figure.size();
    let scale = PNG_SCALE * SMOOTHING;
    let (wide, high) = (width * scale, height * scale);
    let mut svg = String::new();
    draw_on(SVGBackend::with_string(&mut svg, (wide, high)), scale, IN_SVG, figure)?;
    // The back end knows whole pixels only, so the picture is drawn large and scaled down.
    Ok(svg.replacen(
        &format!("width=\"{wide}\" height=\"{high}\""),
        &format!("width=\"{width}\" height=\"{height}\""),
        1,
    ))
}

/// Shortens the text of an SVG: many dots of one style in a row become one path, which takes a tenth of the bytes, and so does
/// a line of many points, with half the bytes. In a crowded picture, few dots and lines of one style in a row do too.
fn compact(svg: &str, crowded: bool) -> String {
    let mut text = String::with_capacity(svg.len());
    let lines: Vec<&str> = svg.lines().collect();
    let alike = |a: &&str, b: &&str| match (Dot::parse(a), Dot::parse(b)) {
        (Some(a), Some(b)) => a.style == b.style,
        (None, None) if crowded => polyline(a).is_some_and(|a| Some(a.0) == polyline(b).map(|b| b.0)),
        _ => false,
    };
    let (fewest_dots, fewest_points) = if crowded { (3, 2) } else { (MIN_DOTS, MIN_POINTS) };
    for run in lines.chunk_by(alike) {
        match Dot::parse(run[0]).filter(|_| run.len() >= fewest_dots) {
            Some(first) => text.push_str(&first.path(run)),
            None => match joined(run, fewest_points) {
                Some(path) => text.push_str(&path.replace(" opacity=\"1\"", "")),
                None => run.iter().for_each(|line| {
                    let line = line.replace(" opacity=\"1\"", "");
                    text.push_str(&line.replace(" stroke=\"none\" stroke-width=\"1\"", ""));
                    text.push('\n');
                }),
            },
        }
    }
    text
}

/// Fewer dots of one style in a row stay circles.
const MIN_DOTS: usize = 50;

/// Height of the bands in which dots are listed, in pixels, so that neighbours in the list are near each other.
const BAND: i64 = 60;

/// Lines of fewer points stay polylines.
const MIN_POINTS: usize = 8;

/// Style and points of a polyline.
fn polyline(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("<polyline")?.strip_suffix("\"/>")?.split_once(" points=\"")
}

/// Polylines of one style as one path; `None` for other elements and if one has fewer points.
fn joined(run: &[&str], fewest_points: usize) -> Option<String> {
    let (style, _) = polyline(run[0])?;
    let parts = run.iter().map(|line| relative(polyline(line)?.1, fewest_points));
    Some(format!("<path{style} d=\"{}\"/>\n", parts.collect::<Option<String>>()?))
}

/// The description of a path through points, of which all but the first are relative to the one before.
fn relative(points: &str, fewest: usize) -> Option<String> {
    let number = |text: &str| text.parse::<i64>().ok();
    let point = |text: &str| text.split_once(',').and_then(|(x, y)| Some((number(x)?, number(y)?)));
    let points: Vec<(i64, i64)> = points.split_whitespace().map(point).collect::<Option<_>>()?;
    if points.len() < fewest {
        return None;
    }
    let mut steps: Vec<(i64, i64)> = Vec::with_capacity(points.len());
    for pair in points.windows(2) {
        let step = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
        match steps.last_mut() {
            // One step along a level line, as where a density is zero.
            Some(last) if last.1 == 0 && step.1 == 0 && last.0.signum() == step.0.signum() => {
                last.0 += step.0
            }
            _ => steps.push(step),
        }
    }
    let mut path = format!("M{} {}l", points[0].0, points[0].1);
    for (i, &(x, y)) in steps.iter().enumerate() {
        path += &format!("{}{x}{}{y}", if i == 0 { "" } else { space(x) }, space(y));
    }
    Some(path)
}

/// What separates a number from the one before it: a sign does too.
fn space(value: i64) -> &'static str {
    if value < 0 { "" } else { " " }
}

/// A filled circle of an SVG: its place, and its radius, opacity and colour.
struct Dot<'a> {
    at: (&'a str, &'a str),
    style: (&'a str, &'a str, &'a str),
}

impl<'a> Dot<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let rest = line.strip_prefix("<circle ")?.strip_suffix("/>")?;
        let value = |name: &str| {
            let from = rest.find(&format!("{name}=\""))? + name.len() + 2;
            rest[from..].split('"').next()
        };
        let style = (value("r")?, value("opacity")?, value("fill")?);
        (value("stroke")? == "none").then_some(Dot { at: (value("cx")?, value("cy")?), style })
    }

    fn place(&self) -> Option<(i64, i64)> {
        Some((self.at.0.parse().ok()?, self.at.1.parse().ok()?))
    }

    /// Lines of length 0 with round ends. Their order does not matter, because one path covers a place once.
    fn path(&self, run: &[&str]) -> String {
        let (radius, opacity, fill) = self.style;
        let width = 2.0 * radius.parse::<f64>().unwrap_or_default();
        let mut dots: Vec<(i64, i64)> = run.iter().filter_map(|line| Dot::parse(line)?.place()).collect();
        // The direction alternates from band to band.
        dots.sort_by_key(|&(x, y)| {
            let band = y.div_euclid(BAND);
            (band, if band % 2 == 0 { x } else { -x }, y)
        });
        dots.dedup();
        let mut places = String::new();
        let (mut x, mut y) = (0, 0);
        for (across, down) in dots {
            places += &format!("m{}{}{}h0", across - x, space(down - y), down - y);
            (x, y) = (across, down);
        }
        format!(
            "<path fill=\"none\" stroke=\"{fill}\" stroke-opacity=\"{opacity}\" stroke-width=\"{width}\" \
             stroke-linecap=\"round\" d=\"{places}\"/>\n"
        )
    }
}

/// A figure as the bytes of a PNG file. A crowded figure has fewer pixels.
pub(super) fn png(figure: &impl Figure) -> Result<Vec<u8>, String> {
    let sharp = png_at(figure, PNG_SCALE)?;
    if sharp.len() < MAX_BYTES { Ok(sharp) } else { png_at(figure, 1) }
}

fn png_at(figure: &impl Figure, png_scale: u32) -> Result<Vec<u8>, String> {
    let (width, height) = figure.size();
    let scale = png_scale * SMOOTHING;
    let (wide, high) = (width * scale, height * scale);
    let mut pixels = vec![0u8; (wide * high * 3) as usize];
    draw_on(BitMapBackend::with_buffer(&mut pixels, (wide, high)), scale, IN_PNG, figure)?;
    encode(width * png_scale, height * png_scale, &averaged(&pixels, wide as usize))
        .map_err(|error| error.to_string())
}

fn draw_on<B: DrawingBackend>(
    backend: B,
    scale: u32,
    text: TextMetrics,
    figure: &impl Figure,
) -> Result<(), String> {
    register_fonts()?;
    let canvas = Canvas { area: backend.into_drawing_area(), scale: f64::from(scale), text };
    let draw = || {
        canvas.area.fill(&WHITE)?;
        figure.draw(&canvas)?;
        canvas.area.present()
    };
    draw().map_err(|error| error.to_string())
}

fn register_fonts() -> Result<(), String> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let done = DONE.get_or_init(|| {
        let normal = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
        let bold = register_font(FONT, FontStyle::Bold, dejavu::sans::bold());
        normal.is_ok() && bold.is_ok()
    });
    if *done { Ok(()) } else { Err("the built-in font is damaged".to_string()) }
}

/// Each square of `SMOOTHING`² pixels becomes their mean.
fn averaged(pixels: &[u8], width: usize) -> Vec<u8> {
    let step = SMOOTHING as usize;
    let rows: Vec<&[u8]> = pixels.chunks_exact(width * 3).collect();
    let mut small = Vec::with_capacity(pixels.len() / (step * step));
    for band in rows.chunks_exact(step) {
        for x in 0..width / step {
            for channel in 0..3 {
                let of = |row: &&[u8]| -> usize {
                    (0..step).map(|dx| usize::from(row[(x * step + dx) * 3 + channel])).sum()
                };
                let sum: usize = band.iter().map(of).sum();
                small.push((sum / (step * step)) as u8);
            }
        }
    }
    small
}

fn encode(width: u32, height: u32, pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let (palette, indices) = with_palette(pixels);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    // Neighbouring indices are no neighbouring colours.
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_palette(palette);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&indices)?;
    writer.finish()?;
    Ok(bytes)
}

/// The 256 most frequent colours, and the place of the nearest of them for each pixel. A chart has few colours, and the shades
/// of smoothed edges are close to others, so the file is a third as large and looks the same.
fn with_palette(pixels: &[u8]) -> (Vec<u8>, Vec<u8>) {
    // A chart has long runs of one colour, and each run is looked up once.
    let runs = || pixels.as_chunks::<3>().0.chunk_by(|a, b| a == b);
    let mut counts: BTreeMap<[u8; 3], usize> = BTreeMap::new();
    runs().for_each(|run| *counts.entry(run[0]).or_default() += run.len());
    let mut frequent: Vec<([u8; 3], usize)> =
        counts.iter().map(|(colour, count)| (*colour, *count)).collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let palette: Vec<[u8; 3]> = frequent.into_iter().take(256).map(|(colour, _)| colour).collect();
    let distance = |a: &[u8; 3], b: &[u8; 3]| -> u32 {
        a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
    };
    let nearest = |colour: &[u8; 3]| {
        (0..palette.len()).min_by_key(|&i| distance(&palette[i], colour)).unwrap_or(0) as u8
    };
    let places: BTreeMap<[u8; 3], u8> = counts.keys().map(|colour| (*colour, nearest(colour))).collect();
    let indices = runs().flat_map(|run| std::iter::repeat_n(places[&run[0]], run.len())).collect();
    (palette.concat(), indices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_pixels_become_their_mean() {
        let pixels = [[0u8; 3], [100; 3], [50; 3], [250; 3]].concat();
        assert_eq!(averaged(&pixels, 2), [100, 100, 100]);
    }

    #[test]
    fn a_palette_keeps_the_frequent_colours_and_takes_the_nearest_for_others() {
        let frequent = (0..256).flat_map(|i| [[i as u8, 0, 0]; 2]).collect::<Vec<_>>();
        let pixels = [frequent.concat(), vec![7, 1, 0]].concat();
        let (palette, indices) = with_palette(&pixels);
        assert_eq!((palette.len(), indices.len()), (3 * 256, 513));
        let colour = |place: usize| palette[3 * usize::from(indices[place])];
        assert_eq!((colour(2), colour(511), colour(512)), (1, 255, 7));
    }

    #[test]
    fn many_dots_of_one_style_become_one_path() {
        let dot = |x: usize| {
            format!(
                "<circle cx=\"{x}\" cy=\"9\" r=\"5\" opacity=\"0.45\" fill=\"#606060\" stroke=\"none\" stroke-width=\"1\"/>\n"
            )
        };
        let few: String = (0..3).map(dot).collect();
        let many: String = (0..60).map(dot).collect();
        assert_eq!(compact(&few, false), few.replace(" stroke=\"none\" stroke-width=\"1\"", ""));
        let path = compact(&format!("<svg>\n{many}</svg>\n"), false);
        assert!(
            path.contains("d=\"m0 9h0m1 0h0m1 0h0")
                && path.contains("stroke-width=\"10\"")
                && path.lines().count() == 3,
            "{path}"
        );
    }

    #[test]
    fn a_line_of_many_points_becomes_a_path() {
        let line =
            |points: &str| format!("<polyline fill=\"none\" stroke-width=\"4\" points=\"{points} \"/>\n");
        let few = line("1,2 3,4 5,6");
        assert_eq!(compact(&few, false), few);
        assert_eq!(
            compact(&line("10,20 5,30 5,30 8,25 9,9 10,9 11,9 12,9"), false),
            "<path fill=\"none\" stroke-width=\"4\" d=\"M10 20l-5 10 0 0 3-5 1-16 3 0\"/>\n"
        );
    }

    #[test]
    fn lines_of_one_style_are_joined_in_a_crowded_picture() {
        let line = |style: &str, points: &str| format!("<polyline {style} points=\"{points} \"/>\n");
        let lines = [line("a", "1,2 3,4"), line("a", "5,6 5,9 7,9"), line("b", "0,0 1,1")].concat();
        assert_eq!(compact(&lines, false), lines);
        let joined = "<path a d=\"M1 2l2 2M5 6l0 3 2 0\"/>\n<path b d=\"M0 0l1 1\"/>\n";
        assert_eq!(compact(&lines, true), joined);
    }

    #[test]
    fn a_file_s_name_says_its_format() {
        let of = |name: &str| PictureFormat::of(Path::new(name));
        assert_eq!((of("a.svg"), of("b/c.PNG")), (Some(PictureFormat::Svg), Some(PictureFormat::Png)));
        assert_eq!((of("a.pdf"), of("svg"), of("-")), (None, None, None));
    }
}
