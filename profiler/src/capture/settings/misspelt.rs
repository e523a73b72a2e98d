//! Variables that look like settings and are none.

use std::ffi::OsString;

use crate::view::text::printable;

/// All that is read, besides the rank.
pub const VARIABLES: [&str; 8] = [
    "CANDLE_PROFILE",
    "CANDLE_PROFILE_STEPS",
    "CANDLE_PROFILE_RECORD",
    "CANDLE_PROFILE_SYNC",
    "CANDLE_PROFILE_SUMMARY",
    "CANDLE_PROFILE_TAGS",
    "CANDLE_PROFILE_NONFINITE",
    "CANDLE_PROFILE_BUDGET",
];

/// A name with this beginning can be meant for nobody else.
const OURS: &str = "CANDLE_PROFILE_";
/// One of another beginning is taken for a slip if no more letters are wrong.
const SLIP: usize = 2;
/// Beyond so many wrong letters nobody can tell what was meant.
const LIKELY: usize = 4;
/// Lines about it.
const MOST: usize = 5;

/// A line for each name among `names` that looks like a setting and is none, with what was meant or is allowed.
pub(crate) fn misspelt(names: impl IntoIterator<Item = OsString>) -> Vec<String> {
    let mut unknown: Vec<String> = names
        .into_iter()
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.starts_with("CANDLE_") && !VARIABLES.contains(&name.as_str()))
        .collect();
    unknown.sort_unstable();
    let told = unknown.iter().filter_map(|name| {
        let distance = |known: &&str| distance(name, known);
        let nearest = VARIABLES.iter().copied().min_by_key(distance)?;
        let meant = name.starts_with(OURS) || distance(&nearest) <= SLIP;
        meant.then(|| {
            let name = printable(name, 60);
            let instead = match distance(&nearest) {
                0..=LIKELY => format!("the nearest is {nearest}"),
                _ => format!("allowed: {}", VARIABLES.join(", ")),
            };
            format!("{name} is no setting and is ignored; {instead}")
        })
    });
    told.take(MOST).collect()
}

/// How many letters must be put in, taken out or replaced to make one text of the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, letter) in from.chars().enumerate() {
        // What lies above and to the left of the next cell.
        let mut corner = done;
        let mut left = done + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, other) in row.iter_mut().skip(1).zip(&to) {
            let replaced = corner + usize::from(letter != *other);
            corner = *cell;
            left = replaced.min(corner + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_letters() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("STEP", "STEPS", 1),
            ("RECROD", "RECORD", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
            assert_eq!(distance(to, from), expected, "{to} {from}");
        }
    }

    #[test]
    fn slips_are_told_and_other_people_s_names_are_not() {
        let told = |names: &[&str]| misspelt(names.iter().map(OsString::from));
        assert_eq!(
            told(&[
                "PATH",
                "CANDLE_PROFILE_STEP",
                "CANDLE_PROFILE_STEPS",
                "CANDLE_PROFILER_TAGS"
            ]),
            [
                "CANDLE_PROFILER_TAGS is no setting and is ignored; the nearest is CANDLE_PROFILE_TAGS",
                "CANDLE_PROFILE_STEP is no setting and is ignored; the nearest is CANDLE_PROFILE_STEPS",
            ]
        );
        let far = told(&[
            "CANDLE_PROFILE_DURATION",
            "CANDLE_FLASH_ATTN_BUILD_DIR",
            "CANDLE_PROFILERS_OF_OURS",
        ]);
        let [line] = far.as_slice() else {
            panic!("{far:?}");
        };
        let start =
            "CANDLE_PROFILE_DURATION is no setting and is ignored; allowed: CANDLE_PROFILE, ";
        assert!(line.starts_with(start), "{line}");
        assert!(line.ends_with(", CANDLE_PROFILE_BUDGET"), "{line}");
        assert!(told(&VARIABLES).is_empty());
        let many: Vec<String> = (0..20)
            .map(|number| format!("CANDLE_PROFILE_{number}"))
            .collect();
        assert_eq!(misspelt(many.iter().map(OsString::from)).len(), MOST);
    }
}
