//! The options of every command that reads rows, and what is said about reading them.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::console::Console;
use super::files::StopFlag;
use super::{usage, usage_error, wording};
use crate::data::{
    BadCells, BadRows, Block, Catalogue, Circular, ColumnNames, DataError, DataSet, FileShards, Missing,
    MissingCounts, ReadOptions, RowReader,
};
use crate::learn::RowWeights;

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub(super) struct DataArgs {
    /// CSV (also .gz), .npy, Parquet or Arrow file to read, '-' for standard input, or the name of a set in the catalogue; repeatable
    ///
    /// Several files are read one after the other as one stream. A pattern such as 'part-*.csv' means all files that it matches, in the order of their names. The format is detected, and so are the delimiter and the header of CSV. Columns of words are left out. A .npy array in Fortran order and a Parquet file cannot come from a pipe. 'gmm-bmm datasets' lists the catalogue.
    #[arg(long, required = true, value_name = "FILE|NAME")]
    pub data: Vec<PathBuf>,

    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub(super) struct ReadingArgs {
    /// Byte between cells, such as ',' or 'tab' [default: detected]
    #[arg(long, hide_short_help = true, value_name = "BYTE", value_parser = parse_delimiter)]
    delimiter: Option<u8>,

    /// The first line is data, not a header
    #[arg(long, hide_short_help = true)]
    no_header: bool,

    /// Columns to use, by name, number or range ('Length,3,5-8') [default: all that hold numbers]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    columns: Vec<String>,

    /// Columns to leave out, in the same terms
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    drop: Vec<String>,

    /// Column that holds the weight of each row, by name or number
    ///
    /// A row of weight 3 counts as three rows. The column is not learned. A weight is 0 or above and need not be whole; a row of weight 0 counts as if it were not there. A K that is learned follows from the number of different rows, whatever they weigh. A half-life counts weights. Weights that only say how rows compare should have a mean of about 1, because a total weight below the number of rows counts as fewer rows.
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,

    /// What to do with a row that has a cell that is not a number
    ///
    /// A missing value is not a bad cell: --missing is for those.
    #[arg(long, hide_short_help = true, value_enum, default_value_t = BadRows::Refuse, value_name = "HOW")]
    bad_rows: BadRows,

    /// What to do with a cell that is not a number: 'refuse' makes its row a bad row, 'missing' reads it as a missing value
    ///
    /// With 'missing', the other values of the row count as --missing says, and the cells are counted. A row with too few or too many cells is still a bad row.
    #[arg(long, hide_short_help = true, value_enum, default_value_t = BadCells::Refuse, value_name = "HOW")]
    bad_cells: BadCells,

    /// Values that mean a missing value, such as -999,NULL, besides the usual words; --missing says what to do about them
    ///
    /// A number means that value however it is written: -999 is -999.0 too. Upper and lower case are the same.
    #[arg(
        long,
        value_delimiter = ',',
        hide_short_help = true,
        allow_hyphen_values = true,
        value_name = "LIST"
    )]
    na: Vec<String>,

    /// Columns whose ends meet, such as '--circular 0..360 wind': the model learns their cosine and sine; repeatable
    ///
    /// The columns are chosen by name, number or range. In the model, 'wind' is two columns, 'wind.cos' and 'wind.sin'. The model file remembers it, so 'eval', 'predict', 'impute' and --resume read the same data without this option. A value out of the range is a bad cell.
    #[arg(long, hide_short_help = true, num_args = 2, allow_hyphen_values = true, value_names = ["LOW..HIGH", "LIST"])]
    circular: Vec<String>,

    /// What to do about missing values: empty cells, 'NA', 'NaN'
    ///
    /// The words 'N/A', '#N/A', 'null', 'none', '?', '-' and '.' mean a missing value too, in upper or lower case. 'marginal' uses every value that is there: a row with gaps counts by its other columns. 'skip' loses those values, and the rows that are left may differ from the others, so that the model describes other rows than you have. The counts for each column are printed at the end.
    #[arg(long, value_enum, default_value_t = Missing::Refuse, value_name = "HOW")]
    missing: Missing,

    /// Skip the first N rows
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 0)]
    pub skip: u64,

    /// Stop after N rows
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit: Option<u64>,

    /// Shuffle the rows in a buffer of N rows, held in memory: for files sorted by class or time; the larger the better
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shuffle_buffer: Option<u32>,

    /// Folder with the files of the catalogue's sets
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DIR",
        default_value = "datasets",
        env = "GMM_BMM_DATASETS"
    )]
    datasets: PathBuf,
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match (text, text.as_bytes()) {
        ("tab" | "\\t", _) => Ok(b'\t'),
        ("space", _) => Ok(b' '),
        (_, [byte]) => Ok(*byte),
        _ => Err("give one character, 'tab' or 'space'".into()),
    }
}

