use std::path::{Path, PathBuf};

use super::circular::Circular;
use super::column_names::ColumnNames;
use super::error::DataError;
use super::input::Input;
use super::resolve::{files, resolve};
use super::row_reader::RowReader;
use super::shards::FileShards;

/// How to read rows of numbers from delimited text, arrays and tables. The default detects all it can, reads every row in order and refuses
/// bad rows and missing values.
///
/// ```no_run
/// use gmm_bmm::data::ReadOptions;
///
/// let mut rows = ReadOptions::default().columns(["Length", "5-8"]).limit(1000).open(&["abalone.csv"])?;
/// let all = rows.read_all()?;
/// assert_eq!(all.columns(), rows.columns().len());
/// # Ok::<(), gmm_bmm::data::DataError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    pub(super) delimiter: Option<u8>,
    pub(super) has_header: Option<bool>,
    pub(super) columns: Vec<String>,
    pub(super) drop: Vec<String>,
    pub(super) weight: Option<String>,
    pub(super) bad_rows: BadRows,
    pub(super) bad_cells: BadCells,
    pub(super) missing: Missing,
    pub(super) missing_marks: Vec<String>,
    pub(super) circular: Vec<Circular>,
    pub(super) skip: u64,
    pub(super) limit: Option<u64>,
    pub(super) expected: Option<ColumnNames>,
    pub(super) keep_text: bool,
    pub(super) csv_crate_only: bool,
    pub(super) keep: Vec<String>,
    pub(super) list_skipped_rows: bool,
    pub(super) prompt: bool,
    pub(super) follow: bool,
    /// Rows in the shuffle buffer, and the seed.
    pub(super) shuffle: Option<(usize, u64)>,
    datasets: PathBuf,
}

/// What to do about a row with a cell that is neither a finite number nor missing, or with too few or too many fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadRows {
    /// Stop with an error that says where it is
    #[default]
    Refuse,
    /// Skip it and count it
    Skip,
}

/// What to do about a cell that is neither a finite number nor missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum BadCells {
    /// Its row is a bad row
    #[default]
    Refuse,
    /// Read it as a missing value and count it
    Missing,
}

/// What to do about missing values. A cell is missing if it is empty, or if it is `NA`, `NaN`, `N/A`, `#N/A`, `null`, `none`, `?`,
/// `-` or `.`, in upper or lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Missing {
    /// Stop with an error that counts them
    #[default]
    Refuse,
    /// Skip rows with missing values and count them
    Skip,
    /// Use the values that a row has
    ///
    /// A missing value is NaN in the rows.
    Marginal,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions {
            delimiter: None,
            has_header: None,
            columns: Vec::new(),
            drop: Vec::new(),
            weight: None,
            bad_rows: BadRows::default(),
            bad_cells: BadCells::default(),
            missing: Missing::default(),
            missing_marks: Vec::new(),
            circular: Vec::new(),
            skip: 0,
            limit: None,
            expected: None,
            keep_text: false,
            csv_crate_only: false,
            keep: Vec::new(),
            list_skipped_rows: false,
            prompt: false,
            follow: false,
            shuffle: None,
            datasets: "datasets".into(),
        }
    }
}

impl ReadOptions {
    /// Sets the byte between cells; a blank means any run of blanks and tabs. Without it, or with `None`, the
    /// delimiter of each input is detected.
    pub fn delimiter(mut self, delimiter: impl Into<Option<u8>>) -> Self {
        self.delimiter = delimiter.into();
        self
    }

    /// Sets whether the first line names the columns. Without it, or with `None`, that is detected.
    pub fn has_header(mut self, has_header: impl Into<Option<bool>>) -> Self {
        self.has_header = has_header.into();
        self
    }

