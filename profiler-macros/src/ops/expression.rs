//! Expressions: as much of their grammar as is needed to find where a call begins and ends.

use super::cursor::{Cursor, type_after_as};
use super::place::Place;
use super::walk::Walk;
use super::write::{Operation, awaits};
use crate::tokens::{is_brace, is_word};
use proc_macro2::{Span, TokenTree};

/// What stands directly before an operand.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Prefix {
    #[default]
    Nothing,
    /// `&`, `-` or `!`.
    Sign,
}

/// How an expression is read.
#[derive(Clone, Copy, Default)]
pub(super) struct Options<'n> {
    /// Braces after a path are not a struct's: a condition.
    pub(super) no_struct: bool,
    /// It stands where a statement begins.
    pub(super) statement: bool,
    pub(super) prefix: Prefix,
    /// The variable that it is bound to.
    pub(super) name: Option<&'n str>,
    /// `move` stands before it.
    pub(super) moves: bool,
}

impl Options<'_> {
    pub(super) fn statement() -> Self {
        Self {
            statement: true,
            ..Self::default()
        }
    }

    /// For a part of the expression.
    pub(super) fn part(self) -> Self {
        Self {
            no_struct: self.no_struct,
            ..Self::default()
        }
    }
}

/// An expression as it is written anew.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) trees: Vec<TokenTree>,
    /// The same with its outermost call as it was, where it is nothing but that call.
    pub(super) plain: Option<Vec<TokenTree>>,
    /// The place that it is.
    pub(super) place: Option<Place>,
    /// A number, a text, a constant: no tensor.
    pub(super) literal: bool,
    /// It ends with the braces of a block.
    pub(super) block: bool,
}

/// Binary operators, longest first: how tightly each binds, and what it is called where tensors have it.
const OPERATORS: [(&str, u8, Option<&str>); 33] = [
    ("<<=", 1, None),
    (">>=", 1, None),
    ("..=", 2, None),
    ("...", 2, None),
    ("+=", 1, None),
    ("-=", 1, None),
    ("*=", 1, None),
    ("/=", 1, None),
    ("%=", 1, None),
    ("^=", 1, None),
    ("&=", 1, None),
    ("|=", 1, None),
    ("..", 2, None),
    ("||", 3, None),
    ("&&", 4, None),
    ("==", 5, None),
    ("!=", 5, None),
    ("<=", 5, None),
    (">=", 5, None),
    ("<<", 9, None),
    (">>", 9, None),
    ("=", 1, None),
    ("<", 5, None),
    (">", 5, None),
    ("|", 6, None),
    ("^", 7, None),
    ("&", 8, None),
    ("+", 10, Some("add")),
    ("-", 10, Some("sub")),
    ("*", 11, Some("mul")),
    ("/", 11, Some("div")),
    ("%", 11, None),
    ("as", 12, None),
];

/// Binds more loosely than `&&`: what may follow a `let` in a condition.
pub(super) const ABOVE_AND: u8 = 5;

