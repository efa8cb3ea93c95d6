//! The graphs of one slot, by name.

use super::GraphId;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// Graphs of a slot, of a backend's own kind. No two of a process have one name.
pub(super) struct Graphs<G> {
    graphs: BTreeMap<u64, G>,
}

impl<G> Graphs<G> {
    pub(super) fn new() -> Self {
        Graphs {
            graphs: BTreeMap::new(),
        }
    }

    pub(super) fn insert(&mut self, graph: G) -> GraphId {
        let id = GraphId::unique();
        self.insert_as(id, graph);
        id
    }

    /// Keeps a graph under a name of [`GraphId::unique`].
    pub(super) fn insert_as(&mut self, id: GraphId, graph: G) {
        self.graphs.insert(id.0, graph);
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
    Error::usage("the slot has no such graph")
}
