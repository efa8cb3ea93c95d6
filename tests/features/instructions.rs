//! The numbers of instructions of the code that has to be fast: reading a file, writing a structure
//! into a slot, and passing an item through the engine. The limits and their reasons are in
//! `instructions.tsv`.

use crate::every_feature::every_feature;
use std::sync::Arc;
use tapeloop::EngineConfig;
use tapeloop::backend::{ThreadPool, ThreadPoolBuilder};
use tapeloop::features::{Features, Input};
use tapeloop::pipeline::Pipeline;
use tapeloop::structure::{ReadOptions, Reader};
use tapeloop::workload::Workload;
use tapeloop_test_support::counted::{counted, instructions};
use tapeloop_test_support::empty::{EmptyBackend, EmptyKernels};
use tapeloop_test_support::repository;
use tapeloop_test_support::samples::sample;

const LIMITS: &str = include_str!("instructions.tsv");

/// Checks the instructions of a case per unit, in the order of the calls of `counted`.
fn are_within_limits(counts: &[u64], cases: &[(&str, usize)]) {
    assert_eq!(counts.len(), cases.len());
    let mut wrong = Vec::new();
    for (&count, &(case, units)) in counts.iter().zip(cases) {
        let mut rows = LIMITS.lines().map(|line| line.split('\t'));
        let mut row = rows.find(|row| row.clone().next() == Some(case)).unwrap();
        let limit: u64 = row.nth(1).unwrap().parse().unwrap();
        let each = count / units as u64;
        // A limit far above the measured number would not notice a regression.
        if each > limit || each < limit * 3 / 4 {
            wrong.push(format!("{case}: {each}, and the limit is {limit}"));
        }
    }
    assert!(wrong.is_empty(), "instructions for each unit: {wrong:#?}");
}

const READ: [(&str, &str); 5] = [
    ("read/pdb", "samples/1ubi.pdb"),
    ("read/pdb.gz", "samples/1bd2.pdb.gz"),
    ("read/cif", "samples/1yjp.cif"),
    ("read/cif.gz", "samples/4cup.cif.gz"),
    ("read/bcif.gz", "tests/data/binary_cif/3jqh.molstar.bcif.gz"),
];

#[test]
#[ignore = "needs valgrind"]
fn reading_an_atom_takes_as_many_instructions_as_it_did() {
    let mut reader = Reader::new(ReadOptions::default());
    let mut read = |file: &str, bytes: &[u8]| reader.read_auto(file, bytes).unwrap();
    let files = READ.map(|(case, file)| (case, file, std::fs::read(repository(file)).unwrap()));
    let Some(counts) =
        instructions("instructions::reading_an_atom_takes_as_many_instructions_as_it_did")
    else {
        for (_, file, bytes) in &files {
            // The first read allocates what is allocated only once.
            read(file, bytes);
            counted(|| drop(read(file, bytes)));
        }
        return;
    };
    let cases = files.each_ref().map(|(case, file, bytes)| {
        let atoms = read(file, bytes)
            .iter()
            .map(|structure| structure.xyz.len())
            .sum();
        (*case, atoms)
    });
    are_within_limits(&counts, &cases);
}

/// Batches that fill all slots once, before the counted ones.
const WARM_UP: usize = 8;
const BATCHES: usize = 4;

/// Instructions of batches of `items` on a device that does nothing.
fn count_batches<W: Workload>(
    pool: &Arc<ThreadPool>,
    workload: W,
    config: &EngineConfig,
    mut items: impl FnMut() -> Vec<W::Item>,
) {
    let mut pipeline = Pipeline::new(
        workload,
        &[EmptyBackend::shared()],
        Arc::clone(pool),
        config,
    )
    .unwrap();
    let mut run = |items: Vec<W::Item>| {
        let count = items.len();
        for item in items {
            pipeline
                .submit(item)
                .unwrap_or_else(|_| panic!("the batch has room"));
        }
        for _ in 0..count {
            assert!(pipeline.wait().unwrap().1.result.is_ok());
        }
    };
    (0..WARM_UP).for_each(|_| run(items()));
    let batches: Vec<_> = (0..BATCHES).map(|_| items()).collect();
    counted(|| batches.into_iter().for_each(run));
}

#[test]
#[ignore = "needs valgrind"]
fn the_host_spends_as_many_instructions_on_a_batch_as_it_did() {
    const ITEMS: usize = 256;
    let structure = sample("1bd2.pdb.gz");
    let Some(counts) =
        instructions("instructions::the_host_spends_as_many_instructions_on_a_batch_as_it_did")
    else {
        // The caller's thread is the pool, so that all of the host's work is counted.
        let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread();
        let pool = Arc::new(pool.build().unwrap());
        count_batches(&pool, EmptyKernels::new(4), &EngineConfig::new([1]), || {
            vec![7]
        });
        count_batches(
            &pool,
            EmptyKernels::new(4),
            &EngineConfig::new([ITEMS as u32]),
            || vec![7; ITEMS],
        );
        let config = EngineConfig::new(Features::capacity(1 << 12));
        // Interactions find what the atoms can take part in, as the structure was read without it.
        let mut all = every_feature();
        all.interactions.keep = false;
        count_batches(&pool, Features::new(all).unwrap(), &config, || {
            vec![Input::new("", 0, Ok(structure.clone()))]
        });
        return;
    };
    let atoms = structure.xyz.len();
    let cases = [
        ("batch", BATCHES),
        ("item", BATCHES * ITEMS),
        ("structure", BATCHES * atoms),
    ];
    are_within_limits(&counts, &cases);
}
