//! A timeline as a trace for `chrome://tracing` and ui.perfetto.dev: JSON in the Trace Event
//! Format, times in microseconds from the first span.

use super::{Span, SpanKind, Timeline};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The process of the host.
const HOST: usize = 1;
/// The process of the first device.
const DEVICE: usize = 2;

impl Timeline {
    /// Writes the trace: a track for batches that wait for a slot, one for the consumer of results,
    /// and for each slot one for what it is used for and three for the activities of its device. Each
    /// device is a process.
    pub fn to_chrome_json(&self) -> String {
        let start_ns = self.spans.iter().map(|span| span.start_ns).min();
        let start_ns = start_ns.unwrap_or(0);
        let mut tracks = BTreeMap::new();
        let mut events = Vec::new();
        for span in &self.spans {
            let (process, thread, name) = track(span, self.device_of(span.slot));
            tracks.entry((process, thread)).or_insert(name);
            let us = |ns: u64| ns as f64 / 1e3;
            events.push(format!(
                r#"{{"name":"{}","cat":"batch","ph":"X","ts":{:.3},"dur":{:.3},"pid":{process},"tid":{thread},"args":{{"batch":{},"slot":{}}}}}"#,
                span.kind.name(),
                us(span.start_ns - start_ns),
                us(span.end_ns.saturating_sub(span.start_ns)),
                span.batch,
                span.slot
            ));
        }
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        text.push_str(&metadata_event("process_name", HOST, 0, "host"));
        for device in 0..self.devices.len().max(1) {
            let name = self.device_title(device);
            let name = name.as_deref().unwrap_or("device");
            text.push_str(&metadata_event("process_name", DEVICE + device, 0, name));
        }
        for ((process, thread), name) in &tracks {
            text.push_str(&metadata_event("thread_name", *process, *thread, name));
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                r#"{{"name":"thread_sort_index","ph":"M","pid":{process},"tid":{thread},"args":{{"sort_index":{thread}}}}},"#
            );
        }
        text.push_str(&events.join(",\n"));
        if events.is_empty() {
            // The comma behind the names has nothing to separate.
            text.truncate(text.trim_end().len() - 1);
        }
        text.push_str("\n]}\n");
        text
    }
}

fn metadata_event(kind: &str, process: usize, thread: usize, name: &str) -> String {
    let name = name.replace(['"', '\\'], "");
    format!(
        "{{\"name\":\"{kind}\",\"ph\":\"M\",\"pid\":{process},\"tid\":{thread},\
         \"args\":{{\"name\":\"{name}\"}}}},\n"
    )
}

/// The process and the thread of a span of this device in the trace, and the thread's name. Threads
/// of the host are numbered from 1: two that are of no slot, and one for each slot. A slot has
/// three on its device.
fn track(span: &Span, device: usize) -> (usize, usize, String) {
    let slot = span.slot;
    let on_device = |place: usize| {
        let name = format!("slot {slot} {}", span.kind.name());
        let thread = slot.saturating_mul(3).saturating_add(place + 1);
        (device.saturating_add(DEVICE), thread, name)
    };
    match span.kind {
        SpanKind::Stall => (HOST, 1, "batches without a slot".to_owned()),
        SpanKind::Take => (HOST, 2, "consumer".to_owned()),
        SpanKind::Worker
        | SpanKind::Fill
        | SpanKind::Submit
        | SpanKind::Flight
        | SpanKind::Unpack => (HOST, slot.saturating_add(3), format!("slot {slot}")),
        SpanKind::Upload => on_device(0),
        SpanKind::Kernels => on_device(1),
        SpanKind::Download => on_device(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_an_event_in_a_named_track() {
        let span = |kind, start_ns, end_ns| Span {
            batch: 7,
            slot: 2,
            kind,
            start_ns,
            end_ns,
        };
        let timeline = Timeline {
            spans: vec![
                span(SpanKind::Fill, 10_000, 12_500),
                span(SpanKind::Kernels, 14_000, 19_001),
            ],
            ..Timeline::default()
        };
        let json = timeline.to_chrome_json();
        let fill = r#""name":"fill","cat":"batch","ph":"X","ts":0.000,"dur":2.500,"pid":1,"tid":5"#;
        let kernels =
            r#""name":"kernels","cat":"batch","ph":"X","ts":4.000,"dur":5.001,"pid":2,"tid":8"#;
        for part in [fill, kernels, r#""args":{"name":"slot 2 kernels"}"#] {
            assert!(json.contains(part), "{json}");
        }
        assert!(json.ends_with("}}\n]}\n"));
    }

    #[test]
    fn several_devices_are_processes_with_their_names() {
        let span = |slot| Span {
            batch: 7,
            slot,
            kind: SpanKind::Kernels,
            start_ns: 0,
            end_ns: 1000,
        };
        let timeline = Timeline {
            spans: vec![span(1), span(2)],
            slots: 4,
            devices: vec!["A".to_owned(), "B".to_owned()],
            ..Timeline::default()
        };
        let json = timeline.to_chrome_json();
        for part in [
            r#""name":"process_name","ph":"M","pid":2,"tid":0,"args":{"name":"device 0 (A)"}"#,
            r#""name":"process_name","ph":"M","pid":3,"tid":0,"args":{"name":"device 1 (B)"}"#,
            r#""pid":2,"tid":5,"args":{"batch":7,"slot":1}"#,
            r#""pid":3,"tid":8,"args":{"batch":7,"slot":2}"#,
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
    }

    #[test]
    fn a_trace_of_nothing_ends_without_a_comma() {
        let json = Timeline::default().to_chrome_json();
        assert!(json.ends_with("}}\n]}\n"), "{json}");
    }
}
