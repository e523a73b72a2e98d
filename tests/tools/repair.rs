//! `repair`.

use tests::{golden, judge};

use super::{get, json, put, refused, tool, well};

#[test]
fn a_trace_that_broke_off_becomes_whole() {
    let folder = tests::folder();
    let path = folder.path();
    let text = golden("all-events.trace10.jsonl").replace("\"run-7514-", "\"run-0-");
    let lines: Vec<&str> = text.lines().collect();
    let broken = lines[..12].join("\n") + "\n{\"kind\":\"span_e";
    put(path, "x.jsonl.partial", &broken);
    let said = well(path, &["repair", "x.jsonl.partial"]);
    assert!(said.starts_with("x.jsonl: 12 lines kept, "), "{said}");
    let whole = get(path, "x.jsonl");
    assert!(whole.starts_with(&lines[..12].join("\n")));
    assert!(judge(&whole).is_valid() && !judge(&whole).is_complete());
    assert!(well(path, &["check", "x.jsonl"]).starts_with("x.jsonl: valid, failed, "));
    assert!(well(path, &["summary", "x.jsonl"]).contains("still open at the end: "));

    put(path, "y.jsonl.partial", &broken);
    let value = json(path, &["repair", "--json", "y.jsonl.partial"]);
    assert_eq!(
        (&value[0]["path"], &value[0]["kept"]),
        (&"y.jsonl".into(), &12.into())
    );
}

#[test]
fn nothing_is_overwritten_and_what_is_no_trace_is_refused() {
    let folder = tests::folder();
    let path = folder.path();
    put(path, "no.partial", "nothing\n");
    let line = refused(path, &["repair", "no.partial"]);
    assert!(line.contains("no.partial"), "{line}");
    assert_eq!(get(path, "no.partial"), "nothing\n");
    assert!(refused(path, &["repair", "-"]).contains("repair takes files"));
    let ran = tool(path, &["repair", "a", "b", "-o", "c"]);
    assert_eq!(ran.code, Some(2));
    let text = golden("all-events.trace10.jsonl").replace("\"run-7514-", "\"run-0-");
    let first = text.lines().next().expect("a line");
    put(path, "t.jsonl", &format!("{first}\n"));
    let line = refused(path, &["repair", "t.jsonl", "-o", "nowhere/x.jsonl"]);
    assert!(line.contains("write nowhere/x.jsonl: "), "{line}");
    let line = refused(path, &["repair", "t.jsonl", "-o", "no.partial"]);
    assert!(
        line.ends_with("write no.partial: it exists, and is not overwritten"),
        "{line}"
    );
}

/// The beginning of a trace, of no process that lives.
fn broken(lines: usize) -> String {
    let text = golden("all-events.trace10.jsonl").replace("\"run-7514-", "\"run-0-");
    let lines: Vec<&str> = text.lines().take(lines).collect();
    lines.join("\n") + "\n"
}

#[test]
fn one_that_cannot_be_repaired_does_not_keep_the_others_from_it() {
    let folder = tests::folder();
    let path = folder.path();
    for name in ["a.jsonl.partial", "b.jsonl.partial"] {
        put(path, name, &broken(8));
    }
    let traces = ["a.jsonl.partial", "gone", "b.jsonl.partial"];
    let ran = tool(path, &[&["repair", "--json"], &traces[..]].concat());
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.only_line()
            .starts_with("candle-profile: open trace gone: "),
        "{}",
        ran.stderr
    );
    let list: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let paths = [&list[0]["path"], &list[1]["path"], &list[2]["path"]];
    assert_eq!(
        paths,
        [
            &"a.jsonl".into(),
            &serde_json::Value::Null,
            &"b.jsonl".into()
        ]
    );
    assert_eq!(list[1]["trace"], "gone");
    assert!(
        list[1]["fault"]
            .as_str()
            .expect("a fault")
            .starts_with("open trace gone: ")
    );
    assert_eq!(list.as_array().map(Vec::len), Some(3));
}

