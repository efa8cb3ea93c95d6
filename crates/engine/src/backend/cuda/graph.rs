//! CUDA graphs and their executable instances.

use super::address_checks::Checked;
use super::allocations::{AllocationUse, all_uses};
use super::context::PrimaryContext;
use super::copies;
use super::graph_node::{self, NodeKind};
use super::loop_clock::BatchTimes;
use super::module::LoadedFunctions;
use super::programmatic_launch;
use super::readback;
use super::resident::ResidentLoop;
use super::result_codes::{self, Code, is_of_topology, update_result};
use super::slot_stream::no_priority;
use super::stream::Stream;
use super::timestamps::Timestamps;
use crate::backend::edges::NodeRole;
use crate::backend::graphs::check_same_build;
use crate::backend::{Built, Call, Op, Residency};
use crate::error::{Context as _, Error, ErrorKind, Result};
use cudarc::driver::sys::{self, CUgraphInstantiate_flags_enum};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;

/// A `CUgraph`: nodes and edges, from which executable graphs are made.
pub(super) struct Template {
    context: Arc<PrimaryContext>,
    // Null if the capture failed.
    raw: sys::CUgraph,
    nodes: Vec<sys::CUgraphNode>,
    /// The kind of each node.
    kinds: Vec<NodeKind>,
    /// By node, the index of the node at the start of its programmatic edge; empty without such edges.
    programmatic: Vec<Option<usize>>,
}

// SAFETY: graphs and nodes are handles that any thread may use, one at a time,
// which owning them without `Sync` ensures.
unsafe impl Send for Template {}

impl Template {
    /// A graph without nodes.
    pub(super) fn empty(context: &Arc<PrimaryContext>) -> Result<Template> {
        let driver = context.bind_for(Call::GraphEdit)?;
        let mut template =
            Template::captured(context, null_mut(), Vec::new(), Vec::new(), Vec::new());
        // SAFETY: `template` outlives the call.
        context.check("cuGraphCreate", unsafe {
            (driver.cuGraphCreate)(&mut template.raw, 0)
        })?;
        Ok(template)
    }

    /// The graph of a capture. `programmatic` are the starts of programmatic edges, by node.
    pub(super) fn captured(
        context: &Arc<PrimaryContext>,
        raw: sys::CUgraph,
        nodes: Vec<sys::CUgraphNode>,
        kinds: Vec<NodeKind>,
        programmatic: Vec<Option<usize>>,
    ) -> Template {
        Template {
            context: Arc::clone(context),
            raw,
            nodes,
            kinds,
            programmatic,
        }
    }

    /// An explicit graph. `after` are the nodes that each node runs after, `children` the captured
    /// graphs of library calls, and `programmatic` the starts of programmatic edges. Errors of the
    /// driver name the node.
    pub(super) fn explicit(
        context: &Arc<PrimaryContext>,
        after: &[&[usize]],
        checked: &[Checked<'_>],
        children: &[Option<Template>],
        programmatic: Vec<Option<usize>>,
    ) -> Result<Template> {
        let mut template = Template::empty(context)?;
        let nodes = after.iter().zip(checked).zip(children);
        for (node, ((after, checked), child)) in nodes.enumerate() {
            let after = after.iter().map(|&after| template.nodes[after]);
            let after: Vec<_> = after.collect();
            let child = child.as_ref().map(Template::raw);
            let (graph, is_early) = (template.raw, programmatic[node].is_some());
            // SAFETY: `raw` is the graph that `empty` made, `after` are nodes that were added to it,
            // and `children` outlives the call.
            let added =
                unsafe { graph_node::add(context, graph, &after, checked, child, is_early) };
            template
                .nodes
                .push(added.within(|| format!("node {node}"))?);
            template.kinds.push(NodeKind::new(checked));
        }
        template.programmatic = programmatic;
        Ok(template)
    }

    /// The number of nodes according to the driver.
    pub(super) fn count(&self) -> Result<usize> {
        let driver = self.context.bind()?;
        let mut nodes = 0;
        // SAFETY: without an array the call only counts; the graph is alive.
        self.context.check("cuGraphGetNodes", unsafe {
            (driver.cuGraphGetNodes)(self.raw, null_mut(), &mut nodes)
        })?;
        Ok(nodes)
    }

    /// Instantiates the graph. With `node_priorities` each node has its own priority, otherwise that of
    /// the stream of a launch.
    /// The first launch uploads it: a graph that is uploaded and not launched yet slows the others of
    /// its stream by about 2 us.
    pub(super) fn instantiate(&self, node_priorities: bool) -> Result<Exec> {
        let flag = CUgraphInstantiate_flags_enum::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
        let flags = u64::from(flag.0) * u64::from(node_priorities);
        let driver = self.context.bind_for(Call::GraphEdit)?;
        let mut exec = Exec {
            context: Arc::clone(&self.context),
            raw: null_mut(),
        };
        // SAFETY: `exec` outlives the call, and the graph is alive.
        self.context.check("cuGraphInstantiate", unsafe {
            (driver.cuGraphInstantiateWithFlags)(&mut exec.raw, self.raw, flags)
        })?;
        let programmatic_edges = self.programmatic_edges().count();
        tracing::debug!(nodes = self.nodes.len(), programmatic_edges, "made a graph");
        Ok(exec)
    }

    /// Its programmatic edges, each as its end and its start.
    fn programmatic_edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let starts = self.programmatic.iter().enumerate();
        starts.filter_map(|(end, start)| Some((end, (*start)?)))
    }

