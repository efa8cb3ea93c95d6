//! Biological assemblies.

mod remark350;

use crate::has_parts;
use tapeloop_structure::{Assembly, Format, Models, ReadOptions, Reader, Structure};
use tapeloop_structure::{Error, ErrorKind, Result};
use tapeloop_test_support::repository;

use self::remark350::{biomt, pdb, remark};

fn assembly_of(models: Models) -> Reader {
    Reader::new(ReadOptions {
        models,
        assembly: Assembly::First,
        ..ReadOptions::default()
    })
}

fn read(text: &str, format: Format) -> Result<Structure> {
    let mut structures = assembly_of(Models::First).read_bytes(text.as_bytes(), format)?;
    Ok(structures.remove(0))
}

fn built(text: &str, format: Format) -> Structure {
    let structure = read(text, format).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(structure.assembly, Assembly::First);
    structure
}

fn error(text: &str, format: Format) -> Error {
    read(text, format).expect_err("it cannot be built")
}

fn xs(structure: &Structure) -> Vec<i32> {
    structure.xyz.iter().map(|xyz| xyz[0]).collect()
}

fn names(structure: &Structure) -> Vec<&str> {
    let chains = structure.chains.iter();
    chains.map(|chain| &*chain.auth_asym_id).collect()
}

/// The name of each chain, and the positions of its alpha carbons.
fn alpha_carbons(structure: &Structure) -> Vec<(&str, Vec<[i32; 3]>)> {
    let chains = structure.row_chains().iter();
    let mut found: Vec<_> = chains
        .map(|chain| (&*chain.auth_asym_id, Vec::new()))
        .collect();
    for residue in &structure.residues {
        let position = structure.position(residue.ca);
        found[residue.chain as usize].1.extend(position);
    }
    found
}

#[test]
fn assemblies_of_the_samples_are_those_of_gemmi() {
    let golden = std::fs::read_to_string(repository("tests/oracles/assemblies.tsv")).unwrap();
    let rows = golden.lines().skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|line| line.split('\t').collect()).collect();
    let mut reader = assembly_of(Models::First);
    for rows in rows.chunk_by(|a, b| a[0] == b[0]) {
        let source = rows[0][0];
        let structures = reader
            .read_path(&repository("samples").join(source))
            .unwrap();
        assert_eq!(structures[0].assembly, Assembly::First, "{source}");
        let found = alpha_carbons(&structures[0]);
        assert_eq!(found.len(), rows.len(), "{source}");
        for (row, (name, positions)) in rows.iter().zip(&found) {
            let ends = [positions[0], positions[positions.len() - 1]];
            let ends = ends.as_flattened().iter().map(i32::to_string);
            let deposited = name.split('-').next().unwrap().to_owned();
            let found = [deposited, positions.len().to_string()];
            let found: Vec<String> = found.into_iter().chain(ends).collect();
            assert_eq!(row[1..], found, "{source}, {name}");
        }
    }
    assert_eq!(rows.len(), 57);
}

#[test]
fn an_identity_changes_nothing() {
    for sample in ["1as5.cif.gz", "1gbt.cif.gz", "1bd2.pdb.gz", "1hvr.pdb.gz"] {
        let path = repository("samples").join(sample);
        let mut deposited = Reader::new(ReadOptions {
            models: Models::All,
            ..ReadOptions::default()
        });
        let mut deposited = deposited.read_path(&path).unwrap();
        for structure in &mut deposited {
            assert_eq!(structure.assembly, Assembly::Deposited);
            structure.assembly = Assembly::First;
        }
        let assembly = assembly_of(Models::All).read_path(&path).unwrap();
        assert!(assembly == deposited, "{sample}");
    }
}

const ATOM_SITE: &str = "loop_\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n\
    _atom_site.label_asym_id\n_atom_site.auth_asym_id\n_atom_site.auth_seq_id\n\
    _atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n";
const GENERATORS: &str = "loop_\n_pdbx_struct_assembly_gen.assembly_id\n\
    _pdbx_struct_assembly_gen.oper_expression\n_pdbx_struct_assembly_gen.asym_id_list\n";