#[test]
fn folders_and_patterns_name_what_broke_off() {
    let folder = tests::folder();
    let path = folder.path();
    let inside = path.join("traces");
    std::fs::create_dir(&inside).expect("a folder");
    put(&inside, "t-step10.jsonl.partial", &broken(8));
    assert_eq!(
        refused(path, &["summary", "traces"]),
        "candle-profile: traces: there is no trace (a file that ends in .jsonl); traces/t-step10.jsonl.partial broke \
         off; to repair: candle-profile repair traces/t-step10.jsonl.partial"
    );
    let line = refused(path, &["summary", "traces/t-step10.jsonl"]);
    assert!(
        line.contains("(to repair: candle-profile repair traces/t-step10.jsonl.partial)"),
        "{line}"
    );
    put(&inside, "t-step9.jsonl.partial", &broken(8));
    let line = refused(path, &["check", "traces/*.jsonl"]);
    assert_eq!(
        line,
        "candle-profile: traces/*.jsonl: no file matches; 2 broke off; to repair: candle-profile repair \
         'traces/*.jsonl.partial'"
    );
    let said = well(path, &["repair", "traces/*9.jsonl.partial"]);
    assert!(
        said.starts_with("traces/t-step9.jsonl: 8 lines kept, "),
        "{said}"
    );
    put(&inside, "t-step2.jsonl.partial", &broken(8));
    let said = well(path, &["repair", "traces"]);
    let names: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once(": 8 lines kept"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["traces/t-step2.jsonl", "traces/t-step10.jsonl"]);
    assert_eq!(
        refused(path, &["repair", "traces"]),
        "candle-profile: traces: there is no trace that broke off (a file that ends in .partial)"
    );
    assert_eq!(
        refused(path, &["repair", "zz*"]),
        "candle-profile: zz*: no file matches"
    );
}

#[test]
fn one_is_said_of_one() {
    let folder = tests::folder();
    put(folder.path(), "t.jsonl.partial", &broken(2));
    assert_eq!(
        well(folder.path(), &["repair", "t.jsonl.partial"]),
        "t.jsonl: 2 lines kept, 1 span still open\n"
    );
}

#[test]
fn the_old_schema_is_repaired_in_place() {
    let folder = tests::folder();
    let path = folder.path();
    let old = golden("all-events.trace6.jsonl");
    let lines: Vec<&str> = old.lines().collect();
    put(
        path,
        "six.jsonl.partial",
        &(lines[..6].join("\n") + "\n{\"kind\":\"op\""),
    );
    let said = well(path, &["repair", "--force", "six.jsonl.partial"]);
    assert!(said.starts_with("six.jsonl: 6 lines kept, "), "{said}");
    assert_eq!(get(path, "six.jsonl"), lines[..6].join("\n") + "\n");
    assert!(well(path, &["summary", "six.jsonl"]).contains("still open at the end: "));
}

/// Those of a folder that are no files would never end, and are passed over. By name, whatever can be read is read.
#[cfg(unix)]
#[test]
fn pipes_and_links_of_a_folder_are_passed_over() {
    let folder = tests::folder();
    let path = folder.path();
    let inside = path.join("traces");
    std::fs::create_dir(&inside).expect("a folder");
    let pipe = |name: &str| {
        let made = std::process::Command::new("mkfifo")
            .arg(inside.join(name))
            .status();
        assert!(made.expect("mkfifo").success());
    };
    pipe("p.jsonl.partial");
    pipe("q.jsonl");
    std::os::unix::fs::symlink("/dev/zero", inside.join("z.jsonl.partial")).expect("a link");
    put(&inside, "t.jsonl.partial", &broken(8));
    assert_eq!(
        well(path, &["repair", "traces"]).lines().next(),
        Some("traces/t.jsonl: 8 lines kept, 5 spans still open")
    );
    let said = well(path, &["check", "traces"]);
    assert!(
        said.starts_with("traces/t.jsonl: valid, failed, "),
        "{said}"
    );
    assert!(
        refused(path, &["repair", "traces/p.jsonl.partial"]).starts_with(
            "candle-profile: traces/p.jsonl.partial: it is no regular file; what is read once"
        )
    );

    let to = inside.join("q.jsonl");
    let text = golden("all-events.trace10.jsonl");
    let writer = std::thread::spawn(move || std::fs::write(to, text));
    let said = well(path, &["check", "traces/q.jsonl"]);
    assert!(
        said.starts_with("traces/q.jsonl: valid, complete"),
        "{said}"
    );
    writer.join().expect("the writer").expect("all is read");
}

