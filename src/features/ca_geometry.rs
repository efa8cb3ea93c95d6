//! The shape of the C-alpha trace.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::angles::{Angle, difference};
use super::cpu::split::for_row_ranges;
use super::feature::{About, Feature};
use super::kernels::{Twin, ca_geometry};
use super::layout::{Atom, RESIDUES, ResidueSpan};
use super::recorder::FeatureRecorder;

/// Angles of the C-alpha trace; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaGeometry {}

impl Feature for CaGeometry {
    fn about(&self) -> About {
        About {
            summary: "Dihedral and angle of the C-alpha trace.",
            formula: "ca_dihedral of C-alphas i-1, i, i+1, i+2, in (-180, 180], positive \
                      clockwise; ca_angle of i-1, i, i+1; null across a break",
            source: "Levitt 1976, J Mol Biol 104:59",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, about): (&str, &str)| {
            ColumnDecl::residue(name, ColumnKind::Real, "degrees", about)
                .reference(Tolerance::absolute(0.01))
                // Rounding moves an atom by up to 0.0009 A, which turns a step of 3.8 A by 0.01
                // degrees, and a dihedral by more where three atoms are nearly in line.
                .rotation(Tolerance::absolute(0.1))
        };
        [
            (
                "ca_dihedral",
                "Dihedral of the C-alphas i-1, i, i+1 and i+2, in (-180, 180].",
            ),
            ("ca_angle", "Angle at the C-alpha, between i-1 and i+1."),
        ]
        .map(column)
        .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let angles = r.results::<f32>(TableName::Residues, "ca_geometry", 2);
        let args = ca_geometry::Args {
            header: r.header(),
            residues: r.residues(),
            ca: r.ca(),
            angles: angles.buffer,
        };
        r.launch_threads(RESIDUES, args);
        (0..2).for_each(|i| r.column(angles, i));
    }
}

/// For each residue the dihedral and the angle of the C-alpha trace.
impl Twin for ca_geometry::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            ca,
            angles,
        } = self;
        let count = header[RESIDUES] as usize;
        let residues: &[ResidueSpan] = &residues[..count];
        let ca: &[Atom] = &ca[..count];

        let linked = |residue: usize| ResidueSpan::is_linked(residues, residue);
        let position = |residue: usize| ca[residue].is_present().then_some(ca[residue].position);
        let geometry_of = |residue: usize| -> Option<(Option<f32>, f32)> {
            if !linked(residue) || !linked(residue + 1) {
                return None;
            }
            let (before, here, after) = (
                position(residue - 1)?,
                position(residue)?,
                position(residue + 1)?,
            );
            let angle = Angle::between(difference(before, here), difference(after, here));
            let last = linked(residue + 2).then(|| position(residue + 2)).flatten();
            let dihedral = last.map(|last| Angle::dihedral([before, here, after, last]).degrees());
            Some((dihedral, angle.degrees()))
        };
        for_row_ranges(&mut angles[..count * 2], 2, |rows, angles| {
            for (residue, angles) in rows.zip(angles.chunks_exact_mut(2)) {
                let (dihedral, angle) = geometry_of(residue).unwrap_or((None, f32::NAN));
                angles.copy_from_slice(&[dihedral.unwrap_or(f32::NAN), angle]);
            }
        });
    }
}
