//! Running a twin on buffers of a lane and on blocks.

use super::memory::{Blocks, Location, Storage};
use crate::error::{Error, ErrorKind, Result, panic_text};
use crate::record::{Kernel, ParamKind, Scalar, TwinArg, TwinLaunch};
use rayon::ThreadPool;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs the twin of `kernel`. An argument is a location, or the bits of a value.
pub(super) fn run_twin(
    pool: Option<&ThreadPool>,
    kernel: &Kernel,
    grid: [u32; 3],
    args: &[(Option<Location>, u64)],
    buffers: &mut [Storage],
    blocks: &mut Blocks,
) -> Result<()> {
    // The written buffers leave the lane for the time of the call, so that the
    // twin can hold them beside the ones that it reads.
    let mut taken: Vec<(usize, Storage)> = Vec::new();
    for (param, arg) in kernel.params.iter().zip(args) {
        if let (ParamKind::Buffer { access, .. }, &(Some(Location::Own(index)), _)) =
            (param.kind, arg)
            && access.writes()
        {
            taken.push((index, std::mem::take(&mut buffers[index])));
        }
    }
    let outcome = {
        let mut written = taken.iter_mut();
        let mut parts = block_parts(kernel, args, blocks)?;
        let twin_args = kernel.params.iter().zip(args).enumerate().map(
            |(index, (param, &(location, bits)))| match (param.kind, location) {
                (ParamKind::Scalar { dtype }, _) => TwinArg::Scalar(Scalar { dtype, bits }),
                (ParamKind::Buffer { dtype, access }, Some(Location::Own(_)))
                    if access.writes() =>
                {
                    let (_, storage) = written.next().expect("taken above, in this order");
                    TwinArg::Write(dtype, storage.as_mut_slice())
                }
                (ParamKind::Buffer { dtype, .. }, Some(Location::Own(own))) => {
                    TwinArg::Read(dtype, buffers[own].as_slice())
                }
                (ParamKind::Buffer { dtype, .. }, _) => {
                    match parts.remove(&index).expect("found above") {
                        Part::Read(bytes) => TwinArg::Read(dtype, bytes),
                        Part::Write(bytes) => TwinArg::Write(dtype, bytes),
                    }
                }
            },
        );
        let mut launch = TwinLaunch::new(grid, twin_args.collect());
        let twin = kernel.twin.expect("checked by load");
        catch_unwind(AssertUnwindSafe(|| match pool {
            Some(pool) => pool.install(|| twin(&mut launch)),
            None => twin(&mut launch),
        }))
    };
    for (index, storage) in taken {
        buffers[index] = storage;
    }
    outcome.map_err(|panic| {
        let text = panic_text(&*panic);
        let name = &kernel.name;
        let message = format!("the twin of kernel {name} panicked: {text}");
        Error::new(ErrorKind::Device, message)
    })
}

enum Part<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

/// The arguments that lie in blocks, by their place. In a block that is written,
/// each reaches to where the next begins.
fn block_parts<'a>(
    kernel: &Kernel,
    args: &[(Option<Location>, u64)],
    blocks: &'a mut Blocks,
) -> Result<BTreeMap<usize, Part<'a>>> {
    let mut parts = BTreeMap::new();
    for (address, lease) in blocks.leases_mut() {
        let mut here: Vec<(usize, usize)> = args
            .iter()
            .enumerate()
            .filter_map(|(index, (location, _))| match location {
                Some(Location::Block { block, offset }) if *block == address => {
                    Some((*offset, index))
                }
                _ => None,
            })
            .collect();
        here.sort_unstable();
        if !lease.writes() {
            let bytes = lease.shared();
            parts.extend(
                here.into_iter()
                    .map(|(offset, index)| (index, Part::Read(&bytes[offset..]))),
            );
            continue;
        }
        let mut rest = lease.exclusive();
        let mut start = 0;
        for (position, &(offset, index)) in here.iter().enumerate() {
            let end = here.get(position + 1).map(|&(next, _)| next);
            if end == Some(offset) {
                let name = &kernel.name;
                let message = format!("kernel {name} is given one part of a block twice");
                return Err(Error::usage(message));
            }
            let (_, from) = std::mem::take(&mut rest).split_at_mut(offset - start);
            let (part, after) = match end {
                Some(end) => from.split_at_mut(end - offset),
                None => (from, &mut [][..]),
            };
            start = end.unwrap_or(offset);
            rest = after;
            let writes = matches!(kernel.params[index].kind,
                ParamKind::Buffer { access, .. } if access.writes());
            let part = match writes {
                true => Part::Write(part),
                false => Part::Read(part),
            };
            parts.insert(index, part);
        }
    }
    Ok(parts)
}
