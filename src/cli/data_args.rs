//! The options by which every command that reads rows is told where they are and what to make of them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::console::Console;
use super::rows::Rows;
use super::{usage, wording};
use crate::data::{
    BadRows, Block, Catalogue, ColumnNames, CsvOptions, CsvStream, DataError, DataSet, Input, Piece, deal,
};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Data")]
pub(super) struct DataArgs {
    /// CSV file to read (also .gz), '-' for standard input, or the name of a set in the catalogue; repeatable
    ///
    /// Several files are read one after the other as one stream; a pattern such as 'part-*.csv' stands for the files that it matches, in the order of their names. Delimiter and header are detected. Columns of words are left out. 'gmm-bmm datasets' lists the catalogue.
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

    /// What to do about a row with a cell that is not a number
    #[arg(long, value_enum, default_value_t = BadRowsArg::Refuse, value_name = "HOW")]
    bad_rows: BadRowsArg,

    /// Leave out so many first rows
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 0)]
    pub skip: u64,

    /// Stop after so many rows
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit: Option<u64>,

    /// Shuffle the rows within a buffer of so many, held in memory: for files sorted by class or time, as large as it can be
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    shuffle_buffer: Option<u32>,

    /// Folder of the catalogue's sets
    #[arg(
        long,
        hide_short_help = true,
        value_name = "DIR",
        default_value = "datasets",
        env = "GMM_BMM_DATASETS"
    )]
    datasets: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BadRowsArg {
    /// Stop and say where it is
    Refuse,
    /// Leave it out and count it
    Skip,
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
    /// Opens the data; `expected` are the columns of a model that the rows have to fit.
    pub fn open(&self, seed: u64, expected: Option<ColumnNames>, console: &Console) -> anyhow::Result<Rows> {
        self.reading.open(&self.data, seed, expected, console)
    }

    /// The files that are read.
    pub fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        self.reading.files(&self.data)
    }

    /// Deals the files to parts that are read apart.
    pub fn deal(&self, parts: usize) -> anyhow::Result<Dealt> {
        let mut options = self.reading.options(None);
        let inputs = self.reading.inputs(&self.data, &mut options)?;
        let files = inputs.into_iter().map(|input| match input {
            Input::File(path) => Ok(path),
            other => Err(DataError::NotDealt { file: other.name() }),
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        Ok(Dealt { first: files[0].clone(), columns: options.columns, parts: deal(&files, parts)? })
    }

    /// Opens one part.
    pub fn open_part(
        &self,
        dealt: &Dealt,
        part: usize,
        seed: u64,
        console: &Console,
    ) -> anyhow::Result<Rows> {
        let options = CsvOptions { columns: dealt.columns.clone(), ..self.reading.options(None) };
        let stream = CsvStream::open_share(Input::File(dealt.first.clone()), &dealt.parts[part], options)?;
        Ok(self.reading.rows(stream, seed, console))
    }
}

/// Files dealt to parts, for any process to open.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dealt {
    /// The file that settles the columns.
    first: PathBuf,
    columns: Vec<String>,
    parts: Vec<Vec<Piece>>,
}

impl Dealt {
    pub fn bytes_of(&self, part: usize) -> u64 {
        self.parts[part].iter().map(|piece| piece.bytes).sum()
    }

    pub fn total_bytes(&self) -> u64 {
        (0..self.parts.len()).map(|part| self.bytes_of(part)).sum()
    }
}

/// Reads past some first rows.
fn leave_out(stream: &mut CsvStream, mut rows: u64) -> Result<(), DataError> {
    let mut block = Block::new(stream.columns().len());
    while rows > 0 && stream.read_block(&mut block, rows.min(4096) as usize)? {
        rows -= block.rows() as u64;
    }
    Ok(())
}

/// The set of the catalogue that a path names. A file of that name goes before.
fn named_set(path: &Path) -> Option<&'static DataSet> {
    Catalogue::built_in().find(path.to_str()?).filter(|_| !path.exists())
}

