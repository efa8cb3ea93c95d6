//! A supervised device that is lost comes back with everything that it had. Faults are provoked only
//! there: an illegal access on a GPU ends CUDA for the whole process.

use crate::assert_refused;
use crate::leasing::Leasing;
use crate::lookup::{self, Lookup};
use crate::program::accepted_policies;
use crate::scale::{Scale, TWIN_PANICS, doubled, vectors};
use crate::threads;
use std::sync::Arc;
use tapeloop_engine::backend::{Backend, Contents, Space};
use tapeloop_engine::pipeline::{Engine, EngineConfig, Wait};
use tapeloop_engine::replay::Policy;
use tapeloop_engine::workload::{Completion, Extent, ResidentViews, Workload};
use tapeloop_engine::{Error, ErrorKind, Result};

/// Where among the items the one that faults is: in the midst, with batches before and after.
const CULPRIT: usize = 21;

/// [`Backend::revive`] reports that a working device was not lost; a backend that cannot start a device
/// again may return an error.
pub fn a_device_that_was_not_lost_is_not_started_again(backend: &Arc<dyn Backend>) {
    match backend.revive() {
        Ok(was_lost) => assert!(!was_lost),
        Err(error) => {
            assert!(!backend.is_supervised(), "{error}");
            assert_refused(&error, ErrorKind::Device, &[]);
        }
    }
}

/// An engine with two buckets on one device.
fn engine<W: Workload>(
    workload: W,
    backend: &Arc<dyn Backend>,
    policy: Policy,
    slots: usize,
    capacities: [Extent; 2],
) -> Result<Engine<W>> {
    let mut config = EngineConfig::new(capacities[1]);
    config.buckets = capacities.to_vec();
    (config.slots, config.policy, config.wait) = (slots, policy, Wait::Spin);
    Engine::new(workload, &[Arc::clone(backend)], threads(1), &config)
}

fn of_vectors() -> [Extent; 2] {
    [[16, 8], [64, 8]].map(Extent::from)
}

fn of_numbers() -> [Extent; 2] {
    [[4], [16]].map(Extent::from)
}

/// A supervised device has no memory that a program allocates or that batches update, since it could not
/// restore it, and reads and copies nothing of what it was filled with. Another device has both.
pub fn memory_that_would_be_lost_is_refused(backend: &Arc<dyn Backend>) {
    let allocated = [Space::Device, Space::Pinned].map(|space| backend.allocate(space, 64));
    let updating = engine(
        Lookup::counting(),
        backend,
        Policy::default(),
        1,
        of_numbers(),
    );
    if backend.is_supervised() {
        for refused in allocated {
            assert_refused(&refused.err().unwrap(), ErrorKind::Unavailable, &[]);
        }
        let contents: Arc<Contents> = Arc::new([7_u8; 64]);
        let filled = backend.allocate_filled(&contents).unwrap();
        for refused in [
            backend.write(&[1; 8], &filled, 0),
            backend.read(&filled, 0, &mut [0; 8]),
            backend.copy(&filled, 0, &filled, 8, 8),
        ] {
            assert_refused(&refused.unwrap_err(), ErrorKind::Unavailable, &[]);
        }
        let refused = updating.err().unwrap();
        assert_refused(&refused, ErrorKind::Unavailable, &["buffer table"]);
    } else {
        assert!(allocated.iter().all(|allocated| allocated.is_ok()));
        let done = updating.unwrap().submit(7).unwrap().wait().unwrap();
        assert_eq!(done.result.unwrap(), lookup::entry(7) + 1);
    }
}

/// The item is quarantined, and the results of all others are right and in order, under every policy.
pub fn one_item_that_faults_is_named_and_no_other_is_lost(backend: &Arc<dyn Backend>) {
    let mut items = vectors(40);
    items[CULPRIT][0] = TWIN_PANICS;
    let policies = accepted_policies(backend).into_iter();
    for policy in policies.filter(|_| backend.is_supervised()) {
        let mut engine = engine(Scale::new(2.0), backend, policy, 5, of_vectors()).unwrap();
        let mut next = 0;
        let mut sink = |done: Completion<Scale>| -> Result<()> {
            assert_eq!(done.item, items[next], "in order");
            if next == CULPRIT {
                assert_refused(&done.result.unwrap_err(), ErrorKind::Quarantined, &[])
            } else {
                assert_eq!(done.result.unwrap().0, doubled(&items[next]))
            }
            next += 1;
            Ok(())
        };
        engine.run(items.iter().cloned(), &mut sink).unwrap();
        assert_eq!(next, items.len());
        let counters = engine.counters();
        assert_eq!(counters.items_quarantined, 1, "{policy:?}: {counters:?}");
        assert!(counters.restarts >= 1, "{policy:?}: {counters:?}");
    }
}

