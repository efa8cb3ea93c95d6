//! Validates recordings. No later layer repeats these checks. All errors are of
//! [`ErrorKind::Usage`](crate::ErrorKind::Usage).

use super::AXES_MAX;
use super::buffer::{BufferDecl, BufferId, DType, View};
use super::command::{Arg, Command, Launch};
use super::kernel::{Access, Kernel, PARAMS_MAX, ParamKind};
use super::recorder::Recording;
use super::shape::Shape;
use super::struct_arg::{Target, check_struct};
use super::uniform::{UniformDecl, UniformId};
use crate::error::{Error, Result};

/// CUDA's limits on blocks and grids, the same on every supported GPU.
const BLOCK_THREADS_MAX: u32 = 1024;
const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];
pub(super) const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Checks a recording as a whole: its capacity, its buffers, each command after those before it,
/// and the views that the host has.
pub(super) fn check(recording: &Recording) -> Result<()> {
    let axes = recording.capacity.len();
    if axes == 0 || axes > AXES_MAX || recording.capacity.contains(&0) {
        return Err(Error::usage(format!(
            "the capacity {:?} must have 1 to {AXES_MAX} axes, none of them 0",
            recording.capacity
        )));
    }
    check_buffers(&recording.buffers)?;
    let mut state = vec![BufferState::default(); recording.buffers.len()];
    for (index, command) in recording.commands.iter().enumerate() {
        check_command(recording, command, &mut state)
            .map_err(|error| error.within(format!("command {index}")))?;
    }
    if recording.kernels().next().is_none() {
        return Err(Error::usage("the recording launches no kernel"));
    }
    check_host_views(recording)
}

/// What the commands so far have done to a buffer.
#[derive(Clone, Copy, Default)]
struct BufferState {
    is_written: bool,
    is_downloaded: bool,
}

/// Checks that buffers have elements, and names of their own.
fn check_buffers(buffers: &[BufferDecl]) -> Result<()> {
    for (index, buffer) in buffers.iter().enumerate() {
        let place = || format!("buffer {}", buffer.name);
        if buffer.len == 0 {
            return Err(Error::usage("it has no elements").within(place()));
        }
        if buffers[..index]
            .iter()
            .any(|other| other.name == buffer.name)
        {
            return Err(Error::usage("two buffers have this name").within(place()));
        }
    }
    Ok(())
}

/// Checks one command. `state` has what the commands before it did to each buffer, and is brought
/// up to date.
fn check_command(
    recording: &Recording,
    command: &Command,
    state: &mut [BufferState],
) -> Result<()> {
    let mut foreign = false;
    command.visit_buffers(|id, _, _| foreign |= recording.buffer(id).is_none());
    if foreign {
        return Err(Error::usage("a buffer is of another recording"));
    }
    let decl = |id: BufferId| &recording.buffers[id.index()];
    match command {
        Command::Upload(id) if decl(*id).view != View::Upload => {
            return Err(Error::usage("only an upload buffer can be uploaded")
                .within(format!("upload of buffer {}", decl(*id).name)));
        }
        Command::Download(id) if decl(*id).view != View::Download => {
            return Err(Error::usage("only a download buffer can be downloaded")
                .within(format!("download of buffer {}", decl(*id).name)));
        }
        Command::Launch(launch) => check_launch(recording, launch)
            .map_err(|error| error.within(format!("kernel {}", launch.kernel.name)))?,
        _ => {}
    }
    // A backend may keep both sides of a buffer in one place. So that this makes no difference, an
    // upload comes before any other write, and a download after all of them.
    let mut misuse = None;
    command.visit_buffers(|id, reads, writes| {
        let before = state[id.index()];
        let is_header = recording.header == Some(id) && !matches!(command, Command::Upload(_));
        let message = if writes && is_header {
            "the engine fills the header, and kernels only read it"
        } else if reads
            && !before.is_written
            && !matches!(decl(id).view, View::DeviceInput | View::Resident)
        {
            "it is read before anything wrote it"
        } else if writes && decl(id).is_replaceable {
            "a buffer that is replaced is only read; declare it with Recorder::resident_buffer"
        } else if matches!(command, Command::Upload(_)) && before.is_written {
            "it is uploaded after it was written"
        } else if writes && before.is_downloaded {
            "it is written after it was downloaded"
        } else {
            return;
        };
        misuse.get_or_insert((id, message));
    });
    if let Some((id, message)) = misuse {
        return Err(Error::usage(message).within(format!("buffer {}", decl(id).name)));
    }
    command.visit_buffers(|id, _, writes| {
        let state = &mut state[id.index()];
        state.is_written |= writes;
        state.is_downloaded |= matches!(command, Command::Download(_));
    });
    Ok(())
}

