//! Which calls of which measured names are captured.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::settings::Complaint;

/// What a measured region measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A training step.
    Train,
    /// An inference call.
    Infer,
}

/// The steps to capture; empty stands for the default.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    items: Vec<Item>,
}

/// One wish of the list, such as `train_step:3..6`.
#[derive(Debug)]
struct Item {
    /// As it was written, for notices.
    text: String,
    /// The measured name it is for; without one, every name.
    name: Option<String>,
    steps: Steps,
    /// Whether a call fulfilled it.
    reached: AtomicBool,
}

/// A set of step numbers, never expanded, so that a range may be as long as it likes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Steps {
    /// From the first to the last, both included; never empty.
    Range { first: i128, last: i128 },
    /// Every multiple of this number, which is above 0.
    Every(i128),
}

/// What the program did with one measured name, for the notice at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) name: &'a str,
    /// Calls counted, captured or not.
    pub(crate) calls: u64,
    /// The last number the program gave by `step = …`, where it gives numbers.
    pub(crate) last_step: Option<i128>,
}

/// So many items a list may have: each measured call asks them all.
const MOST_ITEMS: usize = 1000;

impl Schedule {
    /// What may be written.
    pub(crate) const ALLOWED: &'static str =
        "7 or 10,20 or 3..6 or 3..=6 or every:100, for one name NAME:7; steps count from 1";

    /// Reads a list of steps; blank is the default.
    ///
    /// # Errors
    /// Names the item that is no step, an empty range, and step 0 without a name; a list that is too long.
    pub(crate) fn parse(subject: &'static str, text: &str) -> Result<Schedule, Complaint> {
        if text.trim().is_empty() {
            return Ok(Schedule::default());
        }
        let count = text.split(',').count();
        if count > MOST_ITEMS {
            let why = format!("{count} items are more than {MOST_ITEMS}; write ranges");
            return Err(Complaint::new(subject, text, why, Self::ALLOWED));
        }
        let items: Result<Vec<Item>, String> = text.split(',').map(Item::parse).collect();
        match items {
            Ok(items) => Ok(Schedule { items }),
            Err(why) => Err(Complaint::new(subject, text, why, Self::ALLOWED)),
        }
    }

    /// Whether nothing was asked for.
    pub(crate) fn is_default(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether this call is captured: by the number the program gave it, else by its count.
    ///
    /// The default goes by the count alone.
    pub(crate) fn selects(
        &self,
        name: &str,
        kind: Kind,
        call: u64,
        user_step: Option<i128>,
    ) -> bool {
        if self.is_default() {
            return match kind {
                Kind::Train => call == 2,
                Kind::Infer => call == 1 || call == 2,
            };
        }
        let step = user_step.unwrap_or(i128::from(call));
        self.items.iter().any(|item| item.wants(name, step))
    }

    /// Takes note of a call of this number that was a step: what was asked for it has been reached.
    pub(crate) fn reached(&self, name: &str, step: i128) {
        for item in self.items.iter().filter(|item| item.wants(name, step)) {
            item.reached.store(true, Ordering::Relaxed);
        }
    }

    /// One line about the steps asked for that no call had, with the calls there were.
    pub(crate) fn unreached(&self, seen: &[Seen<'_>]) -> Option<String> {
        let missed: Vec<&str> = self
            .items
            .iter()
            .filter(|item| !item.reached.load(Ordering::Relaxed))
            .map(|item| item.text.as_str())
            .collect();
        if missed.is_empty() {
            return None;
        }
        let (noun, verb) = match missed.len() {
            1 => ("step", "was"),
            _ => ("steps", "were"),
        };
        let missed = some_of(&missed);
        let seen: Vec<String> = seen.iter().map(Seen::to_string).collect();
        let seen = match seen.len() {
            0 => "no annotated call was seen".to_owned(),
            _ => format!("calls seen: {}", some_of(&seen)),
        };
        Some(format!(
            "{noun} {missed} {verb} asked for but never reached ({seen})"
        ))
    }
}

impl Clone for Schedule {
    /// The same wishes, none of them reached.
    fn clone(&self) -> Schedule {
        let items = self.items.iter().map(|item| Item {
            text: item.text.clone(),
            name: item.name.clone(),
            steps: item.steps.clone(),
            reached: AtomicBool::new(false),
        });
        Schedule {
            items: items.collect(),
        }
    }
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.name, self.calls)?;
        match self.last_step {
            Some(step) => write!(out, " (last step {step})"),
            None => Ok(()),
        }
    }
}

