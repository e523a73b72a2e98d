//! Finds a span by its id.

use std::collections::HashMap;

use super::schema::SpanRecord;

/// From the id of a span to its place in a list.
///
/// Ids are nearly always `s1`, `s2`, … in nearly this order: those are looked up by their number,
/// which spares a million spans a million hashes and copies of texts. Any other id still works.
#[derive(Debug, Default)]
pub(crate) struct SpanIndex {
    /// Place of `s{n}` at `n`, [`NONE`] where there is none.
    numbered: Vec<u32>,
    named: HashMap<String, u32>,
}

const NONE: u32 = u32::MAX;
/// Numbers this far beyond what is there still go into the list.
const SLACK: usize = 4096;

impl SpanIndex {
    /// Finds each span's place in the list. In whatever order they are, their numbers have room from the beginning.
    pub(crate) fn of(spans: &[SpanRecord]) -> Self {
        let mut index = Self {
            numbered: vec![NONE; spans.len() + 1],
            named: HashMap::new(),
        };
        for (place, span) in spans.iter().enumerate() {
            index.insert(&span.id, place);
        }
        index
    }

    pub(crate) fn get(&self, id: &str) -> Option<usize> {
        let numbered = number_of(id).and_then(|number| self.numbered.get(number));
        match numbered {
            Some(&place) if place != NONE => Some(place as usize),
            _ => self.named.get(id).map(|&place| place as usize),
        }
    }

    /// Adds an id that is not there yet. Gives `false` when there is no room for more.
    pub(crate) fn insert(&mut self, id: &str, place: usize) -> bool {
        let Some(place) = u32::try_from(place).ok().filter(|&place| place != NONE) else {
            return false;
        };
        match number_of(id) {
            Some(number)
                if number < self.numbered.len() || number <= 4 * (place as usize) + SLACK =>
            {
                if self.numbered.len() <= number {
                    self.numbered.resize(number + 1, NONE);
                }
                if let Some(slot) = self.numbered.get_mut(number) {
                    *slot = place;
                }
            }
            _ => {
                self.named.insert(id.to_owned(), place);
            }
        }
        true
    }
}

/// The number of a canonical `s{n}`: no sign, no leading zero.
fn number_of(id: &str) -> Option<usize> {
    let digits = id.strip_prefix('s')?;
    let canonical = matches!(digits.as_bytes(), [b'1'..=b'9', ..])
        && digits.len() <= 18
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if canonical { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_is_found_again_and_no_two_are_one() {
        let ids = [
            "s1",
            "s01",
            "s+1",
            "s",
            "root",
            "s99999999",
            "s4096",
            "s184467440737095516150",
            "",
        ];
        let mut index = SpanIndex::default();
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(index.get(id), None, "{id}");
            assert!(index.insert(id, place));
        }
        for (place, id) in ids.iter().enumerate() {
            assert_eq!(index.get(id), Some(place), "{id}");
        }
        assert_eq!(index.get("s2"), None);
    }

    #[test]
    fn a_number_far_away_costs_no_list() {
        let mut index = SpanIndex::default();
        assert!(index.insert("s999999999999", 0));
        assert!(index.numbered.is_empty());
        assert_eq!(index.get("s999999999999"), Some(0));
    }
}
