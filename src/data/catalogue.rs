//! The catalogue of data sets: their names, files, columns and sources.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::did_you_mean::did_you_mean;

pub(crate) const TEXT: &str = include_str!("../../datasets/catalogue.json");

/// The data sets that are known by name.
///
/// ```
/// use gmm_bmm::data::Catalogue;
///
/// let abalone = Catalogue::built_in().find("Abalone").unwrap();
/// assert_eq!((abalone.rows, abalone.columns.len()), (4177, 8));
/// assert_eq!(abalone.path_in("datasets".as_ref()), std::path::Path::new("datasets/abalone.csv"));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    format: String,
    version: u32,
    sets: Vec<DataSet>,
}

/// One data set of the catalogue. What publications report about it is not read here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataSet {
    /// The name by which it is opened.
    pub name: String,
    /// The name in tables.
    pub title: String,
    /// Rows according to the paper.
    pub rows: u64,
    /// How many of them hold no measurement. The file does not contain these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows_left_out: u64,
    /// The columns that the paper uses, by their names in the header; empty if they are not known.
    pub columns: Vec<String>,
    /// How many columns the paper uses, if that is known.
    pub dimensions: Option<usize>,
    /// The file's name in the folder of data sets.
    pub file: String,
    /// Whether the file comes with the source code.
    pub bundled: bool,
    /// The file's checksum, if it is known.
    pub sha256: Option<String>,
    /// The licence of the data.
    pub licence: String,
    /// What to cite.
    pub citation: String,
    /// Where to get it, best first; empty if no public copy is known.
    pub sources: Vec<Source>,
    /// What a user should know about it.
    pub notes: String,
    /// Whether some columns have few distinct values, so that the likelihood of a mixture is unbounded.
    pub discrete: bool,
}

/// A place from which to get a data set.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Source {
    /// A web page.
    Url { at: String },
    /// A file in a package of the Python package index.
    Package { package: String, version: String, path: String },
}

/// Where to get the file of a data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// It comes with the source code.
    Bundled,
    /// It can be fetched from a public source.
    Public,
    /// No public copy is known.
    NotPublic,
}

impl Catalogue {
    /// The catalogue of this version.
    pub fn built_in() -> &'static Catalogue {
        static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();
        CATALOGUE.get_or_init(|| {
            serde_json::from_str(TEXT).expect("a test checks that the built-in catalogue parses")
        })
    }

    /// The set of that name, in upper or lower case.
    pub fn find(&self, name: &str) -> Option<&DataSet> {
        self.sets.iter().find(|set| set.name.eq_ignore_ascii_case(name))
    }

    /// The set of the built-in catalogue that a path names. A file of that name takes precedence.
    pub fn set_named_by(path: &Path) -> Option<&'static DataSet> {
        Catalogue::built_in().find(path.to_str()?).filter(|_| !path.exists())
    }

    /// The set with the most similar name, if one is similar enough to be meant.
    pub fn nearest(&self, name: &str) -> Option<&DataSet> {
        self.find(did_you_mean(name, self.sets.iter().map(|set| set.name.as_str()))?)
    }

    /// All sets.
    pub fn sets(&self) -> &[DataSet] {
        &self.sets
    }
}

impl DataSet {
    /// The path of its file in a folder of data sets.
    pub fn path_in(&self, folder: &Path) -> PathBuf {
        folder.join(&self.file)
    }

    /// Rows in its file.
    pub fn file_rows(&self) -> u64 {
        self.rows.saturating_sub(self.rows_left_out)
    }

    /// How many columns it has, if that is known.
    pub fn width(&self) -> Option<usize> {
        self.dimensions.or((!self.columns.is_empty()).then_some(self.columns.len()))
    }

    /// Whether rows with these columns can be those of its file: the same columns in any order, if they are known, and as many
    /// rows.
    pub fn has(&self, columns: &[String], rows: u64) -> bool {
        let same_columns =
            columns.len() == self.columns.len() && self.columns.iter().all(|column| columns.contains(column));
        (self.columns.is_empty() || same_columns) && rows == self.file_rows()
    }

    /// Where to get its file.
    pub fn availability(&self) -> Availability {
        match (self.bundled, self.sources.is_empty()) {
            (true, _) => Availability::Bundled,
            (false, false) => Availability::Public,
            (false, true) => Availability::NotPublic,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_parses_and_is_consistent() {
        let catalogue: Catalogue = serde_json::from_str(TEXT).unwrap();
        assert_eq!((catalogue.format.as_str(), catalogue.version), ("gmm-bmm catalogue", 1));
        assert_eq!(catalogue.sets().len(), 21);
        for set in catalogue.sets() {
            assert_eq!(set.name, set.name.to_lowercase());
            assert_eq!(set.file, format!("{}.csv", set.name));
            assert!(set.rows > 0 && !set.licence.is_empty() && !set.citation.is_empty());
            assert!(set.columns.is_empty() || set.dimensions == Some(set.columns.len()), "{}", set.name);
            assert!(set.sha256.as_ref().is_none_or(|sum| sum.len() == 64));
        }
    }

    #[test]
    fn sets_are_found_in_any_case() {
        let found = Catalogue::built_in().find("YearMSD").unwrap();
        assert_eq!((found.name.as_str(), found.width()), ("yearmsd", Some(91)));
        assert_eq!(Catalogue::built_in().find("miniboone").unwrap().file_rows(), 129_596);
        assert!(Catalogue::built_in().find("iris").is_none());
    }

    #[test]
    fn a_set_is_known_by_its_columns_and_rows() {
        let set = Catalogue::built_in().find("banknote").unwrap();
        let mut columns = set.columns.clone();
        assert!(set.has(&columns, 1372) && !set.has(&columns, 1371));
        columns.reverse();
        assert!(set.has(&columns, 1372));
        columns[0] = "p".into();
        assert!(!set.has(&columns, 1372) && !set.has(&columns[1..], 1372));
    }

    #[test]
    fn each_set_says_where_its_file_is_to_be_had() {
        let of = |name: &str| Catalogue::built_in().find(name).unwrap().availability();
        assert_eq!(of("abalone"), Availability::Bundled);
        assert_eq!(of("plastic"), Availability::Public);
        assert_eq!(of("northridge"), Availability::NotPublic);
    }
}
