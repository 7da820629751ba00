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
