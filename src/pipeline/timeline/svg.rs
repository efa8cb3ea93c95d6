//! A timeline as a drawing that says which stage bounds: some batches in a row,
//! stage by stage and slot by slot.

mod style;

use super::{Span, SpanKind, Timeline, covered_ns};
use crate::pipeline::statistics::{Stage, Statistics};
use std::fmt::Write;
use std::ops::Range;

const WIDTH: f64 = 1200.0;
/// Where time begins and ends.
const LEFT: f64 = 132.0;
const RIGHT: f64 = 1075.0;
const ROW: f64 = 24.0;
const ROW_STEP: f64 = 30.0;
/// Room for a number in a bar.
const DIGIT: f64 = 7.0;

/// A row of the upper part: what some kinds of spans cover over all slots.
struct Row {
    name: &'static str,
    kinds: &'static [SpanKind],
    /// What of them counts as busy.
    busy: &'static [SpanKind],
    stage: Stage,
}

const FILLING: Row = Row {
    name: "filling",
    kinds: &[SpanKind::Stall, SpanKind::Fill, SpanKind::Submit],
    busy: &[SpanKind::Fill, SpanKind::Submit],
    stage: Stage::Fill,
};

const UNPACKING: Row = Row {
    name: "unpacking",
    kinds: &[SpanKind::Unpack],
    busy: &[SpanKind::Unpack],
    stage: Stage::Unpack,
};

const ON_DEVICE: [Row; 3] = [
    Row {
        name: "uploads",
        kinds: &[SpanKind::Upload],
        busy: &[SpanKind::Upload],
        stage: Stage::Device,
    },
    Row {
        name: "kernels",
        kinds: &[SpanKind::Kernels],
        busy: &[SpanKind::Kernels],
        stage: Stage::Device,
    },
    Row {
        name: "downloads",
        kinds: &[SpanKind::Download],
        busy: &[SpanKind::Download],
        stage: Stage::Device,
    },
];

/// Where no device says more than that it had a batch.
const IN_FLIGHT: Row = Row {
    name: "device",
    kinds: &[SpanKind::Flight],
    busy: &[SpanKind::Flight],
    stage: Stage::Device,
};

impl Timeline {
    /// The drawing, for light and dark grounds. `title` says what ran.
    ///
    /// Of the batches that were sampled it shows the latest whole window, from the
    /// moment that no batch before it is left in a slot.
    pub fn to_svg(&self, statistics: &Statistics, title: &str) -> String {
        let Some(shown) = self.shown() else {
            return document(90.0, &heading(&statistics.sentence(), title, None));
        };
        let rows = self.rows();
        let busy: Vec<f64> = rows.iter().map(|row| self.busy(row, &shown)).collect();
        let mut draw = Drawing {
            text: heading(
                &statistics.sentence(),
                &format!("{title}{}", self.what_is_shown(&shown)),
                self.on_device(&shown).as_deref(),
            ),
            y: 112.0,
            shown,
        };
        draw.legend(self.spans.iter().any(|span| span.kind.is_of_device()));
        let (axis_y, axis_at) = (draw.y, draw.text.len());
        draw.y += 26.0;
        draw.section("Stages", "share of the time shown");
        let bounding = bounding(&rows, &busy, statistics);
        for (place, (row, share)) in rows.iter().zip(&busy).enumerate() {
            let mark = (bounding == Some(place)).then(|| mark(statistics));
            draw.label(row.name, mark.is_some());
            for kind in row.kinds {
                for span in self.spans.iter().filter(|span| span.kind == *kind) {
                    draw.bar(span, 0.0, false);
                }
            }
            draw.share(*share, mark);
            draw.y += ROW_STEP;
        }
        draw.y += 10.0;
        draw.section("Slots", "");
        for slot in 0..self.slots {
            draw.label(&format!("slot {slot}"), false);
            let of_slot = self.spans.iter().filter(|span| span.slot == slot);
            let (flights, others): (Vec<&Span>, Vec<&Span>) = of_slot
                .filter(|span| span.kind == SpanKind::Flight || span.kind.is_of_device())
                .partition(|span| span.kind == SpanKind::Flight);
            for span in &flights {
                draw.bar(span, 0.0, others.is_empty());
            }
            for span in &others {
                draw.bar(span, 4.0, span.kind == SpanKind::Kernels);
            }
            let share = self.covered(&[SpanKind::Flight], Some(slot), &draw.shown);
            draw.share(share, None);
            draw.y += ROW_STEP;
        }
        // Under the bars.
        let axis = draw.axis(axis_y);
        draw.text.insert_str(axis_at, &axis);
        draw.note();
        document(draw.y, &draw.text)
    }

