//! A trace file from its first byte to its final name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use super::name::{Stem, open_list_of, partial_of, without_partial};
use super::{Exact, at, guard, lock, shown};
use crate::record::count_progress;

/// So many files of one name are looked at before the search for a free one is given up.
const MOST_NUMBERS: u32 = 100_000;

/// The `.partial` of a trace, and the right to its final name.
///
/// Dropped without a word, it leaves the file as it is, as a killed process would.
#[derive(Debug)]
#[must_use]
pub(crate) struct Reservation {
    claim: Claim,
    /// Set where the user named one exact file.
    wish: Option<Wish>,
}

/// The exact file name of the run, which this trace has or would like to have.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) slot: Arc<Mutex<Exact>>,
    /// Whether the claim is for that name already.
    pub(super) holds: bool,
    pub(super) stem: Stem,
    pub(super) started: SystemTime,
}

/// A `.partial` file that this process created.
#[derive(Debug)]
pub(super) struct Claim {
    stem: Stem,
    number: u32,
    partial: PathBuf,
    /// A file under the final name that is older than this is replaced.
    replaces: Option<SystemTime>,
    identity: Option<Identity>,
    #[allow(dead_code, reason = "held for its drop")]
    lock: Option<File>,
}

impl Reservation {
    pub(super) fn new(claim: Claim, wish: Option<Wish>) -> Reservation {
        Reservation { claim, wish }
    }

    /// Where the spans that have no lines yet are listed.
    pub(crate) fn open_list(&self) -> PathBuf {
        open_list_of(&without_partial(&self.claim.partial))
    }

    /// Where the trace grows.
    #[cfg(test)]
    pub(crate) fn partial(&self) -> &Path {
        &self.claim.partial
    }

    /// Gives the finished trace its final name, and returns it: another number where a file has
    /// turned up meanwhile, and the exact name that the user gave where that has become free.
    ///
    /// A capture kept aside that is of no more use is to be discarded before.
    ///
    /// # Errors
    /// What the file system says, with the path. The trace is then still in its `.partial`.
    pub(crate) fn commit(self) -> io::Result<PathBuf> {
        let Some(wish) = self.wish else {
            return self.claim.publish();
        };
        let mut slot = guard(&wish.slot);
        let free = *slot == Exact::Free;
        let claim = match free && !wish.holds {
            true => self.claim.moved_to(&wish.stem, wish.started),
            false => self.claim,
        };
        let published = claim.publish();
        if free || wish.holds {
            *slot = match published {
                Ok(_) => Exact::Taken,
                Err(_) => Exact::Free,
            };
        }
        published
    }

    /// Removes the file, as if nothing had been captured.
    pub(crate) fn discard(self) {
        if self.claim.is_there() {
            // A file that cannot be removed is named as a left-over by a later run.
            let _ = fs::remove_file(&self.claim.partial);
        }
        self.leave_exact(Exact::Free);
    }

    /// Leaves the file as it is, for `repair`, and returns its path.
    pub(crate) fn keep_partial(self) -> PathBuf {
        self.leave_exact(Exact::Taken);
        self.claim.partial
    }

    fn leave_exact(&self, state: Exact) {
        if let Some(wish) = self.wish.as_ref().filter(|wish| wish.holds) {
            *guard(&wish.slot) = state;
        }
    }
}

