//! The files of one fold.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use ndarray::ArrayView2;

use super::Failure;

/// The files of one fold in a folder.
#[derive(Debug, Clone)]
pub struct FoldFiles<'a> {
    folder: &'a Path,
}

impl<'a> FoldFiles<'a> {
    /// The files in `folder`.
    pub fn new(folder: &'a Path) -> Self {
        FoldFiles { folder }
    }

    /// Training rows, in the order of learning.
    pub fn train(&self) -> PathBuf {
        self.folder.join("train.csv")
    }

    /// Rows to score.
    pub fn test(&self) -> PathBuf {
        self.folder.join("test.csv")
    }

    /// One log-density in each line.
    pub fn scores(&self) -> PathBuf {
        self.folder.join("scores.txt")
    }

    /// What a learner keeps for its scorer.
    pub fn model(&self) -> PathBuf {
        self.folder.join("model")
    }

    pub(super) fn chosen_k_file(&self) -> PathBuf {
        self.folder.join("k.txt")
    }

    /// The number of components that a learner has written, if it has.
    pub(super) fn chosen_k(&self) -> Result<Option<usize>, Failure> {
        let Ok(text) = std::fs::read(self.chosen_k_file()) else { return Ok(None) };
        let text = String::from_utf8_lossy(&text);
        match text.trim().parse() {
            Ok(k) if k > 0 => Ok(Some(k)),
            _ => Err(Failure::ChosenK { text: text.trim().chars().take(40).collect() }),
        }
    }

    /// Writes the training rows.
    pub fn write_train(&self, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
        write_csv(&self.train(), names, rows)
    }

    /// Writes the rows to score.
    pub fn write_test(&self, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
        write_csv(&self.test(), names, rows)
    }
}

/// Writes a header and rows. Each number has the fewest digits that give it back exactly.
fn write_csv(path: &Path, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // Others need not read the rows.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(options.open(path)?);
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    writeln!(file, "{}", names.join(","))?;
    for row in rows.outer_iter() {
        for (column, value) in row.iter().enumerate() {
            write!(file, "{}{value:?}", if column == 0 { "" } else { "," })?;
        }
        writeln!(file)?;
    }
    file.flush()
}

fn quoted(name: &str) -> String {
    match name.contains(['"', ',', '\n', '\r', ';', '\t']) || name.trim() != name {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    }
}

/// Reads one finite number from each line, and checks their number. Lines without text at the end do not count.
pub(super) fn read_scores(path: &Path, expected: usize) -> Result<Vec<f64>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::NoScores { message: format!("{}: {error}", file_name(path)) })?;
    let number = |(line, text): (usize, &str)| match text.trim().parse::<f64>() {
        Ok(score) if score.is_finite() => Ok(score),
        _ => Err(Failure::BadScore { line: line + 1, text: text.trim().chars().take(40).collect() }),
    };
    let scores = text.trim_end().lines().enumerate().map(number).collect::<Result<Vec<f64>, Failure>>()?;
    match scores.len() == expected {
        true => Ok(scores),
        false => Err(Failure::Count { found: scores.len(), expected }),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn numbers_survive_and_names_are_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let files = FoldFiles::new(folder.path());
        let rows = array![[0.1 + 0.2, -1e300], [5e-324, 3.0]];
        files.write_train(&["a,b".into(), "c".into()], rows.view()).unwrap();
        let text = std::fs::read_to_string(files.train()).unwrap();
        assert_eq!(text, "\"a,b\",c\n0.30000000000000004,-1e300\n5e-324,3.0\n");
    }

    #[test]
    fn a_chosen_k_is_a_whole_number() {
        let folder = tempfile::tempdir().unwrap();
        let files = FoldFiles::new(folder.path());
        assert_eq!(files.chosen_k(), Ok(None), "a learner need not say it");
        for (text, k) in
            [("3\n", Some(3)), ("many", None), ("-3", None), ("0", None), ("2.5", None), ("", None)]
        {
            std::fs::write(files.chosen_k_file(), text).unwrap();
            assert_eq!(files.chosen_k().ok().flatten(), k);
            assert_eq!(files.chosen_k().is_err(), k.is_none(), "{text}");
        }
    }

    #[test]
    fn scores_are_counted_and_must_be_finite() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.txt");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_scores(&path, 2).map_err(|failure| failure.to_string())
        };
        assert_eq!(read("-1.5\r\n2e3\n\n"), Ok(vec![-1.5, 2000.0]));
        assert_eq!(read("1\n"), Err("1 scores for 2 rows".into()));
        assert_eq!(read("1\n2\n3\n"), Err("3 scores for 2 rows".into()));
        for bad in ["nan", "-inf", "score", ""] {
            let said = read(&format!("1\n{bad}\n3")).unwrap_err();
            assert_eq!(said, format!("line 2 of the scores is '{bad}', which is not a finite number"));
        }
        std::fs::remove_file(&path).unwrap();
        assert!(read_scores(&path, 2).unwrap_err().to_string().contains("scores.txt"));
    }
}
