//! Which kinds of evidence are recorded.

use super::Complaint;

/// One kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Plane {
    Spans = 1,
    Stats = 1 << 1,
    Scalars = 1 << 2,
    Ops = 1 << 3,
    Gradients = 1 << 4,
    Memory = 1 << 5,
}

const NAMES: [(&str, Plane); 6] = [
    ("spans", Plane::Spans),
    ("stats", Plane::Stats),
    ("scalars", Plane::Scalars),
    ("ops", Plane::Ops),
    ("gradients", Plane::Gradients),
    ("memory", Plane::Memory),
];

/// A set of kinds. The root and the measured span are recorded whatever it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planes(u8);

impl Planes {
    pub(crate) const NONE: Planes = Planes(0);
    pub(crate) const ALL: Planes = Planes((1 << NAMES.len()) - 1);
    pub(super) const ALLOWED: &'static str =
        "a list of spans, stats, scalars, ops, gradients, memory, or all; -ops takes one away";

    pub(crate) const fn contains(self, plane: Plane) -> bool {
        self.0 & plane as u8 != 0
    }

    pub(crate) const fn with(self, plane: Plane) -> Planes {
        Planes(self.0 | plane as u8)
    }

    pub(crate) const fn without(self, plane: Plane) -> Planes {
        Planes(self.0 & !(plane as u8))
    }

    /// Reads the list from left to right. One that starts by taking away takes away from all.
    pub(super) fn parse(subject: &'static str, text: &str) -> Result<Planes, Complaint> {
        let mut planes = match text.trim().starts_with('-') {
            true => Planes::ALL,
            false => Planes::NONE,
        };
        for word in text.split(',').map(str::trim) {
            let (name, taken) = match word.strip_prefix('-') {
                Some(name) => (name, true),
                None => (word, false),
            };
            let plane = NAMES.iter().find(|(known, _)| *known == name);
            planes = match (plane, taken) {
                (Some((_, plane)), false) => planes.with(*plane),
                (Some((_, plane)), true) => planes.without(*plane),
                (None, false) if name == "all" => Planes::ALL,
                (None, _) => {
                    let why = format!("`{word}` is none of them");
                    return Err(Complaint::new(subject, text, why, Self::ALLOWED));
                }
            };
        }
        Ok(planes)
    }
}
