//! Relative solvent accessibility.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::FeatureName;
use super::cpu;
use super::feature::{About, Feature};
use super::kernels::{BLOCK, kernel};
use super::layout::CHAINS;
use super::recording::{Recording, args};
use crate::record::Kernel;

/// Residues of the window of `rsa_w25`.
pub(super) const WINDOW: u32 = 25;

/// Largest areas of residues X in Gly-X-Gly in A^2, the theoretical ones of Tien
/// et al. 2013, PLoS ONE 8:e80635, table 1.
const AREA_MAX: [(u8, f32); 20] = [
    (b'A', 129.0),
    (b'R', 274.0),
    (b'N', 195.0),
    (b'D', 193.0),
    (b'C', 167.0),
    (b'E', 223.0),
    (b'Q', 225.0),
    (b'G', 104.0),
    (b'H', 224.0),
    (b'I', 197.0),
    (b'L', 201.0),
    (b'K', 236.0),
    (b'M', 224.0),
    (b'F', 240.0),
    (b'P', 159.0),
    (b'S', 155.0),
    (b'T', 172.0),
    (b'W', 285.0),
    (b'Y', 263.0),
    (b'V', 174.0),
];

/// The largest area of a residue of this one-letter code.
pub(super) fn area_max(aa: u8) -> Option<f32> {
    let found = AREA_MAX.iter().find(|(letter, _)| *letter == aa);
    found.map(|(_, area)| *area)
}

/// Relative solvent accessibility; it has no settings but those of
/// [`Sasa`](super::Sasa).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rsa {}

pub(super) fn rsa() -> Kernel {
    kernel("rsa")
        .block(BLOCK)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .reads::<u32>("chains")
        .reads::<u32>("members")
        .reads::<f32>("areas")
        .writes::<f32>("relative")
        .twin(cpu::rsa)
}

impl Feature for Rsa {
    fn about(&self) -> About {
        About {
            summary: "Solvent-accessible area over the largest that the residue can have.",
            formula: "rsa = sasa / max(parent residue), not clipped, of standard residues and \
                      selenomethionine; rsa_w25 = mean over 25 residues of the chain, which is \
                      reflected at its ends, without those that have none",
            source: "Tien et al. 2013, PLoS ONE 8:e80635, theoretical maxima",
            needs: &[FeatureName::Sasa],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "", about.to_owned())
        };
        vec![
            column(
                "rsa",
                "Area over the largest of this residue (Tien et al. 2013).",
            ),
            column(
                "rsa_w25",
                "Mean of rsa over 25 residues of the chain around this one.",
            ),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let areas = r.areas();
        let relative = r.results::<f32>(TableName::Residues, "rsa", 2);
        let args = args![
            r.header(),
            r.residues(),
            r.chains(),
            r.members(),
            areas,
            relative
        ];
        r.launch_blocks(rsa(), CHAINS, &args);
        (0..2).for_each(|at| r.column(relative, at));
    }
}
