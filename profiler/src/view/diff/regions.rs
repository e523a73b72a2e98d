//! Which traces are of one region.

use super::Facts;

/// An entrypoint and its phase.
pub(super) type Region<'a> = (&'a str, &'a str);

/// The regions of two sides.
#[derive(Debug)]
pub(super) struct Regions<'a> {
    /// The region before, where either side has but one: the two are compared even if a refactoring gave it another name.
    only: Option<Region<'a>>,
}

impl<'a> Regions<'a> {
    pub(super) fn of(sides: [&'a [Facts]; 2]) -> Regions<'a> {
        let [before, after] = sides.map(all);
        Regions {
            only: match (before.as_slice(), after.as_slice()) {
                ([only], [_]) => Some(*only),
                _ => None,
            },
        }
    }

    /// The region that a trace counts as.
    pub(super) fn region(&self, facts: &'a Facts) -> Region<'a> {
        self.only.unwrap_or_else(|| told(facts))
    }
}

/// The regions of a side, each once, as they first came.
pub(super) fn all(side: &[Facts]) -> Vec<Region<'_>> {
    let mut all = Vec::new();
    for region in side.iter().map(told) {
        if !all.contains(&region) {
            all.push(region);
        }
    }
    all
}

fn told(facts: &Facts) -> Region<'_> {
    let run = facts.digest.run();
    (&run.entrypoint, &run.phase)
}
