//! Names and labels: `"block {#} of {self.name}"`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::LitStr;

/// What may stand in braces.
const ALLOWED: &str = "in braces: an argument `{x}`, a field `{self.a.b}`, each with a format spec (`{x:.3}`, `{x:?}`), or the ordinal \
     `{#}`; `{{` and `}}` stand for braces";

/// A text, known now or built when a capture is open.
pub(crate) enum Label {
    /// Nothing but blanks: the default name takes its place.
    Blank,
    /// Known now.
    Static(String),
    /// Built from arguments.
    Dynamic(Template),
}

/// The arguments of the `format_args!` that builds a text.
pub(crate) struct Template {
    /// Carries the span of the user's literal, in whose scope the identifiers in its braces are looked up.
    literal: LitStr,
    /// Field paths.
    positional: Vec<TokenStream>,
    /// Whether `{#}` stands in it.
    pub(crate) numbered: bool,
    /// Whether arguments or fields stand in it.
    pub(crate) reads: bool,
}

impl Label {
    /// A text without placeholders.
    pub(crate) fn plain(text: String) -> Self {
        if text.trim().is_empty() {
            Self::Blank
        } else {
            Self::Static(text)
        }
    }

    /// Reads the text of a literal.
    pub(crate) fn read(literal: &LitStr) -> syn::Result<Self> {
        let text = literal.value();
        if !text.contains(['{', '}']) {
            return Ok(Self::plain(text));
        }
        let mut reader = Reader {
            literal,
            rest: &text,
            format: String::new(),
            plain: String::new(),
            fields: Vec::new(),
            reads: false,
        };
        reader.run()?;
        let Reader {
            format,
            plain,
            fields,
            reads,
            ..
        } = reader;
        if fields.is_empty() && !reader_has_arguments(&format) {
            return Ok(Self::plain(plain));
        }
        let numbered = fields.iter().any(|field| field.is_none());
        let span = literal.span();
        let positional = fields
            .into_iter()
            .map(|field| field.unwrap_or_else(|| ordinal().into_token_stream()))
            .collect();
        Ok(Self::Dynamic(Template {
            literal: LitStr::new(&format, span),
            positional,
            numbered,
            reads,
        }))
    }
}

/// Whether a format string takes anything.
fn reader_has_arguments(format: &str) -> bool {
    let unescaped = format.replace("{{", "").replace("}}", "");
    unescaped.contains('{')
}

/// The closure's parameter that `{#}` reads.
fn ordinal() -> Ident {
    Ident::new("ordinal", Span::mixed_site())
}

