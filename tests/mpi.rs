//! `mpirun gmm-bmm fit --algo odmm`: ranks against one process, and what happens when one of them fails or is killed.
//! Needs the feature `mpi` and Open MPI: `scripts/with_openmpi.sh cargo test --features mpi --test mpi`.

mod common;
#[path = "common/workplace.rs"]
mod workplace;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::*;
use ndarray::Axis;
use serde_json::Value;
use workplace::Workplace;

/// A job that hangs must fail its test, not stop it.
const PATIENCE: Duration = Duration::from_secs(120);

fn mpirun(place: &Workplace, ranks: usize, line: &str) -> Child {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--bind-to", "none", "-n", &ranks.to_string()]);
    command.arg(assert_cmd::cargo::cargo_bin!("gmm-bmm")).args(line.split_whitespace());
    // Open MPI wants this said by a superuser, as one is in most containers.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.current_dir(place.folder.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mpirun is there")
}

fn wait(job: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = job.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = job.kill();
            panic!("the job hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Exit code, standard output and standard error of a job. What it says fits a pipe.
fn outcome(place: &Workplace, ranks: usize, line: &str) -> (Option<i32>, String, String) {
    let mut job = mpirun(place, ranks, line);
    let status = wait(&mut job);
    let (mut out, mut said) = (String::new(), String::new());
    job.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    job.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (status.code(), out, said)
}

#[track_caller]
fn succeeds(place: &Workplace, ranks: usize, line: &str) -> String {
    let (code, out, said) = outcome(place, ranks, line);
    assert_eq!(code, Some(0), "{said}");
    out
}

fn with_rows() -> Workplace {
    let place = Workplace::new();
    let rows = clusters(5_000, 3, 1);
    place.write("rows.csv", &as_csv(&rows, &["a", "b", "c"]));
    for (i, part) in rows.axis_chunks_iter(Axis(0), 1000).enumerate() {
        place.write(&format!("part-{i}.csv"), &as_csv(&part.to_owned(), &["a", "b", "c"]));
    }
    place
}

#[test]
fn ranks_write_the_bytes_of_as_many_shards_in_one_process() {
    let place = with_rows();
    for ranks in [1, 3] {
        for (data, what) in [("rows.csv", "ranges"), ("part-*.csv", "files")] {
            let line =
                format!("fit --algo odmm --init-rows 500 --keep-rows 300 --data {data} --k 2..3 --seed 5");
            succeeds(&place, ranks, &format!("{line} --out ranks.json"));
            place.run(&format!("{line} --deal parts --shards {ranks} --out process.json")).success();
            assert_eq!(place.read("ranks.json"), place.read("process.json"), "{ranks} ranks, {what}");
            succeeds(&place, ranks, &format!("{line} --out again.json"));
            assert_eq!(place.read("ranks.json"), place.read("again.json"), "{ranks} ranks, {what}, again");
        }
    }
    let model: Value = serde_json::from_str(&place.read("ranks.json")).unwrap();
    assert_eq!(model["state"]["rows"], 5_000);
}

#[test]
fn ranks_come_close_to_one_reader_and_with_one_component_equal_it() {
    let place = with_rows();
    let level = |model: &str| {
        number(&place.json(&format!("eval --model {model} --data rows.csv"))["mean_log_likelihood"])
    };
    for (k, tolerance) in [(1, 1e-9), (3, 0.01)] {
        place
            .run(&format!("fit --data rows.csv --init-rows 500 --keep-rows 300 --k {k} --out whole.json"))
            .success();
        for ranks in [2, 3] {
            succeeds(
                &place,
                ranks,
                &format!(
                    "fit --algo odmm --init-rows 500 --keep-rows 300 --data rows.csv --k {k} --out ranks.json"
                ),
            );
            assert_close(
                level("ranks.json"),
                level("whole.json"),
                tolerance,
                &format!("K {k}, {ranks} ranks"),
            );
        }
    }
}

#[test]
fn rank_0_tells_how_far_it_is_and_the_result_is_told_once() {
    let place = with_rows();
    let line =
        "fit --algo odmm --init-rows 500 --keep-rows 300 --data part-*.csv --k 3 --out model.json --json";
    let (code, out, said) = outcome(&place, 4, line);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("warm-up learned").count(), 1, "{said}");
    assert_eq!(said.matches("all 4 ranks have learned").count(), 1, "{said}");
    let result: Value = serde_json::from_str(&out).expect("one result, as JSON");
    assert_eq!(result["rows"], 5_000);
    assert_eq!(result["parts"]["rows"], serde_json::json!([2000, 1000, 1000, 1000]));
    place.run("show model.json").success();
    place.run("fit --data part-0.csv --resume model.json --out on.json").success();
}

/// That a job fails with this code, says all of `words`, and leaves no file.
#[track_caller]
fn fails(place: &Workplace, ranks: usize, line: &str, code: i32, words: &[&str]) -> String {
    let before = place.files();
    let begun = Instant::now();
    let (found, _, said) = outcome(place, ranks, line);
    assert_eq!(found, Some(code), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "without '{word}': {said}"));
    assert_eq!(before, place.files(), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(60));
    said
}

