//! The chemistry of a residue or ligand: bonds, aromatic rings, charged groups, donors and acceptors, from
//! the positions of its heavy atoms, or from the bonds of its component.

use super::super::element;
use super::component::KnownBonds;
use super::roles::Roles;
use super::vectors::{cross, dot, length, normal_of, unit};
use std::collections::BTreeSet;
use std::ops::Range;

/// What was found. Atoms are indices of the residue or ligand.
pub(super) struct Perceived {
    pub(super) roles: Vec<Roles>,
    /// Each donor and acceptor with the atoms that are bonded to it.
    pub(super) bonds: Vec<[u32; 2]>,
    /// The charged groups and rings: the atom that stands for each, its role, and its atoms.
    pub(super) groups: Vec<(u32, Roles, Vec<u32>)>,
}

/// A residue or ligand with more atoms has no roles: if they are near each other, each pair of them is
/// compared.
const ATOMS_MAX: usize = 4_000;
/// Atoms that are farther apart than the sum of their covalent radii and this are not bonded, in A
/// (Open Babel).
const BOND_TOLERANCE: f64 = 0.45;
/// Atoms that are nearer than this, in A, are not bonded, but in one place (Open Babel).
const BOND_MIN: f64 = 0.4;
/// An atom with more bonds is in a crowd of atoms in one place, and has none. No atom of a compound has
/// more.
pub(crate) const ATOM_BONDS_MAX: usize = 8;
/// An atom with more bonds is in no ring that its component calls aromatic. It bounds the paths of the
/// search for rings: 4 * 3^4 from an atom with this limit, and 8 * 7^4 with [`ATOM_BONDS_MAX`].
const STATED_RING_BONDS_MAX: usize = 4;
/// An atom with more bonds is in no ring that is aromatic by its geometry: with four it is tetrahedral.
const FLAT_RING_BONDS_MAX: usize = 3;
/// The atoms of an aromatic ring are within this of their plane, in A.
const RING_PLANE: f64 = 0.1;
/// The longest bond of an aromatic ring of C, N and O, and one with S, in A (docs/METHODS.md).
const RING_BOND: f64 = 1.51;
const RING_BOND_SULFUR: f64 = 1.80;
/// A bond of C and O that is shorter is a double bond, or that of a carboxylate, in A.
const CARBONYL: f64 = 1.30;
/// A bond of C and N that is shorter is a triple bond, in A.
const NITRILE: f64 = 1.20;
/// An atom with three neighbours is flat if it is within this of their plane, in A: half of what a
/// tetrahedral one with bonds of 1.5 A is above it.
const FLAT: f64 = 0.25;
/// A bond of C and N that is longer is one of an amine, in A: single bonds have 1.47 A, those of
/// amides and anilines 1.33 to 1.38 A.
const AMINE: f64 = 1.40;
/// An atom with two neighbours has the wider angle of a flat one, in degrees: between 120 and the
/// 109 to 114 of a tetrahedral one.
const TETRAHEDRAL_MAX: f64 = 117.0;
/// A nitrogen of a ring of six atoms has a hydrogen if the ring's angle is wider, in degrees: it is
/// 125 with one and 116 to 120 without (Singh 1965).
const RING_ANGLE: f64 = 122.5;

const CARBON: u8 = 6;
const NITROGEN: u8 = 7;
const OXYGEN: u8 = 8;
const PHOSPHORUS: u8 = 15;
const SULFUR: u8 = 16;
const SELENIUM: u8 = 34;

/// The covalent radius of an element in A (Cordero et al. 2008), for those of organic molecules; 0
/// for others, which are not bonded.
fn covalent_radius(element: u8) -> f64 {
    match element {
        5 => 0.84,
        CARBON => 0.76,
        NITROGEN => 0.71,
        OXYGEN => 0.66,
        9 => 0.57,
        14 => 1.11,
        PHOSPHORUS => 1.07,
        SULFUR => 1.05,
        17 => 1.02,
        33 => 1.19,
        SELENIUM => 1.20,
        35 => 1.20,
        53 => 1.39,
        _ => 0.0,
    }
}

/// The bonds of a residue or ligand.
pub(super) struct Molecule<'a> {
    pub(super) xyz: &'a [[i32; 3]],
    pub(super) element: &'a [u8],
    pub(super) bonded: Vec<Vec<u32>>,
    /// What its component states besides, if the bonds are those of a component.
    pub(super) known: Option<KnownBonds>,
}