impl Claim {
    /// Creates the first `.partial` of this stem whose trace would be free too.
    ///
    /// With `replaces`, the name without a number counts as free where its file is older.
    pub(super) fn make(stem: Stem, replaces: Option<SystemTime>) -> io::Result<(File, Claim)> {
        for number in 1..=MOST_NUMBERS {
            // Of a folder on another machine each answer may take its time.
            count_progress();
            let replaces = replaces.filter(|_| number == 1);
            let trace = stem.numbered(number);
            if !is_free(&trace, replaces) {
                continue;
            }
            let partial = partial_of(&trace);
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&partial);
            let file = match created.and_then(beyond_the_standard_ones) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(at(&partial, error)),
            };
            // Its former owner may have finished between the look and the creation.
            if !is_free(&trace, replaces) {
                let _ = fs::remove_file(&partial);
                continue;
            }
            let claim = Claim {
                stem,
                number,
                partial,
                replaces,
                identity: Identity::of(&file),
                lock: lock::hold(&file),
            };
            return Ok((file, claim));
        }
        let full = io::Error::new(
            ErrorKind::AlreadyExists,
            "all numbers of this name are used",
        );
        Err(at(&stem.numbered(1), full))
    }

    /// Why the trace does not get the name without a number, if it does not.
    pub(super) fn hindrance(&self) -> Option<String> {
        if self.number == 1 {
            return None;
        }
        let wanted = self.stem.numbered(1);
        let partial = partial_of(&wanted);
        let in_the_way = match fs::symlink_metadata(&partial) {
            Ok(_) => format!("{} was left there", shown(&partial).display()),
            Err(_) => format!(
                "{} is there, and no trace of an earlier run that may be replaced",
                shown(&wanted).display()
            ),
        };
        let own = self.stem.numbered(self.number);
        let own = shown(&own).display();
        Some(format!("{in_the_way}: the trace becomes {own}"))
    }

    /// The same file under a `.partial` of another stem; where that fails, the claim as it is.
    fn moved_to(self, stem: &Stem, replaces: SystemTime) -> Claim {
        let Ok((_, better)) = Claim::make(stem.clone(), Some(replaces)) else {
            return self;
        };
        // This replaces the empty file that was created a line above, and nothing else.
        let moved = self.is_there() && fs::rename(&self.partial, &better.partial).is_ok();
        match moved {
            true => Claim {
                lock: self.lock,
                identity: self.identity,
                ..better
            },
            false => {
                let _ = fs::remove_file(&better.partial);
                self
            }
        }
    }

    /// Whether the file is still under its name. Somebody may have taken it away, or the whole folder, and somebody else
    /// have a file there now.
    fn is_there(&self) -> bool {
        match &self.identity {
            Some(identity) => identity.is_at(&self.partial),
            None => true,
        }
    }

    fn publish(self) -> io::Result<PathBuf> {
        if !self.is_there() {
            let gone = io::Error::new(
                ErrorKind::NotFound,
                "was taken away or replaced while the trace was written, which is lost",
            );
            return Err(at(&self.partial, gone));
        }
        for number in self.number..=MOST_NUMBERS {
            let trace = self.stem.numbered(number);
            let replaced = self.replaces.filter(|_| number == self.number);
            let done = match replaced.is_some() && trace.exists() && is_free(&trace, replaced) {
                true => fs::rename(&self.partial, &trace),
                false => move_to_new(&self.partial, &trace),
            };
            match done {
                Ok(()) => return Ok(trace),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(at(&self.partial, error)),
            }
        }
        let full = io::Error::new(
            ErrorKind::AlreadyExists,
            "all numbers of this name are used",
        );
        Err(at(&self.partial, full))
    }
}

/// What tells a file from any other that may get its name.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    /// `None`: the platform does not say.
    #[cfg(unix)]
    fn of(file: &File) -> Option<Self> {
        file.metadata().ok().as_ref().map(Self::from_metadata)
    }

    #[cfg(unix)]
    fn from_metadata(data: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            device: data.dev(),
            number: data.ino(),
        }
    }

    #[cfg(unix)]
    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|data| Self::from_metadata(&data) == *self)
    }

    #[cfg(not(unix))]
    fn of(_: &File) -> Option<Self> {
        None
    }

    #[cfg(not(unix))]
    fn is_at(&self, _: &Path) -> bool {
        true
    }
}

/// A program that has closed its stdout or stderr gives their numbers to the next file that is opened, and goes on writing
/// to them.
#[cfg(unix)]
fn beyond_the_standard_ones(file: File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    match file.as_raw_fd() {
        // A copy never gets one of these numbers.
        0..=2 => file.try_clone(),
        _ => Ok(file),
    }
}

#[cfg(not(unix))]
fn beyond_the_standard_ones(file: File) -> io::Result<File> {
    Ok(file)
}

/// Whether a trace may have this path: nothing is there, or what may be replaced.
fn is_free(trace: &Path, replaces: Option<SystemTime>) -> bool {
    match (fs::symlink_metadata(trace), replaces) {
        (Err(_), _) => true,
        (Ok(there), Some(started)) if there.is_file() => {
            // A copy may carry the times of its original, so the time it was made counts as well;
            // not every file system knows that one.
            let changed = there.modified().is_ok_and(|time| time <= started);
            let made = there.created().map_or(true, |time| time <= started);
            let writable = !there.permissions().readonly();
            changed && made && writable && (there.len() == 0 || is_trace(trace))
        }
        (Ok(_), _) => false,
    }
}

/// Whether a file begins as every trace does: a name that was given by mistake may be that of somebody's data.
fn is_trace(path: &Path) -> bool {
    const START: &[u8] = br#"{"kind":"meta","schema":"candle-graph/trace/"#;
    let mut start = [0; START.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && start == START
}

/// Moves a file to a path where there is none, or fails with `AlreadyExists`.
pub(crate) fn move_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => {
            // The trace is in place; a second name for it is told as a left-over later.
            let _ = fs::remove_file(from);
            Ok(())
        }
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            Err(error)
        }
        // A file system without links. An empty file of our own holds the place for the rename.
        Err(_) => move_over_placeholder(from, to),
    }
}

fn move_over_placeholder(from: &Path, to: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).open(to)?;
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_links_a_placeholder_keeps_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "new").unwrap();
        fs::write(path("b"), "old").unwrap();
        let refused = move_over_placeholder(&path("a"), &path("b")).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(path("b")).unwrap(), "old");
        move_over_placeholder(&path("a"), &path("c")).unwrap();
        assert_eq!(fs::read_to_string(path("c")).unwrap(), "new");
        assert!(!path("a").exists());
        assert!(move_over_placeholder(&path("a"), &path("d")).is_err());
        assert!(!path("d").exists(), "the placeholder is gone again");
    }
}
