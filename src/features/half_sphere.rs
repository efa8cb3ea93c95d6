//! Half-sphere exposure.

use super::columns::{ColumnDecl, ColumnKind, TableName};
use super::config::Cutoff;
use super::cpu;
use super::feature::{About, Feature, Setting, unknown};
use super::kernels::{THREADS, around_residues, kernel};
use super::layout::RESIDUES;
use super::recording::{Recording, args};
use crate::error::Result;
use crate::record::{Buffer, Kernel};

/// Settings of half-sphere exposure from C-alphas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfSphereA {
    /// Radius of the half spheres.
    pub radius: Cutoff,
}

/// Settings of half-sphere exposure from C-betas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HalfSphereB {
    /// Radius of the half spheres.
    pub radius: Cutoff,
}

/// As published.
const RADIUS: Cutoff = Cutoff::of_angstrom(12);

impl Default for HalfSphereA {
    /// 12 A.
    fn default() -> Self {
        HalfSphereA { radius: RADIUS }
    }
}

impl Default for HalfSphereB {
    /// 12 A.
    fn default() -> Self {
        HalfSphereB { radius: RADIUS }
    }
}

pub(super) fn half_sphere_normal_a() -> Kernel {
    kernel("half_sphere_normal_a")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("structures")
        .reads::<u32>("residues")
        .reads::<i32>("atoms")
        .writes::<f64>("normals")
        .twin(cpu::half_sphere_normal_a)
}

pub(super) fn half_sphere_normal_b() -> Kernel {
    kernel("half_sphere_normal_b")
        .block(THREADS)
        .reads::<u32>("header")
        .reads::<u32>("residues")
        .reads::<i32>("backbones")
        .reads::<i32>("betas")
        .writes::<f64>("normals")
        .twin(cpu::half_sphere_normal_b)
}

pub(super) fn half_sphere_exposure() -> Kernel {
    around_residues("half_sphere_exposure")
        .reads::<f64>("normals")
        .writes::<i32>("counts")
        .scalar::<u32>("radius")
        .twin(cpu::half_sphere_exposure)
}

/// Records the counts on either side of the planes, two columns.
fn record_counts(r: &mut Recording<'_>, name: &str, normals: Buffer<f64>, radius: Cutoff) {
    let counts = r.results::<i32>(TableName::Residues, name, 2);
    let (ca, cells) = (r.ca(), r.ca_cells());
    let args = args![r.header(), r.structures(), r.residues(), ca; cells;
        normals, counts, radius.milli_angstrom()];
    r.launch_warps(half_sphere_exposure(), RESIDUES, &args);
    r.column(counts, 0);
    r.column(counts, 1);
}

fn columns(name: &str, radius: Cutoff, plane: &str) -> Vec<ColumnDecl> {
    let column = |(side, what): (&str, &str)| {
        let about = format!(
            "C-alphas closer than {} A on the {what} side of the plane normal to {plane} \
             (Hamelryck 2005).",
            radius.angstrom()
        );
        ColumnDecl::residue(format!("{name}_{side}"), ColumnKind::Count, "", about)
    };
    [("up", "side chain's"), ("down", "other")]
        .map(column)
        .to_vec()
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
        columns(
            "hse_a",
            self.radius,
            "the bisector of the neighbouring C-alphas",
        )
    }

    fn record(&self, r: &mut Recording<'_>) {
        let normals = r.device::<f64>("hse_a_normals", RESIDUES, 3);
        let args = args![r.header(), r.structures(), r.residues(), r.ca(), normals];
        r.launch_threads(half_sphere_normal_a(), RESIDUES, &args);
        record_counts(r, "hse_a", normals, self.radius);
    }
}

impl Feature for HalfSphereB {
    fn about(&self) -> About {
        About {
            summary: "C-alphas near, on either side of the plane normal to the direction from \
                      C-alpha to C-beta.",
            formula: "up: d < R and d . (CB - CA) > 0; down: the others with d < R; for glycine \
                      N turned by -120 degrees about the axis from CA to C stands for CB; null \
                      for others without CB",
            source: "Hamelryck 2005, Proteins 59:38",
            needs: &[],
        }
    }

    fn settings(&self) -> Vec<(&'static str, Setting)> {
        vec![("hse_b.radius", Setting::Length(self.radius))]
    }

    fn set(&mut self, key: &str, value: &Setting) -> Result<()> {
        match (key, value) {
            ("hse_b.radius", Setting::Length(radius)) => self.radius = *radius,
            _ => return Err(unknown(key)),
        }
        Ok(())
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        columns("hse_b", self.radius, "the direction from C-alpha to C-beta")
    }

    fn record(&self, r: &mut Recording<'_>) {
        let normals = r.device::<f64>("hse_b_normals", RESIDUES, 3);
        let args = args![r.header(), r.residues(), r.backbone(), r.cb(), normals];
        r.launch_threads(half_sphere_normal_b(), RESIDUES, &args);
        record_counts(r, "hse_b", normals, self.radius);
    }
}
