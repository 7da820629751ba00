//! What can be done about an error or a finding.

use serde::Serialize;

/// What can be done about an error or a finding.
///
/// The library says which remedy applies. A front end words it in its own terms: the command names an option, a
/// program an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    /// Correct the value or the row in the data.
    CorrectData,
    /// Leave these columns out.
    DropColumns(Vec<String>),
    /// Leave fewer columns out.
    DropFewerColumns,
    /// Choose the columns to learn from.
    ChooseColumns,
    /// Choose the columns that take the places of the model's, in the model's order.
    ChooseColumnsInModelOrder,
    /// Read these values as missing ones.
    ReadAsMissing(Vec<String>),
    /// Skip and count rows that cannot be used.
    SkipBadRows,
    /// Read a bad cell as a missing value.
    BadCellsAsMissing,
    /// Use the values that a row has, where others are missing.
    UseObservedValues,
    /// Skip and count rows with missing values.
    SkipRowsWithGaps,
    /// Read the first line as data, not as a header.
    ReadFirstLineAsData,
    /// Set the delimiter between the fields of a row.
    SetDelimiter,
    /// Choose a set of the catalogue.
    ChooseDataSet,
    /// Use the file as a model, not as data.
    UseAsModel,
    /// Use a file that a fit has written.
    UseModelFile,
    /// Shuffle the rows before they are learned.
    ShuffleRows,
    /// Let rows lose weight with a half-life.
    SetHalfLife,
    /// Let rows lose weight faster.
    ShorterHalfLife,
    /// Divide the weights of the rows by their mean.
    ScaleWeights,
    /// Give rows that were not learned before.
    GiveNewRows,
    /// Learn shards from rows that the common prior has not learned.
    SkipPriorRows,
    /// Give more rows.
    GiveMoreRows,
    /// Add noise of one quantum to discrete columns.
    Dequantize,
    /// Learn fewer components.
    FewerComponents,
    /// Allow more components.
    MoreComponents,
    /// Use fewer shards.
    FewerShards,
    /// Read each file as a whole.
    ReadWhole,
    /// Fit the start to fewer rows.
    FewerStartRows,
    /// Let the shards share more rows before they are learned apart.
    LongerWarmUp,
    /// Keep fewer rows for revisions.
    KeepFewerRows,
    /// Learn the shard from the common prior.
    LearnFromPrior,
    /// Number all shards of a run.
    NumberShards,
    /// Wait until the other run ends.
    WaitForOtherRun,
    /// Write the records to another folder.
    UseOtherFolder,
    /// Use the settings of the earlier records.
    UseSettingsOfRecords,
    /// Name an input.
    NameInput,
    /// Check the path.
    CheckPath,
    /// Name the files in the directory.
    NameFiles,
    /// Write the rows to a file first.
    WriteToFile,
    /// Unpack the file.
    Unpack,
    /// Give more files.
    GiveMoreFiles,
    /// Use no more shards than this.
    MaxShards(usize),
    /// Convert the text to UTF-8.
    ConvertToUtf8,
    /// Give a file in a format that is read.
    GiveReadableFormat,
    /// Build the program with this feature.
    BuildWithFeature(&'static str),
    /// Save the rows as CSV.
    SaveAsCsv,
    /// Give lines of text.
    GiveLines,
    /// Leave columns out, in the file if all of it is written.
    LeaveOutColumns,
    /// Remove the heading lines of an ARFF file.
    StripArffLines,
    /// Write decimal commas as points.
    WriteDecimalPoints {
        /// Whether the numbers have points as thousands separators too, which have to go first.
        separators: bool,
    },
    /// Remove thousands separators.
    RemoveSeparators,
    /// Name every column in the header.
    CorrectHeader,
    /// Choose the column by its number.
    ChooseByNumber,
    /// Give every input the same columns, with names or without.
    GiveSameColumns,
    /// Get the file again.
    FetchAgain,
    /// Look for an unclosed quote or missing line ends.
    LookForQuote,
    /// Remove a stray quotation mark, or double it.
    RemoveQuotationMark,
}
