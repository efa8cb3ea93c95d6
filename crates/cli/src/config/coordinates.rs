//! The key of coordinates.

use super::resolver::Resolver;
use super::setting_values::SettingValues;
use serde_json::json;

/// Names of the atoms whose coordinates may be columns, in the order of the columns.
const ATOMS: [&str; 5] = ["n", "ca", "c", "o", "cb"];

/// What the config may list, each with whether it means each of [`ATOMS`].
const WORDS: [(&str, [bool; ATOMS.len()]); 3] = [
    ("ca", [false, true, false, false, false]),
    ("cb", [false, false, false, false, true]),
    ("backbone", [true, true, true, true, false]),
];

/// The atoms of residues whose coordinates are columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinateAtoms([bool; ATOMS.len()]);

impl CoordinateAtoms {
    /// None.
    pub const NONE: CoordinateAtoms = CoordinateAtoms([false; ATOMS.len()]);
    /// N, CA, C, O and CB.
    pub const ALL: CoordinateAtoms = CoordinateAtoms([true; ATOMS.len()]);
    /// The number of atoms that there may be.
    pub const COUNT: usize = ATOMS.len();

    /// Whether the atom at `index` of N, CA, C, O and CB is asked for.
    pub fn has(self, index: usize) -> bool {
        self.0[index]
    }

    /// The columns' names, each with the index of its atom and of its axis.
    pub fn columns(self) -> impl Iterator<Item = (String, usize, usize)> {
        let atoms = ATOMS.into_iter().enumerate().zip(self.0);
        let asked = atoms.filter(|(_, is_asked)| *is_asked);
        asked.flat_map(|((atom, name), _)| {
            let axes = ["x", "y", "z"].into_iter().enumerate();
            axes.map(move |(axis, letter)| (format!("{name}_{letter}"), atom, axis))
        })
    }
}

/// The atoms whose coordinates the table of residues gets.
pub(super) fn resolve_coordinates(keys: &mut Resolver) -> CoordinateAtoms {
    const KEY: &str = "coordinates";
    let names = WORDS.iter().map(|(name, _)| *name).collect();
    keys.takes(KEY, SettingValues::Choice(names).or_list());
    let words = keys.texts(KEY).map_or(Vec::new(), |(words, _)| words);
    let mut atoms = CoordinateAtoms::NONE;
    for word in &words {
        match WORDS.iter().find(|(name, _)| name == word) {
            Some((_, more)) => {
                let both = atoms.0.iter_mut().zip(more);
                both.for_each(|(is_asked, more)| *is_asked |= more);
            }
            None => {
                let known = WORDS.map(|(name, _)| format!("{name:?}")).join(", ");
                keys.problem(KEY, format!("{word:?} is not one of {known}"));
            }
        }
    }
    keys.record(KEY, json!(words));
    atoms
}
