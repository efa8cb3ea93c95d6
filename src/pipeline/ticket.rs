//! Claims on results.

use super::sync::{Condvar, Mutex};
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Workload};
use std::sync::Arc;

/// A claim on one item's result.
pub struct Ticket<W: Workload> {
    cell: Arc<Cell<W>>,
}

struct Cell<W: Workload> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

enum State<W: Workload> {
    Pending,
    Ready(Completion<W>),
    Lost,
}

/// The engine's end of a ticket, or nothing where the results go to the caller.
pub(crate) enum Reply<W: Workload> {
    Ticket(TicketReply<W>),
    Caller,
}

pub(crate) struct TicketReply<W: Workload> {
    cell: Arc<Cell<W>>,
}

impl<W: Workload> Ticket<W> {
    pub(crate) fn new() -> (Self, Reply<W>) {
        let cell = Arc::new(Cell {
            state: Mutex::new(State::Pending),
            changed: Condvar::new(),
        });
        let reply = TicketReply {
            cell: Arc::clone(&cell),
        };
        (Ticket { cell }, Reply::Ticket(reply))
    }

    /// Whether [`Ticket::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        !matches!(*self.cell.state.lock(), State::Pending)
    }

    /// Waits for the item to come back with its result.
    ///
    /// # Errors
    /// [`ErrorKind::Closed`] if the engine ended without it; then the item is
    /// lost too. An item's own failure is in [`Completion::result`].
    pub fn wait(self) -> Result<Completion<W>> {
        let mut state = self.cell.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Lost) {
                State::Ready(completion) => return Ok(completion),
                State::Lost => {
                    return Err(Error::new(
                        ErrorKind::Closed,
                        "the engine ended before this item",
                    ));
                }
                State::Pending => {
                    *state = State::Pending;
                    self.cell.changed.wait(&mut state);
                }
            }
        }
    }
}

impl<W: Workload> Reply<W> {
    /// Answers the ticket; without one, gives the completion back.
    pub(crate) fn deliver(self, completion: Completion<W>) -> Option<Completion<W>> {
        match self {
            Reply::Caller => Some(completion),
            Reply::Ticket(ticket) => {
                *ticket.cell.state.lock() = State::Ready(completion);
                None
            }
        }
    }
}

impl<W: Workload> Drop for TicketReply<W> {
    // Runs after `deliver` too: this is the one place that wakes the waiter.
    fn drop(&mut self) {
        let mut state = self.cell.state.lock();
        if matches!(*state, State::Pending) {
            *state = State::Lost;
        }
        self.cell.changed.notify_all();
    }
}
