//! The statements of a block, and the lists between parentheses, brackets and braces.

use super::Mode;
use super::cursor::Cursor;
use super::expression::{Options, Prefix};
use super::place::Place;
use super::sight::{self, Names, Sight};
use crate::fragments;
use crate::items::{Angles, item_len};
use crate::site::Context;
use crate::tokens::{delimited, is_brace, is_punct, is_word, regroup, text_of};
use proc_macro2::{Delimiter, Group, TokenTree};
use std::cell::RefCell;

/// The walk through one body.
pub(super) struct Walk<'a> {
    pub(super) context: &'a Context,
    pub(super) mode: Mode,
    sight: Sight,
    /// What the closures and futures around this place bind themselves, of those that borrow the rest.
    borrowing: RefCell<Vec<Names>>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(context: &'a Context, mode: Mode, sight: Sight) -> Self {
        Self {
            context,
            mode,
            sight,
            borrowing: RefCell::default(),
        }
    }
}

impl Walk<'_> {
    /// Walks a closure or a future, which these trees are, that is not `move`.
    pub(super) fn borrowing<R>(&self, trees: &[TokenTree], walk: impl FnOnce(&Self) -> R) -> R {
        self.borrowing.borrow_mut().push(sight::of_trees(trees));
        let walked = walk(self);
        self.borrowing.borrow_mut().pop();
        walked
    }

    /// Whether a place can be looked at without a change to what the program borrows.
    ///
    /// A closure captures what is behind a reference, and may then outlive the variable; a look at the variable itself
    /// would let it borrow that. Where the program says `&` itself, and behind `self`, both borrow the same; so do fields
    /// behind a reference, and the tensor behind one ([`Self::behind`]).
    pub(super) fn sees(&self, place: &Place) -> bool {
        let Some(root) = place.root() else {
            return false;
        };
        if root == "self" {
            return place.is_operand();
        }
        let field = place.trees.len() > 1 && self.sight.references.contains(&root);
        self.sight.bound.contains(&root)
            && (self.owns(&root) || place.lent || field || self.behind(place))
    }

    /// Whether the look goes to what the variable refers to: it is a reference to a tensor, from outside of a closure.
    pub(super) fn behind(&self, place: &Place) -> bool {
        let is_tensor = |root: &String| self.sight.tensors.contains(root) && !self.owns(root);
        !place.lent && place.trees.len() == 1 && place.root().as_ref().is_some_and(is_tensor)
    }

    /// Whether this place's own function or closure binds the name, or takes what it names.
    fn owns(&self, root: &str) -> bool {
        match self.borrowing.borrow().last() {
            Some(own) => own.contains(root),
            None => true,
        }
    }

    /// The statements of a block.
    pub(super) fn block(&self, trees: &[TokenTree]) -> Vec<TokenTree> {
        let trees = &*fragments::settled(trees);
        let mut out = Vec::with_capacity(trees.len());
        let mut cursor = Cursor { trees, at: 0 };
        while let Some(tree) = cursor.peek() {
            if let Some(len) = item_len(cursor.rest()) {
                cursor.copy(len, &mut out);
            } else if is_punct(Some(tree), '#') {
                attribute(&mut cursor, &mut out);
            } else if is_word(Some(tree), "let") {
                self.local(&mut cursor, &mut out);
            } else {
                let before = cursor.at;
                let parsed = self.expression(&mut cursor, 0, Options::statement());
                // A value that nobody uses is no result.
                let unused = is_punct(cursor.peek(), ';');
                match parsed.plain.filter(|_| unused) {
                    Some(plain) => out.extend(plain),
                    None => out.extend(parsed.trees),
                }
                if cursor.at == before {
                    cursor.copy(1, &mut out);
                }
            }
        }
        out
    }

    /// `let pattern: Type = expression else { … };`
    fn local(&self, cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
        let start = cursor.at;
        cursor.binding(out);
        let name = cursor.trees.get(start + 1..cursor.at).and_then(bound_name);
        if cursor.peek().is_none() || is_punct(cursor.peek(), ';') {
            return;
        }
        let options = Options {
            name: name.as_deref(),
            ..Options::default()
        };
        out.extend(self.expression(cursor, 0, options).trees);
        if is_word(cursor.peek(), "else") {
            cursor.copy(1, out);
            self.braces(cursor, out);
        }
    }

    /// A block in braces at the cursor.
    pub(super) fn braces(&self, cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
        if let Some(TokenTree::Group(group)) = cursor.peek()
            && group.delimiter() == Delimiter::Brace
        {
            out.push(self.inside(group, |trees| self.block(trees)));
            cursor.at += 1;
        }
    }

    /// The group with its content rewritten.
    pub(super) fn inside(
        &self,
        group: &Group,
        rewrite: impl FnOnce(&[TokenTree]) -> Vec<TokenTree>,
    ) -> TokenTree {
        let trees: Vec<TokenTree> = group.stream().into_iter().collect();
        let inner = regroup(rewrite(&trees));
        delimited(group.delimiter(), inner, group.span()).into()
    }

    /// Expressions between commas: arguments, a tuple, an array, the fields of a struct. `prefix`: what stands before
    /// the parentheses reaches what is in them, and so does the name that they are bound to.
    pub(super) fn list(
        &self,
        trees: &[TokenTree],
        prefix: Prefix,
        name: Option<&str>,
    ) -> Vec<TokenTree> {
        let mut out = Vec::with_capacity(trees.len());
        let mut cursor = Cursor { trees, at: 0 };
        while let Some(tree) = cursor.peek() {
            if is_punct(Some(tree), '#') {
                attribute(&mut cursor, &mut out);
                continue;
            }
            if is_punct(Some(tree), ';') {
                // The length of `[x; N]` is a constant.
                cursor.copy(trees.len(), &mut out);
                break;
            }
            let options = Options {
                prefix,
                name,
                ..Options::default()
            };
            let before = cursor.at;
            out.extend(self.expression(&mut cursor, 0, options).trees);
            if cursor.at == before {
                cursor.copy(1, &mut out);
            }
        }
        out
    }

    /// The arms of a `match`: patterns and guards stay as they are.
    pub(super) fn arms(&self, trees: &[TokenTree]) -> Vec<TokenTree> {
        let mut out = Vec::with_capacity(trees.len());
        let mut cursor = Cursor { trees, at: 0 };
        while cursor.peek().is_some() {
            while cursor.peek().is_some() && !cursor.arrow() {
                cursor.copy(1, &mut out);
            }
            cursor.copy(2, &mut out);
            // After a block no comma is needed, and what follows is the next pattern: as between statements.
            if is_brace(cursor.peek()) {
                self.braces(&mut cursor, &mut out);
            } else {
                let before = cursor.at;
                out.extend(self.expression(&mut cursor, 0, Options::statement()).trees);
                if cursor.at == before {
                    cursor.copy(1, &mut out);
                }
            }
            if is_punct(cursor.peek(), ',') {
                cursor.copy(1, &mut out);
            }
        }
        out
    }
}

