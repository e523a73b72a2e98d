use std::fs;
use std::io::Write;
use std::time::Duration;

use super::*;
use crate::capture::settings::Settings;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A run that writes into the folder; with a name, into that file.
    fn run(&self, file: &str, started: SystemTime) -> Files {
        let target = match file {
            "" => Target::Folder(self.folder.path().to_owned()),
            _ => Target::File(self.path(file)),
        };
        Files::new(&Settings {
            target,
            started,
            ..Settings::off()
        })
    }

    /// The names in the folder, with what is in the files.
    fn content(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let text = fs::read_to_string(entry.path()).unwrap_or_default();
                (entry.file_name().into_string().unwrap(), text)
            })
            .collect();
        all.sort();
        all
    }
}

/// How every trace begins.
const OLD: &str = r#"{"kind":"meta","schema":"candle-graph/trace/10","run_id":"old"}"#;

fn wanted(step: i128) -> Wanted<'static> {
    Wanted {
        name: "train",
        step,
        rank: None,
    }
}

fn begin(files: &Files, step: i128, text: &str) -> Reservation {
    let (mut file, reservation) = files.reserve(wanted(step)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    reservation
}

fn name_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn commit(reservation: Reservation) -> String {
    name_of(&reservation.commit().unwrap()).to_owned()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |pair: &(&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
    expected.iter().map(owned).collect()
}

fn now() -> SystemTime {
    SystemTime::now()
}

/// A start before every file of the test, as of a process that runs beside their writers.
fn long_ago() -> SystemTime {
    now() - Duration::from_secs(3600)
}

/// A start after every file of the test, as of a process that follows their writers.
fn later() -> SystemTime {
    now() + Duration::from_secs(3600)
}

#[test]
fn a_trace_grows_in_a_partial_and_is_renamed() {
    let place = Place::new();
    let files = place.run("", now());
    let open = begin(&files, 2, "a");
    assert_eq!(name_of(open.partial()), "train-step2.jsonl.partial");
    assert_eq!(
        place.content(),
        pairs(&[("train-step2.jsonl.partial", "a")])
    );
    assert_eq!(commit(open), "train-step2.jsonl");
    assert_eq!(place.content(), pairs(&[("train-step2.jsonl", "a")]));
}

#[test]
fn the_folder_is_made_and_what_forbids_it_is_named() {
    let place = Place::new();
    let with = |target| {
        Files::new(&Settings {
            target,
            ..Settings::off()
        })
    };
    let deep = with(Target::Folder(place.path("a/b/c")));
    let path = begin(&deep, 1, "").commit().unwrap();
    assert_eq!(path, place.path("a/b/c/train-step1.jsonl"));
    fs::write(place.path("plain"), "").unwrap();
    let blocked = with(Target::Folder(place.path("plain/d")));
    let error = blocked.reserve(wanted(1)).unwrap_err().to_string();
    assert!(error.contains("plain"), "{error}");
    assert!(with(Target::Off).reserve(wanted(1)).is_err());
}

#[test]
fn an_existing_file_is_kept_and_the_new_one_numbered() {
    let place = Place::new();
    fs::write(place.path("train-step2.jsonl"), "old").unwrap();
    fs::write(place.path("train-step2-2.jsonl.partial"), "other's").unwrap();
    // In a folder, the files of earlier runs are kept as well.
    let files = place.run("", later());
    assert_eq!(commit(begin(&files, 2, "new")), "train-step2-3.jsonl");
    assert_eq!(
        place.content(),
        pairs(&[
            ("train-step2-2.jsonl.partial", "other's"),
            ("train-step2-3.jsonl", "new"),
            ("train-step2.jsonl", "old"),
        ])
    );
}

#[test]
fn a_file_that_turns_up_before_the_rename_is_kept() {
    let place = Place::new();
    let files = place.run("", now());
    let open = begin(&files, 2, "ours");
    fs::write(place.path("train-step2.jsonl"), "theirs").unwrap();
    assert_eq!(commit(open), "train-step2-2.jsonl");
    assert_eq!(
        place.content(),
        pairs(&[
            ("train-step2-2.jsonl", "ours"),
            ("train-step2.jsonl", "theirs")
        ])
    );
}

#[test]
fn racing_writers_never_share_a_name() {
    let place = Place::new();
    const WRITERS: usize = 8;
    const EACH: usize = 20;
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let files = place.run("", now());
            scope.spawn(move || {
                for turn in 0..EACH {
                    begin(&files, 1, &format!("{writer}/{turn}"))
                        .commit()
                        .unwrap();
                }
            });
        }
    });
    let content = place.content();
    assert_eq!(content.len(), WRITERS * EACH);
    let texts: HashSet<&str> = content.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts.len(), WRITERS * EACH, "no trace was overwritten");
    assert!(content.iter().all(|(name, _)| name.ends_with(".jsonl")));
}

