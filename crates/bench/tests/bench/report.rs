//! The page of a benchmark's report shows what the records have, and nothing else.

use crate::made_up_run::{figures_of, full, records, single, troubled};
use tapeloop_bench::record::{Figures, Latency, Open, Outcome, Record, Reference, Share, Stages};
use tapeloop_bench::report::{html, text};

pub(crate) fn page(records: &[Record]) -> String {
    html(records).unwrap()
}

/// The ids of the figures on a page.
fn figures(page: &str) -> Vec<&str> {
    let parts = page.split("<figure id=\"").skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

/// The headline of a page.
pub(crate) fn headline(page: &str) -> &str {
    let (_, rest) = page.split_once("<h1>").unwrap();
    rest.split_once("</h1>").unwrap().0
}

pub(crate) fn edited(edit: impl Fn(&mut Figures)) -> Vec<Record> {
    let mut records = full();
    records
        .iter_mut()
        .for_each(|record| edit(figures_of(record)));
    records
}

#[test]
fn a_full_run_has_every_chart() {
    assert_eq!(
        figures(&page(&full())),
        [
            "throughput-launch",
            "replay",
            "launches-launch",
            "throughput-copy",
            "throughput-features",
            "load-launch",
            "latency-launch",
            "latency-closed",
            "shares",
            "timeline-launch",
            "timeline-copy",
            "ratios",
            "files-1",
            "files-16",
        ]
    );
}

#[test]
fn a_chart_without_its_data_is_left_out_and_no_other() {
    let all = page(&full());
    let without = |edit: &dyn Fn(&mut Figures)| -> Vec<String> {
        // The time with one slot would be a share of each other point's time.
        let mut records = edited(edit);
        records.retain(|record| record.point.slots > 1);
        let page = page(&records);
        let left = figures(&page);
        let gone = figures(&all).into_iter().filter(|id| !left.contains(id));
        gone.map(str::to_owned).collect()
    };
    assert_eq!(
        without(&|f| f.spans.clear()),
        ["timeline-launch", "timeline-copy"]
    );
    let idle = |f: &mut Figures| {
        f.shares.clear();
        f.host_ns.clear();
        f.stages = None;
    };
    assert_eq!(without(&idle), ["shares"]);
    assert_eq!(without(&|f| f.references.clear()), ["ratios"]);
    assert_eq!(
        without(&|f| f.closed = Latency::default()),
        ["latency-closed"]
    );
    // Without loads, the first workload goes to the others.
    assert_eq!(
        without(&|f| f.open.clear()),
        ["load-launch", "latency-launch"]
    );
    let mut records = full();
    records.retain(|record| record.point.mode != "stream");
    assert!(!figures(&page(&records)).contains(&"launches-launch"));
    records.retain(|record| record.point.axis != "batch");
    let left = page(&records);
    assert!(
        figures(&left)
            .iter()
            .all(|id| !id.starts_with("throughput"))
    );
}

#[test]
fn each_chart_is_there_for_either_room_with_words_for_who_does_not_see_it() {
    let page = page(&full());
    let count = figures(&page).len();
    assert_eq!(page.matches("<div class=\"wide-drawing\">").count(), count);
    assert_eq!(page.matches("<div class=\"narrow\">").count(), count);
    assert_eq!(
        page.matches("role=\"img\" aria-label=\"").count(),
        2 * count
    );
    assert!(!page.contains("aria-label=\"\""));
    assert_eq!(page.matches("<figcaption>").count(), count);
}

#[test]
fn no_share_is_over_the_whole_and_scales_are_marked() {
    let page = page(&full());
    let text = drawing(&page, "shares");
    let shares = text
        .split("%: ")
        .map(|before| before.rsplit(['>', ' ']).next().unwrap());
    let shares: Vec<f64> = shares.filter_map(|share| share.parse().ok()).collect();
    assert!(
        shares.len() > 4 && shares.iter().all(|share| *share <= 100.0),
        "{shares:?}"
    );
    assert!(drawing(&page, "throughput-launch").contains("batches per second (log scale)"));
    assert!(drawing(&page, "launches-launch").contains(">time per batch<"));
    assert!(page.contains(" \u{b5}s") && !page.contains(" us<") && !page.contains(" us "));
    let latencies = drawing(&page, "latency-launch");
    assert!(latencies.contains("share of batches within this latency (not linear)"));
    assert!(
        drawing(&page, "timeline-launch").contains("with the timestamps that this chart needs")
    );
}

#[test]
fn the_page_explains_its_words_and_uses_none_that_only_its_authors_know() {
    let page = page(&full());
    for word in [
        "base point",
        "sampled",
        "overlap",
        "name a front",
        "a bar that crosses",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    for explained in [
        "A point is one workload with one choice of settings",
        "The ring replays batches that were packed beforehand",
        "In a closed loop a new batch starts as soon as a slot is free",
        "<td>as in the heading</td>",
    ] {
        assert!(page.contains(explained), "{explained}");
    }
}

#[test]
fn what_bounds_the_first_workload_is_named_or_the_page_says_why_not() {
    let claim = |page: &str| {
        let (_, claim) = page.split_once("What bounds each workload: ").unwrap();
        claim.split_once("</li>").unwrap().0.to_owned()
    };
    let blind = |figures: &mut Figures| {
        figures.shares.clear();
        figures.host_ns.fill(100.0);
        figures.stages = Some(Stages {
            kernels_ns: 1e6,
            overlap: 1.0,
            ..Stages::default()
        });
    };
    let mut records = edited(blind);
    records.retain(|record| record.point.slots > 1);
    let unknown = claim(&page(&records));
    assert!(
        unknown.contains("launch not determined: the largest measured share"),
        "{unknown}"
    );
    assert!(
        unknown.contains("their timestamps make a batch take"),
        "{unknown}"
    );
    // The same work with one slot tells that its latency bounds it.
    let base = |record: &&Record| {
        let point = &record.point;
        (&*point.workload, &*point.mode, &*point.axis) == ("launch", "graph", "base")
    };
    let mut alone = records.iter().find(base).unwrap().clone();
    alone.point.slots = 1;
    alone.point.axis = "slots".to_owned();
    for ns in &mut figures_of(&mut alone).period_ns {
        *ns *= 3.5;
    }
    records.push(alone);
    let page = page(&records);
    let known = claim(&page);
    assert!(
        known.contains("of the time (more slots raise the rate)"),
        "{known}"
    );
    assert!(known.contains("launch by batch latency, 8"), "{known}");
    assert!(drawing(&page, "shares").contains("more slots raise the rate"));
}

#[test]
fn a_row_shows_what_it_varies() {
    let mut records = full();
    records.retain(|record| record.point.workload == "launch" && record.point.axis == "base");
    let mut mapped = records[0].clone();
    mapped.point.axis = "transfer".to_owned();
    mapped.point.transfer = "mapped".to_owned();
    records.push(mapped);
    let page = page(&records);
    let (_, table) = page
        .split_once("aria-label=\"Points by transfer\"")
        .unwrap();
    let row = table.split("<tbody>").nth(1).unwrap();
    assert!(
        row.starts_with("<tr><td>mapped memory</td>"),
        "{}",
        &row[..200]
    );
}

#[test]
fn refused_points_come_first_and_warnings_are_folded_below_the_headline() {
    let page = page(&troubled());
    let position = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    let refused = position("1 point refused: no figures");
    let warnings = position("<details class=\"trust");
    assert!(refused < position("<h1>") && position("<h1>") < warnings);
    assert!(position("</summary>") > warnings && position("warning") > warnings);
    assert!(page.contains("element 1,337 of batch 12 is 3.25, not 3.5"));
    assert!(page.contains("The clock fell from 1,980 to 1,755 MHz"));
    let calm = self::page(&full());
    assert!(!calm.contains("refused:") && !calm.contains("noisy"));
}

#[test]
fn a_point_that_failed_is_not_said_to_have_wrong_outputs() {
    let mut records = troubled();
    for record in &mut records {
        if let Outcome::Refused(reason) = &mut record.outcome {
            *reason = "cuMemAlloc: out of memory".to_owned();
        }
    }
    let page = page(&records);
    assert!(page.contains("1 point refused: no figures") && page.contains("out of memory"));
    assert!(!page.contains("wrong output"));
}

#[test]
fn the_terminal_names_the_workload_of_a_refused_point() {
    let mut records = full();
    let mut of_features = records.iter_mut().rev();
    let refused = of_features.find(|record| record.point.workload == "features");
    refused.unwrap().outcome = Outcome::Refused("no memory".to_owned());
    let text = text(&records).unwrap();
    let line = text.lines().find(|line| line.starts_with("REFUSED"));
    assert!(line.unwrap().starts_with("REFUSED features, "), "{line:?}");
}

#[test]
fn a_workload_whose_first_pair_has_no_times_keeps_its_heading() {
    let mut records = full();
    for record in &mut records {
        if record.point.workload == "launch" && record.point.kernels == 1 {
            figures_of(record).period_ns.clear();
        }
    }
    assert!(drawing(&page(&full()), "replay").contains("Launch"));
    assert!(drawing(&page(&records), "replay").contains("Launch"));
}

#[test]
fn one_warning_more_than_the_terminal_has_is_counted_as_one() {
    let mut records = full();
    for record in &mut records {
        figures_of(record).flags.clear();
    }
    figures_of(&mut records[0]).flags = (0..9).map(|place| format!("warning {place}")).collect();
    let text = text(&records).unwrap();
    assert!(text.contains("\n! 1 more warning in the report"), "{text}");
}

#[test]
fn an_axis_whose_points_were_all_refused_has_a_column_for_the_reasons() {
    let mut records = full();
    let axis = records.last().unwrap().point.axis.clone();
    for record in records
        .iter_mut()
        .filter(|record| record.point.axis == axis)
    {
        record.outcome = Outcome::Refused("no memory".to_owned());
    }
    let page = page(&records);
    assert!(page.contains("<th>result</th>"));
    assert!(page.contains("colspan=\"1\"") && !page.contains("colspan=\"0\""));
}

#[test]
fn a_note_on_another_program_is_shown_once() {
    let note = "Its copies are of pageable memory.";
    let noted = page(&edited(|figures| {
        for reference in &mut figures.references {
            reference.note = note.to_owned();
        }
    }));
    assert_eq!(
        noted.matches("<b>CUDA C++ by hand</b>: Its copies").count(),
        1
    );
    assert!(!page(&full()).contains("Notes on other programs"));
}

#[test]
fn names_cannot_become_markup() {
    let bad = "<script>alert('\"&')</script>";
    let mut records = troubled();
    for record in &mut records {
        record.run.device = bad.to_owned();
        record.run.config = bad.to_owned();
        record.run.commit = bad.to_owned();
        record.point.unit = bad.to_owned();
        record.point.workload += bad;
        record.point.axis += bad;
        match &mut record.outcome {
            Outcome::Refused(reason) => reason.push_str(bad),
            Outcome::Measured(figures) => {
                figures.bound = bad.to_owned();
                figures.flags = vec![bad.to_owned()];
                for reference in &mut figures.references {
                    reference.name += bad;
                }
                for share in &mut figures.shares {
                    share.limit += bad;
                    share.unit = bad.to_owned();
                }
            }
        }
    }
    let page = page(&records);
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;"));
    // Nor leave an attribute.
    let labels = page.split("aria-label=\"").skip(1);
    for label in labels {
        let (label, rest) = label.split_once('"').unwrap();
        assert!(!label.contains('<'));
        assert!(rest.starts_with('>') || rest.starts_with(' '), "{label}");
    }
}

#[test]
fn the_page_needs_no_network_and_no_script() {
    let page = page(&full());
    for word in ["http", "<script", "<link", "@import", "url(", " src="] {
        assert!(!page.contains(word), "{word}");
    }
}

#[test]
fn one_point_alone_makes_a_page() {
    let page = page(&single());
    assert_eq!(
        headline(&page),
        "Launch, 12 kernels, 16 KiB, graph: 103 k batches/s"
    );
    assert_eq!(figures(&page), Vec::<&str>::new());
    assert!(page.contains("<table>"));
}

#[test]
fn without_records_there_is_no_page() {
    let error = html(&[]).unwrap_err();
    assert!(error.message().contains("no records"));
    assert!(error.fix_text().is_some());
}

#[test]
fn the_last_run_alone_is_shown() {
    let mut records = single();
    records[0].run.id = "before".to_owned();
    records[0].run.device = "Older".to_owned();
    records.extend(single());
    let page = page(&records);
    assert!(!page.contains("Older"));
}

/// The drawing of the figure with this id.
pub(crate) fn drawing<'a>(page: &'a str, name: &str) -> &'a str {
    let start = page
        .split(&format!("<figure id=\"{name}\""))
        .nth(1)
        .unwrap();
    start.split("</figure>").next().unwrap()
}

