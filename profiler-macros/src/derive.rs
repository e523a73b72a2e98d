//! `#[derive(Observe)]` and `#[derive(ObserveScalar)]`: every field is a part of the value, under its own name.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::BTreeSet;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Fields, GenericParam, Generics, Index, Item, Member, Path, Token, Type, Variant,
    WherePredicate, parse_quote,
};

/// Which of the two traits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    Observe,
    ObserveScalar,
}

impl Derived {
    /// The trait, its method and the observer's type.
    fn names(self) -> (Ident, Ident, Ident) {
        let name = |name| Ident::new(name, Span::mixed_site());
        match self {
            Self::Observe => (name("Observe"), name("observe_into"), name("Observer")),
            Self::ObserveScalar => (
                name("ObserveScalar"),
                name("observe_scalar"),
                name("ScalarObserver"),
            ),
        }
    }
}

const ALLOWED: &str = "`#[observe(skip)]` on a field, and `#[observe(crate = path)]` on the type";

/// The implementation, or one error.
pub(crate) fn derive(derived: Derived, item: TokenStream) -> TokenStream {
    match implementation(derived, item) {
        Ok(tokens) => tokens,
        Err(error) => error.to_compile_error(),
    }
}

/// The type as far as it matters here.
struct Data {
    name: Ident,
    generics: Generics,
    attributes: Vec<Attribute>,
    shape: Shape,
}

enum Shape {
    Struct(Fields),
    Enum(Punctuated<Variant, Token![,]>),
}

impl Data {
    fn read(item: TokenStream) -> syn::Result<Self> {
        match syn::parse2(item)? {
            Item::Struct(item) => Ok(Self {
                name: item.ident,
                generics: item.generics,
                attributes: item.attrs,
                shape: Shape::Struct(item.fields),
            }),
            Item::Enum(item) => Ok(Self {
                name: item.ident,
                generics: item.generics,
                attributes: item.attrs,
                shape: Shape::Enum(item.variants),
            }),
            Item::Union(item) => Err(syn::Error::new(
                item.union_token.span,
                "which field of a union is there cannot be known; structs and enums can be observed",
            )),
            other => Err(syn::Error::new(
                other.span(),
                "structs and enums can be observed",
            )),
        }
    }
}

/// What our attributes say.
#[derive(Default)]
struct Options {
    skip: bool,
    runtime: Option<Path>,
}

/// Where our attribute stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Type,
    Field,
    Variant,
}

fn options(attributes: &[Attribute], on: On) -> syn::Result<Options> {
    let mut options = Options::default();
    for attribute in attributes {
        if !attribute.path().is_ident("observe") {
            continue;
        }
        attribute
            .meta
            .require_list()
            .map_err(|error| syn::Error::new(error.span(), format!("allowed are {ALLOWED}")))?
            .parse_args_with(|input: ParseStream<'_>| {
                let word = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
                if word == "skip" && on == On::Field {
                    options.skip = true;
                } else if word == "crate" && on == On::Type {
                    input.parse::<Token![=]>()?;
                    options.runtime = Some(input.call(Path::parse_mod_style)?);
                } else {
                    let text = format!("`{word}` cannot stand here; allowed are {ALLOWED}");
                    return Err(syn::Error::new(word.span(), text));
                }
                match input.is_empty() {
                    true => Ok(()),
                    false => Err(input.error(format!("allowed are {ALLOWED}"))),
                }
            })?;
    }
    Ok(options)
}

