//! What stands in the parentheses of an attribute, as data.

use crate::label::Label;
use crate::ops::Mode;
use proc_macro2::{Ident, Span, TokenStream};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, LitStr, Path, Token};

/// Which attribute it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ProfileStep,
    ProfileSpan,
    Measured,
    RecordStats,
    RecordScalar,
    RecordGradients,
}

impl Kind {
    /// The attribute of this name, if it is one of ours.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "profile_step" => Self::ProfileStep,
            "profile_span" => Self::ProfileSpan,
            "measured" => Self::Measured,
            "record_stats" => Self::RecordStats,
            "record_scalar" => Self::RecordScalar,
            "record_gradients" => Self::RecordGradients,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ProfileStep => "profile_step",
            Self::ProfileSpan => "profile_span",
            Self::Measured => "measured",
            Self::RecordStats => "record_stats",
            Self::RecordScalar => "record_scalar",
            Self::RecordGradients => "record_gradients",
        }
    }

    /// Whether it looks at a value, where the others open a span.
    pub(crate) fn records(self) -> bool {
        matches!(
            self,
            Self::RecordStats | Self::RecordScalar | Self::RecordGradients
        )
    }

    /// What may stand in the parentheses.
    fn allowed(self) -> &'static str {
        match self {
            Self::ProfileStep => {
                "`forward`, `backward` or `optimizer` (also `fwd`, `bwd`, `optim`), then `name = \"…\"`, \
                 `kind = function|module|op`, `ops`, `ops(stats)`, `detached`, `crate = path`"
            }
            Self::ProfileSpan => {
                "`name = \"…\"`, `kind = function|module|op`, `ops`, `ops(stats)`, `detached`, `crate = path`"
            }
            Self::Measured => {
                "`infer`, `name = \"…\"`, `device = EXPR`, `step = EXPR`, `items = EXPR`, `tags(key = EXPR, …)`, \
                 `gradients = EXPR`, `ops`, `ops(stats)`, `crate = path`"
            }
            Self::RecordGradients => {
                "`vars = EXPR`, `root = \"…\"`, `only = \"…\"`, `frozen = \"…\"` (names' beginnings, separated by commas), \
                 `crate = path`"
            }
            Self::RecordStats | Self::RecordScalar => {
                "a label (`\"text\"` or an identifier), then `allow_nonfinite`, `crate = path`"
            }
        }
    }
}

/// One of our attributes as written.
pub(crate) struct Attribute {
    pub(crate) kind: Kind,
    /// Where its name stands.
    pub(crate) span: Span,
    /// `name = "…"` of a span, or the label of a record.
    pub(crate) label: Option<Label>,
    /// `crate = path`
    pub(crate) runtime: Option<TokenStream>,
    /// `forward`, `backward`, `optimizer`, as variants of `ExecutionStep`.
    pub(crate) step: Option<&'static str>,
    /// `kind = …`, as a variant of `SpanKind`.
    pub(crate) span_kind: Option<&'static str>,
    pub(crate) detached: bool,
    /// `ops`, `ops(stats)`
    pub(crate) ops: Option<Mode>,
    pub(crate) allow_nonfinite: bool,
    pub(crate) measure: Measure,
    pub(crate) gradients: Gradients,
}

/// The options of `record_gradients` alone; `root` is its label.
#[derive(Default)]
pub(crate) struct Gradients {
    pub(crate) vars: Option<TokenStream>,
    pub(crate) only: Option<LitStr>,
    pub(crate) frozen: Option<LitStr>,
}

/// The options of `measured` alone.
#[derive(Default)]
pub(crate) struct Measure {
    pub(crate) infer: bool,
    pub(crate) device: Option<TokenStream>,
    pub(crate) step: Option<TokenStream>,
    pub(crate) items: Option<TokenStream>,
    pub(crate) tags: Option<Vec<(String, TokenStream)>>,
    pub(crate) gradients: Option<TokenStream>,
}

impl Measure {
    /// Whether no option has an expression to run at each call.
    pub(crate) fn says_nothing(&self) -> bool {
        self.device.is_none()
            && self.step.is_none()
            && self.items.is_none()
            && self.tags.is_none()
            && self.gradients.is_none()
    }
}

impl Attribute {
    pub(crate) fn is_of_gradients(&self) -> bool {
        self.kind == Kind::RecordGradients
    }

