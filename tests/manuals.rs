//! `gmm-bmm completions` and `gmm-bmm man`.

mod common;

use common::Workplace;

#[test]
fn completions_know_the_commands() {
    let place = Workplace::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&format!("completions {shell}")).success().get_output().stdout.clone();
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("compare") && text.contains("shuffle-buffer"), "{shell}");
    }
    place.refuses("completions smoke-signals", 2, &["smoke-signals"]);
}

#[test]
fn every_command_has_a_man_page() {
    let place = Workplace::new();
    place.run("man pages").success();
    for command in ["fit", "eval", "compare", "merge", "show", "synth", "datasets", "figure1"] {
        let page = place.read(&format!("pages/gmm-bmm-{command}.1"));
        assert!(page.contains(".TH") && page.contains("OPTIONS"), "{command}");
    }
    assert!(place.read("pages/gmm-bmm.1").contains("SUBCOMMANDS"));
    place.write("file", "");
    place.refuses("man file", 1, &["file"]);
}
