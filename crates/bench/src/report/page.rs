//! The HTML page.

use super::charts::ChartSection;
use super::style;
use super::verdict::{ReportWords, is_noisy_run};
use crate::format::{self, capital};
use crate::merged::{MergedPoint, full_title};
use crate::record::{MachineLimits, Outcome, PointFacts, Record, Run};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The content of the page.
pub(super) struct PageContent<'a> {
    pub(super) run: &'a Run,
    pub(super) records: &'a [&'a Record],
    pub(super) points: &'a [MergedPoint],
    pub(super) words: ReportWords,
    pub(super) sections: Vec<ChartSection>,
}

/// The whole page.
pub(super) fn page(content: &PageContent<'_>) -> Markup {
    let run = content.run;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "tapeloop bench: " (run.device) ", " (format::date(run.started_unix_s)) }
                style { (PreEscaped(style::sheet())) }
            }
            body {
                main {
                    (refused_points(content.points))
                    p.kicker { "tapeloop bench, " (run.device) ", " (format::date(run.started_unix_s)) }
                    h1 { (capital(&content.words.headline)) }
                    (trust(content))
                    (claims(content))
                    (workloads(content.points))
                    (contents(content))
                    @for section in &content.sections {
                        section id=(section.id) {
                            h2 { (section.title) }
                            @for figure in &section.figures { (figure.markup()) }
                            @if !section.more.is_empty() {
                                details.more {
                                    summary { (many(section.more.len(), "more chart")) ": the other workloads" }
                                    @for figure in &section.more { (figure.markup()) }
                                }
                            }
                        }
                    }
                    (notes(content.points))
                    h2 id="machine-section" { "Machine and limits" }
                    (machine(run))
                    (limits(&run.limits))
                    h2 id="points-section" { "All points" }
                    p { "A row for each measurement; it names the settings that differ from the heading. "
                        "Times and rates are medians of the repetitions. "
                        "Bound by: a limit that is used to 80% or more, otherwise what takes the largest share of "
                        "the time; not determined where nothing that was measured takes half. "
                        span.cue { "The tables are wider than the page: scroll them sideways." } }
                    (super::tables::tables(content.records))
                }
            }
        }
    }
}

/// The box at the top that names points without figures, with the reason: wrong outputs, or an error; nothing if
/// there are none.
fn refused_points(points: &[MergedPoint]) -> Markup {
    let refused = points.iter().filter_map(|point| match &point.outcome {
        Outcome::Refused(reason) => Some((full_title(&point.facts, points), reason)),
        Outcome::Measured(_) => None,
    });
    let refused: Vec<_> = refused.collect();
    html! {
        @if !refused.is_empty() {
            section.box.refused role="alert" {
                h2 { (many(refused.len(), "point")) " refused: no figures" }
                ul { @for (title, reason) in &refused { li { b { (title) } ": " (reason) } } }
            }
        }
    }
}

/// A line on how far to trust the run. The warnings are folded behind it, each with the points that
/// have it.
fn trust(content: &PageContent<'_>) -> Markup {
    let points = content.points;
    let mut warnings: Vec<(&str, Vec<String>)> = Vec::new();
    for point in points {
        for warning in point.figures().map_or(&[][..], |figures| &figures.flags) {
            let title = full_title(&point.facts, points);
            match warnings.iter_mut().find(|(known, _)| known == warning) {
                Some((_, titles)) => titles.push(title),
                None => warnings.push((warning, vec![title])),
            }
        }
    }
    let trust = &content.words.trust;
    html! {
        @if warnings.is_empty() {
            p.trust { (trust) "." }
        } @else {
            details.trust.flagged[is_noisy_run(points)] {
                summary { (trust) "; " (many(warnings.len(), "warning")) }
                ul {
                    @for (warning, titles) in &warnings {
                        li { (capital(warning)) " (" (titles.join("; ")) ")" }
                    }
                }
            }
        }
    }
}

/// The sentences on what the figures show, each with a link to its chart.
fn claims(content: &PageContent<'_>) -> Markup {
    let figures = || {
        let sections = content.sections.iter();
        sections.flat_map(|section| section.figures.iter().chain(&section.more))
    };
    html! {
        @if !content.words.claims.is_empty() {
            ul.says {
                @for claim in &content.words.claims {
                    li {
                        (claim.words)
                        @if figures().any(|figure| figure.id == claim.figure) {
                            " " a href={ "#" (claim.figure) } { "chart" }
                        }
                    }
                }
            }
        }
    }
}

/// What each workload of the run does, but for those on files, and the words for their settings.
fn workloads(points: &[MergedPoint]) -> Markup {
    const KNOWN: [(&str, &str); 4] = [
        ("launch", "many small kernels"),
        ("copy", "large copies and few kernels"),
        ("compute", "one long kernel"),
        ("features", "features of protein structures"),
    ];
    let is_measured = |name: &str| points.iter().any(|point| point.facts.workload == name);
    let present: Vec<_> = KNOWN.iter().filter(|(name, _)| is_measured(name)).collect();
    html! {
        @if !present.is_empty() {
            p.trust {
                "Workloads: "
                @for (place, (name, about)) in present.iter().enumerate() {
                    @if place > 0 { "; " }
                    b { (name) } ", " (about)
                }
                ". A batch is uploaded, computed and downloaded. A graph replays all of it with one call; "
                "stream launches call the driver for each kernel and copy. "
                "Slots are batches in flight at the same time. "
                "A point is one workload with one choice of settings."
                @for sentence in settings(points) { " " (sentence) }
            }
        }
    }
}

