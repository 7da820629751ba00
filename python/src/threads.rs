//! Threads for parallel work, also in a process that was forked.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// How many forks lie between this process and the one that imported the module.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// The pool of a forked process, with its [`forks`].
static OWN_POOL: Mutex<Option<(u64, &'static ThreadPool)>> = Mutex::new(None);

/// Python calls this in each forked child, before anything else runs there.
#[pyfunction]
pub fn count_fork() {
    FORKS.fetch_add(1, Ordering::SeqCst);
}

/// How many forks lie between this process and the one that imported the module.
pub fn forks() -> u64 {
    FORKS.load(Ordering::SeqCst)
}

/// Runs work with parallel parts. rayon's global pool keeps its queues in a forked child but loses its threads, so work for it
/// would wait for ever. A child therefore makes a pool of its own.
pub fn with_threads<T: Send>(work: impl FnOnce() -> T + Send) -> PyResult<T> {
    if forks() == 0 {
        return Ok(work());
    }
    Ok(Python::attach(own_pool)?.install(work))
}

/// The pool of this process. The lock is taken only by a thread that holds the interpreter's lock, as a thread that forks does.
/// So no other thread holds it at the time of a fork.
fn own_pool(_: Python<'_>) -> PyResult<&'static ThreadPool> {
    let broken = |error: &dyn std::fmt::Display| {
        PyRuntimeError::new_err(format!("threads cannot be started in the forked process: {error}"))
    };
    let mut own = OWN_POOL.lock().map_err(|error| broken(&error))?;
    match *own {
        Some((made_in, pool)) if made_in == forks() => Ok(pool),
        _ => {
            let pool = ThreadPoolBuilder::new().build().map_err(|error| broken(&error))?;
            // Never dropped: the pool of the parent, which has no threads here, would wait for them.
            let pool: &'static ThreadPool = Box::leak(Box::new(pool));
            *own = Some((forks(), pool));
            Ok(pool)
        }
    }
}
