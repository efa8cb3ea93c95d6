//! The streams of slots.

/// How the queues of slots map to streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "supervise", derive(serde::Serialize, serde::Deserialize))]
pub enum Streams {
    /// One stream for each slot: kernels of different slots overlap.
    #[default]
    PerSlot,
    /// One stream for each queue, shared by all slots.
    PerStage,
}

impl Streams {
    /// Both variants.
    pub const ALL: &'static [Streams] = &[Streams::PerSlot, Streams::PerStage];

    /// The name in configs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Streams::PerSlot => "per_slot",
            Streams::PerStage => "per_stage",
        }
    }
}

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
