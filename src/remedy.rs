//! What can be done about an error or a finding.

use serde::Serialize;

/// What can be done about an error or a finding.
///
/// The library says which remedy applies. A front end words it in its own terms: the command names an option, a
/// program an argument.
#[allow(missing_docs)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Remedy {
    CorrectData,
    DropColumns(Vec<String>),
    DropFewerColumns,
    ChooseColumns,
    /// Choose the columns that take the places of the model's, in the model's order.
    ChooseColumnsInModelOrder,
    ReadAsMissing(Vec<String>),
    SkipBadRows,
    BadCellsAsMissing,
    /// Use the values that a row has, where others are missing.
    UseObservedValues,
    SkipRowsWithGaps,
    /// Read the first line as data, not as a header.
    ReadFirstLineAsData,
    SetDelimiter,
    ChooseDataSet,
    UseAsModel,
    /// Use a file that a fit has written.
    UseModelFile,
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
    GiveMoreRows,
    /// Add noise of one quantum to discrete columns.
    Dequantize,
    FewerComponents,
    MoreComponents,
    FewerShards,
    /// Read each file as a whole.
    ReadWhole,
    /// Fit the start to fewer rows.
    FewerStartRows,
    /// Let the shards share more rows before they are learned apart.
    LongerWarmUp,
    KeepFewerRows,
    LearnFromPrior,
    NumberShards,
    WaitForOtherRun,
    UseOtherFolder,
    UseSettingsOfRecords,
    NameInput,
    CheckPath,
    NameFiles,
    WriteToFile,
    Unpack,
    GiveMoreFiles,
    MaxShards(usize),
    ConvertToUtf8,
    /// Give a file in a format that is read.
    GiveReadableFormat,
    BuildWithFeature(&'static str),
    SaveAsCsv,
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
    RemoveSeparators,
    /// Name every column in the header.
    CorrectHeader,
    ChooseByNumber,
    GiveSameColumns,
    FetchAgain,
    /// Look for an unclosed quote or missing line ends.
    LookForQuote,
    /// Remove a stray quotation mark, or double it.
    RemoveQuotationMark,
}
