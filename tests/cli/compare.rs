//! `gmm-bmm compare` with the real binary: going on, refusing, redrawing.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gmm_bmm::internals::experiment::{CellRecord, Contender, Record, read_records};

use crate::common::{as_csv, clusters, repository};
use crate::workplace::Workplace;

const QUICK: &str = "--data clusters.csv --k 1..2 --folds 3 --em-restarts 2";
/// Three folds of two K for each of seven learners, and of one that learns K.
const CELLS: u64 = 3 * (2 * 7 + 1);

fn workplace() -> Workplace {
    let workplace = Workplace::new();
    workplace.write("clusters.csv", &as_csv(&clusters(300, 3, 5), &["a", "b", "c"]));
    workplace
}

/// The folder of an undisturbed run on one thread.
fn straight() -> PathBuf {
    static RUN: OnceLock<Workplace> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let workplace = workplace();
        workplace.run(&format!("compare {QUICK} --out straight --threads 1")).success();
        workplace
    });
    run.path("straight")
}

fn cells(folder: &Path) -> Vec<CellRecord> {
    let of = |record: Record| match record {
        Record::Cell(cell) => Some(*cell),
        _ => None,
    };
    read_records(folder).unwrap().into_iter().filter_map(of).collect()
}

/// Cells and curves without seconds, in an order of their own.
fn comparable(folder: &Path) -> Vec<String> {
    let text = |record: Record| match record {
        Record::Cell(mut cell) => {
            (cell.start_seconds, cell.learn_seconds, cell.machine_seconds) = (0.0, 0.0, None);
            Some(serde_json::to_string(&cell).unwrap())
        }
        Record::Run(_) => None,
        other => Some(serde_json::to_string(&other).unwrap()),
    };
    let mut lines: Vec<String> = read_records(folder).unwrap().into_iter().filter_map(text).collect();
    lines.sort();
    lines
}

/// A run under way that has finished a few cells. Timing each fit many times slows it down and changes nothing else.
fn begin(workplace: &Workplace, out: &str) -> Child {
    let program = workplace.command("").get_program().to_owned();
    let child = Command::new(program)
        .args(format!("compare {QUICK} --out {out} --threads 1 --repeat 20").split_whitespace())
        .current_dir(workplace.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = workplace.path(out).join("records.jsonl");
    let lines = || std::fs::read(&path).map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count());
    let patience = Instant::now();
    while lines() < 8 && patience.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn every_learner_is_scored_with_every_k_on_every_fold() {
    let cells = cells(&straight());
    assert_eq!(cells.len() as u64, CELLS);
    for cell in &cells {
        assert_eq!((cell.train_rows, cell.test.len()), (200, 100));
        assert!(cell.validation.is_some() && cell.learn_seconds > 0.0);
        assert_eq!(cell.tuned.is_some(), {
            use Contender::*;
            matches!(cell.contender, Oem | OemRevised)
        });
    }
    let mean = |contender, k| {
        let of = cells.iter().filter(|cell| cell.contender == contender && cell.k == k);
        of.flat_map(|cell| &cell.test).map(|&score| f64::from(score)).sum::<f64>() / 300.0
    };
    assert!(
        mean(Contender::Obmm, 2) > mean(Contender::Obmm, 1),
        "three clusters want more than one component"
    );
    for contender in [Contender::Obmm, Contender::ObmmRevised, Contender::OemRevised] {
        assert!((mean(contender.clone(), 2) - mean(Contender::Em, 2)).abs() < 0.1, "{contender:?}");
    }
    let records = read_records(&straight()).unwrap();
    let curves: Vec<_> = records.iter().filter(|record| matches!(record, Record::Curve(_))).collect();
    assert_eq!(curves.len(), 5, "one for each online learner with a curve");
    let page = std::fs::read_to_string(straight().join("summary.md")).unwrap();
    assert!(page.contains("plots/pairs-clusters"), "{page}");
    let drawn = |cell: &&CellRecord| cell.marginals.is_some();
    assert_eq!(cells.iter().filter(drawn).count(), 2 * 7 + 1, "every K of every learner, on one fold");
}

#[cfg(unix)]
#[test]
fn interrupted_by_the_user_it_finishes_the_cells_under_way_and_keeps_them() {
    let workplace = workplace();
    let mut child = begin(&workplace, "out");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(workplace.read("out/records.jsonl").ends_with('\n'));
    let before = cells(&workplace.path("out")).len();
    assert!((6..CELLS as usize).contains(&before), "{before} cells before the interruption");
    let result = workplace.json(&format!("compare --no-pictures {QUICK} --out out"));
    assert_eq!(result["cells_run"].as_u64(), Some(CELLS - before as u64));
}

#[cfg(unix)]
#[test]
fn a_second_run_into_the_same_folder_is_refused_and_changes_nothing() {
    let workplace = workplace();
    let mut child = begin(&workplace, "out");
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
    };
    // Stopped, so that it is only the second run that could change anything.
    signal("-STOP");
    std::thread::sleep(Duration::from_millis(100));
    let found = || {
        let names = std::fs::read_dir(workplace.path("out")).unwrap().count();
        (workplace.read("out/records.jsonl"), names)
    };
    let before = found();
    let second = workplace.command(&format!("compare {QUICK} --out out --threads 1")).output().unwrap();
    let after = found();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("another comparison is writing to 'out/records.jsonl'"), "{said}");
    assert_eq!(after, before);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let workplace = workplace();
    for (out, threads) in [("three", "3"), ("all_for_one", "4 --jobs 1")] {
        workplace.run(&format!("compare --no-pictures {QUICK} --out {out} --threads {threads}")).success();
        assert_eq!(comparable(&workplace.path(out)), comparable(&straight()), "{threads}");
    }
}