impl Template {
    /// The closure that builds the text; with `{#}` it takes the ordinal.
    pub(crate) fn closure(&self, private: &TokenStream) -> TokenStream {
        let parameter = self.numbered.then(ordinal);
        let text = self.format(private);
        quote_spanned!(Span::mixed_site()=> |#parameter| #text)
    }

    /// The expression that builds the text.
    pub(crate) fn format(&self, private: &TokenStream) -> TokenStream {
        let Self {
            literal,
            positional,
            ..
        } = self;
        quote_spanned!(Span::mixed_site()=> #private::format(::core::format_args!(#literal #(, #positional)*)))
    }
}

struct Reader<'a> {
    literal: &'a LitStr,
    rest: &'a str,
    /// The format string, with fields and `{#}` turned into positions.
    format: String,
    /// The text that it is if it takes no arguments.
    plain: String,
    /// One a position: a field path, or none for the ordinal.
    fields: Vec<Option<TokenStream>>,
    /// Whether one of them is no ordinal.
    reads: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> syn::Result<()> {
        while let Some(at) = self.rest.find(['{', '}']) {
            let (text, rest) = self.rest.split_at(at);
            self.format.push_str(text);
            self.plain.push_str(text);
            if let Some(rest) = rest.strip_prefix("{{") {
                self.brace("{{", '{', rest.len());
            } else if let Some(rest) = rest.strip_prefix("}}") {
                self.brace("}}", '}', rest.len());
            } else if let Some(rest) = rest.strip_prefix('{') {
                let Some(end) = rest
                    .find(['{', '}'])
                    .filter(|end| rest[*end..].starts_with('}'))
                else {
                    return Err(self.refused("a `{` is not closed"));
                };
                self.placeholder(&rest[..end])?;
                self.skip_to(rest.len() - end - 1);
            } else {
                return Err(self.refused("a `}` is not opened"));
            }
        }
        self.format.push_str(self.rest);
        self.plain.push_str(self.rest);
        Ok(())
    }

    fn brace(&mut self, escaped: &str, plain: char, left: usize) {
        self.format.push_str(escaped);
        self.plain.push(plain);
        self.skip_to(left);
    }

    /// Leaves the last `left` bytes to read.
    fn skip_to(&mut self, left: usize) {
        self.rest = &self.rest[self.rest.len() - left..];
    }

    fn placeholder(&mut self, text: &str) -> syn::Result<()> {
        let (path, spec) = match text.split_once(':') {
            Some((path, spec)) => (path.trim(), Some(spec)),
            None => (text.trim(), None),
        };
        if spec.is_some_and(|spec| spec.contains('*') && !spec.starts_with('*')) {
            return Err(self.refused("`*` in a format spec has no argument to read"));
        }
        if spec.is_some_and(|spec| spec.starts_with(':') && !spec[1..].starts_with(['<', '^', '>']))
        {
            return Err(self.refused(&format!("`{{{text}}}` is no placeholder")));
        }
        let mut parts = path.split('.');
        let root = parts.next().unwrap_or_default();
        self.format.push('{');
        if path == "#" {
            self.position(None);
        } else if !is_identifier(root) {
            return Err(self.refused(&format!("`{{{text}}}` is no placeholder")));
        } else {
            self.reads = true;
            let mut field = None;
            for part in parts {
                field = Some(self.field(field.take(), root, part, text)?);
            }
            match field {
                Some(path) => self.position(Some(path)),
                None => self
                    .format
                    .push_str(root.strip_prefix("r#").unwrap_or(root)),
            }
        }
        if let Some(spec) = spec {
            self.format.push(':');
            self.format.push_str(spec);
        }
        self.format.push('}');
        Ok(())
    }

    fn field(
        &self,
        path: Option<TokenStream>,
        root: &str,
        part: &str,
        text: &str,
    ) -> syn::Result<TokenStream> {
        let span = self.literal.span();
        let path = path.unwrap_or_else(|| {
            let root = identifier(root, span);
            quote_spanned!(span=> #root)
        });
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if let (true, Ok(index)) = (digits, part.parse::<u32>()) {
            let index = syn::Index { index, span };
            return Ok(quote_spanned!(span=> #path.#index));
        }
        if !is_identifier(part) {
            return Err(self.refused(&format!("`{{{text}}}` is no placeholder")));
        }
        let part = identifier(part, span);
        Ok(quote_spanned!(span=> #path.#part))
    }

    fn position(&mut self, field: Option<TokenStream>) {
        self.format.push_str(&self.fields.len().to_string());
        self.fields.push(field);
    }

    fn refused(&self, problem: &str) -> syn::Error {
        syn::Error::new(self.literal.span(), format!("{problem}; {ALLOWED}"))
    }
}

/// An identifier; a keyword is a raw one, as `format!` takes it.
fn identifier(text: &str, span: Span) -> Ident {
    let plain = text.strip_prefix("r#").unwrap_or(text);
    match plain == "self" || syn::parse_str::<Ident>(plain).is_ok() {
        true => Ident::new(plain, span),
        false => Ident::new_raw(plain, span),
    }
}

/// Whether the text is an identifier, also one that has to be written with `r#`, or `self`.
fn is_identifier(text: &str) -> bool {
    let plain = text.strip_prefix("r#").unwrap_or(text);
    text == "self" || syn::parse_str::<Ident>(&format!("r#{plain}")).is_ok()
}
