//! The new item.

use crate::args::Kind;
use crate::boxed;
use crate::function::{self, Body, Function, Item, Param, Pattern, is_never, without_impl};
use crate::items::item_len;
use crate::site::{Context, Flavour, Record};
use crate::statements::Statements;
use crate::tokens::{Ours, braces, delimited, is_punct, regroup};
use crate::valid::{self, Set, holds_impl};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// Expands one attribute, together with those of ours that stand below it.
pub(crate) fn attribute(
    kind: Kind,
    args: TokenStream,
    item: TokenStream,
    off: bool,
) -> TokenStream {
    let first = Ours {
        kind,
        span: Span::call_site(),
        args,
        malformed: None,
    };
    match function::read(item.clone()) {
        Item::Other(item, span, word) => refuse(&valid::not_a_function(kind, span, &word), item),
        Item::Function(function, stacked) => match expand(&first, &stacked, &function, off) {
            Ok(Some(expansion)) => expansion,
            Ok(None) => strip(&function, stacked.is_empty(), item),
            Err(error) => refuse(&error, strip(&function, stacked.is_empty(), item)),
        },
    }
}

/// One error, and the item for the rest of the program (and for editors).
fn refuse(error: &syn::Error, item: TokenStream) -> TokenStream {
    let mut tokens = error.to_compile_error();
    tokens.extend(item);
    tokens
}

/// The item without our attributes, otherwise token for token.
fn strip(function: &Function, alone: bool, item: TokenStream) -> TokenStream {
    let params = function
        .params
        .iter()
        .any(|param| !param.ours.is_empty())
        .then(|| params(function, &Rebind::Nothing));
    let body = match &function.body {
        Body::Block(group) => Statements::stripping()
            .body(group.stream())
            .changed
            .map(|body| (group, body)),
        Body::Missing(_) => None,
    };
    if alone && params.is_none() && body.is_none() {
        return item;
    }
    let mut header = function.header.clone();
    if let Some(params) = params {
        replace(&mut header, function.params_at, params);
    }
    let mut tokens = regroup(header);
    match (&function.body, body) {
        (_, Some((group, body))) => braces(body, group.span()).to_tokens(&mut tokens),
        (Body::Block(group), None) => group.to_tokens(&mut tokens),
        (Body::Missing(span), None) => {
            let mut end = proc_macro2::Punct::new(';', proc_macro2::Spacing::Alone);
            end.set_span(*span);
            end.to_tokens(&mut tokens);
        }
    }
    tokens
}

/// The item expanded; nothing with `off`.
fn expand(
    first: &Ours,
    stacked: &[Ours],
    function: &Function,
    off: bool,
) -> syn::Result<Option<TokenStream>> {
    let mut set = Set::default();
    for ours in std::iter::once(first).chain(stacked) {
        set.read(ours)?;
    }
    valid::function(function, &set)?;
    let mut param_records = Vec::new();
    for param in &function.params {
        param_records.push(valid::parameter(&param.ours)?);
    }
    let Body::Block(block) = &function.body else {
        return Ok(None);
    };
    let runtime = set.runtime().or_else(|| {
        param_records
            .iter()
            .flatten()
            .find_map(|record| record.runtime.as_ref())
    });
    if runtime.is_none() && crate::manifest::lacks_crate() {
        let text = "this crate has no dependency called `candle-profiler`: say where it is with `crate = path` (such as \
                    `crate = ::facade::candle_profiler`)";
        return Err(syn::Error::new(first.span, text));
    }
    let context = Context::new(runtime, &function.name, function.has_self_type);
    let mut statements = Statements::expanding(&context);
    let body = statements.body(block.stream());
    if let Some(error) = statements.into_error() {
        return Err(error);
    }
    if off {
        return Ok(None);
    }
    let records = set
        .records
        .iter()
        .enumerate()
        .map(|(n, record)| context.record(record, &context.place(), n))
        .collect();
    let span = block.span();
    let mut plan = Plan {
        set: &set,
        function,
        context: &context,
        records,
        entry: TokenStream::new(),
        span,
    };
    let opaque = plan.param_records(&param_records);
    let plain = PlainBody {
        stream: body.changed.unwrap_or_else(|| block.stream()),
        item_first: body.item_first,
        inner_attributes: body.inner_attributes,
    };
    Ok(Some(plan.item(plain, opaque)))
}

/// The user's body, with the attributes inside it expanded.
struct PlainBody {
    stream: TokenStream,
    /// Whether an item opens it.
    item_first: bool,
    /// Whether `#![…]` opens it.
    inner_attributes: bool,
}