#[test]
fn more_learners_and_more_k_are_added_to_what_is_there() {
    let workplace = workplace();
    let some = "compare --no-pictures --data clusters.csv --folds 3 --em-restarts 2 --out out";
    workplace.run(&format!("{some} --k 1 --algos em,obmm")).success();
    let result = workplace
        .json(&format!("{some} --k 1..2 --algos start,em,odmm,oem,oem_revised,obmm_revised,obmm_auto,obmm"));
    assert_eq!(result["cells_run"].as_u64(), Some(CELLS - 6));
    let cells = |folder: &Path| {
        let lines = comparable(folder);
        lines.into_iter().filter(|line| line.contains("log_jacobian")).collect::<Vec<_>>()
    };
    assert_eq!(cells(&workplace.path("out")), cells(&straight()));
}

#[test]
fn records_of_other_settings_or_other_data_are_refused() {
    let workplace = workplace();
    let few = "compare --no-pictures --data clusters.csv --k 1 --algos start,em --folds 3 --em-restarts 2 --out out";
    workplace.run(few).success();
    let before = workplace.read("out/records.jsonl");
    workplace.refuses(&format!("{few} --seed 2"), 1, &["the seed differs: 1 in the records, 2 now", "--out"]);
    workplace.refuses(
        &few.replace("--folds 3", "--folds 4"),
        1,
        &["the number of folds differs: 3 in the records, 4 now"],
    );
    workplace.refuses(
        &few.replace("--em-restarts 2", "--em-restarts 3"),
        1,
        &["starts of EM differs: 2 in the records, 3 now"],
    );
    workplace.refuses(
        &format!("{few} --drop c"),
        1,
        &["the list of columns of 'clusters' differs: a,b,c in the records, a,b now"],
    );
    workplace.refuses(
        &format!("{few} --limit 299"),
        1,
        &["the number of rows of 'clusters' differs: 300 in the records, 299 now"],
    );
    let changed = workplace.read("clusters.csv").replacen("\n0", "\n1", 1).replacen("\n-0", "\n-1", 1);
    assert_ne!(changed, workplace.read("clusters.csv"));
    workplace.write("clusters.csv", &changed);
    workplace.refuses(few, 1, &["the content of 'clusters' differs: other rows in the records"]);
    assert_eq!(before, workplace.read("out/records.jsonl"));
}

#[test]
fn tables_are_redrawn_from_records_without_the_data() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.path("out")).unwrap();
    let copied = |name: &str| std::fs::read_to_string(straight().join(name)).unwrap();
    let (records, summary) = (copied("records.jsonl"), copied("summary.md"));
    workplace.write("out/records.jsonl", &records);
    let result = workplace.json("compare --from-records out");
    assert_eq!((result["cells"].as_u64(), result["cells_run"].as_u64()), (Some(CELLS), Some(0)));
    assert_eq!(records, workplace.read("out/records.jsonl"));
    assert_eq!(summary, workplace.read("out/summary.md"));
    for options in ["--select paper", "--select evidence --pairs folds", "--units zscore"] {
        workplace.run(&format!("compare --from-records out {options} --out elsewhere")).success();
        assert_eq!(summary, workplace.read("out/summary.md"));
        assert_ne!(summary, workplace.read("elsewhere/summary.md"), "{options}");
    }
    assert!(!workplace.path("elsewhere/records.jsonl").exists());
    std::fs::copy(workplace.path("out/records.jsonl"), workplace.path("elsewhere/records.jsonl")).unwrap();
    let line = "compare --from-records out --out elsewhere";
    workplace.refuses(line, 2, &["'elsewhere' has records of its own", "another folder"]);
    workplace.write("file", "");
    workplace.refuses("compare --from-records out --out file", 1, &["'file' is a file", "folder"]);
}

