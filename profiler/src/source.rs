//! Source files as a trace names them.

/// A source file without the folders that tell who built the program, and where.
///
/// The compiler names a file of the built workspace relative to it, which is kept. It names files of other packages by
/// their absolute path, with the user's home in it: of those only what follows the registry's or git's folder is kept,
/// or the package's own folder.
pub(crate) fn short(file: &str) -> &str {
    if !is_absolute(file) {
        return file;
    }
    // `…/registry/src/INDEX/PACKAGE/…` and `…/git/checkouts/REPOSITORY/COMMIT/…`
    for (store, skipped) in [("/registry/src/", 1), ("/git/checkouts/", 0)] {
        if let Some((_, rest)) = split_last(file, store) {
            return after(rest, skipped);
        }
    }
    for sources in ["/src/", "/tests/", "/examples/", "/benches/"] {
        if let Some((package, _)) = split_last(file, sources) {
            let start = package.rfind(SEPARATORS).map_or(0, |at| at + 1);
            return &file[start..];
        }
    }
    file.rsplit(SEPARATORS).next().unwrap_or(file)
}

const SEPARATORS: [char; 2] = ['/', '\\'];

fn is_absolute(file: &str) -> bool {
    let after_drive = file
        .get(1..3)
        .is_some_and(|rest| rest == ":\\" || rest == ":/");
    file.starts_with(SEPARATORS) || after_drive
}

/// Parts at the last place where `folder` stands, whichever way its separators lean.
fn split_last<'a>(file: &'a str, folder: &str) -> Option<(&'a str, &'a str)> {
    let leaning = folder.replace('/', "\\");
    let at = file.rfind(folder).max(file.rfind(&leaning))?;
    Some((file.get(..at)?, file.get(at + folder.len()..)?))
}

/// What follows the first so many folders.
fn after(path: &str, skipped: usize) -> &str {
    let mut rest = path;
    for _ in 0..skipped {
        rest = rest.split_once(SEPARATORS).map_or(rest, |(_, rest)| rest);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn nobodys_home_is_in_a_path() {
        for (file, expected) in [
            ("src/main.rs", "src/main.rs"),
            ("crates/model/src/lib.rs", "crates/model/src/lib.rs"),
            (
                "/home/alice/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/moe-1.0.2/src/gate.rs",
                "moe-1.0.2/src/gate.rs",
            ),
            (
                "/home/alice/.cargo/git/checkouts/moe-0123/9f8e7d/src/lib.rs",
                "moe-0123/9f8e7d/src/lib.rs",
            ),
            (
                "/home/alice/moe/src/layers/src/gate.rs",
                "layers/src/gate.rs",
            ),
            ("/home/alice/moe/examples/train.rs", "moe/examples/train.rs"),
            ("/home/alice/build.rs", "build.rs"),
            (r"C:\Users\alice\moe\src\lib.rs", r"moe\src\lib.rs"),
            (
                r"C:\Users\alice\.cargo\registry\src\index.crates.io-19\moe-1.0.2\src\lib.rs",
                r"moe-1.0.2\src\lib.rs",
            ),
            ("", ""),
            ("/", ""),
        ] {
            assert_eq!(short(file), expected);
        }
    }
}
