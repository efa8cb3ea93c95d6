//! Control characters in names, values and files that are not the program's own.

use super::*;
use std::process::Stdio;

/// Characters that set a terminal's title and colours, and change the direction of text.
const HOSTILE: &str = "\u{1b}]0;PWN\u{7}\u{9b}31m\u{202e}\u{2066}\rred";

fn is_unsafe(char: char) -> bool {
    char.is_control() && char != '\n' && char != '\t'
        || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Runs `command` in `folder`, and checks what it prints.
fn prints_safely(mut command: Command, folder: &Path) -> String {
    let output = command.current_dir(folder).stdin(Stdio::null()).output();
    let output = output.unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    let code = output.status.code();
    assert!(code.is_some_and(|code| code < 4), "{command:?}: {said:?}");
    assert!(!said.contains(is_unsafe), "{command:?}: {said:?}");
    said
}

/// The first words of the lines that a `--help` indents as commands, and its options.
fn listed(help: &str, folder: &Path, path: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut commands, mut options, mut in_commands) = (Vec::new(), Vec::new(), false);
    for line in help.lines() {
        if !line.starts_with(' ') {
            in_commands = line == "Commands:";
            continue;
        }
        let words = line
            .split([' ', ',', '[', '='])
            .filter(|word| !word.is_empty());
        if in_commands {
            let is_start = line.starts_with("  ") && !line.starts_with("   ");
            commands.extend(words.take(1).filter(|_| is_start).map(str::to_owned));
        } else if line.trim_start().starts_with('-') {
            let options_here = words.take_while(|word| word.starts_with('-'));
            options.extend(options_here.map(str::to_owned));
        }
    }
    commands.retain(|command| command != "help");
    assert!(!options.is_empty(), "{path:?} in {folder:?}: {help}");
    (commands, options)
}

/// All commands with their options, as `--help` lists them.
fn command_tree(folder: &Path) -> Vec<(Vec<String>, Vec<String>)> {
    let mut tree = Vec::new();
    let mut open = vec![Vec::<String>::new()];
    while let Some(path) = open.pop() {
        let help = tapeloop(path.iter().map(String::as_str).chain(["--help"]));
        let help = prints_safely(help, folder);
        let (commands, options) = listed(&help, folder, &path);
        open.extend(
            commands
                .into_iter()
                .map(|command| [&path[..], &[command]].concat()),
        );
        tree.push((path, options));
    }
    tree
}

