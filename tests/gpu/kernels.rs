//! Kernels from text, PTX and binaries on a real device, and those that are
//! refused.

use crate::gpu::*;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::record::{Image, Kernel, Recorder};
use tapeloop::replay::Mode;

fn binary_image(binary: &[u8]) -> Arc<Image> {
    Arc::new(Image {
        name: "binary".to_owned(),
        binary: Some(binary.to_vec()),
        source: None,
    })
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_kernel_that_does_not_compile_is_cited_by_file_and_line() {
    let backend = device();
    let image = source_image("\n\nextern \"C\" __global__ void f() { nonsense; }\n");
    let error = backend
        .load(&with_code(Kernel::new("f"), &image))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    assert!(error.message().contains("saxpy.cu(3)"), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_kernel_that_its_image_lacks_is_named() {
    let backend = device();
    let kernel = with_code(Kernel::new("nope"), &source_image(SAXPY));
    let error = backend.load(&kernel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    assert!(error.message().contains("nope"), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_kernel_without_code_is_named_with_the_way_out() {
    let backend = device();
    let error = backend.load(&saxpy_declared()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Kernel);
    assert!(error.message().contains("saxpy"), "{error}");
    let fix = error.fix_text().unwrap();
    assert!(fix.contains("Kernel::code"), "{fix}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_declaration_that_its_code_does_not_fit_is_named() {
    let backend = device();
    let image = source_image(SAXPY);
    let misdeclared = [
        (saxpy_declared().scalar::<u32>("more"), "6 parameters"),
        (Kernel::new("stray").scalar::<f32>("out"), "parameter out"),
        (saxpy_declared().block(2_048), "2048 threads"),
    ];
    for (kernel, part) in misdeclared {
        let kernel = with_code(kernel, &image);
        let error = backend.load(&kernel).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Kernel);
        assert!(error.message().contains(part), "{error}");
        assert!(error.message().contains(kernel.name()), "{error}");
    }
    let kernel = with_code(saxpy_declared().shared_bytes(1 << 30), &image);
    let error = backend.load(&kernel).unwrap_err();
    assert!(error.message().contains("shared memory"), "{error}");
    let once = backend.load(&saxpy_kernel(&image)).unwrap();
    assert_eq!(once, backend.load(&saxpy_kernel(&image)).unwrap());
    // What a slot checks and leases follows from the declaration.
    let updating = Kernel::new("saxpy")
        .reads::<f32>("x")
        .reads::<i32>("base")
        .updates::<f32>("out")
        .scalar::<f32>("a")
        .scalar::<u32>("n");
    assert_ne!(once, backend.load(&with_code(updating, &image)).unwrap());
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_bad_image_is_an_error_that_says_what_to_do() {
    let backend = device();
    let cut = [b"\x7FELF".as_slice(), &[0xFF; 60]].concat();
    let bad_ptx = b".version 7.0\n.target sm_75\n.address_size 64\nnonsense\n".as_slice();
    let new_ptx = b".version 99.0\n.target sm_75\n.address_size 64\n".as_slice();
    for image in [b"junk".as_slice(), &cut, bad_ptx, new_ptx, b".version"] {
        let error = backend
            .load(&with_code(Kernel::new("f"), &binary_image(image)))
            .unwrap_err();
        say(&format!("a bad image: {error}"));
        assert!(
            matches!(error.kind(), ErrorKind::Kernel | ErrorKind::Unavailable),
            "{error:?}"
        );
        assert!(error.fix_text().is_some(), "{error}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn ptx_runs_by_the_driver_s_own_compiler() {
    const PTX: &str = "
.version 6.4
.target sm_75
.address_size 64
.visible .entry answer(.param .u64 out)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 42;
    st.global.u32 [%rd2], %r1;
    ret;
}
";
    let backend = device();
    let mut recorder = Recorder::new(&[1]);
    let out = recorder.download_buffer::<u32>("out", 0, 1);
    let kernel = Kernel::new("answer").block(1).writes::<u32>("out");
    let kernel = with_code(kernel, &binary_image(PTX.as_bytes()));
    recorder.launch(&kernel, 1, &[out.into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let mut device_slot = one_slot(&backend, &recording);
    let mut executor = ready(&backend, &recording, &mut *device_slot, Mode::Graph);
    replay(&mut *device_slot, &mut executor);
    device_slot.wait().unwrap();
    assert_eq!(device_slot.host(out.id()), 42_u32.to_le_bytes());
}

#[test]
#[ignore = "needs a CUDA device"]
fn more_shared_memory_than_the_default_is_opted_in_to() {
    const N: u32 = 20_000;
    let backend = device();
    let mut recorder = Recorder::new(&[N]);
    let x = recorder.upload_buffer::<f32>("x", 0, 1);
    let out = recorder.download_buffer::<f32>("out", 0, 1);
    let kernel = Kernel::new("shared_reverse")
        .block(256)
        .reads::<f32>("x")
        .writes::<f32>("out")
        .scalar::<u32>("n")
        .shared_bytes(N * size_of::<f32>() as u32);
    let kernel = with_code(kernel, &source_image(SAXPY));
    if let Err(error) = backend.load(&kernel) {
        say(&format!(
            "not tried: this card has less shared memory ({error})"
        ));
        return;
    }
    recorder.upload(x);
    recorder.launch(&kernel, 1, &[x.into(), out.into(), N.into()]);
    recorder.download(out);
    let recording = recorder.finish().unwrap();
    let values: Vec<f32> = (0..N).map(|i| i as f32).collect();
    for mode in MODES {
        let mut device_slot = one_slot(&backend, &recording);
        let mut executor = ready(&backend, &recording, &mut *device_slot, mode);
        device_slot.host_mut(&[x.id()])[0].copy_from_slice(bytemuck::cast_slice(&values));
        replay(&mut *device_slot, &mut executor);
        device_slot.wait().unwrap();
        let reversed: &[f32] = bytemuck::cast_slice(device_slot.host(out.id()));
        assert!(reversed.iter().eq(values.iter().rev()));
    }
}

/// The kernels in the binary, compiled by nvcc where the build had it, and by
/// NVRTC, load and fit their declarations.
#[test]
#[ignore = "needs a CUDA device"]
fn the_built_in_kernels_load_from_both_of_their_sources() {
    let backend = device();
    let built_in = tapeloop::features::image("atom_residue").unwrap();
    let from_source = Arc::new(Image {
        binary: None,
        ..(*built_in).clone()
    });
    for image in [built_in, from_source] {
        say(&format!(
            "built-in kernels, {} binary",
            if image.binary.is_some() { "a" } else { "no" }
        ));
        let kernel = Kernel::new("atom_residue")
            .reads::<u32>("header")
            .reads::<u32>("residues")
            .updates::<u32>("residue_of");
        backend.load(&with_code(kernel, &image)).unwrap();
    }
}