const OPERATORS: &str = "loop_\n_pdbx_struct_oper_list.id\n\
    _pdbx_struct_oper_list.matrix[1][1]\n_pdbx_struct_oper_list.matrix[1][2]\n\
    _pdbx_struct_oper_list.matrix[1][3]\n_pdbx_struct_oper_list.vector[1]\n\
    _pdbx_struct_oper_list.matrix[2][1]\n_pdbx_struct_oper_list.matrix[2][2]\n\
    _pdbx_struct_oper_list.matrix[2][3]\n_pdbx_struct_oper_list.vector[2]\n\
    _pdbx_struct_oper_list.matrix[3][1]\n_pdbx_struct_oper_list.matrix[3][2]\n\
    _pdbx_struct_oper_list.matrix[3][3]\n_pdbx_struct_oper_list.vector[3]\n";

/// An operator that only moves, by `x` A.
fn shift(id: &str, x: &str) -> String {
    format!("{id} 1 0 0 {x} 0 1 0 0 0 0 1 0\n")
}

/// Moves by 1, 2, 3 and 10 A, and a quarter turn about z.
fn operators() -> String {
    let shifts = [("1", "1"), ("2", "2"), ("3", "3"), ("X0", "10")];
    let shifts: String = shifts.map(|(id, x)| shift(id, x)).concat();
    format!("{OPERATORS}{shifts}P 0 -1 0 0 1 0 0 0 0 0 1 0\n")
}

/// Atoms, then the rows of generators, then operators.
fn mmcif(atoms: &str, generators: &str, operators: &str) -> String {
    format!("data_x\n{ATOM_SITE}{atoms}{GENERATORS}{generators}{operators}")
}

const ONE_ATOM: &str = "CA ALA A A 1 0.5 0 0\n";

/// What an expression makes of an atom at x = 0.5 A.
fn evaluated(expression: &str) -> Vec<[i32; 3]> {
    let generator = format!("1 {expression} A\n");
    built(&mmcif(ONE_ATOM, &generator, &operators()), Format::Mmcif).xyz
}

#[test]
fn expressions_are_lists_ranges_and_products() {
    let x = |xs: &[i32]| -> Vec<[i32; 3]> { xs.iter().map(|&x| [x, 0, 0]).collect() };
    assert_eq!(evaluated("1"), x(&[1500]));
    assert_eq!(evaluated("X0"), x(&[10_500]));
    assert_eq!(evaluated("3,1"), x(&[3500, 1500]));
    assert_eq!(evaluated("(1-3)"), x(&[1500, 2500, 3500]));
    assert_eq!(evaluated("1-2,X0"), x(&[1500, 2500, 10_500]));
    assert_eq!(
        evaluated("'(1, 2)(3,X0)'"),
        x(&[4500, 11_500, 5500, 12_500])
    );
    assert_eq!(evaluated("(1)(2)(3)"), x(&[6500]));
    assert_eq!(evaluated("\n;(1-\n2)\n;\n"), x(&[1500, 2500]));
    assert_eq!(evaluated("P"), [[0, 500, 0]]);
    assert_eq!(
        evaluated("(P)(2)"),
        [[0, 2500, 0]],
        "the last is applied first"
    );
    assert_eq!(evaluated("(2)(P)"), [[2000, 500, 0]]);
}

