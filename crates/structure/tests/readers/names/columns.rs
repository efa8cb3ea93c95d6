//! Fields that are not in the columns of the PDB format, and files whose first line or line ends are
//! unusual.

use super::{
    columns_of, component, edit, mmcif, number, proteins, read, read_as, standard, ubiquitin, with,
};
use crate::has_parts;
use std::sync::Arc;
use tapeloop_structure::{
    BFactorFields, Check, Format, ReadLimits, ReadOptions, Reader, Structure,
};

/// The structure with the chain names of another one, and its numbers less `offset`.
fn named_as(mut structure: Structure, plain: &Structure, offset: i32) -> Structure {
    for (chain, name) in structure.chains.iter_mut().zip(&plain.chains) {
        chain.auth_asym_id = Arc::clone(&name.auth_asym_id);
    }
    for residue in &mut structure.residues {
        residue.auth_seq_id -= offset;
    }
    standard(structure)
}

fn chain(structure: &Structure) -> &str {
    &structure.chains[0].auth_asym_id
}

#[test]
fn columns_21_and_22_are_decided_for_the_whole_file() {
    for plain in proteins() {
        let expected = read(&plain);
        // A chain of two letters: HISA is a name of histidine, and not meant.
        let two = edit(&plain, |line| with(line, 21, "AA"));
        let structure = read(&two);
        assert_eq!(chain(&structure), "AA");
        assert!(named_as(structure, &expected, 0) == standard(expected.clone()));
        // Components of four letters; DVA of chain LA would be one of three.
        let four = edit(&plain, |line| match component(line) {
            "VAL" => with(line, 18, "DVAL"),
            "HIS" => with(line, 18, "HISD"),
            _ => line.to_owned(),
        });
        let structure = read(&four);
        assert_eq!(structure.chains.len(), 1);
        assert_eq!(chain(&structure), "A");
        assert_eq!(structure.findings.iter().count(), 0);
        let breaks = |structure: &Structure| {
            structure
                .residues
                .iter()
                .filter(|residue| residue.break_before)
                .count()
        };
        assert_eq!(breaks(&structure), breaks(&expected));
        let valine = structure
            .residues
            .iter()
            .find(|residue| &residue.comp_id == b"DVAL    ");
        assert_eq!(
            valine.map(|residue| (residue.aa, residue.is_standard())),
            Some((b'V', false))
        );
    }
}

#[test]
fn two_chains_of_two_letters_and_one_of_one_letter_stay_apart() {
    let plain = ubiquitin().replace("END\n", "");
    let moved = |chain: &str, x: f64| {
        edit(&plain, |line| {
            let old: f64 = columns_of(line, 31, 38).trim().parse().unwrap();
            with(&with(line, 21, chain), 31, &format!("{:8.3}", old + x))
        })
    };
    let text = moved("AA", 0.0) + &moved("BA", 100.0) + &moved(" A", 200.0);
    let structure = read(&text);
    let names: Vec<&str> = structure
        .chains
        .iter()
        .map(|chain| &*chain.auth_asym_id)
        .collect();
    assert_eq!(names, ["AA", "BA", "A"]);
    assert_eq!(structure.residues.len(), 3 * 76);
    assert_eq!(structure.findings.iter().count(), 0);
}

#[test]
fn lipids_of_four_letters_are_no_amino_acids_of_another_chain() {
    let lipid = |comp: &str| {
        format!(
            "ATOM      1  C1  {comp}M   2      90.000  20.000  10.000  1.00  0.00      MEMB C\n"
        )
    };
    for comp in ["POPC", "DPPC", "CHL1", "ACET", "PHEN"] {
        let structure = read(&ubiquitin().replace("END\n", &lipid(comp)));
        assert_eq!(structure.residues.len(), 76, "{comp}");
        let ligand = &structure.ligands[0];
        assert_eq!((ligand.component(), &*ligand.auth_asym_id), (comp, "M"));
    }
}

