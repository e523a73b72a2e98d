//! Traces broken by chance.

use proptest::prelude::*;
use tests::{golden, judge, ours};

/// One small change of a trace. Places are taken modulo what there is.
#[derive(Debug, Clone)]
enum Mutation {
    Drop(usize),
    Duplicate(usize),
    Swap(usize, usize),
    /// Puts a number in the place of one.
    Number(usize, usize, u64),
    /// Puts a short id in the place of one.
    Id(usize, usize, u8),
    /// Cuts a line off.
    Cut(usize, usize),
    /// Puts a key of one line into another.
    Key(usize, usize, usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let place = 0usize..64;
    prop_oneof![
        place.clone().prop_map(Mutation::Drop),
        place.clone().prop_map(Mutation::Duplicate),
        (place.clone(), place.clone()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        (
            place.clone(),
            place.clone(),
            prop_oneof![0u64..5, 0u64..200_000, Just(u64::MAX)]
        )
            .prop_map(|(line, at, value)| Mutation::Number(line, at, value)),
        (place.clone(), place.clone(), 0u8..11)
            .prop_map(|(line, at, id)| Mutation::Id(line, at, id)),
        (place.clone(), 0usize..200).prop_map(|(line, at)| Mutation::Cut(line, at)),
        (place.clone(), place.clone(), place).prop_map(|(a, b, at)| Mutation::Key(a, b, at)),
    ]
}

fn apply(lines: &mut Vec<String>, mutation: &Mutation) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    match *mutation {
        Mutation::Drop(line) => drop(lines.remove(line % count)),
        Mutation::Duplicate(line) => {
            let copy = lines[line % count].clone();
            lines.insert(line % count, copy);
        }
        Mutation::Swap(a, b) => lines.swap(a % count, b % count),
        Mutation::Number(line, at, value) => {
            replace(
                &mut lines[line % count],
                at,
                |c| c.is_ascii_digit(),
                &value.to_string(),
            );
        }
        Mutation::Id(line, at, id) => {
            let line = &mut lines[line % count];
            let starts: Vec<usize> = line
                .match_indices("\"s")
                .filter(|(place, _)| line[place + 2..].starts_with(|c: char| c.is_ascii_digit()))
                .map(|(place, _)| place + 2)
                .collect();
            if let Some(start) = starts.get(at % starts.len().max(1)) {
                let end = start + line[*start..].find('"').unwrap_or(0);
                line.replace_range(*start..end, &id.to_string());
            }
        }
        Mutation::Cut(line, at) => {
            let line = &mut lines[line % count];
            let mut at = at % (line.len() + 1);
            while !line.is_char_boundary(at) {
                at -= 1;
            }
            line.truncate(at);
        }
        Mutation::Key(from, to, at) => {
            let source = lines[from % count].clone();
            let pairs: Vec<&str> = source.trim_matches(['{', '}']).split(',').collect();
            let pair = pairs[at % pairs.len()].to_owned();
            let target = &mut lines[to % count];
            if target.ends_with('}') && pair.contains("\":") {
                target.insert_str(target.len() - 1, &format!(",{pair}"));
            }
        }
    }
}

/// Replaces one run of characters that fit.
fn replace(line: &mut String, which: usize, fits: fn(char) -> bool, by: &str) {
    let mut runs = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain([(line.len(), '\n')]) {
        match (start, fits(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                runs.push(from..at);
                start = None;
            }
            _ => {}
        }
    }
    if let Some(run) = runs.get(which % runs.len().max(1)) {
        line.replace_range(run.clone(), by);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn verdicts_are_the_judges(
        failed in any::<bool>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let name = if failed { "failed.trace10.jsonl" } else { "all-events.trace10.jsonl" };
        let mut lines: Vec<String> = golden(name).lines().map(String::from).collect();
        for mutation in &mutations {
            apply(&mut lines, mutation);
        }
        let text = lines.join("\n");
        prop_assert_eq!(ours(&text), judge(&text), "on the trace\n{}", text);
    }
}