#[test]
fn copies_come_in_order_and_are_numbered_by_chain() {
    let atoms = "CA ALA A X 1 0 0 0\nCA ALA B X 1 0.1 0 0\nCA GLY A X 2 0.2 0 0\n\
        P DA C Y 1 0.3 0 0\nCH3 ACE A X 0 0.4 0 0\nCA ALA D Z 1 0.5 0 0\n";
    let generators = "2 1 D\n1 '1,2' A,C\n1 3 'B, A'\n";
    let structure = built(&mmcif(atoms, generators, &operators()), Format::Mmcif);
    let rows = [1000, 1200, 2000, 2200, 3000, 3100, 3200];
    let loose = [1300, 1400, 2300, 2400, 3400];
    assert_eq!(xs(&structure), [&rows[..], &loose[..]].concat());
    assert_eq!(names(&structure), ["X", "X-2", "X-3", "X", "Y", "Y-2"]);
    let label = |chain: u32| structure.chains[chain as usize].label_asym_id.as_deref();
    let labels: Vec<_> = structure.residues.iter().map(|r| label(r.chain)).collect();
    let expected = ["A", "A", "A-2", "A-2", "A-3", "B", "A-3"].map(Some);
    assert_eq!(labels, expected);
    let spans = structure.loose.iter();
    let spans: Vec<_> = spans.map(|s| (label(s.chain), s.atom_count)).collect();
    let expected = ["C", "A", "C-2", "A-2", "A-3"].map(|name| (Some(name), 1));
    assert_eq!(spans, expected);
    assert_eq!(structure.row_chains().len(), 4);
    let numbers: Vec<_> = structure.residues.iter().map(|r| r.auth_seq_id).collect();
    assert_eq!(numbers, [1, 2, 1, 2, 1, 1, 2]);
    assert_eq!(structure.atom_start, [0, 1, 2, 3, 4, 5, 6, 7]);
    let alphas: Vec<_> = structure.residues.iter().map(|r| r.ca).collect();
    assert_eq!(alphas, [0, 1, 2, 3, 4, 5, 6]);
    let atoms = structure.xyz.len();
    assert_eq!(structure.element.len(), atoms);
    assert_eq!(structure.class.len(), atoms);
    assert_eq!(structure.b_factor.len(), atoms);
}

#[test]
fn a_chain_that_a_generator_lists_twice_is_copied_once() {
    let text = mmcif(ONE_ATOM, "1 1-2 A,A,A\n", &operators());
    assert_eq!(names(&built(&text, Format::Mmcif)), ["A", "A-2"]);
    let remarks = [
        remark("BIOMOLECULE: 1"),
        remark("APPLY THE FOLLOWING TO CHAINS: A, A"),
        remark("                   AND CHAINS: A"),
        biomt(1, 0.0),
        biomt(2, 5.0),
    ];
    let text = pdb(&remarks, &["A"]);
    assert_eq!(names(&built(&text, Format::Pdb)), ["A", "A-2"]);
}

#[test]
fn a_copy_has_the_links_of_the_deposited_chain_and_none_to_the_previous_copy() {
    let atoms = "C ALA A A 1 0 0 0\nN ALA A A 2 1.3 0 0\nN ALA A A 4 9 0 0\n";
    // The second copy starts where the first one ends.
    let operators = format!("{OPERATORS}{}{}", shift("1", "0"), shift("2", "8"));
    let text = mmcif(atoms, "1 1-2 A\n", &operators);
    let structure = built(&text, Format::Mmcif);
    let breaks: Vec<bool> = structure.residues.iter().map(|r| r.break_before).collect();
    assert_eq!(breaks, [true, false, true, true, false, true]);
}

#[test]
fn positions_are_rounded_to_0_001_angstrom_with_halves_away_from_zero() {
    let moved_x = |x: &str, by: &str| {
        let atom = format!("CA ALA A A 1 {x} 0 0\n");
        let operators = format!("{OPERATORS}{}", shift("1", by));
        xs(&built(&mmcif(&atom, "1 1 A\n", &operators), Format::Mmcif))[0]
    };
    assert_eq!(moved_x("0", "0.0005"), 1);
    assert_eq!(moved_x("0", "-0.0005"), -1);
    assert_eq!(moved_x("0.002", "0.00049"), 2);
    assert_eq!(moved_x("-0.002", "0.0005"), -2);
    assert_eq!(moved_x("-99999.999", "0.0004"), -99_999_999);
}

#[test]
fn a_file_without_assembly_1_is_read_as_deposited() {
    let other = mmcif(ONE_ATOM, "2 1 A\n", &operators());
    let none = format!("data_x\n{ATOM_SITE}{ONE_ATOM}");
    for text in [other, none] {
        let structure = read(&text, Format::Mmcif).unwrap();
        assert_eq!(structure.assembly, Assembly::Deposited, "{text}");
        assert_eq!(xs(&structure), [500]);
    }
}

#[test]
fn single_rows_need_no_loop_and_atoms_need_no_label() {
    let generator = "_pdbx_struct_assembly_gen.assembly_id 1\n\
        _pdbx_struct_assembly_gen.oper_expression 1\n_pdbx_struct_assembly_gen.asym_id_list A\n";
    let atom = ONE_ATOM.replace(" A A ", " . A ");
    let tail = OPERATORS.trim_start_matches("loop_\n");
    let pairs = tail.lines().zip(
        shift("1", "4")
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    );
    let operator: String = pairs
        .map(|(tag, value)| format!("{tag} {value}\n"))
        .collect();
    let text = format!("data_x\n{generator}{operator}{ATOM_SITE}{atom}");
    assert_eq!(xs(&built(&text, Format::Mmcif)), [4500]);
}

