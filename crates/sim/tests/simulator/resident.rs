//! Resident buffers of a supervised device, whose memory is lost with it.

use crate::lookup::{Lookup, expected};
use crate::random::Random;
use crate::seeds::simulated::{assert_clean, device_with};
use crate::seeds::{each_seed, wait};
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop_conformance::program::policies;
use tapeloop_engine::pipeline::{Close, EngineConfig, Pipeline};
use tapeloop_engine::workload::{Completion, Extent};
use tapeloop_sim::{Fault, SimOptions};

#[test]
fn every_batch_reads_the_same_table_whatever_loses_the_device() {
    let all = policies();
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let restarts = std::cell::Cell::new(0);
    let seeds = each_seed(600, |seed| {
        let mut random = Random::new(seed);
        let fault = match seed % 3 {
            0 => Fault::Kernel {
                launch: random.below(10) as u64,
            },
            1 => Fault::Lost {
                // What is built comes first.
                call: 40 + random.below(50) as u64,
            },
            _ => Fault::Killed {
                call: 40 + random.below(50) as u64,
            },
        };
        let device = |faults| {
            device_with(SimOptions {
                faults,
                supervised: true,
                ..SimOptions::seeded(seed)
            })
        };
        let devices = [device(vec![fault]), device(Vec::new())];
        let backends = devices.each_ref().map(|(_, backend)| Arc::clone(backend));
        let mut config = EngineConfig::new([4]);
        config.buckets = [[2], [4]].map(Extent::from).to_vec();
        config.slots = 1 + random.below(3);
        config.policy = all[(seed / 3) as usize % all.len()];
        (config.close, config.wait) = (Close::Full, wait(&mut random));
        let count = 1 + random.below(2);
        let backends = &backends[..count];
        let pipeline = Pipeline::new(Lookup::new(), backends, Arc::clone(&pool), &config);
        // A device that is lost while the pipeline is built fails it.
        if let Ok(mut pipeline) = pipeline {
            let mut back = 0;
            let mut check = |(_, done): (u64, Completion<Lookup>)| {
                assert_eq!(done.result.unwrap(), expected(done.item));
                back += 1;
            };
            for mut item in 0..40 {
                while let Err(refused) = pipeline.submit(item) {
                    item = refused.into_item();
                    check(pipeline.wait().unwrap());
                }
            }
            while let Some(done) = pipeline.wait() {
                check(done);
            }
            assert_eq!(back, 40);
            restarts.set(restarts.get() + pipeline.counters().restarts);
        }
        devices.iter().for_each(|(sim, _)| assert_clean(sim));
    });
    assert!(seeds < 100 || restarts.get() > seeds / 3, "{restarts:?}");
}
