//! The expansion as a function of token streams.

use crate::args::Kind;
use crate::expand::attribute;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::str::FromStr;

fn stream(text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap()
}

/// The expansion of an attribute without arguments.
fn expanded(kind: Kind, item: &str) -> String {
    attribute(kind, TokenStream::new(), stream(item), false).to_string()
}

/// What `off` makes of it.
fn stripped(args: &str, item: &str) -> String {
    attribute(Kind::ProfileSpan, stream(args), stream(item), true).to_string()
}

fn normal(text: &str) -> String {
    stream(text).to_string()
}

fn errors(text: &str) -> usize {
    text.matches("compile_error").count()
}

#[test]
fn half_typed_bodies_are_kept() {
    for (item, body) in [
        ("fn f(&self) -> u32 { let x = self. }", "let x = self ."),
        ("fn f() { match x { } }", "match x { }"),
        ("fn f() { if }", "if"),
        ("fn f(a: u32) -> { }", "fn f (a : u32) ->"),
        ("fn f() { #[profile_span] }", "fn f () {"),
        ("fn f() { #[profile_span] let }", "let"),
        ("fn f() { #[measured] for x in }", "for x in"),
        ("fn f() { #[measured] while x }", "while x"),
        ("fn f() { #[record_stats] 'a: }", "'a :"),
        ("fn f(#[record_stats] ) { x }", "x"),
        ("fn f(a: ) { x }", "x"),
        ("fn f(,) { x }", "x"),
        ("fn f( { x }", ""),
        ("async fn f() -> impl { x. }", "x ."),
        ("fn f() -> Pin<Box<dyn > { Box::pin() }", "Box :: pin ()"),
        ("fn", "fn"),
        ("fn f", "fn f"),
        ("fn f()", "fn f ()"),
        ("", ""),
        ("#[x]", "x"),
        ("impl", "impl"),
    ] {
        let Ok(item) = TokenStream::from_str(item) else {
            continue;
        };
        for kind in [
            Kind::Measured,
            Kind::ProfileSpan,
            Kind::ProfileStep,
            Kind::RecordStats,
            Kind::RecordScalar,
        ] {
            for args in [
                "",
                "forward",
                "name = ",
                "name = \"{\"",
                "=",
                "tags(",
                "\"x\"",
            ] {
                let Ok(args) = TokenStream::from_str(args) else {
                    continue;
                };
                for off in [false, true] {
                    let out = attribute(kind, args.clone(), item.clone(), off).to_string();
                    let spaceless = |text: &str| text.replace(' ', "");
                    assert!(
                        spaceless(&out).contains(&spaceless(body)),
                        "{item} became {out}"
                    );
                    assert!(errors(&out) < 2, "{out}");
                }
            }
        }
    }
}

#[test]
fn off_takes_only_our_attributes_away() {
    let untouched = "# [inline] pub (crate) unsafe extern \"C\" fn f < T : Fn (u32) -> u32 > (mut x : T) -> [u8 ; { 1 + 1 }] where T : A < B > { x . y () }";
    assert_eq!(stripped("", untouched), normal(untouched));
    assert_eq!(
        stripped(
            "",
            "#[measured] #[inline] fn f(#[record_stats] #[cfg(a)] x: u32, y: u32) { \
             #[record_stats(\"a\")] #[allow(b)] let a = g(|| { #[profile_span] h() }); \
             #[measured] for i in 0..3 { #[profile_span] { i } } \
             #[measured] fn inner() {} }"
        ),
        normal(
            "#[inline] fn f(#[cfg(a)] x: u32, y: u32) { \
             #[measured(__absorbed)] const _: () = (); \
             #[record_stats(__absorbed)] const _: () = (); \
             #[profile_span(__absorbed)] const _: () = (); \
             #[allow(b)] let a = g(|| { h() }); \
             for i in 0..3 { { i } } \
             #[measured] fn inner() {} }"
        )
    );
}

#[test]
fn a_refused_item_is_still_there_once() {
    for (args, item, left) in [
        (
            "",
            "#[record_stats] const fn f() -> u32 { 1 }",
            "const fn f() -> u32 { #[record_stats(__absorbed)] const _: () = (); 1 }",
        ),
        (
            "nope",
            "fn f() { #[profile_span] g() }",
            "fn f() { #[profile_span(__absorbed)] const _: () = (); g() }",
        ),
        (
            "",
            "fn f() { #[record_scalar] let x = 1; }",
            "fn f() { #[record_scalar(__absorbed)] const _: () = (); let x = 1; }",
        ),
        ("", "pub struct S { a: u32 }", "pub struct S { a: u32 }"),
        ("", "fn f(&self) -> u32;", "fn f(&self) -> u32;"),
        ("", "static F: fn() = g;", "static F: fn() = g;"),
        (
            "",
            "#[measured = 1] fn f() {}",
            "fn f() { #[measured(__absorbed)] const _: () = (); }",
        ),
    ] {
        for off in [false, true] {
            let out = attribute(Kind::ProfileSpan, stream(args), stream(item), off).to_string();
            assert_eq!(errors(&out), 1, "{out}");
            assert!(out.ends_with(&normal(left)), "{out}");
        }
    }
}

#[test]
fn a_span_leaves_the_body_in_place() {
    let out = expanded(
        Kind::ProfileSpan,
        "fn f(mut x: u32) -> impl A { let y = x; |s| s + y }",
    );
    assert!(out.starts_with("fn f (mut x : u32) -> impl A {"), "{out}");
    assert!(out.ends_with("let y = x ; | s | s + y }"), "{out}");
    assert!(!out.contains("invoke"), "{out}");
}

