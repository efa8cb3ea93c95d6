//! What is in flight, and the order that results come out in. No threads.

use super::slot::{Done, Failed, InFlight, Progress, Slot};
use std::collections::VecDeque;

/// Slots on the device, oldest first; they may finish in any order.
pub(crate) struct InFlightSet<B> {
    slots: VecDeque<Slot<InFlight<B>>>,
}

/// A slot that left the device, one way or the other.
pub(crate) type Finished<B> = Result<Slot<Done<B>>, Box<Failed<B>>>;

impl<B> InFlightSet<B> {
    pub(crate) fn new() -> Self {
        InFlightSet {
            slots: VecDeque::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn insert(&mut self, slot: Slot<InFlight<B>>) {
        self.slots.push_back(slot);
    }

    /// Looks at every slot once, oldest first, and gives out one that finished.
    pub(crate) fn poll(&mut self) -> Option<Finished<B>> {
        for age in 0..self.slots.len() {
            match self.slots.remove(age)?.poll() {
                Progress::Pending(slot) => self.slots.insert(age, slot),
                Progress::Done(slot) => return Some(Ok(slot)),
                Progress::Failed(failed) => return Some(Err(failed)),
            }
        }
        None
    }

    /// Waits for the oldest slot.
    pub(crate) fn wait_oldest(&mut self) -> Option<Finished<B>> {
        match self.slots.pop_front()?.wait() {
            Progress::Done(slot) => Some(Ok(slot)),
            Progress::Failed(failed) => Some(Err(failed)),
            Progress::Pending(_) => unreachable!("wait returns when the slot is done"),
        }
    }
}

/// Restores the order of numbered things. It holds at most what is missing its
/// predecessors, so with slots as the things, at most one less than there are.
pub(crate) struct Reorder<T> {
    next: u64,
    held: Vec<(u64, T)>,
}

impl<T> Reorder<T> {
    pub(crate) fn new() -> Self {
        Reorder {
            next: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, number: u64, thing: T) {
        debug_assert!(number >= self.next, "numbers come once");
        self.held.push((number, thing));
    }

    /// The next in order, once it is there.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let position = self
            .held
            .iter()
            .position(|(number, _)| *number == self.next)?;
        self.next += 1;
        Some(self.held.swap_remove(position).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_in_the_order_of_their_numbers() {
        let mut reorder = Reorder::new();
        let mut out = Vec::new();
        for number in [2, 0, 1, 4, 3] {
            reorder.insert(number, number);
            while let Some(next) = reorder.pop() {
                out.push(next);
            }
        }
        assert_eq!(out, [0, 1, 2, 3, 4]);
    }
}
