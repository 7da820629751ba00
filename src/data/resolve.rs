//! What the names of data stand for: files, patterns, sets of the catalogue, standard input.

use std::path::{Path, PathBuf};

use super::catalogue::Catalogue;
use super::error::DataError;
use super::input::Input;

/// The inputs that data stand for, and the columns to read of a single set of the catalogue.
pub(super) fn resolve(
    data: &[impl AsRef<Path>],
    datasets: &Path,
) -> Result<(Vec<Input>, Option<&'static [String]>), DataError> {
    let data = expand(data)?;
    let inputs = data.iter().map(|path| input(path, datasets)).collect::<Result<_, _>>()?;
    let columns = match data.as_slice() {
        [only] => Catalogue::set_named_by(only).map(|set| set.columns.as_slice()),
        _ => None,
    };
    Ok((inputs, columns))
}

/// The files that data stand for.
pub(super) fn files(data: &[impl AsRef<Path>], datasets: &Path) -> Result<Vec<PathBuf>, DataError> {
    let file = |path: PathBuf| match Catalogue::set_named_by(&path) {
        Some(set) => set.path_in(datasets),
        None => path,
    };
    Ok(expand(data)?.into_iter().map(file).collect())
}

/// Expands patterns. A file whose name looks like a pattern is that file.
fn expand(data: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>, DataError> {
    let mut files = Vec::with_capacity(data.len());
    for path in data.iter().map(AsRef::as_ref) {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists());
        let Some(pattern) = pattern else {
            files.push(path.to_path_buf());
            continue;
        };
        let found = glob::glob(pattern).map_err(|error| DataError::BadPattern {
            pattern: pattern.to_string(),
            reason: error.to_string(),
        })?;
        let before = files.len();
        for file in found {
            files.push(file.map_err(|error| DataError::Unreadable {
                file: error.path().display().to_string(),
                source: error.into(),
            })?);
        }
        if files.len() == before {
            return Err(DataError::NoMatch(pattern.to_string()));
        }
    }
    Ok(files)
}

fn input(path: &Path, datasets: &Path) -> Result<Input, DataError> {
    if let Some(set) = Catalogue::set_named_by(path) {
        let file = set.path_in(datasets);
        return if file.exists() { Ok(Input::File(file)) } else { Err(DataError::SetNotThere { set, file }) };
    }
    let name = path.to_str().unwrap_or_default();
    let looks_like_a_name = !name.contains(['.', '/', '\\']) && name != "-";
    if looks_like_a_name && !path.exists() {
        let nearest = Catalogue::built_in().nearest(name).map(|set| set.name.clone());
        return Err(DataError::UnknownName { name: name.to_string(), nearest });
    }
    Ok(if name == "-" { Input::Stdin } else { Input::File(path.to_path_buf()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_input_and_a_path_a_file() {
        let folder = Path::new("datasets");
        assert!(matches!(input(Path::new("-"), folder), Ok(Input::Stdin)));
        assert!(matches!(input(Path::new("./-"), folder), Ok(Input::File(_))));
    }
}
