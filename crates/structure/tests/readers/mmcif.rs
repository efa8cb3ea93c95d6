//! The rules of the mmCIF reader, one small file each.

use crate::has_parts;
use tapeloop_structure::ErrorKind;
use tapeloop_structure::{Format, Models, ReadOptions, Reader, Structure};

fn try_read(models: Models, text: &str) -> tapeloop_structure::Result<Vec<Structure>> {
    let options = ReadOptions {
        models,
        ..ReadOptions::default()
    };
    Reader::new(options).read_bytes(text.as_bytes(), Format::Mmcif)
}

fn read(text: &str) -> Structure {
    try_read(Models::First, text)
        .unwrap_or_else(|error| panic!("{error}: {text}"))
        .remove(0)
}

fn error(text: &str) -> String {
    let error = try_read(Models::First, text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    error.to_string()
}

/// A loop of `_atom_site` with these items and rows.
fn atoms(items: &str, rows: &str) -> String {
    let tags: String = items
        .split(' ')
        .map(|item| format!("_atom_site.{item}\n"))
        .collect();
    format!("loop_\n{tags}{rows}")
}

const FULL: &str = "group_PDB id type_symbol label_atom_id label_alt_id label_comp_id label_asym_id \
    label_entity_id label_seq_id pdbx_PDB_ins_code Cartn_x Cartn_y Cartn_z occupancy B_iso_or_equiv \
    auth_seq_id auth_comp_id auth_asym_id auth_atom_id pdbx_PDB_model_num";
const ROW: &str = "ATOM 1 N N . GLY A 1 7 A 1.5 -22.345 3.25 1.00 10.5 107 GLY AAA N 1\n";

fn full(rows: &str) -> String {
    format!("data_1abc\n{}", atoms(FULL, rows))
}

#[test]
fn columns_become_fields() {
    let structure = read(&full(ROW));
    assert_eq!(structure.entry_id.as_deref(), Some("1abc"));
    assert_eq!(
        (structure.model, structure.xyz[0]),
        (1, [1_500, -22_345, 3_250])
    );
    assert_eq!((structure.element[0], structure.b_factor[0]), (7, 10.5));
    let residue = structure.residues[0];
    assert_eq!(
        (residue.auth_seq_id, residue.label_seq_id, residue.ins_code),
        (107, Some(7), b'A')
    );
    let chain = &structure.chains[0];
    assert_eq!(&*chain.auth_asym_id, "AAA");
    assert_eq!(chain.label_asym_id.as_deref(), Some("A"));
    assert_eq!(chain.entity_id.as_deref(), Some("1"));
    assert_eq!(
        read(&format!("{}#\n_entry.id 9XYZ\n", full(ROW)))
            .entry_id
            .as_deref(),
        Some("9XYZ")
    );
}

#[test]
fn few_columns_in_another_order_are_enough() {
    let text = atoms(
        "Cartn_z auth_comp_id auth_atom_id Cartn_y label_seq_id Cartn_x",
        "3 ALA CA 2 5 1\n",
    );
    let structure = read(&format!("data_\n{text}"));
    assert_eq!(structure.entry_id, None);
    assert_eq!(
        (structure.xyz[0], structure.element[0]),
        ([1_000, 2_000, 3_000], 6)
    );
    assert!(structure.b_factor[0].is_nan());
    assert_eq!(
        (structure.residues[0].auth_seq_id, structure.residues[0].ca),
        (5, 0)
    );
}

#[test]
fn tags_and_keywords_in_any_case() {
    let text = full(ROW)
        .replace("_atom_site.", "_ATOM_Site.")
        .replace("loop_", "LOOP_")
        .replace("data_", "DATA_");
    assert_eq!(read(&text), read(&full(ROW)));
}

#[test]
fn line_ends_comments_and_blanks_do_not_matter() {
    let wanted = read(&full(ROW));
    assert_eq!(read(&full(ROW).replace('\n', "\r\n")), wanted);
    assert_eq!(read(&full(&ROW.replace(' ', "\t\t"))), wanted);
    assert_eq!(
        read(&full(&ROW.replace(' ', "\n"))),
        wanted,
        "a row over many lines"
    );
    assert_eq!(
        read(&full(&ROW.replacen(' ', " # \"half a quote\n ", 1))),
        wanted
    );
    assert_eq!(read(&format!("# made by 'x\n{}# end", full(ROW))), wanted);
    assert_eq!(read(full(ROW).trim_end()), wanted, "no newline at the end");
    assert_eq!(read(&format!("\u{feff}{}", full(ROW))), wanted);
}

#[test]
fn quoted_values_and_text_fields() {
    let wanted = read(&full(ROW));
    for (from, to) in [
        ("AAA", "'AAA'"),
        ("AAA", "\"AAA\""),
        ("AAA", "\n;AAA\n;\n"),
        ("AAA", "\r\n;AAA\r\n;\r\n"),
        ("ATOM", "'ATOM'"),
    ] {
        assert_eq!(read(&full(&ROW.replace(from, to))), wanted, "{to:?}");
    }
    for (quoted, name) in [
        ("'A B'", "A B"),
        ("\"A'\"", "A'"),
        ("'a'b'", "a'b"),
        ("'_x'", "_x"),
        ("';'", ";"),
    ] {
        assert_eq!(
            &*read(&full(&ROW.replace("AAA", quoted))).chains[0].auth_asym_id,
            name,
            "{quoted}"
        );
    }
    let sugar = "ATOM 1 O \"O5'\" . DA A 1 7 . 1 2 3 1.00 10 1 DA A \"O5'\" 1\n";
    assert_eq!(read(&full(sugar)).element, [8]);
}

#[test]
fn values_without_a_loop() {
    let items = FULL.split(' ').zip(ROW.split_whitespace());
    let text: String = items
        .map(|(item, value)| format!("_atom_site.{item} {value}\n"))
        .collect();
    let structure = read(&format!(
        "data_1abc\n{text}_entity.id 1\n_entity.type polymer\n"
    ));
    assert_eq!(structure, read(&full(ROW)));
}

#[test]
fn the_first_block_with_atoms_counts() {
    let other = ROW.replace("GLY", "ALA");
    let text = format!(
        "data_meta\n_entry.id META\nloop_\n_entity.id\n_entity.type\n1 non-polymer\n{}{}",
        full(ROW),
        full(&other)
    );
    assert_eq!(
        read(&text),
        read(&full(ROW)),
        "and nothing of the blocks around it"
    );
}

#[test]
fn models_first_or_all_scattered_or_not() {
    let row = |model: &str, seq: &str, x: &str| {
        ROW.replace(" 1\n", &format!(" {model}\n"))
            .replace("107", seq)
            .replace("1.5", x)
    };
    let text = full(
        &[
            row("4", "1", "1"),
            row("2", "1", "2"),
            row("4", "2", "3"),
            row("2", "2", "4"),
        ]
        .concat(),
    );
    let xs = |structure: &Structure| structure.xyz.iter().map(|xyz| xyz[0]).collect::<Vec<_>>();
    assert_eq!(
        (read(&text).model, xs(&read(&text))),
        (4, vec![1_000, 3_000])
    );
    let all = try_read(Models::All, &text).unwrap();
    assert_eq!(
        all.iter().map(|s| (s.model, xs(s))).collect::<Vec<_>>(),
        [(4, vec![1_000, 3_000]), (2, vec![2_000, 4_000])]
    );
}

#[test]
fn insertion_codes_behind_old_numbers() {
    let structure = read(&full(
        &ROW.replace("7 A 1.5", "7 ? 1.5").replace("107", "107B"),
    ));
    assert_eq!(
        (
            structure.residues[0].auth_seq_id,
            structure.residues[0].ins_code
        ),
        (107, b'B')
    );
}

#[test]
fn names_longer_than_a_word_are_compared_whole() {
    let long = |end: &str| ROW.replace("AAA", &format!("chain-with-a-long-name-{end}"));
    let structure = read(&full(&[long("1"), long("2"), long("2")].concat()));
    assert_eq!(structure.residues.len(), 2);
    assert_eq!(
        &*structure.chains[1].auth_asym_id,
        "chain-with-a-long-name-2"
    );
    let chain = |name| ROW.replace("AAA", name);
    let structure = read(&full(&[chain("nine-long"), chain("nine-lon")].concat()));
    assert_eq!(structure.residues.len(), 2, "a name may begin another one");
}

#[test]
fn numbers_with_many_decimals_exponents_and_uncertainties() {
    let structure = read(&full(
        &ROW.replace("1.5 -22.345 3.25", "1.23450 -2.2345(12) 1.5e1"),
    ));
    assert_eq!(
        (structure.xyz[0], structure.rounded_atoms),
        ([1_235, -2_235, 15_000], 1)
    );
    assert_eq!(
        read(&full(&ROW.replace("1.5 ", "0.5000000 "))).rounded_atoms,
        0,
        "zeros change nothing"
    );
}

#[test]
fn uniprot_from_the_atoms_else_from_the_references() {
    let sifts =
        format!("{FULL} pdbx_sifts_xref_db_name pdbx_sifts_xref_db_acc pdbx_sifts_xref_db_num");
    let row = |sifts: &str| ROW.replace('\n', &format!(" {sifts}\n"));
    let references = "_struct_ref.id 1\n_struct_ref.entity_id 1\n_struct_ref.db_name UNP\n\
        _struct_ref.pdbx_db_accession P1\nloop_\n_struct_ref_seq.ref_id\n_struct_ref_seq.pdbx_strand_id\n\
        _struct_ref_seq.seq_align_beg\n_struct_ref_seq.seq_align_end\n_struct_ref_seq.db_align_beg\n\
        _struct_ref_seq.db_align_end\n1 BBB 1 9 301 309\n1 AAA 1 9 201 209\n";
    let uniprot = |text: &str| {
        let structure = read(text);
        let uniprot = structure.residues[0].uniprot?;
        Some((
            structure.uniprot[uniprot.accession as usize].clone(),
            uniprot.position,
        ))
    };
    let with = |value: &str| format!("data_x\n{}{references}", atoms(&sifts, &row(value)));
    assert_eq!(uniprot(&with("UNP Q2 55")), Some(("Q2".into(), 55)));
    assert_eq!(uniprot(&with("? ? ?")), Some(("P1".into(), 207)));
    assert_eq!(
        uniprot(
            &format!("{references}{}", full(ROW))
                .replacen("data_1abc", "", 1)
                .replacen("_struct", "data_x _struct", 1)
        ),
        Some(("P1".into(), 207)),
        "before the atoms"
    );
    let unequal = with("? ? ?").replace("201 209", "201 210");
    assert_eq!(uniprot(&unequal), None, "which residue is which is open");
    assert_eq!(uniprot(&with("? ? ?").replace("UNP", "GB")), None);
    let model = "loop_\n_ma_target_ref_db_details.target_entity_id\n_ma_target_ref_db_details.db_name\n\
        _ma_target_ref_db_details.db_accession\n_ma_target_ref_db_details.seq_db_align_begin\n\
        _ma_target_ref_db_details.seq_db_align_end\n1 UNP A0 11 20\n";
    assert_eq!(
        uniprot(&format!("{}{model}", full(ROW))),
        Some(("A0".into(), 17))
    );
}

#[test]
fn files_without_coordinates_say_what_they_are() {
    for (text, wanted) in [
        ("data_x\n_entry.id X\n", "no _atom_site"),
        (
            "data_x\nloop_\n_refln.index_h\n_refln.index_k\n1 2\n",
            "reflections",
        ),
        (
            "data_x\nloop_\n_atom_site_label\n_atom_site_fract_x\nC1 0.5\n",
            "small-molecule CIF",
        ),
        (
            "data_x\n_chem_comp_atom.comp_id HEM\n",
            "chemical component",
        ),
        (
            "data_x\nloop_\n_atom_site.fract_x\n0.5\n",
            "_atom_site has no",
        ),
        ("", "no _atom_site"),
        ("what is this\n", "line 1: .. data block"),
        ("data_x\nstray\n", "line 2: .. value"),
    ] {
        assert!(has_parts(&error(text), wanted), "{text:?}: {}", error(text));
    }
    assert!(
        error(&full("")).contains("no _atom_site"),
        "a loop without rows"
    );
}

#[test]
fn broken_text_is_named_by_line() {
    // The tags end on line 22.
    let cut = ROW.strip_suffix(" 1\n").unwrap();
    for (text, wanted) in [
        (full(&format!("{ROW}{cut}\n")), "line 24: .. 20 values"),
        (
            full(&format!("{ROW}{cut}\n_x.y 1\n")),
            "line 24: .. 20 values",
        ),
        (full(&ROW.replace("1.5", "nan")), "line 23: Cartn_x \"nan\""),
        (full(&ROW.replace("3.25", "?")), "line 23: Cartn_z \"?\""),
        (
            full(&ROW.replace("-22.345", "1e6")),
            "line 23: Cartn_y \"1e6\" .. 100000 A",
        ),
        (
            full(&ROW.replace(" 1\n", " one\n")),
            "line 23: .. model .. \"one\"",
        ),
        (
            full(&ROW.replace("AAA", "'AAA")),
            "line 23: .. quoted value",
        ),
        (
            format!("{}\n_x.y\n;text\n", full(ROW)),
            "line 26: .. text field",
        ),
        (format!("{}_x.y\n", full(ROW)), "line 24: .. tag"),
        (
            full(&ROW.replace("107", "?").replace(" 7 ", " ? ")),
            "line 23: .. residue .. number",
        ),
    ] {
        assert!(has_parts(&error(&text), wanted), "{}", error(&text));
    }
}

#[test]
fn keywords_do_not_fill_up_a_row_that_is_cut_short() {
    let items =
        "label_atom_id label_comp_id label_seq_id Cartn_x Cartn_y Cartn_z pdbx_formal_charge";
    let table = format!(
        "data_x\n{}",
        atoms(items, "CA GLY 1 1 2 3 0\nCA GLY 2 1 2 3")
    );
    for rest in [
        "",
        " loop_ _x.y 1",
        "\ndata_y _x.y 1",
        "\nDATA_y",
        "\n_x.y 1",
        "\nsave_frame\n",
    ] {
        let error = error(&format!("{table}{rest}"));
        assert!(
            has_parts(&error, "line 11: .. 7 values"),
            "{rest:?}: {error}"
        );
    }
    assert_eq!(read(&format!("{table} 0 loop_ _x.y 1")).residues.len(), 2);
}
