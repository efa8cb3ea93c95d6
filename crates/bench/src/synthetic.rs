//! Synthetic batches of numbers with exact expected results: one upload, a chain of small kernels
//! or one long kernel, and one download.

use super::benchmark::{Benchmark, halves};
use super::point::{Point, Work};
use super::record::Amounts;
use std::sync::{Arc, OnceLock};
use tapeloop_engine::backend::DeviceInfo;
use tapeloop_engine::error::{Error, ErrorKind, Result};
use tapeloop_engine::record::{Arg, Buffer, Image, Kernel, Recorder, Twin, TwinLaunch};
use tapeloop_engine::workload::{Extent, ReadViews, Workload, WriteViews};

/// Threads per block, as in the reference programs.
const BLOCK: u32 = 128;

/// The number of distinct input values, small enough that all results are exact in single precision, and a
/// prime, so that steps of 7 and 13 reach all of them.
const VALUES: u64 = 1_021;

/// A workload that uploads `n * stride` elements, runs kernels, and downloads `n` elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Synthetic {
    /// Elements to download.
    n: u32,
    /// Elements to upload for each element to download.
    stride: u32,
    kernels: Kernels,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kernels {
    /// Launches of `step`: how many.
    Steps(usize),
    /// One launch of `advance`: its number of rounds.
    Advance(u32),
}

impl Synthetic {
    /// The workload of a point; `None` for [`Work::Features`].
    pub fn for_point(point: &Point) -> Option<Self> {
        let steps = Kernels::Steps(point.kernels);
        let (stride, kernels) = match point.work {
            Work::Launch => (1, steps),
            Work::Copy => (2, steps),
            Work::Compute => (1, Kernels::Advance(point.kernels as u32)),
            Work::Features => return None,
        };
        Some(Synthetic {
            n: point.batch,
            stride,
            kernels,
        })
    }

    /// The `n * stride` input values for a seed. The reference programs make the same values.
    fn input(self, seed: u64, n: u32) -> Vec<f32> {
        let value = |i: u64| ((i * 7 + seed * 13) % VALUES) as f32;
        (0..u64::from(n) * u64::from(self.stride))
            .map(value)
            .collect()
    }

    /// The expected output.
    fn output(self, input: &[f32]) -> Vec<f32> {
        let through = |&x: &f32| match self.kernels {
            Kernels::Steps(count) => (0..count).fold(x, |x, k| x * factor(k) + 1.0),
            Kernels::Advance(rounds) => x + rounds as f32,
        };
        input
            .iter()
            .step_by(self.stride as usize)
            .map(through)
            .collect()
    }
}

/// The factor of the `k`-th step.
fn factor(k: usize) -> f32 {
    if k.is_multiple_of(2) { 2.0 } else { 0.5 }
}

/// An item: the input of a batch, or of a part of one.
#[derive(Clone, Debug)]
pub struct Numbers(Arc<[f32]>);

impl Benchmark for Synthetic {
    type Workload = KernelChain;

    fn workload(&self) -> Result<KernelChain> {
        Ok(KernelChain(*self))
    }

    fn ladder(&self, buckets: usize) -> Vec<Extent> {
        halves(self.n, buckets).map(|n| Extent::from([n])).collect()
    }

    fn items(&self, seed: u64, fill: f64) -> Vec<Numbers> {
        let n = (f64::from(self.n) * fill).round() as u32;
        vec![Numbers(self.input(seed, n.clamp(1, self.n)).into())]
    }

    fn check(&self, item: &Numbers, output: &Vec<f32>) -> Result<()> {
        let expected = self.output(&item.0);
        let pairs = expected.iter().zip(output).enumerate();
        let mut wrong = pairs.filter(|(_, (expected, found))| expected != found);
        match wrong.next() {
            None if expected.len() == output.len() => Ok(()),
            None => Err(Error::new(
                ErrorKind::Mismatch,
                format!("{} outputs, not {}", output.len(), expected.len()),
            )),
            Some((index, (expected, found))) => Err(Error::new(
                ErrorKind::Mismatch,
                format!(
                    "output {index} is {found}, not {expected}; {} of {} differ",
                    1 + wrong.count(),
                    output.len()
                ),
            )),
        }
    }

