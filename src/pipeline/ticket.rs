//! Tickets for the results of submitted items.

use super::reentrancy::{EngineId, check_outside};
use super::sync::{Condvar, Mutex};
use crate::error::{Error, ErrorKind, Result};
use crate::workload::{Completion, Workload};
use std::collections::VecDeque;
use std::sync::Arc;

/// The largest number of cells that are kept for reuse.
const CELLS_MAX: usize = 4096;

/// A handle to the result of one submitted item.
pub struct Ticket<W: Workload> {
    cell: Arc<Cell<W>>,
    engine: EngineId,
}

struct Cell<W: Workload> {
    state: Mutex<State<W>>,
    changed: Condvar,
}

enum State<W: Workload> {
    Pending,
    Ready(Completion<W>),
    Lost,
    /// The ticket was dropped before.
    Unwanted,
}

/// The cells of an engine's tickets, in the order of their last use. A cell is reused once both its
/// ends are dropped, so that tickets do not allocate in the long run.
pub(crate) struct Cells<W: Workload> {
    cells: parking_lot::Mutex<VecDeque<Arc<Cell<W>>>>,
    engine: EngineId,
}

impl<W: Workload> Cells<W> {
    pub(crate) fn new(engine: EngineId) -> Self {
        Cells {
            cells: parking_lot::Mutex::new(VecDeque::new()),
            engine,
        }
    }

    /// A pending cell.
    fn take(&self) -> Arc<Cell<W>> {
        let mut cells = self.cells.lock();
        let mut cell = cells.pop_front().unwrap_or_else(Cell::new);
        if Arc::get_mut(&mut cell).is_none() {
            // Its ticket may be kept for long, so try the next cell first.
            if cells.len() < CELLS_MAX {
                cells.push_back(cell);
            }
            cell = Cell::new();
        }
        cells.push_back(Arc::clone(&cell));
        drop(cells);
        *cell.state.lock() = State::Pending;
        cell
    }
}

impl<W: Workload> Cell<W> {
    fn new() -> Arc<Self> {
        Arc::new(Cell {
            state: Mutex::new(State::Pending),
            changed: Condvar::new(),
        })
    }
}

/// The engine's end of a ticket, or `Caller` if the caller takes the results.
pub(crate) enum Reply<W: Workload> {
    Ticket(TicketReply<W>),
    Caller,
}

pub(crate) struct TicketReply<W: Workload> {
    cell: Arc<Cell<W>>,
}

impl<W: Workload> Ticket<W> {
    pub(crate) fn new(cells: &Cells<W>) -> (Self, Reply<W>) {
        let cell = cells.take();
        let reply = TicketReply {
            cell: Arc::clone(&cell),
        };
        let engine = cells.engine;
        (Ticket { cell, engine }, Reply::Ticket(reply))
    }

    /// Whether [`Ticket::wait`] would return at once.
    pub fn is_done(&self) -> bool {
        !matches!(*self.cell.state.lock(), State::Pending)
    }

