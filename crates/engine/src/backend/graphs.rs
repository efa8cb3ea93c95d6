//! The graphs of one slot.

use super::GraphId;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// A slot's graphs, in the form of its backend, by their identifiers.
pub struct Graphs<G> {
    graphs: BTreeMap<u64, G>,
}

impl<G> Default for Graphs<G> {
    fn default() -> Self {
        let graphs = BTreeMap::new();
        Graphs { graphs }
    }
}

impl<G> Graphs<G> {
    /// Keeps a graph under a new identifier.
    pub fn insert(&mut self, graph: G) -> GraphId {
        let id = GraphId::unique();
        self.insert_as(id, graph);
        id
    }

    /// Keeps a graph under an identifier from [`GraphId::unique`].
    pub fn insert_as(&mut self, id: GraphId, graph: G) {
        self.graphs.insert(id.0, graph);
    }

    #[cfg(all(feature = "supervise", target_os = "linux"))]
    pub(super) fn iter(&self) -> impl Iterator<Item = (GraphId, &G)> {
        self.graphs.iter().map(|(id, graph)| (GraphId(*id), graph))
    }

    /// The graph of an identifier.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an unknown one.
    pub fn get(&self, id: GraphId) -> Result<&G> {
        self.graphs.get(&id.0).ok_or_else(unknown_graph_error)
    }

    /// The graph of an identifier.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for an unknown one.
    pub fn get_mut(&mut self, id: GraphId) -> Result<&mut G> {
        self.graphs.get_mut(&id.0).ok_or_else(unknown_graph_error)
    }

    /// How many there are.
    #[allow(
        clippy::len_without_is_empty,
        reason = "nothing asks whether there are none"
    )]
    pub fn len(&self) -> usize {
        self.graphs.len()
    }

    /// Drops a graph, if there is such a one.
    pub fn remove(&mut self, id: GraphId) {
        self.graphs.remove(&id.0);
    }
}

/// Refuses parameters of a captured graph for an explicit one, and the other way round.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) then: an update does not change how a graph was
/// made.
pub fn check_same_build(was_captured: bool, is_captured: bool) -> Result<()> {
    let name = |captured| {
        if captured {
            "captured"
        } else {
            "built explicitly"
        }
    };
    if was_captured == is_captured {
        Ok(())
    } else {
        Err(Error::usage(format!(
            "the graph was {}, and its new parameters were {}",
            name(was_captured),
            name(is_captured)
        ))
        .fix("update a graph as it was made, or make a new one"))
    }
}

fn unknown_graph_error() -> Error {
    Error::usage("the slot has no such graph")
}
