//! BinaryCIF files that are damaged or made to do harm are refused with what is wrong.

use crate::has_parts;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tapeloop_structure::{Assembly, Format, ReadOptions, Reader, Structure};
use tapeloop_structure::{ErrorKind, Result};

use crate::message_pack::{
    Pack, byte_array, category, column, data, encoding, file, int_bytes, ints, masked, repeated,
    strings,
};

fn read(bytes: &[u8]) -> Result<Vec<Structure>> {
    Reader::new(ReadOptions::default()).read_bytes(bytes, Format::BinaryCif)
}

fn error(bytes: &[u8]) -> String {
    let error = read(bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input, "{error}");
    error.to_string()
}

fn int(value: i32) -> Pack {
    Pack::Int(i64::from(value))
}

fn milli() -> Pack {
    let parameters = [("factor", int(1000)), ("srcType", int(33))];
    encoding("FixedPoint", &parameters)
}

/// The columns of a glycine's three atoms.
fn glycine() -> Vec<(&'static str, Pack)> {
    let names = strings(&["N", "CA", "C"], &ints(vec![], &[0, 1, 2]));
    vec![
        ("label_atom_id", names),
        ("label_comp_id", strings(&["GLY"], &repeated(vec![], 0, 3))),
        ("label_asym_id", strings(&["A"], &repeated(vec![], 0, 3))),
        ("auth_seq_id", repeated(vec![], 7, 3)),
        ("Cartn_x", ints(vec![milli()], &[0, 1458, 2009])),
        ("Cartn_y", ints(vec![milli()], &[0, 0, 1420])),
        ("Cartn_z", ints(vec![milli()], &[0, 0, 0])),
    ]
}