    /// Reads the tokens between the parentheses; `span` is where the attribute's name stands.
    pub(crate) fn read(kind: Kind, span: Span, args: TokenStream) -> syn::Result<Self> {
        let mut attribute = Self {
            kind,
            span,
            label: None,
            runtime: None,
            step: None,
            span_kind: None,
            detached: false,
            ops: None,
            allow_nonfinite: false,
            measure: Measure::default(),
            gradients: Gradients::default(),
        };
        if !args.is_empty() {
            let parser = |input: ParseStream<'_>| attribute.options(input);
            parser.parse2(args)?;
        }
        attribute.complete()?;
        Ok(attribute)
    }

    fn complete(&self) -> syn::Result<()> {
        let missing = match self.kind {
            Kind::ProfileStep if self.step.is_none() => {
                "`profile_step` needs the step: `forward`, `backward` or `optimizer` (also `fwd`, `bwd`, `optim`)"
            }
            Kind::RecordScalar if self.label.is_none() => {
                "`record_scalar` needs a label: `#[record_scalar(\"loss\")]` or `#[record_scalar(loss)]`"
            }
            _ => return Ok(()),
        };
        Err(syn::Error::new(self.span, missing))
    }

    fn options(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            self.option(input)?;
            if input.is_empty() {
                break;
            }
            if !input.peek(Token![,]) {
                return Err(input.error(format!(
                    "expected `,`; `{}` takes {}",
                    self.kind.name(),
                    self.kind.allowed()
                )));
            }
            input.parse::<Token![,]>()?;
        }
        Ok(())
    }

    fn option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        if self.kind.records() && self.kind != Kind::RecordGradients && input.peek(LitStr) {
            let literal: LitStr = input.parse()?;
            return self.labelled(literal.span(), Label::read(&literal)?);
        }
        if !input.peek(Ident::peek_any) {
            return Err(input.error(format!(
                "`{}` takes {}",
                self.kind.name(),
                self.kind.allowed()
            )));
        }
        let word = input.call(Ident::parse_any)?;
        if word == "crate" {
            input.parse::<Token![=]>()?;
            let path = input.call(Path::parse_mod_style)?;
            return once(
                &mut self.runtime,
                path.into_token_stream(),
                &word,
                self.kind,
            );
        }
        match self.kind {
            Kind::ProfileStep | Kind::ProfileSpan => self.span_option(&word, input),
            Kind::Measured => self.measured_option(&word, input),
            Kind::RecordStats | Kind::RecordScalar => self.record_option(&word, input),
            Kind::RecordGradients => self.gradients_option(&word, input),
        }
    }

    fn span_option(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match word.to_string().as_str() {
            "name" => self.name(word, input),
            "kind" => {
                input.parse::<Token![=]>()?;
                let kind = input.call(Ident::parse_any)?;
                let variant = match kind.to_string().as_str() {
                    "function" => "Function",
                    "module" => "Module",
                    "op" => "Op",
                    other => {
                        let text = format!(
                            "no kind of span is called `{other}`: `function`, `module` or `op`"
                        );
                        return Err(syn::Error::new(kind.span(), text));
                    }
                };
                once(&mut self.span_kind, variant, word, self.kind)
            }
            "detached" => flag(&mut self.detached, word, self.kind),
            "ops" => self.operations(word, input),
            other if self.kind == Kind::ProfileStep && !input.peek(Token![=]) => {
                let variant = match other {
                    "forward" | "fwd" => "Forward",
                    "backward" | "bwd" => "Backward",
                    "optimizer" | "optim" => "Optimizer",
                    _ => {
                        let text = format!(
                            "no step is called `{other}`: `forward`, `backward` or `optimizer` (also `fwd`, `bwd`, \
                             `optim`)"
                        );
                        return Err(syn::Error::new(word.span(), text));
                    }
                };
                once(&mut self.step, variant, word, self.kind)
            }
            _ => Err(self.unknown(word)),
        }
    }

    fn measured_option(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        match word.to_string().as_str() {
            "infer" => flag(&mut self.measure.infer, word, self.kind),
            "ops" => self.operations(word, input),
            "name" => self.name(word, input),
            "device" => once(
                &mut self.measure.device,
                expression(input)?,
                word,
                self.kind,
            ),
            "step" => once(&mut self.measure.step, expression(input)?, word, self.kind),
            "items" => once(&mut self.measure.items, expression(input)?, word, self.kind),
            "gradients" => once(
                &mut self.measure.gradients,
                expression(input)?,
                word,
                self.kind,
            ),
            "tags" => {
                let group;
                syn::parenthesized!(group in input);
                once(&mut self.measure.tags, tags(&group)?, word, self.kind)
            }
            _ => Err(self.unknown(word)),
        }
    }

    fn record_option(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if input.peek(Token![=]) {
            return Err(self.unknown(word));
        }
        if word == "allow_nonfinite" {
            return flag(&mut self.allow_nonfinite, word, self.kind);
        }
        self.labelled(word.span(), Label::plain(word.unraw().to_string()))
    }

    fn gradients_option(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let options = &mut self.gradients;
        match word.to_string().as_str() {
            "vars" => once(&mut options.vars, expression(input)?, word, self.kind),
            "only" => once(&mut options.only, text(input)?, word, self.kind),
            "frozen" => once(&mut options.frozen, text(input)?, word, self.kind),
            "root" => {
                let root = text(input)?;
                once(&mut self.label, Label::read(&root)?, word, self.kind)
            }
            _ => Err(self.unknown(word)),
        }
    }

    fn labelled(&mut self, span: Span, label: Label) -> syn::Result<()> {
        if self.label.is_some() {
            let text = format!(
                "a second label; for two records write `#[{}(…)]` twice",
                self.kind.name()
            );
            return Err(syn::Error::new(span, text));
        }
        self.label = Some(label);
        Ok(())
    }

    fn name(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        input.parse::<Token![=]>()?;
        if !input.peek(LitStr) {
            return Err(input.error("a name is a string literal: `name = \"…\"`"));
        }
        let literal: LitStr = input.parse()?;
        once(&mut self.label, Label::read(&literal)?, word, self.kind)
    }

    /// `ops`, `ops(stats)`
    fn operations(&mut self, word: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        let mut mode = Mode::Calls;
        if input.peek(syn::token::Paren) {
            let group;
            syn::parenthesized!(group in input);
            let stats = group.call(Ident::parse_any)?;
            if stats != "stats" || !group.is_empty() {
                return Err(syn::Error::new(
                    stats.span(),
                    "allowed are `ops` and `ops(stats)`",
                ));
            }
            mode = Mode::Statistics;
        }
        once(&mut self.ops, mode, word, self.kind)
    }

    fn unknown(&self, word: &Ident) -> syn::Error {
        let text = format!(
            "`{}` has no option `{word}`; it takes {}",
            self.kind.name(),
            self.kind.allowed()
        );
        syn::Error::new(word.span(), text)
    }
}

