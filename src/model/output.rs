use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::learn::Fingerprint;

/// A file that appears whole or not at all: written beside its place, flushed to disk, then renamed.
///
/// It is opened before any work is done, so that a bad path fails at once. Dropped without
/// [`OutputFile::commit`], it leaves nothing behind and an older file untouched. A process that is killed cannot tidy
/// up: what it left is removed by the next one that writes the same file. Errors name the file.
#[derive(Debug)]
pub struct OutputFile {
    /// As the user gave it.
    shown: PathBuf,
    /// Where it really is.
    place: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Beside(BufWriter<NamedTempFile>),
    /// A pipe or device cannot be replaced, only written to.
    Direct(BufWriter<File>),
}

impl OutputFile {
    /// Opens a file that will replace `path`.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let shown = path.as_ref().to_path_buf();
        // Through a link, so that the link stays one.
        let place = fs::canonicalize(&shown).unwrap_or_else(|_| shown.clone());
        match open_target(&place) {
            Ok(target) => Ok(OutputFile { shown, place, target }),
            Err(error) => Err(failed(&shown, &error)),
        }
    }

    /// Puts what was written in its place.
    pub fn commit(self) -> io::Result<()> {
        let OutputFile { shown, place, target } = self;
        put_in_place(target, &place).map_err(|error| failed(&shown, &error))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.target {
            Target::Beside(writer) => writer.write(bytes),
            Target::Direct(writer) => writer.write(bytes),
        };
        written.map_err(|error| failed(&self.shown, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = match &mut self.target {
            Target::Beside(writer) => writer.flush(),
            Target::Direct(writer) => writer.flush(),
        };
        flushed.map_err(|error| failed(&self.shown, &error))
    }
}

/// The words of an error with the file's name to them.
#[derive(Debug)]
struct OutputFailure {
    path: PathBuf,
    why: String,
}

impl fmt::Display for OutputFailure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "cannot write '{}': {}", self.path.display(), self.why)
    }
}

impl std::error::Error for OutputFailure {}

/// Whether an error is about an [`OutputFile`], and not about standard output.
pub fn is_output_failure(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OutputFailure>())
}

fn failed(path: &Path, error: &io::Error) -> io::Error {
    // An interrupted call is tried again by its kind.
    io::Error::new(error.kind(), OutputFailure { path: path.to_path_buf(), why: error.to_string() })
}

fn open_target(place: &Path) -> io::Result<Target> {
    if place.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a directory, not a file"));
    }
    if place.exists() && !place.is_file() {
        return Ok(Target::Direct(BufWriter::new(fs::OpenOptions::new().write(true).open(place)?)));
    }
    if !directory_of(place).is_dir() {
        let text = format!("the folder '{}' does not exist: make it first", directory_of(place).display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    remove_abandoned(place);
    Ok(Target::Beside(BufWriter::new(temporary_beside(place)?)))
}

fn put_in_place(target: Target, place: &Path) -> io::Result<()> {
    match target {
        Target::Direct(mut writer) => writer.flush(),
        Target::Beside(writer) => {
            let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(place).map_err(|error| error.error)?;
            sync_directory(place)
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Characters that tell apart temporary files of one target.
const RANDOM: usize = 6;
const SUFFIX: &str = ".part";

/// How the temporary files of a target begin.
fn temporary_prefix(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default();
    match name.to_str() {
        Some(name) if name.len() <= 180 => format!(".gmm-bmm-{name}-"),
        // A name must not grow beyond what file systems take.
        _ => format!(".gmm-bmm-{}-", Fingerprint::of_bytes(name.as_encoded_bytes())),
    }
}

fn temporary_beside(place: &Path) -> io::Result<NamedTempFile> {
    let prefix = temporary_prefix(place);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // What any new file would get; the default of a temporary file is for its owner alone.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // Without the name of the temporary file, which nobody asked for.
    let without_name = |error: io::Error| match (error.kind(), error.raw_os_error()) {
        // The folder is there, but takes no files.
        (io::ErrorKind::NotFound, _) => io::Error::new(
            io::ErrorKind::NotFound,
            format!("no file can be made in '{}'", directory_of(place).display()),
        ),
        (_, Some(code)) => io::Error::from_raw_os_error(code),
        (kind, None) => io::Error::from(kind),
    };
    let file = builder.tempfile_in(directory_of(place)).map_err(without_name)?;
    // The lock ends with the process, however that ends, and says till then that the file is in use. A file system
    // without locks only means that nothing is ever taken for abandoned.
    let _ = file.as_file().lock();
    Ok(file)
}

/// Removes what killed processes left of this very target. Nothing depends on its success.
fn remove_abandoned(place: &Path) {
    let prefix = temporary_prefix(place);
    let is_ours = |name: &OsStr| {
        let random = name.to_str().and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(SUFFIX));
        random
            .is_some_and(|random| random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric()))
    };
    let Ok(entries) = fs::read_dir(directory_of(place)) else { return };
    for entry in entries.flatten().filter(|entry| is_ours(&entry.file_name())) {
        let unused = File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if unused {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        fs::write(&path, "old").unwrap();
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_missing_folder_fails_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        assert!(OutputFile::create(folder.path().join("no/such/out.txt")).is_err());
        assert!(OutputFile::create(folder.path()).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_is_in_use_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        for name in
            [".gmm-bmm-out.txt-abc123.part", ".gmm-bmm-other.txt-abc123.part", ".gmm-bmm-out.txt-mine.part"]
        {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        let path = folder.path().join("out.txt");
        let first = OutputFile::create(&path).unwrap();
        assert!(!names().contains(&".gmm-bmm-out.txt-abc123.part".to_string()), "{:?}", names());
        let mut second = OutputFile::create(&path).unwrap();
        assert_eq!(names().len(), 4, "the first is in use: {:?}", names());
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        first.commit().unwrap();
        let left = [".gmm-bmm-other.txt-abc123.part", ".gmm-bmm-out.txt-mine.part", "out.txt"];
        assert_eq!(names(), left, "those of other targets and of other programs stay");
    }

    #[test]
    fn a_name_of_any_length_or_bytes_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let mut file = OutputFile::create(&path).unwrap();
        file.write_all(b"1").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_with_the_file_s_name() {
        let mut file = OutputFile::create("/dev/full").unwrap();
        file.write_all(b"1").unwrap();
        let error = file.commit().unwrap_err();
        assert!(is_output_failure(&error) && error.kind() == io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write '/dev/full': No space left"), "{error}");
    }
}
