//! A small program with something of everything: two independent outputs, scratch
//! that stays on the device, and buffers that can and cannot be mapped.

use crate::random::Random;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::backend::contract::DeviceSlot;
use tapeloop_engine::backend::contract::Priority;
use tapeloop_engine::backend::{Backend, Residency};
use tapeloop_engine::record::{Buffer, Kernel, Recorder, TwinLaunch, Unit};
use tapeloop_engine::replay::{Bucket, Buckets, Executor, Policy};
use tapeloop_engine::workload::Extent;
use tapeloop_sim::{Live, SimBackend, SimOptions};

/// Elements that one block computes.
pub const BLOCK: usize = 4;

/// Capacities of the buckets.
pub const CAPACITIES: [usize; 2] = [8, 32];

#[derive(Clone, Copy)]
pub struct Handles {
    pub header: Buffer<u32>,
    pub x: Buffer<f32>,
    pub w: Buffer<f32>,
    pub mid: Buffer<f32>,
    pub y: Buffer<f32>,
    pub z: Buffer<f32>,
}

pub struct Program {
    pub buckets: Arc<Buckets>,
    pub handles: Handles,
}

fn live(launch: &mut TwinLaunch<'_>) -> usize {
    let blocks = launch.grid[0] as usize;
    let header: &[u32] = launch.read();
    (header[0] as usize).min(blocks * BLOCK)
}

fn scale_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (x, mid): (&[f32], &mut [f32]) = (launch.read(), launch.write());
    let factor: f32 = launch.scalar();
    (0..live).for_each(|i| mid[i] = x[i] * factor);
}

fn shift_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (x, z): (&[f32], &mut [f32]) = (launch.read(), launch.write());
    let by: f32 = launch.scalar();
    (0..live).for_each(|i| z[i] = x[i] + by);
}

fn add_live(launch: &mut TwinLaunch<'_>) {
    let live = live(launch);
    let (mid, w): (&[f32], &[f32]) = (launch.read(), launch.read());
    let y: &mut [f32] = launch.write();
    (0..live).for_each(|i| y[i] = mid[i] + w[i]);
}

fn record(mut recorder: Recorder) -> (Bucket, Handles) {
    let capacity = recorder.capacity(0) as usize;
    let kernel = |name: &str| Kernel::new(name).reads::<u32>("header");
    let scale = kernel("scale").reads::<f32>("x").writes::<f32>("mid");
    let scale = scale
        .scalar::<f32>("factor")
        .changeable("factor")
        .twin(scale_live);
    let shift = kernel("shift").reads::<f32>("x").writes::<f32>("z");
    let shift = shift.scalar::<f32>("by").changeable("by").twin(shift_live);
    let add = kernel("add").reads::<f32>("mid").reads::<f32>("w");
    let add = add.writes::<f32>("y").twin(add_live);
    let unit = Unit::PerAxis {
        axis: 0,
        elements: 1,
    };
    let handles = Handles {
        header: recorder.header(),
        x: recorder.upload_buffer("x", 0, 1),
        w: recorder.upload_buffer("w", 0, 1),
        mid: recorder.device_buffer("mid", unit),
        y: recorder.download_buffer("y", 0, 1),
        z: recorder.download_buffer("z", 0, 1),
    };
    let Handles {
        header,
        x,
        w,
        mid,
        y,
        z,
    } = handles;
    let blocks = capacity.div_ceil(BLOCK) as u32;
    recorder.upload(header);
    recorder.upload(x);
    recorder.upload(w);
    recorder.memset(mid, 0);
    let args = [header.into(), x.into(), mid.into(), 2f32.into()];
    recorder.launch(&scale, blocks, &args);
    let args = [header.into(), x.into(), z.into(), 1f32.into()];
    recorder.launch(&shift, blocks, &args);
    let args = [header.into(), mid.into(), w.into(), y.into()];
    recorder.launch(&add, blocks, &args);
    recorder.download(y);
    recorder.download(z);
    let bucket = Bucket {
        capacity: Extent::from([capacity as u32]),
        recording: Arc::new(recorder.finish().unwrap()),
    };
    (bucket, handles)
}

