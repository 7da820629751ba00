//! The record file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::error::ExperimentError;
use super::index::RecordIndex;
use super::record::{RECORDS_VERSION, Record};
use crate::files::OutputFile;

/// The name of the record file in its folder.
pub const RECORDS_FILE: &str = "records.jsonl";

/// The name of the file of packed records.
pub const PACKED_FILE: &str = "records.jsonl.gz";

/// Reads the records of a folder without a last line that was cut short, or its packed records.
pub fn read_records(folder: &Path) -> Result<Vec<Record>, ExperimentError> {
    let path = folder.join(RECORDS_FILE);
    if !path.exists() {
        let packed = folder.join(PACKED_FILE);
        return match packed.exists() {
            true => read_packed(&packed),
            false => Err(ExperimentError::NoRecords { folder: folder.to_path_buf() }),
        };
    }
    let text = fs::read(&path).map_err(|source| ExperimentError::File { path: path.clone(), source })?;
    parse(&text[..whole_lines(&text)], &path)
}

fn read_packed(path: &Path) -> Result<Vec<Record>, ExperimentError> {
    let failed = |source| ExperimentError::File { path: path.to_path_buf(), source };
    let mut text = Vec::new();
    let file = File::open(path).map_err(failed)?;
    GzDecoder::new(file).read_to_end(&mut text).map_err(failed)?;
    parse(&text, path)
}

/// Writes packed records into a folder, which is created if necessary. The same records give the same bytes.
pub fn write_packed(folder: &Path, records: &[Record]) -> Result<(), ExperimentError> {
    let path = folder.join(PACKED_FILE);
    let write = || {
        fs::create_dir_all(folder)?;
        let mut writer = GzEncoder::new(OutputFile::create(&path)?, Compression::best());
        for record in records {
            serde_json::to_writer(&mut writer, record)?;
            writer.write_all(b"\n")?;
        }
        writer.finish()?.commit()
    };
    write().map_err(|source| ExperimentError::File { path: path.clone(), source })
}

/// Refuses a file in the place of a folder for results.
pub fn refuse_file_as_folder(path: &Path) -> Result<(), ExperimentError> {
    if path.is_file() { Err(ExperimentError::NotAFolder { path: path.to_path_buf() }) } else { Ok(()) }
}

/// The record file of a folder and the records in it. It grows by one line for each record, and is locked while it is
/// open, so that two runs cannot write to it at the same time.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    path: PathBuf,
    /// Bytes that were read or written here.
    length: u64,
    index: RecordIndex,
}

impl RecordFile {
    /// Opens the record file in `folder`, creating both if necessary, and reads it. Removes a last line that was cut
    /// short by a kill. Fails, and changes nothing, while another process has the file open.
    pub fn open(folder: &Path) -> Result<RecordFile, ExperimentError> {
        let path = folder.join(RECORDS_FILE);
        let failed = |source| ExperimentError::File { path: path.clone(), source };
        refuse_file_as_folder(folder)?;
        if !path.exists() && folder.join(PACKED_FILE).exists() {
            return Err(ExperimentError::Packed { folder: folder.to_path_buf() });
        }
        fs::create_dir_all(folder)
            .map_err(|source| ExperimentError::File { path: folder.to_path_buf(), source })?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Records hold a sample of the rows for pictures, so a new file is for its owner alone.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(failed)?;
        // Some file systems have no locks. There the file's length, checked at each record, reveals another writer.
        if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(ExperimentError::InUse { path });
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let whole = whole_lines(&text);
        let index = parse(&text[..whole], &path)?.into_iter().collect();
        let length = whole as u64;
        file.set_len(length).map_err(failed)?;
        file.seek(SeekFrom::Start(length)).map_err(failed)?;
        Ok(RecordFile { file, path, length, index })
    }

    /// The records that were read and appended.
    pub fn index(&self) -> &RecordIndex {
        &self.index
    }

