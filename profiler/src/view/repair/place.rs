//! Where the whole trace goes.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::capture::files::{move_to_new, open_list_of, without_partial};

/// So many names are tried.
const MOST_NUMBERS: u32 = 10_000;

/// Whether a trace's name says that it was not finished.
pub(super) fn is_partial(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("partial"))
}

/// The list of what was open, beside a trace that was not finished.
pub(super) fn open_list(broken: &Path) -> PathBuf {
    open_list_of(&without_partial(broken))
}

/// A file that takes its name once it is whole.
pub(super) struct Target {
    wanted: PathBuf,
    numbered: bool,
    growing: PathBuf,
}

impl Target {
    /// The name for the whole trace of `broken`, or the one asked for.
    pub(super) fn new(broken: &Path, asked: Option<&Path>) -> Target {
        let wanted = asked.map_or_else(|| beside(broken), Path::to_owned);
        let mut growing = OsString::from(&wanted);
        growing.push(format!(".repairing-{}", std::process::id()));
        Target {
            wanted,
            numbered: asked.is_none(),
            growing: growing.into(),
        }
    }

    /// The name that it is to get.
    pub(super) fn path(&self) -> &Path {
        &self.wanted
    }

    pub(super) fn create(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .create_new(true)
            .open(&self.growing)
    }

    /// Gives the file its name; an existing file keeps its own.
    pub(super) fn publish(self) -> io::Result<PathBuf> {
        let most = if self.numbered { MOST_NUMBERS } else { 1 };
        for number in 1..=most {
            let path = numbered(&self.wanted, number);
            match move_to_new(&self.growing, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    self.discard();
                    return Err(error);
                }
            }
        }
        self.discard();
        let said = "it exists, and is not overwritten";
        Err(io::Error::new(io::ErrorKind::AlreadyExists, said))
    }

    pub(super) fn discard(self) {
        let _ = fs::remove_file(self.growing);
    }
}

fn beside(broken: &Path) -> PathBuf {
    if is_partial(broken) {
        return without_partial(broken);
    }
    let stem = broken.file_stem().unwrap_or_default();
    let mut name = OsString::from(stem);
    name.push("-repaired");
    if let Some(extension) = broken.extension() {
        name.push(".");
        name.push(extension);
    }
    broken.with_file_name(name)
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}
