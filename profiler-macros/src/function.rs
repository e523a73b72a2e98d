//! The annotated function as data: read from its header; the body stays one opaque stream.

use crate::items::Angles;
use crate::tokens::{Ours, block_of, group_of, is_punct, is_word, outer_attribute, outermost};
use crate::types::{is_unit, type_colon};
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// A function item.
pub(crate) struct Function {
    /// All trees before the body, without our attributes.
    pub(crate) header: Vec<TokenTree>,
    /// Where the parentheses of the parameters stand in `header`.
    pub(crate) params_at: usize,
    pub(crate) params: Vec<Param>,
    /// The trees of the declared return type; none for a unit function.
    pub(crate) output: Option<Vec<TokenTree>>,
    pub(crate) name: Ident,
    pub(crate) constness: Option<Span>,
    pub(crate) is_async: bool,
    pub(crate) track_caller: bool,
    /// Whether a receiver or `Self` stands in the signature.
    pub(crate) has_self_type: bool,
    pub(crate) body: Body,
}

/// What follows the signature.
pub(crate) enum Body {
    /// `{ … }`
    Block(Group),
    /// `;`, here.
    Missing(Span),
}

/// One parameter.
pub(crate) struct Param {
    /// Attributes that are not ours, as trees.
    pub(crate) attributes: Vec<TokenTree>,
    /// Ours.
    pub(crate) ours: Vec<Ours>,
    pub(crate) pattern: Pattern,
    /// The pattern's trees.
    pub(crate) pattern_trees: Vec<TokenTree>,
    /// From the colon on.
    pub(crate) ty: Vec<TokenTree>,
}

/// What a parameter binds.
pub(crate) enum Pattern {
    /// The receiver; the token as the user wrote it.
    Receiver(Ident),
    /// `x`, `mut x`.
    Name(Ident),
    /// `_`, `(a, b)`, `ref x`, …
    Other,
    /// `...` of a C variadic.
    Variadic,
}

/// What an attribute stands on.
pub(crate) enum Item {
    Function(Box<Function>, Vec<Ours>),
    /// Something else, without our attributes; the word that names its kind.
    Other(TokenStream, Span, String),
}

/// Reads the item below an attribute.
pub(crate) fn read(item: TokenStream) -> Item {
    let trees = outermost(item);
    let mut stacked = Vec::new();
    let mut header = Vec::with_capacity(trees.len());
    let mut track_caller = false;
    let mut at = 0;
    while let Some(outer) = trees.get(at..).and_then(outer_attribute) {
        match outer.ours {
            Some(ours) => stacked.push(ours),
            None => {
                track_caller |= group_of(trees.get(at + 1), Delimiter::Bracket)
                    .is_some_and(|group| is_track_caller(&outermost(group.stream())));
                header.extend(trees.iter().skip(at).take(outer.len).cloned());
            }
        }
        at += outer.len;
    }
    let rest: Vec<TokenTree> = trees.into_iter().skip(at).collect();
    match signature(&mut header, rest, track_caller) {
        Ok(function) => Item::Function(Box::new(function), stacked),
        Err(rest) => {
            let (span, word) = kind_word(&rest);
            header.extend(rest);
            Item::Other(header.into_iter().collect(), span, word)
        }
    }
}

/// `track_caller`, or a `cfg_attr` that may turn into it.
fn is_track_caller(attribute: &[TokenTree]) -> bool {
    match attribute {
        [TokenTree::Ident(word), TokenTree::Group(group), ..] if word == "cfg_attr" => {
            let trees: Vec<TokenTree> = group.stream().into_iter().collect();
            let mut members = trees.split(|tree| is_punct(Some(tree), ','));
            // What comes first is the condition.
            members.next();
            members.any(is_track_caller)
        }
        _ => is_word(attribute.first(), "track_caller"),
    }
}

