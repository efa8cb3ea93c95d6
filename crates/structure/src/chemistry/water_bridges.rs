//! Bridges of water: two residues or ligands with a polar atom each near the oxygen of one water.
//! docs/METHODS.md ("Interactions") has the source of the distances and angles.

use super::roles::Roles;
use super::vectors::{cosine, difference};
use std::collections::HashMap;

/// Polar atoms are at least this far from the water, in 0.001 A: nearer ones clash or are bonded.
const NEAREST: i32 = 2_500;
/// The cosines of the angles at the water of its two partners: 71 and 140 degrees.
const COSINE_MAX: f64 = 0.325_568_154_457_156_64;
const COSINE_MIN: f64 = -0.766_044_443_118_978;
/// The cosine of the smallest angle at the hydrogen of a donor, 100 degrees.
const DONOR_COSINE_MAX: f64 = -0.173_648_177_666_930_33;
/// The distance of a hydrogen from its donor, in 0.001 A.
const HYDROGEN_BOND_LENGTH: f64 = 1_000.0;
/// The most polar atoms of a cell: atoms as near as bonded ones, 1.2 A, fill one of 5 A with 195. Further ones
/// are dropped, which bounds the time for hostile files.
const CELL_ATOMS_MAX: usize = 256;
/// A water with more partners is in a crowd of atoms in one place, and has no bridges. In 92 files
/// with water the most are 11 within 4.1 A, and 17 within 5 A.
const PARTNERS_MAX: usize = 24;

/// A bridge of water between two polar atoms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaterBridge {
    /// The index of the water in [`Structure::waters`](crate::Structure::waters).
    pub water: u32,
    /// Both atoms, by their indices among those of [`Chemistry`](crate::Chemistry); the first is the lower one.
    pub atoms: [u32; 2],
    /// Their distances from the oxygen of the water in A.
    pub distances: [f32; 2],
    /// The angle of both atoms at the oxygen in degrees.
    pub angle: f32,
}

impl WaterBridge {
    /// The largest distance of a water from the atoms of its bridge that may be asked for, in 0.001 A.
    pub const REACH_MAX: u32 = 5_000;
}

/// The atoms of a structure, `[atoms]` each.
pub(super) struct BridgeAtoms<'a> {
    pub(super) xyz: &'a [[i32; 3]],
    pub(super) roles: &'a [Roles],
    /// `u32::MAX` for an atom of none.
    pub(super) owners: &'a [u32],
}

/// The bridges of waters, sorted by their atoms and then by the water. `bonds` are the groups of pairs of each
/// donor or acceptor and the atoms that are bonded to it, `waters` the oxygens, and `reach` is the largest
/// distance from a water in 0.001 A, above 0; more than [`WaterBridge::REACH_MAX`] counts as that.
pub(super) fn find<'a>(
    atoms: &'a BridgeAtoms<'a>,
    bonds: impl Iterator<Item = &'a [[u32; 2]]>,
    waters: impl Iterator<Item = [i32; 3]>,
    reach: u32,
) -> Vec<WaterBridge> {
    let polar = PolarAtoms::new(atoms, bonds, reach.min(WaterBridge::REACH_MAX) as i32);
    let mut bridges = Vec::new();
    for (water, oxygen) in (0..).zip(waters) {
        let partners = polar.partners(oxygen);
        for (index, &one) in partners.iter().enumerate() {
            for &other in &partners[index + 1..] {
                bridges.extend(polar.bridge(water, oxygen, [one, other]));
            }
        }
    }
    bridges.sort_unstable_by_key(|bridge| (bridge.atoms, bridge.water));
    bridges
}

/// The donors and acceptors of a structure.
struct PolarAtoms<'a> {
    atoms: &'a BridgeAtoms<'a>,
    /// The mean of the atoms that are bonded to a donor, and whether it has several.
    bonded: HashMap<u32, ([f64; 3], bool)>,
    reach: i32,
    /// The atoms by cells whose edges are `reach`.
    cells: HashMap<[i32; 3], Vec<u32>>,
}

