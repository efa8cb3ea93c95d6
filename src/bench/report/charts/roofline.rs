//! Arithmetic against the bytes that cross the link: a roofline (Williams, Waterman and Patterson,
//! 2009) with the link as its slope.

use super::super::axis::{Axis, Scale};
use super::super::figure::Figure;
use super::super::plot::{Dot, Line, Plot};
use super::super::style::Look;
use crate::bench::format;
use crate::bench::merged::MergedPoint;
use crate::bench::record::{Figures, Limits};

/// Multiply-adds per byte that crosses the link, in either direction.
fn intensity(figures: &Figures) -> f64 {
    let amounts = &figures.amounts;
    amounts.fma / (amounts.upload_bytes + amounts.download_bytes)
}

pub(super) fn figures(points: &[MergedPoint], limits: &Limits) -> Vec<Figure> {
    figure(points, limits).into_iter().collect()
}

fn figure(points: &[MergedPoint], limits: &Limits) -> Option<Figure> {
    let peak = limits.fma_per_s.filter(|peak| *peak > 0.0)?;
    let upload = limits
        .upload_both_bytes_per_s
        .or(limits.upload_bytes_per_s)?;
    let download = limits
        .download_both_bytes_per_s
        .or(limits.download_bytes_per_s)?;
    let link = upload + download;
    let mut lines: Vec<Line> = Vec::new();
    for point in points {
        let (Some(figures), Some(period)) = (point.figures(), point.period()) else {
            continue;
        };
        let (x, rate) = (intensity(figures), period.rate(figures.amounts.fma));
        if !x.is_finite() || x <= 0.0 {
            continue;
        }
        let dot = Dot {
            x,
            y: rate.median,
            low: rate.low,
            high: rate.high,
        };
        let name = format!("{} {}", point.facts.workload, point.facts.mode);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.dots.push(dot),
            None => {
                let used: Vec<Look> = lines.iter().map(|line| line.look).collect();
                lines.push(Line {
                    name,
                    look: Look::own(&point.facts.mode, &used),
                    dots: vec![dot],
                });
            }
        }
    }
    for line in &mut lines {
        line.dots.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    let x: Vec<f64> = lines
        .iter()
        .flat_map(|line| &line.dots)
        .map(|dot| dot.x)
        .collect();
    let low = x.iter().copied().fold(f64::INFINITY, f64::min);
    let high = x.iter().copied().fold(0.0, f64::max);
    if high <= low * 1.5 {
        return None;
    }
    let best = lines
        .iter()
        .flat_map(|line| &line.dots)
        .map(|dot| dot.y / peak.min(dot.x * link));
    let best = best.fold(0.0, f64::max);
    let ridge = peak / link;
    let mut roof = vec![low, high];
    if (low..high).contains(&ridge) {
        roof.insert(1, ridge);
    }
    lines.push(Line {
        name: "limit of the machine".to_owned(),
        look: Look::LIMIT,
        dots: roof
            .into_iter()
            .map(|x| Dot::bare(x, peak.min(x * link)))
            .collect(),
    });
    let caption = format!(
        "Below {} multiply-adds per byte the link is the limit ({}, both ways together), above it \
         arithmetic ({}). The best point reaches {} of its limit.",
        format::digits(ridge),
        format::bytes_per_s(link),
        format::fma_per_s(peak),
        format::percent(best),
    );
    let plot = Plot {
        x: Axis {
            title: "multiply-adds per byte over the link",
            scale: Scale::Decades,
            tick: format::plain,
        },
        y: Axis {
            title: "multiply-adds per second",
            scale: Scale::Decades,
            tick: format::fma_per_s_tick,
        },
        lines,
        shaded: None,
    };
    let title = "Arithmetic against the link: a roofline".to_owned();
    Figure::plot("roofline".to_owned(), title, caption, plot)
}
