//! Radius of gyration.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::feature::{About, Feature};
use super::kernels::{Twin, chain_radius_of_gyration, radius_of_gyration};
use super::layout::{ATOMS, Atom, CHAINS, ChainSpan, RESIDUES, STRUCTURES, StructureSpan};
use super::recorder::FeatureRecorder;
use bytemuck::cast_slice;
use rayon::prelude::*;

/// Radius of gyration; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RadiusOfGyration {}

impl Feature for RadiusOfGyration {
    fn about(&self) -> About {
        About {
            summary: "Root mean square distance of the atoms from their mean position.",
            formula: "rg = sqrt(sum of |r_i - mean|^2 / n), all atoms of one weight",
            source: "IUPAC Gold Book, radius of gyration",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |table, name: &str, whose: &str| {
            let about = format!("Radius of gyration of {whose}, all of one weight.");
            ColumnDecl::residue(name, ColumnKind::Real, "A", about)
                .in_table(table)
                .rotation(Tolerance::relative(1e-4))
        };
        vec![
            column(TableName::Chains, "rg", "the chain's selected atoms"),
            column(TableName::Structures, "rg", "all selected atoms"),
            column(TableName::Structures, "rg_ca", "the C-alphas"),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let (atoms, ca) = (r.atoms(), r.ca());
        let radii = r.results::<f32>(TableName::Chains, "rg_of_chains", 1);
        let (residues, chains, members, loose) = (r.residues(), r.chains(), r.members(), r.loose());
        let args = chain_radius_of_gyration::Args {
            header: r.header(),
            residues,
            chains,
            members,
            loose,
            atoms,
            radii: radii.buffer,
        };
        r.launch_blocks(CHAINS, args);
        r.column(radii, 0);
        for (name, atoms, axis) in [("rg", atoms, ATOMS), ("rg_ca", ca, RESIDUES)] {
            let radii = r.results::<f32>(TableName::Structures, name, 1);
            let args = radius_of_gyration::Args {
                header: r.header(),
                structures: r.structures(),
                atoms,
                radii: radii.buffer,
                axis: axis as u32,
            };
            r.launch_blocks(STRUCTURES, args);
            r.column(radii, 0);
        }
    }
}

/// Root mean square distance of a structure's atoms from their mean.
impl Twin for radius_of_gyration::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            atoms,
            radii,
            axis,
        } = self;
        let structures = StructureSpan::live(header, structures);

        structures
            .par_iter()
            .zip(radii)
            .for_each(|(structure, radius)| {
                let atoms = atoms[structure.along(axis)].iter();
                *radius = radius_of(atoms.filter(|atom| atom.is_present()));
            });
    }
}

/// Root mean square distance of a chain's atoms from their mean.
impl Twin for chain_radius_of_gyration::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            chains,
            members,
            loose,
            atoms,
            radii,
        } = self;
        let chains: &[ChainSpan] = &chains[..header[CHAINS] as usize];
        let loose: &[[u32; 2]] = cast_slice(loose);

        let blocks = chains.par_iter().zip(loose).zip(radii).enumerate();
        blocks.for_each(|(index, ((chain, &[first, count]), radius))| {
            let rows = chain.members(members).iter();
            let residue_atoms = rows.flat_map(|&row| &atoms[residues[row as usize].atoms()]);
            let loose = atoms[first as usize..][..count as usize].iter();
            let is_own = |atom: &&Atom| atom.is_present() && atom.tag.chain() as usize == index;
            *radius = radius_of(residue_atoms.chain(loose.filter(is_own)));
        });
    }
}

/// Root mean square distance of atoms from their mean in A.
///
/// All sums are of integers, relative to the mean rounded down, so that neither the order of atoms
/// nor a translation changes a bit.
pub(super) fn radius_of<'a>(atoms: impl Iterator<Item = &'a Atom> + Clone) -> f32 {
    let (mut sums, mut count) = ([0i64; 3], 0i64);
    let coordinates = |atom: &Atom| <[i32; 3]>::from(atom.position).map(i64::from);
    for atom in atoms.clone() {
        let position = coordinates(atom);
        (0..3).for_each(|axis| sums[axis] += position[axis]);
        count += 1;
    }
    if count == 0 {
        return f32::NAN;
    }
    let below = sums.map(|sum| sum.div_euclid(count));
    // A sum of squares has up to 76 bits.
    let (mut low, mut high) = (0i64, 0i64);
    for atom in atoms {
        let position = coordinates(atom);
        let [dx, dy, dz] = std::array::from_fn(|axis| position[axis] - below[axis]);
        let square = dx * dx + dy * dy + dz * dz;
        low += square & 0xffff_ffff;
        high += square >> 32;
    }
    let n = count as f64;
    let [x, y, z] = sums.map(|sum| sum.rem_euclid(count) as f64 / n);
    let rest = x * x + y * y + z * z;
    let mean = (high as f64 * 4_294_967_296.0 + low as f64) / n;
    ((mean - rest).sqrt() * 0.001) as f32
}
