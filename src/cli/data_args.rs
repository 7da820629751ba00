//! The options by which every command that reads rows is told where they are and what to make of them.

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::UsageError;
use super::advice::warn_of_skipped;
use super::console::{Console, stdout_failed};
use crate::data::{
    BadRows, Block, Catalogue, CsvOptions, CsvStream, DataError, DataSet, ExpectedColumns, Input, Piece,
    RowSource, ShuffleBuffer, deal,
};
use crate::model::{ColumnNames, Model, OutputFile, Seal};

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
    #[arg(long, hide_short_help = true, value_delimiter = ',', value_name = "LIST")]
    drop: Vec<String>,

    /// What to do about a row with a cell that is not a number
    #[arg(long, hide_short_help = true, value_enum, default_value_t = BadRowsArg::Refuse, value_name = "HOW")]
    bad_rows: BadRowsArg,

    /// Leave out so many first rows
    #[arg(long, hide_short_help = true, value_name = "N", default_value_t = 0)]
    pub skip: u64,

    /// Stop after so many rows
    #[arg(long, hide_short_help = true, value_name = "N")]
    limit: Option<u64>,

    /// Shuffle the rows within a buffer of so many
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

/// An opened stream, with what there is to tell about it.
pub(super) struct Rows {
    source: Source,
    /// Whether the columns' names came from a header.
    pub named: bool,
    told: usize,
}

enum Source {
    Straight(Box<CsvStream>),
    Shuffled(Box<ShuffleBuffer<CsvStream>>),
}

impl DataArgs {
    /// Opens the data; `expected` are the columns of a model that the rows have to fit.
    pub fn open(
        &self,
        seed: u64,
        expected: Option<ExpectedColumns>,
        console: &Console,
    ) -> anyhow::Result<Rows> {
        self.reading.open(&self.data, seed, expected, console)
    }

    /// The files and names, patterns expanded.
    pub fn files(&self) -> anyhow::Result<Vec<PathBuf>> {
        expand(&self.data)
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
        expected: ExpectedColumns,
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
        expected: Option<ExpectedColumns>,
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

    fn options(&self, expected: Option<ExpectedColumns>) -> CsvOptions {
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
        let named = stream.named();
        let source = match self.shuffle_buffer {
            Some(slots) => Source::Shuffled(Box::new(ShuffleBuffer::new(stream, slots as usize, seed))),
            None => Source::Straight(Box::new(stream)),
        };
        let mut rows = Rows { source, named, told: 0 };
        rows.tell_notices(console);
        rows
    }

    /// The set of the catalogue that `path` names, if its file is not there.
    pub fn missing_set(&self, path: &Path) -> Option<&'static DataSet> {
        let set = Catalogue::built_in().find(path.to_str()?).filter(|_| !path.exists())?;
        (!set.path_in(&self.datasets).exists()).then_some(set)
    }

    /// A path, or the file of a set in the catalogue with the columns that the paper uses.
    fn input(&self, path: &Path, inputs: usize, options: &mut CsvOptions) -> anyhow::Result<Input> {
        let name = path.to_str().unwrap_or_default();
        let Some(set) = Catalogue::built_in().find(name).filter(|_| !path.exists()) else {
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
                set.how_to_get()
            ));
        }
        if inputs == 1 && options.columns.is_empty() && options.expected.is_none() {
            options.columns = set.columns.clone();
        }
        Ok(Input::File(file))
    }
}

impl Rows {
    fn stream(&self) -> &CsvStream {
        match &self.source {
            Source::Straight(stream) => stream,
            Source::Shuffled(shuffled) => shuffled.source(),
        }
    }

    pub fn columns(&self) -> &[String] {
        self.stream().columns()
    }

    pub fn read_block(&mut self, block: &mut Block, most: usize) -> Result<bool, DataError> {
        match &mut self.source {
            Source::Straight(stream) => stream.read_block(block, most),
            Source::Shuffled(shuffled) => shuffled.read_block(block, most),
        }
    }

    /// All rows at once.
    pub fn read_all(&mut self) -> Result<Block, DataError> {
        let mut all = Block::new(self.columns().len());
        let mut block = Block::new(self.columns().len());
        while self.read_block(&mut block, 4096)? {
            block.iter().for_each(|row| all.push(row));
        }
        Ok(all)
    }

    pub fn bytes_read(&self) -> u64 {
        self.stream().bytes_read()
    }

    /// The counter behind [`Rows::bytes_read`], to watch while another thread reads.
    pub fn byte_counter(&self) -> Arc<AtomicU64> {
        self.stream().byte_counter()
    }

    pub fn total_bytes(&self) -> Option<u64> {
        self.stream().total_bytes()
    }

    pub fn rows_skipped(&self) -> u64 {
        self.stream().rows_skipped()
    }

    /// Where the first skipped row is and what is wrong with it.
    pub fn first_skipped(&self) -> Option<String> {
        self.stream().first_skipped().map(String::from)
    }