#[test]
fn lipids_without_a_chain_keep_their_fourth_letter() {
    let lipid = |comp: &str, number: u32| {
        format!(
            "ATOM      1  C1  {comp} {number:4}      90.000  20.000  10.000  1.00  0.00      MEMB C\n"
        )
    };
    let lipids = lipid("POPC", 1) + &lipid("DOPC", 2) + &lipid("XYPC", 3) + &lipid("ZZPC", 4);
    let structure = read(&ubiquitin().replace("END\n", &lipids));
    let names: Vec<_> = structure
        .ligands
        .iter()
        .map(|ligand| ligand.component())
        .collect();
    assert_eq!(names, ["POPC", "DOPC", "XYPC", "ZZPC"]);
}

#[test]
fn a_chain_of_two_letters_may_have_no_protein() {
    let atom = |name: &str, comp: &str, number: u32, x: f64| {
        format!("HETATM    1 {name} {comp}AB{number:4}    {x:8.3}  20.000  10.000  1.00  0.00\n")
    };
    let read = |atoms: &str| read(&ubiquitin().replace("END\n", atoms));
    // Waters are left out, also if other residues are of chain B or A.
    let waters = read(&(atom(" O  ", "HOH", 1, 80.0) + &atom(" O  ", "HOH", 2, 90.0)));
    assert_eq!(waters.ligands.len(), 0);
    for (name, comp) in [
        (" C1 ", "NAG"),
        ("ZN  ", " ZN"),
        (" C1 ", "XK2"),
        (" S  ", "SO4"),
    ] {
        let other = (number_of_agents(comp), atom(name, comp, 1, 80.0));
        let structure = read(&(other.1 + &atom(name, comp, 2, 95.0)));
        assert_eq!(structure.ligands.len(), other.0, "{comp}");
        let is_of_chain = |ligand: &tapeloop_structure::Ligand| {
            (ligand.component(), &*ligand.auth_asym_id) == (comp.trim(), "AB")
        };
        assert!(structure.ligands.iter().all(is_of_chain), "{comp}");
    }
    // G and C of a chain whose letters make symbols of elements.
    let sugar =
        |comp: &str, number| atom(" P  ", comp, number, 80.0) + &atom(" C1'", comp, number, 83.0);
    let structure = read(&(sugar("  G", 1) + &sugar("  C", 2)).replace("HETATM", "ATOM  "));
    assert_eq!(structure.ligands.len(), 0);
    assert_eq!(
        structure
            .loose
            .iter()
            .map(|span| span.atom_count)
            .sum::<u32>(),
        4
    );
    assert_eq!(&*structure.chains[1].auth_asym_id, "AB");
}

/// Residues of a component that are read as ligands, of two.
fn number_of_agents(comp: &str) -> usize {
    if comp == "SO4" { 0 } else { 2 }
}

#[test]
fn a_chain_of_two_letters_may_begin_after_serial_number_99999() {
    let plain = ubiquitin().replace("TER\nEND\n", "");
    let far = edit(&plain, |line| {
        let x: f64 = columns_of(line, 31, 38).trim().parse().unwrap();
        with(line, 31, &format!("{:8.3}", x + 200.0))
    });
    let two = edit(&far, |line| with(line, 21, "AB"));
    let late = widened(&two, 7, 11, |_| "100000".to_owned());
    let structure = read(&format!("{plain}TER\n{late}END\n"));
    assert_eq!(structure.residues.len(), 152);
    assert_eq!(&*structure.chains[1].auth_asym_id, "AB");
    let names = |first: usize| {
        structure.residues[first..first + 76]
            .iter()
            .map(|residue| residue.comp_id)
    };
    assert!(names(0).eq(names(76)));
    // Both the serial number and the chain shift.
    let both = widened(&widened(&far, 22, 22, |_| "A1".to_owned()), 7, 11, |_| {
        "100000".to_owned()
    });
    let structure = read(&both);
    assert_eq!((chain(&structure), structure.residues.len()), ("A1", 76));
}

