//! Twins of the kernels of interactions.

use super::super::constants::{
    ATOM_REACH, BONDED, CATION_PI, DISULFIDE, GROUP_REACH, HYDROGEN_BOND, HYDROGEN_BOND_LENGTH,
    HYDROGEN_REACH, HYDROPHOBIC_CONTACT, LISTED_KINDS, METAL_BOND, PI_EDGE, PI_EDGE_MIN, PI_FACE,
    PI_FACE_MAX, RING_OFFSET, ROLE_ACCEPTOR, ROLE_COORDINATES, ROLE_DONOR, ROLE_HYDROPHOBIC,
    ROLE_METAL, ROLE_NEGATIVE, ROLE_POSITIVE, ROLE_RING, ROLE_THIOL, SALT_BRIDGE,
};
use super::super::cpu::angles::{Angle, Vector, difference, dot};
use super::super::cpu::simd;
use super::super::cpu::split::{TASK_ROWS, for_row_ranges, parts};
use super::super::kernels::{Cells, Twin, interaction_degrees, interaction_rows};
use super::super::layout::{ATOMS, Atom, AtomFrame, AtomRoles, ChainSpan, Position, StructureSpan};
use super::super::pairs::listed_rows_of;
use crate::structure::Roles;
use fearless_simd::dispatch;
use rayon::prelude::*;

/// The kernels' roles are those of structures.
const _: () = {
    let pairs = [
        (Roles::DONOR, ROLE_DONOR),
        (Roles::ACCEPTOR, ROLE_ACCEPTOR),
        (Roles::HYDROPHOBIC, ROLE_HYDROPHOBIC),
        (Roles::THIOL, ROLE_THIOL),
        (Roles::METAL, ROLE_METAL),
        (Roles::COORDINATES, ROLE_COORDINATES),
        (Roles::POSITIVE, ROLE_POSITIVE),
        (Roles::NEGATIVE, ROLE_NEGATIVE),
        (Roles::RING, ROLE_RING),
    ];
    let mut index = 0;
    while index < pairs.len() {
        assert!(pairs[index].0.bits() as u32 == pairs[index].1);
        index += 1;
    }
};

/// The roles of atoms that stand for a group.
const GROUP: u32 = ROLE_POSITIVE | ROLE_NEGATIVE | ROLE_RING;

/// An interaction of two atoms or of their groups.
struct Interaction {
    kind: u32,
    distance: f32,
    angle: f32,
}

/// One of the two atoms of a pair.
#[derive(Clone, Copy)]
struct InteractionSite {
    position: Position,
    roles: AtomRoles,
    frame: AtomFrame,
}

impl InteractionSite {
    fn has(&self, role: u32) -> bool {
        self.roles.roles & role != 0
    }

    fn direction(&self) -> Vector {
        let [x, y, z, _] = self.frame.direction.map(f64::from);
        [x, y, z]
    }

    /// The centre of the group that the atom stands for.
    fn centre(&self) -> Position {
        let [x, y, z, _] = self.frame.centre.map(i32::from);
        let Position {
            x: ax,
            y: ay,
            z: az,
        } = self.position;
        Position {
            x: ax + x,
            y: ay + y,
            z: az + z,
        }
    }
}

/// Whether two sites have these roles, in either order.
fn are(a: &InteractionSite, b: &InteractionSite, one: u32, other: u32) -> bool {
    (a.has(one) && b.has(other)) || (a.has(other) && b.has(one))
}

/// The distance in A whose square is `square`, in (0.001 A)^2.
fn in_angstrom(square: f64) -> f32 {
    (square.sqrt() / 1000.0) as f32
}

/// An angle as that of two lines, from 0 to 90 degrees.
fn of_lines(degrees: f32) -> f32 {
    if degrees > 90.0 {
        180.0 - degrees
    } else {
        degrees
    }
}

/// Whether a point is above a ring: its projection on the ring's plane is near the centre. `apart` is
/// from the centre to the point, or the other way.
fn is_above(normal: Vector, apart: Vector, offset: u32) -> bool {
    let (along, square) = (dot(normal, apart), dot(normal, normal));
    let beside = dot(apart, apart) - f64::from(offset) * f64::from(offset);
    beside * square < along * along
}

/// The interactions of atoms.
struct InteractionSearch<'a> {
    structures: &'a [StructureSpan],
    chains: &'a [ChainSpan],
    atoms: &'a [Atom],
    cells: Cells<'a>,
    roles: &'a [AtomRoles],
    frames: &'a [AtomFrame],
    /// The constants, from the largest distance of the first kind on.
    limits: &'a [u32],
}