    /// Chooses the columns to read, in this order: names, numbers from 1 (`3`) or ranges of numbers (`2-5`). A name wins over
    /// a number. Without it, or if it is empty, all columns that hold numbers are read. If [`expected`](Self::expected) has
    /// the same names, its order is used.
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves out columns, in the same terms.
    pub fn drop(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.drop = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the column that holds the weight of each row, in the same terms: a row of weight `w` counts as `w` rows. It is not one
    /// of the columns of a row; [`Block::weights`](super::Block::weights) has the weights.
    pub fn weight(mut self, column: impl Into<Option<String>>) -> Self {
        self.weight = column.into();
        self
    }

    /// Sets what to do about rows that cannot be used.
    pub fn bad_rows(mut self, bad_rows: BadRows) -> Self {
        self.bad_rows = bad_rows;
        self
    }

    /// Sets what to do about cells that hold no number, in rows of the right width.
    pub fn bad_cells(mut self, bad_cells: BadCells) -> Self {
        self.bad_cells = bad_cells;
        self
    }

    /// Sets further marks of missing values: words, in upper or lower case, and numbers such as `-999`, however they are written.
    pub fn missing_marks(mut self, marks: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.missing_marks = marks.into_iter().map(Into::into).collect();
        self
    }

    /// Sets circular columns, chosen in the terms of [`columns`](Self::columns). If columns are [expected](Self::expected), their
    /// circular columns are known, and these must be the same.
    pub fn circular(mut self, columns: impl IntoIterator<Item = Circular>) -> Self {
        self.circular = columns.into_iter().collect();
        self
    }

    /// Sets what to do about missing values.
    pub fn missing(mut self, missing: Missing) -> Self {
        self.missing = missing;
        self
    }

    /// Leaves out the first `rows` good rows.
    pub fn skip(mut self, rows: u64) -> Self {
        self.skip = rows;
        self
    }

    /// Stops after `rows` good rows, not counting those left out by [`skip`](Self::skip).
    pub fn limit(mut self, rows: impl Into<Option<u64>>) -> Self {
        self.limit = rows.into();
        self
    }

    /// Shuffles the rows in a buffer of `slots` rows, which is held in memory. The order follows from the seed. With as many
    /// slots as there are rows this is a full shuffle; one slot leaves the order as it is.
    ///
    /// # Panics
    /// Opening panics if there are no slots.
    pub fn shuffle(mut self, slots: usize, seed: u64) -> Self {
        self.shuffle = Some((slots, seed));
        self
    }

    /// Sets the columns that the data must have, such as those that a model was learned from. They are found by name where
    /// both sides have names, and by position otherwise. A [`Notice`](super::Notice) lists chosen columns that have other
    /// names than these.
    pub fn expected(mut self, columns: impl Into<Option<ColumnNames>>) -> Self {
        self.expected = columns.into();
        self
    }

    /// Keeps the text of each row, so that it can be written again with its missing values filled in:
    /// [`RowReader::texts`](super::RowReader::texts). This is for one input, whose rows are not shuffled.
    pub fn keep_text(mut self) -> Self {
        self.keep_text = true;
        self
    }

    /// Keeps the text of these columns for each row, in the terms of [`columns`](Self::columns). They need not hold numbers.
    /// [`RowReader::kept_cells`] returns them.
    pub fn keep(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.keep = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Lists each row that is skipped ([`RowReader::listed_rows`]).
    pub fn list_skipped_rows(mut self) -> Self {
        self.list_skipped_rows = true;
        self
    }

    /// Returns a block as soon as there is a row, even if more rows may follow.
    pub fn prompt(mut self) -> Self {
        self.prompt = true;
        self
    }

    /// Reads rows while they are written. A block is returned as soon as there is a row, the first lines are enough to know
    /// the [`expected`](Self::expected) columns, each line is a row of its own, and the end of a regular file is not the end
    /// of the rows: the reader waits for more. Other inputs end as usual.
    pub fn follow(mut self) -> Self {
        (self.prompt, self.follow) = (true, true);
        self
    }

    /// Sets the folder in which the files of the catalogue's sets are; `datasets` without it.
    pub fn datasets(mut self, folder: impl Into<PathBuf>) -> Self {
        self.datasets = folder.into();
        self
    }

    /// Makes the csv crate read every row, without the fast path for plain lines. Rows and errors are the same, which tests
    /// check.
    #[doc(hidden)]
    pub fn csv_crate_only(mut self) -> Self {
        self.csv_crate_only = true;
        self
    }

    /// Opens data and reads them one after the other as one stream: files (also compressed with gzip), patterns such as
    /// `part-*.csv`, names of sets in the [`Catalogue`](super::Catalogue), and `-` for standard input.
    ///
    /// A single set of the catalogue is read with the columns that the catalogue lists, unless others are chosen or expected.
    pub fn open(&self, data: &[impl AsRef<Path>]) -> Result<RowReader, DataError> {
        let (inputs, columns) = resolve(data, &self.datasets)?;
        self.with_columns_of_set(columns).open_inputs(inputs)
    }

    /// Opens inputs and reads them one after the other as one stream. The first determines the columns; the others are
    /// checked to exist.
    pub fn open_inputs(&self, inputs: Vec<Input>) -> Result<RowReader, DataError> {
        RowReader::open(inputs, self.clone())
    }

    /// The files that data stand for: patterns are expanded, and sets of the catalogue are replaced by their files.
    pub fn files(&self, data: &[impl AsRef<Path>]) -> Result<Vec<PathBuf>, DataError> {
        files(data, &self.datasets)
    }

    /// Deals files to shards that are read separately: whole files if there are at least as many as shards, and otherwise
    /// byte ranges of about equal size that begin and end where a row does.
    ///
    /// # Panics
    /// If there are no shards.
    pub fn deal(&self, data: &[impl AsRef<Path>], shards: usize) -> Result<FileShards, DataError> {
        let (inputs, columns) = resolve(data, &self.datasets)?;
        FileShards::deal(inputs, self.with_columns_of_set(columns).columns, shards)
    }

    /// Opens one of the shards that these options have dealt, in this process or another. [`skip`](Self::skip) and
    /// [`limit`](Self::limit) do not apply to shards.
    ///
    /// # Panics
    /// If there is no such shard.
    pub fn open_shard(&self, shards: &FileShards, shard: usize) -> Result<RowReader, DataError> {
        let whole = ReadOptions { skip: 0, limit: None, columns: shards.columns.clone(), ..self.clone() };
        RowReader::open_shard(shards, shard, whole)
    }

    /// These options with the columns of a set of the catalogue, unless columns are chosen or expected.
    fn with_columns_of_set(&self, columns: Option<&[String]>) -> ReadOptions {
        let mut options = self.clone();
        if let Some(columns) = columns.filter(|_| self.columns.is_empty() && self.expected.is_none()) {
            options.columns = columns.to_vec();
        }
        options
    }
}
