//! Colours and marks of the contenders: Okabe and Ito's palette, which the colour-blind can tell apart, and a
//! different mark for each.

use plotters::style::RGBColor;

use crate::experiment::Contender;

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const FAINT: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
pub(super) const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);

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

pub(super) fn colour(contender: Contender) -> RGBColor {
    match contender {
        Contender::Start => GREY,
        Contender::OemPrinted => RGBColor(0xe6, 0x9f, 0x00),
        Contender::Oem => RGBColor(0xd5, 0x5e, 0x00),
        Contender::Obmm => RGBColor(0x00, 0x72, 0xb2),
        Contender::ObmmDiscounted => RGBColor(0x56, 0xb4, 0xe9),
        Contender::ObmmPaper => RGBColor(0xcc, 0x79, 0xa7),
        Contender::Odmm => RGBColor(0x00, 0x9e, 0x73),
        Contender::Em => RGBColor(0, 0, 0),
    }
}

pub(super) fn mark(contender: Contender) -> Mark {
    match contender {
        Contender::Start => Mark::Ring,
        Contender::OemPrinted => Mark::Down,
        Contender::Oem => Mark::Up,
        Contender::Obmm => Mark::Dot,
        Contender::ObmmDiscounted => Mark::Square,
        Contender::ObmmPaper => Mark::Cross,
        Contender::Odmm => Mark::Diamond,
        Contender::Em => Mark::Plus,
    }
}
