//! Packed records.

use gmm_bmm::internals::experiment::{CellRecord, Contender, Record};
use gmm_bmm::internals::report::{ReportError, ReportOptions, SelectRule, pack};

use super::records::{OPTIONS, full, index, summarise, written_and_read};

fn cells(records: &[Record]) -> impl Iterator<Item = &CellRecord> {
    records.iter().filter_map(|record| match record {
        Record::Cell(cell) => Some(&**cell),
        _ => None,
    })
}

#[test]
fn packed_records_have_the_tables_of_the_full_ones() {
    let records = full();
    let packed = written_and_read(&pack(&index(&records), &OPTIONS).unwrap());
    let summaries = [&records, &packed].map(|records| summarise(records, &OPTIONS).unwrap());
    let [before, after] = summaries.each_ref();
    assert_eq!(before.notes, after.notes, "learners below the start are named from summaries");
    assert!(before.notes.iter().any(|note| note.contains("below that of the start")), "{:?}", before.notes);
    assert_eq!((&before.contenders, before.sets.len()), (&after.contenders, after.sets.len()));
    for (before, after) in before.sets.iter().zip(&after.sets) {
        assert_eq!((&before.data, &before.paper), (&after.data, &after.paper));
        for (before, after) in before.entries.iter().zip(&after.entries) {
            assert_eq!(
                (&before.contender, &before.chosen, before.arrow),
                (&after.contender, &after.chosen, after.arrow)
            );
            let near = |a: Option<f64>, b: Option<f64>, by: f64| match (a, b) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= by, "{a} and {b}"),
                (a, b) => assert_eq!(a, b),
            };
            near(before.p_value, after.p_value, 0.01);
            near(before.difference, after.difference, 1e-4);
            for (before, after) in before.by_k.iter().zip(&after.by_k) {
                let (before, after) = (&before.score, &after.score);
                assert_eq!((before.rows, before.folds), (after.rows, after.folds));
                near(Some(before.mean), Some(after.mean), 1e-5);
                near(before.standard_error, after.standard_error, 1e-5);
                near(before.fold_error, after.fold_error, 1e-5);
            }
        }
    }
    let kept = cells(&packed).filter(|cell| !cell.test.is_empty()).count();
    // Five sets, eleven learners, ten folds, and one K of nine.
    assert_eq!((kept, cells(&packed).count()), (5 * 11 * 10, 5 * 11 * 10 * 9));
    assert_eq!(pack(&index(&packed), &OPTIONS).unwrap(), packed, "packing again changes nothing");
}

#[test]
fn another_choice_of_k_needs_the_rows() {
    let packed = pack(&index(&full()), &OPTIONS).unwrap();
    let options = ReportOptions { select: SelectRule::Paper, ..OPTIONS };
    assert!(matches!(summarise(&packed, &options), Err(ReportError::RowsNotKept)));
    let other = ReportOptions { reference: Some(Contender::Oem), ..OPTIONS };
    assert!(summarise(&packed, &other).unwrap().sets[0].entries[0].p_value.is_some());
}

#[test]
fn large_sets_keep_evenly_spaced_rows() {
    let mut records = full();
    for record in &mut records {
        if let Record::Data(data) = record {
            data.rows = 30_000;
        }
    }
    let packed = pack(&index(&records), &OPTIONS).unwrap();
    for cell in cells(&packed) {
        assert!([0, 20].contains(&cell.test.len()), "every second of 40 rows");
        assert_eq!(cell.summary.unwrap().rows.count, 40);
    }
    let [before, after] = [&records, &packed].map(|records| summarise(records, &OPTIONS).unwrap());
    for (before, after) in before.sets.iter().zip(&after.sets) {
        for (before, after) in before.entries.iter().zip(&after.entries) {
            let means = [before, after].map(|entry| entry.score.as_ref().unwrap().mean);
            assert!((means[0] - means[1]).abs() < 1e-5);
        }
    }
    let note = "tests and paired differences use 200 of 400 test rows, evenly spaced";
    assert!(after.notes.iter().any(|said| said.contains(note)), "{:?}", after.notes);
}
