//! Which names are variables in sight: only those are looked at. Another name is a function, whose type may be known only
//! where it is called.

use crate::forms::is_joint;
use crate::function::{Body, Function, Pattern};
use crate::items::Angles;
use crate::tokens::{is_brace, is_punct, is_word, text_of};
use crate::types::type_colon;
use proc_macro2::{Delimiter, TokenTree};
use std::collections::BTreeSet;

/// Names by their text. Scopes are not told apart: all that matters is that a name is bound at all.
pub(crate) type Names = BTreeSet<String>;

/// What is known of a function's variables.
#[derive(Default)]
pub(crate) struct Sight {
    /// All names that it binds.
    pub(super) bound: Names,
    /// Parameters that are shared references, whatever name the body binds besides.
    pub(super) references: Names,
    /// Those of them that are references to a tensor.
    pub(super) tensors: Names,
}

/// What a function binds.
pub(crate) fn of_function(function: &Function) -> Sight {
    let mut sight = Sight::default();
    if let Body::Block(block) = &function.body {
        let trees: Vec<TokenTree> = block.stream().into_iter().collect();
        collect(&trees, &mut sight.bound);
    }
    for param in &function.params {
        if let Pattern::Name(name) = &param.pattern
            && let Some(to) = shared(&param.ty)
            && !sight.bound.contains(&text_of(name))
        {
            if ["Tensor", "Var"]
                .iter()
                .any(|tensor| is_word(to.last(), tensor))
            {
                sight.tensors.insert(text_of(name));
            }
            sight.references.insert(text_of(name));
        }
    }
    for param in &function.params {
        of_pattern(&param.pattern_trees, &mut sight.bound);
    }
    sight
}

/// The names in a pattern.
pub(crate) fn of_pattern(trees: &[TokenTree], names: &mut Names) {
    pattern(trees, false, names);
}

/// What a type that is a shared reference refers to; `ty` has its colon.
fn shared(ty: &[TokenTree]) -> Option<&[TokenTree]> {
    let mut at = ty.iter().position(|tree| !is_punct(Some(tree), ':'))?;
    if !is_punct(ty.get(at), '&') {
        return None;
    }
    at += 1;
    if is_punct(ty.get(at), '\'') {
        at += 2;
    }
    let to = ty.get(at..)?;
    let plain = |tree: &TokenTree| {
        matches!(tree, TokenTree::Ident(word) if word != "mut" && word != "dyn")
            || is_punct(Some(tree), ':')
    };
    to.iter().all(plain).then_some(to)
}

/// The names that these trees bind.
pub(super) fn of_trees(trees: &[TokenTree]) -> Names {
    let mut names = Names::new();
    collect(trees, &mut names);
    names
}

fn collect(trees: &[TokenTree], names: &mut Names) {
    // Where the arm of a `match` may have begun.
    let mut arm = 0;
    for (at, tree) in trees.iter().enumerate() {
        let rest = trees.get(at + 1..).unwrap_or_default();
        let until = |is_end: &dyn Fn(&TokenTree) -> bool| {
            let end = rest.iter().position(is_end).unwrap_or(rest.len());
            rest.get(..end).unwrap_or_default()
        };
        match tree {
            TokenTree::Ident(word) if word == "let" => {
                let ends = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if matches!(sign.as_char(), '=' | ';'));
                binding(until(&ends), names);
            }
            TokenTree::Ident(word) if word == "for" => {
                binding(until(&|tree| is_word(Some(tree), "in")), names);
            }
            TokenTree::Punct(bar)
                if bar.as_char() == '|'
                    && begins_closure(at.checked_sub(1).and_then(|before| trees.get(before))) =>
            {
                let mut angles = Angles::default();
                let parameters = until(&|tree| is_punct(Some(tree), '|')).split(|tree| {
                    angles.pass(tree);
                    !angles.open() && is_punct(Some(tree), ',')
                });
                parameters.for_each(|parameter| binding(parameter, names));
            }
            TokenTree::Punct(sign) if sign.as_char() == ',' => arm = at + 1,
            TokenTree::Punct(sign)
                if sign.as_char() == '=' && is_joint(Some(tree)) && is_punct(rest.first(), '>') =>
            {
                let guarded = trees.get(arm..at).unwrap_or_default();
                let mut alternatives = guarded.split(|tree| is_word(Some(tree), "if"));
                pattern(alternatives.next().unwrap_or_default(), false, names);
                arm = at + 2;
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                collect(&inner, names);
                // After a block no comma is needed; the braces of a pattern are followed by one of these.
                let pattern_goes_on = ['=', '|', '@', ',']
                    .iter()
                    .any(|sign| is_punct(rest.first(), *sign))
                    || is_word(rest.first(), "if");
                if is_brace(Some(tree)) && !pattern_goes_on {
                    arm = at + 1;
                }
            }
            _ => {}
        }
    }
}

/// Whether a `|` after this tree opens a closure's parameters.
fn begins_closure(before: Option<&TokenTree>) -> bool {
    match before {
        None => true,
        Some(TokenTree::Punct(sign)) => sign.as_char() != '?' && sign.as_char() != '|',
        Some(TokenTree::Ident(word)) => ["move", "async", "static", "return", "break", "else"]
            .iter()
            .any(|keyword| word == keyword),
        Some(_) => is_brace(before),
    }
}

/// What stands between `let` and `=`: a pattern, its type left out.
fn binding(trees: &[TokenTree], names: &mut Names) {
    let end = type_colon(trees, 0).unwrap_or(trees.len());
    pattern(trees.get(..end).unwrap_or_default(), false, names);
}

/// The names in a pattern; `fields`: it is what stands in a struct's braces.
fn pattern(trees: &[TokenTree], fields: bool, names: &mut Names) {
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(word) => {
                let next = trees.get(at + 1);
                let before = at.checked_sub(1).and_then(|before| trees.get(before));
                let in_path = is_punct(before, ':')
                    && is_punct(at.checked_sub(2).and_then(|two| trees.get(two)), ':')
                    || is_punct(next, ':') && (fields || is_joint(next));
                let called = is_punct(next, '!')
                    || matches!(next, Some(TokenTree::Group(group)) if group.delimiter() != Delimiter::Bracket);
                if !in_path && !called {
                    names.insert(text_of(word));
                }
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                pattern(&inner, is_brace(Some(tree)), names);
            }
            _ => {}
        }
    }
}