#[test]
fn a_component_that_contradicts_its_chain_is_counted_with_its_line() {
    // Nothing is called VALX, and VAL of chain XA would be bonded to chain A.
    let text = edit(&ubiquitin(), |line| match number(line) {
        5 => with(line, 18, "VALX"),
        _ => line.to_owned(),
    });
    let structure = read(&text);
    assert_eq!(structure.chains.len(), 1);
    assert_eq!(structure.residues.len(), 76);
    assert_eq!(structure.residues[4].aa, b'X');
    let finding = structure.findings.iter().next().unwrap();
    assert_eq!(
        (finding.check, finding.count),
        (Check::ContradictoryNames, 1)
    );
    assert_eq!(&*finding.first, "line 37");
}

#[test]
fn residue_numbers_of_five_and_six_digits_are_read() {
    for plain in proteins() {
        let expected = read(&plain);
        for offset in [9_900, 99_900] {
            let text = edit(&plain, |line| {
                let number = format!("{:>4}", number(line) + offset);
                with(line, 23, &number)
            });
            let structure = read(&text);
            assert!(
                named_as(structure, &expected, offset) == standard(expected.clone()),
                "{offset}"
            );
        }
        let text = edit(&plain, |line| {
            with(line, 23, &format!("{:>4}", number(line) + 99_900))
        });
        let count = expected.residues.len() as u32;
        assert_eq!(read(&text).findings.count(Check::RepairedFields), count);
        // Hexadecimal numbers after 9999, as VMD writes them.
        let first = expected.residues[0].auth_seq_id;
        let text = edit(&plain, |line| {
            let number = number(line) - first + 9_990;
            with(
                line,
                23,
                &match number {
                    ..10_000 => number.to_string(),
                    _ => format!("{number:x}"),
                },
            )
        });
        let structure = read(&text);
        assert!(named_as(structure, &expected, 9_990 - first) == standard(expected.clone()));
    }
    // A digit is an insertion code after the residue of the number, and where the number leaves
    // columns blank.
    let text = edit(&ubiquitin(), |line| {
        let number = number(line);
        with(
            line,
            23,
            &match number {
                ..10 => format!("{} ", 1_000 + number),
                _ => format!("1009{}", number % 10),
            },
        )
    });
    let structure = read(&text);
    let inserted = &structure.residues[9];
    assert_eq!((inserted.auth_seq_id, inserted.ins_code), (1_009, b'0'));
    let text = edit(&ubiquitin(), |line| with(line, 27, "1"));
    let structure = read(&text);
    assert_eq!(
        (
            structure.residues[8].auth_seq_id,
            structure.residues[8].ins_code
        ),
        (9, b'1')
    );
}

/// The text with `wide` instead of the columns from `first` to `last`.
fn widened(text: &str, first: usize, last: usize, wide: impl Fn(&str) -> String) -> String {
    edit(text, |line| {
        format!("{}{}{}", &line[..first - 1], wide(line), &line[last..])
    })
}

#[test]
fn wide_fields_shift_the_others() {
    for plain in proteins() {
        let expected = read(&plain);
        let serial = widened(&plain, 7, 11, |line| {
            let serial: u32 = columns_of(line, 7, 11).trim().parse().unwrap();
            (100_000 + serial).to_string()
        });
        assert!(standard(read(&serial)) == standard(expected.clone()));
        for wide in ["A1", "ABC"] {
            let text = widened(&plain, 22, 22, |_| wide.to_owned());
            let structure = read(&text);
            assert_eq!(chain(&structure), wide);
            assert!(named_as(structure, &expected, 0) == standard(expected.clone()));
        }
        let count = expected.residues.len() as u32;
        assert_eq!(read(&serial).findings.count(Check::RepairedFields), count);
        // Numbers that go on beyond 9999.
        let first = expected.residues[0].auth_seq_id;
        let offset = 9_990 - first;
        let numbers = widened(&plain, 23, 26, |line| (offset + number(line)).to_string());
        let structure = read(&numbers);
        assert!(named_as(structure, &expected, offset) == standard(expected.clone()));
    }
    let component = widened(&ubiquitin(), 18, 20, |line| match number(line) {
        6 => "A1LU6".to_owned(),
        _ => columns_of(line, 18, 20).to_owned(),
    });
    let structure = read(&component);
    assert_eq!(structure.residues.len(), 76);
    assert_eq!(&structure.residues[5].comp_id, b"A1LU6   ");
}

