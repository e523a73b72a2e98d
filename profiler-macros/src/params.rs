//! The parameters as an expansion leaves them, and the statements that bind them again.

use crate::function::{Function, Param, Pattern};
use crate::tokens::{delimited, group_of, is_word, regroup, text_of};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use std::collections::BTreeSet;

/// What becomes of the parameters.
pub(crate) enum Rebind<'a> {
    /// They stay; our attributes go.
    Nothing,
    /// The same, but for patterns that are recorded as a whole: see [`recorded_patterns`].
    Recorded,
    /// Patterns move into the body, where names are bound again; the words of all arguments of our attributes.
    All(&'a BTreeSet<String>),
}

/// The name of an argument that is a pattern.
pub(crate) fn argument(at: usize) -> Ident {
    Ident::new(&format!("argument{at}"), Span::mixed_site())
}

/// Whether an argument is asked for by its own name outside of the body, because an attribute's argument has it in it, or
/// because a variable of ours is called so too.
pub(crate) fn is_told(name: &Ident, words: &BTreeSet<String>) -> bool {
    let name = text_of(name);
    let ours = [
        "guard", "span", "value", "ended", "parked", "turns", "given", "lent",
    ]
    .contains(&name.as_str())
        || ["text", "argument", "noted", "part"]
            .iter()
            .any(|ours| name.starts_with(ours));
    ours || words.contains(&name)
}

/// The name that an argument has outside of the body that binds it again.
///
/// Where no attribute asks for it there, it is a name of our own that only looks like the user's: then no lint takes the
/// new binding for one that the user wrote, and none of them has to be silenced, which would cost the compiler more than
/// all else that is written here.
pub(crate) fn outer(name: &Ident, words: &BTreeSet<String>) -> Ident {
    if is_told(name, words) {
        return name.clone();
    }
    let mut outer = name.clone();
    outer.set_span(Span::mixed_site().located_at(name.span()));
    outer
}

/// Our tokens as they stand outside of the body that binds the arguments again: with the names they have there.
pub(crate) fn outside(
    tokens: TokenStream,
    function: &Function,
    words: &BTreeSet<String>,
) -> TokenStream {
    let is_renamed = |ident: &Ident| {
        let patterns = function.params.iter().map(|param| &param.pattern);
        let mut names = patterns.filter_map(|pattern| match pattern {
            Pattern::Name(name) => Some(name),
            _ => None,
        });
        names.any(|name| name == ident) && !is_told(ident, words)
    };
    let tree = |tree| match tree {
        TokenTree::Ident(ident) if is_renamed(&ident) => outer(&ident, words).into(),
        TokenTree::Group(group) => {
            let inner = outside(group.stream(), function, words);
            let mut renamed = Group::new(group.delimiter(), inner);
            renamed.set_span(group.span());
            renamed.into()
        }
        other => other,
    };
    tokens.into_iter().map(tree).collect()
}

/// Whether a pattern stays in the signature: an attribute's argument asks for a name that it binds.
pub(crate) fn stays(param: &Param, words: &BTreeSet<String>) -> bool {
    fn holds(trees: &[TokenTree], words: &BTreeSet<String>) -> bool {
        trees.iter().any(|tree| match tree {
            TokenTree::Ident(word) => words.contains(&text_of(word)),
            TokenTree::Group(group) => {
                holds(&group.stream().into_iter().collect::<Vec<_>>(), words)
            }
            _ => false,
        })
    }
    param.ours.is_empty() && holds(&param.pattern_trees, words)
}

