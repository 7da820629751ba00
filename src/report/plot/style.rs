//! Colours and marks of the contenders: Okabe and Ito's palette, which the colour-blind can tell apart, and a
//! different mark for each.

use plotters::style::RGBColor;

use crate::experiment::Contender;

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
pub(super) const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);

// Okabe and Ito's palette.
pub(super) const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
pub(super) const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
pub(super) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(super) const SKY: RGBColor = RGBColor(0x56, 0xb4, 0xe9);
pub(super) const PURPLE: RGBColor = RGBColor(0xcc, 0x79, 0xa7);
pub(super) const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);

/// The shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Dot,
    Square,
    Up,
    Down,
    Diamond,
    Cross,
    Plus,
    Ring,
}

/// In the order of the contenders; more of them than colours begin again.
const COLOURS: [RGBColor; 9] =
    [GREY, ORANGE, VERMILION, BLUE, SKY, PURPLE, GREEN, RGBColor(0, 0, 0), RGBColor(0xd9, 0xc9, 0x1a)];

const MARKS: [Mark; 8] =
    [Mark::Ring, Mark::Down, Mark::Up, Mark::Dot, Mark::Square, Mark::Cross, Mark::Diamond, Mark::Plus];

pub(super) fn colour(contender: Contender) -> RGBColor {
    COLOURS[contender as usize % COLOURS.len()]
}

pub(super) fn mark(contender: Contender) -> Mark {
    MARKS[contender as usize % MARKS.len()]
}
