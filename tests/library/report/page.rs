//! The files of a report: pictures, and a page that stands on its own.

use std::fs;
use std::path::PathBuf;

use gmm_bmm::dist::Marginal;
use gmm_bmm::internals::experiment::{Contender, CurveRecord, Failure, Record, Units};
use gmm_bmm::internals::report::{ReportError, ReportOptions, figure1};

use crate::browser::chromium;

use super::records::{
    OPTIONS, cell, data, files, full, full_set, noise, read, report, run, shared, small, written_and_read,
};

#[test]
fn a_report_has_all_its_files_and_running_twice_gives_the_same_bytes() {
    let (_, one) = shared();
    let two = tempfile::tempdir().unwrap();
    let mut records = full();
    // The order in which parts were finished must not matter, except that of the data sets.
    let (data, mut rest): (Vec<_>, Vec<_>) = records.drain(..).partition(|r| matches!(r, Record::Data(_)));
    rest.reverse();
    report(&[data, rest].concat(), &OPTIONS, two.path()).unwrap();
    let (one, two) = (files(one), files(two.path()));
    let names: Vec<_> = one.keys().map(|name| name.display().to_string()).collect();
    for name in ["loglik.csv", "table.csv", "table.tex", "times.csv", "summary.md", "report.html"] {
        assert!(names.contains(&name.to_string()), "{names:?}");
    }
    assert_eq!(names.iter().filter(|name| name.ends_with(".svg")).count(), 15);
    let page = String::from_utf8(one[&PathBuf::from("report.html")].clone()).unwrap();
    // The curves of these sets are of K = 8 and end at 11,750 rows; with 91 columns and K = 8 the start wants 5000 as well.
    assert!(page.contains("fitted to the first 5,000 of the 11,750 rows"), "{page}");
    assert_eq!(names.iter().filter(|name| name.ends_with(".png")).count(), 15);
    for (name, bytes) in one.iter().filter(|(name, _)| name.starts_with("plots")) {
        assert!(bytes.len() < 100_000, "{} has {} bytes", name.display(), bytes.len());
    }
    assert_eq!(one, two);
}

#[test]
fn a_learning_curve_marks_the_revisions_of_each_learner() {
    let curve = |contender: Contender, revisions: &[u64]| {
        Record::Curve(CurveRecord {
            data: "toy".into(),
            contender,
            k: 2,
            points: vec![(1000, -3.0), (2000, -2.0), (4000, -1.5), (8000, -1.0)],
            start_rows: Some(1000),
            revisions: revisions.to_vec(),
            level: None,
        })
    };
    let drawn = |oem: &[u64], obmm: &[u64]| {
        let mut records = small(0.0);
        records.push(Record::Data(data("toy", "Toy", 2, Units::Raw)));
        records.extend([curve(Contender::Oem, oem), curve(Contender::Obmm, obmm)]);
        let folder = tempfile::tempdir().unwrap();
        report(&records, &OPTIONS, folder.path()).unwrap();
        (read(folder.path(), "plots/curve-toy.svg"), read(folder.path(), "report.html"))
    };
    // Lines with two points at the same x.
    let upright = |svg: &str| {
        let lines = svg.lines().filter(|line| line.starts_with("<polyline") && !line.contains("#E4E4E4"));
        let is_upright = |line: &&str| {
            let points = line.split("points=\"").nth(1).unwrap().split('"').next().unwrap().trim();
            let xs: Vec<&str> = points.split(' ').map(|point| point.split(',').next().unwrap()).collect();
            xs.len() == 2 && xs[0] == xs[1]
        };
        lines.filter(is_upright).count()
    };
    let (plain, page) = drawn(&[], &[]);
    assert!(!plain.contains("revisions") && !page.contains("revisions of the structure"));
    let (marked, page) = drawn(&[2000], &[2000, 4000]);
    // Three in the data, and one for each learner in the legend.
    assert_eq!(upright(&marked) - upright(&plain), 3 + 2);
    for words in ["revisions", "of oEM", "of oBMM"] {
        assert!(marked.contains(words), "{words}");
    }
    assert!(page.contains("Vertical lines mark revisions of the structure that changed the mixture."));
    // What lies outside the axis is not drawn.
    assert_eq!(upright(&drawn(&[], &[9_000_000]).0) - upright(&plain), 1);
    // Records of earlier versions have no revisions.
    let text = serde_json::to_string(&curve(Contender::Oem, &[])).unwrap();
    assert!(!text.contains("revisions"));
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), curve(Contender::Oem, &[]));
    let text = serde_json::to_string(&curve(Contender::Oem, &[7])).unwrap();
    assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), curve(Contender::Oem, &[7]));
}