impl DataArgs {
    /// Opens the data; `expected` are the columns of a model that the rows must have.
    pub fn open(
        &self,
        seed: u64,
        expected: Option<ColumnNames>,
        console: &Console,
    ) -> anyhow::Result<RowReader> {
        self.reading.open(&self.data, seed, expected, console)
    }

    /// The same with other options of the library.
    pub fn open_with(
        &self,
        seed: u64,
        expected: Option<ColumnNames>,
        console: &Console,
        adapt: impl FnOnce(ReadOptions) -> ReadOptions,
    ) -> anyhow::Result<RowReader> {
        opened(adapt(self.reading.options(seed, expected)?).open(&self.data), console)
    }

    /// The files that are read.
    pub fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        self.reading.files(&self.data)
    }

    /// Deals the files to shards that are read separately.
    pub fn deal(&self, shards: usize) -> anyhow::Result<FileShards> {
        self.reading.options(0, None)?.deal(&self.data, shards).map_err(refused)
    }

    /// Opens one shard.
    pub fn open_shard(
        &self,
        shards: &FileShards,
        shard: usize,
        seed: u64,
        console: &Console,
    ) -> anyhow::Result<RowReader> {
        opened(self.reading.options(seed, None)?.open_shard(shards, shard), console)
    }
}

impl ReadingArgs {
    /// Opens data; `expected` are the columns of a model that the rows must have.
    pub fn open(
        &self,
        data: &[PathBuf],
        seed: u64,
        expected: Option<ColumnNames>,
        console: &Console,
    ) -> anyhow::Result<RowReader> {
        opened(self.options(seed, expected)?.open(data), console)
    }

    /// Opens one input, of which the texts of the rows are kept and missing values are accepted.
    pub fn open_with_text(
        &self,
        data: &Path,
        expected: ColumnNames,
        console: &Console,
    ) -> anyhow::Result<RowReader> {
        let options = self.options(0, Some(expected))?.missing(Missing::Marginal).keep_text();
        opened(options.open(&[data]), console)
    }

    /// Test rows, if there are any: read in the same way, but all of them and in order.
    pub fn read_test(
        &self,
        file: Option<&PathBuf>,
        seed: u64,
        expected: ColumnNames,
        console: &Console,
    ) -> anyhow::Result<Option<Block>> {
        let Some(file) = file else { return Ok(None) };
        let whole = ReadingArgs { skip: 0, limit: None, shuffle_buffer: None, ..self.clone() };
        let mut rows = whole.open(std::slice::from_ref(file), seed, Some(expected), console)?;
        let all = rows.read_all()?;
        tell_end(&mut rows, console);
        Ok(Some(all))
    }

    /// The column of the weights of rows, if they have any.
    pub fn weight_column(&self) -> Option<&String> {
        self.weight.as_ref()
    }

