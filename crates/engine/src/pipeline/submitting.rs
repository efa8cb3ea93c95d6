//! [`Engine::submit_async`]: a submission that is awaited.

use super::config::SubmitOptions;
use super::engine::Engine;
use super::ticket::Ticket;
use super::wakers::TaskId;
use crate::error::Result;
use crate::workload::{Extent, Workload};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Awaits room for an item, and submits it: [`Engine::submit_async`].
#[must_use = "the item is submitted when it is awaited"]
pub struct Submitting<'a, W: Workload> {
    engine: &'a Engine<W>,
    /// `None` once it is submitted.
    item: Option<(W::Item, Result<Extent>)>,
    options: SubmitOptions,
    task: TaskId,
    has_waited: bool,
}

impl<'a, W: Workload> Submitting<'a, W> {
    pub(super) fn new(engine: &'a Engine<W>, item: W::Item, options: SubmitOptions) -> Self {
        let extent = engine.shared().extent(&item);
        Submitting {
            engine,
            item: Some((item, extent)),
            options,
            task: TaskId::new(),
            has_waited: false,
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
            item,
            options,
            task,
            has_waited,
        } = &mut *self;
        let dispatcher = engine.dispatcher();
        let polled = dispatcher.poll_submit(item, *options, *task, context.waker());
        *has_waited = polled.is_pending();
        polled
    }
}

impl<W: Workload> Drop for Submitting<'_, W> {
    fn drop(&mut self) {
        if self.has_waited {
            self.engine
                .dispatcher()
                .forget_task(self.task, self.options.urgent);
        }
    }
}
