//! Which of the calls that tensors left untracked cut the graph, judged when the region is over.
//!
//! That something tracked went in and something untracked came out is no crime: accuracies, masks, targets and
//! generated text are like that. What is told of backward passes decides: whether they used what came out, and whether
//! they reached the variables that what went in depends on.

use std::collections::HashSet;

use super::crossing::{Backward, Crossed, Crossing, Untracked};
use super::culprit::{Explanation, Hints};
use crate::trace::TensorEvent;

/// So many calls are remembered of one region.
const MOST: usize = 16_384;

/// A tensor that was made so soon after another was made from it.
const NEAR: u64 = 8;

/// A tensor that was made right after another, with one between them at most.
const NEXT: u64 = 2;

/// Where a call was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// The span: its own, or that in which it happened.
    pub(crate) span: u64,
    /// Whether the span is its own.
    pub(crate) own: bool,
    /// What tells the spans around it from others, on whatever thread they are; the last is that of `span`.
    pub(crate) chain: Vec<u64>,
    /// When it was seen, in nanoseconds. Threads are not read in the order of time.
    pub(crate) at: u64,
    pub(crate) name: String,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

/// All that is known of a region's calls and backward passes.
#[derive(Default)]
pub(crate) struct Cuts {
    calls: Vec<Call>,
    /// Each with when it was seen.
    passes: Vec<(u64, Backward)>,
    /// Spans whose functions detach what calls by some names give, with those.
    detaching: Vec<(u64, &'static str)>,
    /// When the last span of a backward or optimizer step began.
    stepped: Option<u64>,
    /// The text of a function that ran calls `backward`.
    told: bool,
}

struct Call {
    spot: Spot,
    crossing: Crossing,
    hints: Hints,
}

/// A place that cuts the graph.
pub(crate) struct Cut {
    pub(crate) spot: Spot,
    pub(crate) what: Crossed,
    hints: Hints,
    /// How many calls of the place did.
    pub(crate) calls: u64,
    /// The variables that lie behind it and that no backward pass reached.
    pub(crate) lost: Vec<u64>,
    /// What came out of its first call.
    pub(crate) event: Box<TensorEvent>,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The graph is meant to end in it.
    Meant,
    /// It is the one that cuts.
    Guilty,
    Innocent,
}

impl Cuts {
    pub(crate) fn crossed(&mut self, spot: Spot, mut crossing: Crossing, detached: bool) {
        if self.calls.len() >= MOST {
            return;
        }
        let hints = match &crossing.what {
            Crossed::Function(hints) => *hints,
            Crossed::Module(name) => Hints::of_name(name),
            Crossed::Op(name) => Hints::of_operation(name),
        };
        crossing.meant |= detached || hints.leaves();
        self.calls.push(Call {
            spot,
            crossing,
            hints,
        });
    }

    /// The text of the function whose span this is detaches what calls by these names give.
    pub(crate) fn detaches(&mut self, span: u64, names: &'static str) {
        if self.detaching.len() < MOST {
            self.detaching.push((span, names));
        }
    }

    /// Whether the graph is meant to end in a call: it, or the function that it was made in, says so.
    fn is_meant(&self, call: &Call) -> bool {
        let name = call.spot.name.rsplit("::").next().unwrap_or_default();
        let caller = call.caller();
        call.crossing.meant
            || self.detaching.iter().any(|(span, names)| {
                Some(span) == caller && names.split(' ').any(|detached| detached == name)
            })
    }

    /// A backward pass was seen at this time.
    pub(crate) fn passed(&mut self, at: u64, pass: Backward) {
        self.passes.push((at, pass));
    }

    /// A span of a backward or optimizer step began at this time.
    pub(crate) fn stepped(&mut self, at: u64) {
        self.stepped = self.stepped.max(Some(at));
    }

    /// A function ran whose text calls `backward`.
    pub(crate) fn told(&mut self) {
        self.told = true;
    }

    /// Whether a backward pass is known of, or likely.
    pub(crate) fn knows_of_backward(&self) -> bool {
        !self.passes.is_empty() || self.stepped.is_some() || self.told
    }