    /// Whether it has programmatic edges.
    fn is_programmatic(&self) -> bool {
        self.programmatic_edges().next().is_some()
    }

    /// Puts full edges in the place of programmatic edges.
    fn make_edges_full(&self) -> Result<()> {
        for (to, from) in self.programmatic_edges() {
            let [from, to] = [from, to].map(|node| self.nodes[node]);
            // SAFETY: the graph and its nodes live as long as `self`.
            unsafe { programmatic_launch::make_full(&self.context, self.raw, from, to) }?;
        }
        Ok(())
    }

    pub(super) fn context(&self) -> &Arc<PrimaryContext> {
        &self.context
    }

    /// The handle, valid as long as `self` lives.
    pub(super) fn raw(&self) -> sys::CUgraph {
        self.raw
    }

    /// A node for messages: its first operation, by the work of the graph's nodes, and its kind.
    fn name(&self, node: sys::CUgraphNode, work: &[NodeWork]) -> Option<String> {
        let index = self.nodes.iter().position(|known| *known == node)?;
        let (place, kind) = (work[index].places().next()?, self.kinds[index].kind);
        Some(format!("operation {place} ({kind})"))
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        if !self.raw.is_null()
            && let Some(driver) = self.context.bind_to_free()
        {
            self.context.calls.add(Call::GraphEdit);
            // SAFETY: `raw` was made for this value and is destroyed once, here;
            // execs made of it are independent of it.
            unsafe { (driver.cuGraphDestroy)(self.raw) };
        }
    }
}

/// An executable graph; null if it could not be made.
pub(super) struct Exec {
    context: Arc<PrimaryContext>,
    raw: sys::CUgraphExec,
}

// SAFETY: a CUgraphExec is a handle that any thread may use, one at a time,
// which owning it without `Sync` ensures.
unsafe impl Send for Exec {}

impl Exec {
    /// Launches it.
    ///
    /// # Safety
    /// Until the work is done, the memory that its nodes access must live, and the host must keep
    /// off what they write.
    pub(super) unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        let driver = self.context.bind_for(Call::Submission)?;
        // SAFETY: both handles are alive; the rest is the caller's promise.
        self.context.check("cuGraphLaunch", unsafe {
            (driver.cuGraphLaunch)(self.raw, stream.raw())
        })
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        if !self.raw.is_null()
            && let Some(driver) = self.context.bind_to_free()
        {
            self.context.calls.add(Call::GraphEdit);
            // SAFETY: `raw` came from cuGraphInstantiate and is destroyed once,
            // here; the driver lets a launch in flight end first.
            unsafe { (driver.cuGraphExecDestroy)(self.raw) };
        }
    }
}

/// What a node does. A place is an index among the operations that the graph was made of.
pub(super) enum NodeWork {
    /// The operation at this place.
    One(usize),
    /// The library call at this place. Its nodes cannot be read back as an operation.
    Library(usize, Op),
    /// Copies and memsets, each with its place, in one launch.
    Copies(Vec<(usize, Op)>),
}

impl NodeWork {
    /// The places of its operations.
    fn places(&self) -> impl Iterator<Item = usize> {
        let (one, copies): (_, &[(usize, Op)]) = match self {
            NodeWork::One(place) | NodeWork::Library(place, _) => (Some(*place), &[]),
            NodeWork::Copies(copies) => (None, copies),
        };
        one.into_iter()
            .chain(copies.iter().map(|(place, _)| *place))
    }
}

