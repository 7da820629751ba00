//! `report.html`: a self-contained page.

use std::fmt::Write;

use super::analysis::Summary;
use super::answer::answer;
use super::format::{tested_on, title};
use super::legend::{learners, legend, notes};
use super::plot::Picture;
use super::tables::{self, ReportTable};
use crate::experiment::RunRecord;
use crate::text::number::thousands;
use crate::text::{count, printable};

const STYLE: &str = include_str!("report.css");

pub(super) fn render(summary: &Summary, pictures: &[Vec<Picture>]) -> String {
    let mut page = String::from(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Comparison of learners</title>\n<style>\n",
    );
    page.push_str(STYLE);
    page.push_str(
        "</style>\n</head>\n<body>\n<header>\n<h1>Comparison of learners of Gaussian mixtures</h1>\n",
    );
    for sentence in answer(summary) {
        let _ = writeln!(page, "<p class=\"answer\">{}</p>", escape(&sentence));
    }
    page.push_str("</header>\n<main>\n<section id=\"table\" aria-label=\"Table\">\n");
    let meanings = learners(summary);
    write_table(&mut page, &tables::scores(summary), &meanings);
    page.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#sets\">Data sets</a> <a href=\"#times\">Times</a> \
         <a href=\"#notes\">Notes</a> <a href=\"#provenance\">Provenance</a></nav>\n",
    );
    page.push_str("<details><summary>How to read the table</summary>\n");
    list(&mut page, "legend", &legend(summary, "Bold"));
    page.push_str("</details>\n");
    compared(&mut page, summary, &meanings);
    page.push_str("<details><summary>Chosen K, standard errors, p-values</summary>\n");
    write_table(&mut page, &tables::details(summary), &[]);
    page.push_str("</details></section>\n");
    sets(&mut page, summary, pictures);
    page.push_str("<section id=\"times\"><h2>Times</h2>\n");
    write_table(&mut page, &tables::times(summary), &meanings);
    page.push_str("</section>\n<section id=\"notes\"><h2>Notes</h2>\n");
    write_notes(&mut page, &notes(summary));
    page.push_str("</section>\n");
    provenance(&mut page, summary);
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// Notes; long ones are folded behind their beginning.
fn write_notes(page: &mut String, notes: &[String]) {
    const LONG: usize = 220;
    if notes.is_empty() {
        page.push_str("<p>None: no stand-ins, no added noise, no missing cells.</p>\n");
        return;
    }
    page.push_str("<ul class=\"notes\">\n");
    for note in notes {
        let _ = match note.split_once(": ").filter(|_| note.chars().count() > LONG) {
            Some((about, rest)) => {
                let beginning: String = rest.chars().take(LONG / 3).collect();
                let beginning = beginning.rsplit_once(' ').map_or(beginning.as_str(), |(whole, _)| whole);
                writeln!(
                    page,
                    "<li><details><summary>{}: {}…</summary>{}</details></li>",
                    escape(about),
                    escape(beginning),
                    escape(rest)
                )
            }
            None => writeln!(page, "<li>{}</li>", escape(note)),
        };
    }
    page.push_str("</ul>\n");
}

fn compared(page: &mut String, summary: &Summary, meanings: &[(&str, String)]) {
    let _ = write!(
        page,
        "<details id=\"compared\"><summary>The learners</summary>\n<p>Each learns a Gaussian mixture from the training rows of \
         {}, for {}every number of components K. Scores are mean log-likelihoods of test rows, which the learner has \
         not seen: higher is better. A difference of 1 means that a test row is about 2.7 times as likely.</p>\n<dl>\n",
        count(summary.sets.len() as u64, "data set"),
        if summary.has_folds() { "every fold and " } else { "" }
    );
    for (name, description) in meanings {
        let _ = writeln!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(description));
    }
    page.push_str("</dl></details>\n");
}