/// The first few of a list, and how many are left.
pub(super) fn some_of<S: AsRef<str>>(all: &[S]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = all.iter().take(SHOWN).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

impl Item {
    fn parse(text: &str) -> Result<Item, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("an item is empty".to_owned());
        }
        // `every:5` has a colon as well, so the item is first tried as one without a name.
        let (name, steps) = match (Steps::parse(text), split_name(text)) {
            (Ok(steps), _) => (None, steps),
            (Err(_), Some((name, steps))) => (Some(name), Steps::parse(steps)?),
            (Err(why), None) => return Err(why),
        };
        if let (None, Steps::Range { first, .. }) = (name, &steps)
            && *first < 1
        {
            return Err(format!("{text} is below 1"));
        }
        Ok(Item {
            text: text.to_owned(),
            name: name.map(str::to_owned),
            steps,
            reached: AtomicBool::new(false),
        })
    }

    fn wants(&self, name: &str, step: i128) -> bool {
        self.steps.holds(step) && self.name.as_deref().is_none_or(|own| names(own, name))
    }
}

/// Whether a name as written in the list means this measured name: the whole or its last parts.
fn names(written: &str, measured: &str) -> bool {
    measured
        .strip_suffix(written)
        .is_some_and(|path| path.is_empty() || path.ends_with("::"))
}

/// Parts `NAME:STEPS` at the last colon that is not one of a `::`, or before an `every` there.
fn split_name(text: &str) -> Option<(&str, &str)> {
    let at = last_lone_colon(text)?;
    let before = &text[..at];
    let (name, steps) = match last_lone_colon(before) {
        Some(earlier) if before[earlier + 1..].trim() == "every" => {
            (&text[..earlier], &text[earlier + 1..])
        }
        _ => (before, &text[at + 1..]),
    };
    let name = name.trim();
    // `every:x` is a stride gone wrong and no name.
    (!name.is_empty() && before != "every").then_some((name, steps.trim()))
}

fn last_lone_colon(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    (0..bytes.len())
        .rev()
        .find(|&at| colon(at) && !colon(at + 1) && (at == 0 || !colon(at - 1)))
}

impl Steps {
    fn parse(text: &str) -> Result<Steps, String> {
        if let Some(stride) = text.strip_prefix("every:") {
            return match number(stride)? {
                stride if stride > 0 => Ok(Steps::Every(stride)),
                _ => Err(format!("{text} is below every:1")),
            };
        }
        let Some((first, last)) = text.split_once("..") else {
            let step = number(text)?;
            return Ok(Steps::Range {
                first: step,
                last: step,
            });
        };
        let first = number(first)?;
        let last = match last.strip_prefix('=') {
            Some(last) => number(last)?,
            // The end is excluded. Nothing lies below the least number, so that range is empty.
            None => match number(last)?.checked_sub(1) {
                Some(last) => last,
                None => return Err(format!("{text} is empty")),
            },
        };
        match first <= last {
            true => Ok(Steps::Range { first, last }),
            false => Err(format!("{text} is empty")),
        }
    }

    fn holds(&self, step: i128) -> bool {
        match *self {
            Steps::Range { first, last } => (first..=last).contains(&step),
            Steps::Every(stride) => step % stride == 0,
        }
    }
}