    fn amounts(&self, item: &Numbers) -> Amounts {
        let rounds = match self.kernels {
            Kernels::Steps(count) => count as f64,
            // A round has two fused multiply-adds.
            Kernels::Advance(rounds) => 2.0 * f64::from(rounds),
        };
        Amounts {
            fma: rounds * item.0.len() as f64 / f64::from(self.stride),
            ..Amounts::default()
        }
    }

    // Slot s has the input of seed s, as the protocol says.
    fn request(&self, slots: usize) -> Option<(String, u64)> {
        let Synthetic { n, stride, .. } = *self;
        let work = match self.kernels {
            Kernels::Steps(count) => {
                format!("workload=chain n={n} stride={stride} kernels={count}")
            }
            Kernels::Advance(rounds) => {
                format!("workload=advance n={n} stride=1 kernels=1 steps={rounds}")
            }
        };
        let mut hash = Fnv::default();
        for slot in 0..slots as u64 {
            hash.add(bytemuck::cast_slice(&self.output(&self.input(slot, n))));
        }
        Some((format!("{work} slots={slots}"), hash.0))
    }
}

/// The 64-bit hash FNV-1a, with which programs compare outputs.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// The [`Workload`] of [`Synthetic`].
pub struct KernelChain(Synthetic);

/// The upload buffer and the download buffer.
pub struct KernelChainBuffers {
    x: Buffer<f32>,
    y: Buffer<f32>,
}

/// A kernel of `bench.cu`, with its code for a device.
fn kernel(name: &str, twin: Twin, device: &DeviceInfo) -> Kernel {
    static IMAGES: [OnceLock<Arc<Image>>; 2] = [OnceLock::new(), OnceLock::new()];
    let waits = device.compute_capability >= Some((9, 0));
    let image = IMAGES[usize::from(waits)].get_or_init(|| {
        let [plain, waiting]: [&[u8]; 2] =
            [include_bytes!("bench.ptx"), include_bytes!("bench_90.ptx")];
        Image::compiled("bench", if waits { waiting } else { plain })
    });
    let text = include_str!("bench.cu");
    let declared = Kernel::declared_in(text, name).expect("the text has the kernel");
    let declared = declared.block(BLOCK).twin(twin).waits_for_dependencies();
    // SAFETY: the images are what nvcc made of bench.cu, which a test compares. Both kernels first wait
    // for their dependencies where they are compiled for compute capability 9.0. `step` and `advance`
    // touch the first `n` elements of `out`, and of `in` the first `n` times `stride` (1 for
    // `advance`). `KernelChain::record` and `steps` pass the capacity for `n`, and buffers of that many
    // elements, whatever they hold; no parameter is declared changeable, and the kernels stay in this
    // module.
    unsafe { declared.code(image) }
}

/// The twin of the kernel of one step: every `stride`th element times `a`, plus 1.
fn step(launch: &mut TwinLaunch<'_>) {
    let input: &[f32] = launch.read();
    let output: &mut [f32] = launch.write();
    let n: u32 = launch.scalar();
    let stride: u32 = launch.scalar();
    let a: f32 = launch.scalar();
    let output = &mut output[..n as usize];
    let fill = |(out, x): (&mut f32, &f32)| *out = x * a + 1.0;
    match stride {
        // Adjacent elements fill vector registers.
        1 => output.iter_mut().zip(input).for_each(fill),
        stride => {
            let strided = input.iter().step_by(stride as usize);
            output.iter_mut().zip(strided).for_each(fill);
        }
    }
}

/// The twin of the kernel that computes on each element for `steps` rounds.
fn advance(launch: &mut TwinLaunch<'_>) {
    let input: &[f32] = launch.read();
    let output: &mut [f32] = launch.write();
    let n: u32 = launch.scalar();
    let steps: u32 = launch.scalar();
    let [a, b, c, d]: [f32; 4] = std::array::from_fn(|_| launch.scalar());
    let n = n as usize;
    // The loop over the rounds runs for 16 elements at a time, which fill vector registers.
    for (output, input) in output[..n].chunks_mut(16).zip(input[..n].chunks(16)) {
        output.copy_from_slice(input);
        for _ in 0..steps {
            for x in &mut *output {
                *x = (*x * a + b) * c + d;
            }
        }
    }
}

impl Workload for KernelChain {
    type Item = Numbers;
    type Output = Vec<f32>;
    type Buffers = KernelChainBuffers;