/// Checks a launch: its shape, and each argument against its parameter.
fn check_launch(recording: &Recording, launch: &Launch) -> Result<()> {
    let kernel = &launch.kernel;
    check_shape(kernel, launch.shape)?;
    if launch.is_library_call() {
        kernel.attributes.check_library_call()?;
    }
    if kernel.params.len() != launch.args.len() {
        return Err(Error::usage(format!(
            "{} arguments for {} parameters",
            launch.args.len(),
            kernel.params.len()
        )));
    }
    if kernel.params.len() > PARAMS_MAX {
        return Err(Error::usage(format!(
            "{} parameters, and a kernel has at most {PARAMS_MAX}",
            kernel.params.len()
        ))
        .fix("pass some of them as fields of a struct"));
    }
    let mut seen: Vec<(BufferId, bool)> = Vec::new();
    for (index, (param, arg)) in kernel.params.iter().zip(&launch.args).enumerate() {
        let mut before = kernel.params[..index].iter();
        if before.any(|other| other.name == param.name) {
            let place = format!("parameter {}", param.name);
            return Err(Error::usage("two parameters have this name").within(place));
        }
        let checked = check_arg(recording, &param.kind, arg, &mut seen);
        checked.map_err(|error| error.within(format!("parameter {}", param.name)))?;
    }
    Ok(())
}

/// Checks an argument against its parameter. `seen` has the buffers of the arguments before it, and
/// whether the launch writes them.
fn check_arg(
    recording: &Recording,
    kind: &ParamKind,
    arg: &Arg,
    seen: &mut Vec<(BufferId, bool)>,
) -> Result<()> {
    let mismatch = |expected: String, got: String| {
        Err(Error::usage(format!("it takes {expected}, and got {got}")))
    };
    match (kind, arg) {
        (ParamKind::Buffer { dtype, access }, Arg::Buffer(id)) => {
            check_buffer(recording, *id, *dtype, *access, seen)
        }
        (ParamKind::Buffer { dtype, .. }, Arg::Uniform(id)) => {
            check_uniform(recording, *id, *dtype)
        }
        (ParamKind::Scalar { dtype }, Arg::Scalar(scalar)) if scalar.dtype == *dtype => {
            let bits = 8 * dtype.size_bytes() as u32;
            // A shift by all 64 bits leaves nothing.
            match scalar.bits.checked_shr(bits).unwrap_or(0) {
                0 => Ok(()),
                _ => mismatch(format!("{bits} bits"), format!("{:#x}", scalar.bits)),
            }
        }
        (ParamKind::Scalar { dtype }, Arg::Scalar(scalar)) => {
            mismatch(format!("{dtype:?}"), format!("{:?}", scalar.dtype))
        }
        (ParamKind::Struct { bytes, pointers }, Arg::Struct(passed)) => {
            check_struct(*bytes, pointers, passed)?;
            for (field, target) in pointers.iter().zip(&passed.targets) {
                let checked = match *target {
                    Target::Buffer(id) => {
                        check_buffer(recording, id, field.dtype, field.access, seen)
                    }
                    Target::Uniform(id) => check_uniform(recording, id, field.dtype),
                    Target::Address(_) => continue,
                };
                checked.map_err(|error| error.within(format!("offset {}", field.offset)))?;
            }
            Ok(())
        }
        _ => mismatch(kind_text(kind), arg_text(arg).to_owned()),
    }
}

