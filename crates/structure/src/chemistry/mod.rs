//! What the atoms of a structure can take part in: hydrogen bonds, salt bridges, stacking of rings
//! and the coordination of metals.
//!
//! Standard amino acids and nucleotides have it from a table by the names of their atoms. All other
//! residues and ligands have it from their component: as the file describes it, as a dictionary does, or
//! as the library's own small dictionary does. What is left has it from its geometry, with the bonds that
//! the file states, if it does.

mod component;
mod dictionary;
mod perception;
mod roles;
mod table;
mod vectors;
mod water_bridges;

use super::checked_structure::CheckedStructure;
use super::model::{Ligand, MISSING, Structure};
use super::text8::{Text8, text8};
use component::perceive_known;
pub use dictionary::Components;
pub(super) use dictionary::{ComponentMap, DictionaryAtom, DictionaryBond, DictionaryComponent};
pub(super) use perception::ATOM_BONDS_MAX;
use perception::{Perceived, StatedLigandBonds, perceive};
pub use roles::Roles;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use table::KnownResidue;
pub use water_bridges::WaterBridge;

/// Where the roles of a residue's or a ligand's atoms come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChemistrySource {
    /// The names of the atoms, which are those of a standard residue.
    Names,
    /// A component whose bonds the structure's own file lists.
    File,
    /// A component of the dictionary [`ReadOptions::components`](crate::ReadOptions::components).
    Dictionary,
    /// A component of [`Components::frequent`].
    Frequent,
    /// The bonds of [`Ligand::bonds`](crate::Ligand::bonds), and the distances of the atoms.
    Conect,
    /// The distances of the atoms.
    Geometry,
}

impl ChemistrySource {
    /// The word in tables: `names`, `file`, `dictionary`, `frequent`, `conect` or `geometry`.
    pub fn name(self) -> &'static str {
        match self {
            ChemistrySource::Names => "names",
            ChemistrySource::File => "file",
            ChemistrySource::Dictionary => "dictionary",
            ChemistrySource::Frequent => "frequent",
            ChemistrySource::Conect => "conect",
            ChemistrySource::Geometry => "geometry",
        }
    }
}

/// A charged group or an aromatic ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// The atom that stands for it.
    atom: u32,
    /// Its atoms, as a range of [`Chemistry::members`]. Those of a ring are in its order.
    first: u32,
    count: u32,
}

/// What the atoms of a structure can take part in. Atoms are those of residues, those without a row,
/// and those of ligands, glycans first. Their owners are the residues, then
/// [`Structure::loose_residues`], then [`Structure::ligands`], all in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chemistry {
    roles: Vec<Roles>,
    owners: Vec<u32>,
    /// The heavy atoms that are bonded to donors and acceptors, as pairs of both, sorted.
    bonds: Vec<[u32; 2]>,
    /// Sorted by the atom that stands for the group.
    groups: Vec<Group>,
    members: Vec<u32>,
    /// For each owner.
    sources: Vec<ChemistrySource>,
    components: Option<Components>,
    /// The components whose bonds the structure's file lists.
    described: Option<Arc<ComponentMap>>,
    water_bridges: Vec<WaterBridge>,
    /// [`ReadOptions::water_reach`](crate::ReadOptions::water_reach).
    water_reach: u32,
}

impl Chemistry {
    /// What the atoms of a structure can take part in, by the names of residues and atoms and by their
    /// positions.
    /// `components` are those of a dictionary for ligands.
    pub fn of(structure: &CheckedStructure, components: Option<Components>) -> Self {
        Chemistry::of_columns(structure, components, None, 0)
    }

