//! Result buffers, and the columns that the host reads from them. Reals of residues may be
//! downloaded as 16-bit types: the kernel's results then stay on the device, and a rounded copy is
//! downloaded.

use super::interfaces::InterfaceBuffers;
use super::kernels::{narrow_bf16, narrow_f16};
use super::layout::RESIDUES;
use super::pairs::PairTable;
use super::reals::Reals;
use super::recorder::FeatureRecorder;
use super::table::Values;
use super::table_decl::TableName;
use crate::record::{Buffer, Recorder};
use crate::workload::ReadViews;
use half::{bf16, f16};
use std::ops::Range;

/// A result column: every `stride`-th element of a buffer, from index `value` on. These are the
/// values at this index of each row.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultColumn {
    buffer: ResultBuffer,
    stride: usize,
    value: usize,
}

/// A buffer of results.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResultBuffer {
    Count(Buffer<i32>),
    Real(Buffer<f32>),
    F16(Buffer<f16>),
    Bf16(Buffer<bf16>),
}

impl ResultBuffer {
    /// Records the download.
    pub(super) fn download(self, recorder: &mut Recorder) {
        match self {
            ResultBuffer::Count(buffer) => recorder.download(buffer),
            ResultBuffer::Real(buffer) => recorder.download(buffer),
            ResultBuffer::F16(buffer) => recorder.download(buffer),
            ResultBuffer::Bf16(buffer) => recorder.download(buffer),
        }
    }
}

impl ResultBuffer {
    /// No values of the buffer's type.
    pub(super) fn no_values(&self) -> Values {
        match self {
            ResultBuffer::Count(_) => Values::Count(Vec::new()),
            _ => Values::Real(Vec::new()),
        }
    }

    /// Adds elements of the buffer to values of its type.
    pub(super) fn add_to(self, views: &ReadViews<'_>, range: Range<usize>, values: &mut Values) {
        match (self, values) {
            (ResultBuffer::Count(buffer), Values::Count(values)) => {
                values.extend_from_slice(&views.get(buffer)[range]);
            }
            (ResultBuffer::Real(buffer), Values::Real(values)) => {
                values.extend_from_slice(&views.get(buffer)[range]);
            }
            _ => unreachable!("columns of pairs are counts or f32"),
        }
    }
}

impl ResultColumn {
    /// The column's values of all rows that the views span.
    pub(super) fn read(&self, views: &ReadViews<'_>) -> Values {
        match self.buffer {
            ResultBuffer::Count(buffer) => {
                Values::Count(self.pick(views.get(buffer), |value| value))
            }
            ResultBuffer::Real(buffer) => Values::Real(self.pick(views.get(buffer), |value| value)),
            ResultBuffer::F16(buffer) => Values::Real(self.pick(views.get(buffer), f16::to_f32)),
            ResultBuffer::Bf16(buffer) => Values::Real(self.pick(views.get(buffer), bf16::to_f32)),
        }
    }

    /// The values of one column of rows with several, converted. The usual numbers of columns have
    /// code of their own, which the compiler vectorizes.
    fn pick<T: Copy, U>(&self, values: &[T], convert: impl Fn(T) -> U) -> Vec<U> {
        match self.stride {
            1 => values.iter().map(|&value| convert(value)).collect(),
            2 => self.pick_strided::<2, T, U>(values, convert),
            3 => self.pick_strided::<3, T, U>(values, convert),
            4 => self.pick_strided::<4, T, U>(values, convert),
            stride => {
                let rows = values.chunks_exact(stride);
                rows.map(|row| convert(row[self.value])).collect()
            }
        }
    }

    /// [`ResultColumn::pick`] for a constant stride, for which the compiler makes vector code.
    fn pick_strided<const STRIDE: usize, T: Copy, U>(
        &self,
        values: &[T],
        convert: impl Fn(T) -> U,
    ) -> Vec<U> {
        let (rows, column) = (values.as_chunks::<STRIDE>().0, self.value);
        assert!(column < STRIDE, "the column is within a row");
        rows.iter().map(|row| convert(row[column])).collect()
    }
}

