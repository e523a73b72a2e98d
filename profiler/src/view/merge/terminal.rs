//! How the merged trace ends: what the writers of the ranks found, each sentence with its rank in front.

use super::Rank;
use crate::trace::{RunOutcome, TensorEvent, TerminalEvent, TerminalExtra};

/// It failed where a rank did.
pub(super) fn terminal(ranks: &[Rank<'_>], end: u64) -> TerminalEvent {
    let reasons: Vec<String> = ranks
        .iter()
        .filter(|rank| rank.trace.terminal.outcome == RunOutcome::Failed)
        .map(|rank| {
            let reason = rank.trace.terminal.reason.as_deref();
            rank.says(reason.unwrap_or("failed"))
        })
        .collect();
    let extra = extra(ranks);
    TerminalEvent {
        outcome: if reasons.is_empty() {
            RunOutcome::Complete
        } else {
            RunOutcome::Failed
        },
        timestamp_ns: end,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        extra: (extra != TerminalExtra::default()).then(|| Box::new(extra)),
    }
}

/// Numbers are those of all ranks together.
fn extra(ranks: &[Rank<'_>]) -> TerminalExtra {
    let mut all = TerminalExtra::default();
    for rank in ranks {
        let Some(extra) = rank.trace.terminal.extra.as_deref() else {
            continue;
        };
        for (site, count) in extra.dropped.iter().flatten() {
            let sum = all.dropped.get_or_insert_default();
            let sum = sum.entry(site.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        for (sum, number) in [
            (&mut all.late, extra.late),
            (&mut all.waited_ns, extra.waited_ns),
            (&mut all.graph_nodes, extra.graph_nodes),
            (&mut all.graph_bytes, extra.graph_bytes),
            (&mut all.graph_carried, extra.graph_carried),
            (&mut all.graph_constant_bytes, extra.graph_constant_bytes),
            (&mut all.unused_graph_nodes, extra.unused_graph_nodes),
            (&mut all.unused_graph_bytes, extra.unused_graph_bytes),
        ] {
            if let Some(number) = number {
                *sum = Some(sum.unwrap_or(0).saturating_add(number));
            }
        }
        for (sentences, more) in [(&mut all.cuts, &extra.cuts), (&mut all.notes, &extra.notes)] {
            for sentence in more.iter().flatten() {
                let sentences = sentences.get_or_insert_default();
                sentences.push(rank.says(sentence));
            }
        }
        if let Some(growth) = &extra.growth {
            let growth = rank.says(growth);
            all.growth = Some(match all.growth.take() {
                Some(before) => format!("{before}; {growth}"),
                None => growth,
            });
        }
    }
    // Sentences about cuts stand for the cut tensors of all ranks, so those of the other ranks get theirs.
    if let Some(cuts) = &mut all.cuts {
        for rank in ranks.iter().filter(|rank| !has_cuts(rank)) {
            cuts.extend(
                rank.trace
                    .tensors
                    .iter()
                    .filter_map(|tensor| cut(rank, tensor)),
            );
        }
    }
    all
}

fn has_cuts(rank: &Rank<'_>) -> bool {
    let extra = rank.trace.terminal.extra.as_deref();
    extra.is_some_and(|extra| extra.cuts.is_some())
}

fn cut(rank: &Rank<'_>, tensor: &TensorEvent) -> Option<String> {
    let extra = tensor.extra.as_deref()?;
    if extra.autograd.as_deref() != Some("cut") {
        return None;
    }
    let span = rank.places.get(&tensor.span_id);
    let span = span.and_then(|place| rank.trace.spans.get(place));
    let mut text = format!("graph cut in {}", span.map_or("", |span| &span.name));
    if let Some(label) = &tensor.label {
        text += &format!(" at {label}");
    }
    if let Some(twin) = &extra.twin {
        text += &format!("; {twin} keeps it");
    }
    Some(rank.says(&text))
}

impl Rank<'_> {
    fn says(&self, sentence: &str) -> String {
        format!("{}: {sentence}", self.name)
    }
}
