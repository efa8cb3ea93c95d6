//! The graphs of one lane, by name.

use super::GraphId;
use crate::error::{Error, Result};

/// Graphs of a backend's own kind. A name that was dropped is given again.
pub(super) struct Graphs<G>(Vec<Option<G>>);

impl<G> Graphs<G> {
    pub(super) fn new() -> Self {
        Graphs(Vec::new())
    }

    pub(super) fn insert(&mut self, graph: G) -> GraphId {
        let place = self.0.iter().position(Option::is_none);
        let place = place.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[place] = Some(graph);
        GraphId(place as u32)
    }

    pub(super) fn get(&self, id: GraphId) -> Result<&G> {
        let graph = self.0.get(id.0 as usize).and_then(Option::as_ref);
        graph.ok_or_else(unknown)
    }

    pub(super) fn get_mut(&mut self, id: GraphId) -> Result<&mut G> {
        let graph = self.0.get_mut(id.0 as usize).and_then(Option::as_mut);
        graph.ok_or_else(unknown)
    }

    pub(super) fn remove(&mut self, id: GraphId) {
        if let Some(graph) = self.0.get_mut(id.0 as usize) {
            *graph = None;
        }
    }
}

fn unknown() -> Error {
    Error::usage("the lane has no such graph")
}
