//! Elements, ions and virtual sites, mostly without columns 77 and 78.

use super::{
    assert_reads_as, atom, columns_of, edit, mmcif, proteins, read, read_as, standard, ubiquitin,
    with,
};
use tapeloop_structure::{Check, Format, LigandKind, ReadOptions, ResidueFlags};

/// The text without columns 77 and 78.
fn without_elements(text: &str) -> String {
    edit(text, |line| with(line, 77, "  "))
}

#[test]
fn virtual_sites_without_an_element_are_left_out_and_counted() {
    for plain in proteins().map(|text| without_elements(&text)) {
        let names = [
            "LPOA", " LP1", " DO ", " DCA", "DSG ", " EP ", " MN1", "MCB2",
        ];
        let text = edit(&plain, |line| match columns_of(line, 13, 16) {
            " O  " => {
                let sites = names.map(|name| with(line, 13, name));
                format!("{line}\n{}", sites.join("\n"))
            }
            _ => line.to_owned(),
        });
        assert!(standard(read(&text)) == standard(read(&plain)));
        let cif = |text: &str| read_as(&mmcif(text, false), Format::Mmcif, ReadOptions::default());
        let named = text
            .lines()
            .filter(|line| !line.contains(" MN1 ") && !line.contains(" MCB2"));
        let named: String = named.map(|line| format!("{line}\n")).collect();
        assert!(standard(cif(&named).unwrap()) == standard(cif(&plain).unwrap()));
        let structure = read(&text);
        let count = structure.residues.len() as u32 * names.len() as u32;
        assert_eq!(structure.findings.count(Check::LeftOutAtoms), count);
        let flags = structure.residues[3].flags;
        assert!(flags.contains(ResidueFlags::ATOMS_LEFT_OUT));
        // An element says that it is an atom.
        let with_element = edit(&text, |line| match columns_of(line, 13, 16) {
            "LPOA" => with(line, 77, " C"),
            _ => line.to_owned(),
        });
        let structure = read(&with_element);
        assert_eq!(
            structure.findings.count(Check::UnknownAtoms),
            structure.residues.len() as u32
        );
    }
}

#[test]
fn hydrogens_of_old_names_without_an_element_are_hydrogens() {
    let plain = without_elements(&ubiquitin());
    let text = edit(&plain, |line| match columns_of(line, 13, 16) {
        " CA " => ["1HA ", " 1HA", " 2HB", " HA ", "HD11", " H  "]
            .map(|name| with(line, 13, name))
            .iter()
            .fold(line.to_owned(), |lines, next| format!("{lines}\n{next}")),
        _ => line.to_owned(),
    });
    assert!(standard(read(&text)) == standard(read(&plain)));
}

#[test]
fn the_name_decides_the_element_of_an_atom_of_an_amino_acid() {
    let plain = ubiquitin();
    // Symbols that are the first letters of the name, and types of a force field.
    let text = edit(&plain, |line| match columns_of(line, 13, 16) {
        " CA " => with(line, 77, "CA"),
        " CD " => with(line, 77, "CD"),
        " NE2" => with(line, 77, "NA"),
        _ => line.to_owned(),
    });
    assert_reads_as(&text, &plain, "elements");
    assert!(read(&text).findings.count(Check::CorrectedElements) >= 76);
}

/// Component, kind and atomic number of the first atom of each ligand.
fn ligands(text: &str, format: Format) -> Vec<(String, LigandKind, u8)> {
    let options = ReadOptions {
        ligands: true,
        agents: true,
        ..ReadOptions::default()
    };
    let structure = read_as(text, format, options).unwrap();
    let ligands = structure.ligands.iter();
    let ligand = |ligand: &tapeloop_structure::Ligand| {
        (
            ligand.component().to_owned(),
            ligand.kind,
            ligand.atoms[0].element,
        )
    };
    ligands.map(ligand).collect()
}

#[test]
fn ions_without_elements_have_those_of_their_names() {
    use LigandKind::{Agent, Ion};
    let ions = [
        ("CA  ", " CA", 20, Ion),
        ("CAL ", "CAL", 20, Ion),
        ("SOD ", "SOD", 11, Ion),
        ("POT ", "POT", 19, Ion),
        ("CLA ", "CLA", 17, Agent),
        ("CL  ", " CL", 17, Agent),
        ("CES ", "CES", 55, Ion),
        ("ZN  ", "ZN2", 30, Ion),
        ("NA  ", " NA", 11, Ion),
        ("Na+ ", "Na+", 11, Ion),
        ("HG  ", " HG", 80, Ion),
        ("CD  ", " CD", 48, Ion),
        (" K  ", "  K", 19, Ion),
    ];
    let mut text = without_elements(&ubiquitin()).replace("TER\nEND\n", "");
    for (index, (name, comp, ..)) in (0..).zip(&ions) {
        text += &atom(name, comp, 200 + index, 80.0 + f64::from(index), "");
    }
    let expected: Vec<_> = ions
        .iter()
        .map(|(_, comp, element, kind)| (comp.trim().to_owned(), *kind, *element))
        .collect();
    assert_eq!(ligands(&text, Format::Pdb), expected);
    let without_column = mmcif(&text, false);
    assert_eq!(ligands(&without_column, Format::Mmcif), expected);
    // A column of which some values are not known.
    let with_column = edit(&without_column, |line| match line {
        _ if line.starts_with("ATOM") => {
            let name = line.split('"').nth(1).unwrap_or_default();
            format!("{line} {}", &name[..1])
        }
        _ if line.starts_with("HETATM") => format!("{line} ?"),
        _ => line.to_owned(),
    });
    let last_item = "_atom_site.auth_asym_id\n";
    let with_column =
        with_column.replace(last_item, &format!("{last_item}_atom_site.type_symbol\n"));
    assert_eq!(ligands(&with_column, Format::Mmcif), expected);
}

#[test]
fn columns_of_names_decide_the_elements_of_ligands() {
    let plain = without_elements(&ubiquitin()).replace("TER\nEND\n", "");
    let ligand =
        ["CA  ", " CA ", "FE  ", " C1 ", "CL1 "].map(|name| atom(name, "LIG ", 300, 90.0, ""));
    let elements = |text: &str| {
        let structure = read(text);
        let atoms = structure.ligands[0].atoms.iter();
        atoms.map(|atom| atom.element).collect::<Vec<_>>()
    };
    assert_eq!(
        elements(&format!("{plain}{}", ligand.concat())),
        [20, 6, 26, 6, 17]
    );
    // In a file that starts all names in column 13, CA is carbon there too.
    let aligned = edit(&plain, |line| {
        let name = columns_of(line, 13, 16).trim();
        with(line, 13, &format!("{name:<4}"))
    });
    assert_eq!(elements(&format!("{aligned}{}", ligand.concat()))[0], 6);
}

#[test]
fn a_chlorophyll_is_no_chloride() {
    let plain = ubiquitin().replace("TER\nEND\n", "");
    let atoms = ["MG  ", " CHA", " NA ", " C1 "].map(|name| atom(name, "CLA ", 300, 90.0, ""));
    let text = format!("{}{}", without_elements(&plain), atoms.concat());
    assert_eq!(
        ligands(&text, Format::Pdb),
        [("CLA".to_owned(), LigandKind::Ligand, 12)]
    );
}
