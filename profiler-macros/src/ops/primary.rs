//! What an operand begins with.

use super::cursor::{Cursor, angles, is_last};
use super::expression::{ABOVE_AND, Options, Parsed, Prefix};
use super::names::{is_constant, is_in_capitals};
use super::place::Place;
use super::walk::Walk;
use crate::tokens::{group_of, is_brace, is_punct};
use proc_macro2::{Delimiter, TokenTree};

impl Walk<'_> {
    /// What an operand begins with.
    pub(super) fn primary(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
        let mut trees = Vec::new();
        match cursor.peek() {
            Some(TokenTree::Literal(_)) => {
                cursor.copy(1, &mut trees);
                Parsed {
                    trees,
                    literal: true,
                    ..Parsed::default()
                }
            }
            Some(TokenTree::Group(group)) => {
                let (prefix, block) = (options.prefix, group.delimiter() == Delimiter::Brace);
                cursor.at += 1;
                let name = options.name.filter(|_| is_last(cursor));
                trees.push(match group.delimiter() {
                    Delimiter::Brace => self.inside(group, |trees| self.block(trees)),
                    Delimiter::Parenthesis => {
                        self.inside(group, |trees| self.list(trees, prefix, name))
                    }
                    Delimiter::Bracket => {
                        self.inside(group, |trees| self.list(trees, Prefix::Nothing, None))
                    }
                    // A fragment that a macro was given.
                    Delimiter::None => TokenTree::Group(group.clone()),
                });
                let literal = group.delimiter() == Delimiter::Parenthesis
                    && is_constant(&group.stream().into_iter().collect::<Vec<_>>());
                Parsed {
                    trees,
                    block,
                    literal,
                    ..Parsed::default()
                }
            }
            Some(TokenTree::Punct(sign)) => match sign.as_char() {
                '|' => self.closure(cursor, options.moves),
                '\'' => {
                    // A label.
                    cursor.copy(2, &mut trees);
                    if cursor.is(':') {
                        cursor.copy(1, &mut trees);
                    }
                    let labelled = self.primary(cursor, options);
                    trees.extend(labelled.trees);
                    Parsed {
                        trees,
                        block: labelled.block,
                        ..Parsed::default()
                    }
                }
                '<' => {
                    angles(cursor, &mut trees);
                    self.path(cursor, trees, options)
                }
                ':' if cursor.signs("::") => self.path(cursor, trees, options),
                _ => Parsed::default(),
            },
            Some(TokenTree::Ident(word)) => self.word(cursor, &word.to_string(), options),
            None => Parsed::default(),
        }
    }

    /// What a keyword begins, or a path.
    pub(super) fn word(&self, cursor: &mut Cursor<'_>, word: &str, options: Options<'_>) -> Parsed {
        let mut trees = Vec::new();
        let condition = Options {
            no_struct: true,
            ..Options::default()
        };
        let mut block = true;
        match word {
            "if" | "while" => {
                cursor.copy(1, &mut trees);
                trees.extend(self.expression(cursor, 0, condition).trees);
                self.braces(cursor, &mut trees);
                while cursor.is_word("else") && word == "if" {
                    cursor.copy(1, &mut trees);
                    if cursor.is_word("if") {
                        cursor.copy(1, &mut trees);
                        trees.extend(self.expression(cursor, 0, condition).trees);
                    }
                    self.braces(cursor, &mut trees);
                }
            }
            "match" => {
                cursor.copy(1, &mut trees);
                trees.extend(self.expression(cursor, 0, condition).trees);
                if let Some(group) = group_of(cursor.peek(), Delimiter::Brace) {
                    trees.push(self.inside(group, |trees| self.arms(trees)));
                    cursor.at += 1;
                }
            }
            "for" => {
                while cursor.peek().is_some() && !cursor.is_word("in") {
                    cursor.copy(1, &mut trees);
                }
                cursor.copy(1, &mut trees);
                trees.extend(self.expression(cursor, 0, condition).trees);
                self.braces(cursor, &mut trees);
            }
            "loop" | "try" if is_brace(cursor.after(1)) => {
                cursor.copy(1, &mut trees);
                self.braces(cursor, &mut trees);
            }
            "unsafe" => {
                cursor.copy(1, &mut trees);
                self.braces(cursor, &mut trees);
            }
            "const" => {
                // What is computed when the program is built is none of ours.
                cursor.copy(1, &mut trees);
                if is_brace(cursor.peek()) {
                    cursor.copy(1, &mut trees);
                }
            }
            "let" => {
                cursor.binding(&mut trees);
                trees.extend(self.expression(cursor, ABOVE_AND, condition).trees);
                block = false;
            }
            "async" | "move" | "static" => {
                cursor.copy(1, &mut trees);
                let rest = match cursor.peek() {
                    Some(TokenTree::Group(group)) if word == "async" => {
                        let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                        self.borrowing(&inside, |walk| walk.primary(cursor, options))
                    }
                    _ => {
                        let moves = options.moves || word == "move";
                        self.primary(cursor, Options { moves, ..options })
                    }
                };
                trees.extend(rest.trees);
                block = rest.block;
            }
            "return" | "break" | "continue" | "yield" => {
                cursor.copy(1, &mut trees);
                if cursor.is('\'') {
                    cursor.copy(2, &mut trees);
                }
                if !(cursor.is_over() || options.no_struct && is_brace(cursor.peek())) {
                    trees.extend(self.expression(cursor, 0, options.part()).trees);
                }
                block = false;
            }
            _ => return self.path(cursor, trees, options),
        }
        Parsed {
            trees,
            block,
            ..Parsed::default()
        }
    }

    /// `a::b::<T>::c`, a macro call, a struct.
    pub(super) fn path(
        &self,
        cursor: &mut Cursor<'_>,
        mut trees: Vec<TokenTree>,
        options: Options<'_>,
    ) -> Parsed {
        let begun = trees.len();
        loop {
            if cursor.signs("::") {
                if is_punct(cursor.after(2), '<') {
                    cursor.copy(2, &mut trees);
                    angles(cursor, &mut trees);
                    continue;
                }
                cursor.copy(2, &mut trees);
            } else if trees.len() > begun {
                break;
            }
            match cursor.peek() {
                Some(TokenTree::Ident(_)) => cursor.copy(1, &mut trees),
                _ => break,
            }
        }
        if cursor.is('!')
            && matches!(cursor.after(1), Some(TokenTree::Group(group)) if group.delimiter() != Delimiter::None)
        {
            // What stands in a macro's parentheses is the macro's.
            let block = is_brace(cursor.after(1));
            cursor.copy(2, &mut trees);
            return Parsed {
                trees,
                block,
                ..Parsed::default()
            };
        }
        // In a condition, braces are those of the block after it.
        if let (Some(group), false) = (group_of(cursor.peek(), Delimiter::Brace), options.no_struct)
        {
            trees.push(self.inside(group, |trees| self.list(trees, Prefix::Nothing, None)));
            cursor.at += 1;
            return Parsed {
                trees,
                ..Parsed::default()
            };
        }
        let place = match trees.as_slice() {
            [TokenTree::Ident(name)] => Place::of(name),
            _ => None,
        };
        let literal = matches!(trees.last(), Some(TokenTree::Ident(name)) if is_in_capitals(name));
        Parsed {
            trees,
            place,
            literal,
            ..Parsed::default()
        }
    }

    /// `|pattern: Type| -> Type { … }`
    pub(super) fn closure(&self, cursor: &mut Cursor<'_>, moves: bool) -> Parsed {
        let rest = cursor.rest();
        let ends = |tree: &TokenTree| matches!(tree, TokenTree::Punct(sign) if matches!(sign.as_char(), ',' | ';'));
        let parameters = rest
            .iter()
            .skip(1)
            .position(|tree| is_punct(Some(tree), '|'));
        let body = parameters.map_or(rest.len(), |at| at + 2);
        let end = rest
            .iter()
            .skip(body)
            .position(ends)
            .map_or(rest.len(), |at| body + at);
        match moves {
            true => self.closure_body(cursor),
            false => self.borrowing(rest.get(..end).unwrap_or_default(), |walk| {
                walk.closure_body(cursor)
            }),
        }
    }

    fn closure_body(&self, cursor: &mut Cursor<'_>) -> Parsed {
        let mut trees = Vec::new();
        cursor.copy(1, &mut trees);
        while cursor.peek().is_some() && !cursor.is('|') {
            cursor.copy(1, &mut trees);
        }
        cursor.copy(1, &mut trees);
        if cursor.signs("->") {
            while cursor.peek().is_some() && !is_brace(cursor.peek()) {
                cursor.copy(1, &mut trees);
            }
        }
        trees.extend(self.expression(cursor, 0, Options::default()).trees);
        Parsed {
            trees,
            ..Parsed::default()
        }
    }
}
