//! Shared by the charts: the screen widths that they are drawn for, and texts that fit.

use tapeloop_svg::{Ink, Svg, Xy};

/// The average width of a letter in a chart, in pixels, in the widest of the fonts.
pub(super) const LETTER: f64 = 7.4;

/// How far a text's baseline is below its middle, in pixels.
const BASELINE: f64 = 4.4;

/// The screen that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenWidth {
    Wide,
    Narrow,
}

impl ScreenWidth {
    pub(super) fn width(self) -> f64 {
        self.choose(900.0, 360.0)
    }

    pub(super) fn choose<T>(self, wide: T, narrow: T) -> T {
        match self {
            ScreenWidth::Wide => wide,
            ScreenWidth::Narrow => narrow,
        }
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy)]
pub(super) enum TextSide {
    Right,
    Left,
    Middle,
}

/// Writes a text whose middle is as high as `point`.
pub(super) fn text(svg: &mut Svg, ink: Ink, point: Xy, stand: TextSide, text: &str) {
    let point = (point.0, point.1 + BASELINE);
    match stand {
        TextSide::Right => svg.text(ink, point, text),
        TextSide::Left => svg.text(format_args!("{ink} end"), point, text),
        TextSide::Middle => svg.text(format_args!("{ink} middle"), point, text),
    }
}

/// A rectangle between two corners.
pub(super) fn bar(svg: &mut Svg, ink: Ink, from: Xy, to: Xy) {
    svg.rect(ink, from, (to.0 - from.0, to.1 - from.1));
}

/// The text, cut to at most `letters` characters. A text that is cut ends in an ellipsis.
pub(super) fn cut(text: &str, letters: usize) -> String {
    match text.chars().count() {
        count if count <= letters => text.to_owned(),
        _ => {
            let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
            format!("{}\u{2026}", kept.trim_end_matches([' ', ',']))
        }
    }
}

/// The text as one or two lines of at most `letters` characters, broken at a space.
pub(super) fn wrap(text: &str, letters: usize) -> Vec<String> {
    if text.chars().count() <= letters {
        return vec![text.to_owned()];
    }
    let mut first = String::new();
    let mut rest = text;
    while let Some((word, after)) = rest.split_once(' ') {
        if first.chars().count() + word.chars().count() > letters {
            break;
        }
        first.push_str(word);
        first.push(' ');
        rest = after;
    }
    match first.trim_end() {
        "" => vec![cut(text, letters)],
        first => vec![first.to_owned(), cut(rest, letters)],
    }
}
