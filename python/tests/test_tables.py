"""What tables, batches and columns show, and who takes a column."""

import numpy
import polars
import pyarrow
import pytest
import pytapeloop


@pytest.fixture(scope="module")
def table(samples):
    features = ["sasa", "dssp", "torsions"]
    return pytapeloop.features(samples / "1ubi.pdb", features, backend="cpu")


@pytest.fixture(autouse=True)
def terminal_of_80_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_a_table_prints_its_shape_and_its_first_and_last_rows(table):
    first, names, units, *rows = repr(table).splitlines()
    assert first.startswith(f"pytapeloop.Table: 76 rows, {table.num_columns} columns (")
    assert all(len(line) <= 80 for line in (first, names, units, *rows))
    names = names.split()
    assert names[:5] == ["structure", "auth_asym_id", "auth_seq_id", "comp_id", "phi"]
    assert f"({len(names)} shown)" in first and 6 < len(names) < table.num_columns
    assert "degrees" in units
    assert len(rows) == 11 and rows[5] == "..." and "null" in rows[0]
    assert rows[0].split()[:4] == ["1ubi", "A", "1", "MET"]
    assert rows[-1].split()[:4] == ["1ubi", "A", "76", "GLY"]


def test_a_table_prints_a_column_of_each_feature_first_and_fits_the_terminal(table, monkeypatch):
    names = repr(table).splitlines()[1].split()
    assert {"phi", "ss8", "sasa"} <= set(names)
    monkeypatch.setenv("COLUMNS", "160")
    wide = repr(table).splitlines()
    assert 80 < max(len(line) for line in wide) <= 160
    assert set(names) < set(wide[1].split())
    monkeypatch.setenv("COLUMNS", "50")
    assert max(len(line) for line in repr(table).splitlines()[1:]) <= 50


def test_small_tables_print_whole(samples):
    structures = pytapeloop.tables(samples / "1ubi.pdb", "rg", backend="cpu")
    assert repr(structures["rejected"]).splitlines() == [
        "pytapeloop.Table: 0 rows, 6 columns",
        "source  ordinal  model  kind  reason  fix",
    ]


def test_reals_have_the_decimals_of_the_largest(table):
    values = repr(table["sasa"]).split("[")[1].rstrip("]").split(", ")
    assert values[0] == "56.2" and values[-1] == "..."
    assert len(repr(table["sasa"]).splitlines()[1]) <= 80


def test_html_is_escaped_and_has_units_and_descriptions(samples):
    files = {"<b>&": (samples / "1ubi.pdb").read_bytes()}
    table = pytapeloop.features(files, ["sasa", "rsa"], backend="cpu")
    html = table._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html
    assert html.count("<tr>") == 13, "names, units, five rows, a gap and five rows"
    assert 'title="' + table["sasa"].description + '">sasa</th>' in html
    assert ">A^2</th>" in html
    many = pytapeloop.features(files, ["torsions", "dssp", "contact_number"], backend="cpu")
    (names, *_) = [line for line in many._repr_html_().splitlines() if "</th>" in line]
    assert names.count("</th>") == 20 and f"{many.num_columns} columns (20 shown)" in many._repr_html_()


def test_a_batch_shows_what_a_table_shows(samples, table):
    (batch,) = pytapeloop.stream(samples / "1ubi.pdb", ["sasa", "dssp", "torsions"], backend="cpu")
    assert repr(batch) == repr(table).replace("Table", "RecordBatch", 1)
    assert "<table>" in batch._repr_html_() and list(batch["phi"]) == list(table["phi"])
    assert "sasa" in batch and "sas" not in batch


def test_a_column_is_a_sequence(table):
    ss8, phi = table["ss8"], table["phi"]
    assert list(ss8)[:3] == ["-", "E", "E"] and len(ss8) == 76 and ss8[-1] == list(ss8)[-1]
    assert phi[0] is None and phi[1] == pytest.approx(-93.066, abs=1e-3)
    assert list(phi[1:4]) == list(phi)[1:4] and list(phi[::-25]) == list(phi)[::-25]
    assert (phi.name, phi.unit, ss8.unit) == ("phi", "degrees", "")
    assert phi.description.endswith(".")
    assert list(table["break_before"])[:2] == [True, False]
    with pytest.raises(IndexError, match="76"):
        ss8[76]
    with pytest.raises(TypeError, match="numpy.asarray"):
        ss8["H"]