/// Results of a kernel: `[rows of the table, values]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelResults<T> {
    pub(super) buffer: Buffer<T>,
    /// The buffer that the host reads: `buffer`, or its rounded copy.
    pub(super) read: ResultBuffer,
    pub(super) table: TableName,
    pub(super) values: usize,
}

/// An element type of results.
pub(super) trait ResultNumber: crate::record::Number {
    /// The buffer with its type as a value.
    fn result(buffer: Buffer<Self>) -> ResultBuffer;

    /// For reals that are downloaded as a 16-bit type: the buffer for the kernel and the buffer for
    /// the host.
    fn narrowed(
        recorder: &mut FeatureRecorder<'_>,
        name: &str,
        values: usize,
    ) -> Option<(Buffer<Self>, ResultBuffer)>;
}

impl ResultNumber for i32 {
    fn result(buffer: Buffer<i32>) -> ResultBuffer {
        ResultBuffer::Count(buffer)
    }

    fn narrowed(
        _: &mut FeatureRecorder<'_>,
        _: &str,
        _: usize,
    ) -> Option<(Buffer<i32>, ResultBuffer)> {
        None
    }
}

impl ResultNumber for f32 {
    fn result(buffer: Buffer<f32>) -> ResultBuffer {
        ResultBuffer::Real(buffer)
    }

    fn narrowed(
        r: &mut FeatureRecorder<'_>,
        name: &str,
        values: usize,
    ) -> Option<(Buffer<f32>, ResultBuffer)> {
        let (header, reals) = (r.header(), r.reals);
        let name_narrow = format!("{name}_{}", reals.name());
        let count = values as u32;
        Some(match reals {
            Reals::F32 => return None,
            Reals::F16 => {
                let narrow = r.recorder.download_buffer(&name_narrow, RESIDUES, values);
                let wide = r.device(name, RESIDUES, values);
                let args = narrow_f16::Args {
                    header,
                    wide,
                    narrow,
                    values: count,
                };
                r.narrow(RESIDUES, args);
                (wide, ResultBuffer::F16(narrow))
            }
            Reals::Bf16 => {
                let narrow = r.recorder.download_buffer(&name_narrow, RESIDUES, values);
                let wide = r.device(name, RESIDUES, values);
                let args = narrow_bf16::Args {
                    header,
                    wide,
                    narrow,
                    values: count,
                };
                r.narrow(RESIDUES, args);
                (wide, ResultBuffer::Bf16(narrow))
            }
        })
    }
}

impl FeatureRecorder<'_> {
    /// Declares a result buffer, `[rows of the table, values]`, and its download.
    pub(super) fn results<T: ResultNumber>(
        &mut self,
        table: TableName,
        name: &str,
        values: usize,
    ) -> KernelResults<T> {
        let axis = table.axis();
        let narrowed = if table == TableName::Residues {
            T::narrowed(self, name, values)
        } else {
            None
        };
        let (buffer, read) = narrowed.unwrap_or_else(|| {
            let buffer = self.recorder.download_buffer(name, axis, values);
            (buffer, T::result(buffer))
        });
        self.downloads.push(read);
        KernelResults {
            buffer,
            read,
            table,
            values,
        }
    }

    /// Declares a result buffer that stays on the device, `[residues, values]`.
    pub(super) fn kept_results<T: ResultNumber>(
        &mut self,
        name: &str,
        values: usize,
    ) -> KernelResults<T> {
        let buffer = self.device(name, RESIDUES, values);
        KernelResults {
            buffer,
            read: T::result(buffer),
            table: TableName::Residues,
            values,
        }
    }

    /// Adds a column to the results' table: the values at index `value` of each row.
    pub(super) fn column<T>(&mut self, results: KernelResults<T>, value: usize) {
        debug_assert!(value < results.values);
        let column = ResultColumn {
            buffer: results.read,
            stride: results.values,
            value,
        };
        self.buffers.results.push((results.table, column));
    }

    /// The number of columns so far.
    pub(super) fn column_count(&self) -> usize {
        let pairs = self.buffers.pairs.iter();
        let pairs = pairs.map(PairTable::column_count).sum::<usize>();
        let interfaces = self.buffers.interfaces.as_ref();
        let interfaces = interfaces.map_or(0, InterfaceBuffers::column_count);
        self.buffers.results.len() + pairs + interfaces
    }
}
