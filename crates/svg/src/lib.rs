//! SVG drawings: elements that are styled by classes, with one palette for light and dark grounds.
//!
//! A class of an [`Ink`] sets the colour. Text, rectangles, paths, polygons and circles are filled
//! with it, lines are stroked with it.

use std::fmt::{self, Display, Write};

/// A colour of the palette. The chromatic ones are those of Okabe and Ito (2008), which readers
/// with colour vision deficiencies can tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Text.
    Text,
    /// Text of less weight, such as labels of axes.
    Quiet,
    /// Lines of a grid.
    Grid,
    /// The ground of a row.
    Track,
    /// The ground of the drawing.
    Ground,
    /// Grey.
    Grey,
    /// Blue.
    Blue,
    /// Vermilion.
    Vermilion,
    /// Green.
    Green,
    /// Pink.
    Pink,
    /// Orange.
    Orange,
    /// Sky.
    Sky,
    /// Yellow.
    Yellow,
    /// Navy.
    Navy,
    /// Text on a coloured bar: dark on either ground.
    OnBar,
}

impl Ink {
    /// Each ink with its class, and its colours on a light and on a dark ground.
    const ALL: [(Ink, &str, &str, &str); 15] = [
        (Ink::Text, "text", "#1b2430", "#e4e9ef"),
        (Ink::Quiet, "quiet", "#5a6570", "#9aa6b3"),
        (Ink::Grid, "grid", "#dfe4e9", "#2b353f"),
        (Ink::Track, "track", "#f0f3f6", "#1d252d"),
        (Ink::Ground, "ground", "#ffffff", "#12171d"),
        (Ink::Grey, "grey", "#d5dce4", "#3a4653"),
        (Ink::Blue, "blue", "#0072b2", "#3f9fdc"),
        (Ink::Vermilion, "vermilion", "#d55e00", "#f0803c"),
        (Ink::Green, "green", "#009e73", "#1fb98e"),
        (Ink::Pink, "pink", "#cc79a7", "#dd94bd"),
        (Ink::Orange, "orange", "#e69f00", "#f0b429"),
        (Ink::Sky, "sky", "#56b4e9", "#8ed0f7"),
        (Ink::Yellow, "yellow", "#d6c72a", "#f0e442"),
        (Ink::Navy, "navy", "#004c78", "#b9d9f2"),
        (Ink::OnBar, "on-bar", "#1b2430", "#1b2430"),
    ];
}

/// Writes the class.
impl Display for Ink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ink = Ink::ALL.iter().find(|(ink, ..)| ink == self);
        f.write_str(ink.map_or("", |(_, class, ..)| class))
    }
}

/// The classes that do not depend on the ground.
const SHAPES: &str = "\
text { fill: currentColor; font: 13px system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif }
rect, path, polygon, circle { fill: currentColor }
polyline { fill: none; stroke: currentColor; stroke-linejoin: round }
.end { text-anchor: end }
.middle { text-anchor: middle }
.strong { font-weight: 700 }
.thick { stroke-width: 2.2 }
.dashed { stroke-width: 1.8; stroke-dasharray: 6 4 }
.shade { fill-opacity: 0.16 }
";

/// The style sheet of the classes: of light grounds, and of dark grounds where the reader prefers
/// those.
pub fn sheet() -> String {
    let rule = |class: &str, colour: &str| format!(".{class} {{ color: {colour} }}\n");
    let light = Ink::ALL.map(|(_, class, light, _)| rule(class, light));
    let dark = Ink::ALL.map(|(_, class, _, dark)| rule(class, dark));
    SHAPES.to_owned() + &light.concat() + &on_dark(&dark.concat())
}

/// Rules of a sheet, for readers who prefer a dark ground alone.
pub fn on_dark(rules: &str) -> String {
    format!("@media (prefers-color-scheme: dark) {{\n{rules}}}\n")
}

/// The rules of a sheet, one on each line, for what is within elements of the class `scope`.
fn scoped(scope: &str, sheet: &str) -> String {
    let mut rules = String::with_capacity(2 * sheet.len());
    for line in sheet.lines() {
        match line.split_once(" {") {
            Some((selectors, rest)) if !line.starts_with('@') => {
                let selectors = selectors.split(", ");
                let selectors: Vec<String> =
                    selectors.map(|one| format!(".{scope} {one}")).collect();
                rules += &format!("{} {{{rest}\n", selectors.join(", "));
            }
            _ => rules += &format!("{line}\n"),
        }
    }
    rules
}

/// A point or a size in pixels, from the left and the top.
pub type Xy = (f64, f64);

/// The elements of a drawing, in the order in which they are painted.
#[derive(Default)]
pub struct Svg(String);

