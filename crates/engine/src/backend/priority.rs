//! The priority of a slot's work.

/// Which of several slots' kernels a device starts first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Priority {
    /// The device's lowest, which streams have by default.
    #[default]
    Normal,
    /// The device's highest: when a part of the device becomes free, thread blocks of the slot's
    /// kernels start before those of other slots. What runs already is not interrupted.
    /// [`DeviceSlot::make_resident`](super::DeviceSlot::make_resident) refuses the slot's graphs.
    Urgent,
}
