//! The update ladder: other bindings for a graph that exists.
//!
//! Parameters in place, then the whole graph's parameters at once, then a new
//! graph: the cheapest that can do it is taken. Setting the parameters of a node
//! costs half of what a recapture and its update cost for each node, whatever
//! their number (docs/ARCHITECTURE.md), so what keeps its commands is changed in
//! place. What does not is captured or built again, and only a change of topology,
//! by the device's word, makes a new graph.

use super::batch::Batch;
use super::executor::{Executor, Ready};
use super::give;
use super::graph::make_graph;
use super::{Bindings, Lowered};
use crate::backend::{Built, DeviceSlot, GraphId, Op, Streams};
use crate::error::{Context, Error, Result};
use std::mem::discriminant;
use std::sync::Arc;

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

impl Executor {
    /// What a bucket is bound to; made ready first if it is not.
    ///
    /// # Errors
    /// As [`Executor::new`].
    pub fn bindings(&mut self, slot: &mut dyn DeviceSlot, bucket: usize) -> Result<&Bindings> {
        self.make_ready(slot, bucket)?;
        Ok(self.bindings[bucket].as_ref().expect("made ready above"))
    }

    /// Replays a bucket with other bindings from here on. Launches that are in
    /// flight keep theirs. Before [`Mode::Auto`](super::Mode::Auto) has chosen there is
    /// no graph to change; what it chooses is then measured with these.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage) for bindings of another
    /// recording or slot, and for a buffer that is bound to memory that is declared
    /// ([`Executor::declare`]), or what the device says, with the command; then the bucket runs
    /// as before.
    pub fn update(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: Bindings,
    ) -> Result<Rung> {
        self.update_from(slot, bucket, bindings, Rung::Unchanged)
    }

    /// [`Executor::update`], by no cheaper rung than `least`.
    ///
    /// # Errors
    /// As [`Executor::update`].
    pub fn update_from(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: Bindings,
        least: Rung,
    ) -> Result<Rung> {
        self.make_ready(slot, bucket)?;
        let place = || format!("update of bucket {bucket}");
        let old = self.bindings[bucket].as_ref().expect("made ready above");
        if !Arc::ptr_eq(old.recording(), bindings.recording()) {
            let message = "the bindings are of another recording";
            return Err(Error::usage(message).within(place()));
        }
        if bindings.slot() != slot.id() {
            let message = "the bindings are of another slot";
            return Err(Error::usage(message).within(place()));
        }
        if self.policy.streams == Streams::PerStage && bindings.any_mapped() {
            let message = "streams = \"per_stage\" has no mapped buffers";
            return Err(Error::usage(message)
                .fix("set streams = \"per_slot\"")
                .within(place()));
        }
        self.declared.check(&bindings).within(place)?;
        let adopted = bindings
            .allocations()
            .try_for_each(|allocation| slot.adopt(allocation));
        if let Err(error) = adopted {
            self.disown_unused(slot, bindings.allocations());
            return Err(error.within(place()));
        }
        let ready = self.ready_ref(bucket).expect("made ready above");
        let batch = Batch::new(&bindings, ready.batch.scope);
        // Before the device is told of any of it.
        let audited = batch.check(&self.memory(slot, &bindings));
        let climbed = audited.and_then(|audit| {
            let rung = self.climb(slot, bucket, &bindings, &batch, least)?;
            Ok((rung, audit))
        });
        let (rung, unused) = match climbed {
            Ok((rung, audit)) => {
                self.drop_timed(slot, bucket);
                let ready = self.ready_mut(bucket).expect("made ready above");
                (ready.batch, ready.audit) = (batch, audit);
                self.past[bucket].rebound = true;
                let old = self.bindings[bucket].replace(bindings);
                (Ok(rung), old.expect("bound when it was made ready"))
            }
            Err(error) => (Err(error), bindings),
        };
        self.disown_unused(slot, unused.allocations());
        rung.within(place)
    }

    fn climb(
        &mut self,
        slot: &mut dyn DeviceSlot,
        bucket: usize,
        bindings: &Bindings,
        batch: &Batch,
        least: Rung,
    ) -> Result<Rung> {
        let build = self.policy.build;
        let ready = self.ready_mut(bucket).expect("made ready by the caller");
        let Some(graph) = ready.graph else {
            self.updates.unchanged += 1;
            return Ok(Rung::Unchanged);
        };
        let changed = changed_nodes(&ready.batch.body, &batch.body);
        let cheapest = match changed.as_deref() {
            Some([]) => Rung::Unchanged,
            Some(_) => Rung::Params,
            None => Rung::Update,
        };
        match cheapest.max(least) {
            Rung::Unchanged => {
                self.updates.unchanged += 1;
                Ok(Rung::Unchanged)
            }
            Rung::Params => {
                // Asked for where nothing changed, it sets nothing.
                let changed = changed.unwrap_or_default();
                let set = set_params(slot, ready, graph, &batch.body, &changed);
                if let Err(NotSet { error, restored }) = set {
                    if !restored {
                        // The graph may hold some of the change: the next batch makes another.
                        self.drop_ready(slot, bucket);
                    }
                    return Err(error);
                }
                self.updates.params += 1;
                self.updates.params_nodes += changed.len() as u64;
                Ok(Rung::Params)
            }
            Rung::Update => {
                let memory = self.memory(slot, bindings);
                let made = make_graph(slot, &memory, &batch.body, build, Some(graph));
                if made.as_ref().is_err_and(|not_made| not_made.spoiled) {
                    // The next batch makes another.
                    self.drop_ready(slot, bucket);
                }
                Ok(self.count(made?.1))
            }
            Rung::Instantiate => {
                let memory = self.memory(slot, bindings);
                let made = make_graph(slot, &memory, &batch.body, build, None)?;
                slot.drop_graph(graph);
                let ready = self.ready_mut(bucket).expect("made ready by the caller");
                ready.graph = Some(made.0);
                Ok(self.count(made.1))
            }
        }
    }

    fn count(&mut self, built: Built) -> Rung {
        match built {
            Built::Updated => {
                self.updates.updates += 1;
                Rung::Update
            }
            Built::Instantiated => {
                self.updates.instantiations += 1;
                self.updates.last_reason = None;
                Rung::Instantiate
            }
            Built::Reinstantiated { reason } => {
                tracing::debug!(reason, "a graph was made anew");
                self.updates.instantiations += 1;
                self.updates.last_reason = Some(reason);
                Rung::Instantiate
            }
        }
    }
}

/// A change of parameters that failed, and whether the graph is as before.
struct NotSet {
    error: Error,
    restored: bool,
}

/// Sets the changed nodes, or none: after a failure all are set back up to the one that
/// failed, which may hold a part of its change.
fn set_params(
    slot: &mut dyn DeviceSlot,
    ready: &Ready,
    graph: GraphId,
    body: &[Lowered],
    changed: &[usize],
) -> Result<(), NotSet> {
    for (done, &node) in changed.iter().enumerate() {
        if let Err(error) = give::set_params(slot, graph, node, &body[node]) {
            let mut set = changed[..=done].iter();
            let restored = set.all(|&node| {
                let before = &ready.batch.body[node];
                give::set_params(slot, graph, node, before).is_ok()
            });
            let error = error.within(format!("command {}", body[node].command()));
            return Err(NotSet { error, restored });
        }
    }
    Ok(())
}

/// The nodes whose operation is another; `None` where the topology is.
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