    /// Why a variable may have no gradient: it lies behind a call that let nothing tracked through. `length`: of what may
    /// be the weight of a norm, which a method takes out of `self`.
    pub(crate) fn reason(&self, var: u64, length: Option<usize>) -> Option<String> {
        let behind = |call: &Call| {
            let vars = call.crossing.vars.as_ref();
            vars.is_some_and(|vars| vars.contains(&var))
        };
        let cuts = |call: &Call, output: &Untracked| {
            !self.is_meant(call) && call.is_suspect(output) && self.may_be_used(call, output)
        };
        if let Some(call) = self.find(&|call, output| behind(call) && cuts(call, output)) {
            return Some(format!("cut in {}", call.spot.name));
        }
        let meant = |call: &Call, output: &Untracked| {
            behind(call) && self.is_meant(call) && self.may_be_used(call, output)
        };
        if let Some(call) = self.find(&meant) {
            let name = &call.spot.name;
            return Some(
                match (call.crossing.meant, call.hints.takes_numbers_out()) {
                    (true, true) => format!("taken out of the graph as numbers in {name}"),
                    (true, false) => format!("detached in {name}"),
                    (false, _) => format!("detached where {name} is called"),
                },
            );
        }
        let used = |call: &Call, output: &Untracked| {
            behind(call) && output.is_used(&self.later_than(call.spot.at))
        };
        let norm = |call: &Call, output: &Untracked| {
            let last = output.event.shape.last();
            length.is_some()
                && last == length.as_ref()
                && call.hints.names_norm()
                && cuts(call, output)
        };
        let call = self.find(&used).or_else(|| self.find(&norm))?;
        Some(format!("perhaps cut in {}", call.spot.name))
    }

    fn find(&self, like: &dyn Fn(&Call, &Untracked) -> bool) -> Option<&Call> {
        self.calls.iter().find(|call| {
            let mut outputs = call.crossing.outputs.iter();
            outputs.any(|output| like(call, output))
        })
    }

    /// Whether the loss may depend on what a call gave, as far as its backward passes are known of.
    fn may_be_used(&self, call: &Call, output: &Untracked) -> bool {
        self.passes.is_empty() || may_be_used(&self.later_than(call.spot.at), output)
    }

    /// The places that cut the graph, in the order of their first calls. `named`: whether the program has a name for
    /// a variable.
    pub(crate) fn judge(&self, named: &dyn Fn(u64) -> bool) -> Vec<Cut> {
        let reached = self.reached();
        // Names say what is trained where those that are trained here have some.
        let in_use = reached.iter().flatten().any(|var| named(*var));
        let named = in_use.then_some(named);
        let mut calls: Vec<&Call> = self.calls.iter().collect();
        calls.sort_by_key(|call| call.spot.at);
        let mut earlier: Vec<(&Call, Fate)> = Vec::with_capacity(calls.len());
        let mut cuts: Vec<Cut> = Vec::new();
        for call in calls {
            let fate = self.fate(call, &earlier, reached.as_ref(), named);
            earlier.push((call, fate));
            let Some(output) = call.crossing.outputs.first() else {
                continue;
            };
            if fate != Fate::Guilty {
                continue;
            }
            let lost = call.lost(reached.as_ref());
            match cuts.iter_mut().find(|cut| cut.is_at(call)) {
                Some(cut) => {
                    cut.calls += 1;
                    let new: Vec<u64> = lost.filter(|var| !cut.lost.contains(var)).collect();
                    cut.lost.extend(new);
                }
                None => cuts.push(Cut {
                    spot: call.spot.clone(),
                    what: call.crossing.what.clone(),
                    hints: call.hints,
                    calls: 1,
                    lost: lost.collect(),
                    event: output.event.clone(),
                }),
            }
        }
        cuts
    }

    /// The variables that some backward pass reached; `None`: not known.
    fn reached(&self) -> Option<HashSet<u64>> {
        let mut reached = HashSet::new();
        let mut known = false;
        for (_, pass) in &self.passes {
            known |= pass.reached.is_some() || pass.entries.is_some();
            reached.extend(pass.reached.iter().flatten());
            // Without the loss its variables are not told from constants, which no call depends on.
            let entries = pass.entries.iter().flatten();
            if pass.reached.is_none() {
                reached.extend(entries.map(|(serial, _)| *serial));
            }
        }
        known.then_some(reached)
    }

    /// The backward passes after this time.
    fn later_than(&self, at: u64) -> Vec<&Backward> {
        let later = self.passes.iter().filter(|(seen, _)| *seen > at);
        later.map(|(_, pass)| pass).collect()
    }

