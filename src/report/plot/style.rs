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
const DARK_GREEN: RGBColor = RGBColor(0x00, 0x55, 0x3e);
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
    (DARK_GREEN, Mark::Up),
    (YELLOW, Mark::Cross),
    (BLACK, Mark::Plus),
    (BLACK, Mark::Ring),
    (BLUE, Mark::Cross),
    (BLACK, Mark::Cross),
    (BLUE, Mark::Plus),
    (BLACK, Mark::Square),
    (BLUE, Mark::Diamond),
    (BLACK, Mark::Diamond),
];

/// Colours and marks of learners that are commands, which no learner of this program has. Their numbers have no common divisor,
/// so all pairs occur.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0xb5, 0x17, 0x9e),
    RGBColor(0x6b, 0x7a, 0x00),
    RGBColor(0x00, 0xad, 0xad),
    RGBColor(0x6a, 0x3f, 0xc4),
    RGBColor(0x8c, 0xcb, 0x2b),
    RGBColor(0xa1, 0x76, 0x5a),
    RGBColor(0xc2, 0x18, 0x3c),
];
const MARKS: [Mark; 8] =
    [Mark::Cross, Mark::Plus, Mark::Diamond, Mark::Square, Mark::Up, Mark::Ring, Mark::Down, Mark::Dot];

/// The colour of a learner among all of a report.
pub(super) fn colour(contender: &Contender, all: &[Contender]) -> RGBColor {
    style(contender, all).0
}

/// The mark of a learner among all of a report.
pub(super) fn mark(contender: &Contender, all: &[Contender]) -> Mark {
    style(contender, all).1
}

/// The style of a command depends on its place among the commands of the report, so that they all differ.
fn style(contender: &Contender, all: &[Contender]) -> (RGBColor, Mark) {
    match Contender::ALL.iter().position(|one| one == contender) {
        Some(place) => STYLES[place],
        None => {
            let mut commands = all.iter().filter(|one| one.commands().is_some());
            let place = commands.position(|one| one == contender).unwrap_or(0);
            (COLOURS[place % COLOURS.len()], MARKS[place % MARKS.len()])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::ExternalLearner;

    #[test]
    fn commands_have_styles_of_their_own() {
        let command = |i: usize| {
            let command = vec!["a".into(), "{train}{test}{scores}".into()];
            Contender::external(ExternalLearner {
                name: format!("mine {i}"),
                command,
                scorer: None,
                batch: false,
            })
        };
        let commands: Vec<Contender> = (0..20).map(command).collect();
        let all = [Contender::ALL, &commands].concat();
        let styles: Vec<_> = commands.iter().map(|one| style(one, &all)).collect();
        for (place, (colour, _)) in styles.iter().enumerate() {
            assert!(STYLES.iter().all(|(own, _)| own != colour));
            assert!(!styles[..place].contains(&styles[place]), "{place}");
        }
    }
}
