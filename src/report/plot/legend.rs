//! The legend, to the right of or below the data.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Canvas, DrawResult};
use super::style::{GREY, INK, Mark};

const TEXT: f64 = 13.5;
const NOTE: f64 = 11.5;
const SAMPLE: f64 = 26.0;
/// Width of vertical lines, in the legend and in the data.
pub(super) const UPRIGHT: f64 = 1.25;

/// One line of a legend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub text: String,
    /// A smaller second line; may be empty.
    pub note: String,
    pub colour: RGBColor,
    pub mark: Option<Mark>,
    pub sample: Sample,
}

/// The line that a legend shows for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sample {
    Solid,
    Dashed,
    /// A vertical line.
    Upright,
}

/// The space before a text.
pub(super) const BEFORE_TEXT: f64 = SAMPLE + 7.0;

/// The height of a column of items.
pub(super) fn height(items: &[Item]) -> f64 {
    items.iter().map(item_height).sum()
}

fn item_height(item: &Item) -> f64 {
    if item.note.is_empty() { 22.0 } else { 36.0 }
}

/// Draws items in a column below a corner, in SVG pixels.
pub(super) fn draw_column<B: DrawingBackend>(
    canvas: &Canvas<B>,
    items: &[Item],
    x: f64,
    y: f64,
) -> DrawResult<B> {
    let mut y = y;
    for item in items {
        draw_item(canvas, item, x, y)?;
        y += item_height(item);
    }
    Ok(())
}

/// Draws items in a row, each as wide as its text.
pub(super) fn draw_row<B: DrawingBackend>(
    canvas: &Canvas<B>,
    items: &[Item],
    x: f64,
    y: f64,
) -> DrawResult<B> {
    let mut x = x;
    for item in items {
        draw_item(canvas, item, x, y)?;
        x += SAMPLE + 36.0 + 0.6 * TEXT * item.text.chars().count() as f64;
    }
    Ok(())
}

fn draw_item<B: DrawingBackend>(canvas: &Canvas<B>, item: &Item, x: f64, y: f64) -> DrawResult<B> {
    let ends = [(canvas.px(x), canvas.px(y)), (canvas.px(x + SAMPLE), canvas.px(y))];
    let stroke = canvas.stroke(item.colour, 2.0);
    match item.sample {
        Sample::Solid => canvas.line(&ends, stroke)?,
        Sample::Dashed => canvas.dashed(&ends, stroke)?,
        Sample::Upright => {
            let middle = canvas.px(x + SAMPLE / 2.0);
            let ends = [(middle, canvas.px(y - 8.0)), (middle, canvas.px(y + 8.0))];
            canvas.line(&ends, canvas.stroke(item.colour, UPRIGHT))?
        }
    }
    if let Some(mark) = item.mark {
        canvas.mark(mark, (canvas.px(x + SAMPLE / 2.0), canvas.px(y)), item.colour)?;
    }
    let left = canvas.px(x + BEFORE_TEXT);
    let font = canvas.font(TEXT, INK, false);
    canvas.text(&item.text, (left, canvas.px(y)), font, HPos::Left, VPos::Center)?;
    if item.note.is_empty() {
        return Ok(());
    }
    let font = canvas.font(NOTE, GREY, false);
    canvas.text(&item.note, (left, canvas.px(y + 15.0)), font, HPos::Left, VPos::Center)
}
