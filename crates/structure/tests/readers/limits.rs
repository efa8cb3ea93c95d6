//! Files that exceed a limit are refused with the limit's name.

use crate::has_parts;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use tapeloop_structure::{
    Assembly, Models, ReadBudget, ReadLimits, ReadOptions, Reader, Structure,
};
use tapeloop_structure::{Error, ErrorKind, Result};

const ATOM_SITE: &str = "loop_\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n\
    _atom_site.label_asym_id\n_atom_site.label_seq_id\n_atom_site.pdbx_PDB_model_num\n\
    _atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n";

/// An atom line of a PDB file.
pub(super) const LINE: &str =
    "ATOM      1  CA  ALA A   1      11.104   6.134  -6.504  1.00  9.00           C\n";

pub(super) fn everything() -> ReadOptions {
    ReadOptions {
        models: Models::All,
        assembly: Assembly::First,
        ..ReadOptions::default()
    }
}

pub(super) fn mmcif(before: &str, rows: &str) -> String {
    format!("data_x\n{before}{ATOM_SITE}{rows}")
}

fn read(text: &str, options: ReadOptions) -> Result<Vec<Structure>> {
    Reader::new(options).read_auto("a.cif", text.as_bytes())
}

fn refused(text: &str, options: ReadOptions) -> Error {
    read(text, options).expect_err("it is over a limit")
}

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Three residues of three atoms each, in two chains and two models.
fn sample() -> String {
    let mut rows = String::new();
    for (chain, number, model) in [("A", 1, 1), ("B", 1, 1), ("A", 1, 2)] {
        for name in ["N", "CA", "C"] {
            let _ = writeln!(rows, "{name} ALA {chain} {number} {model} {number} 2 3");
        }
    }
    mmcif(
        "loop_\n_pdbx_struct_assembly_gen.assembly_id\n_pdbx_struct_assembly_gen.oper_expression\n\
         _pdbx_struct_assembly_gen.asym_id_list\n1 (1)(1) A,B\n",
        &rows,
    )
    .replace("data_x\n", &format!("data_x\n{}", operators(1)))
}

/// The operators 1 to `count`, each of which moves by its number.
pub(super) fn operators(count: usize) -> String {
    let mut text = "loop_\n_pdbx_struct_oper_list.id\n".to_owned();
    for row in 1..=3 {
        for column in 1..=3 {
            let _ = writeln!(text, "_pdbx_struct_oper_list.matrix[{row}][{column}]");
        }
        let _ = writeln!(text, "_pdbx_struct_oper_list.vector[{row}]");
    }
    for id in 1..=count {
        let _ = writeln!(text, "{id} 1 0 0 {id} 0 1 0 0 0 0 1 0");
    }
    text
}

