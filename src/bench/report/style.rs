//! Colours and the style sheet. The colours of charts are those of Okabe and Ito, which
//! stay apart for colour-blind eyes; shapes and dashes say the same once more.

use std::fmt::Write;

/// A colour of a chart. A chart is drawn in the light ones; the style sheet replaces
/// them where the reader prefers a dark ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Text,
    Quiet,
    Grid,
    Track,
    Blue,
    Vermilion,
    Green,
    Pink,
    Orange,
    Sky,
    Navy,
    /// On a bar, so the same on either ground.
    Number,
}

impl Ink {
    const ALL: [Ink; 12] = [
        Ink::Text,
        Ink::Quiet,
        Ink::Grid,
        Ink::Track,
        Ink::Blue,
        Ink::Vermilion,
        Ink::Green,
        Ink::Pink,
        Ink::Orange,
        Ink::Sky,
        Ink::Navy,
        Ink::Number,
    ];

    pub(super) fn light(self) -> (u8, u8, u8) {
        match self {
            Ink::Text => (0x1b, 0x24, 0x30),
            Ink::Quiet => (0x5a, 0x65, 0x70),
            Ink::Grid => (0xdf, 0xe4, 0xe9),
            Ink::Track => (0xf0, 0xf3, 0xf6),
            Ink::Blue => (0x00, 0x72, 0xb2),
            Ink::Vermilion => (0xd5, 0x5e, 0x00),
            Ink::Green => (0x00, 0x9e, 0x73),
            Ink::Pink => (0xcc, 0x79, 0xa7),
            Ink::Orange => (0xe6, 0x9f, 0x00),
            Ink::Sky => (0x56, 0xb4, 0xe9),
            Ink::Navy => (0x00, 0x4c, 0x78),
            Ink::Number => (0x1b, 0x24, 0x31),
        }
    }

    fn dark(self) -> &'static str {
        match self {
            Ink::Text => "#e4e9ef",
            Ink::Quiet => "#9aa6b3",
            Ink::Grid => "#2b353f",
            Ink::Track => "#1d252d",
            Ink::Blue => "#3f9fdc",
            Ink::Vermilion => "#f0803c",
            Ink::Green => "#1fb98e",
            Ink::Pink => "#dd94bd",
            Ink::Orange => "#f0b429",
            Ink::Sky => "#8ed0f7",
            Ink::Navy => "#b9d9f2",
            Ink::Number => "#1b2431",
        }
    }
}

/// What marks the points of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
    /// Of bars, not of points.
    Block,
    None,
}

/// How a line and its points look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) ink: Ink,
    pub(super) shape: Shape,
    pub(super) dashed: bool,
}

impl Look {
    const fn new(ink: Ink, shape: Shape, dashed: bool) -> Self {
        Look { ink, shape, dashed }
    }

    /// What a machine can do.
    pub(super) const LIMIT: Look = Look::new(Ink::Quiet, Shape::None, true);

    /// Another program where all of them are named.
    pub(super) const OTHER: Look = Look::new(Ink::Vermilion, Shape::Diamond, false);

    /// Of the engine's own figures: a mode has its look on each chart, unless it is
    /// `used` there.
    pub(super) fn own(mode: &str, used: &[Look]) -> Self {
        const OTHERS: [Look; 6] = [
            Look::new(Ink::Sky, Shape::Diamond, false),
            Look::new(Ink::Orange, Shape::Triangle, false),
            Look::new(Ink::Pink, Shape::Square, false),
            Look::new(Ink::Navy, Shape::Cross, false),
            Look::new(Ink::Quiet, Shape::Disc, false),
            Look::new(Ink::Text, Shape::Diamond, false),
        ];
        let look = match mode {
            "stream" => Look::new(Ink::Vermilion, Shape::Square, false),
            "auto" => Look::new(Ink::Green, Shape::Triangle, false),
            _ => Look::new(Ink::Blue, Shape::Disc, false),
        };
        let free = [look]
            .into_iter()
            .chain(OTHERS)
            .find(|look| !used.contains(look));
        free.unwrap_or(OTHERS[used.len() % OTHERS.len()])
    }

    /// Of lines that are alike in kind.
    pub(super) fn nth(place: usize) -> Self {
        const LOOKS: [Look; 6] = [
            Look::new(Ink::Blue, Shape::Disc, false),
            Look::new(Ink::Sky, Shape::Diamond, false),
            Look::new(Ink::Green, Shape::Triangle, false),
            Look::new(Ink::Orange, Shape::Square, false),
            Look::new(Ink::Vermilion, Shape::Cross, false),
            Look::new(Ink::Pink, Shape::Disc, false),
        ];
        LOOKS[place % LOOKS.len()]
    }

    /// Of another program.
    pub(super) fn reference(place: usize) -> Self {
        const LOOKS: [Look; 5] = [
            Look::new(Ink::Pink, Shape::Diamond, true),
            Look::new(Ink::Orange, Shape::Cross, true),
            Look::new(Ink::Sky, Shape::Triangle, true),
            Look::new(Ink::Text, Shape::Square, true),
            Look::new(Ink::Green, Shape::Disc, true),
        ];
        LOOKS[place % LOOKS.len()]
    }

