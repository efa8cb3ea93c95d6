//! The HTML page.

use super::charts::Section;
use super::style;
use super::verdict::Words;
use crate::bench::format::{self, capital};
use crate::bench::merged::{MergedPoint, full_title};
use crate::bench::record::{Limits, Outcome, Record, Run};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The content of the page.
pub(super) struct Content<'a> {
    pub(super) run: &'a Run,
    pub(super) records: &'a [&'a Record],
    pub(super) points: &'a [MergedPoint],
    pub(super) words: Words,
    pub(super) sections: Vec<Section>,
}

pub(super) fn page(content: &Content<'_>) -> Markup {
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
                    (refused(content.points))
                    p.kicker { "tapeloop bench, " (run.device) ", " (format::date(run.started_unix_s)) }
                    h1 { (capital(&content.words.headline)) }
                    @if !content.words.says.is_empty() {
                        ul.says { @for says in &content.words.says { li { (says) } } }
                    }
                    (warnings(content.points))
                    (machine(run))
                    (limits(&run.limits))
                    @for section in &content.sections {
                        h2 { (section.title) }
                        @for figure in &section.figures { (figure.markup()) }
                    }
                    (notes(content.points))
                    h2 { "All points" }
                    p { "One row per record; charts merge records of the same point. "
                        "Times and rates are medians of the repetitions." }
                    (super::tables::tables(content.records))
                }
            }
        }
    }
}

fn refused(points: &[MergedPoint]) -> Markup {
    let refused = points.iter().filter_map(|point| match &point.outcome {
        Outcome::Refused(reason) => Some((full_title(&point.facts, points), reason)),
        Outcome::Measured(_) => None,
    });
    let refused: Vec<_> = refused.collect();
    html! {
        @if !refused.is_empty() {
            section.box.refused role="alert" {
                h2 { (many(refused.len(), "point")) " refused: wrong outputs" }
                ul { @for (title, reason) in &refused { li { b { (title) } ": " (reason) } } }
            }
        }
    }
}

/// The warnings, folded, each with the points that it is about.
fn warnings(points: &[MergedPoint]) -> Markup {
    let mut warnings: Vec<(&str, Vec<String>)> = Vec::new();
    let mut noisy = 0;
    for point in points {
        let of_point = point.figures().map_or(&[][..], |figures| &figures.flags);
        noisy += usize::from(!of_point.is_empty());
        for warning in of_point {
            let title = full_title(&point.facts, points);
            match warnings.iter_mut().find(|(known, _)| known == warning) {
                Some((_, titles)) => titles.push(title),
                None => warnings.push((warning, vec![title])),
            }
        }
    }
    let verb = if noisy == 1 { "is" } else { "are" };
    html! {
        @if noisy > 0 {
            details.box.flagged {
                summary { (noisy) " of " (many(points.len(), "measurement")) " " (verb) " noisy" }
                ul {
                    @for (warning, titles) in &warnings {
                        li { (capital(warning)) " (" (titles.join("; ")) ")" }
                    }
                }
            }
        }
    }
}

/// Notes on other programs, each once.
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

fn many(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

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
            h2 { "Machine" }
            dl { @for (name, value) in &facts { div { dt { (name) } dd { (value) } } } }
            @if !run.config.is_empty() {
                details { summary { "The config as resolved" } pre { (run.config) } }
            }
        }
    }
}

fn limits(limits: &Limits) -> Markup {
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
                h2 { "Limits, as measured in this run" }
                dl { @for (name, value) in &known { div { dt { (name) } dd { (value) } } } }
            }
        }
    }
}
