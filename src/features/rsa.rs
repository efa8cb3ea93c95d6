//! Relative solvent accessibility.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants::RSA_WINDOW;
use super::feature::{About, Feature, SettingField, choice};
use super::kernels::{Twin, rsa, rsa_scale};
use super::layout::{CHAINS, ChainSpan, ResidueSpan};
use super::recorder::FeatureRecorder;
use super::sasa::areas;
use rayon::prelude::*;

/// The largest areas of residues, by which areas are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RsaScale {
    /// Theoretical maxima over all conformations of Gly-X-Gly: Tien et al. 2013.
    #[default]
    Tien2013,
    /// Of Gly-X-Gly in the extended conformation: Miller et al. 1987.
    Miller1987,
    /// Means of X in Gly-X-Gly over many conformations: Rose et al. 1985.
    Rose1985,
    /// The largest areas that DSSP found in proteins: Rost and Sander 1994.
    Rost1994,
}

choice!(RsaScale: Tien2013 "tien2013", Miller1987 "miller1987", Rose1985 "rose1985",
        Rost1994 "rost1994");

/// A scale: its publication, the words that cite it, and the largest area of each of [`LETTERS`] in
/// A^2.
struct AreaScale {
    source: &'static str,
    citation: &'static str,
    areas: [f32; LETTERS.len()],
}

/// The one-letter codes of residues, in the order of the areas of scales.
const LETTERS: &[u8; 20] = b"ARNDCEQGHILKMFPSTWYV";

/// Table 1, column "theoretical".
const TIEN_2013: AreaScale = AreaScale {
    source: "Tien et al. 2013, PLoS ONE 8:e80635, theoretical maxima",
    citation: "Tien et al. 2013",
    areas: [
        129.0, 274.0, 195.0, 193.0, 167.0, 223.0, 225.0, 104.0, 224.0, 197.0, 201.0, 236.0, 224.0,
        240.0, 159.0, 155.0, 172.0, 285.0, 263.0, 174.0,
    ],
};

/// As table 1 of Tien et al. 2013 has them.
const MILLER_1987: AreaScale = AreaScale {
    source: "Miller et al. 1987, J Mol Biol 196:641",
    citation: "Miller et al. 1987",
    areas: [
        113.0, 241.0, 158.0, 151.0, 140.0, 183.0, 189.0, 85.0, 194.0, 182.0, 180.0, 211.0, 204.0,
        218.0, 143.0, 122.0, 146.0, 259.0, 229.0, 160.0,
    ],
};

/// As table 1 of Tien et al. 2013 has them.
const ROSE_1985: AreaScale = AreaScale {
    source: "Rose et al. 1985, Science 229:834",
    citation: "Rose et al. 1985",
    areas: [
        118.1, 256.0, 165.5, 158.7, 146.1, 186.2, 193.2, 88.1, 202.5, 181.0, 193.1, 225.8, 203.4,
        222.8, 146.8, 129.8, 152.5, 266.3, 236.8, 164.5,
    ],
};

/// The largest areas that DSSP found in proteins.
const ROST_1994: AreaScale = AreaScale {
    source: "Rost and Sander 1994, Proteins 20:216",
    citation: "Rost and Sander 1994",
    areas: [
        106.0, 248.0, 157.0, 163.0, 135.0, 194.0, 198.0, 84.0, 184.0, 169.0, 164.0, 205.0, 188.0,
        197.0, 136.0, 130.0, 142.0, 227.0, 222.0, 142.0,
    ],
};

impl RsaScale {
    /// The largest areas of this publication.
    fn scale(self) -> &'static AreaScale {
        match self {
            RsaScale::Tien2013 => &TIEN_2013,
            RsaScale::Miller1987 => &MILLER_1987,
            RsaScale::Rose1985 => &ROSE_1985,
            RsaScale::Rost1994 => &ROST_1994,
        }
    }

    /// The largest area in A^2 by the letter from A to Z; 0 for a letter that is no residue.
    fn areas_of_letters(self) -> [f32; 26] {
        let mut areas = [0.0; 26];
        for (letter, area) in LETTERS.iter().zip(self.scale().areas) {
            areas[usize::from(letter - b'A')] = area;
        }
        areas
    }
}

