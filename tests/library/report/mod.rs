//! From records to a report.

mod packed;
mod page;
mod records;
mod tables;
