//! Work that Ctrl-C ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::threads::with_threads;

/// How often pending signals are looked for.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs work on another thread, without the interpreter's lock. A pending signal sets the flag that the work is given;
/// once the work has ended, the signal's exception is raised. A panic becomes a `RuntimeError`.
pub fn interruptible<T: Send>(work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ended, end) = sync_channel::<()>(0);
        let stop = &stop;
        let worker = scope.spawn(move || {
            // Dropped when the work ends, also by a panic.
            let _ended = ended;
            with_threads(|| work(stop))
        });
        let mut interrupt = None;
        while end.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            if interrupt.is_none() {
                interrupt = check_signals().err();
                stop.store(interrupt.is_some(), Ordering::Relaxed);
            }
        }
        let result =
            worker.join().map_err(|_| PyRuntimeError::new_err("an internal error ended the work"))?;
        match interrupt {
            Some(interrupt) => Err(interrupt),
            None => result,
        }
    })
}

/// Raises the exception of a pending signal.
pub fn check_signals() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}
