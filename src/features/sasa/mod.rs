//! Solvent-accessible surface areas.

mod atoms;
mod bound;
mod exposed;
mod interfaces;
mod lee_richards;
mod neighbours;
mod others;
mod shrake_rupley;
mod sphere;

use super::cell_kind::CellKind;
use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::simd;
use super::cpu::split::for_row_ranges;
use super::cutoff::Cutoff;
use super::feature::{About, Feature, SettingField, choice, own_chain};
use super::kernels::{
    Twin, sasa, sasa_delta, sasa_delta_slices, sasa_own_chain, sasa_own_chain_slices, sasa_slices,
};
use super::layout::{RADIUS_MAX, RESIDUES};
use super::recorder::{FeatureRecorder, LaunchIndex};
use super::results::KernelResults;
use super::summary;
use crate::error::{Error, Result};
use crate::structure::Radii;
pub use atoms::Atoms;
pub(super) use atoms::{bound_atom_area, bound_atom_areas};
pub(super) use bound::{bound_areas, glycan_deltas, ligand_areas};
pub(super) use exposed::exposed_bits;
use fearless_simd::dispatch;
pub(super) use interfaces::{PartnerBuffers, partner_areas};
use lee_richards::{PARTS, Slices};
use neighbours::Neighbours;
use others::{NoOthers, OneChain, OtherChains, Others};
pub(super) use shrake_rupley::angstrom2_per_point;
use shrake_rupley::{AreaInputs, Areas, Sphere, Surface, areas_of};
use std::ops::RangeInclusive;

/// The allowed numbers of test points per atom.
const POINTS: RangeInclusive<i64> = 1..=1024;
/// The allowed numbers of slices per atom.
const SLICES: RangeInclusive<i64> = 1..=128;
/// The largest radius of the probe: two atoms and two probes are within `REACH`, 37 A, below which
/// distances of neighbours are exact.
const PROBE_MAX_MILLI: u32 = 16_000;

/// One test point of 256 on one atom.
pub(super) const AREA_TOLERANCE: Tolerance = Tolerance::absolute(0.6);
/// Twenty test points of the smallest atom.
pub(super) const AREA_ROTATION: Tolerance = Tolerance::absolute(8.0).but_for(5);

/// How areas are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SasaAlgorithm {
    /// Test points on the spheres of atoms: Shrake and Rupley 1973.
    #[default]
    ShrakeRupley,
    /// Circles, of which other atoms bury arcs: Lee and Richards 1971.
    LeeRichards,
}

choice!(SasaAlgorithm: ShrakeRupley "shrake-rupley", LeeRichards "lee-richards");

/// Settings of solvent-accessible areas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sasa {
    /// How areas are computed. Depths are always those of test points.
    pub algorithm: SasaAlgorithm,
    /// Number of test points per atom, 1 to 1024.
    pub points: u32,
    /// Number of slices per atom by Lee and Richards, 1 to 128.
    pub slices: u32,
    /// Radius of the probe, at most 16 A.
    pub probe: Cutoff,
    /// Whether areas are those in the chain alone, and not in the model.
    pub own_chain: bool,
    /// The radii of atoms, and which of them are polar: those that the structures were read with.
    pub radii: Radii,
}

impl Default for Sasa {
    /// 256 points and a probe of 1.4 A, in the model; 20 slices by Lee and Richards.
    fn default() -> Self {
        Sasa {
            algorithm: SasaAlgorithm::default(),
            points: 256,
            slices: 20,
            probe: Cutoff::of_milli_angstrom(1_400),
            own_chain: false,
            radii: Radii::default(),
        }
    }
}

/// What the kernels count as part of the probe, and not of atoms, in 0.001 A: by how much the largest
/// radius exceeds [`RADIUS_MAX`], up to which they search for neighbours. They only add the radii of
/// atoms and probes.
pub(super) fn radius_excess(radii: Radii) -> u32 {
    radii.max_milli_angstrom().saturating_sub(RADIUS_MAX)
}

impl Sasa {
    /// The number of parts of a sphere that areas count.
    pub(super) fn parts(&self) -> u32 {
        match self.algorithm {
            SasaAlgorithm::ShrakeRupley => self.points,
            SasaAlgorithm::LeeRichards => PARTS * self.slices,
        }
    }