/// Stores what must not be there yet.
fn once<T>(place: &mut Option<T>, value: T, word: &Ident, kind: Kind) -> syn::Result<()> {
    if place.is_some() {
        return Err(twice(word, kind));
    }
    *place = Some(value);
    Ok(())
}

fn flag(place: &mut bool, word: &Ident, kind: Kind) -> syn::Result<()> {
    if std::mem::replace(place, true) {
        return Err(twice(word, kind));
    }
    Ok(())
}

fn twice(word: &Ident, kind: Kind) -> syn::Error {
    let text = format!(
        "`{word}` is given twice; `{}` takes, once each, {}",
        kind.name(),
        kind.allowed()
    );
    syn::Error::new(word.span(), text)
}

/// `= "…"`
fn text(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    if !input.peek(LitStr) {
        return Err(input.error("expected a string literal: `\"…\"`"));
    }
    input.parse()
}

/// `= EXPR`
fn expression(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    input.parse::<Token![=]>()?;
    let start = input.fork();
    input.parse::<Expr>()?;
    // The tokens as they came: printing the parsed tree again would lose invisible groups.
    let mut tokens = Vec::new();
    let mut cursor = start.cursor();
    while cursor != input.cursor() {
        let Some((tree, next)) = cursor.token_tree() else {
            break;
        };
        tokens.push(tree);
        cursor = next;
    }
    Ok(crate::tokens::regroup(tokens))
}

/// `key = EXPR, …`
fn tags(input: ParseStream<'_>) -> syn::Result<Vec<(String, TokenStream)>> {
    let mut tags: Vec<(String, TokenStream)> = Vec::new();
    while !input.is_empty() {
        let (key, span) = if input.peek(LitStr) {
            let literal: LitStr = input.parse()?;
            (literal.value(), literal.span())
        } else if input.peek(Ident::peek_any) {
            let word = input.call(Ident::parse_any)?;
            (word.unraw().to_string(), word.span())
        } else {
            return Err(input.error("tags are written `tags(key = EXPR, …)`"));
        };
        if tags.iter().any(|(known, _)| *known == key) {
            return Err(syn::Error::new(
                span,
                format!("the tag `{key}` is given twice"),
            ));
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(
                span,
                "tags are written `tags(key = EXPR, …)`",
            ));
        }
        tags.push((key, expression(input)?));
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(tags)
}
