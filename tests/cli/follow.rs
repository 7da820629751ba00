//! `gmm-bmm predict` of rows as they arrive.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::common::{as_csv, clusters};
use crate::predict::with_model;
use crate::workplace::Workplace;

/// A running `predict` whose lines are read on another thread.
struct Live {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    said: Receiver<String>,
}

impl Live {
    fn start(place: &Workplace, line: &str) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("gmm-bmm"))
            .args(line.split_whitespace())
            .current_dir(place.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        fn reader(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
            let (to, lines) = channel();
            std::thread::spawn(move || {
                BufReader::new(from).lines().map_while(Result::ok).for_each(|line| {
                    let _ = to.send(line);
                });
            });
            lines
        }
        let lines = reader(child.stdout.take().unwrap());
        let said = reader(child.stderr.take().unwrap());
        Live { stdin: child.stdin.take(), child, lines, said }
    }

    fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    /// The next line, which has to come without more input.
    #[track_caller]
    fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    #[track_caller]
    fn said(&self) -> String {
        self.said.recv_timeout(Duration::from_secs(60)).unwrap()
    }

    fn says_nothing_more(&self) -> bool {
        self.lines.recv_timeout(Duration::from_millis(300)).is_err()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FOLLOW: &str = "predict --model model.json --data - --scores - --follow";

#[test]
fn a_score_is_written_as_soon_as_its_line_has_arrived() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    let mut live = Live::start(&place, &format!("{FOLLOW} --keep id"));
    live.write("id,y,x\n");
    live.write("a,1.5,");
    assert!(live.lines.try_recv().is_err(), "a header and half a line are not a row");
    live.write("2.5\n");
    assert!(live.next().starts_with("row,log_likelihood,"));
    let first = live.next();
    assert!(first.starts_with("1,-") && first.ends_with(",a"), "{first}");
    for i in 2..6 {
        std::thread::sleep(Duration::from_millis(20));
        live.write(&format!("b{i},1.5,2.5\r\n"));
        let line = live.next();
        assert!(line.starts_with(&format!("{i},-")) && line.ends_with(&format!(",b{i}")), "{line}");
        assert_eq!(line.split(',').nth(1), first.split(',').nth(1));
    }
    // Rows with errors do not end the run, and an open quote is one of them.
    live.write("c,word,1\nd,1\n\"e,1,2\nf,1e200,2\ng,1,2\n");
    let reasons: Vec<String> = (0..4).map(|_| live.next().split(',').nth(7).unwrap().to_string()).collect();
    assert_eq!(
        reasons,
        [
            "'word' in column 'y' is not a number",
            "the row has 2 fields instead of 3",
            "the row has 1 field instead of 3",
            "'1e200' in column 'y' is not a finite number up to 1e150"
        ]
    );
    assert!(live.next().starts_with("10,-"));
    assert!(live.says_nothing_more());
    live.stdin = None;
    assert!(live.child.wait().unwrap().success());
}

#[test]
fn the_first_line_is_a_header_or_a_row_for_any_model() {
    let rows = clusters(2000, 2, 1);
    let place = with_model(&rows, "--k 2");
    place.write("bare.csv", &as_csv(&rows, &[]));
    place.run("fit --data bare.csv --k 2 --out bare.json --quiet").success();
    for (model, text, expected) in [
        ("model", "x,y\n1,2\n", true),
        ("model", "1,2\n", true),
        ("model", "extra,y,x\nword,1,2\n", true),
        ("model", "x;y\n1;2\n", true),
        ("bare", "1,2\n", true),
        ("bare", "u v\n1 2\n", true),
        ("model", "u,y\n1,2\n", false),
    ] {
        let mut live =
            Live::start(&place, &format!("predict --model {model}.json --data - --scores - --follow"));
        live.write(text);
        if expected {
            assert!(live.next().starts_with("row,"), "{text}");
            assert!(live.next().starts_with("1,-"), "{text}");
        } else {
            assert!(live.said().contains("no column 'x'"), "{text}");
        }
    }
}

