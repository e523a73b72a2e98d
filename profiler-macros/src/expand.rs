//! The new item.

use crate::absorbed;
use crate::args::{Attribute, Kind};
use crate::backward::BackwardEvidence;
use crate::boxed::Boxed;
use crate::crossing::Crossing;
use crate::detaching;
use crate::function::{self, Body, Function, Item, Pattern};
use crate::gradients::{self, StoreArgument};
use crate::hints;
use crate::items::item_len;
use crate::ops;
use crate::params::{Rebind, argument, is_told, outer, outside, params, rebindings, stays};
use crate::site::{Context, Flavour, Record};
use crate::statements::{Scan, Statements};
use crate::tokens::{Ours, braces, is_punct, regroup, text_of, text_of_all};
use crate::types::{holds_impl, is_never, without_impl};
use crate::valid::{self, Set};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::BTreeSet;

/// Expands one attribute, together with those of ours that stand below it.
pub(crate) fn attribute(
    kind: Kind,
    args: TokenStream,
    item: TokenStream,
    off: bool,
) -> TokenStream {
    if absorbed::is_marker(&args) {
        return TokenStream::new();
    }
    let first = Ours {
        kind,
        span: Span::call_site(),
        args,
        path: Vec::new(),
        malformed: None,
    };
    match function::read(item.clone()) {
        Item::Other(item, span, word) => refuse(&valid::not_a_function(kind, span, &word), item),
        Item::Function(function, stacked) => match expand(&first, &stacked, &function, off) {
            Ok(Some(expansion)) => expansion,
            Ok(None) => strip(&function, &stacked, item),
            Err(error) => refuse(&error, strip(&function, &stacked, item)),
        },
    }
}

/// One error, and the item for the rest of the program (and for editors).
fn refuse(error: &syn::Error, item: TokenStream) -> TokenStream {
    let mut tokens = error.to_compile_error();
    tokens.extend(item);
    tokens
}

