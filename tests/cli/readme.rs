//! Runs the commands of the documentation, and compares their output with the text.
//!
//! `UPDATE_README=1` updates the output in the text instead.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

#[cfg(unix)]
use crate::learners::{LEARN, SCORE};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A document, and the number of commands that it has at least.
const DOCUMENTS: [(&str, usize); 5] = [
    ("README.md", 4),
    ("docs/GUIDE.md", 30),
    ("docs/START.md", 5),
    ("docs/DISTRIBUTED.md", 6),
    ("docs/LEARNERS.md", 3),
];

/// What blocks of text begin with that no test runs: they install something, fetch data, need files that the tests do not have, or do not end.
/// Pages in `results/` have the commands that made their figures, which take long.
const NOT_RUN: [&str; 6] = [
    "pip install",
    "apt-get install",
    "scripts/fetch_datasets.py",
    "gmm-bmm fit --data sensors.parquet",
    "gmm-bmm predict --model model.json --data /var/log",
    "scripts/make_streams.py",
];

/// A fenced block of a document.
struct Block {
    language: String,
    /// Its lines, as a range of line numbers of the document.
    lines: std::ops::Range<usize>,
}

fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, usize)> = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        match open.take() {
            Some((language, first)) => blocks.push(Block { language, lines: first..number }),
            None => open = Some((fence.to_string(), number + 1)),
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Runs a command in `folder`, with the `gmm-bmm` of this build. Returns what it prints on both outputs.
fn run(folder: &Path, command: &str) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_gmm-bmm")).parent().unwrap();
    let path =
        format!("{}:{}:{}", programs.display(), folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-e", "-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("COLUMNS", "100")
        .output()
        .expect("there is a shell");
    let printed = String::from_utf8(output.stdout).expect("outputs are UTF-8");
    assert!(output.status.success(), "'{command}' failed:\n{printed}");
    printed
}

/// Decimals beyond the tenth may differ between machines.
fn without_last_digits(text: &str) -> String {
    let mut decimals = None;
    let kept = |&letter: &char| {
        decimals = match (letter, decimals) {
            ('.', _) => Some(0),
            ('0'..='9', Some(count)) => Some(count + 1),
            _ => None,
        };
        decimals.is_none_or(|count| count <= 10)
    };
    text.chars().filter(kept).collect()
}

/// Seconds differ between runs.
fn without_seconds(text: &str) -> String {
    let mut kept = String::new();
    let words: Vec<&str> = text.split(' ').collect();
    for (i, word) in words.iter().enumerate() {
        let is_seconds = words
            .get(i + 1)
            .is_some_and(|next| *next == "s" || ["s,", "s)", "s\n"].iter().any(|end| next.starts_with(end)));
        if i > 0 {
            kept.push(' ');
        }
        kept.push_str(if is_seconds { "…" } else { word });
    }
    kept
}

/// Makes small files with the names that the commands use.
fn prepare(folder: &Path) {
    #[cfg(unix)]
    std::os::unix::fs::symlink(Path::new(ROOT).join("datasets"), folder.join("datasets")).unwrap();
    for (name, rows, seed) in [
        ("big", 9000, 1),
        ("day2", 500, 2),
        ("first", 6000, 3),
        ("part1", 700, 4),
        ("part2", 800, 5),
        ("part-1", 6000, 6),
        ("part-2", 700, 7),
        ("part-3", 800, 8),
    ] {
        run(folder, &format!("gmm-bmm synth --k 3 --d 4 --n {rows} --seed {seed} --out {name}.csv"));
    }
    run(folder, "gzip -k big.csv");
    run(folder, "gmm-bmm synth --k 3 --d 30 --n 1000 --seed 9 --out wide.csv");
    let rows = |row: fn(usize) -> String| (0..600).map(row).collect::<Vec<_>>().join("\n");
    let weather = rows(|i| format!("{},{},{}", i * 37 % 360, i * 7 % 24, i * i % 31));
    std::fs::write(folder.join("weather.csv"), format!("wind,hour,temperature\n{weather}\n")).unwrap();
    let counted = rows(|i| format!("{},{},{}", i * i % 101, i * 7 % 53, 1 + i % 3));
    std::fs::write(folder.join("aggregated.csv"), format!("a,b,count\n{counted}\n")).unwrap();
    write_program(folder, "sensors", "head -n 50 datasets/ccpp.csv");
    write_program(folder, "learn", &format!("awk -F, -v k=\"$3\" '{LEARN}' \"$1\" >\"$2\""));
    write_program(folder, "score", &format!("awk -v add=0 '{SCORE}' \"$1\" \"$2\" >\"$3\""));
}

fn write_program(folder: &Path, name: &str, script: &str) {
    std::fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    run(folder, &format!("chmod +x {name}"));
}

/// The block of a document in a language, to be used by its commands.
fn write_block(folder: &Path, name: &str, lines: &[&str], language: &str) {
    if let Some(block) = blocks(lines).into_iter().find(|block| block.language == language) {
        std::fs::write(folder.join(name), lines[block.lines].join("\n")).unwrap();
    }
}

/// A variant of a slow command that takes seconds.
fn smaller(command: &str) -> String {
    if command.starts_with("gmm-bmm compare") {
        for k in ["--k 2..10", "--k 2..5 --folds 5", "--k 2..5", "--k 5..20"] {
            if command.contains(k) {
                return command.replace(k, "--k 2 --folds 2 --algos start,oem,obmm");
            }
        }
    }
    command
        .replace("--n 200000", "--n 20000")
        .replace("--shards 4 --data", "--shards 4 --init-rows 1000 --data")
}

fn has_program(name: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {name}")]).output().is_ok_and(|o| o.status.success())
}

#[test]
fn every_command_of_the_documents_runs_and_prints_what_they_say() {
    if !cfg!(unix) || !has_program("gzip") {
        eprintln!("skipped: the commands need a shell and gzip");
        return;
    }
    for (document, least) in DOCUMENTS {
        let commands = check(document);
        assert!(commands >= least, "only {commands} commands were found in {document}");
    }
}

/// Runs the commands of a document and compares or updates their output. Returns how many there are.
fn check(document: &str) -> usize {
    let update = std::env::var_os("UPDATE_README").is_some();
    let place = Path::new(ROOT).join(document);
    let content = std::fs::read_to_string(&place).unwrap();
    let lines: Vec<&str> = content.lines().collect();
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    write_block(folder.path(), "learners.toml", &lines, "toml");
    let (mut commands, mut updated, mut copied) = (0, String::new(), 0);
    for block in blocks(&lines) {
        let text = &lines[block.lines.clone()];
        match block.language.as_str() {
            "console" => {
                for line in &lines[copied..block.lines.start] {
                    let _ = writeln!(updated, "{line}");
                }
                copied = block.lines.end;
                let mut printed = String::new();
                for command in text.iter().filter_map(|line| line.strip_prefix("$ ")) {
                    let _ = write!(printed, "$ {command}\n{}", run(folder.path(), command));
                    commands += 1;
                }
                if !update {
                    let said = text.iter().fold(String::new(), |all, line| all + line + "\n");
                    assert_eq!(
                        without_last_digits(&without_seconds(&said)),
                        without_last_digits(&without_seconds(&printed)),
                        "{document} is out of date: update it with UPDATE_README=1"
                    );
                }
                updated += &printed;
            }
            "sh" => commands += text.iter().filter(|command| run_in_shell(folder.path(), command)).count(),
            // The Rust program is a test of the library's documentation. Tests of the Python package run the Python programs.
            // A comparison uses the file of learners.
            "rust" | "python" | "toml" | "text" => {}
            other => panic!("no test runs the block in {other} of {document}"),
        }
    }
    if update {
        for line in &lines[copied..] {
            let _ = writeln!(updated, "{line}");
        }
        std::fs::write(place, updated).unwrap();
    }
    commands
}

/// Runs a command whose output is not shown. Returns whether it ran.
fn run_in_shell(folder: &Path, command: &str) -> bool {
    if command.starts_with("mpirun") && !(cfg!(feature = "mpi") && has_program("mpirun")) {
        eprintln!("skipped: '{command}' needs a build with MPI");
        return false;
    }
    run(folder, &smaller(command));
    true
}

/// The pages of the documentation site.
fn pages() -> Vec<PathBuf> {
    let own = |folder: &str| {
        let files = std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|ending| ending == "md")).collect::<Vec<_>>()
    };
    ["", "docs", "python", "datasets"].into_iter().flat_map(own).collect()
}

