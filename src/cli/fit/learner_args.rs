//! The arguments that choose a learner, and those of each learner.

use std::sync::LazyLock;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::learn::{Algorithm, Moments, OemSettings};

/// An online learner, or batch EM.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Algo {
    Online(Algorithm),
    Em,
}

impl Algo {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Algo::Online(algorithm) => algorithm.name(),
            Algo::Em => "em",
        }
    }
}

impl ValueEnum for Algo {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<Algo>> =
            LazyLock::new(|| Algorithm::all().into_iter().map(Algo::Online).chain([Algo::Em]).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(match self {
            Algo::Online(algorithm) => algorithm.summary(),
            Algo::Em => "Batch EM with moves; holds all rows in memory",
        }))
    }
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oBMM")]
pub(super) struct ObmmArgs {
    /// Which moments each step keeps: 'whitened', or 'paper' to compare with the paper
    #[arg(long, hide_short_help = true, value_enum, default_value_t = Moments::Whitened)]
    pub(super) moments: Moments,

    /// How fast the first rows lose weight, from 0 (exact Bayes) to below 1
    ///
    /// It is there to compare learners as the paper does. Components forget what they learned while they were in the wrong place: a component that has learned n rows counts as (1−BETA)·n, so it still learns ever more slowly and does not follow data that drift. For such data use --half-life.
    #[arg(long, hide_short_help = true, value_name = "BETA", default_value_t = 0.0)]
    pub(super) discount: f64,
}

/// Each shard holds a mixture of its own, in memory and in the model file.
pub(in crate::cli) const MAX_SHARDS: i64 = 10_000;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oDMM")]
pub(super) struct OdmmArgs {
    /// Number of shards; the model depends on it, but not on the number of threads [default: 5, or the ranks of an MPI job]
    #[arg(long, hide_short_help = true, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=MAX_SHARDS))]
    pub(super) shards: Option<u16>,

    /// How rows are dealt to shards [default: rows, or parts in an MPI job]
    #[arg(long, hide_short_help = true, value_enum)]
    pub(super) deal: Option<DealBy>,

    /// Rows that are learned before they are dealt to shards; 0 as in the paper [default: the rows of the start]
    #[arg(long, hide_short_help = true, value_name = "N")]
    pub(super) warmup: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DealBy {
    /// One reader deals 64 rows to each shard in turn
    Rows,
    /// Each shard reads its own part: whole files in turn if there are enough, otherwise byte ranges cut at row ends
    Parts,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "oEM")]
pub(super) struct OemArgs {
    /// Exponent of the step (n+3)^−α, from 0.5 to 1
    #[arg(long, hide_short_help = true, default_value_t = OemSettings::default().alpha)]
    pub(super) alpha: f64,

    /// Whether the step counts the rows of the start ('false' is the printed form, which soon forgets the start) [default: true, with --start blind false]
    #[arg(long, hide_short_help = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub(super) count_start: Option<bool>,
}
