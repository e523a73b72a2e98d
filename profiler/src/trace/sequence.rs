//! What must hold of each event where it stands, for readers that keep no document.

use anyhow::{Result, bail, ensure};

use super::events::TraceEvent;
use super::schema::Schema;

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    schema: Option<Schema>,
    ended: bool,
}

impl Sequence {
    /// Whether the next event may be the next.
    pub(crate) fn check(&mut self, event: &TraceEvent) -> Result<()> {
        ensure!(
            !self.ended,
            "there is a record after the `terminal` one, which must be the last"
        );
        match (event, self.schema) {
            (TraceEvent::Meta { .. }, Some(_)) => {
                bail!("there is a second `meta` record, only the first one may be")
            }
            (TraceEvent::Meta { schema, .. }, None) => self.schema = Some(Schema::named(schema)?),
            (_, None) => bail!("the first record is no `meta`, which every trace starts with"),
            (TraceEvent::Terminal(_), Some(_)) => self.ended = true,
            _ => {}
        }
        Ok(())
    }

    /// Whether the last event may be the last.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.schema {
            None => bail!("there is no record at all; a trace starts with a `meta` one"),
            Some(schema) if !self.ended && schema.has_terminal() => {
                bail!("there is no `terminal` record; the trace was cut off")
            }
            Some(_) => Ok(()),
        }
    }
}
