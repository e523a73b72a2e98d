//! Attributes that another one carried out: their imports must still count as used.
//!
//! rustc never sees such an attribute, and would call `use candle_profiler::record_stats;` unused. A constant that
//! carries the attribute by the user's own path, with an argument that makes it vanish, is resolved like any other use.

use crate::tokens::Ours;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::quote_spanned;
use std::collections::BTreeSet;

/// The argument that makes an attribute vanish together with what it stands on.
const ARGUMENT: &str = "__absorbed";

/// Whether an attribute stands on such a constant.
pub(crate) fn is_marker(args: &TokenStream) -> bool {
    let mut args = args.clone().into_iter();
    let first = args.next();
    matches!(first, Some(TokenTree::Ident(word)) if word == ARGUMENT) && args.next().is_none()
}

/// Items for the head of a body, one for each path by which an attribute was reached.
pub(crate) fn markers<'a>(absorbed: impl IntoIterator<Item = &'a [TokenTree]>) -> TokenStream {
    let site = Span::mixed_site();
    let argument = Ident::new(ARGUMENT, site);
    let mut known = BTreeSet::new();
    let mut tokens = TokenStream::new();
    for path in absorbed {
        let path: TokenStream = path.iter().cloned().collect();
        if known.insert(path.to_string()) {
            tokens.extend(quote_spanned!(site=> #[#path(#argument)] const _: () = ();));
        }
    }
    tokens
}

/// The paths of attributes.
pub(crate) fn paths(ours: &[Ours]) -> impl Iterator<Item = &[TokenTree]> {
    ours.iter().map(|ours| ours.path.as_slice())
}