/// A point before the start is complete does not show what its rows are worth.
#[test]
fn a_learning_curve_begins_where_the_start_is_complete() {
    let drawn = |start_rows: u64| {
        let mut records = small(0.0);
        records.push(Record::Data(data("toy", "Toy", 2, Units::Raw)));
        records.push(Record::Curve(CurveRecord {
            data: "toy".into(),
            contender: Contender::Obmm,
            k: 2,
            points: vec![(10, -9.0), (3000, -2.0), (9000, -1.5), (10_000, -1.0)],
            start_rows: Some(start_rows),
            revisions: Vec::new(),
            level: None,
        }));
        let folder = tempfile::tempdir().unwrap();
        report(&written_and_read(&records), &OPTIONS, folder.path()).unwrap();
        let picture = fs::read_to_string(folder.path().join("plots/curve-toy.svg")).ok();
        (picture, read(folder.path(), "report.html"))
    };
    let (picture, page) = drawn(3000);
    assert!(page.contains("fitted to the first 3,000 of the 10,000 rows"), "{page}");
    assert!(!picture.unwrap().contains(">−9"), "the axis begins at the scores after the start");
    let (picture, page) = drawn(10_000);
    assert!(picture.is_none() && !page.contains("against rows seen"));
    let note = "Toy: no learning curve, because the start is fitted to all 10,000 training rows.";
    assert!(page.contains(note), "{page}");
}

#[test]
fn the_mixture_is_drawn_where_the_records_have_it_and_a_damaged_one_is_not() {
    let marginals = |k: usize| {
        let part = |j: usize| Marginal {
            weight: 1.0 / k as f64,
            mean: vec![j as f64, 1.0],
            covariance: vec![vec![1.0], vec![0.3, 0.5]],
        };
        Some((0..k).map(part).collect::<Vec<_>>())
    };
    let drawn = |damage: bool| {
        let mut records = small(0.0);
        for record in &mut records {
            if let Record::Cell(cell) = record
                && cell.contender == Contender::Obmm
                && cell.fold == 0
            {
                cell.marginals = marginals(cell.k);
            }
        }
        let mut set = data("toy", "Toy", 2, Units::Raw);
        let rows = (0..40).map(|i| vec![noise(i), noise(1000 + i)]).collect::<Vec<_>>();
        set.sample = Some(rows);
        if damage {
            set.sample.as_mut().unwrap()[3].clear();
        }
        records.push(Record::Data(set));
        let folder = tempfile::tempdir().unwrap();
        let summary = report(&records, &OPTIONS, folder.path()).unwrap();
        assert_eq!(summary.sets[0].data.sample, None, "rows are no figures");
        let picture = fs::read_to_string(folder.path().join("plots/pairs-toy.svg")).ok();
        (picture, read(folder.path(), "report.html"), read(folder.path(), "summary.md"))
    };
    let (picture, page, summary) = drawn(false);
    let picture = picture.unwrap();
    // The chosen K is 2, so there are two colours.
    assert!(picture.contains("Toy: oBMM, K = 2") && picture.contains("40 of 4,177 rows"));
    assert!(picture.contains("#D55E00") && !picture.contains("#009E73"));
    assert!(page.contains("Toy: oBMM, K = 2") && summary.contains("plots/pairs-toy"));
    let (picture, page, _) = drawn(true);
    assert!(picture.is_none() && !page.contains("Toy: oBMM, K = 2"));
}

