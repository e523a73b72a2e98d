use candle_core::{DType, Device, Tensor};
use candle_profiler::private as p;
use candle_profiler::*;
fn leaf(i: u32) -> u32 {
    let _g = p::enter(const { &p::CallSite::new(p::Name::Text("m::leaf"), file!(), line!()) });
    i + 1
}
fn mid(i: u32) -> u32 {
    let _g = p::enter(
        const {
            &p::CallSite::new(p::Name::Text("m::mid"), file!(), line!())
                .step(p::ExecutionStep::Forward)
        },
    );
    let mut x = 0;
    for k in 0..50 {
        x += leaf(i + k);
    }
    x
}
fn step(i: u32) -> Result<u32, String> {
    let m = p::measure(
        const { &p::MeasureSite::new(p::CallSite::new(p::Name::Text("m::step"), file!(), line!())) },
        |_| {},
        |_| {},
    );
    let v = p::invoke(move || -> Result<u32, String> {
        let t = Tensor::ones((4, 4), DType::F32, &Device::Cpu).unwrap();
        record_stats("t", &t);
        let mut s = 0;
        for _ in 0..3 {
            s += mid(i);
        }
        let h = current();
        std::thread::scope(|sc| {
            for _ in 0..2 {
                let h = &h;
                sc.spawn(move || {
                    let _e = h.enter();
                    mid(3);
                    record_scalar("x", &1.5f32);
                });
            }
        });
        if i == 7 {
            return Err("seven".into());
        }
        Ok(s)
    });
    let e = m.end();
    p::record_stats(
        &e,
        const { &p::RecordSite::new(p::Name::Text("lab"), file!(), line!()) },
        None,
        &Tensor::ones((2,), DType::F32, &Device::Cpu),
    );
    e.finish(|| {
        use p::outcome::{Debugged as _, Displayed as _, Other as _, Typed as _};
        (&&&&p::Outcome(&v)).__candle_profiler_failure()
    });
    v
}
#[test]
fn smoke() {
    let dir = std::path::PathBuf::from("/tmp/smoke");
    let _ = std::fs::remove_dir_all(&dir);
    configure(
        Config::new()
            .folder(&dir)
            .steps("1..100000")
            .unwrap()
            .summary(SummaryTo::Off),
    )
    .unwrap();
    for i in 0..200 {
        let _ = step(i);
    }
    let mut n = 0;
    let mut bad = 0;
    for f in std::fs::read_dir(&dir).unwrap() {
        let f = f.unwrap().path();
        n += 1;
        match candle_graph::parse_trace(&f) {
            Err(e) => {
                bad += 1;
                println!("{f:?} {e:#}");
            }
            Ok(d) => {
                let h = candle_graph::trace::analyze_health(&d);
                if !h.structurally_valid {
                    bad += 1;
                    println!(
                        "{f:?} {:?}",
                        h.issues
                            .iter()
                            .filter(|i| i.severity == candle_graph::trace::HealthSeverity::Error)
                            .collect::<Vec<_>>()
                    );
                }
            }
        }
    }
    println!("{n} {bad}");
    assert_eq!(bad, 0);
    assert_eq!(n, 200);
}
