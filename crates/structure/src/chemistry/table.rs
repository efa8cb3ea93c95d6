//! The atoms of standard amino acids and nucleotides that take part in interactions.

use super::super::text8::{Text8, text8};
use super::roles::Roles;
use std::collections::HashMap;
use std::sync::OnceLock;

/// A row for each residue. `name:roles:bonded` is an atom with its roles (d donor, a acceptor, h
/// hydrophobic, t thiol, c binds metals) and the heavy atoms that are bonded to it, and
/// `name=kind:atoms` a group with the atom that stands for it (+ positive, - negative, o ring).
/// Charged groups are those of PLIP. Both nitrogens of histidine may have the hydrogen.
const ROWS: &str = "\
ALA CB:h
ARG CB:h CG:h NE:d:CD,CZ NH1:d:CZ NH2:d:CZ CZ=+:NE,NH1,NH2
ASN CB:h OD1:ac:CG ND2:d:CG
ASP CB:h OD1:ac:CG OD2:ac:CG CG=-:OD1,OD2
CYS SG:tc
GLN CB:h CG:h OE1:ac:CD NE2:d:CD
GLU CB:h CG:h OE1:ac:CD OE2:ac:CD CD=-:OE1,OE2
GLY
HIS CB:h ND1:dac:CG,CE1 NE2:dac:CD2,CE1 CG=o:CG,ND1,CE1,NE2,CD2 CE1=+:ND1,NE2
ILE CB:h CG1:h CG2:h CD1:h
LEU CB:h CG:h CD1:h CD2:h
LYS CB:h CG:h CD:h NZ:d:CE NZ=+:NZ
MET CB:h SD:c
MSE CB:h SE:c
PHE CB:h CG:h CD1:h CD2:h CE1:h CE2:h CZ:h CG=o:CG,CD1,CE1,CZ,CE2,CD2
PRO CB:h CG:h
SER OG:dac:CB
THR OG1:dac:CB CG2:h
TRP CB:h CG:h CD2:h CE3:h CZ2:h CZ3:h CH2:h NE1:d:CD1,CE2 CG=o:CG,CD1,NE1,CE2,CD2 CH2=o:CD2,CE2,CZ2,CH2,CZ3,CE3
TYR CB:h CG:h CD1:h CD2:h CE1:h CE2:h OH:dac:CZ CG=o:CG,CD1,CE1,CZ,CE2,CD2
VAL CB:h CG1:h CG2:h
A N1:ac:C2,C6 N3:ac:C2,C4 N7:ac:C5,C8 N6:d:C6 C2=o:N1,C2,N3,C4,C5,C6 C8=o:C4,C5,N7,C8,N9
G N1:d:C2,C6 N2:d:C2 N3:ac:C2,C4 O6:ac:C6 N7:ac:C5,C8 C2=o:N1,C2,N3,C4,C5,C6 C8=o:C4,C5,N7,C8,N9
C N3:ac:C2,C4 O2:ac:C2 N4:d:C4 C5:h C5=o:N1,C2,N3,C4,C5,C6
U N3:d:C2,C4 O2:ac:C2 O4:ac:C4 C5:h C5=o:N1,C2,N3,C4,C5,C6
DA N1:ac:C2,C6 N3:ac:C2,C4 N7:ac:C5,C8 N6:d:C6 C2':h C2=o:N1,C2,N3,C4,C5,C6 C8=o:C4,C5,N7,C8,N9
DG N1:d:C2,C6 N2:d:C2 N3:ac:C2,C4 O6:ac:C6 N7:ac:C5,C8 C2':h C2=o:N1,C2,N3,C4,C5,C6 C8=o:C4,C5,N7,C8,N9
DC N3:ac:C2,C4 O2:ac:C2 N4:d:C4 C5:h C2':h C5=o:N1,C2,N3,C4,C5,C6
DT N3:d:C2,C4 O2:ac:C2 O4:ac:C4 C5:h C7:h C2':h C6=o:N1,C2,N3,C4,C5,C6
";

/// The atoms of every amino acid; N of proline has no hydrogen.
const BACKBONE: &str = "N:d:CA O:ac:C OXT:ac:C";
/// Atoms without a role that any of the amino acids has. Each amino acid gets all of them: the
/// table is asked which atoms it knows, and not which ones a residue must have.
const OTHER_AMINO: &str = "N CA C CB CG CG1 CG2 CD CD1 CD2 CE CE1 CE2 CZ";
/// The atoms of every nucleotide.
const PHOSPHATE: &str = "OP1:ac:P OP2:ac:P OP3:ac:P O5':ac:P,C5' O4':ac:C4',C1' O3':ac:C3' \
                         O2':dac:C2' P=-:P";
