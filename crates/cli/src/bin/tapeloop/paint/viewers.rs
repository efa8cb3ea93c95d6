//! What colours a painted file in molecule viewers.

use super::target::STDOUT;
use std::path::Path;
use tapeloop_cli::strip::short;
use tapeloop_files::shown;

/// The commands that open a file and colour it by B factors from `min` to `max`, from blue over white
/// to red. B factors outside of the range, as those of atoms without a value, get the colour of its
/// nearer end.
pub(super) fn commands(path: &Path, (min, max): (f64, f64)) -> String {
    let (min, max) = (short(min), short(max));
    let colour = [
        (
            "PyMOL",
            "load",
            format!("spectrum b, blue_white_red, minimum={min}, maximum={max}"),
        ),
        (
            "ChimeraX",
            "open",
            format!("color byattribute bfactor palette blue-white-red range {min},{max}"),
        ),
        (
            "Mol*",
            "open",
            format!(
                "Components > ... > Set Coloring > Atom Property > Uncertainty/Disorder; then \
                 Representation > Color Theme > Domain: {min} to {max}"
            ),
        ),
    ];
    let mut lines = "to colour by these B factors:".to_owned();
    for (viewer, verb, colour) in colour {
        let mut start = viewer;
        if path != Path::new(STDOUT) {
            lines += &format!("\n  {start:<8}  {verb} {}", quoted(path));
            start = "";
        }
        lines += &format!("\n  {start:<8}  {colour}");
    }
    lines
}

/// The whole path, since viewers start in folders of their own, in quotes if it has other characters
/// than those that need none.
fn quoted(path: &Path) -> String {
    let text = shown(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let is_plain = |c: char| c.is_alphanumeric() || "/\\:._-+".contains(c);
    if text.chars().all(is_plain) {
        text
    } else if text.contains('"') {
        format!("'{text}'")
    } else {
        format!("\"{text}\"")
    }
}