#[test]
fn racing_for_an_exact_name_nobody_is_overwritten() {
    for turn in 0..50 {
        let place = Place::new();
        if turn % 2 == 0 {
            fs::write(place.path("run.jsonl"), OLD).unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
        let started = now();
        // A file's time may be a tick of the kernel behind the clock.
        std::thread::sleep(Duration::from_millis(25));
        std::thread::scope(|scope| {
            for writer in ["one", "two"] {
                let files = place.run("run.jsonl", started);
                scope.spawn(move || begin(&files, 1, writer).commit().unwrap());
            }
        });
        let mut texts: Vec<String> = place.content().into_iter().map(|pair| pair.1).collect();
        texts.sort();
        assert_eq!(texts, ["one", "two"]);
        assert!(place.path("run.jsonl").exists() && place.path("run-2.jsonl").exists());
    }
}

#[test]
fn an_exact_file_of_an_earlier_run_is_replaced_at_the_rename() {
    let place = Place::new();
    fs::write(place.path("run.jsonl"), OLD).unwrap();
    let files = place.run("run.jsonl", later());
    let open = begin(&files, 2, "new");
    assert_eq!(
        place.content(),
        pairs(&[("run.jsonl", OLD), ("run.jsonl.partial", "new")])
    );
    assert_eq!(commit(open), "run.jsonl");
    assert_eq!(place.content(), pairs(&[("run.jsonl", "new")]));
    // The second file of this run does not replace the first, nor an earlier second one.
    assert_eq!(commit(begin(&files, 3, "second")), "run-train-step3.jsonl");
    assert_eq!(commit(begin(&files, 3, "third")), "run-train-step3-2.jsonl");
    let names: Vec<String> = place.content().into_iter().map(|pair| pair.0).collect();
    assert_eq!(
        names,
        [
            "run-train-step3-2.jsonl",
            "run-train-step3.jsonl",
            "run.jsonl"
        ]
    );
}

#[test]
fn an_exact_file_that_appeared_while_we_ran_is_kept() {
    let place = Place::new();
    fs::write(place.path("run.jsonl"), OLD).unwrap();
    let files = place.run("run.jsonl", long_ago());
    assert_eq!(commit(begin(&files, 2, "ours")), "run-2.jsonl");
    assert_eq!(commit(begin(&files, 3, "next")), "run-train-step3.jsonl");

    let place = Place::new();
    let files = place.run("run.jsonl", long_ago());
    let open = begin(&files, 2, "ours");
    fs::write(place.path("run.jsonl"), OLD).unwrap();
    assert_eq!(commit(open), "run-2.jsonl");
    assert_eq!(fs::read_to_string(place.path("run.jsonl")).unwrap(), OLD);
}

#[test]
fn an_exact_file_that_is_no_trace_is_kept() {
    for data in [r#"{"text":"my data"}"#, "x", r#"{"kind":"meta","schema":"#] {
        let place = Place::new();
        fs::write(place.path("run.jsonl"), data).unwrap();
        let files = place.run("run.jsonl", later());
        assert_eq!(commit(begin(&files, 2, "new")), "run-2.jsonl");
        assert_eq!(
            place.content(),
            pairs(&[("run-2.jsonl", "new"), ("run.jsonl", data)])
        );
    }
    // A trace that may not be written is to be kept.
    let place = Place::new();
    fs::write(place.path("run.jsonl"), OLD).unwrap();
    let mut permissions = fs::metadata(place.path("run.jsonl")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(place.path("run.jsonl"), permissions).unwrap();
    let files = place.run("run.jsonl", later());
    assert_eq!(commit(begin(&files, 2, "new")), "run-2.jsonl");
    // An empty one holds nothing.
    let place = Place::new();
    fs::write(place.path("run.jsonl"), "").unwrap();
    let files = place.run("run.jsonl", later());
    assert_eq!(commit(begin(&files, 2, "new")), "run.jsonl");
}

#[cfg(unix)]
#[test]
fn a_link_or_folder_under_the_exact_name_is_kept() {
    let place = Place::new();
    fs::write(place.path("data"), "precious").unwrap();
    std::os::unix::fs::symlink(place.path("data"), place.path("run.jsonl")).unwrap();
    fs::create_dir(place.path("dir.jsonl")).unwrap();
    assert_eq!(
        commit(begin(&place.run("run.jsonl", later()), 1, "")),
        "run-2.jsonl"
    );
    assert_eq!(
        commit(begin(&place.run("dir.jsonl", later()), 1, "")),
        "dir-2.jsonl"
    );
    assert!(place.path("run.jsonl").is_symlink() && place.path("dir.jsonl").is_dir());
}

#[test]
fn ranks_have_files_of_their_own() {
    let place = Place::new();
    let ranked = |files: &Files, step| {
        let wanted = Wanted {
            rank: Some(1),
            ..wanted(step)
        };
        commit(files.reserve(wanted).unwrap().1)
    };
    assert_eq!(ranked(&place.run("", now()), 2), "train-step2-rank1.jsonl");
    let files = place.run("run.jsonl", now());
    assert_eq!(ranked(&files, 2), "run-rank1.jsonl");
    assert_eq!(ranked(&files, 3), "run-train-step3-rank1.jsonl");
}

#[test]
fn a_discarded_first_capture_leaves_the_exact_name_to_the_next() {
    let place = Place::new();
    let files = place.run("run.jsonl", now());
    begin(&files, 2, "dropped").discard();
    assert_eq!(place.content(), pairs(&[]));
    let aside = begin(&files, 2, "kept aside");
    let better = begin(&files, 3, "better");
    assert_eq!(name_of(better.partial()), "run-train-step3.jsonl.partial");
    aside.discard();
    assert_eq!(commit(better), "run.jsonl");
    assert_eq!(place.content(), pairs(&[("run.jsonl", "better")]));
    assert_eq!(commit(begin(&files, 4, "")), "run-train-step4.jsonl");
}

#[test]
fn two_captures_at_once_share_an_exact_name_by_order_of_opening() {
    let place = Place::new();
    let files = place.run("run.jsonl", now());
    let (first, second) = (begin(&files, 1, "1"), begin(&files, 2, "2"));
    assert_eq!(commit(second), "run-train-step2.jsonl");
    assert_eq!(commit(first), "run.jsonl");
}

#[test]
fn a_partial_can_be_kept() {
    let place = Place::new();
    let files = place.run("run.jsonl", now());
    let kept = begin(&files, 1, "half").keep_partial();
    assert_eq!(name_of(&kept), "run.jsonl.partial");
    assert_eq!(commit(begin(&files, 2, "")), "run-train-step2.jsonl");
    assert_eq!(fs::read_to_string(kept).unwrap(), "half");
}

#[test]
fn a_partial_that_is_gone_is_an_error_and_not_a_panic() {
    let place = Place::new();
    let files = place.run("", now());
    let open = begin(&files, 1, "");
    fs::remove_file(open.partial()).unwrap();
    let error = open.commit().unwrap_err().to_string();
    assert!(error.contains("train-step1.jsonl.partial"), "{error}");
    assert_eq!(place.content(), pairs(&[]));
}

#[cfg(target_os = "linux")]
mod leftovers {
    use super::*;

    fn meta(pid: u32) -> String {
        format!("{{\"kind\":\"meta\",\"run_id\":\"run-{pid}-123\"}}\n")
    }

    fn dead_pid() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn what_a_dead_process_left_is_told_once_with_the_repair_command() {
        let place = Place::new();
        let own = std::process::id();
        fs::write(place.path("a b.jsonl.partial"), meta(dead_pid())).unwrap();
        fs::write(place.path("live.jsonl.partial"), meta(own)).unwrap();
        fs::write(place.path("empty.jsonl.partial"), "").unwrap();
        fs::write(
            place.path("cut.jsonl.partial"),
            "{\"kind\":\"meta\",\"run_i",
        )
        .unwrap();
        fs::write(place.path("done.jsonl"), meta(dead_pid())).unwrap();
        let files = place.run("", now());
        let found = files.leftovers();
        let paths: Vec<&Path> = found.iter().map(|left| left.path.as_path()).collect();
        assert_eq!(paths, [place.path("a b.jsonl.partial")]);
        let command = format!(
            "candle-profile repair '{}'",
            place.path("a b.jsonl.partial").display()
        );
        assert!(found[0].line.ends_with(&command), "{}", found[0].line);
        assert!(!found[0].line.contains('\n'));
        assert_eq!(files.leftovers(), []);
    }

    /// Its process is not found here, since it is another machine's.
    #[test]
    fn what_somebody_still_writes_is_not_told() {
        let place = Place::new();
        let elsewhere = place.run("", now());
        let aside = begin(&elsewhere, 2, &meta(dead_pid()));
        let path = aside.partial().to_owned();
        // The file is closed, but the trace may still become one.
        assert_eq!(place.run("", now()).leftovers(), []);
        assert!(matches!(look(&path), Lock::Held));
        drop(aside);
        assert_eq!(place.run("", now()).leftovers().len(), 1);
    }

    #[test]
    fn beside_an_exact_file_only_its_own_are_told() {
        let place = Place::new();
        fs::write(place.path("run-f-step2.jsonl.partial"), meta(dead_pid())).unwrap();
        fs::write(place.path("other.jsonl.partial"), meta(dead_pid())).unwrap();
        let found = place.run("run.jsonl", now()).leftovers();
        assert_eq!(found.len(), 1);
        assert_eq!(name_of(&found[0].path), "run-f-step2.jsonl.partial");
    }

    #[test]
    fn a_missing_folder_has_none() {
        let place = Place::new();
        assert_eq!(place.run("no/such.jsonl", now()).leftovers(), []);
    }
}

/// Whoever removes the folder makes room for another run's file of the same name.
#[cfg(unix)]
#[test]
fn a_file_that_took_the_place_of_ours_is_let_alone() {
    let partial = "train-step2.jsonl.partial";
    type End = fn(Reservation) -> Option<io::Error>;
    let ends: [(End, bool); 2] = [
        (|ours| ours.commit().err(), true),
        (
            |ours| {
                ours.discard();
                None
            },
            false,
        ),
    ];
    for (end, fails) in ends {
        let place = Place::new();
        let files = place.run("", now());
        let ours = begin(&files, 2, "ours");
        fs::remove_file(place.path(partial)).unwrap();
        fs::write(place.path(partial), "theirs").unwrap();
        let error = end(ours);
        assert_eq!(error.is_some(), fails);
        if let Some(error) = error {
            assert!(error.to_string().contains("was taken away"), "{error}");
        }
        assert_eq!(place.content(), pairs(&[(partial, "theirs")]));
    }
}
