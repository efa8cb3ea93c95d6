//! In how many bits real columns of residues leave the device.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::kernels::{THREADS, kernel};
use crate::record::Kernel;
use half::{bf16, f16};

/// What the real columns of residues are downloaded as. Everything is computed in
/// f32, and so are the columns of chains and structures; what is narrower is rounded
/// on the device at the end, to the nearest and halves to even, and halves the
/// download. NaN, which is null, stays NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reals {
    /// As computed.
    #[default]
    F32,
    /// 11 significant bits, up to 65504 and infinity beyond. Relative error at most
    /// 2^-11, below 2^-14 an absolute one of at most 2^-25.
    F16,
    /// 8 significant bits, over the range of f32. Relative error at most 2^-8, below
    /// 2^-126 an absolute one of at most 2^-134.
    Bf16,
}

impl Reals {
    /// All of them, by the names that a config gives them.
    pub const NAMES: [(&'static str, Reals); 3] = [
        ("f32", Reals::F32),
        ("f16", Reals::F16),
        ("bf16", Reals::Bf16),
    ];

    /// The name in a config.
    pub fn name(self) -> &'static str {
        let all = Reals::NAMES.into_iter();
        let mut names = all.filter(|(_, reals)| *reals == self);
        names.next().expect("every one has a name").0
    }

    /// A column as it is downloaded.
    pub(super) fn stored(self, mut column: ColumnDecl) -> ColumnDecl {
        let is_narrow = column.table == TableName::Residues && column.kind == ColumnKind::Real;
        if is_narrow && self == Reals::F16 {
            column.kind = ColumnKind::Half;
        }
        column
    }
}

pub(super) fn narrow_f16() -> Kernel {
    kernel("narrow_f16")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<f32>("wide")
        .writes::<f16>("narrow")
        .scalar::<u32>("values")
        .twin(cpu::narrow_f16)
}

pub(super) fn narrow_bf16() -> Kernel {
    kernel("narrow_bf16")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<f32>("wide")
        .writes::<bf16>("narrow")
        .scalar::<u32>("values")
        .twin(cpu::narrow_bf16)
}
