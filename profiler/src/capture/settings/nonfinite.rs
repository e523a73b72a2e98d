//! What a value that is not finite sets off.

use super::Complaint;

/// Besides the report, which always comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NonFinite {
    /// Look at calls that are not captured, too.
    pub(crate) watch: bool,
    /// Close the trace as failed, then panic. Never without `watch`.
    pub(crate) stop: bool,
    /// Alarm at -inf as well, which masks are full of.
    pub(crate) inf: bool,
}

impl NonFinite {
    pub(super) const ALLOWED: &'static str = "a list of report, watch, stop, inf";

    pub(super) fn parse(subject: &'static str, text: &str) -> Result<NonFinite, Complaint> {
        let mut parsed = NonFinite::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "report" => {}
                "watch" => parsed.watch = true,
                "stop" => (parsed.watch, parsed.stop) = (true, true),
                "inf" => parsed.inf = true,
                _ => {
                    let why = format!("`{word}` is none of them");
                    return Err(Complaint::new(subject, text, why, Self::ALLOWED));
                }
            }
        }
        Ok(parsed)
    }
}
