//! The page as a terminal gets it.

use super::*;

#[test]
fn hostile_and_long_names_neither_steer_the_terminal_nor_widen_the_page() {
    let mut digest = full();
    let names = [
        "\u{1b}]0;title\u{7}".to_owned(),
        "a\nb\r\tc".to_owned(),
        "\u{202e}reversed".to_owned(),
        "層".repeat(300),
        "🙂 ".repeat(300),
        "x".repeat(100_000),
    ];
    for name in &names {
        let spans = ClosedSpan {
            how: HowClosed {
                cut: true,
                ..HowClosed::default()
            },
            ..lasted(u64::MAX, 0)
        };
        digest.span(site(name), spans);
        let bad = Statistics {
            dtype: name,
            non_finite: 1,
            alarm: Some(true),
            ..good(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], f64::MAX)
        };
        digest.statistics(name, name, &bad);
        digest.scalar(name, f64::NAN, true);
        digest.note(name.clone());
        digest.dropped(name, 1);
        digest.gradient(&Gradient {
            root: name,
            ..gradient(name, GradientState::NonFinite, None, Some(name))
        });
    }
    digest.meta(Meta {
        entrypoint: names[0].clone() + &names[3],
        device: names[0].clone(),
        ..meta()
    });
    digest.failed(names.concat());
    for width in [20, 40, 60, 80, 132] {
        let text = render(
            &digest,
            &Look {
                width,
                ..look(None)
            },
        );
        assert!(widest(&text) <= width, "{width}: {text}");
        let harmless = |letter: char| letter == '\n' || !letter.is_control();
        assert!(text.chars().all(harmless));
        assert!(!text.contains('\u{202e}'));
    }
}

#[test]
fn colour_marks_what_matters_and_changes_no_letter() {
    let mut digest = full();
    digest.failed("no");
    let plain = Look {
        unoptimised: true,
        ..look(None)
    };
    let colour = Look {
        colour: true,
        ..plain
    };
    let coloured = render(&digest, &colour);
    assert!(
        coloured.contains("\u{1b}[31m  failed: no\u{1b}[0m\n"),
        "{coloured}"
    );
    assert!(coloured.contains("\u{1b}[33mbuilt without optimisation"));
    let mut stripped = coloured;
    for code in ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[31m", "\u{1b}[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, render(&digest, &plain));
    assert!(!stripped.contains('\u{1b}'));
}

#[test]
fn colour_is_for_terminals_whose_owner_wants_it() {
    use std::ffi::OsStr;
    assert!(wants_colour(true, None));
    assert!(wants_colour(true, Some(OsStr::new(""))));
    assert!(!wants_colour(true, Some(OsStr::new("1"))));
    assert!(!wants_colour(false, None));
}

#[test]
fn the_command_can_be_copied_whatever_the_path() {
    let path = Path::new("my traces/it's.jsonl");
    let text = render(&Digest::new(), &look(Some(path)));
    assert!(text.contains("trace  my traces/it's.jsonl\n"), "{text}");
    let command = "candle-profile view 'my traces/it'\\''s.jsonl' -o 'my traces/it'\\''s.html'\n";
    assert!(text.contains(&format!("view   {command}")), "{text}");
    let long = "d/".repeat(100) + "t.jsonl";
    let text = render(&Digest::new(), &look(Some(Path::new(&long))));
    assert!(
        text.contains(&format!("trace  {long}\n")),
        "paths are never cut"
    );
}
