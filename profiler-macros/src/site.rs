//! The constants that expansions hand to the run time, and the expressions that open spans with them.

use crate::args::{Attribute, Kind};
use crate::label::{Label, Template};
use crate::valid::Set;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};

/// What every expansion of one function shares.
pub(crate) struct Context {
    /// `::candle_profiler::private`
    pub(crate) private: TokenStream,
    /// The function's arguments among which a loss may be, as a list of what they show.
    pub(crate) arguments: TokenStream,
    /// Whether `private` is another path, by `crate = path`.
    renamed: bool,
    /// The function's own name.
    name: String,
    /// Whether it is a method, which is called by its type.
    method: bool,
}

/// Where a call site stands and what it is called when it says nothing.
pub(crate) enum Place {
    /// The function itself.
    Function,
    /// An attribute on a statement or parameter: its line, and what the statement binds.
    Statement(u32, Option<String>),
}

impl Context {
    /// `runtime` is the `crate = path` option.
    pub(crate) fn new(
        runtime: Option<&TokenStream>,
        function: &Ident,
        has_self_type: bool,
    ) -> Self {
        let site = Span::mixed_site();
        let private = match runtime {
            Some(path) => quote_spanned!(site=> #path::private),
            None => quote_spanned!(site=> ::candle_profiler::private),
        };
        let name = function.to_string();
        Self {
            arguments: TokenStream::new(),
            private,
            renamed: runtime.is_some(),
            name: name.strip_prefix("r#").unwrap_or(&name).to_owned(),
            method: has_self_type,
        }
    }

    /// The function itself.
    pub(crate) fn place(&self) -> Place {
        Place::Function
    }

    /// An attribute on a statement; `name` is what the statement binds.
    pub(crate) fn statement(&self, attribute: Span, name: Option<&str>) -> Place {
        Place::Statement(line_of(attribute), name.map(str::to_owned))
    }

    /// The function's own name as a `Name`.
    pub(crate) fn default_name(&self) -> TokenStream {
        let private = &self.private;
        let site = Span::mixed_site();
        let name = string(&self.name);
        if self.method {
            quote_spanned!(site=> #private::Name::Method(::core::any::type_name::<Self>, #name))
        } else {
            quote_spanned!(site=> #private::Name::Function(::core::module_path!(), #name))
        }
    }

    pub(crate) fn line(place: &Place) -> TokenStream {
        match place {
            Place::Function => quote_spanned!(Span::mixed_site()=> ::core::line!()),
            Place::Statement(line, _) => Literal::u32_suffixed(*line).to_token_stream(),
        }
    }

    pub(crate) fn text(&self, text: &str) -> TokenStream {
        let private = &self.private;
        let text = string(text);
        quote_spanned!(Span::mixed_site()=> #private::Name::Text(#text))
    }

    fn name(&self, label: Option<&Label>, place: &Place) -> TokenStream {
        match (label, place) {
            (Some(Label::Static(text)), _) | (_, Place::Statement(_, Some(text))) => {
                self.text(text)
            }
            _ => self.default_name(),
        }
    }

    fn call_site(&self, set: &Set, place: &Place) -> TokenStream {
        let written = self.written(set, place).and_then(|text| parsed(&text));
        written.unwrap_or_else(|| {
            let private = &self.private;
            let name = self.name(set.label(), place);
            let line = Self::line(place);
            let opens = Literal::u32_unsuffixed(opens(set));
            quote_spanned!(Span::mixed_site()=> #private::CallSite(#name, ::core::file!(), #line, #opens))
        })
    }

    /// A function's call site as text, which costs the compiler a tenth of what the same tokens cost it one by one. They
    /// are all absolute paths and literals, for which the place where they resolve makes no difference.
    fn written(&self, set: &Set, place: &Place) -> Option<String> {
        const PRIVATE: &str = "::candle_profiler::private";
        if self.renamed || !matches!(place, Place::Function) {
            return None;
        }
        let name = match set.label() {
            Some(Label::Static(text)) => format!("Text({})", Literal::string(text)),
            _ if self.method => format!("Method(::core::any::type_name::<Self>, {:?})", self.name),
            _ => format!("Function(::core::module_path!(), {:?})", self.name),
        };
        let opens = opens(set);
        Some(format!(
            "{PRIVATE}::CallSite({PRIVATE}::Name::{name}, ::core::file!(), ::core::line!(), {opens})"
        ))
    }

    /// The expression that opens the span of `set`; `probes` are arguments that may tell the device.
    pub(crate) fn open(
        &self,
        set: &Set,
        place: &Place,
        flavour: Flavour,
        probes: &[Ident],
    ) -> TokenStream {
        let private = &self.private;
        let call_site = self.call_site(set, place);
        let site = Span::mixed_site();
        if let Some(measured) = &set.measured {
            let future = flavour == Flavour::Future;
            if measured.measure.says_nothing()
                && !matches!(set.label(), Some(Label::Dynamic(_)))
                && probes.len() <= MOST_ARGUMENTS
            {
                let open = if future { "async_measure" } else { "measure" };
                let open = Ident::new(open, site);
                return quote_spanned!(site=> #private::#open(&#call_site, (#(&#probes,)*)));
            }
            let open = if future {
                "async_measure_as"
            } else {
                "measure_as"
            };
            let open = Ident::new(open, site);
            let key = self.key(set, measured);
            let details = self.details(measured, probes);
            return quote_spanned!(site=> #private::#open(&#call_site, #key, #details));
        }
        let (open, text) = match set.label() {
            Some(Label::Dynamic(template)) => {
                let text = template.closure(private);
                (
                    if template.numbered {
                        "enter_numbered"
                    } else {
                        "enter_named"
                    },
                    Some(quote_spanned!(site=> , #text)),
                )
            }
            _ => ("enter", None),
        };
        let open = match flavour {
            Flavour::Call => Ident::new(open, site),
            Flavour::Future => Ident::new(&format!("async_{open}"), site),
        };
        quote_spanned!(site=> #private::#open(&#call_site #text))
    }

    fn key(&self, set: &Set, measured: &Attribute) -> TokenStream {
        let private = &self.private;
        let site = Span::mixed_site();
        let mut body = TokenStream::new();
        if let Some(Label::Dynamic(template)) = set.label() {
            let text = self.format(template);
            body.extend(quote_spanned!(site=> #private::Key::name(key, #text);));
        }
        if let Some(step) = &measured.measure.step {
            body.extend(quote_spanned!(site=> #private::Key::step(key, #step);));
        }
        if body.is_empty() {
            quote_spanned!(site=> |_| {})
        } else {
            quote_spanned!(site=> |key| { #body })
        }
    }

    fn format(&self, template: &Template) -> TokenStream {
        template.format(&self.private)
    }

    fn details(&self, measured: &Attribute, probes: &[Ident]) -> TokenStream {
        let private = &self.private;
        let site = Span::mixed_site();
        let measure = &measured.measure;
        let mut body = TokenStream::new();
        if let Some(device) = &measure.device {
            body.extend(quote_spanned!(site=> #private::Details::device(details, &(#device));));
        }
        if let Some(items) = &measure.items {
            body.extend(quote_spanned!(site=> #private::Details::items(details, #items);));
        }
        if let Some(plan) = &measure.gradients {
            body.extend(quote_spanned!(site=> #private::Details::gradients(details, #plan);));
        }
        for (key, value) in measure.tags.iter().flatten() {
            let key = string(key);
            body.extend(quote_spanned!(site=> #private::Details::tag(details, #key, &(#value));));
        }
        if measure.device.is_none() {
            for probe in probes {
                body.extend(quote_spanned!(site=> #private::Details::argument(details, &#probe);));
            }
        }
        if body.is_empty() {
            quote_spanned!(site=> |_| {})
        } else {
            quote_spanned!(site=> |details| { #body })
        }
    }

    /// A record, split into what runs at entry and what runs when the value is there.
    ///
    /// `inside`: it stands inside the call whose number `{#}` is; else on the call itself.
    pub(crate) fn record(
        &self,
        attribute: &Attribute,
        place: &Place,
        number: usize,
        inside: bool,
    ) -> Record {
        if attribute.kind == Kind::RecordGradients {
            return self.gradients(attribute, place, number, inside);
        }
        let private = &self.private;
        let site = Span::mixed_site();
        let name = self.name(attribute.label.as_ref(), place);
        let line = Self::line(place);
        let allow = attribute.allow_nonfinite;
        let function = self.default_name();
        let constant = quote_spanned!(site=> &#private::RecordSite(#name, ::core::file!(), #line, #allow, #function));
        let (early, text) = match self.built(attribute, &constant, inside) {
            Some(built) => {
                let variable = Ident::new(&format!("text{number}"), site);
                let early = quote_spanned!(site=> let #variable = #built;);
                (
                    Some((variable.clone(), early)),
                    quote_spanned!(site=> #variable),
                )
            }
            None => (None, quote_spanned!(site=> ::core::option::Option::None)),
        };
        // Errors about the value's type belong to the user's attribute.
        let blamed = site.located_at(attribute.span);
        let function = Ident::new(attribute.kind.name(), blamed);
        Record {
            early,
            call: Box::new(move |at, value, private| {
                let own = Ident::new("value", blamed);
                let value = value.map_or_else(|| quote!(#own), TokenStream::clone);
                quote_spanned!(blamed=> #private::#function(#at, #constant, #text, &#value);)
            }),
        }
    }
}

impl Context {
    /// The expression that builds a label, where it is not the same each time.
    pub(crate) fn built(
        &self,
        attribute: &Attribute,
        constant: &TokenStream,
        inside: bool,
    ) -> Option<TokenStream> {
        let Some(Label::Dynamic(template)) = &attribute.label else {
            return None;
        };
        let private = &self.private;
        let site = Span::mixed_site();
        let closure = template.closure(private);
        let build = Ident::new(
            match (template.numbered, inside) {
                (true, true) => "inner_numbered_text",
                (true, false) => "numbered_text",
                (false, _) => "text",
            },
            site,
        );
        Some(quote_spanned!(site=> #private::#build(#constant, #closure)))
    }
}

/// How a record is made from where it belongs and the place of the value.
pub(crate) type Call = Box<dyn Fn(&TokenStream, Option<&TokenStream>, &TokenStream) -> TokenStream>;

/// A record, see [`Context::record`].
pub(crate) struct Record {
    /// The variable that holds a built label, and its `let`.
    pub(crate) early: Option<(Ident, TokenStream)>,
    pub(crate) call: Call,
}

impl Record {
    /// The statement that records what stands at the place `value`, by default our own variable of that name.
    pub(crate) fn call(
        &self,
        context: &Context,
        at: &TokenStream,
        value: Option<&TokenStream>,
    ) -> TokenStream {
        (self.call)(at, value, &context.private)
    }
}

/// What a span covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Call,
    Future,
}

impl Set {
    /// The span's name, from whichever attribute gives it.
    pub(crate) fn label(&self) -> Option<&Label> {
        self.measured
            .iter()
            .chain(&self.span)
            .find_map(|attribute| attribute.label.as_ref())
    }
}

/// As many arguments are looked at in one go.
const MOST_ARGUMENTS: usize = 6;

/// The last field of a `CallSite`, see `Opens` of the run time.
fn opens(set: &Set) -> u32 {
    let mut bits = 0;
    if let Some(span) = &set.span {
        bits |= match span.span_kind {
            Some("Module") => 1,
            Some("Op") => 2,
            _ => 0,
        };
        bits |= match span.step {
            Some("Forward") => 4,
            Some("Backward") => 8,
            Some("Optimizer") => 12,
            _ => 0,
        };
        bits |= if span.detached { 16 } else { 0 };
    }
    let infer = set
        .measured
        .as_ref()
        .is_some_and(|measured| measured.measure.infer);
    bits |= if infer { 32 } else { 0 };
    bits | if set.calls_backward { 64 } else { 0 }
}

/// The tokens of a text of ours, by the compiler's own reader: `proc_macro2` reads it twice.
fn parsed(text: &str) -> Option<TokenStream> {
    if proc_macro::is_available() {
        let tokens: proc_macro::TokenStream = text.parse().ok()?;
        return Some(tokens.into());
    }
    text.parse().ok()
}

/// The line of a token.
pub(crate) fn line_of(token: Span) -> u32 {
    let line = if proc_macro::is_available() {
        token.unwrap().line()
    } else {
        0
    };
    u32::try_from(line).unwrap_or(0)
}

/// A string literal of our own.
pub(crate) fn string(text: &str) -> Literal {
    let mut literal = Literal::string(text);
    literal.set_span(Span::mixed_site());
    literal
}