    /// Says if a model was learned with weights and these rows have none.
    pub fn note_weights(&self, learned: Option<&RowWeights>, rows: &RowReader, console: &Console) {
        let Some(learned) = learned.filter(|_| self.weight.is_none()) else { return };
        let column = learned.column.as_ref();
        let of_column = column.map_or(String::new(), |column| format!(" of column '{column}'"));
        let known = column.filter(|column| rows.has_column(column));
        let option =
            known.map_or(String::new(), |column| format!(" (--weight {column} uses them here, too)"));
        console.note(&format!(
            "the model was learned from rows with the weights{of_column}, and here each row counts once{option}"
        ));
    }

    /// The same before these rows are learned. An error if the weights are in the data.
    pub fn check_weights(
        &self,
        learned: Option<&RowWeights>,
        rows: &RowReader,
        console: &Console,
    ) -> anyhow::Result<()> {
        let column = learned.and_then(|learned| learned.column.as_ref()).filter(|_| self.weight.is_none());
        if let Some(column) = column.filter(|column| rows.has_column(column) && !self.drop.contains(column)) {
            return Err(usage(format!(
                "the model was learned with the weights of column '{column}', which these rows have, too: use --weight \
                 {column}, or count each row once with --drop {column}"
            )));
        }
        self.note_weights(learned, rows, console);
        Ok(())
    }

    /// An error if rows are to have weights, which this command has no use for.
    pub fn refuse_weights(&self) -> anyhow::Result<()> {
        match self.weight {
            Some(_) => {
                Err(usage("--weight is for commands that learn or average: 'fit', 'eval' and 'compare'"))
            }
            None => Ok(()),
        }
    }

    /// Whether rows are shuffled.
    pub fn shuffles(&self) -> bool {
        self.shuffle_buffer.is_some()
    }

    /// Whether bad rows are skipped.
    pub fn skips_bad_rows(&self) -> bool {
        self.bad_rows == BadRows::Skip
    }

    /// Whether missing values are read as such.
    pub fn takes_gaps(&self) -> bool {
        self.missing == Missing::Marginal
    }

    /// Whether rows are skipped or limited.
    pub fn picks_rows(&self) -> bool {
        self.limit.is_some() || self.skip > 0
    }

    /// The files that arguments stand for: patterns are expanded, and sets of the catalogue are replaced by their files.
    pub fn files(&self, data: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        self.options(0, None)?.files(data).map_err(refused)
    }

    /// The set of the catalogue that `path` names, if its file is not there.
    pub fn missing_set(&self, path: &Path) -> Option<&'static DataSet> {
        Catalogue::set_named_by(path).filter(|set| !set.path_in(&self.datasets).exists())
    }

    /// The options of the library; the seed is used for shuffling only.
    fn options(&self, seed: u64, expected: Option<ColumnNames>) -> anyhow::Result<ReadOptions> {
        let options = ReadOptions::default()
            .delimiter(self.delimiter)
            .has_header(self.no_header.then_some(false))
            .columns(&self.columns)
            .drop(&self.drop)
            .weight(self.weight.clone())
            .bad_rows(self.bad_rows)
            .bad_cells(self.bad_cells)
            .missing(self.missing)
            .missing_marks(&self.na)
            .circular(self.circular()?)
            .skip(self.skip)
            .limit(self.limit)
            .expected(expected)
            .datasets(&self.datasets);
        Ok(match self.shuffle_buffer {
            Some(slots) => options.shuffle(slots as usize, seed),
            None => options,
        })
    }

    /// The circular columns, from pairs of a range and a list.
    fn circular(&self) -> anyhow::Result<Vec<Circular>> {
        let mut all = Vec::new();
        for pair in self.circular.chunks(2) {
            let ends = pair[0].split_once("..").map(|(low, high)| (low.parse(), high.parse()));
            for column in pair[1].split(',') {
                let Some((Ok(low), Ok(high))) = ends.clone() else { return Err(no_range(&pair[0])) };
                all.push(Circular::new(column, low, high).ok_or_else(|| no_range(&pair[0]))?);
            }
        }
        Ok(all)
    }
}

