//! The gradients of a backward pass, variable by variable.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use candle_core::backprop::GradStore;
use candle_core::{Tensor, TensorId};

use super::graph::serial;
use super::stats;
use super::variables::Entry;
use crate::record::{Evidence, Session, name_of, names_with_company, recorder};
use crate::trace::{BUFFER, FROZEN, GradientEvent, GradientExtra, GradientState};

/// What the loss is called where nobody says so.
pub(crate) const ROOT: &str = "loss";

/// What is to be recorded of a store of gradients.
#[derive(Default)]
pub(crate) struct Request<'a> {
    /// The name of what was differentiated; blank: [`ROOT`].
    pub(crate) root: &'a str,
    /// The variables that the program lists.
    pub(crate) listed: Option<&'a [Entry]>,
    /// The variables that the loss depends on, in the order of their use.
    pub(crate) reached: Option<&'a [Entry]>,
    /// Only variables whose names begin with one of these, separated by commas.
    pub(crate) only: &'a str,
    /// Variables that get no gradient on purpose, likewise.
    pub(crate) frozen: &'a str,
}

/// A variable to look up.
struct Wanted {
    key: String,
    /// The variables it was named together with; 0: all that are listed.
    group: u64,
    serial: u64,
    id: Option<TensorId>,
}

/// One event for each variable, then the norm of all together and of each family.
pub(crate) fn evidence(
    request: &Request<'_>,
    grads: &GradStore,
    session: Option<&Session>,
    emit: &mut dyn FnMut(Evidence),
) {
    if let Some(plan) = session.and_then(|session| session.plan.as_ref()) {
        // Whoever promises an exact list gets exactly that.
        if request.root.is_empty() || request.root == plan.root {
            let wanted = plan.entries.iter().map(|(key, id)| Wanted {
                key: key.clone(),
                group: 0,
                serial: serial(*id),
                id: Some(*id),
            });
            let found = look_up(wanted.collect(), request, grads);
            events(&plan.root, found, emit);
        }
        return;
    }
    let found = look_up(wanted(request, grads, session), request, grads);
    events(root_of(request), found, emit);
}

/// What was differentiated, by the name it has where it was given none.
fn root_of<'a>(request: &Request<'a>) -> &'a str {
    match request.root {
        "" => ROOT,
        root => root,
    }
}

/// The variables that are asked for, of those listed or found.
fn wanted(request: &Request<'_>, grads: &GradStore, session: Option<&Session>) -> Vec<Wanted> {
    let watch = session.and_then(|session| session.watch.as_ref());
    let mut wanted = all(request, grads, watch.map(|watch| watch.since));
    wanted.retain(|wanted| request.only.is_empty() || begins(&wanted.key, request.only));
    wanted
}

/// All variables, listed or found: named ones in the order of the list or of their names, the others in that of use.
fn all(request: &Request<'_>, grads: &GradStore, since: Option<u64>) -> Vec<Wanted> {
    if let Some(listed) = request.listed {
        return unnamed_by_order(listed);
    }
    let mut here = match request.reached {
        Some(reached) => with_inserted(reached, grads),
        None => stored(grads, since),
    };
    let present: HashSet<u64> = here.iter().map(|entry| entry.serial).collect();
    let named = names_with_company(&|serial| present.contains(&serial));
    let ids: std::collections::HashMap<u64, TensorId> =
        here.iter().map(|entry| (entry.serial, entry.id)).collect();
    let mut wanted: Vec<Wanted> = named
        .into_iter()
        .map(|company| Wanted {
            key: company.name,
            group: company.group,
            id: ids.get(&company.serial).copied(),
            serial: company.serial,
        })
        .collect();
    for (order, entry) in here.iter_mut().enumerate() {
        entry
            .name
            .get_or_insert_with(|| unnamed(order, &entry.dims));
    }
    let others = here.iter().filter(|entry| name_of(entry.serial).is_none());
    wanted.extend(others.map(Wanted::of));
    wanted
}

fn unnamed(order: usize, dims: &[usize]) -> String {
    format!("#{order} {dims:?}")
}