    /// The radius of the probe for kernels, in 0.001 A: with [`radius_excess`].
    pub(super) fn kernel_probe(&self) -> u32 {
        self.probe.milli_angstrom() + radius_excess(self.radii)
    }
}

/// Evaluates `$launch` with the arguments, as `$args`, of the kernel of areas of the settings' algorithm:
/// `$points` with test points, or `$slices`. Both have the arguments that are given.
macro_rules! with_area_args {
    ($r:ident, [$points:ident, $slices:ident] { $($fields:tt)* }, |$args:ident| $launch:expr) => {{
        let settings: &Sasa = $r.settings();
        let probe = settings.kernel_probe();
        match settings.algorithm {
            SasaAlgorithm::ShrakeRupley => {
                let (first, points) = (test_points($r) as u32, settings.points);
                let $args = $points::Args { $($fields)*, first, points, probe };
                $launch
            }
            SasaAlgorithm::LeeRichards => {
                let $args = $slices::Args { $($fields)*, slices: settings.slices, probe };
                $launch
            }
        }
    }};
}
use with_area_args;

/// Implements the twins of the kernels of both algorithms, from the views and the surface of atoms.
macro_rules! area_twins {
    ([$points:ident, $slices:ident], |$views:ident, $surface:ident| $run:expr) => {
        impl Twin for $points::Views<'_> {
            fn run(self) {
                let $surface = Sphere::in_header(self.header, self.first, self.points, self.probe);
                let $views = self;
                $run
            }
        }

        impl Twin for $slices::Views<'_> {
            fn run(self) {
                let $surface = Slices::new(self.slices, self.probe);
                let $views = self;
                $run
            }
        }
    };
}
use area_twins;

impl Feature for Sasa {
    fn about(&self) -> About {
        About {
            summary: "How much of the residue's surface a probe the size of water can touch.",
            formula: match self.algorithm {
                SasaAlgorithm::ShrakeRupley => {
                    "sum over the residue's atoms of 4 pi R^2 n / N, R = radius + probe, n of N \
                     golden-spiral points at R from the atom that lie in no other atom's sphere \
                     R of the model; radii of the set sasa.radii; sasa_total = sum over residues"
                }
                SasaAlgorithm::LeeRichards => {
                    "sum over the residue's atoms of 4 pi R^2 / N times the sum, over N circles \
                     at the heights R (2 s + 1 - N) / N along z, s < N, on the atom's sphere, of the part of the \
                     circle that lies in no other atom's sphere R of the model, R = radius + \
                     probe; radii of the set sasa.radii; sasa_total = sum over residues"
                }
            },
            source: source_of(self),
            needs: &[],
        }
    }

    fn settings(&mut self) -> Vec<(&'static str, SettingField<'_>)> {
        vec![
            ("sasa.algorithm", SettingField::Choice(&mut self.algorithm)),
            (
                "sasa.points",
                SettingField::Integer(&mut self.points, POINTS),
            ),
            (
                "sasa.slices",
                SettingField::Integer(&mut self.slices, SLICES),
            ),
            (
                "sasa.probe",
                SettingField::Length(&mut self.probe, f64::from(PROBE_MAX_MILLI) / 1000.0),
            ),
            ("sasa.chains", own_chain(&mut self.own_chain)),
            ("sasa.radii", SettingField::Radii(&mut self.radii)),
        ]
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let about_sasa = if self.own_chain {
            "Solvent-accessible area of the residue in its chain alone."
        } else {
            "Solvent-accessible area of the residue in the model."
        };
        let column = |name: &str, about: &str| {
            ColumnDecl::residue(name, ColumnKind::Real, "A^2", about.to_owned())
                .reference(AREA_TOLERANCE)
                .rotation(AREA_ROTATION)
        };
        // Points that rounding decides otherwise have 0.6 A^2 each, of thousands. A rotation
        // changes sums by what finite numbers of points do (docs/METHODS.md), more in small
        // structures.
        let total = |table, part: &str| {
            let about = format!("Sum of sasa over the {part}'s residues.");
            ColumnDecl::residue("sasa_total", ColumnKind::Real, "A^2", about)
                .in_table(table)
                .reference(Tolerance::relative(1e-3))
                .rotation(Tolerance {
                    absolute: 20.0,
                    ..Tolerance::relative(0.02)
                })
        };
        let about_polar = match built_in_name(self.radii) {
            Some("protor") => {
                "Of it, that of N, O, S, Se and P: sulphur counts as polar, as in FreeSASA's classes."
            }
            Some("bondi") => "Of it, that of N, O, S, Se and P.",
            _ => "Of it, that of the atoms that are polar in the set of radii.",
        };
        vec![
            column("sasa", about_sasa),
            column(
                "sasa_side",
                "Of it, that of all atoms but N, CA, C, O and OXT.",
            ),
            column("sasa_polar", about_polar),
            total(TableName::Chains, "chain"),
            total(TableName::Structures, "structure"),
        ]
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let areas = areas(r);
        (0..3).for_each(|i| r.column(areas, i));
        summary::sum(r, "sasa", areas);
    }

