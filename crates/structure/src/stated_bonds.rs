//! Bonds that a file states between its atoms.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::atom_table::AtomLine;

/// Bonds between atoms of a file, which their positions name. Two atoms in one place are one.
#[derive(Default)]
pub(super) struct StatedBonds {
    /// Both ends of each bond, in 0.001 A, in either order.
    bonds: HashMap<[i32; 3], HashSet<[i32; 3]>>,
}

impl StatedBonds {
    /// Adds a bond.
    pub(super) fn add(&mut self, [one, other]: [[i32; 3]; 2]) {
        if one != other {
            self.bonds.entry(one).or_default().insert(other);
            self.bonds.entry(other).or_default().insert(one);
        }
    }

    /// The bonds between atoms of a residue, by their indices, sorted.
    pub(super) fn among(&self, atoms: &[AtomLine]) -> Arc<[[u32; 2]]> {
        if self.bonds.is_empty() {
            return Arc::default();
        }
        let places: HashMap<[i32; 3], u32> = atoms.iter().map(|atom| atom.xyz).zip(0..).collect();
        let mut found = Vec::new();
        for (xyz, &one) in &places {
            let ends = self.bonds.get(xyz).into_iter().flatten();
            let others = ends.filter_map(|end| places.get(end).copied());
            found.extend(
                others
                    .filter(|&other| one < other)
                    .map(|other| [one, other]),
            );
        }
        found.sort_unstable();
        Arc::from(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bonds_are_those_within_a_residue() {
        let atom = |x: i32| AtomLine {
            xyz: [x, 0, 0],
            ..AtomLine::default()
        };
        let atoms = [atom(3), atom(1), atom(2)];
        let mut stated = StatedBonds::default();
        assert!(stated.among(&atoms).is_empty());
        for (one, other) in [(1, 2), (2, 1), (3, 2), (3, 9), (3, 3)] {
            stated.add([[one, 0, 0], [other, 0, 0]]);
        }
        assert_eq!(*stated.among(&atoms), [[0, 2], [1, 2]]);
    }
}
