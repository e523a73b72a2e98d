//! The gradients of a trace: each variable once, and a norm for each backward pass.
//!
//! One step may differentiate several times: micro-batches, the two losses of a GAN, epochs over one rollout. Their
//! gradients are never added up here, since only the program knows whether it does so.

use super::bounded::{Names, Rows};
use super::scalars::ScalarRow;
use crate::trace::{self, BUFFER, FROZEN, GradientEvent};
use crate::view::text::{count, number};

/// Variables of a root that are told apart: more than any model has.
const MOST_VARIABLES: usize = 65_536;
/// Backward passes of a root whose norms are kept.
const MOST_PASSES: u64 = 65_536;

/// Whether a gradient is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GradientState {
    Present,
    Missing,
    Zero,
    NonFinite,
}

impl GradientState {
    #[cfg(feature = "cli")]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            GradientState::Present => "present",
            GradientState::Missing => "missing",
            GradientState::Zero => "zero",
            GradientState::NonFinite => "non_finite",
        }
    }
}

/// The gradient of one variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gradient<'a> {
    /// What was differentiated.
    pub(crate) root: &'a str,
    /// The variable.
    pub(crate) key: &'a str,
    pub(crate) state: GradientState,
    pub(crate) norm: Option<f64>,
    /// Why a missing one is missing.
    pub(crate) reason: Option<&'a str>,
    /// The backward pass, from 1. The first goes without, and so do all where nobody counted.
    pub(crate) pass: Option<u64>,
    /// It was zero in an earlier step, too.
    pub(crate) zero_before: bool,
}

/// A gradient as the summary takes it.
pub(crate) fn gradient_of(event: &GradientEvent) -> Gradient<'_> {
    let extra = event.extra.as_deref();
    Gradient {
        root: &event.root,
        key: &event.key,
        state: match event.state {
            trace::GradientState::Present => GradientState::Present,
            trace::GradientState::Missing => GradientState::Missing,
            trace::GradientState::Zero => GradientState::Zero,
            trace::GradientState::NonFinite => GradientState::NonFinite,
        },
        norm: event.norm,
        reason: extra.and_then(|extra| extra.reason.as_deref()),
        pass: extra.and_then(|extra| extra.pass),
        zero_before: extra.is_some_and(|extra| extra.zero_before),
    }
}

/// What all passes say of one variable.
#[derive(Debug, Default)]
pub(crate) struct Variable {
    present: u64,
    zero: u64,
    non_finite: u64,
    missing: u64,
    /// Why it is missing, where it is.
    reason: Option<String>,
    norms: Range,
    zero_before: bool,
    /// How often it came without the number of its pass.
    unnumbered: u64,
}

impl Variable {
    /// A gradient is there if any pass gave one: the passes of a step need not reach the same variables.
    pub(crate) fn state(&self) -> GradientState {
        match self {
            _ if self.non_finite > 0 => GradientState::NonFinite,
            _ if self.present > 0 => GradientState::Present,
            _ if self.zero > 0 => GradientState::Zero,
            _ => GradientState::Missing,
        }
    }

    /// Why it is missing, if it is.
    pub(crate) fn reason(&self) -> Option<&str> {
        let reason = self.reason.as_deref();
        reason.filter(|_| self.state() == GradientState::Missing)
    }

    /// Frozen variables and buffers are to have none.
    fn is_untrained(&self) -> bool {
        matches!(self.reason(), Some(FROZEN | BUFFER))
    }

    /// The passes that looked at it.
    #[cfg(feature = "cli")]
    pub(crate) fn passes(&self) -> u64 {
        self.present + self.zero + self.non_finite + self.missing
    }

    /// Its norms in the passes that have one.
    #[cfg(feature = "cli")]
    pub(crate) fn norms(&self) -> Option<&Range> {
        (self.norms.values > 0).then_some(&self.norms)
    }