/// The keyword that says what the item is.
fn kind_word(trees: &[TokenTree]) -> (Span, String) {
    const KINDS: [&str; 13] = [
        "struct",
        "enum",
        "union",
        "trait",
        "impl",
        "mod",
        "use",
        "static",
        "const",
        "type",
        "extern",
        "macro_rules",
        "let",
    ];
    let words = trees.iter().filter_map(|tree| match tree {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    for word in words {
        let text = word.to_string();
        if KINDS.contains(&text.as_str()) {
            return (word.span(), text);
        }
    }
    (
        trees.first().map_or_else(Span::call_site, TokenTree::span),
        String::new(),
    )
}

fn signature(
    header: &mut Vec<TokenTree>,
    rest: Vec<TokenTree>,
    track_caller: bool,
) -> Result<Function, Vec<TokenTree>> {
    let Some(outline) = Outline::of(&rest) else {
        return Err(rest);
    };
    let Some(TokenTree::Ident(name)) = rest.get(outline.name) else {
        return Err(rest);
    };
    let name = name.clone();
    let Some(params_group) = group_of(rest.get(outline.params), Delimiter::Parenthesis) else {
        return Err(rest);
    };
    let params = params(params_group);
    let mut constness = None;
    let mut is_async = false;
    for tree in rest.iter().take(outline.name) {
        if let TokenTree::Ident(word) = tree {
            if word == "const" {
                constness = Some(word.span());
            }
            is_async |= word == "async";
        }
    }
    let body = match rest.get(outline.body).and_then(block_of) {
        Some(group) => Body::Block(group),
        None => Body::Missing(
            rest.get(outline.body)
                .map_or_else(|| name.span(), TokenTree::span),
        ),
    };
    let has_self_type = rest
        .iter()
        .skip(outline.params)
        .take(outline.body - outline.params)
        .any(mentions_self);
    let output = rest
        .get(outline.output.clone())
        .map(<[TokenTree]>::to_vec)
        .filter(|ty| !is_unit(ty));
    let params_at = header.len() + outline.params;
    header.extend(rest.into_iter().take(outline.body));
    Ok(Function {
        header: std::mem::take(header),
        params_at,
        params,
        output,
        name,
        constness,
        is_async,
        track_caller,
        has_self_type,
        body,
    })
}

/// Where the parts of a function stand among its trees.
struct Outline {
    name: usize,
    params: usize,
    output: std::ops::Range<usize>,
    body: usize,
}

impl Outline {
    fn of(trees: &[TokenTree]) -> Option<Self> {
        let keyword = trees.iter().position(|tree| is_word(Some(tree), "fn"))?;
        // Only qualifiers stand before `fn`: a `fn` further on belongs to a type, as in `static F: fn() = f;`.
        if trees
            .iter()
            .take(keyword)
            .any(|tree| matches!(tree, TokenTree::Punct(_)) || crate::tokens::is_brace(Some(tree)))
        {
            return None;
        }
        let name = keyword + 1;
        let mut angles = Angles::default();
        let mut params = name + 1;
        loop {
            let tree = trees.get(params)?;
            if !angles.open() && group_of(Some(tree), Delimiter::Parenthesis).is_some() {
                break;
            }
            angles.pass(tree);
            params += 1;
        }
        // A body is the last tree; without one a `;` is.
        let body = trees.len().checked_sub(1).filter(|last| *last > params)?;
        let mut start = params + 1;
        let arrow = is_punct(trees.get(start), '-') && is_punct(trees.get(start + 1), '>');
        start += if arrow { 2 } else { 0 };
        let end = match arrow {
            true => (start..body)
                .find(|at| is_word(trees.get(*at), "where"))
                .unwrap_or(body),
            false => start,
        };
        Some(Self {
            name,
            params,
            output: start..end,
            body,
        })
    }
}

fn mentions_self(tree: &TokenTree) -> bool {
    match tree {
        TokenTree::Ident(word) => word == "self" || word == "Self",
        TokenTree::Group(group) => group.stream().into_iter().any(|tree| mentions_self(&tree)),
        _ => false,
    }
}

fn params(group: &Group) -> Vec<Param> {
    let mut params = Vec::new();
    let mut angles = Angles::default();
    let mut trees = Vec::new();
    for tree in group.stream() {
        if !angles.open() && is_punct(Some(&tree), ',') {
            params.push(param(std::mem::take(&mut trees)));
            continue;
        }
        angles.pass(&tree);
        trees.push(tree);
    }
    if !trees.is_empty() {
        params.push(param(trees));
    }
    params
}

fn param(trees: Vec<TokenTree>) -> Param {
    let mut attributes = Vec::new();
    let mut ours = Vec::new();
    let mut at = 0;
    while let Some(outer) = trees.get(at..).and_then(outer_attribute) {
        match outer.ours {
            Some(found) => ours.push(found),
            None => attributes.extend(trees.iter().skip(at).take(outer.len).cloned()),
        }
        at += outer.len;
    }
    let colon = type_colon(&trees, at).unwrap_or(trees.len());
    let pattern_trees: Vec<TokenTree> = trees.iter().take(colon).skip(at).cloned().collect();
    let ty = trees.into_iter().skip(colon).collect();
    let pattern = pattern(&pattern_trees);
    Param {
        attributes,
        ours,
        pattern,
        pattern_trees,
        ty,
    }
}

/// The name that a pattern is, if it is nothing else.
pub(crate) fn pattern(trees: &[TokenTree]) -> Pattern {
    let flat = match trees {
        [TokenTree::Group(group)] if group.delimiter() == Delimiter::None => {
            outermost(group.stream())
        }
        _ => trees.to_vec(),
    };
    match flat.as_slice() {
        [TokenTree::Ident(word)] if word == "self" => Pattern::Receiver(word.clone()),
        [TokenTree::Ident(word)] if word != "_" => Pattern::Name(word.clone()),
        [TokenTree::Ident(mutable), TokenTree::Ident(word)]
            if mutable == "mut" && word != "self" =>
        {
            Pattern::Name(word.clone())
        }
        [.., TokenTree::Ident(word)] if word == "self" => Pattern::Receiver(word.clone()),
        [TokenTree::Punct(dot), ..] if dot.as_char() == '.' => Pattern::Variadic,
        _ => Pattern::Other,
    }
}

impl Param {
    /// Whether it is `mut x`.
    pub(crate) fn is_mut(&self) -> bool {
        let flat = match self.pattern_trees.as_slice() {
            [TokenTree::Group(group)] => outermost(group.stream()),
            other => other.to_vec(),
        };
        is_word(flat.first(), "mut")
    }
}
