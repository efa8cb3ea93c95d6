//! Tickets without an engine.

use super::*;
use crate::error::ErrorKind;
use crate::pipeline::reentrancy::EngineId;
use crate::record::{DeviceInfo, Recorder};
use crate::workload::{Extent, ReadViews, WriteViews};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

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

fn pool() -> AnswersPool<Counted> {
    AnswersPool::new(EngineId::new(), None)
}

fn complete(reply: BatchReply<Counted>, item: &Arc<()>, outputs: &[u32]) {
    let completions = outputs.iter().map(|&output| {
        Some(Completion {
            item: Arc::clone(item),
            result: Ok(output),
        })
    });
    reply.complete(completions);
}

#[test]
fn answers_are_used_again_once_their_tickets_are_gone() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let reply = pool.take();
    let first = Ticket(reply.ticket(0..1));
    let address = Arc::as_ptr(&first.0.answers);
    complete(reply, &item, &[1]);
    let second_reply = pool.take();
    let second = Ticket(second_reply.ticket(0..1));
    assert_ne!(Arc::as_ptr(&second.0.answers), address, "the first has it");
    assert_eq!(first.wait().unwrap().result.unwrap(), 1);
    let third_reply = pool.take();
    let third = Ticket(third_reply.ticket(0..1));
    assert_eq!(Arc::as_ptr(&third.0.answers), address);
    assert!(!third.is_done());
    complete(second_reply, &item, &[2]);
    assert!(!third.is_done());
    complete(third_reply, &item, &[3]);
    assert_eq!(third.wait().unwrap().result.unwrap(), 3);
    assert_eq!(second.wait().unwrap().result.unwrap(), 2);
}

#[test]
fn results_of_dropped_tickets_are_dropped_before_and_after_the_batch() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let reply = pool.take();
    let [before, kept, after] = [0, 1, 2].map(|index| Ticket(reply.ticket(index..index + 1)));
    drop(before);
    complete(reply, &item, &[5, 6, 7]);
    assert_eq!(Arc::strong_count(&item), 3);
    drop(after);
    assert_eq!(Arc::strong_count(&item), 2);
    assert_eq!(kept.wait().unwrap().result.unwrap(), 6);
    assert_eq!(Arc::strong_count(&item), 1);
}

#[test]
fn tickets_of_several_batches_come_in_the_order_of_the_items() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let (first, second) = (pool.take(), pool.take());
    let mut tickets = Tickets::new();
    tickets.add(&first, 3);
    tickets.add(&first, 4);
    tickets.add(&second, 0);
    assert_eq!((tickets.len(), tickets.parts.len()), (3, 2));
    complete(second, &item, &[40]);
    assert!(!tickets.is_done());
    complete(first, &item, &[0, 1, 2, 20, 30]);
    assert!(tickets.is_done());
    let completions = tickets.wait().unwrap();
    let outputs = completions
        .iter()
        .map(|done| *done.result.as_ref().unwrap());
    assert_eq!(outputs.collect::<Vec<_>>(), [20, 30, 40]);
}

/// Counts how often it is woken. When it is dropped, drops a ticket.
#[derive(Default)]
struct Task {
    woken: AtomicUsize,
    held: std::sync::Mutex<Option<Ticket<Counted>>>,
}

impl std::task::Wake for Task {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, SeqCst);
    }
}

impl Task {
    fn woken(&self) -> usize {
        self.woken.load(SeqCst)
    }
}

fn poll<F: Future + Unpin>(future: &mut F, task: &Arc<Task>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(task));
    Pin::new(future).poll(&mut std::task::Context::from_waker(&waker))
}

fn output(polled: Poll<Result<Completion<Counted>>>) -> u32 {
    match polled {
        Poll::Ready(completion) => completion.unwrap().result.unwrap(),
        Poll::Pending => panic!("it is ready"),
    }
}

#[test]
fn tasks_that_await_tickets_of_a_batch_are_woken_once_each() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let reply = pool.take();
    let [mut first, mut second] = [0, 1].map(|index| Ticket(reply.ticket(index..index + 1)));
    let [before, now, other] = [(); 3].map(|()| Arc::<Task>::default());
    assert!(poll(&mut first, &before).is_pending());
    assert!(
        poll(&mut first, &now).is_pending(),
        "another task has it now"
    );
    assert!(poll(&mut second, &other).is_pending());
    assert_eq!(Arc::strong_count(&before), 1, "its waker was dropped");
    complete(reply, &item, &[8, 9]);
    let woken = [&before, &now, &other].map(|task| task.woken());
    assert_eq!(woken, [0, 1, 1]);
    assert_eq!(output(poll(&mut second, &other)), 9);
    assert_eq!(output(poll(&mut first, &now)), 8);
    assert_eq!(now.woken() + other.woken(), 2);
    let Poll::Ready(Err(error)) = poll(&mut first, &now) else {
        panic!("it has returned its result");
    };
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_ticket_that_is_dropped_takes_its_waker_along() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let reply = pool.take();
    let [mut first, second] = [0, 1].map(|index| Ticket(reply.ticket(index..index + 1)));
    let task = Arc::<Task>::default();
    *task.held.lock().unwrap() = Some(second);
    assert!(poll(&mut first, &task).is_pending());
    let gone = Arc::downgrade(&task);
    drop(task);
    // Drops the task, and with it another ticket of the batch, which locks the same answers.
    drop(first);
    assert!(gone.upgrade().is_none());
    complete(reply, &item, &[8, 9]);
    assert_eq!(Arc::strong_count(&item), 1, "both results were dropped");
}

#[test]
fn tickets_of_several_batches_are_awaited_together() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let (first, second) = (pool.take(), pool.take());
    let mut tickets = Tickets::new();
    tickets.add(&first, 0);
    tickets.add(&second, 0);
    let task = Arc::<Task>::default();
    assert!(poll(&mut tickets, &task).is_pending());
    complete(second, &item, &[5]);
    assert_eq!(task.woken(), 0, "the first batch is not done");
    complete(first, &item, &[4]);
    assert_eq!(task.woken(), 1);
    let Poll::Ready(completions) = poll(&mut tickets, &task) else {
        panic!("both batches are done");
    };
    let completions = completions.unwrap().into_iter();
    let outputs: Vec<u32> = completions.map(|done| done.result.unwrap()).collect();
    assert_eq!(outputs, [4, 5]);
}

#[test]
fn a_wait_that_times_out_can_be_repeated() {
    let (mut pool, item) = (pool(), Arc::new(()));
    let reply = pool.take();
    let mut ticket = Ticket(reply.ticket(0..1));
    assert!(ticket.wait_timeout(Duration::ZERO).unwrap().is_none());
    assert!(
        ticket
            .wait_timeout(Duration::from_millis(1))
            .unwrap()
            .is_none()
    );
    complete(reply, &item, &[3]);
    let completion = ticket.wait_timeout(Duration::MAX).unwrap().unwrap();
    assert_eq!(completion.result.unwrap(), 3);
    let error = ticket.wait_timeout(Duration::ZERO).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn a_ticket_without_an_answer_is_lost() {
    let mut pool = pool();
    for _ in 0..2 {
        let reply = pool.take();
        let mut ticket = Ticket(reply.ticket(0..1));
        let task = Arc::<Task>::default();
        assert!(poll(&mut ticket, &task).is_pending());
        drop(reply);
        assert!(ticket.is_done() && task.woken() == 1);
        assert_eq!(ticket.wait().err().unwrap().kind(), ErrorKind::Closed);
    }
}