    /// Tells what there is to tell once all rows are read.
    pub fn tell_end(&mut self, console: &Console) {
        self.tell_notices(console);
        warn_of_skipped(self.rows_skipped(), self.stream().first_skipped(), console);
    }

    fn tell_notices(&mut self, console: &Console) {
        let notices = self.stream().notices()[self.told..].to_vec();
        self.told += notices.len();
        notices.iter().for_each(|notice| console.note(notice));
    }
}

impl From<ColumnNames> for ExpectedColumns {
    fn from(ColumnNames { names, named }: ColumnNames) -> Self {
        ExpectedColumns { names, named }
    }
}

/// The numbers of components to learn, ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ks(pub Vec<usize>);

/// Parses `5`, `2..10`, which is 2 to 10 inclusive, as in the paper, or a list of such: `2,3,5..8`.
pub(super) fn parse_k(text: &str) -> Result<Ks, String> {
    let mut ks = Vec::new();
    for part in text.split(',') {
        ks.extend(parse_k_range(part)?);
    }
    ks.sort_unstable();
    ks.dedup();
    Ok(Ks(ks))
}

fn parse_k_range(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| match text.trim().parse::<usize>() {
        Ok(0) => Err("K must be at least 1".to_string()),
        Ok(k) if k > MOST_COMPONENTS => Err(format!("K must be at most {MOST_COMPONENTS}")),
        Ok(k) => Ok(k),
        Err(_) => Err("give a number, a range such as 2..10, or a list such as 2,3,5".to_string()),
    };
    let Some((low, high)) = text.split_once("..") else { return number(text).map(|k| k..=k) };
    let (low, high) = (number(low)?, number(high.trim_start_matches('='))?);
    if low > high {
        return Err(format!("the range ends before it begins: write {high}..{low}"));
    }
    Ok(low..=high)
}

const MOST_COMPONENTS: usize = 10_000;

/// Reads and checks a model file.
pub(super) fn read_model(path: &Path) -> anyhow::Result<Model> {
    read_sealed_model(path).map(|(model, _)| model)
}

/// The same, and whether there was a checksum to check it by.
pub(super) fn read_sealed_model(path: &Path) -> anyhow::Result<(Model, Seal)> {
    let describe = || format!("model file '{}'", path.display());
    if path == Path::new("-") {
        return Model::read_sealed(std::io::stdin().lock()).context("model from standard input");
    }
    let file = match std::fs::File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            anyhow::bail!("there is no file '{}': a model file is made by 'gmm-bmm fit'", path.display())
        }
        opened => opened.with_context(describe)?,
    };
    Model::read_sealed(std::io::BufReader::new(file)).with_context(describe)
}

/// Opens an output file before any work is done.
pub(super) fn create_output(path: &Path) -> anyhow::Result<OutputFile> {
    Ok(OutputFile::create(path)?)
}

/// The model's place, opened before any work is done.
pub(super) enum ModelOutput {
    Stdout,
    File(Box<OutputFile>),
}

impl ModelOutput {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(ModelOutput::Stdout);
        }
        Ok(ModelOutput::File(Box::new(create_output(path)?)))
    }

    pub fn write(self, model: &Model) -> anyhow::Result<()> {
        match self {
            ModelOutput::Stdout => {
                let mut out = std::io::stdout().lock();
                model.write(&mut out).and_then(|()| out.flush()).map_err(stdout_failed)?;
            }
            ModelOutput::File(mut file) => {
                model.write(&mut *file).and_then(|()| file.commit())?;
            }
        }
        Ok(())
    }
}

/// Refuses a model and data that both come from standard input.
pub(super) fn refuse_sharing_stdin(model: &Path, data: &[PathBuf]) -> anyhow::Result<()> {
    let is_stdin = |path: &Path| path == Path::new("-");
    if is_stdin(model) && data.iter().any(|path| is_stdin(path)) {
        return Err(usage("model and data cannot both come from standard input"));
    }
    Ok(())
}

/// Refuses outputs that would replace an input, or each other.
pub(super) fn refuse_overwriting<'a>(
    outputs: impl Iterator<Item = &'a PathBuf>,
    inputs: impl Iterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let whole = std::fs::canonicalize(path);
        whole.or_else(|_| {
            Ok::<_, std::io::Error>(std::fs::canonicalize(folder)?.join(path.file_name().unwrap_or_default()))
        })
    };
    let mut taken: Vec<PathBuf> = inputs.filter_map(|path| place(path).ok()).collect();
    for path in outputs.filter(|path| path.as_os_str() != "-") {
        let Ok(whole) = place(path) else { continue };
        if taken.contains(&whole) && (whole.is_file() || !whole.exists()) {
            return Err(usage(format!("'{}' would replace another file of this command", path.display())));
        }
        taken.push(whole);
    }
    Ok(())
}

/// A usage error as `anyhow` carries it.
pub(super) fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}
