use super::*;
use crate::record::{FORMAT, Figures, Reference};
use std::slice::from_ref;
use tapeloop_engine::error::ErrorKind;

/// Periods of repetitions around `median`, which are the same each time.
fn around(median: f64, noise: f64) -> Vec<f64> {
    let steps = [0.0, 1.0, -1.0, 0.5, -0.5, 0.2, -0.2, 0.8];
    let one = |step: f64| median * (1.0 + noise * step);
    steps.into_iter().map(one).collect()
}

fn facts(mode: &str) -> PointFacts {
    PointFacts {
        workload: "launch".to_owned(),
        axis: "base".to_owned(),
        mode: mode.to_owned(),
        kernels: 12,
        ..PointFacts::default()
    }
}

fn record(mode: &str, period_ns: Vec<f64>) -> Record {
    let figures = Figures {
        period_ns,
        ..Figures::default()
    };
    Record {
        format: FORMAT,
        run: Run {
            id: "one".to_owned(),
            device: "GPU".to_owned(),
            driver: "580".to_owned(),
            ..Run::default()
        },
        point: facts(mode),
        outcome: Outcome::Measured(Box::new(figures)),
    }
}

fn with_reference(mut record: Record, period_ns: Vec<f64>) -> Record {
    if let Outcome::Measured(figures) = &mut record.outcome {
        figures.references.push(Reference {
            name: "other".to_owned(),
            period_ns,
            ..Reference::default()
        });
    }
    record
}

fn verdict(old: Record, new: Record) -> Verdict {
    let compared = compare(&[old], &[new], Machines::Same).unwrap();
    compared.points[0].verdict
}

#[test]
fn a_shift_is_significant_only_beyond_the_noise() {
    let record_of = |median, noise| record("graph", around(median, noise));
    assert_eq!(
        verdict(record_of(1e4, 0.01), record_of(1e4, 0.01)),
        Verdict::Same
    );
    assert_eq!(
        verdict(record_of(1e4, 0.01), record_of(1.05e4, 0.01)),
        Verdict::Slower
    );
    assert_eq!(
        verdict(record_of(1e4, 0.01), record_of(0.95e4, 0.01)),
        Verdict::Faster
    );
    assert_eq!(
        verdict(record_of(1e4, 0.2), record_of(1.05e4, 0.2)),
        Verdict::Unclear
    );
    assert_eq!(
        verdict(record_of(1e4, 0.01), record_of(1.01e4, 0.001)),
        Verdict::Same
    );
    let none = record("graph", vec![]);
    assert_eq!(verdict(none.clone(), none), Verdict::Unclear);
}

#[test]
fn noisy_against_quiet_is_unclear_and_passes() {
    // Each repetition is twice as slow, but half of the repetitions differ by half.
    let noisy = [2e4, 3e4, 2.1e4, 3.1e4, 2.2e4, 3.2e4, 2e4, 3e4];
    let [quiet, noisy] =
        [around(1e4, 0.01), noisy.to_vec()].map(|periods| record("graph", periods));
    let idle = |share: f64| {
        let mut record = record("graph", around(2e4, 0.01));
        record.point.front = "ring".to_owned();
        if let Outcome::Measured(figures) = &mut record.outcome {
            figures.busy = share;
        }
        record
    };
    let mut on_ring = quiet.clone();
    on_ring.point.front = "ring".to_owned();
    let runs = [
        (&quiet, &noisy, "the new"),
        (&noisy, &quiet, "the old"),
        (&noisy, &noisy, "both"),
        (&on_ring, &idle(0.5), "the new"),
    ];
    for (old, new, reason) in runs {
        let compared = compare(from_ref(old), from_ref(new), Machines::Same).unwrap();
        assert_eq!(compared.points[0].verdict, Verdict::Unclear);
        let found = compared.points[0].reason.as_deref().unwrap_or_default();
        assert!(found.starts_with(reason), "{found}");
        assert_eq!(compared.exit_code(), 0);
        assert!(compared.to_string().contains(reason), "{compared}");
    }
    // The same run with the thread on its core.
    let compared = compare(&[on_ring], &[idle(1.0)], Machines::Same).unwrap();
    assert_eq!(
        (compared.points[0].verdict, compared.exit_code()),
        (Verdict::Slower, 1)
    );
}

