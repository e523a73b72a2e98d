//! What `macro_rules` hands over as a whole: a `$b:block` or `$s:stmt` comes in an invisible group, which ends a statement
//! by itself. Once the statements around it are put together again nothing else says so.

use std::borrow::Cow;

use crate::items::item_len;
use crate::tokens::{block_of, group_of, is_brace, is_punct, is_word};
use proc_macro2::{Delimiter, Punct, Spacing, TokenTree};

/// The trees of a block with blocks as they are, and a `;` behind each statement that came without one.
pub(crate) fn settled(trees: &[TokenTree]) -> Cow<'_, [TokenTree]> {
    let is_fragment = |tree: &TokenTree| group_of(Some(tree), Delimiter::None).is_some();
    if !trees.iter().any(is_fragment) {
        return Cow::Borrowed(trees);
    }
    let mut out = Vec::with_capacity(trees.len());
    let mut start = true;
    for (at, tree) in trees.iter().enumerate() {
        let next = trees.get(at + 1);
        let Some(fragment) = group_of(Some(tree), Delimiter::None) else {
            start = is_punct(Some(tree), ';') || is_brace(Some(tree));
            out.push(tree.clone());
            continue;
        };
        if let Some(block) = block_of(tree) {
            out.push(block.into());
            start = true;
            continue;
        }
        let inner: Vec<TokenTree> = fragment.stream().into_iter().collect();
        let is_local = is_word(inner.first(), "let");
        let is_item = item_len(&inner).is_some();
        let ends = is_local || start && !is_item && is_statement(&inner) && begins_another(next);
        // A lifetime may label a loop.
        match is_local || is_punct(inner.first(), '\'') {
            true => out.extend(inner),
            false => out.push(tree.clone()),
        }
        if ends && !is_punct(next, ';') {
            let mut end = Punct::new(';', Spacing::Alone);
            end.set_span(fragment.span());
            out.push(end.into());
        }
        start = ends || start && is_item;
    }
    Cow::Owned(out)
}

/// Whether it may be an expression, as far as its beginning tells: no `pub`.
fn is_statement(inner: &[TokenTree]) -> bool {
    let visible = ["pub", "crate", "in"]
        .iter()
        .any(|word| is_word(inner.first(), word));
    !inner.is_empty() && !visible
}

/// Whether no expression goes on with this tree. An `if` may be a match arm's guard.
fn begins_another(tree: Option<&TokenTree>) -> bool {
    match tree {
        Some(TokenTree::Ident(word)) => !["as", "if", "else", "in"]
            .iter()
            .any(|goes_on| word == goes_on),
        Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), '#' | '\''),
        Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::None,
        _ => false,
    }
}
