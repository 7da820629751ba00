//! `gmm-bmm datasets`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;

fn datasets(folder: &Path) -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("gmm-bmm");
    command.env_remove("GMM_BMM_DATASETS").arg("datasets").arg("--datasets").arg(folder);
    command
}

fn bundled() -> &'static Path {
    Path::new("datasets")
}

#[test]
fn the_list_says_what_is_there_and_how_to_get_the_rest() {
    let output = datasets(bundled()).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_string();
    assert_eq!(text.lines().count(), 22);
    assert!(line("abalone").contains("4177") && line("abalone").contains("yes"));
    assert!(line("abalone").ends_with("abalone.csv") && line("abalone").contains("CC BY 4.0"));
    assert!(line("northridge").contains("if you have the data"));
    let at = |line: &str, word: &str| line.find(word).unwrap();
    assert_eq!(at(&line("abalone"), "CC BY"), at(&line("ccpp"), "CC BY"), "columns are aligned");
}

#[test]
fn an_empty_folder_has_none_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let output = datasets(folder.path()).arg("--json").assert().success().get_output().stdout.clone();
    let sets: Value = serde_json::from_slice(&output).unwrap();
    let sets = sets.as_array().unwrap();
    assert_eq!(sets.len(), 21);
    assert!(sets.iter().all(|set| set["present"] == false));
    let plastic = sets.iter().find(|set| set["name"] == "plastic").unwrap();
    assert_eq!(plastic["how_to_get"], "fetch it with: python3 scripts/fetch_datasets.py plastic");
    assert_eq!(plastic["columns"].as_array().unwrap().len(), 3);
}

#[test]
fn the_bundled_files_are_as_the_catalogue_says() {
    let output =
        datasets(bundled()).args(["--check", "--json"]).assert().success().get_output().stdout.clone();
    let sets: Value = serde_json::from_slice(&output).unwrap();
    let bundled: Vec<&Value> = sets.as_array().unwrap().iter().filter(|set| set["bundled"] == true).collect();
    assert_eq!(bundled.len(), 6);
    assert!(bundled.iter().all(|set| set["good"] == true));
}

#[test]
fn a_file_with_other_rows_or_columns_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plastic.csv"), "Strength,Temperature,Pressure\n1,2,3\n4,5,6\n").unwrap();
    fs::write(folder.path().join("ccpp.csv"), "AT,V\n1,2\n").unwrap();
    datasets(folder.path())
        .arg("--check")
        .assert()
        .code(1)
        .stdout(predicate::str::contains("it has 2 rows, not 1650"))
        .stderr(predicate::str::contains("these files differ from the catalogue: ccpp, plastic"));
    datasets(folder.path()).assert().success();
}

#[test]
fn the_folder_can_come_from_the_environment() {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("gmm-bmm");
    command.env("GMM_BMM_DATASETS", "no-such-folder").arg("datasets");
    command
        .assert()
        .success()
        .stdout(predicate::str::contains("abalone.csv; give that folder with --datasets"));
}
