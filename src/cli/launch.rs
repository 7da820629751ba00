//! What a launcher such as `mpirun` tells the processes that it starts.

use std::env;

/// This process's place among those that were started together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub rank: u32,
    pub size: u32,
}

/// The variables by which launchers give rank and size: Open MPI's, MPICH's and its kin's, Slurm's with PMIx.
const VARIABLES: [(&str, &str); 3] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "SLURM_NTASKS"),
];

/// `None` if the process was started by itself.
pub(super) fn launch() -> Option<Launch> {
    let number = |name: &str| env::var(name).ok()?.parse().ok();
    VARIABLES.iter().find_map(|(rank, size)| Some(Launch { rank: number(rank)?, size: number(size)? }))
}

/// Whether another process says what all would say.
pub(super) fn is_another_first() -> bool {
    launch().is_some_and(|launch| launch.rank > 0)
}