impl<'a> PolarAtoms<'a> {
    /// The donors and acceptors that have an owner. `bonds` are groups of pairs of one of them and an atom
    /// that it is bonded to. `reach` is in 0.001 A, above 0.
    fn new(
        atoms: &'a BridgeAtoms<'a>,
        bonds: impl Iterator<Item = &'a [[u32; 2]]>,
        reach: i32,
    ) -> Self {
        let xyz = atoms.xyz;
        let bonded = bonds.map(|bonds| {
            let mean = [0, 1, 2].map(|axis| {
                let sum = bonds
                    .iter()
                    .map(|bond| f64::from(xyz[bond[1] as usize][axis]));
                sum.sum::<f64>() / bonds.len() as f64
            });
            (bonds[0][0], (mean, bonds.len() > 1))
        });
        let mut polar = PolarAtoms {
            atoms,
            bonded: bonded.collect(),
            reach,
            cells: HashMap::new(),
        };
        for (atom, (roles, &owner)) in (0..).zip(atoms.roles.iter().zip(atoms.owners)) {
            let is_polar = roles.contains(Roles::DONOR) || roles.contains(Roles::ACCEPTOR);
            if is_polar && owner != u32::MAX {
                let cell = polar
                    .cells
                    .entry(polar.cell_of(xyz[atom as usize]))
                    .or_default();
                if cell.len() < CELL_ATOMS_MAX {
                    cell.push(atom);
                }
            }
        }
        polar
    }

    fn cell_of(&self, xyz: [i32; 3]) -> [i32; 3] {
        xyz.map(|axis| axis.div_euclid(self.reach))
    }

    /// The atoms that may have a hydrogen bond with a water, ascending; none for a water in a crowd.
    fn partners(&self, water: [i32; 3]) -> Vec<u32> {
        let [x, y, z] = self.cell_of(water);
        let around =
            (0..27).map(move |cell| [x + cell % 3 - 1, y + cell / 3 % 3 - 1, z + cell / 9 - 1]);
        let atoms = around.filter_map(|cell| self.cells.get(&cell)).flatten();
        let partners = atoms.copied().filter(|&atom| self.is_partner(atom, water));
        let mut partners: Vec<u32> = partners.take(PARTNERS_MAX + 1).collect();
        if partners.len() > PARTNERS_MAX {
            partners.clear();
        }
        partners.sort_unstable();
        partners
    }

    /// Whether a donor or acceptor is at the distance of a hydrogen bond from a water, and accepts, or points
    /// its hydrogen at the water.
    fn is_partner(&self, atom: u32, water: [i32; 3]) -> bool {
        let square = difference(water, self.atoms.xyz[atom as usize]).map(|axis| axis * axis);
        let square = square.iter().sum::<f64>();
        let is_near = (f64::from(NEAREST).powi(2)..f64::from(self.reach).powi(2)).contains(&square);
        let roles = self.atoms.roles[atom as usize];
        is_near && (roles.contains(Roles::ACCEPTOR) || self.points_at(atom, water))
    }

    /// Whether the hydrogen of a donor, where it comes nearest to the water, has a wide angle. The
    /// water is [`NEAREST`] away at least. METHODS.md has the rule: along the line from the atoms
    /// that are bonded to the donor, or at 109.5 degrees from the only one.
    fn points_at(&self, donor: u32, water: [i32; 3]) -> bool {
        let Some((bonded, has_several)) = self.bonded.get(&donor) else {
            return true;
        };
        let here = self.atoms.xyz[donor as usize];
        let away = [0, 1, 2].map(|axis| f64::from(here[axis]) - bonded[axis]);
        let to_water = difference(water, here);
        let distance = to_water.map(|axis| axis * axis).iter().sum::<f64>().sqrt();
        let along = cosine(away, to_water);
        let at_donor = if *has_several {
            along
        } else {
            // The cosine of what is left of the angle after 180 - 109.47 degrees, whose cosine is a third.
            let beside = (1.0 - along * along).max(0.0).sqrt();
            along / 3.0 + beside * (8.0_f64 / 9.0).sqrt()
        };
        // The triangle of donor, hydrogen and water.
        let bond = HYDROGEN_BOND_LENGTH;
        let square = distance * distance + bond * bond - 2.0 * distance * bond * at_donor;
        // Above 0, as the water is farther away than the hydrogen.
        let at_hydrogen = (bond - distance * at_donor) / square.sqrt();
        at_hydrogen < DONOR_COSINE_MAX
    }

    /// The bridge of a water between two atoms, if they are of different owners and the angle is right.
    fn bridge(&self, water: u32, oxygen: [i32; 3], atoms: [u32; 2]) -> Option<WaterBridge> {
        let [one, other] = atoms.map(|atom| self.atoms.owners[atom as usize]);
        let apart = atoms.map(|atom| difference(self.atoms.xyz[atom as usize], oxygen));
        let cosine = cosine(apart[0], apart[1]);
        let is_bridge = one != other && cosine > COSINE_MIN && cosine < COSINE_MAX;
        is_bridge.then(|| WaterBridge {
            water,
            atoms,
            distances: apart.map(|apart| {
                let square = apart.map(|axis| axis * axis).iter().sum::<f64>();
                (square.sqrt() / 1000.0) as f32
            }),
            angle: cosine.acos().to_degrees() as f32,
        })
    }
}