/// Sentences that explain the settings which only some points have.
fn settings(points: &[MergedPoint]) -> impl Iterator<Item = &'static str> {
    let has = |is: fn(&PointFacts) -> bool| points.iter().any(|point| is(&point.facts));
    let sentences = [
        (
            has(|facts| facts.mode == "resident"),
            "In mode resident a loop on the GPU replays the graph, and the host makes no calls.",
        ),
        (
            has(|facts| ["pipeline", "engine"].contains(&facts.front.as_str())),
            "The ring replays batches that were packed beforehand; Pipeline and Engine also pack the \
             items and take the results, as your program would: Pipeline when its caller asks, and Engine on \
             threads of its own. Both share large batches among all cores.",
        ),
        (
            has(|facts| facts.buckets > 1),
            "Buckets are graphs for batches of several sizes; mixed batches differ in size.",
        ),
        (
            has(|facts| facts.rounds > 0),
            "A kernel of compute repeats its arithmetic in rounds.",
        ),
    ];
    let applicable = sentences.into_iter().filter(|(applies, _)| *applies);
    applicable.map(|(_, sentence)| sentence)
}

/// The table of contents.
fn contents(content: &PageContent<'_>) -> Markup {
    let sections = content.sections.iter();
    let sections = sections.map(|section| (section.id, section.title));
    let last = [
        ("machine-section", "Machine and limits"),
        ("points-section", "All points"),
    ];
    html! {
        nav aria-label="Contents" {
            ol { @for (id, title) in sections.chain(last) { li { a href={ "#" (id) } { (title) } } } }
        }
    }
}

/// What went wrong in other programs, at whatever point: each text of a program once.
fn notes(points: &[MergedPoint]) -> Markup {
    let mut notes: Vec<(&str, &str)> = Vec::new();
    let figures = points.iter().filter_map(MergedPoint::figures);
    for reference in figures.flat_map(|figures| &figures.references) {
        let note = (reference.name.as_str(), reference.note.as_str());
        if !note.1.is_empty() && !notes.contains(&note) {
            notes.push(note);
        }
    }
    html! {
        @if !notes.is_empty() {
            h2 { "Notes on other programs" }
            ul.says { @for (name, note) in &notes { li { b { (name) } ": " (note) } } }
        }
    }
}

fn many(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// The box about the machine and the version.
fn machine(run: &Run) -> Markup {
    let or_none = |text: &str| match text {
        "" => format::NONE.to_owned(),
        text => text.to_owned(),
    };
    let facts = [
        ("device", or_none(&run.device)),
        ("driver", or_none(&run.driver)),
        ("backend", or_none(&run.backend)),
        ("processor", or_none(&run.cpu)),
        ("cores", run.cores.to_string()),
        ("operating system", or_none(&run.os)),
        ("tapeloop", or_none(&run.version)),
        ("commit", or_none(&run.commit)),
        ("started", format::date(run.started_unix_s)),
    ];
    html! {
        section.box id="machine" {
            h3 { "Machine" }
            dl { @for (name, value) in &facts { div { dt { (name) } dd { (value) } } } }
            @if !run.config.is_empty() {
                details {
                    summary { "The config as resolved, with the keys of the version that measured" }
                    pre { (run.config) }
                }
            }
        }
    }
}

/// The box of the limits that were measured.
fn limits(limits: &MachineLimits) -> Markup {
    let rate = |value: Option<f64>| value.map(format::bytes_per_s);
    let time = |value: Option<f64>| value.map(format::time);
    let all = [
        ("upload, alone", rate(limits.upload_bytes_per_s)),
        ("download, alone", rate(limits.download_bytes_per_s)),
        (
            "upload, both ways at once",
            rate(limits.upload_both_bytes_per_s),
        ),
        (
            "download, both ways at once",
            rate(limits.download_both_bytes_per_s),
        ),
        (
            "device memory, read and written",
            rate(limits.device_bytes_per_s),
        ),
        (
            "host memory, read and written",
            rate(limits.host_bytes_per_s),
        ),
        (
            "arithmetic, single precision",
            limits.fma_per_s.map(format::fma_per_s),
        ),
        ("launch of a kernel, host time", time(limits.launch_ns)),
        (
            "launch of a graph of 12, host time",
            time(limits.graph_launch_ns),
        ),
    ];
    let known = all
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let known: Vec<(&str, String)> = known.collect();
    html! {
        @if !known.is_empty() {
            section.box id="limits" {
                h3 { "Limits, as measured in this run" }
                dl { @for (name, value) in &known { div { dt { (name) } dd { (value) } } } }
            }
        }
    }
}
