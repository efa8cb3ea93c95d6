//! The memory of embedders: pools, buffers and their parts, on the CPU backend.

use tapeloop_conformance::forward;

mod buffers;
mod graphs;
mod knobs;
mod leaks;
mod model;
mod scarce;

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use std::time::Duration;
use tapeloop_engine::Result;
use tapeloop_engine::backend::{AllocationView, Backend, Space, cpu::CpuBackend};
use tapeloop_engine::memory::{DeviceBuffer, Limits, PinnedBuffer, Pool, PoolConfig, SpaceStats};

const SPACES: [Space; 2] = [Space::Device, Space::Pinned];

fn backend() -> Arc<dyn Backend> {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    Arc::new(CpuBackend::new(Arc::new(pool)))
}

/// Keeps 8 free allocations of a size for a minute, and knows no other limit.
fn roomy() -> PoolConfig {
    let limits = Limits {
        bytes_max: None,
        cached_max_per_class: 8,
        idle_trim: Duration::from_secs(60),
    };
    PoolConfig {
        device: limits,
        pinned: limits,
        tracking: true,
        fill: None,
        ..PoolConfig::production()
    }
}

fn limits(config: &mut PoolConfig, space: Space) -> &mut Limits {
    match space {
        Space::Device => &mut config.device,
        Space::Pinned => &mut config.pinned,
    }
}

fn stats(pool: &Pool, space: Space) -> SpaceStats {
    match space {
        Space::Device => pool.stats().device,
        Space::Pinned => pool.stats().pinned,
    }
}

/// Bytes in either kind of memory.
enum Bytes {
    Device(DeviceBuffer<u8>),
    Pinned(PinnedBuffer<u8>),
}

fn take(pool: &Pool, space: Space, len: usize, owner: &'static str) -> Result<Bytes> {
    Ok(match space {
        Space::Device => Bytes::Device(pool.device(len, owner)?),
        Space::Pinned => Bytes::Pinned(pool.pinned(len, owner)?),
    })
}

impl Bytes {
    fn view(&self) -> AllocationView {
        match self {
            Bytes::Device(buffer) => buffer.view(),
            Bytes::Pinned(buffer) => buffer.view(),
        }
    }

    fn fill(&mut self, byte: u8) {
        match self {
            Bytes::Device(buffer) => buffer.upload(&vec![byte; buffer.len()]).unwrap(),
            Bytes::Pinned(buffer) => buffer.write().unwrap().fill(byte),
        }
    }

    fn get(&self) -> Vec<u8> {
        match self {
            Bytes::Device(buffer) => {
                let mut bytes = vec![0; buffer.len()];
                buffer.download(&mut bytes).unwrap();
                bytes
            }
            Bytes::Pinned(buffer) => buffer.read().unwrap().to_vec(),
        }
    }
}
