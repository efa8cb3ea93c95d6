//! Chains of PDB files that hold several molecules.

use tapeloop_structure::{
    Assembly, ChainSplit, Check, CheckSet, Format, Frame, Models, ReadOptions, Reader, Structure,
};
use tapeloop_structure::{ErrorKind, Result};

/// A glycine of columns 18 to 27 `id`, at `x`, with a segment id. The next one is linked to it 4 A on.
fn glycine(id: &str, x: f64, segid: &str) -> String {
    let atoms = [("N ", 0.0), ("CA", 1.4), ("C ", 2.7)];
    let line = |(name, dx): (&str, f64)| {
        format!(
            "ATOM      1  {name}  {id:<13}{:8.3}{:8.3}{:8.3}  1.00 10.00      {segid:<4}\n",
            x + dx,
            0.0,
            0.0
        )
    };
    atoms.map(line).concat()
}

/// A chain of linked glycines with these numbers, from `x` on.
fn molecule(chain: char, numbers: impl IntoIterator<Item = i32>, x: f64, segid: &str) -> String {
    let residues = (0..).zip(numbers);
    let text = residues.map(|(index, number)| {
        let id = format!("GLY {chain}{number:4}");
        glycine(&id, x + 4.0 * f64::from(index), segid)
    });
    text.collect()
}

fn options(chain_split: ChainSplit) -> ReadOptions {
    ReadOptions {
        chain_split,
        ..ReadOptions::default()
    }
}

fn read(chain_split: ChainSplit, text: &str) -> Result<Structure> {
    let mut reader = Reader::new(options(chain_split));
    let read = reader.read_bytes(text.as_bytes(), Format::Pdb)?;
    Ok(read.into_iter().next().unwrap())
}

/// The residues of each chain with rows, after its label id.
fn chains(structure: &Structure) -> Vec<String> {
    let chains = (0..).zip(structure.row_chains());
    let chains = chains.map(|(index, chain)| {
        let residues = structure
            .residues
            .iter()
            .filter(|residue| residue.chain == index);
        let label = chain.label_asym_id.as_deref().unwrap_or("-");
        format!("{}/{label}: {}", chain.auth_asym_id, residues.count())
    });
    chains.collect()
}

fn auto(text: &str) -> Vec<String> {
    chains(&read(ChainSplit::Auto, text).unwrap())
}

#[test]
fn ter_splits_two_molecules_of_one_chain_id() {
    let two = |first: std::ops::Range<i32>, second: std::ops::Range<i32>| {
        let [first, second] =
            [(first, 0.0), (second, 100.0)].map(|(numbers, x)| molecule('A', numbers, x, ""));
        format!("{first}TER\n{second}TER\nEND\n")
    };
    let split = ["A/A_1: 4", "A/A_2: 3"];
    assert_eq!(auto(&two(1..5, 1..4)), split, "numbers start anew");
    assert_eq!(auto(&two(1..5, 5..8)), split, "numbers go on");
    assert_eq!(auto(&two(1..5, 4..7)), split, "an equal number");
    assert_eq!(auto(&two(1..5, 6..9)), ["A/-: 7"], "a gap");
}

#[test]
fn ter_within_a_bonded_chain_splits_nothing() {
    let text = format!(
        "{}TER\n{}END\n",
        molecule('A', 1..4, 0.0, ""),
        molecule('A', 4..6, 12.0, "")
    );
    assert_eq!(auto(&text), ["A/-: 5"]);
    let lacks_n = text.replacen(
        "ATOM      1  N   GLY A   4",
        "ATOM      1  CB  GLY A   4",
        1,
    );
    assert_eq!(auto(&lacks_n), ["A/-: 5"], "alpha carbons 4 A apart");
}

#[test]
fn ligands_and_water_behind_ter_split_nothing_and_keep_the_chain() {
    let others = "\
HETATM    1  C1  XYZ A   2      50.000   0.000   0.000  1.00 10.00           C
HETATM    1  C2  XYZ A   2      51.000   0.000   0.000  1.00 10.00           C
HETATM    1  O   HOH A   1      60.000   0.000   0.000  1.00 10.00           O
";
    let one = molecule('A', 1..4, 0.0, "");
    assert_eq!(auto(&format!("{one}TER\n{others}END\n")), ["A/-: 3"]);
    let text = format!(
        "{one}TER\n{}TER\n{others}END\n",
        molecule('A', 1..3, 90.0, "")
    );
    let mut reader = Reader::new(ReadOptions {
        ligands: true,
        ..ReadOptions::default()
    });
    let mut structure = reader
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap()
        .remove(0);
    assert_eq!(chains(&structure), ["A/A_1: 3", "A/A_2: 2"]);
    let ligand = &structure.ligands[0];
    assert_eq!((&*ligand.auth_asym_id, &ligand.label_asym_id), ("A", &None));
    structure.keep_chain("A_2").unwrap();
    assert_eq!(
        (chains(&structure), structure.ligands.len()),
        (vec!["A/A_2: 2".to_owned()], 1)
    );
}

