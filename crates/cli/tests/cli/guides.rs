//! The guides in `docs/guides`: every command in them is run as it stands there, and prints what the
//! guide shows. The Rust programs are documentation tests (`src/lib.rs`).

use super::*;
use std::env;

/// A fenced block: what stands after the fence, and the text.
struct Block {
    info: String,
    body: String,
}

fn guide(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("docs/guides").join(name)).unwrap()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                let (info, body) = (info.to_owned(), String::new());
                open = Some(Block { info, body });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.body += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// A folder with what the commands of the guides read: the repository's samples, configs and
/// published benchmark, where the sources have them.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["samples", "configs", "docs/bench"] {
        let to = folder.path().join(name);
        let Ok(files) = fs::read_dir(Path::new(ROOT).join(name)) else {
            continue;
        };
        fs::create_dir_all(&to).unwrap();
        for file in files {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    folder
}

/// Runs a program of a guide in `folder`, where `tapeloop` is the built program. Returns what it
/// prints to standard output.
fn printed(mut command: Command, folder: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_tapeloop"));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_owned).into_iter();
    let path = env::join_paths(folders.chain(env::split_paths(&path))).unwrap();
    command
        .current_dir(folder)
        .env("PATH", path)
        // On machines with a GPU too.
        .env("CUDA_VISIBLE_DEVICES", "")
        .env_remove("TAPELOOP_LOG")
        .env_remove("RUST_LOG");
    let output = command.output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    out
}

fn python() -> String {
    env::var("TAPELOOP_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

/// A line without the widths of its columns, which depend on the figures.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Compares what a guide shows with what was printed. A line `...` stands for any lines. Of figures
/// that vary (`text varies`) the lines without a digit are compared.
fn compare(shown: &Block, printed: &str) {
    let varies = shown.info == "text varies";
    let mut lines = printed.lines().map(words);
    let mut skips = varies;
    for line in shown.body.lines().map(words) {
        if line == "..." {
            skips = true;
        } else if !varies || !line.chars().any(|it| it.is_ascii_digit()) {
            let is_next = if skips {
                lines.any(|it| it == line)
            } else {
                lines.next().as_ref() == Some(&line)
            };
            assert!(is_next, "{line:?} is not printed here:\n{printed}");
            skips = varies;
        }
    }
    assert!(
        skips || lines.next().is_none(),
        "more is printed:\n{printed}"
    );
}

/// Runs the blocks of a guide in order, and returns the folder that they leave.
fn follow(name: &str) -> tempfile::TempDir {
    let folder = repository();
    let mut output: Option<String> = None;
    for block in blocks(&guide(name)) {
        match block.info.as_str() {
            "sh" => {
                let mut command = Command::new("sh");
                command.args(["-e", "-c", &block.body]);
                output = Some(printed(command, folder.path()));
            }
            "python" => {
                let mut command = Command::new(python());
                command.args(["-c", &block.body]);
                output = Some(printed(command, folder.path()));
            }
            // The tests of the Python package run it.
            "python ray" => output = None,
            "text" | "text varies" => {
                if let Some(output) = output.take() {
                    compare(&block, &output);
                }
            }
            other => panic!("{name}: nothing runs blocks of {other:?}"),
        }
    }
    folder
}

#[test]
#[ignore = "needs Python with duckdb, pandas, polars and pyarrow"]
fn the_guide_from_a_folder_to_a_dataframe_runs_as_it_stands() {
    follow("folder-to-dataframe.md");
}

#[test]
#[ignore = "needs Python with duckdb, pandas, polars and pyarrow"]
fn the_guide_to_interactions_runs_as_it_stands() {
    follow("interactions.md");
}

#[test]
#[ignore = "needs Python with duckdb, pandas, polars and pyarrow"]
fn the_guide_to_clusters_runs_as_it_stands() {
    follow("cluster.md");
}

#[test]
fn the_guide_to_a_benchmark_report_runs_as_it_stands() {
    let folder = follow("benchmark-report.md");
    let at = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    // What it quotes is in the published report, and the sections that it names are in both,
    // except for those that need a full run.
    let text = guide("benchmark-report.md");
    let (published, new) = (at("docs/bench/h200.html"), at("quick/report.html"));
    let quotes: Vec<&str> = text
        .lines()
        .filter_map(|it| it.strip_prefix("> "))
        .collect();
    assert!(!quotes.is_empty());
    for quote in quotes {
        assert!(published.contains(quote), "{quote:?} is not in the report");
    }
    let sections = text.lines().filter_map(|it| it.strip_prefix("- **"));
    let sections: Vec<&str> = sections.filter_map(|it| it.split("**").next()).collect();
    assert!(sections.len() >= 5);
    for section in sections {
        let heading = format!("{section}</h2>");
        assert!(published.contains(&heading), "{section:?} is no section");
        let full_runs = [
            "What Pipeline and Engine reach",
            "Batch size",
            "Other programs",
        ];
        let is_of_full_runs = full_runs.contains(&section);
        assert!(
            is_of_full_runs || new.contains(&heading),
            "{section:?} is gone"
        );
    }
}

/// The programs of this guide are documentation tests.
#[test]
fn the_dependency_of_the_guide_to_embedding_has_features_that_exist() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let engine: toml::Table = toml::from_str(&read("crates/engine/Cargo.toml")).unwrap();
    let text = guide("embed.md");
    let blocks = blocks(&text);
    assert_eq!(blocks[0].info, "toml");
    assert!(blocks[1..].iter().all(|block| block.info == "rust"));
    let shown: toml::Table = toml::from_str(&blocks[0].body).unwrap();
    let dependency = &shown["dependencies"]["tapeloop-engine"];
    for feature in dependency["features"].as_array().unwrap() {
        let feature = feature.as_str().unwrap();
        assert!(engine["features"].get(feature).is_some(), "{feature}");
    }
    // The front page of the API documentation shows the same line.
    let line = blocks[0].body.lines().last().unwrap();
    let front = read("crates/engine/src/lib.rs");
    assert!(front.contains(&format!("//! {line}")));
    let workspace: toml::Table = toml::from_str(&read("Cargo.toml")).unwrap();
    let version = &workspace["workspace"]["package"]["rust-version"];
    let words = format!("It needs Rust {}", version.as_str().unwrap());
    assert!(text.replace('\n', " ").contains(&words), "{words}");
}