    /// [`Chemistry::of`] for a structure whose columns fit each other, also with the components that its
    /// file describes, and bridges of water within `water_reach` if that is above 0.
    fn of_columns(
        structure: &Structure,
        components: Option<Components>,
        described: Option<Arc<ComponentMap>>,
        water_reach: u32,
    ) -> Self {
        let mut builder = Builder::new(structure, components, described);
        let mut carbonyl = None;
        for (row, residue) in structure.residues.iter().enumerate() {
            let atoms = structure.atom_start[row] as usize..structure.atom_start[row + 1] as usize;
            let known = table::residue(&residue.comp_id).or_else(|| {
                table::residue(&residue.parent_comp_id).filter(|_| residue.is_standard())
            });
            builder.add(known, &residue.comp_id, atoms);
            // The direction of the hydrogen of N follows from the carbon of the residue before too.
            let before = carbonyl.filter(|_| !residue.break_before);
            if let Some(carbon) = before
                && builder.is_donor(residue.n)
            {
                builder.chemistry.bonds.push([residue.n, carbon]);
            }
            carbonyl = Some(residue.c).filter(|&carbon| carbon != MISSING);
        }
        let mut start = structure.atom_start.last().map_or(0, |&end| end as usize);
        for residue in &structure.loose_residues {
            let end = start + residue.atom_count as usize;
            let known = table::residue(&residue.comp_id)
                .or_else(|| table::residue(&residue.parent_comp_id));
            builder.add(known, &residue.comp_id, start..end);
            start = end;
        }
        // Atoms without a residue's name have no roles.
        let mut starts = vec![0; structure.ligands.len()];
        let mut next = structure.xyz.len();
        for (index, ligand) in structure.ligands_by_atoms() {
            starts[index] = next;
            next += ligand.atoms.len();
        }
        builder.skip_to(next);
        builder.add_ligands(&structure.ligands, &starts);
        let (mut chemistry, xyz) = builder.finish();
        if water_reach > 0 {
            chemistry.water_reach = water_reach;
            let atoms = water_bridges::BridgeAtoms {
                xyz: &xyz,
                roles: &chemistry.roles,
                owners: &chemistry.owners,
            };
            let waters = structure.waters.iter();
            let waters = waters.flat_map(|water| water.atoms.iter().take(1).map(|atom| atom.xyz));
            let found = water_bridges::find(&atoms, chemistry.bonds(), waters, water_reach);
            chemistry.water_bridges = found;
        }
        chemistry
    }

    /// The dictionary that was used.
    pub fn components(&self) -> Option<Components> {
        self.components
    }

    /// The components whose bonds the structure's file lists.
    pub(super) fn described_components(&self) -> Option<&Arc<ComponentMap>> {
        self.described.as_ref()
    }

    /// The bridges of the structure's waters, sorted by their atoms, if they were asked for.
    pub fn water_bridges(&self) -> &[WaterBridge] {
        &self.water_bridges
    }

    /// [`ReadOptions::water_reach`](crate::ReadOptions::water_reach).
    pub(super) fn water_reach(&self) -> u32 {
        self.water_reach
    }

    /// The number of atoms.
    pub fn atom_count(&self) -> usize {
        self.roles.len()
    }

    /// The roles of each atom, `[atoms]`.
    pub fn roles(&self) -> &[Roles] {
        &self.roles
    }

    /// The index of each atom's owner, `[atoms]`: residues come first, then residues without a row,
    /// then ligands. `u32::MAX` for an atom of none.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// Where the roles of an owner's atoms come from.
    pub fn source(&self, owner: usize) -> ChemistrySource {
        self.sources[owner]
    }

    /// The heavy atoms that are bonded to each donor and acceptor, as groups of pairs of both.
    pub fn bonds(&self) -> impl Iterator<Item = &[[u32; 2]]> {
        self.bonds.chunk_by(|one, next| one[0] == next[0])
    }

    /// The charged groups and aromatic rings: the atom that stands for each, and its atoms. Those of a
    /// ring are in its order.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.groups
            .iter()
            .map(|group| (group.atom, self.members_of(group)))
    }

    /// The index among [`Self::groups`] of the group that an atom stands for.
    pub fn group_index(&self, atom: u32) -> Option<usize> {
        let found = self.groups.binary_search_by_key(&atom, |group| group.atom);
        found.ok()
    }

    fn members_of(&self, group: &Group) -> &[u32] {
        &self.members[group.first as usize..][..group.count as usize]
    }
}