fn atom_site(columns: &[(&'static str, Pack)]) -> Pack {
    let columns = columns
        .iter()
        .map(|(name, data)| column(name, data.clone()));
    category("_atom_site", 3, columns.collect())
}

/// The glycine's file with another column in place of the one of its name.
fn with(name: &'static str, data: Pack) -> Vec<u8> {
    let mut columns = glycine();
    columns.retain(|(other, _)| *other != name);
    columns.push((name, data));
    file(vec![atom_site(&columns)])
}

#[test]
fn the_file_is_read_before_it_is_broken() {
    let structures = read(&file(vec![atom_site(&glycine())])).unwrap();
    assert_eq!(structures[0].xyz, [[0; 3], [1458, 0, 0], [2009, 1420, 0]]);
    assert_eq!(structures[0].residues[0].auth_seq_id, 7);
    assert_eq!(structures[0].entry_id.as_deref(), Some("TEST"));
}

#[test]
fn damaged_columns_are_named_with_what_is_wrong() {
    let size = |size: i32| ("srcSize", int(size));
    let packing = |bytes: i32, is_unsigned: bool, len: i32| {
        let parameters = [
            ("byteCount", int(bytes)),
            ("isUnsigned", Pack::Bool(is_unsigned)),
            size(len),
        ];
        encoding("IntegerPacking", &parameters)
    };
    let run_length = |len: i32| encoding("RunLength", &[size(len)]);
    let delta = |origin: i32| encoding("Delta", &[("origin", int(origin))]);
    let interval = |steps: i32| {
        let parameters = [
            ("min", Pack::Float(0.0)),
            ("max", Pack::Float(1.0)),
            ("numSteps", int(steps)),
        ];
        encoding("IntervalQuantization", &parameters)
    };
    let factor = |factor: f64| encoding("FixedPoint", &[("factor", Pack::Float(factor))]);
    let index = |values: &[i32]| strings(&["A", "B"], &ints(vec![], values));
    let nested = strings(&["A"], &data(vec![encoding_of(&index(&[0; 3]))], vec![]));
    for (data, wanted) in [
        (ints(vec![], &[1, 2]), "2 values .. 3 rows"),
        (data(vec![], vec![0; 12]), "the data .. encoding"),
        (
            data(vec![byte_array(3)], vec![0; 11]),
            "ByteArray: .. 11 bytes .. 4",
        ),
        (
            data(vec![byte_array(7)], vec![0; 12]),
            "ByteArray: .. 7 .. type",
        ),
        (
            data(vec![byte_array(6)], vec![255; 12]),
            "ByteArray: .. 2147483647",
        ),
        (ints(vec![byte_array(3)], &[1; 3]), "ByteArray: .. integers"),
        (
            data(vec![delta(0), byte_array(33)], vec![0; 24]),
            "Delta: .. floats",
        ),
        (data(vec![delta(0)], vec![0; 12]), "Delta: .. bytes"),
        (ints(vec![delta(i32::MAX)], &[0, 1, 0]), "Delta: .. 32 bits"),
        (
            ints(vec![run_length(3)], &[1, 2]),
            "RunLength: .. 2 .. srcSize is 3",
        ),
        (
            ints(vec![run_length(3)], &[1, 4, 1, -1]),
            "RunLength: .. pairs",
        ),
        (ints(vec![run_length(3)], &[1]), "RunLength: .. pairs"),
        (
            ints(vec![packing(1, false, 2)], &[1, 2, 3]),
            "IntegerPacking: .. 3 values",
        ),
        (
            ints(vec![packing(1, true, 3)], &[1, 2, 255]),
            "IntegerPacking: .. last value",
        ),
        (
            ints(vec![packing(3, true, 3)], &[1, 2, 3]),
            "IntegerPacking: .. byteCount is 3",
        ),
        (
            ints(vec![factor(0.0)], &[1, 2, 3]),
            "FixedPoint: .. factor is 0",
        ),
        (
            ints(vec![factor(f64::NAN)], &[1, 2, 3]),
            "FixedPoint: .. factor is NaN",
        ),
        (
            ints(vec![interval(1)], &[1, 2, 3]),
            "IntervalQuantization: 1 steps .. 0 to 1",
        ),
        (
            ints(vec![encoding("Delta", &[])], &[1; 3]),
            "Delta: .. parameter",
        ),
        (ints(vec![encoding("Zip", &[])], &[1; 3]), "\"Zip\""),
        (ints(vec![delta(0); 9], &[1; 3]), "10 encodings .. 8"),
        (ints(vec![Pack::Nil], &[1; 3]), "a map, found nil"),
        (index(&[0, 1, 2]), "StringArray: .. string 2 of 2"),
        (index(&[0, -2, 0]), "StringArray: .. string -2 of 2"),
        (nested, "StringArray: .. integers"),
    ] {
        let said = error(&with("Cartn_x", data));
        let of_column = said.strip_prefix("_atom_site").unwrap_or_default();
        let is_named = [".Cartn_x: ", ": Cartn_x: "]
            .iter()
            .any(|name| of_column.starts_with(name));
        assert!(is_named, "{said}");
        assert!(has_parts(&said, wanted), "{said}, not {wanted}");
        assert!(said.contains(" (fix: "), "{said}");
    }
}

/// The encoding of a column of strings.
fn encoding_of(strings: &Pack) -> Pack {
    let Pack::Map(fields) = strings else {
        panic!("data is a map");
    };
    let Pack::Array(encodings) = &fields[0].1 else {
        panic!("encodings are an array");
    };
    encodings[0].clone()
}

#[test]
fn strings_outside_of_their_text_are_refused() {
    for offsets in [[0, 2], [1, 0], [-1, 1]] {
        let parameters = [
            ("dataEncoding", Pack::Array(vec![byte_array(3)])),
            ("stringData", "A".into()),
            ("offsetEncoding", Pack::Array(vec![byte_array(3)])),
            ("offsets", Pack::Bytes(int_bytes(&offsets))),
        ];
        let encodings = vec![encoding("StringArray", &parameters)];
        let said = error(&with("label_asym_id", data(encodings, int_bytes(&[0; 3]))));
        let wanted = "_atom_site.label_asym_id: StringArray: no string from ";
        assert!(said.starts_with(wanted), "{said}");
    }
}

#[test]
fn masks_make_nulls_or_are_refused() {
    let with_mask = |name: &'static str, mask: Pack| {
        let columns = glycine().into_iter().map(|(other, data)| {
            if other == name {
                masked(other, data, mask.clone())
            } else {
                column(other, data)
            }
        });
        file(vec![category("_atom_site", 3, columns.collect())])
    };
    for (name, mask, wanted) in [
        (
            "Cartn_y",
            ints(vec![], &[0, 2, 0]),
            "row 2 of _atom_site: Cartn_y \"?\"",
        ),
        (
            "Cartn_y",
            ints(vec![], &[0, 0, 1]),
            "row 3 of _atom_site: Cartn_y \".\"",
        ),
        (
            "auth_seq_id",
            ints(vec![], &[1; 3]),
            "row 1 of _atom_site: .. number",
        ),
        (
            "Cartn_y",
            ints(vec![], &[0; 2]),
            "_atom_site.Cartn_y: 2 values of the mask",
        ),
        (
            "Cartn_y",
            ints(vec![], &[0, 3, 0]),
            "_atom_site.Cartn_y: the mask .. 3",
        ),
        (
            "Cartn_y",
            data(vec![], vec![]),
            "_atom_site.Cartn_y: the mask: .. encoding",
        ),
    ] {
        let said = error(&with_mask(name, mask));
        assert!(has_parts(&said, wanted), "{said}, not {wanted}");
    }
}

#[test]
fn files_that_lack_something_say_what() {
    let without = |name: &str| {
        let mut columns = glycine();
        columns.retain(|(other, _)| *other != name);
        file(vec![atom_site(&columns)])
    };
    let lacking = |category: &str| file(vec![self::category(category, 0, vec![])]);
    let many = vec![column("x", ints(vec![], &[])); 1001];
    for (bytes, wanted) in [
        (without("Cartn_z"), "_atom_site .. Cartn_z"),
        (without("label_comp_id"), "_atom_site .. label_comp_id"),
        (lacking("_refln"), "_atom_site .. fix: .. reflections"),
        (
            lacking("_chem_comp_atom"),
            "_atom_site .. fix: .. chemical component",
        ),
        (lacking("_atom_sites"), "no _atom_site"),
        (
            file(vec![category("_atom_site", 0, many)]),
            "_atom_site: byte ",
        ),
        (file(vec![Pack::Nil]), "byte "),
        (
            Pack::Map(vec![("version", "0.3.0".into())]).bytes(),
            "byte 0: .. \"dataBlocks\"",
        ),
        (
            Pack::Array(vec![]).bytes(),
            "byte 0: .. a map, found an array",
        ),
    ] {
        let said = error(&bytes);
        assert!(has_parts(&said, wanted), "{said}, not {wanted}");
    }
}

/// The message for a file that would decode to far more than its size.
fn refused(bytes: &[u8]) -> String {
    for file in [bytes.to_vec(), gzipped(bytes)] {
        let mut reader = Reader::new(ReadOptions {
            assembly: Assembly::First,
            ..ReadOptions::default()
        });
        let error = reader.read_auto("a.bcif", &file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Capacity, "{error}");
    }
    read(bytes).unwrap_err().to_string()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn columns_that_decode_to_far_more_than_the_file_are_refused() {
    let rows = i32::MAX as u32;
    let column_of = |name: &str, data: Pack| column(name, data);
    let text = strings(&["A"], &repeated(vec![], 0, rows));
    let columns = glycine().into_iter().map(|(name, _)| match name {
        "label_atom_id" | "label_comp_id" | "label_asym_id" => column_of(name, text.clone()),
        _ => column_of(name, repeated(vec![], 1, rows)),
    });
    let said = refused(&file(vec![category("_atom_site", rows, columns.collect())]));
    let wanted = "_atom_site.label_comp_id: .. over 4";
    assert!(has_parts(&said, wanted), "{said}");
    assert!(said.contains("limits.unpack_ratio_max"), "{said}");
    // RunLength of RunLength: pairs of (1000, 1000) from one pair.
    let size = |size: i32| encoding("RunLength", &[("srcSize", int(size))]);
    let twice = ints(
        vec![size(1_000_000_000), size(2_000_000)],
        &[1000, 2_000_000],
    );
    let said = refused(&with("Cartn_x", twice));
    assert!(has_parts(&said, "_atom_site.Cartn_x: .. decode"), "{said}");
}

#[test]
fn strings_count_for_each_row_that_has_them() {
    let long = "1,".repeat(20_000);
    let rows = 50_000;
    let columns = vec![
        column("assembly_id", strings(&["1"], &repeated(vec![], 0, rows))),
        column(
            "asym_id_list",
            strings(&[&long], &repeated(vec![], 0, rows)),
        ),
    ];
    let generators = category("_pdbx_struct_assembly_gen", rows, columns);
    let said = refused(&file(vec![generators, atom_site(&glycine())]));
    assert!(said.contains("decode to over"), "{said}");
}

#[test]
fn limits_of_names_rows_and_operators_hold() {
    let name = "N".repeat(300);
    let said = refused(&with(
        "label_asym_id",
        strings(&[&name], &repeated(vec![], 0, 3)),
    ));
    assert!(
        said.starts_with("row 1 of _atom_site: label_asym_id \"NNN"),
        "{said}"
    );
    let said = refused(&file(vec![category("_struct_asym", 100_001, vec![])]));
    assert!(
        has_parts(&said, "_struct_asym .. rows: limits.chains_max"),
        "{said}"
    );
}

#[test]
fn operators_that_are_not_in_the_file_are_named_with_the_row() {
    let one = |text: &str| strings(&[text], &ints(vec![], &[0]));
    let columns = vec![
        column("assembly_id", ints(vec![], &[1])),
        column("oper_expression", one("2")),
        column("asym_id_list", one("A")),
    ];
    let generators = category("_pdbx_struct_assembly_gen", 1, columns);
    let mut reader = Reader::new(ReadOptions {
        assembly: Assembly::First,
        ..ReadOptions::default()
    });
    let bytes = file(vec![generators, atom_site(&glycine())]);
    let error = reader.read_bytes(&bytes, Format::BinaryCif).unwrap_err();
    let wanted = "row 1 of _pdbx_struct_assembly_gen: operator \"2\"";
    assert!(error.to_string().starts_with(wanted), "{error}");
}

#[test]
fn nesting_of_any_depth_is_passed_over() {
    let mut deep = vec![0xdf, 0, 0, 0, 2, 0xa1, b'x'];
    deep.extend([0x91; 100_000]);
    deep.push(0xc0);
    let whole = file(vec![atom_site(&glycine())]);
    // The blocks of a file without its own map.
    let key_start = whole
        .windows(10)
        .position(|key| key == b"dataBlocks")
        .unwrap();
    deep.extend(&whole[key_start - 5..]);
    assert_eq!(read(&deep).unwrap()[0].xyz.len(), 3);
}
