use std::sync::Arc;
use tapeloop_engine::backend::{ThreadPoolBuilder, cpu::CpuBackend};
use tapeloop_engine::memory::{DeviceBuffer, Pool, PoolConfig};
use tapeloop_engine::{Backend, DeviceInputs, DeviceLeased, Engine, EngineConfig};

/// Doubles numbers that are on the device, and keeps the results there.
struct OnDevice(Double);

impl Workload for OnDevice {
    type Item = DeviceBuffer<f32>;
    type Output = DeviceLeased<f32>;
    type Buffers = [Buffer<f32>; 2];

    fn axes(&self) -> &'static [&'static str] {
        &["numbers"]
    }

    fn extent(&self, item: &Self::Item) -> Result<Extent> {
        Ok([item.len() as u32].into())
    }

    fn record(&self, recorder: &mut Recorder, _: &DeviceInfo) -> Result<[Buffer<f32>; 2]> {
        let header = recorder.header();
        let x = recorder.input_buffer("x", 0, 1);
        let y = recorder.result_buffer("y", 0, 1);
        recorder.upload(header);
        let blocks = recorder.capacity(0).div_ceil(128);
        recorder.launch(&self.0.0, blocks, &[header.into(), x.into(), y.into()]);
        Ok([x, y])
    }

    fn write(
        &self,
        _: &[Buffer<f32>; 2],
        _: &Self::Item,
        _: Extent,
        _: &mut WriteViews<'_>,
    ) -> Result<()> {
        Ok(())
    }

    fn device_inputs(
        &self,
        [x, _]: &[Buffer<f32>; 2],
        item: &Self::Item,
        inputs: &mut DeviceInputs<'_>,
    ) -> Result<()> {
        inputs.copy(*x, item.view())
    }

    fn read(
        &self,
        [_, y]: &[Buffer<f32>; 2],
        _: &Self::Item,
        _: Extent,
        views: &ReadViews<'_>,
    ) -> Result<DeviceLeased<f32>> {
        views.keep_on_device(*y)
    }
}

fn main() -> Result<()> {
    let pool = Arc::new(ThreadPoolBuilder::new().build().expect("threads"));
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let memory = Pool::new(Arc::clone(&backend), PoolConfig::production());
    let mut numbers = memory.device::<f32>(2, "numbers")?;
    numbers.upload(&[1.0, 2.0])?;
    let config = EngineConfig::new([1 << 20]);
    let engine = Engine::new(OnDevice(Double::new()?), &[backend], pool, &config)?;
    let doubled = engine.submit(numbers)?.wait()?.result?;
    let mut found = [0.0; 2];
    doubled.download(&mut found)?;
    assert_eq!(found, [2.0, 4.0]);
    Ok(())
}