    fn axes(&self) -> &'static [&'static str] {
        &["elements"]
    }

    fn extent(&self, item: &Numbers) -> Result<Extent> {
        Ok(Extent::from([item.0.len() as u32 / self.0.stride]))
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<KernelChainBuffers> {
        let stride = self.0.stride;
        let n = recorder.capacity(0);
        let x = recorder.upload_buffer::<f32>("x", 0, stride as usize);
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        recorder.upload(x);
        match self.0.kernels {
            Kernels::Steps(count) => steps(
                recorder,
                &kernel("step", step, device),
                count,
                stride,
                [x, y],
            ),
            Kernels::Advance(rounds) => {
                // Each round computes (2 x + 1) / 2 + 1 / 2, which is x + 1.
                let args: [Arg; 8] = [
                    x.into(),
                    y.into(),
                    n.into(),
                    rounds.into(),
                    2.0_f32.into(),
                    1.0_f32.into(),
                    0.5_f32.into(),
                    0.5_f32.into(),
                ];
                // A thread interleaves up to four elements, to hide latency.
                recorder.launch(
                    &kernel("advance", advance, device),
                    n.div_ceil(4 * BLOCK),
                    &args,
                );
            }
        }
        recorder.download(y);
        Ok(KernelChainBuffers { x, y })
    }

    fn write(
        &self,
        buffers: &KernelChainBuffers,
        item: &Numbers,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        views.take(buffers.x).copy_from_slice(&item.0);
        Ok(())
    }

    fn read(
        &self,
        buffers: &KernelChainBuffers,
        _: &Numbers,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Vec<f32>> {
        Ok(views.get(buffers.y).to_vec())
    }
}

/// Records a chain of `count` launches from `x` to `y`, which write to two buffers in turn.
fn steps(
    recorder: &mut Recorder,
    kernel: &Kernel,
    count: usize,
    stride: u32,
    [x, y]: [Buffer<f32>; 2],
) {
    let between = ["s0", "s1"].map(|name| recorder.device_buffer::<f32>(name, 0, 1));
    let n = recorder.capacity(0);
    let mut input = x;
    for k in 0..count {
        let output = if k + 1 == count { y } else { between[k % 2] };
        let stride = if k == 0 { stride } else { 1 };
        let args: [Arg; 5] = [
            input.into(),
            output.into(),
            n.into(),
            stride.into(),
            factor(k).into(),
        ];
        recorder.launch(kernel, n.div_ceil(BLOCK), &args);
        input = output;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn chain(kernels: usize) -> Synthetic {
        Synthetic {
            n: 8,
            stride: 2,
            kernels: Kernels::Steps(kernels),
        }
    }

    #[test]
    fn every_seed_has_other_outputs() {
        let output = |seed| chain(3).output(&chain(3).input(seed, 8));
        assert_eq!(
            output(0)[..2],
            [4.0, 32.0],
            "((0 * 2 + 1) / 2 + 1) * 2 + 1, and so on"
        );
        assert!((1..100).all(|seed| output(seed) != output(seed - 1)));
    }

    #[test]
    fn a_kernel_more_or_less_changes_outputs() {
        let input = chain(0).input(3, 8);
        let outputs: Vec<_> = (1..20).map(|count| chain(count).output(&input)).collect();
        for (index, output) in outputs.iter().enumerate() {
            assert!(!outputs[..index].contains(output), "{index}");
        }
    }

    #[test]
    fn outputs_are_compared_in_every_element() {
        let benchmark = chain(4);
        let item = &benchmark.items(5, 1.0)[0];
        let mut output = benchmark.output(&item.0);
        benchmark.check(item, &output).unwrap();
        output[7] += 1.0;
        assert_eq!(
            benchmark.check(item, &output).unwrap_err().kind(),
            ErrorKind::Mismatch
        );
        output.pop();
        assert!(benchmark.check(item, &output).is_err());
    }

    #[test]
    fn the_hash_is_fnv_1a() {
        let mut hash = Fnv::default();
        hash.add(b"foobar");
        assert_eq!(hash.0, 0x85944171f73967e8, "a published test vector");
    }

    #[test]
    fn the_ptx_was_made_of_the_source_as_it_is() {
        let digest: String = Sha256::digest(include_bytes!("bench.cu"))
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected = format!("// SHA-256 of bench.cu: {digest}");
        for ptx in [include_str!("bench.ptx"), include_str!("bench_90.ptx")] {
            let first = ptx.lines().next();
            assert_eq!(first, Some(&*expected), "run scripts/make_ptx.sh");
        }
    }
}
