//! `gmm-bmm completions`, `gmm-bmm man`, the helps and the version.

use crate::workplace::Workplace;

#[test]
fn completions_know_the_commands() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&format!("completions {shell}")).success().get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        assert!(
            text.contains("compare") && text.contains("export") && text.contains("shuffle-buffer"),
            "{shell}"
        );
    }
    place.refuses("completions smoke-signals", 2, &["smoke-signals"]);
}

#[test]
fn every_command_has_a_man_page() {
    let place = Workplace::new();
    place.run("man pages").success();
    for command in
        ["fit", "eval", "impute", "compare", "merge", "show", "export", "synth", "datasets", "figure1"]
    {
        let page = place.read(&format!("pages/gmm-bmm-{command}.1"));
        assert!(page.contains(".TH") && page.contains("OPTIONS"), "{command}");
    }
    assert!(place.read("pages/gmm-bmm.1").contains("SUBCOMMANDS"));
    place.write("file", "");
    place.refuses("man file", 1, &["file"]);
}

#[test]
fn the_short_help_fits_a_screen_and_the_long_one_has_examples() {
    let place = Workplace::new();
    let lines = |arguments: &str| {
        let output = place.run(arguments).success().get_output().stdout.clone();
        String::from_utf8(output).unwrap().lines().map(String::from).collect::<Vec<_>>()
    };
    for command in [
        "fit",
        "eval",
        "impute",
        "compare",
        "merge",
        "show",
        "export",
        "synth",
        "datasets",
        "figure1",
        "completions",
        "man",
    ] {
        let (short, long) = (lines(&format!("{command} -h")), lines(&format!("{command} --help")));
        assert!(short.len() <= 50, "{command} -h has {} lines", short.len());
        assert!(long.len() > short.len() && long.contains(&"Examples:".into()), "{command} --help");
    }
}

/// The examples run up to the files that are missing here. A wrong option ends them before, with code 2.
#[cfg(unix)]
#[test]
fn the_examples_of_the_helps_have_options_that_there_are() {
    let place = Workplace::new();
    let program = env!("CARGO_BIN_EXE_gmm-bmm");
    let mut run = 0;
    for command in ["fit", "eval", "impute", "compare", "merge", "show", "export"] {
        let output = place.run(&format!("{command} --help")).success().get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        // Long examples are wrapped, so they begin at the program's name and end before another program.
        let (_, text) = text.split_once("\nExamples:").unwrap();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for example in words.split("gmm-bmm ").skip(1) {
            let ends = [" | ", " && ", " >", " <", " # ", " (", " zcat ", " sensors", " mpirun "];
            let line = ends.iter().fold(example, |line, end| line.split(end).next().unwrap());
            let done = std::process::Command::new("sh")
                .args(["-c", &format!("exec {program} {line}")])
                .current_dir(place.folder.path())
                .env("GMM_BMM_DATASETS", place.folder.path())
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "'{line}' of the help of {command} said: {said}");
            run += 1;
        }
    }
    assert!(run > 30, "{run} examples");
}

#[test]
fn the_version_says_what_was_built_in() {
    let place = Workplace::new();
    let output = place.run("--version").success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.starts_with(&format!("gmm-bmm {}\n", env!("CARGO_PKG_VERSION"))), "{text}");
    for (feature, is_there) in [
        ("parquet", cfg!(feature = "parquet")),
        ("openblas", cfg!(feature = "openblas")),
        ("mpi", cfg!(feature = "mpi")),
    ] {
        assert_eq!(text.contains(feature), is_there, "{text}");
    }
}
