//! A timeline as a drawing: some consecutive batches, stage by stage and slot by slot, with the
//! stage that bounds the run.

use super::{Span, SpanKind, Timeline, covered_ns};
use crate::pipeline::statistics::{Stage, Statistics};
use std::ops::Range;
use tapeloop_svg::{Ink, Svg, on_dark, tick_step};

// Lengths in pixels, for text of 11 to 20 pixels. Those without a name are margins around it.
const WIDTH: f64 = 1200.0;
/// Where the time axis begins and ends.
const LEFT: f64 = 132.0;
const RIGHT: f64 = 1075.0;
const ROW: f64 = 24.0;
const ROW_STEP: f64 = 30.0;
/// The width of a digit in a bar, and the mean width of a letter in the legend.
const DIGIT: f64 = 7.0;
/// Where the labels of the time axis stand.
const AXIS: f64 = 142.0;
/// The height of a heading between rows, with the margin above it.
const SECTION: f64 = 24.0;

/// A row of the section `Stages`: some kinds of spans, over all slots or those of a device.
#[derive(Clone, Copy)]
struct Row {
    name: &'static str,
    /// The device, if there are several.
    device: Option<usize>,
    kinds: &'static [SpanKind],
    /// The kinds that count as busy.
    busy: &'static [SpanKind],
    stage: Stage,
}

const FILLING: Row = Row {
    name: "filling",
    device: None,
    kinds: &[SpanKind::Stall, SpanKind::Fill, SpanKind::Submit],
    busy: &[SpanKind::Fill, SpanKind::Submit],
    stage: Stage::Fill,
};

const UNPACKING: Row = Row {
    name: "unpacking",
    device: None,
    kinds: &[SpanKind::Unpack],
    busy: &[SpanKind::Unpack],
    stage: Stage::Unpack,
};

const TAKING: Row = Row {
    name: "taking",
    device: None,
    kinds: &[SpanKind::Take],
    busy: &[SpanKind::Take],
    stage: Stage::Output,
};

/// What a slot's row shows behind the activities of its device: all that a slot is used for.
const IN_SLOT: &[SpanKind] = &[
    SpanKind::Worker,
    SpanKind::Fill,
    SpanKind::Submit,
    SpanKind::Flight,
    SpanKind::Unpack,
];

const ON_DEVICE: [Row; 3] = [
    Row {
        name: "uploads",
        device: None,
        kinds: &[SpanKind::Upload],
        busy: &[SpanKind::Upload],
        stage: Stage::Device,
    },
    Row {
        name: "kernels",
        device: None,
        kinds: &[SpanKind::Kernels],
        busy: &[SpanKind::Kernels],
        stage: Stage::Device,
    },
    Row {
        name: "downloads",
        device: None,
        kinds: &[SpanKind::Download],
        busy: &[SpanKind::Download],
        stage: Stage::Device,
    },
];

/// The row of devices without timestamps.
const IN_FLIGHT: Row = Row {
    name: "device",
    device: None,
    kinds: &[SpanKind::Flight],
    busy: &[SpanKind::Flight],
    stage: Stage::Device,
};

/// The most slots that are drawn: more than several devices have, and a drawing that browsers show.
const SLOTS_DRAWN_MAX: usize = 1024;