    /// Of a bar.
    pub(super) const fn solid(ink: Ink) -> Self {
        Look::new(ink, Shape::Block, false)
    }
}

/// The whole sheet.
pub(super) fn sheet() -> String {
    let mut dark = String::new();
    for ink in Ink::ALL {
        let (r, g, b) = ink.light();
        let light = format!("#{r:02X}{g:02X}{b:02X}");
        let replaced = ink.dark();
        // Writing to a string cannot fail.
        let _ = writeln!(
            dark,
            "svg [fill=\"{light}\"] {{ fill: {replaced} }} \
             svg [stroke=\"{light}\"] {{ stroke: {replaced} }}"
        );
    }
    format!("{PAGE}@media (prefers-color-scheme: dark) {{\n{DARK}{dark}}}\n")
}

const PAGE: &str = "\
:root { color-scheme: light dark; --ink: #1b2430; --quiet: #5a6570; --ground: #ffffff;
  --panel: #f6f8fa; --edge: #d9dfe5; --link: #0064a0;
  --red: #a31515; --red-ground: #fdeeee; --red-edge: #e2a3a3;
  --amber: #7a4b00; --amber-ground: #fff6e3; --amber-edge: #e3c27e }
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif }
main { max-width: 980px; margin: 0 auto; padding: 28px 20px 64px }
.kicker { color: var(--quiet); font-size: 14px; margin-bottom: 4px; margin-top: 0 }
h1 { font-size: 28px; line-height: 1.25; margin-top: 0; margin-bottom: 16px; text-wrap: balance }
h2 { font-size: 21px; line-height: 1.3; margin-top: 48px; margin-bottom: 8px }
h3 { font-size: 17px; line-height: 1.35; margin: 0 }
ul.says { margin-top: 0; margin-bottom: 24px; padding-left: 20px }
ul.says li { margin: 4px 0 }
.box { border: 1px solid var(--edge); background: var(--panel); border-radius: 8px;
  padding: 14px 18px; margin-top: 16px; margin-bottom: 16px }
.box h2 { font-size: 17px; margin: 0 0 6px }
.box ul { margin: 0; padding-left: 20px }
.refused { background: var(--red-ground); border-color: var(--red-edge) }
.refused h2 { color: var(--red) }
.flagged { background: var(--amber-ground); border-color: var(--amber-edge) }
.flagged h2 { color: var(--amber) }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr)); gap: 10px 24px;
  margin: 0 }
dl div { min-width: 0 }
dt { color: var(--quiet); font-size: 13px }
dd { margin: 0; overflow-wrap: anywhere }
details { margin-top: 12px }
summary { cursor: pointer; color: var(--link) }
pre { overflow-x: auto; margin: 8px 0 0; font: 13px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace }
figure { margin: 32px 0 0 }
figcaption { color: var(--quiet); max-width: 75ch; margin: 2px 0 8px }
svg { display: block; width: 100%; height: auto; overflow: visible }
svg text { font-family: system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 0 6px; padding: 0;
  list-style: none; font-size: 14px }
.legend li { display: flex; align-items: center; gap: 6px }
.narrow, .legend.narrow { display: none }
.legend svg { width: 28px; height: 14px; flex: none }
.scroll { overflow-x: auto; border: 1px solid var(--edge); border-radius: 8px; margin: 8px 0 20px }
table { border-collapse: separate; border-spacing: 0; font-size: 13.5px; line-height: 1.35; width: 100%;
  font-variant-numeric: tabular-nums }
th, td { padding: 6px 12px; text-align: right; white-space: nowrap; vertical-align: top }
th { font-weight: 600; color: var(--quiet); border-bottom: 1px solid var(--edge); vertical-align: bottom }
th:first-child, td:first-child, .words { text-align: left }
td:first-child { font-weight: 600 }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--ground) }
tr + tr td { border-top: 1px solid var(--edge) }
td small, th small { display: block; color: var(--quiet); font-size: 12px; font-weight: 400 }
tr.refused-point td:nth-child(n) { color: var(--red); background: var(--red-ground) }
@media (max-width: 819px) {
  main { padding: 20px 14px 48px }
  h1 { font-size: 23px }
  dl { grid-template-columns: repeat(auto-fill, minmax(135px, 1fr)); gap: 10px 16px }
  .wide-drawing { display: none }
  .narrow { display: block; max-width: 520px; margin: 0 auto }
  .legend.narrow { display: flex; max-width: none; margin: 0 0 6px }
}
";

const DARK: &str = "\
:root { --ink: #e4e9ef; --quiet: #9aa6b3; --ground: #12171d; --panel: #181f27; --edge: #2e3944;
  --link: #6cb6ee; --red: #ff9c8c; --red-ground: #2c1719; --red-edge: #6e3636;
  --amber: #f2c063; --amber-ground: #2a2112; --amber-edge: #665020 }
";
