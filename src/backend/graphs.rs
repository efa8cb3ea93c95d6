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
        let id = self.free();
        let place = id.0 as usize;
        if place == self.0.len() {
            self.0.push(None);
        }
        self.0[place] = Some(graph);
        id
    }

    /// The name that the next graph gets.
    pub(super) fn free(&self) -> GraphId {
        let place = self.0.iter().position(Option::is_none);
        GraphId(place.unwrap_or(self.0.len()) as u32)
    }

    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (GraphId, &G)> {
        let places = self.0.iter().enumerate();
        places.filter_map(|(place, graph)| Some((GraphId(place as u32), graph.as_ref()?)))
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