impl Structure {
    /// Fills [`Structure::chemistry`] with components of a dictionary and those that the file describes, and
    /// with bridges of water within `water_reach`, in 0.001 A, if that is above 0.
    pub(super) fn find_chemistry(
        &mut self,
        components: Option<Components>,
        described: Option<Arc<ComponentMap>>,
        water_reach: u32,
    ) {
        let chemistry = Chemistry::of_columns(self, components, described, water_reach);
        self.chemistry = Some(Arc::new(chemistry));
    }

    /// Whether the residues without a row, if there are any, have the atoms without a row.
    pub(super) fn has_matching_loose_residues(&self) -> bool {
        let residues = self.loose_residues.iter();
        let of_residues: u64 = residues.map(|residue| u64::from(residue.atom_count)).sum();
        let spans = self.loose.iter();
        let of_spans: u64 = spans.map(|span| u64::from(span.atom_count)).sum();
        let mut chains = self
            .loose_residues
            .iter()
            .map(|residue| residue.chain as usize);
        self.loose_residues.is_empty()
            || (of_residues == of_spans && chains.all(|chain| chain < self.chains.len()))
    }
}

/// The padded names of atoms. A structure of a program's own may have the codes of names alone, or none.
fn names(structure: &Structure) -> Vec<Text8> {
    if !structure.atom_details.is_empty() {
        return structure
            .atom_details
            .iter()
            .map(|atom| atom.name)
            .collect();
    }
    let codes = structure.atom_name.iter();
    codes.map(|name| text8(name.as_str().as_bytes())).collect()
}

/// Whether the file states bonds of all of a ligand's atoms.
fn states_all_bonds(ligand: &Ligand) -> bool {
    let mut has_bond = vec![false; ligand.atoms.len()];
    for &atom in ligand.bonds.as_flattened() {
        // A structure of a program's own may have any numbers.
        match has_bond.get_mut(atom as usize) {
            Some(has_bond) => *has_bond = true,
            None => return false,
        }
    }
    !ligand.bonds.is_empty() && has_bond.iter().all(|&has_bond| has_bond)
}

/// The ligands that links join, with their atoms.
#[derive(Default)]
struct LinkedLigands {
    atoms: Vec<u32>,
    /// The ligand of each atom.
    ligand: Vec<u32>,
    /// The bonds of ligands of which the file states all of them.
    bonds: StatedLigandBonds,
}

impl LinkedLigands {
    /// Adds the atoms of a ligand, with its bonds if the file states them all.
    fn add(&mut self, index: usize, ligand: &Ligand, start: usize) {
        let first = self.atoms.len() as u32;
        let atoms = start..start + ligand.atoms.len();
        self.atoms.extend(atoms.map(|atom| atom as u32));
        let end = self.atoms.len();
        self.ligand.resize(end, index as u32);
        if states_all_bonds(ligand) {
            let bonds = ligand
                .bonds
                .iter()
                .map(|bond| bond.map(|atom| first + atom));
            self.bonds.add(first..end as u32, bonds);
        }
    }
}

/// Adds the atoms of one owner after the other.
struct Builder {
    xyz: Vec<[i32; 3]>,
    element: Vec<u8>,
    name: Vec<Text8>,
    chemistry: Chemistry,
}

