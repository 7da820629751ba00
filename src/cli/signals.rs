//! Signals that ask the program to stop.

/// Calls `handler` at Ctrl-C, SIGTERM and SIGHUP. Where `nohup` started the program, SIGHUP stays ignored.
pub(super) fn on_request_to_stop(handler: impl FnMut() + Send + 'static) {
    #[cfg(unix)]
    let outlives_terminal = ignore(Signal::SIGHUP);
    // Without a handler, Ctrl-C ends the process. Files are still written atomically.
    let _ = ctrlc::set_handler(handler);
    #[cfg(unix)]
    if outlives_terminal {
        ignore(Signal::SIGHUP);
    }
}

/// Makes a write beyond the limit of a file's size fail, so that the error names the file and the temporary file is
/// removed. Otherwise the signal ends the process.
pub(super) fn ignore_file_size_signal() {
    #[cfg(unix)]
    ignore(Signal::SIGXFSZ);
}

#[cfg(unix)]
use nix::sys::signal::Signal;

/// Ignores a signal. Returns whether it was ignored before.
#[cfg(unix)]
fn ignore(signal: Signal) -> bool {
    use nix::sys::signal::{SigHandler, signal as handle};
    // SAFETY: no handler runs.
    #[allow(unsafe_code)]
    let before = unsafe { handle(signal, SigHandler::SigIgn) };
    matches!(before, Ok(SigHandler::SigIgn))
}