fn sets(page: &mut String, summary: &Summary, pictures: &[Vec<Picture>]) {
    page.push_str("<section id=\"sets\"><h2>Data sets</h2>\n");
    for (set, pictures) in summary.sets.iter().zip(pictures) {
        let _ = writeln!(page, "<h3>{}</h3>", escape(&title(&set.data)));
        if set.data.rows > 0 {
            let columns = set.data.columns.len();
            let rows = thousands(set.data.rows as u64);
            let names = escape(&set.data.columns.join(", "));
            let _ = writeln!(page, "<p>{rows} rows, {columns} columns: {names}.</p>");
        }
        for picture in pictures {
            let label = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(&picture.alt));
            let svg = picture.svg.replacen("<svg ", &label, 1);
            let caption = escape(&picture.caption);
            let _ = writeln!(page, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
        }
    }
    page.push_str("</section>\n");
}

fn provenance(page: &mut String, summary: &Summary) {
    page.push_str("<section id=\"provenance\"><h2>Provenance</h2>\n");
    let (last, earlier) = match summary.runs.as_slice() {
        [] => (None, [].as_slice()),
        [earlier @ .., last] => (Some(last), earlier),
    };
    last.into_iter().for_each(|run| write_run(page, run));
    if !earlier.is_empty() {
        let runs = count(earlier.len() as u64, "earlier run");
        let _ = writeln!(page, "<details><summary>{runs} into the same records</summary>");
        earlier.iter().rev().for_each(|run| write_run(page, run));
        page.push_str("</details>\n");
    }
    page.push_str("</section>\n");
}

fn write_run(page: &mut String, run: &RunRecord) {
    let ks: Vec<_> = run.ks.iter().map(usize::to_string).collect();
    let facts = [
        ("Command", format!("<code>{}</code>", escape(&run.command))),
        ("Version", escape(&run.tool)),
        ("Began", escape(&run.began)),
        ("Processor", escape(&run.processor)),
        ("Threads", run.threads.to_string()),
        ("Seed", run.seed.to_string()),
        ("Tested on", escape(&tested_on(run))),
        ("K", escape(&ks.join(", "))),
    ];
    page.push_str("<dl>\n");
    for (what, value) in facts {
        let _ = writeln!(page, "<dt>{what}</dt><dd>{value}</dd>");
    }
    page.push_str("</dl>\n");
}

/// `meanings` are shown when the pointer rests on a column's head.
fn write_table(page: &mut String, table: &ReportTable, meanings: &[(&str, String)]) {
    let caption = escape(&table.caption);
    let _ = write!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table>\n<caption>{caption}</caption>\n<thead><tr>"
    );
    let class = |index: usize| match index {
        _ if index < table.text_columns => " class=\"word\"".to_string(),
        _ if table.paper.contains(&index) => {
            format!(" class=\"paper\" style=\"--place:{}\"", index - table.paper.start)
        }
        _ => String::new(),
    };
    for (index, head) in table.head.iter().enumerate() {
        let meaning = meanings.iter().find(|(name, _)| name == head);
        let title = meaning.map_or(String::new(), |(_, what)| format!(" title=\"{}\"", escape(what)));
        let _ = write!(page, "<th scope=\"col\"{}{title}>{}</th>", class(index), escape(head));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        page.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let mut text = escape(&cell.text);
            if cell.best {
                text = format!("<strong class=\"best\">{text}</strong>");
            }
            let meaning = match cell.arrow {
                "↑" => " role=\"img\" aria-label=\"significantly better\"",
                "↓" => " role=\"img\" aria-label=\"significantly worse\"",
                _ => "",
            };
            if table.width_of_arrows(index) > 0 {
                let _ = write!(text, "<span class=\"arrow\"{meaning}>{}</span>", cell.arrow);
            }
            if let Some(aside) = &cell.aside {
                let _ = write!(text, " <span class=\"aside\">{}</span>", escape(aside));
            }
            let _ = match index {
                0 => write!(page, "<th scope=\"row\" class=\"word\">{text}</th>"),
                _ => write!(page, "<td{}>{text}</td>", class(index)),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn list(page: &mut String, class: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(page, "<ul class=\"{class}\">");
    for line in lines {
        let _ = writeln!(page, "<li>{}</li>", escape(line));
    }
    page.push_str("</ul>\n");
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("<b a=\"1\">'&"), "&lt;b a=&quot;1&quot;&gt;&#39;&amp;");
    }
}
