//! A place in a list of trees, and what is copied as it stands: generic arguments and types.

use crate::items::Angles;
use crate::tokens::{group_of, is_punct, is_word};
use proc_macro2::{Delimiter, Spacing, TokenTree};

/// A place in a list of trees.
pub(super) struct Cursor<'t> {
    pub(super) trees: &'t [TokenTree],
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn peek(&self) -> Option<&'t TokenTree> {
        self.trees.get(self.at)
    }

    pub(super) fn rest(&self) -> &'t [TokenTree] {
        self.trees.get(self.at..).unwrap_or_default()
    }

    /// Hands trees on as they are.
    pub(super) fn copy(&mut self, count: usize, out: &mut Vec<TokenTree>) {
        let taken = self.rest().iter().take(count);
        self.at += taken.len();
        out.extend(taken.cloned());
    }

    pub(super) fn after(&self, count: usize) -> Option<&'t TokenTree> {
        self.trees.get(self.at + count)
    }

    pub(super) fn is(&self, sign: char) -> bool {
        is_punct(self.peek(), sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    /// Whether these signs are here, each joined to the next.
    pub(super) fn signs(&self, signs: &str) -> bool {
        let count = signs.chars().count();
        signs.chars().enumerate().all(|(at, sign)| {
            matches!(self.after(at), Some(TokenTree::Punct(punct))
                if punct.as_char() == sign && (at + 1 == count || punct.spacing() == Spacing::Joint))
        })
    }

    /// Whether an expression ends here.
    pub(super) fn is_over(&self) -> bool {
        match self.peek() {
            None => true,
            Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), ';' | ',') || self.arrow(),
            Some(TokenTree::Ident(word)) => word == "else" || word == "in",
            Some(_) => false,
        }
    }
}

/// Whether nothing but `?` follows in the statement.
pub(super) fn is_last(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.rest();
    let marks = rest
        .iter()
        .take_while(|tree| is_punct(Some(tree), '?'))
        .count();
    match rest.get(marks) {
        None => true,
        next => is_punct(next, ';') || is_word(next, "else"),
    }
}

/// `::<…>`
pub(super) fn turbofish(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
    if cursor.signs("::") && is_punct(cursor.after(2), '<') {
        cursor.copy(2, out);
        angles(cursor, out);
    }
}

/// `<…>`
pub(super) fn angles(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
    let mut depth = Angles::default();
    while let Some(tree) = cursor.peek() {
        depth.pass(tree);
        cursor.copy(1, out);
        if !depth.open() {
            return;
        }
    }
}

/// The type in `x as Type`.
pub(super) fn type_after_as(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
    // `&'a mut T`, `*const T`
    while cursor.is('&')
        || cursor.is('*')
        || cursor.is('\'')
        || cursor.is_word("mut")
        || cursor.is_word("const")
        || cursor.is_word("dyn")
    {
        let lifetime = cursor.is('\'');
        cursor.copy(if lifetime { 2 } else { 1 }, out);
    }
    if cursor.is_word("fn") || cursor.is_word("unsafe") || cursor.is_word("extern") {
        while cursor.peek().is_some() && group_of(cursor.peek(), Delimiter::Parenthesis).is_none() {
            cursor.copy(1, out);
        }
        cursor.copy(1, out);
        if cursor.signs("->") {
            cursor.copy(2, out);
            type_after_as(cursor, out);
        }
        return;
    }
    if matches!(cursor.peek(), Some(TokenTree::Group(_))) || cursor.is('!') {
        return cursor.copy(1, out);
    }
    if cursor.is('<') {
        angles(cursor, out);
    }
    while cursor.signs("::") || matches!(cursor.peek(), Some(TokenTree::Ident(_))) {
        let step = if cursor.signs("::") { 2 } else { 1 };
        cursor.copy(step, out);
        if cursor.is('<') {
            angles(cursor, out);
        }
        if step == 1 && !cursor.signs("::") {
            return;
        }
    }
}
