//! Records as a comparison might have written them, and the report that is made of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gmm_bmm::internals::experiment::{
    CellRecord, CellSettings, Contender, CurveRecord, DataRecord, RECORDS_FILE, Record, RecordIndex,
    RunRecord, Units, paper_figures, read_records,
};
use gmm_bmm::internals::report::{Pairs, ReportError, ReportOptions, SelectRule, Summary, write_report};

pub const OPTIONS: ReportOptions = ReportOptions {
    select: SelectRule::Validation,
    pairs: Pairs::Rows,
    units: None,
    reference: None,
    hide_k: false,
    pictures: true,
};

/// The same without pictures.
pub const TABLES: ReportOptions = ReportOptions { pictures: false, ..OPTIONS };

pub const CONTENDERS: [(Contender, f64, f64); 11] = [
    (Contender::Start, -0.6, 0.02),
    (Contender::OemPrinted, -40.0, 0.8),
    (Contender::Oem, -0.25, 0.82),
    (Contender::OemRevised, -0.05, 1.9),
    (Contender::Obmm, 0.0, 0.9),
    (Contender::ObmmDiscounted, 0.12, 1.9),
    (Contender::ObmmRevised, 0.05, 2.0),
    (Contender::ObmmPaper, -0.9, 1.4),
    (Contender::Odmm, -0.15, 0.22),
    (Contender::EmPlain, 0.2, 18.0),
    (Contender::Em, 0.3, 14.0),
];

/// Noise in [−1, 1] that is the same in every run.
pub fn noise(seed: usize) -> f64 {
    ((seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / f64::from(1 << 23) - 1.0
}

pub fn run() -> Record {
    Record::Run(RunRecord {
        version: 1,
        tool: "0.1.0".into(),
        command: "gmm-bmm compare --data <abalone> --k 2..10".into(),
        began: "2026-01-31T12:00:00Z".into(),
        processor: "Example Processor 3000".into(),
        threads: 4,
        seed: 7,
        seeds: 1,
        folds: 10,
        ks: (2..=10).collect(),
        settings: CellSettings::default(),
        learners: Vec::new(),
    })
}

pub fn data(name: &str, title: &str, columns: usize, units: Units) -> DataRecord {
    let record = DataRecord {
        data: name.into(),
        weight: None,
        title: title.into(),
        rows: 4177,
        columns: (0..columns).map(|i| format!("x{i}")).collect(),
        dequantized: Vec::new(),
        discrete: Vec::new(),
        units,
        stand_in: false,
        missing: None,
        sample: None,
        paper: None,
    };
    DataRecord { paper: Some(paper_figures(&record)), ..record }
}

pub fn cell(data: &str, contender: Contender, k: usize, fold: usize, test: Vec<f32>) -> CellRecord {
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
        summary: None,
        weights: None,
        log_jacobian: 0.0,
        gap_jacobians: None,
        start_seconds: 0.01,
        learn_seconds: 0.1,
        machine_seconds: None,
        guarded: 0,
        marginals: None,
        measured: None,
        failure: None,
    }
}

/// Ten folds, K from 2 to 10, every contender.
pub fn full_set(name: &str, level: f64) -> Vec<Record> {
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
                let mut cell = cell(name, contender.clone(), k, fold, (0..40).map(row).collect());
                cell.validation = Some(centre + 0.05 * noise(fold + 100 * k));
                cell.log_jacobian = -3.0 + 0.01 * fold as f64;
                cell.tuned = (contender == Contender::ObmmDiscounted).then_some(0.01 * (1 + fold % 3) as f64);
                cell.learn_seconds = seconds * kf / 5.0 * (1.0 + 0.1 * noise(fold));
                records.push(Record::Cell(Box::new(cell)));
            }
        }
    }
    for (contender, offset, _) in CONTENDERS.into_iter().filter(|c| c.0.is_online()) {
        let points = (0..40).map(|i| (100.0 * 1.13f64.powi(i)) as u64);
        let score = |rows: u64| level + offset - 0.4 - 40.0 / rows as f64 - 0.02 * noise(rows as usize);
        records.push(Record::Curve(CurveRecord {
            data: name.into(),
            contender: contender.clone(),
            k: 8,
            points: points.map(|rows| (rows, score(rows))).collect(),
            start_rows: Some(5000),
            level: Some(("batch EM".into(), level + 0.1)),
            revisions: if contender == Contender::ObmmRevised { vec![6000, 9500] } else { Vec::new() },
        }));
    }
    records
}

/// Two sets of the catalogue, one of them also dequantized, a stand-in, and one with a hostile name.
pub fn full() -> Vec<Record> {
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
    written_and_read(&records)
}

/// The same records after a file, where those of early versions are completed.
pub fn written_and_read(records: &[Record]) -> Vec<Record> {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<_> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    fs::write(folder.path().join(RECORDS_FILE), lines.join("\n") + "\n").unwrap();
    read_records(folder.path()).unwrap()
}

/// Two folds of two rows: oEM and oBMM, K = 2 and 3.
pub fn small(shift: f32) -> Vec<Record> {
    let mut records = Vec::new();
    for (k, fold, rows) in
        [(2, 0, [-1.0, -2.0]), (2, 1, [-3.0, -6.0]), (3, 0, [-1.0, -1.0]), (3, 1, [-1.0, -1.0])]
    {
        for (contender, add) in [(Contender::Oem, shift), (Contender::Obmm, 0.0)] {
            let mut cell = cell("toy", contender.clone(), k, fold, rows.map(|row| row + add).to_vec());
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

pub fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The full report, written once for all tests that only look at it.
pub fn shared() -> (&'static Summary, &'static Path) {
    static SHARED: OnceLock<(Summary, tempfile::TempDir)> = OnceLock::new();
    let (summary, folder) = SHARED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        (report(&full(), &OPTIONS, folder.path()).unwrap(), folder)
    });
    (summary, folder.path())
}

/// Every file below a folder with its bytes.
pub fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
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

pub fn index(records: &[Record]) -> RecordIndex {
    records.iter().cloned().collect()
}

pub fn summarise(records: &[Record], options: &ReportOptions) -> Result<Summary, ReportError> {
    Summary::new(&index(records), options)
}

pub fn report(records: &[Record], options: &ReportOptions, folder: &Path) -> Result<Summary, ReportError> {
    write_report(&index(records), options, folder)
}
