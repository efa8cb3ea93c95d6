//! The features of all samples on several cards against those on one card. On a machine with one
//! card, two backends on it stand for two cards.

use crate::every_feature::every_feature;
use crate::gpu::say;
use crate::samples::samples;
use crate::tables::{bits, tables};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::iter::repeat_n;
use std::sync::Arc;
use tapeloop::ErrorKind;
use tapeloop::backend::{
    Backend, Choice, CudaOptions, DeviceChoice, DeviceSet, device_options, devices, select_all,
};
use tapeloop::features::{FeatureTable, Features, TableName};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::Structure;

fn pool() -> Arc<ThreadPool> {
    Arc::new(ThreadPoolBuilder::new().num_threads(4).build().unwrap())
}

/// Opens a backend for each of these devices.
fn open(set: &DeviceSet) -> Vec<Arc<dyn Backend>> {
    let opened = select_all(Choice::Cuda, set, &pool(), &CudaOptions::default());
    let opened = opened.expect("this test needs a CUDA device").into_iter();
    opened.map(|selected| selected.backend).collect()
}

fn first() -> Arc<dyn Backend> {
    open(&DeviceSet::default()).remove(0)
}

fn engine(backends: &[Arc<dyn Backend>]) -> Engine<Features> {
    let mut config = EngineConfig::new(Features::capacity(1024));
    config.buckets.push(Features::capacity(32_768));
    let workload = Features::new(every_feature()).unwrap();
    Engine::new(workload, backends, pool(), &config).unwrap()
}

/// The samples, several times over, so that each card has batches.
fn structures() -> Vec<Structure> {
    let samples = samples();
    let all = samples.into_iter().map(|(_, structure)| structure);
    let all: Vec<Structure> = all.collect();
    [&all[..], &all, &all].concat()
}

fn assert_equal(found: &[FeatureTable], expected: &[FeatureTable], context: &str) {
    assert_eq!(found.len(), expected.len(), "{context}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        for table in TableName::ALL {
            let columns = found.columns(table).zip(expected.columns(table));
            for (column, (found, expected)) in columns.enumerate() {
                let place = format!("{context}: structure {index}, {table:?}, column {column}");
                assert_eq!(bits(found), bits(expected), "{place}");
            }
        }
    }
}

/// Compares the features on these backends together with those on the first card alone.
fn assert_same(backends: &[Arc<dyn Backend>], context: &str) {
    let structures = structures();
    let expected = tables(&mut engine(&backends[..1]), structures.iter());
    let mut together = engine(backends);
    for _ in 0..3 {
        assert_equal(
            &tables(&mut together, structures.iter()),
            &expected,
            context,
        );
    }
    let statistics = together.statistics();
    say(&format!("{context}: {:?}", statistics.devices));
    assert_eq!(statistics.devices.len(), backends.len());
    assert!(
        statistics
            .devices
            .iter()
            .all(|device| device.time.batches > 0)
    );
}

#[test]
#[ignore = "needs two CUDA devices"]
fn two_cards_together_compute_the_bytes_of_one() {
    let cards = open(&DeviceSet::All);
    assert!(cards.len() > 1, "this test needs two CUDA devices");
    assert_same(&cards, &format!("{} cards", cards.len()));
}

#[test]
#[ignore = "needs a CUDA device"]
fn two_backends_of_one_card_compute_the_bytes_of_one() {
    assert_same(&[first(), first()], "two backends of one card");
}

