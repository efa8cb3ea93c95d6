use super::*;

/// The timeline of a device that computes one batch at a time, 60 us each, and copies others at the
/// same time: batches `range` of `batches`, through three slots.
fn on_a_device(range: Range<u64>, batches: u64) -> Timeline {
    const US: u64 = 1000;
    let slots = 3;
    let mut spans = Vec::new();
    let (mut filled, mut unpacked) = (0, 0);
    // When each engine of the device is free again: copies in, kernels, copies out.
    let mut free = [0; 3];
    let mut slot_free = vec![0; slots];
    for batch in 0..batches {
        let slot = batch as usize % slots;
        let mut add = |kind, start_ns, end_ns| {
            if range.contains(&batch) {
                spans.push(Span {
                    batch,
                    slot,
                    kind,
                    start_ns,
                    end_ns,
                });
            }
        };
        let start = slot_free[slot].max(filled);
        add(SpanKind::Stall, filled, start);
        let end = start + 14 * US;
        add(SpanKind::Fill, start, end);
        filled = end + 2 * US;
        add(SpanKind::Submit, end, filled);
        let submitted = end;
        let mut at = filled + 3 * US;
        let parts = [
            (22 * US, SpanKind::Upload),
            (60 * US, SpanKind::Kernels),
            (12 * US, SpanKind::Download),
        ];
        for (free, (length, kind)) in free.iter_mut().zip(parts) {
            let begun = at.max(*free);
            *free = begun + length;
            // Timestamps count the wait for a stage as part of it.
            add(kind, at, *free);
            at = *free;
        }
        let seen = at + 2 * US;
        add(SpanKind::Flight, submitted, seen);
        let start = seen.max(unpacked);
        unpacked = start + 9 * US;
        add(SpanKind::Unpack, start, unpacked);
        slot_free[slot] = unpacked;
    }
    spans.sort_by_key(|span| (span.start_ns, span.end_ns));
    Timeline {
        spans,
        slots,
        devices: vec!["GPU".to_owned()],
        batches,
        spans_dropped: 0,
    }
}

fn statistics(bound: Stage) -> Statistics {
    let mut statistics = Statistics {
        bound: Some(bound),
        ..Statistics::default()
    };
    for (time, share) in [
        (&mut statistics.fill, 0.26),
        (&mut statistics.device, 0.99),
        (&mut statistics.unpack, 0.15),
        (&mut statistics.input, 0.4),
    ] {
        time.share = share;
    }
    statistics
}

fn drawn(timeline: &Timeline, bound: Stage) -> String {
    timeline.to_svg(&statistics(bound), "cuda (a card & more), 3 slots")
}

/// The label that is strong, and the mark.
fn marked(svg: &str) -> (&str, &str) {
    let after = |class: &str| {
        let at = svg.find(&format!("class=\"{class}\"")).expect(class);
        let text = &svg[at..];
        &text[text.find('>').unwrap() + 1..text.find("</").unwrap()]
    };
    (after("text end strong"), after("mark strong"))
}

#[test]
fn the_headline_and_a_mark_say_which_stage_bounds() {
    let timeline = on_a_device(2054..2062, 10_000);
    let svg = drawn(&timeline, Stage::Device);
    let headline = "Device-bound: the device was busy 99% of the time; filling 26%, unpacking 15%";
    assert!(svg.contains(&format!(">{headline}</text>")));
    assert!(
        svg.contains("uploads 35%, kernels 100%, downloads 19%"),
        "{svg}"
    );
    assert_eq!(marked(&svg), ("kernels", "bounds"));
    for (bound, label, mark) in [
        (Stage::Fill, "filling", "bounds"),
        (Stage::Input, "filling", "no input"),
        (Stage::Unpack, "unpacking", "bounds"),
        (Stage::Output, "unpacking", "not taken"),
    ] {
        assert_eq!(marked(&drawn(&timeline, bound)), (label, mark));
    }
}

#[test]
fn neighbouring_slots_are_seen_at_work_at_once() {
    let timeline = on_a_device(2054..2062, 10_000);
    assert!(timeline.device_overlap().unwrap() > 1.5);
    let shown = timeline.shown().unwrap();
    // By then the batches before the window have left their slots.
    assert_eq!(shown.batches, 2056..2062);
    let svg = drawn(&timeline, Stage::Device);
    assert!(svg.contains("batches 2056 to 2061 of 10000"));
    for slot in 0..3 {
        assert!(svg.contains(&format!(">slot {slot}</text>")));
    }
    // Nothing sticks out of the axis.
    for bar in svg
        .split("<rect class=")
        .skip(1)
        .filter(|bar| bar.contains("<title>"))
    {
        let number = |name: &str| -> f64 {
            let text = bar.split(&format!(" {name}=\"")).nth(1).unwrap();
            text.split('"').next().unwrap().parse().unwrap()
        };
        let (x, width) = (number("x"), number("width"));
        assert!(x >= LEFT && x + width <= RIGHT + 0.5, "{bar}");
    }
}

