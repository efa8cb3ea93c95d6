//! Declarations of the built-in kernels, beside their twins.

use super::layout::TILE;
use super::{cpu, image};
use crate::record::Kernel;

/// The built-in kernels.
pub(super) struct Kernels {
    pub(super) contact_number: Kernel,
    pub(super) weighted_contact_number: Kernel,
    pub(super) half_sphere_exposure: Kernel,
    pub(super) b_factor_z: Kernel,
    pub(super) radius_of_gyration: Kernel,
}

impl Kernels {
    pub(super) fn new() -> Self {
        let image = image::image();
        Kernels {
            contact_number: Kernel::new("contact_number", &image)
                .block(TILE)
                .reads::<u32>("header")
                .reads::<u32>("tiles")
                .reads::<i32>("positions")
                .writes::<i32>("counts")
                .scalar::<u32>("cutoff2")
                .twin(cpu::contact_number),
            weighted_contact_number: Kernel::new("weighted_contact_number", &image)
                .block(TILE)
                .reads::<u32>("header")
                .reads::<u32>("tiles")
                .reads::<i32>("positions")
                .writes::<f32>("sums")
                .twin(cpu::weighted_contact_number),
            half_sphere_exposure: Kernel::new("half_sphere_exposure", &image)
                .block(TILE)
                .reads::<u32>("header")
                .reads::<u32>("tiles")
                .reads::<i32>("positions")
                .reads::<u8>("links")
                .writes::<i32>("up")
                .writes::<i32>("down")
                .scalar::<u32>("cutoff2")
                .twin(cpu::half_sphere_exposure),
            b_factor_z: Kernel::new("b_factor_z", &image)
                .block(128)
                .reads::<u32>("header")
                .reads::<u32>("chains")
                .reads::<u32>("members")
                .reads::<f32>("b")
                .writes::<f32>("z")
                .twin(cpu::b_factor_z),
            radius_of_gyration: Kernel::new("radius_of_gyration", &image)
                .block(256)
                .reads::<u32>("header")
                .reads::<u32>("structures")
                .reads::<i32>("positions")
                .writes::<f32>("radii")
                .scalar::<u32>("of_atoms")
                .twin(cpu::radius_of_gyration),
        }
    }
}
