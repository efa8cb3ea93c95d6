//! Solvent-accessible surface areas.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::around_residues;
use super::recording::Recording;
use super::summary;
use crate::error::{Error, Result};
use crate::record::Kernel;
use std::ops::RangeInclusive;

/// Test points that an atom may have.
const POINTS: RangeInclusive<i64> = 1..=1024;
/// The largest probe: neighbours are then still within reach of exact distances.
const PROBE_MAX_MILLI: u32 = 16_000;

/// Settings of solvent-accessible areas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasa {
    /// Test points of an atom, 1 to 1024.
    pub points: u32,
    /// Radius of the probe, at most 16 A.
    pub probe: Cutoff,
}

impl Default for Sasa {
    /// 100 points and a probe of 1.4 A.
    fn default() -> Self {
        Sasa {
            points: 100,
            probe: Cutoff::of_milli_angstrom(1_400),
        }
    }
}

/// The kernel of the areas, and of what other chains bury.
pub(super) fn kernel_of(with_delta: bool) -> Kernel {
    let name = if with_delta { "sasa_delta" } else { "sasa" };
    let kernel = around_residues(name).block(32).writes::<f32>("areas");
    let (kernel, twin): (Kernel, crate::record::Twin) = match with_delta {
        true => (kernel.writes::<f32>("deltas"), cpu::sasa_delta),
        false => (kernel, cpu::sasa),
    };
    kernel
        .scalar::<u32>("first")
        .scalar::<u32>("points")
        .scalar::<u32>("probe")
        .twin(twin)
}

impl Feature for Sasa {
    fn about(&self) -> About {
        About {
            summary: "How much of the residue's surface a probe the size of water can touch.",
            formula: "sum over the residue's atoms of 4 pi R^2 n / N, R = radius + probe, n of N \
                      golden-spiral points at R from the atom that lie in no other atom's sphere \
                      R of the model; ProtOr radii; sasa_total = sum over residues",
            source: "Shrake and Rupley 1973; points as FreeSASA's, Mitternacht 2016",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![
            (
                "sasa.points",
                Setting::Integer(i64::from(self.points), POINTS),
            ),
            ("sasa.probe", Setting::Length(self.probe)),
        ]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("sasa.points", Setting::Integer(points, _)) => {
                self.points = u32::try_from(*points).map_err(|_| unknown(key))?;
            }
            ("sasa.probe", Setting::Length(probe)) => self.probe = *probe,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "A^2", about.to_owned())
        };
        let total = |table, of: &str| {
            let about = format!("Sum of sasa over the {of}'s residues.");
            ColumnDecl::residue("sasa_total", ColumnKind::Real, "A^2", about).of(table)
        };
        vec![
            column(
                "sasa",
                "Solvent-accessible area of the residue in the model.",
            ),
            column(
                "sasa_side",
                "Of it, that of all atoms but N, CA, C, O and OXT.",
            ),
            column("sasa_polar", "Of it, that of N, O, S, Se and P."),
            total(TableName::Chains, "chain"),
            total(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut Recording<'_>) {
        let areas = r.areas();
        (0..3).for_each(|at| r.column(areas, at));
        summary::sum(r, "sasa", areas);
    }

    fn check(&self) -> Result<()> {
        if self.probe.milli_angstrom() > PROBE_MAX_MILLI {
            let (probe, max) = (self.probe.angstrom(), PROBE_MAX_MILLI / 1000);
            return Err(Error::config(format!(
                "sasa.probe of {probe} A is more than {max} A"
            )));
        }
        Ok(())
    }
}
