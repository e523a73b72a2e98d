//! What names tell: which calls are no operations, and which paths are types.

use crate::items::Angles;
use crate::tokens::{is_punct, is_word, text_of};
use proc_macro2::{Delimiter, Ident, TokenTree};

/// Methods that give parts, copies and contents of what is there already.
pub(super) fn is_plain(name: &Ident) -> bool {
    const PLAIN: [&str; 16] = [
        "clone",
        "unwrap",
        "expect",
        "iter",
        "iter_mut",
        "into_iter",
        "len",
        "push",
        "to_string",
        "to_owned",
        "as_ref",
        "as_mut",
        "dims",
        "dtype",
        "device",
        "is_empty",
    ];
    PLAIN.iter().any(|plain| name == plain)
}

/// The name of the function that a path calls; nothing where it makes a value: `Some(…)`, `Box::new(…)`.
pub(super) fn function_name(trees: &[TokenTree]) -> Option<String> {
    const MAKERS: [&str; 12] = [
        "Box", "Rc", "Arc", "Pin", "Vec", "String", "Mutex", "RwLock", "RefCell", "Cell", "Some",
        "Default",
    ];
    let mut generics = Angles::default();
    let mut words = Vec::new();
    for tree in trees {
        generics.pass(tree);
        match tree {
            TokenTree::Ident(word) if !generics.open() => words.push(text_of(word)),
            _ => {}
        }
    }
    let is_path = trees
        .iter()
        .all(|tree| !matches!(tree, TokenTree::Group(_) | TokenTree::Literal(_)));
    let [before @ .., name] = words.as_slice() else {
        return None;
    };
    let makes = before.iter().any(|word| MAKERS.contains(&word.as_str()));
    let lower = name.starts_with(|c: char| c.is_lowercase() || c == '_');
    (is_path && lower && !makes).then(|| name.clone())
}

/// Whether these trees are constants and numbers, and no more than their arithmetic: the compiler may compute them when
/// it builds the program, and keep what a reference to them refers to.
pub(super) fn is_constant(trees: &[TokenTree]) -> bool {
    trees.iter().enumerate().all(|(at, tree)| match tree {
        TokenTree::Literal(_) => true,
        TokenTree::Ident(word) => {
            let next = trees.get(at + 1);
            let before = at.checked_sub(1).and_then(|before| trees.get(before));
            word == "as" || is_word(before, "as") || is_punct(next, ':') || is_in_capitals(word)
        }
        TokenTree::Punct(sign) => "+-*/%:".contains(sign.as_char()),
        TokenTree::Group(group) => {
            let before = at.checked_sub(1).and_then(|before| trees.get(before));
            group.delimiter() == Delimiter::Parenthesis
                && matches!(before, None | Some(TokenTree::Punct(_)))
                && is_constant(&group.stream().into_iter().collect::<Vec<_>>())
        }
    })
}

/// `SIZE`, `N`: how constants are written.
pub(super) fn is_in_capitals(word: &Ident) -> bool {
    let word = word.to_string();
    word.starts_with(char::is_uppercase) && !word.contains(char::is_lowercase)
}
