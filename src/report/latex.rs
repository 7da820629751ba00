//! `table.tex`: the table of scores for a paper, in the style of the package `booktabs`.

use std::fmt::Write;
use std::ops::Range;

use super::analysis::SIGNIFICANCE;
use super::analysis::Summary;
use super::tables::{self, ReportTable, TableCell};
use crate::text::printable;

/// Characters that a line of the table has room for, on a page of letter or A4 paper with LaTeX's own margins.
const LINE: usize = 84;
/// Characters of the column of names, which wraps.
const NAMES: usize = 18;

pub(super) fn render(summary: &Summary) -> String {
    let table = tables::scores(summary);
    let mut text = String::from("% Needs \\usepackage{booktabs}. Made by 'gmm-bmm compare'.\n");
    for run in &summary.runs {
        let _ = writeln!(text, "% {}", printable(&run.command).replace(['\n', '\r'], " "));
    }
    let caption = caption(summary, &table);
    let parts = parts(&table);
    for (number, columns) in parts.iter().enumerate() {
        // Every part has the names and, if there are any, the paper's figures.
        let shown: Vec<usize> = (0..table.paper.end).chain(columns.clone()).collect();
        let (label, which) = match parts.len() {
            1 => (String::from("tab:scores"), String::new()),
            all => (format!("tab:scores-{}", number + 1), format!(" Part {} of {all}.", number + 1)),
        };
        let _ = writeln!(
            text,
            "\\begin{{table}}\n\\centering\n\\footnotesize\n\\setlength{{\\tabcolsep}}{{3pt}}\n\\caption{{{caption}{which}}}\n\\label{{{label}}}"
        );
        push_part(&mut text, &table, &shown);
    }
    text
}

/// The columns of learners, divided so that each part fits a page.
fn parts(table: &ReportTable) -> Vec<Range<usize>> {
    let chars = |text: &str| text.chars().count();
    let width = |column: usize| {
        let cell = |row: &Vec<TableCell>| {
            let TableCell { text, arrow, aside, .. } = &row[column];
            (chars(text) + chars(arrow)).max(aside.as_ref().map_or(0, |aside| chars(aside) * 4 / 5))
        };
        let words = table.head[column].split(' ').map(chars);
        table.rows.iter().map(cell).chain(words).max().unwrap_or(0) + 2
    };
    let room = LINE.saturating_sub(NAMES + table.paper.clone().map(width).sum::<usize>());
    let mut parts = Vec::new();
    let (mut first, mut used) = (table.paper.end, 0);
    for column in table.paper.end..table.head.len() {
        if used > 0 && used + width(column) > room {
            parts.push(first..column);
            (first, used) = (column, 0);
        }
        used += width(column);
    }
    parts.push(first..table.head.len());
    parts
}

fn push_part(text: &mut String, table: &ReportTable, shown: &[usize]) {
    let numbers = "r".repeat(shown.len() - table.text_columns);
    let _ = writeln!(text, "\\begin{{tabular}}{{p{{0.22\\textwidth}}{numbers}}}\n\\toprule");
    // The words of a head are below one another, and so are a score and its aside.
    let head = |column: &usize| match escape(&table.head[*column]) {
        words if words.contains(' ') => format!("\\shortstack{{{}}}", words.replace(' ', "\\\\")),
        word => word,
    };
    let head: Vec<String> = shown.iter().map(head).collect();
    let _ = writeln!(text, "{} \\\\\n\\midrule", head.join(" & "));
    for row in &table.rows {
        let mut cells: Vec<String> = shown.iter().map(|&column| cell(&row[column])).collect();
        let units = aside(&row[0]);
        if !units.is_empty() {
            cells[0] += &format!(" {units}");
        }
        // Names wrap without gaps between words.
        let _ = writeln!(text, "\\raggedright {} \\\\", cells.join(" & "));
        let asides: Vec<String> = shown[1..].iter().map(|&column| aside(&row[column])).collect();
        if asides.iter().any(|aside| !aside.is_empty()) {
            let _ = writeln!(text, " & {} \\\\", asides.join(" & "));
        }
    }
    text.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
}

fn caption(summary: &Summary, table: &ReportTable) -> String {
    let mut caption = format!("{}. Bold: the best mean of the line.", table.caption);
    if let Some(reference) = &summary.reference {
        let _ = write!(
            caption,
            " ↑ / ↓: significantly better / worse than {} in ranks (Wilcoxon, p < {SIGNIFICANCE}) and better / worse in the mean.",
            reference.name()
        );
    }
    if let Some(seeds) = summary.seeds() {
        let _ = write!(caption, " ±: standard error over {seeds} seeds.");
    }
    escape(&caption)
}

fn cell(cell: &TableCell) -> String {
    let number = escape(&cell.text);
    let number = if cell.best { format!("\\textbf{{{number}}}") } else { number };
    format!("{number}{}", escape(cell.arrow))
}

fn aside(cell: &TableCell) -> String {
    cell.aside.as_ref().map_or(String::new(), |aside| format!("{{\\scriptsize {}}}", escape(aside)))
}

/// Escapes LaTeX's special characters. Greek letters and some symbols become commands, and other characters beyond Latin letters
/// their numbers, so that any engine makes a page.
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
            '–' => escaped.push_str("--"),
            '\n' => escaped.push(' '),
            _ if c.is_ascii() || is_printed(c) => escaped.push(c),
            _ => match greek(c) {
                Some(symbol) => escaped.push_str(&symbol),
                None => escaped.push_str(&format!("[U+{:04X}]", u32::from(c))),
            },
        }
    }
    escaped
}

/// Whether pdfLaTeX prints a character beyond ASCII with its default fonts.
fn is_printed(c: char) -> bool {
    const LATIN_WITHOUT_GLYPH: &str = "«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ";
    ('\u{a0}'..='\u{17f}').contains(&c) && !LATIN_WITHOUT_GLYPH.contains(c) || "‘’“”—…•€™".contains(c)
}

/// A Greek letter in mathematical type, or the Latin letter that looks the same.
fn greek(c: char) -> Option<String> {
    const SMALL: &str = "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi o pi rho varsigma \
                         sigma tau upsilon varphi chi psi omega";
    // No capital letter corresponds to ς.
    const CAPITAL: &str =
        "A B Gamma Delta E Z H Theta I K Lambda M N Xi O Pi P - Sigma T Upsilon Phi X Psi Omega";
    let of = |first: char, names: &'static str| {
        names.split(' ').nth(u32::from(c).checked_sub(u32::from(first))? as usize)
    };
    let name = of('α', SMALL).or_else(|| of('Α', CAPITAL)).filter(|name| *name != "-")?;
    Some(if name.len() == 1 { format!("${name}$") } else { format!("$\\{name}$") })
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn letters_beyond_latin_become_commands_or_numbers() {
        assert_eq!(
            escape("α-EM größe β ω ς Ω Α"),
            "$\\alpha$-EM größe $\\beta$ $\\omega$ $\\varsigma$ $\\Omega$ $A$"
        );
        assert_eq!(escape("中þ𝛼 ▼"), "[U+4E2D][U+00FE][U+1D6FC] [U+25BC]");
    }

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(
            escape("a_b & 50% \\x {−1.5↑}"),
            "a\\_b \\& 50\\% \\textbackslash{}x \\{$-$1.5$\\uparrow$\\}"
        );
    }
}
