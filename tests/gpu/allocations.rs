//! Allocations on a real device while long kernels run. The tests that hold for every backend are
//! scenarios of `tapeloop-conformance`.

use crate::give::Give;
use crate::gpu::*;
use tapeloop::ErrorKind;
use tapeloop::backend::contract::Op;
use tapeloop::backend::{Backend, Space};
use tapeloop::record::Kernel;

const FLOATS: usize = LEN * size_of::<f32>();

fn slow(backend: &dyn Backend, blocks: u32, block: u32, out: u64, n: u64) -> Op {
    let kernel = Kernel::new("slow").writes::<f32>("out").scalar::<u32>("n");
    let function = backend.load(&with_code(kernel, &source_image(SAXPY)));
    Op::Launch {
        function: function.unwrap(),
        grid: [blocks, 1, 1],
        block: [block, 1, 1],
        shared_bytes: 0,
        args: Box::new([out, n]),
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_kernel_gets_no_pointer_beyond_the_memory_of_its_slot() {
    let backend = device();
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let device = backend.allocate(Space::Device, FLOATS).unwrap();
    let pinned = backend.allocate(Space::Pinned, FLOATS).unwrap();
    device_slot.adopt(&device).unwrap();
    device_slot.adopt(&pinned).unwrap();
    let addresses = device_slot.addresses(saxpy.x.id());
    for address in [addresses.device, addresses.host.unwrap(), pinned.address()] {
        device_slot
            .give(&slow(&*backend, 1, 1, address, 1))
            .unwrap();
    }
    for address in [8, device.address() + device.bytes() as u64] {
        let refused = device_slot
            .give(&slow(&*backend, 1, 1, address, 1))
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Usage, "{refused}");
    }
    device_slot.fence().unwrap();
    device_slot.wait().unwrap();
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_dropped_slot_gives_its_allocations_back_when_its_work_is_done() {
    let backend = device();
    let saxpy = saxpy();
    let mut device_slot = one_slot(&backend, &saxpy.recording);
    let allocation = backend.allocate(Space::Pinned, FLOATS).unwrap();
    device_slot.adopt(&allocation).unwrap();
    let slow = slow(&*backend, 80, 128, allocation.address(), LEN as u64);
    device_slot.give(&slow).unwrap();
    let refused = allocation.read().err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Usage, "{refused}");
    drop(device_slot);
    let bytes = allocation.read().unwrap();
    let values: &[f32] = bytemuck::cast_slice(&bytes);
    assert!(
        values
            .iter()
            .all(|value| *value != 0.0 && *value == values[0])
    );
}
