//! The `gmm-bmm` command. All it does is in the library; see `gmm_bmm::cli`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    gmm_bmm::cli::main()
}