/// A graph of a slot.
pub(super) struct Graph {
    /// The loop that replays this graph. Declared first, so that it ends before `exec` and the
    /// templates are dropped.
    resident: Option<ResidentLoop>,
    exec: Exec,
    /// The graph that `exec` was instantiated from, whose nodes identify those of `exec`.
    made: Template,
    /// The graph of the last update, if there was one.
    newest: Option<Template>,
    /// The work of each node, as it is now.
    work: Vec<NodeWork>,
    is_captured: bool,
    /// The first kernel with a priority of its own. If there is one, each node has its own priority.
    urgent_kernel: Option<Arc<str>>,
    /// Whether operations were given other parameters, which the templates do not have.
    was_set: bool,
    /// The uses of each operation, followed by those of failed changes.
    parts: Vec<Vec<AllocationUse>>,
    /// The uses of a launch: the union of `parts`.
    uses: Vec<AllocationUse>,
}

/// A graph that is not instantiated yet.
pub(super) struct Draft {
    pub(super) template: Template,
    pub(super) is_captured: bool,
    /// See [`Graph::urgent_kernel`].
    pub(super) urgent_kernel: Option<Arc<str>>,
    /// The work of each node.
    pub(super) work: Vec<NodeWork>,
    /// The uses of each operation.
    pub(super) parts: Vec<Vec<AllocationUse>>,
}

impl Graph {
    /// Instantiates a draft.
    pub(super) fn new(draft: Draft) -> Result<Graph> {
        Ok(Graph {
            resident: None,
            was_set: false,
            exec: draft.template.instantiate(draft.urgent_kernel.is_some())?,
            urgent_kernel: draft.urgent_kernel,
            made: draft.template,
            newest: None,
            work: draft.work,
            is_captured: draft.is_captured,
            uses: all_uses(&draft.parts),
            parts: draft.parts,
        })
    }

    /// The uses of a launch.
    pub(super) fn uses(&self) -> &[AllocationUse] {
        &self.uses
    }

    /// Updates the executable graph with `draft`, or replaces it if the topology differs, or if the driver
    /// refuses an update with library calls.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a draft that was made in another way; the driver's error if it refuses for
    /// another reason than the topology: the graph then stays, with the allocations of both in its uses.
    pub(super) fn take(&mut self, draft: Draft) -> Result<Built> {
        check_same_build(self.is_captured, draft.is_captured)?;
        // Where nodes were added or left out, the driver says what differs.
        let (made, drafted) = (&self.made, &draft.template);
        let has_other_edges = made.nodes.len() == drafted.nodes.len()
            && !made.programmatic_edges().eq(drafted.programmatic_edges());
        if has_other_edges {
            *self = Graph::new(draft)?;
            let reason =
                "other kernels start before those that they run after have ended".to_owned();
            return Ok(Built::Reinstantiated { reason });
        }
        let context = Arc::clone(&self.exec.context);
        let driver = context.bind_for(Call::GraphEdit)?;
        let mut info = MaybeUninit::<sys::CUgraphExecUpdateResultInfo>::zeroed();
        let info_pointer = info.as_mut_ptr();
        // SAFETY: exec and graph are alive, and `info` outlives the call.
        let result = unsafe {
            (driver.cuGraphExecUpdate_v2)(self.exec.raw, draft.template.raw, info_pointer)
        };
        if result == result_codes::SUCCESS {
            self.uses = all_uses(&draft.parts);
            self.parts = draft.parts;
            self.work = draft.work;
            self.newest = Some(draft.template);
            self.was_set = false;
            return Ok(Built::Updated);
        }
        self.keep(all_uses(&draft.parts));
        if result != result_codes::GRAPH_EXEC_UPDATE_FAILURE {
            return Err(context
                .check("cuGraphExecUpdate", result)
                .expect_err("the result is no success"));
        }
        // SAFETY: zeroed, then written by the driver, each field is some value of
        // its size; the enum is read as its number.
        let (why, node) = unsafe {
            let why = (&raw const (*info_pointer).result).cast::<u32>().read();
            (why, (*info_pointer).errorNode)
        };
        let reason = self.refusal(why, node, &draft);
        let kinds = |kinds: &[NodeKind]| kinds.iter().map(|step| step.kind).collect::<Vec<_>>();
        let same = kinds(&self.made.kinds) == kinds(&draft.template.kinds);
        // The driver treats copies in both directions as the same type of node.
        let is_library = |work: &NodeWork| matches!(work, NodeWork::Library(..));
        if same && !is_of_topology(why) && !self.work.iter().any(is_library) {
            let meaning = Code::of(result).meaning;
            return Err(
                Error::new(ErrorKind::Device, format!("{meaning}: {reason}"))
                    .with_code(result)
                    .fix("drop this graph and make a new one, as Rung::Instantiate does"),
            );
        }
        *self = Graph::new(draft)?;
        Ok(Built::Reinstantiated { reason })
    }