/// Atoms without a role that any of the nucleotides has. Each nucleotide gets all of them.
const OTHER_NUCLEOTIDE: &str = "C1' C2' C3' C4' C5' C2 C4 C5 C6 C8 N1 N9";

/// A residue of the table.
pub(super) struct KnownResidue {
    atoms: HashMap<Text8, KnownAtom>,
    pub(super) groups: Vec<KnownGroup>,
}

/// An atom of a residue of the table.
#[derive(Clone, Default)]
pub(super) struct KnownAtom {
    pub(super) roles: Roles,
    /// The heavy atoms that are bonded to it.
    pub(super) bonded: Vec<Text8>,
}

/// A charged group or an aromatic ring of a residue of the table.
pub(super) struct KnownGroup {
    pub(super) atom: Text8,
    pub(super) role: Roles,
    pub(super) atoms: Vec<Text8>,
}

/// A residue by its padded name; `None` if the table does not have it.
pub(super) fn residue(comp_id: &Text8) -> Option<&'static KnownResidue> {
    static TABLE: OnceLock<HashMap<Text8, KnownResidue>> = OnceLock::new();
    let parse = || {
        let rows = ROWS.lines().map(|row| {
            let (name, words) = row.split_once(' ').unwrap_or((row, ""));
            // Names of amino acids have three letters, those of nucleotides one or two.
            let (common, others) = match name.len() {
                3 => (BACKBONE, OTHER_AMINO),
                _ => (PHOSPHATE, OTHER_NUCLEOTIDE),
            };
            let common = common.split_whitespace();
            let common = common.filter(|word| !(name == "PRO" && word.starts_with("N:")));
            // Later atoms replace earlier ones of the same name. N is among the others too, so that
            // proline, which has no N among its common atoms, knows N as an atom without a role.
            let mut residue = KnownResidue::parse(others.split_whitespace().chain(common));
            let listed = KnownResidue::parse(words.split_whitespace());
            residue.atoms.extend(listed.atoms);
            residue.groups.extend(listed.groups);
            (text8(name.as_bytes()), residue)
        });
        rows.collect()
    };
    TABLE.get_or_init(parse).get(comp_id)
}

impl KnownResidue {
    /// Parses atoms and groups as [`ROWS`] has them.
    fn parse<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut residue = KnownResidue {
            atoms: HashMap::new(),
            groups: Vec::new(),
        };
        let names = |text: &str| -> Vec<Text8> {
            let names = text.split(',').filter(|name| !name.is_empty());
            names.map(|name| text8(name.as_bytes())).collect()
        };
        for word in words {
            if let Some((atom, group)) = word.split_once('=') {
                let (kind, atoms) = group.split_once(':').unwrap_or((group, ""));
                let atoms = names(atoms);
                // The other atoms of a group may have no roles of their own.
                for &name in &atoms {
                    residue.atoms.entry(name).or_default();
                }
                residue.groups.push(KnownGroup {
                    atom: text8(atom.as_bytes()),
                    role: match kind {
                        "+" => Roles::POSITIVE,
                        "-" => Roles::NEGATIVE,
                        _ => Roles::RING,
                    },
                    atoms,
                });
                continue;
            }
            let mut parts = word.split(':');
            let name = text8(parts.next().unwrap_or("").as_bytes());
            let letters = parts.next().unwrap_or("");
            let roles = letters.chars().map(|letter| match letter {
                'd' => Roles::DONOR,
                'a' => Roles::ACCEPTOR,
                'h' => Roles::HYDROPHOBIC,
                't' => Roles::THIOL,
                _ => Roles::COORDINATES,
            });
            let atom = KnownAtom {
                roles: roles.fold(Roles::NONE, Roles::with),
                bonded: names(parts.next().unwrap_or("")),
            };
            residue.atoms.insert(name, atom);
        }
        residue
    }

    /// An atom by its padded name.
    pub(super) fn atom(&self, name: &Text8) -> Option<&KnownAtom> {
        self.atoms.get(name)
    }

    /// Whether the table knows all these names as atoms of such a residue.
    pub(super) fn has_all(&self, names: &[Text8]) -> bool {
        names.iter().all(|name| self.atoms.contains_key(name))
    }
}
