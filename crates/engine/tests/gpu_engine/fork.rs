//! A child of a fork, in which an engine of the parent does nothing.

use super::mix::{Item, Mix, UNIFORMS, items};
use super::target::Target;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tapeloop_engine::memory::{Pool, PoolConfig};
use tapeloop_engine::pipeline::{
    Engine, EngineConfig, Packer, Pipeline, Ring, SubmitOptions, TrySubmitError, Wait,
};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::Extent;
use tapeloop_engine::{Error, ErrorKind, Ticket};
use tapeloop_test_support::child::in_child;

fn config() -> EngineConfig {
    EngineConfig::new([200, 16])
}

/// Fails unless the call failed with an error that names the fork.
fn names_fork<T>(call: &str, result: Result<T, Error>) -> Result<(), String> {
    match result {
        Err(error) if error.message().contains("fork") => match error.kind() {
            ErrorKind::Usage => Ok(()),
            kind => Err(format!("{call}: {kind:?}")),
        },
        Err(error) => Err(format!("{call}: {error}")),
        Ok(_) => Err(format!("{call} succeeded")),
    }
}

fn reason<I>(refused: TrySubmitError<I>) -> Error {
    match refused {
        TrySubmitError::Closed(_, reason) => reason,
        TrySubmitError::Full(_) => Error::usage("full"),
    }
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn of_engine(mut engine: Engine<Mix>, tickets: Vec<Ticket<Mix>>) -> Result<(), String> {
    let item = || Item::new(1, 10);
    let [mut first, second, third, fourth] = <[_; 4]>::try_from(tickets).ok().unwrap();
    names_fork("submit", engine.submit(item()))?;
    names_fork("submit_many", engine.submit_many([item(), item()]))?;
    let refused = engine.try_submit(item(), SubmitOptions::default());
    names_fork("try_submit", refused.map_err(reason))?;
    names_fork("flush", engine.flush())?;
    names_fork(
        "set_uniforms",
        engine.set_uniforms(|all| all.set("factor", 3.0_f32)),
    )?;
    names_fork("run", engine.run([item()].into_iter(), &mut |_| Ok(())))?;
    names_fork("ended", engine.ended().map_or(Ok(()), Err))?;
    match poll_once(engine.until_ended()) {
        Poll::Ready(error) => names_fork::<()>("until_ended", Err(error))?,
        Poll::Pending => return Err("until_ended is pending".to_owned()),
    }
    if first.is_done() || format!("{second:?}").contains("done") {
        return Err("a ticket is done".to_owned());
    }
    names_fork("wait_timeout", first.wait_timeout(Duration::MAX))?;
    names_fork("wait", second.wait())?;
    match poll_once(third) {
        Poll::Ready(result) => names_fork("await", result)?,
        Poll::Pending => return Err("the ticket is pending".to_owned()),
    }
    if fourth.cancel().is_ok() {
        return Err("an item of the parent was cancelled".to_owned());
    }
    drop(first);
    let _ = (engine.counters(), engine.statistics(), engine.timeline());
    engine.close();
    match engine.shutdown(Duration::MAX) {
        Ok(()) => Err("the engine of the parent was shut down".to_owned()),
        Err(left) => left
            .wait(Duration::MAX)
            .map_or(Ok(()), |()| Err("it was".to_owned())),
    }
}

/// Ends the parent's threads, also when the test has failed.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

pub(crate) fn a_child_refuses_every_call_and_forgets_what_it_drops(target: &Target) {
    let open = || {
        let backends = [Arc::clone(&target.backend)];
        Engine::new(Mix::new(), &backends, Arc::clone(&target.pool), &config()).unwrap()
    };
    let engine = open();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = EndOnDrop(&is_over);
        // The parent's threads hold locks at most forks.
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    let tickets = engine.submit_many(items(20, 50)).unwrap();
                    for done in tickets.wait().unwrap() {
                        assert_eq!(done.result.unwrap(), done.item.output(UNIFORMS));
                    }
                }
            });
        }
        for _ in 0..target.rounds {
            let mut tickets = (0..4).map(|n| engine.submit(Item::new(n, 10)).unwrap());
            let tickets: Vec<_> = tickets.by_ref().collect();
            in_child(|| {
                // SAFETY: the child has copies of what is the parent's, and uses each once.
                let (engine, tickets) =
                    unsafe { (std::ptr::read(&engine), std::ptr::read(&tickets)) };
                of_engine(engine, tickets)
            });
            for ticket in tickets {
                let done = ticket.wait().unwrap();
                assert_eq!(done.result.unwrap(), done.item.output(UNIFORMS));
            }
        }
    });
    drop(engine);

    let backends = [Arc::clone(&target.backend)];
    let pool = Arc::clone(&target.pool);
    let mut pipeline = Pipeline::new(Mix::new(), &backends, pool, &config()).unwrap();
    let buckets = [Extent::from([200, 16])];
    let packer = Packer::new(Mix::new(), &buckets, &backends[0], Arc::clone(&target.pool)).unwrap();
    let policy = Policy::default();
    let mut ring = Ring::new(&backends[0], &packer.buckets(), 2, &policy, Wait::Block).unwrap();
    let memory = Pool::new(Arc::clone(&backends[0]), PoolConfig::testing());
    let slice = memory.pinned::<u32>(100, "of the parent").ok();
    pipeline.submit(Item::new(1, 10)).unwrap();
    pipeline.flush();
    let mut slot = ring.acquire().unwrap();
    let packed = packer.pack(&mut slot, items(3, 10)).ok().unwrap();
    let extent = packed.extent();
    assert!(ring.submit(slot, extent, packed).is_ok());
    let slot = ring.acquire().unwrap();
    let mut of_child = Some((pipeline, ring, slot, memory, slice));
    in_child(|| {
        let (mut pipeline, mut ring, slot, memory, slice) = of_child.take().unwrap();
        let refused = pipeline.submit(Item::new(2, 10));
        names_fork("Pipeline::submit", refused.map_err(reason))?;
        names_fork("Pipeline::ended", pipeline.ended().map_or(Ok(()), Err))?;
        if pipeline.wait().is_some() || pipeline.poll().is_some() {
            return Err("a result of the parent".to_owned());
        }
        let waited = ring.wait().unwrap().map_err(|failed| failed.error);
        names_fork("Ring::wait", waited)?;
        let mut slot = slot;
        let packed = packer.pack(&mut slot, items(3, 10));
        names_fork("Packer::pack", packed.map_err(|(error, _)| error))?;
        names_fork("Packer::set_uniforms", packer.set_uniforms(|_| Ok(())))?;
        names_fork("Slot::bindings", slot.bindings(0))?;
        if ring.acquire().is_some() {
            return Err("a slot of the parent".to_owned());
        }
        let now = std::time::Instant::now();
        let _ = (
            memory.stats(),
            memory.clear(),
            memory.trim(now),
            memory.leaks(),
        );
        names_fork("Pool::pinned", memory.pinned::<u32>(10, "of the child"))?;
        let pool = Arc::clone(&target.pool);
        let another = Engine::new(Mix::new(), &backends, pool, &config());
        names_fork("Engine::new", another)?;
        drop((pipeline, ring, memory, slice));
        Ok(())
    });
    let (mut pipeline, mut ring, ..) = of_child.take().unwrap();
    assert!(pipeline.wait().unwrap().1.result.is_ok());
    assert!(ring.wait().unwrap().is_ok());
}