fn no_range(text: &str) -> anyhow::Error {
    usage(format!("--circular needs the two ends of a range first, such as '0..360 wind', not '{text}'"))
}

/// The missing values of the rows that were read, for the result of a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MissingResult {
    #[serde(flatten)]
    pub counts: MissingCounts,
    /// Rows that were skipped because values are missing.
    pub rows_left_out: u64,
    /// Bad cells that were read as missing values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_cells: Option<u64>,
}

impl MissingResult {
    /// `None` if no value is missing.
    pub fn of(rows: &RowReader) -> Option<MissingResult> {
        MissingResult::of_part(rows).if_any()
    }

    /// The missing values of a part of the rows.
    pub fn of_part(rows: &RowReader) -> MissingResult {
        let bad_cells = Some(rows.bad_cells()).filter(|cells| *cells > 0);
        MissingResult { counts: rows.missing().clone(), rows_left_out: rows.rows_left_out(), bad_cells }
    }

    /// The missing values of both.
    pub fn with(mut self, other: &MissingResult) -> MissingResult {
        self.counts.add(&other.counts);
        self.rows_left_out += other.rows_left_out;
        let bad_cells = self.bad_cells.unwrap_or(0) + other.bad_cells.unwrap_or(0);
        self.bad_cells = Some(bad_cells).filter(|cells| *cells > 0);
        self
    }

    pub fn if_any(self) -> Option<MissingResult> {
        self.counts.is_any().then_some(self)
    }

    pub fn tell(&self, console: &Console) {
        console.note(&wording::missing_values(&self.counts, self.rows_left_out));
    }
}

fn opened(rows: Result<RowReader, DataError>, console: &Console) -> anyhow::Result<RowReader> {
    let mut rows = rows.map_err(refused)?;
    tell_notices(&mut rows, console);
    Ok(rows)
}

/// Rows read at a time.
const ROWS_AT_A_TIME: usize = 4096;

/// Passes all rows on, block by block, each with the number of rows of the data before it. Then says what was found in them.
pub(super) fn each_block(
    rows: &mut RowReader,
    stop: StopFlag,
    console: &Console,
    mut take: impl FnMut(&mut Block, &RowReader, u64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let bar = console.progress(rows.total_bytes());
    let mut block = Block::new(rows.columns().len());
    loop {
        let before = rows.rows_read() + rows.rows_skipped() + rows.rows_left_out();
        let read = rows.read_block(&mut block, ROWS_AT_A_TIME);
        // What writes to a pipe may end with this process, in the middle of a line.
        stop.check()?;
        if !read? {
            break;
        }
        take(&mut block, rows, before)?;
        bar.set_position(rows.bytes_read());
        bar.set_message(format!("{} rows", rows.rows_read()));
    }
    bar.finish_and_clear();
    tell_end(rows, console);
    Ok(())
}

/// Prints the notices that are left, the missing values, and a warning of skipped rows, once all rows are read.
pub(super) fn tell_end(rows: &mut RowReader, console: &Console) {
    tell_notices(rows, console);
    if let Some(first) = rows.first_skipped() {
        console.warn(&wording::skipped_rows(rows.rows_skipped(), &first.to_string()));
    }
    if let Some(first) = rows.first_bad_cell() {
        console.warn(&wording::bad_cells(rows.bad_cells(), &first.to_string()));
    }
    if let Some(missing) = MissingResult::of(rows) {
        missing.tell(console);
    }
}

fn tell_notices(rows: &mut RowReader, console: &Console) {
    rows.take_notices().iter().for_each(|notice| console.note(&wording::notice(notice)));
}

/// A malformed pattern is a mistake in how the command was called.
fn refused(error: DataError) -> anyhow::Error {
    match error {
        DataError::BadPattern { .. } => usage_error(error),
        _ => error.into(),
    }
}
