//! Comparisons: a [`Plan`] is run in a [`Session`], which writes [`Record`]s.
//!
//! A cell is one learner with one K on one fold of one data set. Cells are independent of each other and depend on the
//! plan's seed alone, not on the number of threads or on earlier runs. An interrupted comparison therefore resumes where
//! it stopped. Reports read the records and nothing else.

mod contender;
mod curve;
mod error;
mod export;
mod external;
mod figure1;
mod index;
mod paper;
mod plan;
mod record;
mod revising;
mod run;
mod session;
mod split;
mod store;
mod trial;

pub use contender::Contender;
pub use error::ExperimentError;
pub use export::{FOLDS_FILE, export_folds};
pub use external::{ExternalLearner, Failure, Launcher, PROTOCOL, Usage, remove_abandoned_folder};
pub use figure1::figure1_curves;
pub use index::{Folds, RecordIndex, SetIndex};
pub use paper::{PaperColumns, PaperRecord, Reported, Units, paper_figures};
pub use plan::{Plan, PlannedSet};
pub use record::{CellRecord, CellSettings, CurveRecord, DataRecord, Record, RunRecord, TestSummary};
pub use record::{STAND_IN, name_without_noise};
pub use run::{Ending, Workers};
pub use session::{Provenance, Session};
pub use split::fold_rows;
pub use store::{PACKED_FILE, RECORDS_FILE, read_records, refuse_file_as_folder, write_packed};
