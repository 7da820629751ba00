//! The folder with the rows of one run of a command, and what becomes of it if the comparison is killed.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "gmm-bmm-learner-";
/// Locked while its owner lives.
const LOCK: &str = "in-use";

/// A folder in the system's temporary folder that only its user can read. It is removed when it is dropped.
pub(super) struct JobFolder {
    folder: TempDir,
    _lock: File,
}

impl JobFolder {
    pub fn new() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        // The file is locked before it has its name: another comparison must not take it for one without an owner.
        let unnamed = folder.path().join("in-use.new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        Ok(JobFolder { folder, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes a folder of a comparison that was killed. Returns `false` if its owner lives. A folder of another kind stays.
pub fn remove_abandoned_folder(folder: &Path) -> bool {
    let is_ours = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let Some(lock) = File::open(folder.join(LOCK)).ok().filter(|_| is_ours) else { return true };
    if let Err(TryLockError::WouldBlock) = lock.try_lock() {
        return false;
    }
    drop(lock);
    // Another process may remove it at the same time.
    let _ = fs::remove_dir_all(folder);
    true
}

/// Removes the folders of all comparisons that were killed, so that no rows stay in the temporary folder.
pub(in crate::experiment) fn remove_abandoned_folders() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_abandoned_folder(&entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_folder_without_an_owner_is_removed() {
        let job = JobFolder::new().unwrap();
        let path = job.path().to_path_buf();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert!(!remove_abandoned_folder(&path) && path.exists());
        // What a killed comparison leaves.
        let JobFolder { folder, _lock } = job;
        let path = folder.keep();
        drop(_lock);
        assert!(remove_abandoned_folder(&path) && !path.exists());
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join(LOCK), "").unwrap();
        assert!(remove_abandoned_folder(other.path()) && other.path().exists());
    }
}
