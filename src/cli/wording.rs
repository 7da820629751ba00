//! The words of the command: errors, findings and notices of the library, with what a user of the command can do.

use std::error::Error;

use crate::data::{Availability, DataError, DataSet, MissingCounts, Notice};
use crate::experiment::ExperimentError;
use crate::learn::{Finding, LearnError, Today};
use crate::model::{MergeError, ModelError};
use crate::remedy::Remedy;
use crate::text::number::decimal;
use crate::text::{count, quoted};

/// An error of any layer: what happened, and what the user can do.
pub(super) fn error(error: &(dyn Error + 'static)) -> String {
    if let Some(DataError::SetNotThere { set, .. }) = error.downcast_ref() {
        return format!("{error}: {}", how_to_get(set));
    }
    let remedies = None
        .or_else(|| error.downcast_ref().map(DataError::remedies))
        .or_else(|| error.downcast_ref().map(LearnError::remedies))
        .or_else(|| error.downcast_ref().map(ModelError::remedies))
        .or_else(|| error.downcast_ref().map(MergeError::remedies))
        .or_else(|| error.downcast_ref().map(ExperimentError::remedies));
    with_remedies(error.to_string(), &remedies.unwrap_or_default())
}

pub(super) fn finding(finding: &Finding) -> String {
    with_remedies(finding.to_string(), &finding.remedies())
}

pub(super) fn notice(notice: &Notice) -> String {
    with_remedies(notice.to_string(), &notice.remedies())
}

/// Whether a user should act on a finding, and not only know it.
pub(super) fn is_warning(finding: &Finding) -> bool {
    !matches!(
        finding,
        Finding::RowNumbers { .. }
            | Finding::Identifiers { .. }
            | Finding::DiscreteColumns { .. }
            | Finding::Sentinel { .. }
            | Finding::NarrowColumns { .. }
            | Finding::ColumnsAtFloor { .. }
            | Finding::DataChange { .. }
            | Finding::LargestK { .. }
            | Finding::UnevenWeights { .. }
            | Finding::RepeatedRows { .. }
            | Finding::LiteralStepsKept { .. }
            | Finding::LargeStart { .. }
    )
}

/// How the rows of a resumed run compare with those before.
pub(super) fn today(today: &Today) -> String {
    let percent = |share: f64| {
        let share = 100.0 * share;
        if share > 99.9 { "more than 99.9".to_string() } else { format!("{share:.1}") }
    };
    let than = if today.lower_than >= 0.5 {
        format!("lower than on {} %", percent(today.lower_than))
    } else {
        format!("higher than on {} %", percent(1.0 - today.lower_than))
    };
    let with_error = |value: f64, error: f64| format!("{} ± {}", decimal(value, 2), decimal(error, 2));
    format!(
        "the {} of this run: {}, expected {}: {than} of earlier days' rows\n",
        count(today.rows, "scored row"),
        with_error(today.mean, today.error),
        with_error(today.expected, today.expected_error)
    )
}

/// Constant and collinear columns, where there are many.
pub(super) fn faulty_columns(columns: usize) -> String {
    format!(
        "{columns} columns are constant or linear functions of others in the first rows (as in fewer rows than columns), so \
         their density is unbounded and their variance is held at a floor: leave such columns out with --drop"
    )
}

/// Rows that could not be read, with the first of them.
pub(super) fn skipped_rows(rows: u64, first: &str) -> String {
    let were = if rows == 1 { "was" } else { "were" };
    format!("{} {were} skipped; the first: {first}", count(rows, "bad row"))
}

/// Cells that were read as missing values, with the first of them.
pub(super) fn bad_cells(cells: u64, first: &str) -> String {
    let (were, values) = if cells == 1 { ("was", "a missing value") } else { ("were", "missing values") };
    format!("{} {were} read as {values}; the first: {first}", count(cells, "bad cell"))
}

/// The missing values of each column, and the rows that were skipped because of them.
pub(super) fn missing_values(missing: &MissingCounts, rows_left_out: u64) -> String {
    let fact = format!("missing values among {}: {missing}", count(missing.rows, "row"));
    match rows_left_out {
        0 => fact,
        1 => format!("{fact}; 1 row was skipped"),
        rows => format!("{fact}; {rows} rows were skipped"),
    }
}

/// Rows that have no value in any column, or no weight.
pub(super) fn empty_rows(rows: u64) -> String {
    let (have, were) = if rows == 1 { ("has", "was") } else { ("have", "were") };
    format!("{} {have} no value in any column or a weight of 0, and {were} ignored", count(rows, "row"))
}

/// What to do to have the file of a data set.
pub(super) fn how_to_get(set: &DataSet) -> String {
    let DataSet { name, file, .. } = set;
    match set.availability() {
        Availability::Bundled => {
            format!("it comes with the source code as datasets/{file}; give that folder with --datasets")
        }
        Availability::Public => format!("fetch it with: python3 scripts/fetch_datasets.py {name}"),
        Availability::NotPublic => {
            format!(
                "no public copy is known: if you have the data, save them as {file} in the folder given by --datasets"
            )
        }
    }
}

/// A text of several lines in one.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn with_remedies(fact: String, remedies: &[Remedy]) -> String {
    let words: Vec<String> = remedies.iter().map(remedy).collect();
    match words.as_slice() {
        [] => fact,
        [one] => format!("{fact}: {one}"),
        [first @ .., last] => format!("{fact}: {}, or {last}", first.join(", ")),
    }
}

