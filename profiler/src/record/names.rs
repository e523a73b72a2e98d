//! What the program calls its variables, by their serial numbers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Serial numbers are never used again, so a name outlives its variable without harm.
static NAMES: Mutex<Option<Names>> = Mutex::new(None);

/// So many names are kept.
const MOST: usize = 1 << 18;

#[derive(Default)]
struct Names {
    by_serial: HashMap<u64, Named>,
    groups: u64,
    /// Nothing is forgotten before there are so many more, since that takes a look at all.
    enough: usize,
}

struct Named {
    name: String,
    /// The call that gave the name.
    group: u64,
    /// The elements of a variable of one dimension.
    length: Option<usize>,
}

/// Gives variables names, each with its length where it is of one dimension; those of one call belong together.
#[cfg_attr(
    not(feature = "candle"),
    allow(dead_code, reason = "without candle there are no variables")
)]
pub(crate) fn give(named: Vec<(u64, String, Option<usize>)>) {
    if !crate::capture::is_owner() {
        // The writer, which a forked child does not have, may hold the lock.
        return;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    names.groups += 1;
    let group = names.groups;
    let named = named.into_iter();
    let named = named.map(|(serial, name, length)| {
        let named = Named {
            name,
            group,
            length,
        };
        (serial, named)
    });
    names.by_serial.extend(named);
    names.forget_the_oldest();
}

impl Names {
    /// A program that makes a model for each trial names more and more variables, of which only the newest can be alive.
    fn forget_the_oldest(&mut self) {
        if self.by_serial.len() <= MOST.max(self.enough) {
            return;
        }
        let mut groups: Vec<u64> = self.by_serial.values().map(|named| named.group).collect();
        groups.sort_unstable();
        // Those of the last call stay, however many they are.
        let first = groups.get(groups.len() - MOST / 2).copied();
        let first = first.unwrap_or(self.groups);
        self.by_serial.retain(|_, named| named.group >= first);
        self.enough = self.by_serial.len() + MOST / 2;
    }
}

/// The name of a variable.
pub(crate) fn of(serial: u64) -> Option<String> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let named = names.as_ref()?.by_serial.get(&serial)?;
    Some(named.name.clone())
}

/// The length of a variable that may be a norm's weight: of one dimension, as is all that is named beside it.
pub(crate) fn length_in_norm(serial: u64) -> Option<usize> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.as_ref()?;
    let named = names.by_serial.get(&serial)?;
    fn parent(name: &str) -> Option<&str> {
        name.rsplit_once('.').map(|(parent, _)| parent)
    }
    let own = parent(&named.name);
    let mut beside = names
        .by_serial
        .values()
        .filter(|other| other.group == named.group && parent(&other.name) == own);
    beside
        .all(|other| other.length == named.length)
        .then_some(named.length)
        .flatten()
}

/// A variable with its name.
pub(crate) struct Company {
    pub(crate) serial: u64,
    pub(crate) name: String,
    /// The call that gave it and others their names, from 1.
    pub(crate) group: u64,
}

/// The variables that were named together with one that is `here`, in the order of their names.
#[cfg_attr(
    not(feature = "candle"),
    allow(dead_code, reason = "without candle there are no variables")
)]
pub(crate) fn with_company(here: &dyn Fn(u64) -> bool) -> Vec<Company> {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(names) = names.as_ref() else {
        return Vec::new();
    };
    let present = |(serial, named): (&u64, &Named)| here(*serial).then_some(named.group);
    let mut groups: Vec<u64> = names.by_serial.iter().filter_map(present).collect();
    groups.sort_unstable();
    groups.dedup();
    let all = names.by_serial.iter();
    let mut found: Vec<Company> = all
        .filter(|(_, named)| groups.binary_search(&named.group).is_ok())
        .map(|(serial, named)| Company {
            serial: *serial,
            name: named.name.clone(),
            group: named.group,
        })
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_names_are_kept() {
        let mut names = Names::default();
        let per_call = MOST as u64 / 8;
        for group in 0..20 {
            names.groups = group;
            let serials = group * per_call..(group + 1) * per_call;
            names.by_serial.extend(serials.map(|serial| {
                let name = String::new();
                let named = Named {
                    name,
                    group,
                    length: None,
                };
                (serial, named)
            }));
            names.forget_the_oldest();
            assert!(names.by_serial.len() <= MOST);
            // As many calls back as half of them hold.
            for kept in group.saturating_sub(3)..=group {
                assert!(
                    names.by_serial.contains_key(&(kept * per_call)),
                    "{kept} of {group}"
                );
            }
        }
    }
}
