//! Attributes inside a body: on `let`, assignments, calls, blocks and loops.
//!
//! The body is never parsed as a whole. It is walked for attributes of ours; only the streams on the way to one are put
//! together again, everything else is handed on as the opaque groups it came in.

use crate::args::Attribute;
use crate::expand::{configuration, finish};
use crate::function::{Pattern, pattern, type_colon};
use crate::items::item_len;
use crate::site::{Context, Flavour, Record};
use crate::tokens::{
    Ours, braces, delimited, group_of, is_brace, is_punct, is_word, outer_attribute, regroup,
};
use crate::valid::{self, Set};
use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::Parser;

/// The walk through one body.
pub(crate) struct Statements<'a> {
    /// None: attributes are only taken away.
    context: Option<&'a Context>,
    error: Option<syn::Error>,
}

/// What the walk found.
pub(crate) struct Scan {
    /// The new stream, if it is another one.
    pub(crate) changed: Option<TokenStream>,
    /// Whether `#![…]` opens it.
    pub(crate) inner_attributes: bool,
    /// Whether an item opens it.
    pub(crate) item_first: bool,
}

/// Words that a leading item may begin with.
const ITEM_WORDS: [&str; 16] = [
    "use ",
    "fn ",
    "struct ",
    "enum ",
    "const ",
    "static ",
    "type ",
    "impl",
    "trait ",
    "mod ",
    "pub ",
    "unsafe ",
    "async ",
    "extern ",
    "macro_rules",
    "union ",
];

impl<'a> Statements<'a> {
    /// Expands what it finds.
    pub(crate) fn expanding(context: &'a Context) -> Self {
        Self {
            context: Some(context),
            error: None,
        }
    }

    /// Takes our attributes away.
    pub(crate) fn stripping() -> Self {
        Self {
            context: None,
            error: None,
        }
    }

    /// The first thing that was refused.
    pub(crate) fn into_error(self) -> Option<syn::Error> {
        self.error
    }

    /// Looks through a function's body.
    pub(crate) fn body(&mut self, stream: TokenStream) -> Scan {
        // Walking trees costs a message to the compiler for each; its own text of the whole costs one.
        let text = stream.to_string();
        let text = text.trim_start();
        let inner_attributes = ["#!", "# !", "//!", "/*!"]
            .iter()
            .any(|start| text.starts_with(start));
        let attributes = text.as_bytes().contains(&b'#');
        let item_first =
            ITEM_WORDS.iter().any(|word| text.starts_with(word)) || text.starts_with('#');
        let changed = attributes
            .then(|| self.statements(stream.into_iter().collect()))
            .flatten()
            .map(regroup);
        Scan {
            changed,
            inner_attributes,
            item_first,
        }
    }

    /// Walks one level; the new trees where something changed.
    fn statements(&mut self, trees: Vec<TokenTree>) -> Option<Vec<TokenTree>> {
        let mut out = Vec::with_capacity(trees.len());
        let mut changed = false;
        // Whether a statement may begin here.
        let mut start = true;
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            let rest = trees.get(at..).unwrap_or_default();
            if start && let Some(len) = item_len(rest) {
                // Its attributes are the compiler's to expand.
                out.extend(rest.iter().take(len).cloned());
                at += len;
                continue;
            }
            if let Some((attributes, len)) = attributes(rest) {
                at += len;
                if attributes.ours.is_empty() {
                    out.extend(attributes.others);
                    continue;
                }
                changed = true;
                let rest = trees.get(at..).unwrap_or_default();
                let taken = self.annotated(&attributes, start, rest, &mut out);
                at += taken;
                start = true;
                continue;
            }
            if is_macro_call(rest) {
                out.extend(rest.iter().take(3).cloned());
                at += 3;
                start = is_brace(rest.get(2));
                continue;
            }
            match tree {
                TokenTree::Group(group) => {
                    let inner = self.statements(group.stream().into_iter().collect());
                    changed |= inner.is_some();
                    out.push(match inner {
                        Some(inner) => {
                            delimited(group.delimiter(), regroup(inner), group.span()).into()
                        }
                        None => tree.clone(),
                    });
                    start = group.delimiter() == Delimiter::Brace;
                }
                other => {
                    out.push(other.clone());
                    start = is_punct(Some(other), ';');
                }
            }
            at += 1;
        }
        changed.then_some(out)
    }

    /// Rewrites the statement at the head of `rest`; how many trees it takes.
    fn annotated(
        &mut self,
        attributes: &Attributes,
        start: bool,
        rest: &[TokenTree],
        out: &mut Vec<TokenTree>,
    ) -> usize {
        let Some(statement) = Statement::at(rest).filter(|_| start) else {
            self.refuse_place(attributes);
            out.extend(attributes.others.iter().cloned());
            return 0;
        };
        let trees: Vec<TokenTree> = rest.iter().take(statement.len).cloned().collect();
        let trees = self.statements(trees.clone()).unwrap_or(trees);
        let expansion = match self.context {
            Some(context) => expand(context, attributes, &statement, &trees),
            None => Ok(None),
        };
        match expansion {
            Ok(Some(tokens)) => out.extend(tokens),
            Ok(None) => {
                out.extend(attributes.others.iter().cloned());
                out.extend(trees);
            }
            Err(error) => {
                self.error.get_or_insert(error);
                out.extend(trees);
            }
        }
        statement.len
    }

    fn refuse_place(&mut self, attributes: &Attributes) {
        if let Some(first) = attributes.ours.first() {
            self.error
                .get_or_insert(valid::not_a_statement(first.kind, first.span));
        }
    }
}

