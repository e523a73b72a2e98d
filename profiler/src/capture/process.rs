//! What a process can know about itself and its neighbours without a system call of its own.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// When this process started, as near as the platform tells; at the latest now.
///
/// Files modified after this moment were written by somebody who ran beside us.
pub(crate) fn started() -> SystemTime {
    let now = SystemTime::now();
    age().and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

/// How long this process has run.
#[cfg(target_os = "linux")]
fn age() -> Option<Duration> {
    // Both clocks are cut to hundredths of a second. Erring by two of them towards a later start
    // keeps a file that an earlier run closed just before we began from looking like a neighbour's.
    const ROUNDING: Duration = Duration::from_millis(20);

    let stat = std::fs::read("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses and may hold anything, so the
    // fields are counted from the last parenthesis on; the start time is number 22 of them all.
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = std::str::from_utf8(stat.get(after_name..)?).ok()?;
    let start_ticks: u64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;

    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
    let uptime = Duration::try_from_secs_f64(uptime).ok()?;

    // The kernel reports start times in hundredths of a second to user space.
    let start = Duration::from_millis(start_ticks.checked_mul(10)?);
    // In a container that hides the host's uptime the difference is negative: not known.
    Some(uptime.checked_sub(start)?.saturating_sub(ROUNDING))
}

/// How long this process has run: not known here.
#[cfg(not(target_os = "linux"))]
fn age() -> Option<Duration> {
    None
}

/// Whether a process of this number runs; `None` where the platform does not say.
pub(crate) fn is_alive(pid: u32) -> Option<bool> {
    if !Path::new("/proc/self/stat").exists() {
        return None;
    }
    Some(Path::new("/proc").join(pid.to_string()).exists())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_start_does_not_move_while_the_process_runs() {
        let first = started();
        std::thread::sleep(Duration::from_millis(150));
        let second = started();
        let moved = second
            .duration_since(first)
            .unwrap_or_else(|early| early.duration());
        assert!(moved < Duration::from_millis(60), "{moved:?}");
        assert!(second <= SystemTime::now());
    }

    #[test]
    fn this_process_is_alive_and_an_ended_one_is_not() {
        assert_eq!(is_alive(std::process::id()), Some(true));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        assert_eq!(is_alive(pid), Some(false));
    }
}
