//! The timeline of a run.

use super::*;

#[test]
fn a_timeline_has_a_trace_and_a_drawing_that_names_the_bounding_stage() {
    let out = tempfile::tempdir().unwrap();
    let [results, plain, timeline] = ["results", "plain", "timeline"].map(|it| out.path().join(it));
    let args = [
        "--input",
        SAMPLES,
        "--features",
        "wcn",
        "--set",
        "batch.residues=256",
    ];
    run_well(&[&args[..], &["--output", str_of(&plain)]].concat());
    let asked = format!("timeline={}", timeline.display());
    let with = ["-v", "--output", str_of(&results), "--set", &asked];
    let output = run_well(&[&args[..], &with].concat());
    assert_eq!(parts(&results), parts(&plain), "the tables are the same");

    let record = record(&results);
    let statistics = &record["statistics"];
    let sentence = statistics["sentence"].as_str().unwrap();
    assert!(text(&output.stderr).contains(sentence));
    let stages = statistics["stages"].as_object().unwrap();
    assert!(
        stages
            .values()
            .all(|stage| stage["share"].as_f64().unwrap() <= 1.01)
    );
    // Of each batch the first item, and every 64th after it.
    let [items, batches] = ["item", "batch"].map(|of| {
        let count = statistics["latency_seconds"][of]["count"].as_u64();
        count.expect("there is one")
    });
    assert!(
        batches > 1 && (batches..=record["counts"]["inputs"].as_u64().unwrap()).contains(&items)
    );

    let trace = json(&timeline.join("timeline.json"));
    let events = trace["traceEvents"].as_array().unwrap();
    let spans: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert!(spans.iter().any(|span| span["name"] == "kernels"));
    assert!(
        spans
            .iter()
            .all(|span| span["dur"].as_f64().unwrap() >= 0.0)
    );
    let svg = fs::read_to_string(timeline.join("timeline.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains(&sentence[1..]));
    assert!(!svg.contains("<script") && svg.contains("prefers-color-scheme: dark"));
    assert!(!record["config"]["timeline"].is_null());
}
