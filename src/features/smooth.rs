//! Annotations smoothed over contacts.

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::constants::WEIGHT_BITS;
use super::cpu::simd;
use super::cpu::simd::{first_lanes, in_same_chain, lanes_of, load, squared, vectors_of};
use super::cpu::split::for_row_ranges;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, neighbours_of, own_chain};
use super::inputs::{B_CA, PLDDT};
use super::kernels::Cells;
use super::kernels::{Twin, smooth};
use super::layout::{Atom, RESIDUES, StructureSpan};
use super::recorder::FeatureRecorder;
use crate::error::{Error, Result};
use fearless_simd::dispatch;
use fearless_simd::prelude::*;
use std::ops::Range;

/// Settings of smoothed annotations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smooth {
    /// The annotations: names of [`Structure::channels`](crate::structure::Structure::channels),
    /// `b_ca`, which is null in predicted models, or `plddt`, which is null in all others. If
    /// empty, the feature has no columns.
    pub channels: Vec<String>,
    /// C-alphas closer than this are in contact.
    pub radius: Cutoff,
    /// Whether a contact has the weight 1/d instead of 1.
    pub weighted: bool,
    /// Whether only residues of the same chain are in contact.
    pub own_chain: bool,
}

impl Default for Smooth {
    /// B factors and pLDDT, over 10 A and all chains, not weighted.
    fn default() -> Self {
        Smooth {
            channels: vec![B_CA.to_owned(), PLDDT.to_owned()],
            radius: Cutoff::of_angstrom(10),
            weighted: false,
            own_chain: false,
        }
    }
}

