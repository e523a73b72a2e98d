//! The tree of calls: spans of one call site below the same chain of call sites are one node.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::digest::Digest;
use super::page::Page;
use super::sites::SiteId;
use crate::view::span_table::{Flags, Place, SpanTable, Visitor};
use crate::view::text::{count, duration, percent};

/// Nodes that are told apart; what comes later below them counts as their parent's own.
const MOST_NODES: usize = 20_000;
/// Lines shown.
const MOST_SHOWN: usize = 400;

#[derive(Debug, Default, Clone)]
struct Node {
    /// The number of its call site.
    site: u32,
    /// It is what a rank did, beside the region.
    rank: bool,
    calls: u64,
    total_ns: u64,
    self_ns: u64,
    children: Vec<usize>,
}

/// The tree below the root span.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    known: HashMap<(usize, u32), usize>,
    /// Node, its time inside children, and whether it is a node of its own.
    open: Vec<(usize, u64, bool)>,
}

impl Tree {
    pub(crate) fn of(spans: &SpanTable) -> Tree {
        let mut tree = Tree {
            nodes: vec![Node::default()],
            ..Tree::default()
        };
        spans.walk(&mut tree);
        tree
    }

    fn child(&mut self, parent: usize, site: u32) -> Option<usize> {
        if let Some(node) = self.known.get(&(parent, site)) {
            return Some(*node);
        }
        if self.nodes.len() >= MOST_NODES {
            return None;
        }
        let node = self.nodes.len();
        self.nodes.push(Node {
            site,
            ..Node::default()
        });
        self.known.insert((parent, site), node);
        if let Some(parent) = self.nodes.get_mut(parent) {
            parent.children.push(node);
        }
        Some(node)
    }

    /// The children of a node, those that took longest first.
    fn children(&self, node: usize) -> Vec<usize> {
        let mut children = self
            .nodes
            .get(node)
            .map_or(Vec::new(), |node| node.children.clone());
        let total = |node: &usize| self.nodes.get(*node).map_or(0, |node| node.total_ns);
        children.sort_by_key(|node| std::cmp::Reverse(total(node)));
        children
    }

    pub(crate) fn show(&self, page: &mut Page, digest: &Digest) {
        let mut rows = Vec::new();
        let mut hidden = 0;
        let mut next: Vec<(usize, usize)> = Vec::new();
        let push = |next: &mut Vec<(usize, usize)>, node, depth| {
            next.extend(
                self.children(node)
                    .into_iter()
                    .rev()
                    .map(|child| (child, depth)),
            );
        };
        push(&mut next, 0, 0);
        while let Some((node, depth)) = next.pop() {
            push(&mut next, node, depth + 1);
            let Some(node) = self.nodes.get(node) else {
                continue;
            };
            if rows.len() >= MOST_SHOWN {
                hidden += 1;
                continue;
            }
            // Deeper than this a name has no room left.
            let indent = "  ".repeat(depth.min(10));
            rows.push(vec![
                format!("{indent}{}", name(digest, node.site)),
                count(node.calls),
                duration(node.total_ns),
                duration(node.self_ns),
                match node.rank {
                    true => "-".to_owned(),
                    false => percent(node.total_ns, digest.sites.measured_ns),
                },
            ]);
        }
        if rows.is_empty() {
            return;
        }
        page.table(&["tree of calls", "calls", "total", "self", "share"], &rows);
        if hidden > 0 {
            let text = format!("… and {} more (--json has all)", count(hidden));
            page.sentence(super::page::Tone::Plain, 2, &text);
        }
    }

    pub(crate) fn as_json(&self, digest: &Digest) -> Value {
        // Children come after their parents, so from the back each is whole before its parent takes it.
        let mut whole: Vec<Option<Value>> = vec![None; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let children = self.children(at);
            let children: Vec<Value> = children
                .into_iter()
                .filter_map(|child| whole.get_mut(child).and_then(Option::take))
                .collect();
            if at == 0 {
                return json!(children);
            }
            if let Some(slot) = whole.get_mut(at) {
                *slot = Some(json!({
                    "name": name(digest, node.site),
                    "calls": node.calls,
                    "total_ns": node.total_ns,
                    "self_ns": node.self_ns,
                    "children": children,
                }));
            }
        }
        json!([])
    }
}

fn name(digest: &Digest, site: u32) -> &str {
    match site {
        0 => "(others)",
        site => digest.site_name(SiteId::of_number(site)),
    }
}

impl Visitor for Tree {
    fn enter(&mut self, table: &SpanTable, place: Place) {
        let above = self.open.last().map_or(0, |(node, ..)| *node);
        let row = table.row(place);
        // The root is the whole session and no call.
        let is_root = self.open.is_empty()
            && row.is_some_and(|row| row.parent == crate::view::span_table::NONE);
        let node = match row {
            Some(row) if !is_root => self.child(above, row.name),
            _ => None,
        };
        if let (Some(row), Some(node)) = (row, node.and_then(|node| self.nodes.get_mut(node))) {
            node.rank = row.flags.has(Flags::RANK);
        }
        self.open.push((node.unwrap_or(above), 0, node.is_some()));
    }

    fn leave(&mut self, table: &SpanTable, place: Place) {
        let (Some(row), Some((node, inside, own))) = (table.row(place), self.open.pop()) else {
            return;
        };
        let total = row.duration_ns.saturating_sub(row.overhead_ns);
        if own && let Some(node) = self.nodes.get_mut(node) {
            node.calls += 1;
            node.total_ns = node.total_ns.saturating_add(total);
            node.self_ns = node.self_ns.saturating_add(total.saturating_sub(inside));
        }
        let counts = own
            && table.row(row.parent).is_some_and(|parent| {
                parent.flags.has(Flags::STARTED) && SpanTable::is_inside(row, parent)
            });
        if counts && let Some((_, above, _)) = self.open.last_mut() {
            *above = above.saturating_add(total);
        }
    }
}
