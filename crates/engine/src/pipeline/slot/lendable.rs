//! [`Lendable`]: a slot's device slot, whose host memory results may borrow.

use crate::backend::contract::DeviceSlot;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A device slot that is its slot's own, or shared with results that borrow its host memory.
///
/// Writing, submitting and waiting take the device slot by `&mut`, which exists only while nothing
/// else shares it. So no code can change memory that a result borrows.
pub(super) struct Lendable {
    /// `None` while it is lent.
    own: Option<Box<dyn DeviceSlot>>,
    /// Holds the device slot while it is lent. Allocated once, so that lending allocates nothing.
    lent: Lent,
}

/// A share in a device slot that is lent. The last one frees it if its engine was dropped.
#[derive(Clone)]
pub(crate) struct Lent(Arc<Option<Box<dyn DeviceSlot>>>);

impl Deref for Lent {
    type Target = dyn DeviceSlot;

    fn deref(&self) -> &Self::Target {
        let device_slot = (*self.0).as_deref();
        device_slot.expect("the device slot stays here while it is shared")
    }
}

impl Lendable {
    pub(super) fn new(device_slot: Box<dyn DeviceSlot>) -> Self {
        Lendable {
            own: Some(device_slot),
            lent: Lent(Arc::new(None)),
        }
    }

    pub(super) fn is_lent(&self) -> bool {
        self.own.is_none()
    }

    /// Lends it, until [`Lendable::take_back`]. The device slot can be read meanwhile, and not used
    /// otherwise.
    ///
    /// # Panics
    /// If it is lent.
    pub(super) fn lend(&mut self) -> Lent {
        let device_slot = self
            .own
            .take()
            .expect("a device slot is lent once at a time");
        let place = Arc::get_mut(&mut self.lent.0);
        *place.expect("no share is left of the last time") = Some(device_slot);
        self.lent.clone()
    }

    /// Ends [`Lendable::lend`] if no share is left. Returns whether the device slot is its slot's own.
    pub(super) fn take_back(&mut self) -> bool {
        if let (None, Some(place)) = (&self.own, Arc::get_mut(&mut self.lent.0)) {
            self.own = place.take();
        }
        !self.is_lent()
    }
}

impl Deref for Lendable {
    type Target = dyn DeviceSlot;

    fn deref(&self) -> &Self::Target {
        match &self.own {
            Some(device_slot) => &**device_slot,
            None => &*self.lent,
        }
    }
}

impl DerefMut for Lendable {
    fn deref_mut(&mut self) -> &mut Self::Target {
        let device_slot = self.own.as_deref_mut();
        device_slot.expect("a slot is used again when no result borrows its memory")
    }
}
