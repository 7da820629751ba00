use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that appears whole or not at all: written beside its place, flushed to disk, then renamed.
///
/// It is opened before any work is done, so that a bad path fails at once. Dropped without
/// [`OutputFile::commit`], it leaves nothing behind and an older file untouched.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Beside(BufWriter<NamedTempFile>),
    /// A pipe or device cannot be replaced, only written to.
    Direct(BufWriter<fs::File>),
}

impl OutputFile {
    /// Opens a file that will replace `path`.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        // Through a link, so that the link stays one.
        let path = fs::canonicalize(&path).unwrap_or_else(|_| path.as_ref().to_path_buf());
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a directory, not a file"));
        }
        let target = if path.exists() && !path.is_file() {
            Target::Direct(BufWriter::new(fs::OpenOptions::new().write(true).open(&path)?))
        } else {
            Target::Beside(BufWriter::new(temporary_beside(&path)?))
        };
        Ok(OutputFile { path, target })
    }

    /// Puts what was written in its place.
    pub fn commit(self) -> io::Result<()> {
        match self.target {
            Target::Direct(mut writer) => writer.flush(),
            Target::Beside(writer) => {
                let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
                file.as_file().sync_all()?;
                file.persist(&self.path).map_err(|error| error.error)?;
                sync_directory(&self.path)
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Beside(writer) => writer.write(bytes),
            Target::Direct(writer) => writer.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Beside(writer) => writer.flush(),
            Target::Direct(writer) => writer.flush(),
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gmm-bmm-").suffix(".part");
    #[cfg(unix)]
    {
        // What any new file would get; the default of a temporary file is for its owner alone.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // Without the name of the temporary file, which nobody asked for.
    builder.tempfile_in(directory_of(path)).map_err(|error| io::Error::from(error.kind()))
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    fs::File::open(directory_of(path))?.sync_all()
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
}
