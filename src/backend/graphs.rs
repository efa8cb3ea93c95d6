//! The graphs of one lane, by name.

use super::GraphId;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Graphs of a backend's own kind. A name is given once.
pub(super) struct Graphs<G> {
    graphs: BTreeMap<u32, G>,
    next: u32,
}

impl<G> Graphs<G> {
    pub(super) fn new() -> Self {
        Graphs {
            graphs: BTreeMap::new(),
            next: 0,
        }
    }

    pub(super) fn insert(&mut self, graph: G) -> GraphId {
        let id = self.free();
        self.next = id.0.checked_add(1).expect("fewer graphs than names");
        self.graphs.insert(id.0, graph);
        id
    }

    /// The name that the next graph gets.
    pub(super) fn free(&self) -> GraphId {
        GraphId(self.next)
    }

    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (GraphId, &G)> {
        self.graphs.iter().map(|(id, graph)| (GraphId(*id), graph))
    }

    pub(super) fn get(&self, id: GraphId) -> Result<&G> {
        self.graphs.get(&id.0).ok_or_else(unknown)
    }

    pub(super) fn get_mut(&mut self, id: GraphId) -> Result<&mut G> {
        self.graphs.get_mut(&id.0).ok_or_else(unknown)
    }

    pub(super) fn remove(&mut self, id: GraphId) {
        self.graphs.remove(&id.0);
    }
}

fn unknown() -> Error {
    Error::usage("the lane has no such graph")
}
