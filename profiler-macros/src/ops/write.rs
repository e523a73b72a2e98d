//! A call as it is written anew.

use super::Mode;
use super::place::Place;
use super::walk::Walk;
use crate::tokens::{delimited, is_punct, regroup};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

/// Operands that are looked at before a call; more are left out.
const MOST_OPERANDS: usize = 6;

/// A call that may give a tensor.
pub(super) struct Operation<'a> {
    /// Where its name stands.
    pub(super) span: Span,
    /// `matmul`, `add`, `layer_norm`.
    pub(super) name: String,
    pub(super) label: String,
    /// What goes in, as far as it is only named.
    pub(super) operands: Vec<Place>,
    /// It stands directly under `&`, `-` or `!`.
    pub(super) prefixed: bool,
    pub(super) call: &'a [TokenTree],
}

impl Walk<'_> {
    /// The call, observed.
    pub(super) fn observed(&self, operation: &Operation<'_>) -> Vec<TokenTree> {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let Operation { name, label, .. } = operation;
        let looks = operation
            .operands
            .iter()
            .filter(|place| self.sees(place))
            .take(MOST_OPERANDS)
            .map(|place| {
                let behind = self.behind(place).then(|| quote_spanned!(site=> *));
                let place = &place.trees;
                quote_spanned!(site=> &#behind #(#place)*,)
            });
        let statistics =
            (self.mode == Mode::Statistics).then(|| quote_spanned!(site=> .statistics()));
        let function = self.context.default_name();
        let line = crate::site::line_of(operation.span);
        let call = regroup(operation.call.to_vec());
        let observed = quote_spanned! {site=>
            #private::op(
                #private::op_begin((#(#looks)*)),
                const { &#private::OpSite::new(#name, #label, #function, ::core::file!(), #line)#statistics },
                #call
            )
        };
        if operation.prefixed {
            // What stands around `&` only hints at the type of its operand. A call would take the hint for a promise;
            // a field of a tuple gets no hint.
            return parenthesized(quote_spanned!(site=> (#observed,).0));
        }
        observed.into_iter().collect()
    }
}

fn parenthesized(stream: TokenStream) -> Vec<TokenTree> {
    let group = delimited(Delimiter::Parenthesis, stream, Span::mixed_site());
    quote!(#group).into_iter().collect()
}

/// Lets an observed call begin and end where the call did that it was made of, so that an error of a `?` after it stands
/// at the `?`. Only there: lints look at what seems to be written by hand, and some forbid what we do to other calls.
pub(super) fn stand_at(observed: &mut [TokenTree], call: &[TokenTree]) {
    let (Some(first), Some(last)) = (call.first(), call.last()) else {
        return;
    };
    // The path's own span is from its first token to its last: `::` of two signs, and the function's name. Where a path
    // was given by `crate = path`, its first word must keep where it is to be looked up.
    if let [
        TokenTree::Punct(sign),
        TokenTree::Punct(second),
        ..,
        TokenTree::Ident(name),
        TokenTree::Group(arguments),
    ] = observed
    {
        sign.set_span(first.span());
        second.set_span(first.span());
        name.set_span(first.span());
        arguments.set_span(last.span());
    }
}

/// The arguments in the parentheses of a call.
pub(super) fn arguments(group: &proc_macro2::Group) -> Vec<Vec<TokenTree>> {
    let mut all = vec![Vec::new()];
    for tree in group.stream() {
        match is_punct(Some(&tree), ',') {
            true => all.push(Vec::new()),
            false => {
                if let Some(last) = all.last_mut() {
                    last.push(tree);
                }
            }
        }
    }
    all.retain(|argument| !argument.is_empty());
    all
}

/// Whether one of the arguments is a closure, whose parameters' types may come from what the call is to give.
pub(super) fn has_closure(arguments: &[Vec<TokenTree>]) -> bool {
    arguments.iter().any(|argument| {
        let mut words = argument.iter().skip_while(
            |tree| matches!(tree, TokenTree::Ident(word) if word == "move" || word == "async" || word == "static"),
        );
        is_punct(words.next(), '|')
    })
}

/// Whether `.await` stands anywhere in these trees.
pub(super) fn awaits(trees: &[TokenTree]) -> bool {
    trees.iter().any(|tree| match tree {
        TokenTree::Ident(word) => word == "await",
        TokenTree::Group(group) => awaits(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}