    /// Waits for the item and its result. [`Completion::result`] holds the item's own error.
    ///
    /// # Errors
    /// - [`ErrorKind::Closed`] if the engine ended without a result; the item is lost then.
    /// - [`ErrorKind::Usage`] in the engine's own code, such as [`Workload::read`], if the result
    ///   is not ready: the engine would wait for itself.
    pub fn wait(self) -> Result<Completion<W>> {
        if !self.is_done() {
            check_outside(
                self.engine,
                "to wait for a ticket",
                "wait on another thread",
            )?;
        }
        let mut state = self.cell.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Lost) {
                State::Ready(completion) => return Ok(completion),
                State::Lost | State::Unwanted => {
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
    /// Gives the completion to the ticket, or returns it if there is none.
    pub(crate) fn deliver(self, completion: Completion<W>) -> Option<Completion<W>> {
        match self {
            Reply::Caller => Some(completion),
            Reply::Ticket(ticket) => {
                let mut state = ticket.cell.state.lock();
                if !matches!(*state, State::Unwanted) {
                    *state = State::Ready(completion);
                }
                None
            }
        }
    }
}

impl<W: Workload> Drop for Ticket<W> {
    // The cell outlives the ticket, and must not keep its result.
    fn drop(&mut self) {
        let state = std::mem::replace(&mut *self.cell.state.lock(), State::Unwanted);
        drop(state);
    }
}

impl<W: Workload> Drop for TicketReply<W> {
    // Runs after `deliver` too, and is the only place that wakes the waiting thread.
    fn drop(&mut self) {
        let mut state = self.cell.state.lock();
        if matches!(*state, State::Pending) {
            *state = State::Lost;
        }
        self.cell.changed.notify_all();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::{DeviceInfo, Recorder};
    use crate::workload::{Extent, ReadViews, WriteViews};

    /// Items whose owners can be counted.
    struct Counted;

    impl Workload for Counted {
        type Item = Arc<()>;
        type Output = u32;
        type Buffers = ();

        fn axes(&self) -> &'static [&'static str] {
            &["items"]
        }
        fn extent(&self, _: &Arc<()>) -> Result<Extent> {
            Ok(Extent::from([1]))
        }
        fn record(&self, _: &mut Recorder, _: &DeviceInfo) -> Result<()> {
            Ok(())
        }
        fn write(&self, (): &(), _: &Arc<()>, _: Extent, _: &mut WriteViews<'_>) -> Result<()> {
            Ok(())
        }
        fn read(&self, (): &(), _: &Arc<()>, _: Extent, _: &ReadViews<'_>) -> Result<u32> {
            Ok(0)
        }
    }

    fn deliver(reply: Reply<Counted>, item: &Arc<()>, output: u32) {
        let item = Arc::clone(item);
        let result = Ok(output);
        assert!(reply.deliver(Completion { item, result }).is_none());
    }

    #[test]
    fn a_cell_is_used_again_once_both_ends_let_it_go() {
        let (cells, item) = (Cells::new(EngineId::new()), Arc::new(()));
        let (first, reply) = Ticket::new(&cells);
        let cell = Arc::as_ptr(&first.cell);
        deliver(reply, &item, 1);
        let (second, second_reply) = Ticket::new(&cells);
        assert_ne!(Arc::as_ptr(&second.cell), cell, "the first still has it");
        assert_eq!(first.wait().unwrap().result.unwrap(), 1);
        let (third, third_reply) = Ticket::new(&cells);
        assert_eq!(Arc::as_ptr(&third.cell), cell);
        assert!(!third.is_done());
        deliver(second_reply, &item, 2);
        assert!(!third.is_done());
        deliver(third_reply, &item, 3);
        assert_eq!(third.wait().unwrap().result.unwrap(), 3);
        assert_eq!(second.wait().unwrap().result.unwrap(), 2);
    }

    #[test]
    fn a_cell_keeps_no_result_of_a_ticket_that_was_dropped() {
        let (cells, item) = (Cells::new(EngineId::new()), Arc::new(()));
        let (before, reply) = Ticket::new(&cells);
        drop(before);
        deliver(reply, &item, 1);
        assert_eq!(Arc::strong_count(&item), 1);
        let (after, reply) = Ticket::new(&cells);
        deliver(reply, &item, 2);
        assert_eq!(Arc::strong_count(&item), 2);
        drop(after);
        assert_eq!(Arc::strong_count(&item), 1);
    }

    #[test]
    fn a_ticket_without_an_answer_is_lost() {
        let cells = Cells::<Counted>::new(EngineId::new());
        for _ in 0..2 {
            let (ticket, reply) = Ticket::new(&cells);
            drop(reply);
            assert!(ticket.is_done());
            assert_eq!(ticket.wait().err().unwrap().kind(), ErrorKind::Closed);
        }
    }
}
