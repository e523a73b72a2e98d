//! Rows by label, so many and no more.

use std::collections::HashMap;

use crate::view::text::printable;

/// More different labels than a person reads, and little enough memory.
pub(super) const MOST_ROWS: usize = 4096;
/// A label is kept up to this length; longer ones that differ only in their middle share a row.
const MOST_COLUMNS: usize = 160;

/// Rows in the order in which their labels first came.
#[derive(Debug)]
pub(super) struct Rows<T> {
    places: HashMap<String, usize>,
    rows: Vec<(String, T)>,
    /// How often a label found no room.
    refused: u64,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        Rows {
            places: HashMap::new(),
            rows: Vec::new(),
            refused: 0,
        }
    }
}

impl<T: Default> Rows<T> {
    /// The row of a label, made if there is room.
    pub(super) fn row(&mut self, label: &str) -> Option<&mut T> {
        self.row_of(label, MOST_ROWS)
    }

    /// The same where there is room for so many.
    pub(super) fn row_of(&mut self, label: &str, most: usize) -> Option<&mut T> {
        let label = printable(label, MOST_COLUMNS);
        let place = match self.places.get(&label) {
            Some(&place) => place,
            None if self.rows.len() >= most => {
                self.refused += 1;
                return None;
            }
            None => {
                let place = self.rows.len();
                self.places.insert(label.clone(), place);
                self.rows.push((label, T::default()));
                place
            }
        };
        self.rows.get_mut(place).map(|(_, row)| row)
    }
}

impl<T> Rows<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.rows.iter().map(|(label, row)| (label.as_str(), row))
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused
    }
}

/// The first few names of many.
#[derive(Debug, Default)]
pub(super) struct Names {
    first: Vec<String>,
    all: u64,
}

impl Names {
    const KEPT: usize = 6;

    pub(super) fn push(&mut self, name: &str) {
        self.all += 1;
        if self.first.len() < Names::KEPT {
            self.first.push(printable(name, MOST_COLUMNS));
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.all
    }

    #[cfg(feature = "cli")]
    pub(super) fn first(&self) -> &[String] {
        &self.first
    }

    /// `a, b and 3 more`
    pub(super) fn listed(&self) -> String {
        let first = self.first.join(", ");
        match self.all.saturating_sub(self.first.len() as u64) {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Names {
        let mut all = Names::default();
        for name in names {
            all.push(name.as_ref());
        }
        all
    }
}
