//! The names and commands of learners.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::FoldFiles;

/// A learner that is a command. Learners with other commands are other learners, even if they have the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalLearner {
    /// Its name in tables and pictures.
    pub name: String,
    /// The words of the command that learns, with placeholders.
    pub command: Vec<String>,
    /// The words of the command that scores; without it, the first command learns and scores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scorer: Option<Vec<String>>,
    /// Whether it reads the rows many times. Pictures draw such learners with dashed lines.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
}

/// What a word of a command can contain: the files of training rows, of their weights, and of rows to score; those to write the scores,
/// the model and a number of components that the learner chooses to; and the number of components, the seed and the number of columns.
const PLACEHOLDERS: [&str; 9] =
    ["{train}", "{weights}", "{test}", "{scores}", "{model}", "{k}", "{chosen_k}", "{seed}", "{columns}"];

/// The first name in braces that is no placeholder. After `$` it is a variable of a shell.
fn unknown_in(word: &str) -> Option<&str> {
    word.match_indices('{').find_map(|(from, _)| {
        let text = &word[from..from + word[from..].find('}')? + 1];
        let name = &text[1..text.len() - 1];
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        (is_name && !PLACEHOLDERS.contains(&text) && !word[..from].ends_with('$')).then_some(text)
    })
}

fn has(words: &[String], placeholder: &str) -> bool {
    words.iter().any(|word| word.contains(placeholder))
}

impl ExternalLearner {
    /// Whether it chooses K: its command does not ask for one.
    pub fn learns_k(&self) -> bool {
        !has(&self.command, "{k}")
    }

    /// Whether it learns weights of rows: its command asks for them.
    pub fn takes_weights(&self) -> bool {
        has(&self.command, "{weights}")
    }

    /// What is wrong with it, if anything.
    pub fn fault(&self) -> Option<String> {
        let ExternalLearner { name, command, scorer, .. } = self;
        let needs = |words: &[String], which: &str, needed: &[&str]| {
            let missing = needed.iter().find(|placeholder| !has(words, placeholder))?;
            Some(format!("the {which} of '{name}' needs the placeholder {missing}"))
        };
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Some("a learner needs a name".into());
        }
        if command.is_empty() || scorer.as_ref().is_some_and(Vec::is_empty) {
            return Some(format!("'{name}' needs a command"));
        }
        if let Some(word) = command.iter().chain(scorer.iter().flatten()).find(|word| word.contains('\0')) {
            return Some(format!("a word of '{name}' contains a zero byte: {word:?}"));
        }
        for (which, words) in [("command", Some(command)), ("scorer", scorer.as_ref())] {
            if let Some(unknown) = words.into_iter().flatten().find_map(|word| unknown_in(word)) {
                let known = PLACEHOLDERS.join(", ");
                return Some(format!(
                    "the {which} of '{name}' has the unknown placeholder {unknown}: the placeholders are {known}; write a \
                     space after a brace that begins none"
                ));
            }
        }
        match scorer {
            None => needs(command, "command", &["{train}", "{test}", "{scores}"]),
            Some(scorer) => needs(command, "command", &["{train}", "{model}"])
                .or_else(|| needs(scorer, "scorer", &["{test}", "{scores}", "{model}"])),
        }
    }
}

/// The values of the placeholders.
pub(super) struct Placeholders<'a> {
    pub folder: &'a Path,
    pub k: usize,
    pub seed: u64,
    pub columns: usize,
}

impl Placeholders<'_> {
    pub fn fill(&self, word: &str) -> String {
        let files = FoldFiles::new(self.folder);
        let path = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
        let values = [
            path(files.train()),
            path(files.weights()),
            path(files.test()),
            path(files.scores()),
            path(files.model()),
            self.k.to_string(),
            path(files.chosen_k_file()),
            self.seed.to_string(),
            self.columns.to_string(),
        ];
        let there = PLACEHOLDERS.iter().zip(&values).filter(|(text, _)| word.contains(**text));
        there.fold(word.to_string(), |filled, (text, value)| filled.replace(text, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learner(command: &str, scorer: Option<&str>) -> ExternalLearner {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        ExternalLearner {
            name: "mine".into(),
            command: words(command),
            scorer: scorer.map(words),
            batch: false,
        }
    }

    #[test]
    fn a_learner_names_the_files_that_it_needs() {
        let fault = |command: &str, scorer| learner(command, scorer).fault().unwrap_or_default();
        assert_eq!(fault("a {train} {test} {scores}", None), "");
        assert_eq!(fault("a {train} {model}", Some("b {model} {test} {scores}")), "");
        assert!(fault("a {train} {scores}", None).contains("{test}"));
        assert!(
            fault("a {train}", Some("b {model} {test} {scores}"))
                .contains("command of 'mine' needs the placeholder {model}")
        );
        assert!(
            fault("a {train} {model}", Some("b {test} {scores}"))
                .contains("scorer of 'mine' needs the placeholder {model}")
        );
        assert!(
            fault("a {K} {train} {test} {scores}", None)
                .contains("command of 'mine' has the unknown placeholder {K}")
        );
        assert!(
            fault("a {train} {model}", Some("b {model} {test} {scores} {sed}"))
                .contains("scorer of 'mine' has")
        );
        for other in ["{", "{}", "{a:1}", "{{", "${HOME}", "{\"k\":{k}}", "{1}", "{a,b}"] {
            assert_eq!(fault(&format!("a {other} {{train}} {{test}} {{scores}}"), None), "");
        }
        assert!(learner("a {train} {test} {scores}", None).learns_k());
        assert!(!learner("a k={k} {train} {test} {scores}", None).learns_k());
    }

    #[test]
    fn placeholders_are_replaced_inside_words() {
        let values = Placeholders { folder: Path::new("f"), k: 3, seed: 7, columns: 2 };
        assert_eq!(values.fill("k={k},{seed},{columns}"), "k=3,7,2");
        assert_eq!(values.fill("{train}"), Path::new("f").join("train.csv").to_string_lossy());
        assert_eq!(values.fill("{other} {"), "{other} {");
    }
}
