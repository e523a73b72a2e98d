//! Items among statements, told by their first words.

use crate::tokens::{group_of, is_brace, is_punct, is_word, outer_attribute};
use proc_macro2::{Delimiter, TokenTree};

/// How an item ends.
enum End {
    /// At its `;`.
    Semicolon,
    /// At its `;` or at its braces.
    Braces,
}

/// How many trees the item at the head of `trees` takes, its attributes included; nothing where no item begins there.
pub(crate) fn item_len(trees: &[TokenTree]) -> Option<usize> {
    let mut at = 0;
    while let Some(outer) = trees.get(at..).and_then(outer_attribute) {
        at += outer.len;
    }
    if is_word(trees.get(at), "pub") {
        at += 1;
        if group_of(trees.get(at), Delimiter::Parenthesis).is_some() {
            at += 1;
        }
    } else if group_of(trees.get(at), Delimiter::None)
        .is_some_and(|group| group.stream().is_empty())
    {
        // An empty `$vis`.
        at += 1;
    }
    let rest = trees.get(at..)?;
    match begins(rest)? {
        End::Semicolon => Some(at + rest.iter().position(|tree| is_punct(Some(tree), ';'))? + 1),
        End::Braces => Some(at + end_of_braces(rest)? + 1),
    }
}

fn begins(trees: &[TokenTree]) -> Option<End> {
    let Some(TokenTree::Ident(word)) = trees.first() else {
        return None;
    };
    let second = trees.get(1);
    let second_is = |words: &[&str]| words.iter().any(|word| is_word(second, word));
    let second_is_word = matches!(second, Some(TokenTree::Ident(_)));
    match word.to_string().as_str() {
        "use" | "type" => Some(End::Semicolon),
        "fn" | "struct" | "enum" | "trait" | "mod" if second_is_word => Some(End::Braces),
        "impl" => Some(End::Braces),
        "union" if second_is_word => Some(End::Braces),
        "static" if second_is_word && !second_is(&["move"]) => Some(End::Semicolon),
        "const" if second_is(&["fn", "unsafe", "async", "extern"]) => Some(End::Braces),
        "const" if second_is_word => Some(End::Semicolon),
        "unsafe" if second_is(&["fn", "impl", "trait", "extern", "mod", "auto"]) => {
            Some(End::Braces)
        }
        "async" if second_is(&["fn", "unsafe", "extern"]) => Some(End::Braces),
        "auto" if second_is(&["trait"]) => Some(End::Braces),
        "extern" => Some(if second_is(&["crate"]) {
            End::Semicolon
        } else {
            End::Braces
        }),
        "macro_rules" if is_punct(second, '!') => Some(End::Braces),
        _ => None,
    }
}

/// Where the braces (or the `;`) that end an item stand: not those in generic arguments, as in `impl Layer<{ N }> for A {}`.
fn end_of_braces(trees: &[TokenTree]) -> Option<usize> {
    let mut depth = Angles::default();
    for (at, tree) in trees.iter().enumerate() {
        let open = depth.open();
        depth.pass(tree);
        if is_punct(Some(tree), ';') || !open && is_brace(Some(tree)) {
            return Some(at);
        }
    }
    None
}

/// Follows `<` and `>` in the header of an item or in a type, past `->` and `=>`.
#[derive(Default)]
pub(crate) struct Angles {
    depth: usize,
    arrow: bool,
}

impl Angles {
    pub(crate) fn open(&self) -> bool {
        self.depth > 0
    }

    pub(crate) fn pass(&mut self, tree: &TokenTree) {
        let TokenTree::Punct(punct) = tree else {
            self.arrow = false;
            return;
        };
        match punct.as_char() {
            '<' => self.depth += 1,
            '>' if !self.arrow => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.arrow =
            matches!(punct.as_char(), '-' | '=') && punct.spacing() == proc_macro2::Spacing::Joint;
    }
}