/// Bonds that a file states of some atoms.
#[derive(Default)]
pub(super) struct StatedLigandBonds {
    bonds: Vec<[u32; 2]>,
    /// The atoms of each ligand whose bonds are stated.
    ligands: Vec<Range<u32>>,
}

impl StatedLigandBonds {
    /// Adds the bonds of a ligand, which are all bonds between its atoms.
    pub(super) fn add(&mut self, atoms: Range<u32>, bonds: impl Iterator<Item = [u32; 2]>) {
        self.bonds.extend(bonds);
        self.ligands.push(atoms);
    }

    /// Whether the bonds between two atoms are stated.
    fn cover(&self, one: u32, other: u32) -> bool {
        let mut ligands = self.ligands.iter();
        ligands.any(|atoms| atoms.contains(&one) && atoms.contains(&other))
    }
}

/// Finds what the atoms of a residue or ligand can take part in by their positions, and by the bonds that
/// are stated.
pub(super) fn perceive(xyz: &[[i32; 3]], element: &[u8], stated: &StatedLigandBonds) -> Perceived {
    if xyz.len() > ATOMS_MAX {
        return Perceived {
            roles: vec![Roles::NONE; xyz.len()],
            bonds: Vec::new(),
            groups: Vec::new(),
        };
    }
    Molecule::new(xyz, element, stated).perceive()
}

/// The bonds by distance between atoms of different ligands of a molecule, each in both orders. `ligand` has
/// the number of each atom's ligand.
pub(super) fn links(xyz: &[[i32; 3]], element: &[u8], ligand: &[u32]) -> Vec<[u32; 2]> {
    if xyz.len() > ATOMS_MAX {
        return Vec::new();
    }
    let molecule = Molecule::new(xyz, element, &StatedLigandBonds::default());
    let bonded = (0..).zip(&molecule.bonded);
    let bonds = bonded.flat_map(|(one, bonded)| bonded.iter().map(move |&other| [one, other]));
    let are_apart = |bond: &[u32; 2]| {
        let [one, other] = bond.map(|atom| ligand[atom as usize]);
        one != other
    };
    bonds.filter(are_apart).collect()
}

impl Molecule<'_> {
    /// The roles of atoms, the bonds of donors and acceptors, and the charged groups and rings.
    pub(super) fn perceive(&self) -> Perceived {
        let rings = self.aromatic_rings();
        let in_aromatic_ring: BTreeSet<u32> = rings.iter().flatten().copied().collect();
        let atoms = 0..self.xyz.len() as u32;
        let mut perceived = Perceived {
            roles: atoms
                .clone()
                .map(|atom| self.roles(atom, &rings, &in_aromatic_ring))
                .collect(),
            bonds: Vec::new(),
            groups: Vec::new(),
        };
        for atom in atoms.clone() {
            if let Some((role, members)) = self.charged_group(atom, &in_aromatic_ring) {
                perceived.groups.push((atom, role, members));
            }
        }
        // An atom has one direction on record. So no atom stands for two groups, and no donor or acceptor for a
        // ring; a ring without another atom is left out.
        let polar = Roles::DONOR.with(Roles::ACCEPTOR).bits();
        for ring in rings {
            let is_taken = |atom: &u32| perceived.groups.iter().any(|(other, ..)| other == atom);
            let is_free = |atom: &&u32| {
                perceived.roles[**atom as usize].bits() & polar == 0 && !is_taken(atom)
            };
            if let Some(&atom) = ring.iter().find(is_free) {
                perceived.groups.push((atom, Roles::RING, ring));
            }
        }
        for atom in atoms {
            if perceived.roles[atom as usize].bits() & polar != 0 {
                let bonded = self.bonded[atom as usize].iter();
                perceived.bonds.extend(bonded.map(|&other| [atom, other]));
            }
        }
        perceived
    }
}

