//! The shape that `async-trait` leaves: a signature that returns `Pin<Box<dyn Future…>>` and a body whose last expression
//! is `Box::pin(async move { … })`.

use crate::args::Attribute;
use crate::function::Function;
use crate::hints::mentions;
use crate::items::item_len;
use crate::label::Label;
use crate::ops::{Names, pattern_names};
use crate::tokens::{braces, delimited, group_of, is_brace, is_punct, is_word, outermost, regroup};
use crate::valid::Set;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

/// A body of that shape.
pub(crate) struct Boxed {
    /// What stands before the parentheses: statements, and the path to `Box::pin`.
    before: Vec<TokenTree>,
    /// `async move { … }`
    block: Vec<TokenTree>,
    /// The place of the parentheses.
    place: Span,
    /// Statements run at the call.
    has_statements: bool,
}

impl Boxed {
    /// Nothing for any other function.
    pub(crate) fn of(function: &Function, body: &TokenStream) -> Option<Self> {
        if function.is_async || !returns_boxed_future(function.output.as_deref()?) {
            return None;
        }
        let mut before: Vec<TokenTree> = body.clone().into_iter().collect();
        let argument = before.pop()?;
        let argument = group_of(Some(&argument), Delimiter::Parenthesis)?;
        let path = path_to_pin(&before)?;
        let mut begun = 0;
        while ends_inner_attribute(&before, begun + 3) {
            begun += 3;
        }
        while let Some(len) = before.get(begun..path).and_then(item_len) {
            begun += len;
        }
        Some(Self {
            block: async_move(outermost(argument.stream()))?,
            place: argument.span(),
            has_statements: begun < path,
            before,
        })
    }

    /// Whether arguments may be gone when the future begins: statements may use them up, and one without a lifetime
    /// keeps nothing that is lent to the call.
    pub(crate) fn loses_arguments(&self, function: &Function) -> bool {
        let mut output = function.output.iter().flatten();
        self.has_statements || !output.any(|tree| is_punct(Some(tree), '\''))
    }

    /// What cannot be told of the arguments, neither at the call nor when the future begins.
    pub(crate) fn refuse(
        &self,
        function: &Function,
        set: &Set,
        of_params: &[Vec<Attribute>],
    ) -> syn::Result<()> {
        if !self.has_statements {
            return Ok(());
        }
        let statements: TokenStream = self.before.iter().cloned().collect();
        let statements = statements.to_string();
        let of_params = function
            .params
            .iter()
            .zip(of_params)
            .filter(|(param, _)| {
                let mut names = Names::new();
                pattern_names(&param.pattern_trees, &mut names);
                names.iter().any(|name| mentions(&statements, name))
            })
            .flat_map(|(_, records)| records);
        let of_gradients = set.records.iter().filter(|record| record.is_of_gradients());
        if let Some(record) = of_params.chain(of_gradients).next() {
            let text = format!(
                "`{}` reads an argument when the future begins, and the statements before `Box::pin(async move {{ … }})` \
                 may have used it by then: put it on a `let`",
                record.kind.name()
            );
            return Err(syn::Error::new(record.span, text));
        }
        let mut all = set.span.iter().chain(&set.measured).chain(&set.records);
        let torn = |attribute: &&Attribute| matches!(&attribute.label, Some(Label::Dynamic(template)) if template.numbered && template.reads);
        match all.find(torn) {
            Some(attribute) => Err(syn::Error::new(
                attribute.span,
                "`{#}` is known when the future begins, and arguments before the statements that stand before \
                 `Box::pin(async move { … })`: a text has one or the other",
            )),
            None => Ok(()),
        }
    }