/// Each block is run by a test, or is no command.
#[test]
fn no_page_has_commands_that_no_test_runs() {
    let python_tests = ["python/tests/test_examples.py", "python/tests_engines/conftest.py"]
        .map(|file| std::fs::read_to_string(Path::new(ROOT).join(file)).unwrap());
    for page in pages() {
        let name = page.strip_prefix(ROOT).unwrap().display().to_string().replace('\\', "/");
        let content = std::fs::read_to_string(&page).unwrap();
        let lines: Vec<&str> = content.lines().collect();
        let found = blocks(&lines);
        for block in &found {
            let first = lines[block.lines.start];
            let is_run = match block.language.as_str() {
                "sh" | "console" | "toml" => DOCUMENTS.iter().any(|(document, _)| *document == name),
                "python" => python_tests.iter().any(|test| test.contains(name.trim_start_matches("python/"))),
                "rust" => name == "docs/START.md",
                "mermaid" => true,
                _ => {
                    ![
                        "gmm-bmm ", "python", "scripts/", "make ", "pip ", "apt-get ", "cargo ", "import ",
                        "from ",
                    ]
                    .iter()
                    .any(|program| first.starts_with(program))
                        || NOT_RUN.iter().any(|start| first.starts_with(start))
                }
            };
            assert!(is_run, "no test runs the block of {name} that begins with '{first}'");
        }
        let in_block = |number: usize| found.iter().any(|block| block.lines.contains(&number));
        for (number, pair) in lines.windows(2).enumerate() {
            let indented = pair[0].is_empty() && pair[1].starts_with("    ") && !in_block(number + 1);
            assert!(
                !indented || name == "ARCHITECTURE.md",
                "{name} has an indented block, which no test runs: '{}'",
                pair[1]
            );
        }
    }
}

/// The package contains the pictures that the README shows.
#[test]
fn the_package_has_the_pictures_of_the_readme() {
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let pictures: Vec<&str> = readme
        .split("![")
        .skip(1)
        .map(|picture| picture.split_once("](").unwrap().1.split_once(')').unwrap().0)
        .collect();
    assert!(pictures.len() >= 3, "{pictures:?}");
    let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
    let output = Command::new(cargo)
        .args(["package", "--list", "--allow-dirty", "--offline"])
        .current_dir(ROOT)
        .output()
        .expect("cargo runs the tests");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let listed = String::from_utf8(output.stdout).unwrap();
    let files: Vec<&str> = listed.lines().collect();
    for picture in pictures {
        assert!(files.contains(&picture), "{picture} is not in the package: see 'exclude' in Cargo.toml");
    }
    let bytes = |file: &&str| std::fs::metadata(Path::new(ROOT).join(file)).map_or(0, |found| found.len());
    let size: u64 = files.iter().map(bytes).sum();
    assert!(size < 7_000_000, "the package has {size} bytes");
}