#[test]
fn a_line_with_two_wide_fields_keeps_its_element() {
    let plain = edit(&ubiquitin(), |line| match columns_of(line, 13, 16) {
        " SD " => with(line, 77, "SE"),
        _ => line.to_owned(),
    });
    let corrected = |text: &str| read(text).findings.count(Check::CorrectedElements);
    assert_eq!(corrected(&plain), 1);
    let text = widened(&plain, 22, 22, |_| "ABCD".to_owned());
    let text = widened(&text, 7, 11, |line| {
        format!("1{:0>5}", columns_of(line, 7, 11).trim())
    });
    assert_eq!(corrected(&text), 1);
    assert_eq!(chain(&read(&text)), "ABCD");
}

#[test]
fn a_line_that_may_mean_two_things_is_refused_with_the_cause() {
    // Chain A1 and number 1000, or chain A and number 11000, from the first line on.
    let text = widened(&ubiquitin(), 22, 26, |line| {
        format!("A1{}", 1_000 + number(line))
    });
    let error = read_as(&text, Format::Pdb, ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(has_parts(&error, "line 1: .. 1 from column 22"), "{error}");
    assert!(
        has_parts(&error, "chain id of 2 letters .. number of 5 digits"),
        "{error}"
    );
}

#[test]
fn tabs_are_read_where_the_fields_are_clear() {
    for plain in proteins() {
        let expected = standard(read(&plain));
        let fields = [(1, 6), (7, 11), (13, 16), (18, 20), (22, 22), (23, 26)];
        let fields =
            fields
                .iter()
                .chain(&[(31, 38), (39, 46), (47, 54), (55, 60), (61, 66), (77, 78)]);
        let separated = edit(&plain, |line| {
            let fields = fields
                .clone()
                .map(|&(first, last)| columns_of(line, first, last).trim());
            fields.collect::<Vec<_>>().join("\t")
        });
        assert!(standard(read(&separated)) == expected);
        // An editor that replaced blanks up to each eighth column.
        let unexpanded = edit(&plain, |line| {
            let parts = line.as_bytes().chunks(8).map(|part| {
                let text = std::str::from_utf8(part).unwrap();
                if text.len() == 8 && text.ends_with("  ") {
                    format!("{}\t", text.trim_end())
                } else {
                    text.to_owned()
                }
            });
            parts.collect::<String>()
        });
        assert!(unexpanded.contains('\t'));
        assert!(standard(read(&unexpanded)) == expected);
    }
    let broken = edit(&ubiquitin(), |line| line.replace("A   1 ", "A\t1 "));
    let error = read_as(&broken, Format::Pdb, ReadOptions::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 1: tabs"), "{error}");
}

#[test]
fn b_factors_of_shifted_lines_are_found_where_they_are() {
    let plain = ubiquitin();
    let text = widened(&plain, 22, 22, |_| "A1".to_owned());
    let values = |text: &str| {
        let found = BFactorFields::find(text.as_bytes(), Format::Pdb, ReadLimits::default());
        let residues = found.unwrap().residues.into_iter();
        let fields = residues.flat_map(|residue| residue.atoms);
        fields
            .map(|field| text[field.bytes].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&text), values(&plain));
    let tabs = plain.replace("ATOM  ", "ATOM\t");
    let found = BFactorFields::find(tabs.as_bytes(), Format::Pdb, ReadLimits::default());
    assert!(found.is_err());
}

#[test]
fn residues_of_one_number_differ_by_their_segment_ids_in_shifted_lines_too() {
    let text = |first_serial: usize| -> String {
        let atoms = [("N", 0.0), ("CA", 1.5), ("C", 3.0), ("O", 4.2)];
        let segments = ["AAA", "BBB", "CCC"].into_iter().enumerate();
        let lines = segments.flat_map(|(index, segment)| {
            let lines = (0..).zip(atoms).map(move |(atom, (name, x))| {
                let serial = first_serial + 4 * index + atom;
                let x = 10.0 * index as f64 + x;
                format!(
                    "ATOM  {serial:>5}  {name:<3} GLY A   1    {x:8.3}   0.000   0.000  1.00  9.00      \
                     {segment:<4} {}  \n",
                    &name[..1]
                )
            });
            lines.collect::<Vec<_>>()
        });
        lines.collect()
    };
    let usual = read(&text(1));
    assert_eq!((usual.residues.len(), usual.xyz.len()), (3, 12));
    for first_serial in [99_994, 100_000] {
        let shifted = read(&text(first_serial));
        assert!(
            standard(shifted) == standard(usual.clone()),
            "{first_serial}"
        );
    }
}

#[test]
fn a_byte_order_mark_hides_no_record() {
    let plain = ubiquitin();
    let marked = format!("\u{feff}{plain}");
    assert!(read(&marked) == read(&plain));
    let first = |text: &str| {
        let found = BFactorFields::find(text.as_bytes(), Format::Pdb, ReadLimits::default());
        let field = found.unwrap().residues[0].atoms[0].bytes.clone();
        text[field].to_owned()
    };
    assert_eq!(first(&marked), first(&plain));
}

#[test]
fn lines_may_end_with_carriage_returns_alone() {
    for plain in proteins() {
        let expected = standard(read(&plain));
        for ends in ["\r", "\r\n"] {
            assert!(
                standard(read(&plain.replace('\n', ends))) == expected,
                "PDB {ends:?}"
            );
            let cif = mmcif(&plain, true).replace('\n', ends);
            let options = ReadOptions::default();
            let read = |text: &str| read_as(text, Format::Mmcif, options).unwrap();
            assert!(read(&cif) == read(&mmcif(&plain, true)), "mmCIF {ends:?}");
        }
        let returns = plain.replace('\n', "\r");
        assert_eq!(Format::from_text(returns.as_bytes()), Some(Format::Pdb));
        let find =
            |text: &str| BFactorFields::find(text.as_bytes(), Format::Pdb, ReadLimits::default());
        assert_eq!(find(&returns).unwrap(), find(&plain).unwrap());
    }
    let error = format!(
        "{}ATOM      1  CA\r",
        ubiquitin().replace('\n', "\r").replace("END\r", "")
    );
    let error = read_as(&error, Format::Pdb, ReadOptions::default())
        .unwrap_err()
        .to_string();
    let line = ubiquitin().lines().count();
    assert!(error.contains(&format!("line {line}: ")), "{error}");
}

#[test]
fn a_file_may_start_with_any_record_or_with_text() {
    for first in [
        "USER  MOD reduce.3.24.130724 H: found=0, std=0, add=1000",
        "LINK         C1  NAG A 1                  ND2 ASN A 2",
        "PFRMAT TS",
        "PARENT N/A",
        "ROOT",
        "HELIX    1   1 ALA A    1",
        "ORIGX1      1.000000",
        "DBREF1 1ABC A",
        "FoldX generated pdb file",
        "",
        "# a comment",
    ] {
        let text = format!("{first}\n{}", ubiquitin());
        assert_eq!(
            Format::from_text(text.as_bytes()),
            Some(Format::Pdb),
            "{first}"
        );
    }
    assert_eq!(Format::from_text(b"a letter\nto somebody\n"), None);
}

#[test]
fn the_format_can_be_given() {
    let text = format!("{}{}", "nothing\n".repeat(2_000), ubiquitin());
    let auto = Reader::new(ReadOptions::default()).read_auto("stdin", text.as_bytes());
    assert!(auto.is_err());
    let options = ReadOptions {
        format: Some(Format::Pdb),
        ..ReadOptions::default()
    };
    let given = Reader::new(options)
        .read_auto("odd.cif", text.as_bytes())
        .unwrap();
    assert_eq!(given[0].residues.len(), 76);
    let options = ReadOptions {
        format: Some(Format::Mmcif),
        ..options
    };
    let error = Reader::new(options)
        .read_auto("x.pdb", text.as_bytes())
        .unwrap_err();
    assert!(error.to_string().contains("data block"), "{error}");
}