#[test]
#[ignore = "needs a CUDA device"]
fn two_engines_on_one_card_at_the_same_time_compute_the_same_bytes() {
    let card = first();
    let structures = structures();
    let expected = tables(&mut engine(&[Arc::clone(&card)]), structures.iter());
    std::thread::scope(|scope| {
        for index in 0..2 {
            let (card, structures, expected) = (&card, &structures, &expected);
            scope.spawn(move || {
                let mut engine_of_card = engine(&[Arc::clone(card)]);
                for _ in 0..3 {
                    let found = tables(&mut engine_of_card, structures.iter());
                    assert_equal(&found, expected, &format!("engine {index}"));
                }
            });
        }
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_set_is_opened_by_uuid_and_refuses_a_card_that_it_names_twice() {
    let all = devices().unwrap().expect("this test needs a CUDA device");
    let options = |set: &DeviceSet| device_options(Choice::Cuda, set, &CudaOptions::default());
    let opened = options(&DeviceSet::All).unwrap();
    let opened = opened.iter().map(|options| options.device.to_string());
    assert!(opened.eq(all.iter().map(|entry| entry.uuid.clone())));
    let by_number = DeviceChoice::Ordinal(0);
    let by_uuid = DeviceChoice::Uuid(all[0].uuid.clone());
    let twice = options(&DeviceSet::Named(vec![by_number, by_uuid])).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::Config);
    assert!(twice.message().contains(&all[0].uuid), "{twice}");
    let missing = [0, 999].map(DeviceChoice::Ordinal).to_vec();
    let missing = options(&DeviceSet::Named(missing)).unwrap_err();
    assert!(missing.message().contains("999"));
}

#[cfg(all(feature = "supervise", target_os = "linux"))]
mod supervised {
    use super::*;
    use std::process::Command;
    use tapeloop::backend::worker::{WorkerBackend, WorkerEnv, WorkerOptions, serve};
    use tapeloop::features::Input;
    use tapeloop::record::Twin;
    use tapeloop::workload::Completion;

    const ROLE: &str = "TAPELOOP_TEST_ROLE";

    /// The workers' `main`: this program is started again with this test alone.
    #[test]
    fn serve_as_worker() {
        if std::env::var_os(ROLE).is_some() {
            let twins: [(&str, Twin); 0] = [];
            // SAFETY: a backend of this test started the program.
            unsafe { serve(&twins) }.unwrap();
        }
    }

    /// A worker for each card, or two for the only one.
    fn workers() -> Vec<Arc<WorkerBackend>> {
        let all = devices().unwrap().expect("this test needs a CUDA device");
        let mut each = device_options(Choice::Cuda, &DeviceSet::All, &CudaOptions::default());
        let each = each.as_mut().unwrap();
        if all.len() == 1 {
            each.push(each[0].clone());
        }
        let open = |cuda: &CudaOptions| {
            let worker = WorkerBackend::open(WorkerOptions {
                args: [
                    "cards::supervised::serve_as_worker",
                    "--exact",
                    "--nocapture",
                ]
                .map(Into::into)
                .to_vec(),
                // SAFETY: only this test reads the variable.
                env: unsafe { WorkerEnv::default().with(ROLE, "worker") },
                choice: Choice::Cuda,
                cuda: cuda.clone(),
                threads: 1,
                ..WorkerOptions::default()
            });
            Arc::new(worker.unwrap())
        };
        each.iter().map(open).collect()
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn a_worker_for_each_card_and_one_killed_in_a_run_lose_nothing() {
        let workers = workers();
        let killed = workers.last().expect("there are two");
        // Enough items for all workers to have batches after the kill.
        let structures: Vec<Structure> = repeat_n(structures(), 8).flatten().collect();
        let card = first();
        let expected = tables(&mut engine(&[card]), structures.iter());
        let backends: Vec<_> = workers
            .iter()
            .map(|worker| Arc::clone(worker) as Arc<dyn Backend>)
            .collect();
        let mut engine = engine(&backends);
        let inputs = structures
            .iter()
            .map(|structure| Input::new("", 0, Ok(structure.clone())));
        let mut found = Vec::new();
        let mut sink = |done: Completion<Features>| -> tapeloop::Result<()> {
            found.push(done.result?);
            if found.len() == structures.len() / 3
                && let Some(process) = killed.process_id()
            {
                let mut kill = Command::new("kill");
                let status = kill.args(["-9", &process.to_string()]).status();
                assert!(status.unwrap().success());
            }
            Ok(())
        };
        engine.run(inputs, &mut sink).unwrap();
        assert_equal(&found, &expected, "workers, one killed");
        let counters = engine.counters();
        say(&format!("{} workers: {counters:?}", workers.len()));
        assert_eq!(counters.batches_failed, 0);
        assert!(counters.restarts >= 1);
        let statistics = engine.statistics();
        assert!(statistics.devices.iter().all(|device| !device.is_lost));
    }
}
