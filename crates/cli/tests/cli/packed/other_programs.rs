//! Packed sets and other programs that read and write Arrow files.

use super::*;

/// Reads the file with every program, and writes it with pyarrow: the same rows, in
/// other record batches, with other names of items, and an additional column.
const SCRIPT: &str = r#"
import sys
import duckdb
import polars
import pyarrow as pa

file, written, rows, residues, atoms = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
packed = table = pa.ipc.open_file(file).read_all()
table.validate(full=True)
assert table.num_rows == rows
assert table.schema.metadata[b"tapeloop.packed"] == b"1"
assert sum(len(row) for row in table["residues"]) == residues
xyz = table["atoms"].combine_chunks().values.field("xyz").values
assert len(xyz) == 3 * atoms
assert polars.read_ipc(file)["atoms"].list.len().sum() == atoms
query = "select sum(len(residues)) from packed"
assert duckdb.sql(query).fetchall()[0][0] == residues

table = table.select(table.column_names[::-1]).append_column("note", pa.array(["mine"] * rows))
arrays = [column.combine_chunks().to_pylist() for column in table.columns]
schema = pa.schema([pa.field(field.name, field.type) for field in table.schema], table.schema.metadata)
table = pa.table([pa.array(a, f.type) for a, f in zip(arrays, schema)], schema=schema)
with pa.ipc.new_file(written, table.schema) as writer:
    writer.write_table(table, max_chunksize=7)
compressed = pa.ipc.IpcWriteOptions(compression="lz4")
with pa.ipc.new_file(written + ".lz4.arrow", table.schema, options=compressed) as writer:
    writer.write_table(table)
table = table.drop_columns(["loose"])
with pa.ipc.new_file(written + ".short.arrow", table.schema) as writer:
    writer.write_table(table)
"#;

#[test]
#[ignore = "needs Python with duckdb, polars and pyarrow"]
fn other_programs_read_a_set_and_write_one() {
    let python = std::env::var("TAPELOOP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    let junk = folder.path().join("junk.pdb");
    fs::write(&junk, "junk").unwrap();
    pack(&[SAMPLES, str_of(&junk), "-o", str_of(&set)], 3);
    let totals = inspect(&set, &[]);
    let count = |name: &str| totals[name].as_u64().unwrap();
    let rows = count("structures") + count("rejected");
    let counts = [rows, count("residues"), count("atoms")].map(|count| count.to_string());
    let written = folder.path().join("written.arrow");
    let file = set.join("structures-00000.arrow");
    let output = Command::new(&python)
        .args(["-c", SCRIPT, str_of(&file), str_of(&written)])
        .args(counts)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let own = results(str_of(&set), &folder.path().join("own"), &FEATURES);
    let other = results(str_of(&written), &folder.path().join("other"), &FEATURES);
    assert!(own == other);
    assert_eq!(inspect(&written, &[])["files_without_checksums"], 1);
    for (ending, said) in [("lz4", "are compressed"), ("short", "no column `loose`")] {
        let file = format!("{}.{ending}.arrow", written.display());
        let (output, code) = run(&[&file, "-o", "-"]);
        let stderr = text(&output.stderr);
        assert!(code == 1 && stderr.contains(said), "{stderr}");
    }
}
