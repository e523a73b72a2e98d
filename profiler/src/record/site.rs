//! The places of the user's program that open spans and record values: constants, without interior mutability.

use std::borrow::Cow;
use std::panic::Location;

use crate::phase::ExecutionStep;
use crate::trace::SpanKind;

/// A name known when the program is built.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// The text itself.
    Text(&'static str),
    /// `Type::method`: the type's full name from `type_name`, and the method.
    Method(fn() -> &'static str, &'static str),
}

impl Name {
    /// The name as it stands in a trace.
    pub(crate) fn resolve(self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Method(type_name, method) => {
                Cow::Owned(format!("{}::{method}", last_segment(type_name())))
            }
        }
    }
}

/// `a::b::Layer<c::D>` gives `Layer`; `dyn a::Module` gives `Module`; `&mut [a::T]` stays readable too.
fn last_segment(type_name: &str) -> &str {
    let head = type_name.trim_start_matches(['&', '[', '(', '*']);
    let head = head.split(['<', ',', ';', ']', ')']).next().unwrap_or(head);
    let head = head.rsplit("::").next().unwrap_or(head);
    let head = head.rsplit(' ').next().unwrap_or(head);
    if head.is_empty() { type_name } else { head }
}

/// One place that opens spans; a generic function has one for each instantiation.
#[derive(Clone, Copy, Debug)]
pub struct CallSite {
    pub(crate) name: Name,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) kind: SpanKind,
    pub(crate) step: Option<ExecutionStep>,
    pub(crate) detached: bool,
}

impl CallSite {
    /// A function span.
    pub const fn new(name: Name, file: &'static str, line: u32) -> Self {
        Self {
            name,
            file,
            line,
            kind: SpanKind::Function,
            step: None,
            detached: false,
        }
    }

    /// `kind = …`
    #[must_use]
    pub const fn kind(mut self, kind: SpanKind) -> Self {
        self.kind = kind;
        self
    }

    /// `profile_step(…)`
    #[must_use]
    pub const fn step(mut self, step: ExecutionStep) -> Self {
        self.step = Some(step);
        self
    }

    /// `detached`
    #[must_use]
    pub const fn detached(mut self) -> Self {
        self.detached = true;
        self
    }
}

/// One place that opens measured regions.
#[derive(Clone, Copy, Debug)]
pub struct MeasureSite {
    pub(crate) span: CallSite,
    pub(crate) infer: bool,
}

impl MeasureSite {
    /// A training region.
    pub const fn new(span: CallSite) -> Self {
        Self { span, infer: false }
    }

    /// `measured(infer)`
    #[must_use]
    pub const fn infer(mut self) -> Self {
        self.infer = true;
        self
    }
}

/// One place that records values. The label stands for itself, or for a built text that came out blank.
#[derive(Clone, Copy, Debug)]
pub struct RecordSite {
    pub(crate) label: Name,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) allow_nonfinite: bool,
}

impl RecordSite {
    /// A record with this label.
    pub const fn new(label: Name, file: &'static str, line: u32) -> Self {
        Self {
            label,
            file,
            line,
            allow_nonfinite: false,
        }
    }

    /// `allow_nonfinite`
    #[must_use]
    pub const fn allow_nonfinite(mut self) -> Self {
        self.allow_nonfinite = true;
        self
    }
}

/// What a span is: a call site, whose name may have been built for this one call, or a call of a free function.
#[derive(Clone, Debug)]
pub(crate) enum SpanSource {
    Site(&'static CallSite),
    Named(&'static CallSite, Box<str>),
    Free {
        name: Box<str>,
        location: &'static Location<'static>,
        step: Option<ExecutionStep>,
    },
}

impl SpanSource {
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Site(site) => site.name.resolve(),
            Self::Named(_, name) | Self::Free { name, .. } => Cow::Borrowed(name),
        }
    }

    /// The text that was built for this one span.
    pub(crate) fn own_text(&self) -> &str {
        match self {
            Self::Site(_) => "",
            Self::Named(_, name) | Self::Free { name, .. } => name,
        }
    }

    pub(crate) fn kind(&self) -> SpanKind {
        match self {
            Self::Site(site) | Self::Named(site, _) => site.kind,
            Self::Free { .. } => SpanKind::Function,
        }
    }

    pub(crate) fn step(&self) -> Option<ExecutionStep> {
        match self {
            Self::Site(site) | Self::Named(site, _) => site.step,
            Self::Free { step, .. } => *step,
        }
    }

    pub(crate) fn place(&self) -> (&'static str, u32) {
        match self {
            Self::Site(site) | Self::Named(site, _) => (site.file, site.line),
            Self::Free { location, .. } => (location.file(), location.line()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::last_segment;

    #[test]
    fn type_names_are_cut_to_what_a_person_calls_the_type() {
        for (full, short) in [
            ("my_model::blocks::Attention", "Attention"),
            ("my_model::Wrapper<other::Inner<u32>>", "Wrapper"),
            ("dyn candle_core::Module", "Module"),
            ("&mut a::B<'_>", "B"),
            ("[a::B]", "B"),
            ("(a::B, c::D)", "B"),
            ("u32", "u32"),
        ] {
            assert_eq!(last_segment(full), short, "{full}");
        }
    }
}