/// Expands patterns that no shell has expanded. A file whose name looks like a pattern is that file.
fn expand(data: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::with_capacity(data.len());
    for path in data {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists());
        let Some(pattern) = pattern else {
            files.push(path.clone());
            continue;
        };
        let found =
            glob::glob(pattern).map_err(|error| usage(format!("'{pattern}' is no pattern: {error}")))?;
        let before = files.len();
        for file in found {
            files.push(file?);
        }
        anyhow::ensure!(files.len() > before, "no file matches '{pattern}': check the path");
    }
    Ok(files)
}

impl ReadingArgs {
    /// Test rows, if there are any: read in the same way, but whole and in order.
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
        rows.tell_end(console);
        Ok(Some(all))
    }

    /// Whether rows are shuffled as they come.
    pub fn shuffles(&self) -> bool {
        self.shuffle_buffer.is_some()
    }

    /// Opens data; `expected` are the columns of a model that the rows have to fit.
    pub fn open(
        &self,
        data: &[PathBuf],
        seed: u64,
        expected: Option<ColumnNames>,
        console: &Console,
    ) -> anyhow::Result<Rows> {
        let mut options = self.options(expected);
        let inputs = self.inputs(data, &mut options)?;
        // The limit is of rows that are given out; the stream counts those left out too.
        options.limit = self.limit.map(|limit| limit.saturating_add(self.skip));
        let mut stream = CsvStream::open(inputs, options)?;
        leave_out(&mut stream, self.skip)?;
        Ok(self.rows(stream, seed, console))
    }

    /// Whether only some rows are wanted, by their place.
    pub fn picks_rows(&self) -> bool {
        self.limit.is_some() || self.skip > 0
    }

    fn options(&self, expected: Option<ColumnNames>) -> CsvOptions {
        CsvOptions {
            delimiter: self.delimiter,
            has_header: self.no_header.then_some(false),
            columns: self.columns.clone(),
            drop: self.drop.clone(),
            bad_rows: match self.bad_rows {
                BadRowsArg::Refuse => BadRows::Refuse,
                BadRowsArg::Skip => BadRows::Skip,
            },
            limit: self.limit,
            expected,
        }
    }

    fn inputs(&self, data: &[PathBuf], options: &mut CsvOptions) -> anyhow::Result<Vec<Input>> {
        let data = expand(data)?;
        data.iter().map(|path| self.input(path, data.len(), options)).collect()
    }

    fn rows(&self, stream: CsvStream, seed: u64, console: &Console) -> Rows {
        let shuffle = self.shuffle_buffer.map(|slots| (slots as usize, seed));
        Rows::new(stream, shuffle, console)
    }

    /// The files that arguments stand for: patterns are expanded, and sets of the catalogue are the files that hold them.
    pub fn files(&self, data: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        let file = |path: PathBuf| named_set(&path).map_or(path, |set| set.path_in(&self.datasets));
        Ok(expand(data)?.into_iter().map(file).collect())
    }

    /// The set of the catalogue that `path` names, if its file is not there.
    pub fn missing_set(&self, path: &Path) -> Option<&'static DataSet> {
        named_set(path).filter(|set| !set.path_in(&self.datasets).exists())
    }

    /// A path, or the file of a set in the catalogue with the columns that the paper uses.
    fn input(&self, path: &Path, inputs: usize, options: &mut CsvOptions) -> anyhow::Result<Input> {
        let name = path.to_str().unwrap_or_default();
        let Some(set) = named_set(path) else {
            let looks_like_a_name = !name.contains(['.', '/', '\\']) && name != "-";
            if looks_like_a_name && !path.exists() {
                let nearest = Catalogue::built_in().nearest(name);
                let hint = nearest.map_or(String::new(), |set| format!("did you mean '{}'? ", set.name));
                anyhow::bail!(
                    "'{name}' is neither a file nor a set of the catalogue: {hint}'gmm-bmm datasets' lists those"
                );
            }
            return Ok(Input::from_argument(path));
        };
        let file = set.path_in(&self.datasets);
        if !file.exists() {
            return Err(anyhow::anyhow!(
                "'{name}' is a set of the catalogue, but '{}' does not exist: {}",
                file.display(),
                wording::how_to_get(set)
            ));
        }
        if inputs == 1 && options.columns.is_empty() && options.expected.is_none() {
            options.columns = set.columns.clone();
        }
        Ok(Input::File(file))
    }
}
