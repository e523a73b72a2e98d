//! What only the writer of a trace knows, as the last line carries it to whoever reads the trace later.

use super::digest::Digest;
use super::graph::GraphSize;
use crate::trace::TerminalExtra;

/// The most bytes of sentences in one trace: the budget keeps room for them.
const MOST_BYTES: usize = 4096;

impl Digest {
    /// Writes it down.
    pub(crate) fn tell(&self, extra: &mut TerminalExtra) {
        let counted = |count: u64| (count > 0).then_some(count);
        if let Some(graph) = self.graph {
            extra.graph_nodes = Some(graph.nodes);
            extra.graph_bytes = Some(graph.bytes);
            extra.graph_carried = counted(graph.carried);
            extra.graph_constant_bytes = counted(graph.constant_bytes);
        }
        if let Some((nodes, bytes)) = self.unused_graph {
            extra.unused_graph_nodes = Some(nodes);
            extra.unused_graph_bytes = Some(bytes);
        }
        let mut room = MOST_BYTES;
        extra.cuts = kept(&self.cuts, &mut room);
        extra.notes = kept(&self.notes, &mut room);
        extra.growth.clone_from(&self.memory.growth);
    }

    /// Reads it.
    pub(super) fn hear(&mut self, extra: &TerminalExtra) {
        if let Some(nodes) = extra.graph_nodes {
            self.graph(GraphSize {
                nodes,
                bytes: extra.graph_bytes.unwrap_or(0),
                carried: extra.graph_carried.unwrap_or(0),
                constant_bytes: extra.graph_constant_bytes.unwrap_or(0),
            });
        }
        if let Some(nodes) = extra.unused_graph_nodes {
            self.unused_graph(nodes, extra.unused_graph_bytes.unwrap_or(0));
        }
        for cut in extra.cuts.iter().flatten() {
            self.cut(cut.clone());
        }
        if let Some(growth) = &extra.growth {
            self.growth(growth.clone());
        }
        for note in extra.notes.iter().flatten() {
            self.note(note.clone());
        }
    }
}

/// The first sentences that fit.
fn kept(sentences: &[String], room: &mut usize) -> Option<Vec<String>> {
    let fits = |sentence: &&String| {
        let left = room.checked_sub(sentence.len());
        *room = left.unwrap_or(0);
        left.is_some()
    };
    let kept: Vec<String> = sentences.iter().take_while(fits).cloned().collect();
    (!kept.is_empty()).then_some(kept)
}
