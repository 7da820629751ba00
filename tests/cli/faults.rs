//! Full disks, places that cannot be written to, signals and closed pipes, met by the real binary.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::*;
use crate::workplace::Workplace;

fn with_rows(rows: usize) -> Workplace {
    let place = Workplace::new();
    place.write("rows.csv", &as_csv(&clusters(rows, 3, 1), &["a", "b", "c"]));
    place
}

fn binary(place: &Workplace, line: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"));
    command.args(line.split_whitespace()).current_dir(place.folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_place_that_cannot_be_written_to_is_told_before_any_work() {
    let place = with_rows(200);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    let (fit, missing) = ("fit --data rows.csv --k 2 --out", "no/such/folder");
    for (line, file) in [
        (format!("{fit} {missing}/m.json"), "m.json"),
        (format!("{fit} m.json --checkpoint {missing}/run.checkpoint"), "run.checkpoint"),
        (format!("{fit} m.json --checkpoint rows.csv/run.checkpoint"), "run.checkpoint"),
        (format!("{fit} m.json --checkpoint ."), "directory"),
        (format!("{fit} m.json --trace {missing}/curve.csv"), "curve.csv"),
        (format!("eval --model model.json --data rows.csv --scores {missing}/s.csv"), "s.csv"),
        (format!("synth --k 2 --d 2 --n 10 --out {missing}/t.csv"), "t.csv"),
        ("compare --data rows.csv --k 1 --folds 2 --out rows.csv/out".to_string(), "rows.csv/out"),
        ("fit --data rows.csv --k 2 --out /proc/model.json".to_string(), "/proc/model.json"),
    ] {
        place.refuses(&line, 1, &[file]);
    }
    place.refuses(&format!("{fit} m.json --checkpoint /dev/null"), 2, &["/dev/null", "has to be a file"]);
}

#[test]
fn no_output_replaces_what_the_command_reads() {
    let place = with_rows(200);
    let rows = place.read("rows.csv");
    fs::create_dir_all(place.path("sets")).unwrap();
    fs::create_dir_all(place.path("out")).unwrap();
    for name in ["part-1.csv", "part-2.svg", "sets/abalone.csv", "out/loglik.csv", "out/summary.md"] {
        place.write(name, &rows);
    }
    std::os::unix::fs::symlink("part-1.csv", place.path("link.csv")).unwrap();
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    place.run("fit --data rows.csv --prior model.json --out shard.json").success();
    let (fit, eval) = ("fit --data rows.csv --k 2", "eval --model model.json --datasets sets");
    for line in [
        format!("{eval} --data part-* --scores part-1.csv"),
        format!("{eval} --data ./part-?.csv --scores link.csv"),
        format!("{eval} --data part-* --scores ./sets/../part-1.csv"),
        format!("{eval} --data Abalone --scores sets/abalone.csv"),
        format!("{eval} --data rows.csv --scores model.json"),
        "show model.json --data part-* --plot part-2.svg".into(),
        "merge --prior model.json shard.json --out shard.json".into(),
        "merge --prior model.json shard.json --out ./model.json".into(),
        "fit --data part-* --k 2 --out part-1.csv".into(),
        "fit --data abalone --datasets sets --k 2 --out sets/abalone.csv".into(),
        format!("{fit} --datasets sets --trace t.csv --test abalone --out sets/abalone.csv"),
        format!("{fit} --trace t.csv --test part-1.csv --out link.csv"),
        "fit --data rows.csv --prior model.json --out model.json".into(),
        "fit --data rows.csv --resume model.json --trace model.json --out new.json".into(),
        "fit --data rows.csv --resume model.json --checkpoint model.json --out new.json".into(),
        "compare --data out/loglik.csv --k 1 --folds 2 --out out".into(),
        "compare --data rows.csv --test out/summary.md --k 1 --out sets/../out".into(),
        "synth --k 2 --d 2 --n 10 --out new.csv --truth ./new.csv".into(),
    ] {
        place.refuses(&line, 2, &["would replace a file that this command"]);
    }
    // A shell may have opened a file as standard input.
    if cfg!(target_os = "linux") {
        let mut command = binary(&place, "fit --data - --k 2 --out link.csv");
        let output = command.stdin(fs::File::open(place.path("part-1.csv")).unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    }
    for name in ["part-1.csv", "part-2.svg", "sets/abalone.csv", "out/loglik.csv", "out/summary.md"] {
        assert_eq!(place.read(name), rows, "{name}");
    }
    // A model may be replaced by what it becomes.
    place.run("fit --data rows.csv --resume model.json --out model.json").success();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_told_with_its_name() {
    let place = with_rows(1200);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    for line in [
        "fit --data rows.csv --k 2 --out /dev/full",
        "fit --data rows.csv --k 2 --out m.json --trace /dev/full --trace-every 1",
        "eval --model model.json --data rows.csv --scores /dev/full",
        "synth --k 2 --d 2 --n 1000 --out /dev/full",
        "merge --prior model.json model.json --out /dev/full",
    ] {
        if line.starts_with("merge") {
            place.run("fit --data rows.csv --prior model.json --out shard.json").success();
            place.refuses(
                &line.replace("model.json model.json", "model.json shard.json"),
                1,
                &["/dev/full", "space"],
            );
        } else {
            place.refuses(line, 1, &["cannot write '/dev/full'", "No space left"]);
        }
    }
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for line in ["show model.json", "fit --data rows.csv --k 2 --out -", "synth --k 2 --d 2 --n 1000 --out -"]
    {
        let output = binary(&place, line).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {}", said(&output));
        assert!(said(&output).contains("standard output"), "{line}: {}", said(&output));
    }
}

/// Runs a command where `disk` is a file system of 24 KiB. `None` where the system does not let us make one.
fn on_a_small_disk(place: &Workplace, line: &str) -> Option<Output> {
    let script = format!(
        "mount -t tmpfs -o size=24k none disk || exit 77; cp old.json disk/; {} {line} 2>&1; code=$?; \
         cmp old.json disk/old.json >&2 || exit 99; [ $(ls -A disk | wc -l) = 1 ] || exit 98; exit $code",
        assert_cmd::cargo::cargo_bin!("gmm-bmm").display()
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .current_dir(place.folder.path())
        .output()
        .ok()?;
    (output.status.code() != Some(77) && !said(&output).contains("unshare")).then_some(output)
}

#[test]
fn on_a_full_disk_the_old_file_stays_and_nothing_else() {
    let place = with_rows(4000);
    fs::create_dir(place.path("disk")).unwrap();
    place.run("fit --data rows.csv --k 2 --init-rows 50 --limit 60 --out old.json").success();
    for line in [
        // The model itself is larger than the disk.
        "fit --data rows.csv --k 60 --init-rows 200 --limit 300 --out disk/old.json",
        "fit --data rows.csv --k 60 --init-rows 200 --out m.json --checkpoint disk/c --checkpoint-every 300",
        "eval --model old.json --data rows.csv --scores disk/old.json",
        "synth --k 2 --d 5 --n 4000 --out disk/old.json",
    ] {
        let Some(output) = on_a_small_disk(&place, line) else {
            eprintln!("skipped: no small file system can be mounted here");
            return;
        };
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {told}");
        assert!(told.contains("cannot write 'disk/") && told.contains("No space left"), "{line}: {told}");
    }
}

fn interrupt(child: &Child) {
    signal(child, "-INT");
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn wait_until(what: &str, mut met: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !met() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ctrl_c_ends_a_fit_with_a_saved_checkpoint_wherever_it_is() {
    let place = with_rows(20_000);
    place.run("fit --data rows.csv --k 2 --out straight.json").success();
    let text = fs::read(place.path("rows.csv")).unwrap();
    // In the middle of the rows that the start waits for, and in the middle of the pass.
    // (Before the lines by which a table is judged there is nothing to save, and Ctrl-C simply ends the process.)
    for part in [text.len() / 20, text.len() / 2] {
        let line = "fit --data - --k 2 --out model.json --checkpoint run.checkpoint --checkpoint-every 500";
        let mut child = binary(&place, line).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&text[..part]).unwrap();
        stdin.flush().unwrap();
        if part > text.len() / 10 {
            wait_until("a checkpoint", || place.path("run.checkpoint").exists());
        } else {
            // Nothing shows that it has begun; on a busy machine that may take a while.
            std::thread::sleep(Duration::from_millis(1500));
        }
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(130), "{}", said(&output));
        assert!(!place.path("model.json").exists());
        // Only whole blocks are learned, so that of a few rows there may be none to save.
        if said(&output).contains("saved to 'run.checkpoint'") {
            place.run("show run.checkpoint").success();
        } else {
            assert!(said(&output).contains("nothing to save yet"), "{}", said(&output));
        }
        place.run(&line.replace("--data -", "--data rows.csv")).success();
        assert_eq!(place.read("model.json"), place.read("straight.json"));
        fs::remove_file(place.path("model.json")).unwrap();
    }
}

/// Runs `line` on the first bytes of `rows.csv`, signals it once `ready` holds, and gives what it said. Standard input stays
/// open until then, so that the run cannot finish.
fn interrupted(
    place: &Workplace,
    line: &str,
    signal_name: &str,
    bytes: usize,
    ready: impl Fn(&Child) -> bool,
) -> String {
    let text = fs::read(place.path("rows.csv")).unwrap();
    let mut child = binary(place, line).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A pipe holds 64 KiB, so if this is much more, most of it has been read when it returns.
    stdin.write_all(&text[..bytes]).unwrap();
    wait_until("the moment to interrupt", || ready(&child));
    signal(&child, signal_name);
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(!place.path("model.json").exists());
    said(&output)
}

/// Whether a process handles SIGINT by now. Where the system does not say, it is given time.
fn handles_interrupts(child: &Child) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{}/status", child.id())) else {
        std::thread::sleep(Duration::from_millis(1500));
        return true;
    };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 0b10 != 0
}

fn rows_in(place: &Workplace, model: &str) -> u64 {
    let text = fs::read(place.path(model)).unwrap_or_default();
    let model: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    model["state"]["rows"].as_u64().unwrap_or(0)
}

#[test]
fn an_interrupt_while_rows_are_read_again_leaves_the_checkpoint_as_it_is() {
    let place = with_rows(20_000);
    let whole = fs::metadata(place.path("rows.csv")).unwrap().len() as usize;
    place.run("fit --data rows.csv --k 2 --init-rows 1000 --limit 3000 --out begun.json").success();
    place.run("fit --data rows.csv --k 2..3 --out straight.json").success();
    place.run("fit --data rows.csv --resume begun.json --out resumed.json").success();
    for (from, straight) in [("--k 2..3", "straight.json"), ("--resume begun.json", "resumed.json")] {
        let options = "--out model.json --checkpoint run.checkpoint --checkpoint-every 1000";
        let line = format!("fit --data - {from} {options}");
        // Less than a block, so that no row is learned.
        let told = interrupted(&place, &line, "-INT", 40_000, handles_interrupts);
        assert!(told.contains("nothing to save yet") && !place.path("run.checkpoint").exists(), "{told}");
        let is_saved = |_: &Child| rows_in(&place, "run.checkpoint") >= 12_000;
        let told = interrupted(&place, &line, "-INT", 3 * whole / 4, is_saved);
        assert!(told.contains("saved to 'run.checkpoint'"), "{told}");
        let saved = place.read("run.checkpoint");
        for name in ["-INT", "-TERM"] {
            let told = interrupted(&place, &line, name, whole / 3, handles_interrupts);
            assert!(told.contains("'run.checkpoint' is unchanged"), "{told}");
            assert!(place.read("run.checkpoint") == saved, "the checkpoint was written again");
        }
        place.run(&line.replace("--data -", "--data rows.csv")).success();
        assert!(place.read("model.json") == place.read(straight), "{from}: other bytes than in one run");
        fs::remove_file(place.path("model.json")).unwrap();
    }
}

#[test]
fn ctrl_c_leaves_no_part_of_a_table_behind() {
    let place = with_rows(2000);
    place.run("fit --data rows.csv --k 2 --out old.json").success();
    let text = fs::read(place.path("rows.csv")).unwrap();
    let impute = ["impute --model old.json --data - --out table.csv", "-INT"];
    let predict = ["predict --model old.json --data - --scores table.csv", "-TERM"];
    for [line, name] in [impute, predict] {
        let mut child = binary(&place, line).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&text[..text.len() / 2]).unwrap();
        wait_until("the moment to interrupt", || handles_interrupts(&child));
        signal(&child, name);
        let mut told = Vec::new();
        let mut stderr = child.stderr.take().unwrap();
        wait_until("an answer", || {
            let mut bytes = [0; 64];
            let read = stderr.read(&mut bytes).unwrap();
            told.extend_from_slice(&bytes[..read]);
            String::from_utf8_lossy(&told).contains("stopping")
        });
        drop(stdin);
        stderr.read_to_end(&mut told).unwrap();
        let told = String::from_utf8_lossy(&told);
        assert_eq!(child.wait().unwrap().code(), Some(130), "{told}");
        assert!(told.contains("interrupted: 'table.csv' was not written"), "{told}");
        let left: Vec<_> =
            fs::read_dir(place.path(".")).unwrap().map(|file| file.unwrap().file_name()).collect();
        let is_known = |file: &std::ffi::OsString| file == "rows.csv" || file == "old.json";
        assert!(left.iter().all(is_known), "{line}: {left:?}");
    }
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let place = with_rows(60_000);
    // A start of many rows and components takes long.
    let line = "fit --data rows.csv --k 400 --init-rows 60000 --threads 1 --out model.json";
    let mut child = binary(&place, line).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(700));
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(200));
    assert!(child.try_wait().unwrap().is_none(), "the start is not over yet");
    let begun = Instant::now();
    interrupt(&child);
    let status = child.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert_eq!((status.code(), status.signal()), (Some(130), None));
    assert!(!place.path("model.json").exists());
}

