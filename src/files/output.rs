use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use tempfile::{NamedTempFile, TempPath};

use crate::hash::Fingerprint;

/// A file that is written atomically: to a temporary file in the same folder, flushed to disk, then renamed.
///
/// Open it before the work begins, so that a bad path fails at once. If it is dropped without [`OutputFile::commit`], the
/// temporary file is removed and an existing file stays as it is. The temporary file of a killed process is removed by the
/// next process that writes the same file on the same machine, or after a month. Errors name the file.
#[derive(Debug)]
pub struct OutputFile {
    /// The path as the user gave it.
    shown: PathBuf,
    /// The path with links resolved.
    place: PathBuf,
    writer: BufWriter<File>,
    /// The path of the temporary file, which removes it when dropped; `None` for a pipe or device, which cannot be replaced.
    temporary: Option<TempPath>,
}

impl OutputFile {
    /// Opens a file that will replace `path`.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let shown = path.as_ref().to_path_buf();
        // A link stays a link: its target is replaced.
        let place = place_of(&shown);
        match open_target(&place) {
            Ok((writer, temporary)) => Ok(OutputFile { shown, place, writer, temporary }),
            Err(error) => Err(failed(&shown, &error)),
        }
    }

    /// Has only its owner read the file, if it is new. A file that exists keeps its permissions. To be called before rows of the
    /// data are written.
    pub fn keep_private(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        if self.temporary.is_some() && !self.place.exists() {
            use std::os::unix::fs::PermissionsExt;
            let file = self.writer.get_ref();
            let mode = file.metadata()?.permissions().mode() & 0o700;
            let set = file.set_permissions(fs::Permissions::from_mode(mode));
            return set.map_err(|error| failed(&self.shown, &error));
        }
        Ok(())
    }

    /// Replaces the file with what was written.
    pub fn commit(self) -> io::Result<()> {
        let OutputFile { shown, place, writer, temporary } = self;
        put_in_place(writer, temporary, &place).map_err(|error| failed(&shown, &error))
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|error| failed(&self.shown, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| failed(&self.shown, &error))
    }
}

/// An error with the name of the file.
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

/// Whether an error comes from an [`OutputFile`], not from standard output.
#[cfg(feature = "cli")]
pub fn is_output_failure(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<OutputFailure>())
}

fn failed(path: &Path, error: &io::Error) -> io::Error {
    // The kind stays, since callers retry interrupted calls.
    io::Error::new(error.kind(), OutputFailure { path: path.to_path_buf(), why: error.to_string() })
}

fn open_target(place: &Path) -> io::Result<(BufWriter<File>, Option<TempPath>)> {
    if place.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a directory, not a file"));
    }
    if place.exists() && !place.is_file() {
        return Ok((BufWriter::new(OpenOptions::new().write(true).open(place)?), None));
    }
    if !directory_of(place).is_dir() {
        let text = format!("the folder '{}' does not exist: make it first", directory_of(place).display());
        return Err(io::Error::new(io::ErrorKind::NotFound, text));
    }
    remove_abandoned(place);
    // Errors of the file alone do not name the temporary path.
    let (file, path) = temporary_beside(place)?.into_parts();
    keep_permissions(place, &file)?;
    Ok((BufWriter::new(file), Some(path)))
}

fn put_in_place(writer: BufWriter<File>, temporary: Option<TempPath>, place: &Path) -> io::Result<()> {
    let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
    let Some(path) = temporary else { return Ok(()) };
    file.sync_all()?;
    path.persist(place).map_err(|error| error.error)?;
    sync_directory(place)
}

/// Where a file is or will be, with links resolved.
pub fn place_of(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| {
        let end = end_of_links(path);
        match (fs::canonicalize(directory_of(&end)), end.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => end,
        }
    })
}

/// Where a link leads whose last target does not exist.
fn end_of_links(path: &Path) -> PathBuf {
    let mut place = path.to_path_buf();
    // As many as systems follow.
    for _ in 0..40 {
        match fs::read_link(&place) {
            Ok(target) => place = directory_of(&place).join(target),
            Err(_) => break,
        }
    }
    place
}

