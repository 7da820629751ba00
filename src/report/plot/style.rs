//! Colours and marks of the contenders: Okabe and Ito's palette, which is safe for colour-blind readers. A learner with
//! revisions has a dark shade of its colour; learners of similar colours have different marks.

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

const YELLOW: RGBColor = RGBColor(0xd9, 0xc9, 0x1a);
const DARK_VERMILION: RGBColor = RGBColor(0x7a, 0x2e, 0x00);
const DARK_BLUE: RGBColor = RGBColor(0x00, 0x32, 0x5a);
const BLACK: RGBColor = RGBColor(0, 0, 0);

/// In the order of the contenders.
const STYLES: [(RGBColor, Mark); Contender::ALL.len()] = [
    (GREY, Mark::Ring),
    (ORANGE, Mark::Down),
    (VERMILION, Mark::Up),
    (DARK_VERMILION, Mark::Diamond),
    (BLUE, Mark::Dot),
    (SKY, Mark::Square),
    (DARK_BLUE, Mark::Square),
    (DARK_BLUE, Mark::Ring),
    (DARK_BLUE, Mark::Up),
    (PURPLE, Mark::Cross),
    (GREEN, Mark::Diamond),
    (YELLOW, Mark::Cross),
    (BLACK, Mark::Plus),
    (BLACK, Mark::Ring),
];

pub(super) fn colour(contender: Contender) -> RGBColor {
    STYLES[contender as usize].0
}

pub(super) fn mark(contender: Contender) -> Mark {
    STYLES[contender as usize].1
}
