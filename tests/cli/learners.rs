//! `gmm-bmm compare` with learners that are commands.
#![cfg(unix)]

use std::process::Stdio;
use std::time::{Duration, Instant};

use gmm_bmm::internals::experiment::{CellRecord, Contender, Failure, Record, read_records};
use serde_json::Value;

use crate::common::{as_csv, clusters};
use crate::workplace::Workplace;

/// One Gaussian without correlations, whose standard deviations are K times those of the rows: the best K is 1.
pub const LEARN: &str = r#"NR > 1 { n++; for (j = 1; j <= NF; j++) { s[j] += $j; q[j] += $j * $j } }
END { for (j = 1; j <= NF; j++) { m = s[j] / n; print m, k * sqrt(q[j] / n - m * m) } }"#;
pub const SCORE: &str = r#"NR == FNR { m[NR] = $1; d[NR] = $2; next }
FNR > 1 { split($0, x, ","); l = add; for (j = 1; j in x; j++) { z = (x[j] - m[j]) / d[j]; l -= log(d[j]) + z * z / 2 + 0.918938533204673 } print l }"#;
const LEARNER: &str = "mine=sh -c 'awk -F, -v k=$1 -f learn.awk \"$2\" >\"$3\"' sh {k} {train} {model}";
const SCORER: &str = "sh -c 'awk -v add=0 -f score.awk \"$1\" \"$2\" >\"$3\"' sh {model} {test} {scores}";

fn workplace() -> Workplace {
    let workplace = Workplace::new();
    workplace.write("rows.csv", &as_csv(&clusters(300, 3, 5), &["a", "b", "c"]));
    workplace.write("learn.awk", LEARN);
    workplace.write("score.awk", SCORE);
    workplace
}

const QUICK: &str = "compare --data rows.csv --k 1..2 --folds 3 --algos start,obmm --out out";

/// The JSON of a comparison with more words than those that can be split at spaces.
fn compared(workplace: &Workplace, line: &str, words: &[&str]) -> Value {
    let assert = workplace.command(line).args(words).arg("--json").assert().success();
    serde_json::from_slice(&assert.get_output().stdout).unwrap()
}

fn cells(workplace: &Workplace, name: &str) -> Vec<CellRecord> {
    let of = |record: Record| match record {
        Record::Cell(cell) if cell.contender.name() == name => Some(*cell),
        _ => None,
    };
    read_records(&workplace.path("out")).unwrap().into_iter().filter_map(of).collect()
}

#[test]
fn a_command_takes_part_like_any_learner() {
    let workplace = workplace();
    let words = ["--learner", LEARNER, "--scorer", SCORER];
    let result = compared(&workplace, QUICK, &words);
    assert_eq!(result["cells_run"], 3 * 2 * 3);
    let own = cells(&workplace, "mine");
    assert_eq!(own.len(), 6);
    for cell in &own {
        assert_eq!((cell.test.len(), cell.train_rows, cell.failure.as_ref()), (100, 200, None));
        assert!(cell.validation.is_some() && cell.prequential.is_none() && cell.learn_seconds > 0.0);
        let measured = cell.measured.unwrap();
        assert!(measured.cpu_seconds.is_some() && measured.score_seconds.is_some());
        let memory = measured.peak_memory.unwrap();
        assert!((500_000..60_000_000).contains(&memory), "{memory} bytes");
        let (integral, _) = measured.integral.unwrap();
        assert!((integral - 1.0).abs() < 0.1, "{integral}");
    }
    let entry = &result["sets"][0]["entries"][2];
    assert_eq!(entry["contender"]["name"], "mine");
    assert_eq!(entry["chosen"]["0"], 1, "twice the standard deviation is worse");
    assert!(entry["p_value"].as_f64().is_some());
    let page = workplace.read("out/summary.md");
    assert!(page.contains("| mine |") && page.contains("sh -c 'awk"), "{page}");
    assert!(workplace.read("out/loglik.csv").contains("mine"));
    assert!(workplace.read("out/plots/loglik-rows.svg").contains("mine"));
    // Everything can be made again from the records, and nothing is run again.
    let before = workplace.read("out/report.html");
    assert_eq!(compared(&workplace, QUICK, &words)["cells_run"], 0);
    assert_eq!(workplace.read("out/report.html"), before);
    workplace.run("compare --from-records out --reference mine --out again").success();
    assert!(workplace.read("again/summary.md").contains("significantly better / worse than mine"));
}