fn kind_text(kind: &ParamKind) -> String {
    match kind {
        ParamKind::Buffer { .. } => "a buffer".to_owned(),
        ParamKind::Scalar { dtype } => format!("a {dtype:?} value"),
        ParamKind::Struct { bytes, .. } => format!("a struct of {bytes} bytes"),
    }
}

/// The kind of an argument, for messages.
fn arg_text(arg: &Arg) -> &'static str {
    match arg {
        Arg::Buffer(_) => "a buffer",
        Arg::Uniform(_) => "a uniform",
        Arg::Scalar(_) => "a value",
        Arg::Struct(_) => "a struct",
    }
}

/// Checks a buffer of a launch: its type, and that a buffer that the launch writes is passed once.
/// A twin has one reference to it.
fn check_buffer(
    recording: &Recording,
    id: BufferId,
    dtype: DType,
    access: Access,
    seen: &mut Vec<(BufferId, bool)>,
) -> Result<()> {
    let buffer = &recording.buffers[id.index()];
    if buffer.dtype != dtype {
        let (got, name) = (buffer.dtype, &buffer.name);
        return Err(Error::usage(format!(
            "it takes {dtype:?} elements, and got {got:?} in buffer {name}"
        )));
    }
    let twice = |&(other, writes): &(BufferId, bool)| other == id && (writes || access.writes());
    if seen.iter().any(twice) {
        let message = "the launch writes this buffer and names it a second time";
        return Err(Error::usage(message).within(format!("buffer {}", buffer.name)));
    }
    seen.push((id, access.writes()));
    Ok(())
}

/// The check of the command refuses kernels that write the header.
fn check_uniform(recording: &Recording, id: UniformId, dtype: DType) -> Result<()> {
    let declared = recording.uniforms.get(id.index());
    let declared = declared.filter(|decl| decl.dtype == id.dtype);
    match declared.filter(|_| recording.header == Some(id.header)) {
        None => Err(Error::usage("a uniform is of another recording")),
        Some(decl) if decl.dtype == dtype => Ok(()),
        Some(UniformDecl {
            dtype: got, name, ..
        }) => Err(Error::usage(format!(
            "it takes {dtype:?} elements, and got {got:?} in uniform {name}"
        ))),
    }
}

/// Checks the block of a launch, and its grid if that is known when recording.
fn check_shape(kernel: &Kernel, shape: Shape) -> Result<()> {
    let fits = kernel
        .block
        .iter()
        .zip(BLOCK_MAX)
        .all(|(&side, max)| (1..=max).contains(&side));
    if !fits || kernel.block.iter().product::<u32>() > BLOCK_THREADS_MAX {
        return Err(Error::usage(format!(
            "a block of {:?} threads; a block has at most {BLOCK_MAX:?}, and {BLOCK_THREADS_MAX} \
             in all",
            kernel.block
        )));
    }
    match shape {
        Shape::Grid(grid) => {
            check_grid(grid)?;
            kernel.attributes.check_grid(grid)
        }
        // The device that runs the launch computes and checks the grid.
        Shape::Over { .. } => kernel.attributes.check_over_elements(),
    }
}

/// Checks a grid against CUDA's limits.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage) if a side is 0 or above the limit.
pub(crate) fn check_grid(grid: [u32; 3]) -> Result<()> {
    if grid.iter().zip(GRID_MAX).any(|(&n, max)| n == 0 || n > max) {
        return Err(Error::usage(format!(
            "a grid of {grid:?} blocks; each side is at least 1 and at most {GRID_MAX:?}"
        )));
    }
    Ok(())
}

/// Refuses an upload or download buffer without a copy: its data would be lost without notice.
fn check_host_views(recording: &Recording) -> Result<()> {
    for (id, buffer) in recording.buffers_by_id() {
        let (copied, verb) = match buffer.view {
            View::Device | View::DeviceInput | View::DeviceResult | View::Resident => continue,
            View::Upload => (
                has(
                    recording,
                    |c| matches!(c, Command::Upload(other) if *other == id),
                ),
                "uploaded",
            ),
            View::Download => (
                has(
                    recording,
                    |c| matches!(c, Command::Download(other) if *other == id),
                ),
                "downloaded",
            ),
        };
        if !copied {
            return Err(Error::usage(format!("it is declared, and never {verb}"))
                .within(format!("buffer {}", buffer.name)));
        }
    }
    Ok(())
}

