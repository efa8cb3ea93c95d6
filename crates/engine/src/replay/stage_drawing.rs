//! Draws what a bucket replays as an SVG file, stage by stage: uploads, memsets, kernels, downloads.

use super::Bindings;
use super::dot::{DotNode, Edge, Title, edges, nodes, size_text};
use super::ready_batch::ReadyBatch;
use crate::backend::Op;
use crate::record::{Command, Recording};
use tapeloop_svg::{Ink, Svg};

// Lengths in pixels. Those without a name are margins around the text.
const WIDTH: f64 = 960.0;
const MARGIN: f64 = 20.0;
/// Where the boxes of a row begin: right of its label.
const LEFT: f64 = 106.0;
const BOX_HEIGHT: f64 = 40.0;
const GAP: f64 = 8.0;
/// The width of a letter.
const LETTER: f64 = 7.4;

/// The stages, from the top: the name, the noun for one of its operations, and the colour.
const STAGES: [(&str, &str, Ink); 4] = [
    ("Upload", "copy", Ink::Sky),
    ("Clear", "memset", Ink::Grey),
    ("Kernels", "launch", Ink::Orange),
    ("Download", "copy", Ink::Green),
];
const KERNELS: usize = 2;

/// An operation as a box.
struct OperationBox {
    stage: usize,
    name: String,
    about: String,
    bytes: usize,
}

/// Draws a ready batch; the arguments are those of [`super::dot::draw`].
pub(super) fn draw(
    ready: &ReadyBatch,
    graph_ops: &[Op],
    bindings: &Bindings,
    title: &Title<'_>,
    is_line: bool,
) -> String {
    let recording = bindings.recording();
    let nodes = nodes(ready, graph_ops);
    let edges = edges(&nodes, recording, is_line);
    let shown: Vec<OperationBox> = nodes.iter().map(|node| shown(node, recording)).collect();
    let mut drawing = StageDrawing {
        svg: Svg::default(),
        x: LEFT,
        y: 96.0,
    };
    let size = format!("A batch has up to {}.", title.size);
    let title = format!("bucket {}: {}", title.bucket, title.way);
    drawing.svg.text("text strong", (MARGIN, 30.0), &title);
    drawing.svg.text(Ink::Quiet, (MARGIN, 50.0), &size);
    let order = if is_line {
        "Operations run in the order of their numbers and rows, each after the one before."
    } else {
        "A kernel starts when its inputs are there and the kernels that it names are done; kernels of a step can overlap."
    };
    drawing.svg.text(Ink::Quiet, (MARGIN, 70.0), order);
    for (stage, (name, noun, ink)) in STAGES.into_iter().enumerate() {
        let of_stage: Vec<usize> = (0..nodes.len())
            .filter(|&node| shown[node].stage == stage)
            .collect();
        if of_stage.is_empty() {
            continue;
        }
        let about = summarize_stage(noun, &of_stage, &shown);
        drawing.draw_heading(name, &about);
        match stage {
            KERNELS => draw_kernels(&mut drawing, &of_stage, &shown, &edges, is_line),
            _ => {
                for &node in &of_stage {
                    drawing.draw_box(ink, &shown[node].name, &shown[node].about);
                }
                drawing.end_row();
            }
        }
    }
    let size = (WIDTH, drawing.y + 4.0);
    drawing.svg.file(size, "tapeloop-stages", &title, "", "")
}

/// What an operation does, in the words of its box.
fn shown(node: &DotNode<'_>, recording: &Recording) -> OperationBox {
    let name = match &recording.commands()[node.command] {
        Command::Upload(id) | Command::Download(id) | Command::Memset { buffer: id, .. } => {
            &recording.buffers()[id.index()].name
        }
        Command::Launch(launch) => &launch.kernel.name,
    };
    let (stage, about, bytes) = match node.op {
        Op::Upload { bytes, .. } => (0, size_text(*bytes), *bytes),
        Op::Memset { bytes, .. } => (1, size_text(*bytes), *bytes),
        Op::Launch { grid, block, .. } => {
            let [blocks, threads] =
                [grid, block].map(|size| size.iter().map(|&n| u64::from(n)).product::<u64>());
            (KERNELS, format!("{blocks} x {threads}"), 0)
        }
        Op::Download { bytes, .. } => (3, size_text(*bytes), *bytes),
        Op::Copy { .. } | Op::Timestamp { .. } => (KERNELS, String::new(), 0),
    };
    OperationBox {
        stage,
        name: name.clone(),
        about,
        bytes,
    }
}