#[test]
fn only_a_worse_point_fails_the_gate() {
    let record_of = |median| record("graph", around(median, 0.01));
    let code = |old, new| compare(&[old], &[new], Machines::Same).unwrap().exit_code();
    assert_eq!(code(record_of(1e4), record_of(1.1e4)), 1);
    assert_eq!(code(record_of(1e4), record_of(0.9e4)), 0);
    assert_eq!(code(record_of(1e4), record_of(1e4)), 0);
}

#[test]
fn a_point_that_is_refused_now_is_the_worst() {
    let right = record("graph", around(1e4, 0.01));
    let mut wrong = right.clone();
    wrong.outcome = Outcome::Refused("element 7 is 3, not 4".to_owned());
    let pairs = [
        (&right, &wrong, Verdict::Refused, 1),
        (&wrong, &right, Verdict::Mended, 0),
        (&wrong, &wrong, Verdict::StillRefused, 0),
    ];
    for (old, new, verdict, code) in pairs {
        let compared = compare(from_ref(old), from_ref(new), Machines::Same).unwrap();
        assert_eq!(compared.points[0].verdict, verdict);
        assert_eq!(compared.exit_code(), code);
    }
    let compared = compare(&[right], &[wrong], Machines::Same).unwrap();
    assert!(compared.to_string().contains("element 7 is 3, not 4"));
}

#[test]
fn other_machines_are_refused_by_name_unless_asked_for() {
    let old = record("graph", around(1e4, 0.01));
    for change in [
        (|run| run.device = "Other".to_owned()) as fn(&mut Run),
        |run| run.backend = "Other".to_owned(),
        |run| run.cpu = "Other".to_owned(),
    ] {
        let mut new = old.clone();
        change(&mut new.run);
        let error = compare(from_ref(&old), from_ref(&new), Machines::Same).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.message().contains("\"Other\""), "{error}");
        let compared = compare(from_ref(&old), &[new], Machines::Any).unwrap();
        assert_eq!(compared.warnings.len(), 1);
    }
    let mut new = old.clone();
    new.run.driver = "590".to_owned();
    new.run.cores = 3;
    let compared = compare(&[old], &[new], Machines::Same).unwrap();
    let text = compared.to_string();
    assert!(text.contains("driver") && text.contains("580") && text.contains("590"));
    assert_eq!(compared.warnings.len(), 2);
}

#[test]
fn a_change_of_the_machine_is_distinguished_from_one_of_the_program() {
    let record_of = |graph: f64, stream: f64, other: f64| {
        [
            with_reference(record("graph", around(graph, 0.01)), around(other, 0.01)),
            record("stream", around(stream, 0.01)),
        ]
    };
    let old = record_of(1e4, 6e4, 2e4);
    let both = compare(&old, &record_of(1.2e4, 7.2e4, 2.4e4), Machines::Same).unwrap();
    assert!(both.words().contains("the machine changed"), "{both}");
    let corrected = both.points[0].ratio_corrected.unwrap();
    assert!((corrected - 1.0).abs() < 0.01);
    // The verdicts stay those of the times as measured.
    assert_eq!(both.count(Verdict::Slower), 2);
    let program = compare(&old, &record_of(1.2e4, 7.2e4, 2e4), Machines::Same).unwrap();
    assert!(!program.words().contains("the machine changed"));
    assert!(program.words().contains("(+0.0%)"));
    let one = compare(&old, &record_of(1.2e4, 6e4, 2.4e4), Machines::Same).unwrap();
    assert!(one.words().contains("+20.0%"));
}

#[test]
fn limits_stand_in_where_there_are_no_other_programs() {
    let record_of = |ns: f64, rate: f64| {
        let mut record = record("graph", around(ns, 0.01));
        record.run.limits.upload_bytes_per_s = Some(rate);
        [record]
    };
    let compared = compare(
        &record_of(1e4, 50e9),
        &record_of(1.25e4, 40e9),
        Machines::Same,
    )
    .unwrap();
    assert_eq!(compared.machine.limits, Some(1.25));
    assert!(compared.words().contains("the machine's limits"));
}

