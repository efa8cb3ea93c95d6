"""Tables in memory: what they hold, what they take, and who takes them."""

import gzip

import biotite.structure.io.pdb as biotite_pdb
import duckdb
import gemmi
import numpy
import polars
import pyarrow
import pyarrow.parquet
import pytest
import pytapeloop

FEATURES = ["sasa", "torsions", "contact_number"]


def rows(table, leave_out=("source", "structure")):
    table = pyarrow.table(table)
    return table.drop_columns([name for name in leave_out if name in table.column_names])


def test_tables_have_what_the_program_writes(some, tmp_path):
    names = ["residues", "chains", "structures", "contacts", "hydrogen_bonds", "interactions"]
    contacts = {"atom": "any", "nearest": 12}
    settings = {"backend": "cpu", "contacts": contacts, "hydrogen_bonds": True}
    settings["interactions"] = True
    tables = pytapeloop.tables(some, names=names, **settings)
    record = pytapeloop.run(inputs=some, output=tmp_path / "out", **settings)
    assert record["state"] == "finished"
    for name in names:
        written = pyarrow.parquet.read_table(tmp_path / "out" / name)
        computed = pyarrow.table(tables[name])
        assert computed.column_names == written.column_names
        assert computed.num_rows == written.num_rows >= 4
        for column in written.column_names:
            one = computed[column].combine_chunks()
            other = written[column].combine_chunks().cast(one.type)
            assert one.to_pylist() == other.to_pylist() or numpy.array_equal(
                one.to_numpy(zero_copy_only=False),
                other.to_numpy(zero_copy_only=False),
                equal_nan=True,
            ), (name, column)


def test_a_run_is_described_for_a_publication(samples, tmp_path):
    out = tmp_path / "out"
    pytapeloop.run(inputs=samples / "1ubi.pdb", output=out, features="sasa", backend="cpu")
    text = pytapeloop.methods(out)
    assert "1 structure with 76 residues" in text and "@article{shrake1973," in text
    with pytest.raises(pytapeloop.TapeloopError, match="run.json"):
        pytapeloop.methods(tmp_path)


def test_radii_are_those_of_a_set_or_of_a_file(samples, tmp_path):
    file = tmp_path / "mine.config"
    file.write_text("types:\nC 1.65 apolar\natoms:\nANY CA C\n")

    def alphas(radii):
        sasa = {"radii": radii}
        path = samples / "1ubi.pdb"
        table = pytapeloop.features(path, "atoms", table="atoms", sasa=sasa, backend="cpu")
        rows = pyarrow.table(table).select(["name", "radius"]).to_pylist()
        return {round(row["radius"], 2) for row in rows if row["name"] == "CA"}

    sets = {"protor": 1.88, "naccess": 1.87, "oons": 2.0, "bondi": 1.7, file: 1.65}
    assert {radii: alphas(radii) for radii in sets} == {key: {sets[key]} for key in sets}
    with pytest.raises(pytapeloop.TapeloopError, match="sasa.radii.*mine.confog"):
        alphas(tmp_path / "mine.confog")