#[test]
fn a_file_may_reach_each_limit_and_exceeding_it_is_an_error_with_its_key() {
    let text = sample();
    let size = text.len() as u32;
    type Set = fn(&mut ReadLimits, u32);
    let limits: [(&str, Set, u32); 10] = [
        ("text_bytes_max", |l, n| l.text_bytes_max = n, size),
        ("name_bytes_max", |l, n| l.name_bytes_max = n, 1),
        ("atoms_max", |l, n| l.atoms_max = n, 9),
        ("residues_max", |l, n| l.residues_max = n, 3),
        ("models_max", |l, n| l.models_max = n, 2),
        ("chains_max", |l, n| l.chains_max = n, 2),
        ("operators_max", |l, n| l.operators_max = n, 3),
        ("assembly_atoms_max", |l, n| l.assembly_atoms_max = n, 6),
        (
            "assembly_residues_max",
            |l, n| l.assembly_residues_max = n,
            2,
        ),
        ("row_names_bytes_max", |l, n| l.row_names_bytes_max = n, 9),
    ];
    for (name, set, enough) in limits {
        let within = |max| {
            let mut options = everything();
            set(&mut options.limits, max);
            read(&text, options)
        };
        assert_eq!(within(enough).unwrap().len(), 2, "{name}");
        if name == "name_bytes_max" {
            continue;
        }
        let error = within(enough - 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
        let wanted = format!(": limits.{name} is {}", enough - 1);
        assert!(error.message().contains(&wanted), "{error}");
        let fix = error.fix_text().unwrap();
        assert!(fix.starts_with(&format!("raise limits.{name} ")), "{fix}");
    }
}

#[test]
fn the_assemblies_of_all_models_count_together() {
    let text = sample().replace("(1)(1)", "(1-3)");
    let text = text.replace(&operators(1), &operators(3));
    let within = |atoms_max, residues_max| {
        let mut options = everything();
        options.limits.atoms_max = atoms_max;
        options.limits.residues_max = residues_max;
        read(&text, options)
    };
    assert_eq!(within(27, 9).unwrap().len(), 2);
    for (atoms, residues, key) in [(26, 9, "atoms_max"), (27, 8, "residues_max")] {
        let error = within(atoms, residues).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
        assert!(
            error.to_string().contains(&format!("limits.{key}")),
            "{error}"
        );
    }
}

#[test]
fn a_reader_keeps_its_limits_from_file_to_file() {
    let mut options = everything();
    options.limits.atoms_max = 9;
    let mut reader = Reader::new(options);
    let more = format!("{}N ALA A 2 2 1 2 3\n", sample());
    for _ in 0..3 {
        assert!(reader.read_auto("a.cif", sample().as_bytes()).is_ok());
        let error = reader.read_auto("a.cif", more.as_bytes()).unwrap_err();
        assert!(error.message().contains("too many atoms"), "{error}");
    }
}

#[test]
fn names_over_the_limit_are_refused_by_line_and_shortened_in_the_message() {
    let long = "x\u{1b}".repeat(1000);
    let row = "CA ALA A 1 1 1 2 3\n";
    let files = [
        (
            format!("data_{long}\n{ATOM_SITE}{row}"),
            "line 1: the name of the data block",
        ),
        (
            mmcif(&format!("_entry.id {long}\n"), row),
            "line 2: _entry.id",
        ),
        (
            mmcif("", &row.replace(" A ", &format!(" {long} "))),
            "line 11: label_asym_id",
        ),
        (
            mmcif(&format!("_struct_ref.id\n'{long}'\n"), row),
            "line 3: _struct_ref.id",
        ),
        (
            mmcif(
                &format!("loop_\n_entity.id\n_entity.type\n1 polymer\n2 {long}\n"),
                row,
            ),
            "line 6: _entity.type",
        ),
    ];
    for (text, wanted) in files {
        // A control character is a blank in CIF.
        let text = text.replace('\u{1b}', "\u{202e}");
        let error = refused(&text, everything()).to_string();
        assert!(error.starts_with(wanted), "{error}");
        assert!(
            error.contains("4000 bytes: limits.name_bytes_max"),
            "{error}"
        );
        assert!(
            error.contains("x\\u{202e}x") && error.len() < 700,
            "{error}"
        );
    }
    let number = mmcif(
        "",
        &row.replace(" 2 ", &format!(" {} ", "1".repeat(1 << 20))),
    );
    let error = refused(&number, everything()).to_string();
    assert!(error.starts_with("line 11: Cartn_y \"1111"), "{error}");
    assert!(error.len() < 300, "{error}");
}

#[test]
fn gzip_data_that_unpacks_to_far_more_than_a_structure_is_refused() {
    let rows = "CA ALA A 1 1 1 2 3\n".repeat(1_000_000);
    let bomb = gzipped(mmcif("", &rows).as_bytes());
    let ratio = rows.len() / bomb.len();
    let mut options = ReadOptions::default();
    let error = Reader::new(options)
        .read_auto("a.cif.gz", &bomb)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Capacity);
    let wanted = format!("{} bytes of gzip", bomb.len());
    assert!(error.message().starts_with(&wanted), "{error}");
    assert!(
        error.message().contains("limits.unpack_ratio_max"),
        "{error}"
    );
    // The size at the end of the only member is not trusted.
    let (data, _) = bomb.split_last_chunk::<4>().unwrap();
    for size in [0, 1, 16 * bomb.len() as u32, u32::MAX] {
        let lying = [data, &size.to_le_bytes()].concat();
        let refused = Reader::new(options).read_auto("a.cif.gz", &lying);
        assert_eq!(refused.unwrap_err().to_string(), error.to_string());
    }
    options.limits.unpack_ratio_max = ratio as u32 + 1;
    let read = Reader::new(options).read_auto("a.cif.gz", &bomb).unwrap();
    assert_eq!(read[0].residues.len(), 1);
    options.limits.text_bytes_max = 1 << 20;
    let error = Reader::new(options)
        .read_auto("a.cif.gz", &bomb)
        .unwrap_err();
    assert!(error.message().contains("limits.text_bytes_max"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_device_without_an_end_is_refused() {
    let mut options = ReadOptions::default();
    options.limits.text_bytes_max = 1 << 20;
    let error = Reader::new(options)
        .read_path("/dev/zero".as_ref())
        .unwrap_err();
    // How many bytes there are is not known.
    let message = "the file has over 1048576 bytes of text: limits.text_bytes_max is 1048576";
    assert_eq!(error.message(), message);
}

#[test]
fn readers_that_share_a_budget_of_a_byte_read_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..8)
        .map(|file| {
            let path = folder.path().join(format!("{file}.cif.gz"));
            // Two members: the size at the end is that of the second.
            let (start, end) = (sample(), "#\n".repeat(100 * file));
            let bytes = [gzipped(start.as_bytes()), gzipped(end.as_bytes())].concat();
            std::fs::write(&path, bytes).unwrap();
            path
        })
        .collect();
    let budget = Arc::new(ReadBudget::new(1));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut reader = Reader::with_budget(everything(), Arc::clone(&budget));
                for path in &paths {
                    assert_eq!(reader.read_path(path).unwrap().len(), 2);
                }
            });
        }
    });
}

