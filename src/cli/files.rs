//! Files that commands read models from and write results to.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Interrupted;
use super::console::stdout_failed;
use super::pass::watch_for_interrupt;
use super::usage;
use crate::files::{OutputFile, place_of};
use crate::model::{Model, Seal};

/// Whether a path means standard input or output.
pub(super) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads and checks a model file.
pub(super) fn read_model(path: &Path) -> anyhow::Result<Model> {
    read_sealed_model(path).map(|(model, _)| model)
}

/// The same, and whether the file had a checksum.
pub(super) fn read_sealed_model(path: &Path) -> anyhow::Result<(Model, Seal)> {
    let describe = || format!("model file '{}'", path.display());
    if is_dash(path) {
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

/// Opens an output file. Commands do so before any work, so that a bad path is found early.
pub(super) fn create_output(path: &Path) -> anyhow::Result<OutputFile> {
    Ok(OutputFile::create(path)?)
}

/// Opens the file of a page.
pub(super) fn create_page(path: &Path) -> anyhow::Result<OutputFile> {
    if is_dash(path) {
        return Err(usage("--html writes a page to a file: give its name, such as model.html"));
    }
    create_output(path)
}

/// An output file or standard output.
pub(super) enum Output {
    Stdout(io::BufWriter<io::Stdout>),
    File(OutputFile),
    Gzip(GzEncoder<OutputFile>),
}

impl Output {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(if is_dash(path) {
            Output::Stdout(io::BufWriter::new(io::stdout()))
        } else {
            Output::File(create_output(path)?)
        })
    }

    /// The same for a table, which is compressed if the name ends in .gz.
    pub fn open_table(path: &Path) -> anyhow::Result<Self> {
        let is_gzip = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"));
        Ok(match Output::open(path)? {
            // More effort hardly compresses random digits better.
            Output::File(file) if is_gzip => Output::Gzip(GzEncoder::new(file, Compression::fast())),
            other => other,
        })
    }

    /// Makes a new file readable by its owner alone, because rows of the data are written to it.
    pub fn keep_private(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(_) => Ok(()),
            Output::File(file) => file.keep_private(),
            Output::Gzip(encoder) => encoder.get_mut().keep_private(),
        }
    }

    /// Writes a model and closes the output.
    pub fn write_model(mut self, model: &Model) -> anyhow::Result<()> {
        if let Output::File(file) = self {
            return Ok(model.write_file(file)?);
        }
        model.write(&mut self)?;
        Ok(self.commit()?)
    }

    /// Completes the output: a file appears under its name only now.
    pub fn commit(self) -> io::Result<()> {
        match self {
            Output::Stdout(mut stdout) => stdout.flush().map_err(stdout_failed),
            Output::File(file) => file.commit(),
            Output::Gzip(encoder) => encoder.finish()?.commit(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(stdout) => stdout.write(bytes).map_err(stdout_failed),
            Output::File(file) => file.write(bytes),
            Output::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(stdout) => stdout.flush().map_err(stdout_failed),
            Output::File(file) => file.flush(),
            Output::Gzip(encoder) => encoder.flush(),
        }
    }
}

/// Whether Ctrl-C was pressed while an output file is written, which is then removed. Standard output has nothing to remove,
/// so Ctrl-C ends the process at once.
#[derive(Clone, Copy)]
pub(super) struct StopFlag<'a>(Option<(&'static AtomicBool, &'a Path)>);

impl<'a> StopFlag<'a> {
    /// Watches for Ctrl-C. To be called before the output is opened.
    pub fn new(output: Option<&'a Path>) -> Self {
        StopFlag(output.filter(|path| !is_dash(path)).map(|path| (watch_for_interrupt(), path)))
    }

    pub fn check(&self) -> anyhow::Result<()> {
        match self.0 {
            Some((flag, path)) if flag.load(Ordering::Relaxed) => {
                Err(Interrupted(format!(": '{}' was not written", path.display())).into())
            }
            _ => Ok(()),
        }
    }
}

/// Refuses to read both a model and data from standard input.
pub(super) fn refuse_sharing_stdin(model: &Path, data: &[PathBuf]) -> anyhow::Result<()> {
    if is_dash(model) && data.iter().any(|path| is_dash(path)) {
        return Err(usage("model and data cannot both come from standard input"));
    }
    Ok(())
}

/// Refuses outputs that would replace an input or another output. Inputs are files, not patterns or names of sets.
pub(super) fn refuse_overwriting<'a>(
    outputs: impl Iterator<Item = &'a PathBuf>,
    inputs: impl Iterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    // Standard input may be a file that the shell has opened.
    let read_from = |path: &'a PathBuf| if is_dash(path) { Path::new("/dev/stdin") } else { path };
    let inputs: Vec<PathBuf> = inputs.map(|path| place_of(read_from(path))).collect();
    let mut written: Vec<PathBuf> = Vec::new();
    for path in outputs.filter(|path| !is_dash(path)) {
        let whole = place_of(path);
        let clash =
            [(&inputs, "reads"), (&written, "writes")].into_iter().find(|(taken, _)| taken.contains(&whole));
        if let Some((_, does)) = clash.filter(|_| whole.is_file() || !whole.exists()) {
            return Err(usage(format!(
                "'{}' would replace a file that this command {does} too: give each a name of its own",
                path.display()
            )));
        }
        written.push(whole);
    }
    Ok(())
}