#[test]
fn test_rows_of_their_own_make_one_fold() {
    let workplace = workplace();
    workplace.write("test.csv", &as_csv(&clusters(50, 3, 6), &["c", "a", "b"]));
    let options = "--k 2 --algos start,obmm,obmm_paper --dequantize a";
    workplace
        .run(&format!("compare --no-pictures --data clusters.csv --test test.csv --out out {options}"))
        .success();
    let cells = cells(&workplace.path("out"));
    assert_eq!(cells.len(), 3);
    for cell in cells {
        assert_eq!((cell.data.as_str(), cell.train_rows, cell.test.len()), ("clusters+dequantized", 300, 50));
    }
}

#[test]
fn discrete_columns_are_run_with_and_without_noise() {
    let workplace = Workplace::new();
    let mut rows = clusters(200, 2, 8);
    rows.column_mut(1).mapv_inplace(f64::round);
    workplace.write("steps.csv", &as_csv(&rows, &["smooth", "steps"]));
    workplace.write("smooth.csv", &as_csv(&clusters(200, 2, 9), &["a", "b"]));
    let line =
        "compare --no-pictures --data steps.csv --data smooth.csv --k 1 --folds 2 --algos start --out out";
    let said = workplace.run(&format!("{line} --dequantize both")).success();
    let said = String::from_utf8_lossy(&said.get_output().stderr).into_owned();
    assert!(
        said.contains("steps: noise of one quantum is added to the discrete columns 'steps' (1)"),
        "{said}"
    );
    let of = |record: Record| match record {
        Record::Data(data) => Some((data.data, data.dequantized)),
        _ => None,
    };
    let sets: Vec<_> = read_records(&workplace.path("out")).unwrap().into_iter().filter_map(of).collect();
    let noise = vec![("steps".to_string(), 1.0)];
    let expected = [("steps", vec![]), ("steps+dequantized", noise), ("smooth", vec![])];
    assert_eq!(sets, expected.map(|(name, noise)| (name.to_string(), noise)));
}

#[test]
fn wrong_usage_is_refused_before_anything_is_written() {
    let workplace = workplace();
    let refused = |options: &str, words: &[&str]| {
        workplace.refuses(&format!("compare --data clusters.csv {options}"), 2, words);
    };
    refused("--k 0", &["K must be at least 1"]);
    refused("--algos obmm,kmeans", &["kmeans", "obmm_discounted"]);
    refused("--folds 1", &["--folds", "from 2 on", "use --test"]);
    refused("--folds 301", &["301 folds cannot be made of the 300 rows", "fewer folds"]);
    // Of the whole command, whatever was given and the environment says.
    refused("--nonsense", &["Usage: gmm-bmm compare --data <FILE|NAME> [OPTIONS]\n"]);
    refused("--k 150", &["too few rows for K = 150"]);
    refused("--select guess", &["--select"]);
    refused("--dequantize height", &["'height'", "a, b, c"]);
    refused("--data clusters.csv", &["two data sets are called 'clusters'"]);
    refused("--data other.csv --test clusters.csv", &["--test takes one --data"]);
    refused("--from-records out", &["--from-records"]);
    workplace.refuses("compare --k 2", 2, &["--data"]);
}

#[test]
fn what_is_not_there_is_named() {
    let workplace = workplace();
    workplace.refuses("compare --data nowhere.csv --k 2", 1, &["nowhere.csv"]);
    workplace.refuses("compare --from-records nowhere", 1, &["there are no records in 'nowhere'"]);
    workplace.write("broken", "");
    workplace.refuses(&format!("compare {QUICK} --out broken"), 1, &["'broken' is a file", "need a folder"]);
}

#[test]
fn a_missing_set_keeps_its_row_and_a_stand_in_has_its_own_name() {
    let workplace = workplace();
    std::fs::copy(workplace.path("clusters.csv"), workplace.path("yearmsd.csv")).unwrap();
    let options = "--k 2 --folds 2 --algos obmm-exact --datasets . --out out";
    workplace.refuses(&format!("compare --data northridge {options}"), 1, &["northridge", "does not exist"]);
    workplace.json(&format!(
        "compare --no-pictures --data clusters.csv --data northridge --keep-missing {options}"
    ));
    let summary = std::fs::read_to_string(workplace.path("out/summary.md")).unwrap();
    let row = summary.lines().find(|line| line.contains("Northridge Earthquake (missing) |")).unwrap();
    assert!(row.contains("-17.97") || row.contains("−17.97"), "the paper's own figure stays: {row}");
    assert!(std::fs::read_to_string(workplace.path("out/report.html")).unwrap().contains("(missing)"));
    workplace.json(&format!("compare --no-pictures --data yearmsd.csv --stand-in {options}"));
    let names: Vec<String> = cells(&workplace.path("out")).into_iter().map(|cell| cell.data).collect();
    assert!(names.iter().any(|name| name == "yearmsd-stand-in"), "{names:?}");
}