impl InteractionSearch<'_> {
    fn structure(&self, atom: usize) -> &StructureSpan {
        let chain = self.atoms[atom].tag.chain() as usize;
        &self.structures[self.chains[chain].structure as usize]
    }

    fn limit(&self, index: u32) -> u32 {
        self.limits[index as usize]
    }

    fn site(&self, atom: usize) -> InteractionSite {
        InteractionSite {
            position: self.atoms[atom].position,
            roles: self.roles[atom],
            frame: self.frames[atom],
        }
    }

    /// The angle at the hydrogen of a bond in degrees, NaN if the donor has no direction; `None` if
    /// there is no bond. The hydrogen is where it comes nearest to the acceptor: along the donor's
    /// direction if two atoms are bonded to the donor, and on the cone of a tetrahedral atom if one is.
    /// `to_acceptor` is from the donor.
    fn hydrogen_angle(
        &self,
        donor: &InteractionSite,
        acceptor: &InteractionSite,
        to_acceptor: Vector,
    ) -> Option<f32> {
        // The atoms that are bonded to the acceptor are on its far side.
        if dot(acceptor.direction(), to_acceptor) > 0.0 {
            return None;
        }
        let direction = donor.direction();
        let (square, length) = (dot(to_acceptor, to_acceptor), dot(direction, direction));
        let distance = square.sqrt();
        let mut cosine = 1.0;
        if length > 0.0 {
            let along = (dot(direction, to_acceptor) / (length * square).sqrt()).min(1.0);
            let beside = (1.0 - along * along).max(0.0).sqrt();
            cosine = if donor.frame.direction[3] != 0 {
                along
            } else {
                // The cosine and the sine of the angle between the cone and its axis: 1/3, sqrt(8)/3.
                along * (1.0 / 3.0) + beside * 0.9428090415820634
            };
        }
        let bond = f64::from(HYDROGEN_BOND_LENGTH);
        let reach = f64::from(self.limit(HYDROGEN_REACH));
        let apart = square + bond * bond - 2.0 * bond * distance * cosine;
        // The second holds where the angle at the hydrogen is at most 90 degrees.
        if apart >= reach * reach || distance * cosine <= bond {
            return None;
        }
        if length <= 0.0 {
            return Some(f32::NAN);
        }
        let angle = Angle {
            sin: distance * (1.0 - cosine * cosine).max(0.0).sqrt(),
            cos: bond - distance * cosine,
        };
        Some(angle.degrees())
    }

    /// The interaction of two atoms themselves, if they have one. Two atoms fit one kind alone: two
    /// carbons, two of N and O, two sulfurs, or a metal and another atom.
    fn of_atoms(&self, a: &InteractionSite, b: &InteractionSite) -> Option<Interaction> {
        let kind = if a.has(ROLE_HYDROPHOBIC) && b.has(ROLE_HYDROPHOBIC) {
            HYDROPHOBIC_CONTACT
        } else if are(a, b, ROLE_DONOR, ROLE_ACCEPTOR) {
            HYDROGEN_BOND
        } else if a.has(ROLE_THIOL) && b.has(ROLE_THIOL) {
            DISULFIDE
        } else if are(a, b, ROLE_METAL, ROLE_COORDINATES) {
            METAL_BOND
        } else {
            return None;
        };
        let limit = self.limit(kind);
        let square = a.position.squared_to(b.position);
        let may_be_bonded = kind == HYDROGEN_BOND || kind == HYDROPHOBIC_CONTACT;
        if square >= limit * limit || (may_be_bonded && square < BONDED * BONDED) {
            return None;
        }
        let mut angle = f32::NAN;
        if kind == HYDROGEN_BOND {
            let apart = |from: &InteractionSite, to: &InteractionSite| {
                difference(to.position, from.position)
            };
            let by = |donor: &InteractionSite, acceptor: &InteractionSite| {
                let may_be = donor.has(ROLE_DONOR) && acceptor.has(ROLE_ACCEPTOR);
                may_be.then(|| self.hydrogen_angle(donor, acceptor, apart(donor, acceptor)))?
            };
            angle = by(a, b).or_else(|| by(b, a))?;
        }
        Some(Interaction {
            kind,
            distance: in_angstrom(f64::from(square)),
            angle,
        })
    }

    /// The interaction of the groups that two atoms stand for.
    fn of_groups(&self, a: &InteractionSite, b: &InteractionSite) -> Option<Interaction> {
        if !a.has(GROUP) || !b.has(GROUP) {
            return None;
        }
        let are_rings = a.has(ROLE_RING) && b.has(ROLE_RING);
        // An atom stands for one group, so the order hides none. Faces and edges have one limit.
        let mut kind = if are_rings {
            PI_FACE
        } else if are(a, b, ROLE_RING, ROLE_POSITIVE) {
            CATION_PI
        } else if are(a, b, ROLE_POSITIVE, ROLE_NEGATIVE) {
            SALT_BRIDGE
        } else {
            return None;
        };
        let apart = difference(b.centre(), a.centre());
        let (square, limit) = (dot(apart, apart), f64::from(self.limit(kind)));
        if square >= limit * limit {
            return None;
        }
        let mut angle = f32::NAN;
        if kind != SALT_BRIDGE {
            let (from_a, from_b) = (a.direction(), b.direction());
            let offset = self.limit(RING_OFFSET);
            let above_a = a.has(ROLE_RING) && is_above(from_a, apart, offset);
            let above_b = b.has(ROLE_RING) && is_above(from_b, apart, offset);
            if !above_a && !above_b {
                return None;
            }
            let first = if a.has(ROLE_RING) { from_a } else { from_b };
            let second = if are_rings { from_b } else { apart };
            angle = of_lines(Angle::between(first, second).degrees());
            if are_rings {
                // A ring whose atoms are on a line has no plane: its angle is NaN and of neither kind.
                kind = if angle < PI_FACE_MAX as f32 {
                    PI_FACE
                } else if angle > PI_EDGE_MIN as f32 {
                    PI_EDGE
                } else {
                    return None;
                };
                if self.limit(LISTED_KINDS) >> kind & 1 == 0 {
                    return None;
                }
            }
        }
        Some(Interaction {
            kind,
            distance: in_angstrom(square),
            angle,
        })
    }

    /// Puts the interactions of an atom with later atoms of its structure into `found`, each with its
    /// key: twice the index of the later atom, plus one if it is that of their groups. They are sorted
    /// by key.
    fn find(&self, atom: usize, found: &mut Vec<(u32, Interaction)>) {
        found.clear();
        let here = self.site(atom);
        if here.roles.roles == 0 {
            return;
        }
        let grid = &self.structure(atom).atom_grid;
        if self.cells.are_empty(grid) {
            return;
        }
        let reach = self.limit(if here.has(GROUP) {
            GROUP_REACH
        } else {
            ATOM_REACH
        });
        let point = &self.atoms[atom];
        let runs = self.cells.runs(grid, point.position.into(), reach as i32);
        let visit = |other: u32| {
            let there = self.site(other as usize);
            if other as usize <= atom || there.roles.owner == here.roles.owner {
                return;
            }
            let of_atoms = self.of_atoms(&here, &there);
            found.extend(of_atoms.map(|interaction| (2 * other, interaction)));
            let of_groups = self.of_groups(&here, &there);
            found.extend(of_groups.map(|interaction| (2 * other + 1, interaction)));
        };
        dispatch!(simd::level(), simd => {
            self.cells.each_within(simd, runs, point, reach, false, visit);
        });
        found.sort_unstable_by_key(|(key, _)| *key);
    }
}