    fn check(&self) -> Result<()> {
        if self.kernel_probe() > PROBE_MAX_MILLI {
            let max = f64::from(PROBE_MAX_MILLI - radius_excess(self.radii)) / 1000.0;
            let (probe, radii) = (self.probe.angstrom(), self.radii.name());
            let message = format!(
                "sasa.probe of {probe} A is more than {max} A, the most with sasa.radii = {radii:?}"
            );
            return Err(Error::config(message).fix("give a smaller probe"));
        }
        Ok(())
    }
}

/// The name of a set that is not of a file.
fn built_in_name(radii: Radii) -> Option<&'static str> {
    radii.file_text().is_none().then_some(radii.name())
}

/// The publications of areas with a set of radii.
fn source_of(settings: &Sasa) -> &'static str {
    macro_rules! source {
        ($radii:literal) => {
            match settings.algorithm {
                SasaAlgorithm::ShrakeRupley => concat!(
                    "Shrake and Rupley 1973, J Mol Biol 79:351; points as FreeSASA's, Mitternacht \
                     2016, F1000Research 5:189; radii: ",
                    $radii
                ),
                SasaAlgorithm::LeeRichards => {
                    concat!("Lee and Richards 1971, J Mol Biol 55:379; radii: ", $radii)
                }
            }
        };
    }
    match built_in_name(settings.radii) {
        Some("protor") => source!("Tsai et al. 1999, J Mol Biol 290:253"),
        Some("naccess") => source!("NACCESS, Hubbard and Thornton 1993, University College London"),
        Some("oons") => source!("Ooi et al. 1987, PNAS 84:3086"),
        Some("bondi") => source!(
            "Bondi 1964, J Phys Chem 68:441, and Mantina et al. 2009, J Phys Chem A 113:5806"
        ),
        _ => source!("of a file"),
    }
}

/// The buffers of areas, which features share.
#[derive(Clone, Copy)]
struct SharedAreas {
    model: KernelResults<f32>,
    delta: Option<KernelResults<f32>>,
    launch: LaunchIndex,
}

/// Areas in the model, or in the chain alone if the settings say so, `[residues, 3]` in A^2: of all
/// atoms, of the side chain and of the polar atoms; NaN for a residue without atoms. They stay on
/// the device unless the columns of [`Sasa`] were requested.
pub(super) fn areas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    shared_areas(r).model
}

/// The area that other chains bury, `[residues]` in A^2: the area in the residue's chain alone less
/// the area in the model; NaN for a residue without atoms. Records the launch that computes it at
/// the first call.
pub(super) fn area_deltas(r: &mut FeatureRecorder<'_>) -> KernelResults<f32> {
    let areas = shared_areas(r);
    if let Some(delta) = areas.delta {
        return delta;
    }
    let delta = r.results(TableName::Residues, "area_deltas", 1);
    let settings: &Sasa = r.settings();
    let in_model = if settings.own_chain {
        r.device("areas_in_model", RESIDUES, 3)
    } else {
        areas.model.buffer
    };
    let own_chain = settings.own_chain;
    with_area_args!(r, [sasa_delta, sasa_delta_slices] {
        header: r.header(),
        structures: r.structures(),
        residues: r.residues(),
        atoms: r.atoms(),
        cells: r.cells(CellKind::Atoms),
        areas: in_model,
        deltas: delta.buffer
    }, |args| {
        if own_chain {
            r.launch_warps(RESIDUES, args);
        } else {
            // One launch computes both. It replaces the launch that computes only the areas.
            r.relaunch_warps(areas.launch, RESIDUES, args);
        }
    });
    r.share(SharedAreas {
        delta: Some(delta),
        ..areas
    });
    delta
}

