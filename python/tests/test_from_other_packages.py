"""The guide for those who come from other packages: each line of it runs, and Biotite's agree."""

import gzip
import re
from pathlib import Path

import biotite.structure as struc
import biotite.structure.io.pdb as biotite_pdb
import numpy
import pytest
import pytapeloop

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/from-other-packages.md").read_text()
LINES = re.findall(r"^\| .* \| `(pytapeloop\..*)` \| .* \|$", GUIDE, re.MULTILINE)


def test_every_row_of_the_guide_has_a_line():
    calls, _ = GUIDE.split("## Files that other programs wrote")
    rows = [line for line in calls.splitlines() if re.match(r"\| (?!you write)", line)]
    assert len(rows) == len(LINES) > 15


@pytest.mark.parametrize("line", sorted(set(LINES)))
def test_the_lines_of_the_guide_run(line, samples, tmp_path, monkeypatch):
    text = (samples / "1ubi.pdb").read_bytes()
    (tmp_path / "structures").mkdir()
    for path in ("1ubi.pdb", "structures/1ubi.pdb"):
        (tmp_path / path).write_bytes(text)
    structure = biotite_pdb.PDBFile.read(str(samples / "1ubi.pdb")).get_structure(model=1)
    atoms = pytapeloop.Atoms(
        coordinates=structure.coord,
        names=structure.atom_name,
        residues=structure.res_name,
        chains=structure.chain_id,
        numbers=structure.res_id,
    )
    cif = gzip.decompress((samples / "1a8o.cif.gz").read_bytes())
    (tmp_path / "1ubi.cif.gz").write_bytes(gzip.compress(cif))
    xtc = ROOT / "tests/data/trajectories/1ubi.xtc"
    (tmp_path / "1ubi.xtc").symlink_to(xtc)
    monkeypatch.chdir(tmp_path)
    found = eval(line, {"pytapeloop": pytapeloop, "atoms": atoms})
    tables = found.values() if isinstance(found, dict) else [found]
    tables = [list(it) if not hasattr(it, "num_rows") else [it] for it in tables]
    assert sum(table.num_rows for group in tables for table in group) > 0


def test_values_of_biotite_agree_as_the_guide_says(samples):
    path = samples / "1a8o.pdb"
    array = biotite_pdb.PDBFile.read(str(path)).get_structure(model=1)
    array = array[struc.filter_amino_acids(array) & (array.element != "H")]
    names = ["torsions", "sasa", "contact_number"]
    settings = {"backend": "cpu", "sasa": {"points": 1000}}
    table = pytapeloop.features(path, names, **settings).to_pandas()
    radians = struc.dihedral_backbone(array)
    for name, angles in zip(["phi", "psi", "omega"], radians):
        turned = numpy.degrees(angles) - table[name].to_numpy(float)
        assert numpy.nanmax(numpy.abs((turned + 180) % 360 - 180)) < 0.01, name
        assert numpy.array_equal(numpy.isnan(angles), table[name].isna())
    areas = struc.apply_residue_wise(array, struc.sasa(array), numpy.sum)
    assert areas.sum() == pytest.approx(table["sasa"].sum(), rel=0.01)
    ca = array[array.atom_name == "CA"]
    near = struc.CellList(ca, 10).get_atoms(ca.coord, 10, as_mask=True).sum(axis=1)
    assert (near - 1 == table["cn_ca_10"]).all()
