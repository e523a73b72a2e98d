//! Files of traces: their names, and the rule that nothing of anybody's is ever overwritten.
//!
//! A trace grows in `NAME.jsonl.partial`, created exclusively. Whoever holds the `.partial` owns
//! `NAME.jsonl` too: every process looks for both before it settles for a name, so two never
//! want the same file. What other programs put there is safe as well, since the last step links
//! the finished trace to its name, which fails where there is a file.

mod leftover;
mod lock;
mod name;
mod reservation;

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

pub(crate) use leftover::Leftover;
pub(crate) use lock::{Lock, look};
#[cfg(feature = "cli")]
pub(crate) use name::safe_name;
pub(crate) use name::{open_list_of, without_partial};
pub(crate) use reservation::{Reservation, move_to_new};

use super::settings::{Settings, Target};
use name::Stem;
use reservation::Claim;

/// Hands out the files of this run.
#[derive(Debug)]
pub(crate) struct Files {
    target: Target,
    started: SystemTime,
    exact: Arc<Mutex<Exact>>,
    /// Folders whose left-overs were told.
    told: Mutex<HashSet<PathBuf>>,
}

/// Who has the exact file name that the user gave, if one was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exact {
    Free,
    /// A capture under way.
    Held,
    /// A finished trace of this run.
    Taken,
}

/// What a trace's file is named after.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The measured name.
    pub(crate) name: &'a str,
    /// The call's count or the program's own number.
    pub(crate) step: i128,
    /// The rank, where it is known.
    pub(crate) rank: Option<u64>,
}

impl Files {
    /// Paths are made absolute here, so that a program may change its folder while a trace grows.
    pub(crate) fn new(settings: &Settings) -> Files {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let target = match &settings.target {
            Target::Off => Target::Off,
            Target::Folder(path) => Target::Folder(absolute(path)),
            Target::File(path) => Target::File(absolute(path)),
        };
        Files {
            target,
            started: settings.started,
            exact: Arc::new(Mutex::new(Exact::Free)),
            told: Mutex::default(),
        }
    }

    /// Creates the `.partial` of a new trace, and its folder where that is missing.
    ///
    /// # Errors
    /// What the file system says, with the path; and that profiling is off.
    pub(crate) fn reserve(&self, wanted: Wanted<'_>) -> io::Result<(File, Reservation)> {
        let (folder, own) = match &self.target {
            Target::Off => return Err(io::Error::other("profiling is off")),
            Target::Folder(folder) => (folder.as_path(), Stem::in_folder(folder, wanted)),
            Target::File(file) => (folder_of(file), Stem::beside(file, wanted)),
        };
        if folder.is_file() {
            let error = io::Error::new(io::ErrorKind::NotADirectory, "is a file, not a folder");
            return Err(at(folder, error));
        }
        std::fs::create_dir_all(folder).map_err(|error| at(folder, error))?;

        let Target::File(file) = &self.target else {
            let (file, claim) = Claim::make(own, None)?;
            return Ok((file, Reservation::new(claim, None)));
        };
        let first = Stem::exact(file, wanted.rank);
        let mut exact = guard(&self.exact);
        let (file, claim) = match *exact {
            Exact::Free => Claim::make(first.clone(), Some(self.started))?,
            Exact::Held | Exact::Taken => Claim::make(own, None)?,
        };
        if *exact == Exact::Free
            && let Some(hindrance) = claim.hindrance()
        {
            crate::say::once(&hindrance);
        }
        let holds = *exact == Exact::Free;
        if holds {
            *exact = Exact::Held;
        }
        drop(exact);
        let wish = reservation::Wish {
            slot: Arc::clone(&self.exact),
            holds,
            stem: first,
            started: self.started,
        };
        Ok((file, Reservation::new(claim, Some(wish))))
    }

    /// What dead processes left in the folder of the traces. Each folder is told once.
    pub(crate) fn leftovers(&self) -> Vec<Leftover> {
        let (folder, only) = match &self.target {
            Target::Off => return Vec::new(),
            Target::Folder(folder) => (folder.as_path(), None),
            Target::File(file) => (folder_of(file), file.file_stem()),
        };
        let new = guard(&self.told).insert(folder.to_owned());
        match new {
            true => leftover::find(folder, only),
            false => Vec::new(),
        }
    }
}

/// A path as short as it can be said from where the program stands.
pub(crate) fn shown(path: &Path) -> &Path {
    match std::env::current_dir() {
        Ok(here) => path.strip_prefix(&here).unwrap_or(path),
        Err(_) => path,
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

/// The error with the path it is about.
fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Nothing panics while these locks are held, so a poisoned one holds sound data.
fn guard<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