/// What to do, as the options of the command have it.
fn remedy(remedy: &Remedy) -> String {
    match remedy {
        Remedy::CorrectData => "correct the data",
        Remedy::DropColumns(columns) if columns.len() == 1 => {
            return format!("leave the column out with --drop {}", quoted(columns, 1));
        }
        Remedy::DropColumns(_) => "leave such columns out with --drop",
        Remedy::DropFewerColumns => "name fewer columns in --drop",
        Remedy::MaxShards(most) => return format!("use at most {most} shards"),
        Remedy::BuildWithFeature(feature) => {
            return format!(
                "build it with the feature '{feature}' (cargo install --locked --path . --features {feature})"
            );
        }
        Remedy::NameInput => "name at least one",
        Remedy::CheckPath => "check the path",
        Remedy::NameFiles => "name the files in it",
        Remedy::WriteToFile => "write the rows to a file first",
        Remedy::Unpack => "unpack it",
        Remedy::GiveMoreFiles => "give more files",
        Remedy::ConvertToUtf8 => "convert it first, for instance with 'iconv -f UTF-16 -t UTF-8'",
        Remedy::GiveReadableFormat => {
            "give delimited text, plain or compressed with gzip, or .npy, Parquet or Arrow files"
        }
        Remedy::SaveAsCsv => "save the rows as CSV",
        Remedy::GiveLines => "give lines of text",
        Remedy::LeaveOutColumns => "leave out such columns, in the file if all of it is written",
        Remedy::StripArffLines => {
            "strip the lines that begin with '@' or '%' first, for instance with \"grep -v '^[@%]'\""
        }
        Remedy::WriteDecimalPoints { separators: false } => {
            "write decimal points (if the file has no other commas: tr ',' '.')"
        }
        Remedy::WriteDecimalPoints { separators: true } => {
            "write decimal points (if the file has no other commas and points: tr -d . | tr ',' '.')"
        }
        Remedy::RemoveSeparators => {
            "leave the separators out (or, if that is a decimal comma, write a point)"
        }
        Remedy::CorrectHeader => "make the header name every column, and remove any lines above it",
        Remedy::ChooseByNumber => "choose by number instead",
        Remedy::GiveSameColumns => "give every input the same columns, all with names or all without",
        Remedy::FetchAgain => "fetch or compress the file anew",
        Remedy::LookForQuote => "look for an unclosed quote or missing line ends",
        Remedy::RemoveQuotationMark => {
            "if the quotation mark is a stray one, remove it, or double it in a quoted cell"
        }
        Remedy::ChooseColumns => "choose the columns with --columns or --drop",
        Remedy::ChooseColumnsInModelOrder => "name the columns to use, in the model's order, with --columns",
        Remedy::ReadAsMissing(values) => {
            return format!("if that means a missing value, use --na {} --missing marginal", values.join(","));
        }
        Remedy::SkipBadRows => "skip such rows with --bad-rows skip",
        Remedy::BadCellsAsMissing => "read such cells as missing values with --bad-cells missing --missing marginal",
        Remedy::UseObservedValues => "use the values that are there with --missing marginal",
        Remedy::SkipRowsWithGaps => "skip such rows with --missing skip",
        Remedy::ReadFirstLineAsData => "if it is data, use --no-header",
        Remedy::SetDelimiter => "check --delimiter",
        Remedy::ChooseDataSet => "'gmm-bmm datasets' lists the sets",
        Remedy::UseAsModel => "'gmm-bmm show' prints it, and 'gmm-bmm eval' takes it as --model",
        Remedy::UseModelFile => "'gmm-bmm fit' writes model files",
        Remedy::ShuffleRows => {
            "if the file is sorted by class or by time, shuffle it or use --shuffle-buffer N (N as large as memory allows; \
             all rows is best)"
        }
        Remedy::SetHalfLife => {
            "if they are in the order of time, let old rows lose weight with --half-life ROWS; if the file is sorted, shuffle it"
        }
        Remedy::ShorterHalfLife => "use a shorter --half-life",
        Remedy::ScaleWeights => "if they only say how rows compare, divide them by their mean",
        Remedy::GiveNewRows => "resume with new rows",
        Remedy::SkipPriorRows => {
            "learn shards from rows that the prior has not learned ('fit --skip N' leaves out the first N)"
        }
        Remedy::GiveMoreRows => "give more rows",
        Remedy::Dequantize => "--dequantize adds noise of one quantum, so that they are",
        Remedy::FewerComponents => "choose a smaller --k",
        Remedy::MoreComponents => "allow more with --k auto:MIN..MAX",
        Remedy::FewerShards => "use fewer shards (--shards)",
        Remedy::ReadWhole => "use --deal rows, or give a file for each shard",
        Remedy::FewerStartRows => "lower --init-rows",
        Remedy::LongerWarmUp => "use a longer --warmup",
        Remedy::KeepFewerRows => "lower --keep-rows",
        Remedy::LearnFromPrior => "learn each shard with 'fit --prior PRIOR'",
        Remedy::NumberShards => "number all shards of a run with 'fit --shard I/N'",
        Remedy::WaitForOtherRun => "wait until it has ended",
        Remedy::UseOtherFolder => "give another folder with --out",
        Remedy::UseSettingsOfRecords => "use the settings of the records",
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::data::{BadCell, BadRow, Catalogue, ChosenBy, RowProblem};

    #[test]
    fn an_error_of_the_library_names_the_options_that_help() {
        let (column, cell) = ("Height".into(), "tall".into());
        let problem = RowProblem::Cell { column, cell, why: BadCell::NotANumber, chosen: ChosenBy::Content };
        let row = BadRow { file: "a.csv".into(), line: Some(8), row: 7, problem };
        assert_eq!(
            error(&DataError::BadRow(Box::new(row))),
            "'a.csv', line 8, row 7: 'tall' in column 'Height' is not a number: correct the data, leave the column out with \
             --drop 'Height', read such cells as missing values with --bad-cells missing --missing marginal, or skip such rows with --bad-rows skip"
        );
        assert_eq!(
            error(&LearnError::ShortFirstShard { rows: 10, wanted: 500 }),
            "the first shard has 10 rows, and the start needs 500: use fewer shards (--shards), or lower --init-rows"
        );
        assert_eq!(error(&std::io::Error::other("disk full")), "disk full");
    }

    #[test]
    fn an_error_in_a_file_says_what_to_do_with_the_file() {
        let file = || "a.csv".to_string();
        let cut = DataError::CannotCut { file: file(), files: 2, shares: 4 };
        let decimal = DataError::DecimalComma { file: file(), column: "x".into(), cell: "1,5".into() };
        let (lines, open) = (3, false);
        for (fact, words) in [
            (
                cut,
                "'a.csv' is compressed and cannot be cut into byte ranges for 4 shards from 2 files: unpack it, give more \
                 files, or use at most 2 shards",
            ),
            (DataError::Missing(file()), "'a.csv' does not exist: check the path"),
            (
                DataError::NeedsFeature { file: file(), format: "Parquet", feature: "parquet" },
                "'a.csv' is Parquet, which this build cannot read: build it with the feature 'parquet' (cargo install \
                 --locked --path . --features parquet), or save the rows as CSV",
            ),
            (
                decimal,
                "'a.csv': column 'x' holds '1,5', a number with a decimal comma where a point is needed: write decimal \
                 points (if the file has no other commas: tr ',' '.'), or leave the column out with --drop 'x'",
            ),
            (
                DataError::Utf16(file()),
                "'a.csv' is UTF-16 text: convert it first, for instance with 'iconv -f UTF-16 -t UTF-8'",
            ),
            (
                DataError::Quotation { file: file(), line: 7, lines, open },
                "'a.csv', line 7: a quoted cell starting here spans 3 lines, so the record is not numeric: if the quotation \
                 mark is a stray one, remove it, or double it in a quoted cell",
            ),
        ] {
            assert_eq!(error(&fact), words);
        }
    }

    #[test]
    fn a_resumed_run_says_how_it_compares() {
        let day = |lower_than| {
            let (mean, error, expected, expected_error) = (-5.78, 0.03, -5.36, 0.02);
            today(&Today { rows: 3000, mean, error, expected, expected_error, lower_than })
        };
        let known = "the 3000 scored rows of this run: -5.78 ± 0.03, expected -5.36 ± 0.02: ";
        assert_eq!(day(0.9999), format!("{known}lower than on more than 99.9 % of earlier days' rows\n"));
        assert_eq!(day(0.25), format!("{known}higher than on 75.0 % of earlier days' rows\n"));
    }

    #[test]
    fn each_set_says_how_to_get_it() {
        let how = |name: &str| how_to_get(Catalogue::built_in().find(name).unwrap());
        assert!(how("abalone").contains("comes with the source code"));
        assert_eq!(how("plastic"), "fetch it with: python3 scripts/fetch_datasets.py plastic");
        assert!(how("northridge").contains("if you have the data"));
    }

    /// The library is used by other front ends too.
    #[test]
    fn only_the_command_names_its_options() {
        fn check(folder: &Path) {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() && !entry.ends_with("cli") {
                    check(&entry);
                } else if entry.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&entry).unwrap();
                    for line in text.lines().filter(|line| !line.contains("cargo ")) {
                        let mut places = line.match_indices("--").map(|(at, _)| &line[at + 2..]);
                        let names_option =
                            places.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
                        let is_style = line.contains("style=") || line.contains("slug(");
                        assert!(!names_option || is_style, "{}: {line}", entry.display());
                    }
                }
            }
        }
        check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    }

    #[test]
    fn a_finding_says_what_to_do() {
        let text = finding(&Finding::ConstantColumn { column: "x".into() });
        assert!(text.starts_with("column 'x' is constant") && text.ends_with("--drop 'x'"), "{text}");
        let many = Finding::ColumnsAtFloor { columns: vec!["x".into(), "y".into()] };
        assert!(finding(&many).ends_with("leave such columns out with --drop"));
    }
}
