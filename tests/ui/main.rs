//! What is refused, in which words and where; and that errors of the user's own body stay where they are.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[test]
fn refused_programs_say_why() {
    trybuild::TestCases::new().compile_fail("ui/refused/*.rs");
}

#[test]
fn errors_of_a_body_are_its_own() {
    trybuild::TestCases::new().compile_fail("ui/places/*.rs");
    // The same programs without attributes: as many errors, on the same lines.
    for entry in std::fs::read_dir("ui/places").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let expected = std::fs::read_to_string(path.with_extension("stderr")).unwrap();
        assert_eq!(
            error_lines(&expected),
            error_lines(&plain_errors(&path)),
            "{}",
            path.display()
        );
    }
}

/// What rustc says of the program once the lines of attributes and imports are empty.
fn plain_errors(path: &Path) -> String {
    let source = std::fs::read_to_string(path).unwrap();
    let plain: Vec<&str> = source
        .lines()
        .map(|line| {
            if line.starts_with("#[") || line.starts_with("use ") {
                ""
            } else {
                line
            }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain.rs");
    std::fs::write(&file, plain.join("\n")).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--emit", "metadata", "--out-dir"])
        .arg(folder.path())
        .arg(&file)
        .output()
        .unwrap();
    String::from_utf8(output.stderr).unwrap()
}

/// How many errors have their first place on which line.
fn error_lines(stderr: &str) -> BTreeMap<u32, usize> {
    let mut lines = BTreeMap::new();
    let mut in_error = false;
    for line in stderr.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            in_error = line.starts_with("error");
        } else if let Some((_, place)) = line.split_once("--> ").filter(|_| in_error) {
            let number = place.split(':').nth(1).unwrap().parse().unwrap();
            *lines.entry(number).or_default() += 1;
            in_error = false;
        }
    }
    lines
}
