//! Small questions about tokens, and the one dangerous act: putting a stream together again.

use crate::args::Kind;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use syn::Expr;

pub(crate) fn is_punct(tree: Option<&TokenTree>, wanted: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

pub(crate) fn is_word(tree: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(tree, Some(TokenTree::Ident(word)) if word == wanted)
}

/// An identifier as a word, without its `r#`.
pub(crate) fn text_of(name: &Ident) -> String {
    let text = name.to_string();
    match text.strip_prefix("r#") {
        Some(plain) => plain.to_owned(),
        None => text,
    }
}

/// The text of a pattern or a place, its identifiers as words.
pub(crate) fn text_of_all(trees: &[TokenTree]) -> String {
    fn plain(tree: &TokenTree) -> TokenTree {
        match tree {
            TokenTree::Ident(word) if word.to_string().starts_with("r#") => {
                Ident::new(&text_of(word), word.span()).into()
            }
            TokenTree::Group(group) => {
                let inner = group.stream().into_iter().map(|tree| plain(&tree));
                delimited(group.delimiter(), inner.collect(), group.span()).into()
            }
            other => other.clone(),
        }
    }
    let stream: TokenStream = trees.iter().cloned().collect();
    let text = stream.to_string();
    match text.contains("r#") {
        true => trees.iter().map(plain).collect::<TokenStream>().to_string(),
        false => text,
    }
}

pub(crate) fn group_of(tree: Option<&TokenTree>, delimiter: Delimiter) -> Option<&Group> {
    match tree {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

pub(crate) fn is_brace(tree: Option<&TokenTree>) -> bool {
    group_of(tree, Delimiter::Brace).is_some()
}

/// A group of braces with the place of `model`: lints, errors and the edition's drop rules hang on it.
pub(crate) fn braces(stream: TokenStream, span: Span) -> Group {
    delimited(Delimiter::Brace, stream, span)
}

pub(crate) fn delimited(delimiter: Delimiter, stream: TokenStream, span: Span) -> Group {
    let mut group = Group::new(delimiter, stream);
    group.set_span(span);
    group
}

/// The brace group in `tree`, out of the invisible groups that `macro_rules` leaves around a block.
pub(crate) fn block_of(tree: &TokenTree) -> Option<Group> {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.clone()),
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut inner = group.stream().into_iter();
            let first = inner.next()?;
            inner.next().is_none().then(|| block_of(&first)).flatten()
        }
        _ => None,
    }
}

/// The content of `stream`, out of invisible groups that hold the whole of it.
pub(crate) fn outermost(stream: TokenStream) -> Vec<TokenTree> {
    let mut trees: Vec<TokenTree> = stream.into_iter().collect();
    while let [TokenTree::Group(group)] = trees.as_slice() {
        if group.delimiter() != Delimiter::None {
            break;
        }
        trees = group.stream().into_iter().collect();
    }
    trees
}

/// One `#[…]` among trees: where it stands and, if it is ours, what it says.
pub(crate) struct Outer {
    /// Trees that it takes.
    pub(crate) len: usize,
    pub(crate) ours: Option<Ours>,
}

/// One of our attributes, its parentheses not yet read.
#[derive(Clone)]
pub(crate) struct Ours {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    pub(crate) args: TokenStream,
    /// How the user reaches it: `record_stats`, `candle_profiler::record_stats`.
    pub(crate) path: Vec<TokenTree>,
    /// What is wrong with its shape: `#[measured = 1]`.
    pub(crate) malformed: Option<Span>,
}

/// The outer attribute at the head of `trees`.
pub(crate) fn outer_attribute(trees: &[TokenTree]) -> Option<Outer> {
    if !is_punct(trees.first(), '#') {
        return None;
    }
    let group = group_of(trees.get(1), Delimiter::Bracket)?;
    Some(Outer {
        len: 2,
        ours: ours(group),
    })
}

