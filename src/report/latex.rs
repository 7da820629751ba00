//! `table.tex`: the table of scores for a paper, in the style of the package `booktabs`.

use std::fmt::Write;

use super::summary::Summary;
use super::tables::{self, Cell, Table};
use crate::text::printable;

pub(super) fn render(summary: &Summary) -> String {
    let table = tables::scores(summary);
    let columns = "l".repeat(table.text_columns) + &"r".repeat(table.head.len() - table.text_columns);
    let mut text = String::from("% Needs \\usepackage{booktabs}. Made by 'gmm-bmm compare'.\n");
    for run in &summary.runs {
        let _ = writeln!(text, "% {}", printable(&run.command).replace(['\n', '\r'], " "));
    }
    let _ = write!(
        text,
        "\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n",
        caption(summary, &table)
    );
    let head: Vec<String> = table.head.iter().map(|head| escape(head)).collect();
    let _ = writeln!(text, "{} \\\\\n\\midrule", head.join(" & "));
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        let _ = writeln!(text, "{} \\\\", cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
}

fn caption(summary: &Summary, table: &Table) -> String {
    let mut caption = format!("{}.", table.caption);
    if let Some(reference) = summary.reference {
        let _ = write!(
            caption,
            " Bold: the best online learner. ↑ / ↓: significantly better / worse than {} (Wilcoxon, p < 0.05).",
            reference.name()
        );
        if table.rows.iter().flatten().any(|cell| cell.marks().contains(tables::AGAINST_MEAN)) {
            let _ =
                write!(caption, " {}: the difference in means has the opposite sign.", tables::AGAINST_MEAN);
        }
    }
    if let Some(seeds) = summary.seeds() {
        let _ = write!(caption, " ±: standard error over {seeds} seeds.");
    }
    escape(&caption)
}

fn cell(cell: &Cell) -> String {
    let number = escape(&cell.text);
    let number = if cell.best { format!("\\textbf{{{number}}}") } else { number };
    let aside =
        cell.aside.as_ref().map_or(String::new(), |aside| format!(" {{\\scriptsize {}}}", escape(aside)));
    format!("{number}{}{aside}", escape(&cell.marks()))
}

/// Escapes LaTeX's special characters. Symbols beyond Latin letters become commands, so that any engine prints them.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            '−' => escaped.push_str("$-$"),
            '±' => escaped.push_str("$\\pm$"),
            '×' => escaped.push_str("$\\times$"),
            '↑' => escaped.push_str("$\\uparrow$"),
            '↓' => escaped.push_str("$\\downarrow$"),
            '†' => escaped.push_str("\\dag{}"),
            '–' => escaped.push_str("--"),
            '\n' => escaped.push(' '),
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
        assert_eq!(
            escape("a_b & 50% \\x {−1.5↑†}"),
            "a\\_b \\& 50\\% \\textbackslash{}x \\{$-$1.5$\\uparrow$\\dag{}\\}"
        );
    }
}
