//! The names of trace files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Wanted;

/// Leaves room for step, rank, number and ending within the 255 bytes of a file name.
const MOST_BYTES: usize = 100;

/// A measured name as part of a file name, which can never lead out of its folder.
///
/// Letters, digits, `_`, `.` and `-` stay; whatever stands between them becomes one `-`; dots and
/// dashes at the ends go. `Trainer::train_step` is `Trainer-train_step`.
pub(crate) fn safe_name(name: &str) -> String {
    let mut safe = String::new();
    for letter in name.chars() {
        let kept = letter.is_alphanumeric() || matches!(letter, '_' | '.' | '-');
        let letter = if kept { letter } else { '-' };
        if letter == '-' && safe.ends_with('-') {
            continue;
        }
        if safe.len() + letter.len_utf8() > MOST_BYTES {
            break;
        }
        safe.push(letter);
    }
    let safe = safe.trim_matches(['.', '-']);
    match safe {
        "" => "capture".to_owned(),
        _ if is_a_windows_device(safe) => format!("_{safe}"),
        _ => safe.to_owned(),
    }
}

/// Windows opens a device for these names, whatever follows the first dot.
fn is_a_windows_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).to_ascii_uppercase();
    let numbered = |prefix| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest: &str| rest.chars().count() == 1 && rest != "0")
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

/// A trace's path without number and `.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stem(PathBuf);

impl Stem {
    /// `FOLDER/{name}-step{N}[-rank{R}]`
    pub(super) fn in_folder(folder: &Path, wanted: Wanted<'_>) -> Stem {
        let name = format!("{}-step{}", safe_name(wanted.name), wanted.step);
        Stem(folder.join(name)).ranked(wanted.rank)
    }

    /// The file the user named, `[-rank{R}]`.
    pub(super) fn exact(file: &Path, rank: Option<u64>) -> Stem {
        Stem(without_ending(file)).ranked(rank)
    }

    /// The file the user named, `-{name}-step{N}[-rank{R}]`, for all but the first trace.
    pub(super) fn beside(file: &Path, wanted: Wanted<'_>) -> Stem {
        let tail = format!("-{}-step{}", safe_name(wanted.name), wanted.step);
        Stem(without_ending(file)).with(&tail).ranked(wanted.rank)
    }

    fn ranked(self, rank: Option<u64>) -> Stem {
        match rank {
            Some(rank) => self.with(&format!("-rank{rank}")),
            None => self,
        }
    }

    fn with(self, tail: &str) -> Stem {
        let mut path: OsString = self.0.into();
        path.push(tail);
        Stem(path.into())
    }

    /// The trace's path: the first has no number, the next are `-2`, `-3` and so on.
    pub(super) fn numbered(&self, number: u32) -> PathBuf {
        let tail = match number {
            0 | 1 => ".jsonl".to_owned(),
            _ => format!("-{number}.jsonl"),
        };
        self.clone().with(&tail).0
    }
}

/// The path without its `.jsonl`, which is no extension where it is the whole name.
fn without_ending(file: &Path) -> PathBuf {
    match file.extension() {
        Some(_) => file.with_extension(""),
        None => file.with_file_name(""),
    }
}

/// Where a trace grows.
pub(super) fn partial_of(trace: &Path) -> PathBuf {
    with_ending(trace, ".partial")
}

/// Where the spans of other threads and futures are listed while they are open and have no lines in the trace.
pub(crate) fn open_list_of(trace: &Path) -> PathBuf {
    with_ending(trace, ".open")
}

/// The trace's name, from where it grows.
pub(crate) fn without_partial(partial: &Path) -> PathBuf {
    match partial.extension() {
        Some(extension) if extension == "partial" => partial.with_extension(""),
        _ => partial.to_owned(),
    }
}

fn with_ending(trace: &Path, ending: &str) -> PathBuf {
    let mut path = OsString::from(trace);
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_readable_file_names() {
        let cases = [
            ("train_step", "train_step"),
            ("demo::Trainer::train_step", "demo-Trainer-train_step"),
            ("a - b", "a-b"),
            ("lr=0.1 {x}", "lr-0.1-x"),
            ("шаг 層", "шаг-層"),
            ("../../etc/passwd", "etc-passwd"),
            ("..", "capture"),
            ("", "capture"),
            ("/", "capture"),
            ("C:\\x\0y\n", "C-x-y"),
            (".hidden.", "hidden"),
            ("nul", "_nul"),
            ("Com7.log", "_Com7.log"),
            ("com10", "com10"),
            ("console", "console"),
            ("<T as Model>::forward", "T-as-Model-forward"),
        ];
        for (name, safe) in cases {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        let long = safe_name(&"層".repeat(500));
        assert_eq!(long, "層".repeat(33));
    }

    #[test]
    fn paths_are_built_from_name_step_and_rank() {
        let wanted = Wanted {
            name: "m::f",
            step: -3,
            rank: Some(1),
        };
        let folder = Stem::in_folder(Path::new("d"), wanted);
        assert_eq!(folder.numbered(1), Path::new("d/m-f-step-3-rank1.jsonl"));
        assert_eq!(folder.numbered(2), Path::new("d/m-f-step-3-rank1-2.jsonl"));
        let file = Path::new("d/run.v1.jsonl");
        let trace = |stem: Stem| stem.numbered(1);
        assert_eq!(trace(Stem::exact(file, None)), file);
        let bare = Path::new("d/.jsonl");
        assert_eq!(trace(Stem::exact(bare, None)), bare);
        assert_eq!(
            trace(Stem::exact(file, Some(0))),
            Path::new("d/run.v1-rank0.jsonl")
        );
        assert_eq!(
            trace(Stem::beside(file, wanted)),
            Path::new("d/run.v1-m-f-step-3-rank1.jsonl")
        );
        assert_eq!(partial_of(file), Path::new("d/run.v1.jsonl.partial"));
    }
}
