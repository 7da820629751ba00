//! Runs every command of the README and the guide, and compares their output with the text.
//!
//! `UPDATE_README=1` updates the output in the text instead.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A document, and the number of commands that it has at least.
const DOCUMENTS: [(&str, usize); 3] = [("README.md", 4), ("docs/GUIDE.md", 25), ("docs/START.md", 5)];

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
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
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
    for (name, rows, seed) in
        [("big", 9000, 1), ("day2", 500, 2), ("first", 6000, 3), ("part1", 700, 4), ("part2", 800, 5)]
    {
        run(folder, &format!("gmm-bmm synth --k 3 --d 4 --n {rows} --seed {seed} --out {name}.csv"));
    }
    run(folder, "gzip -k big.csv");
}

/// A variant of a slow command that takes seconds.
fn smaller(command: &str) -> String {
    if command.starts_with("gmm-bmm compare") {
        return command.replace("--k 2..10", "--k 2 --folds 2 --algos start,oem,obmm");
    }
    command.replace("--n 200000", "--n 20000")
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
            // The Rust program is a test of the library's documentation, and the Python program one of the package's tests.
            // scripts/smoke.sh runs the commands that are typed only once.
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