#[test]
fn another_program_is_drawn_in_one_mode_and_not_in_the_middle_of_two() {
    let with_launches_of = |period: Option<f64>| {
        let mut records = full();
        let streams = records
            .iter_mut()
            .filter(|record| record.point.mode == "stream");
        for record in streams {
            let Outcome::Measured(figures) = &mut record.outcome else {
                continue;
            };
            figures.references = Vec::from_iter(period.map(|period| Reference {
                name: "CUDA C++ by hand".to_owned(),
                period_ns: vec![period; 5],
                ..Reference::default()
            }));
        }
        page(&records)
    };
    let [without, slow] = [None, Some(1e9)].map(with_launches_of);
    let name = "throughput-launch";
    assert_eq!(drawing(&without, name), drawing(&slow, name));
    assert!(drawing(&slow, name).contains("CUDA C++ by hand, graph"));
}

#[test]
fn values_that_are_not_finite_are_left_out() {
    for wrong in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 5e-324] {
        let mut records = edited(|figures| {
            figures.period_ns[1] = wrong;
            figures.host_ns.fill(wrong);
            figures.calls = wrong;
            figures.amounts.fma = wrong;
            figures.amounts.atoms = wrong;
            for share in &mut figures.shares {
                *share = Share {
                    share: wrong,
                    reached: wrong,
                    ..share.clone()
                };
            }
            for open in &mut figures.open {
                open.load = wrong;
            }
            figures.closed.curve.push((wrong, u64::MAX));
            for span in &mut figures.spans {
                span.end_ns = span.start_ns;
            }
        });
        for record in &mut records {
            record.run.limits.fma_per_s = Some(wrong);
            record.run.limits.upload_both_bytes_per_s = Some(wrong);
            record.run.started_unix_s = wrong;
        }
        let page = page(&records);
        assert!(!page.contains("NaN") && !page.contains("inf "), "{wrong}");
        let mut records = edited(|figures| figures.period_ns.fill(wrong));
        for record in &mut records {
            let figures = figures_of(record);
            figures.open.push(Open::default());
            figures.references.push(Reference::default());
            figures.references.push(Reference {
                period_ns: vec![wrong; 3],
                ..Reference::default()
            });
        }
        let page = self::page(&records);
        assert!(!page.contains("NaN"), "{wrong}");
    }
    // The record has a workload's name and no figures.
    let empty = records(vec![Default::default(), Default::default()]);
    assert_eq!(headline(&page(&empty)), "No point has figures");
}