#[test]
fn records_of_one_point_count_together() {
    let split = |axis: &str, ns: &[f64]| {
        let mut record = record("graph", ns.to_vec());
        record.point.axis = axis.to_owned();
        record
    };
    let ns = around(1e4, 0.01);
    // Two repetitions give no finding; those of all records together do.
    let old: Vec<Record> = ns.chunks(2).map(|ns| split("slots", ns)).collect();
    let slower: Vec<f64> = ns.iter().map(|ns| ns * 1.1).collect();
    let new: Vec<Record> = slower.chunks(2).map(|ns| split("batch", ns)).collect();
    assert_eq!(verdict(old[0].clone(), new[0].clone()), Verdict::Unclear);
    let compared = compare(&old, &new, Machines::Same).unwrap();
    assert_eq!(compared.points.len(), 1);
    assert_eq!(compared.points[0].verdict, Verdict::Slower);
    // A point is refused if one of its records is.
    let mut new = new;
    new[2].outcome = Outcome::Refused("wrong".to_owned());
    let compared = compare(&old, &new, Machines::Same).unwrap();
    assert_eq!(compared.points[0].verdict, Verdict::Refused);
}

#[test]
fn of_each_file_the_last_run_counts() {
    let mut old = vec![record("graph", around(5e4, 0.01))];
    old[0].run.id = "before".to_owned();
    old.push(record("graph", around(1e4, 0.01)));
    let new = [record("graph", around(1e4, 0.01))];
    let compared = compare(&old, &new, Machines::Same).unwrap();
    assert_eq!(compared.points[0].verdict, Verdict::Same);
    assert!(compare(&[], &new, Machines::Same).is_err());
}

#[test]
fn points_of_one_run_alone_are_listed() {
    let record_of = |mode| record(mode, around(1e4, 0.01));
    let compared = compare(
        &[record_of("graph"), record_of("stream")],
        &[record_of("graph"), record_of("resident")],
        Machines::Same,
    )
    .unwrap();
    assert_eq!(compared.only_old, ["launch stream"]);
    assert_eq!(compared.only_new, ["launch resident"]);
    assert_eq!(compared.points[0].name, "launch graph");
    assert!(
        compare(
            &[record_of("stream")],
            &[record_of("resident")],
            Machines::Same
        )
        .is_err()
    );
}

#[test]
fn points_of_settings_that_were_removed_are_left_out_with_a_note() {
    let lines = |edits: &[(&str, &str, &str)]| -> Vec<Record> {
        let all = edits.iter().map(|&(workload, key, value)| {
            let mut record = record("graph", around(1e4, 0.01));
            record.point.workload = workload.to_owned();
            let mut line = serde_json::to_value(&record).unwrap();
            line["point"]["build"] = match workload {
                "features" => "explicit".into(),
                _ => "capture".into(),
            };
            line["point"]["scope"] = "batch".into();
            line["point"]["streams"] = "per_slot".into();
            line["point"][key] = value.into();
            line.to_string()
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), all.collect::<Vec<_>>().join("\n")).unwrap();
        crate::record::read(file.path()).unwrap()
    };
    let old = lines(&[
        ("launch", "scope", "batch"),
        ("launch", "scope", "kernels"),
        ("launch", "streams", "per_stage"),
        ("launch", "build", "explicit"),
        ("launch", "mode", "auto"),
        ("features", "build", "explicit"),
        ("features", "build", "capture"),
    ]);
    let mut new = vec![record("graph", around(1e4, 0.01))];
    new.push(new[0].clone());
    new[1].point.workload = "features".to_owned();
    let compared = compare(&old, &new, Machines::Same).unwrap();
    let verdicts: Vec<_> = compared.points.iter().map(|point| point.verdict).collect();
    assert_eq!(verdicts, [Verdict::Same; 2]);
    assert_eq!((compared.only_old.len(), compared.only_new.len()), (0, 0));
    let note = compared.warnings.last().unwrap();
    let settings = "5 records of the old";
    assert!(note.starts_with(settings), "{note}");
    // Stream launches have no graph whose build could differ.
    let stream = lines(&[("launch", "mode", "stream"), ("features", "mode", "stream")]);
    assert!(stream.iter().all(|record| record.point.removed.is_none()));
    // This run has only such points.
    let error = compare(
        &new,
        &lines(&[("launch", "scope", "kernels")]),
        Machines::Same,
    );
    let text = error.unwrap_err().to_string();
    assert!(text.contains("1 record"), "{text}");
}

