//! What names tell: which calls are no operations, and which paths are types.

use crate::items::Angles;
use proc_macro2::{Ident, TokenTree};

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
            TokenTree::Ident(word) if !generics.open() => words.push(word.to_string()),
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
    (is_path && lower && !makes).then(|| name.strip_prefix("r#").unwrap_or(name).to_owned())
}

/// Whether braces after this path are a struct's: its last word is a type's.
pub(super) fn begins_type(trees: &[TokenTree]) -> bool {
    let last = trees.iter().rev().find_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    last.is_some_and(|word| word.starts_with(char::is_uppercase))
}
