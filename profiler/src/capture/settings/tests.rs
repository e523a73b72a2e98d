use std::path::PathBuf;

use super::*;

fn read(environment: &[(&str, &str)]) -> Result<Settings, Complaint> {
    Settings::read(&|name| {
        let found = environment.iter().find(|(key, _)| *key == name)?;
        Some(OsString::from(found.1))
    })
}

fn on_with(variable: &str, value: &str) -> Result<Settings, Complaint> {
    read(&[("CANDLE_PROFILE", "1"), (variable, value)])
}

fn folder(path: &str) -> Target {
    Target::Folder(PathBuf::from(path))
}

#[test]
fn the_target_is_off_a_folder_or_a_file() {
    let target = |value| read(&[("CANDLE_PROFILE", value)]).unwrap().target;
    assert_eq!(read(&[]).unwrap().target, Target::Off);
    for off in [
        "", " ", "0", "off", "false", "OFF", "no", "None", "disabled",
    ] {
        assert_eq!(target(off), Target::Off, "{off}");
    }
    for on in ["1", "on", "true", "True", "yes", "enabled"] {
        assert_eq!(target(on), folder("candle-profile"), "{on}");
    }
    assert_eq!(target("out/traces"), folder("out/traces"));
    assert_eq!(target("2"), folder("2"));
    assert_eq!(target("./none"), folder("./none"));
    assert_eq!(
        target("out/run.jsonl"),
        Target::File(PathBuf::from("out/run.jsonl"))
    );
    assert_eq!(target("run.jsonl.d"), folder("run.jsonl.d"));
}

#[test]
fn while_off_nothing_else_is_looked_at() {
    let asked = std::cell::RefCell::new(Vec::new());
    let settings = Settings::read(&|name| {
        asked.borrow_mut().push(name.to_owned());
        None
    });
    assert_eq!(settings.unwrap().target, Target::Off);
    assert_eq!(*asked.borrow(), ["CANDLE_PROFILE"]);
    assert!(read(&[("CANDLE_PROFILE_STEPS", "x")]).is_ok());
}

#[test]
fn only_our_variables_and_the_rank_are_read() {
    let asked = std::cell::RefCell::new(Vec::new());
    let settings = Settings::read(&|name| {
        asked.borrow_mut().push(name.to_owned());
        (name == "CANDLE_PROFILE").then(|| OsString::from("1"))
    });
    assert!(settings.is_ok());
    let known = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
    for name in asked.borrow().iter() {
        let ours = name.starts_with("CANDLE_PROFILE");
        assert!(ours || known.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn unset_and_blank_are_the_defaults() {
    let variables = [
        "STEPS",
        "RECORD",
        "SYNC",
        "SUMMARY",
        "TAGS",
        "NONFINITE",
        "BUDGET",
    ];
    let names = variables.map(|name| format!("CANDLE_PROFILE_{name}"));
    let mut blank: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), " ")).collect();
    blank.push(("CANDLE_PROFILE", "1"));
    for settings in [read(&[("CANDLE_PROFILE", "1")]), read(&blank)] {
        let settings = settings.unwrap();
        assert!(settings.schedule.is_default());
        assert_eq!(settings.planes, Planes::ALL);
        assert_eq!(settings.sync, None);
        assert_eq!(settings.summary, SummaryTo::Stderr);
        assert!(settings.tags.is_empty());
        assert_eq!(settings.nonfinite, NonFinite::default());
        assert_eq!(settings.budget, 1_073_741_824);
        assert_eq!(settings.rank, None);
        assert!(settings.started > SystemTime::UNIX_EPOCH);
    }
}

#[test]
fn planes_are_given_or_taken_away() {
    let planes = |value| on_with("CANDLE_PROFILE_RECORD", value).unwrap().planes;
    let two = Planes::NONE.with(Plane::Spans).with(Plane::Memory);
    assert_eq!(planes("spans,memory"), two);
    assert_eq!(planes(" memory , spans "), two);
    assert_eq!(planes("all"), Planes::ALL);
    for most in ["-ops", "all,-ops", "spans,stats,scalars,gradients,memory"] {
        assert_eq!(planes(most), Planes::ALL.without(Plane::Ops), "{most}");
    }
    assert_eq!(planes("spans,-spans"), Planes::NONE);
    assert!(!planes("-ops").contains(Plane::Ops));
    assert!(planes("-ops").contains(Plane::Stats));
}

