//! Whether `::candle_profiler` can be there at all: a crate that only reaches it through another one needs `crate = path`.
//!
//! An unresolved path would be rustc's error, which cannot name our option. Where the user's manifest does not hold the
//! name, and no `extern crate` gives it, the error is ours. Without cargo, or when in doubt, nothing is said.

use proc_macro2::Span;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The last manifest looked at: its folder, and whether it lacks the crate. An editor's server expands for many crates.
static SEEN: Mutex<Option<(String, bool)>> = Mutex::new(None);

/// Whether the crate being built has nothing called `candle_profiler`; `used` is where one of our attributes stands.
pub(crate) fn lacks_crate(used: Span) -> bool {
    // A program, an example or a test of one file names its crates where it uses them.
    manifest_lacks_crate() && !own_file(used).is_some_and(|file| reads(&file, gives_name))
}

/// The file of a token, if the compiler knows it.
fn own_file(used: Span) -> Option<PathBuf> {
    proc_macro::is_available()
        .then(|| used.unwrap().local_file())
        .flatten()
}

/// Whether a file can be read and its text is so.
fn reads(file: &Path, is_so: impl FnOnce(&str) -> bool) -> bool {
    std::fs::read_to_string(file).is_ok_and(|text| is_so(&text))
}

/// Whether the dependencies lack the crate, and the library or the program of the package gives no other one its name.
fn manifest_lacks_crate() -> bool {
    let Ok(folder) = std::env::var("CARGO_MANIFEST_DIR") else {
        return false;
    };
    let Ok(mut seen) = SEEN.lock() else {
        return false;
    };
    match &*seen {
        Some((known, lacks)) if *known == folder => *lacks,
        _ => {
            let within = |file: &str| Path::new(&folder).join(file);
            let lacks = reads(&within("Cargo.toml"), |text| !names_crate(text))
                && !reads(&within("src/lib.rs"), gives_name)
                && !reads(&within("src/main.rs"), gives_name);
            *seen = Some((folder, lacks));
            lacks
        }
    }
}

/// Whether the name stands in a manifest as a dependency's key or as the package itself; a renamed dependency has it
/// as `package = "…"` only.
pub(crate) fn names_crate(manifest: &str) -> bool {
    let manifest = manifest.replace("candle_profiler", "candle-profiler");
    manifest.match_indices("candle-profiler").any(|(at, name)| {
        let before = manifest[..at].trim_end_matches(['"', '\'']).trim_end();
        let after = manifest[at + name.len()..]
            .trim_start_matches(['"', '\''])
            .trim_start_matches([' ', '\t']);
        let itself = before
            .strip_suffix('=')
            .is_some_and(|key| key.trim_end().ends_with("name"));
        itself || after.starts_with(['=', '.', ']'])
    })
}

/// Whether a source file holds `extern crate … as candle_profiler;`.
pub(crate) fn gives_name(source: &str) -> bool {
    source.match_indices("extern crate").any(|(at, _)| {
        let statement = source[at..].split(';').next().unwrap_or_default();
        let mut words = statement.split_whitespace().rev();
        words.next() == Some("candle_profiler") && words.next() == Some("as")
    })
}
