//! Operands that can be looked at without changing anything: names and fields of names.

use crate::tokens::{is_punct, is_word, text_of};
use proc_macro2::{Ident, TokenTree};

/// A place that is only named: `x`, `self.w`, `a.b.0`.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) trees: Vec<TokenTree>,
    /// The program itself writes `&` before it.
    pub(super) lent: bool,
}

impl Place {
    /// The place that a name is. Constants, functions by path and unused bindings are left alone.
    pub(super) fn of(name: &Ident) -> Option<Self> {
        let text = name.to_string();
        let plain = text.starts_with(|c: char| c.is_lowercase()) || text == "self";
        let word = ["true", "false", "super", "crate"].contains(&text.as_str());
        (plain && !word).then(|| Self {
            trees: vec![name.clone().into()],
            lent: false,
        })
    }

    /// The place as the program lends it: `&x`.
    pub(super) fn lent(self) -> Self {
        Self { lent: true, ..self }
    }

    /// The variable that it is, or is a part of.
    pub(super) fn root(&self) -> Option<String> {
        match self.trees.first() {
            Some(TokenTree::Ident(name)) => Some(text_of(name)),
            _ => None,
        }
    }

    /// A field of it.
    pub(super) fn field(mut self, trees: &[TokenTree]) -> Self {
        self.trees.extend_from_slice(trees);
        self
    }

    /// The operand that an argument is, out of its `&`; nothing where it is no place, or is lent for writing.
    pub(super) fn argument(trees: &[TokenTree]) -> Option<Self> {
        let mut at = 0;
        while is_punct(trees.get(at), '&') {
            at += 1;
        }
        let [TokenTree::Ident(name), rest @ ..] = trees.get(at..)? else {
            return None;
        };
        if is_word(trees.get(at), "mut") || is_word(trees.get(at), "raw") {
            return None;
        }
        let mut place = Self::of(name)?;
        place.lent = at > 0;
        let mut rest = rest;
        while let [dot, field, more @ ..] = rest {
            if !is_punct(Some(dot), '.')
                || !matches!(field, TokenTree::Ident(word) if word != "await")
            {
                return None;
            }
            place = place.field(&[dot.clone(), field.clone()]);
            rest = more;
        }
        rest.is_empty().then_some(place)
    }

    /// Whether it is worth a look: `self` as a whole is no tensor.
    pub(super) fn is_operand(&self) -> bool {
        !matches!(self.trees.as_slice(), [TokenTree::Ident(word)] if word == "self")
    }

    /// How a person would call it: without `self`.
    pub(super) fn text(&self) -> String {
        let word = |tree: &TokenTree| match tree {
            TokenTree::Ident(word) => text_of(word),
            other => other.to_string(),
        };
        let text: String = self.trees.iter().map(word).collect();
        text.strip_prefix("self.").unwrap_or(&text).to_owned()
    }
}
