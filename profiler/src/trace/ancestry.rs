//! Walks the parents of spans, also where they are nonsense: a trace may name parents that are missing, or in a ring.

/// What lies above a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Above<T> {
    /// No parent that is there.
    Nothing,
    /// A parent whose own way up leads back to the span. One span of a ring has this above it; the others come after.
    Ring,
    /// A parent, of which this is known.
    Parent(T),
}

/// What is known of a place so far.
#[derive(Clone, Copy)]
enum Known<T> {
    Nothing,
    /// It is on the way that is being walked.
    Walked,
    All(T),
}

/// Finds something out about each of `count` spans that depends on what is known of its parent. Each is asked once,
/// after its parent, so this takes time in proportion to their number, whatever the parents are.
pub(crate) fn from_parents<T: Copy>(
    count: usize,
    parent: impl Fn(usize) -> Option<usize>,
    find: impl Fn(usize, Above<T>) -> T,
) -> Vec<T> {
    let mut known = vec![Known::Nothing; count];
    let mut way = Vec::new();
    for start in 0..count {
        let mut next = Some(start);
        let mut above = loop {
            let Some(place) = next else {
                break Above::Nothing;
            };
            let Some(slot) = known.get_mut(place) else {
                break Above::Nothing;
            };
            match slot {
                Known::All(found) => break Above::Parent(*found),
                Known::Walked => break Above::Ring,
                Known::Nothing => *slot = Known::Walked,
            }
            way.push(place);
            next = parent(place);
        };
        while let Some(place) = way.pop() {
            let found = find(place, above);
            if let Some(slot) = known.get_mut(place) {
                *slot = Known::All(found);
            }
            above = Above::Parent(found);
        }
    }
    let all = known.into_iter().filter_map(|known| match known {
        Known::All(found) => Some(found),
        // Every way that was walked has been gone back.
        Known::Nothing | Known::Walked => None,
    });
    all.collect()
}

/// How many parents each span has above it; in a ring, those up to where it closes.
pub(crate) fn depths(count: usize, parent: impl Fn(usize) -> Option<usize>) -> Vec<u32> {
    from_parents(count, parent, |_, above| match above {
        Above::Nothing | Above::Ring => 0,
        Above::Parent(depth) => u32::saturating_add(depth, 1),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn depths_of(parents: &[Option<usize>]) -> Vec<u32> {
        depths(parents.len(), |place| parents.get(place).copied().flatten())
    }

    #[test]
    fn depths_are_counted_from_the_root_in_any_order() {
        assert!(depths_of(&[]).is_empty());
        assert_eq!(depths_of(&[None, Some(0), Some(1), Some(0)]), [0, 1, 2, 1]);
        assert_eq!(depths_of(&[Some(1), Some(2), None]), [2, 1, 0]);
        assert_eq!(depths_of(&[Some(7), Some(0)]), [0, 1], "7 is not there");
    }

    #[test]
    fn a_ring_is_told_and_what_hangs_on_it_comes_after() {
        assert_eq!(depths_of(&[Some(0), Some(0)]), [0, 1]);
        assert_eq!(depths_of(&[Some(1), Some(2), Some(1), None]), [2, 1, 0, 0]);
        let rings = from_parents(3, |place| Some(place ^ 1), |_, above| above == Above::Ring);
        assert_eq!(rings, [false, true, false], "the third's parent is missing");
    }

    #[test]
    fn each_place_is_passed_once() {
        let count = 100_000;
        for parent in [
            // Rings of one and of two, one great ring, and a chain from its end.
            (|place| Some(place)) as fn(usize) -> Option<usize>,
            |place| Some(place ^ 1),
            |place| Some((place + 1) % 100_000),
            |place| (place + 1 < 100_000).then_some(place + 1),
        ] {
            let steps = Cell::new(0);
            let step = |place| {
                steps.set(steps.get() + 1);
                parent(place)
            };
            assert_eq!(depths(count, step).len(), count);
            assert_eq!(steps.get(), count);
        }
    }
}
