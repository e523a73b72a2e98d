//! The traces that the arguments name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::output;
use super::unfinished::{self, Unfinished};
use crate::trace::read::TORN;
use crate::trace::sequence::CUT_OFF;
use crate::trace::{TraceDocument, parse_trace_reader};
use crate::view::diff::Facts;
use crate::view::summary::{self, Fed};
use crate::view::text::printable;

/// Files smaller than this are read before a bar could be seen.
const LARGE: u64 = 16 << 20;

/// A trace to be read.
#[derive(Debug, Clone)]
pub(super) struct Input {
    /// `-` is standard input.
    pub(super) path: PathBuf,
}

/// What a folder is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Whole,
    Broken,
}

impl Kind {
    fn ending(self) -> &'static str {
        match self {
            Kind::Whole => ".jsonl",
            Kind::Broken => ".partial",
        }
    }

    fn takes(self, path: &Path) -> bool {
        match self {
            // A link to a trace is one; where a link leads nowhere, reading it says so.
            Kind::Whole => std::fs::metadata(path).map_or(true, |found| found.is_file()),
            Kind::Broken => std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()),
        }
    }
}

/// The traces of some arguments, in their order; those of a folder or a pattern in the order of their names, where
/// numbers count as numbers.
pub(super) fn all(arguments: &[PathBuf]) -> Result<Vec<Input>> {
    expand_all(arguments, Kind::Whole)
}

/// The same of traces that broke off: of a folder, what ends in `.partial`.
pub(super) fn broken(arguments: &[PathBuf]) -> Result<Vec<Input>> {
    expand_all(arguments, Kind::Broken)
}

fn expand_all(arguments: &[PathBuf], kind: Kind) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for argument in arguments {
        inputs.extend(expand(argument, kind)?);
    }
    let stdin = inputs.iter().filter(|input| input.is_stdin()).count();
    ensure!(
        stdin <= 1,
        "`-` is named {stdin} times, standard input can be read once"
    );
    Ok(inputs)
}

fn expand(argument: &Path, kind: Kind) -> Result<Vec<Input>> {
    let mut paths = if is_stdin(argument) {
        return Ok(vec![Input::at(argument)]);
    } else if argument.is_dir() {
        in_folder(argument, kind)?
    } else if let Some(pattern) = pattern_of(argument) {
        matching(&pattern)?
    } else {
        return Ok(vec![Input::at(argument)]);
    };
    if paths.is_empty() {
        bail!(nothing_found(argument, kind)?);
    }
    if kind == Kind::Whole && argument.is_dir() {
        let unfinished = in_folder(argument, Kind::Broken)?;
        if let Some(text) = unfinished::some(&unfinished, argument) {
            output::note(&format!(
                "{} is read without what is unfinished: {text}",
                argument.display()
            ));
        }
    }
    paths.sort_by_cached_key(|path| natural(&path.to_string_lossy()));
    Ok(paths.into_iter().map(|path| Input { path }).collect())
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A name that no file has, with letters of a pattern in it.
fn pattern_of(argument: &Path) -> Option<String> {
    let text = argument.to_str()?;
    (text.contains(['*', '?', '[']) && !argument.exists()).then(|| text.to_owned())
}

fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let found = glob::glob(pattern).with_context(|| format!("pattern {pattern}"))?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// The files of a folder whose names end so, whatever bytes those are made of. A pipe or a device of such a name is none:
/// reading it may never end.
fn in_folder(folder: &Path, kind: Kind) -> Result<Vec<PathBuf>> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let name = entry?.file_name();
            if !name.as_encoded_bytes().ends_with(kind.ending().as_bytes()) {
                continue;
            }
            let path = folder.join(&name);
            if kind.takes(&path) {
                paths.push(match folder.as_os_str() == "." {
                    true => name.into(),
                    false => path,
                });
            }
        }
        Ok(paths)
    };
    read().with_context(|| format!("read folder {}", folder.display()))
}

/// What is wrong where a folder or a pattern names nothing; traces that broke off are named.
fn nothing_found(argument: &Path, kind: Kind) -> Result<String> {
    let name = argument.display();
    let is_folder = argument.is_dir();
    let said = match (is_folder, kind) {
        (true, Kind::Whole) => format!("{name}: there is no trace (a file that ends in .jsonl)"),
        (true, Kind::Broken) => {
            format!("{name}: there is no trace that broke off (a file that ends in .partial)")
        }
        (false, _) => format!("{name}: no file matches"),
    };
    if kind == Kind::Broken {
        return Ok(said);
    }
    let ending = Kind::Broken.ending();
    let broken = match is_folder {
        true => in_folder(argument, Kind::Broken)?,
        false => matching(&format!("{name}{ending}"))?,
    };
    let all_of_them = match is_folder {
        true => argument.to_owned(),
        false => PathBuf::from(format!("{name}{ending}")),
    };
    Ok(match unfinished::some(&broken, &all_of_them) {
        Some(unfinished) => format!("{said}; {unfinished}"),
        None => said,
    })
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
    fn at(path: &Path) -> Input {
        Input {
            path: path.to_owned(),
        }
    }

    pub(super) fn is_stdin(&self) -> bool {
        is_stdin(&self.path)
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
        let file = File::open(&self.path).with_context(|| self.not_opened())?;
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

    /// A trace that was not finished lies beside where it would be.
    fn not_opened(&self) -> String {
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let name = self.name();
        if self.path.exists() || !partial.is_file() {
            return format!("open {name}");
        }
        match Unfinished::of(&partial) {
            Unfinished::Broken(partial) => {
                format!(
                    "open {name}, which broke off ({})",
                    unfinished::to_repair(&partial)
                )
            }
            growing => format!("open {name}, which {growing}"),
        }
    }

    /// The whole trace.
    pub(super) fn document(&self) -> Result<TraceDocument> {
        parse_trace_reader(self.open()?).map_err(|error| self.wrong(error))
    }

    /// The whole trace, or what makes it none; a file that cannot be read is an error all the same.
    pub(super) fn checked_document(&self) -> Result<Result<TraceDocument, String>> {
        match parse_trace_reader(self.open()?) {
            Ok(document) => Ok(Ok(document)),
            Err(error) if error.is::<io::Error>() => Err(self.wrong(error)),
            Err(error) => Ok(Err(format!("{:#}", self.wrong(error)))),
        }
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
        if let Some(fault) = error.downcast_ref::<io::Error>() {
            return anyhow!("read {}: {fault}", self.name());
        }
        let text = format!("{error:#}");
        let text = text.strip_prefix("trace, ").unwrap_or(&text);
        let text = text.strip_prefix("trace: ").unwrap_or(text);
        let separator = if text.starts_with("line ") {
            ", "
        } else {
            ": "
        };
        let whole = format!("{}{separator}{text}", self.name());
        let torn = [CUT_OFF, TORN].iter().any(|torn| text.ends_with(torn));
        match self.file().filter(|_| torn).map(Unfinished::of) {
            None => anyhow!("{whole}"),
            Some(Unfinished::Broken(path)) => anyhow!("{whole}; {}", unfinished::to_repair(&path)),
            // What is missing is still to come.
            Some(growing) => anyhow!("{} {growing}", self.name()),
        }
    }
}

fn bar(length: u64, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    let bar = ProgressBar::new(length);
    // The template is a constant of ours; without it the bar only looks different.
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(printable(name, 40))
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