impl Builder {
    /// A builder that has the atoms of polymers, then those of ligands in the order of
    /// [`Structure::ligands_by_atoms`].
    fn new(
        structure: &Structure,
        components: Option<Components>,
        described: Option<Arc<ComponentMap>>,
    ) -> Self {
        let mut builder = Builder {
            xyz: structure.xyz.clone(),
            element: structure.element.clone(),
            name: names(structure),
            chemistry: Chemistry {
                components,
                described,
                ..Chemistry::default()
            },
        };
        builder.name.resize(builder.xyz.len(), text8(b""));
        for (_, ligand) in structure.ligands_by_atoms() {
            let atoms = || ligand.atoms.iter();
            builder.xyz.extend(atoms().map(|atom| atom.xyz));
            // Names of unknown atoms are not those of elements.
            let is_known = ligand.comp_id != text8(b"UNX");
            let element = |element: u8| if is_known { element } else { 0 };
            let elements = atoms().map(|atom| element(atom.element));
            builder.element.extend(elements);
            builder.name.extend(atoms().map(|atom| atom.details.name));
        }
        builder
    }

    fn is_donor(&self, atom: u32) -> bool {
        let roles = self.chemistry.roles.get(atom as usize);
        roles.is_some_and(|roles| roles.contains(Roles::DONOR))
    }

    /// Atoms up to `end` that have no roles yet get none.
    fn skip_to(&mut self, end: usize) {
        self.chemistry.roles.resize(end, Roles::NONE);
        self.chemistry.owners.resize(end, u32::MAX);
    }

    /// Adds an owner of atoms whose roles are still to come.
    fn add_owner(&mut self, source: ChemistrySource, atoms: Range<usize>) {
        let owner = self.chemistry.sources.len() as u32;
        if self.chemistry.roles.len() < atoms.end {
            self.skip_to(atoms.end);
        }
        self.chemistry.owners[atoms].fill(owner);
        self.chemistry.sources.push(source);
    }

    /// Adds a residue of a polymer, or a cap, with its atoms.
    fn add(&mut self, known: Option<&KnownResidue>, comp_id: &Text8, atoms: Range<usize>) {
        let is_known = known.is_some_and(|known| known.has_all(&self.name[atoms.clone()]));
        match known.filter(|_| is_known) {
            Some(known) => {
                self.add_owner(ChemistrySource::Names, atoms.clone());
                self.add_known(known, atoms);
            }
            None => {
                let range: Vec<u32> = atoms.clone().map(|atom| atom as u32).collect();
                let links = vec![0; range.len()];
                let known = self.perceive_known(comp_id, atoms.clone(), &links);
                let (source, perceived) = known.unwrap_or_else(|| {
                    let perceived = self.perceive(&range, &StatedLigandBonds::default());
                    (ChemistrySource::Geometry, perceived)
                });
                self.add_owner(source, atoms.clone());
                let (first_group, first_bond) =
                    (self.chemistry.groups.len(), self.chemistry.bonds.len());
                self.add_perceived(perceived, &range);
                self.make_backbone_nitrogen_neutral(atoms, first_group, first_bond);
            }
        }
    }

    /// Adds the roles, bonds and groups of a residue that the table has, for the atoms that are
    /// there. A bond or a group that lacks an atom is left out.
    fn add_known(&mut self, known: &KnownResidue, atoms: Range<usize>) {
        let names = &self.name[atoms.clone()];
        let find = |name: &[u8; 8]| {
            let index = names.iter().position(|atom_name| atom_name == name);
            index.map(|index| (atoms.start + index) as u32)
        };
        for (index, name) in atoms.clone().zip(names) {
            let Some(atom) = known.atom(name) else {
                continue;
            };
            self.chemistry.roles[index] = atom.roles;
            let bonded = atom.bonded.iter().filter_map(find);
            let bonds = bonded.map(|other| [index as u32, other]);
            self.chemistry.bonds.extend(bonds);
        }
        for group in &known.groups {
            let members: Option<Vec<u32>> = group.atoms.iter().map(find).collect();
            // A group that lacks an atom has no centre.
            if let (Some(atom), Some(members)) = (find(&group.atom), members) {
                self.chemistry.add_group(atom, group.role, &members);
            }
        }
    }