impl Program {
    pub fn new() -> Self {
        let capacities = CAPACITIES.map(|capacity| [capacity as u32]);
        let recorders = Recorder::ladder(&capacities.each_ref().map(|it| it.as_slice()));
        let recorded: Vec<_> = recorders.into_iter().map(record).collect();
        let handles = recorded[0].1;
        let buckets = recorded.into_iter().map(|(bucket, _)| bucket).collect();
        Program {
            buckets: Arc::new(Buckets::new(buckets).unwrap()),
            handles,
        }
    }

    pub fn open(
        &self,
        backend: &Arc<dyn Backend>,
        device_slots: usize,
    ) -> tapeloop_engine::Result<Vec<Box<dyn DeviceSlot>>> {
        let buffers = self.buckets.largest().recording.buffers();
        backend.open_slots(buffers, device_slots, Priority::Normal)
    }

    /// Slots with an executor each.
    pub fn slots(
        &self,
        backend: &Arc<dyn Backend>,
        device_slots: usize,
        policy: &Policy,
    ) -> tapeloop_engine::Result<Vec<(Box<dyn DeviceSlot>, Executor)>> {
        let device_slots = self.open(backend, device_slots)?;
        let slot = |mut device_slot: Box<dyn DeviceSlot>| {
            let executor = Executor::new(backend, &mut *device_slot, &self.buckets, policy)?;
            Ok((device_slot, executor))
        };
        device_slots.into_iter().map(slot).collect()
    }
}

/// What a batch is given.
#[derive(Clone, Debug)]
pub struct Input {
    pub x: Vec<f32>,
    pub w: Vec<f32>,
}

impl Input {
    pub fn random(random: &mut Random, elements: usize) -> Self {
        let mut numbers = || (0..elements).map(|_| random.below(1000) as f32).collect();
        Input {
            x: numbers(),
            w: numbers(),
        }
    }

    pub fn extent(&self) -> Extent {
        Extent::from([self.x.len() as u32])
    }

    pub fn y(&self, factor: f32) -> Vec<f32> {
        let pairs = self.x.iter().zip(&self.w);
        pairs.map(|(x, w)| x * factor + w).collect()
    }

    pub fn z(&self, by: f32) -> Vec<f32> {
        self.x.iter().map(|x| x + by).collect()
    }
}

impl Program {
    pub fn fill(&self, device_slot: &mut dyn DeviceSlot, input: &Input) {
        let Handles { header, x, w, .. } = self.handles;
        let mut views = device_slot.host_mut(&[header.id(), x.id(), w.id()]);
        let live = input.x.len();
        bytemuck::cast_slice_mut::<u8, u32>(views[0])[0] = live as u32;
        bytemuck::cast_slice_mut::<u8, f32>(views[1])[..live].copy_from_slice(&input.x);
        bytemuck::cast_slice_mut::<u8, f32>(views[2])[..live].copy_from_slice(&input.w);
    }

    /// Whether the slot holds the results of `input` as recorded.
    pub fn is_right(&self, device_slot: &dyn DeviceSlot, input: &Input) -> bool {
        let starts = |buffer: Buffer<f32>, expected: Vec<f32>| {
            bytemuck::cast_slice::<u8, f32>(device_slot.host(buffer.id()))[..expected.len()]
                == expected
        };
        starts(self.handles.y, input.y(2.0)) & starts(self.handles.z, input.z(1.0))
    }
}

/// Every combination of a policy's settings; transfer `auto` maps the small buffers only, and loops
/// end after some steps of the simulated device.
pub fn policies() -> Vec<Policy> {
    let small = |policy| Policy {
        mapped_bytes_max: 64,
        residency: Residency {
            idle: Duration::from_micros(30),
            busy: Duration::from_micros(300),
            ..Residency::default()
        },
        ..policy
    };
    Policy::combinations().map(small).collect()
}

/// A device without faults. Every second seed starts its memory poisoned.
pub fn device(seed: u64) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    device_with(SimOptions {
        poisoned: seed % 2 == 1,
        ..SimOptions::seeded(seed)
    })
}

pub fn device_with(options: SimOptions) -> (Arc<SimBackend>, Arc<dyn Backend>) {
    let sim = Arc::new(SimBackend::new(options));
    let backend: Arc<dyn Backend> = sim.clone();
    (sim, backend)
}

/// No rule was broken, and everything was given back.
pub fn assert_clean(sim: &SimBackend) {
    let violations: Vec<String> = sim.violations().iter().map(|v| v.to_string()).collect();
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(sim.live(), Live::default());
}