/// The outer attributes before a statement.
struct Attributes {
    ours: Vec<Ours>,
    others: Vec<TokenTree>,
}

/// Reads the outer attributes at the head of `trees`, and how many trees they take.
fn attributes(trees: &[TokenTree]) -> Option<(Attributes, usize)> {
    let mut found = Attributes {
        ours: Vec::new(),
        others: Vec::new(),
    };
    let mut at = 0;
    while let Some(outer) = trees.get(at..).and_then(outer_attribute) {
        match outer.ours {
            Some(ours) => found.ours.push(ours),
            None => found
                .others
                .extend(trees.iter().skip(at).take(outer.len).cloned()),
        }
        at += outer.len;
    }
    (at > 0).then_some((found, at))
}

/// `name!(…)`: what stands in its parentheses is the macro's.
fn is_macro_call(trees: &[TokenTree]) -> bool {
    const KEYWORDS: [&str; 12] = [
        "if", "while", "match", "return", "in", "break", "else", "let", "mut", "move", "yield",
        "as",
    ];
    let Some(TokenTree::Ident(word)) = trees.first() else {
        return false;
    };
    is_punct(trees.get(1), '!')
        && matches!(trees.get(2), Some(TokenTree::Group(group)) if group.delimiter() != Delimiter::None)
        && !KEYWORDS.iter().any(|keyword| word == keyword)
}

/// A statement as far as we need to know it.
struct Statement {
    /// Trees that it takes, its `;` included.
    len: usize,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `let … ;`
    Let,
    /// `for`, `while`, `loop`, whose body is the last of its trees; whether it is the block's tail.
    Loop { tail: bool },
    /// A block, `if` or `match`, without `;`.
    Block { tail: bool },
    /// `a = b;`: where the `=` stands.
    Assignment(usize),
    /// `f(x);`
    Expression,
    /// The value of the block it stands in.
    Tail,
}

impl Statement {
    fn at(trees: &[TokenTree]) -> Option<Self> {
        let mut word_at = 0;
        if is_punct(trees.first(), '\'') {
            // `'label:`
            word_at = 3;
        }
        let word = trees.get(word_at)?;
        let semicolon = trees.iter().position(|tree| is_punct(Some(tree), ';'));
        let is = |text: &str| is_word(Some(word), text);
        if is("let") {
            return Some(Self {
                len: semicolon.map_or(trees.len(), |at| at + 1),
                form: Form::Let,
            });
        }
        if is("loop") || is("while") || is("for") {
            let len = block_like_len(trees)?;
            return Some(Self {
                len,
                form: Form::Loop {
                    tail: trees.len() == len,
                },
            });
        }
        if is_brace(Some(word)) || is("unsafe") || is("if") || is("match") {
            let len = block_like_len(trees)?;
            let continues = matches!(trees.get(len), Some(TokenTree::Punct(next)) if matches!(next.as_char(), '.' | '?'));
            if !continues {
                if is_punct(trees.get(len), ';') {
                    return Some(Self {
                        len: len + 1,
                        form: Form::Expression,
                    });
                }
                return Some(Self {
                    len,
                    form: Form::Block {
                        tail: trees.len() == len,
                    },
                });
            }
        }
        let end = semicolon.unwrap_or(trees.len());
        let expression = trees.get(..end)?;
        if expression.is_empty() || ["return", "break", "continue"].iter().any(|jump| is(jump)) {
            return None;
        }
        // `pattern => …` of a match arm, `name: …` of a struct: no statements.
        if is_arm_or_field(expression) {
            return None;
        }
        if semicolon.is_none() {
            return Some(Self {
                len: end,
                form: Form::Tail,
            });
        }
        let form = assignment(expression).map_or(Form::Expression, Form::Assignment);
        Some(Self { len: end + 1, form })
    }
}

