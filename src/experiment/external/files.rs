//! The files of one fold.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
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

    /// The weight of each training row, one in each line.
    pub fn weights(&self) -> PathBuf {
        self.folder.join("weights.txt")
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
        let Ok(file) = open_file(&self.chosen_k_file()) else { return Ok(None) };
        let mut text = Vec::new();
        let read = file.take(MAX_LINE).read_to_end(&mut text);
        let text = read.map_or_else(|error| error.to_string().into(), |_| String::from_utf8_lossy(&text));
        match text.trim().parse() {
            Ok(k) if k > 0 => Ok(Some(k)),
            _ => Err(Failure::ChosenK { text: text.trim().chars().take(40).collect() }),
        }
    }

    /// Writes the training rows.
    pub fn write_train(&self, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
        write_csv(&self.train(), names, rows)
    }

    /// Writes the weights of the training rows, which are 1 if they have none.
    pub fn write_weights(&self, weights: Option<&[f64]>, rows: usize) -> io::Result<()> {
        write_lines(&self.weights(), (0..rows).map(|row| weights.map_or(1.0, |weights| weights[row])))
    }

    /// Writes the rows to score.
    pub fn write_test(&self, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
        write_csv(&self.test(), names, rows)
    }
}

/// Writes one number in each line.
pub(in crate::experiment) fn write_lines(path: &Path, numbers: impl Iterator<Item = f64>) -> io::Result<()> {
    let mut file = create(path)?;
    for number in numbers {
        writeln!(file, "{number:?}")?;
    }
    file.flush()
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    // Others need not read the rows.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    Ok(BufWriter::new(options.open(path)?))
}

/// Writes a header and rows. Each number has the fewest digits that give it back exactly.
fn write_csv(path: &Path, names: &[String], rows: ArrayView2<f64>) -> io::Result<()> {
    let mut file = create(path)?;
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

/// A line of scores is not longer than this.
const MAX_LINE: u64 = 1000;

/// Reads one finite number from each line, and checks their number. Lines without text at the end do not count. It keeps no more
/// than the scores that are expected, however large the file is.
pub(super) fn read_scores(path: &Path, expected: usize) -> Result<Vec<f64>, Failure> {
    let failed = |message: String| Failure::NoScores { message: format!("{}: {message}", file_name(path)) };
    let mut lines = BufReader::new(open_file(path).map_err(|error| failed(error.to_string()))?);
    let bad = |line: usize, text: &str| Failure::BadScore { line, text: text.chars().take(40).collect() };
    let (mut scores, mut found, mut number, mut empty) = (Vec::new(), 0, 0, None);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| failed(error.to_string()))? == 0 {
            break;
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            empty.get_or_insert(number);
            continue;
        }
        if let Some(empty) = empty {
            return Err(bad(empty, ""));
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < MAX_LINE;
        let score = text.parse::<f64>().ok().filter(|score| score.is_finite() && is_whole);
        let score = score.ok_or_else(|| bad(number, text))?;
        found += 1;
        if found <= expected {
            scores.push(score);
        }
    }
    match found == expected {
        true => Ok(scores),
        false => Err(Failure::Count { found, expected }),
    }
}

/// Opens a file that a command wrote. Anything else, such as a pipe, could keep the comparison waiting.
fn open_file(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_file() {
        true => File::open(path),
        false => Err(io::Error::other("it is not a file")),
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
        assert!(read("1\n\n2\n").unwrap_err().starts_with("line 2 of the scores is ''"));
        assert_eq!(read(&format!("1\n2{}", "\n ".repeat(5000))), Ok(vec![1.0, 2.0]));
        let long = read(&format!("1\n{}\n", "7".repeat(5000))).unwrap_err();
        assert!(long.starts_with("line 2 of the scores is '777") && long.len() < 200, "{long}");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(read_scores(&path, 2).unwrap_err().to_string().contains("it is not a file"));
        std::fs::remove_dir(&path).unwrap();
        assert!(read_scores(&path, 2).unwrap_err().to_string().contains("scores.txt"));
    }
}