impl Walk<'_> {
    /// The expression at the cursor, as far as operators bind at least as tightly as `least`.
    pub(super) fn expression(
        &self,
        cursor: &mut Cursor<'_>,
        least: u8,
        options: Options<'_>,
    ) -> Parsed {
        let start = cursor.at;
        let mut left = if cursor.signs("..") {
            Parsed::default()
        } else {
            self.unary(cursor, options)
        };
        if left.block && options.statement {
            return left;
        }
        while let Some((sign, binds, called)) =
            operator(cursor).filter(|(_, binds, _)| *binds >= least)
        {
            if cursor.at == start && !sign.starts_with("..") {
                break;
            }
            let mut trees = std::mem::take(&mut left.trees);
            if sign == "as" {
                cursor.copy(1, &mut trees);
                type_after_as(cursor, &mut trees);
                left = Parsed {
                    trees,
                    literal: left.literal,
                    ..Parsed::default()
                };
                continue;
            }
            let span = cursor.peek().map_or_else(Span::call_site, TokenTree::span);
            cursor.copy(sign.len(), &mut trees);
            // Assignments bind from the right, everything else from the left.
            let tighter = if binds == 1 { 1 } else { binds + 1 };
            let open_range = sign.starts_with("..")
                && (cursor.is_over() || options.no_struct && is_brace(cursor.peek()));
            let right = match open_range {
                true => Parsed::default(),
                false => self.expression(cursor, tighter, options.part()),
            };
            trees.extend(right.trees);
            let literal = left.literal && right.literal;
            let names = called.filter(|_| !literal);
            left = match names {
                Some(name) => {
                    let operands = [left.place, right.place].into_iter().flatten().collect();
                    let whole = cursor.at == cursor.trees.len() || cursor.is_over();
                    let bound = options.name.filter(|_| whole && least == 0);
                    self.operation(trees, span, name, bound.unwrap_or(name), operands, options)
                }
                None => Parsed {
                    trees,
                    literal,
                    ..Parsed::default()
                },
            };
        }
        left
    }

    pub(super) fn operation(
        &self,
        call: Vec<TokenTree>,
        span: Span,
        name: &str,
        label: &str,
        operands: Vec<Place>,
        options: Options<'_>,
    ) -> Parsed {
        if awaits(&call) {
            return Parsed {
                trees: call,
                ..Parsed::default()
            };
        }
        let operation = Operation {
            span,
            name: name.to_owned(),
            label: label.to_owned(),
            operands,
            prefixed: options.prefix == Prefix::Sign,
            call: &call,
        };
        Parsed {
            trees: self.observed(&operation),
            plain: Some(call),
            ..Parsed::default()
        }
    }

    /// Signs before an operand, and the operand.
    pub(super) fn unary(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
        let Some(TokenTree::Punct(sign)) = cursor.peek() else {
            return self.postfix(cursor, options);
        };
        let mut trees = Vec::new();
        let under = |prefix| Options {
            prefix,
            ..options.part()
        };
        match sign.as_char() {
            '&' => {
                cursor.copy(1, &mut trees);
                let raw = cursor.is_word("raw")
                    && (is_word(cursor.after(1), "const") || is_word(cursor.after(1), "mut"));
                let shared = !cursor.is_word("mut") && !raw;
                cursor.copy(if raw { 2 } else { usize::from(!shared) }, &mut trees);
                let operand = self.unary(cursor, under(Prefix::Sign));
                trees.extend(operand.trees);
                Parsed {
                    trees,
                    place: operand.place.filter(|_| shared).map(Place::lent),
                    ..Parsed::default()
                }
            }
            '*' => {
                cursor.copy(1, &mut trees);
                trees.extend(self.unary(cursor, under(Prefix::Nothing)).trees);
                Parsed {
                    trees,
                    ..Parsed::default()
                }
            }
            '!' => {
                cursor.copy(1, &mut trees);
                trees.extend(self.unary(cursor, under(Prefix::Sign)).trees);
                Parsed {
                    trees,
                    ..Parsed::default()
                }
            }
            '-' => {
                // candle has no negation by sign.
                cursor.copy(1, &mut trees);
                let operand = self.unary(cursor, under(Prefix::Sign));
                trees.extend(operand.trees);
                Parsed {
                    trees,
                    literal: operand.literal,
                    ..Parsed::default()
                }
            }
            _ => self.postfix(cursor, options),
        }
    }
}

/// The operator at the cursor.
fn operator(cursor: &Cursor<'_>) -> Option<(&'static str, u8, Option<&'static str>)> {
    if cursor.arrow() && cursor.signs("=>") {
        return None;
    }
    OPERATORS.into_iter().find(|(sign, ..)| match *sign {
        "as" => cursor.is_word("as"),
        sign => cursor.signs(sign),
    })
}