#[test]
fn segment_ids_split_where_nothing_else_tells_molecules_apart() {
    let two = |chain, second: std::ops::Range<i32>, x| {
        let first = molecule(chain, 1..5, 0.0, "PROA");
        format!("{first}{}END\n", molecule(chain, second, x, "PROB"))
    };
    assert_eq!(auto(&two('P', 1..4, 100.0)), ["P/P_1: 4", "P/P_2: 3"]);
    assert_eq!(
        auto(&two('P', 50..53, 100.0)),
        ["P/P_1: 4", "P/P_2: 3"],
        "no bond"
    );
    assert_eq!(
        auto(&two('P', 5..8, 16.0)),
        ["P/-: 7"],
        "a bond and new numbers"
    );
    assert_eq!(
        auto(&two(' ', 5..8, 16.0)),
        ["/_1: 4", "/_2: 3"],
        "no chain id"
    );
    // Files of the 1990s have the entry's code and the number of the line there.
    let old = two(' ', 5..8, 16.0)
        .replace("PROA\n", "1ABC  17\n")
        .replace("PROB\n", "1ABD  18\n");
    assert_eq!(auto(&old), ["/-: 7"]);
}

#[test]
fn segment_ids_separate_residues_of_one_number_and_component() {
    let peptides = |[first, second]: [&str; 2]| {
        let first = molecule(' ', 1..3, 0.0, first) + &molecule(' ', 3..4, 8.0, first);
        first + &molecule(' ', 3..5, 90.0, second)
    };
    assert_eq!(auto(&peptides(["PEPA", "PEPB"])), ["/_1: 3", "/_2: 2"]);
    // Lines without a segment id, or that end before it, are of the chain that they are bonded to.
    let some = molecule(' ', 1..3, 0.0, "PEPA") + &molecule(' ', 3..5, 8.0, "");
    assert_eq!(auto(&some), ["/-: 4"]);
    let short = some.replace("  1.00 10.00          \n", "  1.00 10.00\n");
    assert!(short.len() < some.len());
    assert_eq!(auto(&short), ["/-: 4"]);
}

#[test]
fn a_nucleotide_and_an_amino_acid_of_one_number_are_two_molecules() {
    let nucleotide = |number: i32| {
        let line = |name: &str, x: f64| {
            format!(
                "ATOM      1  {name:<3}  DA  {number:4}    {x:8.3}   0.000   0.000  1.00 10.00\n"
            )
        };
        let x = 6.0 * f64::from(number);
        line("P", x) + &line("C1'", x + 2.0) + &line("O3'", x + 4.5)
    };
    let strand: String = (1..4).map(nucleotide).collect();
    let structure = read(ChainSplit::Auto, &(strand + &molecule(' ', 1..4, 90.0, ""))).unwrap();
    assert_eq!(chains(&structure), ["/_2: 3"]);
    let loose = structure.loose[0].chain as usize;
    assert_eq!(structure.chains[loose].label_asym_id.as_deref(), Some("_1"));
}

#[test]
fn numbers_that_start_anew_split_only_if_they_repeat() {
    let parts = |numbers: &[std::ops::Range<i32>]| {
        let parts = (0..).zip(numbers);
        let parts = parts
            .map(|(index, numbers)| molecule(' ', numbers.clone(), 200.0 * f64::from(index), ""));
        parts.collect::<String>() + "END\n"
    };
    assert_eq!(
        auto(&parts(&[1..5, 1..5, 1..5])),
        ["/_1: 4", "/_2: 4", "/_3: 4"]
    );
    assert_eq!(auto(&parts(&[50..55, 1..5])), ["/-: 9"], "a permuted chain");
    // A fusion protein whose numbers fall at a bond.
    let numbers = (1..5).chain(101..105).chain(5..9);
    assert_eq!(auto(&molecule('A', numbers, 0.0, "")), ["A/-: 12"]);
}

