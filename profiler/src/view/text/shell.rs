//! Paths as words of a shell.

use std::fmt::Write;
use std::path::Path;

use super::{obeyed_or_hidden, printable};

/// A path as one word of a shell command, whatever bytes it is made of.
pub(crate) fn shell_word(path: &Path) -> String {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    // A path that starts like an option would be taken for one.
    if bytes.starts_with(b"-") {
        bytes.splice(..0, *b"./");
    }
    let text = String::from_utf8_lossy(&bytes);
    let windows = cfg!(windows);
    let is_plain = |byte: u8| {
        byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte) || (windows && byte == b'\\')
    };
    if !bytes.is_empty() && bytes.iter().all(|&byte| is_plain(byte)) {
        return text.into_owned();
    }
    if windows {
        return format!("\"{}\"", printable(&text, 4096));
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.chars().any(obeyed_or_hidden) => {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
        _ => escaped_word(&bytes),
    }
}

/// Quotes in the way of bash and zsh that can say any byte in plain letters.
fn escaped_word(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    let escape = |word: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing into a text cannot fail.
            let _ = write!(word, "\\x{byte:02x}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\'' | '\\' => word.extend(['\\', letter]),
                _ if obeyed_or_hidden(letter) => {
                    escape(&mut word, letter.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => word.push(letter),
            }
        }
        escape(&mut word, chunk.invalid());
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_survive_a_shell() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        use std::process::Command;
        let paths: [&[u8]; 9] = [
            b"a/b.jsonl",
            b"a b",
            b"it's",
            b"$HOME `id` \"x\" \\",
            b"-rf",
            b"tab\there\n",
            b"\xff\xfe'x",
            "層".as_bytes(),
            "\u{202e}txt".as_bytes(),
        ];
        for path in paths {
            let word = shell_word(Path::new(OsStr::from_bytes(path)));
            assert!(!word.chars().any(obeyed_or_hidden), "{word:?}");
            let script = format!("printf %s. {word}");
            let Ok(output) = Command::new("bash").args(["-c", &script]).output() else {
                return;
            };
            let said = output.stdout.strip_prefix(b"./").unwrap_or(&output.stdout);
            assert_eq!(said, [path, b"."].concat());
        }
        assert_eq!(shell_word(Path::new("out/run-2.jsonl")), "out/run-2.jsonl");
    }
}
