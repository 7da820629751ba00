//! Records of earlier versions, completed while they are read: what they lack follows from the catalogue and from the
//! defaults of that time.

use std::collections::HashMap;

use super::paper::paper_figures;
use super::record::Record;
use crate::learn::default_start_rows;

/// Fills in the paper's figures and the rows of the start where records of earlier versions do not have them.
pub(super) fn complete(records: &mut [Record]) {
    let mut columns: HashMap<String, usize> = HashMap::new();
    for record in records.iter_mut() {
        if let Record::Data(data) = record {
            if data.paper.is_none() {
                data.paper = Some(paper_figures(data));
            }
            columns.insert(data.data.clone(), data.columns.len());
        }
    }
    for record in records {
        if let Record::Curve(curve) = record
            && curve.start_rows.is_none()
            && let Some(&columns) = columns.get(&curve.data).filter(|columns| **columns > 0)
            && let Some((rows, _)) = curve.points.last()
        {
            curve.start_rows = Some((default_start_rows(curve.k, columns) as u64).min(*rows));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::paper::PaperColumns;
    use super::*;

    fn record(line: &str) -> Record {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn records_of_early_versions_get_the_paper_figures_and_the_rows_of_the_start() {
        let data = r#"{"kind":"data","data":"banknote","title":"","rows":9000,"columns":["a","b","c","d"],
            "dequantized":[],"units":"raw","stand_in":false}"#;
        let curve = r#"{"kind":"curve","data":"banknote","contender":"obmm","k":3,"points":[[10,-9.0],[9000,-8.0]],
            "level":null}"#;
        let mut records = [record(curve), record(data)];
        complete(&mut records);
        let [Record::Curve(curve), Record::Data(data)] = &records else { panic!("a curve and a set") };
        assert_eq!(curve.start_rows, Some(default_start_rows(3, 4) as u64));
        let scores = PaperColumns { oem: Some(-9.74), obmm: Some(-9.65), odmm: None };
        assert_eq!(data.paper.as_ref().unwrap().scores, scores);
        let before = records.clone();
        complete(&mut records);
        assert_eq!(records, before);
    }

    #[test]
    fn what_a_record_says_stays() {
        let data = r#"{"kind":"data","data":"banknote","title":"","rows":9000,"columns":["a","b","c","d"],
            "dequantized":[],"units":"raw","stand_in":false,"paper":{"units":null,"scores":{},"seconds":{}}}"#;
        let mut records = [record(data)];
        let before = records.clone();
        complete(&mut records);
        assert_eq!(records, before);
    }
}
