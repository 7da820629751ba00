//! The learning rules: how a row changes the parameters, which prior they start from, and how rows lose weight.

pub(in crate::learn) mod constrained;
pub(in crate::learn) mod forgetting;
pub(in crate::learn) mod method;
pub(in crate::learn) mod obmm;
pub(in crate::learn) mod oem;
pub(in crate::learn) mod prior;
pub mod projection;
