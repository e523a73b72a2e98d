//! The page as a person reads it.

use std::ffi::OsStr;
use std::path::Path;

use super::digest::Digest;
use super::gradients::GradientRow;
use super::memory::memory;
use super::page::{Page, Tone};
use super::problems::problems;
use super::scalars::ScalarRow;
use super::steps::steps;
use super::tensors::TensorRow;
use super::times::times;
use crate::view::text::counted;
use crate::view::text::{bytes, columns, count, duration, number, printable, shell_word};

/// Rows of tensors, scalars and roots that are shown.
const MOST_SHOWN: usize = 20;

/// How the page looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    /// Columns, 80 by custom and at least 20. Paths, which are there to be copied, are never cut.
    pub(crate) width: usize,
    pub(crate) colour: bool,
    /// The program was built without optimisation.
    pub(crate) unoptimised: bool,
    /// The trace.
    pub(crate) path: Option<&'a Path>,
}

/// Whether a page may have colour: on a terminal, unless `NO_COLOR` is set and not empty.
pub(crate) fn wants_colour(terminal: bool, no_color: Option<&OsStr>) -> bool {
    terminal && no_color.is_none_or(OsStr::is_empty)
}

/// The summary of a trace, one line after another, each ended.
pub(crate) fn render(digest: &Digest, look: &Look<'_>) -> String {
    let mut page = Page::new(look.width, look.colour);
    page.sentence(Tone::Heading, 0, &title(digest));
    if look.unoptimised {
        let warning = "built without optimisation: these times are not those of --release";
        page.sentence(Tone::Warning, 0, warning);
    }
    let problems = problems(digest);
    if !problems.is_empty() {
        page.heading("problems");
        for problem in &problems {
            page.sentence(Tone::Problem, 2, problem);
        }
    }
    scalars(&mut page, digest);
    steps(&mut page, digest);
    memory(&mut page, digest);
    times(&mut page, digest);
    if !digest.holds_evidence() && digest.failed.is_none() {
        let empty = "nothing is recorded inside the region: no function it calls is annotated";
        page.sentence(Tone::Plain, 2, empty);
    }
    tensors(&mut page, digest);
    gradients(&mut page, digest);
    if let Some(path) = look.path {
        footer(&mut page, path, look.width);
    }
    page.finish()
}

/// `train_step: train step 2 on cpu, 12.3 ms`
fn title(digest: &Digest) -> String {
    let meta = &digest.meta;
    let name = match meta.entrypoint.as_str() {
        "" => "trace",
        name => name,
    };
    let mut title = printable(name, 60);
    if meta.capture_step > 0 {
        let what = if meta.phase == "infer" {
            "infer call"
        } else {
            "train step"
        };
        title += &format!(": {what} {}", meta.capture_step);
    }
    if meta.device == "unknown" {
        title += " (on which device? `device = …` tells)";
    } else if !meta.device.is_empty() {
        title += &format!(" on {}", meta.device);
    }
    if let Some(rank) = meta.rank {
        title += &format!(", rank {rank}");
    }
    let measured = digest.sites.measured_ns;
    match (&digest.failed, measured) {
        (None, 0) => {}
        (None, _) => title += &format!(", {}", duration(measured)),
        (Some(_), 0) => title += ", failed",
        (Some(_), _) => title += &format!(", failed after {}", duration(measured)),
    }
    title
}

fn scalars(page: &mut Page, digest: &Digest) {
    let cells = |(label, row): (&str, &ScalarRow)| {
        let value = match row.values {
            1 => number(row.last, 5),
            values => format!(
                "{} … {} ({} values)",
                number(row.first, 5),
                number(row.last, 5),
                count(values)
            ),
        };
        vec![label.to_owned(), value]
    };
    let own = digest.own_scalars();
    let mut rows: Vec<Vec<String>> = own.take(MOST_SHOWN).map(cells).collect();
    let roots = digest.gradients.iter().take(MOST_SHOWN);
    rows.extend(roots.map(|(root, row)| vec![digest.gradients.norm_name(root), norm_cell(row)]));
    if rows.is_empty() {
        return;
    }
    page.table(&["scalars", "value"], &rows);
    and_more(page, digest.own_scalars().count(), digest.scalars.refused());
}

/// `5 (1 of 4 missing)`, or `0.7037 … 0.8475 (4 passes)`
fn norm_cell(row: &GradientRow) -> String {
    let missing = match row.missing().count() {
        0 => None,
        missing => Some(format!(
            "{} of {} missing",
            count(missing),
            count(row.all() - row.untrained().count())
        )),
    };
    let notes: Vec<String> = row.passes_text().into_iter().chain(missing).collect();
    match notes.is_empty() {
        true => row.norm_text(),
        false => format!("{} ({})", row.norm_text(), notes.join(", ")),
    }
}