    fn rows(&self) -> Vec<Row> {
        let timed = self.spans.iter().any(|span| span.kind.is_of_device());
        let mut rows = vec![FILLING];
        match timed {
            true => rows.extend(ON_DEVICE),
            false => rows.push(IN_FLIGHT),
        }
        rows.push(UNPACKING);
        rows
    }

    /// The batches and the time to show: of the latest window that is long enough,
    /// without the first batches of all.
    fn shown(&self) -> Option<Shown> {
        let slots = self.slots as u64;
        let windows = self.windows();
        let long = windows
            .iter()
            .rfind(|window| window.end - window.start > slots);
        let longest = windows
            .iter()
            .max_by_key(|window| window.end - window.start);
        let Range { mut start, end } = long.or(longest)?.clone();
        let is_first = start == 0;
        if is_first && end > 3 * slots {
            start = 2 * slots;
        }
        // More would be too narrow to read.
        start = start.max(end.saturating_sub(4 * slots + 4));
        // When it is filled, what came before it has left every slot.
        let lead = match is_first {
            true => start,
            false => (start + slots - 1).min(end - 1),
        };
        let of = |batch: u64, kind: SpanKind| {
            let mut spans = self.spans.iter();
            spans.find(|span| span.batch == batch && span.kind == kind)
        };
        let inside = || {
            self.spans
                .iter()
                .filter(|span| (lead..end).contains(&span.batch))
        };
        let last = inside().map(|span| span.end_ns).max()?;
        let from = of(lead, SpanKind::Fill).map(|span| span.start_ns);
        let from = from.or_else(|| inside().map(|span| span.start_ns).min())?;
        // What is filled after the last batch is not known of.
        let to = match end == self.batches {
            true => last,
            false => of(end - 1, SpanKind::Submit).map_or(last, |span| span.end_ns),
        };
        let to = if to > from { to } else { last };
        Some(Shown {
            batches: lead..end,
            from,
            to: to.max(from + 1),
        })
    }

    /// The share of the time shown that kinds of spans cover.
    fn covered(&self, kinds: &[SpanKind], slot: Option<usize>, shown: &Shown) -> f64 {
        let wanted =
            |span: &&Span| kinds.contains(&span.kind) && slot.is_none_or(|slot| slot == span.slot);
        let ranges = self.spans.iter().filter(wanted);
        let ranges = ranges.filter_map(|span| shown.cut(span)).collect();
        covered_ns(ranges) as f64 / shown.ns() as f64
    }

    fn busy(&self, row: &Row, shown: &Shown) -> f64 {
        self.covered(row.busy, None, shown)
    }

    /// What the device was at, in words.
    fn on_device(&self, shown: &Shown) -> Option<String> {
        let overlap = self.device_overlap()?;
        let percent = |row: &Row| format!("{} {:.0}%", row.name, 100.0 * self.busy(row, shown));
        let [uploads, kernels, downloads] = ON_DEVICE.each_ref().map(percent);
        Some(format!(
            "On the device, in the time shown: {uploads}, {kernels}, {downloads}. While any goes \
             on, {overlap:.1} of them do on average."
        ))
    }

    fn what_is_shown(&self, shown: &Shown) -> String {
        let Range { start, end } = shown.batches;
        let shown = length(shown.ns());
        let which = match end - start {
            1 => format!("batch {start}"),
            _ => format!("batches {start} to {}", end - 1),
        };
        format!(" · {which} of {} · {shown}", self.batches)
    }
}

