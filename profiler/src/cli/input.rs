//! The traces that the arguments name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::output;
use crate::trace::{TraceDocument, parse_trace_reader};
use crate::view::diff::Facts;
use crate::view::summary::{self, Fed};

/// Files smaller than this are read before a bar could be seen.
const LARGE: u64 = 16 << 20;

/// A trace to be read.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// `-` is standard input.
    pub(super) path: PathBuf,
}

/// The traces of some arguments, in their order; those of a folder or a pattern in the order of their names, where
/// numbers count as numbers.
pub(super) fn all(arguments: &[PathBuf]) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        inputs.extend(expand(argument)?);
    }
    let stdin = inputs.iter().filter(|input| input.is_stdin()).count();
    ensure!(stdin <= 1, "`-` is named {stdin} times, standard input can be read once");
    Ok(inputs)
}

fn expand(argument: &Path) -> Result<Vec<Input>> {
    let text = argument.to_string_lossy();
    let pattern = if argument.is_dir() {
        let folder = glob::Pattern::escape(&text);
        format!("{}/*.jsonl", folder.trim_end_matches('/'))
    } else if text != "-" && text.contains(['*', '?', '[']) && !argument.exists() {
        text.to_string()
    } else {
        return Ok(vec![Input {
            path: argument.to_path_buf(),
        }]);
    };
    let found = glob::glob(&pattern).with_context(|| format!("pattern {text}"))?;
    let mut paths: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    if paths.is_empty() {
        bail!("{text}: there is no trace (a file that ends in .jsonl)");
    }
    paths.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
    Ok(paths.into_iter().map(|path| Input { path }).collect())
}

/// A name in parts, so that `step10` comes after `step9`.
fn natural(name: &str) -> Vec<(u64, String)> {
    let mut parts: Vec<(u64, String)> = vec![(0, String::new())];
    let mut in_number = false;
    for letter in name.chars() {
        match (letter.to_digit(10), parts.last_mut()) {
            (Some(digit), Some((number, _))) if in_number => {
                *number = number.saturating_mul(10).saturating_add(digit.into());
            }
            (Some(digit), _) => parts.push((digit.into(), String::new())),
            (None, Some((_, text))) => text.push(letter),
            (None, None) => {}
        }
        in_number = letter.is_ascii_digit();
    }
    parts
}

impl Input {
    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// What the trace is called in messages.
    pub(super) fn name(&self) -> String {
        match self.is_stdin() {
            true => "standard input".to_owned(),
            false => self.path.display().to_string(),
        }
    }

    /// The path, where it is a file.
    pub(super) fn file(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|_| !self.is_stdin())
    }

    fn open(&self) -> Result<Box<dyn BufRead>> {
        const BUFFER: usize = 1 << 18;
        if self.is_stdin() {
            return Ok(Box::new(BufReader::with_capacity(BUFFER, io::stdin())));
        }
        let file = File::open(&self.path).with_context(|| format!("open {}", self.name()))?;
        let metadata = file.metadata();
        let length = metadata.map_or(0, |metadata| metadata.len());
        if length < LARGE || !output::watched() {
            return Ok(Box::new(BufReader::with_capacity(BUFFER, file)));
        }
        let reader = Watched {
            bar: bar(length, &self.name()),
            file,
        };
        Ok(Box::new(BufReader::with_capacity(BUFFER, reader)))
    }

    /// The whole trace.
    pub(super) fn document(&self) -> Result<TraceDocument> {
        parse_trace_reader(self.open()?).map_err(|error| self.wrong(error))
    }

    /// The whole trace, or what makes it none; a file that cannot be opened is an error all the same.
    pub(super) fn checked_document(&self) -> Result<Result<TraceDocument, String>> {
        let parsed = parse_trace_reader(self.open()?);
        Ok(parsed.map_err(|error| format!("{:#}", self.wrong(error))))
    }

    /// What the trace comes to, in little memory.
    pub(super) fn digest(&self) -> Result<Fed> {
        summary::read(self.open()?).map_err(|error| self.wrong(error))
    }

    /// What is compared of it.
    pub(super) fn facts(&self) -> Result<Facts> {
        Facts::read(self.name(), self.open()?).map_err(|error| self.wrong(error))
    }

    /// `x.jsonl, line 3: …`
    fn wrong(&self, error: anyhow::Error) -> anyhow::Error {
        let text = format!("{error:#}");
        let text = text.strip_prefix("trace, ").unwrap_or(&text);
        let text = text.strip_prefix("trace: ").unwrap_or(text);
        let separator = if text.starts_with("line ") { ", " } else { ": " };
        let mut text = format!("{}{separator}{text}", self.name());
        if text.ends_with("the trace was cut off")
            && let Some(path) = self.file()
        {
            let word = crate::view::text::shell_word(path);
            text += &format!("; to repair it: candle-profile repair {word}");
        }
        anyhow!("{text}")
    }
}

fn bar(length: u64, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    let bar = ProgressBar::new(length);
    // The template is a constant of ours; without it the bar only looks different.
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style)
        .with_message(crate::view::text::printable(name, 40))
}

/// A file whose reading is shown on standard error.
struct Watched {
    bar: ProgressBar,
    file: File,
}

impl Read for Watched {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(to)?;
        self.bar.inc(read as u64);
        Ok(read)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
