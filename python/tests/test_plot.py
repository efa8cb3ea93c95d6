"""Drawings of columns along a sequence."""

import base64
import re
import subprocess
import xml.etree.ElementTree

import pytest
import pytapeloop
from pytapeloop._program import program


def texts(plot):
    """The texts of a drawing."""
    return [element.text for element in xml.etree.ElementTree.fromstring(plot.svg).iter() if element.text]


def test_the_drawing_of_a_table_is_that_of_the_program(samples, tmp_path):
    features = ["torsions", "dssp", "sasa", "interface_residues", "ligands"]
    for name in ("1ubi.pdb", "1hvr.pdb.gz", "1a8o.cif.gz"):
        svg = tmp_path / f"{name}.svg"
        command = [program(), "paint", samples / name, "--svg", svg, "--backend", "cpu"]
        subprocess.run([*command, "--features", ",".join(features)], check=True)
        table = pytapeloop.features(samples / name, features, backend="cpu")
        drawn = pytapeloop.plot(table)
        assert drawn.svg == svg.read_text(), name


def test_the_named_columns_of_one_structure_are_drawn(some, samples):
    table = pytapeloop.features(some, ["torsions", "dssp"], backend="cpu")
    drawn = texts(pytapeloop.plot(table, "phi, ss8", structure="1ejg"))
    assert {"1ejg", "phi", "ss8"} <= set(drawn) and not {"psi", "ss3", "1a8o"} & set(drawn)
    letters = [aa for name, aa in zip(table["structure"], table["aa"]) if name == "1ejg"]
    assert "".join(letters) in drawn
    with pytest.raises(ValueError, match="4 structures: .*name one"):
        pytapeloop.plot(table, "phi")
    with pytest.raises(ValueError, match="no structure `1ejh` .did you mean `1ejg`"):
        pytapeloop.plot(table, "phi", structure="1ejh")
    with pytest.raises(ValueError, match="no column `phj` .did you mean `phi`"):
        pytapeloop.plot(table, ["phj"], structure="1ejg")
    chains = pytapeloop.features(some, "rg", table="chains", backend="cpu")
    with pytest.raises(ValueError, match="table of residues"):
        pytapeloop.plot(chains)


def test_inputs_are_computed_and_drawn(samples):
    of_path = pytapeloop.plot(samples / "1ubi.pdb", ["phi", "sasa"])
    drawn = set(texts(of_path))
    assert {"1ubi", "phi", "sasa"} <= drawn and not {"psi", "omega", "sasa_side"} & drawn
    of_bytes = pytapeloop.plot({"1ubi": (samples / "1ubi.pdb").read_bytes()}, "phi,sasa")
    assert of_bytes.svg == of_path.svg
    assert {"phi", "psi", "omega"} <= set(texts(pytapeloop.plot(samples / "1ubi.pdb", "torsions")))
    with pytest.raises(ValueError, match="rg.*residues"):
        pytapeloop.plot(samples / "1ubi.pdb", "rg")
    with pytest.raises(pytapeloop.TapeloopError, match="bad.pdb"):
        pytapeloop.plot({"bad.pdb": b"ATOM"}, "phi")


def test_a_drawing_is_shown_and_saved(samples, tmp_path):
    table = pytapeloop.features(samples / "1ubi.pdb", "sasa", backend="cpu")
    drawn = pytapeloop.plot(table, "sasa")
    drawn.save(tmp_path / "1ubi.svg")
    with pytest.raises(ValueError, match="ends in .svg"):
        drawn.save(tmp_path / "1ubi.png")
    assert (tmp_path / "1ubi.svg").read_text() == drawn.svg
    assert "prefers-color-scheme: dark" in drawn.svg
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', drawn._repr_html_())
    assert base64.b64decode(data).decode() == drawn.svg
    assert "save(path)" in repr(drawn)
