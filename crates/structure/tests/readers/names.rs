//! What simulation programs, predictors and editors call residues, atoms and ions, and where they put
//! fields. Each file is a sample with one peculiarity, and has to be the sample but for the names.

#[path = "names/columns.rs"]
mod columns;
#[path = "names/elements.rs"]
mod elements;
#[path = "names/plddt.rs"]
mod plddt;
#[path = "names/unknown.rs"]
mod unknown;

use flate2::write::GzEncoder;
use std::io::Write;
use tapeloop_structure::{Check, CheckSet, Format, ReadOptions, Reader, ResidueFlags, Structure};
use tapeloop_test_support::repository;

const NAMES: &str = include_str!("../../src/simulation_names.tsv");

/// The atoms of two proteins in columns, without other records.
fn proteins() -> [String; 2] {
    ["1ubi", "1a8o"].map(|name| {
        let path = repository("samples").join(format!("{name}.pdb"));
        let text = std::fs::read_to_string(path).unwrap();
        let atoms = text.lines().filter(|line| line.starts_with("ATOM"));
        atoms.map(|line| format!("{line}\n")).collect::<String>() + "TER\nEND\n"
    })
}

fn ubiquitin() -> String {
    proteins()[0].clone()
}

/// The text with `change` made to each line of an atom.
fn edit(text: &str, change: impl Fn(&str) -> String) -> String {
    let lines = text.lines().map(|line| match line {
        atom if atom.starts_with("ATOM") || atom.starts_with("HETATM") => change(atom),
        other => other.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Columns `first` to `last` of a line, counted from 1.
fn columns_of(line: &str, first: usize, last: usize) -> &str {
    &line[first - 1..last]
}

/// The line with `new` in the columns from `first` on, counted from 1.
fn with(line: &str, first: usize, new: &str) -> String {
    format!(
        "{}{new}{}",
        &line[..first - 1],
        &line[first - 1 + new.len()..]
    )
}

fn component(line: &str) -> &str {
    columns_of(line, 18, 21).trim()
}

fn number(line: &str) -> i32 {
    columns_of(line, 23, 26).trim().parse().unwrap()
}

fn read_as(
    text: &str,
    format: Format,
    options: ReadOptions,
) -> tapeloop_structure::Result<Structure> {
    let structures = Reader::new(options).read_bytes(text.as_bytes(), format);
    structures.map(|mut all| all.remove(0))
}

fn read(text: &str) -> Structure {
    let options = ReadOptions {
        ligands: true,
        ..ReadOptions::default()
    };
    read_as(text, Format::Pdb, options).unwrap()
}

/// The atoms of a PDB file as mmCIF, without entities; `has_symbols` writes elements.
fn mmcif(text: &str, has_symbols: bool) -> String {
    let items = "group_PDB id label_atom_id label_alt_id label_comp_id label_asym_id label_seq_id \
                 Cartn_x Cartn_y Cartn_z occupancy B_iso_or_equiv auth_seq_id auth_asym_id";
    let mut out = "data_x\nloop_\n".to_owned();
    let symbol = has_symbols.then_some("type_symbol");
    for item in items.split_whitespace().chain(symbol) {
        out += &format!("_atom_site.{item}\n");
    }
    for line in text
        .lines()
        .filter(|line| line.starts_with("ATOM") || line.starts_with("HETATM"))
    {
        let field = |first, last| columns_of(line, first, last).trim();
        let record = field(1, 6);
        let sequence = if record == "ATOM" { field(23, 26) } else { "." };
        let name = format!("\"{}\"", field(13, 16));
        let fields = [
            record,
            "1",
            &name,
            ".",
            field(18, 21),
            field(22, 22),
            sequence,
        ];
        out += &fields.join(" ");
        for (first, last) in [
            (31, 38),
            (39, 46),
            (47, 54),
            (55, 60),
            (61, 66),
            (23, 26),
            (22, 22),
        ] {
            out += " ";
            out += field(first, last);
        }
        if has_symbols {
            out += &format!(" {}", field(77, 78));
        }
        out += "\n";
    }
    out
}

/// The structure with the names of the dictionary, and nothing that says otherwise.
fn standard(mut structure: Structure) -> Structure {
    for residue in &mut structure.residues {
        if residue.is_standard() {
            residue.comp_id = residue.parent_comp_id;
        }
        residue.flags = ResidueFlags::NONE;
    }
    structure.findings = Default::default();
    structure.truncation = None;
    structure
}

/// Asserts that `text` is the structure `plain` but for names, as PDB file, compressed, and as mmCIF
/// file.
#[track_caller]
fn assert_reads_as(text: &str, plain: &str, what: &str) {
    let expected = standard(read(plain));
    assert!(standard(read(text)) == expected, "{what}: PDB");
    let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    let options = ReadOptions {
        ligands: true,
        ..ReadOptions::default()
    };
    let packed = Reader::new(options).read_auto("x.pdb.gz", &packed.finish().unwrap());
    assert!(
        standard(packed.unwrap().remove(0)) == expected,
        "{what}: gzip"
    );
    let [text, plain] = [text, plain].map(|text| {
        let structure = read_as(&mmcif(text, true), Format::Mmcif, options);
        standard(structure.unwrap())
    });
    assert!(text == plain, "{what}: mmCIF");
}

#[test]
fn names_of_simulation_programs_are_read_as_the_residues_that_they_stand_for() {
    let rows = NAMES.lines().filter(|row| !row.starts_with('#'));
    let mut tested = 0;
    for row in rows {
        let (name, parent) = row.split_once('\t').unwrap();
        let parent = parent.split('\t').next().unwrap();
        for plain in proteins() {
            let is_of = |line: &str| component(line) == parent;
            if !plain
                .lines()
                .any(|line| line.starts_with("ATOM") && is_of(line))
            {
                continue;
            }
            tested += 1;
            let renamed = edit(&plain, |line| {
                if is_of(line) {
                    with(line, 18, &format!("{name:>3} ")[..4])
                } else {
                    line.to_owned()
                }
            });
            assert_reads_as(&renamed, &plain, name);
            let structure = read(&renamed);
            let residues = structure.residues.iter();
            let mut renamed =
                residues.filter(|residue| residue.comp_id.starts_with(name.as_bytes()));
            assert!(renamed.all(|residue| residue.flags.contains(ResidueFlags::SIMULATION_NAME)));
        }
    }
    assert!(tested > 100, "{tested}");
}

#[test]
fn names_that_the_dictionary_has_too_mean_what_the_atoms_are() {
    // Homoserine instead of threonine 7, and norleucine amide instead of methionine 1.
    let text = edit(&ubiquitin(), |line| match (component(line), number(line)) {
        ("THR", 7) if columns_of(line, 13, 16) == " CG2" => {
            with(&with(line, 13, " CG "), 18, "HSE")
        }
        ("THR", 7) if columns_of(line, 13, 16) == " OG1" => {
            with(&with(line, 13, " OG "), 18, "HSE")
        }
        ("THR", 7) => with(line, 18, "HSE"),
        ("MET", 1) if columns_of(line, 13, 16) == " SD " => {
            with(&with(line, 13, " CD "), 18, "NLN")
        }
        ("MET", 1) => with(line, 18, "NLN"),
        ("HIS", _) => with(line, 18, "HSE"),
        ("ASN", _) => with(line, 18, "NLN"),
        _ => line.to_owned(),
    });
    for format in [Format::Pdb, Format::Mmcif] {
        let text = match format {
            Format::Mmcif => mmcif(&text, true),
            _ => text.clone(),
        };
        let structure = read_as(&text, format, ReadOptions::default()).unwrap();
        let residue_of = |number: i32| {
            let residue = structure
                .residues
                .iter()
                .find(|residue| residue.auth_seq_id == number);
            let residue = residue.unwrap();
            (residue.aa, residue.is_standard())
        };
        assert_eq!(
            [residue_of(7), residue_of(68)],
            [(b'S', false), (b'H', true)],
            "HSE"
        );
        assert_eq!(
            [residue_of(1), residue_of(25)],
            [(b'L', false), (b'N', true)],
            "NLN"
        );
    }
}

#[test]
fn terminal_oxygens_of_all_programs_are_o_and_oxt() {
    for plain in proteins() {
        let last = plain
            .lines()
            .filter(|line| line.starts_with("ATOM"))
            .map(number)
            .max()
            .unwrap();
        // The samples may lack OXT, which is near C too.
        let o = plain.lines().find(|line| {
            line.starts_with("ATOM") && number(line) == last && columns_of(line, 13, 16) == " O  "
        });
        let o = o.unwrap();
        let x: f64 = columns_of(o, 31, 38).trim().parse().unwrap();
        let oxt = with(&with(o, 13, " OXT"), 31, &format!("{:8.3}", x + 0.4));
        let has_oxt = plain.contains(" OXT ");
        let plain = if has_oxt {
            plain.clone()
        } else {
            plain.replace("TER\n", &format!("{oxt}\nTER\n"))
        };
        for (first, second) in [
            ("OT1", "OT2"),
            ("OC1", "OC2"),
            ("O1", "O2"),
            ("O", "OT"),
            ("O'", "O''"),
            ("O", "O01"),
        ] {
            let text = edit(&plain, |line| {
                match (number(line), columns_of(line, 13, 16)) {
                    (number, " O  ") if number == last => with(line, 13, &format!(" {first:<3}")),
                    (number, " OXT") if number == last => with(line, 13, &format!(" {second:<3}")),
                    _ => line.to_owned(),
                }
            });
            assert_reads_as(&text, &plain, first);
            let structure = read(&text);
            let flags = structure.residues.last().unwrap().flags;
            assert!(flags.contains(ResidueFlags::RENAMED_ATOMS), "{first}");
            assert_eq!(structure.findings.iter().count(), 0, "{first}");
        }
    }
}

#[test]
fn an_oxygen_that_is_not_on_the_carbon_keeps_its_name() {
    // A phosphate on serine, as PyMOL builds it.
    let text = edit(&ubiquitin(), |line| {
        match (number(line), columns_of(line, 13, 16)) {
            (20, " OG ") => format!("{line}\n{}", with(line, 13, " O1 ")),
            _ => line.to_owned(),
        }
    });
    let structure = read(&text);
    assert_eq!(structure.findings.count(Check::UnknownAtoms), 1);
    let found = structure.findings.iter().next().unwrap();
    assert_eq!(&*found.first, "A SER 20: atom O1");
    let flags = structure.residues[19].flags;
    assert!(flags.contains(ResidueFlags::UNKNOWN_ATOMS));
    assert_eq!(structure.xyz.len(), read(&ubiquitin()).xyz.len() + 1);
}

/// Lines of an atom `name` of a residue `comp` `number` at `x`, in the sample's chain.
fn atom(name: &str, comp: &str, number: i32, x: f64, element: &str) -> String {
    format!(
        "ATOM      1 {name:<4} {comp:<4}A{number:4}    {x:8.3}  20.000  10.000  1.00 10.00          {element:>2}\n"
    )
}

#[test]
fn atoms_of_caps_inside_residues_are_those_of_caps_of_their_own() {
    let plain = ubiquitin();
    let caps = |start: [&str; 4], end: [&str; 3], numbers: [i32; 2]| {
        let [comp, ch3, c, o] = start;
        let start = atom(ch3, comp, numbers[0], 1.0, "C")
            + &atom(c, comp, numbers[0], 2.5, "C")
            + &atom(o, comp, numbers[0], 3.7, "O");
        let [comp, n, methyl] = end;
        let end = atom(n, comp, numbers[1], 60.0, "N") + &atom(methyl, comp, numbers[1], 61.5, "C");
        start + &plain.replace("TER\n", &format!("{end}TER\n"))
    };
    let inside = caps(
        ["MET ", " CAY", " CY ", " OY "],
        ["GLY ", " NT ", " CAT"],
        [1, 76],
    );
    let outside = caps(
        ["ACE ", " CH3", " C  ", " O  "],
        ["NME ", " N  ", " C  "],
        [0, 77],
    );
    assert_reads_as(&inside, &outside, "caps");
    let structure = read(&inside);
    assert_eq!(
        structure
            .loose
            .iter()
            .map(|span| span.atom_count)
            .sum::<u32>(),
        5
    );
    assert_eq!(structure.residues.len(), 76);
    for index in [0, 75] {
        assert!(
            structure.residues[index]
                .flags
                .contains(ResidueFlags::RENAMED_ATOMS)
        );
    }
}

#[test]
fn isoleucines_cd_is_cd1() {
    for plain in proteins() {
        let renamed = edit(&plain, |line| match component(line) {
            "ILE" => line.replace(" CD1 ILE", " CD  ILE"),
            _ => line.to_owned(),
        });
        assert_ne!(renamed, plain);
        assert_reads_as(&renamed, &plain, "CD");
    }
}

#[test]
fn an_atom_that_is_there_twice_counts_once() {
    for plain in proteins() {
        let text = edit(&plain, |line| match columns_of(line, 13, 16) {
            " CB " => format!("{line}\n{}", with(line, 31, "  99.000")),
            _ => line.to_owned(),
        });
        assert_reads_as(&text, &plain, "twice");
        let structure = read(&text);
        let count = plain.matches(" CB ").count() as u32;
        assert_eq!(structure.findings.count(Check::LeftOutAtoms), count);
        // With alternate locations there is nothing to leave out.
        let text = edit(&plain, |line| match columns_of(line, 13, 16) {
            " CB " => format!(
                "{}\n{}",
                with(line, 17, "A"),
                with(&with(line, 17, "B"), 31, "  99.000")
            ),
            _ => line.to_owned(),
        });
        let structure = read(&text);
        assert_eq!(structure.findings.count(Check::LeftOutAtoms), 0);
        let flags = |structure: &Structure| {
            let chosen = structure.residues.iter();
            chosen
                .filter(|residue| residue.flags.contains(ResidueFlags::ALTERNATE_CHOSEN))
                .count() as u32
        };
        assert_eq!(flags(&structure), count);
        assert!(standard(structure) == standard(read(&plain)));
    }
}

#[test]
fn each_check_can_reject_a_file() {
    let plain = ubiquitin();
    let unknown = plain.replacen(" CG  MET", " CX  MET", 1);
    let repeated = edit(&plain, |line| match number(line) {
        1 => format!("{line}\n{line}"),
        _ => line.to_owned(),
    });
    let wide = edit(&plain, |line| {
        with(line, 23, &format!("{}", 10_000 + number(line)))
    });
    let dropped = edit(&plain, |line| match number(line) {
        1 => with(&with(line, 1, "HETATM"), 18, "LU6"),
        _ => line.to_owned(),
    });
    let contradictory = edit(&plain, |line| match number(line) {
        5 => with(line, 18, "VALX"),
        _ => line.to_owned(),
    });
    let cases = [
        (Check::UnknownAtoms, &unknown, "A MET 1: atom CX"),
        (Check::LeftOutAtoms, &repeated, "A MET 1: atom N"),
        (Check::RepairedFields, &wide, "line 1"),
        (Check::DroppedResidues, &dropped, "A LU6 1"),
        (Check::ContradictoryNames, &contradictory, "line 37"),
        (Check::Truncated, &plain.replace("END\n", ""), "cut short"),
    ];
    for (check, text, place) in cases {
        let read = |strict| {
            let options = ReadOptions {
                strict,
                ..ReadOptions::default()
            };
            read_as(text, Format::Pdb, options)
        };
        let others = Check::ALL.iter().filter(|other| **other != check);
        let structure = read(others.copied().collect::<CheckSet>()).unwrap();
        assert_eq!(
            structure.findings.count(check) > 0,
            check != Check::Truncated
        );
        let error = read(CheckSet::NONE.with(check)).unwrap_err().to_string();
        assert!(error.contains(place), "{check:?}: {error}");
    }
}

#[test]
fn a_topology_has_the_atoms_of_its_names() {
    let plain = ubiquitin();
    let text = edit(&plain, |line| {
        match (component(line), columns_of(line, 13, 16)) {
            ("HIS", _) => with(line, 18, "HSD"),
            ("MET", " CG ") => format!("{}\n{line}", with(line, 13, " CAY")),
            ("ILE", " CD1") => with(line, 13, " CD "),
            _ => line.to_owned(),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let topology = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Reader::new(ReadOptions::default())
            .read_topology(&path)
            .unwrap()
    };
    let (renamed, plain) = (
        topology("renamed.pdb", &text),
        topology("plain.pdb", &plain),
    );
    // The atom of the cap is the first one of MET 1 in the file after five, and the last of all here.
    let shifted = plain
        .atoms()
        .iter()
        .map(|atom| atom + u32::from(*atom >= 5));
    assert_eq!(renamed.atoms(), shifted.chain([5]).collect::<Vec<_>>());
    assert_eq!(renamed.file_atoms(), plain.file_atoms() + 1);
}
