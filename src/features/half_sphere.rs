//! Half-sphere exposure.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::kernel;
use super::layout::{TILE, TILES};
use super::recording::Recording;
use crate::error::Result;
use crate::record::Kernel;

/// Settings of half-sphere exposure from C-alphas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfSphereA {
    /// Radius of the half spheres.
    pub radius: Cutoff,
}

impl Default for HalfSphereA {
    /// 12 A.
    fn default() -> Self {
        HalfSphereA {
            radius: Cutoff::of_angstrom(12),
        }
    }
}

fn half_sphere_exposure() -> Kernel {
    kernel("half_sphere_exposure")
        .block(TILE)
        .reads::<u32>("header")
        .reads::<u32>("tiles")
        .reads::<u32>("residues")
        .reads::<i32>("atoms")
        .writes::<i32>("counts")
        .scalar::<u32>("cutoff2")
        .twin(cpu::half_sphere_exposure)
}

impl Feature for HalfSphereA {
    fn about(&self) -> About {
        About {
            summary: "C-alphas near, on either side of the plane that bisects the directions \
                      from the neighbouring C-alphas.",
            formula: "up: d < R and d . (u + v) > 0, with u and v the unit vectors from CA(i-1) \
                      and CA(i+1) to CA(i); down: the others with d < R",
            source: "Hamelryck 2005, Proteins 59:38",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("hse_a.radius", Setting::Length(self.radius))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("hse_a.radius", Setting::Length(radius)) => self.radius = *radius,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, side): (&str, &str)| {
            let about = format!(
                "C-alphas closer than {} A on the {side} side of the plane normal to the \
                 bisector of the neighbouring C-alphas (Hamelryck 2005).",
                self.radius.angstrom()
            );
            ColumnDecl::residue(name, ColumnKind::Count, "", about)
        };
        [("hse_a_up", "side chain's"), ("hse_a_down", "other")]
            .map(column)
            .to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        let counts = r.results::<i32>(TableName::Residues, "hse_a", 2);
        let args = [
            r.header().into(),
            r.tiles().into(),
            r.residues().into(),
            r.ca().into(),
            counts.into(),
            self.radius.squared().into(),
        ];
        r.launch_blocks(half_sphere_exposure(), TILES, &args);
        r.column(counts, 0);
        r.column(counts, 1);
    }
}
