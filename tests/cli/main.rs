//! The command `gmm-bmm`, as users meet it: these tests run the real binary.

#[path = "../common/mod.rs"]
mod common;
mod compare;
#[cfg(unix)]
mod crash;
mod datasets;
mod dependencies;
mod eval;
mod export;
#[cfg(unix)]
mod faults;
mod fit;
mod follow;
mod formats;
mod learner_processes;
mod learners;
mod manuals;
mod merge;
mod missing;
mod order;
#[cfg(unix)]
mod outputs;
mod plot;
mod predict;
mod quotes;
mod readme;
mod results;
mod synth;
mod untidy;
mod weights;
#[path = "../common/workplace.rs"]
mod workplace;