/// Gives a file the permissions of the one that it replaces.
#[cfg(unix)]
fn keep_permissions(place: &Path, file: &File) -> io::Result<()> {
    match fs::metadata(place) {
        Ok(found) => file.set_permissions(found.permissions()),
        Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn keep_permissions(_place: &Path, _file: &File) -> io::Result<()> {
    Ok(())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Random characters in the name of a temporary file.
const RANDOM: usize = 6;
/// Characters of [`system_tag`].
const TAG: usize = 8;
const SUFFIX: &str = ".part";
/// A temporary file of another system is abandoned if it was not written to for this long.
const ABANDONED_AFTER: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How often a temporary file is created again because another process removed it.
const MAX_ATTEMPTS: usize = 100;

/// The beginning of the names of a target's temporary files. The tag of the system that made them follows, then a hyphen,
/// [`RANDOM`] characters and [`SUFFIX`].
fn temporary_prefix(place: &Path) -> String {
    let name = place.file_name().unwrap_or_default();
    match name.to_str() {
        Some(name) if name.len() <= 180 => format!(".gmm-bmm-{name}-"),
        // File systems limit the length of names.
        _ => format!(".gmm-bmm-{}-", Fingerprint::of_bytes(name.as_encoded_bytes())),
    }
}

/// A tag of the running kernel. On a file system that several machines share, locks may be local to each machine, so a
/// free lock shows that a file is abandoned only if the same kernel made it. Systems without a boot id have the same tag.
fn system_tag() -> &'static str {
    static SYSTEM: OnceLock<String> = OnceLock::new();
    SYSTEM.get_or_init(|| {
        let boot_id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Fingerprint::of_bytes(&boot_id).to_string()[..TAG].to_string()
    })
}

fn temporary_beside(place: &Path) -> io::Result<NamedTempFile> {
    let prefix = format!("{}{}-", temporary_prefix(place), system_tag());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).rand_bytes(RANDOM).suffix(SUFFIX);
    #[cfg(unix)]
    {
        // The permissions of any new file: those of a temporary file are for its owner alone.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // Leaves out the name of the temporary file, which means nothing to the user.
    let without_name = |error: io::Error| match (error.kind(), error.raw_os_error()) {
        // The folder exists, but files cannot be created in it.
        (io::ErrorKind::NotFound, _) => io::Error::new(
            io::ErrorKind::NotFound,
            format!("no file can be made in '{}'", directory_of(place).display()),
        ),
        (_, Some(code)) => io::Error::from_raw_os_error(code),
        (kind, None) => io::Error::from(kind),
    };
    for _ in 0..MAX_ATTEMPTS {
        let file = builder.tempfile_in(directory_of(place)).map_err(without_name)?;
        // The lock shows that the file is in use, and ends with the process in any case. Until it is taken, another process
        // may consider the file abandoned; then that process holds the lock, or the file is gone. On a file system without
        // locks, no file is considered abandoned.
        let is_taken = matches!(file.as_file().try_lock(), Err(TryLockError::WouldBlock));
        if !is_taken && file.path().exists() {
            return Ok(file);
        }
    }
    Err(io::Error::other("other processes remove its temporary files: stop those that write the same file"))
}

/// Removes the temporary files that killed processes left for this target. Nothing depends on its success.
fn remove_abandoned(place: &Path) {
    let prefix = temporary_prefix(place);
    let Ok(entries) = fs::read_dir(directory_of(place)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(tag) = tag_of(&name, &prefix) else { continue };
        // Some file systems lock only files that are open for writing.
        let Ok(file) = OpenOptions::new().read(true).write(true).open(entry.path()) else { continue };
        let is_old = || file.metadata().and_then(|found| found.modified()).is_ok_and(is_long_ago);
        // The lock is held until the file is removed, so that a process that has just created it notices.
        if file.try_lock().is_ok() && (tag == system_tag() || is_old()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn is_long_ago(time: SystemTime) -> bool {
    time.elapsed().is_ok_and(|age| age > ABANDONED_AFTER)
}

/// The tag in the name of a temporary file whose target has this prefix; `None` for all other names.
fn tag_of<'a>(name: &'a OsStr, prefix: &str) -> Option<&'a str> {
    let (tag, random) = name.to_str()?.strip_prefix(prefix)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let is_plain =
        |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric());
    (is_plain(tag, TAG) && is_plain(random, RANDOM)).then_some(tag)
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
        let (tag, elsewhere) = (system_tag(), "0a1b2c3d");
        let abandoned = format!(".gmm-bmm-out.txt-{tag}-abc123.part");
        let old = format!(".gmm-bmm-out.txt-{elsewhere}-old123.part");
        let mut stays = vec![
            // Another machine may use it, and its locks are not visible here.
            format!(".gmm-bmm-out.txt-{elsewhere}-new123.part"),
            format!(".gmm-bmm-other.txt-{tag}-abc123.part"),
            format!(".gmm-bmm-out.txt-{tag}-mine.part"),
            ".gmm-bmm-out.txt-abc123.part".to_string(),
        ];
        for name in stays.iter().chain([&abandoned, &old]) {
            fs::write(folder.path().join(name), "half").unwrap();
        }
        let long_ago = SystemTime::now() - ABANDONED_AFTER - Duration::from_secs(60);
        let file = OpenOptions::new().write(true).open(folder.path().join(&old)).unwrap();
        file.set_modified(long_ago).unwrap();
        drop(file);
        let path = folder.path().join("out.txt");
        let first = OutputFile::create(&path).unwrap();
        assert!(!names().contains(&abandoned) && !names().contains(&old), "{:?}", names());
        let mut second = OutputFile::create(&path).unwrap();
        assert_eq!(names().len(), stays.len() + 2, "the first is in use: {:?}", names());
        second.write_all(b"second").unwrap();
        second.commit().unwrap();
        first.commit().unwrap();
        stays.push("out.txt".to_string());
        stays.sort();
        assert_eq!(names(), stays);
    }

    #[test]
    fn a_file_is_not_taken_for_abandoned_between_being_made_and_being_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        let is_there = |file: &OutputFile| file.temporary.as_ref().is_some_and(|path| path.exists());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        let file = OutputFile::create(&path).unwrap();
                        std::thread::yield_now();
                        assert!(is_there(&file), "removed by another writer of the same file");
                    }
                });
            }
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mode = |name: &str| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        let write = |name: &str, private: bool| {
            let mut file = OutputFile::create(path(name)).unwrap();
            if private {
                file.keep_private().unwrap();
            }
            file.write_all(b"1").unwrap();
            file.commit().unwrap();
        };
        fs::create_dir(path("inner")).unwrap();
        symlink("second", path("first")).unwrap();
        symlink("inner/target", path("second")).unwrap();
        for _ in 0..2 {
            write("first", false);
            assert!(path("first").is_symlink() && path("second").is_symlink());
            assert_eq!(fs::read(path("inner/target")).unwrap(), b"1");
        }
        symlink("circle", path("circle")).unwrap();
        assert!(OutputFile::create(path("circle")).is_err() || path("circle").is_symlink());
        write("private", true);
        assert_eq!(mode("private"), 0o600);
        for kept in [0o600, 0o640, 0o666] {
            fs::set_permissions(path("private"), fs::Permissions::from_mode(kept)).unwrap();
            write("private", kept != 0o640);
            assert_eq!(mode("private"), kept);
        }
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

    #[cfg(all(target_os = "linux", feature = "cli"))]
    #[test]
    fn a_full_disk_is_told_with_the_file_s_name() {
        let mut file = OutputFile::create("/dev/full").unwrap();
        file.write_all(b"1").unwrap();
        let error = file.commit().unwrap_err();
        assert!(is_output_failure(&error) && error.kind() == io::ErrorKind::StorageFull);
        assert!(error.to_string().starts_with("cannot write '/dev/full': No space left"), "{error}");
    }
}
