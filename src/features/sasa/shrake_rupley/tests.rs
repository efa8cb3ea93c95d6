use super::*;
use crate::features::cpu::simd::levels;
use crate::features::grid::{ATOM_CELL_SHIFT, Grid};
use crate::features::layout::AtomTag;
use crate::features::sasa::others::{NoOthers, OtherChains};
use crate::features::sasa::sphere::golden_spiral;
use fearless_simd::dispatch;

/// Random atoms with a protein's density, in residues of up to 14 atoms and three chains.
struct RandomAtoms {
    structures: Vec<StructureSpan>,
    residues: Vec<ResidueSpan>,
    atoms: Vec<Atom>,
    start: Vec<u32>,
    axes: [Vec<i32>; 3],
    tag: Vec<AtomTag>,
    source: Vec<u32>,
}

fn random_atoms(atom_count: usize) -> RandomAtoms {
    let mut state = 1u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    // 20 A^3 per atom.
    let edge = (atom_count as f64 * 20.0).cbrt() * 1000.0;
    let mut atoms = Vec::new();
    for _ in 0..atom_count {
        let position: [i32; 3] = std::array::from_fn(|_| below(edge as u64) as i32);
        let radius = [1_420, 1_610, 1_640, 1_880, 1_900][below(5) as usize];
        let tag = AtomTag::new(radius, below(2) == 0, below(3) == 0, below(3) as u32);
        let position = position.into();
        atoms.push(Atom { position, tag });
    }
    let mut residues = Vec::new();
    let mut atom_start = 0;
    while atom_start < atom_count as u32 {
        let count = (1 + below(14) as u32).min(atom_count as u32 - atom_start);
        residues.push(ResidueSpan {
            structure: 0,
            chain: 0,
            atom_start,
            atom_count: count as u16,
            aa: b'A',
            flags: ResidueSpan::PRESENT,
        });
        atom_start += count;
    }
    let points = atoms.iter().map(|atom| atom.position.into());
    let grid = Grid::over(points, atom_count, ATOM_CELL_SHIFT);
    let cell = |index: &u32| grid.cell_of(atoms[*index as usize].position.into());
    let mut source: Vec<u32> = (0..atom_count as u32).collect();
    source.sort_by_key(cell);
    let before = |cell_index: usize| {
        source
            .iter()
            .filter(|index| cell(index) < cell_index)
            .count() as u32
    };
    let sorted = || source.iter().map(|&index| atoms[index as usize]);
    RandomAtoms {
        structures: vec![StructureSpan {
            residue_start: 0,
            residue_count: residues.len() as u32,
            atom_start: 0,
            atom_count: atom_count as u32,
            chain_start: 0,
            chain_count: 3,
            predicted: 0,
            tile_start: 0,
            ligand_atom_count: 0,
            glycan_atom_count: 0,
            ligand_start: 0,
            ligand_count: 0,
            atom_grid: grid,
            residue_grid: grid,
        }],
        residues,
        start: grid.cells().map(before).collect(),
        axes: [0, 1, 2].map(|axis| {
            let along = sorted().map(|atom| <[i32; 3]>::from(atom.position)[axis]);
            along.collect()
        }),
        tag: sorted().map(|atom| atom.tag).collect(),
        source: source.clone(),
        atoms,
    }
}

#[test]
fn every_kind_of_vectors_gives_the_same_areas() {
    let packed = random_atoms(400);
    let [x, y, z] = &packed.axes;
    let (start, tag, source) = (&packed.start, &packed.tag, &packed.source);
    let inputs = AreaInputs {
        structures: &packed.structures,
        residues: &packed.residues,
        atoms: &packed.atoms,
        cells: Cells {
            start,
            x,
            y,
            z,
            tag,
            source,
        },
    };
    for count in [1, 15, 64, 100, 333] {
        let points = golden_spiral(count);
        let axes = (0..3).flat_map(|axis| points.iter().map(move |point| point[axis]));
        let sphere = Sphere::new(&axes.collect::<Vec<f32>>(), 1_400);
        let at_level = |level| -> Vec<(Areas, Areas)> {
            let mut scratch = Neighbours::new();
            let residues = 0..packed.residues.len();
            dispatch!(level, simd => residues
                .map(|residue| (
                    areas_of(simd, &inputs, &sphere, residue, NoOthers, &mut scratch),
                    areas_of(simd, &inputs, &sphere, residue, OtherChains, &mut scratch),
                ))
                .collect())
        };
        let expected = at_level(levels()[0]);
        let sum: f32 = expected.iter().map(|(areas, _)| areas.model[0]).sum();
        let delta: f32 = expected.iter().map(|(_, areas)| areas.delta).sum();
        assert!(sum > 0.0 && delta > 0.0);
        assert!(
            expected
                .iter()
                .all(|(one, by_chain)| one.model == by_chain.model)
        );
        for level in levels() {
            assert_eq!(at_level(level), expected, "{level:?}, {count} points");
        }
    }
}
