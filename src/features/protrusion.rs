//! Protrusion.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::around_residues;
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::error::Result;
use crate::record::Kernel;

/// The mean volume of an atom in proteins, in A^3.
const ATOM_VOLUME: f64 = 20.1;

/// Settings of protrusion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protrusion {
    /// Radius of the sphere around each atom.
    pub radius: Cutoff,
}

impl Default for Protrusion {
    /// 10 A.
    fn default() -> Self {
        Protrusion {
            radius: Cutoff::of_angstrom(10),
        }
    }
}

pub(super) fn protrusion() -> Kernel {
    around_residues("protrusion")
        .writes::<f32>("cx")
        .scalar::<u32>("radius")
        .scalar::<f64>("sphere_volume")
        .scalar::<f64>("atom_volume")
        .twin(cpu::protrusion)
}

impl Feature for Protrusion {
    fn about(&self) -> About {
        About {
            summary: "How little of a sphere around each atom other atoms fill.",
            formula: "cx = (V - n V_a) / (n V_a), V the volume of the sphere, n the heavy atoms \
                      of the model in it, itself included, V_a = 20.1 A^3",
            source: "Pintar et al. 2002, Bioinformatics 18:980",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("protrusion.radius", Setting::Length(self.radius))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("protrusion.radius", Setting::Length(radius)) => self.radius = *radius,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, which): (&str, &str)| {
            let radius = self.radius.angstrom();
            let about = format!(
                "{which} over the residue's heavy atoms of the free over the filled volume \
                 within {radius} A (Pintar et al. 2002)."
            );
            ColumnDecl::residue(name, ColumnKind::Real, "", about)
        };
        [("cx_mean", "Mean"), ("cx_max", "Maximum")]
            .map(column)
            .to_vec()
    }

    fn record(&self, r: &mut Recording<'_>) {
        let cx = r.results::<f32>(TableName::Residues, "cx", 2);
        let (structures, residues, atoms) = (r.structures(), r.residues(), r.atoms());
        let sphere_volume = 4.0 / 3.0 * std::f64::consts::PI * self.radius.angstrom().powi(3);
        let args = args![r.header(), structures, residues, atoms; r.atom_cells();
            cx, self.radius.milli_angstrom(), sphere_volume, ATOM_VOLUME];
        r.launch_warps(protrusion(), RESIDUES, &args);
        r.column(cx, 0);
        r.column(cx, 1);
    }
}