fn unnamed_by_order(entries: &[Entry]) -> Vec<Wanted> {
    let key = |(order, entry): (usize, &Entry)| {
        let given = entry.name.clone().or_else(|| name_of(entry.serial));
        Wanted {
            key: given.unwrap_or_else(|| unnamed(order, &entry.dims)),
            group: 0,
            serial: entry.serial,
            id: Some(entry.id),
        }
    };
    entries.iter().enumerate().map(key).collect()
}

impl Wanted {
    fn of(entry: &Entry) -> Self {
        Self {
            key: entry.name.clone().unwrap_or_default(),
            group: 0,
            serial: entry.serial,
            id: Some(entry.id),
        }
    }
}

/// The variables that the loss depends on, and those named ones whose gradients the program has put into the store. Where
/// it has, a variable without a name that has no entry has given its gradient to another.
fn with_inserted(reached: &[Entry], grads: &GradStore) -> Vec<Entry> {
    let known: HashSet<u64> = reached.iter().map(|entry| entry.serial).collect();
    let is_inserted =
        |entry: &Entry| !known.contains(&entry.serial) && name_of(entry.serial).is_some();
    let inserted: Vec<Entry> = stored(grads, None)
        .into_iter()
        .filter(is_inserted)
        .collect();
    let mut here = reached.to_vec();
    if !inserted.is_empty() {
        here.retain(|entry| name_of(entry.serial).is_some() || grads.get_id(entry.id).is_some());
        here.extend(inserted);
    }
    here
}

/// What a store has entries of and is older than the region: variables, in the order in which they were made. Data may
/// be as old, and candle keeps gradients of it, too: once some of the entries have names, the others are taken for data.
fn stored(grads: &GradStore, since: Option<u64>) -> Vec<Entry> {
    let entry = |id: &TensorId| {
        let made = serial(*id);
        let gradient = grads.get_id(*id)?;
        since
            .is_none_or(|since| made < since || name_of(made).is_some())
            .then(|| Entry {
                name: None,
                id: *id,
                serial: made,
                dims: gradient.dims().to_vec(),
            })
    };
    let mut entries: Vec<Entry> = grads.get_ids().filter_map(entry).collect();
    let is_named = |entry: &Entry| name_of(entry.serial).is_some();
    if entries.iter().any(is_named) {
        entries.retain(is_named);
    }
    entries.sort_by_key(|entry| entry.serial);
    entries
}

/// A variable and its gradient.
struct Found<'a> {
    key: String,
    group: u64,
    gradient: Option<&'a Tensor>,
    /// Why there is none.
    reason: Option<String>,
    /// The variable, where a cut graph may be a better reason.
    var: Option<u64>,
}

/// Looks the variables up.
fn look_up<'a>(wanted: Vec<Wanted>, request: &Request<'_>, grads: &'a GradStore) -> Vec<Found<'a>> {
    let find = |wanted: Wanted| {
        let gradient = wanted.id.and_then(|id| grads.get_id(id));
        let (reason, may_be_cut) = match gradient {
            Some(_) => (None, false),
            None => why_missing(&wanted, request),
        };
        Found {
            gradient,
            reason,
            var: may_be_cut.then_some(wanted.serial),
            key: wanted.key,
            group: wanted.group,
        }
    };
    wanted.into_iter().map(find).collect()
}

/// What tells the gradients of one pass from those of another, until the writer numbers them.
static NEXT_PASS: AtomicU64 = AtomicU64::new(0);

fn events(root: &str, found: Vec<Found<'_>>, emit: &mut dyn FnMut(Evidence)) {
    // Variables that were named together have the same families in each pass, whatever else that pass reaches.
    let mut groups: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for found in &found {
        groups.entry(found.group).or_default().push(&found.key);
    }
    let families: BTreeMap<u64, Families> = groups
        .into_iter()
        .map(|(group, keys)| (group, Families::of(keys.into_iter())))
        .collect();
    let pass = NEXT_PASS.fetch_add(1, Ordering::Relaxed);
    let mut norms = Norms::default();
    for found in found {
        let (state, norm) = match state_of(found.gradient) {
            Ok(known) => known,
            Err(error) => {
                let text = format!("no gradient norm of {}: {error}", found.key);
                emit(Evidence::Note(text));
                continue;
            }
        };
        let families = families.get(&found.group);
        let family = families.and_then(|families| families.family(&found.key));
        norms.add(family.as_deref(), state, norm);
        let extra = GradientExtra {
            reason: found.reason,
            family,
            pass: Some(pass),
            ..GradientExtra::default()
        };
        emit(Evidence::Gradient {
            event: Box::new(GradientEvent {
                event_id: String::new(),
                root: root.to_owned(),
                key: found.key,
                state,
                norm,
                extra: Some(Box::new(extra)),
            }),
            var: found.var,
        });
    }
    norms.tell(&norm_label(root), emit);
}