/// Counts the interactions of each atom with later atoms of its structure.
impl Twin for interaction_degrees::Views<'_> {
    fn run(self) {
        let interactions = InteractionSearch {
            structures: StructureSpan::live(self.header, self.structures),
            chains: self.chains,
            atoms: self.atoms,
            cells: self.cells,
            roles: self.roles,
            frames: self.frames,
            limits: &self.header[self.first as usize..],
        };
        let degrees = &mut self.degrees[..self.header[ATOMS] as usize];
        for_row_ranges(degrees, 1, |atoms, degrees| {
            let mut found = Vec::new();
            for (atom, degree) in atoms.zip(degrees) {
                interactions.find(atom, &mut found);
                *degree = found.len() as i32;
            }
        });
    }
}

/// Lists the interactions of each atom with later atoms of its structure.
impl Twin for interaction_rows::Views<'_> {
    fn run(self) {
        let interactions = InteractionSearch {
            structures: StructureSpan::live(self.header, self.structures),
            chains: self.chains,
            atoms: self.atoms,
            cells: self.cells,
            roles: self.roles,
            frames: self.frames,
            limits: &self.header[self.first as usize..],
        };
        let atoms = |structure: &StructureSpan| structure.along(ATOMS as u32);
        let rows = listed_rows_of(interactions.structures, self.rooms, self.ends, atoms);
        let ranges = || rows.iter().map(|(_, range)| range.clone());
        let integers = parts(self.partners, ranges()).zip(parts(self.kinds, ranges()));
        let reals = parts(self.distances, ranges()).zip(parts(self.angles, ranges()));
        let atoms_with_rows = rows
            .par_iter()
            .zip(integers.zip(reals))
            .with_min_len(TASK_ROWS);
        atoms_with_rows.for_each_init(
            Vec::new,
            |found, (&(atom, _), ((partners, kinds), (distances, angles)))| {
                interactions.find(atom, found);
                let start = interactions.structure(atom).atom_start;
                let integers = partners.iter_mut().zip(kinds);
                let columns = integers.zip(distances.iter_mut().zip(angles));
                for ((key, found), ((partner, kind), (distance, angle))) in
                    found.iter().zip(columns)
                {
                    (*partner, *kind) = ((key / 2 - start) as i32, found.kind as i32);
                    (*distance, *angle) = (found.distance, found.angle);
                }
            },
        );
    }
}
