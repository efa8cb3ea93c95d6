//! What the rows of the table of interactions are made from.

use tapeloop::structure::Structure;

/// Bytes of an atom: its name; in [`Chemistry`](tapeloop::structure::Chemistry) its roles and owner, a
/// bond, and a place in a group; and the five columns of an interaction, of which it has about one.
pub(super) const ATOM_BYTES: usize =
    size_of::<[u8; 8]>() + 3 * size_of::<[u32; 2]>() + 5 * size_of::<f32>();

/// The names of the atoms of a structure that has interactions.
#[derive(Debug, Default)]
pub(super) struct InteractionRows {
    /// The padded name of each atom, in the order of [`Chemistry`](tapeloop::structure::Chemistry).
    names: Vec<[u8; 8]>,
    /// The names of the atoms of each group: `CG,CD1,CE1,CZ,CE2,CD2`.
    groups: Vec<String>,
}

impl InteractionRows {
    /// The names of a structure that has its atoms.
    pub(super) fn new(structure: &Structure) -> Self {
        let mut names: Vec<[u8; 8]> = structure
            .atom_details
            .iter()
            .map(|atom| atom.name)
            .collect();
        // A structure of a program's own may have none.
        names.resize(structure.xyz.len(), *b"        ");
        for (_, ligand) in structure.ligands_by_atoms() {
            names.extend(ligand.atoms.iter().map(|atom| atom.details.name));
        }
        let groups = structure
            .chemistry
            .iter()
            .flat_map(|chemistry| chemistry.groups());
        let groups = groups.map(|(_, members)| {
            let members = members
                .iter()
                .map(|&member| trimmed(&names[member as usize]));
            members.collect::<Vec<_>>().join(",")
        });
        let groups = groups.collect();
        InteractionRows { names, groups }
    }

    /// The name of an atom.
    pub(super) fn name(&self, atom: usize) -> &str {
        trimmed(&self.names[atom])
    }

    /// The names of the atoms of a group, by its index.
    pub(super) fn group(&self, group: usize) -> &str {
        &self.groups[group]
    }

    /// The bytes of the longest text.
    pub(super) fn text_bytes_max(&self) -> usize {
        let longest = self.groups.iter().map(String::len).max();
        longest.unwrap_or(0).max(size_of::<[u8; 8]>())
    }
}

/// A padded name without its padding; empty if it is not UTF-8.
fn trimmed(name: &[u8; 8]) -> &str {
    std::str::from_utf8(name.trim_ascii_end()).unwrap_or_default()
}
