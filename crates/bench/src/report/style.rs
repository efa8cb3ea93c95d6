//! How lines look, and the page's style sheet. Markers and dashes distinguish lines too, for readers
//! who cannot tell the colours apart.

use tapeloop_svg::{Ink, Svg, Xy};

/// The marker of a line's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Cross,
    /// The look is that of a bar, which has no points.
    Block,
    None,
}

/// The look of a line and its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) ink: Ink,
    pub(super) marker: Marker,
    pub(super) is_dashed: bool,
}

impl Look {
    const fn new(ink: Ink, marker: Marker, is_dashed: bool) -> Self {
        Look {
            ink,
            marker,
            is_dashed,
        }
    }

    /// The look of a limit of the machine.
    pub(super) const LIMIT: Look = Look::new(Ink::Quiet, Marker::None, true);

    /// The look of another program in a chart of rows, where a label names the program.
    pub(super) const OTHER: Look = Look::new(Ink::Vermilion, Marker::Diamond, false);

    /// The look of the engine in a mode. It is the same in every chart, unless it is among the looks
    /// that are `used` there: then it is the first of others that is not.
    pub(super) fn for_mode(mode: &str, used: &[Look]) -> Self {
        const OTHERS: [Look; 6] = [
            Look::new(Ink::Sky, Marker::Diamond, false),
            Look::new(Ink::Orange, Marker::Triangle, false),
            Look::new(Ink::Pink, Marker::Square, false),
            Look::new(Ink::Navy, Marker::Cross, false),
            Look::new(Ink::Quiet, Marker::Disc, false),
            Look::new(Ink::Text, Marker::Diamond, false),
        ];
        let look = match mode {
            "stream" => Look::new(Ink::Vermilion, Marker::Square, false),
            _ => Look::new(Ink::Blue, Marker::Disc, false),
        };
        let free = [look]
            .into_iter()
            .chain(OTHERS)
            .find(|look| !used.contains(look));
        free.unwrap_or(OTHERS[used.len() % OTHERS.len()])
    }

    /// The look of the line with index `place` among lines of one kind; from the seventh on they repeat.
    pub(super) fn nth(place: usize) -> Self {
        const LOOKS: [Look; 6] = [
            Look::new(Ink::Blue, Marker::Disc, false),
            Look::new(Ink::Sky, Marker::Diamond, false),
            Look::new(Ink::Green, Marker::Triangle, false),
            Look::new(Ink::Orange, Marker::Square, false),
            Look::new(Ink::Vermilion, Marker::Cross, false),
            Look::new(Ink::Pink, Marker::Disc, false),
        ];
        LOOKS[place % LOOKS.len()]
    }

    /// The look of the line of another program, with index `place` among the programs; from the sixth on they
    /// repeat.
    pub(super) fn reference(place: usize) -> Self {
        const LOOKS: [Look; 5] = [
            Look::new(Ink::Pink, Marker::Diamond, true),
            Look::new(Ink::Orange, Marker::Cross, true),
            Look::new(Ink::Sky, Marker::Triangle, true),
            Look::new(Ink::Text, Marker::Square, true),
            Look::new(Ink::Green, Marker::Disc, true),
        ];
        LOOKS[place % LOOKS.len()]
    }

    /// The look of a bar.
    pub(super) const fn solid(ink: Ink) -> Self {
        Look::new(ink, Marker::Block, false)
    }

    /// Draws a line through `points`.
    pub(super) fn line(self, svg: &mut Svg, points: &[Xy]) {
        let stroke = if self.is_dashed { "dashed" } else { "thick" };
        svg.line(format_args!("{} {stroke}", self.ink), points);
    }

    /// Draws the marker of a point.
    pub(super) fn draw_marker(self, svg: &mut Svg, (x, y): Xy) {
        // Shapes with corners reach a little further, so that all look equally large.
        const RADIUS: f64 = 4.0;
        let ink = self.ink;
        let around = |(dx, dy): (f64, f64)| (x + dx * RADIUS, y + dy * RADIUS);
        match self.marker {
            Marker::None | Marker::Block => {}
            Marker::Disc => svg.circle(ink, (x, y), RADIUS),
            Marker::Square => svg.polygon(
                ink,
                &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)].map(around),
            ),
            Marker::Triangle => {
                svg.polygon(ink, &[(0.0, -1.2), (1.15, 0.85), (-1.15, 0.85)].map(around));
            }
            Marker::Diamond => svg.polygon(
                ink,
                &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)].map(around),
            ),
            Marker::Cross => {
                for line in [[(-1.0, -1.0), (1.0, 1.0)], [(-1.0, 1.0), (1.0, -1.0)]] {
                    svg.line(format_args!("{ink} thick"), &line.map(around));
                }
            }
        }
    }
}

/// The page's style sheet.
pub(super) fn sheet() -> String {
    tapeloop_svg::sheet() + PAGE + &tapeloop_svg::on_dark(DARK)
}

const PAGE: &str = "\
:root { color-scheme: light dark; --ink: #1b2430; --quiet: #5a6570; --ground: #ffffff;
  --panel: #f6f8fa; --edge: #d9dfe5; --link: #0064a0; --shade: #00000038;
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
.box h2, .box h3 { font-size: 17px; margin: 0 0 6px }
.box ul { margin: 0; padding-left: 20px }
.refused { background: var(--red-ground); border-color: var(--red-edge) }
.refused h2 { color: var(--red) }
.trust { margin: 0 0 14px; color: var(--quiet) }
.trust ul { margin: 8px 0 0; padding-left: 20px }
.trust summary { color: inherit }
.trust.flagged summary { color: var(--amber); font-weight: 600 }
nav { border-top: 1px solid var(--edge); border-bottom: 1px solid var(--edge); font-size: 14px }
nav ol { display: flex; flex-wrap: wrap; gap: 2px 20px; margin: 10px 0; padding: 0; list-style: none }
a { color: var(--link) }
nav a { text-decoration: none }
section { scroll-margin-top: 8px }
.more { margin-top: 28px }
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
svg text { font-size: 12.5px }
svg .on-bar { font-size: 11.5px }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 0 0 6px; padding: 0;
  list-style: none; font-size: 14px }
.legend li { display: flex; align-items: center; gap: 6px }
.narrow, .legend.narrow { display: none }
.legend svg { width: 28px; height: 14px; flex: none }
.cue { color: var(--quiet) }
.scroll { overflow-x: auto; border: 1px solid var(--edge); border-radius: 8px; margin: 8px 0 20px;
  background: linear-gradient(to right, transparent, var(--ground) 60%) 100% 0 / 60px 100% no-repeat local,
    linear-gradient(to right, transparent, var(--shade)) 100% 0 / 22px 100% no-repeat scroll }
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
  --link: #6cb6ee; --shade: #ffffff40; --red: #ff9c8c; --red-ground: #2c1719; --red-edge: #6e3636;
  --amber: #f2c063; --amber-ground: #2a2112; --amber-edge: #665020 }
";
