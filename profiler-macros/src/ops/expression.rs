//! Expressions: as much of their grammar as is needed to find where a call begins and ends.

use super::place::Place;
use super::walk::Walk;
use super::write::{Operation, arguments, awaits, has_closure};
use crate::items::Angles;
use crate::tokens::{group_of, is_brace, is_punct, is_word};
use proc_macro2::{Delimiter, Group, Ident, Spacing, Span, TokenTree};

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

    fn after(&self, count: usize) -> Option<&'t TokenTree> {
        self.trees.get(self.at + count)
    }

    fn is(&self, sign: char) -> bool {
        is_punct(self.peek(), sign)
    }

    fn is_word(&self, word: &str) -> bool {
        is_word(self.peek(), word)
    }

    /// Whether these signs are here, each joined to the next.
    fn signs(&self, signs: &str) -> bool {
        let count = signs.chars().count();
        signs.chars().enumerate().all(|(at, sign)| {
            matches!(self.after(at), Some(TokenTree::Punct(punct))
                if punct.as_char() == sign && (at + 1 == count || punct.spacing() == Spacing::Joint))
        })
    }

    /// Whether an expression ends here.
    fn is_over(&self) -> bool {
        match self.peek() {
            None => true,
            Some(TokenTree::Punct(punct)) => matches!(punct.as_char(), ';' | ',') || self.arrow(),
            Some(TokenTree::Ident(word)) => word == "else" || word == "in",
            Some(_) => false,
        }
    }
}

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
}

impl Options<'_> {
    pub(super) fn statement() -> Self {
        Self {
            statement: true,
            ..Self::default()
        }
    }

    /// For a part of the expression.
    fn part(self) -> Self {
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
    place: Option<Place>,
    /// A number, a text: no tensor.
    literal: bool,
    /// It ends with the braces of a block.
    block: bool,
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
const ABOVE_AND: u8 = 5;

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
            let names = called.filter(|_| !(left.literal && right.literal));
            left = match names {
                Some(name) => {
                    let operands = [left.place, right.place].into_iter().flatten().collect();
                    let whole = cursor.at == cursor.trees.len() || cursor.is_over();
                    let bound = options.name.filter(|_| whole && least == 0);
                    self.operation(trees, span, name, bound.unwrap_or(name), operands, options)
                }
                None => Parsed {
                    trees,
                    ..Parsed::default()
                },
            };
        }
        left
    }

    fn operation(
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
    fn unary(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
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
                    place: operand.place.filter(|_| shared),
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

    /// An operand and what is attached to it: fields, calls, indices, `?`.
    fn postfix(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
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
    fn member(&self, cursor: &mut Cursor<'_>, receiver: Parsed, options: Options<'_>) -> Parsed {
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
        let (span, name) = (name.span(), name.to_string());
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

    fn label(
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
    fn call(
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

    /// What an operand begins with.
    fn primary(&self, cursor: &mut Cursor<'_>, options: Options<'_>) -> Parsed {
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
                Parsed {
                    trees,
                    block,
                    ..Parsed::default()
                }
            }
            Some(TokenTree::Punct(sign)) => match sign.as_char() {
                '|' => self.closure(cursor),
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
    fn word(&self, cursor: &mut Cursor<'_>, word: &str, options: Options<'_>) -> Parsed {
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
                let rest = self.primary(cursor, options);
                trees.extend(rest.trees);
                block = rest.block;
            }
            "return" | "break" | "continue" | "yield" => {
                cursor.copy(1, &mut trees);
                if cursor.is('\'') {
                    cursor.copy(2, &mut trees);
                }
                if !cursor.is_over() && !(options.no_struct && is_brace(cursor.peek())) {
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
    fn path(
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
        if let (Some(group), false) = (group_of(cursor.peek(), Delimiter::Brace), options.no_struct)
            && begins_type(&trees)
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
        Parsed {
            trees,
            place,
            ..Parsed::default()
        }
    }

    /// `|pattern: Type| -> Type { … }`
    fn closure(&self, cursor: &mut Cursor<'_>) -> Parsed {
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

/// Whether nothing but `?` follows in the statement.
fn is_last(cursor: &Cursor<'_>) -> bool {
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

/// Methods that give parts, copies and contents of what is there already.
fn is_plain(name: &Ident) -> bool {
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
fn function_name(trees: &[TokenTree]) -> Option<String> {
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
fn begins_type(trees: &[TokenTree]) -> bool {
    let last = trees.iter().rev().find_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word.to_string()),
        _ => None,
    });
    last.is_some_and(|word| word.starts_with(char::is_uppercase))
}

/// `::<…>`
fn turbofish(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
    if cursor.signs("::") && is_punct(cursor.after(2), '<') {
        cursor.copy(2, out);
        angles(cursor, out);
    }
}

/// `<…>`
fn angles(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
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
fn type_after_as(cursor: &mut Cursor<'_>, out: &mut Vec<TokenTree>) {
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
