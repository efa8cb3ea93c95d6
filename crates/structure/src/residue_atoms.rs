//! The atoms of a residue under the names of its component.
//!
//! Programs call some atoms otherwise than the chemical component dictionary does. A residue whose
//! atoms are not all of its component's template, each once, comes here; nearly none of the archive
//! does. [`ResidueAtoms::resolve`] decides what a name means that simulation programs and the
//! dictionary use differently, gives atoms the dictionary's names, takes the atoms of a cap out, and
//! leaves repeated atoms out.

use std::collections::HashSet;

use super::atom_table::{AtomLine, PolymerKind};
use super::components::{self, Component};
use super::element;
use super::model::ResidueFlags;
use super::residue_template::ResidueTemplates;
use super::structure_builder::is_within;
use super::text8::Text8;

/// An oxygen of another name is one of the terminal carboxylate if it is closer than this to C, in
/// 0.001 A: OT1 and OT2 (CHARMM, X-PLOR), OC1 and OC2 (Amber in GROMACS), O1 and O2 (GROMOS and OPLS in
/// GROMACS), O' and O'' (X-PLOR), O01 (PyMOL). The bond is 1.25 A long. By the name alone O1 may be an
/// oxygen of a phosphate.
const CARBOXYLATE: i64 = 1_600;

/// Heavy atoms of CHARMM's patches at the ends of a chain, each with its name in a component of the
/// dictionary: of ACE (patches ACE and ACP), and of NME or NH2 (CT1, CT2 and CT3).
const CAP_ATOMS: [(Text8, Text8, Cap); 6] = [
    (*b"CAY     ", *b"CH3     ", Cap::Start),
    (*b"CY      ", *b"C       ", Cap::Start),
    (*b"OY      ", *b"O       ", Cap::Start),
    (*b"NT      ", *b"N       ", Cap::End),
    (*b"CAT     ", *b"C       ", Cap::End),
    (*b"CT      ", *b"C       ", Cap::End),
];

/// Atoms of one component that have another name in the dictionary: CHARMM's and GROMOS' CD of ILE,
/// C5M of thymine (CHARMM, and PDB files before 2007).
const RENAMED: [(Text8, Text8, Text8); 2] = [
    (*b"ILE     ", *b"CD      ", *b"CD1     "),
    (*b"DT      ", *b"C5M     ", *b"C7      "),
];

/// An end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cap {
    Start,
    End,
}

/// Atoms of a residue that were not taken as the file has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnusualAtoms {
    pub count: u32,
    /// The name of the first.
    pub first: Text8,
}

impl UnusualAtoms {
    pub(super) fn add(&mut self, name: Text8) {
        if self.count == 0 {
            self.first = name;
        }
        self.count += 1;
    }
}

/// The result of [`ResidueAtoms::resolve`]. Its memory is reused for the next residue.
#[derive(Default)]
pub(super) struct ResidueAtoms {
    /// The atoms of the residue in file order.
    pub atoms: Vec<AtomLine>,
    /// The atoms of caps in file order, first those of the cap at the start of the chain.
    pub caps: [Vec<AtomLine>; 2],
    pub flags: ResidueFlags,
    /// Names that have been kept, each with its place if that has to differ.
    seen: HashSet<(Text8, [i32; 3])>,
    /// Atoms whose name another atom of the residue has.
    pub repeated: UnusualAtoms,
    /// Atoms whose names the component does not have.
    pub unknown: UnusualAtoms,
    /// Atoms whose element is not that of their name.
    pub other_elements: UnusualAtoms,
}

/// The id of the component of the atoms of a cap.
pub(super) fn cap_id(is_start: bool) -> Text8 {
    if is_start { *b"ACE     " } else { *b"NH2     " }
}

/// The component of the atoms of a cap.
pub(super) fn cap_component(is_start: bool) -> &'static Component {
    components::lookup(cap_id(is_start)).unwrap_or_else(|| Component::unknown(PolymerKind::Cap))
}

