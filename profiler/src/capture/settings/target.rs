//! Where traces and summaries go, and when the device is waited for.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::Complaint;

/// Words for no, in lower case; a folder of such a name is written `./none`.
const NO: [&str; 6] = ["0", "off", "false", "no", "none", "disabled"];
/// Words for yes.
const YES: [&str; 5] = ["1", "on", "true", "yes", "enabled"];

/// Where traces go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nowhere: profiling is off.
    Off,
    /// Into this folder, each under a name of its own.
    Folder(PathBuf),
    /// The first into this file, later ones beside it.
    File(PathBuf),
}

impl Target {
    /// Understands any value: what is no known word is a path, UTF-8 or not.
    pub(super) fn read(value: Option<OsString>) -> Target {
        let Some(value) = value else {
            return Target::Off;
        };
        match word(&value).as_deref() {
            Some("") => Target::Off,
            Some(no) if NO.contains(&no) => Target::Off,
            Some(yes) if YES.contains(&yes) => Target::Folder(PathBuf::from("candle-profile")),
            // Encoded bytes are a superset of UTF-8, so an ASCII ending can be compared in them.
            _ if value.as_encoded_bytes().ends_with(b".jsonl") => Target::File(value.into()),
            _ => Target::Folder(value.into()),
        }
    }
}

/// Where the summary of a finished trace is written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryTo {
    /// To the standard error stream.
    Stderr,
    /// Nowhere.
    Off,
    /// Appended to this file.
    File(PathBuf),
}

impl SummaryTo {
    const ALLOWED: &'static str = "stderr, off, or a file (./stdout where it has that name)";

    /// What is no known word is a file. `stdout` would be one by accident only.
    pub(super) fn read(
        subject: &'static str,
        value: Option<OsString>,
    ) -> Result<SummaryTo, Complaint> {
        let Some(value) = value else {
            return Ok(SummaryTo::Stderr);
        };
        match word(&value).as_deref() {
            Some("" | "stderr") => Ok(SummaryTo::Stderr),
            Some(yes) if YES.contains(&yes) => Ok(SummaryTo::Stderr),
            Some(no) if NO.contains(&no) => Ok(SummaryTo::Off),
            Some(word @ "stdout") => {
                let why = "standard output is the program's own".to_owned();
                Err(Complaint::new(subject, word, why, Self::ALLOWED))
            }
            Some(word) if word.ends_with(".jsonl") => {
                let why = "a summary is no trace, whose names end so".to_owned();
                Err(Complaint::new(subject, word, why, Self::ALLOWED))
            }
            _ => Ok(SummaryTo::File(value.into())),
        }
    }
}

/// The value as a word to compare, if it is text at all.
fn word(value: &OsStr) -> Option<String> {
    value.to_str().map(|text| text.trim().to_ascii_lowercase())
}

/// At which points of a capture the device's queue is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncMode {
    /// Never: on a GPU all times are those of enqueueing.
    None,
    /// At both ends of the measured region.
    Measured,
    /// At both ends of every span, which changes what is measured.
    Spans,
}

impl SyncMode {
    pub(super) const ALLOWED: &'static str = "none, measured or spans";

    pub(super) fn parse(subject: &'static str, text: &str) -> Result<SyncMode, Complaint> {
        match text.trim() {
            "none" => Ok(SyncMode::None),
            "measured" => Ok(SyncMode::Measured),
            "spans" => Ok(SyncMode::Spans),
            _ => {
                let why = "it is none of them".to_owned();
                Err(Complaint::new(subject, text, why, Self::ALLOWED))
            }
        }
    }
}
