//! [`Engine::submit_async`]: a submission that is awaited.

use super::config::SubmitOptions;
use super::dispatcher::Incoming;
use super::engine::Engine;
use super::ticket::Ticket;
use crate::error::Result;
use crate::workload::Workload;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Awaits room for an item, and submits it: [`Engine::submit_async`].
#[must_use = "the item is submitted when it is awaited"]
pub struct Submitting<'a, W: Workload> {
    engine: &'a Engine<W>,
    incoming: Incoming<W>,
    options: SubmitOptions,
}

impl<'a, W: Workload> Submitting<'a, W> {
    pub(super) fn new(engine: &'a Engine<W>, item: W::Item, options: SubmitOptions) -> Self {
        let extent = engine.shared().extent(&item);
        Submitting {
            engine,
            incoming: Incoming::New(item, extent),
            options,
        }
    }
}

// No field is pinned structurally.
impl<W: Workload> Unpin for Submitting<'_, W> {}

impl<W: Workload> Future for Submitting<'_, W> {
    type Output = Result<Ticket<W>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Submitting {
            engine,
            incoming,
            options,
        } = &mut *self;
        (engine.dispatcher()).poll_submit(incoming, *options, context.waker())
    }
}

impl<W: Workload> Drop for Submitting<'_, W> {
    fn drop(&mut self) {
        if let Incoming::Waiting(id) = self.incoming {
            self.engine.dispatcher().take_back(id);
        }
    }
}
