use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// The pages of a column, without those that claim more values than their bytes can hold.
pub(super) struct CheckedPages {
    pages: Box<dyn PageReader>,
}

impl CheckedPages {
    pub(super) fn new(pages: Box<dyn PageReader>) -> CheckedPages {
        CheckedPages { pages }
    }
}

/// The crate makes room for as many values as a dictionary claims.
fn checked(page: Option<Page>) -> Result<Option<Page>> {
    match &page {
        Some(Page::DictionaryPage { buf, num_values, .. }) if *num_values as u64 > 8 * buf.len() as u64 => {
            let what = format!("a dictionary of {} bytes claims {num_values} values", buf.len());
            Err(ParquetError::General(what))
        }
        _ => Ok(page),
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.pages.get_next_page().and_then(checked)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        self.pages.take_deferred_dictionary().and_then(checked)
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}
