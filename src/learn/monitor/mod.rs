//! What a pass observes about its data: findings, changes, ranks, repeated rows and faulty columns.

pub(in crate::learn) mod changes;
pub(in crate::learn) mod column_faults;
pub(in crate::learn) mod findings;
pub(in crate::learn) mod ranks;
pub(in crate::learn) mod recognise;
pub(in crate::learn) mod seen;
pub(in crate::learn) mod start_shift;
pub(in crate::learn) mod surprise;
pub(in crate::learn) mod today;
pub(in crate::learn) mod weights;
