//! [`OrderedMap`]: a parallel map over an iterator, in order and with a bounded window.

use super::unwinding::catch_and_log;
use crate::backend::receive_helping;
use crossbeam_channel::{Receiver, bounded};
use rayon::ThreadPool;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Applies a function to a source's items on a thread pool, at most `window` items ahead of the
/// reader, and yields the results in the order of the source. A panic of the function resumes in
/// [`Iterator::next`].
pub struct OrderedMap<S: Iterator, T> {
    source: std::iter::Fuse<S>,
    work: Arc<dyn Fn(S::Item) -> T + Send + Sync>,
    pool: Arc<ThreadPool>,
    window: usize,
    weight: fn(&S::Item) -> usize,
    /// The sum of the weights of `pending`.
    ahead: usize,
    pending: VecDeque<Pending<T>>,
}

/// An item on its way: its weight, and where its result arrives.
type Pending<T> = (usize, Receiver<std::thread::Result<T>>);

impl<S, T> OrderedMap<S, T>
where
    S: Iterator,
    S::Item: Send + 'static,
    T: Send + 'static,
{
    /// Maps `source` through `work`.
    pub fn new(
        source: S,
        pool: Arc<ThreadPool>,
        window: usize,
        work: impl Fn(S::Item) -> T + Send + Sync + 'static,
    ) -> Self {
        OrderedMap {
            source: source.fuse(),
            work: Arc::new(work),
            pool,
            window: window.max(1),
            weight: |_| 1,
            ahead: 0,
            pending: VecDeque::new(),
        }
    }

    /// Counts an item as `weight` items of the window, which may be exceeded by the last one: an item is
    /// mapped as soon as those ahead of the reader weigh less than the window.
    #[must_use]
    pub fn weighing(mut self, weight: fn(&S::Item) -> usize) -> Self {
        self.weight = weight;
        self
    }

    /// Has the pool compute an item, whose result is received in the order of the items.
    fn spawn(&mut self, item: S::Item) {
        let (result, pending) = bounded(1);
        let weight = (self.weight)(&item);
        let work = Arc::clone(&self.work);
        self.pool.spawn(move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(item)));
            // The reader may have been dropped. A panic would end the process.
            if let Err(unread) = result.send(outcome) {
                catch_and_log(|| drop(unread));
            }
        });
        self.ahead += weight;
        self.pending.push_back((weight, pending));
    }
}

impl<S, T> Iterator for OrderedMap<S, T>
where
    S: Iterator,
    S::Item: Send + 'static,
    T: Send + 'static,
{
    type Item = T;

    fn next(&mut self) -> Option<T> {
        while self.pending.is_empty() || self.ahead < self.window {
            match self.source.next() {
                Some(item) => self.spawn(item),
                None => break,
            }
        }
        let (weight, pending) = self.pending.pop_front()?;
        self.ahead -= weight;
        let outcome = receive_helping(&pending, &self.pool).expect("every task sends once");
        Some(outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_source() {
        let pool = Arc::new(
            rayon::ThreadPoolBuilder::new()
                .num_threads(4)
                .build()
                .unwrap(),
        );
        let uneven = |n: u64| {
            for _ in 0..n % 7 {
                std::thread::yield_now();
            }
            n * 2
        };
        let out: Vec<u64> = OrderedMap::new(0..1000, pool, 8, uneven).collect();
        assert!(out.iter().copied().eq((0..1000).map(|n| n * 2)));
    }

    #[test]
    fn heavy_items_fill_the_window_sooner() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = Arc::new(pool.unwrap());
        let taken = std::cell::Cell::new(0);
        let source = [1, 3, 9, 0, 0, 2]
            .into_iter()
            .inspect(|_| taken.set(taken.get() + 1));
        let mut map = OrderedMap::new(source, pool, 4, |n| n).weighing(|n| *n);
        // The first two fill the window, and without them the third exceeds it alone.
        for (result, taken_then) in [(1, 2), (3, 3), (9, 3), (0, 6), (0, 6), (2, 6)] {
            assert_eq!(map.next(), Some(result));
            assert_eq!(taken.get(), taken_then, "with {result}");
        }
        assert_eq!(map.next(), None);
    }

    #[test]
    fn an_unread_result_that_panics_when_it_is_dropped_ends_no_thread() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("planted");
            }
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
        let pool = Arc::new(pool.unwrap());
        let (go_on, gate) = bounded::<()>(1);
        let work = move |_| {
            gate.recv().unwrap();
            Bomb
        };
        let mut map = OrderedMap::new(0..1, Arc::clone(&pool), 1, work);
        let item = map.source.next().unwrap();
        map.spawn(item);
        drop(map);
        go_on.send(()).unwrap();
        assert_eq!(pool.install(|| 7), 7);
    }
}
