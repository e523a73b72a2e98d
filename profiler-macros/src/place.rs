//! Places on the left of an assignment: which of them may be read once more without anything happening twice.

use crate::tokens::{is_punct, is_word};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// How a place is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Of names, fields and indices that are numbers: reading it does nothing, and takes nothing away.
    Named,
    /// Indices are computed from names, too: as a rule those are numbers, but a key might be used up.
    Indexed,
    /// It holds a call or a block, and may be evaluated once only.
    Computed,
}

/// How the place that these trees are is made.
pub(crate) fn kind(trees: &[TokenTree]) -> Kind {
    let mut rest = trees;
    while is_punct(rest.first(), '*') {
        rest = rest.get(1..).unwrap_or_default();
    }
    let Some((root, mut rest)) = rest.split_first() else {
        return Kind::Computed;
    };
    let mut made = match root {
        TokenTree::Ident(word) if !is_keyword(&word.to_string()) => Kind::Named,
        TokenTree::Group(group)
            if matches!(group.delimiter(), Delimiter::Parenthesis | Delimiter::None) =>
        {
            kind(&trees_of(group.stream()))
        }
        _ => return Kind::Computed,
    };
    loop {
        rest = match rest {
            [] => return made,
            [TokenTree::Punct(dot), TokenTree::Ident(field), rest @ ..]
                if dot.as_char() == '.' && field != "await" =>
            {
                rest
            }
            [TokenTree::Punct(dot), TokenTree::Literal(_), rest @ ..] if dot.as_char() == '.' => {
                rest
            }
            [
                TokenTree::Punct(colon),
                TokenTree::Punct(second),
                TokenTree::Ident(_),
                rest @ ..,
            ] if colon.as_char() == ':' && second.as_char() == ':' => rest,
            [TokenTree::Group(group), rest @ ..] if group.delimiter() == Delimiter::Bracket => {
                made = made.max(index(&trees_of(group.stream())));
                rest
            }
            _ => return Kind::Computed,
        };
    }
}

/// Words with which no name of a place begins.
fn is_keyword(word: &str) -> bool {
    [
        "unsafe", "if", "match", "loop", "while", "for", "async", "move", "const", "let", "return",
        "break", "continue", "_",
    ]
    .contains(&word)
}

/// What an index makes of a place: numbers, names, fields and their arithmetic can be evaluated again.
fn index(trees: &[TokenTree]) -> Kind {
    let is_number = |tree: &TokenTree| matches!(tree, TokenTree::Literal(_));
    if !trees.is_empty() && trees.iter().all(is_number) {
        return Kind::Named;
    }
    let repeats = trees.iter().all(|tree| match tree {
        TokenTree::Literal(_) => true,
        TokenTree::Ident(word) => !is_keyword(&word.to_string()) && word != "await",
        TokenTree::Punct(sign) => "+-*/%.:&".contains(sign.as_char()),
        TokenTree::Group(_) => false,
    });
    if repeats || groups_repeat(trees) {
        return Kind::Indexed;
    }
    Kind::Computed
}

/// The same with parentheses and indices inside, but for those of calls.
fn groups_repeat(trees: &[TokenTree]) -> bool {
    trees.iter().enumerate().all(|(at, tree)| match tree {
        TokenTree::Group(group) => {
            let before = at.checked_sub(1).and_then(|at| trees.get(at));
            let operand = matches!(before, None | Some(TokenTree::Punct(_)));
            let inside = match group.delimiter() {
                Delimiter::Parenthesis => operand && !is_punct(before, '>'),
                Delimiter::Bracket => !operand,
                Delimiter::None => true,
                Delimiter::Brace => false,
            };
            inside && index(&trees_of(group.stream())) != Kind::Computed
        }
        single => index(std::slice::from_ref(single)) != Kind::Computed,
    })
}

/// `(a, b)`, `[a, b]`, `_`: what is set is several places, or none.
pub(crate) fn is_pattern(trees: &[TokenTree]) -> bool {
    match trees {
        [TokenTree::Group(group)] => match group.delimiter() {
            Delimiter::None => is_pattern(&trees_of(group.stream())),
            Delimiter::Bracket => true,
            _ => {
                let inner = trees_of(group.stream());
                inner.is_empty() || inner.iter().any(|tree| is_punct(Some(tree), ','))
            }
        },
        _ => is_word(trees.first(), "_"),
    }
}

fn trees_of(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}
