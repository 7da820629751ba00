//! The tables for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, LineStyle, Table, presets};

use super::grid::{self, Grid};
use super::summary::Summary;
use crate::text::printable;

/// Letters in a line of text, and in the name of a data set: the tables of the usual learners then fit 115 columns.
const LINE: usize = 100;
const NAME: usize = 15;

impl Summary {
    /// The table of scores and that of times, for a terminal: the best online learner in bold with `colour`,
    /// marked with a star without.
    pub fn terminal(&self, colour: bool) -> String {
        let mut text = String::new();
        let mut add = |part: &str| {
            text.push_str(part);
            text.push('\n');
        };
        let scores = grid::scores(self);
        add(&scores.caption);
        add(&table(&scores, colour));
        let legend = grid::legend(self, if colour { "Bold" } else { "*" });
        let learners = grid::learners(self).into_iter().map(|(name, what)| format!("{name}: {what}."));
        let elbows = grid::elbows(self);
        for line in legend.into_iter().chain(elbows).chain(grid::notes(self)).chain(learners) {
            add(&wrapped(&printable(&line), LINE, "  "));
        }
        let times = grid::times(self);
        add("");
        add(&wrapped(&times.caption, LINE, ""));
        add(&table(&times, colour));
        text
    }
}

fn table(grid: &Grid, colour: bool) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
    if colour {
        table.enforce_styling()
    } else {
        table.force_no_tty()
    };
    // Two short lines rather than one long one: the table is wide enough.
    table.set_header(grid.head.iter().map(|head| head.replace(' ', "\n")));
    for row in &grid.rows {
        table.add_row(row.iter().enumerate().map(|(index, cell)| {
            let shown = match index {
                0 => Cell::new(wrapped(&printable(&cell.text), NAME, " ")),
                _ => Cell::new(text(cell, grid.width_of_marks(index), colour)),
            };
            if cell.best && colour { shown.add_attribute(Attribute::Bold) } else { shown }
        }));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 1));
        if index >= grid.words {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// In a column with marks every cell has room for them, so that the digits stay in line.
fn text(cell: &grid::Cell, width_of_marks: usize, colour: bool) -> String {
    let star = if cell.best && !colour { "*" } else { "" };
    let below = cell.aside.as_ref().map_or(String::new(), |aside| format!("\n{aside}{:width_of_marks$}", ""));
    format!("{star}{}{:<width_of_marks$}{below}", cell.text, cell.marks())
}

/// Text in lines of so many letters, those after the first indented; only a word longer than that is cut.
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