#[test]
fn several_components_of_one_site_are_no_repeated_number() {
    let site = |altlocs: [char; 2]| {
        let [one, other] = altlocs;
        let second = molecule('A', 2..3, 4.0, "");
        let conformer =
            |comp: &str, altloc: char| second.replace(" GLY", &format!("{altloc}{comp}"));
        format!(
            "{}{}{}{}",
            molecule('A', 1..2, 0.0, ""),
            conformer("SER", one),
            conformer("THR", other),
            molecule('A', 3..5, 8.0, "")
        )
    };
    assert_eq!(auto(&site(['A', 'B'])), ["A/-: 4"]);
    assert_eq!(auto(&site([' ', ' '])), ["A/-: 5"]);
    let first = molecule('A', 1..4, 0.0, "").replace(" GLY", "AGLY");
    let conformers = first.clone() + &first.replace("AGLY", "BGLY");
    assert_eq!(
        auto(&conformers),
        ["A/-: 3"],
        "one conformer after the other"
    );
}

#[test]
fn insertion_codes_number_a_chain_too() {
    let residue = |id: &str, x| glycine(id, x, "");
    let joined = |ids: [&str; 4], gap: f64| {
        format!(
            "{}{}TER\n{}{}END\n",
            residue(ids[0], 0.0),
            residue(ids[1], 4.0),
            residue(ids[2], 8.0 + gap),
            residue(ids[3], 12.0 + gap)
        )
    };
    let ids = ["GLY A  51", "GLY A  52", "GLY A  52A", "GLY A  53"];
    assert_eq!(auto(&joined(ids, 0.0)), ["A/-: 4"]);
    assert_eq!(auto(&joined(ids, 30.0)), ["A/A_1: 2", "A/A_2: 2"]);
    let reverse = ["GLY A  52B", "GLY A  52A", "GLY A  52", "GLY A  53"];
    assert_eq!(auto(&joined(reverse, 0.0)), ["A/-: 4"]);
}

#[test]
fn the_setting_says_what_splits() {
    let text = format!(
        "{}TER\n{}{}END\n",
        molecule('A', 1..3, 0.0, "ONE"),
        molecule('A', 3..5, 8.0, "ONE"),
        molecule('A', 1..3, 90.0, "TWO")
    );
    let chains = |rule| chains(&read(rule, &text).unwrap());
    assert_eq!(chains(ChainSplit::Id), ["A/-: 6"]);
    assert_eq!(chains(ChainSplit::Ter), ["A/A_1: 2", "A/A_2: 4"]);
    assert_eq!(chains(ChainSplit::Segid), ["A/A_1: 4", "A/A_2: 2"]);
    assert_eq!(chains(ChainSplit::Number), ["A/A_1: 4", "A/A_2: 2"]);
}

#[test]
fn splits_are_counted_and_the_first_is_named() {
    let text = format!(
        "{}TER\n{}TER\n{}END\n",
        molecule('A', 1..4, 0.0, ""),
        molecule('A', 1..4, 90.0, ""),
        molecule('A', 1..4, 190.0, "")
    );
    let structure = read(ChainSplit::Auto, &text).unwrap();
    let found = structure.findings.iter().next().unwrap();
    assert_eq!((found.check, found.count), (Check::SplitChains, 2));
    assert_eq!(&*found.first, "between A GLY 3 and A GLY 1 (TER)");
    assert_eq!(
        read(ChainSplit::Ter, &text)
            .unwrap()
            .findings
            .iter()
            .count(),
        0
    );
    let strict = ReadOptions {
        strict: CheckSet::NONE.with(Check::SplitChains),
        ..ReadOptions::default()
    };
    let error = Reader::new(strict)
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap_err();
    assert!(error.message().contains("(chains.split): 2"), "{error}");
}

