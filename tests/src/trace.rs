//! A trace as a test looks at it: its lines as plain values, judged before anything is asked of them.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

/// A trace that the judge finds valid.
pub struct Trace {
    /// The lines, in the order of the file.
    pub lines: Vec<Value>,
    /// The spans, in the order of their starts; the root is the first.
    pub spans: Vec<Span>,
}

/// Both lines of a span.
#[derive(Clone, Debug)]
pub struct Span {
    /// `s1`, `s2`, …
    pub id: String,
    /// The parent's id.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// Start and end in nanoseconds.
    pub time: (u64, u64),
    /// `span_start` as written.
    pub start: Value,
    /// `span_end` as written.
    pub end: Value,
}

impl Trace {
    /// Reads a trace; fails where the judge refuses it or finds it invalid.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a trace");
        let verdict = candle_graph::trace::parse_trace(path);
        let document =
            verdict.unwrap_or_else(|error| panic!("{}: {error:#}\n{text}", path.display()));
        let health = candle_graph::trace::analyze_health(&document);
        assert!(
            health.structurally_valid,
            "{}: {:#?}\n{text}",
            path.display(),
            health.issues
        );
        assert!(text.ends_with('\n'), "the last line is whole");
        Self::parse(&text)
    }

    /// The lines of a text that need not be a whole trace.
    pub fn parse(text: &str) -> Self {
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a JSON object a line"))
            .collect();
        let mut spans: Vec<Span> = lines
            .iter()
            .filter(|line| line["kind"] == "span_start")
            .map(|start| Span::of(start, &lines))
            .collect();
        spans.sort_by_key(|span| (span.time.0, span.number()));
        Self { lines, spans }
    }

    /// The lines of one kind.
    pub fn kind(&self, kind: &str) -> Vec<&Value> {
        self.lines
            .iter()
            .filter(|line| line["kind"] == kind)
            .collect()
    }

    /// The first line.
    pub fn meta(&self) -> &Value {
        let meta = &self.lines[0];
        assert_eq!(meta["kind"], "meta");
        meta
    }

    /// The last line.
    pub fn terminal(&self) -> &Value {
        let terminal = self.lines.last().expect("a line");
        assert_eq!(terminal["kind"], "terminal");
        terminal
    }

    /// Why the trace failed; `None`: it is complete.
    pub fn reason(&self) -> Option<&str> {
        let terminal = self.terminal();
        let reason = terminal["reason"].as_str();
        let failed = terminal["outcome"] == "failed";
        assert_eq!(failed, reason.is_some(), "{terminal}");
        reason
    }

    /// The only span of this name.
    pub fn span(&self, name: &str) -> &Span {
        let named = self.named(name);
        assert_eq!(
            named.len(),
            1,
            "spans called {name} in\n{}",
            self.tree_with_root()
        );
        named[0]
    }

    /// The spans of this name, in the order of their starts.
    pub fn named(&self, name: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }

    /// The measured span.
    pub fn measured(&self) -> &Span {
        let mut measured = self
            .spans
            .iter()
            .filter(|span| span.start["measured"] == true);
        let first = measured.next().expect("a measured span");
        assert!(measured.next().is_none(), "one measured span");
        first
    }

    /// The names of the spans around a span, the root first.
    pub fn path(&self, span: &Span) -> Vec<&str> {
        let mut path = Vec::new();
        let mut above = span.parent.as_deref();
        while let Some(id) = above {
            let parent = self
                .spans
                .iter()
                .find(|span| span.id == id)
                .expect("a parent");
            path.push(parent.name.as_str());
            above = parent.parent.as_deref();
        }
        path.reverse();
        path
    }

    /// The labels and means of all statistics, in the order of the file.
    pub fn means(&self) -> Vec<(String, f64)> {
        self.kind("tensor_stats")
            .iter()
            .map(|line| {
                let label = line["label"].as_str().expect("a label").to_owned();
                (label, line["mean"].as_f64().expect("a mean"))
            })
            .collect()
    }

    /// The statistics under this label; fails unless there are exactly one.
    pub fn stats(&self, label: &str) -> &Value {
        let all: Vec<&Value> = self
            .kind("tensor_stats")
            .into_iter()
            .filter(|stats| stats["label"] == label)
            .collect();
        assert_eq!(
            all.len(),
            1,
            "records called {label} in\n{}",
            self.tree_with_root()
        );
        all[0]
    }

    /// All labels of statistics, in the order of the file.
    pub fn labels(&self) -> Vec<&str> {
        let stats = self.kind("tensor_stats");
        stats
            .into_iter()
            .filter_map(|stats| stats["label"].as_str())
            .collect()
    }

    /// What lies below the root, one line each, indented: a span's name, `*` where it is measured, its kind but
    /// `function`, its step and its marks; then `= label` for each of its statistics.
    pub fn tree(&self) -> String {
        let mut text = String::new();
        self.below("s1", 0, &mut text);
        text
    }

    fn tree_with_root(&self) -> String {
        format!("{}\n{}", self.spans[0].name, self.tree())
    }

    fn below(&self, id: &str, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for stats in self.kind("tensor_stats") {
            if stats["span_id"] == id {
                let label = stats["label"].as_str().unwrap_or_default();
                writeln!(text, "{indent}= {label}").expect("memory");
            }
        }
        for span in &self.spans {
            if span.parent.as_deref() == Some(id) {
                writeln!(text, "{indent}{}", span.shown()).expect("memory");
                self.below(&span.id, depth + 1, text);
            }
        }
    }
}

impl Span {
    fn of(start: &Value, lines: &[Value]) -> Self {
        let id = start["id"].as_str().expect("an id").to_owned();
        let end = lines
            .iter()
            .find(|line| line["kind"] == "span_end" && line["id"] == *id)
            .cloned()
            .unwrap_or_default();
        let begin = start["start_ns"].as_u64().expect("a start");
        let duration = end["duration_ns"].as_u64().unwrap_or_default();
        Self {
            id,
            parent: start["parent_id"].as_str().map(str::to_owned),
            name: start["name"].as_str().expect("a name").to_owned(),
            time: (begin, begin + duration),
            start: start.clone(),
            end,
        }
    }

    fn number(&self) -> u64 {
        self.id[1..].parse().expect("a number")
    }

    /// Whether the end line carries this mark.
    pub fn is(&self, mark: &str) -> bool {
        self.end[mark] == true
    }

    fn shown(&self) -> String {
        let mut text = self.name.clone();
        if self.start["measured"] == true {
            text.push('*');
        }
        for (key, plain) in [("span_kind", "function"), ("step", "")] {
            if let Some(value) = self.start[key].as_str().filter(|value| *value != plain) {
                text.push(' ');
                text.push_str(value);
            }
        }
        for mark in ["cut", "cancelled", "panicked", "open_at_end"] {
            if self.is(mark) {
                text.push('!');
                text.push_str(mark);
            }
        }
        if self.end.is_null() {
            text.push_str("!never ended");
        }
        text
    }
}
