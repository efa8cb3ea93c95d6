//! The CSS classes that only drawings of strips have. [`tapeloop_svg::sheet`] has those of all
//! drawings.

use std::fmt::Write;
use tapeloop_svg::{Ink, on_dark};

/// Steps of a scale: classes `v0` and on from low to high, `a0` and on around the circle.
pub(super) const STEPS: usize = 16;

/// Colours of words, in an order that suits `ss8`: red and orange helices, blue strands.
pub(super) const WORDS: [Ink; 8] = [
    Ink::Vermilion,
    Ink::Blue,
    Ink::Sky,
    Ink::Orange,
    Ink::Pink,
    Ink::Green,
    Ink::Quiet,
    Ink::Yellow,
];

/// The hatching of cells without a value, which no value has.
pub(super) const PATTERNS: &str = "\
    <defs><pattern id=\"tapeloop-null\" class=\"quiet\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><line class=\"null-line\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\"/></pattern></defs>\n";

type Rgb = [f64; 3];

/// The colours that depend on the ground.
struct Ground {
    plain: &'static str,
    bar: &'static str,
    other_bar: &'static str,
    /// The scale at its ends and in between.
    scale: [Rgb; 4],
    /// The scale around the circle, at -180, -90, 0 and 90 degrees: the hue tells the side, the
    /// lightness the distance from 0, which every reader can see.
    circle: [Rgb; 4],
}

const LIGHT: Ground = Ground {
    plain: "#e9ecef",
    bar: "#d5dce4",
    other_bar: "#bcc7d3",
    scale: [
        [204.0, 222.0, 240.0],
        [134.0, 189.0, 217.0],
        [38.0, 118.0, 180.0],
        [8.0, 36.0, 84.0],
    ],
    circle: [
        [222.0, 216.0, 226.0],
        [84.0, 146.0, 198.0],
        [50.0, 26.0, 68.0],
        [206.0, 100.0, 64.0],
    ],
};

const DARK: Ground = Ground {
    plain: "#262e37",
    bar: "#33404d",
    other_bar: "#47586a",
    scale: [
        [40.0, 62.0, 88.0],
        [40.0, 98.0, 146.0],
        [108.0, 182.0, 222.0],
        [238.0, 248.0, 255.0],
    ],
    circle: [
        [62.0, 54.0, 76.0],
        [72.0, 132.0, 192.0],
        [246.0, 238.0, 246.0],
        [214.0, 108.0, 72.0],
    ],
};

/// The CSS rules of these classes, and in a media query those for a dark ground.
pub(super) fn css_rules() -> String {
    const SHAPES: &str = "\
        text { font: 11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }\n\
        .name { font-size: 16px; font-weight: bold }\n\
        .small { font-size: 10px }\n\
        .null { fill: url(#tapeloop-null) }\n\
        .null-line { stroke: currentColor; stroke-width: 1.2 }\n\
        .chain, .break { stroke-width: 1.5 }\n\
        .break { stroke-dasharray: 2 2 }\n";
    SHAPES.to_owned() + &colour_rules(&LIGHT) + &on_dark(&colour_rules(&DARK))
}

/// The rules with the colours of a ground.
fn colour_rules(ground: &Ground) -> String {
    let mut rules = format!(
        ".plain {{ color: {} }}\n.bar {{ color: {} }}\n.bar.other {{ color: {} }}\n",
        ground.plain, ground.bar, ground.other_bar,
    );
    for step in 0..STEPS {
        let share = step as f64 / (STEPS - 1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(
            rules,
            ".v{step} {{ color: {} }}",
            interpolate(&ground.scale, share)
        );
    }
    let [start, ..] = ground.circle;
    let closed_circle: Vec<Rgb> = ground.circle.into_iter().chain([start]).collect();
    for step in 0..STEPS {
        // Each step is an arc of the circle, and has the colour of the arc's middle.
        let share = (step as f64 + 0.5) / STEPS as f64;
        let _ = writeln!(
            rules,
            ".a{step} {{ color: {} }}",
            interpolate(&closed_circle, share)
        );
    }
    rules
}

/// The colour at `share`, from 0 to 1, of a scale, as `#rrggbb`.
fn interpolate(scale: &[Rgb], share: f64) -> String {
    let place = share * (scale.len() - 1) as f64;
    // At a share of 1 the last two colours are mixed, with all of the last.
    let lower = (place as usize).min(scale.len() - 2);
    let weight = place - lower as f64;
    let [red, green, blue] = std::array::from_fn(|channel| {
        let (a, b) = (scale[lower][channel], scale[lower + 1][channel]);
        (a + (b - a) * weight).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}