def test_numpy_takes_columns(table):
    phi = numpy.asarray(table["phi"])
    assert phi.dtype == numpy.float32 and numpy.isnan(phi[0])
    assert numpy.array_equal(phi, table.to_pandas()["phi"], equal_nan=True)
    phi[0] = 1  # The copy may be changed.
    assert table["phi"][0] is None
    numbers = numpy.asarray(table["auth_seq_id"])
    assert numbers.dtype == numpy.int32 and list(numbers) == list(range(1, 77))
    missing = numpy.asarray(table["label_seq_id"])
    assert missing.dtype == numpy.float64 and numpy.isnan(missing).all()
    assert numpy.asarray(table["break_before"]).dtype == bool
    ss8 = numpy.asarray(table["ss8"])
    assert (ss8 == "H").sum() > 10 and list(ss8) == list(table["ss8"])
    assert numpy.asarray(table["phi"], dtype="f8").dtype == numpy.float64
    with pytest.raises(ValueError, match="copy"):
        numpy.asarray(table["phi"], copy=False)


def test_narrow_reals_and_flags_with_nulls_become_arrays(samples):
    settings = {"backend": "cpu", "reals": "f16", "unobserved": True}
    table = pytapeloop.features(samples / "1a8o.cif.gz", "torsions", **settings)
    phi = numpy.asarray(table["phi"])
    assert phi.dtype == numpy.float16 and numpy.isnan(phi[0])
    assert [None if numpy.isnan(value) else value for value in phi] == list(table["phi"])
    flags = numpy.asarray(table["break_before"])
    assert list(flags) == list(table["break_before"])


def test_arrow_libraries_take_columns(table):
    arrow = pyarrow.table(table)
    for name in ("phi", "ss8", "auth_seq_id", "break_before"):
        assert pyarrow.array(table[name]).to_pylist() == arrow[name].to_pylist() == list(table[name])
    series = polars.Series("phi", table["phi"])
    assert series.to_list() == list(table["phi"])


def test_columns_of_several_batches_are_joined(some):
    settings = {"contacts": {"atom": "ca"}, "backend": "cpu", "tables": {"rows_per_group": 100}}
    table = pytapeloop.features(some, "contacts", table="contacts", **settings)
    arrow = pyarrow.table(table)
    assert len(arrow.to_batches()) > 4
    for name in ("structure", "distance"):
        assert list(table[name]) == arrow[name].to_pylist()
    assert table.head(150).num_rows == 150 and len(pyarrow.table(table.head(150)).to_batches()) > 1
    assert list(table.head(150)["structure"]) == arrow["structure"].to_pylist()[:150]
    assert repr(table).splitlines()[-1].split()[0] == arrow["structure"][-1].as_py()


def test_head_has_the_first_rows(table):
    assert isinstance(table.head(), pytapeloop.Table)
    assert pyarrow.table(table.head()).equals(pyarrow.table(table).slice(0, 5))
    assert (len(table.head(0)), len(table.head(1000))) == (0, 76)
    assert table.head(0).column_names == table.column_names and list(table.head(0)["sasa"]) == []
    with pytest.raises(OverflowError):
        table.head(-1)


def test_unknown_columns_are_key_errors_with_a_similar_name(table):
    with pytest.raises(KeyError, match="no column `sasaa` .did you mean `sasa`"):
        table["sasaa"]
    with pytest.raises(KeyError, match="no column `rsa` .let `features` name `rsa`"):
        table["rsa"]
    with pytest.raises(TypeError, match="name of one column"):
        table[0]
    with pytest.raises(TypeError, match="not iterable"):
        iter(table)
    with pytest.raises(KeyError) as unknown:
        table["x" * 1_000_000]
    assert len(str(unknown.value)) < 1000
    for index in (1 << 70, -(1 << 70)):
        with pytest.raises(IndexError, match="rows"):
            table["sasa"][index]
