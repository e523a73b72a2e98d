//! `candle-profile check`: every rule of the format.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Verdict, input, output};
use crate::trace::{HealthSeverity, TraceHealth, analyze_health};
use crate::view::text::{count, printable_line};

/// Judge traces by every rule of the format; exit 1 if one is invalid.
///
/// A line that is no event, or stands where it cannot, makes a trace invalid too, and is named.
#[derive(Debug, Args)]
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
    Unreadable(String),
    Judged { spans: usize, health: TraceHealth },
}

impl Found {
    fn is_valid(&self) -> bool {
        matches!(self, Found::Judged { health, .. } if health.structurally_valid)
    }
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let mut all_valid = true;
    let mut list = Vec::new();
    for input in input::all(&arguments.traces)? {
        let found = match input.checked_document()? {
            Ok(document) => Found::Judged {
                spans: document.spans.len(),
                health: analyze_health(&document),
            },
            Err(fault) => Found::Unreadable(fault),
        };
        all_valid &= found.is_valid();
        match arguments.json {
            true => list.push(as_json(&input.name(), &found)),
            false => tell(out, &input.name(), &found, arguments.warnings)?,
        }
    }
    if arguments.json {
        output::json(out, &json!(list))?;
    }
    Ok(match all_valid {
        true => Verdict::Well,
        false => Verdict::Found,
    })
}

fn tell(out: &mut dyn Write, name: &str, found: &Found, warnings: bool) -> Result<()> {
    let name = printable_line(name);
    let (spans, health) = match found {
        Found::Unreadable(fault) => {
            // The fault begins with the name.
            writeln!(out, "{}", printable_line(fault))?;
            writeln!(out, "{name}: invalid")?;
            return Ok(());
        }
        Found::Judged { spans, health } => (*spans, health),
    };
    for issue in &health.issues {
        if issue.severity == HealthSeverity::Error || warnings {
            let text = format!("{}: {} ({})", issue.severity, issue.message, issue.code);
            writeln!(out, "{name}: {}", printable_line(&text))?;
        }
    }
    let verdict = if health.structurally_valid { "valid" } else { "invalid" };
    let outcome = if health.capture_complete { "complete" } else { "failed" };
    let errors = health.of(HealthSeverity::Error).count();
    let gaps = health.gaps().count();
    let mut line = format!("{name}: {verdict}, {outcome}, {} spans", count(spans as u64));
    for (number, noun) in [(errors, "error"), (gaps, "warning")] {
        let ending = if number == 1 { "" } else { "s" };
        line += &match number {
            0 => String::new(),
            _ => format!(", {} {noun}{ending}", count(number as u64)),
        };
    }
    writeln!(out, "{line}")?;
    Ok(())
}

fn as_json(name: &str, found: &Found) -> serde_json::Value {
    match found {
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
