//! Comparisons: a [`Plan`] is run, and what comes of it is written down as [`Record`]s.
//!
//! A cell is one learner with one K on one fold of one data set. Cells are independent of each other and follow
//! from the plan's seed alone, whatever the number of threads and whatever was run before; so a comparison that
//! was interrupted goes on where it stopped, and tables and pictures are made from the records alone.

mod contender;
mod curve;
mod error;
mod figure1;
mod plan;
mod record;
mod revising;
mod run;
mod select;
mod split;
mod store;
mod trial;

pub use contender::{ALPHAS, BETAS, Contender, PLAIN_STARTS, Profile, Way};
pub use error::ExperimentError;
pub use figure1::{Figure1Error, figure1_curve};
pub use plan::{Cell, Plan, PlannedSet};
pub use record::STAND_IN;
pub use record::{CellRecord, CellSettings, CurveRecord, DataRecord, Record, RunRecord};
pub use run::{Ending, Workers, run};
pub use select::{Pairs, SIGNIFICANCE, SelectRule, choose_ks, commonest_k, elbow_over_k, paired_differences};
pub use store::{RECORDS_FILE, RecordFile, read_records, refuse_file_as_folder};
pub use trial::VALIDATION_RESTARTS;
