//! Random walks over the ladder of updates: other memory, values, grids, lengths
//! and mappings for a graph that exists, against a plain model.

use crate::random::Random;
use crate::seeds::each_seed;
use crate::seeds::simulated::{assert_clean, device_with};
use std::cell::Cell;
use std::mem::discriminant;
use std::sync::Arc;
use tapeloop_conformance::program::{BLOCK, CAPACITIES, Input, Program, policies};
use tapeloop_engine::backend::contract::DeviceSlot;
use tapeloop_engine::backend::{Allocation, AllocationView, Backend, Space};
use tapeloop_engine::record::Buffer;
use tapeloop_engine::replay::{
    Bindings, Build, Executor, Lowered, Mode, Policy, Rung, Updates, hazards, lower,
};
use tapeloop_sim::{Fault, SimOptions};

const CAPACITY: usize = CAPACITIES[0];
const BYTES: usize = CAPACITY * 4;

/// Where a buffer's host side is; the slot's own memory if nowhere else.
type Bound = Option<(Allocation, usize)>;

/// What a batch will do, as far as results tell.
#[derive(Clone, Default)]
struct Model {
    factor: f32,
    by: f32,
    /// Blocks of scale, shift and add.
    grids: [usize; 3],
    x_len: usize,
    w_len: usize,
    y_len: usize,
    z_len: usize,
    x: Bound,
    w: Bound,
    y: Bound,
    z: Bound,
}

impl Model {
    fn recorded() -> Self {
        let blocks = CAPACITY / BLOCK;
        Model {
            factor: 2.0,
            by: 1.0,
            grids: [blocks; 3],
            x_len: CAPACITY,
            w_len: CAPACITY,
            y_len: CAPACITY,
            z_len: CAPACITY,
            ..Model::default()
        }
    }

    /// What of `y` a batch determines.
    fn y(&self, input: &Input) -> Vec<f32> {
        let live = input.x.len().min(self.grids[2] * BLOCK);
        let known = live.min(self.x_len).min(self.w_len).min(self.y_len);
        let mid = |i: usize| {
            if i < self.grids[0] * BLOCK {
                input.x[i] * self.factor
            } else {
                0.0
            }
        };
        (0..known).map(|i| mid(i) + input.w[i]).collect()
    }

    fn z(&self, input: &Input) -> Vec<f32> {
        let live = input.x.len().min(self.grids[1] * BLOCK);
        let known = live.min(self.x_len).min(self.z_len);
        (0..known).map(|i| input.x[i] + self.by).collect()
    }
}

struct Walk<'a> {
    program: &'a Program,
    policy: Policy,
    backend: Arc<dyn Backend>,
    random: Random,
    device_slot: Box<dyn DeviceSlot>,
    executor: Executor,
    model: Model,
    /// Allocations that buffers may move to, old ones among them.
    allocations: Vec<Allocation>,
    expected: Updates,
    in_flight: Option<(Input, Model)>,
}