fn tensors(page: &mut Page, digest: &Digest) {
    let all = &digest.tensors.rows;
    let not_finite = all
        .iter()
        .take(MOST_SHOWN)
        .any(|(_, row)| row.non_finite > 0);
    let cells = |(label, row): (&str, &TensorRow)| {
        let label = match row.events {
            1 => label.to_owned(),
            events => format!("{label} (last of {})", count(events)),
        };
        let mut cells = vec![label, printable(&row.what, 18)];
        if not_finite {
            cells.push(count(row.non_finite));
        }
        cells.extend([row.rms, row.mean, row.abs_max].map(|value| number(value, 4)));
        cells
    };
    let rows: Vec<Vec<String>> = all.iter().take(MOST_SHOWN).map(cells).collect();
    if rows.is_empty() {
        return;
    }
    let mut heading = vec![
        "tensors in order",
        "type",
        "not finite",
        "rms",
        "mean",
        "abs max",
    ];
    heading.retain(|&title| not_finite || title != "not finite");
    page.table(&heading, &rows);
    and_more(page, all.len(), all.refused());
}

fn gradients(page: &mut Page, digest: &Digest) {
    if digest.gradients.len() == 0 && digest.graph.is_none() && digest.unused_graph.is_none() {
        return;
    }
    page.heading("gradients");
    graph(page, digest);
    for (root, row) in digest.gradients.iter().take(MOST_SHOWN) {
        page.sentence(Tone::Plain, 2, &gradient_line(root, row));
        let named = [
            ("missing", row.missing()),
            ("untrained", row.untrained()),
            ("zero", row.zero()),
            ("not finite", row.non_finite()),
        ];
        for (state, names) in named.iter().filter(|(_, names)| names.count() > 0) {
            page.sentence(Tone::Plain, 4, &format!("{state}: {}", names.listed()));
        }
    }
    and_more(page, digest.gradients.len(), digest.gradients.refused());
}

/// The graph of the loss, or one that was built for nothing.
fn graph(page: &mut Page, digest: &Digest) {
    if let Some(graph) = digest.graph {
        let text = format!(
            "graph of the loss: {}, {}",
            counted(graph.nodes, "tensor", "tensors"),
            bytes(graph.bytes)
        );
        page.sentence(Tone::Plain, 2, &text);
        if graph.constant_bytes > 0 {
            let text = format!(
                "{} of gradients belong to no variable: candle keeps those of constants too",
                bytes(graph.constant_bytes)
            );
            page.sentence(Tone::Plain, 2, &text);
        }
    } else if let Some((nodes, held)) = digest.unused_graph {
        let text = format!(
            "a graph of {}, {}, was built and no backward pass ran",
            counted(nodes, "tensor", "tensors"),
            bytes(held)
        );
        page.sentence(Tone::Plain, 2, &text);
    }
}

/// `loss: 8 variables, 6 present, 1 missing, 1 zero, global norm 1.25`, or at its end `4 passes, norms 0.7037 … 0.8475`
fn gradient_line(root: &str, row: &GradientRow) -> String {
    let counts = [
        (row.present(), "present"),
        (row.missing().count(), "missing"),
        (row.untrained().count(), "untrained"),
        (row.zero().count(), "zero"),
        (row.non_finite().count(), "not finite"),
        (row.others(), "not told apart"),
    ];
    let variables = counted(row.all(), "variable", "variables");
    let mut line = format!("{root}: {variables}");
    for (number, state) in counts.iter().filter(|(number, _)| *number > 0) {
        line += &format!(", {} {state}", count(*number));
    }
    let norm = row.norm_text();
    match row.passes_text() {
        None => line + &format!(", global norm {norm}"),
        Some(passes) => line + &format!(", {passes}, norms {norm}"),
    }
}

/// A word on the rows that are not shown, and on what found no row.
fn and_more(page: &mut Page, rows: usize, refused: u64) {
    let more = rows.saturating_sub(MOST_SHOWN) as u64;
    if more > 0 || refused > 0 {
        let records = match refused {
            0 => String::new(),
            _ => format!(" and {} of others", counted(refused, "record", "records")),
        };
        let text = format!("… and {} more{records}", count(more));
        page.sentence(Tone::Plain, 2, &text);
    }
}

fn footer(page: &mut Page, path: &Path, width: usize) {
    let shown = printable(&path.to_string_lossy(), 4096);
    let command = format!("view   candle-profile view {}", shell_word(path));
    let output = format!("-o {}", shell_word(&path.with_extension("html")));
    page.space();
    page.line(Tone::Plain, &format!("trace  {shown}"));
    let whole = format!("{command} {output}");
    if columns(&whole) <= width {
        return page.line(Tone::Plain, &whole);
    }
    // A shell reads the two lines as one.
    page.line(Tone::Plain, &format!("{command} \\"));
    page.line(Tone::Plain, &format!("         {output}"));
}
