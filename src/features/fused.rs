//! Fusion of a batch's launches into one. The fused kernel takes the launches as a program, and
//! each of its blocks runs the whole program for one structure.

use super::constants::{self, BLOCK, WARP_BYTES};
use super::image::fused_image;
use super::kernels::{self, WithCode};
use super::layout::STRUCTURES;
use crate::backend::DeviceInfo;
use crate::error::{Error, Result};
use crate::record::{
    Access, Arg, Buffer, DType, Element, Image, Kernel, ParamKind, Recorder, Scalar, TwinArg,
    TwinLaunch,
};
use std::sync::{Arc, OnceLock};

/// Whether all launches of a batch are fused into one, in which each block computes everything for
/// one structure. Results are bit-identical either way.
///
/// NVRTC compiles the fused kernel, which takes it about a minute, in a build with nvcc too. No
/// batch of more than 16 residues was measured to be faster with it (docs/PERFORMANCE.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fusion {
    /// A launch for each kernel.
    #[default]
    Off,
    /// One launch.
    On,
}

/// The lowest compute capability with enough shared memory; cards before Ampere have 64 or 96 KiB.
const CAPABILITY_MIN: (u32, u32) = (8, 0);

impl Fusion {
    /// All variants, with their names in a config.
    pub const NAMES: [(&'static str, Fusion); 2] = [("off", Fusion::Off), ("on", Fusion::On)];

    /// Whether to run `program` as one launch.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if fusion is on, and the GPU has too little
    /// shared memory or the program is too large.
    pub(super) fn applies(self, program: &StepProgram, device: &DeviceInfo) -> Result<bool> {
        let capability = device.compute_capability;
        match self {
            Fusion::Off => Ok(false),
            Fusion::On if capability.is_some_and(|capability| capability < CAPABILITY_MIN) => {
                let message = "fusion needs shared memory that cards before Ampere do not have";
                Err(Error::config(message).fix("set fusion to off"))
            }
            Fusion::On => program.check().map(|()| true),
        }
    }
}

/// The kernels that can be steps of a program. A step's number is the index.
fn step_kernels() -> &'static [Kernel] {
    static STEPS: OnceLock<Vec<Kernel>> = OnceLock::new();
    STEPS.get_or_init(|| kernels::ALL.iter().map(|kernel| kernel()).collect())
}

/// The largest number of values that the fused kernel takes, and the longest program.
const VALUES_MAX: usize = constants::VALUES as usize;
const PROGRAM_BYTES_MAX: usize = constants::PROGRAM_MAX as usize;
const _: () = assert!(
    VALUES_MAX <= 256,
    "a byte of a program is the index of a value"
);

/// A value that steps take as an argument: a buffer, and how the steps access it, or a number.
struct ProgramValue {
    arg: Arg,
    kind: ParamKind,
}

/// A program: for each launch the number of its kernel and, for each argument, the index of its
/// value.
#[derive(Default)]
pub(super) struct StepProgram {
    bytes: Vec<u8>,
    values: Vec<ProgramValue>,
}

impl StepProgram {
    /// Builds a program from launches, each a kernel and its arguments.
    pub(super) fn from_launches<'a>(
        launches: impl Iterator<Item = (&'a Kernel, &'a [Arg])>,
    ) -> Self {
        let mut program = StepProgram::default();
        launches.for_each(|(kernel, args)| program.add(kernel, args));
        program
    }

    /// Checks that the fused kernel takes the program. Else an
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) error.
    fn check(&self) -> Result<()> {
        let (values, bytes) = (self.values.len(), self.bytes.len());
        if values <= VALUES_MAX && bytes <= PROGRAM_BYTES_MAX {
            return Ok(());
        }
        Err(Error::config(format!(
            "the features need {values} values of {VALUES_MAX} that the fused kernel takes, and \
             {bytes} bytes of {PROGRAM_BYTES_MAX}"
        ))
        .fix("ask for fewer features at once, or set fusion to off"))
    }

    /// Appends a launch to the program: the number of its kernel, and the index of each argument's
    /// value.
    fn add(&mut self, kernel: &Kernel, args: &[Arg]) {
        let number = step_kernels()
            .iter()
            .position(|step| step.name() == kernel.name());
        let number = number.expect("every built-in kernel is a step");
        // There are fewer than 256 kernels, and `check` refuses programs of more than `VALUES_MAX` values.
        self.bytes.push(number as u8);
        for (param, arg) in kernel.params().iter().zip(args) {
            let index = self.value_index(arg, &param.kind);
            self.bytes.push(index as u8);
        }
    }

    /// Adds a buffer that steps read to the values, and returns its index.
    pub(super) fn reads<T: Element>(&mut self, buffer: Buffer<T>) -> u32 {
        let kind = ParamKind::Buffer {
            dtype: T::DTYPE,
            access: Access::Read,
        };
        self.value_index(&buffer.into(), &kind) as u32
    }

    /// The index of a value, which is added if the program does not have it. Two arguments that are
    /// equal are one value.
    fn value_index(&mut self, arg: &Arg, kind: &ParamKind) -> usize {
        let found = self.values.iter().position(|value| value.arg == *arg);
        let index = found.unwrap_or(self.values.len());
        if found.is_none() {
            self.values.push(ProgramValue {
                arg: arg.clone(),
                kind: kind.clone(),
            });
        }
        if let ParamKind::Buffer { access: first, .. } = &mut self.values[index].kind
            && let ParamKind::Buffer { access, .. } = kind
            && *first == Access::Read
            && access.writes()
        {
            // A step reads the buffer before the first step writes it, so the launch needs its contents.
            *first = Access::ReadWrite;
        }
        index
    }
}