/// Reads `path::to::name(args)`; the last segment of the path decides.
fn ours(group: &Group) -> Option<Ours> {
    let trees = outermost(group.stream());
    let mut end = 0;
    let mut name: Option<&Ident> = None;
    for tree in &trees {
        match tree {
            TokenTree::Ident(word) => name = Some(word),
            TokenTree::Punct(punct) if punct.as_char() == ':' => {}
            _ => break,
        }
        end += 1;
    }
    let name = name?;
    let kind = Kind::named(&name.to_string())?;
    let (args, malformed) = match trees.get(end..) {
        None | Some([]) => (TokenStream::new(), None),
        Some([TokenTree::Group(group)]) if group.delimiter() == Delimiter::Parenthesis => {
            (group.stream(), None)
        }
        Some([other, ..]) => (TokenStream::new(), Some(other.span())),
    };
    Some(Ours {
        kind,
        span: name.span(),
        args,
        path: trees.iter().take(end).cloned().collect(),
        malformed,
    })
}

/// Puts trees together again so that they mean what they meant.
///
/// `$e` of a `macro_rules` macro arrives in an invisible group. rustc honours it as long as the stream is handed back
/// untouched and ignores it in a stream that a macro put together, which would turn `x * $e` with `1 + 2` into
/// `x * 1 + 2`. Parentheses take the place of the groups that matter.
pub(crate) fn regroup(trees: Vec<TokenTree>) -> TokenStream {
    let mut rebuilt = Vec::with_capacity(trees.len());
    let mut trees = trees.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let tree = match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                let first = matches!(rebuilt.last(), None | Some(TokenTree::Punct(_)))
                    && starts_statement(rebuilt.last());
                let operand =
                    matches!(trees.peek(), Some(TokenTree::Punct(next)) if next.as_char() != ';');
                visible(group, first && !operand)
            }
            other => other,
        };
        rebuilt.push(tree);
    }
    rebuilt.into_iter().collect()
}

fn starts_statement(before: Option<&TokenTree>) -> bool {
    before.is_none() || is_punct(before, ';') || is_brace(before)
}

/// The group, in parentheses where its content would be read differently without any.
///
/// `alone`: it stands where a statement may begin and nothing continues it, so that a block needs none.
fn visible(group: Group, alone: bool) -> TokenTree {
    let stream = group.stream();
    let trees = outermost(stream.clone());
    if parses_alone(&trees) {
        return TokenTree::Group(group);
    }
    let needed = match trees.first() {
        Some(TokenTree::Ident(word)) if word == "dyn" || word == "impl" => {
            syn::parse2::<syn::Type>(stream.clone()).is_ok()
        }
        Some(TokenTree::Ident(word)) if word == "let" => false,
        _ => match syn::parse2::<Expr>(stream.clone()) {
            Ok(Expr::Range(range)) => range.start.is_some() || range.end.is_some(),
            Ok(
                Expr::Path(_)
                | Expr::Lit(_)
                | Expr::MethodCall(_)
                | Expr::Call(_)
                | Expr::Field(_)
                | Expr::Index(_)
                | Expr::Macro(_)
                | Expr::Paren(_)
                | Expr::Tuple(_)
                | Expr::Array(_)
                | Expr::Try(_)
                | Expr::Await(_)
                | Expr::Group(_),
            )
            | Err(_) => false,
            Ok(
                Expr::If(_)
                | Expr::Match(_)
                | Expr::Block(_)
                | Expr::Unsafe(_)
                | Expr::ForLoop(_)
                | Expr::While(_)
                | Expr::Loop(_)
                | Expr::Const(_),
            ) => !alone,
            Ok(_) => true,
        },
    };
    if needed {
        // The inner stream is handed on untouched.
        TokenTree::Group(delimited(
            Delimiter::Parenthesis,
            stream,
            Span::mixed_site(),
        ))
    } else {
        TokenTree::Group(group)
    }
}

/// What no neighbour can pull apart: nothing, or one tree.
fn parses_alone(trees: &[TokenTree]) -> bool {
    trees.len() < 2
}