impl Svg {
    /// Writes elements. Writing to a string cannot fail.
    fn write(&mut self, element: fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    /// A text whose baseline begins at `start`. With the class `end` it ends there, with `middle` its middle is
    /// there.
    pub fn text(&mut self, class: impl Display, start: Xy, text: &str) {
        let (x, y, text) = (Px(start.0), Px(start.1), escape(text));
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Letters of a text, each at an x of its own.
    pub fn letters(&mut self, class: impl Display, xs: &[f64], y: f64, text: &str) {
        let xs: Vec<String> = xs.iter().map(|x| Px(*x).to_string()).collect();
        let (xs, y, text) = (xs.join(" "), Px(y), escape(text));
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{xs}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// A rectangle with its upper left corner at `corner`.
    pub fn rect(&mut self, class: impl Display, corner: Xy, size: Xy) {
        self.write(format_args!("{}/>", OpenRect(class, corner, size)));
    }

    /// A rectangle that shows `title` to a reader who points at it.
    pub fn titled_rect(&mut self, class: impl Display, corner: Xy, size: Xy, title: &str) {
        let (rect, title) = (OpenRect(class, corner, size), escape(title));
        self.write(format_args!("{rect}><title>{title}</title></rect>"));
    }

    /// A line through `points`.
    pub fn line(&mut self, class: impl Display, points: &[Xy]) {
        let points = PointList(points);
        self.write(format_args!(
            "<polyline class=\"{class}\" points=\"{points}\"/>"
        ));
    }

    /// An area with these corners.
    pub fn polygon(&mut self, class: impl Display, corners: &[Xy]) {
        let corners = PointList(corners);
        self.write(format_args!(
            "<polygon class=\"{class}\" points=\"{corners}\"/>"
        ));
    }

    /// A circle.
    pub fn circle(&mut self, class: impl Display, centre: Xy, radius: f64) {
        let (x, y) = (Px(centre.0), Px(centre.1));
        self.write(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>"
        ));
    }

    /// A filled path of SVG's path commands.
    pub fn path(&mut self, class: impl Display, commands: &str) {
        self.write(format_args!("<path class=\"{class}\" d=\"{commands}\"/>"));
    }

    /// The drawing as a file of its own: on a ground, with a title, the palette and more rules.
    /// `definitions` are patterns and the like. The rules apply within elements of the class `scope`
    /// alone, so that an HTML page may contain the drawing and others.
    pub fn file(
        self,
        size: Xy,
        scope: &str,
        title: &str,
        rules: &str,
        definitions: &str,
    ) -> String {
        let (width, height) = (Px(size.0), Px(size.1));
        let mut ground = Svg::default();
        ground.rect(Ink::Ground, (0.0, 0.0), size);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{scope}\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\">\n<title>{}</title>\n<style>\n{}</style>\n\
             {definitions}{}{}</svg>\n",
            escape(title),
            scoped(scope, &(sheet() + rules)),
            ground.0,
            self.0
        )
    }

    /// The drawing as an element of an HTML page that has the [`sheet`]. Screen readers read
    /// `label`, and skip a drawing without one.
    pub fn element(self, size: Xy, label: Option<&str>) -> String {
        let role = match label {
            Some(label) => format!("role=\"img\" aria-label=\"{}\"", escape(label)),
            None => "aria-hidden=\"true\"".to_owned(),
        };
        let (width, height) = (Px(size.0), Px(size.1));
        format!(
            "<svg viewBox=\"0 0 {width} {height}\" {role}>\n{}</svg>\n",
            self.0
        )
    }
}

/// A number of pixels, rounded to hundredths.
pub struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", (self.0 * 100.0).round() / 100.0)
    }
}

struct PointList<'a>(&'a [Xy]);

impl Display for PointList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, (x, y))| {
            let gap = if index == 0 { "" } else { " " };
            write!(f, "{gap}{},{}", Px(*x), Px(*y))
        })
    }
}

/// A rectangle whose tag is not closed yet.
struct OpenRect<C>(C, Xy, Xy);

impl<C: Display> Display for OpenRect<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OpenRect(class, corner, size) = self;
        write!(
            f,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
            Px(corner.0),
            Px(corner.1),
            Px(size.0),
            Px(size.1)
        )
    }
}

/// A text as SVG and HTML write it. Control characters, which XML cannot write, become spaces.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The distance between the ticks of an axis: 1, 2 or 5 times a power of ten, so that `length` has
/// at most `parts` of them, both above 0.
pub fn tick_step(length: f64, parts: f64) -> f64 {
    let least = length / parts;
    let power = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power);
    // Powers of ten are rounded, so a step that is equal may come out a little smaller.
    let fits = steps.iter().find(|step| **step >= least * 0.999);
    *fits.unwrap_or(&steps[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut svg = Svg::default();
        svg.text("quiet", (1.0, 2.006), "<b> & \"c\"\u{1}");
        assert_eq!(
            svg.element((10.0, 5.5), Some("a \"chart\"")),
            "<svg viewBox=\"0 0 10 5.5\" role=\"img\" aria-label=\"a &quot;chart&quot;\">\n\
             <text class=\"quiet\" x=\"1\" y=\"2.01\">&lt;b&gt; &amp; &quot;c&quot; </text>\n</svg>\n"
        );
    }

    #[test]
    fn the_rules_of_a_file_apply_within_it_alone() {
        let file = Svg::default().file((9.0, 9.0), "drawn", "", ".bar { color: red }\n", "");
        assert!(file.contains(" class=\"drawn\" "));
        assert!(file.contains(".drawn rect, .drawn path, .drawn polygon, .drawn circle { fill"));
        let (_, sheet) = file.split_once("<style>\n").unwrap();
        let (sheet, _) = sheet.split_once("</style>").unwrap();
        for rule in sheet.lines().filter(|line| !line.starts_with(['@', '}'])) {
            assert!(rule.starts_with(".drawn "), "{rule}");
        }
    }

    #[test]
    fn ticks_are_round_and_few() {
        let steps = [316.0, 20.2, 1.0, 9.9].map(|length| tick_step(length, 10.0));
        assert_eq!(steps, [50.0, 5.0, 0.1, 1.0]);
    }
}
