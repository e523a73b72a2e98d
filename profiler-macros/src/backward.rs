//! A function that differentiates or optimizes: its loss, or the gradients that came of one, are told to whoever watches
//! the graph.

use crate::crossing::holds_word;
use crate::function::{Function, Pattern};
use crate::gradients;
use crate::hints;
use crate::site::Context;
use crate::valid::Set;
use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

/// What is looked at.
#[derive(Default)]
pub(crate) struct BackwardEvidence {
    /// What runs before the body.
    pub(crate) before: TokenStream,
    /// Whether the value may hold gradients.
    pub(crate) returns_store: bool,
}

impl BackwardEvidence {
    /// Nothing for a function of another step, or where gradients are recorded anyway.
    pub(crate) fn of(context: &Context, function: &Function, set: &Set, text: &str) -> Self {
        let step = set.span.as_ref().and_then(|span| span.step);
        let runs_backward = matches!(step, Some("Backward" | "Optimizer"));
        if !runs_backward || set.records.iter().any(|record| record.is_of_gradients()) {
            return Self::default();
        }
        let site = Span::mixed_site();
        let private = &context.private;
        let mentioned = |name: &str| hints::mentions(text, name);
        let losses = gradients::arguments(context, function, &mentioned);
        let stores = function
            .params
            .iter()
            .filter_map(|param| match &param.pattern {
                Pattern::Name(name)
                    if param.attributes.is_empty()
                        && holds_word(&param.ty, "GradStore")
                        && mentioned(&name.to_string()) =>
                {
                    Some(quote_spanned!(site=> #private::Shown(&#name).stored()))
                }
                _ => None,
            });
        let stores: Vec<TokenStream> = stores.collect();
        let before = match losses.is_empty() && stores.is_empty() {
            true => TokenStream::new(),
            false => {
                quote_spanned!(site=> #private::backward_evidence(&[#losses], &[#(#stores),*]);)
            }
        };
        let returns_store = function
            .output
            .as_deref()
            .is_some_and(|output| holds_word(output, "GradStore") && !holds_word(output, "impl"));
        Self {
            before,
            returns_store,
        }
    }

    /// What runs when the value is there.
    pub(crate) fn after(&self, context: &Context, value: &TokenStream) -> TokenStream {
        let private = &context.private;
        match self.returns_store {
            true => quote_spanned! {Span::mixed_site()=>
                #private::backward_evidence(&[], &[#private::Shown(#value).stored()]);
            },
            false => TokenStream::new(),
        }
    }
}