/// The label of the norm of all gradients of a root.
fn norm_label(root: &str) -> String {
    format!("{root}/grad_norm")
}

/// The norm of the same gradients once more, after they were clipped in place.
pub(crate) fn norm_after(
    request: &Request<'_>,
    grads: &GradStore,
    session: Option<&Session>,
    emit: &mut dyn FnMut(Evidence),
) {
    let mut norms = Norms::default();
    for wanted in wanted(request, grads, session) {
        let gradient = wanted.id.and_then(|id| grads.get_id(id));
        if let Ok((state, norm)) = state_of(gradient) {
            norms.add(None, state, norm);
        }
    }
    norms.tell(&format!("{}/after", norm_label(root_of(request))), emit);
}

/// Why a variable has no gradient, and whether a cut graph may be the better reason.
fn why_missing(wanted: &Wanted, request: &Request<'_>) -> (Option<String>, bool) {
    let last = wanted.key.rsplit('.').next().unwrap_or_default();
    if !request.frozen.is_empty() && begins(&wanted.key, request.frozen) {
        (Some(FROZEN.to_owned()), false)
    } else if last.starts_with("running_") || last == "num_batches_tracked" {
        (Some(BUFFER.to_owned()), false)
    } else {
        let reached = request.reached;
        let is_reached = |reached: &[Entry]| {
            let mut serials = reached.iter().map(|entry| entry.serial);
            serials.any(|serial| serial == wanted.serial)
        };
        let reason = match reached.map(is_reached) {
            Some(true) => "the store has no entry of it any more",
            Some(false) => "the graph of the loss does not reach it",
            None => "no entry in the store",
        };
        (Some(reason.to_owned()), true)
    }
}

/// Whether a name begins with one of the prefixes, ended there by a dot or its own end.
fn begins(key: &str, prefixes: &str) -> bool {
    let mut prefixes = prefixes.split(',').map(str::trim);
    prefixes.any(|prefix| {
        let rest = key.strip_prefix(prefix);
        !prefix.is_empty()
            && rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || prefix.ends_with('.')
            })
    })
}

/// The families of dotted names: what tells them apart first, with a number that follows.
struct Families {
    /// How many components all names share.
    shared: usize,
    /// Whether there is more than one family.
    several: bool,
}

impl Families {
    fn of<'a>(keys: impl Iterator<Item = &'a str>) -> Self {
        let keys: Vec<Vec<&str>> = keys.map(|key| key.split('.').collect()).collect();
        let first = keys.first().map(Vec::as_slice).unwrap_or_default();
        let alike = |at: usize| keys.iter().all(|key| key.get(at) == first.get(at));
        let shared = (0..first.len()).take_while(|at| alike(*at)).count();
        let families = Self {
            shared,
            several: true,
        };
        let named: HashSet<String> = keys
            .iter()
            .filter_map(|key| families.family(&key.join(".")))
            .collect();
        Self {
            shared,
            several: named.len() > 1,
        }
    }

    fn family(&self, key: &str) -> Option<String> {
        let parts: Vec<&str> = key.split('.').collect();
        if !self.several {
            // One family by the prefix that all share; the last component is the variable itself.
            let end = self.shared.min(parts.len().saturating_sub(1));
            let shared = parts.get(..end).unwrap_or_default();
            return (!shared.is_empty()).then(|| shared.join("."));
        }
        let is_number = |at: usize| {
            let part = parts.get(at).copied().unwrap_or_default();
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        // The last component is the variable itself.
        let mut end = self.shared + 1;
        if is_number(end) {
            end += 1;
        }
        (end < parts.len()).then(|| parts.get(..end).unwrap_or_default().join("."))
    }
}

