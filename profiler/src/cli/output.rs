//! Where results go.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::input::Input;
use crate::capture::files::move_to_new;
use crate::view::text::{columns, printable_line};

/// Standard output. A reader that has left is no error: what it wanted, it has.
pub(super) struct Out<W> {
    to: W,
    left: bool,
}

impl<W: Write> Out<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, left: false }
    }

    fn quietly<T>(&mut self, done: io::Result<T>, otherwise: T) -> io::Result<T> {
        match done {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.left = true;
                Ok(otherwise)
            }
            done => done,
        }
    }
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left {
            return Ok(bytes.len());
        }
        let done = self.to.write(bytes);
        self.quietly(done, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.left {
            return Ok(());
        }
        let done = self.to.flush();
        self.quietly(done, ())
    }
}

/// Whether standard output may have colour: a terminal whose owner does not refuse it, or a wish for it all the same.
pub(super) fn colour() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

/// Whether somebody looks at standard error.
pub(super) fn watched() -> bool {
    io::stderr().is_terminal()
}

/// Says on standard error what is doubtful; the work goes on.
pub(super) fn warn(text: &str) {
    said(&format!("warning: {text}"));
}

/// Says on standard error what is worth knowing.
pub(super) fn note(text: &str) {
    said(text);
}

/// Says on standard error what could not be done.
pub(super) fn fault(error: &anyhow::Error) {
    said(&format!("{error:#}"));
}

fn said(text: &str) {
    let text = printable_line(text);
    // Nobody is left to tell where stderr cannot be written.
    let _ = writeln!(io::stderr(), "candle-profile: {text}");
}

pub(super) fn json(out: &mut dyn Write, value: &Value) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// A sentence in lines of a terminal's usual width, indented from the second on. Words, which may be paths, stay whole.
pub(super) fn sentence(out: &mut dyn Write, sentence: &str) -> Result<()> {
    const WIDTH: usize = 80;
    let mut used = 0;
    for word in printable_line(sentence).split(' ') {
        let width = columns(word);
        match used {
            0 => {}
            _ if used + 1 + width > WIDTH => {
                write!(out, "\n  ")?;
                used = 2;
            }
            _ => {
                write!(out, " ")?;
                used += 1;
            }
        }
        write!(out, "{word}")?;
        used += width;
    }
    writeln!(out)?;
    Ok(())
}

/// What was written, as an object: `candle-profiler/export/1` and its like.
pub(super) fn written(
    command: &str,
    inputs: &[Input],
    paths: &[PathBuf],
    warnings: &[String],
) -> Value {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    json!({
        "schema": format!("candle-profiler/{command}/1"),
        "traces": inputs.iter().map(Input::name).collect::<Vec<_>>(),
        "paths": paths,
        "warnings": warnings,
    })
}

/// A file that was asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) path: &'a Path,
    /// One that is there is replaced.
    pub(super) force: bool,
    /// None of these is.
    pub(super) inputs: &'a [Input],
}

/// The file that was asked for, if one was: what is wrong with it is told before the work is done.
pub(super) fn target<'a>(
    path: Option<&'a Path>,
    force: bool,
    inputs: &'a [Input],
) -> Result<Option<Target<'a>>> {
    let target = path.map(|path| Target {
        path,
        force,
        inputs,
    });
    target.map_or(Ok(()), |target| target.check())?;
    Ok(target)
}

/// Has `write` write to the file, where one is named, else to standard output.
pub(super) fn write_to(
    target: Option<Target<'_>>,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match target {
        Some(target) => target.write(write),
        None => write(out),
    }
}

impl Target<'_> {
    /// The file takes its name once it is whole: until then, what was there stays.
    pub(super) fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let name = self.path.display();
        self.check()?;
        if is_device(self.path) {
            let file = fs::File::options().write(true).open(self.path);
            return fill(file.with_context(|| format!("write {name}"))?, write)
                .with_context(|| format!("write {name}"));
        }
        // What a link leads to is replaced, not the link.
        let path = match fs::canonicalize(self.path) {
            Ok(path) => path,
            Err(_) => self.path.to_owned(),
        };
        let mut growing = path.clone().into_os_string();
        growing.push(format!(".writing-{}", std::process::id()));
        let growing = PathBuf::from(growing);
        let file = fs::File::options()
            .write(true)
            .create_new(true)
            .open(&growing);
        let file = file.with_context(|| format!("write {name}"))?;
        let published = fill(file, write).and_then(|()| {
            match self.force {
                true => fs::rename(&growing, &path),
                false => move_to_new(&growing, &path),
            }
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => anyhow!("{THERE}"),
                _ => error.into(),
            })
        });
        if published.is_err() {
            // It may be gone, or never have been.
            let _ = fs::remove_file(&growing);
        }
        published.with_context(|| format!("write {name}"))
    }

    /// Whether the file may be written, before there is anything to write.
    pub(super) fn check(&self) -> Result<()> {
        let name = self.path.display();
        ensure!(!self.path.is_dir(), "write {name}: it is a folder");
        let same = |input: &&Input| {
            let there = input.file().and_then(|file| fs::canonicalize(file).ok());
            there.is_some() && there == fs::canonicalize(self.path).ok()
        };
        if let Some(input) = self.inputs.iter().find(same) {
            bail!(
                "write {name}: it is the trace {}, which is read",
                input.name()
            );
        }
        ensure!(
            self.force || !self.path.exists() || is_device(self.path),
            "write {name}: {THERE}"
        );
        Ok(())
    }
}

const THERE: &str = "it is there already; --force replaces it";

/// A pipe or a terminal, for example: nothing in it can be lost or kept.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn fill(file: fs::File, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut file = BufWriter::with_capacity(1 << 18, file);
    write(&mut file)?;
    file.flush()?;
    Ok(())
}