    fn fate(
        &self,
        call: &Call,
        earlier: &[(&Call, Fate)],
        reached: Option<&HashSet<u64>>,
        named: Option<&dyn Fn(u64) -> bool>,
    ) -> Fate {
        if self.is_meant(call) {
            return Fate::Meant;
        }
        let at = call.spot.at;
        let explained = earlier
            .iter()
            .any(|(inner, fate)| inner.explains(call, *fate));
        let later = self.later_than(at);
        let evidence = Evidence {
            later: &later,
            unseen: self.passes.is_empty() && (self.told || self.stepped > Some(at)),
            reached,
            foreign: named.is_some_and(|named| call.is_foreign(named)),
            around_used: self
                .calls
                .iter()
                .any(|outer| call.is_inside(outer) && outer.is_used(&later)),
        };
        let guilty = !explained
            && call
                .crossing
                .outputs
                .iter()
                .any(|output| call.is_guilty(output, &evidence));
        if guilty { Fate::Guilty } else { Fate::Innocent }
    }
}

/// Whether a loss may depend on an output, or on what was made of it: candle keeps entries of the constants that go into
/// a graph, and what is made of a tensor has a larger number than it.
fn may_be_used(later: &[&Backward], output: &Untracked) -> bool {
    later.iter().any(|pass| {
        let vars = pass.reached.as_deref().unwrap_or_default();
        let is_constant = |serial: u64| Some(serial) != pass.root && !vars.contains(&serial);
        let entries = pass.entries.as_ref();
        entries.is_none_or(|entries| {
            let mut serials = entries.iter().map(|(serial, _)| *serial);
            serials.any(|serial| serial >= output.serial && is_constant(serial))
        })
    })
}

/// What is known of the backward passes after a call.
struct Evidence<'a> {
    later: &'a [&'a Backward],
    /// None was seen, but there are signs of one.
    unseen: bool,
    reached: Option<&'a HashSet<u64>>,
    /// The program names its variables, and those behind the call are not among them.
    foreign: bool,
    /// The untracked output of a call that this one was made in goes into a graph.
    around_used: bool,
}

/// Whether a graph has an entry like this.
fn any_entry(later: &[&Backward], like: &dyn Fn(u64, usize) -> bool) -> bool {
    let mut entries = later.iter().filter_map(|pass| pass.entries.as_ref());
    entries.any(|entries| {
        entries
            .iter()
            .any(|(serial, elements)| like(*serial, *elements))
    })
}

impl Call {
    /// Whether this call, made inside `outer`, tells why that gives something untracked.
    fn explains(&self, outer: &Self, fate: Fate) -> bool {
        let same_output = self.crossing.outputs.iter().any(|inner| {
            let outer = &outer.crossing.outputs;
            outer.iter().any(|outer| outer.serial == inner.serial)
        });
        same_output || fate != Fate::Innocent && self.is_inside(outer)
    }

    /// Whether it was made in the function or module that `outer` is.
    fn is_inside(&self, outer: &Self) -> bool {
        if outer.is_op() || !outer.spot.own {
            return false;
        }
        let around = self.around();
        outer
            .spot
            .chain
            .last()
            .is_some_and(|own| around.contains(own))
    }

    /// What tells the spans that it was made in, from the outermost in.
    fn around(&self) -> &[u64] {
        match self.spot.chain.split_last() {
            Some((_, around)) if self.spot.own && !self.is_op() => around,
            _ => &self.spot.chain,
        }
    }

    /// The span of the function that it was made in.
    fn caller(&self) -> Option<&u64> {
        match self.is_op() {
            true => None,
            false => self.around().last(),
        }
    }

    /// Whether something that came out of it goes into a graph as it is.
    fn is_used(&self, later: &[&Backward]) -> bool {
        let outputs = &self.crossing.outputs;
        outputs.iter().any(|output| output.is_used(later))
    }

    fn is_op(&self) -> bool {
        matches!(self.crossing.what, Crossed::Op(_))
    }

    /// None of the variables behind it has a name, where the program names variables.
    fn is_foreign(&self, named: &dyn Fn(u64) -> bool) -> bool {
        let vars = self.crossing.vars.as_deref().unwrap_or_default();
        !vars.is_empty() && !vars.iter().any(|var| named(*var))
    }

    fn lost<'a>(&'a self, reached: Option<&'a HashSet<u64>>) -> impl Iterator<Item = u64> + 'a {
        let vars = self.crossing.vars.iter().flatten().copied();
        vars.filter(move |var| reached.is_some_and(|reached| !reached.contains(var)))
    }

    /// Whether the output looks like it was computed from what went in.
    fn is_suspect(&self, output: &Untracked) -> bool {
        let same_size = output.fresh && self.crossing.inputs.contains(&output.elements);
        let related = same_size && !output.mask && !self.hints.may_be_unrelated();
        output.elements > 1 && (self.hints.names_culprit() || related)
    }

