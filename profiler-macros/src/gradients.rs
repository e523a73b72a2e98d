//! Records of gradients: of a store that is returned, read when it is there, and of one that is taken, read before the
//! body may empty it.

use crate::args::Attribute;
use crate::crossing::{holds_word, may_hold};
use crate::function::{Function, Param, Pattern};
use crate::label::Label;
use crate::site::{Context, Place, Record, string};
use crate::tokens::{is_punct, is_word};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

/// The first argument that is a `GradStore` by its written type.
pub(crate) fn store(function: &Function) -> Option<(&Param, &Ident)> {
    function
        .params
        .iter()
        .find_map(|param| match &param.pattern {
            Pattern::Name(name) if holds_word(&param.ty, "GradStore") => Some((param, name)),
            _ => None,
        })
}

/// A store that the body may change and that is there when it is done.
fn is_lent_mutably(function: &Function, param: &Param) -> bool {
    let after = if is_punct(param.ty.get(2), '\'') {
        4
    } else {
        2
    };
    // A value that borrows from the store keeps it.
    let borrows = function
        .output
        .iter()
        .flatten()
        .any(|tree| is_punct(Some(tree), '&') || is_punct(Some(tree), '\''));
    is_punct(param.ty.get(1), '&') && is_word(param.ty.get(after), "mut") && !borrows
}

/// What the arguments show among which a loss may be.
pub(crate) fn arguments(
    context: &Context,
    function: &Function,
    wanted: &dyn Fn(&str) -> bool,
) -> TokenStream {
    let private = &context.private;
    let shown = function
        .params
        .iter()
        .filter_map(|param| match &param.pattern {
            Pattern::Name(name)
                if param.attributes.is_empty()
                    && may_hold(&param.ty)
                    && !name.to_string().starts_with('_')
                    && wanted(&name.to_string()) =>
            {
                Some(quote_spanned!(Span::mixed_site()=> #private::Shown(&#name).shown()))
            }
            _ => None,
        });
    quote!(#(#shown),*)
}

/// Records of a store that a function takes.
#[derive(Default)]
pub(crate) struct StoreArgument {
    /// What runs before the body.
    pub(crate) before: TokenStream,
    /// What runs when it is done.
    pub(crate) after: TokenStream,
    /// The store's name, and that under which it is lent to the body.
    pub(crate) lent: Option<(Ident, Ident)>,
}

impl StoreArgument {
    /// Writes the records; there are none where no store is taken.
    pub(crate) fn of(context: &Context, function: &Function, records: &[&Attribute]) -> Self {
        if records.is_empty() {
            return Self::default();
        }
        let mut taken = Self::default();
        let Some((param, name)) = store(function) else {
            return taken;
        };
        let private = &context.private;
        let changed = is_lent_mutably(function, param);
        let arguments = arguments(context, function, &|_| true);
        for (number, attribute) in records.iter().enumerate() {
            let blamed = Span::mixed_site().located_at(attribute.span);
            let constant = constant(context, attribute, &context.place());
            let noted = Ident::new(&format!("noted{number}"), Span::mixed_site());
            let note = note(context, attribute, &constant, true, &arguments);
            taken.before.extend(quote_spanned! {blamed=>
                let #noted = #private::gradients_given(#constant, #note, &#name);
            });
            if changed {
                taken.after.extend(quote_spanned! {blamed=>
                    #private::gradients_after(#constant, #noted, &#name);
                });
            }
        }
        if changed {
            let site = Span::mixed_site();
            let lent = Ident::new("lent", site);
            taken
                .before
                .extend(quote_spanned!(site=> let #lent = &mut *#name;));
            taken.lent = Some((name.clone(), lent));
        }
        taken
    }
}

fn constant(context: &Context, attribute: &Attribute, place: &Place) -> TokenStream {
    let private = &context.private;
    let site = Span::mixed_site();
    let line = Context::line(place);
    let root = match &attribute.label {
        Some(Label::Static(text)) => context.text(text),
        // Blank: the run time's own name for a loss.
        _ => context.text(""),
    };
    let options = &attribute.gradients;
    let given = |text: &Option<syn::LitStr>| {
        string(&text.as_ref().map_or(String::new(), syn::LitStr::value))
    };
    let (only, frozen) = (given(&options.only), given(&options.frozen));
    let function = context.default_name();
    quote_spanned! {site=>
        &#private::GradientSite(#private::RecordSite(#root, ::core::file!(), #line, false, #function), #only, #frozen)
    }
}

/// The expression that notes the label, the variables and the loss before the call.
fn note(
    context: &Context,
    attribute: &Attribute,
    constant: &TokenStream,
    inside: bool,
    arguments: &TokenStream,
) -> TokenStream {
    let private = &context.private;
    let site = Span::mixed_site();
    let text = context
        .built(attribute, &quote_spanned!(site=> &(#constant).0), inside)
        .unwrap_or_else(|| quote_spanned!(site=> ::core::option::Option::None));
    match &attribute.gradients.vars {
        Some(vars) => {
            let first = vars.clone().into_iter().next();
            let blamed = site.located_at(first.map_or(attribute.span, |tree| tree.span()));
            let each = quote_spanned!(blamed=> #private::Variables::each(&(#vars), show));
            quote_spanned!(site=> #private::noted(#constant, #text, &[#arguments], |show| #each))
        }
        None => quote_spanned!(site=> #private::noted_of_loss(#text, &[#arguments])),
    }
}

impl Context {
    /// A record of the gradients in a value; `arguments`: what those of the function show, where they are in sight.
    pub(crate) fn gradients(
        &self,
        attribute: &Attribute,
        place: &Place,
        number: usize,
        inside: bool,
    ) -> Record {
        let none = TokenStream::new();
        let arguments = if inside { &none } else { &self.arguments };
        let site = Span::mixed_site();
        let constant = constant(self, attribute, place);
        let noted = Ident::new(&format!("text{number}"), site);
        let note = note(self, attribute, &constant, inside, arguments);
        let early = quote_spanned!(site=> let #noted = #note;);
        let blamed = site.located_at(attribute.span);
        let variable = noted.clone();
        Record {
            early: Some((noted, early)),
            call: Box::new(move |at, value, private| {
                let own = Ident::new("value", blamed);
                let value = value.map_or_else(|| quote!(#own), TokenStream::clone);
                quote_spanned!(blamed=> #private::record_gradients(#at, #constant, #variable, &#value);)
            }),
        }
    }
}