#[test]
fn malformed_expressions_and_operators_are_refused_by_line() {
    let line_of = |text: &str, part: &str| {
        let offset = text.find(part).expect("it is there");
        format!("line {}:", text[..offset].matches('\n').count() + 1)
    };
    for expression in [
        "(1", "1)", "((1))", "1,,2", "1,", "2-1", "1(2)", "(1),(2)", "()", "?",
    ] {
        let generator = format!("1 {expression} A\n");
        let text = mmcif(ONE_ATOM, &generator, &operators());
        let error = error(&text, Format::Mmcif);
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(error.message().contains("malformed"), "{error}");
        assert!(
            error.message().starts_with(&line_of(&text, &generator)),
            "{error}"
        );
        assert!(error.fix_text().is_some());
    }
    for expression in ["4", "1-4", "(X1)(1)"] {
        let generator = format!("1 {expression} A\n");
        let text = mmcif(ONE_ATOM, &generator, &operators());
        let error = error(&text, Format::Mmcif).message().to_owned();
        assert!(error.contains("_pdbx_struct_oper_list"), "{error}");
        assert!(error.starts_with(&line_of(&text, &generator)), "{error}");
    }
    let bad = [
        shift("B", "x"),
        shift("B", "nan"),
        shift("B", "?"),
        shift("B", "1e999"),
        shift("B", "0").replacen(" 1", " 2", 1),
        shift("B", "0").replacen(" 1", " -1", 1),
        shift("B", "0").replacen(" 0", " 1", 1),
    ];
    for bad in bad {
        let text = mmcif(ONE_ATOM, "1 1,B A\n", &format!("{}{bad}", operators()));
        let error = error(&text, Format::Mmcif).message().to_owned();
        assert!(has_parts(&error, "\"B\" .. rotation"), "{error}");
        assert!(error.starts_with(&line_of(&text, &bad)), "{error}");
    }
}

#[test]
fn the_assembly_is_not_checked_unless_it_is_wanted() {
    let generators = "1 9 A\n2 (( A\n";
    let text = mmcif(ONE_ATOM, generators, &operators());
    let mut deposited = Reader::new(ReadOptions::default());
    assert!(deposited.read_bytes(text.as_bytes(), Format::Mmcif).is_ok());
    let text = mmcif(ONE_ATOM, "1 1 A\n2 (( A\n", &operators());
    assert_eq!(built(&text, Format::Mmcif).xyz.len(), 1);
}

#[test]
fn assemblies_without_atoms_with_too_many_or_with_distant_ones_are_refused() {
    let none = mmcif(ONE_ATOM, "1 1 B,C\n", &operators());
    let message = error(&none, Format::Mmcif).message().to_owned();
    assert!(message.contains("no atom"), "{message}");
    let far = format!("{OPERATORS}{}", shift("1", "100000"));
    let message = error(&mmcif(ONE_ATOM, "1 1 A\n", &far), Format::Mmcif);
    assert!(message.message().contains("beyond 100000 A"), "{message}");
    // 90,000 copies of 112 atoms, and 160,000 of one.
    let atoms: String = (0..112)
        .map(|number| format!("CA ALA A A {number} 0 0 0\n"))
        .collect();
    let shifts: String = (1..=400).map(|id| shift(&id.to_string(), "0")).collect();
    let operators = format!("{OPERATORS}{shifts}");
    let many_atoms = mmcif(&atoms, "1 (1-300)(1-300) A\n", &operators);
    let many_operators = mmcif(ONE_ATOM, "1 (1-400)(1-400) A\n", &operators);
    let error_of = |text: &str| error(text, Format::Mmcif);
    assert_eq!(error_of(&many_atoms).kind(), ErrorKind::Capacity);
    assert!(error_of(&many_atoms).message().contains("10080000 atoms"));
    assert!(
        error_of(&many_operators)
            .message()
            .contains("limits.operators_max")
    );
}