    fn take(&mut self, gradient: &Gradient<'_>) {
        match gradient.state {
            GradientState::Present => self.present += 1,
            GradientState::Zero => self.zero += 1,
            GradientState::NonFinite => self.non_finite += 1,
            GradientState::Missing => self.missing += 1,
        }
        if let (None, Some(reason)) = (&self.reason, gradient.reason) {
            self.reason = Some(reason.to_owned());
        }
        if let Some(norm) = gradient.norm {
            self.norms.take(norm);
        }
        self.zero_before |= gradient.zero_before;
    }
}

/// Numbers in the order in which they came.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Range {
    pub(crate) values: u64,
    pub(crate) first: f64,
    pub(crate) last: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Range {
    fn take(&mut self, value: f64) {
        if self.values == 0 {
            (self.first, self.least, self.most) = (value, value, value);
        }
        self.values += 1;
        self.last = value;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
    }

    /// `0.7037 … 0.8475`
    fn text(&self) -> String {
        let (least, most) = (number(self.least, 4), number(self.most, 4));
        match least == most {
            true => least,
            false => format!("{least} … {most}"),
        }
    }
}

/// One backward pass.
#[derive(Debug, Clone, Copy, Default)]
struct Pass {
    /// Of what is present and finite.
    norm: Option<f64>,
    broken: bool,
}

/// The gradients of one root.
#[derive(Debug, Default)]
pub(crate) struct GradientRow {
    variables: Rows<Variable>,
    /// Variables that found no row.
    others: u64,
    passes: Vec<Pass>,
    /// The pass of what comes without a number.
    current: u64,
}

/// The root of the sum of two squares, neither of which needs to be a number itself. `f64::hypot` would do, but makes
/// every program that links this load the library of mathematics when it starts.
fn length(a: f64, b: f64) -> f64 {
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    if more > 0.0 {
        let share = less / more;
        more * (1.0 + share * share).sqrt()
    } else {
        0.0
    }
}

impl GradientRow {
    pub(crate) fn take(&mut self, gradient: &Gradient<'_>) {
        let mut pass = gradient.pass.unwrap_or(self.current).max(1);
        match self.variables.row_of(gradient.key, MOST_VARIABLES) {
            Some(variable) => {
                if gradient.pass.is_none() {
                    // Nothing has two gradients in one pass.
                    variable.unnumbered += 1;
                    pass = pass.max(variable.unnumbered);
                    self.current = pass;
                }
                variable.take(gradient);
            }
            None => self.others += u64::from(pass == 1),
        }
        let Some(place) = usize::try_from(pass.min(MOST_PASSES) - 1).ok() else {
            return;
        };
        if self.passes.len() <= place {
            self.passes.resize(place + 1, Pass::default());
        }
        if let Some(pass) = self.passes.get_mut(place) {
            pass.broken |= gradient.state == GradientState::NonFinite;
            if let Some(norm) = gradient.norm {
                pass.norm = Some(length(pass.norm.unwrap_or(0.0), norm));
            }
        }
    }

