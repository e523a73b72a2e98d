//! What is refused, at which token, in which words.

use crate::args::{Attribute, Kind};
use crate::function::{Body, Function, is_never};
use crate::label::Label;
use crate::tokens::Ours;
use proc_macro2::{Span, TokenTree};

/// The attributes of one function or statement, one expansion.
#[derive(Default)]
pub(crate) struct Set {
    /// `profile_step` or `profile_span`.
    pub(crate) span: Option<Attribute>,
    pub(crate) measured: Option<Attribute>,
    pub(crate) records: Vec<Attribute>,
    /// The text of what they stand on calls `backward`.
    pub(crate) calls_backward: bool,
}

impl Set {
    /// Adds an attribute that may stand beside those already there.
    pub(crate) fn add(&mut self, attribute: Attribute) -> syn::Result<()> {
        let (place, other) = match attribute.kind {
            Kind::RecordStats | Kind::RecordScalar | Kind::RecordGradients => {
                self.records.push(attribute);
                return Ok(());
            }
            Kind::ProfileStep | Kind::ProfileSpan => (&mut self.span, self.measured.as_ref()),
            Kind::Measured => (&mut self.measured, self.span.as_ref()),
        };
        if let Some(first) = place {
            let what = if first.kind == attribute.kind {
                "twice"
            } else {
                "and another span"
            };
            let text = format!(
                "`{}` {what} on one item: one of `profile_step`, `profile_span` and one `measured` may stand \
                 together, with any number of records",
                first.kind.name()
            );
            return Err(syn::Error::new(attribute.span, text));
        }
        if attribute.label.is_some() && other.is_some_and(|other| other.label.is_some()) {
            return Err(syn::Error::new(
                attribute.span,
                "`measured` and its step are one span: give it one `name`",
            ));
        }
        *place = Some(attribute);
        let numbered = matches!(self.label(), Some(Label::Dynamic(template)) if template.numbered);
        match &self.measured {
            Some(measured) if numbered => {
                let text =
                    "a measured call counts itself: its name takes arguments and fields, not `{#}`";
                Err(syn::Error::new(measured.span, text))
            }
            _ => Ok(()),
        }
    }

    /// Reads one attribute and adds it.
    pub(crate) fn read(&mut self, ours: &Ours) -> syn::Result<()> {
        self.add(read(ours)?)
    }

    /// `crate = path`, wherever it was given.
    pub(crate) fn runtime(&self) -> Option<&proc_macro2::TokenStream> {
        self.span
            .iter()
            .chain(&self.measured)
            .chain(&self.records)
            .find_map(|attribute| attribute.runtime.as_ref())
    }

    /// What `ops` asks for, wherever it was given.
    pub(crate) fn ops(&self) -> Option<crate::ops::Mode> {
        let mut all = self.span.iter().chain(&self.measured);
        let asked = all.clone().find_map(|attribute| attribute.ops);
        let statistics = all.any(|attribute| attribute.ops == Some(crate::ops::Mode::Statistics));
        asked.map(|mode| match statistics {
            true => crate::ops::Mode::Statistics,
            false => mode,
        })
    }

    pub(crate) fn opens_span(&self) -> bool {
        self.span.is_some() || self.measured.is_some()
    }
}

/// Reads one attribute.
pub(crate) fn read(ours: &Ours) -> syn::Result<Attribute> {
    if let Some(span) = ours.malformed {
        let name = ours.kind.name();
        return Err(syn::Error::new(
            span,
            format!("arguments stand in parentheses: `#[{name}(…)]`"),
        ));
    }
    Attribute::read(ours.kind, ours.span, ours.args.clone())
}

/// An item that is no function.
pub(crate) fn not_a_function(kind: Kind, span: Span, word: &str) -> syn::Error {
    let name = kind.name();
    let found = if word.is_empty() {
        String::new()
    } else {
        format!(", not on `{word}`")
    };
    syn::Error::new(
        span,
        format!(
            "`{name}` stands on functions with a body (free, methods, in traits and impls, `async`) and on statements \
             inside an annotated function{found}"
        ),
    )
}

/// What cannot be done with this function.
pub(crate) fn function(function: &Function, set: &Set) -> syn::Result<()> {
    if let Some(span) = function.constness {
        let text = "a `const fn` cannot be recorded: it may run in the compiler; remove `const`, or annotate its callers";
        return Err(syn::Error::new(span, text));
    }
    if let Body::Missing(span) = function.body {
        let text = "this function has no body to record: annotate the functions of the impls, or give it a default body";
        return Err(syn::Error::new(span, text));
    }
    let taken = crate::gradients::store(function).is_some();
    for record in &set.records {
        if !(taken && record.kind == Kind::RecordGradients) {
            on_return(function, record)?;
        }
    }
    Ok(())
}

fn on_return(function: &Function, record: &Attribute) -> syn::Result<()> {
    let name = record.kind.name();
    let problem = match &function.output {
        None if record.kind == Kind::RecordGradients => format!(
            "`{name}` reads a `GradStore` that a function returns or takes by name, and this one does neither; put it on \
             one that does, on a `let` or a parameter"
        ),
        None => format!(
            "`{name}` reads the return value, and this function has none; put it on a function that returns one, on a \
             `let` inside or on a parameter"
        ),
        Some(output) if is_never(output) => {
            format!("`{name}` reads the return value, and this function never returns")
        }
        Some(_) if function.track_caller => format!(
            "`{name}` reads the return value, for which the body of a `#[track_caller]` function would lose its caller; \
             put it on a `let` inside, or remove `#[track_caller]`"
        ),
        Some(_) => return Ok(()),
    };
    Err(syn::Error::new(record.span, problem))
}

/// Whether the value of a function tells that something in its body failed, and can be looked at without moving the
/// body from where it must stay.
pub(crate) fn tells_failure(function: &Function) -> bool {
    let returns = function.output.as_ref().filter(|output| !is_never(output));
    !function.is_async
        && !function.track_caller
        && returns.is_some_and(|output| !holds_impl(output) && !crate::boxed::is_future(output))
}

/// The attributes of a parameter.
pub(crate) fn parameter(ours: &[Ours]) -> syn::Result<Vec<Attribute>> {
    let mut records = Vec::new();
    for attribute in ours {
        let attribute = read(attribute)?;
        if !attribute.kind.records() {
            let text = format!(
                "`{}` opens a span and stands on the function; on a parameter: `record_stats`, `record_scalar`, `record_gradients`",
                attribute.kind.name()
            );
            return Err(syn::Error::new(attribute.span, text));
        }
        records.push(attribute);
    }
    Ok(records)
}

/// A statement attribute where no statement that we know follows.
pub(crate) fn not_a_statement(kind: Kind, span: Span) -> syn::Error {
    let name = kind.name();
    let forms = if kind.records() {
        "`let`, an assignment, a call, a block"
    } else {
        "`let`, an assignment, a call, a block, `for`, `while`, `loop`"
    };
    syn::Error::new(
        span,
        format!("inside a function `{name}` stands on a statement: {forms}"),
    )
}

/// The trees of a return type hold an `impl`.
pub(crate) fn holds_impl(output: &[TokenTree]) -> bool {
    output.iter().any(|tree| match tree {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => holds_impl(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}
