//! The one line about a setting that cannot be understood.

use std::error::Error;
use std::fmt;

use crate::view::text::printable;

/// Why a setting was refused. Displayed, it is one line: which setting, its value, what is
/// wrong with it, and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// The variable or the option of [`Config`](crate::Config).
    subject: &'static str,
    /// The value, fit for a terminal.
    value: String,
    /// What is wrong, as the rest of a sentence about the value.
    verdict: String,
    allowed: Option<&'static str>,
}

/// Longer values are cut in the middle, so that the line stays one.
const VALUE_CHARS: usize = 60;
/// The reason may quote a part of the value.
const WHY_CHARS: usize = 120;

impl Complaint {
    pub(crate) fn new(
        subject: &'static str,
        value: &str,
        why: String,
        allowed: &'static str,
    ) -> Complaint {
        Complaint {
            subject,
            value: printable(value, VALUE_CHARS),
            verdict: format!("is not understood: {}", printable(&why, WHY_CHARS)),
            allowed: Some(allowed),
        }
    }

    /// A value that is understood and cannot be; `verdict` says what could.
    pub(crate) fn out_of_range(
        subject: &'static str,
        value: &str,
        verdict: &'static str,
    ) -> Complaint {
        Complaint {
            subject,
            value: printable(value, VALUE_CHARS),
            verdict: verdict.to_owned(),
            allowed: None,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Complaint {
            subject,
            value,
            verdict,
            allowed,
        } = self;
        write!(out, "{subject}={value} {verdict}")?;
        match allowed {
            Some(allowed) => write!(out, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

impl Error for Complaint {}