fn is_arm_or_field(trees: &[TokenTree]) -> bool {
    let arrow = trees.windows(2).any(|pair| {
        is_punct(pair.first(), '=') && is_joint(pair.first()) && is_punct(pair.get(1), '>')
    });
    let comma = trees.iter().any(|tree| is_punct(Some(tree), ','));
    let field =
        matches!(trees.first(), Some(TokenTree::Ident(_))) && type_colon(trees, 1) == Some(1);
    arrow || field || comma && !trees.iter().any(|tree| is_punct(Some(tree), '<'))
}

fn is_joint(tree: Option<&TokenTree>) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.spacing() == proc_macro2::Spacing::Joint)
}

/// Where the `=` of an assignment stands, `+=` and its like included.
fn assignment(trees: &[TokenTree]) -> Option<usize> {
    trees.iter().enumerate().find_map(|(at, tree)| {
        if !is_punct(Some(tree), '=') {
            return None;
        }
        let next = is_joint(Some(tree)) && matches!(trees.get(at + 1), Some(TokenTree::Punct(next)) if matches!(next.as_char(), '=' | '>'));
        let before = at.checked_sub(1).and_then(|before| trees.get(before)).filter(|before| is_joint(Some(before)));
        let compares = ['=', '!', '.'].iter().any(|sign| is_punct(before, *sign));
        let two = at.checked_sub(2).and_then(|before| trees.get(before));
        let shifts = ['<', '>'].iter().any(|sign| is_punct(before, *sign) && is_punct(two, *sign));
        let ordered = !shifts && (is_punct(before, '<') || is_punct(before, '>'));
        (!next && !compares && !ordered).then_some(at)
    })
}

/// How many trees the block-like expression at the head of `trees` takes.
fn block_like_len(trees: &[TokenTree]) -> Option<usize> {
    let total = trees.len();
    let parser = |input: syn::parse::ParseStream<'_>| {
        input.call(block_like)?;
        let rest: TokenStream = input.parse()?;
        Ok(total - rest.into_iter().count())
    };
    let parsed = parser.parse2(trees.iter().cloned().collect()).ok();
    // What syn does not know, and what an editor sees half typed, ends at its first braces.
    parsed.or_else(|| {
        trees
            .iter()
            .position(|tree| is_brace(Some(tree)))
            .map(|at| at + 1)
    })
}

fn block_like(input: syn::parse::ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    let labelled = ahead.peek(syn::Lifetime);
    if labelled {
        ahead.parse::<syn::Label>()?;
    }
    if ahead.peek(syn::Token![for]) {
        input.parse::<syn::ExprForLoop>().map(drop)
    } else if ahead.peek(syn::Token![while]) {
        input.parse::<syn::ExprWhile>().map(drop)
    } else if ahead.peek(syn::Token![loop]) {
        input.parse::<syn::ExprLoop>().map(drop)
    } else if ahead.peek(syn::Token![if]) {
        input.parse::<syn::ExprIf>().map(drop)
    } else if ahead.peek(syn::Token![match]) {
        input.parse::<syn::ExprMatch>().map(drop)
    } else if ahead.peek(syn::Token![unsafe]) {
        input.parse::<syn::ExprUnsafe>().map(drop)
    } else {
        input.parse::<syn::ExprBlock>().map(drop)
    }
}

/// The statement with its attributes carried out.
fn expand(
    context: &Context,
    attributes: &Attributes,
    statement: &Statement,
    trees: &[TokenTree],
) -> syn::Result<Option<TokenStream>> {
    let mut set = Set::default();
    for ours in &attributes.ours {
        set.read(ours)?;
    }
    let Some(first) = attributes.ours.first() else {
        return Ok(None);
    };
    if let (Form::Loop { .. }, Some(record)) = (statement.form, set.records.first()) {
        return Err(valid::not_a_statement(record.kind, record.span));
    }
    if set.opens_span() && holds_await(trees) {
        let text = format!(
            "`{}` opens a span on this thread, which cannot be held across `.await`: move these lines into an `async fn` \
             and put the attribute there",
            first.kind.name()
        );
        return Err(syn::Error::new(first.span, text));
    }
    let target = Target::of(statement.form, trees, &set)?;
    let writer = Writer {
        context,
        set: &set,
        first,
        target,
        others: &attributes.others,
    };
    Ok(Some(writer.statement(statement.form, trees)))
}

