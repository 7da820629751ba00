//! `summary.md`: the tables as Markdown.

use std::fmt::Write;

use super::analysis::Summary;
use super::answer::answer;
use super::format::tested_on;
use super::legend::{learners, legend, notes};
use super::plot::Picture;
use super::tables::{self, ReportTable};
use crate::text::printable;

pub(super) fn render(summary: &Summary, pictures: &[Vec<Picture>]) -> String {
    let mut text = String::from("# Comparison\n\n");
    for sentence in answer(summary) {
        let _ = writeln!(text, "{}\n", escape(&sentence));
    }
    section(&mut text, &tables::scores(summary));
    for line in legend(summary, "Bold") {
        let _ = writeln!(text, "- {}", escape(&line));
    }
    text.push_str("\n## Learners\n\n");
    for (name, description) in learners(summary) {
        let _ = writeln!(text, "- {}: {}.", escape(name), escape(&description));
    }
    let notes = notes(summary);
    if !notes.is_empty() {
        text.push_str("\n## Notes\n\n");
        for note in notes {
            let _ = writeln!(text, "- {}", escape(&note));
        }
    }
    text.push_str("\n## Times\n\n");
    section(&mut text, &tables::times(summary));
    text.push_str("## Details\n\n");
    section(&mut text, &tables::details(summary));
    text.push_str("## Pictures\n");
    for picture in pictures.iter().flatten() {
        let _ = write!(text, "\n![{}](plots/{}.svg)\n", escape(&picture.alt), picture.name);
    }
    text.push_str("\n## Provenance\n\n");
    for run in &summary.runs {
        let _ = writeln!(
            text,
            "- `{}`, gmm-bmm {}, began {}, {}, {} threads, seed {}, tested on {}",
            printable(&run.command.replace('`', "'").replace('\n', " ")),
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

fn section(text: &mut String, table: &ReportTable) {
    let _ = write!(text, "{}.\n\n|", escape(&table.caption));
    for head in &table.head {
        let _ = write!(text, " {} |", escape(head));
    }
    text.push_str("\n|");
    for index in 0..table.head.len() {
        text.push_str(if index < table.text_columns { "---|" } else { "---:|" });
    }
    text.push('\n');
    for row in &table.rows {
        text.push('|');
        for cell in row {
            let whole = escape(&cell.line());
            let _ = if cell.best { write!(text, " **{whole}** |") } else { write!(text, " {whole} |") };
        }
        text.push('\n');
    }
    text.push('\n');
}

/// Escapes markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\n' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
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
        assert_eq!(escape("a|b <i>*x*</i>\n"), "a\\|b &lt;i&gt;\\*x\\*&lt;/i&gt; ");
    }
}
