//! The rows of each fold as files, so that others can recompute a cell.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path};

use serde::Serialize;

use super::external::{FoldFiles, PROTOCOL, write_lines};
use super::plan::{Plan, PlannedSet, SEEDS_OF_COMMANDS};
use super::split::FoldRows;

/// The name of the file that describes the exported folds.
pub const FOLDS_FILE: &str = "folds.json";

/// The contents of the file [`FOLDS_FILE`].
#[derive(Debug, Serialize)]
struct FoldsFile {
    format: &'static str,
    version: u32,
    /// Of the files' form.
    protocol: u32,
    folds: Vec<ExportedFold>,
}

#[derive(Debug, Serialize)]
struct ExportedFold {
    data: String,
    /// As in the records.
    fold: usize,
    /// The seed of the split.
    seed: u64,
    /// The folder of `train.csv` and `test.csv`.
    folder: String,
    train_rows: usize,
    /// The first training rows; the rest are validation rows.
    fitting_rows: usize,
    test_rows: usize,
    /// The seed of a learner of this program for each K. It has 64 bits.
    learner_seeds: BTreeMap<usize, u64>,
    /// The seed that a command gets for each K, and as `auto` if it chooses K.
    command_seeds: BTreeMap<String, u64>,
}

/// Writes the training and test rows of every fold into folders of their own, and a file that describes them. Returns the
/// number of folds.
pub fn export_folds(plan: &Plan, folder: &Path) -> io::Result<usize> {
    let mut folds = Vec::new();
    for set in &plan.sets {
        for fold in 0..plan.fold_count() {
            folds.push(export_fold(plan, set, fold, folder)?);
        }
    }
    let exported = FoldsFile { format: "gmm-bmm folds", version: 1, protocol: PROTOCOL, folds };
    // Written last: it says that the files are complete.
    fs::write(folder.join(FOLDS_FILE), serde_json::to_string_pretty(&exported)? + "\n")?;
    Ok(exported.folds.len())
}

fn export_fold(plan: &Plan, set: &PlannedSet, fold: usize, folder: &Path) -> io::Result<ExportedFold> {
    let split = FoldRows::new(plan, set, fold);
    let data = &set.record.data;
    if !is_folder_name(data) {
        let what = format!("the data set '{data}' has no name for a folder");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    }
    let name = format!("{data}/fold-{fold}");
    fs::create_dir_all(folder.join(&name))?;
    let own = folder.join(&name);
    let files = FoldFiles::new(&own);
    files.write_train(&set.record.columns, split.train.view())?;
    files.write_test(&set.record.columns, split.test.view())?;
    if let Some(weights) = &split.train_weights {
        files.write_weights(Some(weights), weights.len())?;
    }
    if let Some(weights) = &split.test_weights {
        write_lines(&own.join("test_weights.txt"), weights.iter().copied())?;
    }
    let ks = plan.ks.iter().map(ToString::to_string).chain(["auto".to_string()]);
    Ok(ExportedFold {
        data: set.record.data.clone(),
        fold,
        seed: plan.split_of(fold).0,
        folder: name,
        train_rows: split.train.nrows(),
        fitting_rows: split.fitting_rows,
        test_rows: split.test.nrows(),
        learner_seeds: plan.ks.iter().map(|&k| (k, plan.start_seed(set, fold, k))).collect(),
        command_seeds: ks
            .map(|k| {
                let seed = plan.start_seed(set, fold, &k) % SEEDS_OF_COMMANDS;
                (k, seed)
            })
            .collect(),
    })
}

/// Whether a name is that of a folder in the current one.
fn is_folder_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_no_folder_names() {
        for name in ["", ".", "..", "/", "/etc", "a/b", "../a", "a/"] {
            assert!(!is_folder_name(name), "{name:?}");
        }
        for name in ["a", "...", ".a", "a b", "abalone+noise"] {
            assert!(is_folder_name(name), "{name:?}");
        }
    }
}
