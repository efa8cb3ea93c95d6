//! A small workload with two uniforms, independent kernels, and items that fail on request. Its kernels are
//! CUDA text with CPU twins.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, TwinLaunch, Uniform};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};
use tapeloop_engine::{Error, Result};

/// Products are not contracted, so that the twins have the same bits.
const TEXT: &str = r#"
extern "C" __global__ void tint(const unsigned* header, const float* x, const float* factor, float* mid)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) mid[i] = __fmul_rn(x[i], *factor);
}
extern "C" __global__ void timestamp(const unsigned* header, const float* mid, const unsigned* owner,
                                 const unsigned* bias, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[0]) y[i] = __float_as_uint(mid[i]) ^ bias[owner[i]];
}
extern "C" __global__ void season(const unsigned* header, const unsigned* bias, const unsigned* salt, unsigned* z)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < header[1]) z[i] = bias[i] * 2654435761u + *salt;
}
"#;

/// Threads of a block: few, so that the grid of a small bucket is too small for a
/// large batch.
const BLOCK: u32 = 8;

/// The first `live` threads of those that the grid has.
fn threads(launch: &TwinLaunch<'_>, live: u32) -> Range<usize> {
    0..live.min(launch.grid[0] * BLOCK) as usize
}

fn tint(launch: &mut TwinLaunch<'_>) {
    let (header, x): (&[u32], &[f32]) = (launch.read(), launch.read());
    let factor = launch.read::<f32>()[0];
    let mid: &mut [f32] = launch.write();
    threads(launch, header[0]).for_each(|i| mid[i] = x[i] * factor);
}

fn timestamp(launch: &mut TwinLaunch<'_>) {
    let (header, mid): (&[u32], &[f32]) = (launch.read(), launch.read());
    let (owner, bias): (&[u32], &[u32]) = (launch.read(), launch.read());
    let y: &mut [u32] = launch.write();
    threads(launch, header[0]).for_each(|i| y[i] = mid[i].to_bits() ^ bias[owner[i] as usize]);
}

fn season(launch: &mut TwinLaunch<'_>) {
    let (header, bias): (&[u32], &[u32]) = (launch.read(), launch.read());
    let salt = launch.read::<u32>()[0];
    let z: &mut [u32] = launch.write();
    threads(launch, header[1]).for_each(|i| z[i] = seasoned(bias[i], salt));
}

fn seasoned(bias: u32, salt: u32) -> u32 {
    bias.wrapping_mul(2_654_435_761).wrapping_add(salt)
}

/// Where an item fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemFate {
    Fine,
    NoExtent,
    WriteFails,
    ReadFails,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub id: u32,
    pub bias: u32,
    pub x: Vec<f32>,
    pub fate: ItemFate,
}

/// The values of the uniforms: `factor` and `salt`.
pub type Uniforms = (f32, u32);

pub const UNIFORMS: Uniforms = (1.5, 7);

/// `y` of the item's elements, and its `z`.
pub type Output = (Vec<u32>, u32);

impl Item {
    /// An item whose contents follow from its number. The constants are arbitrary: items and their elements only must
    /// differ.
    pub fn new(id: u32, elements: usize) -> Self {
        let value = |i: usize| ((id as usize * 131 + i * 17) % 4096) as f32 * 0.37 - 700.0;
        Item {
            id,
            bias: id.wrapping_mul(0x9e37_79b9) ^ 0x5a5a,
            x: (0..elements).map(value).collect(),
            fate: ItemFate::Fine,
        }
    }

    pub fn output(&self, (factor, salt): Uniforms) -> Output {
        let y = self.x.iter().map(|x| (x * factor).to_bits() ^ self.bias);
        (y.collect(), seasoned(self.bias, salt))
    }
}

/// Items of many sizes, all at most `elements_max`.
pub fn items(count: usize, elements_max: usize) -> Vec<Item> {
    let item = |n: usize| Item::new(n as u32, 1 + n * 37 % elements_max);
    (0..count).map(item).collect()
}

/// The items that were written.
#[derive(Default)]
pub struct WriteLog(pub Mutex<BTreeSet<u32>>);

pub struct Mix {
    kernels: [Kernel; 3],
    log: Option<Arc<WriteLog>>,
    /// A deliberate mistake: the last element of each item is not written.
    pub forgets: bool,
}

