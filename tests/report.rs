//! From records to a report: files, figures, marks, and a page that stands on its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gmm_bmm::data::Units;
use gmm_bmm::dist::Marginal;
use gmm_bmm::experiment::{
    CellRecord, CellSettings, Contender, CurveRecord, DataRecord, Pairs, RECORDS_FILE, Record, RunRecord,
    SelectRule, read_records,
};
use gmm_bmm::report::{Arrow, ReportError, ReportOptions, Summary, figure1, write_report};

const OPTIONS: ReportOptions =
    ReportOptions { select: SelectRule::Validation, pairs: Pairs::Rows, units: None, reference: None };
const CONTENDERS: [(Contender, f64, f64); 8] = [
    (Contender::Start, -0.6, 0.02),
    (Contender::OemPrinted, -40.0, 0.8),
    (Contender::Oem, -0.25, 0.82),
    (Contender::Obmm, 0.0, 0.9),
    (Contender::ObmmDiscounted, 0.12, 1.9),
    (Contender::ObmmPaper, -0.9, 1.4),
    (Contender::Odmm, -0.15, 0.22),
    (Contender::Em, 0.3, 14.0),
];

/// Noise in [−1, 1] that is the same in every run.
fn noise(seed: usize) -> f64 {
    ((seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 23) - 1.0
}

fn run() -> Record {
    Record::Run(RunRecord {
        tool: "0.1.0".into(),
        command: "gmm-bmm compare --data <abalone> --k 2..10".into(),
        began: "2026-01-31T12:00:00Z".into(),
        processor: "Example Processor 3000".into(),
        threads: 4,
        seed: 7,
        folds: 10,
        ks: (2..=10).collect(),
        settings: CellSettings::default(),
    })
}

fn data(name: &str, title: &str, columns: usize, units: Units) -> DataRecord {
    DataRecord {
        data: name.into(),
        title: title.into(),
        rows: 4177,
        columns: (0..columns).map(|i| format!("x{i}")).collect(),
        dequantized: Vec::new(),
        units,
        stand_in: false,
        missing: None,
        sample: None,
    }
}

fn cell(data: &str, contender: Contender, k: usize, fold: usize, test: Vec<f32>) -> CellRecord {
    CellRecord {
        data: data.into(),
        fold,
        contender,
        k,
        tuned: None,
        train_rows: 100,
        validation: Some(-1.0),
        prequential: Some(-1.5),
        test,
        log_jacobian: 0.0,
        start_seconds: 0.01,
        learn_seconds: 0.1,
        guarded: 0,
        marginals: None,
    }
}

/// Ten folds, K from 2 to 10, every contender.
fn full_set(name: &str, level: f64) -> Vec<Record> {
    let mut records = Vec::new();
    for (index, (contender, offset, seconds)) in CONTENDERS.into_iter().enumerate() {
        for k in 2..=10 {
            let kf = k as f64;
            let fall = if contender == Contender::OemPrinted { 2.0 * (kf - 6.0) } else { 0.0 };
            let centre = level + offset - 2.5 / kf - 0.01 * (kf - 7.0).powi(2) - fall;
            for fold in 0..10 {
                let row = |i: usize| {
                    let shared = 1.5 * noise(1000 * fold + i) + 0.3 * noise(fold);
                    (centre + shared + 0.3 * noise(77 * index + 13 * k + 991 * fold + 31 * i)) as f32
                };
                let mut cell = cell(name, contender, k, fold, (0..40).map(row).collect());
                cell.validation = Some(centre + 0.05 * noise(fold + 100 * k));
                cell.log_jacobian = -3.0 + 0.01 * fold as f64;
                cell.tuned = (contender == Contender::ObmmDiscounted).then_some(0.01 * (1 + fold % 3) as f64);
                cell.learn_seconds = seconds * kf / 5.0 * (1.0 + 0.1 * noise(fold));
                records.push(Record::Cell(Box::new(cell)));
            }
        }
    }
    for (contender, offset, _) in
        CONTENDERS.into_iter().filter(|c| c.0 != Contender::Em && c.0 != Contender::Start)
    {
        let points = (0..40).map(|i| (100.0 * 1.13f64.powi(i)) as u64);
        let score = |rows: u64| level + offset - 0.4 - 40.0 / rows as f64 - 0.02 * noise(rows as usize);
        records.push(Record::Curve(CurveRecord {
            data: name.into(),
            contender,
            k: 8,
            points: points.map(|rows| (rows, score(rows))).collect(),
            level: Some(("batch EM".into(), level + 0.1)),
        }));
    }
    records
}

/// Two sets of the catalogue, one of them also dequantized, a stand-in, and one with a hostile name.
fn full() -> Vec<Record> {
    let mut records = vec![run()];
    let mut noisy = data("airfoil+dequantized", "Airfoil, dequantized", 6, Units::Raw);
    noisy.dequantized = vec![("frequency".into(), 50.0), ("angle".into(), 0.1)];
    let mut large = data("yearmsd", "Year MSD", 91, Units::Raw);
    large.stand_in = true;
    let sets = [
        (data("abalone", "Abalone", 8, Units::Zscore), 2.0),
        (data("airfoil", "Airfoil", 6, Units::Raw), -15.5),
        (noisy, -16.0),
        (large, -510.0),
        (data("<b>&'\"", "<script>alert('x')</script>|*", 2, Units::Raw), -3.0),
    ];
    for (set, level) in sets {
        records.extend(full_set(&set.data, level));
        records.push(Record::Data(set));
    }
    records
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The full report, written once for all tests that only look at it.
fn shared() -> (&'static Summary, &'static Path) {
    static SHARED: OnceLock<(Summary, tempfile::TempDir)> = OnceLock::new();
    let (summary, folder) = SHARED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        (write_report(&full(), &OPTIONS, folder.path()).unwrap(), folder)
    });
    (summary, folder.path())
}