impl Timeline {
    /// Draws the timeline as an SVG file, for light and dark grounds. `title` says what ran.
    ///
    /// Of more than 1,024 slots it draws the first ones.
    ///
    /// The drawing shows the latest complete window of sampled batches, from the moment when no
    /// earlier batch is left in a slot.
    pub fn to_svg(&self, statistics: &Statistics, title: &str) -> String {
        let mut svg = Svg::default();
        let sentence = capital(&statistics.sentence());
        let Some(shown) = self.shown() else {
            draw_heading(&mut svg, &sentence, "", title);
            return file(svg, 90.0, &sentence);
        };
        let title = format!("{title}{}", self.what_is_shown(&shown));
        let on_device = self.on_device(&shown).unwrap_or_default();
        draw_heading(&mut svg, &sentence, &on_device, &title);
        let is_timed = self.spans.iter().any(|span| span.kind.is_of_device());
        draw_legend(&mut svg, is_timed);
        let rows = self.rows();
        let stages = 182.0;
        let slots = stages + SECTION + rows.len() as f64 * ROW_STEP;
        let headings = match self.devices.len() {
            0 | 1 => 0.0,
            devices => (devices - 1) as f64 * SECTION,
        };
        let slots_drawn = self.slots.min(SLOTS_DRAWN_MAX);
        let end = slots + headings + slots_drawn as f64 * ROW_STEP;
        draw_axis(&mut svg, &shown, AXIS, end - ROW_STEP + ROW + 4.0);
        let mut drawing = TimelineDrawing {
            svg,
            y: stages,
            shown,
        };
        drawing.draw_section("Stages", "share of the time shown");
        let busy: Vec<f64> = rows
            .iter()
            .map(|row| self.busy(row, &drawing.shown))
            .collect();
        let bounding = bounding(&rows, &busy, statistics);
        for (place, (row, share)) in rows.iter().zip(&busy).enumerate() {
            let mark = (bounding == Some(place)).then(|| mark(statistics));
            match row.device {
                None => drawing.draw_label(row.name, mark.is_some()),
                Some(device) => {
                    drawing.draw_label(&format!("{device}: {}", row.name), mark.is_some())
                }
            }
            for kind in row.kinds {
                let of_kind = self.spans.iter().filter(|span| span.kind == *kind);
                for span in of_kind.filter(|span| self.is_of(row.device, span)) {
                    drawing.draw_bar(span, 0.0, false);
                }
            }
            drawing.draw_share(*share, mark);
        }
        drawing.y = slots;
        let share_of = "share of the time in use";
        let mut section = None;
        for slot in 0..slots_drawn {
            let device = self.device_of(slot);
            if section.is_some_and(|before| before != device) {
                drawing.y += SECTION;
            }
            if section.replace(device) != Some(device) {
                let of_device = self.device_title(device);
                let of_device = of_device.map(|name| format!("Slots of {name}"));
                drawing.draw_section(of_device.as_deref().unwrap_or("Slots"), share_of);
            }
            drawing.draw_label(&format!("slot {slot}"), false);
            let of_slot = self.spans.iter().filter(|span| span.slot == slot);
            let (of_device, others): (Vec<&Span>, Vec<&Span>) = of_slot
                .filter(|span| IN_SLOT.contains(&span.kind) || span.kind.is_of_device())
                .partition(|span| span.kind.is_of_device());
            let numbered = if of_device.is_empty() {
                SpanKind::Flight
            } else {
                SpanKind::Kernels
            };
            for span in &others {
                drawing.draw_bar(span, 0.0, span.kind == numbered);
            }
            for span in &of_device {
                drawing.draw_bar(span, 4.0, span.kind == numbered);
            }
            let share = self.covered(IN_SLOT, |span| span.slot == slot, &drawing.shown);
            drawing.draw_share(share, None);
        }
        let left_out = self.slots - slots_drawn;
        let left_out = (left_out > 0).then(|| format!("{left_out} further slots are not drawn."));
        let mut notes: Vec<&str> = left_out.iter().map(String::as_str).collect();
        notes.push(
            "A gap in filling is time without input, and a gap in a slot is time in which it is free. \
             Numbers are those of batches.",
        );
        if is_timed {
            notes.push(
                "Kernels reach from a batch's last upload to its last kernel. Timestamps slow the \
                 sampled batches by microseconds each.",
            );
        }
        let mut y = end;
        for note in notes {
            y += 18.0;
            drawing.svg.text(Ink::Quiet, (LEFT, y), note);
        }
        file(drawing.svg, y + 16.0, &sentence)
    }

    /// The rows of the drawing from the top: stages, those on a device once for each device.
    fn rows(&self) -> Vec<Row> {
        let timed = self.spans.iter().any(|span| span.kind.is_of_device());
        let on_device = if timed { &ON_DEVICE[..] } else { &[IN_FLIGHT] };
        let mut rows = vec![FILLING];
        match self.devices.len() {
            0 | 1 => rows.extend(on_device),
            devices => rows.extend((0..devices).flat_map(|device| {
                on_device.iter().map(move |row| Row {
                    device: Some(device),
                    ..*row
                })
            })),
        }
        rows.push(UNPACKING);
        if self.spans.iter().any(|span| span.kind == SpanKind::Take) {
            rows.push(TAKING);
        }
        rows
    }

