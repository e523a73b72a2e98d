//! Whether `::candle_profiler` can be there at all: a crate that only reaches it through another one needs `crate = path`.
//!
//! An unresolved path would be rustc's error, which cannot name our option. Where the user's manifest does not hold the
//! name, the error is ours. Without cargo, or when in doubt, nothing is said.

use std::sync::Mutex;

/// The last manifest looked at: its folder, and whether it lacks the crate. An editor's server expands for many crates.
static SEEN: Mutex<Option<(String, bool)>> = Mutex::new(None);

/// Whether the crate being built has no dependency called `candle-profiler`.
pub(crate) fn lacks_crate() -> bool {
    let Ok(folder) = std::env::var("CARGO_MANIFEST_DIR") else {
        return false;
    };
    let Ok(mut seen) = SEEN.lock() else {
        return false;
    };
    match &*seen {
        Some((known, lacks)) if *known == folder => *lacks,
        _ => {
            let manifest =
                std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml"));
            let lacks = manifest.is_ok_and(|text| !names_crate(&text));
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
