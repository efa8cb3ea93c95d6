//! Results: the buffers that kernels write, and what the host reads of them. Reals
//! of residues may leave the device in 16 bits: what kernels made stays there, and a
//! copy that was narrowed at the end is downloaded.

use super::super::columns::{Column, TableName};
use super::super::layout::{CHAINS, RESIDUES, STRUCTURES};
use super::super::reals::{Reals, narrow_bf16, narrow_f16};
use super::{Recording, args};
use crate::record::{Arg, Buffer, DType, Element};
use crate::workload::ReadViews;
use half::{bf16, f16};

/// A result column: every so many elements of a buffer, from a place on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultColumn {
    buffer: ResultBuffer,
    stride: usize,
    at: usize,
}

/// A buffer of results.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum ResultBuffer {
    Count(Buffer<i32>),
    Real(Buffer<f32>),
    F16(Buffer<f16>),
    Bf16(Buffer<bf16>),
}

macro_rules! result_buffers {
    ($($rust:ty => $variant:ident),*) => {
        $(impl From<Buffer<$rust>> for ResultBuffer {
            fn from(buffer: Buffer<$rust>) -> Self {
                ResultBuffer::$variant(buffer)
            }
        })*
    };
}
result_buffers!(i32 => Count, f32 => Real, f16 => F16, bf16 => Bf16);

impl ResultColumn {
    pub(super) fn read(&self, views: &ReadViews<'_>) -> Column {
        match self.buffer {
            ResultBuffer::Count(buffer) => Column::Count(self.pick(views.get(buffer))),
            ResultBuffer::Real(buffer) => Column::Real(self.pick(views.get(buffer))),
            ResultBuffer::F16(buffer) => {
                Column::Real(self.picked(views.get(buffer)).map(f16::to_f32).collect())
            }
            ResultBuffer::Bf16(buffer) => {
                Column::Real(self.picked(views.get(buffer)).map(bf16::to_f32).collect())
            }
        }
    }

    fn pick<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.picked(values).collect()
    }

    fn picked<T: Copy>(&self, values: &[T]) -> impl Iterator<Item = T> {
        let own = values.get(self.at..).unwrap_or_default();
        own.iter().step_by(self.stride).copied()
    }
}

/// Results of a kernel: for each row of a table some values, side by side.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Results<T> {
    pub(super) buffer: Buffer<T>,
    /// What the host sees of it.
    pub(super) read: ResultBuffer,
    pub(super) table: TableName,
    pub(super) values: usize,
}

impl<T> Results<T> {
    /// How many values stand side by side for a row.
    pub(in super::super) fn values_a_row(self) -> usize {
        self.values
    }
}

impl<T: Element> From<Results<T>> for Arg {
    fn from(results: Results<T>) -> Arg {
        results.buffer.into()
    }
}

impl Recording<'_> {
    /// A buffer for results: `values` for each row of `table`.
    pub(in super::super) fn results<T: Element>(
        &mut self,
        table: TableName,
        name: &str,
        values: usize,
    ) -> Results<T>
    where
        Buffer<T>: Into<ResultBuffer>,
    {
        let axis = match table {
            TableName::Residues => RESIDUES,
            TableName::Chains => CHAINS,
            TableName::Structures => STRUCTURES,
        };
        let (buffer, read) = self.result_buffers(table, name, axis, values);
        self.downloads.push(read);
        Results {
            buffer,
            read,
            table,
            values,
        }
    }

    /// The next column of the results' table is value `at` of each row.
    pub(in super::super) fn column<T>(&mut self, results: Results<T>, at: usize) {
        debug_assert!(at < results.values);
        let column = ResultColumn {
            buffer: results.read,
            stride: results.values,
            at,
        };
        self.buffers.results.push((results.table, column));
    }

    /// How many columns there are so far.
    pub(in super::super) fn column_count(&self) -> usize {
        self.buffers.results.len()
    }

    /// A buffer for results, and the one that the host reads of it.
    fn result_buffers<T: Element>(
        &mut self,
        table: TableName,
        name: &str,
        axis: usize,
        values: usize,
    ) -> (Buffer<T>, ResultBuffer)
    where
        Buffer<T>: Into<ResultBuffer>,
    {
        let name_narrow = || format!("{name}_{}", self.config.reals.name());
        let (kernel, narrow, read) = match self.config.reals {
            Reals::F16 if is_narrowed::<T>(table) => {
                let narrow = self
                    .recorder
                    .download_buffer::<f16>(&name_narrow(), axis, values);
                (narrow_f16(), Arg::from(narrow), narrow.into())
            }
            Reals::Bf16 if is_narrowed::<T>(table) => {
                let narrow = self
                    .recorder
                    .download_buffer::<bf16>(&name_narrow(), axis, values);
                (narrow_bf16(), Arg::from(narrow), narrow.into())
            }
            _ => {
                let buffer = self.recorder.download_buffer(name, axis, values);
                return (buffer, buffer.into());
            }
        };
        let wide = self.device(name, axis, values);
        let args = args![self.header, wide, narrow, values as u32];
        let step = self.step_of_threads(kernel, axis, &args);
        self.narrowing.push(step);
        (wide, read)
    }
}

/// Whether results leave the device narrower than they were made, where any do.
fn is_narrowed<T: Element>(table: TableName) -> bool {
    table == TableName::Residues && T::DTYPE == DType::F32
}