/// The row that holds the others up, by the whole run.
fn bounding(rows: &[Row], busy: &[f64], statistics: &Statistics) -> Option<usize> {
    let stage = match statistics.bound? {
        Stage::Input | Stage::Fill => Stage::Fill,
        Stage::Device => Stage::Device,
        Stage::Unpack | Stage::Output => Stage::Unpack,
    };
    let of_stage = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.stage == stage);
    let busiest = of_stage.max_by(|(a, _), (b, _)| busy[*a].total_cmp(&busy[*b]));
    busiest.map(|(place, _)| place)
}

/// What is written beside that row.
fn mark(statistics: &Statistics) -> &'static str {
    match statistics.bound {
        Some(Stage::Input) => "no items",
        Some(Stage::Output) => "not taken",
        _ => "bounds",
    }
}

/// What of the timeline is drawn.
#[derive(Clone)]
struct Shown {
    batches: Range<u64>,
    from: u64,
    to: u64,
}

impl Shown {
    fn ns(&self) -> u64 {
        self.to - self.from
    }

    /// The part of a span that is shown.
    fn cut(&self, span: &Span) -> Option<(u64, u64)> {
        let (start, end) = (span.start_ns.max(self.from), span.end_ns.min(self.to));
        (start < end).then_some((start, end))
    }

    fn x(&self, ns: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ns - self.from) as f64 / self.ns() as f64
    }
}

/// A unit for times of this length, in nanoseconds, and its name.
fn unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns < 2e6 => (1e3, "µs"),
        ns if ns < 2e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A time in its unit, with three digits.
