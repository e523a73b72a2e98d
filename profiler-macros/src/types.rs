//! Questions about written types: what stands in them, and what may.

use crate::items::Angles;
use crate::tokens::{delimited, is_punct};
use proc_macro2::{Delimiter, Ident, Spacing, TokenTree};

/// `()`, or nothing at all.
pub(crate) fn is_unit(ty: &[TokenTree]) -> bool {
    match ty {
        [] => true,
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            is_unit(&group.stream().into_iter().collect::<Vec<_>>())
        }
        [TokenTree::Group(group)] => {
            group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty()
        }
        _ => false,
    }
}

/// Whether the return type is `!` itself.
pub(crate) fn is_never(ty: &[TokenTree]) -> bool {
    match ty {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            is_never(&group.stream().into_iter().collect::<Vec<_>>())
        }
        [only] => is_punct(Some(only), '!'),
        _ => false,
    }
}

/// The trees of a return type hold an `impl`.
pub(crate) fn holds_impl(output: &[TokenTree]) -> bool {
    output.iter().any(|tree| match tree {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => holds_impl(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => false,
    })
}

/// Whether a word stands in a type.
pub(crate) fn holds_word(ty: &[TokenTree], word: &str) -> bool {
    ty.iter().any(|tree| match tree {
        TokenTree::Ident(found) => found == word,
        TokenTree::Group(group) => {
            holds_word(&group.stream().into_iter().collect::<Vec<_>>(), word)
        }
        _ => false,
    })
}

/// Whether a written type may hold a tensor.
pub(crate) fn may_hold(ty: &[TokenTree]) -> bool {
    let mut lifetime = false;
    ty.iter().any(|tree| match tree {
        TokenTree::Ident(word) => !std::mem::take(&mut lifetime) && !is_plain(&word.to_string()),
        TokenTree::Group(group) => may_hold(&group.stream().into_iter().collect::<Vec<_>>()),
        TokenTree::Punct(punct) => {
            lifetime = punct.as_char() == '\'';
            false
        }
        TokenTree::Literal(_) => false,
    })
}

/// Whether a word is a type, or part of the path of one, that holds no tensor.
fn is_plain(word: &str) -> bool {
    matches!(
        word,
        "bool"
            | "char"
            | "str"
            | "String"
            | "u8"
            | "u16"
            | "u32"
            | "u64"
            | "u128"
            | "usize"
            | "i8"
            | "i16"
            | "i32"
            | "i64"
            | "i128"
            | "isize"
            | "f32"
            | "f64"
            | "Option"
            | "Result"
            | "Vec"
            | "Box"
            | "Rc"
            | "Arc"
            | "Cow"
            | "HashMap"
            | "BTreeMap"
            | "std"
            | "core"
            | "alloc"
            | "collections"
            | "sync"
            | "rc"
            | "borrow"
            | "io"
            | "fmt"
            | "Path"
            | "PathBuf"
            | "path"
            | "Device"
            | "DType"
            | "Shape"
            | "VarBuilder"
            | "VarMap"
            | "GradStore"
            | "Self"
            | "mut"
            | "const"
            | "candle"
            | "candle_core"
            | "candle_nn"
            | "anyhow"
            | "Error"
            | "error"
            | "backprop"
            | "CandleResult"
            | "static"
            | "Duration"
    )
}

/// The colon between a pattern and its type: not one of a `::`.
pub(crate) fn type_colon(trees: &[TokenTree], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match trees.get(at)? {
            TokenTree::Punct(punct) if punct.as_char() == ':' => {
                if punct.spacing() == Spacing::Joint && is_punct(trees.get(at + 1), ':') {
                    at += 1;
                } else {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The declared type with each `impl Trait` replaced by `_`, for places where it may not stand; whether there was one.
pub(crate) fn without_impl(ty: &[TokenTree]) -> (Vec<TokenTree>, bool) {
    let mut out = Vec::with_capacity(ty.len());
    let mut found = false;
    let mut at = 0;
    while let Some(tree) = ty.get(at) {
        match tree {
            TokenTree::Ident(word) if word == "impl" => {
                found = true;
                out.push(TokenTree::Ident(Ident::new("_", word.span())));
                at = end_of_bounds(ty, at + 1);
                continue;
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let (inner, replaced) = without_impl(&inner);
                found |= replaced;
                if replaced {
                    let group =
                        delimited(group.delimiter(), inner.into_iter().collect(), group.span());
                    out.push(TokenTree::Group(group));
                } else {
                    out.push(tree.clone());
                }
            }
            other => out.push(other.clone()),
        }
        at += 1;
    }
    (out, found)
}

/// Where the bounds of an `impl` end: at a comma, a closing `>`, a `;`, or the end.
fn end_of_bounds(ty: &[TokenTree], from: usize) -> usize {
    let mut angles = Angles::default();
    let mut at = from;
    let mut arrow = false;
    while let Some(tree) = ty.get(at) {
        if !angles.open()
            && (is_punct(Some(tree), ',')
                || is_punct(Some(tree), ';')
                || is_punct(Some(tree), '>') && !arrow)
        {
            break;
        }
        arrow = matches!(tree, TokenTree::Punct(punct) if punct.as_char() == '-');
        angles.pass(tree);
        at += 1;
    }
    at
}
