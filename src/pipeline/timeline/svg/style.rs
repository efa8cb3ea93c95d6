//! The style sheet of the drawing.

use crate::pipeline::timeline::SpanKind;

/// The class of a bar.
pub(super) fn class(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Stall => "stall",
        SpanKind::Fill => "fill",
        SpanKind::Submit => "submit",
        SpanKind::Flight => "flight",
        SpanKind::Unpack => "unpack",
        SpanKind::Upload => "upload",
        SpanKind::Kernels => "kernels",
        SpanKind::Download => "download",
    }
}

/// What a stall is filled with.
pub(super) const PATTERN: &str = "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" \
    patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
    <rect class=\"hatch-ground\" width=\"6\" height=\"6\"/>\
    <rect class=\"hatch\" width=\"2.5\" height=\"6\"/></pattern></defs>\n";

/// Light, and dark where the viewer prefers that. The colours are those of Okabe and
/// Ito, which stay apart for colour-blind eyes.
pub(super) const SHEET: &str = "\
text { font: 13px system-ui, 'Segoe UI', 'Helvetica Neue', 'DejaVu Sans', sans-serif }
.headline { font-size: 20px; font-weight: 700 }
.second { font-size: 15px }
.section { font-size: 14px; font-weight: 700 }
.label, .end { text-anchor: end }
.strong, .mark { font-weight: 700 }
.number, .tick-label { font-size: 11px; text-anchor: middle }
.stall { fill: url(#hatch) }
.upload { fill: #56b4e9 }
.kernels { fill: #e69f00 }
.download { fill: #009e73 }
.unpack { fill: #cc79a7 }
.number { fill: #1b2430 }
text { fill: #1b2430 }
.quiet, .tick-label { fill: #5a6570 }
.mark { fill: #c0392b }
.ground { fill: #ffffff }
.track { fill: #f3f5f7 }
.flight { fill: #d5dce4 }
.fill { fill: #0072b2 }
.submit { fill: #004c78 }
.hatch-ground { fill: #f3f5f7 }
.hatch { fill: #aab4bf }
.tick { stroke: #1b2430; stroke-opacity: 0.13 }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9ef }
.number { fill: #1b2430 }
.quiet, .tick-label { fill: #97a3b0 }
.mark { fill: #ff8a75 }
.ground { fill: #12171d }
.track { fill: #1b222a }
.flight { fill: #3a4653 }
.fill { fill: #2f8fd0 }
.submit { fill: #9ccbee }
.hatch-ground { fill: #1b222a }
.hatch { fill: #4d5a67 }
.tick { stroke: #e4e9ef; stroke-opacity: 0.16 }
}
";
