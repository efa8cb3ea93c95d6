//! The method, the resolution and the title that files state.

use tapeloop_structure::{Assembly, Format, ReadOptions, Reader, Structure};
use tapeloop_test_support::repository;

/// The method, the resolution and the title.
type Header<'a> = (Option<&'a str>, Option<f32>, Option<&'a str>);

const NONE: Header<'static> = (None, None, None);

fn header(structure: &Structure) -> Header<'_> {
    let Structure {
        method,
        resolution,
        title,
        ..
    } = structure;
    (method.as_deref(), *resolution, title.as_deref())
}

fn read(text: &str, format: Format) -> Structure {
    let mut reader = Reader::new(ReadOptions::default());
    let structures = reader.read_bytes(text.as_bytes(), format);
    structures
        .unwrap_or_else(|error| panic!("{error}: {text}"))
        .remove(0)
}

fn pdb(lines: &[&str]) -> Structure {
    let atom = "ATOM      1  CA  ALA A   1       0.000   0.000   0.000  1.00  9.50           C";
    read(&[lines, &[atom]].concat().join("\n"), Format::Pdb)
}

fn mmcif(categories: &str) -> Structure {
    let atoms = "loop_\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n\
        _atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n\
        CA ALA 1 0 0 0\n";
    read(&format!("data_x\n{categories}{atoms}"), Format::Mmcif)
}

#[test]
fn a_pdb_file_states_them_in_records() {
    let structure = pdb(&[
        "TITLE     JOINT X-RAY/NEUTRON STRUCTURE OF CATIONIC TRYPSIN IN COMPLEX WITH             ",
        "TITLE    2 ANILINE                                                                      ",
        "EXPDTA    X-RAY DIFFRACTION; NEUTRON                                                    ",
        "EXPDTA   2 DIFFRACTION                                                                  ",
        "REMARK   2                                                                              ",
        "REMARK   2 RESOLUTION.    1.44 ANGSTROMS.                                               ",
        "REMARK   3   RESOLUTION RANGE HIGH (ANGSTROMS) : 1.50                                   ",
    ]);
    let title = "JOINT X-RAY/NEUTRON STRUCTURE OF CATIONIC TRYPSIN IN COMPLEX WITH ANILINE";
    let method = "X-RAY DIFFRACTION; NEUTRON DIFFRACTION";
    assert_eq!(header(&structure), (Some(method), Some(1.44), Some(title)));
    assert_eq!(header(&pdb(&[])), NONE);
    assert_eq!(header(&pdb(&["TITLE", "TITLE     ", "EXPDTA"])), NONE);
    // As GROMOS writes it.
    let early = pdb(&["TITLE FRAME 0"]);
    assert_eq!(early.title.as_deref(), Some("FRAME 0"));
}

#[test]
fn remark_3_has_the_resolution_if_remark_2_has_none() {
    let remark_3 = "REMARK   3   RESOLUTION RANGE HIGH (ANGSTROMS) :   3.29";
    let bin = "REMARK   3   BIN RESOLUTION RANGE HIGH       (A) : 9.9";
    let shell = "REMARK   3   BIN RESOLUTION RANGE HIGH (ANGSTROMS) : 9.9";
    let none = "REMARK   2 RESOLUTION. NOT APPLICABLE.";
    let data = "REMARK 200  RESOLUTION RANGE HIGH      (A) : 1.400";
    let resolution = |lines: &[&str]| pdb(lines).resolution;
    assert_eq!(resolution(&[bin, shell, remark_3, data]), Some(3.29));
    assert_eq!(resolution(&[remark_3, none]), Some(3.29));
    let null = "REMARK   3   RESOLUTION RANGE HIGH (ANGSTROMS) : NULL";
    assert_eq!(resolution(&[none, null, bin, shell, data]), None);
    assert_eq!(
        resolution(&["REMARK   2 RESOLUTION. 0.00 ANGSTROMS."]),
        None
    );
}

#[test]
fn an_mmcif_file_states_them_in_categories() {
    let structure = mmcif(
        "_struct.entry_id x\n_struct.title\n;Structure of\n  trypsin\n;\nloop_\n_exptl.entry_id\n\
         _exptl.method\nx 'X-RAY DIFFRACTION'\nx ?\nx 'NEUTRON DIFFRACTION'\nloop_\n\
         _refine.pdbx_refine_id\n_refine.ls_d_res_high\n'X-RAY DIFFRACTION' ?\n\
         'NEUTRON DIFFRACTION' 2.00\n_em_3d_reconstruction.resolution 3.4\n",
    );
    let method = "X-RAY DIFFRACTION; NEUTRON DIFFRACTION";
    assert_eq!(
        header(&structure),
        (Some(method), Some(2.0), Some("Structure of trypsin"))
    );
    let microscopy = mmcif("_refine.ls_d_res_high .\n_em_3d_reconstruction.resolution 3.4\n");
    assert_eq!(microscopy.resolution, Some(3.4));
    assert_eq!(header(&mmcif("")), NONE);
    let nulls = "_struct.title .\n_exptl.method ?\n_refine.ls_d_res_high ?\n";
    assert_eq!(header(&mmcif(nulls)), NONE);
}

#[test]
fn long_texts_are_cut_and_reject_no_file() {
    let long = "\u{e9}".repeat(3000);
    let lines = [format!("TITLE     {long}"), format!("EXPDTA    {long}")];
    let of_pdb = pdb(&[&lines[0], &lines[1]]);
    let of_mmcif = mmcif(&format!("_struct.title {long}\n_exptl.method {long}\n"));
    for structure in [of_pdb, of_mmcif] {
        let cut = "\u{e9}".repeat(512);
        assert_eq!(header(&structure), (Some(&*cut), None, Some(&*cut)));
    }
}

#[test]
fn pdb_mmcif_and_binary_cif_files_of_entries_state_the_same() {
    let read = |name: &str, assembly| {
        let options = ReadOptions {
            assembly,
            ..ReadOptions::default()
        };
        let mut structures = Reader::new(options).read_path(&repository(name)).unwrap();
        structures.remove(0)
    };
    let title = "Structure of the neck region of the glycan-binding receptor DC-SIGNR";
    for name in [
        "samples/3jqh.cif.gz",
        "tests/data/binary_cif/3jqh.molstar.bcif.gz",
    ] {
        for assembly in [Assembly::Deposited, Assembly::First] {
            let structure = read(name, assembly);
            let stated = (Some("X-RAY DIFFRACTION"), Some(2.201), Some(title));
            assert_eq!(header(&structure), stated, "{name}");
        }
    }
    let pdb = read("samples/1a8o.pdb", Assembly::Deposited);
    let mmcif = read("samples/1a8o.cif.gz", Assembly::Deposited);
    assert_eq!(
        header(&pdb),
        (
            Some("X-RAY DIFFRACTION"),
            Some(1.7),
            Some("HIV CAPSID C-TERMINAL DOMAIN")
        )
    );
    assert_eq!(header(&mmcif), header(&pdb));
    let ensemble = read("samples/1lcd.pdb.gz", Assembly::Deposited);
    assert_eq!(ensemble.method.as_deref(), Some("SOLUTION NMR"));
    assert_eq!(ensemble.resolution, None);
}
