//! Atoms with tens of thousands of others around them.

use super::{Computed, asking_for};
use crate::definitions::{assert_close, distance2};
use crate::made_up::structure;
use crate::tables;
use rayon::ThreadPoolBuilder;
use std::sync::Arc;
use tapeloop::backend::{Backend, cpu::CpuBackend};
use tapeloop::features::{Cutoff, FeatureName, Features, TableName};
use tapeloop::pipeline::{Engine, EngineConfig};
use tapeloop::structure::{LooseSpan, MISSING, Structure};

/// Atoms of no residue along each edge of a cube: over 2 x 1,024 vectors of 16 lanes.
const EDGE: i32 = 33;

/// A chain of seven C-alphas along a diagonal of a cube of atoms that are of no residue, so that a
/// search meets some of them early and others late.
fn diagonal_of_a_cube() -> Structure {
    let mut s = structure(7, 0);
    let step = 1_280;
    let coordinate = |place: i32| (place - EDGE / 2) * step;
    let cube =
        (0..EDGE.pow(3)).map(|n| [n % EDGE, n / EDGE % EDGE, n / EDGE.pow(2)].map(coordinate));
    let along = (-3..=3).map(|n| [0, 8_000 * n, 8_000 * n]);
    s.xyz = along.chain(cube).collect();
    let count = s.xyz.len();
    (s.element, s.b_factor) = (vec![6; count], vec![1.5; count]);
    s.class = vec![s.class[0]; count];
    s.atom_start = (0..=7).collect();
    s.loose = vec![LooseSpan {
        chain: 0,
        atom_count: count as u32 - 7,
    }];
    for (residue, index) in s.residues.iter_mut().zip(0..) {
        (residue.chain, residue.ca) = (0, index);
        (residue.n, residue.c, residue.o, residue.cb) = (MISSING, MISSING, MISSING, MISSING);
        residue.sequence_position = Some((index * index) as i32);
    }
    s
}

#[test]
fn contact_order_counts_what_a_long_search_meets_early_and_late() {
    let s = diagonal_of_a_cube();
    let mut config = asking_for(&[FeatureName::ContactOrder]);
    config.contact_order.cutoff = Cutoff::from_angstrom(37.0).unwrap();
    let pool = Arc::new(ThreadPoolBuilder::new().num_threads(1).build().unwrap());
    let backend: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let workload = Features::new(config.clone()).unwrap();
    let mut engine_config = EngineConfig::new(Features::capacity(4096));
    engine_config.slots = 1;
    let mut engine = Engine::new(workload, &[backend], pool, &engine_config).unwrap();
    let tables = tables::tables(&mut engine, std::iter::once(&s));
    let computed = Computed { config, tables };
    let order = |i: usize| {
        let is_near = |j: &usize| *j != i && distance2(s.xyz[i], s.xyz[*j]) < 37_000i64.pow(2);
        let apart = (0..7).filter(is_near).map(|j| (i * i).abs_diff(j * j));
        let (sum, count) = apart.fold((0, 0), |(sum, count), apart| (sum + apart, count + 1));
        sum as f64 / f64::from(count)
    };
    let expected: Vec<f64> = (0..7).map(order).collect();
    let found = computed.reals(0, TableName::Residues, "co");
    assert_close("co", found, &expected, 1e-6);
}
