//! Where results go.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

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
    let text = crate::view::text::printable_line(text);
    // Nobody is left to tell where stderr cannot be written.
    let _ = writeln!(io::stderr(), "candle-profile: warning: {text}");
}

pub(super) fn json(out: &mut dyn Write, value: &Value) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Has `write` write to the file, where one is named, else to standard output.
pub(super) fn write_to(
    path: Option<&Path>,
    force: bool,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let Some(path) = path else {
        return write(out);
    };
    let mut file = BufWriter::with_capacity(1 << 18, create(path, force)?);
    let written = write(&mut file).and_then(|()| Ok(file.flush()?));
    written.with_context(|| format!("write {}", path.display()))
}

/// Writes a file that was not there; `force` replaces one that was.
pub(super) fn create(path: &Path, force: bool) -> Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    options
        .open(path)
        .with_context(|| match path.exists() && !force {
            true => format!(
                "write {}: it is there already; --force replaces it",
                path.display()
            ),
            false => format!("write {}", path.display()),
        })
}