    /// Adds all ligands, whose first atoms are `starts`: first what components state, then by
    /// geometry the molecules of which a ligand has no component. Those need all their atoms, as
    /// bonds lead from one ligand to another; what is found of known ligands is dropped.
    fn add_ligands(&mut self, ligands: &[Ligand], starts: &[usize]) {
        let mut molecules: BTreeMap<u32, LinkedLigands> = BTreeMap::new();
        for (index, (ligand, &start)) in ligands.iter().zip(starts).enumerate() {
            let molecule = molecules.entry(ligand.molecule).or_default();
            molecule.add(index, ligand, start);
        }
        // Bonds of linked ligands to each other, and how many each atom has.
        let mut links = Vec::new();
        for molecule in molecules.values() {
            if molecule.ligand.first() != molecule.ligand.last() {
                let (xyz, element) = self.atoms_at(&molecule.atoms);
                let found = perception::links(&xyz, &element, &molecule.ligand);
                let atoms = |bond: [u32; 2]| bond.map(|atom| molecule.atoms[atom as usize]);
                links.extend(found.into_iter().map(atoms));
            }
        }
        // The counts saturate: many atoms in one place can have more links than a `u8` holds.
        let mut link_counts = vec![0_u8; self.xyz.len()];
        for &[atom, _] in &links {
            link_counts[atom as usize] = link_counts[atom as usize].saturating_add(1);
        }
        let mut is_known = vec![false; ligands.len()];
        for ((ligand, &start), is_known) in ligands.iter().zip(starts).zip(&mut is_known) {
            let atoms = start..start + ligand.atoms.len();
            let links = &link_counts[atoms.clone()];
            let known = self.perceive_known(&ligand.comp_id, atoms.clone(), links);
            *is_known = known.is_some();
            let source = match &known {
                Some((source, _)) => *source,
                None if states_all_bonds(ligand) => ChemistrySource::Conect,
                None => ChemistrySource::Geometry,
            };
            self.add_owner(source, atoms.clone());
            if let Some((_, known)) = known {
                let atoms: Vec<u32> = atoms.map(|atom| atom as u32).collect();
                self.add_perceived(known, &atoms);
            }
        }
        let polar = Roles::DONOR.with(Roles::ACCEPTOR).bits();
        let is_polar = |roles: Roles| roles.bits() & polar != 0;
        let roles = &self.chemistry.roles;
        // Donors and acceptors of known ligands have no others so far.
        let of_known = links
            .iter()
            .filter(|[atom, _]| is_polar(roles[*atom as usize]));
        self.chemistry.bonds.extend(of_known);
        for molecule in molecules.values() {
            let is_known = |atom: u32| is_known[molecule.ligand[atom as usize] as usize];
            if (0..molecule.atoms.len() as u32).all(is_known) {
                continue;
            }
            let mut perceived = self.perceive(&molecule.atoms, &molecule.bonds);
            perceived.bonds.retain(|bond| !is_known(bond[0]));
            perceived.groups.retain(|group| !is_known(group.0));
            for (atom, roles) in (0..).zip(&mut perceived.roles) {
                if is_known(atom) {
                    *roles = self.chemistry.roles[molecule.atoms[atom as usize] as usize];
                }
            }
            self.add_perceived(perceived, &molecule.atoms);
        }
    }

    /// What the atoms of a residue or ligand can take part in by its component in the first source that
    /// has it with these atoms. `links` has the number of links of each atom.
    fn perceive_known(
        &self,
        comp_id: &Text8,
        atoms: Range<usize>,
        links: &[u8],
    ) -> Option<(ChemistrySource, Perceived)> {
        let (xyz, element) = (&self.xyz[atoms.clone()], &self.element[atoms.clone()]);
        let names = &self.name[atoms];
        let described = self.chemistry.described.as_ref();
        let described = described.and_then(|components| components.get(comp_id));
        let dictionary = || self.chemistry.components?.get(comp_id);
        let frequent = || Components::frequent().get(comp_id);
        let by = |source, component: Option<&DictionaryComponent>| {
            let perceived = perceive_known(xyz, element, names, links, component?)?;
            Some((source, perceived))
        };
        by(ChemistrySource::File, described)
            .or_else(|| by(ChemistrySource::Dictionary, dictionary()))
            .or_else(|| by(ChemistrySource::Frequent, frequent()))
    }