/// The areas of residues in the model. Records the launch that computes them at the first call;
/// other features use the same.
fn shared_areas(r: &mut FeatureRecorder<'_>) -> SharedAreas {
    if let Some(areas) = r.shared() {
        return areas;
    }
    let settings: &Sasa = r.settings();
    let model = if r.is_requested::<Sasa>() {
        r.results(TableName::Residues, "areas", 3)
    } else {
        r.kept_results("areas", 3)
    };
    // Records the launches for the cells first.
    let cells = r.cells(CellKind::Atoms);
    let (header, structures, residues) = (r.header(), r.structures(), r.residues());
    let (atoms, areas) = (r.atoms(), model.buffer);
    let launch = if settings.own_chain {
        with_area_args!(r, [sasa_own_chain, sasa_own_chain_slices] {
            header, structures, residues, atoms, cells, areas
        }, |args| r.launch_warps(RESIDUES, args))
    } else {
        with_area_args!(r, [sasa, sasa_slices] {
            header, structures, residues, atoms, cells, areas
        }, |args| r.launch_warps(RESIDUES, args))
    };
    r.share(SharedAreas {
        model,
        delta: None,
        launch,
    })
}

/// The index of the test points in the header, which features share.
#[derive(Clone, Copy)]
struct TestPoints(usize);

/// The index of the test points in the header: x of all points, then y, then z. Adds them to the
/// header at the first call.
fn test_points(r: &mut FeatureRecorder<'_>) -> usize {
    if let Some(TestPoints(first)) = r.shared() {
        return first;
    }
    let settings: &Sasa = r.settings();
    let points = sphere::golden_spiral(settings.points);
    let axes = (0..3).flat_map(|axis| points.iter().map(move |point| point[axis]));
    let first = r.constants("sasa_point", axes);
    r.share(TestPoints(first)).0
}

// Computes the areas of residues in the model.
area_twins!([sasa, sasa_slices], |views, surface| {
    let inputs = AreaInputs {
        structures: views.structures,
        residues: views.residues,
        atoms: views.atoms,
        cells: views.cells,
    };
    model_areas(views.header, views.areas, &inputs, &surface, |_| NoOthers);
});

// Computes the areas of residues in their chains alone.
area_twins!([sasa_own_chain, sasa_own_chain_slices], |views, surface| {
    let inputs = AreaInputs {
        structures: views.structures,
        residues: views.residues,
        atoms: views.atoms,
        cells: views.cells,
    };
    model_areas(views.header, views.areas, &inputs, &surface, |residue| {
        let chain = inputs.residues[residue].chain;
        OneChain {
            own_chain: chain,
            other: chain,
        }
    });
});

/// Computes the areas of residues, [residues, 3], in a model of which `others` leaves atoms out.
fn model_areas<O: Others>(
    header: &[u32],
    areas: &mut [f32],
    inputs: &AreaInputs<'_>,
    surface: &(impl Surface + Sync),
    others: impl Fn(usize) -> O + Sync,
) {
    let out: &mut [[f32; 3]] = bytemuck::cast_slice_mut(areas);
    let out = &mut out[..header[RESIDUES] as usize];
    for_row_ranges(out, 1, |rows, out| {
        let mut scratch = Neighbours::new();
        dispatch!(simd::level(), simd => {
            for (residue, out) in rows.zip(out) {
                *out = areas_of(simd, inputs, surface, residue, others(residue), &mut scratch).model;
            }
        });
    });
}

// Computes the areas of residues in the model, and the areas that other chains bury.
area_twins!([sasa_delta, sasa_delta_slices], |views, surface| {
    let inputs = AreaInputs {
        structures: views.structures,
        residues: views.residues,
        atoms: views.atoms,
        cells: views.cells,
    };
    let out: &mut [[f32; 3]] = bytemuck::cast_slice_mut(views.areas);
    let count = views.header[RESIDUES] as usize;
    let deltas = &mut views.deltas[..count];
    let mut rows: Vec<_> = out[..count].iter_mut().zip(deltas).collect();
    for_row_ranges(&mut rows, 1, |range, rows| {
        let mut scratch = Neighbours::new();
        dispatch!(simd::level(), simd => {
            for (residue, (out, out_delta)) in range.zip(rows) {
                let Areas { model, delta, .. } =
                    areas_of(simd, &inputs, &surface, residue, OtherChains, &mut scratch);
                (**out, **out_delta) = (model, delta);
            }
        });
    });
});