    /// Its variables, in the order in which they first came.
    #[cfg(feature = "cli")]
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &Variable)> {
        self.variables.iter()
    }

    fn named(&self, state: GradientState) -> Names {
        let all = self.variables.iter();
        let those = all.filter(|(_, variable)| variable.state() == state);
        those.map(|(key, _)| key).collect()
    }

    fn unfound(&self, untrained: bool) -> Names {
        let is_one = |variable: &Variable| {
            variable.state() == GradientState::Missing && variable.is_untrained() == untrained
        };
        let all = self.variables.iter();
        all.filter(|(_, variable)| is_one(variable))
            .map(|(key, variable)| match variable.reason() {
                Some(reason) => format!("{key} ({reason})"),
                None => key.to_owned(),
            })
            .collect()
    }

    pub(super) fn present(&self) -> u64 {
        self.named(GradientState::Present).count()
    }

    pub(super) fn zero(&self) -> Names {
        self.named(GradientState::Zero)
    }

    pub(super) fn non_finite(&self) -> Names {
        self.named(GradientState::NonFinite)
    }

    /// Missing, and should not be.
    pub(super) fn missing(&self) -> Names {
        self.unfound(false)
    }

    /// Frozen variables and buffers, which are to have none.
    pub(super) fn untrained(&self) -> Names {
        self.unfound(true)
    }

    /// Those that have been zero since an earlier step.
    pub(super) fn stay_zero(&self) -> impl Iterator<Item = &str> {
        let stays =
            |variable: &Variable| variable.zero_before && variable.state() == GradientState::Zero;
        let all = self.variables.iter();
        all.filter(move |(_, variable)| stays(variable))
            .map(|(key, _)| key)
    }

    pub(super) fn all(&self) -> u64 {
        self.variables.len() as u64 + self.others
    }

    pub(super) fn others(&self) -> u64 {
        self.others
    }

    pub(super) fn passes(&self) -> u64 {
        self.passes.len() as u64
    }

    /// The norms of the passes in which all that is there is finite.
    pub(super) fn norms(&self) -> Range {
        let mut norms = Range::default();
        for pass in self.passes.iter().filter(|pass| !pass.broken) {
            norms.take(pass.norm.unwrap_or(0.0));
        }
        norms
    }

    /// The norm of all gradients of the last pass, NaN where one of them is not finite; `None`: it has none at all.
    pub(crate) fn last_norm(&self) -> Option<f64> {
        let last = self.passes.last()?;
        match last.broken {
            true => Some(f64::NAN),
            false => last.norm,
        }
    }

    /// `1.25`, or `0.7037 … 0.8475` of several passes.
    pub(super) fn norm_text(&self) -> String {
        let norms = self.norms();
        match norms.values {
            0 => "not finite".to_owned(),
            _ => norms.text(),
        }
    }

    /// `4 passes`, where there are several.
    pub(super) fn passes_text(&self) -> Option<String> {
        let broken = self.passes.iter().filter(|pass| pass.broken).count();
        let passes = (self.passes.len() > 1).then(|| count(self.passes()))?;
        Some(match broken {
            0 => format!("{passes} passes"),
            _ if broken == self.passes.len() => format!("{passes} passes"),
            broken => format!(
                "{passes} passes, {} of them not finite",
                count(broken as u64)
            ),
        })
    }

    /// Whether a number is the norm of these gradients, pass by pass, and nothing but it.
    pub(super) fn has_norm(&self, row: &ScalarRow) -> bool {
        // The sums are made in different orders.
        const ROUNDING: f64 = 1e-6;
        let near = |value: f64, norm: f64| (value - norm).abs() <= ROUNDING * norm;
        let norms = self.norms();
        match norms.values {
            0 => row.values == self.passes() && !row.last.is_finite(),
            values => {
                row.values == values && near(row.first, norms.first) && near(row.last, norms.last)
            }
        }
    }
}

/// The gradients of all roots, in the order in which these first came.
#[derive(Debug, Default)]
pub(crate) struct Gradients {
    roots: Rows<GradientRow>,
}

impl Gradients {
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a GradientEvent>) -> Gradients {
        let mut all = Gradients::default();
        for event in events {
            all.take(&gradient_of(event));
        }
        all
    }

    pub(crate) fn take(&mut self, gradient: &Gradient<'_>) {
        if let Some(row) = self.roots.row(gradient.root) {
            row.take(gradient);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &GradientRow)> {
        self.roots.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.roots.len()
    }

    pub(super) fn refused(&self) -> u64 {
        self.roots.refused()
    }

    /// What the norm of a root's gradients is called.
    pub(super) fn norm_name(&self, root: &str) -> String {
        match self.len() {
            1 => "gradient norm".to_owned(),
            _ => format!("gradient norm of {root}"),
        }
    }
}
