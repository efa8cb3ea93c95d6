//! Relative solvent accessibility.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants::RSA_WINDOW;
use super::feature::{About, Feature};
use super::kernels::{Twin, rsa};
use super::layout::{CHAINS, ChainSpan, ResidueSpan};
use super::recorder::FeatureRecorder;
use super::sasa::areas;
use rayon::prelude::*;

/// Theoretical largest areas of residues X in Gly-X-Gly, in A^2 (Tien et al. 2013, PLoS ONE
/// 8:e80635, table 1).
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

/// The largest area of a residue by its one-letter code, in A^2.
pub(super) fn area_max(aa: u8) -> Option<f32> {
    let found = AREA_MAX.iter().find(|(letter, _)| *letter == aa);
    found.map(|(_, area)| *area)
}

/// Relative solvent accessibility; it has no settings but those of [`Sasa`](super::Sasa).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rsa {}

impl Feature for Rsa {
    fn about(&self) -> About {
        About {
            summary: "Solvent-accessible area over the largest that the residue can have.",
            formula: "rsa = sasa / max(parent residue), not clipped, of standard residues and \
                      selenomethionine; rsa_w25 = mean over 25 residues of the chain, which is \
                      reflected at its ends, without those that have none",
            source: "Tien et al. 2013, PLoS ONE 8:e80635, theoretical maxima",
            needs: &["sasa"],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |name: &str, rotation: f32, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "", about.to_owned())
                .reference(Tolerance::absolute(0.02))
                .rotation(Tolerance::absolute(rotation).but_for(5))
        };
        vec![
            column(
                "rsa",
                0.1,
                "Area over the largest of this residue (Tien et al. 2013).",
            ),
            column(
                "rsa_w25",
                0.03,
                "Mean of rsa over 25 residues of the chain around this one.",
            ),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let areas = areas(r);
        let relative = r.results::<f32>(TableName::Residues, "rsa", 2);
        let args = rsa::Args {
            header: r.header(),
            residues: r.residues(),
            chains: r.chains(),
            members: r.members(),
            areas: areas.buffer,
            relative: relative.buffer,
        };
        r.launch_blocks(CHAINS, args);
        (0..2).for_each(|i| r.column(relative, i));
    }
}

/// Computes areas relative to their maximum, and their means along the chain.
impl Twin for rsa::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            chains,
            members,
            areas,
            relative,
        } = self;
        let areas: &[[f32; 3]] = bytemuck::cast_slice(areas);
        let out: &mut [[f32; 2]] = bytemuck::cast_slice_mut(relative);

        let relative = |&member: &u32| {
            let (residue, area) = (&residues[member as usize], areas[member as usize][0]);
            match area_max(residue.aa) {
                Some(max) if residue.is(ResidueSpan::STANDARD) && !area.is_nan() => area / max,
                _ => f32::NAN,
            }
        };
        let areas_of_chain = |chain: &ChainSpan| -> Vec<[f32; 2]> {
            let values: Vec<f32> = chain.members(members).iter().map(relative).collect();
            let means = (0..values.len()).map(|i| mean_around(&values, i));
            values
                .iter()
                .copied()
                .zip(means)
                .map(<[f32; 2]>::from)
                .collect()
        };
        let chains = &chains[..header[CHAINS] as usize];
        let values: Vec<_> = chains.par_iter().map(areas_of_chain).collect();
        // The residues of chains may interleave, so one thread stores the results of all chains.
        for (chain, values) in chains.iter().zip(values) {
            for (&member, value) in chain.members(members).iter().zip(values) {
                out[member as usize] = value;
            }
        }
    }
}

/// The mean of the values in the window around `index` that are not NaN. The chain is reflected at
/// its ends, as often as the window needs.
fn mean_around(values: &[f32], index: usize) -> f32 {
    let last = values.len() - 1;
    let (mut sum, mut count) = (0f64, 0f64);
    for place in index as i64 - i64::from(RSA_WINDOW / 2)..=index as i64 + i64::from(RSA_WINDOW / 2)
    {
        let place = match last {
            0 => 0,
            _ => place.rem_euclid(2 * last as i64) as usize,
        };
        let value = values[place.min(2 * last - place)];
        if !value.is_nan() {
            sum += f64::from(value);
            count += 1.0;
        }
    }
    match count {
        0.0 => f32::NAN,
        _ => (sum / count) as f32,
    }
}