/// Only its columns and its number of rows make a file a set of the catalogue; its name does not.
#[test]
fn an_own_file_with_the_name_of_a_known_set_is_an_own_set() {
    let workplace = workplace();
    let row = |i: usize| format!("{},{},{},{}\n", i % 7, i % 11, i % 13, i % 17);
    let rows: String = (0..80).map(row).collect();
    let line = |out: &str| {
        format!("compare --no-pictures --data banknote.csv --k 1 --folds 2 --algos start --out {out}")
    };
    let note = "'banknote.csv' has the name of a set in the catalogue";
    for (out, names) in [("known", "variance,skewness,curtosis,entropy"), ("other", "p,q,r,s")] {
        workplace.write("banknote.csv", &format!("{names}\n{rows}"));
        let run = workplace.run(&line(out)).success();
        assert!(String::from_utf8_lossy(&run.get_output().stderr).contains(note));
        let page = workplace.read(&format!("{out}/summary.md"));
        assert!(!page.contains("Banknote") && !page.contains("Paper"), "{page}");
    }
    workplace.run(&format!("{} --stand-in", line("stand-in"))).success();
    workplace.write("banknote.csv", &format!("variance,skewness,curtosis,entropy\n{rows}"));
    workplace.run(&format!("{} --stand-in", line("short"))).success();
    assert!(workplace.read("short/summary.md").contains("Banknote Authentication"));
    let whole = format!("{} --drop class", line("whole"));
    std::fs::copy(repository("datasets/banknote.csv"), workplace.path("banknote.csv")).unwrap();
    let run = workplace.run(&whole).success();
    assert!(!String::from_utf8_lossy(&run.get_output().stderr).contains(note));
    let page = workplace.read("whole/summary.md");
    assert!(page.contains("Banknote Authentication") && page.contains("Paper"), "{page}");
}

/// `python/tests/test_records.py` checks records against the schema.
#[test]
fn the_schema_of_the_records_names_all_learners() {
    let text = std::fs::read(repository("docs/records.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let named = schema["$defs"]["learner"]["oneOf"][0]["enum"].as_array().unwrap();
    let named: Vec<&str> = named.iter().filter_map(|name| name.as_str()).collect();
    let ids: Vec<&str> = Contender::ALL.iter().map(Contender::id).collect();
    assert_eq!(named, ids);
}

#[test]
fn packed_records_give_the_same_tables_and_show_what_is_asked_for() {
    let workplace = workplace();
    workplace.json(&format!("compare {QUICK} --algos start,oem,obmm --out full"));
    workplace.json("compare --from-records full --pack --out packed");
    assert!(!workplace.path("packed/records.jsonl").exists());
    let again = "compare --from-records packed --out again";
    workplace.json(again);
    for name in [
        "table.csv",
        "loglik.csv",
        "times.csv",
        "table.tex",
        "summary.md",
        "report.html",
        "plots/loglik-clusters.svg",
    ] {
        assert!(
            workplace.read(&format!("packed/{name}")) == workplace.read(&format!("again/{name}")),
            "{name}"
        );
    }
    let size = |file: &str| std::fs::metadata(workplace.path(file)).unwrap().len();
    assert!(size("packed/records.jsonl.gz") < size("full/records.jsonl") / 4);
    workplace.refuses(
        &format!("compare {QUICK} --out packed"),
        1,
        &["'packed' has packed records", "another folder"],
    );
    workplace.refuses(
        "compare --from-records packed --select paper --out again",
        1,
        &["--select validation"],
    );
    workplace.refuses("compare --from-records full --out packed", 2, &["records of its own"]);

    workplace.json(&format!("{again} --show-learners oem,oBMM --no-k"));
    let table = workplace.read("again/table.tex");
    assert!(
        table.contains("& oEM & oBMM ") && !table.contains("start &") && !table.contains("K="),
        "{table}"
    );
    workplace.refuses(&format!("{again} --show-learners odmm"), 1, &["no finished cells"]);
    workplace.refuses(&format!("{again} --show-learners nothing"), 2, &["--show-learners 'nothing'"]);
    workplace.refuses(
        &format!("{again} --show-sets other"),
        2,
        &["--show-sets 'other': the records have clusters"],
    );
    workplace.json(&format!("{again} --show-sets clusters"));
}