/// Settings of relative solvent accessibility. The areas are those of [`Sasa`](super::Sasa).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rsa {
    /// The largest areas of residues.
    pub scale: RsaScale,
}

impl Feature for Rsa {
    fn about(&self) -> About {
        About {
            summary: "Solvent-accessible area over the largest that the residue can have.",
            formula: "rsa = sasa / max(parent residue), not clipped, of standard residues and \
                      selenomethionine; rsa_w25 = mean over 25 residues of the chain, which is \
                      reflected at its ends, without those that have none",
            source: self.scale.scale().source,
            needs: &["sasa"],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![("rsa.scale", SettingField::Choice(&mut self.scale))]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        // Limits of areas, over the 84 A^2 of glycine. A mean of 25 residues changes less.
        let column = |name: &str, rotation: f32, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "", about.to_owned())
                .reference(Tolerance::absolute(0.02))
                .rotation(Tolerance::absolute(rotation).but_for(5))
        };
        let citation = self.scale.scale().citation;
        let about_rsa = format!("Area over the largest of this residue ({citation}).");
        vec![
            column("rsa", 0.1, &about_rsa),
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
        let (header, residues) = (r.header(), r.residues());
        let (chains, members) = (r.chains(), r.members());
        let (areas, relative_areas) = (areas.buffer, relative.buffer);
        // The text of the kernel `rsa` has the areas of the default; those of others are uploaded.
        if self.scale == RsaScale::Tien2013 {
            let args = rsa::Args {
                header,
                residues,
                chains,
                members,
                areas,
                relative: relative_areas,
            };
            r.launch_blocks(CHAINS, args);
        } else {
            let area_max = self.scale.areas_of_letters().into_iter();
            let args = rsa_scale::Args {
                header,
                residues,
                chains,
                members,
                areas,
                relative: relative_areas,
                first: r.constants("rsa_area_max", area_max) as u32,
            };
            r.launch_blocks(CHAINS, args);
        }
        (0..2).for_each(|i| r.column(relative, i));
    }
}

/// Computes areas relative to their theoretical maximum, and their means along the chain.
impl Twin for rsa::Views<'_> {
    fn run(self) {
        let inputs = RelativeInputs {
            chains: &self.chains[..self.header[CHAINS] as usize],
            residues: self.residues,
            members: self.members,
            areas: bytemuck::cast_slice(self.areas),
        };
        inputs.write(&RsaScale::Tien2013.areas_of_letters(), self.relative);
    }
}

/// Computes areas relative to the maxima of another scale, and their means along the chain.
impl Twin for rsa_scale::Views<'_> {
    fn run(self) {
        let inputs = RelativeInputs {
            chains: &self.chains[..self.header[CHAINS] as usize],
            residues: self.residues,
            members: self.members,
            areas: bytemuck::cast_slice(self.areas),
        };
        let area_max = &self.header[self.first as usize..][..26];
        inputs.write(bytemuck::cast_slice(area_max), self.relative);
    }
}

/// What relative areas are computed from.
struct RelativeInputs<'a> {
    chains: &'a [ChainSpan],
    residues: &'a [ResidueSpan],
    members: &'a [u32],
    areas: &'a [[f32; 3]],
}

impl RelativeInputs<'_> {
    /// Writes the relative areas and their means, `[residues, 2]`; `area_max` is the largest area by
    /// the letter from A on, 0 for a letter that is no residue.
    fn write(&self, area_max: &[f32], relative: &mut [f32]) {
        let (residues, members, areas) = (self.residues, self.members, self.areas);
        let out: &mut [[f32; 2]] = bytemuck::cast_slice_mut(relative);
        let relative = |&member: &u32| {
            let (residue, area) = (&residues[member as usize], areas[member as usize][0]);
            let letter = usize::from(residue.aa.wrapping_sub(b'A'));
            match area_max.get(letter) {
                Some(&max) if max > 0.0 && residue.is(ResidueSpan::STANDARD) && !area.is_nan() => {
                    area / max
                }
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
        let values: Vec<_> = self.chains.par_iter().map(areas_of_chain).collect();
        // The residues of chains may interleave, so one thread stores the results of all chains.
        for (chain, values) in self.chains.iter().zip(values) {
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
