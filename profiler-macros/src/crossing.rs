//! Where tensors go through a function: what it is given and what it returns are shown to whoever watches the graph.
//!
//! As little as possible is written: an argument that is a shared reference is looked at when the body is done, one
//! that the body takes before it, and both only where their written types may hold a tensor.

use crate::function::{Function, Param, Pattern};
use crate::hints;
use crate::items::Angles;
use crate::params::argument;
use crate::site::Context;
use crate::tokens::{braces, group_of, is_punct, is_word};
use crate::types::{holds_impl, holds_word, is_never, may_hold};
use crate::valid::Set;
use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::quote_spanned;

/// What is looked at.
pub(crate) struct Crossing {
    hints: u32,
    /// Arguments that are still there when the body is done.
    lent: Vec<Ident>,
    /// Those that it takes.
    taken: Vec<Ident>,
    /// Arguments that are tuples taken apart in the signature: each with its place, and the names in it with theirs.
    tuples: Vec<(usize, Vec<(usize, Ident)>)>,
    /// An argument that the body writes its result to.
    pub(crate) changed: Option<Ident>,
    /// The members of a returned tuple.
    parts: Option<Parts>,
    /// The written type of what the most frequent kind of function returns: references to tensors go in, a tensor comes
    /// out, in a `Result` or not.
    short: Option<Vec<TokenTree>>,
    /// The place of the body's braces.
    braces: Span,
    /// The body may never return, by its text: it has macros in it, loops, or leaves the program.
    may_diverge: bool,
    /// The function has no span of its own.
    bare: bool,
    /// The body may return before its end.
    pub(crate) returns_early: bool,
}

/// The most arguments that the short form takes.
const MOST_SHORT: usize = 6;

/// The most members of a tuple that are told apart.
const MOST_PARTS: usize = 8;

/// `Tensor`, `Var`, or a path to one.
fn is_tensor(ty: &[TokenTree]) -> bool {
    let path = ty
        .iter()
        .all(|tree| matches!(tree, TokenTree::Ident(_)) || is_punct(Some(tree), ':'));
    path && (is_word(ty.last(), "Tensor") || is_word(ty.last(), "Var"))
}

/// Whether a written type is a tensor, or one in what is called a `Result`.
fn is_short(output: &[TokenTree]) -> bool {
    let in_result = || {
        let open = output.iter().position(|tree| is_punct(Some(tree), '<'))?;
        let name = output.get(open.checked_sub(1)?);
        let is_result = is_word(name, "Result") || is_word(name, "CandleResult");
        let inner = output.get(open + 1..output.len().checked_sub(1)?)?;
        Some(is_result && is_punct(output.last(), '>') && is_tensor(inner))
    };
    is_tensor(output) || in_result() == Some(true)
}

/// What a reference, from its colon on, refers to.
fn after_reference(ty: &[TokenTree]) -> &[TokenTree] {
    let after = if is_punct(ty.get(2), '\'') { 4 } else { 2 };
    ty.get(after..).unwrap_or_default()
}

/// Whether a written type, from its colon on, is a shared reference.
fn is_lent(ty: &[TokenTree]) -> bool {
    if !is_punct(ty.get(1), '&') {
        return false;
    }
    let after = if is_punct(ty.get(2), '\'') { 4 } else { 2 };
    !is_word(ty.get(after), "mut")
}

impl Crossing {
    /// What there is to look at in a function with this body; nothing where no tensor can go through.
    pub(crate) fn of(function: &Function, set: &Set, body: &Group, text: &str) -> Option<Self> {
        let output = function.output.as_deref().unwrap_or_default();
        let opaque = is_never(output) || holds_impl(output) || holds_word(output, "dyn");
        if set.measured.is_some() || opaque || is_punct(output.first(), '&') {
            return None;
        }
        let changed = match may_hold(output) {
            true => None,
            false => Some(changed(function, output, text)?),
        };
        let (mut lent, mut taken, mut tuples) = (Vec::new(), Vec::new(), Vec::new());
        let mut plain = true;
        for (at, param) in function.params.iter().enumerate() {
            if let Some(names) = names_of_tuple(param, text) {
                tuples.push((at, names));
                plain = false;
            }
            // One with attributes may be configured away; one that the body does not name does not go through.
            let Pattern::Name(name) = &param.pattern else {
                continue;
            };
            let opaque = holds_impl(&param.ty)
                || holds_word(&param.ty, "dyn")
                || holds_word(&param.ty, "fn");
            let text_of_name = name.to_string();
            if !param.attributes.is_empty()
                || opaque
                || text_of_name.starts_with('_')
                || !may_hold(&param.ty)
                || !hints::mentions(text, &text_of_name)
            {
                continue;
            }
            // A `mut` reference may refer to another one when the body is done.
            let is_lent = is_lent(&param.ty) && !param.is_mut();
            let into = if is_lent { &mut lent } else { &mut taken };
            into.push(name.clone());
            plain &= is_lent && is_tensor(after_reference(&param.ty));
        }
        if lent.is_empty() && taken.is_empty() && tuples.is_empty() {
            return None;
        }
        let header = function
            .header
            .get(function.params_at)
            .map_or_else(String::new, ToString::to_string);
        let short = plain && set.opens_span() && lent.len() <= MOST_SHORT && is_short(output);
        Some(Self {
            hints: hints::of(text) | hints::of_params(&header),
            lent,
            taken,
            tuples,
            changed,
            short: short.then(|| output.to_vec()),
            braces: body.span(),
            may_diverge: text.contains('!')
                || ["loop", "exit", "abort"]
                    .iter()
                    .any(|word| hints::mentions(text, word)),
            parts: Parts::of(output),
            bare: !set.opens_span(),
            returns_early: hints::mentions(text, "return"),
        })
    }

