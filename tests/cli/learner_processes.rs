//! The processes and folders of learners that are commands: nothing of them outlives a comparison.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gmm_bmm::internals::experiment::{Record, read_records};

use crate::common::{as_csv, clusters};
use crate::workplace::Workplace;

/// Starts processes in the group of the command and in one of their own, and says their numbers.
const SPAWN: &str = "sleep 1000 & echo $! >>pids\nsetsid sh -c 'echo $$ >>pids; exec sleep 1000' &\n";

fn workplace(script: &str) -> Workplace {
    let workplace = Workplace::new();
    workplace.write("rows.csv", &as_csv(&clusters(40, 2, 5), &["a", "b"]));
    workplace.write("learn.sh", script);
    fs::create_dir(workplace.path("tmp")).unwrap();
    workplace
}

/// A comparison in a group of its own, as a shell in a terminal starts it.
fn comparison(workplace: &Workplace) -> Command {
    let mut command = Command::new(workplace.command("").get_program());
    command
        .args(
            "compare --no-pictures --data rows.csv --k 1 --folds 2 --algos start --out out --jobs 1"
                .split(' '),
        )
        .args(["--learner", "mine=sh learn.sh {train} {test} {scores}"])
        .current_dir(workplace.folder.path())
        .env("TMPDIR", workplace.path("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn signal(signal: &str, to: &str) {
    assert!(Command::new("kill").args([signal, "--", to]).status().unwrap().success());
}

/// Whether a process runs. One that has ended and is not waited for does not.
fn runs(pid: &str) -> bool {
    let state = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap().stdout;
    state.first().is_some_and(|state| *state != b'Z')
}

/// Whether the tests ignore SIGHUP, and so the command that they start, as below `nohup`.
fn ignores_hangups() -> bool {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0").trim();
    u64::from_str_radix(mask, 16).unwrap() & 1 == 1
}

fn pids(workplace: &Workplace) -> Vec<String> {
    let text = fs::read_to_string(workplace.path("pids")).unwrap_or_default();
    text.lines().map(String::from).collect()
}

fn folders(workplace: &Workplace) -> Vec<PathBuf> {
    fs::read_dir(workplace.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn recorded_cells(folder: &Path) -> usize {
    let records = read_records(folder).unwrap();
    records
        .iter()
        .filter(|record| matches!(record, Record::Cell(cell) if cell.contender.commands().is_some()))
        .count()
}

fn started(workplace: &Workplace) -> Child {
    let child = comparison(workplace).spawn().unwrap();
    wait_until("the command runs", || pids(workplace).len() == 3);
    child
}

#[test]
fn a_signal_to_the_group_ends_all_processes_and_the_cell_stays_missing() {
    for (name, code) in [("-INT", Some(130)), ("-TERM", Some(130)), ("-HUP", Some(130)), ("-KILL", None)] {
        if name == "-HUP" && ignores_hangups() {
            continue;
        }
        let workplace = workplace(&format!("{SPAWN}echo $$ >>pids\nwait\n"));
        let mut child = started(&workplace);
        let rows = folders(&workplace);
        assert_eq!(rows.len(), 1);
        assert_eq!(fs::metadata(&rows[0]).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(rows[0].join("train.csv").exists());
        signal(name, &format!("-{}", child.id()));
        assert_eq!(child.wait().unwrap().code(), code, "{name}");
        wait_until(&format!("{name} leaves processes"), || !pids(&workplace).iter().any(|pid| runs(pid)));
        wait_until(&format!("{name} leaves rows"), || folders(&workplace).is_empty());
        assert_eq!(recorded_cells(&workplace.path("out")), 0, "{name}");
        // The same command, which now works, runs what is missing.
        workplace.write("learn.sh", "awk 'NR > 1 { print -1 }' \"$2\" >\"$3\"\n");
        assert!(comparison(&workplace).status().unwrap().success());
        assert_eq!(recorded_cells(&workplace.path("out")), 2, "{name}");
    }
}

/// As `nohup` starts it: closing the terminal does not end it.
#[test]
fn a_comparison_that_ignores_hangups_goes_on() {
    let workplace = workplace(
        "echo $$ >>pids\nuntil [ -e go ]; do sleep 0.02; done\nawk 'NR > 1 { print -1 }' \"$2\" >\"$3\"\n",
    );
    let plain = comparison(&workplace);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(plain.get_program()).args(plain.get_args());
    command.current_dir(workplace.folder.path()).env("TMPDIR", workplace.path("tmp"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    wait_until("the command runs", || !pids(&workplace).is_empty());
    signal("-HUP", &format!("-{}", child.id()));
    std::thread::sleep(Duration::from_millis(100));
    workplace.write("go", "");
    assert!(child.wait().unwrap().success());
    assert_eq!(recorded_cells(&workplace.path("out")), 2);
}

/// As when a batch system ends a job: every process gets the signal, the command perhaps first.
#[test]
fn a_signal_to_every_process_is_no_failure_of_the_command() {
    let workplace = workplace(&format!("{SPAWN}echo $$ >>pids\nwait\n"));
    let mut child = started(&workplace);
    for pid in pids(&workplace) {
        // It may have ended with the one before.
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
    }
    let launchers =
        Command::new("ps").args(["-o", "pid=", "--ppid", &child.id().to_string()]).output().unwrap();
    for launcher in String::from_utf8(launchers.stdout).unwrap().split_whitespace() {
        // It may have ended meanwhile.
        let _ = Command::new("kill").args(["-TERM", launcher]).status();
    }
    signal("-TERM", &child.id().to_string());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(recorded_cells(&workplace.path("out")), 0);
    wait_until("processes are left", || !pids(&workplace).iter().any(|pid| runs(pid)));
}

#[test]
fn a_command_that_succeeds_leaves_no_processes() {
    let workplace = workplace(&format!("{SPAWN}awk 'NR > 1 {{ print -1 }}' \"$2\" >\"$3\"\n"));
    let output = comparison(&workplace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let all = pids(&workplace);
    assert!(all.len() >= 4 && !all.iter().any(|pid| runs(pid)), "{all:?}");
    assert_eq!(folders(&workplace), Vec::<PathBuf>::new());
}

/// Rows that a killed comparison could not remove, because no command ran then, are removed by the next one.
#[test]
fn the_next_comparison_removes_abandoned_rows() {
    let workplace = workplace("exit 1\n");
    let abandoned = workplace.path("tmp/gmm-bmm-learner-abc");
    let other = workplace.path("tmp/gmm-bmm-other");
    for folder in [&abandoned, &other] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("in-use"), "").unwrap();
        fs::write(folder.join("train.csv"), "a\n1\n").unwrap();
    }
    comparison(&workplace).output().unwrap();
    assert_eq!(folders(&workplace), [other]);
}

/// The most memory that a process has had, in kilobytes, where the system says it.
fn memory(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn much_text_on_standard_error_takes_no_memory_and_its_last_line_is_told() {
    let workplace = workplace(
        "head -c 100000000 /dev/zero | tr '\\0' 'x' >&2\necho >&2; echo 'the last words' >&2\nexit 3\n",
    );
    let mut command = comparison(&workplace);
    let mut child = command.spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(memory(child.id()));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(most < 80_000, "{most} kB");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let records = read_records(&workplace.path("out")).unwrap();
    let failure = records.iter().find_map(|record| match record {
        Record::Cell(cell) => cell.failure.as_ref().map(ToString::to_string),
        _ => None,
    });
    assert_eq!(failure.as_deref(), Some("learning ended with status 3: the last words"), "{said}");
}