/// The parentheses of the parameters, without our attributes.
pub(crate) fn params(function: &Function, rebind: &Rebind<'_>) -> TokenTree {
    let span = function
        .header
        .get(function.params_at)
        .map_or_else(Span::call_site, TokenTree::span);
    let mut trees = Vec::new();
    for (at, param) in function.params.iter().enumerate() {
        match (&param.pattern, rebind) {
            (Pattern::Other, Rebind::All(words)) if stays(param, words) => {
                trees.extend(param.attributes.iter().cloned());
            }
            (_, Rebind::Nothing | Rebind::Recorded) => {
                trees.extend(param.attributes.iter().cloned())
            }
            (_, Rebind::All(_)) => trees.extend(param.configuration()),
        }
        match (&param.pattern, rebind) {
            (Pattern::Name(name), Rebind::All(words)) => trees.push(outer(name, words).into()),
            (Pattern::Other, Rebind::All(words)) if !stays(param, words) => {
                trees.push(argument(at).into());
            }
            (Pattern::Other, Rebind::Recorded) if !param.ours.is_empty() => {
                trees.push(argument(at).into());
            }
            _ => trees.extend(param.pattern_trees.iter().cloned()),
        }
        trees.extend(param.ty.iter().cloned());
        if at + 1 < function.params.len() {
            trees.push(proc_macro2::Punct::new(',', proc_macro2::Spacing::Alone).into());
        }
    }
    TokenTree::Group(delimited(Delimiter::Parenthesis, regroup(trees), span))
}

/// Binds the patterns of recorded arguments where those have been read.
pub(crate) fn recorded_patterns(function: &Function) -> TokenStream {
    let mut tokens = TokenStream::new();
    for (at, param) in function.params.iter().enumerate() {
        if matches!(param.pattern, Pattern::Other) && !param.ours.is_empty() {
            tokens.extend(bound(param, at, &[]));
        }
    }
    tokens
}

/// Binds a pattern to its argument.
fn bound(param: &Param, at: usize, attributes: &[TokenTree]) -> Option<TokenStream> {
    let argument = argument(at);
    let pattern = regroup(param.pattern_trees.clone());
    let is_blank =
        matches!(param.pattern_trees.as_slice(), [TokenTree::Ident(word)] if word == "_");
    (!is_blank)
        .then(|| quote_spanned!(Span::mixed_site()=> #(#attributes)* let #pattern = #argument;))
}

/// Binds every parameter again, in order: a body that runs in a closure or future then drops them as a function does.
///
/// One that the attributes' arguments name is used, whether the body uses it or not.
pub(crate) fn rebindings(
    function: &Function,
    words: &BTreeSet<String>,
    captured: bool,
    lent: Option<&(Ident, Ident)>,
) -> TokenStream {
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
                // The body gets what is lent to it instead of the argument itself.
                let lent = lent.and_then(|(own, lent)| (own == name).then_some(lent));
                let outer = outer(name, words);
                let value = lent.unwrap_or(&outer);
                let mutable = param.is_mut().then(|| param.mutable());
                if !is_told(name, words) {
                    let allow = name.to_string().starts_with('_').then(
                        || quote_spanned!(site=> #[allow(clippy::no_effect_underscore_binding)]),
                    );
                    tokens.extend(
                        quote_spanned!(site=> #allow #(#attributes)* let #mutable #name = #value;),
                    );
                    continue;
                }
                let configuration = param.configuration();
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
                    let #mutable #name = #value;
                });
                tokens.extend(quote_spanned! {site=>
                    #[allow(clippy::used_underscore_binding)]
                    #(#configuration)*
                    let _ = &#name;
                });
            }
            // Its names are those of the signature.
            Pattern::Other if stays(param, words) => {}
            Pattern::Other => {
                let argument = argument(at);
                let configuration = param.configuration();
                tokens.extend(quote_spanned!(site=> #(#configuration)* let #argument = #argument;));
                tokens.extend(bound(param, at, attributes));
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
        group_of(pair.get(1), Delimiter::Bracket).is_some_and(|group| {
            let first = group.stream().into_iter().next();
            is_word(first.as_ref(), "cfg") || is_word(first.as_ref(), "cfg_attr")
        })
    };
    attributes
        .chunks(2)
        .filter(is_cfg)
        .flatten()
        .cloned()
        .collect()
}