    /// What runs before the body; `apart`: whether the tuple at a place of the arguments is taken apart by then.
    pub(crate) fn before(&self, context: &Context, apart: &dyn Fn(usize) -> bool) -> TokenStream {
        if !self.takes() {
            return TokenStream::new();
        }
        let private = &context.private;
        let site = Span::mixed_site();
        let members = self.tuples.iter().flat_map(|(at, names)| {
            names.iter().map(move |(member, name)| match apart(*at) {
                true => quote_spanned!(site=> #name),
                false => {
                    let argument = argument(*at);
                    let member = Literal::usize_unsuffixed(*member);
                    quote_spanned!(site=> #argument.#member)
                }
            })
        });
        let taken = self.taken.iter().map(|name| quote_spanned!(site=> #name));
        let taken = taken.chain(members);
        quote_spanned! {site=>
            let given = #private::given(&[#(#private::Shown(&#taken).shown()),*]);
        }
    }

    /// Whether something is looked at before the body.
    fn takes(&self) -> bool {
        !self.taken.is_empty() || !self.tuples.is_empty()
    }

    /// The body and a look at its value in the fewest words, for the most frequent kind of function: statements, and the
    /// value at their end.
    ///
    /// A closure would cost the compiler as much again as the rest of a function of some lines, and so would asking for a
    /// trait. So the value is bound with its written type, which drives the body's inference as the signature does, and
    /// the run time has a method for exactly the types that this kind of function returns.
    pub(crate) fn short_form(&self, context: &Context, body: &TokenStream) -> Option<TokenStream> {
        let output = self.short.as_ref()?;
        let site = Span::mixed_site();
        let private = &context.private;
        let hints = Literal::u32_unsuffixed(self.hints);
        let lent = &self.lent;
        // Alone in its braces, an expression would be told that it needs none.
        let body = braces(quote_spanned!(site=> ; #body), self.braces);
        // What stands behind a body that never returns is ours, and no fault of the program's.
        let (diverging, unreachable) = match self.may_diverge {
            true => (
                Some(quote_spanned!(site=> #[allow(clippy::diverging_sub_expression)])),
                Some(quote_spanned!(site=> #[allow(unreachable_code)])),
            ),
            false => (None, None),
        };
        Some(quote_spanned! {site=>
            #diverging
            let value: #(#output)* = #body;
            #unreachable
            #private::returned(&value).__candle_profiler_look(#hints, (#(#lent,)*));
            value
        })
    }

    /// What runs when the value is there, inside the span.
    pub(crate) fn after(&self, context: &Context, value: &TokenStream) -> TokenStream {
        let site = Span::mixed_site();
        let private = &context.private;
        let hints = Literal::u32_unsuffixed(self.hints);
        let lent = &self.lent;
        let given = match self.takes() {
            true => quote_spanned!(site=> given),
            false => quote_spanned!(site=> #private::given(&[])),
        };
        // What a body writes to is looked at in place of what it returns.
        let changed = self.changed.as_ref();
        let changed = changed.map(|name| quote_spanned!(site=> &#name));
        let value = changed.as_ref().unwrap_or(value);
        let (pattern, parts) = match &self.parts {
            Some(parts) => parts.matched(private),
            None => (
                TokenStream::new(),
                quote_spanned!(site=> #private::Shown(#value).shown()),
            ),
        };
        let shown = quote_spanned! {site=>
            &[#(#private::Shown(&#lent).shown()),*], &[#parts]
        };
        let call = if self.bare {
            let name = context.default_name();
            let place = quote_spanned! {site=>
                #private::RecordSite(#name, ::core::file!(), ::core::line!(), false, #name)
            };
            quote_spanned!(site=> crossed_bare(#hints, &#place, #given, #shown))
        } else {
            quote_spanned!(site=> crossed(#hints, #given, #shown))
        };
        let call = match &self.parts {
            Some(parts) if parts.in_result => {
                let blank = parts.holding.iter().map(|_| quote_spanned!(site=> (),));
                quote_spanned! {site=>
                    if let #pattern = #private::Okay(#value, #private::Blank::<(#(#blank)*)>::new()).okay() { #private::#call; }
                }
            }
            Some(_) => quote_spanned!(site=> let #pattern = #value; #private::#call;),
            None => quote_spanned!(site=> #private::#call;),
        };
        // What holds nothing to look at is known to the compiler, and the rest is not there then.
        let holds = self.parts.is_none().then(
            || quote_spanned!(site=> ::core::option::Option::is_some(&#private::Shown(#value).shown()) &&),
        );
        quote_spanned! {site=>
            if #holds #private::crossing() {
                #call
            }
        }
    }
}

/// The argument that a function which returns nothing writes its result to: `x: &mut Tensor`. The body gets it lent, for
/// which its lifetime must have no name.
fn changed(function: &Function, output: &[TokenTree], text: &str) -> Option<Ident> {
    let names_lifetime = output.iter().any(|tree| is_punct(Some(tree), '\''));
    if function.is_async || names_lifetime {
        return None;
    }
    let mut changed = function.params.iter().filter_map(|param| {
        let Pattern::Name(name) = &param.pattern else {
            return None;
        };
        let lent = is_punct(param.ty.get(1), '&') && is_word(param.ty.get(2), "mut");
        let tensor = lent && is_tensor(param.ty.get(3..)?);
        let own = param.attributes.is_empty() && param.ours.is_empty() && !param.is_mut();
        (tensor && own && hints::mentions(text, &name.to_string())).then(|| name.clone())
    });
    changed.next()
}

/// The names in a tuple of arguments that may hold a tensor: `(x, y): (&Tensor, &Tensor)`.
fn names_of_tuple(param: &Param, text: &str) -> Option<Vec<(usize, Ident)>> {
    let [TokenTree::Group(pattern)] = param.pattern_trees.as_slice() else {
        return None;
    };
    let opaque =
        holds_impl(&param.ty) || ["dyn", "fn"].iter().any(|word| holds_word(&param.ty, word));
    if !matches!(param.pattern, Pattern::Other)
        || pattern.delimiter() != Delimiter::Parenthesis
        || !param.attributes.is_empty()
        || !param.ours.is_empty()
        || opaque
        || !may_hold(&param.ty)
    {
        return None;
    }
    let (mut names, mut member) = (Vec::new(), 0);
    for tree in pattern.stream() {
        match tree {
            TokenTree::Ident(name) if name == "mut" => {}
            // A constant or a variant is no name of the argument's.
            TokenTree::Ident(name) if name.to_string().starts_with(char::is_lowercase) => {
                names.push((member, name));
            }
            TokenTree::Ident(name) if name.to_string().starts_with('_') => {}
            TokenTree::Punct(comma) if comma.as_char() == ',' => member += 1,
            _ => return None,
        }
    }
    names.retain(|(_, name)| hints::mentions(text, &name.to_string()));
    (!names.is_empty()).then_some(names)
}

/// The members of a returned tuple that may hold a tensor, where others, numbers, hold none.
struct Parts {
    holding: Vec<bool>,
    /// The tuple stands in a `Result`.
    in_result: bool,
}

impl Parts {
    fn of(output: &[TokenTree]) -> Option<Self> {
        let at = output
            .iter()
            .position(|tree| group_of(Some(tree), Delimiter::Parenthesis).is_some())?;
        let group = group_of(output.get(at), Delimiter::Parenthesis)?;
        let in_result = at > 0;
        if in_result {
            let opens = is_punct(output.get(at.checked_sub(1)?), '<');
            let named = match output.get(at.checked_sub(2)?) {
                Some(TokenTree::Ident(name)) => name.to_string().ends_with("Result"),
                _ => false,
            };
            let ends = is_punct(output.get(at + 1), '>') || is_punct(output.get(at + 1), ',');
            if !(opens && named && ends) {
                return None;
            }
        }
        let trees: Vec<TokenTree> = group.stream().into_iter().collect();
        let mut angles = Angles::default();
        let mut members = vec![Vec::new()];
        for tree in trees {
            if !angles.open() && is_punct(Some(&tree), ',') {
                members.push(Vec::new());
                continue;
            }
            angles.pass(&tree);
            members.last_mut()?.push(tree);
        }
        members.retain(|member| !member.is_empty());
        let holding: Vec<bool> = members.iter().map(|member| may_hold(member)).collect();
        let mixed = holding.contains(&true) && holding.contains(&false);
        (mixed && holding.len() <= MOST_PARTS).then_some(Self { holding, in_result })
    }

    /// The pattern of a reference to the value, and what its members show.
    fn matched(&self, private: &TokenStream) -> (TokenStream, TokenStream) {
        let site = Span::mixed_site();
        let name = |at: usize| Ident::new(&format!("part{at}"), site);
        let members = self.holding.iter().enumerate().map(|(at, holds)| {
            let name = name(at);
            match holds {
                true => quote_spanned!(site=> #name),
                false => quote_spanned!(site=> _),
            }
        });
        let tuple = quote_spanned!(site=> (#(#members),*));
        let pattern = match self.in_result {
            true => quote_spanned!(site=> ::core::option::Option::Some(#tuple)),
            false => tuple,
        };
        let holding = self.holding.iter().enumerate().filter(|(_, holds)| **holds);
        let shown = holding.map(|(at, _)| {
            let name = name(at);
            quote_spanned!(site=> #private::Shown(#name).shown())
        });
        (pattern, quote_spanned!(site=> #(#shown),*))
    }
}
