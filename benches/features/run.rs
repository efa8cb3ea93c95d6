//! A ring of slots that are packed once and go round.

use rayon::ThreadPool;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tapeloop::backend::Backend;
use tapeloop::features::{Column, FeatureConfig, FeatureTable, Features, Input, TableName};
use tapeloop::pipeline::{Finished, Packed, Packer, Ring, Wait};
use tapeloop::replay::Policy;

pub(crate) struct Run {
    ring: Ring<Packed<Features>>,
    slots: usize,
    packer: Packer<Features>,
    pub(crate) tables: Vec<FeatureTable>,
}

impl Run {
    /// A slot for each of the batches.
    pub(crate) fn open(
        backend: &Arc<dyn Backend>,
        pool: &Arc<ThreadPool>,
        config: &FeatureConfig,
        policy: &Policy,
        residues: u32,
        batches: Vec<Vec<Input>>,
    ) -> Run {
        let features = Features::new(config.clone()).unwrap();
        let buckets = [Features::capacity(residues)];
        let packer = Packer::new(features, &buckets, backend, Arc::clone(pool)).unwrap();
        let slots = batches.len();
        let ring = Ring::new(backend, &packer.buckets(), slots, policy, Wait::Spin).unwrap();
        let mut run = Run {
            ring,
            slots,
            packer,
            tables: Vec::new(),
        };
        for batch in batches {
            let mut slot = run.ring.acquire().expect("one slot a batch");
            let packed = run
                .packer
                .pack(&mut slot, batch)
                .map_err(|(error, _)| error);
            let packed = packed.unwrap();
            run.ring.submit(slot, packed.extent(), packed).unwrap();
        }
        let mut done: Vec<_> = (0..slots)
            .map(|_| run.ring.wait().unwrap().unwrap())
            .collect();
        done.sort_by_key(|slot| slot.batch().items().next().map(|item| item.ordinal));
        for slot in &done {
            let tables = run.packer.read(slot).into_iter();
            run.tables.extend(tables.map(|table| table.unwrap()));
        }
        done.into_iter().for_each(|slot| run.again(Ok(slot)));
        run
    }

    fn again(&mut self, finished: Finished<Packed<Features>>) {
        let (packed, error) = self.ring.release(finished);
        assert!(error.is_none(), "{error:?}");
        let slot = self.ring.acquire().expect("just released");
        self.ring.submit(slot, packed.extent(), packed).unwrap();
    }

    /// The time that every slot takes to go round `rounds` times.
    pub(crate) fn time(&mut self, rounds: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..rounds * self.slots as u64 {
            let finished = self.ring.wait().expect("all slots are in flight");
            self.again(finished);
        }
        start.elapsed()
    }
}

/// The columns of all tables.
fn columns(table: &FeatureTable) -> impl Iterator<Item = Column<'_>> {
    let all = TableName::ALL.into_iter();
    all.flat_map(|name| table.columns(name))
}

pub(crate) fn assert_agree(found: &[FeatureTable], expected: &[FeatureTable]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        for (found, expected) in columns(found).zip(columns(expected)) {
            let (Column::Real(found), Column::Real(expected)) = (found, expected) else {
                assert_eq!(found, expected);
                continue;
            };
            for (found, expected) in found.iter().zip(expected) {
                let close = (found - expected).abs() <= 1e-4 * expected.abs().max(1e-2);
                let null = found.is_nan() && expected.is_nan();
                assert!(close || null, "{found}, on the CPU {expected}");
            }
        }
    }
}
