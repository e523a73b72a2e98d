//! Futures: the body of an `async fn`, and of a function that returns a boxed one.

use crate::boxed::Boxed;
use crate::expand::{PlainBody, Plan};
use crate::params::{Rebind, outside, rebindings, recorded_patterns};
use crate::site::Flavour;
use crate::tokens::{is_punct, regroup};
use crate::types::{is_never, without_impl};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

impl Plan<'_> {
    /// The body as a future of its own, polled inside the span.
    pub(crate) fn future(&self, body: PlainBody) -> TokenStream {
        let site = Span::mixed_site();
        let (head, rest) = body.split(false);
        let probes = self.probes();
        let hint = self.hint();
        let rebound = rebindings(self.function, &self.words, true, self.taken.lent.as_ref());
        let block = rest.clone();
        let given = outside(self.before(false), self.function, &self.words);
        let run = self.typed(self.around(rest));
        let entry = &self.entry;
        let place = self.value_place(&block);
        let awaited = self.awaited(
            &probes,
            &quote_spanned!(site=> async move { #entry #given #rebound #hint #run }),
            place,
            Rebind::All(&self.words),
            None,
        );
        quote!(#head #awaited)
    }

    /// The body of a function that returns a boxed future, whose block runs inside the span.
    pub(crate) fn boxed(&self, body: PlainBody, boxed: Boxed) -> TokenStream {
        let site = Span::mixed_site();
        let entry = &self.entry;
        let patterns = recorded_patterns(self.function);
        let opened = match self.context.told {
            true => self.context.open_told(self.set, &self.context.place()),
            false => None,
        };
        let (mut told, open) = opened.unzip();
        for record in self.records.iter().filter(|record| record.at_call) {
            let early = record.early.as_ref().map(|(_, early)| early);
            told.get_or_insert_default().extend(quote!(#early));
        }
        let stream = boxed.wrapped(|block| {
            let block = match entry.is_empty() {
                true => block.clone(),
                false => quote_spanned!(site=> async move { #entry #patterns #block.await }),
            };
            self.awaited(&[], &block, None, Rebind::Nothing, open)
        });
        let (head, rest) = body.rewritten(stream).split(told.is_some());
        quote!(#head #told #rest)
    }

    /// Statements that run `future` inside the span, and their value.
    fn awaited(
        &self,
        probes: &[Ident],
        future: &TokenStream,
        place: Option<Span>,
        rebind: Rebind<'_>,
        open: Option<TokenStream>,
    ) -> TokenStream {
        let value = Ident::new("value", place.unwrap_or_else(Span::mixed_site));
        let site = Span::mixed_site();
        let private = &self.context.private;
        let texts: Vec<_> = self
            .records
            .iter()
            .filter(|record| !record.at_call)
            .filter_map(|record| record.early.as_ref())
            .collect();
        let variables = texts.iter().map(|(variable, _)| variable);
        let early = texts.iter().map(|(_, early)| early);
        let early = quote!(#(#early)*);
        let early = match rebind {
            Rebind::All(words) => outside(early, self.function, words),
            Rebind::Nothing | Rebind::Recorded => early,
        };
        // `{#}` counts under the parent, so before the span opens; but a measured call opens the capture itself, and
        // its labels are built inside.
        let inside = self.set.measured.is_some() && !texts.is_empty();
        let (early, future, pattern) = if inside {
            let (made, told) = (variables.clone(), variables);
            (
                None,
                quote_spanned!(site=> async move { #early (#future.await, #(#made,)*) }),
                quote_spanned!(site=> (value, #(#told,)*)),
            )
        } else {
            (Some(early), future.clone(), quote_spanned!(site=> value))
        };
        let allow = self.underscored(probes);
        if !self.set.opens_span() {
            let evidence = self.evidence();
            return quote_spanned! {site=>
                #early
                let #pattern = #future.await;
                let ended = #private::Ended::here();
                #evidence
                return #value;
            };
        }
        let open = open.unwrap_or_else(|| self.open(Flavour::Future, probes));
        let never = self.function.output.as_deref().is_some_and(is_never);
        if self.records.is_empty() && (self.set.measured.is_none() || never) {
            let run = quote_spanned!(site=> #private::instrument(#open, #future).await);
            return match place {
                Some(_) => quote_spanned!(site=> let (value, _) = #run; return #value;),
                None => quote_spanned!(site=> return #run.0;),
            };
        }
        let evidence = self.evidence();
        quote_spanned! {site=>
            #early
            #allow
            let (#pattern, ended) = #private::instrument(#open, #future).await;
            #evidence
            return #value;
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