#[test]
fn the_other_values_are_understood() {
    let sync = |value| on_with("CANDLE_PROFILE_SYNC", value).unwrap().sync;
    assert_eq!(sync("none"), Some(SyncMode::None));
    assert_eq!(sync("measured"), Some(SyncMode::Measured));
    assert_eq!(sync("spans"), Some(SyncMode::Spans));

    let summary = |value| on_with("CANDLE_PROFILE_SUMMARY", value).unwrap().summary;
    for stderr in ["stderr", "STDERR", "1", "on", "true", "yes"] {
        assert_eq!(summary(stderr), SummaryTo::Stderr, "{stderr}");
    }
    for off in ["off", "Off", "0", "false", "no", "none", "disabled"] {
        assert_eq!(summary(off), SummaryTo::Off, "{off}");
    }
    assert_eq!(
        summary("./stdout"),
        SummaryTo::File(PathBuf::from("./stdout"))
    );
    assert_eq!(
        summary("a b.txt"),
        SummaryTo::File(PathBuf::from("a b.txt"))
    );

    let tags = on_with("CANDLE_PROFILE_TAGS", "b=2, a = x=y ,c=")
        .unwrap()
        .tags;
    let tags: Vec<(&str, &str)> = tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(tags, [("a", "x=y"), ("b", "2"), ("c", "")]);

    let nonfinite = |value| {
        on_with("CANDLE_PROFILE_NONFINITE", value)
            .unwrap()
            .nonfinite
    };
    let (plain, watch) = (NonFinite::default(), true);
    assert_eq!(nonfinite("report"), plain);
    assert_eq!(nonfinite("watch"), NonFinite { watch, ..plain });
    assert_eq!(nonfinite("inf"), NonFinite { inf: true, ..plain });
    let stop = NonFinite {
        watch,
        stop: true,
        inf: false,
    };
    assert_eq!(nonfinite("report, stop"), stop);

    let budget = |value| on_with("CANDLE_PROFILE_BUDGET", value).unwrap().budget;
    assert_eq!(budget("500000"), 500_000);
    assert_eq!(budget("64MiB"), 67_108_864);
    assert_eq!(budget("64KiB"), 65_536);
    assert_eq!(budget("1 GiB"), 1_073_741_824);
    assert_eq!(budget("100kB"), 100_000);
    assert_eq!(budget("2MB"), 2_000_000);
    assert_eq!(budget("2GB"), 2_000_000_000);

    let rank = read(&[("CANDLE_PROFILE", "1"), ("RANK", "1"), ("WORLD_SIZE", "2")]);
    assert_eq!(rank.unwrap().rank.unwrap().rank, 1);
}