#[test]
fn a_new_model_file_takes_effect_and_a_bad_one_does_not() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    let mut live = Live::start(&place, FOLLOW);
    live.write("x,y\n1,2\n");
    live.next();
    let score = |live: &Live| live.next().split(',').nth(1).unwrap().to_string();
    let first = score(&live);
    live.write("1,2\n");
    assert_eq!(score(&live), first);
    place.run("fit --data rows.csv --k 3 --seed 2 --out model.json --quiet").success();
    live.write("1,2\n");
    let second = score(&live);
    assert_ne!(second, first);
    let said = live.said();
    assert!(said.contains("'model.json' has changed") && said.contains("3 components"), "{said}");
    let intact = place.read("model.json");
    place.write("model.json", &intact[..intact.len() / 2]);
    live.write("1,2\n1,2\n");
    assert_eq!((score(&live), score(&live)), (second.clone(), second.clone()));
    let said = live.said();
    assert!(
        said.contains("cannot be used, so the model so far stays") && said.contains("cut short"),
        "{said}"
    );
    place.write("other.csv", &as_csv(&clusters(1000, 3, 1), &["x", "y", "z"]));
    place.run("fit --data other.csv --k 2 --out model.json --quiet").success();
    live.write("1,2\n");
    assert_eq!(score(&live), second);
    assert!(live.said().contains("other columns"));
    std::fs::remove_file(place.path("model.json")).unwrap();
    live.write("1,2\n");
    assert_eq!(score(&live), second);
    place.write("model.json", &intact);
    live.write("1,2\n");
    assert_eq!(score(&live), second);
    assert!(live.said().contains("3 components"));
}

#[test]
fn a_file_is_followed_until_the_run_is_stopped() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    place.write("log.csv", "");
    let live = Live::start(&place, "predict --model model.json --data log.csv --scores - --follow");
    let append = |text: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(place.path("log.csv")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("x,y\n1,2\n3,4\n");
    live.next();
    assert!(live.next().starts_with("1,") && live.next().starts_with("2,"));
    append("5,");
    assert!(live.says_nothing_more());
    append("6\n");
    assert!(live.next().starts_with("3,-"));
    // The file begins anew, as when a log is rotated by a copy.
    std::fs::write(place.path("log.csv"), "7,8\n").unwrap();
    assert!(live.next().starts_with("4,-"));
}

#[test]
fn a_rotated_file_is_followed_by_its_name_and_its_header_is_no_row() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    place.write("log.csv", "y,x\n2,1\n");
    let live = Live::start(&place, "predict --model model.json --data log.csv --scores - --follow");
    live.next();
    let first = live.next();
    let mut old = std::fs::OpenOptions::new().append(true).open(place.path("log.csv")).unwrap();
    std::fs::rename(place.path("log.csv"), place.path("log.csv.1")).unwrap();
    // The program that writes the log may still use the old file for a while, and end in the middle of a line.
    old.write_all(b"2,1").unwrap();
    place.write("new.csv", "y,x\n2,1\n2,");
    std::fs::rename(place.path("new.csv"), place.path("log.csv")).unwrap();
    let score = |line: String| line.split_once(',').unwrap().1.to_string();
    let scored = score(first);
    assert_eq!(live.next(), format!("2,{scored}"));
    assert_eq!(live.next(), format!("3,{scored}"));
    let mut new = std::fs::OpenOptions::new().append(true).open(place.path("log.csv")).unwrap();
    new.write_all(b"1\n").unwrap();
    assert_eq!(live.next(), format!("4,{scored}"));
    // The next file has other rows and no header.
    std::fs::remove_file(place.path("log.csv")).unwrap();
    place.write("log.csv", "2,1\n");
    assert_eq!(live.next(), format!("5,{scored}"));
}

#[test]
fn without_follow_a_pipe_is_scored_before_it_ends() {
    let place = with_model(&clusters(2000, 2, 1), "--k 2");
    let mut live = Live::start(&place, "predict --model model.json --data - --scores -");
    live.write(&format!("x,y\n{}", "1,2\n".repeat(3000)));
    (0..3001).for_each(|_| drop(live.next()));
    live.write("1,2\n");
    assert!(live.next().starts_with("3001,-"));
    live.stdin = None;
    assert!(live.child.wait().unwrap().success());
}

#[test]
fn follow_needs_one_input_and_standard_output() {
    let place = with_model(&clusters(1000, 2, 1), "--k 2");
    let line = "predict --model model.json --follow --data rows.csv";
    place.refuses(line, 2, &["--scores"]);
    place.refuses(&format!("{line} --scores s.csv"), 2, &["use --scores -"]);
    place.refuses(&format!("{line} --data rows.csv --scores -"), 2, &["name one"]);
    place.refuses("predict --model model.json --follow --data none.csv --scores -", 1, &["none.csv"]);
}
