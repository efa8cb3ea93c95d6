//! The classes of a drawing, in addition to those of every drawing.

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

/// The rules of the classes.
pub(super) fn rules() -> String {
    const SHAPES: &str = "\
        text { font: 11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }\n\
        .name { font-size: 16px; font-weight: bold }\n\
        .small { font-size: 10px }\n\
        .null { fill: url(#tapeloop-null) }\n\
        .null-line { stroke: currentColor; stroke-width: 1.2 }\n\
        .chain, .break { stroke-width: 1.5 }\n\
        .break { stroke-dasharray: 2 2 }\n";
    SHAPES.to_owned() + &colours(&LIGHT) + &on_dark(&colours(&DARK))
}

fn colours(on: &Ground) -> String {
    let mut rules = format!(
        ".plain {{ color: {} }}\n.bar {{ color: {} }}\n.bar.other {{ color: {} }}\n",
        on.plain, on.bar, on.other_bar,
    );
    for step in 0..STEPS {
        let share = step as f64 / (STEPS - 1) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(rules, ".v{step} {{ color: {} }}", between(&on.scale, share));
    }
    let [start, ..] = on.circle;
    let around: Vec<Rgb> = on.circle.into_iter().chain([start]).collect();
    for step in 0..STEPS {
        let share = (step as f64 + 0.5) / STEPS as f64;
        let _ = writeln!(rules, ".a{step} {{ color: {} }}", between(&around, share));
    }
    rules
}

/// The colour at `at`, from 0 to 1, of a scale.
fn between(scale: &[Rgb], share: f64) -> String {
    let place = share * (scale.len() - 1) as f64;
    let from = (place as usize).min(scale.len() - 2);
    let share = place - from as f64;
    let [red, green, blue] = std::array::from_fn(|channel| {
        let (a, b) = (scale[from][channel], scale[from + 1][channel]);
        (a + (b - a) * share).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}
