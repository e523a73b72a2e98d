//! Showing the summary of a capture where the person wants it.

use std::fs::OpenOptions;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::shown;
use super::settings::{SummaryTo, Target};
use super::state;
use crate::say::say;
use crate::view::summary::{self, Digest, Look};
use crate::view::text::printable_line;

/// A line's start on a terminal, whatever stands there: most likely a progress bar, which draws itself again.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Shows the summary of the trace at `path`, and says what nobody would expect of it.
pub(super) fn show(to: &SummaryTo, digest: &Digest, path: &Path) {
    say_of_folder(path);
    if *to != SummaryTo::Stderr {
        say_of_budget(digest, path);
    }
    let look = Look {
        width: 80,
        colour: false,
        unoptimised: cfg!(debug_assertions),
        path: Some(path),
    };
    match to {
        SummaryTo::Off => {}
        SummaryTo::Stderr => {
            let terminal = std::io::stderr().is_terminal();
            let no_color = std::env::var_os("NO_COLOR");
            let colour = summary::wants_colour(terminal, no_color.as_deref());
            let start = if terminal { CLEAR_LINE } else { "" };
            let text = summary::render(digest, &Look { colour, ..look });
            let text = format!("{start}{}{text}", gap());
            crate::say::text(&text);
        }
        SummaryTo::File(file) => {
            let text = format!("{}{}", gap(), summary::render(digest, &look));
            let written = OpenOptions::new()
                .create(true)
                .append(true)
                .open(file)
                .and_then(|mut file| file.write_all(text.as_bytes()));
            if let Err(error) = written {
                crate::say::once(&format!(
                    "the summary cannot be written to {}: {error}",
                    file.display()
                ));
            }
        }
    }
}

/// A folder has the exact name that was asked for, so the trace has another.
fn say_of_folder(path: &Path) {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some(state) = state::known() else {
        return;
    };
    if let Target::File(file) = &state.settings.target
        && state.rank().is_none()
        && file.is_dir()
        && !SAID.swap(true, Ordering::Relaxed)
    {
        let folder = shown(file).display();
        say!(
            "{folder} is a folder, so the trace is {} (CANDLE_PROFILE={folder}/ puts traces into the folder)",
            shown(path).display()
        );
    }
}

/// The first trace that left something out: the summary that says so may be read by nobody.
fn say_of_budget(digest: &Digest, path: &Path) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if let Some(left_out) = digest.left_out()
        && !SAID.swap(true, Ordering::Relaxed)
    {
        let path = shown(path).display();
        say!("{}", printable_line(&format!("{path}: {left_out}")));
    }
}

/// An empty line between two summaries.
fn gap() -> &'static str {
    static SHOWN: AtomicBool = AtomicBool::new(false);
    if SHOWN.swap(true, Ordering::Relaxed) {
        "\n"
    } else {
        ""
    }
}
