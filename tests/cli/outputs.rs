//! Files that commands write: their permissions, links, compression, and limits.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use crate::common::*;
use crate::workplace::Workplace;

fn place() -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(600, 2, 1), &[]));
    place
}

fn mode(place: &Workplace, name: &str) -> u32 {
    fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777
}

#[test]
fn new_files_with_rows_are_private_and_existing_files_keep_their_permissions() {
    let place = place();
    let script = |line: &str| {
        let binary = assert_cmd::cargo::cargo_bin!("gmm-bmm").display().to_string();
        let run = Command::new("sh")
            .args(["-c", &format!("umask 022; {binary} {line}")])
            .current_dir(place.folder.path())
            .output()
            .unwrap();
        assert!(run.status.success(), "{line}: {}", String::from_utf8_lossy(&run.stderr));
    };
    let fit = "fit --data rows.csv --k 2 --init-rows 100";
    script(&format!("{fit} --out model.json"));
    script(&format!("{fit} --out bare.json --no-rows"));
    script("predict --model model.json --data rows.csv --scores scores.csv");
    script("impute --model model.json --data rows.csv --out filled.csv");
    script("compare --data rows.csv --k 1 --export-folds folds");
    assert_eq!(["model.json", "filled.csv"].map(|name| mode(&place, name)), [0o600; 2]);
    assert_eq!(mode(&place, "folds/rows/fold-0/train.csv"), 0o600);
    assert_eq!(["bare.json", "scores.csv"].map(|name| mode(&place, name)), [0o644; 2]);
    for kept in [0o600, 0o640] {
        for name in ["model.json", "bare.json"] {
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(kept)).unwrap();
        }
        script(&format!("{fit} --out model.json"));
        script(&format!("{fit} --out bare.json --no-rows"));
        assert_eq!(["model.json", "bare.json"].map(|name| mode(&place, name)), [kept; 2]);
    }
}

#[test]
fn a_link_to_nothing_stays_a_link() {
    let place = place();
    fs::create_dir(place.path("there")).unwrap();
    symlink("there/model.json", place.path("link.json")).unwrap();
    place.run("fit --data rows.csv --k 2 --out link.json").success();
    assert!(place.path("link.json").is_symlink());
    place.run("show there/model.json").success();
}

#[test]
fn a_link_to_a_checkpoint_stays_when_the_checkpoint_goes() {
    let place = place();
    symlink("kept.json", place.path("link.json")).unwrap();
    place
        .run("fit --data rows.csv --k 1 --out model.json --checkpoint link.json --checkpoint-every 100")
        .success();
    assert!(place.path("link.json").is_symlink() && !place.path("kept.json").exists());
}

#[test]
fn two_outputs_that_a_link_makes_one_are_refused() {
    let place = place();
    symlink("same.csv", place.path("link.json")).unwrap();
    let line = "fit --data rows.csv --k 1 --out link.json --trace same.csv";
    place.refuses(line, 2, &["'same.csv' would replace a file that this command writes too"]);
    assert!(!place.path("same.csv").exists());
}

#[test]
fn scores_and_filled_rows_are_compressed_where_the_name_says_so() {
    let place = place();
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    place.run("predict --model model.json --data rows.csv --scores scores.csv").success();
    place.run("predict --model model.json --data rows.csv --scores scores.csv.gz").success();
    place.run("impute --model model.json --data rows.csv --out filled.csv.gz").success();
    let unpacked = |name: &str| {
        let mut text = String::new();
        let run = Command::new("gzip").args(["-dc", name]).current_dir(place.folder.path()).output().unwrap();
        run.stdout.as_slice().read_to_string(&mut text).unwrap();
        text
    };
    assert_eq!(unpacked("scores.csv.gz"), place.read("scores.csv"));
    assert_eq!(unpacked("filled.csv.gz").lines().count(), place.read("rows.csv").lines().count());
    place.refuses("fit --data rows.csv --k 2 --out m.json --trace t.csv.gz", 2, &["cannot be compressed"]);
}

#[test]
fn a_limit_of_the_file_size_is_told_with_the_user_s_file_and_leaves_nothing() {
    let place = place();
    place.run("fit --data rows.csv --k 2 --init-rows 100 --out model.json").success();
    let before = place.files();
    let binary = assert_cmd::cargo::cargo_bin!("gmm-bmm").display().to_string();
    for line in [
        "fit --data rows.csv --k 2 --init-rows 100 --out other.json",
        "predict --model model.json --data rows.csv --scores other.json",
        "synth --k 2 --d 2 --n 10000 --out other.json",
    ] {
        let run = Command::new("sh")
            .args(["-c", &format!("ulimit -f 1; exec {binary} {line}")])
            .current_dir(place.folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(1), "{line}: {said}");
        assert!(said.contains("cannot write 'other.json'") && !said.contains(".part"), "{line}: {said}");
        assert_eq!(place.files(), before, "{line}");
    }
}

#[test]
fn folds_stay_in_their_folder_whatever_the_file_is_called() {
    let place = place();
    for name in ["...csv", "..csv", ".csv"] {
        fs::copy(place.path("rows.csv"), place.path(name)).unwrap();
        place.run(&format!("compare --data {name} --k 1 --export-folds folds")).success();
        assert!(place.path("folds/data/fold-0/train.csv").exists(), "{name}");
        assert!(!place.path("fold-0").exists(), "{name}");
        fs::remove_dir_all(place.path("folds")).unwrap();
    }
    place.refuses("compare --data ...csv ..csv --k 1 --export-folds folds", 2, &["data"]);
}

#[test]
fn a_model_with_values_out_of_range_is_refused() {
    let place = place();
    place.run("fit --data rows.csv --k 2 --out model.json --no-rows").success();
    let model: serde_json::Value = serde_json::from_str(&place.read("model.json")).unwrap();
    let mut changed = 0;
    let mut numbers = Vec::new();
    let learned = "/state/candidates/0/learned";
    collect(model.pointer(learned).unwrap(), learned, &mut numbers);
    for pointer in
        numbers.iter().filter(|pointer| ["/m/", "/kappa"].iter().any(|part| pointer.contains(part)))
    {
        let mut other = model.clone();
        *other.pointer_mut(pointer).unwrap() = 1e308.into();
        other.as_object_mut().unwrap().remove("checksum");
        place.write("edited.json", &other.to_string());
        place.refuses("show edited.json", 1, &["edited.json", "1e308", "out of range"]);
        changed += 1;
    }
    assert!(changed > 0, "{numbers:?}");
}

/// The places of all fractions in a value.
fn collect(value: &serde_json::Value, at: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| collect(item, &format!("{at}/{i}"), found));
        }
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(name, item)| collect(item, &format!("{at}/{name}"), found));
        }
        serde_json::Value::Number(number) if number.is_f64() => found.push(at.to_string()),
        _ => {}
    }
}

#[test]
fn options_without_their_partner_are_refused() {
    let place = place();
    let fit = "fit --data rows.csv --k 2 --out m.json";
    place.refuses(&format!("{fit} --shard 1/2"), 2, &["--prior"]);
    place.refuses(&format!("{fit} --checkpoint-every 100"), 2, &["--checkpoint"]);
    place.refuses(&format!("{fit} --threads 65535"), 2, &["65535", "1..=1024"]);
}