    /// The driver's reason to refuse `newer`, and the operation.
    fn refusal(&self, why: u32, node: sys::CUgraphNode, newer: &Draft) -> String {
        let named = newer.template.name(node, &newer.work);
        let named = named.or_else(|| self.made.name(node, &self.work));
        let place = named.map_or_else(
            || {
                let [old, new] = [&self.work, &newer.work]
                    .map(|work| work.iter().flat_map(NodeWork::places).count());
                format!("{old} operations before, {new} now")
            },
            |name| format!("at {name}"),
        );
        format!("{}, {place}", update_result(why))
    }

    /// Gives one operation other parameters. `child` is the captured graph of a library call.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] for a place that the graph does not have, for another kind of operation, and
    /// for a kernel that cannot start early where the edge before it is programmatic.
    pub(super) fn set(
        &mut self,
        place: usize,
        checked: Checked<'_>,
        functions: &LoadedFunctions,
        child: Option<Template>,
    ) -> Result<()> {
        let mut works = self.work.iter();
        let index = works.position(|work| work.places().any(|known| known == place));
        let index =
            index.ok_or_else(|| Error::usage(format!("the graph has no operation {place}")))?;
        let step = self.newest.as_ref().unwrap_or(&self.made).kinds[index];
        let mut copies = match &self.work[index] {
            NodeWork::One(_) | NodeWork::Library(..) => None,
            NodeWork::Copies(copies) => Some(copies.clone()),
        };
        let copy = copies
            .iter_mut()
            .flatten()
            .find(|(known, _)| *known == place);
        let old = copy.as_ref().map_or(step.kind, |(_, op)| op.kind_name());
        let kind = checked.op().kind_name();
        if kind != old {
            let message = format!(
                "operation {place} of the graph is {old}, and an update cannot change its kind"
            );
            return Err(Error::usage(message).fix(format!("make a new graph for {kind}")));
        }
        let is_early = self
            .made
            .programmatic
            .get(index)
            .is_some_and(Option::is_some);
        let keeps_kernel = copy.is_some() || checked.role() == NodeRole::WaitingKernel;
        if is_early && !keeps_kernel {
            let message = format!(
                "operation {place} of the graph starts before the one that it runs after has ended, \
                 and its new kernel does not wait for that"
            );
            return Err(Error::usage(message).fix("make a new graph"));
        }
        if let Some((_, op)) = copy {
            *op = checked.op().clone();
        }
        let (context, exec, node) = (&self.exec.context, self.exec.raw, self.made.nodes[index]);
        let set = match (&copies, step.function) {
            (Some(copies), Some(function)) => {
                let launch = copies::launch(function, copies.iter().map(|(_, op)| op));
                let launch = Checked::copies(&launch, functions.get(function)?);
                // SAFETY: `node` is of `made`, which `exec` was made of, and both live.
                unsafe { graph_node::set(context, exec, node, &launch, None) }
            }
            // SAFETY: as above, and `child` outlives the call.
            _ => unsafe {
                let child = child.as_ref().map(Template::raw);
                graph_node::set(context, exec, node, &checked, child)
            },
        };
        self.was_set = true;
        let op = checked.op().clone();
        let uses = checked.into_uses();
        if set.is_err() {
            self.keep(uses);
            return set.within(|| format!("operation {place} ({kind})"));
        }
        if let Some(copies) = copies {
            self.work[index] = NodeWork::Copies(copies);
        } else if let NodeWork::Library(_, set) = &mut self.work[index] {
            *set = op;
        }
        if !(uses.is_empty() && self.parts[place].is_empty()) {
            self.parts[place] = uses;
            self.uses = all_uses(&self.parts);
        }
        Ok(())
    }

    /// A failed change may have taken effect in part, so its allocations count as used too.
    fn keep(&mut self, uses: Vec<AllocationUse>) {
        self.parts.push(uses);
        self.uses = all_uses(&self.parts);
    }