#[test]
fn tables_have_every_record() {
    let records = troubled();
    let page = page(&records);
    let (_, tables) = page.split_once("All points").unwrap();
    let rows: usize = tables
        .split("<tbody>")
        .skip(1)
        .map(|body| {
            body.split("</tbody>")
                .next()
                .unwrap()
                .matches("<tr")
                .count()
        })
        .sum();
    assert_eq!(rows, records.len());
    assert!(tables.contains("refused: element 1,337"));
    assert!(tables.contains("same outputs"));
}

#[test]
fn the_documented_report_is_of_this_version() {
    let folder = tapeloop_test_support::repository("docs/bench");
    let records = tapeloop_bench::record::read(&folder.join("h200.jsonl")).unwrap();
    assert_eq!(records.len(), 80);
    assert!(
        records.iter().all(|record| record.figures().is_some()),
        "none is refused"
    );
    let path = folder.join("h200.html");
    if std::env::var_os("TAPELOOP_WRITE_SAMPLE").is_some() {
        std::fs::write(&path, page(&records)).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    for explained in [
        "In mode resident a loop on the GPU replays the graph",
        "PyTorch and CuPy make their calls from Python",
    ] {
        assert!(committed.contains(explained), "{explained}");
        assert!(page(&records).contains(explained), "{explained}");
    }
    assert!(!committed.contains('\u{2026}'), "a label is cut");
    assert_eq!(headline(&committed), headline(&page(&records)));
    assert_eq!(figures(&committed), figures(&page(&records)));
    assert!(committed.contains("4 of 80 measurements are noisy; the speedup of replay in the"));
    assert!(committed.contains("headline has a 99% interval of 6.3 to 9.1"));
    assert!(committed.contains("launch by batch latency, 83% of the time"));
    // One quantity has one value on the page and in the document.
    let document = folder.parent().unwrap().join("PERFORMANCE.md");
    let document = std::fs::read_to_string(document).unwrap();
    let document: Vec<&str> = document.split_whitespace().collect();
    let document = document.join(" ");
    for value in [
        "8.5 times as fast",
        "4.38 \u{b5}s",
        "359 ns",
        "103 M atoms/s",
        "86.3 M atoms/s",
        "169 M atoms/s",
        "1.00 times as fast as CUDA C++ 13.0 (median of 38 points without stream launches: faster at 13, slower at 7)",
    ] {
        assert!(committed.contains(value), "the page lacks {value}");
        assert!(document.contains(value), "the document lacks {value}");
    }
}