#[test]
fn copies_in_one_place_are_refused() {
    let model = |shift: f64| molecule('A', 1..8, shift, "");
    for separator in ["", "TER\n"] {
        let text = format!("{}{separator}{}{separator}END\n", model(0.0), model(0.4));
        let error = read(ChainSplit::Auto, &text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        let message = error.message();
        assert!(
            message.contains("line 2") && message.contains("N of A GLY 1"),
            "{error}"
        );
        let fix = error.fix_text().unwrap();
        assert!(
            fix.contains("MODEL") && fix.contains("chains.split"),
            "{error}"
        );
        let by_id = read(ChainSplit::Id, &text).unwrap();
        assert_eq!(chains(&by_id), ["A/-: 14"]);
    }
    // Molecules of which other residues touch are copies too: nothing else separates them.
    let text = model(0.0) + &model(8.1);
    assert!(read(ChainSplit::Auto, &text).is_err());
    assert_eq!(auto(&(model(0.0) + "TER\n" + &model(8.1))).len(), 2);
}

#[test]
fn each_model_is_split_and_equal_parts_share_their_names() {
    let model = format!(
        "{}TER\n{}TER\n",
        molecule('A', 1..4, 0.0, ""),
        molecule('A', 1..3, 90.0, "")
    );
    let text = format!("MODEL        1\n{model}ENDMDL\nMODEL        2\n{model}ENDMDL\nEND\n");
    let all = ReadOptions {
        models: Models::All,
        ..ReadOptions::default()
    };
    let models = Reader::new(all)
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap();
    assert_eq!(models.len(), 2);
    for model in &models {
        assert_eq!(chains(model), ["A/A_1: 3", "A/A_2: 2"]);
    }
}

#[test]
fn assemblies_and_accessions_are_those_of_the_chain() {
    let text = format!(
        "DBREF  1ABC A    1     3  UNP    P12345   NAME_HUMAN      11     13\n\
         REMARK 350 BIOMOLECULE: 1\n\
         REMARK 350 APPLY THE FOLLOWING TO CHAINS: A\n\
         REMARK 350   BIOMT1   1  1.000000  0.000000  0.000000        0.00000\n\
         REMARK 350   BIOMT2   1  0.000000  1.000000  0.000000        0.00000\n\
         REMARK 350   BIOMT3   1  0.000000  0.000000  1.000000        0.00000\n\
         REMARK 350   BIOMT1   2  1.000000  0.000000  0.000000        0.00000\n\
         REMARK 350   BIOMT2   2  0.000000  1.000000  0.000000       50.00000\n\
         REMARK 350   BIOMT3   2  0.000000  0.000000  1.000000        0.00000\n\
         {}TER\n{}TER\nEND\n",
        molecule('A', 1..4, 0.0, ""),
        molecule('A', 1..3, 90.0, "")
    );
    let assembly = ReadOptions {
        assembly: Assembly::First,
        ..ReadOptions::default()
    };
    let read = Reader::new(assembly)
        .read_bytes(text.as_bytes(), Format::Pdb)
        .unwrap();
    assert_eq!(
        chains(&read[0]),
        ["A/A_1: 3", "A/A_2: 2", "A-2/A_1-2: 3", "A-2/A_2-2: 2"]
    );
    assert!(
        read[0]
            .residues
            .iter()
            .all(|residue| residue.uniprot.is_some())
    );
}

#[test]
fn an_mmcif_file_is_never_split() {
    let row = |number: i32, x: i32| format!("ATOM C CA GLY A {number} {x} 0 0\n");
    let rows = [(5, 0), (6, 4), (1, 90), (5, 94)].map(|(number, x)| row(number, x));
    let text = format!(
        "data_x\nloop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
         _atom_site.label_comp_id\n_atom_site.auth_asym_id\n_atom_site.auth_seq_id\n\
         _atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n{}",
        rows.concat()
    );
    for rule in [ChainSplit::Auto, ChainSplit::Number] {
        let mut reader = Reader::new(options(rule));
        let read = reader.read_bytes(text.as_bytes(), Format::Mmcif).unwrap();
        assert_eq!(chains(&read[0]), ["A/-: 4"]);
    }
}

#[test]
fn frames_of_a_trajectory_have_the_parts_of_their_topology() {
    let text = format!(
        "{}TER\n{}TER\nHETATM    1  O   HOH A   1      60.000   0.000   0.000  1.00 10.00\nEND\n",
        molecule('A', 1..3, 0.0, ""),
        molecule('A', 1..3, 90.0, "")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("top.pdb");
    std::fs::write(&path, text).unwrap();
    let topology = Reader::new(ReadOptions::default())
        .read_topology(&path)
        .unwrap();
    assert_eq!(topology.file_atoms(), 13);
    assert_eq!(topology.atoms(), (0..12).collect::<Vec<u32>>());
    let frame = Frame {
        index: 0,
        time_ps: None,
    };
    let place = |atom: usize| topology.structure().xyz[atom].map(f64::from);
    let frame = topology.at_frame(frame, place).unwrap();
    assert_eq!(chains(&frame), ["A/A_1: 2", "A/A_2: 2"]);
}