impl ResidueAtoms {
    /// Resolves the names of the atoms of a residue `comp`, none of them hydrogen. Returns its
    /// component. Elements come first, as they tell oxygens; repeated names last, as renaming may
    /// make some.
    pub(super) fn resolve(
        &mut self,
        comp: Text8,
        component: &'static Component,
        atoms: &[AtomLine],
    ) -> &'static Component {
        self.atoms.clear();
        self.caps.iter_mut().for_each(Vec::clear);
        self.flags = ResidueFlags::NONE;
        self.repeated = UnusualAtoms::default();
        self.unknown = UnusualAtoms::default();
        self.other_elements = UnusualAtoms::default();
        let names = atoms.iter().map(|atom| atom.name);
        let dictionary = component.is_ambiguous.then_some(comp);
        let dictionary =
            dictionary.and_then(|comp| components::dictionary_component_by_atoms(comp, names));
        let component = dictionary.unwrap_or(component);
        self.atoms.extend_from_slice(atoms);
        if component.has_template_atoms {
            self.correct_elements(component);
            self.rename(component);
        }
        if component.kind == PolymerKind::Amino {
            if component.has_template_atoms || component.is_simulation_name {
                self.take_caps(component);
            }
            self.rename_terminal_oxygens(component);
        }
        self.leave_out_repeated(component.has_template_atoms);
        if component.has_template_atoms {
            for atom in &self.atoms {
                if !is_of(component, atom.name) {
                    self.unknown.add(atom.name);
                }
            }
        }
        self.flags = self
            .flags
            .with(ResidueFlags::ATOMS_LEFT_OUT.when(self.repeated.count > 0))
            .with(ResidueFlags::UNKNOWN_ATOMS.when(self.unknown.count > 0));
        component
    }

    /// Gives atoms the elements of their names. Some programs write CA (calcium) or types of a force
    /// field for the element; no atom of these components is a metal.
    fn correct_elements(&mut self, component: &'static Component) {
        let template = ResidueTemplates::table().get(component.template);
        for atom in &mut self.atoms {
            let element = match template.element(atom.name) {
                Some(element) => element,
                None if element::is_metal(atom.element) => element::from_name(atom.name),
                None => continue,
            };
            if atom.element != element {
                atom.element = element;
                self.other_elements.add(atom.name);
            }
        }
        self.atoms.retain(|atom| element::is_heavy(atom.element));
    }

    /// Gives atoms the names of the dictionary where they have those of another program, unless an
    /// atom has that name already.
    fn rename(&mut self, component: &'static Component) {
        let template = ResidueTemplates::table().get(component.template);
        let mut present = self.atoms.iter().fold(0u64, |present, atom| {
            present | template.position(atom.name).map_or(0, |index| 1 << index)
        });
        for atom in &mut self.atoms {
            let known = dictionary_name(component, atom.name);
            let place = known.and_then(|known| template.position(known));
            if let (Some(known), Some(place)) = (known, place)
                && present >> place & 1 == 0
            {
                present |= 1 << place;
                atom.name = known;
                self.flags = self.flags.with(ResidueFlags::RENAMED_ATOMS);
            }
        }
    }

    /// Moves atoms of caps, which some programs put into the first or last residue, out of the
    /// residue.
    fn take_caps(&mut self, component: &'static Component) {
        let caps = &mut self.caps;
        let count = self.atoms.len();
        self.atoms.retain(|atom| {
            let found = CAP_ATOMS.iter().find(|(name, ..)| *name == atom.name);
            let Some(&(_, name, cap)) = found.filter(|(name, ..)| !is_of(component, *name)) else {
                return true;
            };
            caps[cap as usize].push(AtomLine { name, ..*atom });
            false
        });
        if self.atoms.len() < count {
            self.flags = self.flags.with(ResidueFlags::RENAMED_ATOMS);
        }
    }

    /// Names the oxygens of the C-terminus O and OXT, in the order of their names, if they have the
    /// names of another program.
    fn rename_terminal_oxygens(&mut self, component: &'static Component) {
        let Some(c) = position_of_c(&self.atoms) else {
            return;
        };
        for to in [*b"O       ", *b"OXT     "] {
            if self.has(to) {
                continue;
            }
            let oxygens = self.atoms.iter_mut();
            let oxygens = oxygens.filter(|atom| is_terminal_oxygen(component, atom, c));
            if let Some(first) = oxygens.min_by_key(|atom| atom.name) {
                first.name = to;
                self.flags = self.flags.with(ResidueFlags::RENAMED_ATOMS);
            }
        }
    }

    /// Leaves out atoms whose name an earlier one has. Where the names of a component's atoms are not
    /// known, programs may use one for several, so the place has to be the same too.
    fn leave_out_repeated(&mut self, are_names_known: bool) {
        let (seen, repeated) = (&mut self.seen, &mut self.repeated);
        seen.clear();
        self.atoms.retain(|atom| {
            let place = if are_names_known { [0; 3] } else { atom.xyz };
            let is_new = seen.insert((atom.name, place));
            if !is_new {
                repeated.add(atom.name);
            }
            is_new
        });
    }

    fn has(&self, name: Text8) -> bool {
        self.atoms.iter().any(|atom| atom.name == name)
    }
}

fn position_of_c(atoms: &[AtomLine]) -> Option<[i32; 3]> {
    let c = atoms.iter().find(|atom| atom.name == *b"C       ")?;
    Some(c.xyz)
}