/// Every file below a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(
                files(&path).into_iter().map(|(name, bytes)| (PathBuf::from("plots").join(name), bytes)),
            );
        } else {
            found.insert(path.file_name().unwrap().into(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn a_report_has_all_its_files_and_running_twice_gives_the_same_bytes() {
    let (_, one) = shared();
    let two = tempfile::tempdir().unwrap();
    let mut records = full();
    // The order in which parts were finished must not matter, except that of the data sets.
    let (data, mut rest): (Vec<_>, Vec<_>) = records.drain(..).partition(|r| matches!(r, Record::Data(_)));
    rest.reverse();
    write_report(&[data, rest].concat(), &OPTIONS, two.path()).unwrap();
    let (one, two) = (files(one), files(two.path()));
    let names: Vec<_> = one.keys().map(|name| name.display().to_string()).collect();
    for name in ["loglik.csv", "times.csv", "summary.md", "report.html"] {
        assert!(names.contains(&name.to_string()), "{names:?}");
    }
    assert_eq!(names.iter().filter(|name| name.ends_with(".svg")).count(), 15);
    assert_eq!(names.iter().filter(|name| name.ends_with(".png")).count(), 15);
    assert_eq!(one, two);
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
        let summary = write_report(&records, &OPTIONS, folder.path()).unwrap();
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
fn nothing_in_the_output_is_not_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = full_set("abalone", 2.0);
    let mut broken = cell("abalone", Contender::Odmm, 11, 0, vec![f32::NEG_INFINITY, -1.0]);
    broken.learn_seconds = 0.0;
    records.push(Record::Cell(Box::new(broken)));
    write_report(&records, &OPTIONS, folder.path()).unwrap();
    for (name, bytes) in files(folder.path()) {
        let text = String::from_utf8_lossy(&bytes);
        if name.extension().is_none_or(|e| e != "png") {
            assert!(!text.contains("NaN") && !text.contains(">inf") && !text.contains(",inf"), "{name:?}");
        }
    }
}

/// Two folds of two rows: oEM and oBMM, K = 2 and 3.
fn small(shift: f32) -> Vec<Record> {
    let mut records = Vec::new();
    for (k, fold, rows) in
        [(2, 0, [-1.0, -2.0]), (2, 1, [-3.0, -6.0]), (3, 0, [-1.0, -1.0]), (3, 1, [-1.0, -1.0])]
    {
        for (contender, add) in [(Contender::Oem, shift), (Contender::Obmm, 0.0)] {
            let mut cell = cell("toy", contender, k, fold, rows.map(|row| row + add).to_vec());
            // The validation rows favour 2, the test rows 3.
            cell.validation = Some(if k == 2 { -1.0 } else { -2.0 });
            cell.prequential = Some(if k == 2 { -2.0 } else { -1.0 });
            cell.log_jacobian = [10.0, 20.0][fold];
            cell.learn_seconds =
                if contender == Contender::Oem { [3.0, 5.0][fold] } else { [1.0, 3.0][fold] };
            records.push(Record::Cell(Box::new(cell)));
        }
    }
    records
}

#[test]
fn means_and_errors_are_those_worked_out_by_hand() {
    let summary = Summary::new(&small(-1.0), &OPTIONS).unwrap();
    let entry = summary.sets[0].entry(Contender::Obmm).unwrap();
    let score = entry.score().unwrap();
    assert_eq!((score.k, score.folds, score.rows, score.mean), (2, 2, 4, -3.0));
    // Squares 4 + 1 + 0 + 9 = 14 over 3 · 4; fold means −1.5 and −4.5: √(4.5/2).
    assert!((score.standard_error.unwrap() - (14.0f64 / 12.0).sqrt()).abs() < 1e-12);
    assert!((score.fold_error.unwrap() - 1.5).abs() < 1e-12);
    assert_eq!(score.learn_seconds.median, 2.0);
}

#[test]
fn k_is_chosen_by_the_rule_that_is_asked_for() {
    let chosen = |select| {
        let summary = Summary::new(&small(0.0), &ReportOptions { select, ..OPTIONS }).unwrap();
        summary.sets[0].entry(Contender::Obmm).unwrap().chosen
    };
    assert_eq!(chosen(SelectRule::Validation), Some(2));
    assert_eq!(chosen(SelectRule::Evidence), Some(3));
    // Four rows cannot make the step from 2 to 3 significant.
    assert_eq!(chosen(SelectRule::Paper), Some(2));
}

#[test]
fn z_scored_units_add_each_folds_jacobian() {
    let options = ReportOptions { units: Some(Units::Zscore), ..OPTIONS };
    let summary = Summary::new(&small(0.0), &options).unwrap();
    assert_eq!(summary.sets[0].entry(Contender::Obmm).unwrap().score().unwrap().mean, -3.0 + 15.0);
}

#[test]
fn arrows_say_better_and_worse_and_the_best_is_marked() {
    let (summary, folder) = shared();
    let entry = |contender| summary.sets[0].entry(contender).unwrap();
    assert_eq!(summary.reference, Some(Contender::Obmm));
    assert_eq!(entry(Contender::Oem).arrow, Some(Arrow::Down));
    assert_eq!(entry(Contender::ObmmDiscounted).arrow, Some(Arrow::Up));
    assert_eq!((entry(Contender::Obmm).arrow, entry(Contender::Obmm).p_value), (None, None));
    assert!(entry(Contender::Oem).p_holm >= entry(Contender::Oem).p_value);
    let best: Vec<_> =
        summary.sets[0].entries.iter().filter(|entry| entry.best).map(|e| e.contender).collect();
    assert_eq!(best, [Contender::ObmmDiscounted]);
    assert_eq!(entry(Contender::ObmmDiscounted).score().unwrap().tuned, Some(0.02));

    let plain = summary.terminal(false);
    assert!(plain.contains("*−1.19↑") && plain.contains('↓') && !plain.contains('\u{1b}'), "{plain}");
    let coloured = summary.terminal(true);
    assert!(coloured.contains("\u{1b}[1m"), "{coloured:?}");
    let markdown = read(folder, "summary.md");
    assert!(
        plain.contains("\nEM: batch EM with restarts") && markdown.contains("\n- EM: batch EM with restarts")
    );
    assert!(markdown.contains("** |") && markdown.contains("paper oEM"));
}

#[test]
fn the_usual_learners_fit_a_terminal() {
    let is_usual =
        |record: &Record| !matches!(record, Record::Cell(cell) if cell.contender == Contender::ObmmPaper);
    let records: Vec<Record> = full().into_iter().filter(is_usual).collect();
    let text = Summary::new(&records, &OPTIONS).unwrap().terminal(false);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 115, "{widest} columns:\n{text}");
}

/// Most rows are a little worse than the reference's, one is far better.
#[test]
fn an_arrow_against_the_means_is_marked() {
    let scores = |shift: f32, last: f32| (0..40).map(|i| if i < 39 { -1.0 - shift } else { last }).collect();
    let mut records = vec![Record::Data(data("odd", "Odd", 2, Units::Raw))];
    for (contender, test) in [(Contender::Obmm, scores(0.0, -1.0)), (Contender::Oem, scores(0.01, 9.0))] {
        records.push(Record::Cell(Box::new(cell("odd", contender, 2, 0, test))));
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = write_report(&records, &OPTIONS, folder.path()).unwrap();
    assert!(summary.terminal(false).contains("−0.76↓†"), "{}", summary.terminal(false));
    for text in
        [summary.terminal(false), read(folder.path(), "summary.md"), read(folder.path(), "report.html")]
    {
        assert!(text.contains("†: the means say the opposite"), "{text}");
    }
    let (without, _) = shared();
    assert!(!without.terminal(false).contains('†'));
}

#[test]
fn the_papers_figures_stand_beside_sets_that_are_the_papers() {
    let summary = Summary::new(&full(), &OPTIONS).unwrap();
    let paper = |index: usize| summary.sets[index].paper.obmm;
    assert_eq!((paper(0), paper(1)), (Some(-1.82), Some(-16.53)));
    // Noise was added; another set stands in; the name is not in the catalogue.
    assert_eq!((paper(2), paper(3), paper(4)), (None, None, None));
    assert_eq!(summary.sets[3].paper_seconds.odmm, Some(21.2));
    let raw = Summary::new(&full(), &ReportOptions { units: Some(Units::Raw), ..OPTIONS }).unwrap();
    assert_eq!(raw.sets[0].paper.obmm, None, "Abalone's figures are of z-scored columns");
}

#[test]
fn the_tables_for_programs_have_a_line_for_each_k() {
    let folder = tempfile::tempdir().unwrap();
    write_report(&small(-1.0), &OPTIONS, folder.path()).unwrap();
    let scores = read(folder.path(), "loglik.csv");
    let lines: Vec<_> = scores.lines().collect();
    assert_eq!(
        lines[0],
        "data,contender,k,chosen,folds,rows,mean,standard_error,validation,prequential,p_value,p_holm,effect_size,tuned"
    );
    assert_eq!(lines.len(), 5);
    assert!(
        lines[1].starts_with("toy,oem,2,true,2,4,-4.0,") || lines[1].starts_with("toy,oem,2,true,2,4,-4,")
    );
    assert!(lines[2].starts_with("toy,oem,3,false,2,4,-2"));
    let times = read(folder.path(), "times.csv");
    assert!(times.lines().nth(1).unwrap().starts_with("toy,oem,2,"), "{times}");
    assert!(times.lines().nth(1).unwrap().ends_with(",2.0"), "{times}");
}

#[test]
fn folds_can_be_paired_instead_of_rows() {
    let options = ReportOptions { pairs: Pairs::Folds, ..OPTIONS };
    let summary = Summary::new(&small(-1.0), &options).unwrap();
    // Two folds are too few for anything significant.
    assert!(summary.sets[0].entry(Contender::Oem).unwrap().p_value.unwrap() > 0.2);
    assert_eq!(summary.sets[0].entry(Contender::Oem).unwrap().arrow, None);
}

#[test]
fn the_reference_can_be_chosen_among_those_that_took_part() {
    let against = |records: &[Record], reference| {
        Summary::new(records, &ReportOptions { reference: Some(reference), ..OPTIONS })
    };
    let summary = against(&full(), Contender::Oem).unwrap();
    let arrow = |contender| summary.sets[0].entry(contender).unwrap().arrow;
    assert_eq!((arrow(Contender::Obmm), arrow(Contender::Oem)), (Some(Arrow::Up), None));
    assert!(matches!(
        against(&small(0.0), Contender::ObmmPaper),
        Err(ReportError::NoReference("paper moments"))
    ));
}

#[test]
fn learners_that_were_tested_on_different_rows_are_refused() {
    let mut records = small(0.0);
    records.push(Record::Cell(Box::new(cell("toy", Contender::Oem, 2, 0, vec![-1.0]))));
    let error = Summary::new(&records, &OPTIONS).unwrap_err();
    assert!(matches!(error, ReportError::Unpaired { .. }));
    assert!(error.to_string().contains("'toy', fold 0, oEM was tested on 1 rows"), "{error}");
}

#[test]
fn an_unfinished_run_is_reported_with_a_note() {
    let mut records = small(0.0);
    records.retain(|r| !matches!(r, Record::Cell(c) if c.contender == Contender::Oem && c.fold == 1));
    let summary = Summary::new(&records, &OPTIONS).unwrap();
    assert_eq!(summary.notes, ["toy: oEM has 1 of 2 folds so far; its mean is over these alone."]);
}

#[test]
fn no_records_are_an_error() {
    assert!(matches!(Summary::new(&[run()], &OPTIONS), Err(ReportError::NothingToShow)));
}

#[test]
fn records_survive_being_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(RECORDS_FILE);
    let records = full();
    let lines: Vec<_> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    assert_eq!(read_records(folder.path()).unwrap(), records);
}

#[test]
fn hostile_names_stay_text() {
    let (_, folder) = shared();
    let page = read(folder, "report.html");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert!(page.contains("--data &lt;abalone&gt;"));
    assert!(!read(folder, "summary.md").contains("<script"));
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
    let elsewhere = page.matches("http").count() - page.matches("http://www.w3.org/2000/svg").count();
    assert_eq!(elsewhere, 0);
}

/// Runs Chromium without a screen; nothing if there is none.
fn chromium(arguments: &[&str]) -> Option<std::process::Output> {
    let profile = tempfile::tempdir().unwrap();
    let fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ];
    let mut command = Command::new("chromium");
    command.args(fixed).arg(format!("--user-data-dir={}", profile.path().display())).args(arguments);
    command.output().ok()
}

#[test]
fn a_browser_shows_the_page() {
    let (_, folder) = shared();
    let address = format!("file://{}", folder.join("report.html").display());
    let Some(output) = chromium(&["--dump-dom", &address]) else {
        // Not eprintln!, which the test runner keeps to itself.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no chromium here\n");
        return;
    };
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

/// Leaves the report of these tests in a folder, to look at: `REPORT_OUT=DIR cargo test --test report -- --ignored`.
#[test]
#[ignore = "writes where REPORT_OUT says"]
fn a_report_to_look_at() {
    let folder = PathBuf::from(std::env::var("REPORT_OUT").unwrap());
    let summary = write_report(&full(), &OPTIONS, &folder).unwrap();
    println!("{}", summary.terminal(false));
    figure1(&figure1_curves(), &folder).unwrap();
}