/// The name of the fused kernel.
pub(super) const NAME: &str = "fused";

/// The image of the fused kernel.
pub(super) fn image() -> Arc<Image> {
    static IMAGE: OnceLock<Arc<Image>> = OnceLock::new();
    let image = IMAGE.get_or_init(|| {
        let steps: Vec<&str> = step_kernels().iter().map(Kernel::name).collect();
        fused_image(&steps)
    });
    Arc::clone(image)
}

/// The fused kernel without the parameters for values.
pub(super) fn declaration() -> Kernel {
    Kernel::new(NAME)
        .block(BLOCK)
        .shared_bytes(BLOCK / 32 * WARP_BYTES)
        .reads::<u32>("header")
        .scalar::<u32>("structures")
        .scalar::<u32>("program")
        .scalar::<u32>("length")
        .revisits()
        .twin(run_steps)
}

/// Records a program as one launch. `spans_index` is the index of the buffer of structures' spans among
/// the program's values.
pub(super) fn record(
    recorder: &mut Recorder,
    header: Buffer<u32>,
    spans_index: u32,
    program: &StepProgram,
    with_code: WithCode,
) {
    let (bytes, values) = (&program.bytes, &program.values);
    // The header holds the program as words, whose last one is padded with zeros.
    let words = bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    });
    let constants = words
        .enumerate()
        .map(|(index, word)| recorder.constant(&format!("step_word_{index}"), word));
    let constants: Vec<_> = constants.collect();
    // Constants that are recorded one after the other lie in the header in this order.
    let program_start = constants.first().map_or(0, |word| word.id().header_index());

    let mut fused = declaration();
    let mut args: Vec<Arg> = vec![header.into(), spans_index.into()];
    args.push((program_start as u32).into());
    args.push((bytes.len() as u32).into());
    for index in 0..VALUES_MAX {
        let (kind, arg) = match values.get(index) {
            Some(ProgramValue { arg, kind }) => match arg {
                Arg::Scalar(scalar) => number_arg(scalar.bits),
                _ => (kind.clone(), arg.clone()),
            },
            None => number_arg(0),
        };
        let name = format!("value_{index}");
        fused = fused.param(&name, kind);
        args.push(arg);
    }
    // No image of the user's: the code is that of the built-in kernel.
    let fused = with_code(fused, None, recorder);
    recorder.launch(&fused, recorder.capacity(STRUCTURES), &args);
}

/// A number as a parameter of 8 bytes.
fn number_arg(bits: u64) -> (ParamKind, Arg) {
    let dtype = DType::U64;
    (
        ParamKind::Scalar { dtype },
        Arg::Scalar(Scalar { dtype, bits }),
    )
}

