//! Frames after END, models that are joined, and models that look like parts of an assembly.

use tapeloop_structure::ErrorKind;
use tapeloop_structure::{
    Assembly, BFactorFields, Check, Format, Models, ReadLimits, ReadOptions, Reader, Structure,
};

fn options(models: Models) -> ReadOptions {
    ReadOptions {
        models,
        ligands: true,
        ..ReadOptions::default()
    }
}

fn read(models: Models, text: &str) -> Vec<Structure> {
    let mut reader = Reader::new(options(models));
    reader.read_bytes(text.as_bytes(), Format::Pdb).unwrap()
}

/// An atom line; `id` is columns 13 to 26.
fn line(record: &str, id: &str, x: f64) -> String {
    format!("{record:<6}    1 {id:<14}    {x:8.3}   0.000   0.000  1.00 10.00           C\n")
}

fn atom(id: &str, x: f64) -> String {
    line("ATOM", id, x)
}

fn xs(structure: &Structure) -> Vec<i32> {
    structure.xyz.iter().map(|xyz| xyz[0] / 1000).collect()
}

fn names(structure: &Structure) -> Vec<&str> {
    let chains = structure.chains.iter();
    chains.map(|chain| &*chain.auth_asym_id).collect()
}

#[test]
fn atoms_after_end_are_the_next_model() {
    let frame = |x: f64| format!("{}TER\nEND\n", atom(" CA  ALA A   1", x));
    let frames = [1.0, 2.0, 3.0].map(frame).concat();
    let numbers =
        |models: &[Structure]| -> Vec<i32> { models.iter().map(|model| model.model).collect() };
    let all = read(Models::All, &frames);
    assert_eq!(numbers(&all), [1, 2, 3]);
    assert_eq!(all.iter().map(xs).collect::<Vec<_>>(), [[1], [2], [3]]);
    assert_eq!(read(Models::First, &frames)[0], all[0]);
    // Other programs write END before ENDMDL.
    let model = |number: i32| format!("MODEL     {number:4}\n{}ENDMDL\n", frame(f64::from(number)));
    let numbered = read(Models::All, &[4, 7, 9].map(model).concat());
    assert_eq!(numbers(&numbered), [4, 7, 9]);
    assert_eq!(numbered.iter().map(xs).collect::<Vec<_>>(), [[4], [7], [9]]);
}

#[test]
fn an_end_before_the_atoms_ends_no_model() {
    let atoms = atom(" CA  ALA A   1", 1.0) + &atom(" CA  ALA A   2", 4.8);
    for models in [Models::First, Models::All] {
        let read = read(models, &format!("END\n{atoms}END\n{atoms}END\n"));
        assert_eq!(xs(&read[0]), [1, 4]);
        assert_eq!(read.len(), if models == Models::First { 1 } else { 2 });
    }
}

#[test]
fn models_of_one_number_get_numbers_of_their_own_and_headers_after_end_are_left_out() {
    let entry = |comp: &str, x: f64| {
        let sequence = format!("SEQRES   1 A    1  {comp}\nTITLE     {comp}\n");
        let atom = atom(&format!(" CA  {comp} A   1"), x);
        format!("{sequence}MODEL        1\n{atom}ENDMDL\nEND\n")
    };
    let mut reader = Reader::new(ReadOptions {
        sequences: true,
        ..options(Models::All)
    });
    let text = entry("ALA", 1.0) + &entry("GLY", 2.0);
    let models = reader.read_bytes(text.as_bytes(), Format::Pdb).unwrap();
    let numbers = models.iter().map(|model| model.model);
    assert_eq!(numbers.collect::<Vec<_>>(), [1, 2]);
    for model in &models {
        assert_eq!(model.title.as_deref(), Some("ALA"));
        assert_eq!(model.chains[0].sequence.as_ref().unwrap().len(), 1);
    }
}

#[test]
fn text_after_end_that_holds_no_atoms_is_passed_over() {
    let text = atom(" CA  ALA A   1", 1.0)
        + "END\nATOM is a word of this text, which is as long as a line with coordinates.\n\
           HETATM\tand\tthis\nCONECT    1    2\n";
    assert_eq!(read(Models::All, &text), read(Models::First, &text));
}

fn assembly() -> String {
    let model = |number: i32, x: f64| {
        let cap = atom(" CH3 ACE A   0", x);
        let first = atom(" CA  ALA A   1", x + 1.0);
        let second = atom(" CA  ALA B   1", x + 2.0);
        let ligand = line("HETATM", " C1  XYZ A   9", x + 30.0)
            + &line("HETATM", " C2  XYZ A   9", x + 31.0);
        format!("MODEL     {number:4}\n{cap}{first}{second}TER\n{ligand}ENDMDL\n")
    };
    model(1, 0.0) + &model(2, 100.0) + &model(3, 200.0).replace(" B ", " C ") + "END\n"
}

