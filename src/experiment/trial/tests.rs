use super::super::plan::tests::plan_of;
use super::*;

fn run(trial: &mut Trial, contender: &Contender) -> CellRecord {
    trial.run(contender, &AtomicBool::new(false)).unwrap().unwrap()
}

#[test]
fn every_contender_fills_its_cell() {
    let plan = plan_of(120, 4);
    let mut trial = Trial::new(&plan, &plan.sets[0], 1, 2);
    for contender in Contender::ALL {
        let cell = run(&mut trial, contender);
        assert_eq!((&cell.contender, cell.fold, cell.train_rows), (contender, 1, 90));
        assert!(cell.k == 2 || contender.learns_k() && cell.k > 0, "{contender:?} has {} components", cell.k);
        assert_eq!(cell.test.len(), 30);
        assert!(cell.test.iter().all(|score| score.is_finite()), "{contender:?}");
        assert!(cell.validation.is_some_and(f64::is_finite), "{contender:?}");
        assert_eq!(cell.prequential.is_some(), !contender.is_batch(), "{contender:?}");
        let chooses = matches!(contender.way(), Some(Way::Online { tuned: [_, ..], .. }));
        assert_eq!(cell.tuned.is_some(), chooses, "{contender:?}");
        assert!(cell.learn_seconds >= cell.start_seconds);
        assert!(cell.marginals.is_none(), "only fold 0 is drawn");
    }
    let mut trial = Trial::new(&plan, &plan.sets[0], 0, 2);
    assert_eq!(run(&mut trial, &Contender::Obmm).marginals.unwrap().len(), 2);
}

#[test]
fn a_cell_does_not_depend_on_who_ran_before_it() {
    let plan = plan_of(120, 3);
    let cell = |before: &[Contender]| {
        let mut trial = Trial::new(&plan, &plan.sets[0], 0, 2);
        before.iter().for_each(|contender| drop(run(&mut trial, contender)));
        let cell = run(&mut trial, &Contender::Oem);
        (cell.test, cell.validation, cell.prequential, cell.tuned)
    };
    assert_eq!(cell(&[]), cell(&[Contender::Start, Contender::Odmm, Contender::Em]));
}

#[test]
fn a_curve_ends_where_the_cell_is() {
    let plan = plan_of(120, 3);
    let mut trial = Trial::new(&plan, &plan.sets[0], 0, 2);
    for (contender, counts) in [(Contender::Obmm, vec![10, 80]), (Contender::ObmmRevised, vec![80])] {
        let cell = run(&mut trial, &contender);
        let points = trial.curve(&contender, None, &counts).unwrap().points;
        let mean = cell.test.iter().map(|&score| f64::from(score)).sum::<f64>() / 40.0;
        assert_eq!((points.len(), points.last().unwrap().0), (counts.len(), 80));
        assert!((points.last().unwrap().1 - mean).abs() < 1e-6);
    }
}

#[test]
fn scores_without_a_number_become_the_worst_there_is() {
    assert_eq!(bounded(f64::NEG_INFINITY), f64::from(f32::MIN));
    assert_eq!(bounded(f64::NAN) as f32, f32::MIN);
    assert_eq!(bounded(-1.5), -1.5);
}
