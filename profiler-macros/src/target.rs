//! What a statement binds or sets, and with it what a record on it reads.

use crate::forms::{Form, is_joint};
use crate::function::{Pattern, pattern};
use crate::place;
use crate::tokens::{is_punct, regroup, text_of, text_of_all};
use crate::types::type_colon;
use crate::valid::Set;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::parse::Parser;

/// The value that records of a statement read.
pub(crate) struct Target {
    /// An expression for where it is; none where the value itself must be passed on.
    pub(crate) place: Option<TokenStream>,
    /// What the statement binds or sets, as text.
    pub(crate) name: Option<String>,
    /// The one name that a `let` binds.
    pub(crate) bound: Option<Ident>,
    /// Where the value of an assignment begins whose place may be evaluated once only.
    pub(crate) value_at: Option<usize>,
}

impl Target {
    pub(crate) fn of(form: Form, trees: &[TokenTree], set: &Set) -> syn::Result<Self> {
        match form {
            Form::Let => Self::of_let(trees, set),
            Form::Assignment(at) => Self::of_assignment(at, trees, set),
            _ => Ok(Self {
                place: None,
                name: None,
                bound: None,
                value_at: None,
            }),
        }
    }

    fn of_assignment(at: usize, trees: &[TokenTree], set: &Set) -> syn::Result<Self> {
        let compound = is_joint(at.checked_sub(1).and_then(|before| trees.get(before)));
        // `<<=` and `>>=` have three signs, every other one two.
        let shift = is_joint(at.checked_sub(2).and_then(|two| trees.get(two)));
        let end = match (compound, shift) {
            (false, _) => at,
            (true, false) => at.saturating_sub(1),
            (true, true) => at.saturating_sub(2),
        };
        let trees = trees.get(..end).unwrap_or_default();
        if let Some(record) = set.records.first()
            && place::is_pattern(trees)
        {
            let text = format!(
                "`{}` reads the one place that an assignment sets",
                record.kind.name()
            );
            return Err(syn::Error::new(record.span, text));
        }
        let kind = place::kind(trees);
        let tokens = regroup(trees.to_vec());
        if let Some(record) = set.records.first()
            && compound
            && kind == place::Kind::Computed
        {
            let text = format!(
                "`{}` reads this place again after the assignment, so it is made of names, fields and indices by names \
                 and numbers: bind the place first (`let place = &mut …;`), or write `PLACE = …`",
                record.kind.name()
            );
            return Err(syn::Error::new_spanned(tokens, text));
        }
        Ok(Self {
            name: Some(text_of_all(trees)),
            place: Some(tokens),
            bound: None,
            value_at: (!compound && kind != place::Kind::Named).then_some(at + 1),
        })
    }

    fn of_let(trees: &[TokenTree], set: &Set) -> syn::Result<Self> {
        let site = Span::mixed_site();
        let has_value = |from: usize| {
            trees
                .iter()
                .skip(from)
                .any(|tree| is_punct(Some(tree), '='))
        };
        let end = trees
            .iter()
            .position(|tree| is_punct(Some(tree), '='))
            .unwrap_or(trees.len().saturating_sub(1));
        let end = type_colon(trees, 1)
            .filter(|colon| *colon < end)
            .unwrap_or(end);
        let pattern_trees: Vec<TokenTree> = trees.iter().take(end).skip(1).cloned().collect();
        if let Some(record) = set.records.first()
            && !has_value(end)
        {
            let text = format!(
                "`{}` reads the value of this `let`, which has none yet",
                record.kind.name()
            );
            return Err(syn::Error::new(record.span, text));
        }
        if let Pattern::Name(name) = pattern(&pattern_trees) {
            let text = text_of(&name);
            return Ok(Self {
                place: Some(quote!(#name)),
                name: Some(text),
                bound: Some(name),
                value_at: None,
            });
        }
        let text = text_of_all(&pattern_trees);
        let names = bindings(&pattern_trees);
        let place = match names.as_slice() {
            [] => None,
            [only] => Some(quote!(#only)),
            several => Some(quote_spanned!(site=> (#(&#several,)*))),
        };
        if let (Some(record), None) = (set.records.first(), &place) {
            let text = format!(
                "`{}` reads what this `let` binds, which is nothing",
                record.kind.name()
            );
            return Err(syn::Error::new(record.span, text));
        }
        Ok(Self {
            place,
            name: Some(text),
            bound: None,
            value_at: None,
        })
    }
}

/// The names that a pattern binds.
fn bindings(trees: &[TokenTree]) -> Vec<Ident> {
    let mut names = Vec::new();
    if let Ok(pattern) = syn::Pat::parse_multi.parse2(trees.iter().cloned().collect()) {
        collect(&pattern, &mut names);
    }
    names
}

fn collect(pattern: &syn::Pat, names: &mut Vec<Ident>) {
    match pattern {
        syn::Pat::Ident(binding) => {
            // A lone name in capitals is a constant or a variant.
            let constant = binding.by_ref.is_none()
                && binding.mutability.is_none()
                && binding.subpat.is_none()
                && binding.ident.to_string().starts_with(char::is_uppercase);
            if !constant {
                names.push(binding.ident.clone());
            }
            if let Some((_, inner)) = &binding.subpat {
                collect(inner, names);
            }
        }
        syn::Pat::Tuple(tuple) => tuple
            .elems
            .iter()
            .for_each(|element| collect(element, names)),
        syn::Pat::TupleStruct(tuple) => tuple
            .elems
            .iter()
            .for_each(|element| collect(element, names)),
        syn::Pat::Struct(fields) => fields
            .fields
            .iter()
            .for_each(|field| collect(&field.pat, names)),
        syn::Pat::Slice(slice) => slice
            .elems
            .iter()
            .for_each(|element| collect(element, names)),
        syn::Pat::Reference(reference) => collect(&reference.pat, names),
        syn::Pat::Paren(inner) => collect(&inner.pat, names),
        // Every alternative binds the same names.
        syn::Pat::Or(alternatives) => alternatives
            .cases
            .iter()
            .take(1)
            .for_each(|case| collect(case, names)),
        _ => {}
    }
}
