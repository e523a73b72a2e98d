//! Which statement begins at a tree, and where it ends.

use crate::tokens::{is_brace, is_punct, is_word};
use crate::types::type_colon;
use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;

/// A statement as far as we need to know it.
pub(crate) struct Statement {
    /// Trees that it takes, its `;` included.
    pub(crate) len: usize,
    pub(crate) form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `let … ;`
    Let,
    /// `for`, `while`, `loop`, whose body is the last of its trees; whether it is the block's tail.
    Loop { tail: bool },
    /// A block, `if` or `match`, without `;`.
    Block { tail: bool },
    /// `a = b;`: where the `=` stands.
    Assignment(usize),
    /// `f(x);`
    Expression,
    /// The value of the block it stands in.
    Tail,
}

impl Statement {
    pub(crate) fn at(trees: &[TokenTree]) -> Option<Self> {
        let mut word_at = 0;
        if is_punct(trees.first(), '\'') {
            // `'label:`
            word_at = 3;
        }
        let word = trees.get(word_at)?;
        let semicolon = trees.iter().position(|tree| is_punct(Some(tree), ';'));
        let is = |text: &str| is_word(Some(word), text);
        if is("let") {
            return Some(Self {
                len: semicolon.map_or(trees.len(), |at| at + 1),
                form: Form::Let,
            });
        }
        if is("loop") || is("while") || is("for") {
            let len = block_like_len(trees)?;
            return Some(Self {
                len,
                form: Form::Loop {
                    tail: trees.len() == len,
                },
            });
        }
        let block_like = if is_brace(Some(word)) || is("unsafe") || is("if") || is("match") {
            Some(block_like_len(trees)?)
        } else {
            block_by_word(trees)
        };
        if let Some(len) = block_like {
            let continues = matches!(trees.get(len), Some(TokenTree::Punct(next)) if matches!(next.as_char(), '.' | '?'));
            if !continues {
                if is_punct(trees.get(len), ';') {
                    return Some(Self {
                        len: len + 1,
                        form: Form::Expression,
                    });
                }
                return Some(Self {
                    len,
                    form: Form::Block {
                        tail: trees.len() == len,
                    },
                });
            }
        }
        let end = semicolon.unwrap_or(trees.len());
        let expression = trees.get(..end)?;
        if expression.is_empty() || ["return", "break", "continue"].iter().any(|jump| is(jump)) {
            return None;
        }
        // `pattern => …` of a match arm, `name: …` of a struct: no statements.
        if is_arm_or_field(expression) {
            return None;
        }
        if semicolon.is_none() {
            return Some(Self {
                len: end,
                form: Form::Tail,
            });
        }
        let form = assignment(expression).map_or(Form::Expression, Form::Assignment);
        Some(Self { len: end + 1, form })
    }
}

/// How many trees `path! { … }` or `const { … }` takes: what follows is another statement, as after a block.
fn block_by_word(trees: &[TokenTree]) -> Option<usize> {
    if is_word(trees.first(), "const") {
        return is_brace(trees.get(1)).then_some(2);
    }
    let path = trees
        .iter()
        .take_while(|tree| matches!(tree, TokenTree::Ident(_)) || is_punct(Some(tree), ':'))
        .count();
    let called = path > 0 && is_punct(trees.get(path), '!') && is_brace(trees.get(path + 1));
    called.then_some(path + 2)
}

fn is_arm_or_field(trees: &[TokenTree]) -> bool {
    let arrow = trees.windows(2).any(|pair| {
        is_punct(pair.first(), '=') && is_joint(pair.first()) && is_punct(pair.get(1), '>')
    });
    let comma = trees.iter().any(|tree| is_punct(Some(tree), ','));
    let field =
        matches!(trees.first(), Some(TokenTree::Ident(_))) && type_colon(trees, 1) == Some(1);
    arrow || field || comma && !trees.iter().any(|tree| is_punct(Some(tree), '<'))
}

pub(crate) fn is_joint(tree: Option<&TokenTree>) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.spacing() == proc_macro2::Spacing::Joint)
}

/// Where the `=` of an assignment stands, `+=` and its like included.
fn assignment(trees: &[TokenTree]) -> Option<usize> {
    trees.iter().enumerate().find_map(|(at, tree)| {
        if !is_punct(Some(tree), '=') {
            return None;
        }
        let next = is_joint(Some(tree)) && matches!(trees.get(at + 1), Some(TokenTree::Punct(next)) if matches!(next.as_char(), '=' | '>'));
        let before = at.checked_sub(1).and_then(|before| trees.get(before)).filter(|before| is_joint(Some(before)));
        let compares = ['=', '!', '.'].iter().any(|sign| is_punct(before, *sign));
        let two = at.checked_sub(2).and_then(|before| trees.get(before));
        let shifts = ['<', '>'].iter().any(|sign| is_punct(before, *sign) && is_punct(two, *sign));
        let ordered = !shifts && (is_punct(before, '<') || is_punct(before, '>'));
        (!next && !compares && !ordered).then_some(at)
    })
}

/// How many trees the block-like expression at the head of `trees` takes.
fn block_like_len(trees: &[TokenTree]) -> Option<usize> {
    let total = trees.len();
    let parser = |input: syn::parse::ParseStream<'_>| {
        input.call(block_like)?;
        let rest: TokenStream = input.parse()?;
        Ok(total - rest.into_iter().count())
    };
    let parsed = parser.parse2(trees.iter().cloned().collect()).ok();
    // What syn does not know, and what an editor sees half typed, ends at its first braces.
    parsed.or_else(|| {
        trees
            .iter()
            .position(|tree| is_brace(Some(tree)))
            .map(|at| at + 1)
    })
}

fn block_like(input: syn::parse::ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    let labelled = ahead.peek(syn::Lifetime);
    if labelled {
        ahead.parse::<syn::Label>()?;
    }
    if ahead.peek(syn::Token![for]) {
        input.parse::<syn::ExprForLoop>().map(drop)
    } else if ahead.peek(syn::Token![while]) {
        input.parse::<syn::ExprWhile>().map(drop)
    } else if ahead.peek(syn::Token![loop]) {
        input.parse::<syn::ExprLoop>().map(drop)
    } else if ahead.peek(syn::Token![if]) {
        input.parse::<syn::ExprIf>().map(drop)
    } else if ahead.peek(syn::Token![match]) {
        input.parse::<syn::ExprMatch>().map(drop)
    } else if ahead.peek(syn::Token![unsafe]) {
        input.parse::<syn::ExprUnsafe>().map(drop)
    } else {
        input.parse::<syn::ExprBlock>().map(drop)
    }
}
