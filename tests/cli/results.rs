//! The committed results: tables and pages are made again from the records.

use std::path::Path;
use std::process::Command;

use crate::common::repository;
use crate::workplace::Workplace;

/// Folders with packed records, and their tables.
const TABLES: [&str; 4] = ["table1", "table2", "table3", "table3/one-thread"];

#[test]
fn the_committed_tables_are_those_of_the_committed_records() {
    let workplace = Workplace::new();
    for name in TABLES {
        let folder = repository("results").join(name);
        if !folder.join("records.jsonl.gz").is_file() {
            continue;
        }
        let output = workplace
            .command("compare --quiet --no-pictures --out again --from-records")
            .arg(&folder)
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        for file in ["table.csv", "loglik.csv", "times.csv", "table.tex"] {
            let committed = std::fs::read_to_string(folder.join(file)).unwrap();
            assert!(
                committed == workplace.read(&format!("again/{file}")),
                "{name}/{file} is not that of its records"
            );
        }
    }
}

#[test]
fn the_pages_have_the_figures_of_the_committed_records() {
    let script = repository("scripts/make_reproduction.py");
    let has_python =
        Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_python {
        return;
    }
    let program = Workplace::new().command("").get_program().to_owned();
    let mut command = Command::new("python3");
    let output = command.arg(script).arg("--check").env("GMM_BMM", Path::new(&program)).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