/// The twin: runs the twins of the steps one after the other, each over the whole batch.
fn run_steps(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    // The kernel needs the spans to find its block's structure. The twins of steps take them as an argument.
    let _spans_index = launch.scalar::<u32>();
    let program_start = launch.scalar::<u32>() as usize;
    let program_bytes = launch.scalar::<u32>() as usize;
    let mut values: Vec<TwinArg<'_>> = launch.rest().collect();
    let words = &header[program_start..][..program_bytes.div_ceil(4)];
    let mut program: &[u8] = &bytemuck::cast_slice(words)[..program_bytes];
    while let Some((&number, after_number)) = program.split_first() {
        let step = &step_kernels()[usize::from(number)];
        let (operands, later_steps) = after_number.split_at(step.params().len());
        program = later_steps;
        let mut lent: Vec<Option<&mut TwinArg<'_>>> = values.iter_mut().map(Some).collect();
        let args = step.params().iter().zip(operands).map(|(param, &operand)| {
            let value = &mut lent[usize::from(operand)];
            match (&value, &param.kind) {
                // A number is passed as 8 bytes; the step's parameter has its type.
                (Some(TwinArg::Scalar(Scalar { bits, .. })), ParamKind::Scalar { dtype }) => {
                    let (dtype, bits) = (*dtype, *bits);
                    TwinArg::Scalar(Scalar { dtype, bits })
                }
                // Recording does not check this: a kernel that reads one buffer through two parameters cannot
                // be a step until a buffer can be lent twice.
                (_, kind) => reborrow(value.take().expect("a step takes a buffer once"), kind),
            }
        });
        let twin = step.cpu_twin().expect("every built-in kernel has a twin");
        // The grid is the fused launch's. Twins of built-in kernels do not read it: the header and the
        // descriptors bound what they compute.
        twin(&mut TwinLaunch::new(launch.grid, args.collect()));
    }
}

/// Reborrows a buffer with the access that a step's parameter declares.
fn reborrow<'a>(value: &'a mut TwinArg<'_>, kind: &ParamKind) -> TwinArg<'a> {
    let is_written = matches!(kind, ParamKind::Buffer { access, .. } if access.writes());
    match (value, is_written) {
        (TwinArg::Write(dtype, bytes), true) => TwinArg::Write(*dtype, bytes),
        (TwinArg::Write(dtype, bytes), false) => TwinArg::Read(*dtype, bytes),
        (TwinArg::Read(dtype, bytes), _) => TwinArg::Read(*dtype, bytes),
        (TwinArg::Scalar(_) | TwinArg::Struct(_), _) => {
            panic!("a program passes a number for a buffer")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels::{BuiltIn, torsions};
    use super::*;

    /// No build compiles the fused kernel, so a broken one would show on a GPU alone.
    #[test]
    #[cfg(feature = "cuda")]
    #[ignore = "needs NVRTC, which TAPELOOP_NVRTC names"]
    fn the_fused_kernel_compiles() {
        let image = image();
        let source = image.source.as_ref().unwrap();
        let code = tapeloop_engine::internal::compiled(source, (9, 0)).unwrap();
        assert!(code.starts_with(b"\x7FELF"), "machine code");
    }

    fn device(compute_capability: Option<(u32, u32)>) -> DeviceInfo {
        let mut info = DeviceInfo::new("made up", "");
        info.compute_capability = compute_capability;
        info
    }

    #[test]
    fn cards_with_too_little_shared_memory_are_refused() {
        let kernel = torsions::Args::kernel();
        let program = StepProgram::from_launches([(&kernel, &[][..])].into_iter());
        let applies = |fusion: Fusion, capability| fusion.applies(&program, &device(capability));
        for capability in [None, Some((8, 0)), Some((9, 0))] {
            assert!(applies(Fusion::On, capability).unwrap());
            assert!(!applies(Fusion::Off, capability).unwrap());
        }
        let error = applies(Fusion::On, Some((7, 5))).unwrap_err();
        assert!(error.to_string().contains("Ampere"), "{error}");
    }

    #[test]
    fn more_values_than_the_kernel_takes_are_refused() {
        let kernel = torsions::Args::kernel();
        let args: Vec<Arg> = (0..210_u32).map(Arg::from).collect();
        let launches = args.chunks(kernel.params().len());
        let program = StepProgram::from_launches(launches.map(|args| (&kernel, args)));
        let error = Fusion::On.applies(&program, &device(None)).unwrap_err();
        assert!(error.to_string().contains("210 values of 208"), "{error}");
    }

    #[test]
    fn what_is_written_first_needs_nothing_before() {
        let kind = |access| ParamKind::Buffer {
            dtype: DType::U32,
            access,
        };
        let mut recorder = Recorder::new(&[1; 6]);
        let mut buffer = |name| Arg::from(recorder.batch_buffer::<u32>(name, 1));
        let (made, given) = (buffer("made"), buffer("given"));
        let mut program = StepProgram::default();
        assert_eq!(program.value_index(&made, &kind(Access::Write)), 0);
        assert_eq!(program.value_index(&given, &kind(Access::Read)), 1);
        assert_eq!(program.value_index(&made, &kind(Access::Read)), 0);
        assert_eq!(program.value_index(&given, &kind(Access::Write)), 1);
        let kinds: Vec<ParamKind> = program
            .values
            .iter()
            .map(|value| value.kind.clone())
            .collect();
        assert_eq!(kinds, [kind(Access::Write), kind(Access::ReadWrite)]);
    }
}