#[test]
fn one_command_can_learn_and_score() {
    let workplace = workplace();
    let both = "mine=sh -c 'awk -F, -v k=1 -f learn.awk \"$1\" >m && awk -v add=0 -f score.awk m \"$2\" >\"$3\"; \
                echo 7 >\"$4\"' sh {train} {test} {scores} {chosen_k}";
    let line = "compare --no-pictures --data rows.csv --k 1..2 --folds 2 --algos start --out out --jobs 1";
    let result = compared(&workplace, line, &["--learner", both]);
    assert_eq!(result["cells_run"], 2 * 2 + 2, "it chooses K itself");
    for cell in cells(&workplace, "mine") {
        assert_eq!((cell.k, cell.test.len(), cell.failure), (7, 150, None));
        assert!(cell.measured.unwrap().integral.is_some());
    }
    assert_eq!(compared(&workplace, line, &["--learner", both])["cells_run"], 0);
}

#[test]
fn a_chosen_k_that_is_no_number_is_a_failure() {
    let workplace = workplace();
    let learner = "mine=sh -c 'sed s/.*/-9/ \"$2\" | tail -n +2 >\"$3\"; echo many >\"$4\"' sh {train} {test} {scores} {chosen_k}";
    compared(&workplace, &QUICK.replace("start,obmm", "start"), &["--learner", learner]);
    let failure = cells(&workplace, "mine")[0].failure.clone().unwrap();
    assert!(failure.to_string().contains("'many', which is not a whole number"), "{failure}");
}

