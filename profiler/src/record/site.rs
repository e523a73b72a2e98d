//! The places of the user's program that open spans and record values: constants, without interior mutability.

use std::borrow::Cow;
use std::panic::Location;
use std::sync::Arc;

use crate::phase::ExecutionStep;
use crate::trace::SpanKind;

/// A name known when the program is built.
#[derive(Clone, Copy, Debug)]
pub enum Name {
    /// The text itself.
    Text(&'static str),
    /// `module::function`: the function's module, and the function.
    Function(&'static str, &'static str),
    /// `Type::method`: the type's full name from `type_name`, and the method.
    Method(fn() -> &'static str, &'static str),
}

impl Name {
    /// The name as it stands in a trace.
    pub(crate) fn resolve(self) -> Cow<'static, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Function(module, function) => Cow::Owned(format!("{module}::{function}")),
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

/// One place that opens spans: its name, file and line, and what it opens; a generic function has one for each
/// instantiation.
///
/// An expansion writes a reference to one, which the compiler keeps in the program's constants by itself: much less work
/// for it than a constant of our own, of which a large program would have thousands.
#[derive(Clone, Copy, Debug)]
pub struct CallSite(
    pub Name,
    pub &'static str,
    pub u32,
    /// What it opens, as the attributes write it in bits: the kind in two, the step in two, `detached`, `infer` and
    /// `calls_backward` in one each.
    pub u32,
);

/// What a call site opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Opens {
    pub(crate) kind: SpanKind,
    pub(crate) step: Option<ExecutionStep>,
    /// What goes through it is not meant to be differentiated.
    pub(crate) detached: bool,
    pub(crate) infer: bool,
    /// The function's text calls `backward`.
    pub(crate) calls_backward: bool,
}

impl CallSite {
    pub(crate) fn name(&self) -> Name {
        self.0
    }

    pub(crate) fn file(&self) -> &'static str {
        self.1
    }

    pub(crate) fn line(&self) -> u32 {
        self.2
    }

    pub(crate) fn opens(&self) -> Opens {
        let bits = self.3;
        Opens {
            kind: match bits & 3 {
                1 => SpanKind::Module,
                2 => SpanKind::Op,
                _ => SpanKind::Function,
            },
            step: match bits >> 2 & 3 {
                1 => Some(ExecutionStep::Forward),
                2 => Some(ExecutionStep::Backward),
                3 => Some(ExecutionStep::Optimizer),
                _ => None,
            },
            detached: bits & 16 != 0,
            infer: bits & 32 != 0,
            calls_backward: bits & 64 != 0,
        }
    }
}

/// One place that records values: its label, file and line, whether values that are not finite are expected, and the
/// function that it stands in. The label stands for itself, or for a built text that came out blank.
#[derive(Clone, Copy, Debug)]
pub struct RecordSite(pub Name, pub &'static str, pub u32, pub bool, pub Name);

/// One place that records gradients: prefixes of the names that are recorded, and of those that get none on purpose.
#[derive(Clone, Copy, Debug)]
pub struct GradientSite(pub RecordSite, pub &'static str, pub &'static str);

impl RecordSite {
    pub(crate) fn label(&self) -> Name {
        self.0
    }

    pub(crate) fn file(&self) -> &'static str {
        self.1
    }

    pub(crate) fn line(&self) -> u32 {
        self.2
    }

    pub(crate) fn allows_nonfinite(&self) -> bool {
        self.3
    }

    /// The function that it stands in; blank where that is not told.
    pub(crate) fn function(&self) -> Name {
        self.4
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
    /// A forward pass of a wrapped module.
    #[cfg_attr(
        feature = "off",
        allow(dead_code, reason = "wrappers are compiled out")
    )]
    Module {
        name: Arc<str>,
        location: &'static Location<'static>,
    },
}

impl SpanSource {
    pub(crate) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Site(site) => site.name().resolve(),
            Self::Named(_, name) | Self::Free { name, .. } => Cow::Borrowed(name),
            Self::Module { name, .. } => Cow::Borrowed(name),
        }
    }

    /// The text that was built for this one span.
    pub(crate) fn own_text(&self) -> &str {
        match self {
            Self::Site(_) => "",
            Self::Named(_, name) | Self::Free { name, .. } => name,
            Self::Module { name, .. } => name,
        }
    }

    /// At least the bytes of its name and its file.
    pub(crate) fn text_bytes(&self) -> usize {
        let name = match self {
            Self::Site(site) => match site.name() {
                Name::Text(text) => text.len(),
                Name::Function(module, function) => module.len() + 2 + function.len(),
                Name::Method(type_name, method) => type_name().len() + 2 + method.len(),
            },
            _ => self.own_text().len(),
        };
        name + self.place().0.len()
    }

    /// What tells its call site from others; a generic function has one for each instantiation.
    pub(crate) fn key(&self) -> usize {
        match self {
            Self::Site(site) | Self::Named(site, _) => std::ptr::from_ref::<CallSite>(site).addr(),
            Self::Free { location, .. } | Self::Module { location, .. } => {
                std::ptr::from_ref(*location).addr()
            }
        }
    }

    pub(crate) fn kind(&self) -> SpanKind {
        match self {
            Self::Site(site) | Self::Named(site, _) => site.opens().kind,
            Self::Free { .. } => SpanKind::Function,
            Self::Module { .. } => SpanKind::Module,
        }
    }

    pub(crate) fn step(&self) -> Option<ExecutionStep> {
        match self {
            Self::Site(site) | Self::Named(site, _) => site.opens().step,
            Self::Free { step, .. } => *step,
            Self::Module { .. } => None,
        }
    }

    /// The call site of an attribute.
    pub(crate) fn site(&self) -> Option<&'static CallSite> {
        match self {
            Self::Site(site) | Self::Named(site, _) => Some(site),
            Self::Free { .. } | Self::Module { .. } => None,
        }
    }

    pub(crate) fn place(&self) -> (&'static str, u32) {
        let (file, line) = match self {
            Self::Site(site) | Self::Named(site, _) => (site.file(), site.line()),
            Self::Free { location, .. } | Self::Module { location, .. } => {
                (location.file(), location.line())
            }
        };
        (crate::source::short(file), line)
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