#[test]
fn unfinished_traces_beside_finished_ones_are_told() {
    let folder = tests::folder();
    let path = folder.path();
    let inside = path.join("traces");
    std::fs::create_dir(&inside).expect("a folder");
    put(&inside, "a.jsonl", &golden("all-events.trace10.jsonl"));
    put(&inside, "b.jsonl.partial", &broken(8));
    let said = |arguments: &[&str]| {
        let ran = tool(path, arguments);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.only_line().to_owned()
    };
    let start = "candle-profile: traces is read without what is unfinished: ";
    for command in ["check", "summary"] {
        assert_eq!(
            said(&[command, "traces"]),
            format!(
                "{start}traces/b.jsonl.partial broke off; to repair: candle-profile repair traces/b.jsonl.partial"
            )
        );
    }
    put(&inside, "c.jsonl.partial", &broken(8));
    assert_eq!(
        said(&["view", "traces", "-o", "page.html"]),
        format!("{start}2 broke off; to repair: candle-profile repair traces")
    );
    let alone = well(path, &["check", "traces/a.jsonl"]);
    assert!(alone.starts_with("traces/a.jsonl: valid"), "{alone}");
}

/// A trace whose writer runs: this process, which holds the lock that writers hold.
#[cfg(unix)]
#[test]
fn a_trace_that_is_still_written_is_no_broken_one() {
    let folder = tests::folder();
    let path = folder.path();
    let own = std::process::id();
    let growing = broken(8).replace("\"run-0-", &format!("\"run-{own}-"));
    put(path, "x.jsonl.partial", &growing);
    let writer = std::fs::File::open(path.join("x.jsonl.partial")).expect("the file");
    writer.lock().expect("a lock");
    let says = format!("is still being written by process {own}");
    for arguments in [
        &["summary", "x.jsonl.partial"][..],
        &["view", "x.jsonl.partial", "-o", "x.html"],
        &["export", "x.jsonl.partial", "--to", "folded"],
    ] {
        let line = refused(path, arguments);
        assert_eq!(line, format!("candle-profile: x.jsonl.partial {says}"));
    }
    let ran = tool(path, &["check", "x.jsonl.partial"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains(&says), "{}", ran.stdout);
    let line = refused(path, &["check", "."]);
    assert!(
        line.ends_with(&format!("; x.jsonl.partial {says}")),
        "{line}"
    );
    assert!(refused(path, &["summary", "x.jsonl"]).contains(&format!("which {says}")));
    put(path, "y.jsonl.partial", &broken(8));
    let line = refused(path, &["check", "."]);
    assert!(
        line.ends_with(
            "; 1 broke off, 1 is still being written; to repair: candle-profile repair ."
        ),
        "{line}"
    );
    drop(writer);
    // Without the lock it may be another program of that number.
    let line = refused(path, &["summary", "x.jsonl.partial"]);
    assert_eq!(
        line,
        format!(
            "candle-profile: x.jsonl.partial seems to be still written by process {own} (if that is another program: \
             candle-profile repair --force x.jsonl.partial)"
        )
    );
    assert!(refused(path, &["repair", "x.jsonl.partial"]).contains("--force"));
}
