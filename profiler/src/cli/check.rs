//! `candle-profile check`: every rule of the format.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Verdict, input, output};
use crate::trace::{HealthSeverity, TraceDocument, TraceHealth, analyze_health};
use crate::view::summary::LeftOut;
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
    /// Show warnings too, and what was left out for the budget
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
        left_out: BTreeMap<String, u64>,
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
    // What shows the rest is said once.
    let mut hint = !arguments.warnings;
    for input in input::all(&arguments.traces)? {
        let found = match input.checked_document() {
            Ok(Ok(document)) => Found::Judged {
                spans: document.spans.len(),
                health: analyze_health(&document),
                left_out: left_out(&document),
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
            false => {
                let left = tell(out, &input.name(), &found, arguments.warnings, hint)?;
                hint &= !left;
            }
        }
    }
    if arguments.json {
        output::json(out, &json!(list))?;
    }
    Ok(verdict)
}

/// What found no room in the trace's budget.
fn left_out(document: &TraceDocument) -> BTreeMap<String, u64> {
    let extra = document.terminal.extra.as_deref();
    let dropped = extra.and_then(|extra| extra.dropped.clone());
    dropped.unwrap_or_default()
}

/// Whether it said how the rest is shown, as it may where there is a rest and `hint` says so.
fn tell(
    out: &mut dyn Write,
    name: &str,
    found: &Found,
    warnings: bool,
    hint: bool,
) -> Result<bool> {
    let (spans, health, counts) = match found {
        // It was said where faults are.
        Found::Unusable(_) => return Ok(false),
        Found::Unreadable(fault) => {
            // The fault begins with the name.
            output::sentence(out, fault)?;
            output::sentence(out, &format!("{name}: invalid"))?;
            return Ok(false);
        }
        Found::Judged {
            spans,
            health,
            left_out,
        } => (*spans, health, left_out),
    };
    let mut left_out = LeftOut::default();
    for (name, count) in counts {
        left_out.add(name, *count);
    }
    for issue in &health.issues {
        if issue.severity == HealthSeverity::Error || warnings {
            let text = format!("{}: {} ({})", issue.severity, issue.message, issue.code);
            output::sentence(out, &format!("{name}: {text}"))?;
        }
    }
    if let Some(text) = left_out.sentence().filter(|_| warnings) {
        output::sentence(out, &format!("{name}: {text}"))?;
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
    if !left_out.is_empty() {
        line += &format!(", {} left out", left_out.counted());
    }
    let hinted = hint && (gaps > 0 || !left_out.is_empty());
    if hinted {
        line += " (-w shows them)";
    }
    output::sentence(out, &line)?;
    Ok(hinted)
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
        Found::Judged {
            spans,
            health,
            left_out,
        } => json!({
            "schema": "candle-profiler/check/1",
            "trace": name,
            "valid": health.structurally_valid,
            "complete": health.capture_complete,
            "spans": spans,
            "issues": health.issues,
            "coverage": health.coverage,
            "left_out": left_out,
        }),
    }
}
