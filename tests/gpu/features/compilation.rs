//! Kernels that are compiled from text at run time: in parallel, cached one by one, and an error
//! without NVRTC.

use super::*;
use tapeloop::ErrorKind;
use tapeloop::backend::cuda::CudaBackend;
use tapeloop::backend::{CudaOptions, KernelCache, NvrtcLibrary};
use tapeloop::features::images;
use tapeloop::record::Image;

/// All built-in kernels, as text.
fn texts() -> Vec<Arc<Image>> {
    let text = |(_, image): (_, Arc<Image>)| {
        Arc::new(Image {
            binary: None,
            ..(*image).clone()
        })
    };
    images().map(text).collect()
}

fn open(cache: &Path) -> CudaBackend {
    gpu::cuda(&CudaOptions {
        // SAFETY: the folder was made by this test, and has what this library compiled.
        kernel_cache: Some(unsafe { KernelCache::new(cache) }),
        ..CudaOptions::default()
    })
}

#[test]
#[ignore = "needs a CUDA device"]
fn texts_are_compiled_together_and_kept_each_by_itself() {
    let cache = tempfile::tempdir().unwrap();
    let first = open(cache.path());
    let mut images = texts();
    match first.prepare(&images) {
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            return gpu::say(&format!("compilation is not tried: {error}"));
        }
        prepared => prepared.unwrap(),
    }
    let compiled = |backend: &CudaBackend| {
        let compilation = backend.compilation();
        assert_eq!(compilation.images, compilation.done);
        compilation.images
    };
    assert_eq!(compiled(&first), images.len() as u64);
    first.prepare(&images).unwrap();
    assert_eq!(compiled(&first), images.len() as u64, "loaded once");
    gpu::say(&format!(
        "{} kernels in {} ms",
        images.len(),
        first.compilation().ns / 1_000_000
    ));

    // Another process would find all kernels in the cache except a new one and a broken one.
    let second = open(cache.path());
    let changed = |image: &Arc<Image>, more: &str| {
        let mut changed = (**image).clone();
        changed.source.as_mut().unwrap().text.push_str(more);
        Arc::new(changed)
    };
    images[3] = changed(&images[3], "\n// changed\n");
    images[5] = changed(&images[5], "\nnonsense\n");
    let error = second.prepare(&images).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    let file = &images[5].source.as_ref().unwrap().file;
    assert!(error.to_string().contains(file), "{error}");
    assert_eq!(compiled(&second), 2);
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_fused_kernel_needs_nvrtc_and_says_so() {
    let options = CudaOptions {
        // SAFETY: there is no such file.
        nvrtc: Some(unsafe { NvrtcLibrary::new("/nowhere/libnvrtc.so") }),
        ..CudaOptions::default()
    };
    let backend = gpu::device_with(&options);
    let features = FeatureConfig {
        features: vec![FeatureName::Torsions],
        fusion: Fusion::On,
        ..FeatureConfig::default()
    };
    let workload = Features::new(features).unwrap();
    let config = EngineConfig::new(Features::capacity(1024));
    let error = Engine::new(workload, &[backend], pool(), &config)
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let text = error.to_string();
    for part in [
        "fusion = \"on\"",
        "/nowhere/libnvrtc.so",
        "install libnvrtc",
    ] {
        assert!(text.contains(part), "{text}");
    }
}