#[test]
fn joined_models_are_one_structure_with_copies_named_as_in_assemblies() {
    let joined = read(Models::Joined, &assembly());
    assert_eq!(joined.len(), 1);
    let joined = &joined[0];
    assert_eq!(names(joined), ["A", "B", "A-2", "B-2", "A-3", "C"]);
    assert_eq!(
        xs(joined),
        [1, 2, 101, 102, 201, 202, 0, 100, 200],
        "caps come last"
    );
    assert_eq!(joined.atom_start, [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(joined.model, 1);
    let ligands = joined.ligands.iter();
    let ligands = ligands.map(|ligand| {
        (
            &*ligand.auth_asym_id,
            ligand.molecule,
            ligand.atoms[0].xyz[0],
        )
    });
    let wanted = [("A", 0, 30_000), ("A-2", 1, 130_000), ("A-3", 2, 230_000)];
    assert_eq!(ligands.collect::<Vec<_>>(), wanted);
    let one = atom(" CA  ALA A   1", 1.0) + "END\n";
    assert_eq!(read(Models::Joined, &one), read(Models::First, &one));
}

#[test]
fn names_of_copies_depend_on_the_file_alone_and_pass_over_names_that_it_has() {
    let model =
        |number: i32, atoms: &[String]| format!("MODEL     {number:4}\n{}ENDMDL\n", atoms.concat());
    let alanine = |chain: &str, x: f64| atom(&format!(" CA  ALA {chain}   1"), x);
    let water = line("HETATM", " O   HOH A   9", 50.0);
    let text = model(1, &[alanine("B", 0.0), water]) + &model(2, &[alanine("A", 100.0)]) + "END\n";
    let joined = read(Models::Joined, &text).remove(0);
    assert_eq!(names(&joined), ["B", "A-2"], "the first A is of water");
    let mut fields =
        BFactorFields::find(text.as_bytes(), Format::Pdb, ReadLimits::default()).unwrap();
    fields.join_models();
    let painted = fields
        .residues
        .iter()
        .map(|residue| (residue.model, &*residue.chain.auth_asym_id));
    assert_eq!(
        painted.collect::<Vec<_>>(),
        [(0, "B"), (0, "A"), (0, "A-2")]
    );

    let row = |chain: &str, x: i32, model: i32| {
        format!("ATOM C CA ALA {chain} {chain} 1 {x} 0 0 {model}\n")
    };
    let rows =
        [("A", 0, 1), ("A-2", 9, 1), ("A", 50, 2)].map(|(chain, x, model)| row(chain, x, model));
    let text = format!(
        "data_x\nloop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
         _atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.auth_asym_id\n\
         _atom_site.auth_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
         _atom_site.pdbx_PDB_model_num\n{}",
        rows.concat()
    );
    let mut reader = Reader::new(options(Models::Joined));
    let joined = reader
        .read_bytes(text.as_bytes(), Format::Mmcif)
        .unwrap()
        .remove(0);
    assert_eq!(names(&joined), ["A", "A-2", "A-3"]);
}

#[test]
fn an_ensemble_is_not_joined() {
    let text = model(1, "ALA", 0.0, 1.0) + &model(2, "ALA", 0.3, 1.0) + "END\n";
    let mut reader = Reader::new(options(Models::Joined));
    let error = reader.read_bytes(text.as_bytes(), Format::Pdb).unwrap_err();
    assert!(error.message().contains("ensemble"), "{error}");
    assert!(
        error.fix_text().unwrap().contains("models = \"all\""),
        "{error}"
    );
    // An ion on the axis of symmetry is in one place in all parts.
    let with_ions = |count: u32| {
        let ion = |index| {
            line(
                "HETATM",
                &format!("CA    CA A {}", 301 + index),
                500.0 + f64::from(index),
            )
        };
        let ions: String = (0..count).map(ion).collect();
        let part = |number, shift| {
            let part = model(number, "ALA", shift, 1.0);
            part.replace("TER\n", &format!("TER\n{ions}"))
        };
        part(1, 0.0) + &part(2, 200.0) + "END\n"
    };
    assert_eq!(read(Models::Joined, &with_ions(1))[0].residues.len(), 40);
    // Nor is it an ensemble if the parts have nothing else in common.
    let ion = line("HETATM", "CA    CA A 301", 500.0);
    let with_ion = |part: String| part.replace("TER\n", &format!("TER\n{ion}"));
    let other = model(2, "ALA", 200.0, 1.0).replace(" A ", " B ");
    let text = with_ion(model(1, "ALA", 0.0, 1.0)) + &with_ion(other) + "END\n";
    assert_eq!(read(Models::Joined, &text)[0].residues.len(), 40);
    // A tenth of the atoms in their places is an ensemble.
    let error = reader.read_bytes(with_ions(9).as_bytes(), Format::Pdb);
    assert!(error.unwrap_err().message().contains("ensemble"));
}

#[test]
fn joined_models_of_mmcif_keep_labels_and_accessions() {
    let row = |chain: &str, label: &str, accession: &str, x: i32, model: i32| {
        format!("ATOM C CA ALA {label} {chain} 1 1 {x} 0 0 UNP {accession} 5 {model}\n")
    };
    let text = format!(
        "data_x\nloop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
         _atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.auth_asym_id\n\
         _atom_site.label_entity_id\n_atom_site.auth_seq_id\n_atom_site.Cartn_x\n\
         _atom_site.Cartn_y\n_atom_site.Cartn_z\n_atom_site.pdbx_sifts_xref_db_name\n\
         _atom_site.pdbx_sifts_xref_db_acc\n\
         _atom_site.pdbx_sifts_xref_db_num\n_atom_site.pdbx_PDB_model_num\n{}{}{}",
        row("X", "A", "P1", 0, 1),
        row("Y", "B", "P2", 9, 2),
        row("X", "A", "P1", 20, 2)
    );
    let mut reader = Reader::new(options(Models::Joined));
    let joined = reader
        .read_bytes(text.as_bytes(), Format::Mmcif)
        .unwrap()
        .remove(0);
    let labels: Vec<&str> = (joined.chains.iter())
        .map(|chain| chain.label_asym_id.as_deref().unwrap())
        .collect();
    assert_eq!(
        (names(&joined), labels),
        (vec!["X", "Y", "X-2"], vec!["A", "B", "A-2"])
    );
    let accession = |residue: usize| {
        &*joined.uniprot[joined.residues[residue].uniprot.unwrap().accession as usize]
    };
    assert_eq!([0, 1, 2].map(accession), ["P1", "P2", "P1"]);
}

#[test]
fn joined_models_are_no_assembly_of_the_file() {
    let both = ReadOptions {
        assembly: Assembly::First,
        ..options(Models::Joined)
    };
    let error = Reader::new(both)
        .read_bytes(assembly().as_bytes(), Format::Pdb)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

/// How many notes a file of this name gives that its models look like an assembly.
fn notes(models: Models, name: &str, text: &str) -> u32 {
    let read = Reader::new(options(models))
        .read_auto(name, text.as_bytes())
        .unwrap();
    let notes = read
        .iter()
        .map(|structure| structure.findings.count(Check::ModelsOfAssembly));
    notes.sum()
}

/// A model with twenty alpha carbons of `comp`, moved by `shift`, with every distance stretched.
fn model(number: i32, comp: &str, shift: f64, stretch: f64) -> String {
    let atoms = (1..21).map(|index| {
        let number = f64::from(index);
        atom(
            &format!(" CA  {comp} A{index:4}"),
            (shift + 3.8 * number) * stretch,
        )
    });
    let atoms: String = atoms.collect();
    format!("MODEL     {number:4}\n{atoms}TER\nENDMDL\n")
}

#[test]
fn models_of_equal_numbers_in_other_places_look_like_an_assembly() {
    let two = |second: String| model(1, "ALA", 0.0, 1.0) + &second + "END\n";
    let copy = two(model(2, "ALA", 200.0, 1.0));
    let other = two(model(2, "GLY", 200.0, 1.1));
    for text in [&copy, &other] {
        assert_eq!(notes(Models::All, "a.pdb", text), 1);
        assert_eq!(notes(Models::First, "a.pdb1.gz", text), 1);
        assert_eq!(
            notes(Models::First, "a.pdb", text),
            0,
            "the second model is not read"
        );
        assert_eq!(notes(Models::Joined, "a.pdb1", text), 0);
    }
    let ensemble = [
        two(model(2, "ALA", 0.3, 1.0)),
        two(model(2, "ALA", 200.0, 1.1)),
        two(model(2, "ALA", 200.0, 1.0).replace(" A ", " B ")),
        two(String::new()),
    ];
    for text in &ensemble {
        assert_eq!(notes(Models::All, "a.pdb", text), 0, "{text}");
        assert_eq!(notes(Models::First, "a.pdb1", text), 0);
    }
}

#[test]
fn what_is_wrong_in_a_model_that_is_not_read_is_no_error() {
    let text =
        model(1, "ALA", 0.0, 1.0) + "MODEL        2\nATOM      1  CA  ALA A   1      nonsense\n";
    assert_eq!(notes(Models::First, "a.pdb1", &text), 0);
}

#[test]
fn ensembles_of_the_samples_do_not_look_like_assemblies() {
    let samples = tapeloop_test_support::repository("samples");
    let mut several = 0;
    for entry in std::fs::read_dir(samples).unwrap() {
        let path = entry.unwrap().path();
        let Ok(models) = Reader::new(options(Models::All)).read_path(&path) else {
            continue;
        };
        several += usize::from(models.len() > 1);
        let notes = models
            .iter()
            .map(|model| model.findings.count(Check::ModelsOfAssembly));
        assert_eq!(notes.sum::<u32>(), 0, "{}", path.display());
    }
    assert!(several > 0);
}
