//! B factors, of structures by experiment, and pLDDT, of predicted models.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{BLOCK, THREADS, kernel};
use super::layout::{CHAINS, RESIDUES};
use super::recording::{Recording, args};
use super::summary;
use crate::record::Kernel;

/// B factors; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BFactor {}

/// pLDDT; it has no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plddt {}

pub(super) fn b_factors() -> Kernel {
    kernel("b_factors")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("residues")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<f32>("b")
        .reads::<f32>("atom_b")
        .writes::<f32>("factors")
        .twin(cpu::b_factors)
}

pub(super) fn plddt() -> Kernel {
    kernel("plddt")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("residues")
        .reads::<f32>("b")
        .writes::<f32>("values")
        .twin(cpu::plddt)
}

impl Feature for BFactor {
    fn about(&self) -> About {
        About {
            summary: "B factors of the residue, and of its C-alpha relative to its chain; null in \
                      predicted models.",
            formula: "b_mean over the residue's heavy atoms; b_z = (b_ca - mean) / sd over the \
                      chain's C-alphas, sd of the population, null where it is 0",
            source: "Parthasarathy and Murthy 1997",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |name: &str, unit, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, unit, about)
        };
        vec![
            column("b_ca", "A^2", "B factor of the C-alpha."),
            column(
                "b_mean",
                "A^2",
                "Mean B factor of the residue's heavy atoms.",
            ),
            column(
                "b_z",
                "",
                "B factor of the C-alpha less the chain's mean, over the chain's population \
                 standard deviation.",
            ),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let factors = r.results::<f32>(TableName::Residues, "b_factors", 3);
        let (structures, residues) = (r.structures(), r.residues());
        let (chains, members) = (r.chains(), r.members());
        let (b, atom_b) = (r.b(), r.atom_b());
        let header = r.header();
        let args = args![
            header, structures, residues, chains, members, b, atom_b, factors
        ];
        r.launch_blocks(b_factors(), CHAINS, &args);
        (0..3).for_each(|at| r.column(factors, at));
    }
}

impl Feature for Plddt {
    fn about(&self) -> About {
        About {
            summary: "The confidence of a predicted model; null in structures by experiment.",
            formula: "plddt, from 0 to 100, of the C-alpha; plddt_mean over the residues of the \
                      chain, or of the structure, that have one",
            source: "Jumper et al. 2021, Nature 596:583",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let mean = |table, of: &str| {
            let about = format!("Mean plddt of the {of}'s residues.");
            ColumnDecl::residue("plddt_mean", ColumnKind::Real, "", about).of(table)
        };
        vec![
            ColumnDecl::residue(
                "plddt",
                ColumnKind::Real,
                "",
                "pLDDT of the C-alpha, from 0 to 100.",
            ),
            mean(TableName::Chains, "chain"),
            mean(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let values = r.results::<f32>(TableName::Residues, "plddt", 1);
        let (structures, residues, b) = (r.structures(), r.residues(), r.b());
        let args = args![r.header(), structures, residues, b, values];
        r.launch_threads(plddt(), RESIDUES, &args);
        r.column(values, 0);
        summary::mean(r, "plddt", values);
    }
}
