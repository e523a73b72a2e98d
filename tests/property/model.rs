//! What the rules say of a tree's trace: each span's parent, marks and polls, and whose each record is.

use std::collections::BTreeMap;

use crate::tree::{CLEANER, End, Limit, MEASURED, Node, Step, Task, Tree};

/// What a trace should hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) spans: BTreeMap<u32, Is>,
    /// The span of each recorded number; `None`: the root.
    pub(crate) records: BTreeMap<u32, Option<u32>>,
    /// Spans whose parent is the first of these that is still open when they end: that is for the threads to settle.
    pub(crate) races: BTreeMap<u32, Vec<u32>>,
    /// How its reason begins, if the trace is failed.
    pub(crate) failed: Option<&'static str>,
}

/// A span as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Is {
    /// `None`: the root.
    pub(crate) parent: Option<u32>,
    pub(crate) mark: Mark,
    pub(crate) polls: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    Cut,
    Cancelled,
    Panicked,
    OpenAtEnd,
}

/// Why a future is over before its last step.
#[derive(Clone, Copy)]
enum Stop {
    Dropped,
    Panicked,
}

/// How far a future got.
struct Went {
    /// How often it was pending.
    turns: usize,
    stop: Option<Stop>,
}

impl Expected {
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut this = Self::default();
        match tree {
            Tree::Plain { body, end, late } => {
                if let Some(id) = late {
                    // The measured span has ended when this one does.
                    this.span(*id, None, Mark::OpenAtEnd);
                }
                this.list(body, MEASURED);
                let (mark, failed) = match end {
                    End::Ok => (Mark::None, None),
                    End::Err => (Mark::None, Some("planned")),
                    End::Panic => (Mark::Panicked, Some("panicked at ")),
                };
                this.span(MEASURED, None, mark);
                this.failed = failed;
            }
            Tree::Async { task, limit, .. } => {
                let mut left = *limit;
                let went = this.task(task, None, &mut start(&mut left));
                this.failed = went.stop.map(|stop| match stop {
                    Stop::Dropped => "the measured future was dropped",
                    Stop::Panicked => "panicked at ",
                });
            }
        }
        this
    }

    fn span(&mut self, id: u32, parent: Option<u32>, mark: Mark) {
        let is = Is {
            parent,
            mark,
            polls: None,
        };
        assert_eq!(self.spans.insert(id, is), None, "{id} twice");
    }

    fn call(&mut self, id: u32, parent: u32, body: &[Node]) {
        self.guard(id, parent, body);
        self.records.insert(id, Some(id));
    }

    fn guard(&mut self, id: u32, parent: u32, body: &[Node]) {
        self.span(id, Some(parent), Mark::None);
        self.list(body, id);
    }

    /// Spans opened inside each other; gives the innermost of those that stay when the last `ended` have ended.
    fn chain(&mut self, ids: &[u32], ended: usize, parent: u32) -> (u32, u32) {
        let mut around = vec![parent];
        for id in ids {
            self.span(*id, around.last().copied(), Mark::None);
            around.push(*id);
        }
        (around[ids.len()], around[ids.len() - ended])
    }

    /// What happens on a thread inside `top`; gives the innermost span at the end.
    fn list(&mut self, nodes: &[Node], mut top: u32) -> u32 {
        for node in nodes {
            top = self.node(node, top);
        }
        top
    }

    fn node(&mut self, node: &Node, top: u32) -> u32 {
        match node {
            Node::Call { id, body } => self.call(*id, top, body),
            Node::Guard { id, body } => self.guard(*id, top, body),
            Node::Record { id } => {
                self.records.insert(*id, Some(top));
            }
            Node::Forgotten { id } => {
                self.span(*id, Some(top), Mark::Cut);
                return *id;
            }
            Node::Panics { ids, body } => self.panics(ids, body, top),
            Node::Shuffled { ids, drops } => self.shuffled(ids, drops, top),
            Node::Threads { branches } => {
                for branch in branches {
                    self.list(branch, top);
                }
            }
            Node::Here { body } => {
                self.list(body, top);
            }
            Node::Stale { id, call } => {
                self.span(*id, Some(top), Mark::None);
                self.call(*call, top, &[]);
            }
            Node::Stray { .. } => {}
            Node::Overhang {
                chain,
                ended,
                id,
                body,
            } => {
                let (_, open) = self.chain(chain, *ended, top);
                self.guard(*id, open, body);
            }
            Node::Race { chain, branches } => {
                let (innermost, _) = self.chain(chain, 0, top);
                for (id, body) in branches {
                    self.guard(*id, innermost, body);
                    let around = chain.iter().rev().copied().chain([top]);
                    self.races.insert(*id, around.collect());
                }
            }
            Node::Interleaved { tasks } => {
                for (task, limit) in tasks {
                    self.alone(task, top, *limit);
                }
            }
            Node::Moving { task, limit } => {
                self.alone(task, top, *limit);
            }
            Node::OverhangTask {
                chain,
                ended,
                task,
                limit,
            } => {
                let (innermost, open) = self.chain(chain, *ended, top);
                let went = self.alone(task, innermost, *limit);
                // One that its first poll or the drop right after it ended did not outlive the chain.
                let outlived = went.turns > 0 && *limit != Some(1);
                let parent = if outlived { open } else { innermost };
                self.spans
                    .entry(task.id)
                    .and_modify(|is| is.parent = Some(parent));
            }
        }
        top
    }

    fn panics(&mut self, ids: &[u32], body: &[Node], mut parent: u32) {
        for id in ids {
            self.span(*id, Some(parent), Mark::Panicked);
            parent = *id;
        }
        let top = self.list(body, parent);
        for id in ids {
            let around = if *id == parent { top } else { *id };
            self.span(*id + CLEANER, Some(around), Mark::None);
        }
    }

    fn shuffled(&mut self, ids: &[u32], drops: &[(usize, u32)], parent: u32) {
        let mut open: Vec<u32> = Vec::new();
        for id in ids {
            self.span(
                *id,
                Some(open.last().copied().unwrap_or(parent)),
                Mark::None,
            );
            open.push(*id);
        }
        for (index, leaf) in drops {
            if *index < open.len() {
                for cut in &open[index + 1..] {
                    self.spans.entry(*cut).and_modify(|is| is.mark = Mark::Cut);
                }
                open.truncate(*index);
            }
            self.call(*leaf, open.last().copied().unwrap_or(parent), &[]);
        }
    }

    /// A future that nobody awaits.
    fn alone(&mut self, task: &Task, parent: u32, limit: Limit) -> Went {
        let mut left = limit;
        self.task(task, Some(parent), &mut start(&mut left))
    }

    /// `left`: the polls that are left after this one.
    fn task(&mut self, task: &Task, parent: Option<u32>, left: &mut Limit) -> Went {
        let id = task.id;
        let (mut top, mut turns, mut stop) = (id, 0, None);
        self.span(id, parent, Mark::None);
        for step in &task.steps {
            match step {
                Step::Turn => {
                    turns += 1;
                    top = id;
                    match left {
                        Some(0) => stop = Some(Stop::Dropped),
                        Some(polls) => *polls -= 1,
                        None => {}
                    }
                }
                Step::Do(node) => top = self.node(node, top),
                Step::Await(inner) => {
                    let went = self.task(inner, Some(top), left);
                    if went.turns > 0 {
                        // What was open around it ended with the poll.
                        top = id;
                        self.spans
                            .entry(inner.id)
                            .and_modify(|is| is.parent = Some(id));
                    }
                    turns += went.turns;
                    stop = went.stop;
                }
                Step::Panic => stop = Some(Stop::Panicked),
            }
            if stop.is_some() {
                break;
            }
        }
        self.span(id + CLEANER, Some(top), Mark::None);
        if stop.is_none() {
            self.records.insert(id, Some(id));
        }
        let (mark, last) = match stop {
            None => (Mark::None, 1),
            Some(Stop::Dropped) => (Mark::Cancelled, 0),
            Some(Stop::Panicked) => (Mark::Panicked, 1),
        };
        self.spans.entry(id).and_modify(|is| {
            is.mark = mark;
            is.polls = Some(turns + last);
        });
        Went { turns, stop }
    }
}

/// The first poll is one of those allowed.
fn start(limit: &mut Limit) -> Limit {
    limit.map(|polls| polls.saturating_sub(1))
}
