//! Residues of components that no table has.

use super::{component, edit, mmcif, number, proteins, read, read_as, ubiquitin, with};
use tapeloop_structure::{Check, Format, ReadOptions, Structure};

/// The text with residue `chosen` under the name LU6, of records `record`.
fn unknown(text: &str, record: &str, chosen: i32) -> String {
    edit(text, |line| {
        if number(line) == chosen {
            with(&with(line, 1, record), 18, "LU6 ")
        } else {
            line.to_owned()
        }
    })
}

fn letters(structure: &Structure) -> String {
    let letters = structure
        .residues
        .iter()
        .map(|residue| char::from(residue.aa));
    letters.collect()
}

#[test]
fn a_residue_with_a_peptide_bond_on_both_sides_is_a_residue() {
    for plain in proteins() {
        let whole = read(&plain);
        let sequence = letters(&whole);
        for record in ["ATOM  ", "HETATM"] {
            let chosen = whole.residues[5].auth_seq_id;
            let text = unknown(&plain, record, chosen);
            let expected = format!("{}X{}", &sequence[..5], &sequence[6..]);
            for format in [Format::Pdb, Format::Mmcif] {
                let text = match format {
                    Format::Mmcif => mmcif(&text, true),
                    _ => text.clone(),
                };
                let structure = read_as(&text, format, ReadOptions::default()).unwrap();
                assert_eq!(letters(&structure), expected, "{record} {format:?}");
                let breaks = structure
                    .residues
                    .iter()
                    .filter(|residue| residue.break_before);
                let before = whole.residues.iter().filter(|residue| residue.break_before);
                assert_eq!(breaks.count(), before.count(), "no break");
                assert_eq!(structure.xyz.len(), whole.xyz.len());
                assert_eq!(structure.findings.count(Check::DroppedResidues), 0);
            }
        }
    }
}

#[test]
fn at_an_end_of_a_chain_the_file_has_to_mark_it() {
    let plain = ubiquitin();
    let dropped = read(&unknown(&plain, "HETATM", 1));
    assert_eq!((dropped.residues.len(), dropped.ligands.len()), (75, 1));
    assert_eq!(dropped.findings.count(Check::DroppedResidues), 1);
    assert_eq!(&*dropped.findings.iter().next().unwrap().first, "A LU6 1");
    let modres = "MODRES 1ABC LU6 A    1  MET  MODIFIED\n";
    let marked = read(&format!("{modres}{}", unknown(&plain, "HETATM", 1)));
    assert_eq!(
        letters(&marked),
        letters(&read(&plain)).replacen('M', "X", 1)
    );
    assert_eq!(marked.findings.iter().count(), 0);
    // In mmCIF a number in the sequence marks it, unless waters have one too.
    let text = mmcif(&unknown(&plain, "ATOM  ", 1), true);
    let options = ReadOptions::default();
    let marked = read_as(&text, Format::Mmcif, options).unwrap();
    assert_eq!(marked.residues.len(), 76);
    let water = "ATOM 1 O . HOH A 500 0.0 0.0 90.0 1.0 9.0 500 A O\n";
    let numbered = read_as(&format!("{text}{water}"), Format::Mmcif, options).unwrap();
    assert_eq!(numbered.residues.len(), 75);
}

#[test]
fn without_bonds_or_backbone_it_is_a_ligand() {
    let plain = ubiquitin();
    let moved = edit(&unknown(&plain, "HETATM", 6), |line| {
        match component(line) {
            "LU6" => with(
                line,
                31,
                &format!("{:8.3}", 500.0 + f64::from(number(line))),
            ),
            _ => line.to_owned(),
        }
    });
    let structure = read(&moved);
    assert_eq!((structure.residues.len(), structure.ligands.len()), (75, 1));
    assert_eq!(structure.findings.count(Check::DroppedResidues), 0);
    let no_ca = edit(&unknown(&plain, "ATOM  ", 6), |line| {
        line.replace(" CA  LU6", " C1  LU6")
    });
    assert_eq!(read(&no_ca).ligands.len(), 1);
}

#[test]
fn a_lipid_with_the_name_of_an_amino_acid_is_a_ligand() {
    let bead = "ATOM      1  NC3 DPP B  27      60.000  20.000  10.000  1.00  0.00\n";
    let structure = read(&ubiquitin().replace("END\n", bead));
    assert_eq!((structure.residues.len(), structure.ligands.len()), (76, 1));
}
