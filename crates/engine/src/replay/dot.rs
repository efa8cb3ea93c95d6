//! Draws what a bucket replays, in Graphviz's DOT language.

use super::ready_batch::ReadyBatch;
use super::{Bindings, Lowered, hazards};
use crate::backend::Op;
use crate::record::{BufferId, Command, Recording};

/// One operation in the drawing.
pub(super) struct DotNode<'a> {
    pub(super) command: usize,
    pub(super) op: &'a Op,
}

/// An edge, by the indices of its nodes.
pub(super) type Edge = (usize, usize);

/// What a drawing is of.
pub(super) struct Title<'a> {
    pub(super) bucket: usize,
    /// The largest batch of the bucket.
    pub(super) size: &'a str,
    /// What replays it: `explicit graph`.
    pub(super) way: &'a str,
}

/// Draws a ready batch. `held` are the operations of its graph as the device holds them, empty
/// without a graph; `is_line` says whether each operation runs after the one before it.
pub(super) fn draw(
    ready: &ReadyBatch,
    held: &[Op],
    bindings: &Bindings,
    title: &Title<'_>,
    is_line: bool,
) -> String {
    let nodes = nodes(ready, held);
    let edges = edges(&nodes, bindings.recording(), is_line);
    let Title { bucket, size, way } = title;
    let title = format!(
        "bucket {bucket} of {size}: {way}, {} operations",
        nodes.len()
    );
    let mut text = String::from("digraph replay {\n");
    let head = format!(
        "  label={}; labelloc=t; fontname=\"Helvetica\"; rankdir=TB;\n  node [fontname=\
         \"Helvetica\", fontsize=11];\n  edge [fontname=\
         \"Helvetica\", fontsize=9];\n",
        quoted(&title)
    );
    text.push_str(&head);
    for (index, node) in nodes.iter().enumerate() {
        let (label, shape, color) = node_style(node, bindings.recording());
        let label = quoted(&label);
        let line = format!(
            "  n{index} [label={label}, shape={shape}, style=\"filled\", fillcolor=\"{color}\"];\n"
        );
        text.push_str(&line);
    }
    for (from, to) in edges {
        let shared = shared(bindings, nodes[from].command, nodes[to].command);
        let line = if shared.is_empty() {
            format!("  n{from} -> n{to} [style=dotted];\n")
        } else {
            format!("  n{from} -> n{to} [label={}];\n", quoted(&shared))
        };
        text.push_str(&line);
    }
    text.push_str("}\n");
    text
}

/// The operations of a ready batch, as the device holds them where it has a graph.
pub(super) fn nodes<'a>(ready: &'a ReadyBatch, held: &'a [Op]) -> Vec<DotNode<'a>> {
    let commands = ready.batch.commands.iter().enumerate();
    let node = |(index, lowered): (usize, &'a Lowered)| DotNode {
        command: lowered.command(),
        op: held.get(index).unwrap_or(lowered.op()),
    };
    commands.map(node).collect()
}

/// The edges of an explicit graph; with `is_line` each operation comes after the one before it.
pub(super) fn edges(nodes: &[DotNode<'_>], recording: &Recording, is_line: bool) -> Vec<Edge> {
    if is_line {
        return (1..nodes.len()).map(|to| (to - 1, to)).collect();
    }
    let commands: Vec<usize> = nodes.iter().map(|node| node.command).collect();
    let after = hazards(recording, &commands).into_iter().enumerate();
    let edges = |(later, after): (usize, Vec<usize>)| {
        let earlier = after.into_iter();
        earlier.map(move |earlier| (earlier, later))
    };
    after.flat_map(edges).collect()
}

/// A node's label, shape and fill colour. The colours differ for colour-blind readers too.
fn node_style(node: &DotNode<'_>, recording: &Recording) -> (String, &'static str, &'static str) {
    let name = |id: &BufferId| &recording.buffers()[id.index()].name;
    match (&recording.commands()[node.command], node.op) {
        (Command::Upload(id), Op::Upload { bytes, .. }) => {
            let label = format!("upload {}\n{}", name(id), size_text(*bytes));
            (label, "invtrapezium", "#cfe8f7")
        }
        (Command::Download(id), Op::Download { bytes, .. }) => {
            let label = format!("download {}\n{}", name(id), size_text(*bytes));
            (label, "trapezium", "#fbe3c0")
        }
        (Command::Memset { buffer, .. }, Op::Memset { byte, bytes, .. }) => {
            let size = size_text(*bytes);
            let label = format!("memset {}\n{byte:#04x}, {size}", name(buffer));
            (label, "ellipse", "#eeeeee")
        }
        (
            Command::Launch(launch),
            Op::Launch {
                grid,
                block,
                shared_bytes,
                ..
            },
        ) => {
            let [grid, block] = [grid, block].map(|[x, y, z]| format!("{x} x {y} x {z}"));
            let mut label = format!("{}\n{grid} blocks of {block}", launch.kernel.name);
            if *shared_bytes > 0 {
                label += &format!("\n{} shared", size_text(*shared_bytes as usize));
            }
            for attribute in launch.kernel.attributes.names() {
                label += &format!("\n{attribute}");
            }
            (label, "box", "#d5ecd4")
        }
        // Unreachable: the audit has compared the kinds.
        (_, other) => (format!("{other:?}"), "octagon", "#ffffff"),
    }
}

/// The buffers that order one command after another, with their sizes.
fn shared(bindings: &Bindings, from: usize, to: usize) -> String {
    let recording = bindings.recording();
    let commands = recording.commands();
    let mut first = Vec::new();
    commands[from].visit_buffers(|id, _, writes| first.push((id, writes)));
    let mut lines: Vec<String> = Vec::new();
    commands[to].visit_buffers(|id, _, writes| {
        let clash = |&(other, wrote): &(BufferId, bool)| other == id && (wrote || writes);
        if first.iter().any(clash) {
            let decl = &recording.buffers()[id.index()];
            lines.push(format!("{} {}", decl.name, size_text(decl.size_bytes())));
        }
    });
    let (before, after) = (
        commands[from].writes_declared(),
        commands[to].writes_declared(),
    );
    if let (Some(wrote), Some(writes)) = (before, after)
        && (wrote || writes)
    {
        lines.push("declared memory".to_owned());
    }
    lines.join("\n")
}

pub(super) fn size_text(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// A quoted string in the DOT language.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\\' | '"' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            other if other.is_control() => quoted.push('?'),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_whatever_is_in_them() {
        assert_eq!(quoted("a \"b\"\\\n\t"), r#""a \"b\"\\\n?""#);
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [12, 2048, 3 << 20].map(size_text);
        assert_eq!(sizes, ["12 B", "2.0 KiB", "3.0 MiB"]);
    }
}
