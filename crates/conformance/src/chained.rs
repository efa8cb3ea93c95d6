//! A workload whose items, or results, stay on the device.

use crate::scale::scale_kernel;
use tapeloop_engine::backend::{AllocationView, ExternalEvent};
use tapeloop_engine::record::{Buffer, Kernel, Recorder};
use tapeloop_engine::workload::{
    DeviceInputs, DeviceLeased, Extent, ReadViews, Workload, WriteViews,
};
use tapeloop_engine::{DeviceInfo, Error, Result};

/// Elements on the host or on the device.
#[derive(Debug)]
pub enum Data {
    /// On the host.
    Host(Vec<f32>),
    /// A result that stayed on the device.
    Kept(DeviceLeased<f32>),
    /// Device memory, and the number of elements that the item says it has.
    View(AllocationView, usize),
    /// Device memory that is written before an event of CUDA: [`Data::after`].
    After(AfterEvent),
    /// An item of this many elements that names no memory.
    Nothing(usize),
    /// An item of this many elements whose `write` fails.
    Unwritable(usize),
}

/// Device memory, and the handle of the event before which it is written.
#[derive(Debug)]
pub struct AfterEvent {
    view: AllocationView,
    len: usize,
    event: u64,
}

impl Data {
    /// `len` elements of device memory that are written before `event`.
    ///
    /// # Safety
    /// `event` is one of CUDA until the item's completion.
    pub unsafe fn after(view: AllocationView, len: usize, event: u64) -> Self {
        Data::After(AfterEvent { view, len, event })
    }

    fn len(&self) -> usize {
        match self {
            Data::Host(values) => values.len(),
            Data::Kept(kept) => kept.len(),
            Data::View(_, len)
            | Data::After(AfterEvent { len, .. })
            | Data::Nothing(len)
            | Data::Unwritable(len) => *len,
        }
    }
}

/// Multiplies by a factor.
pub struct Chained {
    kernel: Kernel,
    factor: f32,
    takes_device: bool,
    keeps: bool,
}

impl Chained {
    /// Takes elements of the host, and leaves its results on the device.
    pub fn first(factor: f32) -> Self {
        Chained {
            kernel: scale_kernel(),
            factor,
            takes_device: false,
            keeps: true,
        }
    }

    /// Takes elements of the device, and downloads its results.
    pub fn last(factor: f32) -> Self {
        Chained {
            takes_device: true,
            keeps: false,
            ..Chained::first(factor)
        }
    }
}

impl Workload for Chained {
    type Item = Data;
    type Output = Data;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["elements", "vectors"]
    }

    fn extent(&self, item: &Data) -> Result<Extent> {
        Ok(Extent::from([item.len() as u32, 1]))
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let header = recorder.header();
        recorder.upload(header);
        let x = if self.takes_device {
            recorder.input_buffer("x", 0, 1)
        } else {
            let x = recorder.upload_buffer("x", 0, 1);
            recorder.upload(x);
            x
        };
        let y = if self.keeps {
            recorder.result_buffer("y", 0, 1)
        } else {
            recorder.download_buffer("y", 0, 1)
        };
        let args = [header.into(), x.into(), y.into(), self.factor.into()];
        recorder.launch(&self.kernel, recorder.capacity(0).div_ceil(128), &args);
        if !self.keeps {
            recorder.download(y);
        }
        Ok([x, y])
    }

    fn write(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &Data,
        _: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        match item {
            Data::Host(values) => views.take(*x).copy_from_slice(values),
            Data::Unwritable(_) => return Err(Error::input("planted")),
            _ => {}
        }
        Ok(())
    }

    fn device_inputs(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &Data,
        inputs: &mut DeviceInputs<'_>,
    ) -> Result<()> {
        match item {
            Data::Kept(kept) => inputs.copy(*x, kept.view()),
            Data::View(view, _) => inputs.copy(*x, view.clone()),
            Data::After(AfterEvent { view, event, .. }) => {
                inputs.copy(*x, view.clone())?;
                // SAFETY: the caller of `Data::after` keeps the event.
                inputs.wait_for(unsafe { ExternalEvent::from_raw(*event) })
            }
            Data::Host(_) | Data::Nothing(_) | Data::Unwritable(_) => Ok(()),
        }
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        _: &Data,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<Data> {
        if self.keeps {
            views.keep_on_device(*y).map(Data::Kept)
        } else {
            Ok(Data::Host(views.get(*y).to_vec()))
        }
    }
}