#[test]
fn a_closed_pipe_is_a_quiet_end_and_a_closed_named_pipe_is_not() {
    let place = with_rows(2000);
    place.run("fit --data rows.csv --k 2 --out model.json").success();
    for line in
        ["show model.json", "synth --k 2 --d 4 --n 200000 --out -", "fit --data rows.csv --k 9 --out -"]
    {
        let mut child = binary(&place, line).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        assert!(!said(&output).contains("error") && !said(&output).contains("panicked"), "{}", said(&output));
    }
    let made = Command::new("mkfifo").arg(place.path("pipe")).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no mkfifo");
        return;
    }
    let child = binary(&place, "synth --k 2 --d 4 --n 200000 --out pipe").spawn().unwrap();
    let mut first = [0; 10];
    fs::File::open(place.path("pipe")).unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("cannot write 'pipe'"), "{}", said(&output));
}

#[test]
fn columns_beyond_all_memory_are_refused_and_very_many_are_announced() {
    let place = Workplace::new();
    let row = |columns: usize| (0..columns).map(|i| (i % 7).to_string()).collect::<Vec<_>>().join(",") + "\n";
    place.write("million.csv", &row(1_000_000).repeat(2));
    place.refuses(
        "fit --data million.csv --k 2 --out m.json",
        2,
        &["1000000 columns", "GB of memory", "--columns"],
    );
    place.write("wide.csv", &row(3000).repeat(3));
    // The missing test rows end it right after the announcement.
    let assert = place.run("fit --data wide.csv --k 4 --out m.json --trace t.csv --test none.csv").code(1);
    let told = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(told.contains("3000 columns are many") && told.contains("--init-rows"), "{told}");
    // Too few rows are an error at once, not after an hour.
    place.refuses("fit --data wide.csv --k 4 --out m.json --quiet", 1, &["3 rows"]);
}

#[test]
fn more_shards_than_a_model_can_hold_are_refused() {
    let place = with_rows(500);
    let wide: String = (0..40).map(|i| format!("{i}")).collect::<Vec<_>>().join(",") + "\n";
    place.write("wide.csv", &wide.repeat(3));
    for (command, out) in
        [("fit --k 3 --algo odmm", "m.json"), ("compare --k 3 --algos odmm --folds 2", "out")]
    {
        let with = |data: &str, shards: u32| format!("{command} --data {data} --out {out} --shards {shards}");
        place.refuses(&with("rows.csv", 60_000), 2, &["60000", "1..=10000"]);
        place.refuses(&with("rows.csv", 0), 2, &["--shards"]);
    }
    // One row of the file is a header.
    let line = "fit --k 10 --algo odmm --data wide.csv --out m.json --shards 9999";
    place.refuses(
        line,
        2,
        &["9999 shards of 10 components over 40 columns", "GB", "fewer shards (--shards)"],
    );
    assert!(!place.path("m.json").exists() && !place.path("out").exists());
}
