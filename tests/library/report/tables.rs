//! The figures of the tables, and their marks.

use gmm_bmm::internals::experiment::{Contender, Record, Units};
use gmm_bmm::internals::report::{Arrow, Pairs, ReportError, ReportOptions, SelectRule};

use super::records::{
    OPTIONS, TABLES, cell, data, full, full_set, read, report, run, shared, small, summarise,
    written_and_read,
};

#[test]
fn means_and_errors_are_those_worked_out_by_hand() {
    let summary = summarise(&small(-1.0), &OPTIONS).unwrap();
    let entry = summary.sets[0].entry(&Contender::Obmm).unwrap();
    let score = entry.score.as_ref().unwrap();
    assert_eq!((entry.commonest_k(), score.folds, score.rows, score.mean), (Some(2), 2, 4, -3.0));
    // Squares 4 + 1 + 0 + 9 = 14 over 3 · 4; fold means −1.5 and −4.5: √(4.5/2).
    assert!((score.standard_error.unwrap() - (14.0f64 / 12.0).sqrt()).abs() < 1e-12);
    assert!((score.fold_error.unwrap() - 1.5).abs() < 1e-12);
    assert_eq!(score.learn_seconds.median, 2.0);
}

#[test]
fn k_is_chosen_by_the_rule_that_is_asked_for() {
    let chosen = |select| {
        let summary = summarise(&small(0.0), &ReportOptions { select, ..OPTIONS }).unwrap();
        summary.sets[0].entry(&Contender::Obmm).unwrap().chosen.clone().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(chosen(SelectRule::Validation), [(0, 2), (1, 2)]);
    assert_eq!(chosen(SelectRule::Evidence), [(0, 3), (1, 3)]);
    // Four rows cannot make the step from 2 to 3 significant.
    assert_eq!(chosen(SelectRule::Paper), [(0, 2), (1, 2)]);
}

/// The validation rows of fold 1 are test rows of fold 0, so fold 0 must not be told what they say.
#[test]
fn every_fold_chooses_its_own_k() {
    let mut records = small(-1.0);
    for record in &mut records {
        if let Record::Cell(cell) = record
            && (cell.fold, cell.k) == (1, 3)
        {
            cell.validation = Some(100.0);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = report(&records, &TABLES, folder.path()).unwrap();
    let entry = summary.sets[0].entry(&Contender::Obmm).unwrap();
    assert_eq!(entry.chosen.iter().collect::<Vec<_>>(), [(&0, &2), (&1, &3)]);
    // Rows −1 and −2 of fold 0 at K = 2, −1 and −1 of fold 1 at K = 3.
    assert_eq!(entry.score.as_ref().unwrap().mean, -1.25);
    let markdown = read(folder.path(), "summary.md");
    assert!(
        markdown.contains("**−1.2500 (K=2–3)**") && markdown.contains("| 2 (1×), 3 (1×) |"),
        "{markdown}"
    );
    assert!(
        markdown
            .contains("chosen for each learner in each fold by the mean log-likelihood of validation rows")
    );
    assert_eq!(summary.terminal(false).matches("K=2–3").count(), 2);
    let line = |start: &str| {
        let text = read(folder.path(), "table.csv");
        text.lines().find(|line| line.starts_with(start)).map(String::from).unwrap_or(text)
    };
    assert!(line("toy,obmm,2,").starts_with("toy,obmm,2,false,1,2,4,-3"));
    assert!(line("toy,obmm,3,").starts_with("toy,obmm,3,false,1,2,4,-1"));
    assert!(line("toy,obmm,,").starts_with("toy,obmm,,true,2,2,4,-1.25,"));
}

/// Scores of oBMM level off at K = 3 of 2 to 6, those of oEM rise to the end.
#[test]
fn the_elbow_over_k_is_in_the_details_on_the_terminal_and_for_programs() {
    let mut records = vec![Record::Data(data("toy", "Toy", 2, Units::Raw))];
    let levels = [
        (Contender::Obmm, [-9.0, -5.0, -4.99, -4.98, -4.97]),
        (Contender::Oem, [-9.0, -6.0, -5.5, -5.0, -4.5]),
    ];
    for (contender, levels) in levels {
        for (k, level) in (2..).zip(levels) {
            let mut cell = cell("toy", contender.clone(), k, 0, vec![level as f32; 3]);
            cell.validation = Some(level);
            records.push(Record::Cell(Box::new(cell)));
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = report(&records, &TABLES, folder.path()).unwrap();
    let markdown = read(folder.path(), "summary.md");
    assert!(markdown.contains("| Toy | oBMM | 6 | 3 | "), "{markdown}");
    assert!(markdown.contains("| Toy | oEM | 6 | 3 (rises) | "), "{markdown}");
    let terminal = summary.terminal(false);
    assert!(terminal.contains("Elbow over K, Toy: oEM 3 (rises), oBMM 3.\n"), "{terminal}");
    assert_eq!(terminal.matches("Elbow: the smallest K beyond which larger K gain little").count(), 1);
    let entry = serde_json::to_value(&summary.sets[0]).unwrap()["entries"][1].clone();
    assert_eq!((&entry["contender"], &entry["elbow"]["k"]), (&"obmm".into(), &3.into()), "{entry}");
    assert_eq!(entry["elbow"]["beyond"], "little");
    // With one K there is none.
    let summary = summarise(&records[..2], &OPTIONS).unwrap();
    assert!(!summary.terminal(false).contains("Elbow"));
}

/// The best mean, and yet most rows are worse than the reference's: it is bold, without an arrow.
#[test]
fn the_best_mean_is_bold_and_an_arrow_needs_ranks_and_means_that_agree() {
    let rows = |shift: f32, last: f32| (0..40).map(|i| if i < 39 { -1.0 - shift } else { last }).collect();
    let with = |contender, test| Record::Cell(Box::new(cell("odd", contender, 2, 0, test)));
    for last in [9.0, -0.61] {
        let records = vec![
            Record::Data(data("odd", "Odd", 2, Units::Raw)),
            with(Contender::Obmm, rows(0.0, -1.0)),
            with(Contender::Oem, rows(0.01, last)),
        ];
        let summary = summarise(&records, &OPTIONS).unwrap();
        let oem = summary.sets[0].entry(&Contender::Oem).unwrap();
        let gain = oem.difference.unwrap();
        assert!(oem.p_value < Some(0.05) && oem.effect_size < Some(0.0) && gain > -1e-3, "{oem:?}");
        assert_eq!((oem.arrow, oem.best), (None, gain > 0.0));
        let text = summary.terminal(false);
        assert_eq!(text.matches("*−").count(), if gain.abs() < 1e-5 { 2 } else { 1 }, "{text}");
        assert!(text.contains("the best mean of the line") && !text.contains('†'), "{text}");
    }
}

/// Folds took 3 and 5 seconds, and a third 40: the median is 5, the mean 16.
#[test]
fn both_tables_of_seconds_show_the_median() {
    let mut records = small(-1.0);
    for contender in [Contender::Oem, Contender::Obmm] {
        let mut slow = cell("toy", contender, 2, 2, vec![-1.0, -2.0]);
        slow.learn_seconds = 40.0;
        records.push(Record::Cell(Box::new(slow)));
    }
    let folder = tempfile::tempdir().unwrap();
    report(&records, &TABLES, folder.path()).unwrap();
    let markdown = read(folder.path(), "summary.md");
    let row = |after: &str, start: &str| {
        let table = markdown.split(after).nth(1).unwrap();
        table.lines().find(|line| line.starts_with(start)).unwrap().to_string()
    };
    assert!(row("## Times", "| toy | 2 |").contains("| 5.00 (1.7×) |"), "{markdown}");
    assert!(row("## Details", "| toy | oEM |").ends_with("| 5.00 |"), "{markdown}");
    let caption = markdown.split("## Details").nth(1).unwrap();
    assert!(caption.contains("start included, median over folds"), "{markdown}");
}

#[test]
fn z_scored_units_add_each_folds_jacobian() {
    let options = ReportOptions { units: Some(Units::Zscore), ..OPTIONS };
    let summary = summarise(&small(0.0), &options).unwrap();
    assert_eq!(summary.sets[0].entry(&Contender::Obmm).unwrap().score.as_ref().unwrap().mean, -3.0 + 15.0);
}

#[test]
fn arrows_say_better_and_worse_and_the_best_is_marked() {
    let (summary, folder) = shared();
    let entry = |contender| summary.sets[0].entry(contender).unwrap();
    assert_eq!(summary.reference, Some(Contender::Obmm));
    assert_eq!(entry(&Contender::Oem).arrow, Some(Arrow::Down));
    assert_eq!(entry(&Contender::ObmmDiscounted).arrow, Some(Arrow::Up));
    assert_eq!((entry(&Contender::Obmm).arrow, entry(&Contender::Obmm).p_value), (None, None));
    assert!(entry(&Contender::Oem).p_holm >= entry(&Contender::Oem).p_value);
    let best: Vec<_> =
        summary.sets[0].entries.iter().filter(|entry| entry.best).map(|e| &e.contender).collect();
    assert_eq!(best, [&Contender::Em]);
    assert_eq!(entry(&Contender::ObmmDiscounted).score.as_ref().unwrap().tuned, Some(0.02));

    let plain = summary.terminal(false);
    assert!(
        plain.contains(" −1.20↑")
            && plain.contains("*−1.02↑")
            && plain.contains('↓')
            && !plain.contains('\u{1b}'),
        "{plain}"
    );
    let coloured = summary.terminal(true);
    assert!(coloured.contains("\u{1b}[1m"), "{coloured:?}");
    let markdown = read(folder, "summary.md");
    let described = "EM: batch EM with moves (splits and merges of components), the best of 2 starts";
    assert!(plain.contains(&format!("\n{described}")) && markdown.contains(&format!("\n- {described}")));
    assert!(markdown.contains("** |") && markdown.contains("paper oEM"));
}

#[test]
fn the_usual_learners_fit_a_terminal() {
    use Contender::*;
    let usual = [Start, Oem, OemRevised, Obmm, ObmmRevised, Odmm, Em];
    let is_usual =
        |record: &Record| !matches!(record, Record::Cell(cell) if !usual.contains(&cell.contender));
    let records: Vec<Record> = full().into_iter().filter(is_usual).collect();
    let text = summarise(&records, &OPTIONS).unwrap().terminal(false);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 115, "{widest} columns:\n{text}");
}

/// A single set has more decimals, and Magic04 three columns of the paper.
#[test]
fn a_single_set_fits_a_terminal() {
    use Contender::*;
    let mut records = full_set("magic04", -24.0);
    records.push(Record::Data(data("magic04", "MAGIC Gamma Telescope", 10, Units::Raw)));
    let usual = [Start, Oem, OemRevised, Obmm, ObmmRevised, Odmm, Em];
    records.retain(|record| !matches!(record, Record::Cell(cell) if !usual.contains(&cell.contender)));
    let text = summarise(&written_and_read(&records), &OPTIONS).unwrap().terminal(false);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(text.contains("−35.40") && widest <= 120, "{widest} columns:\n{text}");
}

#[test]
fn learners_below_the_start_with_the_same_k_are_named() {
    let rows = |shift: f32| (0..40).map(|i| shift * (1.0 + 0.5 * (i % 2) as f32) - 1.0).collect::<Vec<f32>>();
    let records = |printed: f32, odmm: f32| {
        let mut records = vec![run(), Record::Data(data("odd", "Odd", 2, Units::Raw))];
        for k in [2, 3, 5] {
            let mut add = |contender, test| {
                records.push(Record::Cell(Box::new(cell("odd", contender, k, 0, test))));
            };
            add(Contender::Start, rows(0.0));
            add(Contender::Obmm, rows(0.1));
            add(Contender::OemPrinted, rows(printed * k as f32));
            add(Contender::Odmm, rows(if k == 3 { odmm } else { 0.0 }));
            add(Contender::Em, rows(-1.0));
        }
        records
    };
    let named = |records: &[Record]| summarise(records, &OPTIONS).unwrap().notes;
    assert_eq!(
        named(&records(-1.0, -0.1)),
        [
            "Odd: mean test score below that of the start with the same K by more than the standard error of the \
          paired difference: oEM printed at K = 2–3, 5 (most at K = 5, by 6.2500 ± 0.2002); \
          oDMM at K = 3 (by 0.1250 ± 0.0040)."
        ]
    );
    let none = "No online learner has a mean test score below that of the start with the same K by more than the \
                standard error of the paired difference.";
    assert_eq!(named(&records(0.0, 0.1)), [none]);
    let mut without = records(-1.0, -0.1);
    without.retain(|record| !matches!(record, Record::Cell(cell) if cell.contender == Contender::Start));
    assert!(named(&without).is_empty(), "without the start there is nothing to say");
}

#[test]
fn learners_that_show_the_same_figure_are_best_together() {
    let marked = |shift: f32| {
        let summary = summarise(&small(shift), &OPTIONS).unwrap();
        let exactly = summary.sets[0].entries.iter().filter(|entry| entry.best).count();
        (exactly, summary.terminal(false).matches("*−").count())
    };
    assert_eq!([marked(0.0), marked(-0.00004), marked(-0.0004)], [(2, 2), (1, 2), (1, 1)]);
}

#[test]
fn the_table_names_the_chosen_k() {
    let folder = tempfile::tempdir().unwrap();
    let summary = report(&small(-1.0), &TABLES, folder.path()).unwrap();
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
    let summary = report(&records, &TABLES, folder.path()).unwrap();
    for text in
        [summary.terminal(false), read(folder.path(), "summary.md"), read(folder.path(), "report.html")]
    {
        assert!(!text.contains("fold"), "{text}");
    }
    assert!(read(folder.path(), "summary.md").contains("tested on a test file"));
    assert!(summarise(&small(-1.0), &OPTIONS).unwrap().terminal(false).contains("median over folds"));
}

/// Most rows are a little worse than the reference's, one is far better.
#[test]
fn the_details_have_the_paired_difference_and_its_standard_error() {
    let scores = |shift: f32, last: f32| (0..40).map(|i| if i < 39 { -1.0 - shift } else { last }).collect();
    let mut records = vec![Record::Data(data("odd", "Odd", 2, Units::Raw))];
    for (contender, test) in [(Contender::Obmm, scores(0.0, -1.0)), (Contender::Oem, scores(0.01, 9.0))] {
        records.push(Record::Cell(Box::new(cell("odd", contender, 2, 0, test))));
    }
    let folder = tempfile::tempdir().unwrap();
    let summary = report(&records, &TABLES, folder.path()).unwrap();
    assert!(summary.terminal(false).contains("*−0.7597 "), "{}", summary.terminal(false));
    for name in ["summary.md", "report.html"] {
        let text = read(folder.path(), name);
        assert!(text.contains("0.2403 ± 0.2502") && !text.contains("−0.7597↓"), "{text}");
    }
    assert!(
        read(folder.path(), "table.csv")
            .lines()
            .any(|line| line.contains(",0.2402") && line.contains(",0.2502"))
    );
}

#[test]
fn the_papers_figures_stand_beside_sets_that_are_the_papers() {
    let summary = summarise(&full(), &OPTIONS).unwrap();
    let paper = |index: usize| summary.sets[index].paper.obmm;
    assert_eq!((paper(0), paper(1)), (Some(-1.82), Some(-16.53)));
    // Added noise; a synthetic substitute; a name that is not in the catalogue.
    assert_eq!((paper(2), paper(3), paper(4)), (None, None, None));
    assert_eq!(summary.sets[3].paper_seconds.odmm, Some(21.2));
    let raw = summarise(&full(), &ReportOptions { units: Some(Units::Raw), ..OPTIONS }).unwrap();
    assert_eq!(raw.sets[0].paper.obmm, None, "Abalone's figures are of z-scored columns");
}

#[test]
fn the_tables_for_programs_have_a_line_for_each_k_and_one_for_the_chosen() {
    let folder = tempfile::tempdir().unwrap();
    report(&small(-1.0), &TABLES, folder.path()).unwrap();
    let scores = read(folder.path(), "table.csv");
    let lines: Vec<_> = scores.lines().collect();
    assert_eq!(
        lines[0],
        "data,learner,k,chosen,chosen_folds,folds,rows,mean,standard_error,validation,prequential,p_value,p_holm,effect_size,tuned,seeds,seed_error,difference,difference_error"
    );
    assert_eq!(lines.len(), 1 + 2 * 3);
    assert!(lines[1].starts_with("toy,oem,2,false,2,2,4,-4.0,"), "{scores}");
    assert!(lines[2].starts_with("toy,oem,3,false,0,2,4,-2"), "{scores}");
    assert!(lines[3].starts_with("toy,oem,,true,2,2,4,-4.0,"), "{scores}");
    let times = read(folder.path(), "times.csv");
    assert!(times.lines().nth(1).unwrap().starts_with("toy,oem,2,"), "{times}");
    assert!(times.lines().nth(1).unwrap().ends_with(",2.0,"), "{times}");
}

#[test]
fn the_scores_are_tidy_with_a_line_for_each_cell() {
    let folder = tempfile::tempdir().unwrap();
    report(&small(-1.0), &TABLES, folder.path()).unwrap();
    let scores = read(folder.path(), "loglik.csv");
    let lines: Vec<_> = scores.lines().collect();
    assert_eq!(
        lines[0],
        "data,learner,k,seed,fold,units,chosen,rows,mean,validation,prequential,tuned,start_seconds,learn_seconds,cpu_seconds,peak_memory,failure"
    );
    assert_eq!(lines.len(), 1 + 2 * 2 * 2, "two learners, K and folds");
    assert!(lines[1].starts_with("toy,oem,2,0,0,raw,true,2,"), "{scores}");
    assert!(lines[4].starts_with("toy,oem,3,0,1,raw,false,2,"), "{scores}");
}

#[test]
fn the_table_for_papers_has_a_row_for_each_set() {
    let folder = tempfile::tempdir().unwrap();
    report(&full(), &TABLES, folder.path()).unwrap();
    let text = read(folder.path(), "table.tex");
    for part in [
        "\\toprule",
        "\\midrule",
        "\\bottomrule",
        "\\textbf{",
        "$\\uparrow$",
        "\\shortstack{oBMM\\\\discounted}",
        "\\label{tab:scores-2}",
        "Part 2 of ",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // A table of many learners has parts that fit a page, each with the names and the paper's figures.
    let columns = |line: &str| line.matches(" & ").count();
    let parts: Vec<&str> = text.split_terminator("\\end{table}\n").collect();
    let mut learners = 0;
    for part in &parts {
        let rows: Vec<_> = part.lines().filter(|line| line.ends_with(" \\\\")).collect();
        let named = rows.iter().filter(|row| !row.starts_with(" & ")).count();
        assert_eq!(named, 1 + 5, "{part}");
        assert!(rows.iter().all(|row| columns(row) == columns(rows[0])), "{part}");
        assert!(
            rows[0].starts_with(
                "\\shortstack{data\\\\set} & \\shortstack{paper\\\\oEM} & \\shortstack{paper\\\\oBMM} & "
            ),
            "{part}"
        );
        learners += columns(rows[0]) - 2;
    }
    assert!(parts.len() > 1);
    assert_eq!(learners, summarise(&full(), &OPTIONS).unwrap().contenders.len());
    assert!(!text.contains('−') && !text.contains('↓'), "{text}");
}

#[test]
fn folds_can_be_paired_instead_of_rows() {
    let options = ReportOptions { pairs: Pairs::Folds, ..OPTIONS };
    let summary = summarise(&small(-1.0), &options).unwrap();
    // Two folds are too few for anything significant.
    assert!(summary.sets[0].entry(&Contender::Oem).unwrap().p_value.unwrap() > 0.2);
    assert_eq!(summary.sets[0].entry(&Contender::Oem).unwrap().arrow, None);
}

#[test]
fn the_reference_can_be_chosen_among_those_that_took_part() {
    let against = |records: &[Record], reference| {
        summarise(records, &ReportOptions { reference: Some(reference), ..OPTIONS })
    };
    let summary = against(&full(), Contender::Oem).unwrap();
    let arrow = |contender| summary.sets[0].entry(contender).unwrap().arrow;
    assert_eq!((arrow(&Contender::Obmm), arrow(&Contender::Oem)), (Some(Arrow::Up), None));
    let refused = against(&small(0.0), Contender::ObmmPaper);
    assert!(matches!(refused, Err(ReportError::NoReference(name)) if name == "oBMM paper"));
}

#[test]
fn learners_that_were_tested_on_different_rows_are_refused() {
    let mut records = small(0.0);
    records.push(Record::Cell(Box::new(cell("toy", Contender::Oem, 2, 0, vec![-1.0]))));
    let error = summarise(&records, &OPTIONS).unwrap_err();
    assert!(matches!(error, ReportError::Unpaired { .. }));
    assert!(error.to_string().contains("'toy', fold 0, oEM was tested on 1 rows"), "{error}");
}

#[test]
fn an_unfinished_run_is_reported_with_a_note() {
    let mut records = small(0.0);
    records.retain(|r| !matches!(r, Record::Cell(c) if c.contender == Contender::Oem && c.fold == 1));
    let summary = summarise(&records, &OPTIONS).unwrap();
    assert_eq!(summary.notes, ["toy: oEM has 1 of 2 folds so far; its mean is over these folds."]);
    let mut records = small(0.0);
    records.retain(
        |r| !matches!(r, Record::Cell(c) if c.contender == Contender::Oem && (c.fold, c.k) == (1, 3)),
    );
    let summary = summarise(&records, &OPTIONS).unwrap();
    let note = "toy: oEM is missing some K in 1 fold so far; K is chosen among the others.";
    assert_eq!(summary.notes, [note]);
}

#[test]
fn no_records_are_an_error() {
    assert!(matches!(summarise(&[run()], &OPTIONS), Err(ReportError::NothingToShow)));
}

#[test]
fn records_survive_being_written_and_read() {
    let records = full();
    assert_eq!(written_and_read(&records), records);
}
