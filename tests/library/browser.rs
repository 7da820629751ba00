//! Chromium without a screen, for the tests of pages.

use std::process::Command;

/// The names of Chromium and of its derivative. scripts/with_chromium.sh has them too.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs Chromium without a screen; nothing if there is none, which is a failure in CI.
pub fn chromium(arguments: &[&str]) -> Option<std::process::Output> {
    let profile = tempfile::tempdir().unwrap();
    let fixed = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
    ];
    let run = |name: &&str| {
        let mut command = Command::new(name);
        command.args(fixed).arg(format!("--user-data-dir={}", profile.path().display())).args(arguments);
        command.output().ok()
    };
    let output = BROWSERS.iter().find_map(run);
    let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    let is_needed = is_ci && cfg!(target_os = "linux");
    assert!(output.is_some() || !is_needed, "CI needs chromium (Debian: apt-get install chromium)");
    if output.is_none() {
        // Not eprintln!, which the test runner keeps to itself.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no chromium here\n");
    }
    output
}
