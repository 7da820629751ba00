//! The tables for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, LineStyle, Table, presets};

use super::grid::{self, Grid};
use super::summary::Summary;

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
        add(if colour { "Bold: the best online learner." } else { "*: the best online learner." });
        for line in grid::legend(self).iter().chain(&grid::notes(self)) {
            add(line);
        }
        let times = grid::times(self);
        add("");
        add(&times.caption);
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
            let shown = Cell::new(text(cell, grid.has_arrows(index), colour));
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

/// In a column with arrows every cell has room for one, so that the digits stay in line.
fn text(cell: &grid::Cell, with_arrows: bool, colour: bool) -> String {
    let star = if cell.best && !colour { "*" } else { "" };
    let arrow = if with_arrows && cell.arrow.is_empty() { " " } else { cell.arrow };
    format!("{star}{}{arrow}", cell.text)
}
