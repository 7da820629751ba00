//! The tables as text for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, LineStyle, presets};

use super::analysis::Summary;
use super::answer::answer;
use super::legend::{elbows, learners, legend, notes};
use super::tables::{self, ReportTable};
use crate::text::printable;

/// Characters in a line of text, and in the name of a data set. With these, the tables of the usual learners fit 115
/// columns.
const LINE: usize = 100;
const NAME: usize = 15;

impl Summary {
    /// The tables of scores and times for a terminal. The best mean is bold with `colour`, and marked with a
    /// star without it.
    pub fn terminal(&self, colour: bool) -> String {
        let mut text = String::new();
        let mut add = |part: &str| {
            text.push_str(part);
            text.push('\n');
        };
        let scores = tables::scores(self);
        add(&printable(&scores.caption));
        add(&rendered(&scores, colour));
        let legend = legend(self, if colour { "Bold" } else { "*" });
        let learners = learners(self).into_iter().map(|(name, what)| format!("{name}: {what}."));
        for line in
            answer(self).into_iter().chain(legend).chain(elbows(self)).chain(notes(self)).chain(learners)
        {
            add(&wrapped(&printable(&line), LINE, "  "));
        }
        let times = tables::times(self);
        add("");
        add(&wrapped(&printable(&times.caption), LINE, ""));
        add(&rendered(&times, colour));
        text
    }
}

fn rendered(content: &ReportTable, colour: bool) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    if colour {
        table.enforce_styling()
    } else {
        table.force_no_tty()
    };
    // Two short lines instead of a long one keep the table narrow.
    table.set_header(content.head.iter().map(|head| printable(head).replace(' ', "\n")));
    for row in &content.rows {
        table.add_row(row.iter().enumerate().map(|(index, cell)| {
            let shown = match index {
                0 => Cell::new(wrapped(&printable(&cell.line()), NAME, " ")),
                _ => Cell::new(text(cell, content.width_of_arrows(index), colour)),
            };
            if cell.best && colour { shown.add_attribute(Attribute::Bold) } else { shown }
        }));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= content.text_columns {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// In a column with marks every cell reserves room for them, so that the digits stay aligned.
fn text(cell: &tables::TableCell, width_of_arrows: usize, colour: bool) -> String {
    let star = if cell.best && !colour { "*" } else { "" };
    let below =
        cell.aside.as_ref().map_or(String::new(), |aside| format!("\n{aside}{:width_of_arrows$}", ""));
    format!("{star}{}{:<width_of_arrows$}{below}", cell.text, cell.arrow)
}

/// Wraps text into lines of `width` characters and indents those after the first. Only longer words are cut.
fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    let pieces = text.split_whitespace().flat_map(|word| {
        let letters: Vec<char> = word.chars().collect();
        letters.chunks(width).map(String::from_iter).collect::<Vec<_>>()
    });
    for word in pieces {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() {
            line.push_str(&word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(format!("{indent}{word}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_text_is_wrapped_between_words() {
        assert_eq!(wrapped("Combined Cycle Power Plant", 18, " "), "Combined Cycle\n Power Plant");
        assert_eq!(wrapped("Abalone", 18, " "), "Abalone");
        assert_eq!(wrapped("a_long_name or two", 5, " "), "a_lon\n g_nam\n e or\n two");
        assert_eq!(wrapped("", 5, " "), "");
    }
}