fn length(ns: u64) -> String {
    let (scale, name) = unit(ns as f64);
    let value = ns as f64 / scale;
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

/// A step of 1, 2 or 5 and zeros that divides a length into ten parts at most.
fn step(length: f64) -> f64 {
    let least = length / 10.0;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    let fits = steps.iter().find(|step| **step >= least * (1.0 - 1e-9));
    *fits.unwrap_or(&steps[3])
}

/// The drawing so far, and how far down it is. Writing to a string cannot fail.
struct Drawing {
    text: String,
    y: f64,
    shown: Shown,
}

impl Drawing {
    fn section(&mut self, name: &str, about: &str) {
        let y = self.y + 4.0;
        let _ = writeln!(
            self.text,
            "<text class=\"section\" x=\"24\" y=\"{y}\">{name}</text>\
             <text class=\"quiet end\" x=\"{}\" y=\"{y}\">{about}</text>",
            WIDTH - 20.0
        );
        self.y += 14.0;
    }

    fn label(&mut self, name: &str, strong: bool) {
        let class = if strong { "label strong" } else { "label" };
        let (x, y) = (LEFT - 12.0, self.y + 16.0);
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{name}</text>\
             <rect class=\"track\" x=\"{LEFT}\" y=\"{}\" width=\"{}\" height=\"{ROW}\"/>",
            self.y,
            RIGHT - LEFT
        );
    }

    /// The part of a span that is shown, `inset` from the edges of its row, with its
    /// batch's number where there is room for it.
    fn bar(&mut self, span: &Span, inset: f64, numbered: bool) {
        let Some((start, end)) = self.shown.cut(span) else {
            return;
        };
        let (x, width) = (self.shown.x(start), self.shown.x(end) - self.shown.x(start));
        let (y, height) = (self.y + inset, ROW - 2.0 * inset);
        let took = length(span.end_ns - span.start_ns);
        let (kind, batch) = (span.kind.name(), span.batch);
        let class = style::class(span.kind);
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{height}\">\
             <title>batch {batch}, slot {}: {kind}, {took}</title></rect>",
            width.max(0.4),
            span.slot,
        );
        let number = batch.to_string();
        if numbered && width > DIGIT * number.len() as f64 + 6.0 {
            let _ = writeln!(
                self.text,
                "<text class=\"number\" x=\"{:.2}\" y=\"{}\">{number}</text>",
                x + width / 2.0,
                self.y + 16.0
            );
        }
    }

    fn share(&mut self, share: f64, mark: Option<&str>) {
        let class = if mark.is_some() { "strong" } else { "value" };
        let (x, y) = (RIGHT + 44.0, self.y + 16.0);
        let _ = writeln!(
            self.text,
            "<text class=\"{class} end\" x=\"{x}\" y=\"{y}\">{:.0}%</text>",
            100.0 * share
        );
        if let Some(mark) = mark {
            let x = RIGHT + 50.0;
            let _ = writeln!(
                self.text,
                "<text class=\"mark\" x=\"{x}\" y=\"{y}\">{mark}</text>"
            );
        }
    }

    fn legend(&mut self, timed: bool) {
        let mut entries = vec![
            (SpanKind::Fill, "filling"),
            (SpanKind::Submit, "submitting"),
            (SpanKind::Stall, "no free slot"),
        ];
        if timed {
            entries.extend([
                (SpanKind::Upload, "upload"),
                (SpanKind::Kernels, "kernels"),
                (SpanKind::Download, "download"),
            ]);
        }
        entries.extend([
            (SpanKind::Unpack, "unpacking"),
            (SpanKind::Flight, "given to the device, not seen done"),
        ]);
        let mut x = LEFT;
        for (kind, name) in entries {
            let class = style::class(kind);
            let _ = writeln!(
                self.text,
                "<rect class=\"{class}\" x=\"{x}\" y=\"{}\" width=\"14\" height=\"14\"/>\
                 <text x=\"{}\" y=\"{}\">{name}</text>",
                self.y - 12.0,
                x + 20.0,
                self.y
            );
            x += 20.0 + 7.0 * name.chars().count() as f64 + 24.0;
        }
        self.y += 30.0;
    }

    /// What the picture does not say by itself.
    fn note(&mut self) {
        self.y += 18.0;
        let _ = writeln!(
            self.text,
            "<text class=\"quiet\" x=\"{LEFT}\" y=\"{}\">A gap in filling is time without items. \
             Kernels reach from a batch's last upload to its last kernel. Numbers are those of \
             batches.</text>",
            self.y
        );
        self.y += 16.0;
    }

    /// Ticks at `top`, and lines from there to the last row.
    fn axis(&self, top: f64) -> String {
        let mut text = String::new();
        let (scale, name) = unit(self.shown.ns() as f64);
        let length = self.shown.ns() as f64 / scale;
        let step = step(length);
        let bottom = self.y - ROW_STEP + ROW + 4.0;
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        for tick in 0..=(length / step) as usize {
            let value = tick as f64 * step;
            let x = LEFT + (RIGHT - LEFT) * value / length;
            let unit = if tick == 0 {
                format!(" {name}")
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "<line class=\"tick\" x1=\"{x:.2}\" y1=\"{}\" x2=\"{x:.2}\" y2=\"{bottom}\"/>\
                 <text class=\"tick-label\" x=\"{x:.2}\" y=\"{top}\">{value:.decimals$}{unit}</text>",
                top + 5.0
            );
        }
        text
    }
}

/// The words above the drawing.
fn heading(sentence: &str, title: &str, on_device: Option<&str>) -> String {
    let mut letters = sentence.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    let headline = first.unwrap_or_default() + letters.as_str();
    let mut text = String::new();
    let lines = [
        ("headline", 38.0, headline.as_str()),
        ("second", 62.0, on_device.unwrap_or_default()),
        ("quiet", 82.0, title),
    ];
    for (class, y, line) in lines {
        let line = escaped(line);
        let _ = writeln!(
            text,
            "<text class=\"{class}\" x=\"24\" y=\"{y}\">{line}</text>"
        );
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn document(height: f64, body: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\">\n<style>\n{}</style>\n{}\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n{body}</svg>\n",
        style::SHEET,
        style::PATTERN
    )
}

#[cfg(test)]
mod tests;
