//! The rank that a launcher such as `mpirun` gives to a process.

use std::env;

/// The rank of this process among those that were started together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RankOfLaunch {
    pub rank: u32,
    pub size: u32,
}

/// The environment variables with rank and size: of Open MPI, of MPICH and its derivatives, of Slurm with PMIx.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
];

/// `None` if the process was started alone.
pub(super) fn launch() -> Option<RankOfLaunch> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    VARIABLES.iter().find_map(|(rank, size)| Some(RankOfLaunch { rank: number(rank)?, size: number(size)? }))
}

/// Whether another process of the same launch has rank 0, and prints what all would print.
pub(super) fn is_another_first() -> bool {
    launch().is_some_and(|launch| launch.rank > 0)
}
