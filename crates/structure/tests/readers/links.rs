//! Covalent links of ligands: one small file each.

use tapeloop_structure::{Format, ReadLimits, ReadOptions, Reader, Structure};

fn options() -> ReadOptions {
    ReadOptions {
        ligands: true,
        ..ReadOptions::default()
    }
}

fn read(text: &str, format: Format) -> Structure {
    let structures = Reader::new(options()).read_bytes(text.as_bytes(), format);
    structures.unwrap().remove(0)
}

/// Component, number, kind and molecule of each ligand.
fn molecules(structure: &Structure) -> Vec<String> {
    let text = |ligand: &tapeloop_structure::Ligand| {
        let number = ligand.auth_seq_id.unwrap_or_default();
        let component = ligand.component();
        format!("{component} {number} {:?} {}", ligand.kind, ligand.molecule)
    };
    structure.ligands.iter().map(text).collect()
}

/// An atom line; `id` is columns 13 to 27, `x` in A.
fn line(record: &str, id: &str, x: f64, element: &str) -> String {
    format!(
        "{record:<6}    1 {id:<15}   {x:8.3}   0.000   0.000  1.00 10.00          {element:>2}\n"
    )
}

/// A LINK line of two atoms, each as columns 13 to 27, and of two symmetry operators.
fn link(record: &str, ids: [&str; 2], symmetry: [&str; 2]) -> String {
    let [one, other] = ids;
    let [of_one, of_other] = symmetry;
    format!("{record:<12}{one:<15}               {other:<15}  {of_one:>6} {of_other:>6}  1.50\n")
}

/// A serine, a saccharide with a methyl group, a chain of three ligands and an ion, 5 A apart.
fn atoms() -> String {
    [
        line("ATOM", " CA  SER A   1 ", 0.0, "C"),
        line("HETATM", " C1  NAG A 201 ", 5.0, "C"),
        line("HETATM", " C2  NAG A 201 ", 6.0, "C"),
        line("HETATM", " C1  LIG B 301 ", 10.0, "C"),
        line("HETATM", " C2  LIG B 301 ", 11.0, "C"),
        line("HETATM", " C1  LIG B 302A", 15.0, "C"),
        line("HETATM", "FE   LIG B 302A", 16.0, "FE"),
        line("HETATM", " C1  LIG B 302B", 20.0, "C"),
        line("HETATM", " C2  LIG B 302B", 21.0, "C"),
        line("HETATM", "ZN    ZN B 401 ", 25.0, "ZN"),
    ]
    .concat()
}

const HERE: [&str; 2] = ["1555", "1555"];

#[test]
fn link_records_join_residues_to_molecules() {
    let unlinked = read(&atoms(), Format::Pdb);
    let expected = [
        "NAG 201 Ligand 0",
        "LIG 301 Ligand 1",
        "LIG 302 Ligand 2",
        "LIG 302 Ligand 3",
        "ZN 401 Ion 4",
    ];
    assert_eq!(molecules(&unlinked), expected);
    let records = [
        link("LINK", [" CA  SER A   1 ", " C2  NAG A 201 "], HERE),
        link("LINKR", [" C2  LIG B 301 ", " C1  LIG B 302B"], HERE),
        link("LINK", ["FE   LIG B 302A", " C1  LIG B 302B"], HERE),
        link("LINK", [" C1  LIG B 302A", "ZN    ZN B 401 "], HERE),
        link(
            "LINK",
            [" C1  LIG B 302A", " C2  LIG B 301 "],
            ["1555", "2555"],
        ),
        link("LINK", [" C1  LIG B 302A", " C2  LIG B 999 "], HERE),
    ];
    let linked = read(&(records.concat() + &atoms()), Format::Pdb);
    let expected = [
        "NAG 201 Glycan 0",
        "LIG 301 Ligand 1",
        // Metals and symmetry copies link nothing.
        "LIG 302 Ligand 2",
        "LIG 302 Ligand 1",
        "ZN 401 Ion 3",
    ];
    assert_eq!(molecules(&linked), expected);
    let mut chosen = linked;
    chosen.keep_chain("A").unwrap();
    assert_eq!(molecules(&chosen), ["NAG 201 Glycan 0"]);
}

#[test]
fn without_records_atoms_below_1_7_angstrom_are_linked() {
    let text = [
        line("ATOM", " CA  SER A   1 ", 0.0, "C"),
        line("HETATM", " C1  LIG B 301 ", 10.0, "C"),
        line("HETATM", " C2  LIG B 301 ", 11.5, "C"),
        line("HETATM", " C1  LIG B 302 ", 13.1, "C"),
        line("HETATM", " C2  LIG B 302 ", 14.6, "C"),
        line("HETATM", " C1  LIG B 303 ", 16.3, "C"),
        line("HETATM", " C2 ALIG B 303 ", 30.0, "C"),
        line("HETATM", " C1 BLIG B 304 ", 30.5, "C"),
        line("HETATM", "FE   LIG B 305 ", 31.0, "FE"),
        line("HETATM", "MG    MG B 306 ", 31.5, "MG"),
        line("HETATM", " C1  LIG B 307 ", 40.0, "C"),
        line("HETATM", " C2  LIG B 307 ", 41.5, "C"),
        line("HETATM", " C1  LIG B 308 ", 40.9, "C"),
        line("HETATM", " C2  LIG B 308 ", 42.5, "C"),
    ];
    let expected = [
        "LIG 301 Ligand 0",
        "LIG 302 Ligand 0",
        "LIG 303 Ligand 1",
        // Of another altloc, and metals.
        "LIG 304 Ion 2",
        "LIG 305 Ion 3",
        "MG 306 Ion 4",
        // In one place by turns: atoms below 1 A of each other.
        "LIG 307 Ligand 5",
        "LIG 308 Ligand 6",
    ];
    assert_eq!(molecules(&read(&text.concat(), Format::Pdb)), expected);
}

