//! What was aimed at, and whether it is met.

/// The targets of one benchmark, printed when all are known.
#[derive(Default)]
pub struct Targets(Vec<Target>);

struct Target {
    what: String,
    found: f64,
    bound: Bound,
}

enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Targets {
    /// No target yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `found` should be at most `limit`.
    pub fn at_most(&mut self, what: impl Into<String>, found: f64, limit: f64) {
        self.add(what, found, Bound::AtMost(limit));
    }

    /// `found` should be at least `limit`.
    pub fn at_least(&mut self, what: impl Into<String>, found: f64, limit: f64) {
        self.add(what, found, Bound::AtLeast(limit));
    }

    fn add(&mut self, what: impl Into<String>, found: f64, bound: Bound) {
        self.0.push(Target {
            what: what.into(),
            found,
            bound,
        });
    }

    /// Prints a line for each.
    pub fn print(&self) {
        println!("\ntargets");
        for Target { what, found, bound } in &self.0 {
            let (words, met) = match bound {
                Bound::AtMost(limit) => (format!("at most {limit}"), found <= limit),
                Bound::AtLeast(limit) => (format!("at least {limit}"), found >= limit),
            };
            let verdict = if met { "met" } else { "MISSED" };
            println!("  {what:<66} {found:>8.2}  {words:<14} {verdict}");
        }
    }
}
