//! From records to a report.

mod page;
mod records;
mod tables;
