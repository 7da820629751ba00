//! Learners that are commands: `--learner`, `--scorer` and the file of `--learners`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;

use crate::cli::{usage, wording};
use crate::experiment::{Contender, ExternalLearner, Launcher, PROTOCOL};

#[derive(Debug, clap::Args)]
pub(super) struct LearnerArgs {
    /// Compare a learner that is a command; repeat it for several
    ///
    /// The command may contain {train}, {test}, {k}, {seed}, {columns}, {model}, {scores} and {chosen_k}, which are replaced. It learns the rows of the CSV file {train} and writes the log-density of each row of {test} to {scores}, one a line. With --scorer it writes a model to {model} instead. It is split into words as in a shell, but run without one.
    #[arg(long, hide_short_help = true, value_name = "NAME=CMD")]
    learner: Vec<String>,

    /// The command that scores rows with the {model} of a --learner: one for all, or one for each in the same order
    #[arg(long, hide_short_help = true, value_name = "COMMAND", requires = "learner")]
    scorer: Vec<String>,

    /// Compare the learners of this file
    ///
    /// It begins with 'protocol = 1' and has an entry [[learner]] for each, with 'name', 'command', and where needed 'scorer' and 'batch = true'. {here} is the folder of the file.
    #[arg(long, hide_short_help = true, value_name = "FILE.toml")]
    learners: Option<PathBuf>,

    /// End a command after this time; its cell then says so
    #[arg(long, hide_short_help = true, value_name = "SECONDS", value_parser = parse_seconds)]
    time_limit: Option<f64>,

    /// Run the cells of commands again that failed or timed out
    #[arg(long, hide_short_help = true)]
    pub retry_failed: bool,
}

/// The file of `--learners`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnersFile {
    protocol: u32,
    learner: Vec<Described>,
}

/// A learner of the file. Commands are texts that are split into words, or lists of words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    name: String,
    command: Words,
    scorer: Option<Words>,
    #[serde(default)]
    batch: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a command is a text or a list of words")]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl LearnerArgs {
    pub fn launcher(&self) -> anyhow::Result<Launcher> {
        let program = std::env::current_exe().context("cannot find this program to measure commands with")?;
        Ok(Launcher {
            words: vec![program.into(), "measure".into()],
            time_limit: self.time_limit.map(Duration::from_secs_f64),
        })
    }

    /// The learners, in the order in which they were named.
    pub fn contenders(&self) -> anyhow::Result<Vec<Contender>> {
        let mut learners = self.named()?;
        if let Some(path) = &self.learners {
            learners.extend(read(path)?);
        }
        let options = [("--time-limit", self.time_limit.is_some()), ("--retry-failed", self.retry_failed)];
        if let Some((option, _)) = options.into_iter().find(|(_, given)| *given && learners.is_empty()) {
            return Err(usage(format!(
                "{option} is for learners that are commands: name them with --learner or --learners, or leave it out"
            )));
        }
        Ok(learners.into_iter().map(Contender::external).collect())
    }

    fn named(&self) -> anyhow::Result<Vec<ExternalLearner>> {
        if !self.scorer.is_empty() && self.scorer.len() != 1 && self.scorer.len() != self.learner.len() {
            return Err(usage(format!(
                "there are {} --learner and {} --scorer: give one --scorer for all, or one for each",
                self.learner.len(),
                self.scorer.len()
            )));
        }
        let learner = |(place, text): (usize, &String)| {
            let (name, command) = text
                .split_once('=')
                .ok_or_else(|| usage(format!("--learner '{text}' has no name: write NAME=CMD")))?;
            let scorer = self.scorer.get(place).or(self.scorer.first());
            let scorer = scorer.map(|text| split(text, name)).transpose()?;
            Ok(ExternalLearner {
                name: name.trim().to_string(),
                command: split(command, name)?,
                scorer,
                batch: false,
            })
        };
        self.learner.iter().enumerate().map(learner).collect()
    }
}

/// Refuses commands whose program is not there. A name that a placeholder completes is not known before it is run.
pub(super) fn check_programs(contenders: &[Contender]) -> anyhow::Result<()> {
    for learner in contenders.iter().filter_map(|contender| contender.commands()) {
        let commands = [Some(&learner.command), learner.scorer.as_ref()];
        for program in commands.into_iter().flatten().filter_map(|words| words.first()) {
            if !program.contains('{') && !is_program(program) {
                let place = if program.contains('/') { "does not exist" } else { "is not found in PATH" };
                return Err(usage(format!("the program '{program}' of '{}' {place}", learner.name)));
            }
        }
    }
    Ok(())
}

/// Whether a command can begin with this word, as far as that can be known. Windows adds endings to names, so nothing is known
/// there.
fn is_program(word: &str) -> bool {
    let in_path = || {
        let folders = std::env::var_os("PATH")?;
        Some(std::env::split_paths(&folders).any(|folder| folder.join(word).is_file()))
    };
    cfg!(windows)
        || match word.contains('/') {
            true => Path::new(word).is_file(),
            false => in_path().unwrap_or(true),
        }
}

fn split(text: &str, name: &str) -> anyhow::Result<Vec<String>> {
    shlex::split(text)
        .ok_or_else(|| usage(format!("a quotation in the command of '{name}' is not closed: {text}")))
}

fn read(path: &Path) -> anyhow::Result<Vec<ExternalLearner>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the learners of '{}'", path.display()))?;
    let file: LearnersFile = toml::from_str(&text).map_err(|error| {
        anyhow::anyhow!(
            "'{}' does not describe learners: {}",
            path.display(),
            wording::one_line(&error.to_string())
        )
    })?;
    anyhow::ensure!(
        file.protocol == PROTOCOL,
        "'{}' is for protocol {}, and this version has protocol {PROTOCOL}",
        path.display(),
        file.protocol
    );
    let here = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let here = here.to_string_lossy();
    let words = |words: Words, name: &str| -> anyhow::Result<Vec<String>> {
        let words = match words {
            Words::List(words) => words,
            Words::Text(text) => split(&text, name)?,
        };
        Ok(words.iter().map(|word| word.replace("{here}", &here)).collect())
    };
    let learner = |described: Described| {
        let Described { name, command, scorer, batch } = described;
        let command = words(command, &name)?;
        let scorer = scorer.map(|text| words(text, &name)).transpose()?;
        Ok(ExternalLearner { name, command, scorer, batch })
    };
    file.learner.into_iter().map(learner).collect()
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && Duration::try_from_secs_f64(seconds).is_ok() => Ok(seconds),
        _ => Err("give a positive number of seconds".into()),
    }
}