impl<'a> Molecule<'a> {
    /// The molecule of atoms at `xyz`. Atoms are bonded if the file states so, or if they are near
    /// each other and not of one ligand whose bonds the file states; metals are not bonded.
    fn new(xyz: &'a [[i32; 3]], element: &'a [u8], stated: &StatedLigandBonds) -> Self {
        let mut molecule = Molecule {
            xyz,
            element,
            bonded: vec![Vec::new(); xyz.len()],
            known: None,
        };
        // Sorted by x, so that few of the atoms of a large ligand are compared.
        let mut sorted: Vec<u32> = (0..xyz.len() as u32).collect();
        sorted.sort_unstable_by_key(|&atom| (xyz[atom as usize][0], atom));
        // Iodine has the largest radius. Atoms farther apart along x are bonded to none.
        let reach = 2.0 * covalent_radius(53) + BOND_TOLERANCE;
        for (index, &one) in sorted.iter().enumerate() {
            for &other in &sorted[index + 1..] {
                let along = i64::from(xyz[other as usize][0]) - i64::from(xyz[one as usize][0]);
                if along as f64 > 1000.0 * reach {
                    break;
                }
                if molecule.are_bonded(one, other) && !stated.cover(one, other) {
                    molecule.join(one, other);
                }
            }
        }
        for &[one, other] in &stated.bonds {
            // Metals are not bonded.
            let radii = [one, other].map(|atom| covalent_radius(element[atom as usize]));
            if one != other && !radii.contains(&0.0) {
                molecule.join(one, other);
            }
        }
        // What has too many bonds is a crowd of atoms in one place.
        let crowded: Vec<bool> = (molecule.bonded.iter())
            .map(|bonded| bonded.len() > ATOM_BONDS_MAX)
            .collect();
        for (bonded, &is_crowded) in molecule.bonded.iter_mut().zip(&crowded) {
            bonded.retain(|&other| !is_crowded && !crowded[other as usize]);
            bonded.sort_unstable();
            bonded.dedup();
        }
        molecule
    }

    /// Bonds two atoms.
    fn join(&mut self, one: u32, other: u32) {
        self.bonded[one as usize].push(other);
        self.bonded[other as usize].push(one);
    }

    /// Whether the distance of two atoms, neither of them a metal, is that of a bond.
    fn are_bonded(&self, one: u32, other: u32) -> bool {
        let [first, second] = [one, other].map(|atom| covalent_radius(self.element[atom as usize]));
        let distance = self.distance(one, other);
        first * second > 0.0 && (BOND_MIN..first + second + BOND_TOLERANCE).contains(&distance)
    }

    /// The distance of two atoms in A.
    pub(super) fn distance(&self, one: u32, other: u32) -> f64 {
        length(self.vector(one, other))
    }

    /// From one atom to another, in A.
    fn vector(&self, from: u32, to: u32) -> [f64; 3] {
        let [from, to] = [from, to].map(|atom| self.xyz[atom as usize].map(f64::from));
        std::array::from_fn(|axis| (to[axis] - from[axis]) / 1000.0)
    }

    fn is(&self, atom: u32, element: u8) -> bool {
        self.element[atom as usize] == element
    }