fn implementation(derived: Derived, item: TokenStream) -> syn::Result<TokenStream> {
    let data = Data::read(item)?;
    let site = Span::mixed_site();
    let runtime = match options(&data.attributes, On::Type)?.runtime {
        Some(path) => path.into_token_stream(),
        None if crate::manifest::lacks_crate() => {
            let text = "this crate has no dependency called `candle-profiler`: say where it is with \
                        `#[observe(crate = path)]` (such as `::facade::candle_profiler`)";
            return Err(syn::Error::new(data.name.span(), text));
        }
        None => quote_spanned!(site=> ::candle_profiler),
    };
    let (wanted, method, observer) = derived.names();
    let mut observed = Observed::default();
    let body = match &data.shape {
        Shape::Struct(fields) => {
            let arm = arm(&quote!(Self), fields, &runtime, &observer, &mut observed)?;
            quote_spanned!(site=> match self { #arm })
        }
        Shape::Enum(variants) if variants.is_empty() => quote_spanned!(site=> match *self {}),
        Shape::Enum(variants) => {
            let mut arms = TokenStream::new();
            for variant in variants {
                options(&variant.attrs, On::Variant)?;
                let name = &variant.ident;
                let path = quote!(Self::#name);
                arms.extend(arm(
                    &path,
                    &variant.fields,
                    &runtime,
                    &observer,
                    &mut observed,
                )?);
            }
            quote_spanned!(site=> match self { #arms })
        }
    };
    let trait_path = quote_spanned!(site=> #runtime::#wanted);
    let mut generics = data.generics;
    bounds(&mut generics, &observed.types, &trait_path);
    let (parameters, arguments, conditions) = generics.split_for_impl();
    let name = &data.name;
    Ok(quote_spanned! {site=>
        #[automatically_derived]
        impl #parameters #trait_path for #name #arguments #conditions {
            fn #method(&self, observer: &mut #runtime::#observer<'_>) {
                let _ = &observer;
                #body
            }
        }
    })
}

/// The types of the fields that are looked at.
#[derive(Default)]
struct Observed<'a> {
    types: Vec<&'a Type>,
}

/// `Self::Variant { field: value0, .. } => { … }`
fn arm<'a>(
    path: &TokenStream,
    fields: &'a Fields,
    runtime: &TokenStream,
    observer: &Ident,
    observed: &mut Observed<'a>,
) -> syn::Result<TokenStream> {
    let site = Span::mixed_site();
    let mut patterns = TokenStream::new();
    let mut parts = TokenStream::new();
    for (index, field) in fields.iter().enumerate() {
        if options(&field.attrs, On::Field)?.skip {
            continue;
        }
        let member = match &field.ident {
            Some(name) => Member::Named(name.clone()),
            None => Member::Unnamed(Index::from(index)),
        };
        let mut label = match &field.ident {
            Some(name) => Literal::string(&<Ident as syn::ext::IdentExt>::unraw(name).to_string()),
            None => Literal::string(&index.to_string()),
        };
        label.set_span(site);
        let value = Ident::new(&format!("value{index}"), site);
        patterns.extend(quote_spanned!(site=> #member: #value,));
        // An error about the field's type belongs to the field.
        let blamed = site.located_at(field.ty.span());
        let value = Ident::new(&value.to_string(), blamed);
        parts.extend(quote_spanned!(blamed=> #runtime::#observer::part(observer, #label, #value);));
        observed.types.push(&field.ty);
    }
    Ok(quote_spanned!(site=> #path { #patterns .. } => { #parts }))
}

/// A bound on each type parameter that the observed fields' types hold, as in the standard library's derives; of a field
/// that is an associated type of one, on that type.
fn bounds(generics: &mut Generics, types: &[&Type], wanted: &TokenStream) {
    let parameters: BTreeSet<String> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
            _ => None,
        })
        .collect();
    if parameters.is_empty() {
        return;
    }
    let mut used = BTreeSet::new();
    let mut predicates: Vec<WherePredicate> = Vec::new();
    for ty in types {
        if let Type::Path(path) = ty
            && (path.qself.is_some() || path.path.segments.len() > 1)
            && path
                .path
                .segments
                .first()
                .is_some_and(|first| parameters.contains(&first.ident.to_string()))
        {
            predicates.push(parse_quote!(#ty: #wanted));
        } else {
            words(&ty.to_token_stream(), &parameters, &mut used);
        }
    }
    for parameter in generics.type_params_mut() {
        if used.contains(&parameter.ident.to_string()) {
            parameter.bounds.push(parse_quote!(#wanted));
        }
    }
    generics.make_where_clause().predicates.extend(predicates);
}

/// The type parameters that stand in these tokens.
fn words(tokens: &TokenStream, parameters: &BTreeSet<String>, used: &mut BTreeSet<String>) {
    for tree in tokens.clone() {
        match tree {
            proc_macro2::TokenTree::Group(group) => words(&group.stream(), parameters, used),
            proc_macro2::TokenTree::Ident(word) => {
                let word = word.to_string();
                if parameters.contains(&word) {
                    used.insert(word);
                }
            }
            _ => {}
        }
    }
}