impl Feature for Smooth {
    fn about(&self) -> About {
        About {
            summary: "The mean of an annotation over the residues around.",
            formula: "mean of x_j over j != i with d(i, j) < R between C-alphas of the model, or \
                      sum of x_j / d over sum of 1 / d; residues without x are left out",
            source: "",
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("smooth.channels", SettingField::Texts(&mut self.channels)),
            (
                "smooth.radius",
                SettingField::Length(&mut self.radius, Cutoff::MAX_ANGSTROM),
            ),
            ("smooth.weighted", SettingField::Flag(&mut self.weighted)),
            ("smooth.chains", own_chain(&mut self.own_chain)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let mean = if self.weighted {
            "Mean, weighted by 1/d,"
        } else {
            "Mean"
        };
        let scope = neighbours_of(self.own_chain);
        let column = |channel: &String| {
            let radius = self.radius.angstrom();
            let about = format!(
                "{mean} of {channel} over the other C-alphas of the {scope} within {radius} A."
            );
            // B factors and pLDDT are not negative; the values of other annotations have no bounds.
            let (unit, idle_when, null) = match channel.as_str() {
                B_CA => ("A^2", "no structure with B factors was read", -1.0),
                PLDDT => ("", "no predicted model was read", -1.0),
                _ => ("", "no structure with the annotation was read", 0.0),
            };
            ColumnDecl::residue(format!("smooth_{channel}"), ColumnKind::Real, unit, about)
                .idle_when(idle_when)
                .null_number(null)
                .rotation(Tolerance::absolute(0.01).but_for(5))
        };
        self.channels.iter().map(column).collect()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        for channel in &self.channels {
            let (ca, cells) = (r.ca(), r.cells(CellKind::Ca));
            let values = r.channel(channel);
            let means = r.results::<f32>(TableName::Residues, &format!("smooth_{channel}"), 1);
            let args = smooth::Args {
                header: r.header(),
                structures: r.structures(),
                residues: r.residues(),
                atoms: ca,
                cells,
                values,
                means: means.buffer,
                radius: self.radius.milli_angstrom(),
                weighted: u32::from(self.weighted),
                own_chain: u32::from(self.own_chain),
            };
            r.launch_warps(RESIDUES, args);
            r.column(means, 0);
        }
    }

    fn check(&self) -> Result<()> {
        let is_name = |name: &&String| {
            let is_allowed = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
            !name.is_empty() && name.bytes().all(is_allowed)
        };
        match self.channels.iter().find(|name| !is_name(name)) {
            Some(name) => {
                let text = format!("smooth.channels: {name:?} cannot be part of a column's name");
                Err(Error::config(text).fix("use letters, digits and _"))
            }
            None => Ok(()),
        }
    }
}

/// The fixed-point representation of a weight of 1. Weights, and values by [`scale_of`], have
/// [`WEIGHT_BITS`] bits, so that those of 2^20 contacts sum up in 64 bits.
const WEIGHT_SCALE: f64 = (1u64 << WEIGHT_BITS) as f64;

/// Computes the mean of a channel over the C-alphas within the radius.
impl Twin for smooth::Views<'_> {
    fn run(self) {
        let Self {
            header,
            structures,
            residues,
            atoms,
            cells,
            values,
            means,
            radius,
            weighted,
            own_chain,
        } = self;
        let structures = StructureSpan::live(header, structures);
        let weighted = weighted != 0;

        for_row_ranges(&mut means[..header[RESIDUES] as usize], 1, |rows, means| {
            dispatch!(simd::level(), simd => {
                let mut near = Vec::new();
                for (residue, mean) in rows.zip(means) {
                    if !atoms[residue].is_present() {
                        *mean = f32::NAN;
                        continue;
                    }
                    let structure = residues[residue].structure as usize;
                    let grid = &structures[structure].residue_grid;
                    let runs = cells.runs(grid, atoms[residue].position.into(), radius as i32);
                    near.clear();
                    let within = (radius, own_chain != 0);
                    for_each_near(simd, &cells, runs, &atoms[residue], within, |source, d2| {
                        if source != residue && !values[source].is_nan() {
                            near.push((values[source], d2));
                        }
                    });
                    *mean = mean_of(&near, weighted);
                }
            });
        });
    }
}

/// The power of two that makes a value less than 2^[`WEIGHT_BITS`].
fn scale_of(value: f32) -> f64 {
    // Every f32 other than 0 is a normal f64. Its exponent is in these bits, where 1023 means 2^0.
    let exponent = f64::from(value).to_bits() >> 52;
    match exponent {
        0 => 1.0,
        // 2^(WEIGHT_BITS - 1 - e) for a value from 2^e to below 2^(e + 1).
        _ => f64::from_bits((1023 + WEIGHT_BITS as u64 - 1 + 1023 - exponent) << 52),
    }
}

/// The mean of values, each with its squared distance. They are added in fixed point, with a scale
/// that depends on the largest.
fn mean_of(near: &[(f32, u32)], weighted: bool) -> f32 {
    let magnitudes = near.iter().map(|(value, _)| value.abs());
    let mut sums = WeightedSums::new(scale_of(magnitudes.fold(0.0, f32::max)), weighted);
    near.iter().for_each(|&(value, d2)| sums.add(value, d2));
    sums.mean()
}

/// Calls `visit` with the residue and the squared distance of every C-alpha within the radius, or of
/// every one of the atom's chain.
#[inline(always)]
fn for_each_near<S: Simd>(
    simd: S,
    cells: &Cells<'_>,
    runs: impl Iterator<Item = Range<usize>>,
    atom: &Atom,
    (radius, own_chain): (u32, bool),
    mut visit: impl FnMut(usize, u32),
) {
    let point = atom.position;
    for (first, lanes) in vectors_of(simd, runs) {
        let dx = load(simd, cells.x, first, lanes) - point.x;
        let dy = load(simd, cells.y, first, lanes) - point.y;
        let dz = load(simd, cells.z, first, lanes) - point.z;
        let d2 = squared::<S>(dx, dy, dz, radius as i32);
        let mut within = d2.simd_lt(radius * radius) & first_lanes(simd, lanes);
        if own_chain {
            within &= in_same_chain(simd, cells.tag, first, lanes, atom.tag);
        }
        for lane in lanes_of(within.to_bitmask()) {
            visit(cells.source[first + lane] as usize, d2[lane]);
        }
    }
}

/// Sums in fixed point, which do not depend on the order.
struct WeightedSums {
    scale: f64,
    weighted: bool,
    sum: i64,
    weights: i64,
}

impl WeightedSums {
    /// Sums of nothing, in units of 1 over `scale`.
    fn new(scale: f64, weighted: bool) -> Self {
        WeightedSums {
            scale,
            weighted,
            sum: 0,
            weights: 0,
        }
    }

    /// Adds a value at squared distance `d2`, weighted by the inverse distance if weights are on.
    /// Sums are integers, so that their order makes no difference; a weighted value at distance 0
    /// is left out.
    #[inline(always)]
    fn add(&mut self, value: f32, d2: u32) {
        let value = f64::from(value) * self.scale;
        if !self.weighted {
            self.sum += value.round_ties_even() as i64;
            self.weights += 1;
        } else if d2 > 0 {
            let weight = 1.0 / f64::from(d2).sqrt();
            self.sum += (value * weight).round_ties_even() as i64;
            self.weights += (weight * WEIGHT_SCALE).round_ties_even() as i64;
        }
    }

    /// The mean of the values; NaN without any.
    fn mean(&self) -> f32 {
        let weights = self.weights as f64;
        let divisor = if self.weighted {
            weights / WEIGHT_SCALE
        } else {
            weights
        };
        match self.weights {
            0 => f32::NAN,
            _ => (self.sum as f64 / self.scale / divisor) as f32,
        }
    }
}
