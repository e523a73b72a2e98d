//! What is attached to an operand: fields, calls, indices, `?`.

use super::cursor::{Cursor, is_last, turbofish};
use super::expression::{Options, Parsed, Prefix};
use super::names::{function_name, is_plain};
use super::place::Place;
use super::walk::Walk;
use super::write::{arguments, has_closure, stand_at};
use crate::tokens::{group_of, text_of};
use proc_macro2::{Delimiter, Group, Span, TokenTree};

impl Walk<'_> {
    /// An operand and what is attached to it: fields, calls, indices, `?`.
    pub(super) fn postfix(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
        let begun = cursor.at;
        let mut so_far = self.primary(cursor, options);
        // A statement that is a block goes on only with these.
        if so_far.block && options.statement && !(cursor.is('.') || cursor.is('?')) {
            return so_far;
        }
        if so_far.trees.is_empty() {
            return so_far;
        }
        loop {
            so_far = match cursor.peek() {
                Some(TokenTree::Punct(sign)) if sign.as_char() == '?' => {
                    if so_far.plain.is_some()
                        && let Some(operand) = cursor.trees.get(begun..cursor.at)
                    {
                        stand_at(&mut so_far.trees, operand);
                    }
                    cursor.copy(1, &mut so_far.trees);
                    Parsed {
                        trees: so_far.trees,
                        ..Parsed::default()
                    }
                }
                Some(TokenTree::Punct(sign)) if sign.as_char() == '.' && !cursor.signs("..") => {
                    self.member(cursor, so_far, options)
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
                    self.call(cursor, group, so_far, options)
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
                    let index = self.inside(group, |trees| self.list(trees, Prefix::Nothing, None));
                    cursor.at += 1;
                    so_far.trees.push(index);
                    Parsed {
                        trees: so_far.trees,
                        ..Parsed::default()
                    }
                }
                _ => return so_far,
            };
        }
    }

    /// `.field`, `.await`, `.method(…)`
    pub(super) fn member(
        &self,
        cursor: &mut Cursor<'_>,
        receiver: Parsed,
        options: Options<'_>,
    ) -> Parsed {
        let mut trees = receiver.trees;
        let Some(TokenTree::Ident(name)) = cursor.after(1) else {
            // `.0`
            let place = cursor
                .rest()
                .get(..2)
                .and_then(|field| Some(receiver.place?.field(field)));
            cursor.copy(2, &mut trees);
            return Parsed {
                trees,
                place,
                ..Parsed::default()
            };
        };
        let mut ahead = Cursor {
            trees: cursor.trees,
            at: cursor.at + 2,
        };
        let mut between = Vec::new();
        turbofish(&mut ahead, &mut between);
        let Some(group) = group_of(ahead.peek(), Delimiter::Parenthesis) else {
            let place = receiver
                .place
                .filter(|_| name != "await")
                .and_then(|place| Some(place.field(cursor.rest().get(..2)?)));
            cursor.copy(2, &mut trees);
            return Parsed {
                trees,
                place,
                ..Parsed::default()
            };
        };
        cursor.copy(2, &mut trees);
        trees.extend(between);
        cursor.at = ahead.at + 1;
        trees.push(self.inside(group, |trees| self.list(trees, Prefix::Nothing, None)));
        let arguments = arguments(group);
        if has_closure(&arguments) || is_plain(name) {
            return Parsed {
                trees,
                ..Parsed::default()
            };
        }
        let mut operands: Vec<Place> = receiver.place.iter().cloned().collect();
        operands.extend(
            arguments
                .iter()
                .filter_map(|argument| Place::argument(argument)),
        );
        let (span, name) = (name.span(), text_of(name));
        // `?` keeps what stands before the call away from it.
        let options = Options {
            prefix: match cursor.is('?') {
                true => Prefix::Nothing,
                false => options.prefix,
            },
            ..options
        };
        let label = self.label(cursor, &name, receiver.place.as_ref(), &arguments, options);
        self.operation(trees, span, &name, &label, operands, options)
    }

    pub(super) fn label(
        &self,
        cursor: &Cursor<'_>,
        name: &str,
        receiver: Option<&Place>,
        arguments: &[Vec<TokenTree>],
        options: Options<'_>,
    ) -> String {
        let applied = || Place::argument(arguments.first()?).map(|place| place.text());
        match (name, receiver) {
            ("forward" | "forward_t", Some(place)) => return place.text(),
            ("apply" | "apply_t", _) => {
                if let Some(text) = applied() {
                    return text;
                }
            }
            _ => {}
        }
        match (options.name.filter(|_| is_last(cursor)), receiver) {
            (Some(bound), _) => bound.to_owned(),
            (None, Some(place)) if place.is_operand() => format!("{}.{name}", place.text()),
            (None, _) => name.to_owned(),
        }
    }

    /// `path(…)`
    pub(super) fn call(
        &self,
        cursor: &mut Cursor<'_>,
        group: &Group,
        callee: Parsed,
        options: Options<'_>,
    ) -> Parsed {
        let name = function_name(&callee.trees);
        let span = callee
            .trees
            .last()
            .map_or_else(Span::call_site, TokenTree::span);
        let mut trees = callee.trees;
        cursor.at += 1;
        trees.push(self.inside(group, |trees| self.list(trees, Prefix::Nothing, None)));
        let arguments = arguments(group);
        // `?` keeps what stands before the call away from it.
        let prefix = match cursor.is('?') {
            true => Prefix::Nothing,
            false => options.prefix,
        };
        let (Some(name), false, Prefix::Nothing) = (name, has_closure(&arguments), prefix) else {
            return Parsed {
                trees,
                ..Parsed::default()
            };
        };
        let operands = arguments
            .iter()
            .filter_map(|argument| Place::argument(argument))
            .collect();
        let bound = options.name.filter(|_| is_last(cursor));
        let options = Options { prefix, ..options };
        self.operation(
            trees,
            span,
            &name,
            bound.unwrap_or(&name),
            operands,
            options,
        )
    }
}
