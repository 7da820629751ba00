//! The processes of a command: its group, and on Linux also those that have left it.

/// Makes orphans among the command's processes children of this process, so that they can be found.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Ends a command that runs, with all processes that it has started.
#[cfg(unix)]
pub(super) fn end_processes(group: u32) {
    use nix::sys::signal::{Signal, killpg};
    // It may have ended meanwhile.
    let _ = killpg(nix::unistd::Pid::from_raw(group as i32), Signal::SIGKILL);
    #[cfg(target_os = "linux")]
    linux::end(&linux::descendants());
}

#[cfg(not(unix))]
pub(super) fn end_processes(id: u32) {
    // The standard library can only end a process that no other thread waits for.
    let _ = std::process::Command::new("taskkill").args(["/F", "/T", "/PID", &id.to_string()]).output();
}

/// Ends the processes that a command has left behind, by the number of the group that it had.
pub(super) fn end_rest(group: u32) {
    #[cfg(target_os = "linux")]
    {
        let _ = group;
        linux::end_all();
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    end_processes(group);
    #[cfg(not(unix))]
    let _ = group;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    use nix::unistd::Pid;

    /// A process that the system cannot end, such as one that waits for a disk, is not waited for longer.
    const MAX: Duration = Duration::from_secs(2);

    /// Ends all descendants of this process, also those that start meanwhile. No thread may wait for a child.
    pub fn end_all() {
        let begun = Instant::now();
        loop {
            while let Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) =
                waitpid(None, Some(WaitPidFlag::WNOHANG))
            {}
            let left = descendants();
            if left.is_empty() || begun.elapsed() > MAX {
                return;
            }
            end(&left);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub fn end(processes: &[i32]) {
        for &process in processes {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }

    /// The descendants of this process.
    pub fn descendants() -> Vec<i32> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for process in names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            if let Some(parent) = parent(process) {
                children.entry(parent).or_default().push(process);
            }
        }
        let mut found = children.remove(&Pid::this().as_raw()).unwrap_or_default();
        let mut next = 0;
        while let Some(process) = found.get(next) {
            let more = children.remove(process).unwrap_or_default();
            found.extend(more);
            next += 1;
        }
        found
    }

    /// The parent of a process. Its name, which precedes it, may contain spaces and brackets.
    fn parent(process: i32) -> Option<i32> {
        let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    }
}

/// Processor seconds of all ended children, and the most memory of one of them.
#[cfg(unix)]
pub(super) fn resources() -> (Option<f64>, Option<u64>) {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return (None, None) };
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    // Apple's systems count bytes, the others kilobytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    (
        Some(seconds(usage.user_time()) + seconds(usage.system_time())),
        u64::try_from(usage.max_rss()).ok().map(|most| most * unit),
    )
}

#[cfg(not(unix))]
pub(super) fn resources() -> (Option<f64>, Option<u64>) {
    (None, None)
}