/// Whether the statement itself waits: not in an `async` block or closure of its own.
fn holds_await(trees: &[TokenTree]) -> bool {
    let mut own = false;
    for (at, tree) in trees.iter().enumerate() {
        match tree {
            TokenTree::Ident(word) if word == "async" => own = true,
            TokenTree::Ident(word)
                if word == "await" && at > 0 && is_punct(trees.get(at - 1), '.') =>
            {
                return true;
            }
            TokenTree::Group(group) => {
                let asynchronous =
                    std::mem::replace(&mut own, false) && group.delimiter() == Delimiter::Brace;
                if !asynchronous && holds_await(&group.stream().into_iter().collect::<Vec<_>>()) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// The value that records of a statement read.
struct Target {
    /// An expression for where it is; none where the value itself must be passed on.
    place: Option<TokenStream>,
    /// What the statement binds or sets, as text.
    name: Option<String>,
    /// The one name that a `let` binds.
    bound: Option<Ident>,
}

impl Target {
    fn of(form: Form, trees: &[TokenTree], set: &Set) -> syn::Result<Self> {
        match form {
            Form::Let => Self::of_let(trees, set),
            Form::Assignment(at) => {
                let compound = matches!(trees.get(at.wrapping_sub(1)), Some(TokenTree::Punct(sign)) if sign.spacing() == proc_macro2::Spacing::Joint);
                let end = if compound { at.saturating_sub(1) } else { at };
                let trees: Vec<TokenTree> = trees.iter().take(end).cloned().collect();
                let several = matches!(trees.as_slice(), [TokenTree::Group(_)])
                    || is_word(trees.first(), "_");
                if let Some(record) = set.records.first()
                    && several
                {
                    let text = format!(
                        "`{}` reads the one place that an assignment sets",
                        record.kind.name()
                    );
                    return Err(syn::Error::new(record.span, text));
                }
                let place = regroup(trees);
                let name = place.to_string();
                Ok(Self {
                    place: Some(place),
                    name: Some(name),
                    bound: None,
                })
            }
            _ => Ok(Self {
                place: None,
                name: None,
                bound: None,
            }),
        }
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
            let text = name.to_string();
            return Ok(Self {
                place: Some(quote!(#name)),
                name: Some(text),
                bound: Some(name),
            });
        }
        let text = pattern_trees
            .iter()
            .cloned()
            .collect::<TokenStream>()
            .to_string();
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

/// Writes one statement.
struct Writer<'a> {
    context: &'a Context,
    set: &'a Set,
    first: &'a Ours,
    target: Target,
    others: &'a [TokenTree],
}

impl Writer<'_> {
    fn statement(&self, form: Form, trees: &[TokenTree]) -> TokenStream {
        let others = self.others;
        match form {
            Form::Loop { tail } => {
                let inside = if self.set.measured.is_some() {
                    self.turns(trees)
                } else {
                    regroup(trees.to_vec())
                };
                let outside = self.set.measured.is_none();
                let open = outside.then(|| self.open());
                let close = (outside && !tail).then(|| self.close());
                quote!(#open #(#others)* #inside #close)
            }
            Form::Let | Form::Assignment(_) => self.in_place(trees),
            Form::Block { tail } if self.set.records.is_empty() => {
                let open = self.open();
                let close = (!tail).then(|| self.close());
                let body = regroup(trees.to_vec());
                quote!(#open #(#others)* #body #close)
            }
            Form::Expression if self.set.records.is_empty() => self.in_place(trees),
            Form::Tail if self.set.records.is_empty() => {
                let open = self.open();
                let body = regroup(trees.to_vec());
                quote!(#open #(#others)* #body)
            }
            Form::Block { .. } | Form::Tail => self.passed_on(trees, false),
            Form::Expression => self.passed_on(trees, true),
        }
    }

    fn place(&self) -> crate::site::Place {
        self.context
            .statement(self.first.span, self.target.name.as_deref())
    }

    fn open(&self) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        let open = self
            .context
            .open(self.set, &self.place(), Flavour::Call, &[]);
        self.gated(quote_spanned!(site=> let guard = #open;))
    }

    /// A statement of ours, there only where the user's is.
    fn gated(&self, statement: TokenStream) -> TokenStream {
        let configuration = configuration(self.others);
        quote!(#(#configuration)* #statement)
    }

    /// Ends the span where nothing is recorded of its value.
    fn close(&self) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        self.gated(quote_spanned!(site=> ::core::mem::drop(guard);))
    }

    /// Ends the span; what follows belongs to it.
    fn end(&self) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        if self.set.measured.is_some() {
            quote_spanned!(site=> #private::Measured::end(guard))
        } else if self.set.span.is_some() {
            quote_spanned!(site=> #private::Span::end(guard))
        } else {
            quote_spanned!(site=> #private::Ended::here())
        }
    }

    fn records(&self) -> Vec<Record> {
        let record = |(number, attribute): (usize, &Attribute)| {
            let place = self
                .context
                .statement(attribute.span, self.target.name.as_deref());
            self.context.record(attribute, &place, number)
        };
        self.set.records.iter().enumerate().map(record).collect()
    }

    /// The statement as it is, between the ends of its span; what it binds or sets is recorded after it.
    fn in_place(&self, trees: &[TokenTree]) -> TokenStream {
        let site = Span::mixed_site();
        let others = self.others;
        let body = regroup(trees.to_vec());
        let records = self.records();
        let open = self.open();
        let sees_failure = self.set.measured.is_some() && self.target.bound.is_some();
        let Some(value) = self
            .target
            .place
            .as_ref()
            .filter(|_| !records.is_empty() || sees_failure)
        else {
            let close = self.close();
            return quote!(#open #(#others)* #body #close);
        };
        let early = self.early(&records);
        let end = self.end();
        let at = quote_spanned!(site=> &ended);
        let calls = records.iter().map(|record| {
            let call = record.call(self.context, &at, Some(value));
            self.gated(quote_spanned!(site=> #[allow(clippy::used_underscore_binding)] #call))
        });
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| match &self.target.bound {
                Some(_) => self.gated(finish(self.context, value)),
                None => self.gated(self.succeed()),
            });
        let ended = self.gated(quote_spanned!(site=> let ended = #end;));
        quote_spanned! {site=>
            #open
            #early
            #(#others)* #body
            #ended
            #(#calls)*
            #finish
        }
    }

    /// Labels are built before the statement, from what it is given.
    fn early(&self, records: &[Record]) -> TokenStream {
        records
            .iter()
            .filter_map(|record| record.early.as_ref())
            .map(|(_, early)| self.gated(early.clone()))
            .collect()
    }

    fn succeed(&self) -> TokenStream {
        let private = &self.context.private;
        quote_spanned!(Span::mixed_site()=> #private::Ended::finish(ended, || ::core::option::Option::None);)
    }

    /// An expression whose value is recorded on its way.
    fn passed_on(&self, trees: &[TokenTree], semicolon: bool) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let others = self.others;
        let len = if semicolon {
            trees.len().saturating_sub(1)
        } else {
            trees.len()
        };
        let value = regroup(trees.iter().take(len).cloned().collect());
        let records = self.records();
        let open = self.open();
        let early = self.early(&records);
        let end = self.end();
        let at = quote_spanned!(site=> &ended);
        let reference = quote_spanned!(site=> *value);
        let calls = records
            .iter()
            .map(|record| record.call(self.context, &at, None));
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| finish(self.context, &reference));
        let tapped = quote_spanned! {site=>
            #private::tap(#value, |value| {
                let ended = #end;
                #(#calls)*
                #finish
            })
        };
        if semicolon {
            quote_spanned!(site=> #open #early #(#others)* ::core::mem::drop(#tapped);)
        } else {
            quote_spanned!(site=> #open #early #(#others)* #tapped)
        }
    }

    /// A loop each of whose turns is one call.
    fn turns(&self, trees: &[TokenTree]) -> TokenStream {
        let mut trees = trees.to_vec();
        let Some(body) = trees.pop() else {
            return TokenStream::new();
        };
        let Some(group) = group_of(Some(&body), Delimiter::Brace) else {
            trees.push(body);
            return regroup(trees);
        };
        let open = self.open();
        let stream = group.stream();
        let inside: Vec<TokenTree> = stream.clone().into_iter().collect();
        let mut at = 0;
        while is_punct(inside.get(at), '#') && is_punct(inside.get(at + 1), '!') {
            at += 3;
        }
        // Items come first, or clippy blames the user for a statement that is ours.
        while let Some(len) = inside.get(at..).and_then(item_len) {
            at += len;
        }
        let turn = if at == 0 {
            quote!(#open #stream)
        } else {
            let mut head = inside;
            let rest = head.split_off(at.min(head.len()));
            let (head, rest) = (regroup(head), regroup(rest));
            quote!(#head #open #rest)
        };
        let mut tokens = regroup(trees);
        braces(turn, group.span()).to_tokens(&mut tokens);
        tokens
    }
}
