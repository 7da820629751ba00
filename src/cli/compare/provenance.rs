//! When and where a comparison is run.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::experiment::Provenance;
use crate::text::iso8601::{Unit, iso};

pub(super) fn of_this_run() -> Provenance {
    Provenance {
        tool: env!("CARGO_PKG_VERSION").into(),
        command: command_of_this_run(),
        began: utc(SystemTime::now()),
        processor: processor(),
    }
}

/// The command line, with the program's name instead of its path.
fn command_of_this_run() -> String {
    let arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    command(std::iter::once(env!("CARGO_PKG_NAME").to_string()).chain(arguments))
}

/// A command line that a shell splits into these words.
fn command(words: impl Iterator<Item = String>) -> String {
    // A comma needs no quotation marks outside braces.
    let is_plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "+-./:@_,=".contains(c))
    };
    let quoted = |word: String| match shlex::try_quote(&word) {
        Ok(quoted) if !is_plain(&word) => quoted.into_owned(),
        // A word of a command line contains no zero byte.
        _ => word,
    };
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// A time as `2026-01-31T12:00:00Z`.
fn utc(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    iso(seconds.try_into().unwrap_or(i64::MAX), Unit::Parts { digits: 0, utc: true })
}

/// The processor's name, as the system gives it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    named.map_or_else(|| std::env::consts::ARCH.to_string(), |(_, name)| name.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn commands_can_be_pasted() {
        let words =
            ["gmm-bmm", "--k=1..2", "--algos", "oem,obmm", "we_ird & 50% #1 $et.csv", "", "a='b' {k}", "β"];
        let text = command(words.iter().map(|word| word.to_string()));
        assert_eq!(shlex::split(&text).unwrap(), words);
        assert!(text.starts_with("gmm-bmm --k=1..2 --algos oem,obmm 'we_ird"), "{text}");
    }

    #[test]
    fn times_are_written_as_dates() {
        let at = |seconds| utc(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(at(1_772_323_199), "2026-02-28T23:59:59Z");
        assert_eq!(at(1_772_323_200), "2026-03-01T00:00:00Z");
    }
}
