//! What can be done about errors in data.

use super::DataError;
use crate::data::{BadCell, ChosenBy, RowProblem};
use crate::remedy::Remedy;

impl DataError {
    /// What can be done about it.
    pub fn remedies(&self) -> Vec<Remedy> {
        let drop = |column: &String| Remedy::DropColumns(vec![column.clone()]);
        match self {
            DataError::Model(_) => vec![Remedy::UseAsModel],
            DataError::UnknownName { .. } => vec![Remedy::ChooseDataSet],
            DataError::NoInputs => vec![Remedy::NameInput],
            DataError::NotDealt(_) => vec![Remedy::WriteToFile],
            DataError::CannotCut { files, .. } => {
                vec![Remedy::Unpack, Remedy::GiveMoreFiles, Remedy::MaxShards(*files)]
            }
            DataError::Missing(_) | DataError::NoMatch(_) => vec![Remedy::CheckPath],
            DataError::Directory(_) => vec![Remedy::NameFiles],
            DataError::Utf16(_) => vec![Remedy::ConvertToUtf8],
            DataError::Binary { .. } => vec![Remedy::GiveReadableFormat],
            DataError::NeedsFeature { feature, .. } => {
                vec![Remedy::BuildWithFeature(feature), Remedy::SaveAsCsv]
            }
            DataError::NotFollowed { .. } => vec![Remedy::GiveLines],
            DataError::NoText { .. } => vec![Remedy::LeaveOutColumns],
            DataError::Arff(_) => vec![Remedy::StripArffLines],
            DataError::Json(_) => vec![Remedy::SaveAsCsv],
            DataError::DecimalComma { column, cell, .. } => {
                vec![Remedy::WriteDecimalPoints { separators: cell.contains('.') }, drop(column)]
            }
            DataError::ThousandsComma { column, .. } => vec![Remedy::RemoveSeparators, drop(column)],
            DataError::HeaderWidth { .. } => vec![Remedy::CorrectHeader],
            DataError::AmbiguousColumn { .. } => vec![Remedy::ChooseByNumber],
            DataError::HeaderMissing(_) | DataError::HeaderUnexpected(_) | DataError::FieldCount { .. } => {
                vec![Remedy::GiveSameColumns]
            }
            DataError::Gzip { .. } => vec![Remedy::FetchAgain],
            DataError::TooLarge { .. } => vec![Remedy::LookForQuote],
            DataError::Quotation { .. } => vec![Remedy::RemoveQuotationMark],
            DataError::AllColumnsDropped(_) | DataError::NeededColumn(_) => {
                vec![Remedy::DropFewerColumns]
            }
            DataError::NoNumbers { is_text: true, .. } => vec![Remedy::SetDelimiter, Remedy::ChooseColumns],
            DataError::NoNumbers { .. } => vec![Remedy::CorrectData],
            DataError::ColumnCount { .. } | DataError::NotNumbers { .. } => vec![Remedy::ChooseColumns],
            DataError::ExpectedColumn { .. } | DataError::MisplacedColumn { .. } => {
                vec![Remedy::ChooseColumnsInModelOrder]
            }
            DataError::QuotationInPart { .. } => vec![Remedy::ReadWhole],
            DataError::MissingValue(_) => vec![Remedy::UseObservedValues, Remedy::SkipRowsWithGaps],
            DataError::BadRow(bad) => match &bad.problem {
                // A row needs its weight.
                RowProblem::Cell { why: BadCell::Weight, .. } => {
                    vec![Remedy::CorrectData, Remedy::SkipBadRows]
                }
                RowProblem::Cell { column, chosen: ChosenBy::Content, .. } => {
                    vec![Remedy::CorrectData, drop(column), Remedy::BadCellsAsMissing, Remedy::SkipBadRows]
                }
                RowProblem::Cell { chosen: ChosenBy::User, .. } => {
                    vec![
                        Remedy::CorrectData,
                        Remedy::ChooseColumns,
                        Remedy::BadCellsAsMissing,
                        Remedy::SkipBadRows,
                    ]
                }
                RowProblem::Cell { chosen: ChosenBy::Model, .. } => {
                    vec![Remedy::CorrectData, Remedy::BadCellsAsMissing, Remedy::SkipBadRows]
                }
                RowProblem::Fields { .. } => vec![Remedy::CorrectData, Remedy::SkipBadRows],
                RowProblem::Missing { .. } => vec![Remedy::UseObservedValues, Remedy::SkipRowsWithGaps],
            },
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::BadRow;

    #[test]
    fn a_bad_row_says_where_it_is_and_the_remedy_depends_on_who_chose_the_column() {
        let row = |chosen| {
            let (column, cell) = ("Height".into(), "tall".into());
            let problem = RowProblem::Cell { column, cell, why: BadCell::NotANumber, chosen };
            BadRow { file: "a.csv".into(), line: Some(8), row: 7, problem }
        };
        let remedies = |chosen| DataError::BadRow(Box::new(row(chosen))).remedies();
        assert_eq!(
            row(ChosenBy::Content).to_string(),
            "'a.csv', line 8, row 7: 'tall' in column 'Height' is not a number"
        );
        let drop = Remedy::DropColumns(vec!["Height".into()]);
        assert_eq!(
            remedies(ChosenBy::Content),
            [Remedy::CorrectData, drop, Remedy::BadCellsAsMissing, Remedy::SkipBadRows]
        );
        assert!(remedies(ChosenBy::User).contains(&Remedy::ChooseColumns));
        assert_eq!(
            remedies(ChosenBy::Model),
            [Remedy::CorrectData, Remedy::BadCellsAsMissing, Remedy::SkipBadRows]
        );
        let text = DataError::BadRow(Box::new(row(ChosenBy::Model))).to_string();
        assert!(text.ends_with("is not a number, and the model needs the column"), "{text}");
    }
}
