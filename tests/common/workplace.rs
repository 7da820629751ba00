//! Running the real binary. Not every test binary uses all of it.
#![allow(dead_code)]

use std::path::PathBuf;

use serde_json::Value;

use crate::common::repository;

/// The real binary, in an empty folder of its own.
pub struct Workplace {
    pub folder: tempfile::TempDir,
}

impl Workplace {
    pub fn new() -> Self {
        Workplace { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A command with the words of `line`, run in the folder.
    pub fn run(&self, line: &str) -> assert_cmd::assert::Assert {
        self.command(line).assert()
    }

    pub fn command(&self, line: &str) -> assert_cmd::Command {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("gmm-bmm");
        command.current_dir(self.folder.path()).args(line.split_whitespace());
        command.env("GMM_BMM_DATASETS", repository("datasets"));
        command
    }

    /// The JSON that a command prints.
    pub fn json(&self, line: &str) -> Value {
        let assert = self.run(&format!("{line} --json")).success();
        serde_json::from_slice(&assert.get_output().stdout).unwrap()
    }

    /// That a command fails with this code, says all of `words` on standard error, and leaves no new file.
    #[track_caller]
    pub fn refuses(&self, line: &str, code: i32, words: &[&str]) {
        let before = self.files();
        let assert = self.run(line).code(code);
        let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        for word in words {
            assert!(said.contains(word), "'{line}' said: {said}\nwithout: {word}");
        }
        assert!(!said.contains("panicked"), "{said}");
        // What an earlier, killed run left may be cleared up.
        let kept = |name: &&String| !name.ends_with(".part") || self.path(name).exists();
        let before: Vec<&String> = before.iter().filter(kept).collect();
        assert_eq!(before, self.files().iter().collect::<Vec<_>>(), "'{line}' left files behind");
    }

    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