/// `#[…]` or `#![…]`
fn attribute(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
    cursor.copy(1, out);
    if is_punct(cursor.peek(), '!') {
        cursor.copy(1, out);
    }
    if matches!(cursor.peek(), Some(TokenTree::Group(_))) {
        cursor.copy(1, out);
    }
}

/// The name that a pattern binds, if it is nothing but a name.
fn bound_name(trees: &[TokenTree]) -> Option<String> {
    let trees = match trees {
        [TokenTree::Ident(word), rest @ ..] if word == "mut" => rest,
        all => all,
    };
    match trees {
        [TokenTree::Ident(name), end, ..]
            if is_punct(Some(end), ':') || is_punct(Some(end), '=') =>
        {
            Some(text_of(name))
        }
        _ => None,
    }
}

impl Cursor<'_> {
    /// Copies `let`, its pattern and type, and the `=`.
    pub(super) fn binding(&mut self, out: &mut Vec<TokenTree>) {
        let mut angles = Angles::default();
        while let Some(tree) = self.peek() {
            if is_punct(Some(tree), ';') {
                return;
            }
            let ends = is_punct(Some(tree), '=') && !angles.open() && self.assigns();
            angles.pass(tree);
            self.copy(1, out);
            if ends {
                return;
            }
        }
    }

    /// Whether the `=` here stands alone: no part of `==`, `=>`, `..=`.
    fn assigns(&self) -> bool {
        let joint = |tree: Option<&TokenTree>| matches!(tree, Some(TokenTree::Punct(punct)) if punct.spacing() == proc_macro2::Spacing::Joint);
        let before = self.at.checked_sub(1).and_then(|at| self.trees.get(at));
        let range = is_punct(before, '.') && joint(before);
        let next = self.trees.get(self.at + 1);
        let longer = joint(self.peek()) && (is_punct(next, '=') || is_punct(next, '>'));
        !range && !longer
    }

    /// Whether `=>` is here.
    pub(super) fn arrow(&self) -> bool {
        is_punct(self.peek(), '=') && is_punct(self.trees.get(self.at + 1), '>')
    }
}
