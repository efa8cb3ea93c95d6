//! The CPU backend passes every scenario, and every scenario is listed.

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_conformance::Scenario;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};

fn on_the_cpu(scenario: Scenario) {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::new(pool)));
    scenario(&backend);
}

tapeloop_conformance::tests!(on_the_cpu);

#[test]
fn the_macro_lists_every_scenario() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let list = std::fs::read_to_string(format!("{folder}/lib.rs")).unwrap();
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for (at, _) in text.match_indices("\npub fn ") {
            let item = &text[at + "\npub fn ".len()..];
            let (name, rest) = item.split_once('(').unwrap();
            let is_scenario = rest.trim_start().starts_with("backend: &Arc<dyn Backend>")
                && rest.split_once(')').unwrap().1.starts_with(" {");
            if is_scenario {
                assert!(
                    list.contains(&format!(" {name},\n")),
                    "{name} is not listed"
                );
                count += 1;
            }
        }
    }
    assert!(count >= 50, "{count}");
}
