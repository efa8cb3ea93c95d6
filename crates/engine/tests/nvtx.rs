//! NVTX ranges do no harm, whether their library is there or not. A process of its own, since its
//! subscriber listens to the whole process.
#![cfg(feature = "nvtx")]

use tapeloop_conformance::scale;

use rayon::ThreadPoolBuilder;
use scale::{Scale, doubled, vectors};
use std::sync::Arc;
use tapeloop_engine::backend::cuda::NvtxLayer;
use tapeloop_engine::backend::{Backend, cpu::CpuBackend};
use tapeloop_engine::pipeline::{EngineConfig, Pipeline, TrySubmitError};
use tapeloop_engine::{Engine, ErrorKind, Ticket};
use tracing_subscriber::layer::SubscriberExt;

#[test]
fn an_engine_runs_with_ranges_and_without_their_library() {
    match NvtxLayer::find() {
        Ok(layer) => {
            let subscriber = tracing_subscriber::registry().with(layer);
            tracing::subscriber::set_global_default(subscriber).unwrap();
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.fix_text().unwrap().contains("nvidia-nvtx"));
        }
    }
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(2).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let config = EngineConfig::new([100, 100]);
    let items = vectors(50);

    let backends = [Arc::clone(&backend)];
    let engine = Engine::new(Scale::new(2.0), &backends, Arc::clone(&pool), &config).unwrap();
    let submit = |item: &Vec<f32>| engine.submit(item.clone()).unwrap();
    let tickets: Vec<Ticket<Scale>> = items.iter().map(submit).collect();
    engine.flush().unwrap();
    for (ticket, item) in tickets.into_iter().zip(&items) {
        let done = ticket.wait().unwrap();
        assert_eq!(done.result.unwrap().0, doubled(item));
    }

    let mut pipeline = Pipeline::new(Scale::new(2.0), &[backend], pool, &config).unwrap();
    let mut done = 0;
    for mut item in items {
        while let Err(TrySubmitError::Full(back)) = pipeline.submit(item) {
            done += usize::from(pipeline.poll().is_some());
            item = back;
        }
    }
    while pipeline.wait().is_some() {
        done += 1;
    }
    assert_eq!(done, 50);
}
