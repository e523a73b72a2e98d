//! Lines of a page that is never wider than asked for.

use crate::view::text::{columns, fit, printable, wrap};

/// How a line stands out on a terminal that shows colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Heading,
    Warning,
    Problem,
}

/// Columns of numbers give way before names get narrower than this.
const LEAST_NAME: usize = 14;
/// Names take so much even where all are shorter, so that tables of a page look alike.
const USUAL_NAME: usize = 28;

/// The text as it grows.
#[derive(Debug)]
pub(crate) struct Page {
    text: String,
    width: usize,
    colour: bool,
}

impl Page {
    pub(crate) fn new(width: usize, colour: bool) -> Page {
        Page {
            text: String::new(),
            width: width.max(20),
            colour,
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// A line that is short enough already, or must not be cut.
    pub(crate) fn line(&mut self, tone: Tone, line: &str) {
        let code = match tone {
            Tone::Plain => "",
            Tone::Heading => "\x1b[1m",
            Tone::Warning => "\x1b[33m",
            Tone::Problem => "\x1b[31m",
        };
        let (code, end) = match self.colour && !code.is_empty() {
            true => (code, "\x1b[0m"),
            false => ("", ""),
        };
        self.text.extend([code, line.trim_end(), end, "\n"]);
    }

    /// An empty line between two parts.
    pub(crate) fn space(&mut self) {
        self.text.push('\n');
    }

    /// The title of the next part.
    pub(crate) fn heading(&mut self, text: &str) {
        self.space();
        self.line(Tone::Heading, &fit(text, self.width));
    }

    /// A sentence, wrapped; the lines after its first are indented more. Line breaks in it count
    /// as spaces, and what a terminal would obey is escaped.
    pub(crate) fn sentence(&mut self, tone: Tone, indent: usize, text: &str) {
        const MOST: usize = 2_000;
        let text: String = text
            .chars()
            .map(|letter| {
                if letter == '\n' || letter == '\t' {
                    ' '
                } else {
                    letter
                }
            })
            .collect();
        let text = printable(&text, MOST);
        // Wrapped as if every line were indented like the later ones; the first takes the rest.
        let deeper = indent + 2;
        let room = self.width.saturating_sub(deeper);
        for (at, line) in wrap(&text, room).iter().enumerate() {
            let indent = if at == 0 { indent } else { deeper };
            self.line(tone, &format!("{:indent$}{line}", ""));
        }
    }

    /// A table: names to the left, cut in the middle to fit; the other columns to the right, of
    /// which the last ones are left out where the page is too narrow.
    pub(crate) fn table(&mut self, heading: &[&str], rows: &[Vec<String>]) {
        let heading: Vec<String> = heading.iter().map(|&text| text.to_owned()).collect();
        let width_of = |at: usize| {
            let cell = |row: &Vec<String>| row.get(at).map_or(0, |cell| columns(cell));
            2 + rows.iter().chain([&heading]).map(cell).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (1..heading.len()).map(width_of).collect();
        let name_width = loop {
            let name = self.width.saturating_sub(widths.iter().sum());
            if name >= LEAST_NAME || widths.pop().is_none() {
                break name.min(width_of(0).max(USUAL_NAME));
            }
        };
        self.space();
        let rows = rows.iter().map(|row| (Tone::Plain, "  ", row));
        for (tone, indent, row) in [(Tone::Heading, "", &heading)].into_iter().chain(rows) {
            let name = row.first().map_or("", String::as_str);
            let name = fit(name, name_width.saturating_sub(indent.len()));
            let used = indent.len() + columns(&name);
            let mut line = format!("{indent}{name}{:1$}", "", name_width.saturating_sub(used));
            for (cell, width) in row.iter().skip(1).zip(&widths) {
                let space = width.saturating_sub(columns(cell));
                line += &format!("{:space$}{cell}", "");
            }
            self.line(tone, &line);
        }
    }
}
