//! Annotated statements as they are written.

use crate::args::Attribute;
use crate::expand::finish;
use crate::forms::{Form, Statement};
use crate::function::Function;
use crate::items::{Angles, item_len};
use crate::ops;
use crate::params::configuration;
use crate::site::{Context, Flavour, Record};
use crate::statements::Attributes;
use crate::target::Target;
use crate::tokens::{Ours, braces, group_of, is_brace, is_punct, is_word, regroup};
use crate::valid::{self, Set};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};

/// What a statement whose operations are to be observed stands in.
#[derive(Clone, Copy)]
pub(crate) struct Sight<'a> {
    pub(crate) function: &'a Function,
    /// It may stand in a closure or future of the function's.
    pub(crate) apart: bool,
}

/// The statement with its attributes carried out; `sight`: none where its operations are observed already.
pub(crate) fn expand(
    context: &Context,
    attributes: &Attributes,
    statement: &Statement,
    trees: &[TokenTree],
    seen: bool,
    sight: Option<Sight<'_>>,
) -> syn::Result<Option<TokenStream>> {
    let mut set = Set::default();
    for ours in &attributes.ours {
        set.read(ours)?;
    }
    if set.measured.is_some() {
        set.calls_backward = crate::hints::calls_backward(&regroup(trees.to_vec()).to_string());
    }
    let Some(first) = attributes.ours.first() else {
        return Ok(None);
    };
    if let (Some(mode), Some(sight)) = (set.ops().filter(|_| !crate::OFF), sight) {
        let known = ops::sight_of(sight.function);
        let tokens = regroup(trees.to_vec());
        let rewritten = ops::rewrite(context, mode, known, sight.apart, tokens);
        let trees: Vec<TokenTree> = rewritten.into_iter().collect();
        if let Some(statement) = Statement::at(&trees) {
            let mut attributes = attributes.clone();
            if statement.form != Form::Tail {
                // A call that never returns makes ours around it unreachable.
                let allow = quote_spanned!(Span::mixed_site()=> #[allow(unreachable_code)]);
                attributes.others.extend(allow);
            }
            return expand(context, &attributes, &statement, &trees, seen, None);
        }
    }
    if let (Form::Loop { .. }, Some(record)) = (statement.form, set.records.first()) {
        return Err(valid::not_a_statement(record.kind, record.span));
    }
    if set.opens_span() && holds_await(trees) {
        let text = format!(
            "`{}` opens a span on this thread, which cannot be held across `.await`: move these lines into an `async fn` \
             and put the attribute there",
            first.kind.name()
        );
        return Err(syn::Error::new(first.span, text));
    }
    let target = Target::of(statement.form, trees, &set)?;
    let writer = Writer {
        context,
        set: &set,
        first,
        target,
        others: &attributes.others,
        turn: seen && set.measured.is_some(),
    };
    Ok(Some(writer.statement(statement.form, trees)))
}

/// Whether the statement itself waits: not in an `async` block, closure or function of its own.
fn holds_await(trees: &[TokenTree]) -> bool {
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        let rest = trees.get(at..).unwrap_or_default();
        match tree {
            TokenTree::Ident(word) if word == "async" => {
                at += apart_len(rest);
                continue;
            }
            TokenTree::Punct(dot) if dot.as_char() == '.' && is_word(rest.get(1), "await") => {
                return true;
            }
            TokenTree::Group(group)
                if holds_await(&group.stream().into_iter().collect::<Vec<_>>()) =>
            {
                return true;
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// How many trees what begins with `async` takes: a block or function ends with its braces, a closure with its body.
fn apart_len(trees: &[TokenTree]) -> usize {
    let position = |from: usize, wanted: &dyn Fn(&TokenTree) -> bool| {
        let at = trees.iter().skip(from).position(wanted);
        at.map_or(trees.len(), |at| from + at)
    };
    let opening = if is_word(trees.get(1), "move") { 2 } else { 1 };
    if is_punct(trees.get(opening), '|') {
        let body = position(opening + 1, &|tree| is_punct(Some(tree), '|')) + 1;
        let braces = is_brace(trees.get(body)) || is_punct(trees.get(body), '-');
        if !braces {
            let mut angles = Angles::default();
            let mut before: Option<&TokenTree> = None;
            let ends = trees.iter().skip(body).position(|tree| {
                // Only a `<` after `::` opens something.
                if angles.open() || is_punct(before, ':') {
                    angles.pass(tree);
                }
                before = Some(tree);
                !angles.open() && (is_punct(before, ',') || is_punct(before, ';'))
            });
            return ends.map_or(trees.len(), |at| body + at);
        }
    }
    let ends = |tree: &TokenTree| is_brace(Some(tree)) || is_punct(Some(tree), ';');
    position(opening, &ends) + 1
}

/// Writes one statement.
struct Writer<'a> {
    context: &'a Context,
    set: &'a Set,
    first: &'a Ours,
    target: Target,
    others: &'a [TokenTree],
    /// A measured one whose failure the function's value tells.
    turn: bool,
}

impl Writer<'_> {
    fn statement(&self, form: Form, trees: &[TokenTree]) -> TokenStream {
        let others = self.others;
        match form {
            Form::Loop { tail } => {
                let inside = if self.set.measured.is_some() {
                    self.turns(trees)
                } else {
                    regroup(trees.to_vec())
                };
                let outside = self.set.measured.is_none();
                let open = outside.then(|| self.open());
                let close = match outside {
                    true => (!tail).then(|| self.close()),
                    false => self.settle(trees, tail),
                };
                quote!(#open #(#others)* #inside #close)
            }
            Form::Let | Form::Assignment(_) => self.in_place(trees),
            Form::Block { tail } if self.set.records.is_empty() => {
                let open = self.open();
                let close = (!tail).then(|| self.close());
                let body = regroup(trees.to_vec());
                quote!(#open #(#others)* #body #close)
            }
            Form::Expression if self.set.records.is_empty() => self.in_place(trees),
            Form::Tail if self.set.records.is_empty() => {
                let open = self.open();
                let body = regroup(trees.to_vec());
                quote!(#open #(#others)* #body)
            }
            Form::Block { .. } | Form::Tail => self.passed_on(trees, false),
            Form::Expression => self.passed_on(trees, true),
        }
    }

    fn place(&self) -> crate::site::Place {
        self.context
            .statement(self.first.span, self.target.name.as_deref())
    }

    fn open(&self) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        let open = self
            .context
            .open(self.set, &self.place(), Flavour::Call, &[]);
        if self.turn {
            let private = &self.context.private;
            return self.gated(
                quote_spanned!(site=> let guard = #private::Turns::turn(#private::Turns::settle(turns), #open);),
            );
        }
        self.gated(quote_spanned!(site=> let guard = #open;))
    }

    /// A statement of ours, there only where the user's is.
    fn gated(&self, statement: TokenStream) -> TokenStream {
        let configuration = configuration(self.others);
        quote!(#(#configuration)* #statement)
    }

    /// Ends the span where nothing is recorded of its value.
    fn close(&self) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        if self.turn {
            let end = self.end();
            return self.gated(quote_spanned!(site=> ::core::mem::drop(#end);));
        }
        self.gated(quote_spanned!(site=> ::core::mem::drop(guard);))
    }

    /// After a measured loop its last turn has not failed. The value of a `loop` at a block's end is left alone.
    fn settle(&self, trees: &[TokenTree], tail: bool) -> Option<TokenStream> {
        let value = trees.iter().any(|tree| is_word(Some(tree), "loop"));
        let private = &self.context.private;
        (self.turn && !(tail && value)).then(|| {
            self.gated(quote_spanned!(Span::mixed_site()=> let _ = #private::Turns::settle(turns);))
        })
    }

    /// Ends the span; what follows belongs to it.
    fn end(&self) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        if self.turn {
            quote_spanned!(site=> #private::Turn::end(guard))
        } else if self.set.measured.is_some() {
            quote_spanned!(site=> #private::Measured::end(guard))
        } else if self.set.span.is_some() {
            quote_spanned!(site=> #private::Span::end(guard))
        } else {
            quote_spanned!(site=> #private::Ended::here())
        }
    }

    fn records(&self) -> Vec<Record> {
        let record = |(number, attribute): (usize, &Attribute)| {
            let place = self
                .context
                .statement(attribute.span, self.target.name.as_deref());
            self.context.record(attribute, &place, number, true)
        };
        self.set.records.iter().enumerate().map(record).collect()
    }

    /// An assignment whose value is recorded on its way to the place, which is evaluated after it as ever.
    fn assigned(&self, trees: &[TokenTree], value_at: usize) -> TokenStream {
        let others = self.others;
        let end = trees.len().saturating_sub(1);
        let place = regroup(trees.get(..value_at).unwrap_or_default().to_vec());
        let value = regroup(trees.get(value_at..end).unwrap_or_default().to_vec());
        let semicolon = trees.last();
        let records = self.records();
        let open = self.open();
        let early = self.early(&records);
        let tapped = self.tapped(&value, &records, |_| self.succeed());
        quote!(#open #early #(#others)* #place #tapped #semicolon)
    }

    /// The statement as it is, between the ends of its span; what it binds or sets is recorded after it.
    fn in_place(&self, trees: &[TokenTree]) -> TokenStream {
        let site = Span::mixed_site();
        let others = self.others;
        if let (Some(value_at), false) = (self.target.value_at, self.set.records.is_empty()) {
            return self.assigned(trees, value_at);
        }
        let body = regroup(trees.to_vec());
        let records = self.records();
        let open = self.open();
        let sees_failure = self.set.measured.is_some() && self.target.bound.is_some();
        let Some(value) = self
            .target
            .place
            .as_ref()
            .filter(|_| !records.is_empty() || sees_failure)
        else {
            let close = self.close();
            return quote!(#open #(#others)* #body #close);
        };
        let early = self.early(&records);
        let end = self.end();
        let at = quote_spanned!(site=> &ended);
        let calls = records.iter().map(|record| {
            let call = record.call(self.context, &at, Some(value));
            self.gated(quote_spanned!(site=> #[allow(clippy::used_underscore_binding)] #call))
        });
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| match &self.target.bound {
                Some(_) => self.gated(finish(self.context, value)),
                None => self.gated(self.succeed()),
            });
        let ended = self.gated(quote_spanned!(site=> let ended = #end;));
        quote_spanned! {site=>
            #open
            #early
            #(#others)* #body
            #ended
            #(#calls)*
            #finish
        }
    }

    /// Labels are built before the statement, from what it is given.
    fn early(&self, records: &[Record]) -> TokenStream {
        records
            .iter()
            .filter_map(|record| record.early.as_ref())
            .map(|(_, early)| self.gated(early.clone()))
            .collect()
    }

    fn succeed(&self) -> TokenStream {
        let private = &self.context.private;
        quote_spanned!(Span::mixed_site()=> #private::Ended::finish(ended, || ::core::option::Option::None);)
    }

    /// An expression whose value is recorded on its way.
    fn passed_on(&self, trees: &[TokenTree], semicolon: bool) -> TokenStream {
        let site = Span::mixed_site();
        let others = self.others;
        let len = if semicolon {
            trees.len().saturating_sub(1)
        } else {
            trees.len()
        };
        let value = regroup(trees.iter().take(len).cloned().collect());
        let records = self.records();
        let open = self.open();
        let early = self.early(&records);
        let tapped = self.tapped(&value, &records, |value| finish(self.context, value));
        if semicolon {
            quote_spanned!(site=> #open #early #(#others)* ::core::mem::drop(#tapped);)
        } else {
            quote_spanned!(site=> #open #early #(#others)* #tapped)
        }
    }

    /// A value that is recorded on its way; `finish` writes how a measured one ends.
    fn tapped(
        &self,
        value: &TokenStream,
        records: &[Record],
        finish: impl FnOnce(&TokenStream) -> TokenStream,
    ) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let end = self.end();
        let at = quote_spanned!(site=> &ended);
        let calls = records
            .iter()
            .map(|record| record.call(self.context, &at, None));
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| finish(&quote_spanned!(site=> *value)));
        quote_spanned! {site=>
            #private::tap(#value, |value| {
                let ended = #end;
                #(#calls)*
                #finish
            })
        }
    }

    /// A loop each of whose turns is one call.
    fn turns(&self, trees: &[TokenTree]) -> TokenStream {
        let mut trees = trees.to_vec();
        let Some(body) = trees.pop() else {
            return TokenStream::new();
        };
        let Some(group) = group_of(Some(&body), Delimiter::Brace) else {
            trees.push(body);
            return regroup(trees);
        };
        let open = self.open();
        let stream = group.stream();
        let inside: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut at = 0;
        while is_punct(inside.get(at), '#') && is_punct(inside.get(at + 1), '!') {
            at += 3;
        }
        // Items come first, or clippy blames the user for a statement that is ours.
        while let Some(len) = inside.get(at..).and_then(item_len) {
            at += len;
        }
        let turn = if at == 0 {
            quote!(#open #stream)
        } else {
            let mut head = inside;
            let rest = head.split_off(at.min(head.len()));
            let (head, rest) = (regroup(head), regroup(rest));
            quote!(#head #open #rest)
        };
        let mut tokens = regroup(trees);
        braces(turn, group.span()).to_tokens(&mut tokens);
        tokens
    }
}