fn has(recording: &Recording, test: impl Fn(&Command) -> bool) -> bool {
    recording.commands.iter().any(test)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::PARAMS_MAX;
    use crate::record::{Access, Arg, Buffer, DType, Kernel, Recorder, Scalar, StructArg};
    use tapeloop_test_support::messages::has_parts;

    fn kernel() -> Kernel {
        Kernel::new("scale")
            .reads::<f32>("x")
            .writes::<f32>("y")
            .scalar::<f32>("a")
    }

    fn record(commands: impl FnOnce(&mut Recorder, Buffer<f32>, Buffer<f32>)) -> String {
        let mut recorder = Recorder::new(&[16]);
        let x = recorder.upload_buffer::<f32>("x", 0, 1);
        let y = recorder.download_buffer::<f32>("y", 0, 1);
        commands(&mut recorder, x, y);
        match recorder.finish() {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_good_recording_passes() {
        let outcome = record(|r, x, y| {
            r.upload(x);
            r.launch(&kernel(), 1, &[x.into(), y.into(), 2f32.into()]);
            r.download(y);
        });
        assert_eq!(outcome, "ok");
    }

    #[test]
    fn each_misuse_is_named() {
        let k = kernel();
        let cases: Vec<(String, &str)> = vec![
            (
                record(|r, _, _| {
                    let header = r.header();
                    r.upload(header);
                    let counts = Kernel::new("counts").updates::<u32>("header");
                    r.launch(&counts, 1, &[header.into()]);
                }),
                "command 1: buffer header",
            ),
            (
                record(|r, x, y| {
                    r.launch(&k, 1, &[x.into(), y.into(), 2f32.into()]);
                }),
                "command 0: buffer x .. read",
            ),
            (
                record(|r, x, _| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into()]);
                }),
                "command 1: kernel scale .. 1 .. 3 parameters",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), y.into(), 2i32.into()]);
                }),
                "command 1: kernel scale: parameter a .. F32 .. I32",
            ),
            (
                record(|r, x, y| {
                    let wide = Arg::Scalar(Scalar {
                        dtype: DType::F32,
                        bits: 1 << 32,
                    });
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), y.into(), wide]);
                }),
                "parameter a .. 32 bits",
            ),
            (
                record(|r, x, _| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), x.into(), 2f32.into()]);
                }),
                "command 1 .. buffer x .. second time",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    let twice = Kernel::new("k").reads::<f32>("x").writes::<f32>("x");
                    r.launch(&twice, 1, &[x.into(), y.into()]);
                }),
                "command 1: kernel k: parameter x .. two",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    r.launch(&k, 0, &[x.into(), y.into(), 2f32.into()]);
                }),
                "kernel scale .. [0, 1, 1]",
            ),
            (record(|r, x, _| r.upload(x)), "no kernel"),
            (
                record(|r, x, y| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), y.into(), 2f32.into()]);
                }),
                "buffer y .. never downloaded",
            ),
            (
                record(|r, x, _| {
                    r.download(x);
                }),
                "command 0 .. buffer x .. download",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), y.into(), 2f32.into()]);
                    r.upload(x);
                }),
                "command 2: buffer x .. written",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    r.launch(&k, 1, &[x.into(), y.into(), 2f32.into()]);
                    r.download(y);
                    r.memset(y, 0);
                }),
                "command 3: buffer y .. downloaded",
            ),
            (
                record(|r, x, _| {
                    // The foreign buffer has the index and type of `x`.
                    let foreign = Recorder::new(&[16]).upload_buffer::<f32>("x", 0, 1);
                    assert_eq!(foreign.id().index(), x.id().index());
                    r.upload(foreign);
                }),
                "command 0 .. another recording",
            ),
            (
                record(|r, x, y| {
                    let foreign = Recorder::new(&[16]).upload_buffer::<f32>("x", 0, 1);
                    r.upload(x);
                    r.launch(&k, 1, &[foreign.into(), y.into(), 2f32.into()]);
                }),
                "command 1 .. another recording",
            ),
            (
                record(|r, x, y| {
                    r.upload(x);
                    let wide = k.clone().block_shape([8, 8, 65]);
                    r.launch(&wide, 1, &[x.into(), y.into(), 2f32.into()]);
                }),
                "kernel scale .. [8, 8, 65]",
            ),
            (
                record(|r, _, _| {
                    r.upload_buffer::<u8>("x", 0, 1);
                }),
                "buffer x .. two",
            ),
            (
                record(|r, _, _| {
                    r.upload_buffer::<u8>("z", 7, 1);
                }),
                "buffer z .. axis 7",
            ),
            (
                record(|r, _, _| {
                    r.upload_buffer::<u64>("z", 0, usize::MAX / 16);
                }),
                "buffer z .. overflows",
            ),
        ];
        for (outcome, expected) in cases {
            assert!(
                has_parts(&outcome, expected),
                "{outcome:?} lacks {expected:?}"
            );
        }
    }

    #[test]
    fn a_kernel_has_a_limited_number_of_parameters() {
        let outcome = |more: usize| {
            record(|r, x, y| {
                let names = (0..more).map(|index| format!("more_{index}"));
                let kernel = names.fold(kernel(), |kernel, name| kernel.scalar::<f32>(&name));
                let mut args = vec![x.into(), y.into(), 2f32.into()];
                args.extend((0..more).map(|_| Arg::from(2f32)));
                r.upload(x);
                r.launch(&kernel, 1, &args);
                r.download(y);
            })
        };
        assert_eq!(outcome(PARAMS_MAX - 3), "ok");
        assert!(has_parts(
            &outcome(PARAMS_MAX - 2),
            "257 parameters .. at most 256"
        ));
    }

    #[test]
    fn each_misuse_of_a_struct_is_named() {
        let outcome = |bytes: usize, pointers: &[(usize, Access, DType)], arg: fn(_, _) -> _| {
            record(|r, x, y| {
                let kernel = Kernel::new("k").structure("s", bytes, pointers);
                r.upload(x);
                r.launch(&kernel, 1, &[StructArg::into(arg(x, y))]);
                r.download(y);
            })
        };
        type Buffers = Buffer<f32>;
        let both: fn(Buffers, Buffers) -> StructArg =
            |x, y| StructArg::new(&[0; 24]).buffer(x).buffer(y);
        let (reads, writes) = (
            (0, Access::Read, DType::F32),
            (8, Access::Write, DType::F32),
        );
        assert_eq!(outcome(24, &[reads, writes], both), "ok");
        let at = |offset| (offset, Access::Write, DType::F32);
        let cases = [
            (
                outcome(32, &[reads, writes], both),
                "parameter s .. 32 bytes with 2 .. 24 bytes with 2",
            ),
            (
                outcome(24, &[reads], both),
                "parameter s .. 24 bytes with 1 .. 24 bytes with 2",
            ),
            (outcome(24, &[reads, at(12)], both), "offset 12 of 24 bytes"),
            (outcome(24, &[reads, at(24)], both), "offset 24 of 24 bytes"),
            (outcome(24, &[reads, at(0)], both), "two .. offset 0"),
            (outcome(0, &[reads, writes], both), "0 bytes"),
            (
                outcome(24, &[(0, Access::Read, DType::I32), writes], both),
                "parameter s: offset 0 .. I32 .. F32 .. buffer x",
            ),
            (
                outcome(24, &[reads, writes], |x, _| {
                    StructArg::new(&[0; 24]).buffer(x).buffer(x)
                }),
                "offset 8: buffer x .. second time",
            ),
            (outcome(24, &[writes, reads], both), "buffer y .. read"),
            (
                record(|r, x, y| {
                    r.upload(x);
                    let args = [StructArg::new(&[0; 8]).into(), y.into(), 2f32.into()];
                    r.launch(&kernel(), 1, &args);
                }),
                "parameter x .. buffer .. struct",
            ),
        ];
        for (outcome, expected) in cases {
            assert!(
                has_parts(&outcome, expected),
                "{outcome:?} lacks {expected:?}"
            );
        }
    }
}
