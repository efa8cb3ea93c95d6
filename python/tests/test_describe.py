"""The list of features, in Python and by the program."""

import json
import subprocess

import pytest
import pytapeloop
from pytapeloop._program import program


def printed(*arguments):
    command = [program(), "features", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_list_is_that_of_the_program():
    everything = pytapeloop.describe()
    assert everything == json.loads(printed("--json"))
    assert printed().startswith(repr(everything) + "\n")
    assert {"sasa", "torsions", "ligands"} <= {feature["name"] for feature in everything}
    assert repr(pytapeloop.describe("sasa")) + "\n" == printed("sasa")


def test_columns_are_listed_with_their_units_and_formulas():
    (torsions,) = pytapeloop.describe("phi, psi")
    assert [column["name"] for column in torsions["columns"]] == ["phi", "psi"]
    phi = torsions["columns"][0]
    assert (phi["unit"], phi["table"], phi["type"]) == ("degrees", "residues", "float32")
    assert phi["description"] and torsions["name"] == "torsions" and torsions["formula"]
    assert "psi" in repr(pytapeloop.describe("phi, psi"))
    assert "omega" not in [column["name"] for column in torsions["columns"]]
    (packing,) = pytapeloop.describe("contact_number", contact_number={"ca": [9]})
    assert "cn_ca_9" in [column["name"] for column in packing["columns"]]


def test_names_that_need_a_setting_are_switched_on():
    idle = [feature["name"] for feature in pytapeloop.describe() if not feature["columns"]]
    assert "hydrogen_bonds" in idle
    for name in idle:
        (feature,) = pytapeloop.describe(name)
        # Which atoms are in contact, and which residues form clusters, has no default.
        assert bool(feature["columns"]) == (name not in ("contacts", "cluster"))


def test_unknown_names_are_errors():
    with pytest.raises(pytapeloop.ConfigError, match="unknown name `sas`"):
        pytapeloop.describe("sas")