fn write(device_slot: &mut dyn DeviceSlot, buffer: Buffer<f32>, bound: &Bound, values: &[f32]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    match bound {
        Some((allocation, at)) => {
            allocation.write().unwrap()[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        None => device_slot.host_mut(&[buffer.id()])[0][..bytes.len()].copy_from_slice(bytes),
    }
}

fn assert_starts(device_slot: &dyn DeviceSlot, buffer: Buffer<f32>, bound: &Bound, values: &[f32]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    match bound {
        Some((allocation, at)) => {
            assert_eq!(&allocation.read().unwrap()[*at..at + bytes.len()], bytes)
        }
        None => assert_eq!(&device_slot.host(buffer.id())[..bytes.len()], bytes),
    }
}

impl Walk<'_> {
    fn replay(&mut self) {
        self.finish();
        let elements = 1 + self.random.below(CAPACITY);
        let input = Input::from_seed(self.random.next(), elements);
        let handles = self.program.handles;
        let device_slot = &mut *self.device_slot;
        let header = (elements as u32).to_le_bytes();
        device_slot.host_mut(&[handles.header.id()])[0][..4].copy_from_slice(&header);
        write(device_slot, handles.x, &self.model.x, &input.x);
        write(device_slot, handles.w, &self.model.w, &input.w);
        self.executor
            .replay(device_slot, 0, input.extent())
            .unwrap();
        self.in_flight = Some((input, self.model.clone()));
    }

    /// Compares what is in flight with the model as it was when it was launched.
    fn finish(&mut self) {
        let Some((input, model)) = self.in_flight.take() else {
            return;
        };
        if self.random.flip() {
            self.device_slot.wait().unwrap()
        } else {
            while !self.device_slot.is_done().unwrap() {}
        }
        let handles = self.program.handles;
        assert_starts(&*self.device_slot, handles.y, &model.y, &model.y(&input));
        assert_starts(&*self.device_slot, handles.z, &model.z, &model.z(&input));
    }

    /// A place in some allocation, old or new.
    fn place(&mut self, space: Space) -> (Allocation, usize) {
        if self.allocations.len() < 2 || self.random.below(3) == 0 {
            let allocation = self.backend.allocate(space, 8 * BYTES).unwrap();
            self.allocations.push(allocation);
        }
        let fits = self
            .allocations
            .iter()
            .filter(|allocation| allocation.space() == space);
        let fits: Vec<Allocation> = fits.cloned().collect();
        if fits.is_empty() {
            let allocation = self.backend.allocate(space, 8 * BYTES).unwrap();
            self.allocations.push(allocation.clone());
            return (allocation, 0);
        }
        let allocation = self.random.pick(&fits).clone();
        (allocation, self.random.below(8) * BYTES)
    }

    /// Changes one thing in both.
    fn change(&mut self, bindings: &mut Bindings, model: &mut Model) {
        let handles = self.program.handles;
        let elements = 1 + self.random.below(CAPACITY);
        let blocks = 1 + self.random.below(CAPACITY / BLOCK);
        let value = self.random.below(9) as f32;
        let mapped = self.random.flip();
        let choice = self.random.below(16);
        let host = |model: &mut Model, which: usize, walk: &mut Self, bindings: &mut Bindings| {
            let (allocation, at) = walk.place(Space::Pinned);
            let view = AllocationView::new(&allocation, at, BYTES).unwrap();
            let (buffer, bound) = match which {
                0 => (handles.x, &mut model.x),
                1 => (handles.w, &mut model.w),
                2 => (handles.y, &mut model.y),
                _ => (handles.z, &mut model.z),
            };
            // Where another buffer lies already, the place is refused.
            if bindings.bind_host(buffer, view).is_ok() {
                *bound = Some((allocation, at));
            }
        };
        match choice {
            0..=3 => host(model, choice, self, bindings),
            4..=6 => {
                let (allocation, at) = self.place(Space::Device);
                let view = AllocationView::new(&allocation, at, BYTES).unwrap();
                let buffer = [handles.x, handles.mid, handles.y][choice - 4];
                let _ = bindings.bind_device(buffer, view);
            }
            7..=9 => {
                let launch = choice - 7;
                bindings.set_grid(launch, [blocks as u32, 1, 1]).unwrap();
                model.grids[launch] = blocks;
            }
            10 => {
                bindings.set_scalar(0, "factor", value).unwrap();
                model.factor = value;
            }
            11 => {
                bindings.set_scalar(1, "by", value).unwrap();
                model.by = value;
            }
            12 | 13 => {
                let (buffer, len) = match self.random.below(4) {
                    0 => (handles.x, &mut model.x_len),
                    1 => (handles.w, &mut model.w_len),
                    2 => (handles.y, &mut model.y_len),
                    _ => (handles.z, &mut model.z_len),
                };
                bindings.set_copy_len(buffer, elements).unwrap();
                *len = elements;
            }
            _ => {
                let buffer = *self.random.pick(&[handles.w, handles.y, handles.z]);
                bindings.set_mapped(buffer, mapped).unwrap();
            }
        }
    }

    fn update(&mut self) {
        if self.random.flip() {
            self.finish();
        }
        let old = self
            .executor
            .bindings(&mut *self.device_slot, 0)
            .unwrap()
            .clone();
        let (mut new, mut model) = (old.clone(), self.model.clone());
        for _ in 0..1 + self.random.below(4) {
            self.change(&mut new, &mut model);
        }
        let all = [
            Rung::Unchanged,
            Rung::Params,
            Rung::Update,
            Rung::Instantiate,
        ];
        // Half of the time the ladder chooses by itself.
        let any = if self.random.flip() { 1 } else { all.len() };
        let least = *self.random.pick(&all[..any]);
        let before = self.expected.clone();
        let rung = self.expected_rung(&old, &new, least);
        match self
            .executor
            .update_from(&mut *self.device_slot, 0, new, least)
        {
            Ok(taken) => {
                assert_eq!(taken, rung, "{:?} from {least:?}", self.policy);
                self.model = model;
                self.count(rung);
            }
            // The bucket runs as before, and nothing is counted.
            Err(error) => {
                assert!(error.to_string().contains("as planned"), "{error}");
                self.expected = before;
            }
        }
        // Some handles go away, and what is bound stays.
        while self.allocations.len() > 4 {
            self.allocations.remove(self.random.below(4));
        }
    }

    fn expected_rung(&mut self, old: &Bindings, new: &Bindings, least: Rung) -> Rung {
        if self.policy.mode == Mode::Stream {
            return Rung::Unchanged;
        }
        let commands = |body: &[Lowered]| -> Vec<usize> {
            body.iter().map(|lowered| lowered.command()).collect()
        };
        let kinds = |body: &[Lowered]| -> Vec<_> {
            body.iter()
                .map(|lowered| discriminant(lowered.op()))
                .collect()
        };
        let edges = |body: &[Lowered]| hazards(new.recording(), &commands(body));
        let (old, new) = (lower(old), lower(new));
        let changed = old
            .iter()
            .zip(&new)
            .filter(|(old, new)| old.op() != new.op());
        let changed = changed.count();
        let cheapest = match (commands(&old) == commands(&new), changed) {
            (false, _) => Rung::Update,
            (true, 0) => Rung::Unchanged,
            (true, _) => Rung::Params,
        };
        let same = kinds(&old) == kinds(&new)
            && (self.policy.build == Build::Capture || edges(&old) == edges(&new));
        match cheapest.max(least) {
            // A loop on the device has a copy of the graph.
            rung if rung > Rung::Unchanged && self.policy.mode == Mode::Resident => {
                Rung::Instantiate
            }
            Rung::Params => {
                self.expected.params_nodes += changed as u64;
                Rung::Params
            }
            Rung::Update if !same => Rung::Instantiate,
            rung => rung,
        }
    }

    fn count(&mut self, rung: Rung) {
        match rung {
            Rung::Unchanged => self.expected.unchanged += 1,
            Rung::Params => self.expected.params += 1,
            Rung::Update => self.expected.updates += 1,
            Rung::Instantiate => self.expected.instantiations += 1,
        }
    }
}

fn walk(program: &Program, seed: u64, policy: &Policy, faults: Vec<Fault>) -> Updates {
    let (sim, backend) = device_with(SimOptions {
        faults,
        poisoned: seed % 2 == 1,
        ..SimOptions::seeded(seed)
    });
    let (device_slot, executor) = program.slots(&backend, 1, policy).unwrap().remove(0);
    let mut walk = Walk {
        program,
        policy: *policy,
        backend,
        random: Random::new(seed),
        device_slot,
        executor,
        model: Model::recorded(),
        allocations: Vec::new(),
        expected: Updates::default(),
        in_flight: None,
    };
    for _ in 0..8 {
        walk.update();
        walk.replay();
    }
    walk.finish();
    let mut updates = walk.executor.updates().clone();
    updates.last_reason = None;
    let expected = walk.expected.clone();
    drop(walk);
    assert_clean(&sim);
    assert_eq!(updates, expected);
    updates
}

#[test]
fn walks_over_the_ladder_are_right_ordered_and_take_the_rungs_expected() {
    let (program, policies) = (Program::new(), policies());
    let taken = Cell::new([0; 4]);
    let seeds = each_seed(150, |seed| {
        for (index, policy) in policies.iter().enumerate() {
            // Another walk for each.
            let seed = seed * policies.len() as u64 + index as u64;
            let updates = walk(&program, seed, policy, Vec::new());
            let [unchanged, params, all, new] = taken.get();
            taken.set([
                unchanged + updates.unchanged,
                params + updates.params,
                all + updates.updates,
                new + updates.instantiations,
            ]);
        }
    });
    let is_taken = taken.get().iter().all(|times| *times > seeds / 10);
    assert!(is_taken, "{taken:?} in {seeds} seeds");
}

#[test]
fn an_update_whose_capture_fails_leaves_the_bucket_as_it_was() {
    let (program, policies) = (Program::new(), policies());
    let captures = |policy: &&Policy| policy.build == Build::Capture;
    each_seed(100, |seed| {
        for policy in policies.iter().filter(captures) {
            // The first two make the buckets ready.
            let fault = |capture| Fault::Capture { capture };
            walk(
                &program,
                seed,
                policy,
                (2..20).step_by(2).map(fault).collect(),
            );
        }
    });
}

#[test]
fn an_update_that_is_refused_leaves_the_bucket_as_it_was() {
    let (program, policies) = (Program::new(), policies());
    each_seed(100, |seed| {
        for policy in &policies {
            // Two changes in a row, so that setting back fails too, and one.
            let params = [3, 4, 9, 20, 21, 22, 40].map(|change| Fault::Params { change });
            let updates = [0, 1, 3, 6].map(|update| Fault::Update { update });
            let faults = params.into_iter().chain(updates).collect();
            walk(&program, seed, policy, faults);
        }
    });
}
