//! A workload that looks numbers up in a resident table: `y = table[x % n] * x`. One that counts
//! updates the table.

use tapeloop_engine::Result;
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::record::{Buffer, Image, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::workload::{Extent, ReadViews, ResidentViews, Workload, WriteViews};

/// Elements of the table.
pub const TABLE: usize = 1_000;

/// A number at which both twins panic, and both kernels trap.
pub const FAULTS: u32 = u32::MAX;

/// The kernel that counts updates the table in the order of its threads, so it has one.
const TEXT: &str = r#"
extern "C" __global__ void lookup(const unsigned* header, const unsigned* x, const unsigned* table, unsigned* y)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= header[0]) return;
    if (x[i] == 0xffffffffu) asm volatile("trap;");
    y[i] = table[x[i] % 1000u] * x[i];
}
extern "C" __global__ void count(const unsigned* header, const unsigned* x, unsigned* table /* updated */, unsigned* y)
{
    if (blockIdx.x * blockDim.x + threadIdx.x != 0) return;
    for (unsigned i = 0; i < header[0]; ++i) {
        if (x[i] == 0xffffffffu) asm volatile("trap;");
        y[i] = ++table[x[i] % 1000u];
    }
}
"#;

pub(crate) const TWINS: [(&str, Twin); 2] = [("lookup", lookup), ("count", count)];

/// The twin of the kernel that reads the table.
fn lookup(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let x: &[u32] = launch.read();
    let table: &[u32] = launch.read();
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        assert!(*x != FAULTS, "planted");
        *y = table[*x as usize % table.len()].wrapping_mul(*x);
    }
}

/// The twin of the kernel that counts in the table.
fn count(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let x: &[u32] = launch.read();
    let table: &mut [u32] = launch.write();
    let y: &mut [u32] = launch.write();
    for (y, x) in y.iter_mut().zip(x).take(header[0] as usize) {
        assert!(*x != FAULTS, "planted");
        let counter = &mut table[*x as usize % TABLE];
        *counter += 1;
        *y = *counter;
    }
}

/// An entry of the table: each is another number (Knuth's multiplicative hash), so that a wrong place shows.
pub fn entry(index: usize) -> u32 {
    (index as u32 + 1).wrapping_mul(2_654_435_761)
}

/// The result for a number.
pub fn expected(x: u32) -> u32 {
    entry(x as usize % TABLE).wrapping_mul(x)
}

/// The buffers of a [`Lookup`].
#[derive(Clone, Copy)]
pub struct Buffers {
    /// The numbers.
    pub x: Buffer<u32>,
    /// The results.
    pub y: Buffer<u32>,
    /// The table.
    pub table: Buffer<u32>,
}

/// The workload.
pub struct Lookup {
    kernel: Kernel,
    is_replaceable: bool,
}

impl Default for Lookup {
    fn default() -> Self {
        Lookup::new()
    }
}

impl Lookup {
    /// With a kernel that reads the table.
    pub fn new() -> Self {
        let kernel = Kernel::new("lookup")
            .reads::<u32>("header")
            .reads::<u32>("x");
        Lookup::with_kernel(kernel.reads::<u32>("table"), lookup)
    }

    /// With a kernel that reads the table, which can be replaced.
    pub fn replaceable() -> Self {
        Lookup {
            is_replaceable: true,
            ..Lookup::new()
        }
    }

    /// With a kernel that counts in the table how often it looks there.
    pub fn counting() -> Self {
        let kernel = Kernel::new("count")
            .reads::<u32>("header")
            .reads::<u32>("x");
        Lookup::with_kernel(kernel.updates::<u32>("table"), count)
    }

    /// The workload with a kernel that lacks its last parameter and its code.
    fn with_kernel(kernel: Kernel, twin: Twin) -> Self {
        let kernel = kernel.writes::<u32>("y");
        // SAFETY: the kernels touch what the header counts of their buffers, and the table.
        let kernel = unsafe { kernel.code(&Image::cuda("lookup.cu", TEXT)) };
        Lookup {
            kernel: kernel.twin(twin),
            is_replaceable: false,
        }
    }

    /// Records a batch without an engine.
    pub fn record_with(&self, recorder: &mut Recorder) -> Buffers {
        let header = recorder.header();
        let x = recorder.upload_buffer("x", 0, 1);
        let y = recorder.download_buffer("y", 0, 1);
        let table = if self.is_replaceable {
            recorder.replaceable_buffer("table", TABLE)
        } else {
            recorder.resident_buffer("table", TABLE)
        };
        recorder.upload(header);
        recorder.upload(x);
        let args = [header.into(), x.into(), table.into(), y.into()];
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(&self.kernel, blocks, &args);
        recorder.download(y);
        Buffers { x, y, table }
    }
}

impl Workload for Lookup {
    type Item = u32;
    type Output = u32;
    type Buffers = Buffers;

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }
    fn extent(&self, _: &u32) -> Result<Extent> {
        Ok(Extent::from([1]))
    }
    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<Buffers> {
        Ok(self.record_with(recorder))
    }
    fn fill_resident(&self, to: &Buffers, views: &mut ResidentViews<'_>) -> Result<()> {
        let table = views.take(to.table).iter_mut().enumerate();
        table.for_each(|(index, value)| *value = entry(index));
        Ok(())
    }
    fn write(&self, to: &Buffers, item: &u32, _: Extent, views: &mut WriteViews<'_>) -> Result<()> {
        views.take(to.x)[0] = *item;
        Ok(())
    }
    fn read(&self, from: &Buffers, _: &u32, _: Extent, views: &ReadViews<'_>) -> Result<u32> {
        Ok(views.get(from.y)[0])
    }
}
