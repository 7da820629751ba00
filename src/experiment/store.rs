//! The file that records are appended to.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::error::ExperimentError;
use super::record::Record;

/// What the file of records is called in its folder.
pub const RECORDS_FILE: &str = "records.jsonl";

/// The records of a folder. A last line that was cut short is not one of them.
pub fn read_records(folder: &Path) -> Result<Vec<Record>, ExperimentError> {
    let path = folder.join(RECORDS_FILE);
    if !path.exists() {
        return Err(ExperimentError::NoRecords { folder: folder.to_path_buf() });
    }
    let text = fs::read(&path).map_err(|source| ExperimentError::File { path: path.clone(), source })?;
    parse(&text[..whole_lines(&text)], &path)
}

/// Refuses a file where results are to have a folder.
pub fn refuse_file_as_folder(path: &Path) -> Result<(), ExperimentError> {
    if path.is_file() { Err(ExperimentError::NotAFolder { path: path.to_path_buf() }) } else { Ok(()) }
}

/// A file that grows by one line for each record.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Opens the file of records in `folder`, which is made if it is not there, and reads what it has. A last line
    /// that was cut short by a kill is removed.
    pub fn open(folder: &Path) -> Result<(RecordFile, Vec<Record>), ExperimentError> {
        let path = folder.join(RECORDS_FILE);
        let failed = |source| ExperimentError::File { path: path.clone(), source };
        refuse_file_as_folder(folder)?;
        fs::create_dir_all(folder)
            .map_err(|source| ExperimentError::File { path: folder.to_path_buf(), source })?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        let text = fs::read(&path).map_err(failed)?;
        let whole = whole_lines(&text);
        let records = parse(&text[..whole], &path)?;
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((RecordFile { file, path }, records))
    }

    /// Appends one record. Once this returns, a kill of the process cannot undo it.
    pub fn append(&mut self, record: &Record) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        let named = |error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("'{}': {error}", self.path.display()))
        };
        self.file.write_all(&line).map_err(named)
    }

    /// Makes sure that the records survive a failure of the machine too.
    pub fn sync(&self) -> Result<(), ExperimentError> {
        self.file.sync_all().map_err(|source| ExperimentError::File { path: self.path.clone(), source })
    }
}

/// Bytes up to and with the last line break.
fn whole_lines(text: &[u8]) -> usize {
    text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1)
}

fn parse(text: &[u8], path: &Path) -> Result<Vec<Record>, ExperimentError> {
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| ExperimentError::BadRecord {
                path: path.to_path_buf(),
                line: index + 1,
                why: error.to_string(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::contender::Contender;
    use super::super::record::CurveRecord;
    use super::*;

    fn curve(k: usize) -> Record {
        let points = vec![(10, -1.0 / 3.0), (20, -0.1)];
        Record::Curve(CurveRecord {
            data: "a\nb".into(),
            contender: Contender::Oem,
            k,
            points,
            start_rows: None,
            level: None,
        })
    }

    #[test]
    fn what_was_appended_is_read_and_a_line_cut_short_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("new/folder");
        let (mut file, records) = RecordFile::open(&inside).unwrap();
        assert!(records.is_empty());
        file.append(&curve(1)).unwrap();
        file.append(&curve(2)).unwrap();
        drop(file);
        let path = inside.join(RECORDS_FILE);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        assert_eq!(read_records(&inside).unwrap(), [curve(1)]);
        let (mut file, records) = RecordFile::open(&inside).unwrap();
        assert_eq!(records, [curve(1)]);
        file.append(&curve(3)).unwrap();
        file.sync().unwrap();
        assert_eq!(read_records(&inside).unwrap(), [curve(1), curve(3)]);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORDS_FILE), "\n{\"kind\":\"cell\"}\n").unwrap();
        let error = RecordFile::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("line 2 is not a record"), "{error}");
        assert!(read_records(&folder.path().join("nowhere")).is_err());
    }
}
