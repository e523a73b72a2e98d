//! Tags of the meta line.

use std::collections::BTreeMap;

use super::Complaint;

pub(super) const ALLOWED: &str = "key=value,key=value";

/// So many tags may be given: each trace repeats them.
const MOST: usize = 1000;

/// Reads `key=value,…`. A value may hold `=` but no comma; of two equal keys the last counts.
pub(super) fn parse(
    subject: &'static str,
    text: &str,
) -> Result<BTreeMap<String, String>, Complaint> {
    let count = text.split(',').count();
    if count > MOST {
        let why = format!("{count} tags are more than {MOST}");
        return Err(Complaint::new(subject, text, why, ALLOWED));
    }
    text.split(',')
        .map(|item| match item.split_once('=') {
            None => Err(format!("`{item}` has no =")),
            Some((key, _)) if key.trim().is_empty() => Err(format!("`{item}` has no key")),
            Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        })
        .collect::<Result<_, String>>()
        .map_err(|why| Complaint::new(subject, text, why, ALLOWED))
}
