//! Which recordings get the code of the built-in kernels.

use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::Result;
use tapeloop::backend::cpu::CpuBackend;
use tapeloop::backend::{Backend, DeviceInfo};
use tapeloop::features::{FeatureConfig, Features, Fusion, Reals};
use tapeloop::pipeline::Packer;
use tapeloop::record::{Recorder, Recording};
use tapeloop::replay::Buckets;
use tapeloop::workload::{Extent, ReadViews, Workload, WriteViews};

/// A workload that wraps another workload and records the same commands.
struct Wrapping<W>(W);

impl<W: Workload> Workload for Wrapping<W> {
    type Item = W::Item;
    type Output = W::Output;
    type Buffers = W::Buffers;

    fn axes(&self) -> &'static [&'static str] {
        self.0.axes()
    }

    fn extent(&self, item: &W::Item) -> Result<Extent> {
        self.0.extent(item)
    }

    fn record(&self, recorder: &mut Recorder, device: &DeviceInfo) -> Result<W::Buffers> {
        assert!(recorder.is_for::<Self>() && !recorder.is_for::<W>());
        self.0.record(recorder, device)
    }

    fn write(
        &self,
        buffers: &W::Buffers,
        item: &W::Item,
        offset: Extent,
        views: &mut WriteViews<'_>,
    ) -> Result<()> {
        self.0.write(buffers, item, offset, views)
    }

    fn read(
        &self,
        buffers: &W::Buffers,
        item: &W::Item,
        offset: Extent,
        views: &ReadViews<'_>,
    ) -> Result<W::Output> {
        self.0.read(buffers, item, offset, views)
    }
}

fn buckets<W: Workload>(workload: W, backend: &Arc<dyn Backend>, capacity: Extent) -> Arc<Buckets> {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let packer = Packer::new(workload, &[capacity], backend, Arc::new(pool)).unwrap();
    packer.buckets()
}

/// The kernels rely on what their workload writes, so only an engine of that workload gives them
/// their code.
#[test]
fn built_in_kernels_have_their_code_in_an_engine_of_their_own_workload_alone() {
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::inline());
    let capacity = Features::capacity(64);
    for (fusion, reals) in [
        (Fusion::Off, Reals::F16),
        (Fusion::Off, Reals::Bf16),
        (Fusion::On, Reals::F32),
    ] {
        let config = FeatureConfig {
            fusion,
            reals,
            ..FeatureConfig::default()
        };
        let features = || Features::new(config.clone()).unwrap();
        let have_code = |recording: &Recording| {
            let launches = || recording.launches();
            assert!(launches().count() > 0);
            let count = launches().filter(|launch| launch.has_code()).count();
            (count == launches().count(), count == 0)
        };
        let of_features = buckets(features(), &backend, capacity);
        assert_eq!(have_code(&of_features.largest().recording), (true, false));
        let wrapped = buckets(Wrapping(features()), &backend, capacity);
        assert_eq!(have_code(&wrapped.largest().recording), (false, true));
        let mut recorder = Recorder::new(&capacity.as_slice()[..6]);
        features().record(&mut recorder, backend.device()).unwrap();
        assert_eq!(have_code(&recorder.finish().unwrap()), (false, true));
    }
}