    /// The body with the block replaced by one that runs it through `wrap`.
    pub(crate) fn wrapped(mut self, wrap: impl FnOnce(&TokenStream) -> TokenStream) -> TokenStream {
        let block = &self.block;
        let wrapped = wrap(&quote!(#(#block)*));
        let place = block.last().map_or_else(Span::mixed_site, TokenTree::span);
        let wrapped = braces(wrapped, place);
        let wrapped = quote_spanned!(Span::mixed_site()=> async move #wrapped);
        let argument = delimited(Delimiter::Parenthesis, wrapped, self.place);
        self.before.push(TokenTree::Group(argument));
        regroup(self.before)
    }
}

/// Where the path to `Box::pin` begins in which `trees` end, if a statement begins with it.
fn path_to_pin(trees: &[TokenTree]) -> Option<usize> {
    let mut at = trees.len();
    let mut words = Vec::new();
    let mut colons = 0;
    while let Some(tree) = at.checked_sub(1).and_then(|before| trees.get(before)) {
        match tree {
            TokenTree::Ident(word) if colons == 2 || words.is_empty() => {
                words.push(word.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            _ => break,
        }
        at -= 1;
    }
    let before = at.checked_sub(1).and_then(|before| trees.get(before));
    let begins = before.is_none()
        || is_punct(before, ';')
        || is_brace(before)
        || ends_inner_attribute(trees, at);
    let is_pin = matches!(words.as_slice(), [pin, boxed, ..] if pin == "pin" && boxed == "Box");
    (begins && is_pin).then_some(at)
}

fn ends_inner_attribute(trees: &[TokenTree], at: usize) -> bool {
    at >= 3
        && is_punct(trees.get(at - 3), '#')
        && is_punct(trees.get(at - 2), '!')
        && group_of(trees.get(at - 1), Delimiter::Bracket).is_some()
}

/// The trees of `async move { … }`, if that is all there is (a trailing comma apart).
fn async_move(mut trees: Vec<TokenTree>) -> Option<Vec<TokenTree>> {
    if is_punct(trees.last(), ',') {
        trees.pop();
    }
    let fits = trees.len() == 3
        && is_word(trees.first(), "async")
        && is_word(trees.get(1), "move")
        && is_brace(trees.get(2));
    fits.then_some(trees)
}

/// Whether such a return type is declared.
pub(crate) fn is_future(output: &[TokenTree]) -> bool {
    returns_boxed_future(output)
}

/// `Pin<Box<dyn Future…>>`, however its paths are spelled.
fn returns_boxed_future(output: &[TokenTree]) -> bool {
    // Most types say at once that they are none; taking them apart costs messages to the compiler.
    let may_be = |tree: &TokenTree| {
        is_word(Some(tree), "Pin") || group_of(Some(tree), Delimiter::None).is_some()
    };
    if !output.iter().any(may_be) {
        return false;
    }
    let flat = outermost(output.iter().cloned().collect());
    let Some(rest) = past_path(&flat, "Pin") else {
        return false;
    };
    let Some(rest) = past_open(rest).and_then(|rest| past_path(rest, "Box")) else {
        return false;
    };
    let Some(rest) = past_open(rest) else {
        return false;
    };
    let flat = match rest {
        [TokenTree::Group(group), ..] => outermost(group.stream()),
        _ => rest.to_vec(),
    };
    let Some((TokenTree::Ident(word), bounds)) = flat.split_first() else {
        return false;
    };
    if word != "dyn" {
        return false;
    }
    bounds
        .split(|tree| is_punct(Some(tree), '+'))
        .any(|bound| past_path(bound, "Future").is_some_and(|rest| is_punct(rest.first(), '<')))
}

fn past_open(trees: &[TokenTree]) -> Option<&[TokenTree]> {
    is_punct(trees.first(), '<')
        .then(|| trees.get(1..))
        .flatten()
}

/// What follows a path whose last segment is `last`.
fn past_path<'a>(trees: &'a [TokenTree], last: &str) -> Option<&'a [TokenTree]> {
    let end = trees
        .iter()
        .position(|tree| !matches!(tree, TokenTree::Ident(_)) && !is_punct(Some(tree), ':'))
        .unwrap_or(trees.len());
    let name = end.checked_sub(1).and_then(|at| trees.get(at));
    is_word(name, last).then(|| trees.get(end..)).flatten()
}