#[test]
fn a_refused_value_makes_one_line_that_says_all() {
    let cases = [
        (
            "CANDLE_PROFILE_STEPS",
            "x",
            "`x` is not a step",
            "every:100",
        ),
        (
            "CANDLE_PROFILE_RECORD",
            "ops,all,tensors",
            "`tensors`",
            "gradients",
        ),
        ("CANDLE_PROFILE_RECORD", "-all", "`-all`", "gradients"),
        ("CANDLE_PROFILE_RECORD", "ops,", "``", "gradients"),
        (
            "CANDLE_PROFILE_SYNC",
            "always",
            "none of them",
            "measured or spans",
        ),
        ("CANDLE_PROFILE_TAGS", "a", "`a` has no =", "key=value"),
        (
            "CANDLE_PROFILE_TAGS",
            "a=1, =2",
            "` =2` has no key",
            "key=value",
        ),
        (
            "CANDLE_PROFILE_NONFINITE",
            "nan",
            "`nan`",
            "report, watch, stop, inf",
        ),
        (
            "CANDLE_PROFILE_SUMMARY",
            "stdout",
            "the program's own",
            "stderr, off, or a file",
        ),
        (
            "CANDLE_PROFILE_SUMMARY",
            "run.jsonl",
            "a summary is no trace",
            "stderr, off, or a file",
        ),
        (
            "CANDLE_PROFILE_BUDGET",
            "MiB",
            "no number",
            "at least 64KiB",
        ),
        (
            "CANDLE_PROFILE_BUDGET",
            "-5",
            "`-5` is no number of bytes",
            "at least 64KiB",
        ),
        (
            "CANDLE_PROFILE_BUDGET",
            "99999999999GiB",
            "too large",
            "at least 64KiB",
        ),
        (
            "CANDLE_PROFILE_BUDGET",
            "1.5GiB",
            "`1.5`: whole numbers only",
            "at least 64KiB",
        ),
    ];
    for (variable, value, why, allowed) in cases {
        let line = on_with(variable, value).unwrap_err().to_string();
        let start = format!("{variable}={value} is not understood: ");
        assert!(line.starts_with(&start), "{line}");
        assert!(line.contains(why), "{line}");
        let (_, after) = line.split_once("; allowed: ").unwrap();
        assert!(after.contains(allowed), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn a_budget_that_is_too_small_is_understood_all_the_same() {
    for small in ["65535", "1KiB", "0", " 63 KiB"] {
        assert_eq!(
            on_with("CANDLE_PROFILE_BUDGET", small)
                .unwrap_err()
                .to_string(),
            format!("CANDLE_PROFILE_BUDGET={small} is too small: at least 64KiB")
        );
    }
}

#[test]
fn a_long_or_wild_value_is_made_printable() {
    let wild = format!("\u{1b}[2J\n{}", "y".repeat(5_000));
    let line = on_with("CANDLE_PROFILE_SYNC", &wild)
        .unwrap_err()
        .to_string();
    assert!(
        line.starts_with("CANDLE_PROFILE_SYNC=\\u{1b}[2J\\nyyy"),
        "{line}"
    );
    assert!(line.chars().all(|letter| !letter.is_control()));
    assert!(line.chars().count() < 200, "{line}");
    let line = on_with("CANDLE_PROFILE_STEPS", &wild)
        .unwrap_err()
        .to_string();
    assert!(line.chars().count() < 400, "{line}");
}

#[cfg(unix)]
#[test]
fn paths_need_not_be_text_but_words_do() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = |ending: &[u8]| OsString::from_vec([b"dir/\xff", ending].concat());
    let with = |variable: &'static str, value: OsString| {
        Settings::read(&move |name| match name {
            _ if name == variable => Some(value.clone()),
            "CANDLE_PROFILE" => Some(OsString::from("1")),
            _ => None,
        })
    };
    assert_eq!(
        with("CANDLE_PROFILE", bytes(b"")).unwrap().target,
        Target::Folder(bytes(b"").into())
    );
    assert_eq!(
        with("CANDLE_PROFILE", bytes(b".jsonl")).unwrap().target,
        Target::File(bytes(b".jsonl").into())
    );
    assert_eq!(
        with("CANDLE_PROFILE_SUMMARY", bytes(b"")).unwrap().summary,
        SummaryTo::File(bytes(b"").into())
    );
    let line = with("CANDLE_PROFILE_TAGS", bytes(b"=1"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        line,
        "CANDLE_PROFILE_TAGS=dir/\u{fffd}=1 is not understood: it is not UTF-8; \
         allowed: key=value,key=value"
    );
}

#[test]
fn the_same_can_be_said_in_code() {
    let none = |_: &str| None;
    assert_eq!(Config::new().into_settings(&none).target, Target::Off);
    let config = Config::new()
        .folder("out")
        .steps("3,5..7")
        .unwrap()
        .record("-ops")
        .unwrap()
        .sync(SyncMode::None)
        .summary(SummaryTo::Off)
        .tag("a", "1")
        .tag("a", "2")
        .tag(" ", "3")
        .nonfinite("stop")
        .unwrap()
        .budget(7);
    let settings = config.clone().into_settings(&|name| match name {
        "RANK" => Some(OsString::from("3")),
        _ => None,
    });
    assert_eq!(settings.target, folder("out"));
    let train = super::super::schedule::Kind::Train;
    assert!(settings.schedule.selects("f", train, 6, None));
    assert!(!settings.schedule.selects("f", train, 7, None));
    assert_eq!(settings.planes, Planes::ALL.without(Plane::Ops));
    assert_eq!(settings.sync, Some(SyncMode::None));
    assert_eq!(settings.summary, SummaryTo::Off);
    assert_eq!(
        settings.tags.into_iter().collect::<Vec<_>>(),
        [("a".into(), "2".into())]
    );
    assert!(settings.nonfinite.stop && settings.nonfinite.watch);
    assert_eq!(settings.budget, 65_536);
    assert_eq!(settings.rank.unwrap().rank, 3);

    let file = config.clone().file("t.jsonl").into_settings(&none);
    assert_eq!(file.target, Target::File(PathBuf::from("t.jsonl")));
    assert_eq!(config.off().into_settings(&none).target, Target::Off);
    let refused = Config::new().steps("0").unwrap_err().to_string();
    assert!(
        refused.starts_with("steps=0 is not understood: 0 is below 1"),
        "{refused}"
    );
}

#[test]
fn what_is_read_are_the_variables_that_are_known() {
    let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let get = |name: &str| {
        asked.borrow_mut().insert(name.to_owned());
        (name == "CANDLE_PROFILE").then(|| "traces".into())
    };
    Settings::read(&get).expect("settings");
    let ours = asked.into_inner().into_iter();
    let ours: Vec<String> = ours.filter(|name| name.starts_with("CANDLE")).collect();
    let mut known = super::VARIABLES;
    known.sort_unstable();
    assert_eq!(ours, known);
}