#[test]
fn products_of_many_factors_count_as_operators() {
    let text = sample().replace(
        "(1)(1)",
        &format!("(1-300)(1-300){}", "(1)".repeat(100_000)),
    );
    let text = text.replace(&operators(1), &operators(300));
    let error = refused(&text, everything());
    assert!(error.message().contains("limits.operators_max"), "{error}");
    assert!(error.to_string().starts_with("line "), "{error}");
}

#[test]
fn each_chain_that_generators_list_counts_once_even_if_the_file_lacks_it() {
    let remarks = "REMARK 350 BIOMOLECULE: 1\n\
        REMARK 350 APPLY THE FOLLOWING TO CHAINS: A, A\n\
        REMARK 350                    AND CHAINS: A, B, C\n\
        REMARK 350   BIOMT1   1  1.0  0.0  0.0  0.0\n\
        REMARK 350   BIOMT2   1  0.0  1.0  0.0  0.0\n\
        REMARK 350   BIOMT3   1  0.0  0.0  1.0  0.0\n";
    let files = [
        (sample().replace(" A,B\n", " A,A,A,B,C\n"), "line 21: "),
        (format!("{remarks}{LINE}"), "line 3: "),
    ];
    for (text, line) in files {
        let within = |chains_max| {
            let mut options = everything();
            options.limits.chains_max = chains_max;
            Reader::new(options).read_auto("a", text.as_bytes())
        };
        within(3).unwrap();
        let error = within(2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capacity);
        assert!(
            error.message().contains("limits.chains_max is 2"),
            "{error}"
        );
        assert!(error.to_string().starts_with(line), "{error}");
    }
}

#[test]
fn loops_have_at_most_a_thousand_tags() {
    let with = |tags: usize| {
        let tags: String = (0..tags).map(|tag| format!("_odd.x{tag}\n")).collect();
        mmcif(&format!("loop_\n{tags}"), "CA ALA A 1 1 0 0 0\n")
    };
    assert_eq!(read(&with(1000), everything()).unwrap().len(), 1);
    let error = refused(&with(1001), everything());
    let wanted = "line 2: .. \"_odd\" .. 1000 tags";
    assert!(has_parts(error.message(), wanted), "{error}");
    assert!(error.fix_text().is_some());
}

#[test]
fn the_models_of_a_file_share_its_names() {
    let sifts = "_atom_site.pdbx_sifts_xref_db_name\n_atom_site.pdbx_sifts_xref_db_acc\n\
        _atom_site.pdbx_sifts_xref_db_num\n_atom_site.label_entity_id\n";
    let rows = "CA ALA A 1 1 0 0 0 UNP P12345 7 e\nCA ALA A 1 2 0 0 0 UNP P12345 7 e\n";
    let text = format!("data_x\n{ATOM_SITE}{sifts}{rows}");
    let models = read(&text, everything()).unwrap();
    let names = |structure: &Structure| -> Vec<Arc<str>> {
        let chain = &structure.chains[0];
        let given = [&structure.entry_id, &chain.label_asym_id, &chain.entity_id];
        let given = given.map(|name| name.clone().unwrap());
        let always = [chain.auth_asym_id.clone(), structure.uniprot[0].clone()];
        given.into_iter().chain(always).collect()
    };
    let [first, second] = [0, 1].map(|model: usize| names(&models[model]));
    let texts: Vec<&str> = first.iter().map(|name| &**name).collect();
    assert_eq!(texts, ["x", "A", "e", "A", "P12345"]);
    assert!(first.iter().zip(&second).all(|(a, b)| Arc::ptr_eq(a, b)));
}

#[test]
fn categories_with_too_many_rows_are_refused() {
    for (tag, key) in [
        ("_struct_ref_seq.ref_id", "chains_max"),
        ("_pdbx_struct_oper_list.id", "operators_max"),
        ("_pdbx_struct_assembly_gen.assembly_id", "operators_max"),
    ] {
        let rows = format!("loop_\n{tag}\n{}", "1\n".repeat(100_001));
        let error = refused(&mmcif(&rows, "CA ALA A 1 1 0 0 0\n"), everything());
        let wanted = format!("limits.{key} is 100000");
        assert!(error.message().contains(&wanted), "{error}");
    }
}
