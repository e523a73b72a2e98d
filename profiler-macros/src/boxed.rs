//! The shape that `async-trait` leaves: a signature that returns `Pin<Box<dyn Future…>>` and a body whose last expression
//! is `Box::pin(async move { … })`.

use crate::function::Function;
use crate::tokens::{braces, delimited, group_of, is_brace, is_punct, is_word, outermost, regroup};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

/// The body with that block replaced by one that runs it through `wrap`; nothing for any other function.
pub(crate) fn instrumented(
    function: &Function,
    body: &TokenStream,
    wrap: impl FnOnce(&TokenStream) -> TokenStream,
) -> Option<TokenStream> {
    if !returns_boxed_future(function.output.as_deref()?) {
        return None;
    }
    let mut trees: Vec<TokenTree> = body.clone().into_iter().collect();
    let argument = trees.pop()?;
    let argument = group_of(Some(&argument), Delimiter::Parenthesis)?.clone();
    if !is_whole_expression(&trees) {
        return None;
    }
    let block = async_move(outermost(argument.stream()))?;
    let wrapped = wrap(&quote!(#(#block)*));
    let place = block.last().map_or_else(Span::mixed_site, TokenTree::span);
    let wrapped = braces(wrapped, place);
    let wrapped = quote_spanned!(Span::mixed_site()=> async move #wrapped);
    trees.push(TokenTree::Group(delimited(
        Delimiter::Parenthesis,
        wrapped,
        argument.span(),
    )));
    Some(regroup(trees))
}

/// Whether `trees` end in a path to `Box::pin` with which a statement begins.
fn is_whole_expression(trees: &[TokenTree]) -> bool {
    let mut at = trees.len();
    let mut words = Vec::new();
    let mut colons = 0;
    while let Some(tree) = at.checked_sub(1).and_then(|before| trees.get(before)) {
        match tree {
            TokenTree::Ident(word) if colons == 2 || words.is_empty() => {
                words.push(word.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            _ => break,
        }
        at -= 1;
    }
    let before = at.checked_sub(1).and_then(|before| trees.get(before));
    let begins = before.is_none()
        || is_punct(before, ';')
        || is_brace(before)
        || ends_inner_attribute(trees, at);
    begins && matches!(words.as_slice(), [pin, boxed, ..] if pin == "pin" && boxed == "Box")
}

fn ends_inner_attribute(trees: &[TokenTree], at: usize) -> bool {
    at >= 3
        && is_punct(trees.get(at - 3), '#')
        && is_punct(trees.get(at - 2), '!')
        && group_of(trees.get(at - 1), Delimiter::Bracket).is_some()
}

/// The trees of `async move { … }`, if that is all there is (a trailing comma apart).
fn async_move(mut trees: Vec<TokenTree>) -> Option<Vec<TokenTree>> {
    if is_punct(trees.last(), ',') {
        trees.pop();
    }
    let fits = trees.len() == 3
        && is_word(trees.first(), "async")
        && is_word(trees.get(1), "move")
        && is_brace(trees.get(2));
    fits.then_some(trees)
}

/// Whether such a return type is declared.
pub(crate) fn is_future(output: &[TokenTree]) -> bool {
    returns_boxed_future(output)
}

/// `Pin<Box<dyn Future…>>`, however its paths are spelled.
fn returns_boxed_future(output: &[TokenTree]) -> bool {
    let flat = outermost(output.iter().cloned().collect());
    let Some(rest) = past_path(&flat, "Pin") else {
        return false;
    };
    let Some(rest) = past_open(rest).and_then(|rest| past_path(rest, "Box")) else {
        return false;
    };
    let Some(rest) = past_open(rest) else {
        return false;
    };
    let flat = match rest {
        [TokenTree::Group(group), ..] => outermost(group.stream()),
        _ => rest.to_vec(),
    };
    let Some((TokenTree::Ident(word), bounds)) = flat.split_first() else {
        return false;
    };
    if word != "dyn" {
        return false;
    }
    bounds
        .split(|tree| is_punct(Some(tree), '+'))
        .any(|bound| past_path(bound, "Future").is_some_and(|rest| is_punct(rest.first(), '<')))
}

fn past_open(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    is_punct(trees.first(), '<')
        .then(|| trees.get(1..))
        .flatten()
}

/// What follows a path whose last segment is `last`.
fn past_path<'a>(trees: &'a [TokenTree], last: &str) -> Option<&'a [TokenTree]> {
    let end = trees
        .iter()
        .position(|tree| !matches!(tree, TokenTree::Ident(_)) && !is_punct(Some(tree), ':'))
        .unwrap_or(trees.len());
    let name = end.checked_sub(1).and_then(|at| trees.get(at));
    is_word(name, last).then(|| trees.get(end..)).flatten()
}