    /// Whether a span is of `device`, or of any device.
    fn is_of(&self, device: Option<usize>, span: &Span) -> bool {
        device.is_none_or(|device| device == self.device_of(span.slot))
    }

    /// The batches and the time to show: those of the latest window that is long enough, without
    /// the first batches of the run.
    fn shown(&self) -> Option<ShownPart> {
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
        // The first two batches of each slot make its graphs; a short run shows them all the same.
        if is_first && end > slots.saturating_mul(3) {
            start = 2 * slots;
        }
        // More batches would be too narrow to read.
        let most = slots.saturating_add(1).saturating_mul(4);
        start = start.max(end.saturating_sub(most));
        // When this batch is filled, earlier batches have left every slot.
        let lead = if is_first {
            start
        } else {
            start.saturating_add(slots.saturating_sub(1)).min(end - 1)
        };
        let first_span = |batch: u64, kind: SpanKind| {
            let mut spans = self.spans.iter();
            spans.find(|span| span.batch == batch && span.kind == kind)
        };
        let inside = || {
            self.spans
                .iter()
                .filter(|span| (lead..end).contains(&span.batch))
        };
        let last = inside().map(|span| span.end_ns).max()?;
        let start_ns = first_span(lead, SpanKind::Fill).map(|span| span.start_ns);
        let start_ns = start_ns.or_else(|| inside().map(|span| span.start_ns).min())?;
        // The end is at least 1 ns later.
        let start_ns = start_ns.min(u64::MAX - 1);
        // The timeline does not have what was filled after the last batch.
        let end_ns = if end == self.batches {
            last
        } else {
            first_span(end - 1, SpanKind::Submit).map_or(last, |span| span.end_ns)
        };
        let end_ns = if end_ns > start_ns { end_ns } else { last };
        Some(ShownPart {
            batches: lead..end,
            start_ns,
            end_ns: end_ns.max(start_ns + 1),
        })
    }

    /// The share of the time shown that spans of some kinds cover.
    fn covered(
        &self,
        kinds: &[SpanKind],
        is_wanted: impl Fn(&Span) -> bool,
        shown: &ShownPart,
    ) -> f64 {
        let wanted = |span: &&Span| kinds.contains(&span.kind) && is_wanted(span);
        let ranges = self.spans.iter().filter(wanted);
        let ranges = ranges.filter_map(|span| shown.cut(span)).collect();
        covered_ns(ranges) as f64 / shown.ns() as f64
    }

    fn busy(&self, row: &Row, shown: &ShownPart) -> f64 {
        self.covered(row.busy, |span| self.is_of(row.device, span), shown)
    }

    /// A sentence about the activities of the device.
    fn on_device(&self, shown: &ShownPart) -> Option<String> {
        let overlap = self.device_overlap()?;
        let devices = self.devices.len().max(1);
        let percent = |row: &Row| {
            let busy = (0..devices).map(|device| {
                let device = Some(device);
                self.busy(&Row { device, ..*row }, shown)
            });
            let mean = busy.sum::<f64>() / devices as f64;
            format!("{} {:.0}%", row.name, 100.0 * mean)
        };
        let [uploads, kernels, downloads] = ON_DEVICE.each_ref().map(percent);
        let subject = match devices {
            1 => "Device, in the time shown",
            _ => "Mean of the devices, in the time shown",
        };
        Some(format!(
            "{subject}: {uploads}, {kernels}, {downloads}. On average {overlap:.1} of them overlap."
        ))
    }

    /// The end of the title: which of the run's batches are drawn, and how long they took.
    fn what_is_shown(&self, shown: &ShownPart) -> String {
        let Range { start, end } = shown.batches;
        let shown = length(shown.ns());
        let which = match end - start {
            1 => format!("batch {start}"),
            _ => format!("batches {start} to {}", end - 1),
        };
        format!(" · {which} of {} · {shown}", self.batches)
    }
}

/// The row of the stage that bounds the whole run; the busiest, if it has several. The input has
/// none, and is part of the row of filling. Without a row of its own the output is part of that of
/// reading.
fn bounding(rows: &[Row], busy: &[f64], statistics: &Statistics) -> Option<usize> {
    let stage = match statistics.bound? {
        Stage::Input | Stage::Fill => Stage::Fill,
        Stage::Device => Stage::Device,
        Stage::Unpack => Stage::Unpack,
        Stage::Output if rows.iter().any(|row| row.stage == Stage::Output) => Stage::Output,
        Stage::Output => Stage::Unpack,
    };
    let of_stage = rows
        .iter()
        .enumerate()
        .filter(|(_, row)| row.stage == stage);
    let busiest = of_stage.max_by(|(a, _), (b, _)| busy[*a].total_cmp(&busy[*b]));
    busiest.map(|(place, _)| place)
}

