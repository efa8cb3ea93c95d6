//! Gives other bindings to a graph that exists.
//!
//! There are three ways, cheapest first: change the parameters of single nodes, update all
//! parameters at once, or make a new graph. Setting the parameters of a node takes half as long
//! as its share of a recapture and update, whatever the number of nodes (DECISIONS.md),
//! so a graph that keeps its commands is changed node by node. Any other change captures or
//! builds the graph again, and makes a new one only if the driver reports another topology.

use super::audit::AllowedMemory;
use super::batch::LoweredBatch;
use super::graph::{GraphFailure, make_graph};
use super::ready_batch::{ReadyBatch, make_resident};
use super::{Lowered, Policy, submit};
use crate::backend::{Built, DeviceSlot, GraphId, Op};
use std::mem::discriminant;

/// A way to give a graph other parameters, cheapest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The graph needed no change.
    Unchanged,
    /// Parameters of single nodes.
    Params,
    /// All parameters, by another capture or build of the same topology.
    Update,
    /// A new graph, for another topology.
    Instantiate,
}

/// How often each rung was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Updates {
    /// [`Rung::Unchanged`].
    pub unchanged: u64,
    /// [`Rung::Params`].
    pub params: u64,
    /// Nodes that [`Rung::Params`] set in all.
    pub params_nodes: u64,
    /// [`Rung::Update`].
    pub updates: u64,
    /// [`Rung::Instantiate`].
    pub instantiations: u64,
    /// Why the last new graph was made.
    pub last_reason: Option<String>,
}

impl Updates {
    /// Gives the graph of `ready`, if it has one, the parameters of `batch`, by no cheaper rung
    /// than `least`. Leaves the rest of `ready` as it is. After an error `ready` has the old
    /// parameters, unless the failure says that they are spoiled.
    pub(super) fn climb(
        &mut self,
        slot: &mut dyn DeviceSlot,
        ready: &mut ReadyBatch,
        memory: &AllowedMemory<'_>,
        batch: &LoweredBatch,
        policy: &Policy,
        least: Rung,
    ) -> Result<Rung, GraphFailure> {
        let build = policy.build;
        let Some(graph) = ready.graph else {
            self.unchanged += 1;
            return Ok(Rung::Unchanged);
        };
        let changed = changed_nodes(&ready.batch.commands, &batch.commands);
        let cheapest = match changed.as_deref() {
            Some([]) => Rung::Unchanged,
            Some(nodes)
                if nodes
                    .iter()
                    .all(|&node| !batch.commands[node].is_library_call()) =>
            {
                Rung::Params
            }
            // Other nodes, or a library call, which may submit other work for other arguments.
            _ => Rung::Update,
        };
        let rung = match cheapest.max(least) {
            // A loop on the device has a copy of the graph.
            rung if rung > Rung::Unchanged && ready.is_resident => Rung::Instantiate,
            rung => rung,
        };
        match rung {
            Rung::Unchanged => {
                self.unchanged += 1;
                Ok(Rung::Unchanged)
            }
            Rung::Params => {
                // Empty where `least` asks for this rung and nothing changed.
                let changed = changed.unwrap_or_default();
                set_params(
                    slot,
                    graph,
                    &ready.batch.commands,
                    &batch.commands,
                    &changed,
                )?;
                self.params += 1;
                self.params_nodes += changed.len() as u64;
                Ok(Rung::Params)
            }
            Rung::Update => {
                let (_, built) = make_graph(slot, memory, &batch.commands, build, Some(graph))?;
                Ok(self.count(built))
            }
            Rung::Instantiate => {
                let (made, built) = make_graph(slot, memory, &batch.commands, build, None)?;
                if ready.is_resident {
                    let resident = make_resident(slot, made, policy);
                    ready.is_resident = resident.map_err(|error| GraphFailure {
                        error,
                        is_spoiled: false,
                    })?;
                }
                slot.drop_graph(graph);
                ready.graph = Some(made);
                Ok(self.count(built))
            }
        }
    }

    /// Counts what became of a graph, and returns the rung that it stands for.
    fn count(&mut self, built: Built) -> Rung {
        let reason = match built {
            Built::Updated => {
                self.updates += 1;
                return Rung::Update;
            }
            Built::Instantiated => None,
            Built::Reinstantiated { reason } => {
                tracing::debug!(reason, "a graph was made anew");
                Some(reason)
            }
        };
        self.instantiations += 1;
        self.last_reason = reason;
        Rung::Instantiate
    }
}

/// Sets the parameters of the changed nodes. After a failure sets all back, including the node
/// that failed, as the driver may have taken over a part of its change.
fn set_params(
    slot: &mut dyn DeviceSlot,
    graph: GraphId,
    old: &[Lowered],
    new: &[Lowered],
    changed: &[usize],
) -> Result<(), GraphFailure> {
    for (done, &node) in changed.iter().enumerate() {
        if let Err(error) = submit::set_params(slot, graph, node, &new[node]) {
            let mut set = changed[..=done].iter();
            let is_restored =
                set.all(|&node| submit::set_params(slot, graph, node, &old[node]).is_ok());
            return Err(GraphFailure {
                error: error.within(format!("command {}", new[node].command())),
                is_spoiled: !is_restored,
            });
        }
    }
    Ok(())
}

/// The nodes whose operation changed; `None` if the commands are others.
fn changed_nodes(old: &[Lowered], new: &[Lowered]) -> Option<Vec<usize>> {
    let same = |(a, b): (&Lowered, &Lowered)| {
        a.command() == b.command() && discriminant::<Op>(a.op()) == discriminant(b.op())
    };
    if old.len() != new.len() || !old.iter().zip(new).all(same) {
        return None;
    }
    let pairs = old.iter().zip(new).enumerate();
    Some(
        pairs
            .filter(|(_, (a, b))| a.op() != b.op())
            .map(|(node, _)| node)
            .collect(),
    )
}
