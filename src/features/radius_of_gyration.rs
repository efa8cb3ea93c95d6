//! Radius of gyration.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{BLOCK, kernel};
use super::layout::{ATOMS, CHAINS, RESIDUES, STRUCTURES};
use super::recording::{Recording, args};
use crate::record::Kernel;

/// Radius of gyration; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RadiusOfGyration {}

pub(super) fn radius_of_gyration() -> Kernel {
    kernel("radius_of_gyration")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<i32>("atoms")
        .writes::<f32>("radii")
        .scalar::<u32>("axis")
        .twin(cpu::radius_of_gyration)
}

pub(super) fn chain_radius_of_gyration() -> Kernel {
    kernel("chain_radius_of_gyration")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<u32>("loose")
        .reads::<i32>("atoms")
        .writes::<f32>("radii")
        .twin(cpu::chain_radius_of_gyration)
}

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
        let column = |table, name: &str, of: &str| {
            let about = format!("Radius of gyration of {of}, all of one weight.");
            ColumnDecl::residue(name, ColumnKind::Real, "A", about).of(table)
        };
        vec![
            column(TableName::Chains, "rg", "the chain's selected atoms"),
            column(TableName::Structures, "rg", "all selected atoms"),
            column(TableName::Structures, "rg_ca", "the C-alphas"),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let (atoms, ca) = (r.atoms(), r.ca());
        let radii = r.results::<f32>(TableName::Chains, "rg_of_chains", 1);
        let (residues, chains, members, loose) = (r.residues(), r.chains(), r.members(), r.loose());
        let args = args![r.header(), residues, chains, members, loose, atoms, radii];
        r.launch_blocks(chain_radius_of_gyration(), CHAINS, &args);
        r.column(radii, 0);
        for (name, atoms, axis) in [("rg", atoms, ATOMS), ("rg_ca", ca, RESIDUES)] {
            let radii = r.results::<f32>(TableName::Structures, name, 1);
            let args = [
                r.header().into(),
                r.structures().into(),
                atoms.into(),
                radii.into(),
                (axis as u32).into(),
            ];
            r.launch_blocks(radius_of_gyration(), STRUCTURES, &args);
            r.column(radii, 0);
        }
    }
}
