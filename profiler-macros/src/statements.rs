//! Attributes inside a body: on `let`, assignments, calls, blocks and loops.
//!
//! The body is never parsed as a whole. It is walked for attributes of ours; only the streams on the way to one are put
//! together again, everything else is handed on as the opaque groups it came in.

use crate::absorbed;
use crate::args::Kind;
use crate::forms::Statement;
use crate::fragments;
use crate::function::Function;
use crate::items::item_len;
use crate::site::Context;
use crate::tokens::{
    Ours, delimited, group_of, is_brace, is_punct, is_word, outer_attribute, regroup,
};
use crate::valid;
use crate::written::{Sight, expand};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// The walk through one body.
pub(crate) struct Statements<'a> {
    /// None: attributes are only taken away.
    context: Option<(&'a Context, &'a Function)>,
    /// The operation calls of the whole body are observed already.
    pub(crate) has_ops: bool,
    error: Option<syn::Error>,
    /// Whether the function's value tells what became of a measured statement, see [`Self::tells`].
    tells: bool,
    /// How many closures and futures of its own the walk may be in.
    apart: usize,
    /// Whether a measured statement was found that the function's value tells of.
    pub(crate) turns: bool,
    /// The paths of the attributes that were carried out or taken away.
    pub(crate) absorbed: Vec<Vec<TokenTree>>,
}

/// What the walk found.
pub(crate) struct Scan {
    /// The body as text.
    pub(crate) text: String,
    /// The new stream, if it is another one.
    pub(crate) changed: Option<TokenStream>,
    /// Whether `#![…]` opens it.
    pub(crate) inner_attributes: bool,
    /// Whether an item opens it.
    pub(crate) item_first: bool,
}

/// Words that a leading item may begin with.
const ITEM_WORDS: [&str; 16] = [
    "use ",
    "fn ",
    "struct ",
    "enum ",
    "const ",
    "static ",
    "type ",
    "impl",
    "trait ",
    "mod ",
    "pub ",
    "unsafe ",
    "async ",
    "extern ",
    "macro_rules",
    "union ",
];

impl<'a> Statements<'a> {
    /// Expands what it finds.
    pub(crate) fn expanding(context: &'a Context, function: &'a Function) -> Self {
        Self {
            context: Some((context, function)),
            has_ops: false,
            error: None,
            tells: false,
            apart: 0,
            turns: false,
            absorbed: Vec::new(),
        }
    }

    /// The function's value will be seen: an `Err` that leaves a measured statement shows there.
    pub(crate) fn tells(mut self, tells: bool) -> Self {
        self.tells = tells;
        self
    }

    /// Takes our attributes away.
    pub(crate) fn stripping() -> Self {
        Self {
            context: None,
            has_ops: false,
            error: None,
            tells: false,
            apart: 0,
            turns: false,
            absorbed: Vec::new(),
        }
    }

    /// The first thing that was refused.
    pub(crate) fn into_error(self) -> Option<syn::Error> {
        self.error
    }

    /// Looks through a function's body.
    pub(crate) fn body(&mut self, stream: TokenStream) -> Scan {
        // Walking trees costs a message to the compiler for each; its own text of the whole costs one.
        let whole = stream.to_string();
        let text = whole.trim_start();
        let inner_attributes = ["#!", "# !", "//!", "/*!"]
            .iter()
            .any(|start| text.starts_with(start));
        let attributes = text.as_bytes().contains(&b'#');
        let item_first =
            ITEM_WORDS.iter().any(|word| text.starts_with(word)) || text.starts_with('#');
        let changed = attributes
            .then(|| self.statements(stream.into_iter().collect()))
            .flatten()
            .map(regroup);
        Scan {
            text: whole,
            changed,
            inner_attributes,
            item_first,
        }
    }