#[test]
fn a_rank_that_fails_ends_the_job_with_its_own_error() {
    let place = with_rows();
    let bad = place.read("part-2.csv") + "1,tall,3\n";
    place.write("part-2.csv", &bad);
    let line = "fit --algo odmm --init-rows 500 --keep-rows 300 --data part-*.csv --k 3 --out model.json";
    fails(&place, 4, line, 1, &["error: rank 2: 'part-2.csv'", "'tall'", "row 1001"]);
    fails(
        &place,
        5,
        "fit --algo odmm --init-rows 500 --keep-rows 300 --data rows.csv --k 3 --out no/such/model.json",
        1,
        &["no/such"],
    );
}

#[test]
fn wrong_usage_is_told_once() {
    let place = with_rows();
    let fit = "fit --algo odmm --init-rows 500 --keep-rows 300 --data rows.csv --k 3 --out model.json";
    for (line, words) in [
        (format!("{fit} --shards 3"), "every rank is a shard"),
        (format!("{fit} --deal rows"), "--deal rows"),
        (format!("{fit} --limit 100"), "--limit"),
        (format!("{fit} --checkpoint run.checkpoint"), "checkpoints"),
        (format!("{fit} --no-such-option"), "--no-such-option"),
        ("fit --data rows.csv --k 3 --out model.json".to_string(), "--algo odmm"),
    ] {
        let said = fails(&place, 2, &line, 2, &[words]);
        // mpirun may write between the words of a rank.
        assert_eq!(said.matches("error:").count(), 1, "{said}");
    }
    fails(
        &place,
        2,
        "fit --algo odmm --init-rows 500 --keep-rows 300 --data - --k 3 --out model.json",
        1,
        &["standard input"],
    );
    fails(
        &place,
        2,
        "fit --algo odmm --init-rows 500 --keep-rows 300 --data none-*.csv --k 3 --out model.json",
        1,
        &["none-*.csv"],
    );
}

#[test]
fn processes_that_say_which_shard_they_learn_are_left_alone() {
    let place = with_rows();
    place.run("fit --data part-0.csv --k 3 --out prior.json").success();
    succeeds(&place, 1, "fit --data part-1.csv --prior prior.json --shard 1/2 --out p1.json");
    let line = "fit --data part-1.csv --prior prior.json --out p2.json";
    fails(&place, 2, line, 2, &["write the same file", "--shard"]);
}

/// The process of one rank.
fn process_of(job: &Child, rank: usize) -> u32 {
    let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
    let is_wanted = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        status.contains(&format!("PPid:\t{}\n", job.id()))
            && environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let mut processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    processes.find(|&pid| is_wanted(pid)).expect("the rank runs")
}

#[test]
fn killing_one_rank_of_four_ends_the_job_in_seconds_and_leaves_nothing() {
    let place = with_rows();
    for victim in [2, 0] {
        let before = place.files();
        // The same file many times over, so that the job is still at it.
        let data = " --data rows.csv".repeat(400);
        let mut job = mpirun(
            &place,
            4,
            &format!("fit --algo odmm --init-rows 500 --keep-rows 300 --k 2..6 --out model.json{data}"),
        );
        let mut said = BufReader::new(job.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("warm-up learned") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "the job ended before it began");
        }
        std::thread::sleep(Duration::from_millis(300));
        let killed =
            Command::new("kill").args(["-9", &process_of(&job, victim).to_string()]).status().unwrap();
        assert!(killed.success());
        let begun = Instant::now();
        let status = wait(&mut job);
        let took = begun.elapsed();
        assert!(!status.success(), "rank {victim} was killed");
        assert!(took < Duration::from_secs(15), "rank {victim} was killed, and the job ended after {took:?}");
        assert_eq!(before, place.files());
    }
}