/// An mmCIF file of a polymer and three ligands, and rows of `_struct_conn`.
fn mmcif(rows: &str) -> String {
    let items = |ptnr: u32| {
        format!(
            "_struct_conn.ptnr{ptnr}_label_asym_id\n_struct_conn.ptnr{ptnr}_label_comp_id\n\
             _struct_conn.ptnr{ptnr}_label_seq_id\n_struct_conn.ptnr{ptnr}_label_atom_id\n\
             _struct_conn.pdbx_ptnr{ptnr}_PDB_ins_code\n_struct_conn.ptnr{ptnr}_auth_asym_id\n\
             _struct_conn.ptnr{ptnr}_auth_seq_id\n_struct_conn.ptnr{ptnr}_symmetry\n"
        )
    };
    format!(
        "data_x\nloop_\n_entity.id\n_entity.type\n1 polymer\n2 non-polymer\n\
         loop_\n_struct_conn.id\n_struct_conn.conn_type_id\n{}{}{rows}\
         loop_\n_atom_site.group_PDB\n_atom_site.type_symbol\n_atom_site.label_atom_id\n\
         _atom_site.label_comp_id\n_atom_site.label_asym_id\n_atom_site.auth_asym_id\n\
         _atom_site.label_entity_id\n_atom_site.label_seq_id\n_atom_site.auth_seq_id\n\
         _atom_site.pdbx_PDB_ins_code\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n\
         _atom_site.Cartn_z\n\
         ATOM C CA SER A P 1 1 7 ? 0 0 0\n\
         HETATM C C1 NAG B P 2 . 201 ? 5 0 0\nHETATM C C2 NAG B P 2 . 201 ? 6 0 0\n\
         HETATM C C1 LIG C P 2 . 202 ? 10 0 0\nHETATM C C2 LIG C P 2 . 202 ? 11 0 0\n\
         HETATM C C1 LIG D P 2 . 202 A 15 0 0\nHETATM C C2 LIG D P 2 . 202 A 16 0 0\n",
        items(1),
        items(2)
    )
}

#[test]
fn covalent_rows_of_struct_conn_join_residues_to_molecules() {
    let of_polymer = "1 covale A SER 1 CA ? P 7 1_555 B NAG . C2 ? P 201 1_555\n";
    let of_ligands = "2 Covale_sugar C LIG . C2 ? P 202 1_555 D LIG . C1 A P 202 1_555\n";
    let others = "3 metalc B NAG . C1 ? P 201 1_555 C LIG . C1 ? P 202 1_555\n\
                  4 hydrog B NAG . C1 ? P 201 1_555 C LIG . C1 ? P 202 1_555\n\
                  5 covale B NAG . C1 ? P 201 1_555 C LIG . C1 ? P 202 2_655\n";
    let found = |rows: &[&str]| molecules(&read(&mmcif(&rows.concat()), Format::Mmcif));
    let apart = ["NAG 201 Ligand 0", "LIG 202 Ligand 1", "LIG 202 Ligand 2"];
    assert_eq!(found(&[others]), apart);
    let joined = ["NAG 201 Glycan 0", "LIG 202 Ligand 1", "LIG 202 Ligand 1"];
    assert_eq!(found(&[others, of_ligands, of_polymer]), joined);
    let one = found(&[of_polymer]);
    assert_eq!(
        one,
        ["NAG 201 Glycan 0", "LIG 202 Ligand 1", "LIG 202 Ligand 2"]
    );
}

#[test]
fn links_are_limited_and_only_read_with_ligands() {
    let records = link("LINK", [" CA  SER A   1 ", " C2  NAG A 201 "], HERE).repeat(7);
    let read = |ligands: bool, residues_max: u32| {
        let options = ReadOptions {
            ligands,
            limits: ReadLimits {
                residues_max,
                ..ReadLimits::default()
            },
            ..options()
        };
        let structures =
            Reader::new(options).read_bytes((records.clone() + &atoms()).as_bytes(), Format::Pdb);
        structures.map_err(|error| error.to_string())
    };
    let error = read(true, 6).unwrap_err();
    assert!(error.contains("links"), "{error}");
    assert_eq!(read(false, 6).unwrap()[0].ligands, []);
    assert_eq!(read(true, 7).unwrap()[0].ligands.len(), 5);
}