#[test]
fn the_legend_of_many_learners_fits_and_leaves_out_those_without_scores() {
    let learner = |i: usize| -> Contender {
        let words = ["a", "{train}{test}{scores}{k}"];
        serde_json::from_value(serde_json::json!({"name": format!("mine {i}"), "command": words})).unwrap()
    };
    let mut records = vec![run(), Record::Data(data("toy", "Toy", 2, Units::Raw))];
    for (i, k) in (0..24).flat_map(|i| [(i, 1), (i, 2)]) {
        for fold in 0..2 {
            let mut cell = cell("toy", learner(i), k, fold, vec![-1.0 - 0.1 * i as f32, -2.0]);
            if i == 23 {
                cell.test.clear();
                cell.failure = Some(Failure::Count { found: 0, expected: 2 });
            }
            records.push(Record::Cell(Box::new(cell)));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    report(&records, &OPTIONS, folder.path()).unwrap();
    let svg = read(folder.path(), "plots/loglik-toy.svg");
    assert!(svg.contains(">\nmine 22\n<") && !svg.contains("mine 23"), "{svg}");
    let size = |name: &str| {
        let text = svg.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap();
        text.parse::<f64>().unwrap()
    };
    assert!(size("height") > 52.0 + 22.0 * 23.0, "the legend is inside");
}

#[test]
fn nothing_in_the_output_is_not_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = full_set("abalone", 2.0);
    let mut broken = cell("abalone", Contender::Odmm, 11, 0, vec![f32::NEG_INFINITY, -1.0]);
    broken.learn_seconds = 0.0;
    records.push(Record::Cell(Box::new(broken)));
    report(&records, &OPTIONS, folder.path()).unwrap();
    for (name, bytes) in files(folder.path()) {
        let text = String::from_utf8_lossy(&bytes);
        if name.extension().is_none_or(|e| e != "png") {
            assert!(!text.contains("NaN") && !text.contains(">inf") && !text.contains(",inf"), "{name:?}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let (_, folder) = shared();
    let page = read(folder, "report.html");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert!(page.contains("--data &lt;abalone&gt;"));
    assert!(!read(folder, "summary.md").contains("<script"));
}

/// Texts that are dangerous in HTML, SVG, Markdown, LaTeX or a terminal.
const HOSTILE: &str = "</svg></title></style><script>alert(1)</script><img src=x onerror='alert(2)'>\"' onload=\"alert(3)| [x](javascript:alert(4)) `<b>` \\\\input{x} $%&#_^~ \u{1b}[31m\u{202e}";

/// Replaces every text of a record, except those that are names of kinds, by a hostile one.
fn poison(value: &mut serde_json::Value, path: &str) {
    use serde_json::Value;
    const KEPT: [&str; 8] =
        ["kind", "contender", "units", "reason", "step", "data", "contender.command", "contender.scorer"];
    match value {
        Value::String(text) if path == "data" => *text = HOSTILE.into(),
        Value::String(text)
            if !KEPT.contains(&path) && !path.ends_with("reason") && !path.ends_with("step") =>
        {
            text.push_str(HOSTILE)
        }
        Value::Array(parts) => parts.iter_mut().for_each(|part| poison(part, path)),
        Value::Object(parts) => {
            for (key, part) in parts {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                // Numbers that a set is made of must be read again.
                if path != "paper.units" {
                    poison(part, &path);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn hostile_texts_in_every_field_stay_text() {
    let mut records = full_set("toy", 2.0);
    let learner: Contender = serde_json::from_value(serde_json::json!(
        {"name": "mine", "command": ["a <b>", "{train}{test}{scores}{k}"], "scorer": ["<i>'\"", "{model}"]}
    ))
    .unwrap();
    for (fold, k) in (0..10).flat_map(|fold| [(fold, 2), (fold, 3)]) {
        let mut own = cell("toy", learner.clone(), k, fold, vec![-1.0; 40]);
        if fold == 9 {
            own.test.clear();
            own.failure = Some(Failure::NoScores { message: "scores.txt".into() });
        }
        records.push(Record::Cell(Box::new(own)));
    }
    let mut set = data("toy", "Toy", 3, Units::Raw);
    set.sample = Some((0..40).map(|i| vec![noise(i), noise(1000 + i), noise(2000 + i)]).collect());
    set.dequantized = vec![("x0".into(), 1.0)];
    set.discrete = vec!["x1".into()];
    let mut gone = data("gone", "Gone", 3, Units::Raw);
    gone.missing = Some("fetch it".into());
    records.extend([run(), Record::Data(set)]);
    let mut poisoned: Vec<Record> = records
        .iter()
        .map(|record| {
            let mut value = serde_json::to_value(record).unwrap();
            poison(&mut value, "");
            serde_json::from_value(value).unwrap()
        })
        .collect();
    let mut value = serde_json::to_value(Record::Data(gone)).unwrap();
    poison(&mut value, "");
    value["data"] = "gone".into();
    poisoned.push(serde_json::from_value(value).unwrap());
    let external = poisoned.iter().find_map(|record| match record {
        Record::Cell(cell) if cell.contender.commands().is_some() => Some(cell.contender.clone()),
        _ => None,
    });
    let folder = tempfile::tempdir().unwrap();
    // The hostile learner is also the reference, whose name is in captions.
    for reference in [None, external] {
        let options = ReportOptions { reference, ..OPTIONS };
        let summary = report(&poisoned, &options, folder.path()).unwrap();
        for colour in [false, true] {
            let text = summary.terminal(colour);
            assert!(!text.contains("\u{1b}[31m") && !text.contains('\u{202e}'), "{text}");
        }
        for (name, bytes) in files(folder.path()) {
            let text = String::from_utf8_lossy(&bytes);
            match name.extension().and_then(|extension| extension.to_str()) {
                Some("html" | "svg" | "md") => {
                    // In Markdown, a command stands between backticks.
                    let markup: String = text.lines().filter(|line| !line.starts_with("- `")).collect();
                    for tag in ["<script", "<img", "</title></style>", "<b>", "<i>"] {
                        assert!(!markup.contains(tag), "{tag} in {}", name.display());
                    }
                    assert!(!text.contains('\u{202e}') && !text.contains('\u{1b}'), "{}", name.display());
                }
                Some("tex") => {
                    assert!(!text.lines().any(|line| !line.starts_with('%') && line.contains("\\input")))
                }
                _ => {}
            }
        }
        let page = read(folder.path(), "report.html");
        assert_eq!(page.matches("<svg ").count(), page.matches("</svg>").count());
        let summary = read(folder.path(), "summary.md");
        let heads = |line: &&str| line.starts_with("| data set");
        let columns = |line: &str| line.replace("\\|", "").matches('|').count();
        assert_eq!(summary.lines().filter(heads).count(), 3);
        for table in summary.split("\n\n").filter(|part| part.starts_with("| data set")) {
            let counts: Vec<usize> = table.lines().map(columns).collect();
            assert!(counts.iter().all(|count| *count == counts[0]), "{table}");
        }
        assert!(
            !summary.contains("[x](javascript")
                || summary
                    .lines()
                    .filter(|line| line.contains("[x](javascript"))
                    .all(|line| line.starts_with("- `"))
        );
        if let Some(dom) =
            chromium(&["--dump-dom", &format!("file://{}", folder.path().join("report.html").display())])
        {
            let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
            assert!(!dom.contains("<script") && !dom.contains("<img") && dom.contains("alert(1)"));
        }
    }
}

#[test]
fn the_page_forbids_scripts_and_the_network() {
    let (_, folder) = shared();
    let page = read(folder, "report.html");
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(policy, "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'");
    assert!(page.find("Content-Security-Policy") < page.find("<title"));
}

fn figure1_curves() -> Vec<CurveRecord> {
    let curve = |set: usize| {
        let level = -4.0 - 2.7 * set as f64;
        let points = (0..60).map(|i| (200.0 * 1.121f64.powi(i)) as u64);
        let score =
            |rows: u64| level - 900.0 / (rows as f64).powf(1.1) * (1.0 + 0.2 * noise(rows as usize + set));
        CurveRecord {
            data: format!("set {}", set + 1),
            contender: Contender::Obmm,
            k: 2 + set % 5,
            points: points.map(|rows| (rows, score(rows))).collect(),
            start_rows: None,
            revisions: Vec::new(),
            level: Some(("true model".into(), level)),
        }
    };
    (0..9).map(curve).collect()
}

#[test]
fn figure_1_has_a_panel_for_each_set() {
    let folder = tempfile::tempdir().unwrap();
    figure1(&figure1_curves(), folder.path()).unwrap();
    for name in ["plots/figure1.svg", "plots/figure1-gap.svg"] {
        let svg = read(folder.path(), name);
        assert!((1..=9).all(|set| svg.contains(&format!("set {set}, K = "))), "{name}");
    }
    let png = fs::read(folder.path().join("plots/figure1.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    assert!(matches!(figure1(&[], folder.path()), Err(ReportError::NothingToShow)));
}

/// Addresses that a browser would fetch.
fn fetched(page: &str) -> Vec<&str> {
    let after = |mark: &'static str| {
        page.split(mark).skip(1).map(|rest| rest.split(['"', '\'', ')']).next().unwrap())
    };
    let mut found: Vec<_> = ["src=\"", "href=\"", "url("].into_iter().flat_map(after).collect();
    found.retain(|address| !address.starts_with('#'));
    found
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let (_, folder) = shared();
    let page = read(folder, "report.html");
    assert_eq!(fetched(&page), Vec::<&str>::new());
    assert!(!page.contains("@import") && !page.contains("<link") && !page.contains("<iframe"));
    let elsewhere = page.matches("http").count()
        - page.matches("http-equiv").count()
        - page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(elsewhere, 0);
}

#[test]
fn a_browser_shows_the_page() {
    let (_, folder) = shared();
    let address = format!("file://{}", folder.join("report.html").display());
    let Some(output) = chromium(&["--dump-dom", &address]) else { return };
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(dom.matches("<table>").count(), 3);
    assert_eq!(dom.matches("<svg ").count(), 15);
    assert!(dom.contains("<h3>&lt;script&gt;alert('x')&lt;/script&gt;|*</h3>"), "{dom}");

    let pictures = tempfile::tempdir().unwrap();
    let shot = pictures.path().join("page.png");
    let shot_argument = format!("--screenshot={}", shot.display());
    chromium(&[&shot_argument, "--window-size=1200,2000", &address]).unwrap();
    // A blank page of this size compresses to a few kilobytes.
    assert!(fs::metadata(&shot).unwrap().len() > 50_000);
}

/// Leaves the report of these tests in a folder, to look at:
/// `REPORT_OUT=DIR cargo test --test library -- report:: --ignored`.
#[test]
#[ignore = "writes where REPORT_OUT says"]
fn a_report_to_look_at() {
    let folder = PathBuf::from(std::env::var("REPORT_OUT").unwrap());
    let summary = report(&full(), &OPTIONS, &folder).unwrap();
    println!("{}", summary.terminal(false));
    figure1(&figure1_curves(), &folder).unwrap();
}