    /// Walks one level; the new trees where something changed.
    fn statements(&mut self, trees: Vec<TokenTree>) -> Option<Vec<TokenTree>> {
        let trees = fragments::settled(&trees);
        let mut out = Vec::with_capacity(trees.len());
        let mut changed = false;
        // Whether a statement may begin here.
        let mut start = true;
        // Whether this statement may hold a closure or a future, which a jump leaves instead of the function.
        let mut apart = false;
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            let rest = trees.get(at..).unwrap_or_default();
            if start && let Some(len) = item_len(rest) {
                // Its attributes are the compiler's to expand.
                out.extend(rest.iter().take(len).cloned());
                at += len;
                continue;
            }
            if let Some((attributes, len)) = attributes(rest) {
                at += len;
                if let Some((kind, span)) = attributes.conditional {
                    changed = true;
                    self.error
                        .get_or_insert(valid::conditional_on_a_statement(kind, span));
                }
                if attributes.ours.is_empty() {
                    out.extend(attributes.others);
                    continue;
                }
                changed = true;
                apart = false;
                let rest = trees.get(at..).unwrap_or_default();
                let taken = self.annotated(&attributes, start, rest, &mut out);
                at += taken;
                start = true;
                continue;
            }
            if is_macro_call(rest) {
                out.extend(rest.iter().take(3).cloned());
                at += 3;
                start = is_brace(rest.get(2));
                continue;
            }
            match tree {
                TokenTree::Group(group) => {
                    self.apart += usize::from(apart);
                    let inner = self.statements(group.stream().into_iter().collect());
                    self.apart -= usize::from(apart);
                    changed |= inner.is_some();
                    out.push(match inner {
                        Some(inner) => {
                            delimited(group.delimiter(), regroup(inner), group.span()).into()
                        }
                        None => tree.clone(),
                    });
                    start = group.delimiter() == Delimiter::Brace;
                }
                other => {
                    out.push(other.clone());
                    start = is_punct(Some(other), ';');
                    apart = !start
                        && (apart || is_punct(Some(other), '|') || is_word(Some(other), "async"));
                }
            }
            at += 1;
        }
        changed.then_some(out)
    }

    /// Rewrites the statement at the head of `rest`; how many trees it takes.
    fn annotated(
        &mut self,
        attributes: &Attributes,
        start: bool,
        rest: &[TokenTree],
        out: &mut Vec<TokenTree>,
    ) -> usize {
        let paths = absorbed::paths(&attributes.ours);
        self.absorbed.extend(paths.map(<[TokenTree]>::to_vec));
        let Some(statement) = Statement::at(rest).filter(|_| start) else {
            self.refuse_place(attributes);
            out.extend(attributes.others.iter().cloned());
            return 0;
        };
        let trees: Vec<TokenTree> = rest.iter().take(statement.len).cloned().collect();
        let trees = self.statements(trees.clone()).unwrap_or(trees);
        let seen = self.tells && self.apart == 0;
        let expansion = match self.context {
            Some((context, function)) => {
                let apart = self.apart > 0;
                let sight = (!self.has_ops).then_some(Sight { function, apart });
                let measured = |ours: &Ours| ours.kind == Kind::Measured;
                self.turns |= seen && attributes.ours.iter().any(measured);
                expand(context, attributes, &statement, &trees, seen, sight)
            }
            None => Ok(None),
        };
        match expansion {
            Ok(Some(tokens)) => out.extend(tokens),
            Ok(None) => {
                out.extend(attributes.others.iter().cloned());
                out.extend(trees);
            }
            Err(error) => {
                self.error.get_or_insert(error);
                out.extend(trees);
            }
        }
        statement.len
    }

    fn refuse_place(&mut self, attributes: &Attributes) {
        if let Some(first) = attributes.ours.first() {
            self.error
                .get_or_insert(valid::not_a_statement(first.kind, first.span));
        }
    }
}

/// The outer attributes before a statement.
#[derive(Clone)]
pub(crate) struct Attributes {
    pub(crate) ours: Vec<Ours>,
    pub(crate) others: Vec<TokenTree>,
    /// One of ours in a `cfg_attr`, which the compiler expands only where we cannot stand.
    conditional: Option<(Kind, Span)>,
}

/// Reads the outer attributes at the head of `trees`, and how many trees they take.
fn attributes(trees: &[TokenTree]) -> Option<(Attributes, usize)> {
    let mut found = Attributes {
        ours: Vec::new(),
        others: Vec::new(),
        conditional: None,
    };
    let mut at = 0;
    while let Some(outer) = trees.get(at..).and_then(outer_attribute) {
        let conditional = conditional(trees.get(at + 1));
        match outer.ours {
            Some(ours) => found.ours.push(ours),
            None if conditional.is_some() => found.conditional = conditional,
            None => found
                .others
                .extend(trees.iter().skip(at).take(outer.len).cloned()),
        }
        at += outer.len;
    }
    (at > 0).then_some((found, at))
}

/// What of ours a `[cfg_attr(…)]` holds.
fn conditional(attribute: Option<&TokenTree>) -> Option<(Kind, Span)> {
    let inside: Vec<TokenTree> = group_of(attribute, Delimiter::Bracket)?
        .stream()
        .into_iter()
        .collect();
    if !is_word(inside.first(), "cfg_attr") {
        return None;
    }
    let list = group_of(inside.get(1), Delimiter::Parenthesis)?.stream();
    list.into_iter().find_map(|tree| match tree {
        TokenTree::Ident(word) => Some((Kind::named(&word.to_string())?, word.span())),
        _ => None,
    })
}

/// `name!(…)`: what stands in its parentheses is the macro's.
fn is_macro_call(trees: &[TokenTree]) -> bool {
    const KEYWORDS: [&str; 12] = [
        "if", "while", "match", "return", "in", "break", "else", "let", "mut", "move", "yield",
        "as",
    ];
    let Some(TokenTree::Ident(word)) = trees.first() else {
        return false;
    };
    is_punct(trees.get(1), '!')
        && matches!(trees.get(2), Some(TokenTree::Group(group)) if group.delimiter() != Delimiter::None)
        && !KEYWORDS.iter().any(|keyword| word == keyword)
}
