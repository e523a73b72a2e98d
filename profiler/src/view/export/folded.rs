//! Folded stacks: one line for each chain of names, with the nanoseconds that were its own.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::trace::TraceDocument;
use crate::view::span_table::{Place, SpanTable, Visitor};

/// Writes `root;outer;inner 1234` for each chain of spans, summed over all traces. The profiler's own time is taken off.
/// A span's own time is what its children on the same thread did not take.
///
/// # Errors
/// What `to` says.
pub fn folded(traces: &[TraceDocument], to: &mut dyn Write) -> io::Result<()> {
    let mut stacks = Stacks::default();
    let mut names = Vec::new();
    let mut known: HashMap<&str, u32> = HashMap::new();
    for trace in traces {
        let spans = SpanTable::of(trace, |span| {
            *known.entry(&span.name).or_insert_with(|| {
                names.push(clean(&span.name));
                names.len() as u32 - 1
            })
        });
        spans.walk(&mut stacks);
    }
    let mut path = Vec::new();
    for stack in stacks.list.iter().filter(|stack| stack.own_ns > 0) {
        let mut next = Some(stack);
        while let Some(stack) = next {
            path.extend(names.get(stack.name as usize));
            next = stack.parent.and_then(|place| stacks.list.get(place));
        }
        let mut separator = "";
        for name in path.drain(..).rev() {
            write!(to, "{separator}{name}")?;
            separator = ";";
        }
        writeln!(to, " {}", stack.own_ns)?;
    }
    Ok(())
}

/// A name that neither parts a stack nor ends a line.
fn clean(name: &str) -> String {
    let harmless = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    match name.trim().is_empty() {
        true => "(unnamed)".to_owned(),
        false => name.chars().map(harmless).collect(),
    }
}

#[derive(Default)]
struct Stacks {
    known: HashMap<(Option<usize>, u32), usize>,
    list: Vec<Stack>,
    /// Place in the list, and time inside children.
    open: Vec<(usize, u64)>,
}

struct Stack {
    parent: Option<usize>,
    name: u32,
    own_ns: u64,
}

impl Visitor for Stacks {
    fn enter(&mut self, table: &SpanTable, place: Place) {
        let parent = self.open.last().map(|(stack, _)| *stack);
        let name = table.row(place).map_or(0, |row| row.name);
        let list = &mut self.list;
        let stack = *self.known.entry((parent, name)).or_insert_with(|| {
            list.push(Stack {
                parent,
                name,
                own_ns: 0,
            });
            list.len() - 1
        });
        self.open.push((stack, 0));
    }

    fn leave(&mut self, table: &SpanTable, place: Place) {
        let (Some(row), Some((stack, inside))) = (table.row(place), self.open.pop()) else {
            return;
        };
        let total = row.duration_ns.saturating_sub(row.overhead_ns);
        if let Some(stack) = self.list.get_mut(stack) {
            stack.own_ns = stack.own_ns.saturating_add(total.saturating_sub(inside));
        }
        if let (Some(parent), Some((_, above))) = (table.row(row.parent), self.open.last_mut())
            && SpanTable::is_inside(row, parent)
        {
            *above = above.saturating_add(total);
        }
    }
}