/// A whole number in plain digits, perhaps negative.
fn number(text: &str) -> Result<i128, String> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{text}` is not a step"));
    }
    text.parse()
        .map_err(|_| format!("`{text}` is too large a step"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> Schedule {
        Schedule::parse("STEPS", text).unwrap()
    }

    /// The calls of 1 to 12 that are selected for a name.
    fn calls(text: &str, name: &str) -> Vec<u64> {
        let schedule = schedule(text);
        (1..=12)
            .filter(|&call| schedule.selects(name, Kind::Train, call, None))
            .collect()
    }

    #[test]
    fn every_form_is_understood() {
        assert_eq!(calls("7", "f"), [7]);
        assert_eq!(calls("10,2", "f"), [2, 10]);
        assert_eq!(calls("3..6", "f"), [3, 4, 5]);
        assert_eq!(calls("3..=6", "f"), [3, 4, 5, 6]);
        assert_eq!(calls("every:5", "f"), [5, 10]);
        assert_eq!(calls(" 1 , 3 .. 5 , every:6 ", "f"), [1, 3, 4, 6, 12]);
    }

    #[test]
    fn unset_takes_the_second_training_call_and_the_first_two_inferences() {
        for text in ["", "  "] {
            let schedule = schedule(text);
            assert!(schedule.is_default());
            let taken = |kind| (1..5).filter(move |&call| schedule.selects("f", kind, call, None));
            let train: Vec<u64> = taken(Kind::Train).collect();
            assert_eq!(train, [2]);
        }
        let schedule = Schedule::default();
        let infer: Vec<u64> = (1..5)
            .filter(|&call| schedule.selects("f", Kind::Infer, call, None))
            .collect();
        assert_eq!(infer, [1, 2]);
        assert!(
            schedule.selects("f", Kind::Train, 2, Some(900)),
            "the default goes by calls"
        );
    }

    #[test]
    fn a_name_is_meant_by_the_whole_or_its_last_parts() {
        assert_eq!(calls("train_step:4", "train_step"), [4]);
        assert_eq!(calls("train_step:4", "demo::Trainer::train_step"), [4]);
        assert_eq!(
            calls("Trainer::train_step:4", "demo::Trainer::train_step"),
            [4]
        );
        assert_eq!(calls("demo::train_step:4", "demo::train_step"), [4]);
        assert_eq!(calls("step:4", "train_step"), [] as [u64; 0]);
        assert_eq!(calls("eval:4,2", "train_step"), [2]);
        assert_eq!(calls("a::b:every:5", "a::b"), [5, 10]);
        assert_eq!(calls("a::b:3..=4", "a::b"), [3, 4]);
        assert_eq!(calls("every:every:6", "every"), [6, 12]);
        assert_eq!(calls("phase: decode:3", "phase: decode"), [3]);
    }

    #[test]
    fn the_programs_own_numbers_take_the_place_of_the_count() {
        let plain = schedule("100");
        assert!(plain.selects("f", Kind::Train, 3, Some(100)));
        assert!(!plain.selects("f", Kind::Train, 100, Some(3)));
        let named = schedule("f:0,f:-5..-3");
        for (step, expected) in [(0, true), (-5, true), (-4, true), (-3, false)] {
            assert_eq!(named.selects("f", Kind::Train, 1, Some(step)), expected);
        }
    }

    #[test]
    fn a_long_range_costs_nothing() {
        let long = schedule("1..1000000000000");
        assert!(long.selects("f", Kind::Train, 999_999_999_999, None));
        assert!(!long.selects("f", Kind::Train, 1_000_000_000_000, None));
    }

    #[test]
    fn what_is_no_step_is_refused_with_the_reason() {
        let cases = [
            ("0", "0 is below 1"),
            ("x", "`x` is not a step"),
            ("7..3", "7..3 is empty"),
            ("3..3", "3..3 is empty"),
            ("0..3", "0..3 is below 1"),
            ("-1", "-1 is below 1"),
            ("3..", "`` is not a step"),
            ("..", "`` is not a step"),
            ("1,,2", "an item is empty"),
            ("1,", "an item is empty"),
            ("every:0", "every:0 is below every:1"),
            ("every:-2", "every:-2 is below every:1"),
            ("every:", "`` is not a step"),
            (":4", "`:4` is not a step"),
            ("f:", "`` is not a step"),
            ("f:7..3", "7..3 is empty"),
            ("a::b", "`a::b` is not a step"),
            ("+7", "`+7` is not a step"),
            (
                "999999999999999999999999999999999999999999",
                "`999999999999999999999999999999999999999999` is too large a step",
            ),
        ];
        for (text, why) in cases {
            let complaint = Schedule::parse("CANDLE_PROFILE_STEPS", text).unwrap_err();
            let line = complaint.to_string();
            assert!(line.contains("CANDLE_PROFILE_STEPS"), "{line}");
            assert!(line.contains(why), "{text}: {line}");
            assert!(line.contains("every:100"), "{line}");
            assert!(!line.contains('\n'));
        }
        let most = vec!["2"; MOST_ITEMS].join(",");
        assert!(Schedule::parse("STEPS", &most).is_ok());
        let line = Schedule::parse("STEPS", &format!("{most},2")).unwrap_err();
        let line = line.to_string();
        assert!(line.contains("1001 items are more than 1000"), "{line}");
        let least = format!("f:{0}..{0}", i128::MIN);
        assert!(Schedule::parse("STEPS", &least).is_err());
    }

    #[test]
    fn what_was_never_reached_is_told_with_the_calls_seen() {
        let schedule = schedule("2,50..60,eval:3");
        let seen = [
            Seen {
                name: "train_step",
                calls: 5,
                last_step: None,
            },
            Seen {
                name: "eval",
                calls: 2,
                last_step: Some(400),
            },
        ];
        for call in 1..=5 {
            schedule.reached("train_step", call);
        }
        assert_eq!(
            schedule.unreached(&seen).unwrap(),
            "steps 50..60, eval:3 were asked for but never reached \
             (calls seen: train_step 5, eval 2 (last step 400))"
        );
        schedule.reached("eval", 3);
        schedule.reached("train_step", 55);
        assert_eq!(schedule.unreached(&seen), None);
        assert_eq!(
            schedule.clone().unreached(&[]).unwrap(),
            "steps 2, 50..60, eval:3 were asked for but never reached (no annotated call was seen)"
        );
        assert_eq!(Schedule::default().unreached(&seen), None);
    }
}