/// The item without our attributes, otherwise token for token.
fn strip(function: &Function, stacked: &[Ours], item: TokenStream) -> TokenStream {
    let params = function
        .params
        .iter()
        .any(|param| !param.ours.is_empty())
        .then(|| params(function, &Rebind::Nothing));
    let body = match &function.body {
        Body::Block(group) => {
            let mut statements = Statements::stripping();
            let scan = statements.body(group.stream());
            let markers = markers(function, stacked, &statements);
            let changed = scan.changed.is_some() || !markers.is_empty();
            changed.then(|| {
                let (head, rest) = PlainBody::of(scan, group, markers).split(false);
                (group, quote!(#head #rest))
            })
        }
        Body::Missing(_) => None,
    };
    if stacked.is_empty() && params.is_none() && body.is_none() {
        return item;
    }
    let mut header = function.header.clone();
    if let Some(params) = params {
        replace(&mut header, function.params_at, params);
    }
    let mut tokens = regroup(header);
    match (&function.body, body) {
        (_, Some((group, body))) => braces(body, group.span()).to_tokens(&mut tokens),
        (Body::Block(group), None) => group.to_tokens(&mut tokens),
        (Body::Missing(span), None) => {
            let mut end = proc_macro2::Punct::new(';', proc_macro2::Spacing::Alone);
            end.set_span(*span);
            end.to_tokens(&mut tokens);
        }
    }
    tokens
}

/// The item expanded; nothing with `off`.
fn expand(
    first: &Ours,
    stacked: &[Ours],
    function: &Function,
    off: bool,
) -> syn::Result<Option<TokenStream>> {
    let mut set = Set::default();
    for ours in std::iter::once(first).chain(stacked) {
        set.read(ours)?;
    }
    valid::function(function, &set)?;
    let mut param_records = Vec::new();
    for param in &function.params {
        param_records.push(valid::parameter(&param.ours)?);
    }
    let Body::Block(block) = &function.body else {
        return Ok(None);
    };
    let runtime = set.runtime().or_else(|| {
        param_records
            .iter()
            .flatten()
            .find_map(|record| record.runtime.as_ref())
    });
    if runtime.is_none() && crate::manifest::lacks_crate(first.span) {
        let text = "this crate has no dependency called `candle-profiler`: say where it is with `crate = path` (such as \
                    `crate = ::facade::candle_profiler`)";
        return Err(syn::Error::new(first.span, text));
    }
    let mut context = Context::new(runtime, &function.name, function.has_self_type);
    if let Some(boxed) = Boxed::of(function, &block.stream()) {
        boxed.refuse(function, &set, &param_records)?;
        context.told = boxed.loses_arguments(function);
    }
    if set.records.iter().any(Attribute::is_of_gradients) {
        context.arguments = gradients::arguments(&context, function, &|_| true);
    }
    let mut statements =
        Statements::expanding(&context, function).tells(valid::tells_failure(function));
    let mode = set.ops().filter(|_| !off);
    let mut body = match mode {
        None => statements.body(block.stream()),
        Some(mode) => {
            // What is rewritten here is not rewritten again for a statement.
            statements.has_ops = true;
            let sight = ops::sight_of(function);
            let rewritten = ops::rewrite(&context, mode, sight, false, block.stream());
            let mut scan = statements.body(rewritten.clone());
            scan.changed.get_or_insert(rewritten);
            scan
        }
    };
    if mode.is_some() {
        body.text = block.stream().to_string();
    }
    let turns = statements.turns;
    let absorbed = markers(function, stacked, &statements);
    if let Some(error) = statements.into_error() {
        return Err(error);
    }
    if off {
        return Ok(None);
    }
    // A store that is taken is read before the body may empty it.
    let is_taken = gradients::store(function).is_some();
    let (of_taken, of_value): (Vec<_>, Vec<_>) = set
        .records
        .iter()
        .partition(|record| is_taken && record.is_of_gradients());
    let records = of_value
        .into_iter()
        .enumerate()
        .map(|(n, record)| context.record(record, &context.place(), n, false))
        .collect();
    set.calls_backward = hints::calls_backward(&body.text);
    let span = block.span();
    let mut plan = Plan {
        backward: BackwardEvidence::of(&context, function, &set, &body.text),
        taken: StoreArgument::of(&context, function, &of_taken),
        crossing: Crossing::of(function, &set, block, &body.text),
        set: &set,
        function,
        context: &context,
        records,
        entry: detaching::told(&context, &set, block.stream(), &body.text),
        turns,
        words: words(first, stacked, function),
        span,
    };
    plan.lend_changed();
    let opaque = plan.param_records(&param_records);
    let plain = PlainBody::of(body, block, absorbed);
    Ok(Some(plan.item(plain, opaque)))
}

/// The words of all arguments, those inside of string literals too.
fn words(first: &Ours, stacked: &[Ours], function: &Function) -> BTreeSet<String> {
    let params = function.params.iter().flat_map(|param| &param.ours);
    let all = std::iter::once(first).chain(stacked).chain(params);
    let mut words = BTreeSet::new();
    for ours in all {
        let text = ours.args.to_string();
        let separator = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_';
        words.extend(text.split(separator).map(str::to_owned));
    }
    // A record on a parameter reads it.
    for param in &function.params {
        if let (Pattern::Name(name), false) = (&param.pattern, param.ours.is_empty()) {
            words.insert(text_of(name));
        }
    }
    words
}

/// What keeps the imports of absorbed attributes in use.
fn markers(function: &Function, stacked: &[Ours], statements: &Statements<'_>) -> TokenStream {
    let params = function.params.iter().flat_map(|param| &param.ours);
    let outer = stacked
        .iter()
        .chain(params)
        .map(|ours| ours.path.as_slice());
    let inner = statements.absorbed.iter().map(Vec::as_slice);
    absorbed::markers(outer.chain(inner))
}

/// The user's body, with the attributes inside it expanded.
pub(crate) struct PlainBody {
    stream: TokenStream,
    /// Whether an item opens it.
    item_first: bool,
    /// Whether `#![…]` opens it.
    inner_attributes: bool,
    /// Items that stand behind what must stay first.
    markers: TokenStream,
}

impl PlainBody {
    fn of(scan: Scan, block: &Group, markers: TokenStream) -> Self {
        Self {
            stream: scan.changed.unwrap_or_else(|| block.stream()),
            item_first: scan.item_first,
            inner_attributes: scan.inner_attributes,
            markers,
        }
    }

    /// The same with its statements written anew.
    pub(crate) fn rewritten(self, stream: TokenStream) -> Self {
        Self { stream, ..self }
    }

    /// Splits off what must stay first: inner attributes, and leading items where `items` says so.
    pub(crate) fn split(self, items: bool) -> (TokenStream, TokenStream) {
        if !(self.inner_attributes || items && self.item_first) {
            return (self.markers, self.stream);
        }
        let mut head: Vec<TokenTree> = self.stream.into_iter().collect();
        let mut at = 0;
        while is_punct(head.get(at), '#') && is_punct(head.get(at + 1), '!') {
            at += 3;
        }
        if items {
            while let Some(len) = head.get(at..).and_then(item_len) {
                at += len;
            }
        }
        let rest = head.split_off(at.min(head.len()));
        let mut head = regroup(head);
        head.extend(self.markers);
        (head, regroup(rest))
    }
}
/// Everything that an expansion is made of.
pub(crate) struct Plan<'a> {
    /// What a function that differentiates or optimizes does it to.
    pub(crate) backward: BackwardEvidence,
    /// Records of a store of gradients that the function takes.
    pub(crate) taken: StoreArgument,
    /// What tensors go through the function.
    pub(crate) crossing: Option<Crossing>,
    pub(crate) set: &'a Set,
    pub(crate) function: &'a Function,
    pub(crate) context: &'a Context,
    pub(crate) records: Vec<Record>,
    /// What runs when the span has just opened: records of parameters.
    pub(crate) entry: TokenStream,
    /// Whether measured statements of the body are decided by its value.
    pub(crate) turns: bool,
    /// Every word in the attributes' arguments: an argument of the function that is among them is used.
    pub(crate) words: BTreeSet<String>,
    /// The place of the user's braces.
    pub(crate) span: Span,
}

impl Plan<'_> {
    /// Writes the records of parameters; whether one of them is a pattern, whose argument needs a name.
    fn param_records(&mut self, records: &[Vec<crate::args::Attribute>]) -> bool {
        let mut opaque = false;
        let site = Span::mixed_site();
        let private = &self.context.private;
        let mut number = self.records.len();
        for (at, (param, records)) in self.function.params.iter().zip(records).enumerate() {
            let (value, name) = match &param.pattern {
                Pattern::Name(name) | Pattern::Receiver(name) => (name.clone(), text_of(name)),
                Pattern::Other | Pattern::Variadic => {
                    (argument(at), text_of_all(&param.pattern_trees))
                }
            };
            for attribute in records {
                opaque |= matches!(param.pattern, Pattern::Other);
                let place = self.context.statement(attribute.span, Some(&name));
                let record = self.context.record(attribute, &place, number, true);
                number += 1;
                let early = record.early.as_ref().map(|(_, early)| early);
                let at = quote_spanned!(site=> &#private::Ended::here());
                let call = record.call(self.context, &at, Some(&quote!(#value)));
                self.entry.extend(
                    quote_spanned!(site=> #early #[allow(clippy::used_underscore_binding)] #call),
                );
            }
        }
        opaque
    }

    /// Lends the body what it writes its result to, which can then be looked at when it is done.
    fn lend_changed(&mut self) {
        let changed = self.crossing.as_ref();
        let Some(name) = changed.and_then(|crossing| crossing.changed.clone()) else {
            return;
        };
        if self.taken.lent.is_some() {
            self.crossing = None;
            return;
        }
        let site = Span::mixed_site();
        let lent = Ident::new("lent", site);
        let lend = quote_spanned!(site=> let #lent = &mut *#name;);
        self.taken.before.extend(lend);
        self.taken.lent = Some((name, lent));
    }

    fn item(&self, body: PlainBody, opaque: bool) -> TokenStream {
        let function = self.function;
        if function.is_async {
            return self.finished(self.future(body), &Rebind::All(&self.words));
        }
        if let Some(boxed) = Boxed::of(function, &body.stream) {
            return self.finished(self.boxed(body, boxed), &Rebind::Recorded);
        }
        let returns = function.output.as_ref().filter(|output| !is_never(output));
        let by_value = match returns {
            None => false,
            Some(_) if !self.records.is_empty() || self.turns => true,
            // What is returned early is seen by a closure alone.
            Some(_)
                if self
                    .crossing
                    .as_ref()
                    .is_some_and(|crossing| crossing.returns_early)
                    && !function.track_caller =>
            {
                true
            }
            // A body whose type is opaque must stay where that type drives its inference, a tracked caller where it is.
            Some(output) => {
                self.set.measured.is_some() && !function.track_caller && !holds_impl(output)
            }
        };
        if by_value {
            return self.finished(self.value(body), &Rebind::All(&self.words));
        }
        let opaque_output = returns.is_some_and(|output| holds_impl(output));
        let probes = if opaque_output {
            Vec::new()
        } else {
            self.probes()
        };
        if opaque || !probes.is_empty() {
            return self.finished(self.rebound(body, &probes), &Rebind::All(&self.words));
        }
        self.finished(self.guarded(body), &Rebind::Nothing)
    }

    fn finished(&self, body: TokenStream, rebind: &Rebind<'_>) -> TokenStream {
        let mut header = self.function.header.clone();
        if matches!(rebind, Rebind::All(_))
            || self
                .function
                .params
                .iter()
                .any(|param| !param.ours.is_empty())
        {
            replace(
                &mut header,
                self.function.params_at,
                params(self.function, rebind),
            );
        }
        // A call that never returns makes ours around it unreachable, which is no fault of the program's.
        let allowed = self.set.ops().is_some();
        let mut tokens = match allowed {
            true => quote_spanned!(Span::mixed_site()=> #[allow(unreachable_code)]),
            false => TokenStream::new(),
        };
        tokens.extend(regroup(header));
        braces(body, self.span).to_tokens(&mut tokens);
        tokens
    }

    /// Arguments that may tell the device of a measured call.
    pub(crate) fn probes(&self) -> Vec<Ident> {
        if self
            .set
            .measured
            .as_ref()
            .is_none_or(|measured| measured.measure.device.is_some())
        {
            return Vec::new();
        }
        let names = self
            .function
            .params
            .iter()
            .filter_map(|param| match &param.pattern {
                // One with attributes may be configured away.
                Pattern::Name(name) if param.attributes.is_empty() => {
                    Some(outer(name, &self.words))
                }
                _ => None,
            });
        names.collect()
    }

    /// Reading an argument under the user's own name is no use of it that clippy should tell of.
    pub(crate) fn underscored(&self, probes: &[Ident]) -> Option<TokenStream> {
        let told = |name: &Ident| name.to_string().starts_with('_') && is_told(name, &self.words);
        probes
            .iter()
            .any(told)
            .then(|| quote_spanned!(Span::mixed_site()=> #[allow(clippy::used_underscore_binding)]))
    }

    pub(crate) fn open(&self, flavour: Flavour, probes: &[Ident]) -> TokenStream {
        self.context
            .open(self.set, &self.context.place(), flavour, probes)
    }

    /// A guard as the first statement of the same body.
    fn guarded(&self, body: PlainBody) -> TokenStream {
        let looks = self.looks_through();
        let (head, rest) = body.split(!looks || self.taken.lent.is_none());
        let open = self.guard(&[]);
        let entry = &self.entry;
        if !looks {
            let before = self.before(true);
            return quote!(#head #open #entry #before #rest);
        }
        let before = self.before(true);
        let body = self.seen(rest);
        quote!(#head #open #entry #before #body)
    }

    /// Whether something is looked at when the body is done.
    fn looks_through(&self) -> bool {
        self.crossing.is_some() || self.backward.returns_store || !self.taken.after.is_empty()
    }

    /// What is looked at before the body.
    ///
    /// `inside`: where the arguments have the names that the body knows them by.
    pub(crate) fn before(&self, inside: bool) -> TokenStream {
        let crossing = self.crossing.as_ref();
        let apart = |at: usize| {
            let param = self.function.params.get(at);
            inside || param.is_some_and(|param| stays(param, &self.words))
        };
        let given = crossing.map(|crossing| crossing.before(self.context, &apart));
        let taken = &self.taken.before;
        let backward = &self.backward.before;
        quote!(#backward #given #taken)
    }

    /// The body in a scope of its own, what goes through it looked at when it is done.
    fn seen(&self, body: TokenStream) -> TokenStream {
        let lent = self
            .taken
            .lent
            .as_ref()
            .map(|(name, lent)| quote_spanned!(Span::mixed_site()=> let #name = #lent;));
        let body = quote!(#lent #body);
        match self.short_form(&body) {
            Some(short) => short,
            None => self.around(body),
        }
    }

    /// See [`Crossing::short_form`], where nothing else is looked at.
    fn short_form(&self, body: &TokenStream) -> Option<TokenStream> {
        if !self.taken.after.is_empty() || self.backward.returns_store {
            return None;
        }
        let crossing = self.crossing.as_ref()?;
        crossing.short_form(self.context, body)
    }

    /// An expression for the body's value, looked at on its way.
    pub(crate) fn around(&self, body: TokenStream) -> TokenStream {
        if !self.looks_through() {
            return self.scope(body);
        }
        if let Some(short) = self.short_form(&body) {
            return quote_spanned!(Span::mixed_site()=> { #short });
        }
        let body = self.scope(body);
        let site = Span::mixed_site();
        let private = &self.context.private;
        let after = self.after(&quote_spanned!(site=> value));
        quote_spanned!(site=> #private::tap(#body, |value| { #after let _ = value; }))
    }

    /// What is looked at when the value is there; `value` refers to it.
    fn after(&self, value: &TokenStream) -> TokenStream {
        let crossing = self.crossing.as_ref();
        let crossed = crossing.map(|crossing| crossing.after(self.context, value));
        let backward = self.backward.after(self.context, value);
        let taken = &self.taken.after;
        quote!(#crossed #backward #taken)
    }

    fn guard(&self, probes: &[Ident]) -> TokenStream {
        let site = Span::mixed_site();
        if !self.set.opens_span() {
            return TokenStream::new();
        }
        let open = self.open(Flavour::Call, probes);
        let allow = self.underscored(probes);
        quote_spanned!(site=> #allow let guard = #open;)
    }

    /// The same, with arguments that are looked at bound again: looking at one would otherwise count as its use.
    fn rebound(&self, body: PlainBody, probes: &[Ident]) -> TokenStream {
        let (head, rest) = body.split(false);
        let open = self.guard(probes);
        let entry = &self.entry;
        let rebound = rebindings(self.function, &self.words, false, None);
        if !self.looks_through() {
            let before = self.before(true);
            let body = self.scope(rest);
            return quote!(#head #open #entry #rebound #before #body);
        }
        let before = self.before(true);
        let body = self.seen(rest);
        quote!(#head #open #entry #rebound #before #body)
    }

    /// The user's body as a scope of its own, whose last temporaries go before the arguments as in a function.
    pub(crate) fn scope(&self, body: TokenStream) -> TokenStream {
        let body = braces(body, self.span);
        quote_spanned!(Span::mixed_site()=> match () { () => #body })
    }

    /// The same with its declared type in sight, if that is one word: without it clippy takes the literals of a closure
    /// for untyped ones. A longer type would draw lints and errors of its own.
    pub(crate) fn typed(&self, scope: TokenStream) -> TokenStream {
        match self.function.output.as_deref() {
            Some([TokenTree::Ident(output)]) => quote_spanned! {Span::mixed_site()=>
                let value: #output = #scope;
                #[allow(unreachable_code)]
                return value;
            },
            _ => scope,
        }
    }

    /// The body in a closure, so that its value can be seen.
    fn value(&self, body: PlainBody) -> TokenStream {
        let site = Span::mixed_site();
        let private = &self.context.private;
        let (head, rest) = body.split(false);
        let probes = self.probes();
        let allow = self.underscored(&probes);
        let open = self.set.opens_span().then(|| {
            let open = self.open(Flavour::Call, &probes);
            quote_spanned!(site=> #allow let span = #open;)
        });
        let texts = self
            .records
            .iter()
            .filter_map(|record| record.early.as_ref().map(|(_, early)| early));
        let texts = outside(quote!(#(#texts)*), self.function, &self.words);
        // `{#}` counts under the parent, so before the span opens; but a measured call opens the capture itself.
        let (before, after) = match self.set.measured.is_some() {
            true => (None, Some(texts)),
            false => (Some(texts), None),
        };
        let entry = &self.entry;
        let turns = self.turns.then(
            || quote_spanned!(site=> let parked = #private::Turns::new(); let turns = &parked;),
        );
        let decide = self.turns.then(
            || quote_spanned!(site=> #private::outcome(&value).__candle_profiler_decide(turns);),
        );
        let (output, _) = without_impl(self.function.output.as_deref().unwrap_or_default());
        let output = regroup(output);
        let rebound = rebindings(self.function, &self.words, true, self.taken.lent.as_ref());
        let run = self.typed(self.scope(rest));
        let ended = if self.set.measured.is_some() {
            quote_spanned!(site=> #private::Measured::end(span))
        } else if self.set.opens_span() {
            quote_spanned!(site=> #private::Span::end(span))
        } else {
            quote_spanned!(site=> #private::Ended::here())
        };
        let evidence = self.evidence();
        let given = outside(self.before(false), self.function, &self.words);
        let seen = self.after(&quote_spanned!(site=> &value));
        let seen = outside(seen, self.function, &self.words);
        quote_spanned! {site=>
            #head
            #before
            #open
            #after
            #entry
            #turns
            #given
            let value = #private::invoke(move || -> #output { #rebound #run });
            #decide
            #seen
            let ended = #ended;
            #evidence
            return value;
        }
    }

    /// What is told of `value` once its span has `ended`.
    pub(crate) fn evidence(&self) -> TokenStream {
        let site = Span::mixed_site();
        let at = quote_spanned!(site=> &ended);
        let records = self
            .records
            .iter()
            .map(|record| record.call(self.context, &at, None));
        let finish = self
            .set
            .measured
            .is_some()
            .then(|| finish(self.context, &quote_spanned!(site=> value)));
        quote_spanned!(site=> #(#records)* #finish)
    }
}

/// Closes the capture that a measured call opened; asked only then whether `value` says that it failed.
pub(crate) fn finish(context: &Context, value: &TokenStream) -> TokenStream {
    let site = Span::mixed_site();
    let private = &context.private;
    quote_spanned!(site=> #private::outcome(&#value).__candle_profiler_finish(ended);)
}
fn replace(trees: &mut [TokenTree], at: usize, tree: TokenTree) {
    if let Some(place) = trees.get_mut(at) {
        *place = tree;
    }
}
