//! The figures, and the marks beside them.

use std::fs;

use gmm_bmm::data::Units;
use gmm_bmm::experiment::{Contender, Pairs, RECORDS_FILE, Record, SelectRule, read_records};
use gmm_bmm::report::{Arrow, ReportError, ReportOptions, Summary, write_report};

use crate::records::{OPTIONS, cell, data, full, read, run, shared, small};

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
    let described = "EM: batch EM, the best of 10 restarts";
    assert!(plain.contains(&format!("\n{described}")) && markdown.contains(&format!("\n- {described}")));
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

#[test]
fn learners_that_show_the_same_figure_are_best_together() {
    let marked = |shift: f32| {
        let summary = Summary::new(&small(shift), &OPTIONS).unwrap();
        let exactly = summary.sets[0].entries.iter().filter(|entry| entry.best).count();
        (exactly, summary.terminal(false).matches("*−").count())
    };
    assert_eq!([marked(0.0), marked(-0.00004), marked(-0.0004)], [(2, 2), (1, 2), (1, 1)]);
}

#[test]
fn the_table_names_the_chosen_k() {
    let folder = tempfile::tempdir().unwrap();
    let summary = write_report(&small(-1.0), &OPTIONS, folder.path()).unwrap();
    assert_eq!(summary.terminal(false).matches("K=2").count(), 2);
    assert!(read(folder.path(), "summary.md").contains("**−3.0000 (K=2)**"));
    assert!(read(folder.path(), "report.html").contains("<span class=\"aside\">K=2</span>"));
}

/// With a test file there is one fold, and nothing is said of folds.
#[test]
fn without_cross_validation_nothing_is_said_of_folds() {
    let folder = tempfile::tempdir().unwrap();
    let mut records = small(-1.0);
    records.retain(|record| !matches!(record, Record::Cell(cell) if cell.fold > 0));
    let Record::Run(mut one) = run() else { panic!("a run") };
    one.folds = 1;
    records.push(Record::Run(one));
    let summary = write_report(&records, &OPTIONS, folder.path()).unwrap();
    for text in
        [summary.terminal(false), read(folder.path(), "summary.md"), read(folder.path(), "report.html")]
    {
        assert!(!text.contains("fold"), "{text}");
    }
    assert!(read(folder.path(), "summary.md").contains("tested on a test file"));
    assert!(Summary::new(&small(-1.0), &OPTIONS).unwrap().terminal(false).contains("median over folds"));
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
    assert!(summary.terminal(false).contains("−0.7597↓†"), "{}", summary.terminal(false));
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
        lines[1].starts_with("toy,oem_counted,2,true,2,4,-4.0,")
            || lines[1].starts_with("toy,oem_counted,2,true,2,4,-4,")
    );
    assert!(lines[2].starts_with("toy,oem_counted,3,false,2,4,-2"));
    let times = read(folder.path(), "times.csv");
    assert!(times.lines().nth(1).unwrap().starts_with("toy,oem_counted,2,"), "{times}");
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
