//! Instructions of a piece of work, counted by callgrind: the same number on each run, however busy the
//! machine is.

use std::path::Path;
use std::process::Command;

/// Set in the process whose instructions are counted, which must not start another.
const COUNTED: &str = "TAPELOOP_TEST_COUNTED";

/// [`counted`], by the name that callgrind knows.
const FUNCTION: &str = "tapeloop_test_support::counted::counted";

/// Runs `work`. [`instructions`] returns the instructions that it takes on this thread.
#[inline(never)]
pub fn counted<R>(work: impl FnOnce() -> R) -> R {
    // Work that the compiler moves out of this function is not counted.
    std::hint::black_box(std::hint::black_box(work)())
}

/// Runs the test called `test` of this test program again under callgrind, and returns the
/// instructions of each of its calls of [`counted`], in order; `None` in that second process, which
/// has to make the calls.
///
/// # Panics
/// If valgrind cannot be started, or the second process fails.
pub fn instructions(test: &str) -> Option<Vec<u64>> {
    if std::env::var_os(COUNTED).is_some() {
        return None;
    }
    let folder = std::env::temp_dir().join(format!("counted-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let output = Command::new("valgrind")
        .arg("--tool=callgrind")
        .arg(format!("--toggle-collect={FUNCTION}"))
        .arg(format!("--dump-after={FUNCTION}"))
        .arg(format!(
            "--callgrind-out-file={}",
            folder.join("out").display()
        ))
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--include-ignored", "--test-threads=1"])
        .env(COUNTED, "1")
        .output()
        .unwrap_or_else(|error| panic!("valgrind cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    // Callgrind numbers its dumps from 1; the last file, of the end of the process, has no number.
    let dumps = (1..).map(|number| folder.join(format!("out.{number}")));
    let counts = dumps.map_while(|file| total(&file)).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    Some(counts)
}

/// The total of instructions in a dump; `None` if there is no such dump.
fn total(file: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let line = line.unwrap_or_else(|| panic!("{} has no totals", file.display()));
    Some(line.trim().parse().unwrap())
}
