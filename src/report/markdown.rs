//! `summary.md`: the tables for a repository or a paper's appendix.

use std::fmt::Write;

use super::grid::{self, Grid};
use super::names::tested_on;
use super::plot::Picture;
use super::summary::Summary;
use crate::text::printable;

pub(super) fn render(summary: &Summary, pictures: &[Vec<Picture>]) -> String {
    let mut text = String::from("# Comparison\n\n");
    section(&mut text, &grid::scores(summary));
    for line in grid::legend(summary, "Bold") {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    text.push_str("\n## Learners\n\n");
    for (name, description) in grid::learners(summary) {
        let _ = writeln!(text, "- {}: {}.", escape(name), escape(&description));
    }
    let notes = grid::notes(summary);
    if !notes.is_empty() {
        text.push_str("\n## Notes\n\n");
        for note in notes {
            let _ = writeln!(text, "- {}", escape(&note));
        }
    }
    text.push_str("\n## Times\n\n");
    section(&mut text, &grid::times(summary));
    text.push_str("## Details\n\n");
    section(&mut text, &grid::details(summary));
    text.push_str("## Pictures\n");
    for picture in pictures.iter().flatten() {
        let _ = write!(text, "\n![{}](plots/{}.svg)\n", escape(&picture.alt), picture.name);
    }
    text.push_str("\n## Provenance\n\n");
    for run in &summary.runs {
        let _ = writeln!(
            text,
            "- `{}`, gmm-bmm {}, began {}, {}, {} threads, seed {}, tested on {}",
            printable(&run.command.replace('`', "'")),
            escape(&run.tool),
            escape(&run.began),
            escape(&run.processor),
            run.threads,
            run.seed,
            tested_on(run)
        );
    }
    text
}

fn section(text: &mut String, grid: &Grid) {
    let _ = write!(text, "{}.\n\n|", grid.caption);
    for head in &grid.head {
        let _ = write!(text, " {} |", escape(head));
    }
    text.push_str("\n|");
    for index in 0..grid.head.len() {
        text.push_str(if index < grid.words { "---|" } else { "---:|" });
    }
    text.push('\n');
    for row in &grid.rows {
        text.push('|');
        for cell in row {
            let whole = escape(&cell.line());
            let _ = if cell.best { write!(text, " **{whole}** |") } else { write!(text, " {whole} |") };
        }
        text.push('\n');
    }
    text.push('\n');
}

/// Keeps a name from being read as markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\n' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(escape("a|b <i>*x*</i>\n"), "a\\|b &lt;i>\\*x\\*&lt;/i> ");
    }
}