def test_annotations_of_which_no_row_matches_are_an_error(samples, tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("structure,chain,residue,x\n1UBI,A,5,2\n")
    path, settings = samples / "1ubi.pdb", {"backend": "cpu", "annotations": str(table)}
    for compute in (pytapeloop.features, pytapeloop.stream):
        with pytest.raises(pytapeloop.TapeloopError, match="no row.*annotations have 1UBI"):
            list(compute(path, "contact_number", **settings))
    settings["annotations_unmatched"] = "allow"
    found = pyarrow.table(pytapeloop.features(path, "contact_number", **settings))
    assert found.num_rows == 76 and found["x"].null_count == 76


def test_structures_in_memory_are_parts_of_which_one_may_match_no_row(samples, tmp_path, monkeypatch):
    monkeypatch.setattr(pytapeloop._inputs, "STRUCTURES_AT_ONCE", 1)
    table = tmp_path / "x.csv"
    table.write_text("structure,chain,residue,x\n1ubi,A,5,2\n")
    files = {name: (samples / f"{name}.pdb").read_bytes() for name in ("1ubi", "1a8o")}
    settings = {"backend": "cpu", "annotations": str(table)}
    found = pyarrow.table(pytapeloop.features(files, "contact_number", **settings))
    assert len(found["x"]) - found["x"].null_count == 1


def test_a_file_that_is_named_again_is_read_once(samples):
    path = samples / "1ubi.pdb"
    table = pytapeloop.features([path, path, str(path)], "rg", table="structures", backend="cpu")
    assert table.num_rows == 1


def test_other_libraries_take_tables_and_batches(samples):
    table = pytapeloop.features(samples / "1a8o.pdb", "sasa", backend="cpu")
    assert len(table) == table.num_rows > 50
    arrow = pyarrow.table(table)
    frame = polars.DataFrame(table)
    pandas = table.to_pandas()
    ((total,),) = duckdb.sql("select sum(sasa) from arrow").fetchall()
    for sasa in (frame["sasa"].sum(), pandas["sasa"].sum(), total):
        assert sasa == pytest.approx(arrow["sasa"].to_numpy().sum(dtype=float), rel=1e-5)
    field = arrow.schema.field("sasa")
    assert field.metadata[b"unit"] == b"A^2"
    (batch,) = pytapeloop.stream(samples / "1a8o.pdb", "sasa", backend="cpu")
    assert pyarrow.record_batch(batch).equals(arrow.to_batches()[0])
    # The columns outlive the table.
    column = arrow["sasa"]
    del table, arrow, batch
    assert column[0].as_py() > 0


def test_structures_in_memory_have_the_features_of_their_files(samples):
    path = samples / "1a8o.pdb"
    engine = pytapeloop.Features(FEATURES, backend="cpu")
    of_file = rows(engine.table(path))
    text = path.read_bytes()
    of_bytes = engine.table({"1a8o.pdb": text})
    assert rows(of_bytes).equals(of_file)
    assert pyarrow.table(of_bytes)["structure"][0].as_py() == "1a8o"
    assert rows(engine.table(("1a8o", gzip.compress(text)) for _ in range(1))).equals(of_file)

    values = ["auth_asym_id", "auth_seq_id", "comp_id", "sasa", "phi", "psi"]
    of_file = of_file.select(values)
    atoms = biotite_pdb.PDBFile.read(str(path)).get_structure(
        model=1, altloc="occupancy", extra_fields=["b_factor"]
    )
    assert rows(engine.table(atoms)).select(values).equals(of_file)
    structure = gemmi.read_structure(str(path))
    assert rows(engine.table([("1a8o", structure)])).select(values).equals(of_file)
    arrays = pytapeloop.Atoms(
        coordinates=atoms.coord,
        names=list(atoms.atom_name),
        residues=list(atoms.res_name),
        chains=list(atoms.chain_id),
        numbers=list(atoms.res_id),
        hetero=list(atoms.hetero),
    )
    assert rows(engine.table(("1a8o", arrays))).select(values).equals(of_file)

    (row,) = engine_rows("b_factor", pytapeloop.Atoms([[0, 0, 0]], ["CA"], ["ALA"], ["A"], [1]))
    assert row["b_ca"] is None, "no B factor was given"


def engine_rows(features, structure):
    return pytapeloop.features(structure, features, backend="cpu").to_arrow().to_pylist()


def test_an_iterable_of_structures_is_read_bit_by_bit(samples):
    text = (samples / "1a8o.pdb").read_bytes()
    taken = 0

    def structures():
        nonlocal taken
        for _ in range(3000):
            taken += 1
            yield text

    batches = pytapeloop.stream(structures(), "torsions", backend="cpu")
    first = next(batches)
    assert first.num_rows > 0 and taken < 3000
    total = first.num_rows + sum(batch.num_rows for batch in batches)
    assert taken == 3000 and total == 3000 * len(pytapeloop.features([text], backend="cpu"))


def test_rejected_inputs_are_warned_of_and_are_a_table(samples):
    inputs = {"good": (samples / "1a8o.pdb").read_bytes(), "bad.pdb": b"ATOM"}
    with pytest.warns(pytapeloop.RejectedWarning, match="1 input.*bad.pdb") as caught:
        tables = pytapeloop.tables(inputs, "sasa", backend="cpu")
    assert caught[0].filename == __file__
    (row,) = pyarrow.table(tables["rejected"]).to_pylist()
    assert (row["source"], row["ordinal"], row["kind"]) == ("bad.pdb", 1, "input")
    with pytest.raises(pytapeloop.TapeloopError, match="bad.pdb"):
        pytapeloop.features(inputs, "sasa", backend="cpu", on_reject="raise")
    with pytest.raises(pytapeloop.TapeloopError) as refused:
        named = [("x" * 1_000_000, b"ATOM")]
        pytapeloop.features(named, "sasa", backend="cpu", on_reject="raise")
    assert len(str(refused.value)) < 10_000
    assert len(pytapeloop.features([], "sasa", backend="cpu")) == 0
    tables = pytapeloop.tables([], "sasa", names="chains", backend="cpu")
    assert set(tables) == {"chains", "rejected"}


def test_lists_of_names_are_those_of_the_program(samples):
    names = pytapeloop.features(samples, "phi , ligands sasa", backend="cpu").column_names
    assert {"phi", "ligand_contacts", "sasa"} <= set(names)


def test_mistakes_are_errors_that_name_them(samples, tmp_path):
    for removed in [{"mode": "auto"}, {"verify": "auto"}, {"shadow_every": 3}, {"scope": "batch"}]:
        with pytest.raises(pytapeloop.ConfigError, match="was removed: .*fix: "):
            pytapeloop.features(samples, **removed)
    with pytest.raises(pytapeloop.ConfigError, match="unknown name `torsion`.*torsions"):
        pytapeloop.features(samples, "torsion")
    with pytest.raises(pytapeloop.ConfigError, match="unknown key `sasa.pionts`"):
        pytapeloop.Features(sasa={"pionts": 3})
    with pytest.raises(pytapeloop.ConfigError, match="settings: .*not JSON compliant"):
        pytapeloop.Features(sasa={"points": float("nan")})
    deep = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(pytapeloop.ConfigError, match="settings: .*recursion"):
        pytapeloop.Features(annotations=deep)
    for key in ("input", "output", "timeline"):
        with pytest.raises(pytapeloop.ConfigError, match=f"`{key}` is not a setting of an engine"):
            pytapeloop.Features(**{key: "folder"})
    for inputs, match in [("a\0b", "null byte"), (["x" * 1000] * 10_000, "fix: .*@FILE")]:
        with pytest.raises(pytapeloop.TapeloopError, match=f"cannot be started: .*{match}"):
            pytapeloop.run(inputs=inputs, output=tmp_path / "none")
    with pytest.raises(pytapeloop.TapeloopError, match="cannot be started: .*null byte"):
        pytapeloop.methods("a\0b")
    with pytest.raises(pytapeloop.ConfigError, match="\"residue\""):
        pytapeloop.features(samples, table="residue", backend="cpu")
    with pytest.raises(pytapeloop.ConfigError, match="contacts.atom"):
        pytapeloop.features(samples, table="contacts", backend="cpu")
    with pytest.raises(pytapeloop.TapeloopError, match="missing.pdb: "):
        pytapeloop.features(tmp_path / "missing.pdb", backend="cpu")
    with pytest.raises(pytapeloop.TapeloopError, match="missing.pdb: "):
        pytapeloop.run(inputs=tmp_path / "missing.pdb", output=tmp_path / "out")
    with pytest.raises(TypeError, match="Table is a table"):
        pytapeloop.features(pytapeloop.features(samples / "1ubi.pdb", "rg", backend="cpu"))
    with pytest.raises(TypeError, match="text of a file"):
        pytapeloop.features((samples / "1ubi.pdb").read_text(), backend="cpu")
    with pytest.raises(TypeError, match=r"tables\(names="):
        pytapeloop.features(samples, table=["residues"], backend="cpu")
    with pytest.raises(TypeError, match="int .*structure"):
        pytapeloop.features([7], backend="cpu")
    with pytest.raises(TypeError, match="name .* 1"):
        pytapeloop.features({1: b"ATOM"}, backend="cpu")
    with pytest.raises(TypeError, match="paths or structures"):
        pytapeloop.features(["1a8o.pdb", b"ATOM"], backend="cpu")
    for chain, number, code, match in [
        ("?", 1, "", "chain"),
        (".", 1, "", "chain"),
        ("A", 1 << 31, "", "atom 0 is 2147483648"),
        ("A", 1, "AB", "insertion code of atom 0"),
    ]:
        one = pytapeloop.Atoms([[0, 0, 0]], ["CA"], ["ALA"], [chain], [number], [code])
        with pytest.raises(ValueError, match=match):
            pytapeloop.features(one, backend="cpu")
    one = pytapeloop.Atoms([[0, 0, 0]], ["CA"], ["ALA"], ["A"], [1, 2])
    with pytest.raises(ValueError, match="numbers .*2 .*1 atom"):
        pytapeloop.features(one, backend="cpu")


def test_interfaces_are_a_table(samples):
    settings = {"interfaces": True, "backend": "cpu"}
    table = pyarrow.table(
        pytapeloop.features(samples / "1hvr.pdb.gz", "interfaces", table="interfaces", **settings)
    )
    (row,) = table.to_pylist()
    assert (row["auth_asym_id_i"], row["auth_asym_id_j"]) == ("A", "B")
    assert row["contacts"] >= row["residues_i"] > 0 and row["buried_area"] > 1000
    with pytest.raises(pytapeloop.ConfigError, match="name the feature interfaces"):
        pytapeloop.features(samples / "1hvr.pdb.gz", table="interfaces", backend="cpu")


def test_contacts_of_several_batches_have_the_names_of_their_structures(some, samples):
    settings = {"contacts": {"atom": "ca"}, "backend": "cpu", "tables": {"rows_per_group": 100}}
    table = pytapeloop.features(some, "contacts", table="contacts", **settings)
    arrow = pyarrow.table(table)
    names = arrow["structure"].to_pylist()
    assert len(arrow.to_batches()) > 4 and set(names) == {"1a8o", "1as5", "1ejg", "1a1p"}
    assert polars.DataFrame(table)["structure"].cast(polars.String).to_list() == names
    assert list(table.to_pandas()["structure"]) == names
    rows = duckdb.sql("select structure from arrow").fetchall()
    assert [name for (name,) in rows] == names
    (alone,) = pytapeloop.stream(some / "1ejg.pdb.gz", "contacts", table="contacts",
                               contacts={"atom": "ca"}, backend="cpu")
    assert names.count("1ejg") == alone.num_rows


def test_a_stream_checks_the_name_of_its_table_when_it_is_called(samples):
    engine = pytapeloop.Features("sasa", backend="cpu")
    with pytest.raises(pytapeloop.ConfigError, match="residue"):
        engine.stream(samples / "1ubi.pdb", "residue")
    with pytest.raises(pytapeloop.ConfigError, match="contacts"):
        pytapeloop.stream(samples / "1ubi.pdb", "sasa", table="contacts", backend="cpu")
    assert len(list(engine.stream(samples / "1ubi.pdb"))) == 1