    /// Appends one record. Once this returns, a kill of the process cannot undo it.
    pub fn append(&mut self, record: &Record) -> Result<(), ExperimentError> {
        let failed = |source| ExperimentError::File { path: self.path.clone(), source };
        let mut line = serde_json::to_vec(record).map_err(|error| failed(error.into()))?;
        line.push(b'\n');
        if self.file.metadata().map_err(failed)?.len() != self.length {
            return Err(ExperimentError::InUse { path: self.path.clone() });
        }
        self.file.write_all(&line).map_err(failed)?;
        self.length += line.len() as u64;
        self.index.add(record.clone());
        Ok(())
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

/// The version of a record, whatever else it has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

fn parse(text: &[u8], path: &Path) -> Result<Vec<Record>, ExperimentError> {
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    lines
        .filter(|(_, line)| !line.is_empty())
        .map(|(index, line)| {
            let refuse =
                |why: String| ExperimentError::BadRecord { path: path.to_path_buf(), line: index + 1, why };
            let other_version = |version: u32| {
                refuse(format!("it has version {version}, and this program reads {RECORDS_VERSION}"))
            };
            match serde_json::from_slice(line) {
                Ok(Record::Run(run)) if run.version != RECORDS_VERSION => Err(other_version(run.version)),
                Ok(record) => Ok(record),
                // A later version may have other members.
                Err(error) => Err(match serde_json::from_slice(line) {
                    Ok(Versioned { version }) if version != RECORDS_VERSION => other_version(version),
                    _ => refuse(error.to_string()),
                }),
            }
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
            revisions: Vec::new(),
            level: None,
        })
    }

    fn recorded(file: &RecordFile) -> Vec<Record> {
        file.index().records().collect()
    }

    #[cfg(unix)]
    #[test]
    fn a_new_record_file_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        RecordFile::open(folder.path()).unwrap();
        let mode = fs::metadata(folder.path().join(RECORDS_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn appended_records_are_read_back_and_a_truncated_line_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("new/folder");
        let mut file = RecordFile::open(&inside).unwrap();
        assert!(recorded(&file).is_empty());
        file.append(&curve(1)).unwrap();
        file.append(&curve(2)).unwrap();
        assert_eq!(recorded(&file), [curve(1), curve(2)]);
        drop(file);
        let path = inside.join(RECORDS_FILE);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 5]).unwrap();
        assert_eq!(read_records(&inside).unwrap(), [curve(1)]);
        let mut file = RecordFile::open(&inside).unwrap();
        assert_eq!(recorded(&file), [curve(1)]);
        file.append(&curve(3)).unwrap();
        file.sync().unwrap();
        assert_eq!(read_records(&inside).unwrap(), [curve(1), curve(3)]);
    }

    #[test]
    fn a_second_writer_is_refused_and_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RECORDS_FILE);
        let mut file = RecordFile::open(folder.path()).unwrap();
        file.append(&curve(1)).unwrap();
        // A line that is being written looks like one that was cut short.
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{").unwrap();
        let text = fs::read(&path).unwrap();
        let error = RecordFile::open(folder.path()).unwrap_err();
        assert!(matches!(error, ExperimentError::InUse { .. }), "{error}");
        // Without locks, another writer's bytes are not overwritten either.
        let error = file.append(&curve(2)).unwrap_err();
        assert!(matches!(error, ExperimentError::InUse { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), text);
        drop(file);
        assert_eq!(recorded(&RecordFile::open(folder.path()).unwrap()), [curve(1)]);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(RECORDS_FILE), "\n{\"kind\":\"cell\"}\n").unwrap();
        let error = RecordFile::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("line 2 is not a record"), "{error}");
        assert!(read_records(&folder.path().join("nowhere")).is_err());
        let later = r#"{"kind":"run","version":99,"tool":"","command":"","began":"","processor":"","threads":1,"seed":1,"folds":3,"ks":[2]}"#;
        fs::write(folder.path().join(RECORDS_FILE), format!("{later}\n")).unwrap();
        let error = read_records(folder.path()).unwrap_err().to_string();
        assert!(error.contains("it has version 99"), "{error}");
    }
}
