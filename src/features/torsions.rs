//! Torsions of the backbone.

use super::columns::{ColumnDecl, ColumnKind, TableName, Tolerance};
use super::cpu::angles::Angle;
use super::cpu::split::for_row_ranges;
use super::feature::{About, Feature};
use super::kernels::{Twin, torsions};
use super::layout::{Backbone, Position, RESIDUES, ResidueSpan};
use super::recorder::FeatureRecorder;

/// Torsions of the backbone; they have no settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Torsions {}

impl Feature for Torsions {
    fn about(&self) -> About {
        About {
            summary: "Phi, psi and omega of the backbone.",
            formula: "dihedrals in (-180, 180], positive clockwise: phi of C(i-1), N, CA, C; psi \
                      of N, CA, C, N(i+1); omega of CA, C, N(i+1), CA(i+1); null across a break",
            source: "IUPAC-IUB 1970, Biochemistry 9:3471",
            needs: &[],
        }
    }

    fn columns(&self) -> Vec<ColumnDecl> {
        let column = |(name, atoms): (&str, &str)| {
            let about = format!("Dihedral of {atoms}, in (-180, 180].");
            ColumnDecl::residue(name, ColumnKind::Real, "degrees", about)
                .reference(Tolerance::absolute(0.01))
                // Rounding moves an atom by up to 0.0009 A, which turns a bond of 1.5 A by 0.03
                // degrees, and a dihedral about it by some times as much.
                .rotation(Tolerance::absolute(0.2))
        };
        [
            ("phi", "C(i-1), N, CA and C"),
            ("psi", "N, CA, C and N(i+1)"),
            ("omega", "CA, C, N(i+1) and CA(i+1)"),
        ]
        .map(column)
        .to_vec()
    }

    fn record(&self, r: &mut FeatureRecorder<'_>) {
        let angles = r.results::<f32>(TableName::Residues, "torsions", 3);
        let args = torsions::Args {
            header: r.header(),
            residues: r.residues(),
            backbone: r.backbone(),
            angles: angles.buffer,
        };
        r.launch_threads(RESIDUES, args);
        (0..3).for_each(|i| r.column(angles, i));
    }
}

/// Computes phi, psi and omega of the backbone.
impl Twin for torsions::Views<'_> {
    fn run(self) {
        let Self {
            header,
            residues,
            backbone,
            angles,
        } = self;
        let count = header[RESIDUES] as usize;
        let residues: &[ResidueSpan] = &residues[..count];
        let backbone: &[Backbone] = &backbone[..count];

        let dihedral = |points: [Position; 4]| {
            let all = points.iter().all(|point| point.is_present());
            all.then(|| Angle::dihedral(points).degrees())
        };
        let angles_of = |residue: usize| -> [f32; 3] {
            let here = &backbone[residue];
            let linked = |residue: usize| ResidueSpan::is_linked(residues, residue);
            let phi = linked(residue)
                .then(|| dihedral([backbone[residue - 1].c, here.n, here.ca, here.c]))
                .flatten();
            let (mut psi, mut omega) = (None, None);
            if linked(residue + 1) {
                let next = &backbone[residue + 1];
                psi = dihedral([here.n, here.ca, here.c, next.n]);
                omega = dihedral([here.ca, here.c, next.n, next.ca]);
            }
            [phi, psi, omega].map(|angle| angle.unwrap_or(f32::NAN))
        };
        for_row_ranges(&mut angles[..count * 3], 3, |rows, angles| {
            for (residue, angles) in rows.zip(angles.chunks_exact_mut(3)) {
                angles.copy_from_slice(&angles_of(residue));
            }
        });
    }
}
