//! A span's name, while its stream is read.

use std::borrow::Cow;
use std::sync::Arc;

use crate::record::detached::SpanCell;
use crate::record::site::{CallSite, SpanSource};

/// A span's name, for the places where evidence is told of; cheap to hand on for the many spans that have none.
#[derive(Clone)]
pub(in crate::record) enum SpanName {
    Root,
    Site(&'static CallSite),
    /// With its place.
    Own(Arc<str>, (&'static str, u32)),
}

impl SpanName {
    pub(in crate::record) fn of(source: &SpanSource) -> Self {
        match source {
            SpanSource::Site(site) => Self::Site(site),
            SpanSource::Named(_, name) | SpanSource::Free { name, .. } => {
                Self::Own(Arc::from(&**name), source.place())
            }
            SpanSource::Module { name, .. } => Self::Own(Arc::clone(name), source.place()),
        }
    }

    pub(in crate::record) fn resolve(&self) -> Cow<'_, str> {
        match self {
            Self::Root => Cow::Borrowed(""),
            Self::Site(site) => site.name().resolve(),
            Self::Own(name, _) => Cow::Borrowed(name),
        }
    }

    pub(super) fn place(&self) -> (&'static str, u32) {
        match self {
            Self::Root => ("", 0),
            Self::Site(site) => (site.file(), site.line()),
            Self::Own(_, place) => *place,
        }
    }

    /// The span of this thread that a cell stands for has no source of its own: then its name is not known here.
    pub(in crate::record) fn of_cell(cell: &SpanCell) -> Self {
        cell.source.as_ref().map_or(Self::Root, Self::of)
    }
}