/// The mark of that row.
fn mark(statistics: &Statistics) -> &'static str {
    match statistics.bound {
        Some(Stage::Input) => "no input",
        Some(Stage::Output) => "not taken",
        _ => "bounds",
    }
}

/// The part of the timeline that is drawn.
#[derive(Clone)]
struct ShownPart {
    batches: Range<u64>,
    start_ns: u64,
    end_ns: u64,
}

impl ShownPart {
    fn ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// The part of a span that is drawn.
    fn cut(&self, span: &Span) -> Option<(u64, u64)> {
        let (start, end) = (
            span.start_ns.max(self.start_ns),
            span.end_ns.min(self.end_ns),
        );
        (start < end).then_some((start, end))
    }

    fn x(&self, ns: u64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ns - self.start_ns) as f64 / self.ns() as f64
    }
}

/// The unit for a time of this length, in nanoseconds, and its name.
fn unit(ns: f64) -> (f64, &'static str) {
    match ns {
        ns if ns < 2e6 => (1e3, "µs"),
        ns if ns < 2e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    }
}

/// A time with three digits and its unit.
fn length(ns: u64) -> String {
    let (scale, name) = unit(ns as f64);
    let value = ns as f64 / scale;
    // As it is printed: 9.996 becomes 10.0.
    let decimals = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {name}")
}

/// How the spans of a kind are painted.
fn class(kind: SpanKind) -> String {
    let ink = match kind {
        SpanKind::Stall => return "stall".to_owned(),
        SpanKind::Worker => return "wait".to_owned(),
        SpanKind::Fill => Ink::Blue,
        SpanKind::Submit => Ink::Navy,
        SpanKind::Flight => Ink::Grey,
        SpanKind::Unpack => Ink::Pink,
        SpanKind::Upload => Ink::Sky,
        SpanKind::Kernels => Ink::Orange,
        SpanKind::Download => Ink::Green,
        SpanKind::Take => Ink::Navy,
    };
    ink.to_string()
}

/// The drawing so far, and the top of the next row.
struct TimelineDrawing {
    svg: Svg,
    y: f64,
    shown: ShownPart,
}

impl TimelineDrawing {
    /// Writes a heading above the rows that follow.
    fn draw_section(&mut self, name: &str, about: &str) {
        let y = self.y - 10.0;
        self.svg.text("text section", (24.0, y), name);
        let quiet = format_args!("{} end", Ink::Quiet);
        self.svg.text(quiet, (WIDTH - 20.0, y), about);
    }

    /// Writes the name of a row to its left, and draws its empty track.
    fn draw_label(&mut self, name: &str, strong: bool) {
        let class = if strong {
            "text end strong"
        } else {
            "text end"
        };
        self.svg.text(class, (LEFT - 12.0, self.y + 16.0), name);
        let size = (RIGHT - LEFT, ROW);
        self.svg.rect(Ink::Track, (LEFT, self.y), size);
    }

    /// Draws the part of a span that is shown, `inset` from the edges of its row, with the number
    /// of its batch if that fits.
    fn draw_bar(&mut self, span: &Span, inset: f64, numbered: bool) {
        let Some((start, end)) = self.shown.cut(span) else {
            return;
        };
        let (x, width) = (self.shown.x(start), self.shown.x(end) - self.shown.x(start));
        let took = length(span.end_ns - span.start_ns);
        let Span {
            batch, slot, kind, ..
        } = *span;
        let title = format!("batch {batch}, slot {slot}: {}, {took}", kind.name());
        // A span that is too short to see is drawn as wide as a hair.
        let (corner, size) = ((x, self.y + inset), (width.max(0.4), ROW - 2.0 * inset));
        self.svg.titled_rect(class(kind), corner, size, &title);
        let number = batch.to_string();
        if numbered && width > DIGIT * number.len() as f64 + 6.0 {
            let class = format_args!("{} small middle", Ink::OnBar);
            let corner = (x + width / 2.0, self.y + 16.0);
            self.svg.text(class, corner, &number);
        }
    }