impl PlainBody {
    /// Splits off what must stay first: inner attributes, and leading items where `items` says so.
    fn split(self, items: bool) -> (TokenStream, TokenStream) {
        if !self.inner_attributes && !(items && self.item_first) {
            return (TokenStream::new(), self.stream);
        }
        let mut head: Vec<TokenTree> = self.stream.into_iter().collect();
        let mut at = 0;
        while is_punct(head.get(at), '#') && is_punct(head.get(at + 1), '!') {
            at += 3;
        }
        if items {
            while let Some(len) = head.get(at..).and_then(item_len) {
                at += len;
            }
        }
        let rest = head.split_off(at.min(head.len()));
        (regroup(head), regroup(rest))
    }
}

/// What becomes of the parameters.
#[derive(PartialEq, Eq)]
enum Rebind {
    /// They stay; our attributes go.
    Nothing,
    /// Patterns move into the body, where names are bound again.
    All,
}

/// Everything that an expansion is made of.
struct Plan<'a> {
    set: &'a Set,
    function: &'a Function,
    context: &'a Context,
    records: Vec<Record>,
    /// What runs when the span has just opened: records of parameters.
    entry: TokenStream,
    /// The place of the user's braces.
    span: Span,
}

impl Plan<'_> {
    /// Writes the records of parameters; whether one of them is a pattern, whose argument needs a name.
    fn param_records(&mut self, records: &[Vec<crate::args::Attribute>]) -> bool {
        let mut opaque = false;
        let site = Span::mixed_site();
        let private = &self.context.private;
        let mut number = self.records.len();
        for (at, (param, records)) in self.function.params.iter().zip(records).enumerate() {
            let (value, name) = match &param.pattern {
                Pattern::Name(name) | Pattern::Receiver(name) => (name.clone(), name.to_string()),
                Pattern::Other | Pattern::Variadic => (
                    argument(at),
                    param
                        .pattern_trees
                        .iter()
                        .cloned()
                        .collect::<TokenStream>()
                        .to_string(),
                ),
            };
            for attribute in records {
                opaque |= matches!(param.pattern, Pattern::Other);
                let place = self.context.statement(attribute.span, Some(&name));
                let record = self.context.record(attribute, &place, number);
                number += 1;
                let early = record.early.as_ref().map(|(_, early)| early);
                let at = quote_spanned!(site=> &#private::Ended::here());
                let call = record.call(self.context, &at, Some(&quote!(#value)));
                self.entry.extend(
                    quote_spanned!(site=> #early #[allow(clippy::used_underscore_binding)] #call),
                );
            }
        }
        opaque
    }

    fn item(&self, body: PlainBody, opaque: bool) -> TokenStream {
        let function = self.function;
        if function.is_async {
            return self.finished(self.future(body), &Rebind::All);
        }
        if let Some(stream) = boxed::instrumented(function, &body.stream, |block| self.boxed(block))
        {
            let (head, rest) = PlainBody { stream, ..body }.split(false);
            return self.finished(quote!(#head #rest), &Rebind::Nothing);
        }
        let returns = function.output.as_ref().filter(|output| !is_never(output));
        let by_value = match returns {
            None => false,
            Some(_) if !self.records.is_empty() => true,
            // A body whose type is opaque must stay where that type drives its inference, a tracked caller where it is.
            Some(output) => {
                self.set.measured.is_some() && !function.track_caller && !holds_impl(output)
            }
        };
        if by_value {
            return self.finished(self.value(body), &Rebind::All);
        }
        let opaque_output = returns.is_some_and(|output| holds_impl(output));
        let probes = if opaque_output {
            Vec::new()
        } else {
            self.probes()
        };
        if opaque || !probes.is_empty() {
            return self.finished(self.rebound(body, &probes), &Rebind::All);
        }
        self.finished(self.guarded(body), &Rebind::Nothing)
    }

    fn finished(&self, body: TokenStream, rebind: &Rebind) -> TokenStream {
        let mut header = self.function.header.clone();
        if *rebind == Rebind::All
            || self
                .function
                .params
                .iter()
                .any(|param| !param.ours.is_empty())
        {
            replace(
                &mut header,
                self.function.params_at,
                params(self.function, rebind),
            );
        }
        let mut tokens = regroup(header);
        braces(body, self.span).to_tokens(&mut tokens);
        tokens
    }

    /// Arguments that may tell the device of a measured call.
    fn probes(&self) -> Vec<Ident> {
        if self
            .set
            .measured
            .as_ref()
            .is_none_or(|measured| measured.measure.device.is_some())
        {
            return Vec::new();
        }
        let names = self
            .function
            .params
            .iter()
            .filter_map(|param| match &param.pattern {
                // One with attributes may be configured away.
                Pattern::Name(name) if param.attributes.is_empty() => Some(name.clone()),
                _ => None,
            });
        names.collect()
    }

    fn open(&self, flavour: Flavour, probes: &[Ident]) -> TokenStream {
        self.context
            .open(self.set, &self.context.place(), flavour, probes)
    }

    /// A guard as the first statement of the same body.
    fn guarded(&self, body: PlainBody) -> TokenStream {
        let (head, rest) = body.split(true);
        let open = self.guard(&[]);
        let entry = &self.entry;
        quote!(#head #open #entry #rest)
    }

    fn guard(&self, probes: &[Ident]) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        let open = self.open(Flavour::Call, probes);
        let allow = (!probes.is_empty())
            .then(|| quote_spanned!(site=> #[allow(clippy::used_underscore_binding)]));
        quote_spanned!(site=> #allow let guard = #open;)
    }

    /// The same, with arguments that are looked at bound again: looking at one would otherwise count as its use.
    fn rebound(&self, body: PlainBody, probes: &[Ident]) -> TokenStream {
        let (head, rest) = body.split(false);
        let open = self.guard(probes);
        let entry = &self.entry;
        let rebound = rebindings(self.function, false);
        let body = self.scope(rest);
        quote!(#head #open #entry #rebound #body)
    }

    /// The user's body as a scope of its own, whose last temporaries go before the arguments as in a function.
    fn scope(&self, body: TokenStream) -> TokenStream {
        let body = braces(body, self.span);
        quote_spanned!(Span::mixed_site()=> match () { () => #body })
    }

    /// The body in a closure, so that its value can be seen.
    fn value(&self, body: PlainBody) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let (head, rest) = body.split(false);
        let probes = self.probes();
        let allow = (!probes.is_empty())
            .then(|| quote_spanned!(site=> #[allow(clippy::used_underscore_binding)]));
        let open = self.set.opens_span().then(|| {
            let open = self.open(Flavour::Call, &probes);
            quote_spanned!(site=> #allow let span = #open;)
        });
        let texts = self
            .records
            .iter()
            .filter_map(|record| record.early.as_ref().map(|(_, early)| early));
        let entry = &self.entry;
        let (output, _) = without_impl(self.function.output.as_deref().unwrap_or_default());
        let output = regroup(output);
        let rebound = rebindings(self.function, true);
        let body = self.scope(rest);
        let ended = if self.set.measured.is_some() {
            quote_spanned!(site=> #private::Measured::end(span))
        } else if self.set.opens_span() {
            quote_spanned!(site=> #private::Span::end(span))
        } else {
            quote_spanned!(site=> #private::Ended::here())
        };
        let evidence = self.evidence();
        quote_spanned! {site=>
            #head
            #open
            #(#texts)*
            #entry
            let value = #private::invoke(move || -> #output { #rebound #body });
            let ended = #ended;
            #evidence
            value
        }
    }

    /// What is told of `value` once its span has `ended`.
    fn evidence(&self) -> TokenStream {
        let site = Span::mixed_site();
        let at = quote_spanned!(site=> &ended);
        let records = self
            .records
            .iter()
            .map(|record| record.call(self.context, &at, None));
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| finish(self.context, &quote_spanned!(site=> value)));
        quote_spanned!(site=> #(#records)* #finish)
    }

    /// The body as a future of its own, polled inside the span.
    fn future(&self, body: PlainBody) -> TokenStream {
        let site = Span::mixed_site();
        let (head, rest) = body.split(false);
        let probes = self.probes();
        let hint = self.hint();
        let rebound = rebindings(self.function, true);
        let block = rest.clone();
        let body = self.scope(rest);
        let entry = &self.entry;
        let place = self.value_place(&block);
        let awaited = self.awaited(
            &probes,
            &quote_spanned!(site=> async move { #entry #rebound #hint #body }),
            place,
        );
        quote!(#head #awaited)
    }

    /// The expression in a boxed future that runs `block` (an `async move` block) inside the span.
    fn boxed(&self, block: &TokenStream) -> TokenStream {
        let site = Span::mixed_site();
        let entry = &self.entry;
        let block = match entry.is_empty() {
            true => block.clone(),
            false => quote_spanned!(site=> async move { #entry #block.await }),
        };
        self.awaited(&[], &block, None)
    }

    /// Statements that run `future` inside the span, and their value.
    fn awaited(&self, probes: &[Ident], future: &TokenStream, place: Option<Span>) -> TokenStream {
        let value = Ident::new("value", place.unwrap_or_else(Span::mixed_site));
        let site = Span::mixed_site();
        let private = &self.context.private;
        let texts: Vec<_> = self
            .records
            .iter()
            .filter_map(|record| record.early.as_ref())
            .collect();
        // Labels are built from the arguments as passed, but only once the span is there.
        let future = if texts.is_empty() {
            future.clone()
        } else {
            let variables = texts.iter().map(|(variable, _)| variable);
            let early = texts.iter().map(|(_, early)| early);
            quote_spanned!(site=> async move { #(#early)* (#future.await, #(#variables,)*) })
        };
        let allow = (!probes.is_empty())
            .then(|| quote_spanned!(site=> #[allow(clippy::used_underscore_binding)]));
        if !self.set.opens_span() {
            let variables = texts.iter().map(|(variable, _)| variable);
            let pattern = if texts.is_empty() {
                quote_spanned!(site=> value)
            } else {
                quote_spanned!(site=> (value, #(#variables,)*))
            };
            let evidence = self.evidence();
            return quote_spanned! {site=>
                let #pattern = #future.await;
                let ended = #private::Ended::here();
                #evidence
                #value
            };
        }
        let open = self.open(Flavour::Future, probes);
        let never = self.function.output.as_deref().is_some_and(is_never);
        if self.records.is_empty() && (self.set.measured.is_none() || never) {
            let run = quote_spanned!(site=> #private::instrument(#open, #future).await);
            return match place {
                Some(_) => quote_spanned!(site=> let (value, _) = #run; #value),
                None => quote_spanned!(site=> #run.0),
            };
        }
        let variables = texts.iter().map(|(variable, _)| variable);
        let pattern = if texts.is_empty() {
            quote_spanned!(site=> value)
        } else {
            quote_spanned!(site=> (value, #(#variables,)*))
        };
        let evidence = self.evidence();
        quote_spanned! {site=>
            #allow
            let (#pattern, ended) = #private::instrument(#open, #future).await;
            #evidence
            #value
        }
    }

    /// Where errors about lifetimes of the value belong: to the last expression of the body.
    fn value_place(&self, body: &TokenStream) -> Option<Span> {
        let is_borrow = |tree: &TokenTree| is_punct(Some(tree), '&') || is_punct(Some(tree), '\'');
        if !self.function.output.iter().flatten().any(is_borrow) {
            return None;
        }
        let trees: Vec<TokenTree> = body.clone().into_iter().collect();
        let last = trees
            .iter()
            .rposition(|tree| is_punct(Some(tree), ';'))
            .map_or(0, |at| at + 1);
        let tail = trees.get(last).or(trees.last())?;
        Some(Span::mixed_site().located_at(tail.span()))
    }

    /// A return that is never taken: it gives the body its declared type. One that holds `!` cannot be written.
    fn hint(&self) -> Option<TokenStream> {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let unit = [TokenTree::Group(Group::new(
            Delimiter::Parenthesis,
            TokenStream::new(),
        ))];
        let output = self.function.output.as_deref().unwrap_or(&unit);
        if holds_never(output) {
            return None;
        }
        let (output, _) = without_impl(output);
        let output = regroup(output);
        Some(quote_spanned! {site=>
            if false {
                return #private::hint::<#output>();
            }
        })
    }
}

/// Closes the capture that a measured call opened; asked only then whether `value` says that it failed.
pub(crate) fn finish(context: &Context, value: &TokenStream) -> TokenStream {
    let site = Span::mixed_site();
    let private = &context.private;
    quote_spanned! {site=>
        #private::Ended::finish(ended, || {
            use #private::outcome::{Debugged as _, Displayed as _, Other as _, Typed as _};
            (&&&&#private::Outcome(&#value)).__candle_profiler_failure()
        });
    }
}

/// Whether a `!` stands in the type, but for that of a function pointer.
fn holds_never(output: &[TokenTree]) -> bool {
    output.iter().enumerate().any(|(at, tree)| match tree {
        TokenTree::Punct(punct) if punct.as_char() == '!' => {
            let macro_call = matches!(output.get(at + 1), Some(TokenTree::Group(_)));
            let pointer = at > 0 && is_punct(output.get(at - 1), '>');
            !macro_call && !pointer
        }
        TokenTree::Group(group) => holds_never(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}

/// The name of an argument that is a pattern.
fn argument(at: usize) -> Ident {
    Ident::new(&format!("argument{at}"), Span::mixed_site())
}

/// The parentheses of the parameters, without our attributes.
fn params(function: &Function, rebind: &Rebind) -> TokenTree {
    let span = function
        .header
        .get(function.params_at)
        .map_or_else(Span::call_site, TokenTree::span);
    let mut trees = Vec::new();
    for (at, param) in function.params.iter().enumerate() {
        trees.extend(match rebind {
            Rebind::Nothing => param.attributes.clone(),
            Rebind::All => param.configuration(),
        });
        match (&param.pattern, rebind) {
            (Pattern::Name(name), Rebind::All) => trees.push(name.clone().into()),
            (Pattern::Other, Rebind::All) => trees.push(argument(at).into()),
            _ => trees.extend(param.pattern_trees.iter().cloned()),
        }
        trees.extend(param.ty.iter().cloned());
        if at + 1 < function.params.len() {
            trees.push(proc_macro2::Punct::new(',', proc_macro2::Spacing::Alone).into());
        }
    }
    TokenTree::Group(delimited(Delimiter::Parenthesis, regroup(trees), span))
}

/// Binds every parameter again, in order: a body that runs in a closure or future then drops them as a function does.
fn rebindings(function: &Function, captured: bool) -> TokenStream {
    let site = Span::mixed_site();
    let mut tokens = TokenStream::new();
    for (at, param) in function.params.iter().enumerate() {
        let attributes = &param.attributes;
        match &param.pattern {
            // `self` cannot be bound; named, it moves as a whole.
            Pattern::Receiver(receiver) if captured => {
                tokens.extend(quote_spanned!(site=> let _ = &#receiver;))
            }
            Pattern::Receiver(_) | Pattern::Variadic => {}
            Pattern::Name(name) => {
                let mutable = param.is_mut().then(|| param.mutable());
                tokens.extend(quote_spanned! {site=>
                    #[allow(
                        clippy::no_effect_underscore_binding,
                        clippy::redundant_locals,
                        clippy::shadow_reuse,
                        clippy::shadow_same,
                        clippy::shadow_unrelated,
                        clippy::used_underscore_binding
                    )]
                    #(#attributes)*
                    let #mutable #name = #name;
                });
            }
            Pattern::Other => {
                let argument = argument(at);
                let configuration = param.configuration();
                tokens.extend(quote_spanned!(site=> #(#configuration)* let #argument = #argument;));
                if !matches!(param.pattern_trees.as_slice(), [TokenTree::Ident(word)] if word == "_")
                {
                    let pattern = &param.pattern_trees;
                    let pattern = regroup(pattern.clone());
                    tokens.extend(quote_spanned!(site=> #(#attributes)* let #pattern = #argument;));
                }
            }
        }
    }
    tokens
}

impl Param {
    /// The attributes that say whether it is there. Where its pattern moves into the body the others, lints, move along.
    fn configuration(&self) -> Vec<TokenTree> {
        configuration(&self.attributes)
    }

    /// The user's `mut`.
    fn mutable(&self) -> TokenTree {
        let first = match self.pattern_trees.as_slice() {
            [TokenTree::Group(group)] => group.stream().into_iter().next(),
            other => other.first().cloned(),
        };
        first.unwrap_or_else(|| Ident::new("mut", Span::mixed_site()).into())
    }
}

/// `#[cfg(…)]` and `#[cfg_attr(…)]` among attributes.
pub(crate) fn configuration(attributes: &[TokenTree]) -> Vec<TokenTree> {
    let is_cfg = |pair: &&[TokenTree]| {
        crate::tokens::group_of(pair.get(1), Delimiter::Bracket).is_some_and(|group| {
            let first = group.stream().into_iter().next();
            crate::tokens::is_word(first.as_ref(), "cfg")
                || crate::tokens::is_word(first.as_ref(), "cfg_attr")
        })
    };
    attributes
        .chunks(2)
        .filter(is_cfg)
        .flatten()
        .cloned()
        .collect()
}

fn replace(trees: &mut [TokenTree], at: usize, tree: TokenTree) {
    if let Some(place) = trees.get_mut(at) {
        *place = tree;
    }
}
