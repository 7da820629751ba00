//! `table.tex`: the table of scores for a paper, in the style of the package `booktabs`.

use std::fmt::Write;

use super::analysis::SIGNIFICANCE;
use super::analysis::Summary;
use super::tables::{self, ReportTable, TableCell};
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
        // After the end of a row, LaTeX takes these for arguments of it.
        let guard = if cells.first().is_some_and(|cell| cell.starts_with(['[', '*'])) { "{}" } else { "" };
        let _ = writeln!(text, "{guard}{} \\\\", cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
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
    let aside =
        cell.aside.as_ref().map_or(String::new(), |aside| format!(" {{\\scriptsize {}}}", escape(aside)));
    format!("{number}{}{aside}", escape(cell.arrow))
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
    const SMALL: [&str; 25] = [
        "alpha",
        "beta",
        "gamma",
        "delta",
        "varepsilon",
        "zeta",
        "eta",
        "theta",
        "iota",
        "kappa",
        "lambda",
        "mu",
        "nu",
        "xi",
        "o",
        "pi",
        "rho",
        "varsigma",
        "sigma",
        "tau",
        "upsilon",
        "varphi",
        "chi",
        "psi",
        "omega",
    ];
    const CAPITAL: [&str; 25] = [
        "A", "B", "Gamma", "Delta", "E", "Z", "H", "Theta", "I", "K", "Lambda", "M", "N", "Xi", "O", "Pi",
        "P", "", "Sigma", "T", "Upsilon", "Phi", "X", "Psi", "Omega",
    ];
    let place = |first: char| (u32::from(c)).checked_sub(u32::from(first)).map(|place| place as usize);
    let of = |first: char, names: &[&'static str]| names.get(place(first)?).copied();
    let name = of('α', &SMALL).or_else(|| of('Α', &CAPITAL)).filter(|name| !name.is_empty())?;
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
