//! `candle-profile check`: every rule of the format.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Verdict, input, output};
use crate::trace::{HealthSeverity, TraceHealth, analyze_health};
use crate::view::text::counted;

/// Judge traces by every rule of the format.
///
/// The exit code is 1 if a trace is invalid, 2 if one cannot be read. A line that
/// is no event, or stands where it cannot, makes a trace invalid too, and is named.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Arguments {
    /// The traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Say it as JSON (an array of candle-profiler/check/1)
    #[arg(long)]
    json: bool,
    /// Show warnings too
    #[arg(long, short)]
    warnings: bool,
}

/// What was found of one trace.
enum Found {
    /// The file cannot be read.
    Unusable(String),
    /// It is no trace.
    Unreadable(String),
    Judged {
        spans: usize,
        health: TraceHealth,
    },
}

impl Found {
    fn verdict(&self) -> Verdict {
        match self {
            Found::Unusable(_) => Verdict::Unusable,
            Found::Judged { health, .. } if health.structurally_valid => Verdict::Well,
            Found::Unreadable(_) | Found::Judged { .. } => Verdict::Found,
        }
    }
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let mut verdict = Verdict::Well;
    let mut list = Vec::new();
    for input in input::all(&arguments.traces)? {
        let found = match input.checked_document() {
            Ok(Ok(document)) => Found::Judged {
                spans: document.spans.len(),
                health: analyze_health(&document),
            },
            Ok(Err(fault)) => Found::Unreadable(fault),
            Err(error) => {
                output::fault(&error);
                Found::Unusable(format!("{error:#}"))
            }
        };
        verdict = verdict.max(found.verdict());
        match arguments.json {
            true => list.push(as_json(&input.name(), &found)),
            false => tell(out, &input.name(), &found, arguments.warnings)?,
        }
    }
    if arguments.json {
        output::json(out, &json!(list))?;
    }
    Ok(verdict)
}

fn tell(out: &mut dyn Write, name: &str, found: &Found, warnings: bool) -> Result<()> {
    let (spans, health) = match found {
        // It was said where faults are.
        Found::Unusable(_) => return Ok(()),
        Found::Unreadable(fault) => {
            // The fault begins with the name.
            output::sentence(out, fault)?;
            return output::sentence(out, &format!("{name}: invalid"));
        }
        Found::Judged { spans, health } => (*spans, health),
    };
    for issue in &health.issues {
        if issue.severity == HealthSeverity::Error || warnings {
            let text = format!("{}: {} ({})", issue.severity, issue.message, issue.code);
            output::sentence(out, &format!("{name}: {text}"))?;
        }
    }
    let verdict = if health.structurally_valid {
        "valid"
    } else {
        "invalid"
    };
    let outcome = if health.capture_complete {
        "complete"
    } else {
        "failed"
    };
    let errors = health.of(HealthSeverity::Error).count();
    let gaps = health.gaps().count();
    let spans = counted(spans as u64, "span", "spans");
    let mut line = format!("{name}: {verdict}, {outcome}, {spans}");
    for (number, one, many) in [(errors, "error", "errors"), (gaps, "warning", "warnings")] {
        if number > 0 {
            line += &format!(", {}", counted(number as u64, one, many));
        }
    }
    output::sentence(out, &line)
}

fn as_json(name: &str, found: &Found) -> serde_json::Value {
    match found {
        Found::Unusable(fault) => json!({
            "schema": "candle-profiler/check/1",
            "trace": name,
            "valid": null,
            "fault": fault,
        }),
        Found::Unreadable(fault) => json!({
            "schema": "candle-profiler/check/1",
            "trace": name,
            "valid": false,
            "fault": fault,
        }),
        Found::Judged { spans, health } => json!({
            "schema": "candle-profiler/check/1",
            "trace": name,
            "valid": health.structurally_valid,
            "complete": health.capture_complete,
            "spans": spans,
            "issues": health.issues,
            "coverage": health.coverage,
        }),
    }
}
