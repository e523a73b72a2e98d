//! What a function's text detaches of the calls that it makes: the graph is meant to end in those.
//!
//! `target(&x)?.detach()`, and `let y = target(&x)?;` where each use of `y` is `y.detach()`. To detach what is not tracked
//! leaves no trace in candle's graph, so only the text can tell.

use crate::site::Context;
use crate::tokens::{group_of, is_punct, is_word};
use crate::valid::Set;
use proc_macro2::{Delimiter, Literal, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use std::collections::BTreeSet;

/// What tells the run time of it, inside the function's span; nothing for most functions.
pub(crate) fn told(context: &Context, set: &Set, body: TokenStream, text: &str) -> TokenStream {
    if !set.opens_span() || !text.contains("detach") {
        return TokenStream::new();
    }
    let names = names(body);
    if names.is_empty() {
        return TokenStream::new();
    }
    let private = &context.private;
    let names = Literal::string(&Vec::from_iter(names).join(" "));
    quote_spanned!(Span::mixed_site()=> #private::detaches(#names);)
}

/// The names of the calls that are detached.
fn names(body: TokenStream) -> BTreeSet<String> {
    let body: Vec<TokenTree> = body.into_iter().collect();
    let mut found = Found::default();
    found.search(&body);
    let always = |variable: &String| {
        let detached = found.variables.iter().filter(|other| *other == variable);
        // Once where it is bound.
        uses(&body, variable) == detached.count() + 1
    };
    let variables: BTreeSet<&String> = found.variables.iter().filter(|name| always(name)).collect();
    let mut names = found.calls;
    for variable in variables {
        bound(&body, variable, &mut names);
    }
    names
}

#[derive(Default)]
struct Found {
    calls: BTreeSet<String>,
    /// Variables, one for each time.
    variables: Vec<String>,
}

impl Found {
    fn search(&mut self, trees: &[TokenTree]) {
        for (at, tree) in trees.iter().enumerate() {
            if let TokenTree::Group(group) = tree {
                self.search(&Vec::from_iter(group.stream()));
            }
            let detaches = is_word(trees.get(at + 1), "detach")
                && group_of(trees.get(at + 2), Delimiter::Parenthesis).is_some();
            if is_punct(Some(tree), '.') && detaches {
                self.chain(trees.get(..at).unwrap_or_default());
            }
        }
    }

    /// The chain of calls that ends these trees.
    fn chain(&mut self, mut trees: &[TokenTree]) {
        loop {
            while let Some((last, rest)) = trees.split_last()
                && is_punct(Some(last), '?')
            {
                trees = rest;
            }
            match trees {
                [rest @ .., TokenTree::Ident(name), TokenTree::Group(group)]
                    if group.delimiter() == Delimiter::Parenthesis =>
                {
                    self.calls.insert(name.to_string());
                    trees = rest;
                }
                [.., TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
                    calls(&Vec::from_iter(group.stream()), &mut self.calls);
                    return;
                }
                [rest @ .., TokenTree::Ident(name)] if !is_punct(rest.last(), '.') => {
                    self.variables.push(name.to_string());
                    return;
                }
                _ => return,
            }
            // A method's receiver comes before it.
            match trees.split_last() {
                Some((dot, rest)) if is_punct(Some(dot), '.') => trees = rest,
                _ => return,
            }
        }
    }
}

/// The names of the calls in an expression, without those in their arguments.
fn calls(trees: &[TokenTree], names: &mut BTreeSet<String>) {
    for pair in trees.windows(2) {
        if let [TokenTree::Ident(name), group] = pair
            && group_of(Some(group), Delimiter::Parenthesis).is_some()
        {
            names.insert(name.to_string());
        }
    }
}

/// The calls in what a variable is bound to.
fn bound(trees: &[TokenTree], variable: &str, names: &mut BTreeSet<String>) {
    for (at, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            bound(&Vec::from_iter(group.stream()), variable, names);
        }
        if is_word(Some(tree), "let") && is_word(trees.get(at + 1), variable) {
            let rest = trees.get(at + 2..).unwrap_or_default();
            let end = rest.iter().position(|tree| is_punct(Some(tree), ';'));
            calls(
                rest.get(..end.unwrap_or(rest.len())).unwrap_or_default(),
                names,
            );
        }
    }
}

/// How often a word stands in these trees.
fn uses(trees: &[TokenTree], word: &str) -> usize {
    let count = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => uses(&Vec::from_iter(group.stream()), word),
        tree => usize::from(is_word(Some(tree), word)),
    };
    trees.iter().map(count).sum()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn calls_whose_value_is_detached_are_named() {
        for (body, expected) in [
            ("let t = probs(&m.a.forward(&x)?)?.detach();", "probs"),
            ("let t = self.soft(probs(&x)?)?.detach();", "soft"),
            ("f(probs(&x)?.mean(1)?.detach())", "mean probs"),
            (
                "let t = (probs(&x)? + ops::soft(&y)?)?.detach();",
                "probs soft",
            ),
            ("let t = probs(&x)?; (t.detach() * s)?", "probs"),
            ("let t = probs(&x)?; (t.detach() * &t)?", ""),
            ("let t = probs(&x)?; x.detach()", ""),
            ("let t = probs(&x.detach())?; self.state.detach()", ""),
            ("loop { y = { probs(&x)? }.detach(); }", ""),
        ] {
            let found = names(body.parse().unwrap());
            assert_eq!(Vec::from_iter(found).join(" "), expected, "{body}");
        }
    }
}