/// Norms of many gradients together.
#[derive(Default)]
struct Norms {
    all: Vec<f64>,
    families: BTreeMap<String, Vec<f64>>,
    broken: bool,
}

/// The most families that get a norm of their own.
const MOST_FAMILIES: usize = 64;

impl Norms {
    fn add(&mut self, family: Option<&str>, state: GradientState, norm: Option<f64>) {
        self.broken |= state == GradientState::NonFinite;
        let Some(norm) = norm else {
            return;
        };
        self.all.push(norm);
        if let Some(family) = family {
            let members = self.families.entry(family.to_owned()).or_default();
            members.push(norm);
        }
    }

    fn tell(&self, label: &str, emit: &mut dyn FnMut(Evidence)) {
        // Non-finite gradients are told of by name; their norm is no number.
        if self.all.is_empty() || self.broken {
            return;
        }
        emit(crate::observe::scalar(label, together(&self.all), false));
        if (2..=MOST_FAMILIES).contains(&self.families.len()) {
            for (family, norms) in &self.families {
                let label = format!("{label}/{family}");
                emit(crate::observe::scalar(&label, together(norms), false));
            }
        }
    }
}

/// The norm of parts with these norms: scaled, so that neither their squares nor the sum leave the range.
fn together(norms: &[f64]) -> f64 {
    let largest = norms.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    let sum: f64 = norms.iter().map(|norm| (norm / largest).powi(2)).sum();
    (largest * sum.sqrt()).min(f64::MAX)
}

/// A gradient that the program has by name: a tensor, or an `Option` of one, or a reference to either.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no gradient",
    label = "is no gradient",
    note = "allowed are candle's `Tensor`, and `Option`s and references of them, such as `grads.get(&var)`"
)]
pub trait Gradient {
    /// The gradient, if there is one.
    fn gradient(&self) -> Option<&Tensor>;
}

impl Gradient for Tensor {
    fn gradient(&self) -> Option<&Tensor> {
        Some(self)
    }
}

impl<T: Gradient + ?Sized> Gradient for &T {
    fn gradient(&self) -> Option<&Tensor> {
        (**self).gradient()
    }
}

impl<T: Gradient> Gradient for Option<T> {
    fn gradient(&self) -> Option<&Tensor> {
        self.as_ref()?.gradient()
    }
}

/// Gradients that the program has by name.
pub(crate) fn named<N: AsRef<str>, G: Gradient>(
    root: &str,
    items: &[(N, G)],
    emit: &mut dyn FnMut(Evidence),
) {
    let found = items.iter().map(|(name, gradient)| Found {
        key: name.as_ref().to_owned(),
        group: 0,
        gradient: gradient.gradient(),
        reason: None,
        var: None,
    });
    events(root, found.collect(), emit);
}

/// A backward pass that is just over: the graph of its loss, and the gradients of the variables.
pub(crate) fn of_loss(loss: &Tensor, grads: &GradStore, emit: &mut dyn FnMut(Evidence)) {
    let reached = super::graph::differentiated(loss, Some(grads), emit);
    let request = Request {
        reached: Some(&reached),
        ..Request::default()
    };
    let session = recorder().and_then(|recorder| recorder.session());
    evidence(&request, grads, session.as_deref(), emit);
}

/// What a gradient is, with its norm. The norm is never a false zero: it is at least the largest element's magnitude.
///
/// # Errors
/// A gradient whose elements cannot be read.
pub(crate) fn state_of(
    gradient: Option<&Tensor>,
) -> candle_core::Result<(GradientState, Option<f64>)> {
    let Some(gradient) = gradient else {
        return Ok((GradientState::Missing, None));
    };
    let found = stats::statistics(gradient)?;
    Ok(if found.non_finite > 0 {
        (GradientState::NonFinite, None)
    } else if found.abs_max > 0.0 {
        (GradientState::Present, Some(found.l2.max(found.abs_max)))
    } else {
        (GradientState::Zero, Some(0.0))
    })
}

#[cfg(test)]
#[path = "gradients_tests.rs"]
mod tests;
