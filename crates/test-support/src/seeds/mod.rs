//! Running a test on many seeds, and again on the one that failed.

pub mod broken;
pub mod simulated;

use crate::random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use tapeloop_engine::pipeline::Wait;

/// How an engine on the simulated device waits. It blocks for few seeds, since a thread that
/// blocks sleeps between two looks at the device, while the device's time passes only by looks.
pub fn wait(random: &mut Random) -> Wait {
    match random.below(16) {
        0 => Wait::Block,
        _ => Wait::Spin,
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs `body` on the seeds from 0 to `count`, or on as many as `TAPELOOP_SIM_SEEDS` states, or on
/// `TAPELOOP_SIM_SEED` alone. For a seed that fails, prints the command that runs it again. Returns the number of
/// seeds.
pub fn each_seed<F: Fn(u64)>(count: u64, body: F) -> u64 {
    let seeds = match number("TAPELOOP_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TAPELOOP_SIM_SEEDS").unwrap_or(count),
    };
    let run = seeds.end - seeds.start;
    for seed in seeds {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(seed))) {
            let (file, test) = place(std::any::type_name::<F>());
            // The closure may be a helper's. The thread has the test's name, unless all tests run on one
            // thread.
            let thread = std::thread::current();
            let test = thread.name().filter(|name| *name != "main").unwrap_or(test);
            eprintln!("run it again: TAPELOOP_SIM_SEED={seed} cargo test --test {file} {test}");
            resume_unwind(panic);
        }
    }
    run
}

/// The test's binary and name, from that of a closure in it.
fn place(closure: &str) -> (&str, &str) {
    let (binary, rest) = closure.split_once("::").unwrap_or((closure, ""));
    (
        binary,
        rest.split("::{{closure}}").next().unwrap_or_default(),
    )
}
