//! How much memory the process holds, from call to call.

use std::sync::OnceLock;

use crate::view::text::bytes;

/// Less growth than this is an allocator's habit, and no news.
const LEAST: u64 = 8 << 20;
/// Nor is less than this part of what was there.
const PART: u64 = 20;

/// The first calls fill caches and pools.
const FEWEST: u32 = 5;

/// What the first capture takes for the profiler itself.
static OWN: OnceLock<u64> = OnceLock::new();

/// Runs, once, the work that takes memory for the profiler.
pub(super) fn own(work: impl FnOnce()) {
    OWN.get_or_init(|| {
        let before = resident();
        work();
        let taken = resident()
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before));
        taken.unwrap_or(0)
    });
}

/// The readings of one measured name.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Resident {
    /// The call's number or step, and the bytes at its end.
    first: Option<(i128, u64)>,
    last: Option<(i128, u64)>,
    calls: u32,
}

impl Resident {
    /// A call ends.
    pub(super) fn read(&mut self, step: i128) {
        if let Some(bytes) = resident() {
            self.take(step, bytes.saturating_sub(OWN.get().copied().unwrap_or(0)));
        }
    }

    fn take(&mut self, step: i128, bytes: u64) {
        self.first.get_or_insert((step, bytes));
        self.last = Some((step, bytes));
        self.calls = self.calls.saturating_add(1);
    }

    /// `resident memory grew 12 MiB from call 1 to call 40 (310 MiB to 322 MiB)`, if it did.
    pub(super) fn growth(&self) -> Option<String> {
        let ((from, before), (to, after)) = self.first.zip(self.last)?;
        if self.calls < FEWEST {
            return None;
        }
        let grown = after.checked_sub(before)?;
        (grown >= LEAST.max(before / PART)).then(|| {
            let (grown, before, after) = (bytes(grown), bytes(before), bytes(after));
            format!(
                "resident memory grew {grown} from call {from} to call {to} ({before} to {after})"
            )
        })
    }
}

/// The bytes of this process that are in memory; `None` where that is not cheap to know.
#[cfg(target_os = "linux")]
fn resident() -> Option<u64> {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    static FILE: OnceLock<Option<(File, u64)>> = OnceLock::new();
    // One open file for all readings: each is one system call.
    let file = FILE.get_or_init(|| Some((File::open("/proc/self/statm").ok()?, page()?)));
    let (file, page) = file.as_ref()?;
    let mut text = [0; 128];
    let read = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(text.get(..read)?).ok()?;
    let pages: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(*page)
}

/// The bytes of a page, as the kernel told this process when it began.
#[cfg(target_os = "linux")]
fn page() -> Option<u64> {
    const PAGE_SIZE: usize = 6;
    let told = std::fs::read("/proc/self/auxv").ok()?;
    let words = told.chunks_exact(size_of::<usize>());
    let words: Vec<usize> = words
        .filter_map(|word| Some(usize::from_ne_bytes(word.try_into().ok()?)))
        .collect();
    let size = words.chunks_exact(2).find(|pair| pair[0] == PAGE_SIZE)?;
    u64::try_from(size[1]).ok()
}

#[cfg(not(target_os = "linux"))]
fn resident() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_and_jitter_is_not() {
        let mut readings = Resident::default();
        assert_eq!(readings.growth(), None);
        for (step, mib) in [(1, 310), (2, 316), (3, 309), (40, 317)] {
            readings.take(step, mib << 20);
            assert_eq!(readings.growth(), None, "{mib}");
        }
        readings.take(41, 330 << 20);
        let said = "resident memory grew 20.0 MiB from call 1 to call 41 (310 MiB to 330 MiB)";
        assert_eq!(readings.growth().as_deref(), Some(said));
        readings.take(42, 300 << 20);
        assert_eq!(readings.growth(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_s_own_figure_is_read() {
        let before = resident().expect("a figure");
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = resident().expect("a figure");
        let status = std::fs::read_to_string("/proc/self/status").expect("a status");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .expect("VmRSS");
        let kib: u64 = line
            .split_ascii_whitespace()
            .nth(1)
            .expect("kB")
            .parse()
            .expect("kB");
        assert!(after.abs_diff(kib << 10) < 32 << 20, "{after} {kib}");
        assert!(after > before + (32 << 20), "{before} {after}");
        drop(block);
    }
}