    /// The atoms of an element that are bonded to an atom.
    fn neighbours(&self, atom: u32, element: u8) -> impl Iterator<Item = u32> + '_ {
        let bonded = self.bonded[atom as usize].iter().copied();
        bonded.filter(move |&other| self.is(other, element))
    }

    /// How many heavy atoms are bonded to an atom, those of linked ligands included.
    fn degree(&self, atom: u32) -> usize {
        let links = self
            .known
            .as_ref()
            .map_or(0, |known| known.links[atom as usize]);
        self.bonded[atom as usize].len() + usize::from(links)
    }

    /// The oxygens that are bonded to this atom alone.
    fn terminal_oxygens(&self, atom: u32) -> Vec<u32> {
        let oxygens = self.neighbours(atom, OXYGEN);
        oxygens.filter(|&oxygen| self.degree(oxygen) == 1).collect()
    }

    /// Whether a carbon has two oxygens that are bonded to it alone, and one other neighbour.
    fn is_carboxylate(&self, carbon: u32) -> bool {
        self.degree(carbon) == 3 && self.terminal_oxygens(carbon).len() == 2
    }

    /// The roles of an atom but those of groups.
    fn roles(&self, atom: u32, rings: &[Vec<u32>], in_aromatic_ring: &BTreeSet<u32>) -> Roles {
        let bonded = &self.bonded[atom as usize];
        match self.element[atom as usize] {
            CARBON if bonded.iter().all(|&other| self.is(other, CARBON)) && !bonded.is_empty() => {
                Roles::HYDROPHOBIC
            }
            OXYGEN => self.roles_of_oxygen(atom),
            NITROGEN => self.roles_of_nitrogen(atom, rings, in_aromatic_ring),
            SULFUR | SELENIUM if bonded.len() < 3 => Roles::COORDINATES,
            metal if element::is_metal(metal) => Roles::METAL,
            _ => Roles::NONE,
        }
    }

    /// The roles of an oxygen: all accept. One donates if the dictionary gives it a hydrogen that
    /// it has not lost as an acid, or, where only positions are known, if it is water, or if its
    /// bond to carbon is too long for a carbonyl and not of a carboxylate.
    fn roles_of_oxygen(&self, atom: u32) -> Roles {
        let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
        if let Some(known) = &self.known {
            // Acids have lost their hydrogen.
            let mut bonded = self.bonded[atom as usize].iter();
            let is_of_acid = bonded.any(|&other| self.terminal_oxygens(other).len() >= 2);
            return match known.hydrogens[atom as usize] {
                0 => acceptor,
                _ if is_of_acid => acceptor,
                _ => acceptor.with(Roles::DONOR),
            };
        }
        match self.bonded[atom as usize][..] {
            // A single oxygen is water.
            [] => acceptor.with(Roles::DONOR),
            [carbon]
                if self.is(carbon, CARBON)
                    && self.distance(atom, carbon) >= CARBONYL
                    && !self.is_carboxylate(carbon) =>
            {
                acceptor.with(Roles::DONOR)
            }
            _ => acceptor,
        }
    }

    /// The roles of a nitrogen, by the hydrogens of the dictionary, or else by what it is bonded to
    /// and at which distances and angles.
    fn roles_of_nitrogen(
        &self,
        atom: u32,
        rings: &[Vec<u32>],
        in_aromatic_ring: &BTreeSet<u32>,
    ) -> Roles {
        let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
        let bonded = &self.bonded[atom as usize];
        if let Some(known) = &self.known {
            let hydrogens = known.hydrogens[atom as usize];
            let is_unsaturated = |atom: u32| known.is_unsaturated[atom as usize];
            if self.is_amine(atom, in_aromatic_ring) {
                return Roles::DONOR.with(Roles::COORDINATES);
            }
            // The lone pair of an amide or aniline is shared with its neighbour.
            let has_lone_pair = if is_unsaturated(atom) {
                self.degree(atom) + usize::from(hydrogens) <= 2
            } else {
                self.degree(atom) <= 3 && !bonded.iter().any(|&other| is_unsaturated(other))
            };
            let donor = if hydrogens > 0 {
                Roles::DONOR
            } else {
                Roles::NONE
            };
            return donor.with(if has_lone_pair { acceptor } else { Roles::NONE });
        }
        let is_amide = bonded.iter().any(|&other| {
            let carbonyl = self.neighbours(other, OXYGEN);
            let mut carbonyl = carbonyl.filter(|&oxygen| self.distance(other, oxygen) < CARBONYL);
            self.is(other, CARBON) && carbonyl.next().is_some()
        });
        let is_guanidine = bonded.iter().any(|&other| {
            !in_aromatic_ring.contains(&other) && self.neighbours(other, NITROGEN).count() == 3
        });
        match bonded[..] {
            [] => Roles::DONOR,
            [other] if self.distance(atom, other) < NITRILE => acceptor,
            [_] => Roles::DONOR,
            [_, _] if in_aromatic_ring.contains(&atom) => {
                self.roles_in_aromatic_ring(atom, is_amide, rings)
            }
            [_, _] if is_amide || is_guanidine => Roles::DONOR,
            [_, _] | [_, _, _] if self.is_amine(atom, in_aromatic_ring) => {
                Roles::DONOR.with(Roles::COORDINATES)
            }
            [_, _] => acceptor.with(Roles::DONOR),
            [_, _, _] if !self.is_flat(atom) => acceptor,
            _ => Roles::NONE,
        }
    }

    /// The roles of a nitrogen of an aromatic ring with two neighbours.
    fn roles_in_aromatic_ring(&self, atom: u32, is_amide: bool, rings: &[Vec<u32>]) -> Roles {
        let acceptor = Roles::ACCEPTOR.with(Roles::COORDINATES);
        let mut own = rings.iter().filter(|ring| ring.contains(&atom));
        let Some(ring) = own.find(|ring| ring.len() == 5) else {
            return match self.angle(atom) {
                angle if angle > RING_ANGLE => Roles::DONOR,
                // Next to a carbonyl the angle of a model is often the same with and without.
                _ if is_amide => acceptor.with(Roles::DONOR),
                _ => acceptor,
            };
        };
        let others = || ring.iter().copied().filter(|&other| other != atom);
        // One atom of a ring of five gives two electrons: O, S, or N with a hydrogen or a substituent.
        let gives_two = |other: u32| match self.element[other as usize] {
            OXYGEN | SULFUR => true,
            NITROGEN => self.degree(other) == 3,
            _ => false,
        };
        if others().any(gives_two) {
            acceptor
        } else if others().all(|other| self.is(other, CARBON)) {
            Roles::DONOR
        } else {
            // Which nitrogen has the hydrogen cannot be seen.
            acceptor.with(Roles::DONOR)
        }
    }

    /// Whether a nitrogen is bonded to tetrahedral carbons and hydrogens alone, and so has a charge.
    fn is_amine(&self, atom: u32, in_aromatic_ring: &BTreeSet<u32>) -> bool {
        let bonded = &self.bonded[atom as usize];
        if let Some(known) = &self.known {
            let is_saturated = |atom: u32| !known.is_unsaturated[atom as usize];
            return is_saturated(atom)
                && known.links[atom as usize] == 0
                && bonded.len() < 4
                && bonded
                    .iter()
                    .all(|&other| self.is(other, CARBON) && is_saturated(other));
        }
        let is_tetrahedral = |carbon: u32| match self.degree(carbon) {
            2 => self.angle(carbon) < TETRAHEDRAL_MAX,
            3 => !self.is_flat(carbon),
            _ => true,
        };
        let is_one = match bonded.len() {
            1 | 2 => bonded.iter().all(|&other| is_tetrahedral(other)),
            3 => !self.is_flat(atom),
            // Ammonium.
            count => count == 0,
        };
        is_one
            && !in_aromatic_ring.contains(&atom)
            && bonded.iter().all(|&other| {
                self.is(other, CARBON)
                    && self.distance(atom, other) > AMINE
                    && !in_aromatic_ring.contains(&other)
            })
    }

    /// The angle in degrees of an atom with its first two neighbours.
    fn angle(&self, atom: u32) -> f64 {
        let [one, other, ..] = self.bonded[atom as usize][..] else {
            return 0.0;
        };
        let [one, other] = [one, other].map(|end| unit(self.vector(atom, end)));
        dot(one, other).clamp(-1.0, 1.0).acos().to_degrees()
    }

    /// Whether an atom with three neighbours is in their plane.
    fn is_flat(&self, atom: u32) -> bool {
        let [a, b, c] = self.bonded[atom as usize][..] else {
            return false;
        };
        if let Some(known) = &self.known {
            let mut atoms = [atom, a, b, c].into_iter();
            return atoms.any(|atom| known.is_unsaturated[atom as usize]);
        }
        let normal = unit(cross(self.vector(a, b), self.vector(a, c)));
        dot(normal, self.vector(a, atom)).abs() < FLAT
    }

    /// The charged group that an atom stands for, and its atoms, by the table of docs/METHODS.md ("Roles by
    /// geometry").
    fn charged_group(
        &self,
        atom: u32,
        in_aromatic_ring: &BTreeSet<u32>,
    ) -> Option<(Roles, Vec<u32>)> {
        let oxygens = self.terminal_oxygens(atom);
        let degree = self.degree(atom);
        match self.element[atom as usize] {
            CARBON if self.is_carboxylate(atom) => Some((Roles::NEGATIVE, oxygens)),
            // Not in an aromatic ring: C2 of guanine has three nitrogens too, and no charge.
            CARBON if degree == 3 && !in_aromatic_ring.contains(&atom) => {
                let nitrogens: Vec<u32> = self.neighbours(atom, NITROGEN).collect();
                let is_guanidine = nitrogens.len() == 3;
                // An amidine has both nitrogens at its end.
                let is_amidine = nitrogens.len() == 2
                    && self.neighbours(atom, CARBON).count() == 1
                    && nitrogens.iter().all(|&nitrogen| {
                        self.degree(nitrogen) == 1 && self.distance(atom, nitrogen) < AMINE
                    });
                (is_guanidine || is_amidine).then_some((Roles::POSITIVE, nitrogens))
            }
            PHOSPHORUS if oxygens.len() >= 2 => Some((Roles::NEGATIVE, vec![atom])),
            // A sulfone has two, and no charge.
            SULFUR if oxygens.len() >= 3 => Some((Roles::NEGATIVE, vec![atom])),
            // A quaternary ammonium, or an amine with its hydrogens.
            NITROGEN if degree == 4 || self.is_amine(atom, in_aromatic_ring) => {
                Some((Roles::POSITIVE, vec![atom]))
            }
            // A sulfonium.
            SULFUR if degree == 3 && self.neighbours(atom, CARBON).count() == 3 => {
                Some((Roles::POSITIVE, vec![atom]))
            }
            _ => None,
        }
    }

    /// The rings of five and six atoms that the component calls aromatic, or that are flat, of C, N, O and
    /// S, with bonds as short as in aromatic rings; each in the order of its bonds.
    fn aromatic_rings(&self) -> Vec<Vec<u32>> {
        let mut found = BTreeSet::new();
        let mut rings = Vec::new();
        for first in 0..self.xyz.len() as u32 {
            self.extend_ring(&mut vec![first], &mut found, &mut rings);
        }
        rings
    }

    /// Follows bonds from the last atom of a path, whose first atom is the lowest, up to six atoms.
    /// Adds the rings that close to `rings`, each once: a path and its reverse have the same atoms,
    /// which `found` keeps.
    fn extend_ring(
        &self,
        path: &mut Vec<u32>,
        found: &mut BTreeSet<Vec<u32>>,
        rings: &mut Vec<Vec<u32>>,
    ) {
        let (first, last) = (path[0], path[path.len() - 1]);
        for &next in &self.bonded[last as usize] {
            if next == first && path.len() >= 5 && self.is_aromatic(path) {
                let mut sorted = path.clone();
                sorted.sort_unstable();
                if found.insert(sorted) {
                    rings.push(path.clone());
                }
            }
            if next > first
                && path.len() < 6
                && !path.contains(&next)
                && self.may_be_aromatic(last, next)
            {
                path.push(next);
                self.extend_ring(path, found, rings);
                path.pop();
            }
        }
    }

    /// Whether a bond may be one of an aromatic ring.
    fn may_be_aromatic(&self, one: u32, other: u32) -> bool {
        if let Some(known) = &self.known {
            if known.aromatic.contains(&[one, other]) {
                return self.degree(one).max(self.degree(other)) <= STATED_RING_BONDS_MAX;
            }
            // Carbon alone: N, O and S with single bonds may be in a ring, as in pyrrole and furan.
            let is_saturated =
                |atom: u32| self.is(atom, CARBON) && !known.is_unsaturated[atom as usize];
            if is_saturated(one) || is_saturated(other) {
                return false;
            }
        }
        let has_sulfur = self.is(one, SULFUR) || self.is(other, SULFUR);
        let longest = if has_sulfur {
            RING_BOND_SULFUR
        } else {
            RING_BOND
        };
        let is_member = |atom: u32| {
            let element = self.element[atom as usize];
            matches!(element, CARBON | NITROGEN | OXYGEN | SULFUR)
                && self.degree(atom) <= FLAT_RING_BONDS_MAX
        };
        is_member(one) && is_member(other) && self.distance(one, other) < longest
    }

    /// Whether a ring is aromatic: the dictionary states all of its bonds as such, or all bonds may
    /// be and the ring is flat.
    fn is_aromatic(&self, ring: &[u32]) -> bool {
        let closes = self.may_be_aromatic(ring[ring.len() - 1], ring[0]);
        // The dictionary calls neither guanine's ring of six nor uracil's aromatic: these are flat.
        let is_stated = self.known.as_ref().is_some_and(|known| {
            let next = ring.iter().cycle().skip(1);
            let mut bonds = ring.iter().zip(next);
            bonds.all(|(&one, &next)| known.aromatic.contains(&[one, next]))
        });
        if is_stated {
            return true;
        }
        // The sum of the cross products of neighbours is normal to the mean plane.
        let vectors: Vec<[f64; 3]> = ring
            .iter()
            .map(|&atom| self.vector(ring[0], atom))
            .collect();
        let normal = unit(normal_of(&vectors));
        let count = ring.len() as f64;
        let heights: Vec<f64> = vectors.iter().map(|&vector| dot(normal, vector)).collect();
        let mean = heights.iter().sum::<f64>() / count;
        closes
            && heights
                .iter()
                .all(|height| (height - mean).abs() < RING_PLANE)
    }
}
