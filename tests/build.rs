//! The macro cases once more, with `ops` on every attribute that takes it: no body may tell the difference.

use std::path::Path;

fn main() {
    let out = std::env::var("OUT_DIR").expect("cargo says where");
    for name in ["macro_cases", "kin"] {
        let from = format!("attributes/{name}.rs");
        println!("cargo::rerun-if-changed={from}");
        let text = std::fs::read_to_string(&from).expect("the cases");
        let mut text = text.replace("crate::macro_cases", "super::macro_cases");
        for (attribute, option) in [
            ("profile_span", "ops(stats)"),
            ("measured", "ops"),
            ("profile_step", ""),
        ] {
            text = text.replace(
                &format!("#[{attribute}]"),
                &format!("#[{attribute}({option})]"),
            );
            text = text.replace(
                &format!("#[{attribute}("),
                &format!("#[{attribute}({option}, "),
            );
            text = text.replace(&format!("({option}, {option})"), &format!("({option})"));
        }
        for step in ["forward", "backward", "optimizer", "fwd", "bwd", "optim"] {
            text = text.replace(
                &format!("#[profile_step(, {step}"),
                &format!("#[profile_step({step}, ops"),
            );
        }
        // Inner attributes and comments cannot be included.
        let inner = |line: &&str| !line.starts_with("#![") && !line.starts_with("//!");
        let text: Vec<&str> = text.lines().filter(inner).collect();
        std::fs::write(Path::new(&out).join(format!("{name}.rs")), text.join("\n"))
            .expect("room for the cases");
    }
}