#[test]
fn what_must_come_first_stays_first() {
    for kind in [Kind::ProfileSpan, Kind::Measured] {
        for item in [
            "fn f() { #![allow(a)] x() }",
            "fn f() -> u32 { #![allow(a)] x() }",
            "async fn f() { #![allow(a)] x() }",
        ] {
            let out = expanded(kind, item);
            assert!(
                out.contains("{ # ! [allow (a)]") || out.contains("{ #! [allow (a)]"),
                "{out}"
            );
        }
    }
    // Clippy blames items after a statement on the user.
    let out = expanded(
        Kind::ProfileSpan,
        "fn f() { use a::b; pub(crate) fn g() {} impl A<{ 1 }> for B {} x() }",
    );
    let guard = out.find("let guard").unwrap();
    assert!(
        out.find("for B").unwrap() < guard && guard < out.find("x ()").unwrap(),
        "{out}"
    );
}

#[test]
fn only_the_boxed_form_counts_as_a_future() {
    let boxed = |output: &str, body: &str| {
        let out = expanded(
            Kind::ProfileSpan,
            &format!("fn f() -> {output} {{ {body} }}"),
        );
        out.contains("instrument")
    };
    let future = "Pin<Box<dyn Future<Output = u32> + Send + 'a>>";
    assert!(boxed(future, "let a = 1; Box::pin(async move { a })"));
    assert!(boxed(
        "::core::pin::Pin<Box<dyn ::core::future::Future<Output = u32>>>",
        "Box::pin(async move { 1 },)"
    ));
    assert!(boxed(
        future,
        "if a { b() } ::std::boxed::Box::pin(async move { 1 })"
    ));
    assert!(!boxed(future, "Box::pin(async { 1 })"));
    assert!(!boxed(future, "return Box::pin(async move { 1 })"));
    assert!(!boxed(future, "let a = Box::pin(async move { 1 }); a"));
    assert!(!boxed(future, "wrap(Box::pin(async move { 1 }))"));
    assert!(!boxed(future, "self.Box::pin(async move { 1 })"));
    assert!(!boxed(
        "Pin<Box<dyn Stream<Item = u32>>>",
        "Box::pin(async move { 1 })"
    ));
    assert!(!boxed("BoxFuture<u32>", "Box::pin(async move { 1 })"));
}

/// A stream as `macro_rules` makes it: `inner` stands in an invisible group.
fn with_invisible(before: &str, inner: &str, after: &str) -> TokenStream {
    let mut tokens = stream(before);
    tokens.extend([TokenTree::Group(Group::new(Delimiter::None, stream(inner)))]);
    tokens.extend(stream(after));
    tokens
}

#[test]
fn invisible_groups_keep_their_meaning_in_what_is_rebuilt() {
    let regrouped = |before: &str, inner: &str, after: &str| {
        let trees = with_invisible(before, inner, after).into_iter().collect();
        let rebuilt: TokenStream = crate::tokens::regroup(trees);
        rebuilt.into_iter().any(|tree| matches!(tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis && group.stream().to_string() == normal(inner)))
    };
    for inner in [
        "1 + 2",
        "-x",
        "x as f32",
        "&x",
        "|a| a",
        "a..b",
        "if a { b } else { c }",
        "S { a: 1 }",
        "return x",
        "a = b",
    ] {
        assert!(regrouped("let y = x *", inner, ";"), "{inner}");
    }
    for inner in [
        "x",
        "1.0",
        "a::b",
        "f(x)",
        "x.y",
        "x[0]",
        "{ 1 + 2 }",
        "Vec<u8>",
        "pub(crate)",
        "let z = 1",
        "",
        "x.y()?",
    ] {
        assert!(!regrouped("let y = x *", inner, ";"), "{inner}");
    }
    assert!(regrouped("let y: &", "dyn A + B", "= x;"));
    assert!(!regrouped("a;", "if a { b }", ""));
}

#[test]
fn manifests_tell_who_has_the_crate() {
    use crate::manifest::names_crate;
    for text in [
        "[dependencies]\ncandle-profiler = \"0.1\"",
        "[dependencies]\ncandle-profiler.workspace = true",
        "[dependencies.candle-profiler]\npath = \"x\"",
        "[dependencies]\ncandle_profiler = { package = \"candle-profiler\", path = \"..\" }",
        "[dependencies]\n\"candle-profiler\" = \"0.1\"",
        "[package]\nname = \"candle-profiler\"",
        "[target.'cfg(unix)'.dependencies]\ncandle-profiler={path=\"x\"}",
    ] {
        assert!(names_crate(text), "{text}");
    }
    for text in [
        "[dependencies]\nprof = { package = \"candle-profiler\", path = \"../candle-profiler\" }",
        "[dependencies]\nfacade = \"1\"",
        "[dependencies]\ncandle-profiler-macros = \"0.1\"",
        "[features]\noff = [\"candle-profiler/off\"]",
    ] {
        assert!(!names_crate(text), "{text}");
    }
}

#[test]
fn another_crate_may_be_given_our_name() {
    use crate::manifest::gives_name;
    assert!(gives_name("extern crate prof as candle_profiler;"));
    assert!(gives_name(
        "#[macro_use]\npub extern crate prof\n    as candle_profiler;\nfn f() {}"
    ));
    assert!(!gives_name(
        "extern crate prof; use prof as candle_profiler;"
    ));
    assert!(!gives_name("extern crate candle_profiler as prof;"));
}

#[test]
fn a_marker_vanishes() {
    let marker = stream("const _: () = ();");
    let out = attribute(Kind::RecordScalar, stream("__absorbed"), marker, false);
    assert!(out.is_empty(), "{out}");
}