#[test]
fn a_short_run_is_drawn_to_its_end() {
    let all = on_a_device(0..2, 2);
    let shown = all.shown().unwrap();
    assert_eq!(shown.batches, 0..2);
    let last = all.spans.iter().map(|span| span.end_ns).max().unwrap();
    assert_eq!(shown.end_ns, last);
    // A longer one without its first batches.
    assert_eq!(on_a_device(0..14, 14).shown().unwrap().batches, 6..14);
}

#[test]
fn a_timeline_without_spans_says_what_bounds_all_the_same() {
    let svg = drawn(&Timeline::default(), Stage::Fill);
    assert!(svg.contains("Fill-bound: filling took 26%"));
    assert!(svg.contains("cuda (a card &amp; more)") && svg.ends_with("</svg>\n"));
}

#[test]
fn without_times_of_the_device_its_row_is_what_was_in_flight() {
    let mut timeline = on_a_device(2054..2062, 10_000);
    timeline.spans.retain(|span| !span.kind.is_of_device());
    let svg = drawn(&timeline, Stage::Device);
    assert_eq!(marked(&svg), ("device", "bounds"));
    assert!(!svg.contains(">kernels</text>"));
}

#[test]
fn lengths_keep_three_digits() {
    assert_eq!(
        [
            length(316_000),
            length(20_240_000),
            length(3_000_000_000),
            length(999)
        ],
        ["316 µs", "20.2 ms", "3.00 s", "1.00 µs"]
    );
}

#[test]
fn the_rows_of_several_devices_have_their_names() {
    let mut timeline = on_a_device(0..30, 30);
    let alone = timeline.to_svg(&statistics(Stage::Device), "run");
    assert!(!alone.contains("device 0") && alone.contains(">uploads</text>"));
    for span in &mut timeline.spans {
        span.slot += usize::from(span.batch % 2 == 1) * 3;
    }
    timeline.slots = 6;
    timeline.devices = vec!["NVIDIA H200".to_owned(), "NVIDIA H100".to_owned()];
    let svg = timeline.to_svg(&statistics(Stage::Device), "run");
    for text in [
        ">0: uploads</text>",
        ">1: downloads</text>",
        ">Slots of device 0 (NVIDIA H200)</text>",
        ">Slots of device 1 (NVIDIA H100)</text>",
        ">slot 5</text>",
        "Mean of the devices",
    ] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
}

#[test]
fn a_drawing_has_a_limited_number_of_slots() {
    let mut timeline = Timeline {
        spans: vec![Span {
            batch: 0,
            slot: 0,
            kind: SpanKind::Fill,
            start_ns: 0,
            end_ns: 10,
        }],
        slots: usize::MAX,
        ..Timeline::default()
    };
    for devices in [1, 3] {
        timeline.devices = vec!["A".to_owned(); devices];
        let drawn = timeline.to_svg(&Statistics::default(), "any");
        assert!(drawn.contains("slot 1023") && !drawn.contains("slot 1024"));
        assert!(drawn.contains("further slots are not drawn"));
    }
}

#[test]
fn spans_with_any_values_are_drawn() {
    const VALUES: [u64; 5] = [0, 1, 7, u64::MAX - 1, u64::MAX];
    let any = |place: usize| VALUES[place % VALUES.len()];
    let statistics = Statistics::default();
    for slots in [0, 1, 4] {
        for place in 0..VALUES.len().pow(4) {
            let (second, third) = (place / 5, place / 25);
            let span = |batch, slot: u64, kind, start_ns, end_ns| Span {
                batch,
                slot: slot as usize,
                kind,
                start_ns,
                end_ns,
            };
            let (a, b, c, d) = (any(place), any(second), any(third), any(place / 125));
            let timeline = Timeline {
                spans: vec![
                    span(a, b, SpanKind::Kernels, c, d),
                    span(d, a, SpanKind::Fill, b, c),
                    span(a, c, SpanKind::Flight, d, b),
                    span(b, d, SpanKind::Upload, a, c),
                ],
                slots,
                devices: vec!["A".to_owned(), "B".to_owned()],
                batches: d,
                spans_dropped: 0,
            };
            let drawn = timeline.to_svg(&statistics, "any");
            assert!(
                !drawn.contains("NaN") && !drawn.contains("inf"),
                "{timeline:?}"
            );
            assert!(timeline.to_chrome_json().ends_with("]}\n"));
        }
    }
}