#[test]
fn no_command_and_no_option_prints_control_characters_of_its_value() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tree = command_tree(folder);
    let names: Vec<String> = tree.iter().map(|(path, _)| path.join(" ")).collect();
    for command in ["run", "bench", "kernel new", "paint", "man"] {
        assert!(names.iter().any(|name| name == command), "{names:?}");
    }
    let mut tried = 0;
    for (path, options) in &tree {
        let mut tried_with = |args: &[&str]| {
            let mut command = tapeloop(path);
            // Measuring takes minutes.
            if options.iter().any(|option| option == "--dry-run") {
                command.arg("--dry-run");
            }
            command.args(args);
            prints_safely(command, folder);
            tried += 1;
        };
        for option in options {
            tried_with(&[option, HOSTILE]);
            if option.starts_with("--") {
                tried_with(&[&format!("{option}={HOSTILE}")]);
            }
        }
        tried_with(&[HOSTILE]);
        tried_with(&[HOSTILE, HOSTILE, HOSTILE]);
        tried_with(&[&format!("--{HOSTILE}")]);
        tried_with(&["--set", &format!("{HOSTILE}={HOSTILE}")]);
        tried_with(&["--set", &format!("mode={HOSTILE}")]);
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn no_key_and_no_value_of_a_config_prints_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = folder.join("job.toml");
    let sample = Path::new(SAMPLES).join("1ubi.pdb");
    let sample = str_of(&sample).to_owned();
    // TOML takes control characters as escapes alone.
    let escaped: String = HOSTILE
        .chars()
        .map(|c| format!("\\u{:04x}", c as u32))
        .collect();
    let all = prints_safely(
        tapeloop(["run", "-i", &sample, "--dry-run", "--verbose"]),
        folder,
    );
    let keys = all.lines().filter_map(|line| line.split(" = ").next());
    let keys: Vec<&str> = keys
        .filter(|key| !key.starts_with('#') && !key.contains(' '))
        .collect();
    assert!(keys.len() > 50, "{all}");
    let mut configs = vec![
        format!("\"{escaped}\" = 1"),
        format!("[\"{escaped}\"]\nx = 1"),
        format!("batch.\"{escaped}\" = 1"),
        format!("[[kernel]]\nfile = \"{escaped}\""),
        format!("[[kernel]]\nfile = \"x\"\n\"{escaped}\" = 1"),
        format!("reduce = [\"{escaped}.mean\"]"),
        format!("where = \"{escaped} > 1\""),
        format!("x = \u{9b}{HOSTILE}"),
    ];
    configs.extend(keys.iter().map(|key| format!("{key} = \"{escaped}\"")));
    configs.extend(keys.iter().map(|key| format!("{key} = [\"{escaped}\"]")));
    configs.extend(keys.iter().map(|key| format!("{key}.\"{escaped}\" = 1")));
    for text in configs {
        let has_input = text.starts_with("input");
        let text = if has_input {
            text
        } else {
            format!("input = {sample:?}\n{text}")
        };
        fs::write(&config, &text).unwrap();
        let run = [
            "run",
            "job.toml",
            "--trust-config",
            "--dry-run",
            "--verbose",
        ];
        prints_safely(tapeloop(run), folder);
    }
}

#[test]
fn no_variable_of_the_environment_and_no_file_prints_control_characters() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in [
        "TAPELOOP_LOG",
        "RUST_LOG",
        "TAPELOOP_CACHE_DIR",
        "TAPELOOP_NVRTC",
        "XDG_CACHE_HOME",
    ] {
        for args in [&["doctor"][..], &["doctor", "--json"], &["devices"]] {
            let mut command = tapeloop(args);
            command.env(name, HOSTILE);
            prints_safely(command, folder);
        }
    }
    // A log of everything, which names the files.
    fs::write(folder.join(format!("{HOSTILE}.pdb")), "junk").unwrap();
    let mut command = tapeloop(["run", ".", "--backend", "cpu", "-o", "out"]);
    command.env("TAPELOOP_LOG", "trace");
    prints_safely(command, folder);

    // A record of a run that goes on, with strings of the same kind.
    let sample = Path::new(SAMPLES).join("1ubi.pdb");
    let run = ["run", str_of(&sample), "--backend", "cpu", "-o", "again"];
    prints_safely(tapeloop(run), folder);
    let path = folder.join("again/run.json");
    let record = fs::read_to_string(&path).unwrap();
    let mut hostile: serde_json::Value = serde_json::from_str(&record).unwrap();
    spoil(&mut hostile);
    for state in ["running", "interrupted", "finished", HOSTILE] {
        hostile["state"] = state.into();
        fs::write(&path, hostile.to_string()).unwrap();
        prints_safely(tapeloop(run.iter().chain(&["--resume"])), folder);
        prints_safely(tapeloop(["methods", "again"]), folder);
    }
    let history = format!("{{\"format\": 1, \"run\": {{\"{HOSTILE}\": 1}}}}\n");
    fs::write(folder.join(HOSTILE), history).unwrap();
    prints_safely(tapeloop(["bench", "--compare", HOSTILE, HOSTILE]), folder);
}

/// Puts control characters into all strings.
fn spoil(json: &mut serde_json::Value) {
    match json {
        serde_json::Value::String(text) => text.push_str(HOSTILE),
        serde_json::Value::Array(items) => items.iter_mut().for_each(spoil),
        serde_json::Value::Object(fields) => {
            fields.values_mut().for_each(spoil);
            fields.insert(HOSTILE.to_owned(), HOSTILE.into());
        }
        _ => {}
    }
}