    fn is_guilty(&self, output: &Untracked, evidence: &Evidence<'_>) -> bool {
        let is_loss = evidence
            .later
            .iter()
            .any(|pass| pass.root == Some(output.serial));
        if is_loss {
            return true;
        }
        let used = output.is_used(evidence.later);
        let lost = self.lost(evidence.reached).next().is_some();
        let layer = self.hints.names_layer();
        if !self.is_suspect(output) {
            let vars = self.crossing.vars.as_deref().unwrap_or_default();
            let kept = vars.len() > self.lost(evidence.reached).count();
            return used && lost && kept && output.elements > 1;
        }
        if evidence.foreign && !layer {
            return false;
        }
        if evidence.later.is_empty() {
            // Whether its value is only looked at cannot be told: what looks like a measure is let go.
            return evidence.unseen && (layer || output.rank > 2);
        }
        // A graph that reaches no variable at all ended somewhere.
        let dead = evidence
            .later
            .iter()
            .any(|pass| pass.reached.as_ref().is_some_and(Vec::is_empty));
        if used || dead {
            return true;
        }
        let resembles = |most: u64| {
            any_entry(evidence.later, &|serial, elements| {
                let distance = serial.saturating_sub(output.serial);
                elements == output.elements && (1..=most).contains(&distance)
            })
        };
        // An evaluation runs the same layers as the loss, and no more of it than those is in the loss's graph.
        let beside = evidence.around_used || self.is_beside(evidence.later);
        // Reshaped or scaled on its way into the graph. Of two dimensions it may be one of many tables of its size.
        let most = if output.rank > 2 { u64::MAX } else { NEAR };
        lost && may_be_used(evidence.later, output)
            || beside && (layer || resembles(most))
            // A linear layer reshapes what it is given.
            || layer && resembles(NEXT)
    }

    /// Whether something that the input was made of is in the graph of a loss, too, or it cannot be told.
    fn is_beside(&self, later: &[&Backward]) -> bool {
        let Some(own) = &self.crossing.made_of else {
            return true;
        };
        let mut graphs = later
            .iter()
            .filter_map(|pass| pass.made_of.as_ref())
            .peekable();
        graphs.peek().is_none()
            || graphs.any(|graph| own.iter().any(|made| graph.binary_search(made).is_ok()))
    }
}

impl Untracked {
    fn is_used(&self, later: &[&Backward]) -> bool {
        any_entry(later, &|serial, _| serial == self.serial)
    }
}

impl Cut {
    fn is_at(&self, call: &Call) -> bool {
        let (own, spot) = (&self.spot, &call.spot);
        (own.file, own.line) == (spot.file, spot.line) && self.what == call.crossing.what
    }

    /// One sentence for stderr: the same at each step.
    pub(crate) fn sentence(&self) -> String {
        let spot = self.spot.shown();
        let place = match &self.what {
            Crossed::Op(op) => format!("{op} in {spot}"),
            Crossed::Module(_) | Crossed::Function(_) => spot,
        };
        let mut text = format!(
            "{place} cuts the graph: its input depends on variables, its output is not tracked, so no gradient flows \
             back through it"
        );
        let explanations = self.explanations();
        for explanation in &explanations {
            let (cause, twin) = (explanation.cause, explanation.twin);
            text += &format!("; {cause}: write {twin}");
        }
        if explanations.is_empty() {
            text += "; some operation in it has no backward pass (apply_op*_no_bwd, candle_nn's fast layers): \
                     write it with operations that have one, or, where the graph is meant to end here, `.detach()` its \
                     input or say `detached`";
        }
        text
    }

    /// The operations that are likely the cause, by the function's text, or else by its name.
    fn explanations(&self) -> Vec<Explanation> {
        let by_text = self.hints.explain();
        match by_text.is_empty() {
            true => Hints::of_words(&self.spot.name).explain(),
            false => by_text,
        }
    }

    /// What to write instead, in a few words.
    pub(crate) fn twin(&self) -> Option<String> {
        let twins: Vec<&str> = self
            .explanations()
            .iter()
            .map(|explanation| explanation.twin)
            .collect();
        (!twins.is_empty()).then(|| twins.join("; "))
    }
}

impl Spot {
    fn shown(&self) -> String {
        match self.line {
            0 => self.name.clone(),
            line => format!("{} ({}:{line})", self.name, self.file),
        }
    }
}

#[cfg(test)]
#[path = "cuts_tests.rs"]
mod tests;