/// The number of a stage's operations, and their bytes: `15 copies, 7.1 MiB`.
fn summarize_stage(noun: &str, of_stage: &[usize], shown: &[OperationBox]) -> String {
    let plural = match (of_stage.len(), noun) {
        (1, noun) => format!("1 {noun}"),
        (count, "copy") => format!("{count} copies"),
        (count, "launch") => format!("{count} launches, blocks x threads"),
        (count, noun) => format!("{count} {noun}s"),
    };
    let bytes: usize = of_stage.iter().map(|&node| shown[node].bytes).sum();
    let bytes = match bytes {
        0 => String::new(),
        bytes => format!(", {}", size_text(bytes)),
    };
    format!("{plural}{bytes}")
}

/// Draws the kernels: numbered, and a row for each step, which is after those that its kernels
/// wait for.
fn draw_kernels(
    drawing: &mut StageDrawing,
    of_stage: &[usize],
    shown: &[OperationBox],
    edges: &[Edge],
    is_line: bool,
) {
    let number = |node: usize| of_stage.iter().position(|&kernel| kernel == node);
    let waits_for = |node: usize| -> Vec<usize> {
        let before = edges.iter().filter(|(_, to)| *to == node);
        let mut before: Vec<usize> = before.filter_map(|&(from, _)| number(from)).collect();
        before.sort_unstable();
        before.dedup();
        before
    };
    let mut steps: Vec<usize> = Vec::new();
    for &node in of_stage {
        let before = waits_for(node);
        // Kernels come in the order of their commands, so those before have their step.
        let last = before.iter().filter_map(|&kernel| steps.get(kernel)).max();
        steps.push(match (is_line, last) {
            (false, Some(last)) => last + 1,
            _ => 0,
        });
    }
    for step in 0..=steps.iter().copied().max().unwrap_or(0) {
        if !is_line {
            drawing.draw_label(&format!("step {}", step + 1));
        }
        for (place, &node) in of_stage.iter().enumerate() {
            if steps[place] != step {
                continue;
            }
            let OperationBox { name, about, .. } = &shown[node];
            let after: Vec<String> = waits_for(node)
                .iter()
                .map(|k| (k + 1).to_string())
                .collect();
            let after = match (is_line, after.is_empty()) {
                (true, _) | (_, true) => String::new(),
                _ => format!(", after {}", after.join(" ")),
            };
            let name = format!("{} {name}", place + 1);
            drawing.draw_box(Ink::Orange, &name, &format!("{about}{after}"));
        }
        drawing.end_row();
    }
}

/// The drawing so far, and where the next box begins.
struct StageDrawing {
    svg: Svg,
    x: f64,
    y: f64,
}

impl StageDrawing {
    fn draw_heading(&mut self, name: &str, about: &str) {
        self.svg.text("text strong", (MARGIN, self.y + 14.0), name);
        self.svg.text(Ink::Quiet, (LEFT, self.y + 14.0), about);
        self.y += 24.0;
    }

    /// Writes to the left of a row.
    fn draw_label(&mut self, text: &str) {
        self.svg.text(Ink::Quiet, (MARGIN, self.y + 24.0), text);
    }

    /// Draws a box with two lines of text; begins a row if there is no room.
    fn draw_box(&mut self, ink: Ink, name: &str, about: &str) {
        let letters = name.chars().count().max(about.chars().count());
        let width = (letters as f64 * LETTER + 22.0).min(WIDTH - MARGIN - LEFT);
        if self.x > LEFT && self.x + width > WIDTH - MARGIN {
            self.x = LEFT;
            self.y += BOX_HEIGHT + GAP;
        }
        let corner = (self.x, self.y);
        self.svg.rect(Ink::Track, corner, (width, BOX_HEIGHT));
        self.svg.rect(ink, corner, (4.0, BOX_HEIGHT));
        self.svg
            .text(Ink::Text, (corner.0 + 12.0, corner.1 + 17.0), name);
        self.svg
            .text(Ink::Quiet, (corner.0 + 12.0, corner.1 + 33.0), about);
        self.x += width + GAP;
    }

    fn end_row(&mut self) {
        self.x = LEFT;
        self.y += BOX_HEIGHT + GAP + 6.0;
    }
}