/// Whether an atom is an oxygen on the carbon C of the backbone, under a name that the component does
/// not have. Modified residues may have other oxygens there, under names of their own.
fn is_terminal_oxygen(component: &'static Component, atom: &AtomLine, c: [i32; 3]) -> bool {
    const OXYGEN: u8 = 8;
    const NAMES: [Text8; 5] = [
        *b"OT1     ",
        *b"OT2     ",
        *b"OC1     ",
        *b"OC2     ",
        *b"OT      ",
    ];
    let may_be = if component.has_template_atoms {
        !is_of(component, atom.name)
    } else {
        NAMES.contains(&atom.name)
    };
    may_be && atom.element == OXYGEN && is_within(atom.xyz, c, CARBOXYLATE)
}

/// Whether a component has an atom of that name.
fn is_of(component: &'static Component, name: Text8) -> bool {
    let template = ResidueTemplates::table().get(component.template);
    template.position(name).is_some()
}

/// The dictionary's name of an atom that has another one in the file.
fn dictionary_name(component: &'static Component, name: Text8) -> Option<Text8> {
    let renamed = RENAMED.iter();
    let mut renamed =
        renamed.filter(|(parent, other, _)| (*parent, *other) == (component.parent, name));
    if let Some((.., known)) = renamed.next() {
        return Some(*known);
    }
    if component.kind != PolymerKind::Nucleotide {
        return None;
    }
    // PDB files before 2007 and simulation programs: O1P, C5*.
    if let [b'O', digit @ b'1'..=b'3', b'P', b' ', ..] = name {
        return Some([b'O', b'P', digit, b' ', b' ', b' ', b' ', b' ']);
    }
    let known = name.map(|byte| if byte == b'*' { b'\'' } else { byte });
    (known != name).then_some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text8::text8;

    fn resolve(comp: &str, names: &str) -> (ResidueAtoms, &'static Component) {
        // C is at the origin, and what a name with ! stands for is not on it.
        let atom = |name: &str| {
            let bare = text8(name.trim_end_matches('!').as_bytes());
            let far = name.ends_with('!') || (bare[0] == b'O' && bare[1..3] == *b"D ");
            AtomLine {
                name: bare,
                element: element::from_name(bare),
                xyz: [
                    if far { 5_000 } else { 1_200 },
                    0,
                    i32::from(bare == *b"C       ") * -100,
                ],
                ..AtomLine::default()
            }
        };
        let atoms: Vec<AtomLine> = names.split(' ').map(atom).collect();
        let comp = text8(comp.as_bytes());
        let mut resolved = ResidueAtoms::default();
        let component = components::lookup(comp).unwrap();
        let component = resolved.resolve(comp, component, &atoms);
        (resolved, component)
    }

    fn text(atoms: &[AtomLine]) -> String {
        let names = atoms.iter().map(|atom| atom.name.trim_ascii_end());
        let names: Vec<_> = names.map(String::from_utf8_lossy).collect();
        names.join(" ")
    }

    #[test]
    fn terminal_oxygens_are_o_and_oxt_in_the_order_of_their_names() {
        for (names, expected) in [
            ("N CA C OT1 OT2", "N CA C O OXT"),
            ("N CA C OC2 OC1", "N CA C OXT O"),
            ("N CA C O1 O2", "N CA C O OXT"),
            ("N CA C O' O''", "N CA C O OXT"),
            ("N CA C O OT", "N CA C O OXT"),
            ("N CA C OT1", "N CA C O"),
            ("N CA C OXT OT2", "N CA C OXT O"),
            ("N CA C O OXT O1", "N CA C O OXT O1"),
            ("N CA C O O1!", "N CA C O O1"),
            ("N CA C O O01", "N CA C O OXT"),
        ] {
            let (resolved, _) = resolve("GLY", names);
            assert_eq!(text(&resolved.atoms), expected);
            let is_renamed = names.replace('!', "") != expected;
            let has_flag = resolved.flags.contains(ResidueFlags::RENAMED_ATOMS);
            assert_eq!(has_flag, is_renamed, "{names}");
            assert_eq!(resolved.unknown.count, u32::from(!is_renamed), "{names}");
        }
        // A modified residue has atoms of its own, and an end as any other.
        let (resolved, _) = resolve("SEP", "N CA C OT1 OT2 O1P! CY");
        assert_eq!(text(&resolved.atoms), "N CA C O OXT O1P CY");
        assert_eq!(resolved.unknown.count, 0);
        // Oxygens with other names keep them, even if the component has no parent.
        for comp in ["SEP", "UNK"] {
            let (resolved, _) = resolve(comp, "N CA C O O2");
            assert_eq!(text(&resolved.atoms), "N CA C O O2");
        }
    }

    #[test]
    fn atoms_of_caps_leave_the_residue() {
        let (resolved, _) = resolve("GLY", "CAY CY OY N CA C O NT CAT");
        assert_eq!(text(&resolved.atoms), "N CA C O");
        assert_eq!(text(&resolved.caps[0]), "CH3 C O");
        assert_eq!(text(&resolved.caps[1]), "N C");
        assert_eq!(resolved.unknown, UnusualAtoms::default());
    }

    #[test]
    fn the_name_decides_the_element_in_a_component_that_is_known() {
        let atom = |name: &[u8; 8], element| AtomLine {
            name: *name,
            element,
            ..AtomLine::default()
        };
        // Calcium for CA, and sodium for a hydrogen.
        let atoms = [
            atom(b"CA      ", 20),
            atom(b"HA      ", 11),
            atom(b"N       ", 7),
        ];
        let mut resolved = ResidueAtoms::default();
        let component = components::lookup(*b"ALA     ").unwrap();
        resolved.resolve(*b"ALA     ", component, &atoms);
        let elements: Vec<u8> = resolved.atoms.iter().map(|atom| atom.element).collect();
        assert_eq!(elements, [6, 7]);
        assert_eq!(
            (resolved.other_elements.count, resolved.other_elements.first),
            (2, *b"CA      ")
        );
    }

    #[test]
    fn the_first_of_repeated_atoms_counts() {
        let (resolved, _) = resolve("ALA", "N CA C O CB CB XX XX CA");
        assert_eq!(text(&resolved.atoms), "N CA C O CB XX");
        assert_eq!(
            (resolved.repeated.count, resolved.repeated.first),
            (3, *b"CB      ")
        );
        assert_eq!(
            (resolved.unknown.count, resolved.unknown.first),
            (1, *b"XX      ")
        );
        assert!(resolved.flags.contains(ResidueFlags::ATOMS_LEFT_OUT));
        assert!(resolved.flags.contains(ResidueFlags::UNKNOWN_ATOMS));
    }

    #[test]
    fn atoms_of_isoleucine_and_of_nucleotides_have_the_dictionarys_names() {
        let (resolved, _) = resolve("ILE", "N CA C O CB CG1 CG2 CD");
        assert_eq!(text(&resolved.atoms), "N CA C O CB CG1 CG2 CD1");
        let (resolved, _) = resolve("GLU", "N CA C O CB CG CD");
        assert_eq!(text(&resolved.atoms), "N CA C O CB CG CD");
        let (resolved, _) = resolve("DT", "P O1P O2P O5* C5* C5M");
        assert_eq!(text(&resolved.atoms), "P OP1 OP2 O5' C5' C7");
        assert_eq!(resolved.unknown.count, 0);
    }

    #[test]
    fn heavy_atoms_decide_what_a_name_means_that_the_dictionary_has_too() {
        for (comp, names, parent) in [
            ("HSE", "N CA C O CB CG ND1 CD2 CE1 NE2", "HIS"),
            ("HSE", "CAY CY OY N CA C O CB CG ND1 CD2 CE1 NE2 NT", "HIS"),
            ("HSE", "N CA C O CB CG OG!", "SER"),
            ("HSE", "N CA C C3 O C4 O3!", "SER"),
            ("NLN", "N CA CB CG OD1 ND2 C OT1 OT2", "ASN"),
            ("NLN", "N CA C O CB CG CD CE NH2", "LEU"),
            ("GLH", "N CA C O CB CG CD OE1 OE2", "GLU"),
            ("GLH", "N CA C O CB CG CD OE1 N1 C1", "GLN"),
            ("OLT", "N CA CB CG2 OG1 C O", "THR"),
        ] {
            let (_, component) = resolve(comp, names);
            assert_eq!(component.parent, text8(parent.as_bytes()), "{comp} {names}");
        }
        // An atom that neither has leaves the name the program's, and is counted.
        let (resolved, component) = resolve("HSE", "N CA C O CB CG ND1 CD2 CE1 NE2 XX");
        assert_eq!((component.aa, resolved.unknown.count), (b'H', 1));
        // Both have one parent, and atoms of their own.
        for (comp, names, is_standard) in [
            ("LYN", "N CA C O CB CG CD CE NZ", true),
            ("LYN", "N CA C O CB CG CD CE NZ NT", false),
            ("HIP", "N CA C O CB CG ND1 CD2 CE1 NE2", true),
            ("HIP", "N CA C O CB CG ND1 CD2 CE1 NE2 P", false),
            ("OLT", "N CA CB CG2 OG1 CD1 C O", false),
            ("CYM", "N CA CB SG CD C O", false),
        ] {
            let (resolved, component) = resolve(comp, names);
            assert_eq!(component.has_template_atoms, is_standard, "{comp} {names}");
            assert_eq!(resolved.unknown.count, 0, "{comp} {names}");
        }
    }
}
