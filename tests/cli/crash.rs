//! The real binary, killed at random moments: no file is ever half there, and the same command called again gives the
//! bytes of a run that was never disturbed. `GMM_BMM_KILLS` says how often each command is killed (5 unless told).

use gmm_bmm::Model;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::common::*;
use crate::workplace::Workplace;

fn kills() -> u64 {
    std::env::var("GMM_BMM_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

fn start(folder: &Path, line: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
        .args(line.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs a command to its end; how long it took.
fn finish(folder: &Path, line: &str) -> Duration {
    let begun = Instant::now();
    let output = start(folder, line).wait_with_output().unwrap();
    assert!(output.status.success(), "'{line}': {}", String::from_utf8_lossy(&output.stderr));
    begun.elapsed()
}

/// Starts a command and kills it at a random moment of its usual time. Whether it was still running.
fn kill(folder: &Path, line: &str, usual: Duration, rng: &mut ChaCha8Rng) -> bool {
    let mut child = start(folder, line);
    std::thread::sleep(usual.mul_f64(rng.random_range(0.0..1.0)));
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Kills `line` again and again, until it was killed often enough and `enough` says so too. After each kill `sound` looks at
/// the folder; in the end the command has to finish, and leave no temporary file behind.
fn survives_kills(
    place: &Workplace,
    line: &str,
    usual: Duration,
    sound: impl Fn(),
    enough: impl Fn() -> bool,
) {
    let folder = place.folder.path();
    let mut rng = ChaCha8Rng::seed_from_u64(2016);
    let mut killed = 0;
    for attempt in 0.. {
        if killed >= kills() && enough() {
            break;
        }
        assert!(attempt < 20 * kills(), "'{line}' is over before it can be killed at the right moments");
        killed += u64::from(kill(folder, line, usual, &mut rng));
        sound();
    }
    finish(folder, line);
    let left: Vec<String> = place.files().into_iter().filter(|name| name.ends_with(".part")).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    eprintln!("{killed} kills of '{line}'");
}

/// That a file is not there, or is as it should be in the end.
fn absent_or(place: &Workplace, name: &str, expected: &[u8]) {
    if let Ok(found) = fs::read(place.path(name)) {
        assert!(found == expected, "{name} is half-written: {} of {} bytes", found.len(), expected.len());
    }
}

fn with_rows(rows: usize) -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(rows, 3, 1), &["a", "b", "c"]));
    place
}

/// Whether a checkpoint is one of those that are saved right before the start or a revision.
fn is_before_revision(checkpoint: &[u8]) -> bool {
    let model = Model::read(checkpoint).expect("a checkpoint is whole at any moment");
    let (pass, _) = model.resume_checkpoint().expect("a sound checkpoint");
    pass.revision_due().is_some()
}

/// What changes when a file is replaced.
fn version_of(path: &Path) -> Option<(u64, i64, i64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

/// Of ten kills of a fit, at least one is inside the start or a revision. The next checkpoint is saved when it has come to
/// its end, so a kill was inside if it leaves the checkpoint that was saved before it, and the killed run has saved it.
#[test]
fn a_fit_that_is_killed_goes_on_from_its_checkpoint() {
    let place = with_rows(40_000);
    let line = "fit --data rows.csv --k 2..3 --threads 1 --out model.json";
    let usual = finish(place.folder.path(), line);
    let expected = fs::read(place.path("model.json")).unwrap();
    fs::remove_file(place.path("model.json")).unwrap();
    let line = format!("{line} --checkpoint run.checkpoint --checkpoint-every 1000");
    let (inside, last) = (Cell::new(0), Cell::new(None));
    let sound = || {
        absent_or(&place, "model.json", &expected);
        let path = place.path("run.checkpoint");
        let before = last.replace(version_of(&path));
        if let Ok(text) = fs::read(&path) {
            let is_inside = is_before_revision(&text) && before != last.get();
            inside.set(inside.get() + u64::from(is_inside));
        }
    };
    survives_kills(&place, &line, usual, sound, || inside.get() >= kills().div_ceil(10));
    eprintln!("{} of them inside the start or a revision", inside.get());
    assert!(fs::read(place.path("model.json")).unwrap() == expected, "other bytes than without a kill");
    assert!(!place.path("run.checkpoint").exists());
}

/// The cells of a comparison without what the clock says.
fn cells(place: &Workplace, folder: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(place.path(folder).join("records.jsonl")).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let cell = |line: &str| {
        let mut record: Value = serde_json::from_str(line).expect("every whole line is a record");
        let fields = record.as_object_mut().unwrap();
        fields.retain(|name, _| !name.ends_with("_seconds"));
        (fields["kind"] != "run").then(|| record.to_string())
    };
    whole.lines().filter_map(cell).collect()
}

#[test]
fn a_comparison_that_is_killed_goes_on_from_its_records() {
    let place = with_rows(400);
    let line = "compare --data rows.csv --k 1..3 --folds 3 --algos start,oem,obmm,odmm --threads 2 --out";
    let usual = finish(place.folder.path(), &format!("{line} straight"));
    let expected = cells(&place, "straight");
    survives_kills(
        &place,
        &format!("{line} killed"),
        usual,
        || {
            assert!(cells(&place, "killed").is_subset(&expected), "a record that no undisturbed run has");
        },
        || true,
    );
    assert_eq!(cells(&place, "killed"), expected);
    for table in ["table.csv", "plots/loglik-rows.svg"] {
        let read = |folder: &str| fs::read(place.path(folder).join(table)).unwrap();
        assert_eq!(read("killed"), read("straight"), "{table}");
    }
    let left = fs::read_dir(place.path("killed")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}

#[test]
fn data_that_are_being_drawn_when_killed_are_drawn_whole_or_not_at_all() {
    let place = Workplace::new();
    let line = "synth --k 4 --d 8 --n 20000 --test-rows 2500 --out train.csv --test-out test.csv.gz --truth truth.json";
    let usual = finish(place.folder.path(), line);
    let names = ["train.csv", "test.csv.gz", "truth.json"];
    let expected = names.map(|name| fs::read(place.path(name)).unwrap());
    names.iter().for_each(|name| fs::remove_file(place.path(name)).unwrap());
    survives_kills(
        &place,
        line,
        usual,
        || {
            names.iter().zip(&expected).for_each(|(name, bytes)| absent_or(&place, name, bytes));
        },
        || true,
    );
    for (name, bytes) in names.iter().zip(&expected) {
        assert!(&fs::read(place.path(name)).unwrap() == bytes, "{name} has other bytes than without a kill");
    }
}

#[test]
fn a_merge_that_is_killed_leaves_the_old_model_or_the_new_one() {
    let place = Workplace::new();
    let folder = place.folder.path();
    // Wide and of many components, so that there is time to kill it.
    finish(folder, "synth --k 6 --d 30 --n 1000 --out rows.csv");
    finish(folder, "fit --data rows.csv --k 6 --init-rows 300 --limit 400 --out prior.json");
    finish(folder, "fit --data rows.csv --limit 100 --prior prior.json --out one.json");
    finish(folder, "fit --data rows.csv --limit 300 --prior prior.json --out two.json");
    let usual = finish(folder, "merge --prior prior.json one.json two.json --out model.json");
    let expected = fs::read(place.path("model.json")).unwrap();
    let old = fs::read(place.path("one.json")).unwrap();
    fs::write(place.path("model.json"), &old).unwrap();
    survives_kills(
        &place,
        "merge --prior prior.json one.json two.json --out model.json",
        usual,
        || {
            let found = fs::read(place.path("model.json")).unwrap();
            assert!(found == old || found == expected, "model.json is half-written");
            fs::write(place.path("model.json"), &old).unwrap();
        },
        || true,
    );
    assert!(fs::read(place.path("model.json")).unwrap() == expected, "other bytes than without a kill");
}