#[test]
fn the_table_is_aligned_and_ends_in_words() {
    let record_of = |graph: f64| {
        [
            record("graph", around(graph, 0.01)),
            record("stream", around(6e4, 0.01)),
        ]
    };
    let compared = compare(&record_of(1e4), &record_of(1.1e4), Machines::Same).unwrap();
    let text = compared.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[3],
        "        point              old      new  change         interval"
    );
    assert_eq!(
        lines[4],
        "SLOWER  launch graph   10.0 µs  11.0 µs  +10.0%  +8.9% to +11.1%"
    );
    assert_eq!(
        lines[7],
        "Of 2 points: 1 slower, 1 not significantly different."
    );
    let json = serde_json::to_value(&compared).unwrap();
    assert_eq!(json["points"][0]["verdict"], "slower");
}

#[test]
fn points_over_other_structures_are_other_points() {
    let over = |input: &str| {
        let mut record = record("graph", around(1e6, 0.01));
        record.point.workload = "features".to_owned();
        record.point.input = input.to_owned();
        record
    };
    let same = record("stream", around(1e6, 0.01));
    let old = [over("24 structures, 53312 atoms"), same.clone()];
    let new = [over("460 structures, 954834 atoms"), same];
    let compared = compare(&old, &new, Machines::Same).unwrap();
    assert_eq!(compared.points.len(), 1);
    assert_eq!((compared.only_old.len(), compared.only_new.len()), (1, 1));
}

#[test]
fn configs_that_differ_in_more_than_paths_are_named_by_their_keys() {
    let warnings = |config: &str| {
        let old = "input = [\"/data/a\"]\nthreads = 2\nsasa.points = 256\n# slots is not set";
        let [mut one, mut other] = [
            record("graph", around(1e5, 0.001)),
            record("graph", around(1e5, 0.001)),
        ];
        one.run.config = old.to_owned();
        other.run.config = config.to_owned();
        compare(&[one], &[other], Machines::Same).unwrap().warnings
    };
    let moved = "input = [\"/home/b\"]\nthreads = 2\nsasa.points = 256\nslots = 3";
    assert_eq!(warnings(moved), ["the configs differ: slots"]);
    let moved = "input = [\"/home/b\"]\nthreads = 2\nsasa.points = 256";
    assert_eq!(warnings(moved), [""; 0]);
    let points = "input = [\"/data/a\"]\nthreads = 2\nsasa.points = 100";
    assert_eq!(warnings(points), ["the configs differ: sasa.points"]);
}

#[test]
fn long_texts_of_a_history_are_cut() {
    let long = "x".repeat(1 << 20);
    let hostile = |mode: &str, other: &str| {
        let mut record = record("graph", around(1000.0, 0.001));
        let named = || format!("{long}{other}");
        record.run.device = named();
        record.run.commit = named();
        record.run.config = format!("{} = 1\n", named());
        record.point.workload.clone_from(&long);
        record.point.mode = mode.to_owned();
        record
    };
    let refused = |mut record: Record| {
        record.outcome = Outcome::Refused(long.clone());
        record
    };
    let old = [hostile("graph", "a"), hostile(&long, "a")];
    let new = [refused(hostile("graph", "b")), hostile("stream", "b")];
    let text = compare(&old, &new, Machines::Any).unwrap().to_string();
    assert!(text.contains("xxx..."), "{text}");
    assert!(text.len() < 20_000, "{} bytes", text.len());
    let error = compare(&old, &new, Machines::Same).unwrap_err().to_string();
    assert!(error.contains("different devices") && error.len() < 2000);
}
