//! Twin of `kernels/fused.cu`.

use super::super::fused::steps;
use crate::record::{ParamKind, Scalar, TwinArg, TwinLaunch};

/// Runs a program, step by step over the whole batch.
pub(in super::super) fn fused(launch: &mut TwinLaunch<'_>) {
    let header: &[u32] = launch.read();
    let _structures: &[u32] = launch.read();
    let first = launch.scalar::<u32>() as usize;
    let length = launch.scalar::<u32>() as usize;
    let mut values: Vec<TwinArg<'_>> = launch.rest().collect();
    let words = &header[first..][..length.div_ceil(4)];
    let mut program: &[u8] = &bytemuck::cast_slice(words)[..length];
    while let Some((&number, rest)) = program.split_first() {
        let step = &steps()[usize::from(number)];
        let (operands, rest) = rest.split_at(step.params.len());
        program = rest;
        let mut lent: Vec<Option<&mut TwinArg<'_>>> = values.iter_mut().map(Some).collect();
        let args = step.params.iter().zip(operands).map(|(param, &operand)| {
            let value = &mut lent[usize::from(operand)];
            match (&value, &param.kind) {
                (Some(TwinArg::Scalar(Scalar { bits, .. })), ParamKind::Scalar { dtype }) => {
                    let (dtype, bits) = (*dtype, *bits);
                    TwinArg::Scalar(Scalar { dtype, bits })
                }
                (_, kind) => lend(value.take().expect("a step takes a buffer once"), kind),
            }
        });
        let twin = step.twin.expect("every built-in kernel has a twin");
        twin(&mut TwinLaunch::new(launch.grid, args.collect()));
    }
}

/// A buffer as a step's parameter has it.
fn lend<'a>(value: &'a mut TwinArg<'_>, kind: &ParamKind) -> TwinArg<'a> {
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