    /// Ends a row with its share, and with `mark` if it bounds the run.
    fn draw_share(&mut self, share: f64, mark: Option<&str>) {
        let class = if mark.is_some() {
            "text end strong"
        } else {
            "text end"
        };
        let y = self.y + 16.0;
        let percent = format!("{:.0}%", 100.0 * share);
        self.svg.text(class, (RIGHT + 44.0, y), &percent);
        if let Some(mark) = mark {
            self.svg.text("mark strong", (RIGHT + 50.0, y), mark);
        }
        self.y += ROW_STEP;
    }
}

/// Writes what each colour stands for.
fn draw_legend(svg: &mut Svg, is_timed: bool) {
    const ENTRIES: [(SpanKind, &str); 9] = [
        (SpanKind::Fill, "filling"),
        (SpanKind::Submit, "submitting, taking"),
        (SpanKind::Stall, "no free slot"),
        (SpanKind::Worker, "no free worker"),
        (SpanKind::Upload, "upload"),
        (SpanKind::Kernels, "kernels"),
        (SpanKind::Download, "download"),
        (SpanKind::Unpack, "unpacking"),
        (SpanKind::Flight, "in flight"),
    ];
    let entries = ENTRIES.into_iter();
    let (mut x, y) = (LEFT, 112.0);
    for (kind, name) in entries.filter(|(kind, _)| is_timed || !kind.is_of_device()) {
        svg.rect(class(kind), (x, y - 12.0), (14.0, 14.0));
        svg.text(Ink::Text, (x + 20.0, y), name);
        x += 20.0 + DIGIT * name.chars().count() as f64 + 24.0;
    }
}

/// Draws the time axis: ticks at `top`, and lines from there to `bottom`.
fn draw_axis(svg: &mut Svg, shown: &ShownPart, top: f64, bottom: f64) {
    let (scale, name) = unit(shown.ns() as f64);
    let length = shown.ns() as f64 / scale;
    let step = tick_step(length, 10.0);
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    for tick in 0..=(length / step) as usize {
        let value = tick as f64 * step;
        let x = LEFT + (RIGHT - LEFT) * value / length;
        svg.line(Ink::Grid, &[(x, top + 5.0), (x, bottom)]);
        let unit = if tick == 0 {
            format!(" {name}")
        } else {
            String::new()
        };
        let class = format_args!("{} small middle", Ink::Quiet);
        svg.text(class, (x, top), &format!("{value:.decimals$}{unit}"));
    }
}

/// Writes the words above the drawing.
fn draw_heading(svg: &mut Svg, headline: &str, second: &str, title: &str) {
    svg.text("text headline", (24.0, 38.0), headline);
    svg.text("text second", (24.0, 62.0), second);
    svg.text(Ink::Quiet, (24.0, 82.0), title);
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_uppercase());
    first.into_iter().flatten().chain(letters).collect()
}

/// The SVG file with its style and the patterns of waits.
fn file(svg: Svg, height: f64, title: &str) -> String {
    const RULES: &str = "\
        .headline { font-size: 20px; font-weight: 700 }\n\
        .second { font-size: 15px }\n\
        .section { font-size: 14px; font-weight: 700 }\n\
        .small { font-size: 11px }\n\
        .stall { fill: url(#tapeloop-hatch) }\n\
        .wait { fill: url(#tapeloop-dots) }\n\
        .mark { color: #c0392b }\n";
    // What a wait for a slot and one for a worker are filled with.
    const PATTERNS: &str = "<defs><pattern id=\"tapeloop-hatch\" width=\"6\" height=\"6\" \
        patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
        <rect class=\"track\" width=\"6\" height=\"6\"/>\
        <rect class=\"quiet\" width=\"2.5\" height=\"6\" opacity=\"0.5\"/></pattern>\
        <pattern id=\"tapeloop-dots\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
        <rect class=\"track\" width=\"5\" height=\"5\"/>\
        <rect class=\"quiet\" width=\"2.5\" height=\"2.5\"/></pattern></defs>\n";
    let rules = RULES.to_owned() + &on_dark(".mark { color: #ff8a75 }\n");
    svg.file(
        (WIDTH, height),
        "tapeloop-timeline",
        title,
        &rules,
        PATTERNS,
    )
}

#[cfg(test)]
mod tests;
