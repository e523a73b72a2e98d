//! `candle-profile summary`: what a person wants to know of a trace, or of many.

use std::collections::HashSet;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::{Verdict, input, output};
use crate::view::summary::tree::Tree;
use crate::view::summary::{self, Fed, Look, Page, trends};

/// Show what matters in a trace: problems, numbers, times, memory, tensors, gradients; of several, how they went.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The traces
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Show the tree of calls too
    #[arg(long)]
    tree: bool,
    /// Show each trace by itself, where there are several
    #[arg(long)]
    each: bool,
    /// Say it as JSON: candle-profiler/summary/1; of several traces candle-profiler/trends/1
    #[arg(long)]
    json: bool,
    /// Columns of the page
    #[arg(long, default_value_t = 80, value_parser = clap::value_parser!(u16).range(20..))]
    width: u16,
}

pub(super) fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<Verdict> {
    let inputs = each_once(input::all(&arguments.traces)?);
    let single = inputs.len() == 1 || arguments.each || arguments.tree;
    let mut steps = Vec::new();
    let mut list = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        let fed = input.digest()?;
        if !single {
            steps.push(trends::Step::of(&input.name(), &fed.digest));
        } else if arguments.json {
            list.push(as_json(&input.name(), &fed, arguments.tree));
        } else {
            if at > 0 {
                writeln!(out)?;
            }
            out.write_all(text(arguments, input, &fed).as_bytes())?;
        }
    }
    match (single, arguments.json) {
        (true, true) => match (list.pop(), list.is_empty()) {
            (Some(only), true) => output::json(out, &only)?,
            (last, _) => {
                list.extend(last);
                output::json(out, &json!(list))?;
            }
        },
        (true, false) => {}
        (false, true) => output::json(out, &trends::as_json(&steps))?,
        (false, false) => {
            let text = trends::render(&steps, arguments.width.into(), output::colour());
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(Verdict::Well)
}

/// A file that is named twice, by itself and by a pattern, is no step more.
fn each_once(inputs: Vec<input::Input>) -> Vec<input::Input> {
    let mut seen = HashSet::new();
    let mut is_new = |input: &input::Input| match input.file() {
        Some(path) => seen.insert(path.canonicalize().unwrap_or_else(|_| path.to_path_buf())),
        None => true,
    };
    inputs.into_iter().filter(|input| is_new(input)).collect()
}

fn as_json(name: &str, fed: &Fed, tree: bool) -> serde_json::Value {
    let mut value = summary::json::summary(name, &fed.digest);
    if tree && let Some(value) = value.as_object_mut() {
        value.insert("tree".to_owned(), Tree::of(&fed.spans).as_json(&fed.digest));
    }
    value
}

fn text(arguments: &Arguments, input: &input::Input, fed: &Fed) -> String {
    let width = usize::from(arguments.width);
    let colour = output::colour();
    let look = Look {
        width,
        colour,
        unoptimised: false,
        path: input.file(),
    };
    let mut text = summary::render(&fed.digest, &look);
    if arguments.tree {
        let mut page = Page::new(width, colour);
        Tree::of(&fed.spans).show(&mut page, &fed.digest);
        text += &page.finish();
    }
    text
}