#[derive(Clone, Copy)]
pub struct Buffers {
    pub header: Buffer<u32>,
    pub x: Buffer<f32>,
    pub owner: Buffer<u32>,
    pub bias: Buffer<u32>,
    pub mid: Buffer<f32>,
    pub y: Buffer<u32>,
    pub z: Buffer<u32>,
    pub factor: Uniform<f32>,
    pub salt: Uniform<u32>,
}

impl Mix {
    pub fn new() -> Self {
        let image = Image::cuda("mix.cu", TEXT);
        let kernel = |name: &str| Kernel::new(name).block(BLOCK).reads::<u32>("header");
        // SAFETY: the kernels of the text touch what the header counts of their buffers,
        // and the tests write no larger counts than there is capacity.
        let with_code = |kernel: Kernel| unsafe { kernel.code(&image) };
        let tint = kernel("tint")
            .reads::<f32>("x")
            .reads::<f32>("factor")
            .writes::<f32>("mid")
            .twin(tint);
        let timestamp = kernel("timestamp")
            .reads::<f32>("mid")
            .reads::<u32>("owner")
            .reads::<u32>("bias")
            .writes::<u32>("y")
            .twin(timestamp);
        let season = kernel("season")
            .reads::<u32>("bias")
            .reads::<u32>("salt")
            .writes::<u32>("z")
            .twin(season);
        Mix {
            kernels: [tint, timestamp, season].map(with_code),
            log: None,
            forgets: false,
        }
    }

    pub fn logged(log: &Arc<WriteLog>) -> Self {
        Mix {
            log: Some(Arc::clone(log)),
            ..Mix::new()
        }
    }
}

impl Workload for Mix {
    type Item = Item;
    type Output = Output;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["elements", "items"]
    }

    fn extent(&self, item: &Item) -> Result<Extent> {
        match item.fate {
            ItemFate::NoExtent => Err(Error::input("no extent, as told")),
            _ => Ok(Extent::from([item.x.len() as u32, 1])),
        }
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        let (axis, elements) = (0, 1);
        let buffers = Buffers {
            header: recorder.header(),
            x: recorder.upload_buffer("x", 0, 1),
            owner: recorder.upload_buffer("owner", 0, 1),
            bias: recorder.upload_buffer("bias", 1, 1),
            mid: recorder.device_buffer("mid", axis, elements),
            y: recorder.download_buffer("y", 0, 1),
            z: recorder.download_buffer("z", 1, 1),
            factor: recorder.uniform("factor", UNIFORMS.0),
            salt: recorder.uniform("salt", UNIFORMS.1),
        };
        let Buffers {
            header,
            x,
            owner,
            bias,
            mid,
            y,
            z,
            factor,
            salt,
        } = buffers;
        recorder.upload(header);
        recorder.upload(x);
        recorder.upload(owner);
        recorder.upload(bias);
        recorder.memset(mid, 0xff);
        let blocks = |axis| recorder.capacity(axis).div_ceil(BLOCK);
        let (by_element, by_item) = (blocks(0), blocks(1));
        let [tint, timestamp, season] = &self.kernels;
        let args = [header.into(), x.into(), factor.into(), mid.into()];
        recorder.launch(tint, by_element, &args);
        let args = [
            header.into(),
            mid.into(),
            owner.into(),
            bias.into(),
            y.into(),
        ];
        recorder.launch(timestamp, by_element, &args);
        let args = [header.into(), bias.into(), salt.into(), z.into()];
        recorder.launch(season, by_item, &args);
        recorder.download(y);
        recorder.download(z);
        Ok(buffers)
    }

    fn write(
        &self,
        buffers: &Buffers,
        item: &Item,
        start: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        if let Some(log) = &self.log {
            let is_first = log.0.lock().unwrap().insert(item.id);
            assert!(is_first, "an item is written once");
        }
        let written = item.x.len() - usize::from(self.forgets);
        views.take(buffers.x)[..written].copy_from_slice(&item.x[..written]);
        views.take(buffers.owner).fill(start[1]);
        views.take(buffers.bias)[0] = item.bias;
        match item.fate {
            ItemFate::WriteFails => Err(Error::input("no write, as told")),
            _ => Ok(()),
        }
    }

    fn read(
        &self,
        buffers: &Buffers,
        item: &Item,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Output> {
        match item.fate {
            ItemFate::ReadFails => Err(Error::input("no read, as told")),
            _ => Ok((views.get(buffers.y).to_vec(), views.get(buffers.z)[0])),
        }
    }
}
