//! Colours and marks of the contenders: Okabe and Ito's palette, which is safe for colour-blind readers. A learner with
//! revisions has a dark shade of its colour; learners of similar colours have different marks.

use plotters::style::RGBColor;

use crate::experiment::Contender;
use crate::fnv;

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
    (YELLOW, Mark::Up),
    (ORANGE, Mark::Down),
    (VERMILION, Mark::Up),
    (DARK_VERMILION, Mark::Diamond),
    (SKY, Mark::Up),
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

/// Colours and marks of learners that are commands. Their numbers have no common divisor, so all pairs occur.
const COLOURS: [RGBColor; 7] = [GREEN, ORANGE, PURPLE, SKY, VERMILION, BLUE, GREY];
const MARKS: [Mark; 8] =
    [Mark::Cross, Mark::Plus, Mark::Diamond, Mark::Square, Mark::Up, Mark::Ring, Mark::Down, Mark::Dot];

pub(super) fn colour(contender: Contender) -> RGBColor {
    style(contender).0
}

pub(super) fn mark(contender: Contender) -> Mark {
    style(contender).1
}

/// The style of a command depends on its name alone, so that a learner looks the same in all reports.
fn style(contender: Contender) -> (RGBColor, Mark) {
    match Contender::ALL.iter().position(|one| *one == contender) {
        Some(place) => STYLES[place],
        None => {
            let hash = contender.name().bytes().fold(fnv::EMPTY, fnv::add);
            (COLOURS[(hash % 7) as usize], MARKS[(hash % 8) as usize])
        }
    }
}
