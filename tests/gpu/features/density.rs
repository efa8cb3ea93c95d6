//! Structures that are too dense, among others, on the GPU and on the CPU.

use super::*;
use crate::made_up::moved;
use tapeloop::structure::{Ligand, LigandKind};

/// All atoms in one place; 150 atoms in each of some cells; a ligand alone with its atoms in one
/// place.
fn too_dense() -> [Structure; 3] {
    let mut in_one_place = structure(300, 2);
    in_one_place.xyz.fill([1_000; 3]);
    let mut on_average = structure(300, 3);
    let atoms = on_average.xyz.iter_mut().enumerate();
    atoms.for_each(|(index, position)| *position = [index as i32 / 150 * 8_192, 0, 0]);
    let mut in_a_ligand = with_ligands(structure(70, 4), 4);
    let ligand = &mut in_a_ligand.ligands[0];
    let atoms = vec![ligand.atoms[0]; 300];
    *ligand = Ligand {
        kind: LigandKind::Ligand,
        atoms: atoms.into(),
        ..ligand.clone()
    };
    [in_one_place, on_average, in_a_ligand]
}

/// Residues on lattices that lie far apart: many are equally far from others, and cells of
/// different lattices share memory.
fn lattices() -> Structure {
    let mut structure = structure(400, 5);
    for residue in 0..400 {
        let [first, end] = [residue, residue + 1].map(|row| structure.atom_start[row] as usize);
        let place = [residue % 5, residue / 5 % 5, residue / 25].map(|step| step as i32);
        let place = [4_000 * place[0], 4_000 * place[1], 700_000 * place[2]];
        let origin = structure.residues[residue].ca;
        let origin = structure.xyz[if origin == MISSING {
            first
        } else {
            origin as usize
        }];
        for atom in &mut structure.xyz[first..end] {
            let within = [0, 1, 2].map(|axis| (atom[axis] - origin[axis]).clamp(-3_000, 3_000));
            *atom = moved(place, within);
        }
    }
    structure
}

fn outcomes(
    features: &FeatureConfig,
    backend: &Arc<dyn Backend>,
    pool: &Arc<ThreadPool>,
    (mode, fusion): (Mode, Fusion),
) -> Vec<tapeloop::Result<FeatureTable>> {
    let [in_one_place, on_average, in_a_ligand] = too_dense();
    let structures = [
        with_ligands(structure(90, 1), 1),
        in_one_place,
        lattices(),
        on_average,
        in_a_ligand,
        structure(33, 6),
    ];
    let features = FeatureConfig {
        fusion,
        ..features.clone()
    };
    let mut config = EngineConfig::new(Features::capacity(4_096));
    config.policy = Policy::new(mode);
    let backends = [Arc::clone(backend)];
    let workload = Features::new(features).unwrap();
    let mut engine = Engine::new(workload, &backends, Arc::clone(pool), &config).unwrap();
    tables::outcomes(&mut engine, structures.iter())
}

#[test]
#[ignore = "needs a CUDA device"]
fn structures_that_are_too_dense_are_rejected_alike_and_change_no_other() {
    let pool = pool();
    let gpu = gpu();
    let cpu: Arc<dyn Backend> = Arc::new(CpuBackend::new(Arc::clone(&pool)));
    let mut nearest = features();
    nearest.contacts.nearest = 4;
    for features in [features(), nearest] {
        let expected = outcomes(&features, &cpu, &pool, (Mode::Graph, Fusion::Off));
        let said = |result: &tapeloop::Result<FeatureTable>| {
            let error = result.as_ref().err();
            error.map(|error| (error.kind(), error.to_string()))
        };
        let rejected: Vec<_> = expected.iter().map(said).collect();
        let which: Vec<bool> = rejected.iter().map(Option::is_some).collect();
        assert_eq!(
            which,
            [false, true, false, true, true, false],
            "{rejected:?}"
        );
        let tables = |all: &[tapeloop::Result<FeatureTable>]| -> Vec<FeatureTable> {
            all.iter()
                .filter_map(|table| table.as_ref().ok().cloned())
                .collect()
        };
        for mode in [Mode::Graph, Mode::Stream] {
            for fusion in [Fusion::Off, Fusion::On] {
                let found = outcomes(&features, &gpu, &pool, (mode, fusion));
                let rejected_on_gpu: Vec<_> = found.iter().map(said).collect();
                assert_eq!(rejected_on_gpu, rejected, "{mode:?}, {fusion:?}");
                let (_, unequal) = assert_agree(&features, &tables(&found), &tables(&expected));
                assert_eq!(unequal, 0, "{mode:?}, {fusion:?}");
            }
        }
    }
}
