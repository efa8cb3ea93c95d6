//! Structures through an engine, for tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use tapeloop::features::{FeatureTable, Features, Input};
use tapeloop::pipeline::Engine;
use tapeloop::structure::Structure;
use tapeloop::workload::Completion;

/// The outcome for each structure, in order.
pub(crate) fn outcomes<'a>(
    engine: &mut Engine<Features>,
    structures: impl Iterator<Item = &'a Structure> + Send,
) -> Vec<tapeloop::Result<FeatureTable>> {
    let mut sent = 0;
    let inputs = structures.map(|structure| {
        sent += 1;
        Input {
            source: String::new(),
            ordinal: 0,
            structure: Ok(structure.clone()),
        }
    });
    let mut outcomes = Vec::new();
    let mut sink = |done: Completion<Features>| {
        outcomes.push(done.result);
        Ok(())
    };
    engine.run(inputs, &mut sink).unwrap();
    assert_eq!(outcomes.len(), sent, "every structure has its outcome");
    outcomes
}

/// The table of each structure, none of which is rejected.
pub(crate) fn tables<'a>(
    engine: &mut Engine<Features>,
    structures: impl Iterator<Item = &'a Structure> + Send,
) -> Vec<FeatureTable> {
    let outcomes = outcomes(engine, structures).into_iter();
    outcomes.map(|outcome| outcome.unwrap()).collect()
}