#[test]
fn failures_and_time_outs_are_rows_that_say_so() {
    let workplace = workplace();
    workplace.write(
        "learners.toml",
        r#"protocol = 1
[[learner]]
name = "crashes"
command = "sh -c 'echo first >&2; echo out of luck >&2; exit 3' sh {train} {test} {scores} {k}"
[[learner]]
name = "sleeps"
command = ["sh", "-c", "sleep 60 & sleep 61", "sh", "{train}", "{test}", "{scores}", "{k}"]
[[learner]]
name = "unnormalised"
command = "sh -c 'awk -F, -v k=$1 -f {here}/learn.awk \"$2\" >\"$3\"' sh {k} {train} {model}"
scorer = "sh -c 'awk -v add=3 -f {here}/score.awk \"$1\" \"$2\" >\"$3\"' sh {model} {test} {scores}"
batch = true
[[learner]]
name = "says nan"
command = "sh -c 'sed s/.*/nan/ \"$2\" | tail -n +2 >\"$3\"' sh {train} {test} {scores} {k}"
[[learner]]
name = "forgets a row"
command = "sh -c 'sed s/.*/-1/ \"$2\" | tail -n +3 >\"$3\"' sh {train} {test} {scores} {k}"
[[learner]]
name = "writes nothing"
command = "true {train} {test} {scores} {k}"
"#,
    );
    let begun = Instant::now();
    let line = "compare --no-pictures --data rows.csv --k 1 --folds 2 --algos obmm --learners learners.toml --time-limit 0.5 --out out";
    let result = compared(&workplace, line, &[]);
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert_eq!(result["cells_run"], 2 * 7);
    let failure = |name: &str| cells(&workplace, name)[0].failure.clone().unwrap();
    assert!(matches!(failure("sleeps"), Failure::TimedOut { seconds: 0.5, .. }));
    assert!(matches!(failure("writes nothing"), Failure::NoScores { .. }));
    assert!(matches!(failure("forgets a row"), Failure::Count { .. }));
    let page = workplace.read("out/summary.md");
    for said in [
        "| timed out |",
        "| not a density |",
        "| failed |",
        "crashes has no scores in 2 cells; the first (K = 1, fold 0): learning ended with status 3: out of luck.",
        "line 1 of the scores is 'nan'",
        "the density integrates to",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    assert_eq!(compared(&workplace, line, &[])["cells_run"], 0);
    let again = compared(&workplace, line, &["--retry-failed"]);
    assert_eq!(again["cells_run"], 2 * 6);
}

#[test]
fn failed_cells_are_counted_until_they_are_run_again() {
    let workplace = workplace();
    let learner = "mine=sh -c 'test -e ready || { echo not ready >&2; exit 1; }; \
                   sh learn.sh $@' sh {k} {train} {model}";
    workplace.write("learn.sh", "awk -F, -v k=$1 -f learn.awk \"$2\" >\"$3\"\n");
    let told = |more: &[&str]| {
        let words = ["--learner", learner, "--scorer", SCORER];
        let run = workplace
            .command(&QUICK.replace("start,obmm", "start"))
            .args(words)
            .args(more)
            .assert()
            .success();
        String::from_utf8_lossy(&run.get_output().stderr).into_owned()
    };
    let first = told(&[]);
    assert!(
        first.contains("all 6 cells of 'mine' failed; the first: learning ended with status 1: not ready"),
        "{first}"
    );
    workplace.write("ready", "");
    let second = told(&[]);
    assert!(second.contains("has 12 cells already, of which 6 failed; 0 are missing"), "{second}");
    assert!(second.contains("6 cells failed") && second.contains("--retry-failed"), "{second}");
    let third = told(&["--retry-failed"]);
    assert!(third.contains("6 are missing or run again") && !third.contains("warning"), "{third}");
}

#[test]
fn another_command_makes_other_cells() {
    let workplace = workplace();
    let run = |learner: &str| {
        let words = ["--learner", learner, "--scorer", SCORER];
        compared(&workplace, QUICK, &words)["cells_run"].as_u64()
    };
    let other = LEARNER.replace("k=$1", "k=3");
    let mean = || {
        let table = workplace.read("out/table.csv");
        let line = table.lines().find(|line| line.starts_with("rows,mine,")).unwrap().to_string();
        line.split(',').nth(7).unwrap().parse::<f64>().unwrap()
    };
    assert_eq!(run(LEARNER), Some(18));
    let first = mean();
    assert_eq!(run(&other), Some(6));
    let second = mean();
    assert!(second < first - 0.5, "{second} after {first}: the table shows the command of the last run");
    assert_eq!((run(LEARNER), mean()), (Some(0), first), "the cells of the first command are still there");
    let named: Vec<Contender> = cells(&workplace, "mine").iter().map(|cell| cell.contender.clone()).collect();
    assert_eq!((named.len(), named.iter().collect::<std::collections::HashSet<_>>().len()), (12, 2));
}

#[test]
fn an_interrupt_ends_a_command_that_runs() {
    let workplace = workplace();
    let slow = "slow=sh -c 'touch begun; sleep 67' sh {train} {test} {scores}";
    let program = workplace.command("").get_program().to_owned();
    let mut child = std::process::Command::new(program)
        .args(
            "compare --no-pictures --data rows.csv --k 1 --folds 2 --algos start --out out --jobs 1"
                .split(' '),
        )
        .args(["--learner", slow])
        .current_dir(workplace.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !workplace.path("begun").exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(cells(&workplace, "slow").is_empty(), "an interrupted cell is not recorded");
}

#[test]
fn exported_folds_recompute_a_cell() {
    let workplace = workplace();
    let line = "compare --no-pictures --data rows.csv --k 2 --folds 3 --seeds 2 --algos obmm_revised";
    workplace.run(&format!("{line} --export-folds folds")).success();
    workplace.run(&format!("{line} --out out")).success();
    workplace.refuses(&format!("{line} --export-folds folds"), 2, &["has folds already"]);
    let folds: Value = serde_json::from_str(&workplace.read("folds/folds.json")).unwrap();
    assert_eq!(folds["folds"].as_array().unwrap().len(), 6);
    for place in [0, 4] {
        let fold = &folds["folds"][place];
        let (folder, seed) = (fold["folder"].as_str().unwrap(), fold["learner_seeds"]["2"].as_u64().unwrap());
        assert_eq!(
            (fold["seed"].as_u64(), fold["fitting_rows"].as_u64()),
            (Some(1 + place as u64 / 3), Some(180))
        );
        workplace
            .run(&format!("fit --data folds/{folder}/train.csv --k 2 --seed {seed} --out m.json"))
            .success();
        let scored = workplace.json(&format!("eval --model m.json --data folds/{folder}/test.csv"));
        let cell = &cells(&workplace, "oBMM revised")[..];
        let cell = cell.iter().find(|cell| cell.fold == place).unwrap();
        let mean = cell.test.iter().map(|&score| f64::from(score)).sum::<f64>() / 100.0;
        assert!((scored["mean_log_likelihood"].as_f64().unwrap() - mean).abs() < 1e-6, "fold {place}");
    }
}

#[test]
fn exported_seeds_are_those_that_commands_get() {
    let workplace = workplace();
    let keeps = "sh -c 'mkdir -p seeds; touch seeds/$1-$2; exit 1' sh";
    let learner = |name: &str, k: &str| format!("{name}={keeps} {k} {{seed}} {{train}} {{test}} {{scores}}");
    let words = ["--learner", &learner("given", "{k}"), "--learner", &learner("chosen", "auto")];
    let line = "compare --no-pictures --data rows.csv --k 1..2 --folds 2 --algos start";
    workplace.command(&format!("{line} --out out")).args(words).assert().success();
    workplace.run(&format!("{line} --export-folds folds")).success();
    let folds: Value = serde_json::from_str(&workplace.read("folds/folds.json")).unwrap();
    let mut exported = Vec::new();
    for fold in folds["folds"].as_array().unwrap() {
        let seeds = fold["command_seeds"].as_object().unwrap();
        exported.extend(seeds.iter().map(|(k, seed)| format!("{k}-{seed}")));
    }
    let files = std::fs::read_dir(workplace.path("seeds")).unwrap();
    let mut got: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    exported.sort();
    got.sort();
    assert_eq!((got.len(), &got), (6, &exported));
}

#[test]
fn seeds_repeat_splits_and_starts() {
    let workplace = workplace();
    let line = "compare --no-pictures --data rows.csv --k 1..2 --folds 3 --algos start,obmm,em";
    workplace.run(&format!("{line} --seed 2 --out second")).success();
    assert_eq!(workplace.json(&format!("{line} --out out"))["cells_run"], 18);
    let result = workplace.json(&format!("{line} --seeds 3 --out out"));
    assert_eq!(result["cells_run"], 36, "the first seed is there");
    let other: Vec<Record> = read_records(&workplace.path("second")).unwrap();
    let cell = cells(&workplace, "oBMM").into_iter().find(|cell| (cell.fold, cell.k) == (4, 2)).unwrap();
    let same = other.iter().any(|record| match record {
        Record::Cell(one) => one.contender == cell.contender && one.fold == 1 && one.test == cell.test,
        _ => false,
    });
    assert!(same, "fold 1 of seed 2");
    let entry = &result["sets"][0]["entries"][1];
    assert_eq!((entry["score"]["seeds"].as_u64(), entry["score"]["folds"].as_u64()), (Some(3), Some(9)));
    assert!(entry["score"]["seed_error"].as_f64().unwrap() > 0.0);
    let page = workplace.read("out/summary.md");
    assert!(
        page.contains("over 3 seeds")
            && page.contains("±0.")
            && page.contains("3 folds with each of 3 seeds"),
        "{page}"
    );
    workplace.refuses(&format!("{line} --seed 3 --out out"), 1, &["seed differs: 1 in the records, 3 now"]);
}

#[test]
fn blind_starts_have_curves_from_the_first_row() {
    let workplace = workplace();
    let line = "compare --no-pictures --data rows.csv --k 2 --folds 3 --out out";
    assert_eq!(workplace.json(&format!("{line} --algos start,oem,obmm --start blind"))["cells_run"], 9);
    assert_eq!(workplace.json(&format!("{line} --algos start,obmm --start both"))["cells_run"], 3);
    for record in read_records(&workplace.path("out")).unwrap() {
        if let Record::Curve(curve) = record {
            let first = if curve.contender.is_blind() { 1 } else { 200 };
            assert_eq!((curve.points[0].0, curve.points.last().unwrap().0), (first, 200));
        }
    }
}

#[test]
fn mistakes_in_learners_are_explained() {
    let workplace = workplace();
    let refuses = |words: &[&str], code: i32, said: &str| {
        let assert = workplace.command(QUICK).args(words).assert().code(code);
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(text.contains(said), "{words:?}: {text}");
        assert!(!workplace.path("out").exists());
    };
    refuses(&["--learner", "./learn {train}"], 2, "write NAME=CMD");
    refuses(&["--learner", "a=./learn {train} 'x"], 2, "is not closed");
    refuses(&["--learner", "a=./learn {train}"], 2, "needs the placeholder {test}");
    refuses(&["--learner", "oBMM=./learn {train} {test} {scores}"], 2, "two learners are called 'oBMM'");
    refuses(
        &["--learner", "x=./none {train} {test} {scores}"],
        2,
        "the program './none' of 'x' does not exist",
    );
    refuses(&["--learner", "x=no-such {train} {test} {scores}"], 2, "'no-such' of 'x' is not found in PATH");
    refuses(&["--learner", LEARNER, "--scorer", "./none {model} {test} {scores}"], 2, "'./none' of 'mine'");
    refuses(
        &["--learner", "x=sh {K} {train} {test} {scores}"],
        2,
        "unknown placeholder {K}: the placeholders are {train}, {weights}, {test}",
    );
    refuses(&["--scorer", "./score {test}"], 2, "--learner");
    refuses(
        &["--reference", "unknown"],
        2,
        "--reference 'unknown': there is no such learner: name one of start,",
    );
    refuses(&["--learner", LEARNER, "--scorer", SCORER, "--time-limit", "0"], 2, "positive");
    refuses(&["--time-limit", "9"], 2, "--time-limit is for learners that are commands");
    refuses(&["--retry-failed"], 2, "--retry-failed is for learners that are commands");
    workplace.write("l.toml", "protocol = 9\nlearner = []\n");
    refuses(&["--learners", "l.toml"], 1, "protocol 9");
    workplace.write("l.toml", "protocol = 1\n[[learner]]\nname = \"a\"\nkommand = \"b\"\n");
    refuses(&["--learners", "l.toml"], 1, "kommand");
    workplace.write("l.toml", "protocol = 1\n[[learner]]\nname = \"a\"\ncommand = 5\n");
    refuses(&["--learners", "l.toml"], 1, "a command is a text or a list of words");
    refuses(&["--learners", "missing.toml"], 1, "cannot read the learners of 'missing.toml'");
}