    /// The operations of the graph, as it was made or last updated as a whole; library calls as they were
    /// last set.
    ///
    /// # Errors
    /// [`ErrorKind::Mismatch`] if the driver has another number of nodes than were planned, or a node of
    /// copies does something else.
    pub(super) fn ops(
        &self,
        functions: &LoadedFunctions,
        timestamps: &Timestamps,
    ) -> Result<Vec<Op>> {
        let template = self.newest.as_ref().unwrap_or(&self.made);
        let (nodes, planned) = (template.count()?, template.nodes.len());
        if nodes != planned {
            let message = format!("the graph has {nodes} nodes, and {planned} were planned");
            return Err(Error::new(ErrorKind::Mismatch, message));
        }
        let mut ops = Vec::new();
        let nodes = template.nodes.iter().zip(&template.kinds);
        for ((&node, &step), work) in nodes.zip(&self.work) {
            let place = || format!("operation {}", work.places().next().unwrap_or_default());
            let read = || {
                // SAFETY: the nodes of a template live as long as it does.
                let held =
                    unsafe { readback::read(&template.context, node, step, functions, timestamps) };
                held.within(place)
            };
            match work {
                NodeWork::One(place) => ops.push((*place, read()?)),
                NodeWork::Library(place, op) => ops.push((*place, op.clone())),
                NodeWork::Copies(copies) => {
                    let held = read()?;
                    let pieces = copies::ops_of(&held, copies.iter().map(|(_, op)| op));
                    let same = |pieces: &Vec<Op>| {
                        let meant = step.function;
                        meant.is_some_and(|op| copies::launch(op, pieces.iter()) == held)
                    };
                    let pieces = pieces.filter(same).ok_or_else(|| {
                        let message = "the node does other work than the copies that were merged";
                        Error::new(ErrorKind::Mismatch, message).within(place())
                    })?;
                    let places = copies.iter().map(|(place, _)| *place);
                    ops.extend(places.zip(pieces));
                }
            }
        }
        ops.sort_unstable_by_key(|(place, _)| *place);
        Ok(ops.into_iter().map(|(_, op)| op).collect())
    }

    /// Launches it.
    ///
    /// # Safety
    /// Until the work is done, the slot's part of the arenas and the allocations of
    /// [`Graph::uses`] must live, and the host must not access what the graph touches.
    pub(super) unsafe fn launch(&mut self, stream: &Stream) -> Result<()> {
        // SAFETY: what the nodes touch is that part's or of `uses`, as every operation in them was
        // checked, and the caller's to keep.
        unsafe { self.exec.launch(stream) }
    }

    /// The graph's loop on the device, if it is resident.
    pub(super) fn resident(&mut self) -> Option<&mut ResidentLoop> {
        self.resident.as_mut()
    }

    /// The moments of the last batch of the graph's loop, which was seen done.
    pub(super) fn batch_times(&self) -> Option<BatchTimes> {
        self.resident.as_ref().map(ResidentLoop::batch_times)
    }

    /// Refuses to change a resident graph: its loop has a copy.
    pub(super) fn check_changeable(&self) -> Result<()> {
        match self.resident {
            None => Ok(()),
            Some(_) => Err(Error::usage("a resident graph does not change")
                .fix("make a new graph, and drop this one")),
        }
    }

    /// Makes the graph resident: a loop on the device replays it.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] if it is resident already or was set, as the loop would copy the parameters
    /// of before; [`ErrorKind::Unavailable`] for an urgent kernel.
    pub(super) fn make_resident(
        &mut self,
        functions: &LoadedFunctions,
        residency: Residency,
    ) -> Result<()> {
        if self.resident.is_some() || self.was_set {
            return Err(
                Error::usage("the graph is resident, or was changed since it was made")
                    .fix("make a new graph"),
            );
        }
        if let Some(name) = &self.urgent_kernel {
            let why = format!("kernel {name} is declared urgent");
            return Err(no_priority(&why, "leave out Kernel::urgent"));
        }
        let template = self.newest.as_ref().unwrap_or(&self.made);
        let new_loop = || ResidentLoop::new(template, functions, residency);
        let mut made = new_loop();
        if template.is_programmatic() {
            made = programmatic_launch::or_without(template.context(), made, || {
                template.make_edges_full().and_then(|()| new_loop())
            });
        }
        self.resident = Some(made?);
        Ok(())
    }
}
