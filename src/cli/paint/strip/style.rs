//! The style sheet of a drawing.

use std::fmt::Write;

/// Steps of the scale from low to high, classes `v0` and on, and of the one around
/// the circle, `a0` and on.
pub(super) const STEPS: usize = 16;

/// Colours of words: classes `k0` and on. They are those of Okabe and Ito, which
/// stay apart for colour-blind eyes, in an order that suits `ss8`: red and orange
/// helices, blue strands. Yellow is darker than theirs, as the ground may be white.
pub(super) const COLOURS: [&str; 8] = [
    "#d55e00", "#0072b2", "#56b4e9", "#e69f00", "#cc79a7", "#009e73", "#8b95a1", "#d6c72a",
];

type Rgb = [f64; 3];

/// What the ground decides.
struct Ground {
    ground: &'static str,
    ink: &'static str,
    quiet: &'static str,
    plain: &'static str,
    bar: &'static str,
    other_bar: &'static str,
    /// The scale at its ends and in between.
    scale: [Rgb; 4],
    /// The scale around the circle, at -180, -90, 0 and 90 degrees: the side by
    /// hue, the distance from 0 by lightness, which all eyes tell apart.
    circle: [Rgb; 4],
}

const LIGHT: Ground = Ground {
    ground: "#ffffff",
    ink: "#1b2430",
    quiet: "#66707c",
    plain: "#e9ecef",
    bar: "#d5dce4",
    other_bar: "#bcc7d3",
    scale: [
        [228.0, 238.0, 246.0],
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
    ground: "#12171d",
    ink: "#e4e9ef",
    quiet: "#97a3b0",
    plain: "#262e37",
    bar: "#33404d",
    other_bar: "#47586a",
    scale: [
        [30.0, 44.0, 60.0],
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

/// The sheet: light, and dark where the viewer prefers that.
pub(super) fn sheet() -> String {
    let mut sheet = String::from(
        "text { font: 11px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace }\n\
         .name { font-size: 16px; font-weight: bold }\n\
         .label { text-anchor: end }\n\
         .letters { font-size: 10px; text-anchor: middle }\n\
         .number { font-size: 10px; text-anchor: middle }\n\
         .small { font-size: 10px }\n\
         .break { stroke-dasharray: 2 2 }\n",
    );
    for (at, colour) in COLOURS.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(sheet, ".k{at} {{ fill: {colour} }}");
    }
    sheet.push_str(&colours(&LIGHT));
    let dark = colours(&DARK);
    let _ = writeln!(sheet, "@media (prefers-color-scheme: dark) {{\n{dark}}}");
    sheet
}

fn colours(on: &Ground) -> String {
    let mut rules = format!(
        "text {{ fill: {ink} }}\n\
         .ground {{ fill: {} }}\n\
         .quiet, .number {{ fill: {quiet} }}\n\
         .plain {{ fill: {} }}\n\
         .null {{ fill: {quiet}; opacity: 0.6 }}\n\
         .bar {{ fill: {} }}\n\
         .bar.other {{ fill: {} }}\n\
         .tick {{ stroke: {quiet} }}\n\
         .chain, .break {{ stroke: {ink}; stroke-width: 1.5 }}\n",
        on.ground,
        on.plain,
        on.bar,
        on.other_bar,
        ink = on.ink,
        quiet = on.quiet,
    );
    for step in 0..STEPS {
        let at = step as f64 / (STEPS - 1) as f64;
        let _ = writeln!(rules, ".v{step} {{ fill: {} }}", between(&on.scale, at));
    }
    let [start, ..] = on.circle;
    let around: Vec<Rgb> = on.circle.into_iter().chain([start]).collect();
    for step in 0..STEPS {
        let at = (step as f64 + 0.5) / STEPS as f64;
        let _ = writeln!(rules, ".a{step} {{ fill: {} }}", between(&around, at));
    }
    rules
}

/// The colour at `at`, from 0 to 1, of a scale.
fn between(scale: &[Rgb], at: f64) -> String {
    let place = at * (scale.len() - 1) as f64;
    let from = (place as usize).min(scale.len() - 2);
    let share = place - from as f64;
    let [red, green, blue] = std::array::from_fn(|channel| {
        let (a, b) = (scale[from][channel], scale[from + 1][channel]);
        (a + (b - a) * share).round() as u8
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}
