//! Which backward pass of its root a gradient is of.

use std::collections::HashMap;

/// The passes of each root, numbered in the order in which their gradients come.
#[derive(Default)]
pub(super) struct Passes {
    roots: HashMap<String, HashMap<u64, u64>>,
}

impl Passes {
    /// The number of a pass that its maker calls so; the first has none, so that a step with one pass says no more than
    /// it has to.
    pub(super) fn number(&mut self, root: &str, pass: u64) -> Option<u64> {
        if !self.roots.contains_key(root) {
            self.roots.insert(root.to_owned(), HashMap::new());
        }
        let known = self.roots.get_mut(root)?;
        let next = known.len() as u64 + 1;
        let number = *known.entry(pass).or_insert(next);
        (number > 1).then_some(number)
    }
}