    /// What atoms can take part in by their positions, and by stated bonds.
    fn perceive(&self, atoms: &[u32], bonds: &StatedLigandBonds) -> Perceived {
        let (xyz, element) = self.atoms_at(atoms);
        perceive(&xyz, &element, bonds)
    }

    /// The positions and elements of atoms.
    fn atoms_at(&self, atoms: &[u32]) -> (Vec<[i32; 3]>, Vec<u8>) {
        let places = || atoms.iter().map(|&atom| atom as usize);
        let xyz = places().map(|atom| self.xyz[atom]).collect();
        (xyz, places().map(|atom| self.element[atom]).collect())
    }

    /// Adds the roles, bonds and groups that were perceived of some atoms. `perceived` counts them
    /// from 0, `atoms` has their indices.
    fn add_perceived(&mut self, perceived: Perceived, atoms: &[u32]) {
        for (&atom, roles) in atoms.iter().zip(perceived.roles) {
            self.chemistry.roles[atom as usize] = roles;
        }
        let bonds = perceived.bonds.iter();
        let bonds = bonds.map(|pair| pair.map(|atom| atoms[atom as usize]));
        self.chemistry.bonds.extend(bonds);
        for (atom, role, members) in perceived.groups {
            let members: Vec<u32> = members
                .iter()
                .map(|&member| atoms[member as usize])
                .collect();
            self.chemistry
                .add_group(atoms[atom as usize], role, &members);
        }
    }

    /// Corrects the atom N of a residue whose roles follow from its own atoms alone. N is not bonded to
    /// the residue before there, so it looks like a charged amine. Removes its charged group, and makes N
    /// a donor if it has at most one bond within the residue; with two, as in proline, it has no hydrogen
    /// and no role. N at the start of a chain is treated alike, as ends of chains have no charge
    /// (docs/METHODS.md). `first_group` and `first_bond` are where the residue's groups and bonds begin.
    fn make_backbone_nitrogen_neutral(
        &mut self,
        atoms: Range<usize>,
        first_group: usize,
        first_bond: usize,
    ) {
        let names = &self.name[atoms.clone()];
        let Some(index) = names.iter().position(|name| *name == text8(b"N")) else {
            return;
        };
        let atom = (atoms.start + index) as u32;
        let chemistry = &mut self.chemistry;
        let mut new_groups = chemistry.groups[first_group..].iter();
        if let Some(index) = new_groups.position(|group| group.atom == atom) {
            chemistry.groups.remove(first_group + index);
        }
        let bonded = chemistry.bonds[first_bond..].iter();
        let bonded = bonded.filter(|bond| bond[0] == atom);
        chemistry.roles[atom as usize] = match bonded.count() {
            0 | 1 => Roles::DONOR,
            _ => Roles::NONE,
        };
    }

    /// The chemistry, and the positions of all atoms.
    fn finish(self) -> (Chemistry, Vec<[i32; 3]>) {
        let mut chemistry = self.chemistry;
        chemistry.bonds.sort_unstable();
        chemistry.groups.sort_unstable_by_key(|group| group.atom);
        (chemistry, self.xyz)
    }
}

impl Chemistry {
    /// Adds a group. No atom stands for two.
    fn add_group(&mut self, atom: u32, role: Roles, members: &[u32]) {
        let first = self.members.len() as u32;
        self.members.extend_from_slice(members);
        let count = members.len() as u32;
        self.groups.push(Group { atom, first, count });
        let roles = &mut self.roles[atom as usize];
        *roles = roles.with(role);
    }
}

#[cfg(test)]
mod source_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod water_tests;