/// A resident table is restored before any work that reads it.
pub fn batches_read_the_same_table_after_a_fault(backend: &Arc<dyn Backend>) {
    let number = |place| {
        if place == CULPRIT {
            lookup::FAULTS
        } else {
            10 + place as u32
        }
    };
    let policies = accepted_policies(backend).into_iter();
    for policy in policies.filter(|_| backend.is_supervised()) {
        let mut engine = engine(Lookup::new(), backend, policy, 5, of_numbers()).unwrap();
        let mut next = 0;
        let mut sink = |done: Completion<Lookup>| -> Result<()> {
            if next == CULPRIT {
                assert_refused(&done.result.unwrap_err(), ErrorKind::Quarantined, &[])
            } else {
                assert_eq!(done.result.unwrap(), lookup::expected(number(next)))
            }
            next += 1;
            Ok(())
        };
        engine.run((0..100).map(number), &mut sink).unwrap();
        assert_eq!(next, 100, "{policy:?}");
    }
}

/// An item is computed with the table of its submission, also where its batch runs again: each table is a multiple
/// of the first. A device that cannot be restarted gets no item that faults.
pub fn a_table_is_replaced_and_stays_so_after_a_fault(backend: &Arc<dyn Backend>) {
    for policy in accepted_policies(backend) {
        let engine = engine(Lookup::replaceable(), backend, policy, 5, of_numbers()).unwrap();
        let refused = engine.replace_resident(|_, _| Err(Error::input("no table, as told")));
        assert_refused(&refused.unwrap_err(), ErrorKind::Input, &["as told"]);
        let mut tickets = Vec::new();
        for place in 0..100 {
            let factor = 1 + place / 7;
            if place % 7 == 0 && place > 0 {
                let write = |buffers: &lookup::Buffers, views: &mut ResidentViews<'_>| {
                    let table = views.take(buffers.table).iter_mut().enumerate();
                    table.for_each(|(index, to)| *to = lookup::entry(index).wrapping_mul(factor));
                    Ok(())
                };
                engine.replace_resident(write).unwrap();
            }
            let faults = backend.is_supervised() && place == CULPRIT as u32;
            let number = if faults { lookup::FAULTS } else { 10 + place };
            tickets.push((engine.submit(number).unwrap(), number, factor));
        }
        for (ticket, number, factor) in tickets {
            let result = ticket.wait().unwrap().result;
            if number == lookup::FAULTS {
                assert_refused(&result.unwrap_err(), ErrorKind::Quarantined, &[]);
            } else {
                let expected = lookup::expected(number).wrapping_mul(factor);
                assert_eq!(result.unwrap(), expected, "{policy:?}: {number}");
            }
        }
        assert_eq!(engine.counters().batches_failed, 0, "{policy:?}");
    }
}

/// Results borrow memory of the host, which a lost device does not take along.
pub fn results_that_are_held_stay_right_after_a_fault(backend: &Arc<dyn Backend>) {
    if !backend.is_supervised() {
        return;
    }
    let mut items = vectors(40);
    items[CULPRIT][0] = TWIN_PANICS;
    let engine = engine(
        Leasing(Scale::new(2.0)),
        backend,
        Policy::default(),
        5,
        of_vectors(),
    );
    let engine = engine.unwrap();
    let mut held = Vec::new();
    for item in &items {
        match engine.submit(item.clone()).unwrap().wait().unwrap().result {
            Ok(leased) => held.push((item, leased)),
            Err(error) => assert_refused(&error, ErrorKind::Quarantined, &[]),
        }
    }
    assert_eq!(held.len(), items.len() - 1);
    assert!(engine.counters().results_leased >= 3);
    drop(engine);
    for (item, leased) in held {
        assert_eq!(leased[..], doubled(item));
    }
}
